"""Elements of arrays, and of constant tables, at computed indices; each lane has its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.llvm.lowering.vectors import intrinsic
from archimedes.backends.lowering.values import Place
from archimedes.graph.dtypes import B8, I64

__all__ = ["clamped", "element", "lookup", "modulo", "position", "put"]


def clamped(f: Function, index: str, length: int) -> str:
    """Return an index clamped to a length, in all lanes (0: as it is)."""
    if not length:
        return index
    literal = f.spelling.literal
    low = intrinsic(f, "smax", I64, index, literal(0, I64))
    return intrinsic(f, "smin", I64, low, literal(length - 1, I64))


def position(f: Function, place: Place) -> str:
    """Load an index that all lanes share."""
    at = f.address(place)
    return f.value(f"load i64, ptr {at}, align {ITEM_BYTES[I64]}")


def modulo(f: Function, terms: Sequence[tuple[str, int]], divisor: int) -> str:
    """Return the remainder of a sum of counters times strides."""
    total = "0"
    for counter, stride in terms:
        step = counter if stride == 1 else f.value(f"mul i64 {counter}, {stride}")
        total = step if total == "0" else f.value(f"add i64 {total}, {step}")
    return f.value(f"urem i64 {total}, {divisor}")


def _addresses(f: Function, place: Place, length: int, index: str) -> list[str]:
    """Return where each lane finds its element."""
    at, item = clamped(f, index, length), ITEM_BYTES[place.dtype]
    base, lanes = f.address(place), f.spelling.lanes
    step = f.element_bytes(place)
    places = []
    for lane in range(lanes):
        one = at
        if lanes > 1:
            one = f.value(f"extractelement {f.spelling.types[I64]} {at}, i64 {lane}")
        offset = f.value(f"mul i64 {one}, {step}")
        if lane and not place.array.uniform:
            offset = f.value(f"add i64 {offset}, {lane * item}")
        places.append(f.value(f"getelementptr i8, ptr {base}, i64 {offset}"))
    return places


def element(f: Function, place: Place, length: int, index: str) -> str:
    """Load an element at an index clamped to the block."""
    dtype = place.dtype
    item, wide = ITEM_MEMORY[dtype], f.spelling.memory[dtype]
    found = "poison"
    for lane, at in enumerate(_addresses(f, place, length, index)):
        one = f.value(f"load {item}, ptr {at}, align {ITEM_BYTES[dtype]}")
        if f.spelling.lanes == 1:
            found = one
        else:
            found = f.value(f"insertelement {wide} {found}, {item} {one}, i64 {lane}")
    return f.to_bool(found) if dtype == B8 else found


def lookup(f: Function, table: np.ndarray, dtype: int, index: str) -> str:
    """Read a constant table at an index clamped to it; lanes read one by one."""
    return element(f, f.module.looked_up(table, dtype), len(table), index)


def put(f: Function, place: Place, length: int, index: str, operand: str) -> None:
    """Store an element at an index clamped to the block."""
    dtype = place.dtype
    item, wide = ITEM_MEMORY[dtype], f.spelling.memory[dtype]
    if dtype == B8:
        operand = f.value(f"zext {f.spelling.types[B8]} {operand} to {wide}")
    for lane, at in enumerate(_addresses(f, place, length, index)):
        one = operand
        if f.spelling.lanes > 1:
            one = f.value(f"extractelement {wide} {operand}, i64 {lane}")
        f.line(f"store {item} {one}, ptr {at}, align {ITEM_BYTES[dtype]}")
