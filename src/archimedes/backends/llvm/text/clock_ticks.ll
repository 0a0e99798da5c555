; Milliseconds of the system's clock: Windows has a function that returns them.
declare i64 @GetTickCount64()
define internal i64 @now() nounwind {
  %t = call i64 @GetTickCount64()
  ret i64 %t
}
