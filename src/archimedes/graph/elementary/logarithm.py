"""log, log2, log10, log1p, and the logarithm of a pair.

Method: ``u = 2^k m`` with ``m`` between ``sqrt(1/2)`` and ``sqrt(2)``, ``f = m - 1`` and
``s = f / (2 + f)``; then ``log(m) = log((1+s)/(1-s))`` is odd in s (Abramowitz and Stegun 4.1.28)
and ``log(m) = f - (f**2/2 - s (f**2/2 + R(s**2)))``, where f is exact and the rest is small.

Legend: ``k`` exponent (float), ``f`` as above, ``square`` ``f**2/2``, ``rest`` what is added to
``f - square``.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import LOG
from archimedes.graph.elementary.exponential import LN2_HIGH, LN2_LOW
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial, two_sum
from archimedes.graph.elementary.primitives import Primitives, Value

__all__ = ["log", "log1p", "log2", "log10", "log_of_pair", "split_exponent"]

INF = float("inf")
NAN = float("nan")
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
    rest = s * (square + z * polynomial(z, z * z, LOG.c))
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
