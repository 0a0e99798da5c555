"""sin, cos and tan of one shared reduction and two shared polynomials.

A model that uses both sin and cos of an angle pays once for both: their programs make the same
subexpressions, which the graph shares.

Legend: ``hi, lo`` reduced angle ``hi - lo``; ``z = hi**2``.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import COS, SIN
from archimedes.graph.elementary.pairs import divide_pairs, fast_two_sum, halves, polynomial
from archimedes.graph.elementary.primitives import Primitives, Value
from archimedes.graph.elementary.reduction import reduce_angle

__all__ = ["cos", "sin", "tan"]


def _sin_tail(hi: Value, lo: Value, z: Value, zz: Value) -> Value:
    """``hi - sin(hi - lo)``.

    It is +0, never -0, when hi is a zero, so that ``hi - tail`` keeps the sign of a zero.
    """
    return lo - hi * z * polynomial(z, zz, SIN.c)


def _cos_parts(hi: Value, lo: Value, z: Value, zz: Value) -> tuple[Value, Value]:
    """``cos(hi - lo)`` as ``1 - z/2`` rounded and what it lacks."""
    half = 0.5 * z
    w = 1.0 - half
    return w, ((1.0 - w) - half) + (zz * polynomial(z, zz, COS.c) + hi * lo)


def _sin_and_cos(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """Sine and cosine of the reduced angle, and the quadrant."""
    hi, lo, quadrant = reduce_angle(p, x)
    z = hi * hi
    zz = z * z
    w, c = _cos_parts(hi, lo, z, zz)
    return hi - _sin_tail(hi, lo, z, zz), w + c, quadrant


def _signed(p: Primitives, x: Value, turn: Value) -> Value:
    """``x`` negated where bit 1 of ``turn`` is set."""
    return p.from_bits(p.bits(x) ^ ((turn & 2) << 62))


def sin(p: Primitives, x: Value) -> Value:
    """Sine of an angle in radians."""
    s, c, quadrant = _sin_and_cos(p, x)
    return _signed(p, p.where((quadrant & 1) == 0, s, c), quadrant)


def cos(p: Primitives, x: Value) -> Value:
    """Cosine of an angle in radians."""
    s, c, quadrant = _sin_and_cos(p, x)
    return _signed(p, p.where((quadrant & 1) == 0, c, s), quadrant + 1)


def tan(p: Primitives, x: Value) -> Value:
    """Tangent of an angle in radians: the quotient of sine and cosine as pairs."""
    hi, lo, quadrant = reduce_angle(p, x)
    z = hi * hi
    zz = z * z
    # Two errors that sin and cos alone can afford: of z, and of lo in place of lo cos(hi).
    upper, rest = halves(p, hi)
    z_error = ((upper * upper - z) + 2.0 * upper * rest) + rest * rest
    w, c = _cos_parts(hi, lo, z, zz)
    ch, cl = fast_two_sum(w, c - 0.5 * z_error)
    sh, sl = fast_two_sum(hi, -_sin_tail(hi, lo * w, z, zz))
    even = (quadrant & 1) == 0
    quotient = divide_pairs(
        p,
        p.where(even, sh, ch),
        p.where(even, sl, cl),
        p.where(even, ch, -sh),
        p.where(even, cl, -sl),
    )
    return p.where(x == 0.0, x, quotient)
