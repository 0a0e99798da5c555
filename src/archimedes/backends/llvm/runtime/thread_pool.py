"""One pool of threads for all batch kernels of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from archimedes.backends.interrupts import Stopped, stoppable
from archimedes.backends.llvm.runtime.loop_threads import pause_helpers
from archimedes.system.cpus import cpu_count
from archimedes.system.processes import call_in_forked_children

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

#: Chunks per thread: a few, so that a slow core does not hold up the others.
CHUNKS_PER_THREAD = 4

_lock = threading.Lock()
_pool: Executor | None = None


def _forget() -> None:
    """Drop the pool in a forked child, which does not have its threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


call_in_forked_children(_forget)


def _start(run: Callable[[], None]) -> Future[None]:
    """Have a thread of the pool run a function."""
    from concurrent.futures import ThreadPoolExecutor  # which single calls do without

    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(cpu_count(), 2), "archimedes")
        return _pool.submit(run)


def _wait(task: Future[None], failed: threading.Event) -> list[BaseException]:
    """Wait for a task; return what came up meanwhile, as Ctrl-C does, and what the task raised.

    The former sets ``failed``, at which tasks end.
    """
    raised: list[BaseException] = []
    while True:
        try:
            error = task.exception()
            return raised if error is None else [*raised, error]
        except BaseException as interrupt:
            failed.set()
            raised.append(interrupt)


def over_chunks(run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
    """Call ``run(begin, end)`` over 0..n in chunks of whole grains.

    The caller's thread takes part, so that ``threads`` is the number of threads at work. The
    first exception is raised, after all threads have stopped.
    """
    if threads > 1 and n <= grain:
        run(0, n)
        return
    with pause_helpers():
        if threads > 1:
            _over_pieces(run, n, threads, grain)
        else:
            run(0, n)


def _over_pieces(run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
    grains = -(-n // grain)
    pieces = min(grains, threads * CHUNKS_PER_THREAD)
    size = -(-grains // pieces) * grain
    starts = iter(range(0, n, size))
    lock = threading.Lock()
    failed = threading.Event()
    at_work: set[int] = set()

    def work() -> None:
        me = threading.get_ident()
        while True:
            with lock:
                begin = None if failed.is_set() else next(starts, None)
                if begin is None:
                    return
                at_work.add(me)
            try:
                with stoppable(failed):
                    run(begin, min(begin + size, n))
            except Stopped:
                return  # another has failed
            except BaseException:
                failed.set()
                raise
            finally:
                at_work.discard(me)

    helpers: list[Future[None]] = []
    raised: list[BaseException] = []
    try:
        for _ in range(threads - 1):
            helpers.append(_start(work))
        work()
    except BaseException as error:
        failed.set()
        raised.append(error)
    # The arrays must outlive every thread that writes to them.
    for helper in helpers:
        raised += _wait(helper, failed)
    # A helper that Ctrl-C kept out of the list, between its start and the list, counts too.
    while at_work - {threading.get_ident()}:
        try:
            time.sleep(1e-3)
        except BaseException as interrupt:
            raised.append(interrupt)
    if raised:
        interrupts = (error for error in raised if not isinstance(error, Exception))
        raise next(interrupts, raised[0])
