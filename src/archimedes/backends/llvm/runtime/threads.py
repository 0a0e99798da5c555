"""One pool of threads for all batch kernels of the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from archimedes.backends.cpus import cpu_count

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["is_at_work", "over_chunks"]

#: Chunks per thread: a few, so that a slow core does not hold up the others.
CHUNKS_PER_THREAD = 4

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


class _Work(threading.local):
    depth = 0


_work = _Work()


def is_at_work() -> bool:
    """Tell whether this thread computes a chunk: then it does the rest of its work by itself.

    Threads of the pool that waited for others of it might wait forever.
    """
    return _work.depth > 0


@contextmanager
def _at_work() -> Iterator[None]:
    _work.depth += 1
    try:
        yield
    finally:
        _work.depth -= 1


def _forget() -> None:
    """Drop the pool in a forked child, which does not have its threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _shared_pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(cpu_count(), 2), thread_name_prefix="archimedes")
        return _pool


def over_chunks(run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
    """Call ``run(begin, end)`` over 0..n in chunks of whole grains.

    The caller's thread takes part, so that ``threads`` is the number of threads at work. The
    first exception is raised, after all threads have stopped.
    """
    grains = -(-n // grain)
    if threads <= 1:
        with _at_work():
            run(0, n)
        return
    if grains <= 1:
        run(0, n)
        return
    pieces = min(grains, threads * CHUNKS_PER_THREAD)
    size = -(-grains // pieces) * grain
    starts = iter(range(0, n, size))
    lock = threading.Lock()
    failed = threading.Event()

    def work() -> None:
        while not failed.is_set():
            with lock:
                begin = next(starts, None)
            if begin is None:
                return
            try:
                with _at_work():
                    run(begin, min(begin + size, n))
            except BaseException:
                failed.set()
                raise

    from concurrent.futures import wait

    helpers = [_shared_pool().submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        # The arrays must outlive every thread that writes to them.
        wait(helpers)
    for helper in helpers:
        helper.result()
