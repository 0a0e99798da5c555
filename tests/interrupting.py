"""Ctrl-C while something runs: what tests of long native loops share."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SOON", "handled_by", "interrupted"]

#: Seconds until Ctrl-C comes, and in which it must have been heard: what is interrupted here would
#: take several times as long.
LATER, SOON = 0.1, 2.0


@contextmanager
def handled_by(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """Have Ctrl-C handled so meanwhile."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(work: Callable[[], Any], handler: Any = signal.default_int_handler) -> Any:
    """Send Ctrl-C while ``work`` runs; return what it returned or raised, which must be soon."""
    with handled_by(handler):
        timer = threading.Timer(LATER, os.kill, (os.getpid(), signal.SIGINT))
        # Others' callbacks of the collector (Hypothesis has one) would take the exception.
        gc.disable()
        begin = time.perf_counter()
        timer.start()
        try:
            found = work()
        except BaseException as error:
            found = error
        finally:
            gc.enable()
        seconds = time.perf_counter() - begin
        timer.join()
    assert LATER <= seconds < SOON, (seconds, found)
    return found
