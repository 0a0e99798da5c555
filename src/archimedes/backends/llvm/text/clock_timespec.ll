; Milliseconds of the system's clock, where a function fills in a struct timespec.
declare i32 @clock_gettime(i32, ptr)
define internal i64 @now() nounwind {
  %time = alloca [2 x i64], align 8
  %failed = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %at = getelementptr i8, ptr %time, i64 8
  %nano = load i64, ptr %at, align 8
  %whole = mul i64 %seconds, 1000
  %part = sdiv i64 %nano, 1000000
  %t = add i64 %whole, %part
  ret i64 %t
}
