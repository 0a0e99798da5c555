"""How native code lets Python run: signal handlers, and requests to stop a thread.

Native code runs without the GIL, and Python runs signal handlers only between its own
instructions. A long native loop therefore calls :func:`take_turn` every now and then. What that
raises cannot go through native code: it is kept for the thread, the loop ends, and whoever called
the native code raises it (:func:`raise_kept`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class Stopped(BaseException):
    """Native code in this thread was told to stop."""


#: What was raised while native code ran, by thread.
KEPT: dict[int, BaseException] = {}
_stops: dict[int, threading.Event] = {}


def take_turn() -> None:
    """Let Python run for a moment; raise :class:`Stopped` where this thread is to stop.

    Signal handlers run as this function is entered, and may raise.
    """
    stop = _stops.get(threading.get_ident())
    if stop is not None and stop.is_set():
        raise Stopped


def keep(error: BaseException) -> None:
    """Keep an exception of this thread until native code has returned."""
    KEPT[threading.get_ident()] = error


def raise_kept() -> NoReturn:
    """Raise the exception that was kept for this thread.

    There is none if a signal handler raised before it could be kept: ctypes has reported it.
    """
    raise KEPT.pop(threading.get_ident(), None) or KeyboardInterrupt


@contextmanager
def stoppable(stop: threading.Event) -> Iterator[None]:
    """Let native code of this thread end with ``Stopped`` once ``stop`` is set."""
    me = threading.get_ident()
    before = _stops.get(me)
    _stops[me] = stop
    try:
        yield
    finally:
        if before is None:
            del _stops[me]
        else:
            _stops[me] = before
