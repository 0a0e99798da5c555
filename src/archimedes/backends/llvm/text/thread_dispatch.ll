; A callable that leads to one function in threads that record, to another in all others.
@arc.key = external global i8
declare ptr @PyThread_tss_get(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
define ptr @arc_dispatch(ptr %self, ptr %arguments, i64 %count, ptr %names) nounwind {
entry:
  %mark = call ptr @PyThread_tss_get(ptr @arc.key)
  %plain = icmp eq ptr %mark, null
  %offset = select i1 %plain, i64 {original}, i64 {version}
  %place = getelementptr i8, ptr %self, i64 %offset
  %function = load ptr, ptr %place, align 8
  %result = tail call ptr @PyObject_Vectorcall(
    ptr %function, ptr %arguments, i64 %count, ptr %names)
  ret ptr %result
}
define ptr @arc_fill(ptr %module, ptr %arguments, i64 %count) nounwind {
entry:
  %self = load ptr, ptr %arguments, align 8
  %call = getelementptr i8, ptr %self, i64 {vectorcall}
  store ptr @arc_dispatch, ptr %call, align 8
  br label %function
function:
  %k = phi i64 [1, %entry], [%next, %function]
  %from = getelementptr ptr, ptr %arguments, i64 %k
  %given = load ptr, ptr %from, align 8
  call void @Py_IncRef(ptr %given)
  %words = mul i64 %k, 8
  %place = getelementptr i8, ptr %call, i64 %words
  store ptr %given, ptr %place, align 8
  %next = add i64 %k, 1
  %more = icmp ult i64 %k, 2
  br i1 %more, label %function, label %done
done:
  call void @Py_IncRef(ptr %self)
  ret ptr %self
}
