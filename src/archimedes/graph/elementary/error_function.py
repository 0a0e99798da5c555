"""erf and erfc.

Near zero ``erf(x) = x + x P(x**2)``; elsewhere ``erfc(x) = exp(-x**2) R(x)`` with the square as a
pair, and R a polynomial in ``t = (x - 3)/(x + 3)`` over ``1 + 2 x``.
"""

from __future__ import annotations

from archimedes.graph.elementary.exponential import exp_of_pair
from archimedes.graph.elementary.pairs import polynomial, two_product
from archimedes.graph.elementary.primitives import Primitives, Value
from archimedes.graph.elementary.special_coefficients import ERF, ERFCX

__all__ = ["erf", "erfc"]

NEAR = 0.848
"""erf by its own polynomial up to here: x**2 < 0.72."""
NEAR_TAIL = 0.46
"""erfc by its own formula from here, where 1 - erf would lose digits."""
LARGEST = 28.0
"""erfc is zero before this."""


def _near(p: Primitives, x: Value) -> Value:
    """erf(x) for |x| up to NEAR."""
    z = x * x
    return x + x * polynomial(z, z * z, ERF.c)


def _tail(p: Primitives, size: Value) -> Value:
    """erfc(size) for sizes from NEAR_TAIL."""
    u = p.where(size < LARGEST, p.where(size < NEAR_TAIL, 1.0, size), LARGEST)
    high, low = two_product(p, u, u)
    t = (u - 3.0) / (u + 3.0)
    return exp_of_pair(p, -high, -low) * (polynomial(t, t * t, ERFCX.c) / (1.0 + 2.0 * u))


def erf(p: Primitives, x: Value) -> Value:
    """Error function."""
    size = p.abs(x)
    far = size > NEAR
    y = p.where(far, p.copysign(1.0 - _tail(p, size), x), _near(p, p.where(far, 0.0, x)))
    return p.where(x == 0.0, x, y)


def erfc(p: Primitives, x: Value) -> Value:
    """Complement of the error function: 1 - erf(x), accurate where that is small."""
    size = p.abs(x)
    tail = _tail(p, size)
    far = size > NEAR
    near = 1.0 - _near(p, p.where(far, 0.0, x))
    y = p.where(far, 2.0 - tail, near)
    return p.where(x > NEAR_TAIL, tail, y)
