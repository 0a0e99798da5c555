r"""Stumpff functions, of which every formula for rotations and rigid motions is made.

``stumpff((k,), x)`` is :math:`c_k(x) = \sum_i (-x)^i / (k + 2i)!`, with x the squared angle:
c0 = cos(a), c1 = sin(a)/a, c2 = (1 - cos a)/a^2, c3 = (a - sin a)/a^3, and so on. As functions of
the squared angle they are smooth at zero, so derivatives through them are exact there, where
formulas with the norm of the rotation vector divide zero by zero. The recursion is
``c[k] = 1/k! - x c[k+2]`` and the derivative ``c[k]' = (k c[k+2] - c[k+1]) / 2``
(Danby, Fundamentals of Celestial Mechanics, 1988, 6.9). For negative x, the squared angle of a
hyperbola, cosine and sine become hyperbolic.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from archimedes.spatial.components import atan2, cos, polynomial, select, sin, sqrt
from archimedes.typing import Scalar

#: Below this squared angle the series is used; there ten terms reach 1e-18.
LIMIT = 1.0
SERIES = {k: [(-1.0) ** i / factorial(k + 2 * i) for i in range(10)] for k in range(6)}
ARCTAN = [(-1.0) ** i / (2 * i + 1) for i in range(9)]


def stumpff(orders: tuple[int, ...], x: Scalar, signed: bool = False) -> list[Any]:
    """Return ``c[k](x)`` for each order k from 0 to 5, for x >= 0, or for any x if `signed`.

    >>> import numpy as np
    >>> stumpff((0, 1), 0.0)
    [1.0, 1.0]
    >>> np.allclose(stumpff((2,), np.array([0.0, np.pi**2])), [[0.5, 2 / np.pi**2]])
    True
    """
    size: Any = abs(x) if signed else x
    small = size < LIMIT
    near = select(small, x, 0.0)
    far = select(small, LIMIT, x)
    angle = sqrt(abs(far) if signed else far)
    closed = [cos(angle), sin(angle) / angle]
    if signed:
        negative: Any = far < 0.0
        turn = select(negative, angle, 1.0)
        closed[0] = select(negative, np.cosh(turn), closed[0])
        closed[1] = select(negative, np.sinh(turn) / turn, closed[1])
    for k in range(max(orders) - 1):
        closed.append((1.0 / factorial(k) - closed[k]) / far)
    return [select(small, polynomial(SERIES[k], near), closed[k]) for k in orders]


def arctan_ratio(squared: Scalar, w: Scalar, signed: bool = False) -> Any:
    """Return ``atan2(n, w) / n`` for ``n = sqrt(squared)`` and w >= 0, not both zero.

    Even in n, hence smooth at n = 0; the series in n/w is used below n/w = 0.1. If `signed`, a
    negative square gives ``artanh(n / w) / n`` with ``n = sqrt(-squared)``, nan from n = w on.
    """
    size: Any = abs(squared) if signed else squared
    small = size < 0.01 * w * w
    near = select(small, squared, 0.0) / select(small, w * w, 1.0)
    far = select(small, 1.0, squared)
    n = sqrt(abs(far) if signed else far)
    ratio = atan2(n, w) / n
    if signed:
        negative: Any = far < 0.0
        inside: Any = negative & (n < w)
        top, bottom = select(inside, w + n, 1.0), select(inside, w - n, 1.0)
        area = select(inside, 0.5 * np.log(top / bottom), np.nan)
        ratio = select(negative, area / n, ratio)
    return select(small, polynomial(ARCTAN, near) / select(small, w, 1.0), ratio)
