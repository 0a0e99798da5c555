"""Ctrl-C while foreign code calls back: noted, never raised where nobody could catch it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from archimedes.optimize.problems.tasks import Monitor

__all__ = ["noting_interrupts"]


@contextmanager
def noting_interrupts(monitor: Monitor) -> Iterator[None]:
    """Have Ctrl-C tell the monitor to stop; pressed again, it raises as ever.

    Python raises KeyboardInterrupt wherever the main thread happens to be, which may be in a
    callback before anything there can catch it. A handler that the user has set stays.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def note(*_: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        monitor.failed(KeyboardInterrupt())

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
