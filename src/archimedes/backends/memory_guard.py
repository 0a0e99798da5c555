"""Words of memory that must be unchanged, as native code can check them.

A guard is four words: how many rows of words there are (a multiple of ``TOGETHER``, the last ones
repeated) and where, how many rows of blocks and where. A row of words is (address, mask, value):
the word there, masked, must be the value. A row of blocks is (address, address of a copy, bytes).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["TOGETHER", "Guard", "known_layout"]

#: Rows of words come in such numbers, so that what checks them need not count each.
TOGETHER = 8


def known_layout() -> bool:
    """Tell whether this interpreter lays out objects as native code that looks at them assumes."""
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not free_threaded
        and not hasattr(sys, "gettotalrefcount")
    )


class Guard:
    """What must be unchanged, at an address that stays; at first nothing is ever unchanged.

    ``check`` is the native function that looks there; a backend that has one sets it.
    """

    def __init__(self) -> None:
        self.head = np.zeros(4, np.uint64)
        self.address = int(self.head.ctypes.data)
        self.check: Callable[[int], Any] | None = None
        self._held: Any = None
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Let nothing pass."""
        never = np.array([[self.address, 0, 1]], np.uint64)
        self._put(never, np.zeros((0, 3), np.uint64), ())

    def set(
        self,
        words: Sequence[tuple[int, int, int]],
        blocks: Sequence[tuple[int, int, int]],
        copies: Any,
    ) -> None:
        """Describe what must be unchanged; ``copies`` are kept as long as that holds."""
        rows = np.array(words, np.uint64).reshape(-1, 3)
        self._put(rows, np.array(blocks, np.uint64).reshape(-1, 3), copies)

    def _put(self, words: np.ndarray, blocks: np.ndarray, copies: Any) -> None:
        words = np.concatenate([words, np.repeat(words[-1:], -len(words) % TOGETHER, axis=0)])
        # One thread at a time: the head must never point to what another has let go of.
        with self._lock:
            before = self._held  # freed only after nobody reads it any more
            self._held = (words, blocks, copies)
            self.head[:] = (len(words), words.ctypes.data, len(blocks), blocks.ctypes.data)
            del before

    def holds(self) -> bool:
        """Tell whether all is unchanged; where nothing can check that, it is not."""
        return self.check is not None and bool(self.check(self.address))
