"""Long loops of a kernel, over threads: what kernels call for that, from inside one call.

Helpers are threads that never come back from native code and need no GIL, so that nothing that
Python does holds them up. They are started when the first loop asks for them, as many as
``cpu_count`` then says less one. While a batch runs, which has threads of its own, loops are done
alone.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from archimedes.backends.cpus import cpu_count
from archimedes.backends.llvm.runtime.loop_threads_text import OFFSETS, OWN, SIZE, text
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["ADDRESS", "NAME", "forget", "loops_so_far", "paused"]

#: What kernels know: the address of the state, whose first word is the function
#: ``void (function, frame, in, out, count, grain, done)``. It calls ``int function(frame, in, out,
#: begin, end, own)`` for 0..count in pieces of whole grains, and writes 1 to ``done``; where it
#: does not, the kernel does all of it by itself. ``own`` is memory of a helper, null for others.
NAME = "arc_loop_threads"
#: After so many seconds an interrupt comes again: when the kernel has returned, at the earliest.
LATER = 0.02
#: No more helpers than this: memory is what long loops wait for.
MOST = 63
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_RUN = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER)
_HELP = ctypes.CFUNCTYPE(None, _NUMBER, _POINTER)

_memory = ctypes.create_string_buffer(SIZE + 64)
ADDRESS: int = -(-ctypes.addressof(_memory) // 64) * 64


def _word(name: str) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(ADDRESS + OFFSETS[name])


class _Helpers:
    """The helpers of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.started = 0
        self.bells = (_POINTER * MOST)()
        self.rung = (_NUMBER * MOST)()

    def prepare(self) -> Any:
        """Have helpers ready; return the native function."""
        with self.lock:
            run, work = _native()
            if not _word("finished").value:
                self._describe()
            wanted = min(cpu_count() - 1, MOST)
            while self.started < wanted:
                self.bells[self.started] = _new_lock()
                given = (self.started, _memory_of_a_helper())
                helper = threading.Thread(target=work, args=given, name="archimedes", daemon=True)
                helper.start()
                self.started += 1
            _word("helpers").value = wanted
            _word("run").value = _address(run)
            return run

    def _describe(self) -> None:
        """Fill in what native code is to know."""
        for name in ("acquire", "release"):
            _word(name).value = _address(getattr(ctypes.pythonapi, f"PyThread_{name}_lock"))
        _word("bells").value = ctypes.addressof(self.bells)
        _word("rung").value = ctypes.addressof(self.rung)
        _word("finished").value = _new_lock()


@lru_cache(maxsize=1)
def _native() -> tuple[Any, Any]:
    """Return what loops call, and what helpers do; a forked child has it from its parent."""
    # In a hurry: it is run once per loop.
    target = replace(host_target(None), effort=0)
    code = NativeCode(target.compile(text(target.triple)), "arc_loop_entries")
    entries = ctypes.CFUNCTYPE(ctypes.POINTER(_POINTER), _POINTER)(code.address)(ADDRESS)
    made: Any = _RUN(entries[0])
    made.code = code
    return made, _HELP(entries[1])


def _address(function: Any) -> int:
    return ctypes.cast(function, _POINTER).value or 0


def _new_lock() -> int:
    """Return a lock of CPython that is taken."""
    make, take = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    make.restype, take.argtypes = _POINTER, (_POINTER, ctypes.c_int)
    lock = make()
    if not lock:
        raise MemoryError("no lock for the threads of loops")
    take(lock, 1)
    return lock


def _memory_of_a_helper() -> int:
    """Return the address of memory that is never given back, as the helper never ends."""
    allocate = ctypes.pythonapi.PyMem_RawMalloc
    allocate.restype, allocate.argtypes = _POINTER, (ctypes.c_size_t,)
    found = allocate(OWN + 64)
    if not found:
        raise MemoryError("no memory for the threads of loops")
    return -(-found // 64) * 64


def _first(
    function: int, frame: int, given: int, to: int, count: int, grain: int, done: int
) -> None:
    # Nothing can be raised into a kernel; it can do without threads.
    try:
        _helpers.prepare()(function, frame, given, to, count, grain, done)
    except KeyboardInterrupt:
        threading.Timer(LATER, _thread.interrupt_main).start()
    except (RuntimeError, MemoryError):
        return  # no thread is to be had


_callback = _RUN(_first)
_helpers = _Helpers()
_pausing = threading.Lock()


def loops_so_far() -> int:
    """Return how many loops have had helpers in this process."""
    return _word("loops").value


def forget() -> None:
    """Count threads anew when the next loop asks for them."""
    _word("run").value = _address(_callback)
    _word("helpers").value = 0


def _in_child() -> None:
    """Start from nothing: a forked child does not have its parent's threads."""
    global _helpers, _pausing
    ctypes.memset(ADDRESS, 0, SIZE)
    _helpers, _pausing = _Helpers(), threading.Lock()
    forget()


@contextmanager
def paused() -> Iterator[None]:
    """Have loops done alone meanwhile."""
    _pause(1)
    try:
        yield
    finally:
        _pause(-1)


def _pause(change: int) -> None:
    with _pausing:
        # A child that was forked meanwhile has begun from nothing.
        _word("paused").value = max(0, _word("paused").value + change)


forget()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
