"""Exponentials, logarithms and hyperbolic functions, and what pow shares with them.

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

Hyperbolic functions: with ``|x| = k ln2 + r`` and ``w = 2^(-2k)``,
``sinh|x| = 2^(k-1) ((1+w) sinh r + (1-w) cosh r)`` and
``cosh x = 2^(k-1) ((1+w) cosh r + (1-w) sinh r)``. tanh is a short exact part and a quotient that
is small beside it. The inverses are logarithms of pairs.

Legend: ``even, odd`` parts of ``exp(r) - 1 - hi``.
"""

from __future__ import annotations

from archimedes.graph.elementary import pairs
from archimedes.graph.elementary.coefficients import polynomials
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial, two_product, two_sum
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
    return rr * polynomial(r, rr, polynomials()["exp"].c) - lo


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
    small = r * rr * polynomial(r, rr, polynomials()["expm1"].c[1:]) + (r * r_error - lo)
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
    rest = s * (square + z * polynomial(z, z * z, polynomials()["log"].c))
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


# ---- hyperbolic functions ------------------------------------------------------------------

HALF_LN2_HIGH = float.fromhex("0x1.62e42fefa398p-2")
"""Upper 46 bits of ln(2) / 2: its product with a 6-bit integer is exact."""
HALF_LN2_LOW = float.fromhex("0x1.bcd5e4f1d9ccp-48")
"""ln(2) / 2 minus HALF_LN2_HIGH."""
TWO_LOG2_E = 2.8853900817779268
"""2 / ln 2."""
LARGEST = 711.0
"""sinh and cosh overflow before this."""


def _parts(p: Primitives, x: Value) -> tuple[Value, ...]:
    """``(biased, w, hi, even, odd)`` of ``|x|``; ``scale(., biased)`` is times 2^(k-1)."""
    size = p.abs(x)
    size = p.where(size > LARGEST, LARGEST, size)
    k, biased, hi, lo = reduce_exponent(p, size, BIAS - 1)
    w = inverse_power(p, k + k, (2 * (BIAS - 1) + 1023) - biased - biased)
    r = hi - lo
    z = r * r
    zz = z * z
    even = z * polynomial(z, zz, polynomials()["expm1"].c[0::2])
    odd = r * z * polynomial(z, zz, polynomials()["expm1"].c[1::2]) - lo
    return biased, w, hi, even, odd


def sinh(p: Primitives, x: Value) -> Value:
    """Hyperbolic sine."""
    biased, w, hi, even, odd = _parts(p, x)
    one, lost = fast_two_sum(1.0, -w)
    s1, e1 = fast_two_sum(one, hi)
    s2, e2 = fast_two_sum(s1, w * hi)
    tail = one * even + ((1.0 + w) * odd + lost)
    return p.copysign(scale(p, s2 + ((e1 + e2) + tail), biased), x)


def cosh(p: Primitives, x: Value) -> Value:
    """Hyperbolic cosine."""
    biased, w, hi, even, odd = _parts(p, x)
    one, lost = fast_two_sum(1.0, w)
    total, error = fast_two_sum(one, hi)
    tail = (one * even + ((1.0 - w) * odd + lost)) - w * hi
    return scale(p, total + (error + tail), biased)


def tanh(p: Primitives, x: Value) -> Value:
    """Hyperbolic tangent: what is exact and near, plus one quotient that is small beside it.

    Up to 0.6 that is ``|x|``. Beyond, with ``|x| = k ln2/2 + r``, ``tanh(r) = odd / even`` and
    ``w = 2**-k``, it is ``1 - 2w + 2w**2``, within 0.09 of the result.
    """
    size = p.abs(x)
    size = p.where(size > 20.0, 20.0, size)
    small = size < 0.6
    shifted = p.where(small, ROUNDER, size * TWO_LOG2_E + ROUNDER)
    k = shifted - ROUNDER
    w = p.from_bits((1023 - p.bits(shifted)) << 52)
    r = (size - k * HALF_LN2_HIGH) - k * HALF_LN2_LOW
    z = r * r
    (n0, n1, n2), (d0, d1, d2, _) = polynomials()["tanh"].c, polynomials()["tanh"].over
    tail = z * ((n2 * z + n1) * z + n0)
    even = ((z + d2) * z + d1) * z + d0
    odd = r * (even + tail)
    rest, twice = 1.0 - w, w + w
    near = p.where(small, size, 1.0 - twice * rest)
    top = p.where(small, r * tail, (1.0 + rest * rest) * odd - (w * w) * even)
    return p.copysign(near + twice * top / ((1.0 + w) * even + rest * odd), x)


def _root_of_pair(p: Primitives, h: Value, low: Value) -> tuple[Value, Value]:
    """Square root of ``h + low > 0`` as a pair."""
    root = p.sqrt(h)
    upper, rest = halves(p, root)
    square_error = ((h - upper * upper) - 2.0 * upper * rest) - rest * rest
    return root, 0.5 * (square_error + low) / root


def arcsinh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic sine: ``log(|x| + sqrt(x**2 + 1))``."""
    size = p.abs(x)
    large = size > 2.0**30
    a = p.where(large, 1.0, size)
    square, error = two_product(p, a, a)
    h, e = two_sum(1.0, square)
    rh, rl = _root_of_pair(p, h, e + error)
    uh, ul = two_sum(rh, a)
    # sqrt(x**2 + 1) = |x| for large x: log(2|x|).
    h, low = p.where(large, size, uh), p.where(large, 0.0, ul + rl)
    y = log_of_pair(p, h, low, p.where(large, 1.0, 0.0))
    y = p.where(size < 2.0**-28, size, y)
    return p.where(size < INF, p.copysign(y, x), x)


def arccosh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic cosine: ``log(1 + t + sqrt(t (t + 2)))`` with ``t = x - 1``."""
    large = x > 2.0**30
    t = p.where(large, 1.0, x) - 1.0
    sh, sl = two_sum(2.0, t)
    square, error = two_product(p, t, sh)
    # The tiny term keeps x = 1 from dividing by zero; it is lost beside any other t.
    rh, rl = _root_of_pair(p, square + 1e-300, error + t * sl)
    fh, fl = fast_two_sum(rh, t)
    fh, fe = two_sum(fh, fl + rl)
    uh, ul = two_sum(1.0, fh)
    h, low = p.where(large, x, uh), p.where(large, 0.0, ul + fe)
    y = log_of_pair(p, h, low, p.where(large, 1.0, 0.0))
    y = p.where(x == 1.0, 0.0, y)
    return p.where(x >= 1.0, p.where(x == INF, INF, y), NAN)


def arctanh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic tangent: ``log1p(2|x| / (1 - |x|)) / 2``."""
    size = p.abs(x)
    n = size + size
    dh, dl = two_sum(1.0, -size)
    q, remainder, inverse = pairs.divide(p, n, dh)
    low = (remainder - q * dl) * inverse
    uh, ul = two_sum(1.0, q)
    y = 0.5 * log_of_pair(p, uh, ul + low)
    y = p.where(size < 2.0**-28, size, y)
    y = p.where(size == 1.0, INF, y)
    return p.copysign(p.where(size <= 1.0, y, NAN), x)
