"""How kernels call Python: host callbacks, and Python's turn at the safepoints of long loops."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.interrupts import keep, take_turn
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.python_api.c_api import supported
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, common_code, host_target
from archimedes.backends.lowering.analysis import BUDGET
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.regions import Host
from archimedes.system.c_library import clock_function, function_address, monotonic_clock
from archimedes.system.processes import call_in_forked_children

__all__ = ["CALLBACK_TURN", "SAFEPOINT_ADDRESS", "HostCall", "Hosting", "look_text"]

_SLOTS = ctypes.POINTER(ctypes.c_int64)
_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, _SLOTS, _SLOTS)


class HostCall(NamedTuple):
    """A place in a kernel that calls Python: the region and the dtypes of its inputs."""

    region: Host
    dtypes: list[int]


class Hosting:
    """The host functions of a kernel behind one C function.

    ``void callback(int64_t number, void *arguments, void *results)`` has one 8-byte slot a value,
    and writes 1 behind the results when it is done. A kernel that finds 0 there returns ``RAISED``:
    what was raised is kept for its thread, unless a signal handler raised before ``_run`` began.
    """

    def __init__(self, calls: Sequence[HostCall]) -> None:
        self.calls = list(calls)
        self._callback = _TYPE(self._run)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address

    def _run(self, number: int, arguments: Any, results: Any) -> None:
        try:
            region, dtypes = self.calls[number]
            values = [x[0] for x in _slots(arguments, dtypes)]
            for slot, value in zip(_slots(results, region.dtypes), region.function(values)):
                slot[0] = value
            results[len(region.dtypes)] = 1
        except BaseException as error:
            keep(error)


def _slots(memory: Any, dtypes: Sequence[int]) -> list[np.ndarray]:
    """Return an array of one value on each of these slots."""
    words: Any = ctypes.cast(memory, ctypes.POINTER(ctypes.c_int64 * len(dtypes))).contents
    return [np.frombuffer(words, DTYPES[d], 1, 8 * k) for k, d in enumerate(dtypes)]


#: Milliseconds between two turns of Python: soon enough for people, and seldom enough that waiting
#: for the GIL, which other threads may hold for 5 ms, takes no part of the time to speak of.
PERIOD = 50

#: The system's clock: a function that returns milliseconds (Windows), or fills a struct timespec.
_TICKS = """
declare i64 @GetTickCount64()
define internal i64 @now() nounwind {
  %t = call i64 @GetTickCount64()
  ret i64 %t
}
"""
_TIMESPEC = """
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
"""
#: What a kernel calls. A turn says 0 where something was raised.
_TEXT = """
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
"""
#: A turn through ctypes, for one thread at a time: others go on, and ask again later.
CALLBACK_TURN = """
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
"""
_LOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
_TURN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

_word = ctypes.c_void_p()
SAFEPOINT_ADDRESS: int = ctypes.addressof(_word)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _turns() -> Generator[int, int, None]:
    """Take a turn whenever something is sent; yield 0 where something was raised."""
    fine = 1
    while True:
        try:
            # A generator, because signal handlers run as Python goes on from here: what they raise
            # at the beginning of a function is raised before any ``try`` in it.
            yield fine
            take_turn()
            fine = 1
        except GeneratorExit:
            raise
        except BaseException as error:
            keep(error)
            fine = 0


def _turn(target: Target) -> tuple[str, dict[str, int], Any]:
    """Return the text of ``arc_turn``, what it calls, and what has to be held meanwhile."""
    if supported():
        from archimedes.backends.llvm.python_api.turns import turn_imports, turn_text

        return turn_text(target), turn_imports(), None
    turns = _turns()
    next(turns)
    callback = _TURN(turns.send)
    return CALLBACK_TURN, {"arc_callback": _address(callback)}, callback


def look_text(target: Target, turn: str) -> str:
    """Write the native function, given the text of ``arc_turn``."""
    text = (_TICKS if target.is_windows else _TIMESPEC) + turn + _TEXT
    clock = monotonic_clock(target.triple)
    values = {"clock": clock, "period": PERIOD, "budget": BUDGET, "raised": RAISED}
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _native() -> tuple[NativeCode, Any]:
    """Return the native function, and what it calls."""
    target = host_target(None)
    turn, imports, held = _turn(target)
    clock = clock_function(target.triple)
    imports[clock[1]] = function_address(*clock)
    return common_code(look_text(target, turn), "arc_look", imports), held


def _first(budget: Any) -> int:
    # Nothing can be raised into a kernel. The next safepoint asks again.
    budget[0] = BUDGET
    code = _native()
    # Threads may come here at once; what one of them has put there stays for good.
    _codes.append(code)
    _word.value = code[0].address
    return 0


def _begin() -> None:
    """Have the native function made when it is first called: anew in a forked child."""
    _word.value = _address(_callback)


_codes: list[tuple[NativeCode, Any]] = []
_callback = _LOOK(_first)
_begin()
call_in_forked_children(_begin)
