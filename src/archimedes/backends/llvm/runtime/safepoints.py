"""What long loops of kernels call at safepoints: Python gets a turn every ``PERIOD`` milliseconds.

Kernels know one word, which points to the function ``int (budget)``; what a budget is says
``lowering/safepoints.py``. At first it is a callback, which puts the native function there: most
processes have no loop that is so long.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

from archimedes.backends.interrupts import KEPT, take_turn
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.python_entry.common_code import common_code
from archimedes.backends.llvm.python_entry.text_lines import address
from archimedes.backends.llvm.runtime.machine import NativeCode
from archimedes.backends.lowering.safepoints import BUDGET

__all__ = ["ADDRESS", "NAME"]

NAME = "arc_safepoint"
#: Milliseconds between two turns of Python: soon enough for people, and seldom enough that waiting
#: for the GIL, which other threads may hold for 5 ms, takes no part of the time to speak of.
PERIOD = 50

#: The system's clock: a function that returns milliseconds (Windows), or fills a struct timespec.
_TICKS = """
declare i64 @GetTickCount64()
define internal i64 @now() {
  %t = call i64 @GetTickCount64()
  ret i64 %t
}
"""
_TIMESPEC = """
declare i32 @clock_gettime(i32, ptr)
define internal i64 @now() {
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
"""
#: A turn: the GIL, a function of Python, and what it raised into a dict, by thread. Nothing here
#: runs Python between the exception and the dict, where another one could come up.
_TEXT = """
@arc.turn = external global i8
@arc.kept = external global i8
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
define i32 @arc_look(ptr %budget) nounwind {
entry:
  %kind = alloca ptr, align 8
  %value = alloca ptr, align 8
  %trace = alloca ptr, align 8
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
  %gil = call i32 @PyGILState_Ensure()
  %result = call ptr @PyObject_CallNoArgs(ptr @arc.turn)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %raised, label %fine
fine:
  call void @Py_DecRef(ptr %result)
  call void @PyGILState_Release(i32 %gil)
  %after = call i64 @now()
  store i64 %after, ptr %last.at, align 8
  br label %refill
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
  %thread = call i64 @PyThread_get_thread_ident()
  %name = call ptr @PyLong_FromUnsignedLongLong(i64 %thread)
  %filed = call i32 @PyDict_SetItem(ptr @arc.kept, ptr %name, ptr %error)
  call void @Py_DecRef(ptr %name)
  call void @Py_DecRef(ptr %error)
  %class = load ptr, ptr %kind, align 8
  call void @Py_DecRef(ptr %class)
  call void @PyGILState_Release(i32 %gil)
  store i32 {raised}, ptr %status.at, align 4
  ret i32 {raised}
}
"""
_PYTHON = (
    *("PyGILState_Ensure", "PyGILState_Release", "PyObject_CallNoArgs", "PyErr_Fetch"),
    *("PyErr_NormalizeException", "PyException_SetTraceback", "PyThread_get_thread_ident"),
    *("PyLong_FromUnsignedLongLong", "PyDict_SetItem", "Py_DecRef"),
)
_LOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

_word = ctypes.c_void_p()
ADDRESS: int = ctypes.addressof(_word)


def _clock() -> tuple[str, dict[str, int]]:
    """Return the text of ``now``, and the function of the system that it calls."""
    if sys.platform == "win32":
        function: Any = ctypes.WinDLL("kernel32").GetTickCount64
        text = _TICKS
    else:
        function = ctypes.CDLL(None).clock_gettime
        text = _TIMESPEC.replace("{clock}", str(int(time.CLOCK_MONOTONIC)))
    name = "GetTickCount64" if sys.platform == "win32" else "clock_gettime"
    return text, {name: ctypes.cast(function, ctypes.c_void_p).value or 0}


def _native() -> NativeCode:
    """Return the native function."""
    clock, system = _clock()
    text = clock + _TEXT
    for name, number in (("period", PERIOD), ("budget", BUDGET), ("raised", RAISED)):
        text = text.replace(f"{{{name}}}", str(number))
    imports = {name: address(name) for name in _PYTHON} | system
    imports |= {"arc.turn": id(take_turn), "arc.kept": id(KEPT)}
    return common_code(text, "arc_look", imports)


def _first(budget: int) -> int:
    # Nothing can be raised into a kernel. The next safepoint asks again.
    ctypes.c_int64.from_address(budget).value = BUDGET
    code = _native()
    # Threads may come here at once; what one of them has put there stays for good.
    _codes.append(code)
    _word.value = code.address
    return 0


_codes: list[NativeCode] = []
_callback = _LOOK(_first)
_word.value = ctypes.cast(_callback, ctypes.c_void_p).value
