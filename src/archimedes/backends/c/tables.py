"""Constant tables: ``static const`` arrays, one per content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.backends.c.memory import Array
from archimedes.backends.c.spelling import BYTES, CTYPES, table_item
from archimedes.backends.lowering.scope import Location
from archimedes.graph.dtypes import DTYPES, I64

__all__ = ["Tables"]

_LINE = 96


class Tables:
    """The tables of a file; ``pieces`` are their texts by name."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.pieces: dict[str, str] = {}
        self.bytes = 0
        self._known: dict[tuple[int, bool, bytes], str] = {}

    def place(
        self, values: Sequence[Any] | np.ndarray, dtype: int, whole: bool = False
    ) -> Location:
        """Return the first element of the table with these values.

        ``whole``: in the type of the dtype, also where a narrower one would do.
        """
        array = np.asarray(values, dtype=DTYPES[dtype])
        narrow = not whole and _is_narrow(array, dtype)
        key = (dtype, narrow, array.tobytes())
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"{self.prefix}_table{len(self.pieces) + 1}"
            items = [str(x) if narrow else table_item(x, dtype) for x in array.tolist()]
            head = (
                f"static const {'int32_t' if narrow else CTYPES[dtype]} {name}[{len(items)}] = {{"
            )
            self.pieces[name] = "\n".join([head, *_wrapped(items), "};\n"])
            self.bytes += (4 if narrow else BYTES[dtype]) * len(items)
        return Location(Array(name, narrow=narrow), 0, dtype)

    def bytes_of(self, values: Sequence[int]) -> str:
        """Return the name of a table of bytes."""
        key = (-1, False, bytes(values))
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"{self.prefix}_table{len(self.pieces) + 1}"
            head = f"static const uint8_t {name}[{len(values)}] = {{"
            self.pieces[name] = "\n".join([head, *_wrapped([str(x) for x in values]), "};\n"])
            self.bytes += len(values)
        return name


def _is_narrow(array: np.ndarray, dtype: int) -> bool:
    """Whether whole numbers fit in half the memory (the least int32 has no literal)."""
    if dtype != I64 or not array.size:
        return False
    return int(array.min()) > -(2**31) and int(array.max()) < 2**31


def _wrapped(items: Sequence[str]) -> list[str]:
    lines = ["   "]
    for k, item in enumerate(items):
        text = f" {item}," if k + 1 < len(items) else f" {item}"
        if len(lines[-1]) + len(text) > _LINE:
            lines.append("   ")
        lines[-1] += text
    return lines
