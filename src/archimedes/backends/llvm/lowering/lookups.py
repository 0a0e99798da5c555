"""Constant tables read at computed indices."""

from __future__ import annotations

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.llvm.lowering.vectors import intrinsic
from archimedes.graph.dtypes import B8, I64

__all__ = ["lookup"]


def lookup(f: Function, table: np.ndarray, dtype: int, index: str) -> str:
    """Read a constant table at an index clamped to it; lanes read one by one."""
    literal, lanes = f.spelling.literal, f.spelling.lanes
    (base, _), item = f.module.looked_up(table, dtype).array[1:], ITEM_MEMORY[dtype]
    size = ITEM_BYTES[dtype]
    low = intrinsic(f, "smax", I64, index, literal(0, I64))
    at = intrinsic(f, "smin", I64, low, literal(len(table) - 1, I64))

    def entry(index: str) -> str:
        address = f.value(f"getelementptr {item}, ptr {base}, i64 {index}")
        return f.value(f"load {item}, ptr {address}, align {size}")

    if lanes == 1:
        found = entry(at)
    else:
        wide, found = f.spelling.memory[dtype], "poison"
        for lane in range(lanes):
            one = f.value(f"extractelement {f.spelling.types[I64]} {at}, i64 {lane}")
            found = f.value(f"insertelement {wide} {found}, {item} {entry(one)}, i64 {lane}")
    return f.to_bool(found) if dtype == B8 else found
