"""exp, exp2, expm1, log, log2, log10, log1p, and what hyperbolic functions and pow share with them.

Exponentials (Muller, Elementary Functions, 3rd ed., 11.1): ``x = k ln2 + r`` with ``|r| <= ln2/2``,
``exp(x) = 2^k exp(r)``. ``r`` is kept as ``hi - lo``: ``hi`` is exact, ``lo`` holds what is left,
and the sum ``1 + hi - (lo - r**2 P(r))`` is rounded late.

Rounding to an integer is the addition of ``1.5 * 2^52``: the low bits of the sum then hold the
integer, so no float-to-int conversion is needed (AVX2 has none for int64).

Legend: ``k`` integer exponent (float), ``biased`` int64 ``k + bias`` in the low 12 bits,
``hi, lo`` reduced argument ``hi - lo``, ``tail`` what ``1 + hi`` lacks.

Logarithms: ``u = 2^k m`` with ``m`` between ``sqrt(1/2)`` and ``sqrt(2)``, ``f = m - 1`` and
``s = f / (2 + f)``; then ``log(m) = log((1+s)/(1-s))`` is odd in s (Abramowitz and Stegun 4.1.28)
and ``log(m) = f - (f**2/2 - s (f**2/2 + R(s**2)))``, where f is exact and the rest is small.

Legend: ``k`` exponent (float), ``f`` as above, ``square`` ``f**2/2``, ``rest`` what is added to
``f - square``.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import POLYNOMIALS
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial, two_sum
from archimedes.graph.elementary.primitives import INF, NAN, Primitives, Value

LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")
"""Upper 42 bits of ln 2: its product with an 11-bit integer is exact."""
LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")
"""ln 2 minus LN2_HIGH, to 95 bits in all."""
LN2_UPPER = float.fromhex("0x1.62e42f8p-1")
"""Upper 26 bits of ln 2, for exact products of halves."""
LN2_REST = float.fromhex("0x1.be8e7bcd5e4f2p-27")
"""ln 2 minus LN2_UPPER."""
LOG2_E = 1.4426950408889634
"""1 / ln 2."""
ROUNDER = 1.5 * 2.0**52
"""Added to a float below 2^51, leaves its nearest integer in the low bits."""
BIAS = 2046
"""Twice the float64 exponent bias, so that half of ``k + BIAS`` is a biased exponent."""
LOG2_10 = 3.321928094887362
"""log2(10)."""
LN10_UPPER = float.fromhex("0x1.26bb1b8000000p+1")
"""Upper 26 bits of ln 10."""
LN10_REST = float.fromhex("0x1.daaa8ac16ea57p-26")
"""ln 10 minus LN10_UPPER."""
EXP_LIMIT = (-746.0, 710.0)
"""Beyond these exp is 0 or infinite in float64."""


def clamp(p: Primitives, x: Value, low: float, high: float) -> Value:
    """``x`` limited to ``[low, high]``; nan stays nan."""
    x = p.where(x > high, high, x)
    return p.where(x < low, low, x)


def _round_biased(p: Primitives, x: Value, bias: int = BIAS) -> tuple[Value, Value]:
    """Nearest integer ``k`` of ``x`` as a float, and ``k + bias`` as a 12-bit int64."""
    shifted = x + (ROUNDER + bias)
    return shifted - (ROUNDER + bias), p.bits(shifted) & 0xFFF


def scale(p: Primitives, x: Value, biased: Value) -> Value:
    """``x * 2**(biased - BIAS)`` in two exact steps or with one rounding where subnormal."""
    half = p.shift_right_logical(biased, 1)
    return (x * p.from_bits(half << 52)) * p.from_bits((biased - half) << 52)


def inverse_power(p: Primitives, k: Value, field: Value) -> Value:
    """``2**(field - 1023)``, or zero for ``k > 60``, where it would not matter or not exist."""
    return p.where(k > 60.0, 0.0, p.from_bits(field << 52))


def reduce_exponent(p: Primitives, x: Value, bias: int = BIAS) -> tuple[Value, ...]:
    """``(k, biased, hi, lo)`` with ``x = k ln2 + hi - lo``, for ``|x|`` below 750."""
    k, biased = _round_biased(p, x * LOG2_E, bias)
    return k, biased, x - k * LN2_HIGH, k * LN2_LOW


def _exp_tail(hi: Value, lo: Value) -> Value:
    """``exp(hi - lo) - 1 - hi`` to about 2^-58."""
    r = hi - lo
    rr = r * r
    return rr * polynomial(r, rr, POLYNOMIALS["exp"].c) - lo


def exp(p: Primitives, x: Value) -> Value:
    """e to the power x."""
    _, biased, hi, lo = reduce_exponent(p, clamp(p, x, *EXP_LIMIT))
    return scale(p, 1.0 + (hi + _exp_tail(hi, lo)), biased)


def exp_of_pair(p: Primitives, h: Value, low: Value) -> Value:
    """exp(h + low) for a pair: about 0.55 ulp."""
    inside = (h > EXP_LIMIT[0]) & (h < EXP_LIMIT[1])
    _, biased, hi, lo = reduce_exponent(p, clamp(p, h, *EXP_LIMIT))
    return _exp_of_reduced(p, hi, lo - p.where(inside, low, 0.0), biased)


def _exp_of_reduced(p: Primitives, hi: Value, lo: Value, biased: Value) -> Value:
    """exp(hi - lo) 2**(biased - BIAS): about 0.55 ulp."""
    one, error = fast_two_sum(1.0, hi)
    return scale(p, one + (error + _exp_tail(hi, lo)), biased)


def exp2(p: Primitives, x: Value) -> Value:
    """2 to the power x."""
    x = clamp(p, x, -1080.0, 1025.0)
    k, biased = _round_biased(p, x)
    f = x - k
    high, low = halves(p, f)
    hi, lo = high * LN2_UPPER, -(low * LN2_UPPER + f * LN2_REST)
    return scale(p, 1.0 + (hi + _exp_tail(hi, lo)), biased)


def exp10(p: Primitives, x: Value) -> Value:
    """10 to the power x.

    ``x = k log10(2) + f``, where ``k log10(2)`` is a pair, so that ``f`` has all its digits.
    """
    x = clamp(p, x, -325.0, 309.0)
    k, biased = _round_biased(p, x * LOG2_10)
    rest, small = x - k * LOG10_2_HIGH, k * LOG10_2_LOW
    f = rest - small
    high, low = halves(p, f)
    f_error = (rest - f) - small
    lo = -(low * LN10_UPPER + (f * LN10_REST + f_error * LN10_UPPER))
    return _exp_of_reduced(p, high * LN10_UPPER, lo, biased)


def expm1(p: Primitives, x: Value) -> Value:
    """exp(x) - 1, accurate near zero.

    ``1 - 2**-k + hi + r**2/2`` is summed without error, which is what keeps the result right for
    k = 1, where it cancels.
    """
    k, biased, hi, lo = reduce_exponent(p, clamp(p, x, -50.0, EXP_LIMIT[1]))
    power = inverse_power(p, k, (BIAS + 1023) - biased)
    r = hi - lo
    rr = r * r
    one, lost = fast_two_sum(1.0, -power)
    s1, e1 = fast_two_sum(one, hi)
    s2, e2 = fast_two_sum(s1, 0.5 * rr)
    r_error = (hi - r) - lo
    small = r * rr * polynomial(r, rr, POLYNOMIALS["expm1"].c[1:]) + (r * r_error - lo)
    return p.copysign(scale(p, s2 + (((e1 + lost) + e2) + small), biased), x)


SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
"""Bits of sqrt(1/2)."""
EXPONENT_MASK = -(1 << 52)
OFFSET = 1024
"""Makes exponents positive, so that a logical shift will do."""
TWO_52_BITS = 0x4330000000000000
"""Bits of 2^52: an integer below 2^52 or-ed to it makes the float 2^52 + integer."""

LOG2_E_UPPER = float.fromhex("0x1.7154760000000p+0")
LOG2_E_REST = float.fromhex("0x1.4ae0bf85ddf44p-26")
LOG10_E_UPPER = float.fromhex("0x1.bcb7b10000000p-2")
LOG10_E_REST = float.fromhex("0x1.49b9438ca9aaep-28")
LOG10_2_HIGH = float.fromhex("0x1.34413509f7800p-2")
LOG10_2_LOW = float.fromhex("0x1.fef311f12b358p-46")


def split_exponent(
    p: Primitives, x: Value, start: int = SQRT_HALF_BITS, subnormal: bool = True
) -> tuple[Value, Value, Value]:
    """``(k, m, below)`` with ``x = 2^k m``, for ``x > 0``.

    ``m`` lies in the octave that begins at the float with bits ``start``; ``below`` is the bits
    of ``m`` minus ``start``. ``subnormal=False`` saves the care for x below 2^-1022.
    """
    shift: Value = 2.0**52 + OFFSET
    if subnormal:
        tiny = x < 2.0**-1022
        x = p.where(tiny, x * 2.0**54, x)
        shift = p.where(tiny, shift + 54.0, shift)
    relative = p.bits(x) - start
    exponent = p.shift_right_logical(relative + (OFFSET << 52), 52)
    k = p.from_bits(exponent | TWO_52_BITS) - shift
    below = relative & ~EXPONENT_MASK
    return k, p.from_bits(below + start), below


def _series(p: Primitives, f: Value) -> tuple[Value, Value, Value, Value]:
    """``(square, rest, s, s**2)``: ``log(1 + f) = f - square + rest``."""
    s = f / (2.0 + f)
    z = s * s
    square = 0.5 * f * f
    rest = s * (square + z * polynomial(z, z * z, POLYNOMIALS["log"].c))
    return square, rest, s, z


def _domain(p: Primitives, x: Value, y: Value, zero: float = 0.0) -> Value:
    """``y`` where ``zero < x < inf``; -inf at ``zero``, nan below it, inf at inf."""
    y = p.where(x == INF, INF, y)
    y = p.where(x == zero, -INF, y)
    return p.where(x >= zero, y, NAN)


def log(p: Primitives, x: Value) -> Value:
    """Natural logarithm."""
    k, m, _ = split_exponent(p, x)
    f = m - 1.0
    square, rest, _, _ = _series(p, f)
    y = k * LN2_HIGH - ((square - (rest + k * LN2_LOW)) - f)
    return _domain(p, x, y)


def log_of_pair(p: Primitives, h: Value, low: Value, extra: Value = 0.0) -> Value:
    """``log(h + low) + extra ln2`` for a normal ``h > 0`` and ``|low|`` up to an ulp of ``h``."""
    k, m, _ = split_exponent(p, h, subnormal=False)
    f = m - 1.0
    square, rest, s, z = _series(p, f)
    # low / h, with 1/m = (1 - s)/(1 + s) by its first terms: low is small enough for that.
    # The power of two is 2^(1-k), since 2^-k does not exist for the largest k.
    scaled = low * p.from_bits((1024 << 52) - (p.bits(h) - p.bits(m)))
    correction = scaled * (0.5 - s + z)
    k = k + extra
    total, error = fast_two_sum(k * LN2_HIGH, f)
    return total + (error + ((correction + (rest + k * LN2_LOW)) - square))


def log1p(p: Primitives, x: Value) -> Value:
    """log(1 + x), accurate near zero."""
    u, error = two_sum(1.0, x)
    return p.copysign(_domain(p, x, log_of_pair(p, u, error), -1.0), x)


def _other_base(p: Primitives, x: Value, e: tuple[float, float], two: tuple[float, float]) -> Value:
    """``log(x) * e + k * two`` where ``e`` and ``two`` are the base's logarithms, as pairs."""
    k, m, _ = split_exponent(p, x)
    f = m - 1.0
    square, rest, _, _ = _series(p, f)
    high, _ = halves(p, f - square)
    low = ((f - high) - square) + rest
    exact = high * e[0]
    small = low * e[0] + (low + high) * e[1]
    total, error = fast_two_sum(k * two[0], exact)
    return _domain(p, x, total + (error + (small + k * two[1])))


def log2(p: Primitives, x: Value) -> Value:
    """Logarithm to base 2."""
    return _other_base(p, x, (LOG2_E_UPPER, LOG2_E_REST), (1.0, 0.0))


def log10(p: Primitives, x: Value) -> Value:
    """Logarithm to base 10."""
    return _other_base(p, x, (LOG10_E_UPPER, LOG10_E_REST), (LOG10_2_HIGH, LOG10_2_LOW))
