"""pow, cbrt, hypot and fmod: functions whose inner results need more than 53 bits.

pow is ``exp(y log x)`` with a logarithm to about 2^-68 relative, since its absolute error is
multiplied by up to 745 (Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., ch. 10).
hypot adds back the rounding errors of the squares and of the root (Borges, "Algorithm 1014: an
improved algorithm for hypot(x, y)", ACM TOMS 47, 2020).
fmod is exact, by long division of the significands: ``x = mx 2^ex`` and ``y = my 2^ey`` with 53-bit
integers, and the remainder of ``mx 2^(ex - ey)`` by ``my`` is found ten bits at a time, since a
53-bit remainder shifted by ten still fits int64.

Legend: ``r`` remainder so far, ``n`` bits of the exponent difference left.
"""

from __future__ import annotations

from archimedes.graph.elementary import coefficients, exponential
from archimedes.graph.elementary.coefficients import polynomials
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial, two_product
from archimedes.graph.elementary.primitives import INF, NAN, Primitives, Value

ONE_BITS = 0x3FF0000000000000


def log_pair(p: Primitives, x: Value) -> tuple[Value, Value]:
    """``log(x)`` of a finite ``x > 0`` as a pair, to about 2^-68 relative.

    ``x = 2^k m``, ``m`` times a ten-bit reciprocal is ``1 + r`` exactly with ``|r| < 2^-7``, and
    ``log(1 + r) = r - r**2/2 + r**3 P(r)``.
    """
    table = coefficients.logarithm_table()
    k, m, below = exponential.split_exponent(p, x, coefficients.START)
    i = p.shift_right_logical(below, coefficients.INDEX_SHIFT)
    reciprocal = p.lookup(table.reciprocals, i)
    m_high, m_low = halves(p, m)
    r, r_error = fast_two_sum(m_high * reciprocal - 1.0, m_low * reciprocal)
    r_high, r_rest = halves(p, r)
    square_high = 0.5 * r_high * r_high
    square_low = 0.5 * (r_rest + r_error) * (r + r_high)
    cube = r * r * r * polynomial(r, r * r, polynomials()["log1p"].c)
    t1, e1 = fast_two_sum(k * exponential.LN2_HIGH + p.lookup(table.high, i), r)
    t2, e2 = fast_two_sum(t1, -square_high)
    small = (k * exponential.LN2_LOW + p.lookup(table.low, i)) + (r_error - square_low)
    return fast_two_sum(t2, (e1 + e2) + (small + cube))


def pow(p: Primitives, x: Value, y: Value) -> Value:
    """x to the power y, with the special cases of C's pow."""
    size = p.abs(x)
    lh, ll = log_pair(p, size)
    # Beyond 2^66 every y overflows, underflows or leaves 1; the limit keeps products finite.
    limited = exponential.clamp(p, y, -(2.0**66), 2.0**66)
    high, low = two_product(p, limited, lh)
    result = exponential.exp_of_pair(p, high, low + limited * ll)

    rising = y > 0.0
    result = p.where(size == 0.0, p.where(rising, 0.0, INF), result)
    result = p.where(size == INF, p.where(rising, INF, 0.0), result)
    half = 0.5 * y
    whole = p.floor(y) == y
    odd = whole & (p.floor(half) != half)
    result = p.where((p.bits(x) < 0) & odd, -result, result)
    result = p.where((x < 0.0) & (size < INF) & ~whole, NAN, result)
    result = p.where((x != x) | (y != y), NAN, result)
    return p.where((x == 1.0) | (y == 0.0), 1.0, result)


def cbrt(p: Primitives, x: Value) -> Value:
    """Cube root.

    A cubic guess of 7 bits, one step of Halley's method, and a second one from a guess of 26 bits,
    whose square is exact: the error is at most 0.67 ulp.
    """
    size = p.abs(x)
    k, m, _ = exponential.split_exponent(p, size, ONE_BITS)
    third = p.floor((k + 0.5) * (1.0 / 3.0))
    rest = k - 3.0 * third
    m = m * p.where(rest == 0.0, 1.0, p.where(rest == 1.0, 2.0, 4.0))
    t = polynomial(m, m * m, polynomials()["cbrt"].c)
    cube = t * t * t
    t = t * (cube + (m + m)) / ((cube + cube) + m)
    t, _ = halves(p, t)
    q = m / (t * t)
    root = t + t * (q - t) / ((t + t) + q)
    y = root * p.from_bits((p.bits(third + exponential.ROUNDER) + 1023) << 52)
    return p.where((size > 0.0) & (size < INF), p.copysign(y, x), x)


def hypot(p: Primitives, x: Value, y: Value) -> Value:
    """Length of the vector (x, y), without overflow of the squares."""
    size_x, size_y = p.abs(x), p.abs(y)
    swapped = size_x < size_y
    a = p.where(swapped, size_y, size_x)
    b = p.where(swapped, size_x, size_y)
    large, small = a > 2.0**500, a < 2.0**-400
    factor = p.where(large, 2.0**-600, p.where(small, 2.0**600, 1.0))
    back = p.where(large, 2.0**600, p.where(small, 2.0**-600, 1.0))
    a, b = a * factor, b * factor
    a_square, a_error = two_product(p, a, a)
    b_square, b_error = two_product(p, b, b)
    h, e = fast_two_sum(a_square, b_square)
    root = p.sqrt(h)
    high, low = halves(p, root)
    root_error = ((h - high * high) - 2.0 * high * low) - low * low
    # The tiny term keeps (0, 0) from dividing by zero.
    root = root + (root_error + (e + (a_error + b_error))) / (root + root + 1e-300)
    return p.where((size_x == INF) | (size_y == INF), INF, root * back)


STEP = 10
LIMIT = 210
"""The exponents of float64 differ by at most 2098 bits."""


def _integer_parts(p: Primitives, size: Value) -> tuple[Value, Value]:
    """``(m, e)`` of a finite ``size >= 0``: ``size = m * 2^(e - 1075)``, subnormals included."""
    bits = p.bits(size)
    field = p.shift_right_logical(bits, 52)
    fraction = bits & ((1 << 52) - 1)
    normal = field > 0
    return p.where(normal, fraction | (1 << 52), fraction), p.where(normal, field, 1)


def fmod(p: Primitives, x: Value, y: Value) -> Value:
    """Remainder of x by y with the sign of x, as C's fmod: always exact."""
    size_x, size_y = p.abs(x), p.abs(y)
    proper = (size_x >= size_y) & (size_y > 0.0) & (size_x < INF)
    mx, ex = _integer_parts(p, p.where(proper, size_x, 1.0))
    my, ey = _integer_parts(p, p.where(proper, size_y, 1.0))

    def is_unfinished(r: Value, n: Value, my: Value) -> Value:
        return (n > 0) & (r > 0)

    def divide(r: Value, n: Value, my: Value) -> tuple[Value, ...]:
        step = p.where(n < STEP, n, STEP)
        return p.int_rem(r << step, my), n - step, my

    r, _, _ = p.loop(is_unfinished, divide, (p.int_rem(mx, my), ex - ey, my), LIMIT)
    rest = (p.to_float(r) * 2.0**-52) * p.from_bits(ey << 52)
    y_or_nan = p.where((size_x < INF) & (size_y > 0.0), x, NAN)
    return p.where(proper, p.copysign(rest, x), y_or_nan)
