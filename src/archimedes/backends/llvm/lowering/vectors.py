"""Pieces that lowerings are made of: intrinsics, selects, masks of lanes, wide constants."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.graph.dtypes import B8

__all__ = ["any_lane", "blend", "choose", "intrinsic", "wide_operand"]


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


def wide_operand(f: Function, dtype: int, operand: str) -> str:
    """Return an operand of float arithmetic; constants of all lanes are loaded where that is best.

    With AVX a constant in memory is part of the instruction that uses it if it is there for every
    lane; LLVM keeps it once and spends an instruction on copying it. (It would undo this for what
    it knows to be constant, so the memory is not called so.)
    """
    if not operand.startswith("splat") or f.module.target.constants_in_lanes != f.spelling.lanes:
        return operand
    if not f.spelling.value(operand):
        return operand  # zeros come from nowhere
    known = f.module.globals
    kind, size = f.spelling.types[dtype], f.spelling.sizes[dtype]
    key = (f.spelling.lanes << 8 | dtype, operand.encode())
    if key not in known:
        known[key] = f.module.fresh("wide")
        f.module.global_lines.append(
            f"{known[key]} = private global {kind} {operand}, align {size}"
        )
    return f.value(f"load {kind}, ptr {known[key]}, align {size}")
