; Python's turn through ctypes, for one thread at a time: others go on, and ask again later.
@busy = internal global i64 0
declare i32 @arc_callback(i32)
define internal i32 @arc_turn() nounwind {
  %taken = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %turn, label %other
turn:
  %fine = call i32 @arc_callback(i32 0)
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret i32 %fine
other:
  ret i32 1
}
