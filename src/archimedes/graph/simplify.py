"""Exact identities and constant folding, applied as each node is made.

Only identities that hold for every IEEE value are used, with two documented exceptions that
make structural zeros vanish: a literal zero times x is zero, also where x is inf or nan; and x
plus a literal zero is x, also where x is -0.0. Those of arithmetic are in
the second half of this file; first comes what all share, logic, choices and casts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, is_float
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.program import RULES, Graph

__all__ = [
    "fold",
    "rule",
]

Rule = Callable[[Graph, int, int, int], int | None]

SELECT, NOT = CODES["select"], CODES["not"]
AND, SHR, LSHR = (CODES[n] for n in ("and", "shr", "lshr"))
_RESULT = tuple(op.result for op in TABLE)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a simplification for the named ops."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[CODES[name]] = function
        return function

    return register


def fold(g: Graph, op: int, *ids: int) -> int | None:
    """Return the constant an op gives, if all its operands are constants."""
    values = []
    for i in ids:
        value = g.value.get(i)
        if value is None:
            return None
        values.append(DTYPES[g.dtype[i]].type(value))
    result = _RESULT[op]
    with np.errstate(all="ignore"):
        out = TABLE[op].numpy(*values)  # type: ignore[misc]
    return g.const(out, g.dtype[ids[-1]] if result == "same" else result)  # type: ignore[arg-type]


def _folding(op: int, arity: int) -> Rule:
    """Return the rule of an op that has no identities."""

    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        return fold(g, op, *(a, b, c)[:arity])

    return simplify


for _row in TABLE:
    if _row.numpy is not None:
        RULES[_row.code] = _folding(_row.code, _row.arity)


@rule("select")
def _select(g: Graph, a: int, b: int, c: int) -> int | None:
    if b == c:
        return b
    chosen = g.value.get(a)
    if chosen is not None:
        return b if chosen else c
    if g.op[a] == NOT:
        return g.emit(SELECT, g.a[a], c, b)
    if g.dtype[b] == B8:
        # Bools are logic: the rules of and/or/not find more than those of select.
        both = g.value.get(b), g.value.get(c)
        if both == (True, False):
            return a
        if both == (False, True):
            return g.emit(NOT, a)
    return None


@rule("not")
def _not(g: Graph, a: int, b: int, c: int) -> int | None:
    if g.op[a] == NOT:
        return g.a[a]
    return fold(g, NOT, a)


def _below_sign(g: Graph, count: int) -> int | None:
    """Return the bits that a right shift by a literal count leaves of a word without sign."""
    n = g.value.get(count)
    return 2 ** (64 - n) - 1 if n is not None and 0 < n < 64 else None


def _logic(name: str, empty: int, full: int) -> None:
    """Register x & x, x & 0, x & ~0 and their like, for bools and for bit patterns."""
    op = CODES[name]

    @rule(name)
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        folded = fold(g, op, a, b)
        if folded is not None:
            return folded
        if a == b:
            return a
        for this, other in ((a, b), (b, a)):
            value = g.value.get(this)
            if value is None:
                continue
            whole = bool(value) if g.dtype[this] == B8 else None
            if value == 0 or whole is False:
                return this if empty else other
            if value == -1 or whole is True:
                return this if full else other
            if op == AND and g.op[other] == SHR and value == _below_sign(g, g.b[other]):
                return g.emit(LSHR, g.a[other], g.b[other])
        return None


_logic("and", empty=1, full=0)
_logic("or", empty=0, full=1)


def _reflexive(name: str, for_floats: bool | None, otherwise: bool) -> None:
    """Register ``x op x``: exact for ints, and for floats only where nan agrees."""
    op = CODES[name]

    @rule(name)
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        if a == b:
            if not is_float(g.dtype[a]):
                return g.const(otherwise, B8)
            if for_floats is not None:
                return g.const(for_floats, B8)
        return fold(g, op, a, b)


_reflexive("lt", False, False)
_reflexive("le", None, True)
_reflexive("eq", None, True)
_reflexive("ne", None, False)


def _extreme(name: str) -> None:
    op = CODES[name]

    @rule(name)
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        return a if a == b else fold(g, op, a, b)


_extreme("min")
_extreme("max")


def _identity_cast(name: str, target: int) -> None:
    op = CODES[name]

    @rule(name)
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        return a if g.dtype[a] == target else fold(g, op, a)


for _name, _target in (("f64", F64), ("f32", F32), ("i64", I64)):
    _identity_cast(_name, _target)


def _inverse_pair(name: str, inverse: str) -> None:
    op, back = CODES[name], CODES[inverse]

    @rule(name)
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        return g.a[a] if g.op[a] == back else fold(g, op, a)


_inverse_pair("bits", "from_bits")
_inverse_pair("from_bits", "bits")


@rule("stop")
def _stop(g: Graph, a: int, b: int, c: int) -> int | None:
    return a if a in g.value or g.op[a] == CODES["stop"] else None


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
