"""Local derivatives of the scalar ops, one row per op.

``PARTIALS[name]`` holds one function per operand: ``(graph, out, a, b) -> id`` of the partial
derivative. Ops whose derivative must not be written as a product (a select may guard against an
inf or nan in the side not taken) have a row in ``LINEAR`` instead: how a tangent passes, and how
an adjoint passes back. Ops without a row are locally constant: their derivative is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from archimedes.graph.dtypes import F64
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.program import Graph

_SELECT, _LE = CODES["select"], CODES["le"]

Partial = Callable[[Emit, int, int, int], int]


def _one(e: Emit, out: int, a: int, b: int) -> int:
    return e.c(1.0)


def _sign(e: Emit, x: int) -> int:
    return e.where(e("eq", x, e.c(0.0)), e.c(0.0), e("copysign", e.c(1.0), x))


def _reciprocal(e: Emit, x: int) -> int:
    return e.div(e.c(1.0), x)


def _one_minus_square(e: Emit, x: int) -> int:
    """1 - x**2, which keeps its digits near |x| = 1, and whose derivative keeps them near 0."""
    one = e.c(1.0)
    far = e.mul(e.sub(one, x), e.add(one, x))
    return e.where(e("lt", e("abs", x), e.c(0.5)), e.sub(one, e.mul(x, x)), far)


def _bell(e: Emit, x: int) -> int:
    """1 / (1 + x**2); a large x enters by its reciprocal, so that no square overflows."""
    one = e.c(1.0)
    large = e("lt", one, e("abs", x))
    r = _reciprocal(e, e.where(large, x, one))
    t = e.where(large, r, x)
    return e.div(e.where(large, e.mul(r, r), one), e.add(one, e.mul(t, t)))


class _Ratio:
    """A pair of operands by the larger one and a ratio of at most 1: nothing overflows.

    ``steep`` is true where the first is the larger; ``square`` is 1 + ratio**2.
    """

    __slots__ = ("big", "ratio", "square", "steep")

    def __init__(self, e: Emit, a: int, b: int) -> None:
        self.steep = e("lt", e("abs", b), e("abs", a))
        self.big = e.where(self.steep, a, b)
        self.ratio = e.div(e.where(self.steep, b, a), self.big)
        self.square = e.add(e.c(1.0), e.mul(self.ratio, self.ratio))

    def over_length(self, e: Emit, own: int) -> int:
        """The larger operand (``own`` true) or the smaller one, over the length of the pair."""
        size = e.div(e("copysign", e.c(1.0), self.big), e("sqrt", self.square))
        return e.where(own, size, e.mul(self.ratio, size))

    def over_square(self, e: Emit, own: int) -> int:
        """The same over the square of the length."""
        size = e.div(_reciprocal(e, self.big), self.square)
        return e.where(own, size, e.mul(self.ratio, size))


def _hypot_partial(first: bool) -> Partial:
    """x / length, and zero where both are zero: the least subgradient of a norm at the origin."""

    def partial(e: Emit, out: int, a: int, b: int) -> int:
        origin = e("eq", out, e.c(0.0))
        pair = _Ratio(e, a, e.where(origin, e.c(1.0), b))
        own = pair.steep if first else e("not", pair.steep)
        return e.where(origin, e.c(0.0), pair.over_length(e, own))

    return partial


def _arctan2_by_y(e: Emit, out: int, y: int, x: int) -> int:
    pair = _Ratio(e, y, x)
    return pair.over_square(e, e("not", pair.steep))


def _arctan2_by_x(e: Emit, out: int, y: int, x: int) -> int:
    pair = _Ratio(e, y, x)
    return e.neg(pair.over_square(e, pair.steep))


def _pow_base(e: Emit, out: int, a: int, b: int) -> int:
    # a**0 is 1 for all a, also where b * a**(b-1) is nan: at 0 and nan. Seen from b it is a jump
    # there, whose derivative is infinite, as that of sqrt(b) is.
    one = e.c(1.0)
    flat = e("and", e("eq", b, e.c(0.0)), e("not", e("lt", e.c(0.0), e("abs", a))))
    slope = e.mul(b, e("pow", a, e.where(flat, one, e.sub(b, one))))
    return e.where(flat, e("sqrt", e.where(flat, b, one)), slope)


def _pow_exponent(e: Emit, out: int, a: int, b: int) -> int:
    # 0**b is 0 for all b > 0, so the derivative there is 0, where out*log(a) would be nan. For b
    # up to 1 it falls from there without bound, as -sqrt(a) does.
    zero, one = e.c(0.0), e.c(1.0)
    origin = e("and", e("eq", a, zero), e("lt", zero, b))
    falls = e("and", origin, e("le", b, one))
    start = e.where(falls, e.neg(e("sqrt", e.where(falls, a, one))), zero)
    return e.where(origin, start, e.mul(out, e("log", e.where(origin, one, a))))


def _fmod_divisor(e: Emit, out: int, a: int, b: int) -> int:
    # a / b may round up to a whole number that a does not reach; a - out is that multiple of b.
    return e.neg(e("rint", e.div(e.sub(a, out), b)))


def _arccosh(e: Emit, out: int, a: int, b: int) -> int:
    one = e.c(1.0)
    return _reciprocal(e, e.mul(e("sqrt", e.sub(a, one)), e("sqrt", e.add(a, one))))


def _tanh(e: Emit, out: int, a: int, b: int) -> int:
    # 1 - out**2 has no digits left where out is nearly 1. Beyond 354 the result underflows, and
    # soon cosh would be infinite.
    far = e("lt", e.c(354.0), e("abs", a))
    sech = _reciprocal(e, e("cosh", e.where(far, e.c(0.0), a)))
    return e.where(far, e.c(0.0), e.mul(sech, sech))


def _gaussian(e: Emit, x: int) -> int:
    """2 exp(-x**2) / sqrt(pi): the square of the upper half of x is exact, the rest is small."""
    upper = e("stop", e("f64", e("f32", x)) if e.dtype == F64 else x)
    exact = e("exp", e.neg(e.mul(upper, upper)))
    rest = e("exp", e.neg(e.mul(e.sub(x, upper), e.add(x, upper))))
    far = e("lt", e.c(28.0), e("abs", x))
    return e.where(far, e.c(0.0), e.mul(e.c(2.0 / math.sqrt(math.pi)), e.mul(exact, rest)))


def _next_polygamma(e: Emit, out: int, n: int, x: int) -> int:
    return e("polygamma", e.add(n, e.c(1.0)), x)


#: Logarithms of 2 and 10.
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046

PARTIALS: dict[str, tuple[Partial, ...]] = {
    "add": (_one, _one),
    "sub": (_one, lambda e, o, a, b: e.c(-1.0)),
    "mul": (lambda e, o, a, b: b, lambda e, o, a, b: a),
    "div": (
        lambda e, o, a, b: e.div(e.c(1.0), b),
        lambda e, o, a, b: e.neg(e.div(o, b)),
    ),
    "fma": (lambda e, o, a, b: b, lambda e, o, a, b: a, _one),
    "neg": (lambda e, o, a, b: e.c(-1.0),),
    "abs": (lambda e, o, a, b: _sign(e, a),),
    "sqrt": (lambda e, o, a, b: e.div(e.c(0.5), o),),
    "copysign": (
        lambda e, o, a, b: e.mul(e("copysign", e.c(1.0), a), e("copysign", e.c(1.0), b)),
        lambda e, o, a, b: e.c(0.0),
    ),
    "fmod": (_one, _fmod_divisor),
    "sin": (lambda e, o, a, b: e("cos", a),),
    "cos": (lambda e, o, a, b: e.neg(e("sin", a)),),
    "tan": (lambda e, o, a, b: e.add(e.c(1.0), e.mul(o, o)),),
    "arcsin": (lambda e, o, a, b: _reciprocal(e, e("sqrt", _one_minus_square(e, a))),),
    "arccos": (lambda e, o, a, b: e.neg(_reciprocal(e, e("sqrt", _one_minus_square(e, a)))),),
    "arctan": (lambda e, o, a, b: _bell(e, a),),
    "arctan2": (_arctan2_by_y, _arctan2_by_x),
    "sinh": (lambda e, o, a, b: e("cosh", a),),
    "cosh": (lambda e, o, a, b: e("sinh", a),),
    "tanh": (_tanh,),
    "arcsinh": (lambda e, o, a, b: _reciprocal(e, e("hypot", e.c(1.0), a)),),
    "arccosh": (_arccosh,),
    "arctanh": (lambda e, o, a, b: _reciprocal(e, _one_minus_square(e, a)),),
    "exp": (lambda e, o, a, b: o,),
    "exp2": (lambda e, o, a, b: e.mul(e.c(_LN2), o),),
    "exp10": (lambda e, o, a, b: e.mul(e.c(_LN10), o),),
    "expm1": (lambda e, o, a, b: e("exp", a),),
    "log": (lambda e, o, a, b: _reciprocal(e, a),),
    "log2": (lambda e, o, a, b: e.div(e.c(1.0 / _LN2), a),),
    "log10": (lambda e, o, a, b: e.div(e.c(1.0 / _LN10), a),),
    "log1p": (lambda e, o, a, b: _reciprocal(e, e.add(e.c(1.0), a)),),
    "cbrt": (lambda e, o, a, b: e.div(e.c(1.0), e.mul(e.c(3.0), e.mul(o, o))),),
    "hypot": (_hypot_partial(True), _hypot_partial(False)),
    "pow": (_pow_base, _pow_exponent),
    "erf": (lambda e, o, a, b: _gaussian(e, a),),
    "erfc": (lambda e, o, a, b: e.neg(_gaussian(e, a)),),
    "gamma": (lambda e, o, a, b: e.mul(o, e("digamma", a)),),
    "gammaln": (lambda e, o, a, b: e("digamma", a),),
    "digamma": (lambda e, o, a, b: e("polygamma", e.c(1.0), a),),
    "polygamma": (lambda e, o, n, x: e.c(math.nan), _next_polygamma),
}

Pass = Callable[[Graph, tuple[int, ...], list[int]], int]
PassBack = Callable[[Graph, tuple[int, ...], int], list[int | None]]


def _choice(test: Callable[[Graph, tuple[int, ...]], int], first: int = 0) -> tuple[Pass, PassBack]:
    """Return the rules of an op that passes on operand ``first``, or the next, by a test."""

    def forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
        return g.emit(_SELECT, test(g, ids), tangents[first], tangents[first + 1])

    def reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
        chosen, zero = test(g, ids), g.const(0.0, g.dtype[adjoint])
        passed = [g.emit(_SELECT, chosen, adjoint, zero), g.emit(_SELECT, chosen, zero, adjoint)]
        return [None] * first + passed

    return forward, reverse


def _cast(name: str) -> tuple[Pass, PassBack]:
    def forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
        return g.emit(CODES[name], tangents[0])

    def reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
        back = "f64" if g.dtype[ids[0]] == F64 else "f32"
        return [g.emit(CODES[back], adjoint)]

    return forward, reverse


#: Ops whose derivative is a choice or a cast, not a product. At a tie the first operand of a
#: minimum or a maximum passes.
LINEAR: dict[str, tuple[Pass, PassBack]] = {
    "select": _choice(lambda g, ids: ids[0], first=1),
    "min": _choice(lambda g, ids: g.emit(_LE, ids[0], ids[1])),
    "max": _choice(lambda g, ids: g.emit(_LE, ids[1], ids[0])),
    "f64": _cast("f64"),
    "f32": _cast("f32"),
}

#: By code: whether an op has derivatives.
IS_SMOOTH = tuple(op.name in PARTIALS or op.name in LINEAR for op in TABLE)
