"""Exact identities of arithmetic: see ``simplify.py``."""

from __future__ import annotations

import math
import operator
from typing import Any

from archimedes.graph.dtypes import F64, I64, is_float
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.simplify import fold, rule

__all__: list[str] = []

ADD, SUB, MUL, DIV, NEG, ABS = (CODES[n] for n in ("add", "sub", "mul", "div", "neg", "abs"))
FMA, POW = CODES["fma"], CODES["pow"]

_PLAIN = {ADD: operator.add, SUB: operator.sub, MUL: operator.mul}


def _arithmetic(g: Graph, op: int, a: int, b: int, va: Any, vb: Any) -> int:
    """Fold +, -, * of two constants; Python's floats are IEEE doubles, so no NumPy is needed."""
    if g.dtype[a] == F64:
        return g.const(_PLAIN[op](va, vb))
    folded = fold(g, op, a, b)
    assert folded is not None
    return folded


@rule("add")
def _add(g: Graph, a: int, b: int, c: int) -> int | None:
    va, vb = g.value.get(a), g.value.get(b)
    if va is not None:
        if vb is not None:
            return _arithmetic(g, ADD, a, b, va, vb)
        if va == 0:
            return b
    elif vb is not None and vb == 0:
        return a
    if g.op[b] == NEG:
        return g.emit(SUB, a, g.a[b])
    if g.op[a] == NEG:
        return g.emit(SUB, b, g.a[a])
    return None


@rule("sub")
def _sub(g: Graph, a: int, b: int, c: int) -> int | None:
    va, vb = g.value.get(a), g.value.get(b)
    if vb is not None:
        if va is not None:
            return _arithmetic(g, SUB, a, b, va, vb)
        if vb == 0:
            return a
    elif va is not None and va == 0 and g.dtype[b] == I64:
        # Not for floats: 0.0 - 0.0 is 0.0, but -(0.0) is -0.0.
        return g.emit(NEG, b)
    if g.op[b] == NEG:
        return g.emit(ADD, a, g.a[b])
    if a == b and g.dtype[a] == I64:
        return g.const(0, I64)
    return None


@rule("mul")
def _mul(g: Graph, a: int, b: int, c: int) -> int | None:
    va, vb = g.value.get(a), g.value.get(b)
    if va is not None and vb is not None:
        return _arithmetic(g, MUL, a, b, va, vb)
    literal, other = (vb, a) if va is None else (va, b)
    if literal is not None:
        if literal == 0:
            return g.const(0, g.dtype[a])
        if literal == 1:
            return other
        if literal == -1:
            return g.emit(NEG, other)
    if g.op[a] == NEG:
        return g.emit(NEG, g.emit(MUL, g.a[a], b))
    if g.op[b] == NEG:
        return g.emit(NEG, g.emit(MUL, a, g.a[b]))
    return None


@rule("div")
def _div(g: Graph, a: int, b: int, c: int) -> int | None:
    va, vb = g.value.get(a), g.value.get(b)
    if va is not None and vb is not None:
        return fold(g, DIV, a, b)
    if vb is not None:
        if vb == 1:
            return a
        if vb == -1:
            return g.emit(NEG, a)
        if vb != 0 and abs(math.frexp(vb)[0]) == 0.5 and 2.0**-100 < abs(vb) < 2.0**100:
            return g.emit(MUL, a, g.const(1.0 / vb, g.dtype[a]))
    if g.op[a] == NEG:
        return g.emit(NEG, g.emit(DIV, g.a[a], b))
    if g.op[b] == NEG:
        return g.emit(NEG, g.emit(DIV, a, g.a[b]))
    return None


@rule("fma")
def _fma(g: Graph, a: int, b: int, c: int) -> int | None:
    """Drop what a literal 0, 1 or -1 makes needless; two literals have no exact product."""
    folded = fold(g, FMA, a, b, c)
    if folded is not None:
        return folded
    if g.value.get(c) == 0:
        return g.emit(MUL, a, b)
    for literal, other in ((g.value.get(a), b), (g.value.get(b), a)):
        if literal == 0:
            return c
        if literal == 1:
            return g.emit(ADD, other, c)
        if literal == -1:
            return g.emit(SUB, c, other)
    if a > b:
        return g.emit(FMA, b, a, c)
    if g.op[a] == NEG and g.op[b] == NEG:
        return g.emit(FMA, g.a[a], g.a[b], c)
    return None


@rule("neg")
def _neg(g: Graph, a: int, b: int, c: int) -> int | None:
    if g.op[a] == NEG:
        return g.a[a]
    return fold(g, NEG, a)


@rule("abs")
def _abs(g: Graph, a: int, b: int, c: int) -> int | None:
    if g.op[a] == NEG and is_float(g.dtype[a]):
        return g.emit(ABS, g.a[a])
    if g.op[a] == ABS:
        return a
    return fold(g, ABS, a)


@rule("pow")
def _pow(g: Graph, a: int, b: int, c: int) -> int | None:
    """Small whole exponents are products: cheaper, no less exact, and smooth at zero."""
    exponent = g.value.get(b)
    if exponent is None:
        return None
    dtype = g.dtype[a]
    if exponent == 0:
        return g.const(1, dtype)
    if exponent == 1:
        return a
    if exponent == -1:
        return g.emit(DIV, g.const(1, dtype), a)
    if exponent in (2, 3, 4):
        square = g.emit(MUL, a, a)
        if exponent == 2:
            return square
        return g.emit(MUL, square, a if exponent == 3 else square)
    return fold(g, POW, a, b)
