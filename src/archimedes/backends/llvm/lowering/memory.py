"""Where values live outside registers: a frame, the arrays of a call, constant tables.

The array of a ``Place`` is a ``Pointer`` that says how any function of the module gets at the
address.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES
from archimedes.backends.lowering import Place

__all__ = ["Frame", "Pointer"]

ALIGNMENT = 64


class Pointer(NamedTuple):
    """An address and how to get at it.

    ``kind``: "frame" (``value`` is the byte offset in the frame), "in" or "out" (number of the
    array of the call), "global" (its name), "slot" (byte offset in the frame of a stored
    pointer), "local" (a name of the current function). ``uniform`` arrays hold one item per value,
    shared by all lanes; others hold a vector of lanes per value.
    """

    kind: str
    value: Any
    uniform: bool


class Frame:
    """Scratch memory of one call, laid out at compile time. It begins with the status word.

    Code of another number of lanes uses the same memory through a frame on top of ``whole``.
    """

    def __init__(self, lanes: int, whole: Frame | None = None) -> None:
        self.lanes = lanes
        self.size = ALIGNMENT
        self.whole = whole

    def bytes(self, count: int) -> int:
        """Reserve bytes and return their offset."""
        if self.whole is not None:
            return self.whole.bytes(count)
        offset = self.size
        self.size = -(-(offset + count) // ALIGNMENT) * ALIGNMENT
        return offset

    def array(self, dtype: int, count: int = 1) -> Place:
        """Reserve an array of values and return its first element."""
        offset = self.bytes(ITEM_BYTES[dtype] * self.lanes * count)
        return Place(Pointer("frame", offset, uniform=False), 0, dtype)
