"""The normal quantile as plain NumPy, so that recorded it gives the same bits on every machine.

Source: M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied
Statistics 37(3), 1988, routine PPND16 (relative accuracy about 1e-16). Three rational functions:
one for the middle, two for the tails in r = sqrt(-log(p)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["normal_quantile"]

# Coefficients of rising powers, numerator and denominator.
CENTRE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
TAIL = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
FAR_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


def rational(pair: Sequence[Sequence[float]], x: Any) -> Any:
    return polynomial(pair[0], x) / polynomial(pair[1], x)


def normal_quantile(p: Any) -> Any:
    """Return z with P(Z <= z) = p for a standard normal Z; `p` any shape, 0 < p < 1.

    >>> float(normal_quantile(0.975).round(6))
    1.959964
    """
    q = p - 0.5
    middle = np.abs(q) <= 0.425
    near = q * rational(CENTRE, 0.180625 - q * q)
    # Where the middle applies, the tails see a number that they can digest.
    smaller = np.where(middle, 0.075, np.minimum(p, 1.0 - p))
    r = np.sqrt(-np.log(smaller))
    outside = np.where(r <= 5.0, rational(TAIL, r - 1.6), rational(FAR_TAIL, r - 5.0))
    return np.where(middle, near, np.where(q < 0.0, -outside, outside))
