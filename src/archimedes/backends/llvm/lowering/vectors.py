"""Pieces that lowerings are made of: intrinsics, selects, masks of lanes, wide constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.graph.dtypes import B8, F64

__all__ = ["any_lane", "blend", "choose", "intrinsic", "wide_operand"]


def _signs(f: Function, dtype: int) -> tuple[str, str, int]:
    """Return the type of a float, that of an integer as long, and the mask of its sign."""
    bits = 64 if dtype == F64 else 32
    return f.spelling.types[dtype], f"i{bits}", 1 << bits - 1


def _magnitude(f: Function, dtype: int, a: str) -> str:
    kind, whole, sign = _signs(f, dtype)
    word = f.value(f"bitcast {kind} {a} to {whole}")
    return f.value(f"bitcast {whole} {f.value(f'and {whole} {word}, {sign - 1}')} to {kind}")


def _with_sign(f: Function, dtype: int, a: str, b: str) -> str:
    kind, whole, sign = _signs(f, dtype)
    words = [f.value(f"bitcast {kind} {x} to {whole}") for x in (a, b)]
    parts = [f.value(f"and {whole} {x}, {m}") for x, m in zip(words, (sign - 1, -sign))]
    return f.value(f"bitcast {whole} {f.value(f'or {whole} {parts[0]}, {parts[1]}')} to {kind}")


def _greater(compare: str) -> Callable[[Function, int, str, str], str]:
    def lower(f: Function, dtype: int, a: str, b: str) -> str:
        return choose(f, dtype, f.value(f"icmp {compare} i64 {a}, {b}"), a, b)

    return lower


#: Intrinsics as instructions, for drafts: LLVM's quick way of making code knows no intrinsics, and
#: one of them takes as long as fifty instructions.
_PLAIN: dict[str, Callable[..., str]] = {
    "fabs": _magnitude,
    "copysign": _with_sign,
    "smax": _greater("sgt"),
    "smin": _greater("slt"),
}


def intrinsic(f: Function, name: str, dtype: int, *operands: str, extra: str = "") -> str:
    """Call an LLVM intrinsic whose operands and result share one type."""
    if name in _PLAIN and not f.module.target.effort and f.spelling.lanes == 1:
        return _PLAIN[name](f, dtype, *operands)
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
