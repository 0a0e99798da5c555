"""Messages of FMUs of version 2.0, whose logger is a C function with an open list of arguments.

An FMU calls it as it would ``printf``: a format and what goes into it. Python cannot receive such
a list, so a few lines of machine code do: they let the C library put the text together, and hand
that on. Where there is no ``vsnprintf`` to call, formats are shown as they are.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.system.c_library import function_address, passes_lists_by_pointer
from archimedes.system.cpus import architecture

#: ``env`` is the function of Python that gets the text. 64 bytes hold the list of every system.
_TEXT = """
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
declare i32 @vsnprintf(ptr, i64, ptr, ptr)
define void @log(ptr %env, ptr %name, i32 %status, ptr %category, ptr %format, ...) {{
  %list = alloca [64 x i8], align 16
  %text = alloca [{size} x i8], align 16
  call void @llvm.va_start.p0(ptr %list)
  {argument}
  %n = call i32 @vsnprintf(ptr %text, i64 {size}, ptr %format, ptr %argument)
  call void @llvm.va_end.p0(ptr %list)
  call void %env(ptr %env, ptr %name, i32 %status, ptr %category, ptr %text)
  ret void
}}
"""
#: Bytes of a message.
SIZE = 4096


@cache
def _code() -> NativeCode | None:
    try:
        address = function_address("", "vsnprintf")
    except (AttributeError, OSError, TypeError):
        return None
    by_pointer = "%argument = getelementptr i8, ptr %list, i64 0"
    by_value = "%argument = load ptr, ptr %list"
    text = _TEXT.format(
        size=SIZE, argument=by_pointer if passes_lists_by_pointer(architecture()) else by_value
    )
    return NativeCode(host_target().compile(text), "log", {"vsnprintf": address})


def formatting_logger(receiver: Any) -> tuple[ctypes.c_void_p, list[Any]]:
    """Return a logger for an FMU, and what must live as long as it is called.

    `receiver` is a function of ctypes ``(env, name, status, category, text)``. The FMU must hand
    on its address as the environment of the instance.
    """
    code = _code()
    if code is None:
        return ctypes.cast(receiver, ctypes.c_void_p), [receiver]
    return ctypes.c_void_p(code.address), [receiver, code]
