"""Threads for the long loops inside one call of a kernel.

Helpers are threads that never come back from native code and need no GIL, so that nothing that
Python does holds them up. They are started when the first loop asks for them, as many as
``cpu_count`` then says less one. While a batch runs, which has threads of its own, loops run in the
calling thread alone. ``text/loop_threads.ll`` is the native part.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_api.c_api import address, is_supported, new_lock
from archimedes.backends.llvm.runtime import machine
from archimedes.system.cpus import cpu_count
from archimedes.system.processes import call_in_forked_children

#: Where the words of the state are, in bytes; those that are written often have their own lines.
OFFSETS = {
    "run": 0,  # void (function, frame, in, out, count, grain, done)
    "paused": 8,  # batches that are running: they have their own threads
    "helpers": 16,
    "bells": 24,  # a lock for each helper, which a loop releases
    "rung": 32,  # a word for each helper: 1 from then until it wakes up
    "finished": 40,  # the lock that a loop waits for at its end
    "acquire": 48,  # PyThread_acquire_lock
    "release": 56,  # PyThread_release_lock
    "busy": 64,
    "loops": 72,  # how many have had helpers
    "open": 128,
    "function": 136,
    "frame": 144,
    "in": 152,
    "out": 160,
    "count": 168,
    "size": 176,
    "next": 192,
    "active": 256,
    "waiting": 320,
}
SIZE = 384
#: Bytes that each helper has for itself; the system gives them when they are first used.
OWN = 1 << 22
#: Pieces of a loop for each thread, so that a slow one does not hold up the others; and how often
#: to look whether helpers have finished before waiting for it.
PIECES, LOOKS = 4, 2000


def module_text() -> str:
    """Return the module: ``arc_loop_entries`` returns the functions of loops and of helpers."""
    word = "  %{}.at = getelementptr i8, ptr %state, i64 {}"
    words = "\n".join(word.format(name, at) for name, at in OFFSETS.items())
    return machine.read_ir("loop_threads", addresses=words, pieces=PIECES, looks=LOOKS)


#: What kernels know: the address of the state, whose first word is the function
#: ``void (function, frame, in, out, count, grain, done)``. It calls ``int function(frame, in, out,
#: begin, end, own)`` for 0..count in pieces of whole grains, and writes 1 to ``done``; where it
#: does not, the kernel does all of it by itself. ``own`` is memory of a helper, null for others.
#: After so many seconds an interrupt comes again: when the kernel has returned, at the earliest.
LATER = 0.02
#: No more helpers than this: memory is what long loops wait for.
MOST = 63
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_RUN = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER)
_HELP = ctypes.CFUNCTYPE(None, _NUMBER, _POINTER)

#: The words of the state, on a line of their own.
_memory = np.zeros(SIZE // 8 + 8, np.int64)
_state = _memory[-(_memory.ctypes.data // 8) % 8 :][: SIZE // 8]
ADDRESS: int = _state.ctypes.data


def _get(name: str) -> int:
    return int(_state[OFFSETS[name] // 8])


def _set(name: str, value: int) -> None:
    _state[OFFSETS[name] // 8] = value


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
            # Threads wait for locks of CPython; without these, loops are done alone.
            wanted = min(cpu_count() - 1, MOST) if is_supported() else 0
            if wanted and not _get("finished"):
                # The words of the state that native code reads.
                for name in ("acquire", "release"):
                    _set(name, address(f"PyThread_{name}_lock"))
                _set("bells", ctypes.addressof(self.bells))
                _set("rung", ctypes.addressof(self.rung))
                _set("finished", new_lock())
            while self.started < wanted:
                self.bells[self.started] = new_lock()
                own = (self.started, _memory_of_a_helper())
                threading.Thread(target=work, args=own, name="archimedes", daemon=True).start()
                self.started += 1
            _set("helpers", wanted)
            _set("run", machine.function_pointer(run))
            return run


@lru_cache(maxsize=1)
def _native() -> tuple[Any, Any]:
    """Return what loops call, and what helpers do; a forked child has it from its parent."""
    # Unoptimized: it is run once per loop.
    target = replace(machine.host_target(None), effort=0)
    code = machine.NativeCode(target.compile(module_text()), "arc_loop_entries")
    entries = ctypes.CFUNCTYPE(ctypes.POINTER(_POINTER), _POINTER)(code.address)(ADDRESS)
    run: Any = _RUN(entries[0])
    run.code = code
    return run, _HELP(entries[1])


def _memory_of_a_helper() -> int:
    """Return the address of memory that is never given back, as the helper never ends."""
    allocate = ctypes.CFUNCTYPE(_POINTER, ctypes.c_size_t)(machine.import_addresses()["arc_malloc"])
    start = allocate(OWN + 64)
    if not start:
        raise MemoryError("no memory for the threads of loops")
    return -(-start // 64) * 64


def _first(*arguments: int) -> None:
    # Nothing can be raised into a kernel; it can do without threads.
    try:
        _helpers.prepare()(*arguments)
    except KeyboardInterrupt:
        threading.Timer(LATER, _thread.interrupt_main).start()
    except (RuntimeError, MemoryError):
        return  # no thread is to be had


_callback = _RUN(_first)
_helpers = _Helpers()
_pausing = threading.Lock()


def loops_so_far() -> int:
    """Return how many loops have had helpers in this process."""
    return _get("loops")


def forget() -> None:
    """Forget the helpers; the next loop counts the CPUs again."""
    _set("run", machine.function_pointer(_callback))
    _set("helpers", 0)


def _in_child() -> None:
    """Forget everything in a forked child, which does not have its parent's threads."""
    global _helpers, _pausing
    _state[:] = 0
    _helpers, _pausing = _Helpers(), threading.Lock()
    forget()


@contextmanager
def pause_helpers() -> Iterator[None]:
    """Have loops run in the calling thread alone meanwhile."""
    with _pausing:
        _set("paused", _get("paused") + 1)
    try:
        yield
    finally:
        with _pausing:
            # A child that was forked meanwhile has begun from nothing.
            _set("paused", max(0, _get("paused") - 1))


forget()
call_in_forked_children(_in_child)
