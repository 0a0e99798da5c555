"""Notices about recording and compiling that takes several seconds.

After 2 s, and then at growing intervals, one line says what is being done, why it takes long and
what would make it shorter. The line goes to the logger "archimedes" (level INFO), and to stderr if
that is a terminal or a notebook. ``ARCHIMEDES_PROGRESS=0`` turns the lines on stderr off, ``=1``
prints them wherever stderr leads.
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

VARIABLE = "ARCHIMEDES_PROGRESS"
#: Seconds after which a line is printed.
TIMES = (2.0, 10.0, 30.0, 120.0, 600.0)
#: The watching thread looks this often, and ends after so many seconds without a task.
EVERY, PATIENCE = 0.25, 5.0


class _Task(NamedTuple):
    """What is being done, and a function that says why it takes long and what helps."""

    what: str
    why: Callable[[], str]


#: The tasks of each thread: its ``stack``, the innermost last.
_tasks = threading.local()


def _is_stderr_visible() -> bool:
    """Return whether somebody sees what is printed on stderr."""
    setting = os.environ.get(VARIABLE, "").lower()
    if setting:
        return setting not in ("0", "off", "false", "no")
    stream = sys.stderr
    if stream is None:
        return False
    notebook = type(stream).__module__.startswith("ipykernel")
    return notebook or (hasattr(stream, "isatty") and stream.isatty())


def _print_notice(stack: list[_Task], seconds: float) -> None:
    """Report the innermost task."""
    try:
        task, outer = stack[-1], stack[0]
    except IndexError:  # it ended just now
        return
    import logging  # takes as long as recording a small function

    during = "" if outer is task else f" (part of {outer.what})"
    line = f"{task.what}{during}, {seconds:.0f} s so far: {task.why()}"
    logging.getLogger("archimedes").info(line)
    if _is_stderr_visible():
        print(f"archimedes: {line} [{VARIABLE}=0 hides this]", file=sys.stderr, flush=True)


class _Watcher:
    """A thread that watches the tasks of other threads, for as long as there are any.

    Starting it takes as long as recording a small function, so it stays for a while.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: By the id of a thread's stack: the stack, when its first task began, lines printed.
        self.active: dict[int, tuple[list[_Task], float, int]] = {}
        self.alive = False

    def add(self, stack: list[_Task]) -> None:
        """Watch the tasks of a thread from now on."""
        with self.lock:
            self.active[id(stack)] = (stack, time.monotonic(), 0)
            start, self.alive = not self.alive, True
        if start:
            threading.Thread(target=self.watch, name="archimedes-slow-notice", daemon=True).start()

    def drop(self, stack: list[_Task]) -> None:
        """Stop watching a thread."""
        with self.lock:
            self.active.pop(id(stack), None)

    def watch(self) -> None:
        """Report tasks that take long; end after a while without tasks."""
        idle = 0
        while True:
            time.sleep(EVERY)
            with self.lock:
                idle = 0 if self.active else idle + 1
                if idle * EVERY > PATIENCE:
                    self.alive = False
                    return
                tasks = list(self.active.items())
            for key, (stack, begin, lines) in tasks:
                seconds = time.monotonic() - begin
                if lines < len(TIMES) and seconds >= TIMES[lines]:
                    with self.lock:
                        if key in self.active:
                            self.active[key] = (stack, begin, lines + 1)
                    _print_notice(stack, seconds)


_watcher = _Watcher()


def _restart() -> None:
    """Begin anew in a forked process, which has no such thread."""
    global _watcher
    _watcher = _Watcher()


call_in_forked_children(_restart)


@contextmanager
def notify_if_slow(what: str, why: Callable[[], str]) -> Iterator[None]:
    """Print a notice if the code in this context takes long.

    Parameters
    ----------
    what
        What is being done, such as ``"recording f()"``.
    why
        Returns why it takes long and what would help. It is called only if it does, by another
        thread: it should count and do no more.

    Examples
    --------
    >>> with notify_if_slow("adding", lambda: "the numbers are large"):
    ...     1 + 1
    2
    """
    stack: list[_Task] = vars(_tasks).setdefault("stack", [])
    stack.append(_Task(what, why))
    if len(stack) == 1:
        _watcher.add(stack)
    try:
        yield
    finally:
        stack.pop()
        if not stack:
            _watcher.drop(stack)
