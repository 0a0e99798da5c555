"""Saying what takes so long: recording and compiling that lasts for seconds reports itself.

After 2 s, and then ever more rarely, one line says what is being done, why it takes long, and how
to make it shorter: on stderr where that is a terminal or a notebook, and always to the logger
"archimedes" (level INFO). ``ARCHIMEDES_PROGRESS=0`` turns lines on stderr off, ``=1`` prints them
wherever stderr leads.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from archimedes.system.processes import call_in_forked_children

__all__ = ["reported"]

VARIABLE = "ARCHIMEDES_PROGRESS"
#: Seconds after which there is a line.
TIMES = (2.0, 10.0, 30.0, 120.0, 600.0)
#: Seconds between two looks, and how long to look where there is nothing to see.
EVERY, PATIENCE = 0.25, 5.0


class _Task(NamedTuple):
    """``what`` is being done; ``why`` says, when asked, why it takes long and what helps."""

    what: str
    why: Callable[[], str]


class _Tasks(threading.local):
    """What a thread is doing, the innermost task last."""

    def __init__(self) -> None:
        self.stack: list[_Task] = []


_tasks = _Tasks()


def _shows() -> bool:
    """Tell whether stderr is where somebody sees it now."""
    said = os.environ.get(VARIABLE, "").lower()
    if said in ("0", "off", "false", "no"):
        return False
    if said:
        return True
    stream = sys.stderr
    if stream is None:
        return False
    notebook = type(stream).__module__.startswith("ipykernel")
    return notebook or (hasattr(stream, "isatty") and stream.isatty())


def _say(stack: list[_Task], seconds: float) -> None:
    """Report the innermost task."""
    try:
        task, outer = stack[-1], stack[0]
    except IndexError:  # it ended just now
        return
    import logging  # takes as long as recording a small function

    during = "" if outer is task else f" (part of {outer.what})"
    line = f"{task.what}{during}, {seconds:.0f} s so far: {task.why()}"
    logging.getLogger("archimedes").info(line)
    if _shows():
        print(f"archimedes: {line} [{VARIABLE}=0 hides this]", file=sys.stderr, flush=True)


class _Watcher:
    """A thread that looks at what other threads are doing, while there is something to look at.

    Starting it takes as long as recording a small function, so it stays for a while.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: By outermost task: the tasks, when it began, and how many lines there were.
        self.active: dict[int, tuple[list[_Task], float, int]] = {}
        self.alive = False

    def add(self, stack: list[_Task]) -> None:
        """Look at a thread from now on."""
        with self.lock:
            self.active[id(stack)] = (stack, time.monotonic(), 0)
            start, self.alive = not self.alive, True
        if start:
            threading.Thread(target=self.watch, name="archimedes-waiting", daemon=True).start()

    def drop(self, stack: list[_Task]) -> None:
        """Look at a thread no more."""
        with self.lock:
            self.active.pop(id(stack), None)

    def watch(self) -> None:
        """Report what takes long; end after a while with nothing to look at."""
        idle = 0
        while True:
            time.sleep(EVERY)
            with self.lock:
                idle = 0 if self.active else idle + 1
                if idle * EVERY > PATIENCE:
                    self.alive = False
                    return
                due = [(key, *seen) for key, seen in self.active.items()]
            for key, stack, begin, lines in due:
                seconds = time.monotonic() - begin
                if lines < len(TIMES) and seconds >= TIMES[lines]:
                    with self.lock:
                        if key in self.active:
                            self.active[key] = (stack, begin, lines + 1)
                    _say(stack, seconds)


_watcher = _Watcher()


def _renew() -> None:
    """Begin anew in a forked process, where the thread is not."""
    global _watcher
    _watcher = _Watcher()


call_in_forked_children(_renew)


@contextmanager
def reported(what: str, why: Callable[[], str]) -> Iterator[None]:
    """Report what is done in the context if it takes long; ``why`` is called only then.

    ``why`` runs in another thread: it may count, and should do no more.

    >>> with reported("adding", lambda: "the numbers are large"):
    ...     1 + 1
    2
    """
    stack = _tasks.stack
    stack.append(_Task(what, why))
    if len(stack) == 1:
        _watcher.add(stack)
    try:
        yield
    finally:
        stack.pop()
        if not stack:
            _watcher.drop(stack)
