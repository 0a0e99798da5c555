"""One pool of threads for all batch kernels of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from archimedes.backends.interrupts import Stopped, stoppable
from archimedes.backends.llvm.runtime.loop_threads import pause_helpers
from archimedes.system.cpus import cpu_count
from archimedes.system.processes import call_in_forked_children

#: Chunks per thread: a few, so that a slow core does not hold up the others.
CHUNKS_PER_THREAD = 4

_lock = threading.Lock()
_pool: _Pool | None = None


class _Task:
    """A function for a thread of the pool."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._raised: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def __call__(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._raised = error
        finally:
            self._done.release()

    def wait(self, failed: threading.Event) -> BaseException | None:
        """Wait until it has run; what comes up meanwhile, as Ctrl-C does, is returned.

        That sets ``failed``, at which tasks end.
        """
        raised = None
        while True:
            try:
                with self._done:
                    return raised
            except BaseException as error:
                failed.set()
                raised = error

    def finish(self) -> None:
        """Raise what it raised."""
        if self._raised is not None:
            raise self._raised


class _Pool:
    """Threads that run tasks, started as they are needed.

    ``concurrent.futures`` takes longer to import than most batches take to run.
    """

    def __init__(self, most: int) -> None:
        from queue import SimpleQueue

        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        #: Threads there may be, threads there are, tasks that have not come to their end.
        self._most, self._threads, self._waiting = most, 0, 0
        self._lock = threading.Lock()

    def start(self, task: _Task) -> None:
        """Have a thread run a task, a new one if all are busy and there may be more."""
        with self._lock:
            if self._threads < min(self._waiting + 1, self._most):
                name = f"archimedes_{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
                self._threads += 1
            self._waiting += 1
        self._tasks.put(task)

    def _serve(self) -> None:
        while True:
            self._tasks.get()()
            with self._lock:
                self._waiting -= 1


def _forget() -> None:
    """Drop the pool in a forked child, which does not have its threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


call_in_forked_children(_forget)


def _start(run: Callable[[], None]) -> _Task:
    """Have a thread of the pool run a function."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = _Pool(max(cpu_count(), 2))
        pool = _pool
    task = _Task(run)
    pool.start(task)
    return task


def over_chunks(run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
    """Call ``run(begin, end)`` over 0..n in chunks of whole grains.

    The caller's thread takes part, so that ``threads`` is the number of threads at work. The
    first exception is raised, after all threads have stopped.
    """
    grains = -(-n // grain)
    if threads <= 1:
        with pause_helpers():
            run(0, n)
    elif grains <= 1:
        run(0, n)
    else:
        with pause_helpers():
            _over_pieces(run, n, threads, grain)


def _over_pieces(run: Callable[[int, int], None], n: int, threads: int, grain: int) -> None:
    grains = -(-n // grain)
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
                with stoppable(failed):
                    run(begin, min(begin + size, n))
            except Stopped:
                return  # another has failed
            except BaseException:
                failed.set()
                raise

    helpers: list[_Task] = []
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
        interrupt = helper.wait(failed)
        if interrupt is not None:
            raised.append(interrupt)
    if raised:
        raise raised[0]
    for helper in helpers:
        helper.finish()
