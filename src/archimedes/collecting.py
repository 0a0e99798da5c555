"""Python's collector of cycles run rarely, while much is made that stays.

Importing, recording and compiling make tens of thousands of objects and hardly any cycle. At
Python's own pace the collector would look through all of them again and again: a tenth of a first
call.
"""

from __future__ import annotations

import gc
from _thread import allocate_lock  # ``threading`` takes longer to import than all the rest

from archimedes.system.processes import call_in_forked_children

__all__ = ["Rarely", "rarely"]

#: New objects after which it runs nevertheless, so that what users make cannot pile up.
PACE = 100_000
#: So many times what was made grows old unseen: in first calls it stays. Where functions are made
#: and compiled all the time it does not, and old objects are looked through only rarely.
FIRST = 8


class Rarely:
    """A context in which the collector runs rarely: in all threads, until the last one leaves."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._inside = 0
        self._before = (0, 0, 0)
        self._young = FIRST

    def renew(self) -> None:
        """Begin anew in a forked process: another thread may have held the lock."""
        self._lock = allocate_lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = gc.get_threshold()
                # A user who has turned it off, or slower than this, keeps that.
                if 0 < self._before[0] < PACE:
                    gc.set_threshold(PACE, *self._before[1:])
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            # A pace that was set meanwhile is somebody's wish.
            if not self._inside and gc.get_threshold() == (PACE, *self._before[1:]):
                many = gc.get_count()[0] > self._before[0]
                if many and self._young:
                    self._young -= 1
                    _grow_old()
                gc.set_threshold(*self._before)
                if many and not self._young and gc.isenabled():
                    # Python 3.14 would wait for more objects, which may be made inside again.
                    gc.collect(0)


def _grow_old() -> None:
    """Put all objects among the old ones, as most of the new ones stay, without looking at each.

    The next collection of old ones finds what is left of cycles among them.
    """
    # Nobody keeps objects from the collector (Python 3.12 does so itself: there all is as ever).
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


rarely = Rarely()
call_in_forked_children(rarely.renew)
