"""Exact identities, applied as each node is made whose operands are not all constants.

Only identities that hold for every IEEE value are used, with two documented exceptions that
make structural zeros vanish: a literal zero times x is zero, also where x is inf or nan; and x
plus a literal zero is x, also where x is -0.0.

A rule is a function ``rule(graph, a, b, c)`` of the operands of a new node: it returns the node
that takes its place, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from archimedes.graph.dtypes import B8, F32, F64, I64, is_float
from archimedes.graph.ops import CODES
from archimedes.graph.program import RULES, Graph

Rule = Callable[[Graph, int, int, int], int | None]

SELECT, NOT, STOP = CODES["select"], CODES["not"], CODES["stop"]
AND, SHR, LSHR = CODES["and"], CODES["shr"], CODES["lshr"]
ADD, SUB, MUL, DIV, NEG, ABS = (CODES[n] for n in ("add", "sub", "mul", "div", "neg", "abs"))
FMA, POW = CODES["fma"], CODES["pow"]

#: The dtype that a cast, which does nothing to values that have it, gives.
_CASTS = {"f64": F64, "f32": F32, "i64": I64}
#: Operations that undo each other.
_INVERSES = {"bits": "from_bits", "from_bits": "bits", "not": "not", "neg": "neg"}
#: What ``x op x`` is, for ints and for floats: None where a nan decides.
_REFLEXIVE = {"lt": (False, False), "le": (True, None), "eq": (True, None), "ne": (False, None)}
#: What a literal of no bits, and of all bits, does to a partner: whether it prevails.
_LOGIC = {"and": (True, False), "or": (False, True)}


def _cast_rule(target: int) -> Rule:
    return lambda g, a, b, c: a if g.dtype[a] == target else None


def _inverse_rule(inverse: int) -> Rule:
    return lambda g, a, b, c: g.a[a] if g.op[a] == inverse else None


def _reflexive_rule(of_ints: bool, of_floats: bool | None) -> Rule:
    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        result = of_floats if is_float(g.dtype[a]) else of_ints
        return None if a != b or result is None else g.const(result, B8)

    return simplify


def _logic_rule(op: int, empty_prevails: bool, full_prevails: bool) -> Rule:
    """Return the rule for x & x, x & 0, x & ~0 and their like, for bools and for bit patterns."""

    def simplify(g: Graph, a: int, b: int, c: int) -> int | None:
        if a == b:
            return a
        for this, other in ((a, b), (b, a)):
            value = g.value.get(this)
            if value is None:
                continue
            if value == 0:
                return this if empty_prevails else other
            if value == (True if g.dtype[this] == B8 else -1):
                return this if full_prevails else other
            if op == AND and g.op[other] == SHR and value == _below_sign(g, g.b[other]):
                return g.emit(LSHR, g.a[other], g.b[other])
        return None

    return simplify


def _below_sign(g: Graph, count: int) -> int | None:
    """Return the mask of the bits that a logical right shift by a literal count can leave set."""
    n = g.value.get(count)
    return 2 ** (64 - n) - 1 if n is not None and 0 < n < 64 else None


def _extreme(g: Graph, a: int, b: int, c: int) -> int | None:
    return a if a == b else None


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


def _stop(g: Graph, a: int, b: int, c: int) -> int | None:
    return a if g.op[a] == STOP else None


# ---- arithmetic --------------------------------------------------------------------------


def _add(g: Graph, a: int, b: int, c: int) -> int | None:
    value, op = g.value, g.op
    if a in value and value[a] == 0:
        return b
    if b in value and value[b] == 0:
        return a
    if op[b] == NEG:
        return g.emit(SUB, a, g.a[b])
    if op[a] == NEG:
        return g.emit(SUB, b, g.a[a])
    return None


def _sub(g: Graph, a: int, b: int, c: int) -> int | None:
    if g.value.get(b, 1.0) == 0.0:
        return a
    if g.value.get(a, 1.0) == 0.0 and g.dtype[b] == I64:
        # Not for floats: 0.0 - 0.0 is 0.0, but -(0.0) is -0.0.
        return g.emit(NEG, b)
    if g.op[b] == NEG:
        return g.emit(ADD, a, g.a[b])
    if a == b and g.dtype[a] == I64:
        return g.const(0, I64)
    return None


def _pull_out_sign(g: Graph, op: int, a: int, b: int) -> int | None:
    """Return -(x op y) for a product or quotient of which an operand is a negation."""
    if g.op[a] == NEG:
        return g.emit(NEG, g.emit(op, g.a[a], b))
    if g.op[b] == NEG:
        return g.emit(NEG, g.emit(op, a, g.a[b]))
    return None


def _mul(g: Graph, a: int, b: int, c: int) -> int | None:
    value, op = g.value, g.op
    literal, other = (value[a], b) if a in value else (value.get(b), a)
    if literal is not None:
        if literal == 0:
            return g.const(0, g.dtype[a])
        if literal == 1:
            return other
        if literal == -1:
            return g.emit(NEG, other)
    return _pull_out_sign(g, MUL, a, b) if op[a] == NEG or op[b] == NEG else None


def _div(g: Graph, a: int, b: int, c: int) -> int | None:
    vb = g.value.get(b)
    if vb is not None:
        if vb == 1:
            return a
        if vb == -1:
            return g.emit(NEG, a)
        if vb != 0 and abs(math.frexp(vb)[0]) == 0.5 and 2.0**-100 < abs(vb) < 2.0**100:
            return g.emit(MUL, a, g.const(1.0 / vb, g.dtype[a]))
    return _pull_out_sign(g, DIV, a, b)


def _fma(g: Graph, a: int, b: int, c: int) -> int | None:
    """Simplify by a literal 0, 1 or -1; the product of two literals cannot be folded exactly."""
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


def _abs(g: Graph, a: int, b: int, c: int) -> int | None:
    if g.op[a] == NEG and is_float(g.dtype[a]):
        return g.emit(ABS, g.a[a])
    return a if g.op[a] == ABS else None


def _pow(g: Graph, a: int, b: int, c: int) -> int | None:
    """Small whole exponents are products: cheaper, no less exact, and smooth at zero."""
    exponent = g.value.get(b)
    if exponent is None:
        return None
    if exponent == 0:
        return g.const(1, g.dtype[a])
    if exponent == 1:
        return a
    if exponent == -1:
        return g.emit(DIV, g.const(1, g.dtype[a]), a)
    if exponent in (2, 3, 4):
        square = g.emit(MUL, a, a)
        if exponent == 2:
            return square
        return g.emit(MUL, square, a if exponent == 3 else square)
    return g.fold(POW, a, b)


_BY_NAME = {
    **{name: _cast_rule(target) for name, target in _CASTS.items()},
    **{name: _inverse_rule(CODES[inverse]) for name, inverse in _INVERSES.items()},
    **{name: _reflexive_rule(*results) for name, results in _REFLEXIVE.items()},
    **{name: _logic_rule(CODES[name], *prevails) for name, prevails in _LOGIC.items()},
    "min": _extreme,
    "max": _extreme,
    "select": _select,
    "stop": _stop,
    "abs": _abs,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "fma": _fma,
    "pow": _pow,
}
RULES[:] = map(_BY_NAME.get, CODES)
