"""Types, literals and memory in LLVM IR, for one value or for a vector of SIMD lanes.

The array of a ``Location`` is a ``Pointer`` that says how any function of the module gets at the
address.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from archimedes.backends.lowering.scope import Location
from archimedes.graph.dtypes import B8, F32, F64, I64

#: Type of one value in a register and in memory, its size in memory, and in names of intrinsics.
_ITEM = {F64: "double", F32: "float", I64: "i64", B8: "i1"}
ITEM_MEMORY = {F64: "double", F32: "float", I64: "i64", B8: "i8"}
ITEM_BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}
_FLOAT = re.compile("0x([0-9A-F]{16})")
_SUFFIX = {F64: "f64", F32: "f32", I64: "i64", B8: "i1"}


def _item(value: Any, dtype: int) -> str:
    if dtype == B8:
        return "true" if value else "false"
    if dtype == I64:
        return str(int(value))
    # Both float types are written as the bits of a double.
    return "0x" + struct.pack(">d", float(value)).hex().upper()


class Spelling:
    """Types and literals of a kernel that computes ``lanes`` instances at a time (1: scalar).

    ``types``, ``memory`` and ``sizes`` give, by dtype code, the type in registers, the type in
    memory (bools are bytes there) and the bytes one value takes.

    Example: ``Spelling(4).types[F64] == "<4 x double>"``.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        wide = "{}" if lanes == 1 else f"<{lanes} x {{}}>"
        self.types = {d: wide.format(t) for d, t in _ITEM.items()}
        self.memory = {d: wide.format(t) for d, t in ITEM_MEMORY.items()}
        self.sizes = {d: lanes * n for d, n in ITEM_BYTES.items()}
        vector = "" if lanes == 1 else f"v{lanes}"
        self.suffix = {d: vector + s for d, s in _SUFFIX.items()}
        self.int32 = wide.format("i32")

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant, the same in all lanes."""
        item = _item(value, dtype)
        return item if self.lanes == 1 else f"splat ({_ITEM[dtype]} {item})"

    def value(self, literal: str) -> float | None:
        """Return the float that a literal stands for; None for the name of a value."""
        match = _FLOAT.search(literal)
        return None if match is None else struct.unpack(">d", bytes.fromhex(match[1]))[0]

    @staticmethod
    def item(value: Any, dtype: int) -> str:
        """Write a constant as it stands in a table in memory."""
        return str(int(value)) if dtype == B8 else _item(value, dtype)


#: Of arrays of a frame, in bytes.
ALIGNMENT = 64


def round_up(count: int) -> int:
    """Return a number of bytes as a multiple of the alignment."""
    return -(-count // ALIGNMENT) * ALIGNMENT


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
        self.size = round_up(offset + count)
        return offset

    def array(self, dtype: int, count: int = 1) -> Location:
        """Reserve an array of values and return its first element."""
        offset = self.bytes(ITEM_BYTES[dtype] * self.lanes * count)
        return Location(Pointer("frame", offset, uniform=False), 0, dtype)

    # ---- blocks ------------------------------------------------------------------------

    def block(self, dtype: int, count: int) -> Location:
        """Reserve the array of a block, in memory that was released if there is enough."""
        need = round_up(ITEM_BYTES[dtype] * self.lanes * count)
        offset = (self.whole or self)._take(need)
        return Location(Pointer("frame", offset, uniform=False), 0, dtype)

    def _take(self, need: int) -> int:
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

    def release(self, location: Location) -> None:
        """Take back the array of a block; arrays of other kinds stay as they are."""
        if self.whole is not None:
            self.whole.release(location)
            return
        if location.array.kind != "frame" or location.offset:
            return
        offset = location.array.value
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
