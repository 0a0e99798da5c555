"""Threads for the long loops inside one call of a kernel."""

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

from archimedes.backends.llvm.python_api.c_api import address, new_lock, supported
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target, import_addresses
from archimedes.system.cpus import cpu_count
from archimedes.system.processes import call_in_forked_children

__all__ = [
    "ADDRESS",
    "OFFSETS",
    "OWN",
    "SIZE",
    "forget",
    "loops_so_far",
    "module_text",
    "paused",
]

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


#: One address leads to both functions.
_ENTRIES = """
@state.at = internal global ptr null
@entries = internal constant [2 x ptr] [ptr @over_threads, ptr @help]

define ptr @arc_loop_entries(ptr %state) nounwind {
  store ptr %state, ptr @state.at
  ret ptr @entries
}
"""
#: Takes pieces of the loop until there are none.
_WORK = """
define internal void @pieces(ptr %state, ptr %own) nounwind {
{addresses}
  %function = load ptr, ptr %function.at
  %frame = load ptr, ptr %frame.at
  %in = load ptr, ptr %in.at
  %out = load ptr, ptr %out.at
  %count = load i64, ptr %count.at
  %size = load i64, ptr %size.at
  br label %more
more:
  %begin = atomicrmw add ptr %next.at, i64 %size seq_cst
  %left = icmp slt i64 %begin, %count
  br i1 %left, label %piece, label %end
piece:
  %past = add i64 %begin, %size
  %whole = icmp slt i64 %past, %count
  %stop = select i1 %whole, i64 %past, i64 %count
  %status = call i32 %function(ptr %frame, ptr %in, ptr %out, i64 %begin, i64 %stop, ptr %own)
  br label %more
end:
  ret void
}
"""
#: What a helper does, forever.
_HELPER = """
define internal void @help(i64 %number, ptr %own) nounwind {
  %state = load ptr, ptr @state.at
{addresses}
  %bells = load ptr, ptr %bells.at
  %bell.at = getelementptr ptr, ptr %bells, i64 %number
  %bell = load ptr, ptr %bell.at
  %rung = load ptr, ptr %rung.at
  %mine = getelementptr i64, ptr %rung, i64 %number
  %acquire = load ptr, ptr %acquire.at
  %release = load ptr, ptr %release.at
  %finished = load ptr, ptr %finished.at
  br label %sleep
sleep:
  %woken = call i32 %acquire(ptr %bell, i32 1)
  store atomic i64 0, ptr %mine seq_cst, align 8
  %before = atomicrmw add ptr %active.at, i64 1 seq_cst
  %open = load atomic i64, ptr %open.at seq_cst, align 8
  %there = icmp ne i64 %open, 0
  br i1 %there, label %work, label %leave
work:
  call void @pieces(ptr %state, ptr %own)
  br label %leave
leave:
  %with = atomicrmw sub ptr %active.at, i64 1 seq_cst
  %last = icmp eq i64 %with, 1
  br i1 %last, label %look, label %sleep
look:
  %waiting = atomicrmw xchg ptr %waiting.at, i64 0 seq_cst
  %waits = icmp ne i64 %waiting, 0
  br i1 %waits, label %tell, label %sleep
tell:
  call void %release(ptr %finished)
  br label %sleep
}
"""
#: What a loop calls.
_OVER_THREADS = """
define internal void @over_threads(ptr %function, ptr %frame, ptr %in, ptr %out, i64 %count,
                                   i64 %grain, ptr %done) nounwind {
  %state = load ptr, ptr @state.at
{addresses}
  %paused = load atomic i64, ptr %paused.at seq_cst, align 8
  %helpers = load i64, ptr %helpers.at
  %above = add i64 %count, %grain
  %rounded = sub i64 %above, 1
  %grains = sdiv i64 %rounded, %grain
  %runs = icmp eq i64 %paused, 0
  %some = icmp sgt i64 %helpers, 0
  %long = icmp sgt i64 %grains, 1
  %allowed = and i1 %runs, %some
  %wanted = and i1 %allowed, %long
  br i1 %wanted, label %ask, label %alone
ask:
  %taken = cmpxchg ptr %busy.at, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %begin, label %alone
begin:
  %earlier = load i64, ptr %loops.at
  %number = add i64 %earlier, 1
  store i64 %number, ptr %loops.at
  %threads = add i64 %helpers, 1
  %most = mul i64 %threads, {pieces}
  %few = icmp slt i64 %grains, %most
  %pieces = select i1 %few, i64 %grains, i64 %most
  %more = add i64 %grains, %pieces
  %less = sub i64 %more, 1
  %each = sdiv i64 %less, %pieces
  %size = mul i64 %each, %grain
  store ptr %function, ptr %function.at
  store ptr %frame, ptr %frame.at
  store ptr %in, ptr %in.at
  store ptr %out, ptr %out.at
  store i64 %count, ptr %count.at
  store i64 %size, ptr %size.at
  store atomic i64 0, ptr %next.at seq_cst, align 8
  store atomic i64 1, ptr %open.at seq_cst, align 8
  %others = sub i64 %pieces, 1
  %fewer = icmp slt i64 %others, %helpers
  %ringing = select i1 %fewer, i64 %others, i64 %helpers
  %bells = load ptr, ptr %bells.at
  %rung = load ptr, ptr %rung.at
  %acquire = load ptr, ptr %acquire.at
  %release = load ptr, ptr %release.at
  %finished = load ptr, ptr %finished.at
  br label %ring
ring:
  %k = phi i64 [0, %begin], [%following, %next.bell]
  %left = icmp slt i64 %k, %ringing
  br i1 %left, label %one, label %work
one:
  %flag = getelementptr i64, ptr %rung, i64 %k
  %old = atomicrmw xchg ptr %flag, i64 1 seq_cst
  %quiet = icmp eq i64 %old, 0
  br i1 %quiet, label %wake, label %next.bell
wake:
  %bell.at = getelementptr ptr, ptr %bells, i64 %k
  %bell = load ptr, ptr %bell.at
  call void %release(ptr %bell)
  br label %next.bell
next.bell:
  %following = add i64 %k, 1
  br label %ring
work:
  call void @pieces(ptr %state, ptr null)
  store atomic i64 0, ptr %open.at seq_cst, align 8
  br label %wait
wait:
  br label %look
look:
  %looks = phi i64 [0, %wait], [%again, %not.yet]
  %active = load atomic i64, ptr %active.at seq_cst, align 8
  %over = icmp eq i64 %active, 0
  br i1 %over, label %end, label %not.yet
not.yet:
  %again = add i64 %looks, 1
  %patient = icmp slt i64 %again, {looks}
  br i1 %patient, label %look, label %settle
settle:
  store atomic i64 1, ptr %waiting.at seq_cst, align 8
  %still = load atomic i64, ptr %active.at seq_cst, align 8
  %none = icmp eq i64 %still, 0
  br i1 %none, label %withdraw, label %rest
withdraw:
  %asked = atomicrmw xchg ptr %waiting.at, i64 0 seq_cst
  %told = icmp eq i64 %asked, 0
  br i1 %told, label %rest, label %end
rest:
  %rested = call i32 %acquire(ptr %finished, i32 1)
  br label %wait
end:
  store atomic i64 0, ptr %busy.at seq_cst, align 8
  store i32 1, ptr %done
  br label %alone
alone:
  ret void
}
"""


def module_text() -> str:
    """Return the module: ``arc_loop_entries`` returns the functions of loops and of helpers."""
    words = [
        f"  %{name}.at = getelementptr i8, ptr %state, i64 {at}" for name, at in OFFSETS.items()
    ]
    found = "".join((_ENTRIES, _WORK, _HELPER, _OVER_THREADS))
    for name, value in (("addresses", "\n".join(words)), ("pieces", PIECES), ("looks", LOOKS)):
        found = found.replace(f"{{{name}}}", str(value))
    return found


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
            wanted = min(cpu_count() - 1, MOST) if supported() else 0
            if wanted and not _get("finished"):
                self._describe()
            while self.started < wanted:
                self.bells[self.started] = new_lock()
                given = (self.started, _memory_of_a_helper())
                helper = threading.Thread(target=work, args=given, name="archimedes", daemon=True)
                helper.start()
                self.started += 1
            _set("helpers", wanted)
            _set("run", _address(run))
            return run

    def _describe(self) -> None:
        """Fill in what native code is to know."""
        for name in ("acquire", "release"):
            _set(name, address(f"PyThread_{name}_lock"))
        _set("bells", ctypes.addressof(self.bells))
        _set("rung", ctypes.addressof(self.rung))
        _set("finished", new_lock())


@lru_cache(maxsize=1)
def _native() -> tuple[Any, Any]:
    """Return what loops call, and what helpers do; a forked child has it from its parent."""
    # In a hurry: it is run once per loop.
    target = replace(host_target(None), effort=0)
    code = NativeCode(target.compile(module_text()), "arc_loop_entries")
    entries = ctypes.CFUNCTYPE(ctypes.POINTER(_POINTER), _POINTER)(code.address)(ADDRESS)
    made: Any = _RUN(entries[0])
    made.code = code
    return made, _HELP(entries[1])


def _address(function: Any) -> int:
    return ctypes.cast(function, _POINTER).value or 0


def _memory_of_a_helper() -> int:
    """Return the address of memory that is never given back, as the helper never ends."""
    allocate = ctypes.CFUNCTYPE(_POINTER, ctypes.c_size_t)(import_addresses()["arc_malloc"])
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
    return _get("loops")


def forget() -> None:
    """Count threads anew when the next loop asks for them."""
    _set("run", _address(_callback))
    _set("helpers", 0)


def _in_child() -> None:
    """Start from nothing: a forked child does not have its parent's threads."""
    global _helpers, _pausing
    _state[:] = 0
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
        _set("paused", max(0, _get("paused") + change))


forget()
call_in_forked_children(_in_child)
