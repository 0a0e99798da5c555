; The address of an array's first item, by the buffer protocol.
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyLong_FromUnsignedLongLong(i64)
define ptr @arc_data_pointer(ptr %self, ptr %array) nounwind {
entry:
  %view = alloca [{size} x i8], align 8
  %status = call i32 @PyObject_GetBuffer(ptr %array, ptr %view, i32 {strides})
  %good = icmp eq i32 %status, 0
  br i1 %good, label %read, label %failed
read:
  %address = load i64, ptr %view, align 8
  call void @PyBuffer_Release(ptr %view)
  %number = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  ret ptr %number
failed:
  ret ptr null
}
