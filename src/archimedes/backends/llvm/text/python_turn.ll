; Python's turn: the GIL, a function of Python, and what that raised.
; int arc_turn() returns 1, or 0 where something was raised, which is put into a dict, by thread.
; Nothing here runs Python between the exception and the dict, where another one could come up.
@arc.turn = external global i8
@arc.kept = external global i8
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare {long} @PyThread_get_thread_ident()
declare ptr @PyLong_FromUnsignedLong({long})
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
define internal i32 @arc_turn() nounwind {
entry:
  %kind = alloca ptr, align 8
  %value = alloca ptr, align 8
  %trace = alloca ptr, align 8
  %gil = call i32 @PyGILState_Ensure()
  %result = call ptr @PyObject_CallNoArgs(ptr @arc.turn)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %raised, label %fine
fine:
  call void @Py_DecRef(ptr %result)
  call void @PyGILState_Release(i32 %gil)
  ret i32 1
raised:
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %trace)
  call void @PyErr_NormalizeException(ptr %kind, ptr %value, ptr %trace)
  %error = load ptr, ptr %value, align 8
  %way = load ptr, ptr %trace, align 8
  %no.way = icmp eq ptr %way, null
  br i1 %no.way, label %file, label %traced
traced:
  %set = call i32 @PyException_SetTraceback(ptr %error, ptr %way)
  call void @Py_DecRef(ptr %way)
  br label %file
file:
  %thread = call {long} @PyThread_get_thread_ident()
  %name = call ptr @PyLong_FromUnsignedLong({long} %thread)
  %filed = call i32 @PyDict_SetItem(ptr @arc.kept, ptr %name, ptr %error)
  call void @Py_DecRef(ptr %name)
  call void @Py_DecRef(ptr %error)
  %class = load ptr, ptr %kind, align 8
  call void @Py_DecRef(ptr %class)
  call void @PyGILState_Release(i32 %gil)
  ret i32 0
}
