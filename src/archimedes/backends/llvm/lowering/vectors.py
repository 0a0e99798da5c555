"""Pieces that lowerings are made of: intrinsics, selects, masks of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.graph.dtypes import B8

__all__ = ["any_lane", "blend", "choose", "intrinsic"]


def intrinsic(f: Function, name: str, dtype: int, *operands: str, extra: str = "") -> str:
    """Call an LLVM intrinsic whose operands and result share one type."""
    kind = f.spelling.types[dtype]
    full = f"@llvm.{name}.{f.spelling.suffix[dtype]}"
    parameters = ", ".join([kind] * len(operands)) + (", i1" if extra else "")
    f.module.declare(full, kind, parameters)
    arguments = ", ".join(f"{kind} {x}" for x in operands) + (f", {extra}" if extra else "")
    return f.value(f"call {kind} {full}({arguments})")


def choose(f: Function, dtype: int, condition: str, a: str, b: str) -> str:
    """Append a select between two values of a dtype."""
    kind, mask = f.spelling.types[dtype], f.spelling.types[B8]
    return f.value(f"select {mask} {condition}, {kind} {a}, {kind} {b}")


def any_lane(f: Function, mask: str) -> str:
    """Return an i1 that tells whether a bool holds in any lane."""
    lanes = f.spelling.lanes
    if lanes == 1:
        return mask
    bits = f.value(f"bitcast {f.spelling.types[B8]} {mask} to i{lanes}")
    return f.value(f"icmp ne i{lanes} {bits}, 0")


def blend(
    f: Function, mask: str, dtypes: Sequence[int], new: Sequence[str], old: Sequence[str]
) -> list[str]:
    """Take new values in the lanes of the mask. A scalar kernel gets here only if it holds."""
    if f.spelling.lanes == 1:
        return list(new)
    return [choose(f, d, mask, x, y) for d, x, y in zip(dtypes, new, old)]
