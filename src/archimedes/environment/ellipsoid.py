"""Reference ellipsoids: shape, mass and rotation of a planet."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import concrete
from archimedes.tree import field, struct

__all__ = ["SPHERICAL_EARTH", "WGS84", "Ellipsoid"]


@struct
class Ellipsoid:
    """An ellipsoid of revolution that rotates about its short axis.

    Parameters
    ----------
    a : float
        Equatorial radius in m.
    f : float, optional
        Flattening. 0, the default, is a sphere.
    mu : float, optional
        Gravitational parameter in m^3/s^2.
    omega : float, optional
        Angular velocity in rad/s. 0, the default, is a planet at rest.
    J2 : float, optional
        Second zonal harmonic, positive for a flattened planet.

    Examples
    --------
    >>> from archimedes.environment import WGS84
    >>> round(WGS84.b, 4)
    6356752.3142
    """

    a: float = field(units="m")
    f: float = 0.0
    mu: float = field(units="m^3/s^2", default=0.0)
    omega: float = field(units="rad/s", default=0.0)
    J2: float = 0.0

    def __post_init__(self) -> None:
        """Check the values where they are known."""
        a, f, mu = concrete(self.a), concrete(self.f), concrete(self.mu)
        if a is not None and not np.all((a > 0.0) & np.isfinite(a)):
            raise ValueError(f"Ellipsoid.a must be positive and finite, in m, got {self.a}")
        if f is not None and not np.all((f >= 0.0) & (f < 1.0)):
            raise ValueError(
                f"Ellipsoid.f must be a flattening from 0 (sphere) to below 1, got {self.f}; "
                "if you have the inverse flattening, pass 1 / it"
            )
        if mu is not None and not np.all((mu >= 0.0) & np.isfinite(mu)):
            raise ValueError(f"Ellipsoid.mu must not be negative, in m^3/s^2, got {self.mu}")

    @property
    def b(self) -> Any:
        """Polar radius in m."""
        return self.a * (1.0 - self.f)

    @property
    def e2(self) -> Any:
        """Square of the first eccentricity."""
        return self.f * (2.0 - self.f)

    def prime_vertical_radius(self, lat: Any) -> Any:
        """Return the radius of curvature in m across the meridian.

        Parameters
        ----------
        lat : array_like
            Geodetic latitude in rad.
        """
        return self.a / np.sqrt(1.0 - self.e2 * np.sin(lat) ** 2)

    def meridian_radius(self, lat: Any) -> Any:
        """Return the radius of curvature in m along the meridian.

        Parameters
        ----------
        lat : array_like
            Geodetic latitude in rad.
        """
        w2 = 1.0 - self.e2 * np.sin(lat) ** 2
        return self.a * (1.0 - self.e2) / (w2 * np.sqrt(w2))


#: World Geodetic System 1984: NGA.STND.0036 (2014), with the J2 of the NESC check cases.
WGS84 = Ellipsoid(
    a=6378137.0,
    f=1.0 / 298.257223563,
    mu=3.986004418e14,
    omega=7.292115e-5,
    J2=0.00108262982,
)

#: A round Earth at rest, of the authalic radius (NASA/TM-2015-218675, check case 4).
SPHERICAL_EARTH = Ellipsoid(a=6371007.1809, f=0.0, mu=3.986004418e14, omega=0.0, J2=0.0)
