"""Local derivatives of the scalar ops, one row an op.

``PARTIALS[name]`` holds one function per operand: ``(graph, out, a, b) -> id`` of the partial
derivative. Ops whose derivative must not be written as a product (a select may guard against an
inf or nan in the side not taken) have a row in ``LINEAR`` instead: how a tangent passes, and how
an adjoint passes back. Ops without a row are locally constant: their derivative is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph

__all__ = ["LINEAR", "PARTIALS", "Emit"]

Partial = Callable[["Emit", int, int, int], int]


class Emit:
    """Short names for emitting nodes of one dtype, to let rules read as formulas."""

    __slots__ = ("dtype", "g")

    def __init__(self, g: Graph, dtype: int) -> None:
        self.g = g
        self.dtype = dtype

    def c(self, value: float) -> int:
        """Emit a constant."""
        return self.g.const(value, self.dtype)

    def __call__(self, name: str, *ids: int) -> int:
        """Emit the op of that name."""
        return self.g.emit(CODES[name], *ids)

    def add(self, a: int, b: int) -> int:
        """Emit a + b."""
        return self.g.emit(_ADD, a, b)

    def mul(self, a: int, b: int) -> int:
        """Emit a * b."""
        return self.g.emit(_MUL, a, b)

    def div(self, a: int, b: int) -> int:
        """Emit a / b."""
        return self.g.emit(_DIV, a, b)

    def sub(self, a: int, b: int) -> int:
        """Emit a - b."""
        return self.g.emit(_SUB, a, b)

    def neg(self, a: int) -> int:
        """Emit -a."""
        return self.g.emit(_NEG, a)

    def where(self, test: int, a: int, b: int) -> int:
        """Emit a select."""
        return self.g.emit(_SELECT, test, a, b)


_ADD, _SUB, _MUL, _DIV = (CODES[n] for n in ("add", "sub", "mul", "div"))
_NEG, _SELECT = CODES["neg"], CODES["select"]


def _one(e: Emit, out: int, a: int, b: int) -> int:
    return e.c(1.0)


def _sign(e: Emit, x: int) -> int:
    return e.where(e("eq", x, e.c(0.0)), e.c(0.0), e("copysign", e.c(1.0), x))


def _square_sum(e: Emit, a: int, b: int) -> int:
    return e.add(e.mul(a, a), e.mul(b, b))


def _recip_root(e: Emit, product: int) -> int:
    return e.div(e.c(1.0), e("sqrt", product))


def _over(e: Emit, x: int, out: int) -> int:
    """x / out, and zero where out is: the least subgradient of a norm at the origin."""
    at_zero = e("eq", out, e.c(0.0))
    return e.where(at_zero, e.c(0.0), e.div(x, e.where(at_zero, e.c(1.0), out)))


def _pow_base(e: Emit, out: int, a: int, b: int) -> int:
    # a**0 is 1 for all a, so the derivative there is 0, where 0 * 0**-1 would be nan.
    constant = e("eq", b, e.c(0.0))
    less = e.where(constant, e.c(1.0), e.sub(b, e.c(1.0)))
    return e.where(constant, e.c(0.0), e.mul(b, e("pow", a, less)))


def _pow_exponent(e: Emit, out: int, a: int, b: int) -> int:
    # 0**b is 0 for all b > 0, so the derivative there is 0, where out*log(a) would be nan.
    safe = e.where(e("eq", a, e.c(0.0)), e.c(1.0), a)
    return e.mul(out, e("log", safe))


_LN2, _LN10 = math.log(2.0), math.log(10.0)

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
    "fmod": (_one, lambda e, o, a, b: e.neg(e("trunc", e.div(a, b)))),
    "sin": (lambda e, o, a, b: e("cos", a),),
    "cos": (lambda e, o, a, b: e.neg(e("sin", a)),),
    "tan": (lambda e, o, a, b: e.add(e.c(1.0), e.mul(o, o)),),
    "arcsin": (lambda e, o, a, b: _recip_root(e, e.mul(e.sub(e.c(1.0), a), e.add(e.c(1.0), a))),),
    "arccos": (
        lambda e, o, a, b: e.neg(_recip_root(e, e.mul(e.sub(e.c(1.0), a), e.add(e.c(1.0), a)))),
    ),
    "arctan": (lambda e, o, a, b: e.div(e.c(1.0), e.add(e.c(1.0), e.mul(a, a))),),
    "arctan2": (
        lambda e, o, a, b: e.div(b, _square_sum(e, a, b)),
        lambda e, o, a, b: e.neg(e.div(a, _square_sum(e, a, b))),
    ),
    "sinh": (lambda e, o, a, b: e("cosh", a),),
    "cosh": (lambda e, o, a, b: e("sinh", a),),
    "tanh": (lambda e, o, a, b: e.sub(e.c(1.0), e.mul(o, o)),),
    "arcsinh": (lambda e, o, a, b: e.div(e.c(1.0), e("hypot", e.c(1.0), a)),),
    "arccosh": (lambda e, o, a, b: _recip_root(e, e.mul(e.sub(a, e.c(1.0)), e.add(a, e.c(1.0)))),),
    "arctanh": (lambda e, o, a, b: e.div(e.c(1.0), e.mul(e.sub(e.c(1.0), a), e.add(e.c(1.0), a))),),
    "exp": (lambda e, o, a, b: o,),
    "exp2": (lambda e, o, a, b: e.mul(e.c(_LN2), o),),
    "expm1": (lambda e, o, a, b: e.add(o, e.c(1.0)),),
    "log": (lambda e, o, a, b: e.div(e.c(1.0), a),),
    "log2": (lambda e, o, a, b: e.div(e.c(1.0 / _LN2), a),),
    "log10": (lambda e, o, a, b: e.div(e.c(1.0 / _LN10), a),),
    "log1p": (lambda e, o, a, b: e.div(e.c(1.0), e.add(e.c(1.0), a)),),
    "cbrt": (lambda e, o, a, b: e.div(e.c(1.0), e.mul(e.c(3.0), e.mul(o, o))),),
    "hypot": (lambda e, o, a, b: _over(e, a, o), lambda e, o, a, b: _over(e, b, o)),
    "pow": (_pow_base, _pow_exponent),
}

Pass = Callable[[Graph, tuple[int, ...], list[int]], int]
PassBack = Callable[[Graph, tuple[int, ...], int], list[int | None]]


def _choice(g: Graph, name: str, ids: tuple[int, ...]) -> int:
    return g.emit(CODES[name], ids[0], ids[1])


def _zero(g: Graph, like: int) -> int:
    return g.const(0.0, g.dtype[like])


def _choose(name: str) -> tuple[Pass, PassBack]:
    """Rules of min and max: the operand that wins passes; the first one at a tie."""

    def forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
        return g.emit(_SELECT, _choice(g, name, ids), tangents[0], tangents[1])

    def reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
        first, zero = _choice(g, name, ids), _zero(g, adjoint)
        return [g.emit(_SELECT, first, adjoint, zero), g.emit(_SELECT, first, zero, adjoint)]

    return forward, reverse


def _max_choice(forward: Pass, reverse: PassBack) -> tuple[Pass, PassBack]:
    """max(a, b) keeps a where b <= a: the rule of min with operands and tangents swapped."""

    def swapped_forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
        return forward(g, ids[::-1], tangents)

    def swapped_reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
        return reverse(g, ids[::-1], adjoint)

    return swapped_forward, swapped_reverse


def _select_forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
    return g.emit(_SELECT, ids[0], tangents[1], tangents[2])


def _select_reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
    zero = _zero(g, adjoint)
    return [
        None,
        g.emit(_SELECT, ids[0], adjoint, zero),
        g.emit(_SELECT, ids[0], zero, adjoint),
    ]


def _cast(name: str) -> tuple[Pass, PassBack]:
    def forward(g: Graph, ids: tuple[int, ...], tangents: list[int]) -> int:
        return g.emit(CODES[name], tangents[0])

    def reverse(g: Graph, ids: tuple[int, ...], adjoint: int) -> list[int | None]:
        back = "f64" if g.dtype[ids[0]] == 0 else "f32"
        return [g.emit(CODES[back], adjoint)]

    return forward, reverse


#: Ops whose derivative is a choice or a cast, not a product.
LINEAR: dict[str, tuple[Pass, PassBack]] = {
    "select": (_select_forward, _select_reverse),
    "min": _choose("le"),
    "max": _max_choice(*_choose("le")),
    "f64": _cast("f64"),
    "f32": _cast("f32"),
}
