"""How kernels call Python: host callbacks, and Python's turn at the safepoints of long loops.

Python gets a turn every ``PERIOD`` milliseconds. Kernels know one word, which points to the native
function ``int (budget)`` (``text/safepoint.ll``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.interrupts import KEPT, keep, take_turn
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.python_api.c_api import address, is_supported, object_pointer
from archimedes.backends.llvm.runtime import machine
from archimedes.backends.lowering.analysis import BUDGET
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.regions import Host
from archimedes.system.c_library import clock_function, function_address, monotonic_clock
from archimedes.system.processes import call_in_forked_children

_SLOTS = ctypes.POINTER(ctypes.c_int64)
_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, _SLOTS, _SLOTS)


class HostCall(NamedTuple):
    """A call of Python in a kernel: the region and the dtypes of its inputs."""

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
        self.address = machine.function_pointer(self._callback)

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

#: What a turn calls of CPython.
_PYTHON = (
    *("PyGILState_Ensure", "PyGILState_Release", "PyObject_CallNoArgs", "PyErr_Fetch"),
    *("PyErr_NormalizeException", "PyException_SetTraceback", "PyThread_get_thread_ident"),
    *("PyLong_FromUnsignedLong", "PyDict_SetItem", "Py_DecRef"),
)
_TURN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

_word = ctypes.c_void_p()


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


def turn_text(target: machine.Target) -> str:
    """Return the text of ``arc_turn`` through CPython's functions; a thread's number is a long."""
    return machine.read_ir("python_turn", long="i32" if target.is_windows else "i64")


def _turn(target: machine.Target) -> tuple[str, dict[str, int], Any]:
    """Return the text of ``arc_turn``, what it calls, and what has to be held meanwhile."""
    if is_supported():
        objects = {"arc.turn": object_pointer(take_turn), "arc.kept": object_pointer(KEPT)}
        return turn_text(target), {name: address(name) for name in _PYTHON} | objects, None
    turns = _turns()
    next(turns)
    callback = _TURN(turns.send)
    imports = {"arc_callback": machine.function_pointer(callback)}
    return machine.read_ir("callback_turn"), imports, callback


def safepoint_text(target: machine.Target, turn: str) -> str:
    """Write the native function of safepoints, on top of the text of ``arc_turn``."""
    clock = "clock_ticks" if target.is_windows else "clock_timespec"
    look = machine.read_ir("safepoint", period=PERIOD, budget=BUDGET, raised=RAISED)
    return machine.read_ir(clock, clock=monotonic_clock(target.triple)) + turn + look


def _native() -> tuple[machine.NativeCode, Any]:
    """Return the native function, and what it calls."""
    target = machine.host_target(None)
    turn, imports, held = _turn(target)
    clock = clock_function(target.triple)
    imports[clock[1]] = function_address(*clock)
    return machine.common_code(safepoint_text(target, turn), "arc_look", imports), held


def safepoint_address() -> int:
    """Return the address of the word, which points to the native function from the first call on.

    Kernels ask for it as they are loaded, while Python runs: what a signal handler raises meanwhile
    is raised to the caller. In a callback from a kernel it would be lost.
    """
    if not _word.value:
        _load()
    return ctypes.addressof(_word)


def _load() -> None:
    code = _native()
    # Threads may come here at once; what one of them has put there stays for good.
    _codes.append(code)
    _word.value = code[0].address


def _reload() -> None:
    """Give a forked child a callback that is not busy with a turn of the parent."""
    if _word.value and not is_supported():
        _load()


_codes: list[tuple[machine.NativeCode, Any]] = []
call_in_forked_children(_reload)
