"""Where values live outside registers: a frame, the arrays of a call, constant tables.

The array of a ``Place`` is a ``Pointer`` that says how any function of the module gets at the
address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES
from archimedes.backends.lowering.values import Place

__all__ = ["ALIGNMENT", "Frame", "Pointer"]

ALIGNMENT = 64


class Pointer(NamedTuple):
    """An address and how to get at it.

    ``kind``: "frame" (``value`` is the byte offset in the frame), "in" or "out" (number of the
    array of the call), "global" (its name), "slot" (byte offset in the frame of a stored
    pointer), "local" (a name of the current function). ``uniform`` arrays hold one item per value,
    shared by all lanes; others hold a vector of lanes per value. Of a uniform array each lane may
    read its own items: ``lane`` items further than the lane before it.
    """

    kind: str
    value: Any
    uniform: bool
    lane: int = 0


class Frame:
    """Scratch memory of one call, laid out at compile time. It begins with the status word.

    Code of another number of lanes uses the same memory through a frame on top of ``whole``.
    """

    def __init__(self, lanes: int, whole: Frame | None = None) -> None:
        self.lanes = lanes
        self.size = ALIGNMENT
        self.whole = whole
        #: Arrays of blocks in use, and pieces of memory that may be used again: offset to bytes.
        self._blocks: dict[int, int] = {}
        self._free: dict[int, int] = {}

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

    # ---- blocks ------------------------------------------------------------------------

    def block(self, dtype: int, count: int) -> Place:
        """Reserve the array of a block, in memory that was released if there is enough."""
        need = -(-ITEM_BYTES[dtype] * self.lanes * count // ALIGNMENT) * ALIGNMENT
        offset = (self.whole or self)._taken(need)
        return Place(Pointer("frame", offset, uniform=False), 0, dtype)

    def _taken(self, need: int) -> int:
        fitting = [(size, offset) for offset, size in self._free.items() if size >= need]
        if fitting:
            size, offset = min(fitting)
            del self._free[offset]
            if size > need:
                self._free[offset + need] = size - need
        else:
            offset = self.bytes(need)
        self._blocks[offset] = need
        return offset

    def release(self, place: Place) -> None:
        """Take back the array of a block; arrays of other kinds stay as they are."""
        if self.whole is not None:
            self.whole.release(place)
            return
        if place.array.kind != "frame" or place.offset:
            return
        offset = place.array.value
        size = self._blocks.pop(offset, 0)
        if not size:
            return
        # Neighbours that are free become one piece.
        size += self._free.pop(offset + size, 0)
        before = next((at for at, n in self._free.items() if at + n == offset), None)
        if before is not None:
            size += self._free.pop(before)
            offset = before
        self._free[offset] = size

    @contextmanager
    def separate(self) -> Iterator[None]:
        """Share no memory of blocks between what is written here and the rest.

        A function may be called while blocks of its callers are in use.
        """
        frame = self.whole or self
        free, frame._free = frame._free, {}
        yield
        frame._free = free
