"""arcsin, arccos, arctan and arctan2.

arcsin and arccos share one polynomial on [0, 1/4]: in ``x**2`` for ``|x| <= 1/2``, otherwise in
``(1 - |x|)/2`` through ``arcsin(x) = pi/2 - 2 arcsin(sqrt((1 - x)/2))`` (Abramowitz and Stegun
4.4.32), the rounding error of the root being added back.

The arctangents reduce the smaller over the larger side, ``t = a/b``, to ``(a - b)/(a + b)`` at
``pi/4`` where ``t > 1/2`` (so that ``a - b`` is exact), and correct the quotient by its remainder.

Legend: ``turns`` multiples of pi/4 that the angle starts from; ``q, ql`` reduced tangent.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import ARCSIN, ARCTAN
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial
from archimedes.graph.elementary.primitives import Primitives, Value
from archimedes.graph.elementary.reduction import HALF_PI_HIGH, HALF_PI_LOW

__all__ = ["arccos", "arcsin", "arctan", "arctan2"]

INF = float("inf")
QUARTER_PI_HIGH = float.fromhex("0x1.921fb54442d10p-1")
"""Upper 49 bits of pi/4: its product with 0 to 4 is exact."""
QUARTER_PI_LOW = float.fromhex("0x1.08d313198a2e0p-50")


def _arcsin_parts(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """``(small, s, tail)``.

    ``arcsin(x) = s + tail`` where ``small`` (|x| <= 1/2); otherwise
    ``arcsin(sqrt((1 - |x|)/2)) = s + tail``.
    """
    size = p.abs(x)
    small = size <= 0.5
    z = p.where(small, x * x, 0.5 - 0.5 * size)
    root = p.sqrt(z)
    high, _ = halves(p, root)
    # z - root**2 over twice the root; the tiny term keeps |x| = 1 from dividing by zero.
    lost = (z - high * high) / (root + high + 1e-300) - (root - high)
    s = p.where(small, x, root)
    tail = s * (z * polynomial(z, z * z, ARCSIN.c))
    return small, s, p.where(small, tail, tail + lost)


def arcsin(p: Primitives, x: Value) -> Value:
    """Inverse sine, in radians."""
    small, s, tail = _arcsin_parts(p, x)
    h, e = fast_two_sum(HALF_PI_HIGH, -2.0 * s)
    large = h + (e + (HALF_PI_LOW - 2.0 * tail))
    return p.copysign(p.where(small, s + tail, large), x)


def arccos(p: Primitives, x: Value) -> Value:
    """Inverse cosine, in radians."""
    small, s, tail = _arcsin_parts(p, x)
    negative = x < 0.0
    factor = p.where(small, -1.0, p.where(negative, -2.0, 2.0))
    start = p.where(small, 1.0, p.where(negative, 2.0, 0.0))
    h, e = fast_two_sum(start * HALF_PI_HIGH, factor * s)
    return h + (e + (start * HALF_PI_LOW + factor * tail))


def _angle(p: Primitives, a: Value, b: Value, swapped: Value, obtuse: Value | None = None) -> Value:
    """Angle between 0 and pi whose reference triangle has the sides ``a <= b``.

    ``arctan(a/b)``, taken from pi/2 where ``swapped``, then from pi where ``obtuse``. Neither
    ``b`` nor ``a/b`` may leave the range in which reciprocals and remainders are exact.
    """
    reduced = a + a > b
    a_part = p.where(reduced, a, 0.0)
    numerator = a - p.where(reduced, b, 0.0)
    d = b + a_part
    d_error = a_part - (d - b)
    inverse = 1.0 / d
    q = numerator * inverse
    qh, ql = halves(p, q)
    dh, dl = halves(p, d)
    remainder = ((numerator - qh * dh) - qh * dl) - ql * d
    low = (remainder - q * d_error) * inverse
    z = q * q
    tail = q * z * polynomial(z, z * z, ARCTAN.c) + low

    turns = p.where(reduced, 1.0, 0.0)
    turns = p.where(swapped, 2.0 - turns, turns)
    sign = p.where(swapped, -1.0, 1.0)
    if obtuse is not None:
        turns = p.where(obtuse, 4.0 - turns, turns)
        sign = p.where(obtuse, -sign, sign)
    h, e = fast_two_sum(turns * QUARTER_PI_HIGH, sign * q)
    return h + (e + (turns * QUARTER_PI_LOW + sign * tail))


def arctan(p: Primitives, x: Value) -> Value:
    """Inverse tangent, in radians."""
    size = p.abs(x)
    # Beyond 2^60 the result is pi/2 to the last bit; below 2^-30 it is x.
    inner = p.where(size > 2.0**60, 2.0**60, size)
    swapped = inner > 1.0
    a = p.where(swapped, 1.0, inner)
    b = p.where(swapped, inner, 1.0)
    angle = _angle(p, a, b, swapped)
    return p.where(size < 2.0**-30, x, p.copysign(angle, x))


def arctan2(p: Primitives, y: Value, x: Value) -> Value:
    """Angle of the point (x, y), in radians, between -pi and pi."""
    size_x, size_y = p.abs(x), p.abs(y)
    swapped = size_y > size_x
    a = p.where(swapped, size_x, size_y)
    b = p.where(swapped, size_y, size_x)
    # An infinite side: the other one is zero beside it, unless both are.
    infinite = b == INF
    a = p.where(infinite, p.where(a == INF, 1.0, p.where(a < INF, 0.0, a)), a)
    b = p.where(infinite, 1.0, b)
    # Keep products and reciprocals away from overflow and from subnormals; 0/0 becomes 0.
    factor = p.where(b > 2.0**500, 2.0**-400, 2.0**500)
    b = b * factor + 2.0**-1000
    angle = _angle(p, a * factor, b, swapped, p.bits(x) < 0)
    return p.copysign(angle, y)
