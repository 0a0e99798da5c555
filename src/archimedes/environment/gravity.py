"""Gravity models: callables ``g_E = model(p_E)`` that give attraction alone, in m/s^2.

The centrifugal part of what a plumb line shows belongs to the rotating frame, not to the field:
bodies described in rotating axes add it themselves (`EarthReferencedBody` does). Positions p_E
(..., 3) are in m from the planet's centre, in any axes for the round models and in Earth-fixed axes
for the others. Every model is a struct: its parameters can be traced and differentiated.

Normal gravity is the field of an ellipsoid whose surface is level. Legend: (u, beta) are
ellipsoidal coordinates, rho = sqrt(u^2 + E^2) cos(beta), z = u sin(beta), with E the distance of
the foci from the centre; q and q' are the functions of Heiskanen and Moritz, here with their
leading powers taken out, so that a sphere (E = 0) is an ordinary case.
Source: Heiskanen and Moritz, Physical Geodesy, 1967, equations 2-58 to 2-67.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct, check_vector, concrete
from archimedes.environment.geodesy import WGS84, Ellipsoid
from archimedes.portable_numpy import arctan
from archimedes.spatial.components import cross, matvec, polynomial
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Vec3

__all__ = [
    "J2Gravity",
    "NormalGravity",
    "PointMassGravity",
    "ThirdBodyGravity",
    "UniformGravity",
    "gravity_gradient_torque",
]


def check_away_from_centre(p: Vec3, name: str = "p_E") -> Any:
    """Return positions (..., 3); known ones at the centre are refused."""
    p = check_vector(p, 3, name)
    values = concrete(p)
    if values is not None and np.any(np.all(values == 0.0, axis=-1)):
        raise ValueError(f"{name} is the centre of the planet, where the attraction is not defined")
    return p


def length_squared(p: Vec3) -> Any:
    """Return the squared length of vectors (..., 3)."""
    return p[..., 0] ** 2 + p[..., 1] ** 2 + p[..., 2] ** 2


@struct
class UniformGravity:
    """The same attraction everywhere, for a flat Earth.

    Parameters
    ----------
    g_E : array (3,), optional
        Gravitational acceleration in m/s^2. By default 9.80665 m/s^2 downwards.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import UniformGravity
    >>> UniformGravity(np.array([0.0, 0.0, 9.81]))(np.zeros(3))
    array([0.  , 0.  , 9.81])
    """

    g_E: Any = field(units="m/s^2", default_factory=lambda: np.array([0.0, 0.0, 9.80665]))

    def __post_init__(self) -> None:
        """Check the vector."""
        check_vector(self.g_E, 3, "UniformGravity.g_E")

    def __call__(self, p_E: Vec3) -> Any:
        """Return the attraction (..., 3) at positions (..., 3)."""
        p_E = check_vector(p_E, 3, "p_E")
        return np.zeros_like(p_E) + as_array(self.g_E, "g_E")


@struct
class PointMassGravity:
    """Newton's attraction of a point, or of any round body, outside it.

    Parameters
    ----------
    mu : float, optional
        Gravitational parameter in m^3/s^2. By default that of the Earth.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import PointMassGravity
    >>> PointMassGravity()(np.array([7e6, 0.0, 0.0])).round(6)
    array([-8.134703, -0.      , -0.      ])
    """

    mu: float = field(units="m^3/s^2", default=WGS84.mu)

    def __post_init__(self) -> None:
        """Check the parameter where it is known."""
        check_struct(self, positive="mu")

    def __call__(self, p_E: Vec3) -> Any:
        """Return the attraction (..., 3) at positions (..., 3) from the centre."""
        p_E = check_away_from_centre(p_E)
        r2 = length_squared(p_E)
        return -(self.mu / (r2 * np.sqrt(r2)))[..., None] * p_E


@struct
class J2Gravity:
    """A point mass and the second zonal harmonic: the flattening of the planet.

    Source: Vallado, Fundamentals of Astrodynamics and Applications, 4th ed., section 8.6.

    Parameters
    ----------
    mu : float, optional
        Gravitational parameter in m^3/s^2. By default that of the Earth.
    radius : float, optional
        Equatorial radius in m.
    J2 : float, optional
        Second zonal harmonic. By default that of WGS84.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import J2Gravity
    >>> J2Gravity()(np.array([6378137.0, 0.0, 0.0])).round(4)
    array([-9.8142, -0.    , -0.    ])
    """

    mu: float = field(units="m^3/s^2", default=WGS84.mu)
    radius: float = field(units="m", default=WGS84.a)
    J2: float = field(units="", default=WGS84.J2)

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_struct(self, positive="mu radius")

    def __call__(self, p_E: Vec3) -> Any:
        """Return the attraction (..., 3) at positions (..., 3), z along the axis of rotation."""
        p_E = check_away_from_centre(p_E)
        r2 = length_squared(p_E)
        z2 = 5.0 * p_E[..., 2] ** 2 / r2
        k = 1.5 * self.J2 * self.radius**2 / r2
        across, along = 1.0 + k * (1.0 - z2), 1.0 + k * (3.0 - z2)
        factors = np.stack([across, across, along], axis=-1)
        return -(self.mu / (r2 * np.sqrt(r2)))[..., None] * (p_E * factors)


@struct
class ThirdBodyGravity:
    """The tidal attraction by another body.

    It is the attraction of a position relative to that of the centre of the planet. Call the model
    as ``model(p, t)``. The formula avoids cancellation if the other body is far away (Battin, An
    Introduction to the Mathematics and Methods of Astrodynamics, section 8.3).

    Parameters
    ----------
    mu : float
        Gravitational parameter of the other body in m^3/s^2.
    position : callable
        Function of the time that returns the position (3,) in m of the other body from the centre
        of the planet, in the (inertial) axes of the positions.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ThirdBodyGravity
    >>> moon = ThirdBodyGravity(4.9028e12, lambda t: np.array([3.844e8, 0.0, 0.0]))
    >>> (1e6 * moon(np.array([7e6, 0.0, 0.0]), 0.0)).round(3)
    array([ 1.242, -0.   , -0.   ])
    """

    mu: float = field(units="m^3/s^2")
    position: Any = field(static=True)

    def __call__(self, p: Vec3, t: Scalar = 0.0) -> Any:
        """Return the perturbing acceleration (..., 3) at positions (..., 3)."""
        p = check_vector(p, 3, "p")
        s = check_vector(self.position(t), 3, "position(t)")
        d = p - s
        s2, d2 = length_squared(s), length_squared(d)
        # q = d^2 / s^2 - 1, and f(q) = (1 + q)^(3/2) - 1 without the subtraction.
        q = np.sum(p * (p - 2.0 * s), axis=-1) / s2
        f = q * (3.0 + 3.0 * q + q * q) / (1.0 + (1.0 + q) * np.sqrt(1.0 + q))
        return -(self.mu / (d2 * np.sqrt(d2)))[..., None] * (p + f[..., None] * s)


def gravity_gradient_torque(mu: Scalar, r_B: Vec3, J_B: Matrix) -> Any:
    """Return the moment on a body in the gravity field of a round planet, ``3 mu / r^5 (r x J r)``.

    Parameters
    ----------
    mu : float
        Gravitational parameter in m^3/s^2.
    r_B : array (..., 3)
        Position in m of the body from the centre of the planet, in body axes.
    J_B : array (..., 3, 3)
        Inertia in kg m^2 about the centre of mass, in body axes.

    Returns
    -------
    array (..., 3)
        Moment in N m, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import gravity_gradient_torque
    >>> r_B = 7e6 * np.array([0.6, 0.8, 0.0])
    >>> gravity_gradient_torque(3.986e14, r_B, np.diag([1.0, 2.0, 3.0])).round(9)
    array([0.000e+00, 0.000e+00, 1.673e-06])
    """
    r_B = check_away_from_centre(r_B, "r_B")
    r2 = length_squared(r_B)
    u = r_B / np.sqrt(r2)[..., None]
    return (3.0 * mu / (r2 * np.sqrt(r2)))[..., None] * cross(u, matvec(as_array(J_B, "J_B"), u))


#: Coefficients of Q and Q' in powers of (E / u)^2: alternating series for (E / u)^2 below one.
_TERMS = 12
_Q = [(-1) ** (n + 1) * 2.0 * n / ((2 * n + 1) * (2 * n + 3)) for n in range(1, _TERMS + 1)]
_DQ = [(-1) ** (n + 1) * 6.0 / ((2 * n + 1) * (2 * n + 3)) for n in range(1, _TERMS + 1)]
#: Up to here the series are exact to rounding; beyond, the closed forms have lost little.
_SMALL = 0.04


def _q(x2: Scalar) -> Any:
    """Return ``q / x^3`` with q = ((1 + 3 / x^2) atan(x) - 3 / x) / 2, for x^2."""
    large = np.where(x2 > _SMALL, x2, 1.0)
    x = np.sqrt(large)
    closed = 0.5 * ((1.0 + 3.0 / large) * arctan(x) - 3.0 / x) / (x * large)
    return np.where(x2 > _SMALL, closed, polynomial(_Q, np.minimum(x2, _SMALL)))


def _dq(x2: Scalar) -> Any:
    """Return ``q' / x^2`` with q' = 3 (1 + 1 / x^2) (1 - atan(x) / x) - 1, for x^2."""
    large = np.where(x2 > _SMALL, x2, 1.0)
    x = np.sqrt(large)
    closed = (3.0 * (1.0 + 1.0 / large) * (1.0 - arctan(x) / x) - 1.0) / large
    return np.where(x2 > _SMALL, closed, polynomial(_DQ, np.minimum(x2, _SMALL)))


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

    def __call__(self, p_E: Vec3) -> Any:
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
