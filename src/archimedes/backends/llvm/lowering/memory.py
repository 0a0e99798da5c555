"""Where values live outside registers: a frame, the arrays of a call, constant tables.

A ``Location`` is an element of an array; arrays are named by a ``Pointer`` that says how any
function of the module gets at the address. Values of stacked operands that lie one after the
other in one array are walked by loops instead of being written out, see ``copies.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES

__all__ = ["Binding", "Frame", "Location", "Pointer"]

ALIGNMENT = 64


class Pointer(NamedTuple):
    """An address and how to get at it.

    ``kind``: "frame" (``value`` is the byte offset in the frame), "in" or "out" (number of the
    array of the call), "global" (its name), "slot" (byte offset in the frame of a stored
    pointer), "local" (a name of the current function). ``uniform`` arrays hold one item a value,
    shared by all lanes; others hold a vector of lanes a value.
    """

    kind: str
    value: Any
    uniform: bool


class Location(NamedTuple):
    """Element ``offset`` of an array of values of one dtype."""

    pointer: Pointer
    offset: int
    dtype: int

    def at(self, k: int) -> Location:
        """Return the location ``k`` elements further."""
        return self._replace(offset=self.offset + k)


class Binding(NamedTuple):
    """What is known of a value: its name in a register, its place in memory, its constant."""

    operand: str | None = None
    location: Location | None = None
    constant: tuple[Any, int] | None = None


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

    def array(self, dtype: int, count: int = 1) -> Location:
        """Reserve an array of values and return its first element."""
        offset = self.bytes(ITEM_BYTES[dtype] * self.lanes * count)
        return Location(Pointer("frame", offset, uniform=False), 0, dtype)
