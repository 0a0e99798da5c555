"""Very long loops of a kernel, over threads: the C function that kernels call for that."""

from __future__ import annotations

import _thread
import ctypes
import threading

from archimedes.backends.cpus import cpu_count
from archimedes.backends.llvm.runtime.threads import is_at_work, over_chunks

__all__ = ["ADDRESS", "NAME"]

#: ``void arc_over_threads(function, frame, in, out, count, grain, done)`` calls
#: ``int function(frame, in, out, begin, end)`` for 0..count in chunks of whole grains, and writes
#: 1 to ``done``. Where it does not, the kernel does all of it by itself.
NAME = "arc_over_threads"
#: After so many seconds an interrupt comes again: when the kernel has returned, at the earliest.
LATER = 0.02
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_RANGE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, _NUMBER, _NUMBER)
_TYPE = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER)


def _over_threads(
    function: int, frame: int, given: int, to: int, count: int, grain: int, done: int
) -> None:
    # Nothing can be raised into a kernel; it can do without threads.
    try:
        threads = 1 if is_at_work() else cpu_count()
        if threads == 1:
            return
        loop = _RANGE(function)
        over_chunks(lambda a, b: _check(loop(frame, given, to, a, b)), count, threads, grain)
        ctypes.c_int32.from_address(done).value = 1
    except KeyboardInterrupt:
        threading.Timer(LATER, _thread.interrupt_main).start()
    except (RuntimeError, MemoryError):
        return  # no thread is to be had


def _check(status: int) -> None:
    assert status == 0


_callback = _TYPE(_over_threads)
_address = ctypes.cast(_callback, ctypes.c_void_p).value
assert _address is not None
ADDRESS: int = _address
