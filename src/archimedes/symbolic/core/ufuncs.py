"""What each NumPy ufunc becomes: an opcode, or a short formula in ops. Adding a ufunc adds a row.

A formula is ``f(e, *ids) -> id`` (or a tuple of ids, for a ufunc with several results) with ``e``
an ``Emit`` of the dtype of NumPy's loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F32, I64, is_float
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES, ELEMENT, OUT
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest
from archimedes.symbolic.core.trace import trace_error


def identity(e: Emit, x: int) -> int:
    """The value itself."""
    return x


def is_nan(e: Emit, x: int) -> int:
    """Whether a float is nan: it differs from itself."""
    return e("ne", x, x)


def sign_of(e: Emit, x: int) -> int:
    """The sign, -1, 0 or 1, of any number."""
    # The last choice is |x|: nan stays nan, and both zeros give 0.
    zero = e.c(0)
    return e.where(e("lt", zero, x), e.c(1), e.where(e("lt", x, zero), e.c(-1), e("abs", x)))


def _zero_with_sign(e: Emit, zero: int, like: int) -> int:
    """A zero with the sign bit of ``like``, but the derivative of ``zero``.

    1 - (0 + 1) is +0, its negative -0; both pass the derivative on, which copysign would turn.
    """
    one = e.c(1.0)
    moved = e("add", zero, one)
    negative = e("lt", e("copysign", one, like), e.c(0.0))
    return e.where(negative, e("neg", e("sub", one, moved)), e("sub", moved, one))


def float_divmod(e: Emit, a: int, b: int) -> tuple[int, int]:
    """Floor division as NumPy defines it: exact remainder first, then a rounded quotient."""
    zero, one = e.c(0.0), e.c(1.0)
    rest = e("fmod", a, b)
    quotient = e("div", e("sub", a, rest), b)
    has_rest = e("ne", rest, zero)
    opposite = e("ne", e("lt", b, zero), e("lt", rest, zero))
    adjust = e("and", has_rest, opposite)
    modulus = e.where(
        adjust, e("add", rest, b), e.where(has_rest, rest, _zero_with_sign(e, rest, b))
    )
    quotient = e.where(adjust, e("sub", quotient, one), quotient)
    whole = e("floor", quotient)
    nearest = e.where(e("lt", e.c(0.5), e("sub", quotient, whole)), e("add", whole, one), whole)
    ratio = e("div", a, b)
    floored = e.where(e("ne", quotient, zero), nearest, e("copysign", zero, ratio))
    by_zero = e("eq", b, zero)
    return e.where(by_zero, ratio, floored), e.where(by_zero, rest, modulus)


def int_divmod(e: Emit, a: int, b: int) -> tuple[int, int]:
    """Floor division of integers; the remainder has the sign of the divisor."""
    zero, one = e.c(0), e.c(1)
    quotient, rest = e("quotient", a, b), e("modulo", a, b)
    opposite = e("ne", e("lt", b, zero), e("lt", rest, zero))
    adjust = e("and", e("ne", rest, zero), opposite)
    return (
        e.where(adjust, e("sub", quotient, one), quotient),
        e.where(adjust, e("add", rest, b), rest),
    )


def int_power(e: Emit, base: int, exponent: int) -> int:
    """Square and multiply over the exponent's bits; a literal exponent needs only its own."""
    literal = e.g.value.get(exponent)
    if literal is not None and literal < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    if literal is None and not _never_negative(e.g, exponent):
        raise trace_error(
            "an integer to the power of a traced integer, which must not be negative (NumPy raises "
            "ValueError for negative ones)",
            "Write a float as the base (x.astype(float)**n, 2.0**n), np.maximum(n, 0) or np.abs(n) "
            "as the exponent, or declare the exponent static (static_argnames).",
        )
    width = 63 if literal is None else literal.bit_length()
    result, square = e.c(1), base
    for bit in range(width):
        odd = e("ne", e("and", exponent, e.c(1 << bit)), e.c(0))
        result = e.where(odd, e("mul", result, square), result)
        square = e("mul", square, square)
    return result


#: Ops of integers that are not negative if both, or one, of their operands are not.
_BOTH, _EITHER = {CODES["min"], CODES["or"]}, {CODES["max"], CODES["and"]}


def _never_negative(g: Graph, i: int, depth: int = 8) -> bool:
    """Return whether an integer is shown not to be negative by the way it is made."""
    if i in g.value:
        return g.value[i] >= 0
    op, depth = g.op[i], depth - 1
    if op == ELEMENT and g.op[g.a[i]] == OUT:
        region = g.regions[g.a[g.a[i]]]
        if not isinstance(region, Nest) or region.combine:
            return False
        return _never_negative(region.body, region.body.outputs[g.b[g.a[i]]], depth)
    if op == CODES["abs"] or (op == CODES["i64"] and g.dtype[g.a[i]] == B8):
        return True
    if depth and (op in _BOTH or op in _EITHER):
        shown = (_never_negative(g, k, depth) for k in (g.a[i], g.b[i]))
        return all(shown) if op in _BOTH else any(shown)
    if depth and op == CODES["select"]:
        return all(_never_negative(g, k, depth) for k in (g.b[i], g.c[i]))
    return False


def gcd(e: Emit, a: int, b: int) -> int:
    """Euclid's algorithm, as many steps as the operands can need (Lame: 4.785 a decimal digit)."""
    a, b, zero = e("abs", a), e("abs", b), e.c(0)
    known = [e.g.value[i] for i in (a, b) if i in e.g.value]
    for _ in range(min([92, *(2 + math.ceil(4.785 * len(str(v))) for v in known)])):
        done = e("eq", b, zero)
        a, b = e.where(done, a, b), e.where(done, zero, e("modulo", a, b))
    return a


def lcm(e: Emit, a: int, b: int) -> int:
    """The least common multiple."""
    divisor = gcd(e, a, b)
    # A divisor of zero gives a quotient of zero, which is the multiple NumPy gives too.
    return e("abs", e("mul", e("quotient", a, divisor), b))


def ldexp(e: Emit, x: int, n: int) -> int:
    """Return x * 2**n, rounded once: what float64 cannot hold in one factor is split over three.

    After musl's scalbn: the first two factors are at most 2**1023, and at least 2**-969, which
    keeps the 53 bits of a value that only the last factor makes subnormal.
    """
    g, narrow = e.g, e.dtype == F32
    result = g.emit(CODES["f64"], x)
    for _ in range(2):
        high, low = (e("lt", g.const(1023, I64), n), e("lt", n, g.const(-1022, I64)))
        step = e.where(high, g.const(1023, I64), e.where(low, g.const(-969, I64), g.const(0, I64)))
        result, n = e("mul", result, _power_of_two(e, step)), e("sub", n, step)
    n = e("min", e("max", n, g.const(-1022, I64)), g.const(1023, I64))
    result = e("mul", result, _power_of_two(e, n))
    return e("f32", result) if narrow else result


def _power_of_two(e: Emit, n: int) -> int:
    biased = e("add", n, e.g.const(1023, I64))
    return e("from_bits", e("shl", biased, e.g.const(52, I64)))


def ignoring_nan(name: str) -> Callable[[Emit, int, int], int]:
    """The larger or smaller of two floats ("max", "min"), the other one where one is nan."""

    def build(e: Emit, a: int, b: int) -> int:
        return e.where(is_nan(e, b), a, e.where(is_nan(e, a), b, e(name, a, b)))

    return build


def logaddexp(exp: str, log1p: Callable[[Emit, int], int]):
    """The logarithm of a sum of powers, without overflow."""

    def build(e: Emit, a: int, b: int) -> int:
        # Not max and min: at a tie both would give a, and b have no part in the derivative.
        less = e("lt", a, b)
        big, small = e.where(less, b, a), e.where(less, a, b)
        infinite = e("and", e("eq", a, b), e("eq", e("abs", a), e.c(math.inf)))
        gap = e.where(infinite, e.c(0.0), e("sub", small, big))
        return e("add", big, log1p(e, e(exp, gap)))

    return build


def modf(e: Emit, x: int) -> tuple[int, int]:
    """The fraction and the whole part of a float, both with its sign."""
    whole = e("trunc", x)
    infinite = e("eq", e("abs", x), e.c(math.inf))
    rest = e.where(infinite, e.c(0.0), e("sub", x, whole))
    zero = e("eq", rest, e.c(0.0))
    return e.where(zero, _zero_with_sign(e, rest, x), rest), whole


def heaviside(e: Emit, x: int, at_zero: int) -> int:
    """The step function, with its value at zero."""
    zero = e.c(0.0)
    below = e.where(e("lt", x, zero), zero, x)  # nan stays nan
    return e.where(e("eq", x, zero), at_zero, e.where(e("lt", zero, x), e.c(1.0), below))


# ---- the table ----------------------------------------------------------------------------------

#: What one ufunc does to an element, by the dtype code of NumPy's loop.
Row = tuple[Any, Any, Any, Any]


def _always(what: Any) -> Row:
    """The row of a ufunc that is the same op (by name) or formula for every dtype."""
    return _by_kind(what, what, what)


def _by_kind(floats: Any, ints: Any, bools: Any = None) -> Row:
    """The row of a ufunc whose op or formula depends on the dtype of the loop."""
    f, i, b = (CODES[what] if isinstance(what, str) else what for what in (floats, ints, bools))
    return f, f, i, b


def _of_floats(test: Any, otherwise: bool) -> Row:
    """The row of a test that has the same answer for all integers and bools."""

    def answer(e: Emit, x: int) -> int:
        return e.g.const(otherwise, B8)

    return _by_kind(test, answer, answer)


def _swap(name: str) -> Row:
    return _always(lambda e, a, b: e(name, b, a))


def _truth(e: Emit, x: int) -> int:
    return x if e.dtype == B8 else e("ne", x, e.c(0))


def _logical(name: str) -> Row:
    return _always(lambda e, *ids: e(name, *(_truth(e, i) for i in ids)))


def _shift(name: str) -> Row:
    def build(e: Emit, a: int, n: int) -> int:
        # NumPy: a shift by 64 or more (or by a negative count) gives 0, or the sign for >>.
        out = e("lt", n, e.c(0)), e("lt", e.c(63), n)
        outside = e("or", *out)
        full = e.c(0) if name == "shl" else e("shr", a, e.c(63))
        return e.where(outside, full, e(name, a, e("and", n, e.c(63))))

    return _always(build)


def _times(factor: float) -> Row:
    return _always(lambda e, x: e("mul", x, e.c(factor)))


#: The logarithm of e to the base 2.
_LOG2_E = 1.4426950408889634

_FLOAT_OPS = (
    "sqrt sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh "
    "exp exp2 expm1 log log2 log10 log1p cbrt hypot copysign"
)

#: ufunc -> its row: opcodes, or formulas.
UFUNCS: dict[np.ufunc, Row] = {
    **{getattr(np, name): _always(name) for name in _FLOAT_OPS.split()},
    np.add: _by_kind("add", "add", "or"),
    np.subtract: _always("sub"),
    np.multiply: _by_kind("mul", "mul", "and"),
    np.true_divide: _always("div"),
    np.negative: _always("neg"),
    np.positive: _always(identity),
    np.conjugate: _always(identity),
    np.absolute: _by_kind("abs", "abs", identity),
    np.fabs: _always("abs"),
    np.square: _always(lambda e, x: e("mul", x, x)),
    np.reciprocal: _by_kind(
        lambda e, x: e("div", e.c(1.0), x), lambda e, x: e("quotient", e.c(1), x)
    ),
    np.floor: _by_kind("floor", identity, identity),
    np.ceil: _by_kind("ceil", identity, identity),
    np.trunc: _by_kind("trunc", identity, identity),
    np.rint: _always("rint"),
    np.sign: _always(sign_of),
    np.signbit: _always(
        lambda e, x: (
            e("lt", e("copysign", e.c(1.0), x), e.c(0.0))
            if is_float(e.dtype)
            else e("lt", x, e.c(0))
        )
    ),
    np.maximum: _by_kind("max", "max", "or"),
    np.minimum: _by_kind("min", "min", "and"),
    np.fmax: _by_kind(ignoring_nan("max"), "max", "or"),
    np.fmin: _by_kind(ignoring_nan("min"), "min", "and"),
    np.floor_divide: _by_kind(
        lambda e, a, b: float_divmod(e, a, b)[0], lambda e, a, b: int_divmod(e, a, b)[0]
    ),
    np.remainder: _by_kind(
        lambda e, a, b: float_divmod(e, a, b)[1], lambda e, a, b: int_divmod(e, a, b)[1]
    ),
    np.divmod: _by_kind(float_divmod, int_divmod),
    np.fmod: _by_kind("fmod", "modulo"),
    np.power: _by_kind("pow", int_power),
    np.float_power: _always("pow"),
    np.ldexp: _always(ldexp),
    np.deg2rad: _times(math.pi / 180),
    np.radians: _times(math.pi / 180),
    np.rad2deg: _times(180 / math.pi),
    np.degrees: _times(180 / math.pi),
    np.logaddexp: _always(logaddexp("exp", lambda e, x: e("log1p", x))),
    np.logaddexp2: _always(logaddexp("exp2", lambda e, x: e("mul", e("log1p", x), e.c(_LOG2_E)))),
    np.heaviside: _always(heaviside),
    np.modf: _always(modf),
    np.isnan: _of_floats(is_nan, otherwise=False),
    np.isinf: _of_floats(lambda e, x: e("eq", e("abs", x), e.c(math.inf)), otherwise=False),
    np.isfinite: _of_floats(lambda e, x: e("lt", e("abs", x), e.c(math.inf)), otherwise=True),
    np.less: _always("lt"),
    np.less_equal: _always("le"),
    np.greater: _swap("lt"),
    np.greater_equal: _swap("le"),
    np.equal: _always("eq"),
    np.not_equal: _always("ne"),
    np.logical_and: _logical("and"),
    np.logical_or: _logical("or"),
    np.logical_xor: _logical("xor"),
    np.logical_not: _logical("not"),
    np.bitwise_and: _always("and"),
    np.bitwise_or: _always("or"),
    np.bitwise_xor: _always("xor"),
    np.invert: _always("not"),
    np.gcd: _always(gcd),
    np.lcm: _always(lcm),
    np.left_shift: _shift("shl"),
    np.right_shift: _shift("shr"),
}
