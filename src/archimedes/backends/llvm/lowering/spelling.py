"""How types and constants are written in LLVM IR, for one value or for a vector of lanes."""

from __future__ import annotations

import re
import struct
from typing import Any

from archimedes.graph.dtypes import B8, F32, F64, I64

__all__ = ["ITEM_BYTES", "ITEM_MEMORY", "Spelling"]

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

    def vector(self, item: str) -> str:
        """Write the type of a vector of lanes of an item type."""
        return f"<{self.lanes} x {item}>"

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant, the same in all lanes."""
        return self.splat(_item(value, dtype), dtype)

    def splat(self, item: str, dtype: int) -> str:
        """Write a vector constant of equal items."""
        return item if self.lanes == 1 else f"splat ({_ITEM[dtype]} {item})"

    def value(self, literal: str) -> float | None:
        """Return the float that a literal stands for; None for the name of a value."""
        found = _FLOAT.search(literal)
        return None if found is None else struct.unpack(">d", bytes.fromhex(found[1]))[0]

    @staticmethod
    def item(value: Any, dtype: int) -> str:
        """Write a constant as it stands in a table in memory."""
        return str(int(value)) if dtype == B8 else _item(value, dtype)
