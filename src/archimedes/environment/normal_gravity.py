"""The field of an ellipsoid whose surface is level: what "normal gravity" means in geodesy.

Legend: (u, beta) are ellipsoidal coordinates, rho = sqrt(u^2 + E^2) cos(beta), z = u sin(beta),
with E the distance of the foci from the centre; q and q' are the functions of Heiskanen and Moritz,
here with their leading powers taken out, so that a sphere (E = 0) is an ordinary case.
Source: Heiskanen and Moritz, Physical Geodesy, 1967, equations 2-58 to 2-67.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment.ellipsoid import WGS84, Ellipsoid
from archimedes.environment.gravity import check_away_from_centre
from archimedes.portable_numpy import arctan
from archimedes.tree import field, struct

__all__ = ["NormalGravity"]

#: Coefficients of Q and Q' in powers of (E / u)^2: alternating series for (E / u)^2 below one.
_TERMS = 12
_Q = [(-1) ** (n + 1) * 2.0 * n / ((2 * n + 1) * (2 * n + 3)) for n in range(1, _TERMS + 1)]
_DQ = [(-1) ** (n + 1) * 6.0 / ((2 * n + 1) * (2 * n + 3)) for n in range(1, _TERMS + 1)]
#: Up to here the series are exact to rounding; beyond, the closed forms have lost little.
_SMALL = 0.04


def _series(coefficients: list[float], x2: Any) -> Any:
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x2 + c
    return total


def _q(x2: Any) -> Any:
    """Return ``q / x^3`` with q = ((1 + 3 / x^2) atan(x) - 3 / x) / 2, for x^2."""
    large = np.where(x2 > _SMALL, x2, 1.0)
    x = np.sqrt(large)
    closed = 0.5 * ((1.0 + 3.0 / large) * arctan(x) - 3.0 / x) / (x * large)
    return np.where(x2 > _SMALL, closed, _series(_Q, np.minimum(x2, _SMALL)))


def _dq(x2: Any) -> Any:
    """Return ``q' / x^2`` with q' = 3 (1 + 1 / x^2) (1 - atan(x) / x) - 1, for x^2."""
    large = np.where(x2 > _SMALL, x2, 1.0)
    x = np.sqrt(large)
    closed = (3.0 * (1.0 + 1.0 / large) * (1.0 - arctan(x) / x) - 1.0) / large
    return np.where(x2 > _SMALL, closed, _series(_DQ, np.minimum(x2, _SMALL)))


@struct
class NormalGravity:
    """Attraction of a level ellipsoid: exact, closed, on and above its surface.

    With the centrifugal acceleration added, the result is normal to the ellipsoid's surface and of
    the size given by Somigliana's formula there.

    Parameters
    ----------
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import NormalGravity
    >>> NormalGravity()(np.array([6378137.0, 0.0, 0.0])).round(9)
    array([-9.81424104, -0.        , -0.        ])
    """

    ellipsoid: Ellipsoid = field(default_factory=lambda: WGS84)

    def __call__(self, p_E: Any) -> Any:
        """Return the attraction (..., 3) at positions (..., 3) in Earth-fixed axes."""
        p_E = check_away_from_centre(p_E)
        x, y, z = p_E[..., 0], p_E[..., 1], p_E[..., 2]
        a, b, mu = self.ellipsoid.a, self.ellipsoid.b, self.ellipsoid.mu
        E2 = a * a * self.ellipsoid.e2
        rho2 = x * x + y * y
        k = rho2 + z * z - E2
        u2 = 0.5 * (k + np.sqrt(k * k + 4.0 * E2 * z * z))
        v2 = u2 + E2
        u, v = np.sqrt(u2), np.sqrt(v2)
        sine2, cosine2 = z * z / u2, rho2 / v2
        w2 = (u2 + E2 * sine2) / v2
        spin = (self.ellipsoid.omega * a) ** 2
        q0 = _q(E2 / (b * b))
        # -gamma_u and gamma_beta / (sin cos), each times w.
        inward = mu / v2 + spin * b**3 / (u2 * v2) * _dq(E2 / u2) / q0 * (0.5 * sine2 - 1.0 / 6.0)
        turning = spin / v * (b / u) ** 3 * _q(E2 / u2) / q0
        across = -(inward * u / v + turning * sine2) / (w2 * v)
        along = (-inward + turning * cosine2 * u / v) / (w2 * u)
        return np.stack([x * across, y * across, z * along], axis=-1)
