; What a kernel calls at a safepoint (lowering/safepoints.py says what a budget is).
; A turn returns 0 where something was raised.
define i32 @arc_look(ptr %budget) nounwind {
entry:
  %last.at = getelementptr i8, ptr %budget, i64 8
  %status.at = getelementptr i8, ptr %budget, i64 16
  %status = load i32, ptr %status.at, align 4
  %over = icmp ne i32 %status, 0
  br i1 %over, label %ended, label %look
ended:
  ret i32 %status
look:
  %now = call i64 @now()
  %last = load i64, ptr %last.at, align 8
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %compare
begin:
  store i64 %now, ptr %last.at, align 8
  br label %refill
compare:
  %gone = sub i64 %now, %last
  %due = icmp sge i64 %gone, {period}
  br i1 %due, label %turn, label %refill
refill:
  store i64 {budget}, ptr %budget, align 8
  ret i32 0
turn:
  %fine = call i32 @arc_turn()
  %failed = icmp eq i32 %fine, 0
  br i1 %failed, label %raised, label %go.on
go.on:
  %after = call i64 @now()
  store i64 %after, ptr %last.at, align 8
  br label %refill
raised:
  store i32 {raised}, ptr %status.at, align 4
  ret i32 {raised}
}
