"""Reference ellipsoids, geodetic coordinates, Earth-fixed positions and local-level frames.

Legend: the Earth-fixed frame E has its z-axis along the axis of rotation and its x-axis on the zero
meridian; lat is geodetic latitude, lon longitude (east positive), alt the height above the
ellipsoid along its normal; rho is the distance from the axis, (c, s) cosine and sine of the
latitude. R_NE takes E-coordinates to north-east-down coordinates; its rows are the unit vectors
north, east and down in E.

Sources: Vermeille, J. Geodesy 85 (2011) 105, for the closed form that starts the inverse. Two
Newton steps on the equation of the normal, ``z c - rho s + e2 N s c = 0``, end it: none of its
terms is larger than the position, so nothing is lost to cancellation, inside the Earth or out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_finite, check_choice, check_struct, check_vector, concrete
from archimedes.function import stop_gradient
from archimedes.spatial import RotationMatrix, Transformation
from archimedes.spatial.components import join_matrix
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar, Vec3

__all__ = [
    "SPHERICAL_EARTH",
    "WGS84",
    "Ellipsoid",
    "ecef_to_geodetic",
    "enu",
    "geodetic_rates",
    "geodetic_to_ecef",
    "local_tangent_plane",
    "ned",
]


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
    f: float = field(units="", default=0.0)
    mu: float = field(units="m^3/s^2", default=0.0)
    omega: float = field(units="rad/s", default=0.0)
    J2: float = field(units="", default=0.0)

    def __post_init__(self) -> None:
        """Check the values where they are known."""
        check_struct(self, "a", "mu")
        f = concrete(self.f)
        if f is not None and not np.all((f >= 0.0) & (f < 1.0)):
            raise ValueError(
                f"Ellipsoid.f must be a flattening from 0 (sphere) to below 1, got {self.f}; "
                "if you have the inverse flattening, pass 1 / it"
            )

    @property
    def b(self) -> Any:
        """Polar radius in m."""
        return self.a * (1.0 - self.f)

    @property
    def e2(self) -> Any:
        """Square of the first eccentricity."""
        return self.f * (2.0 - self.f)

    def prime_vertical_radius(self, lat: Scalar) -> Any:
        """Return the radius of curvature in m across the meridian.

        Parameters
        ----------
        lat : array_like
            Geodetic latitude in rad.
        """
        return self.a / np.sqrt(1.0 - self.e2 * np.sin(lat) ** 2)

    def meridian_radius(self, lat: Scalar) -> Any:
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


def check_latitude(lat: Scalar) -> Any:
    """Return `lat` as an array, checked to be a latitude in rad where it is known."""
    lat = as_finite(lat, "lat")
    values = concrete(lat)
    if values is not None and not np.all(np.abs(values) <= 0.5 * np.pi + 1e-12):
        raise ValueError(
            f"lat must be from -pi/2 to pi/2 rad, got {values}; for degrees use np.deg2rad"
        )
    return lat


def geodetic_to_ecef(lat: Scalar, lon: Scalar, alt: ArrayLike, ellipsoid: Ellipsoid = WGS84) -> Any:
    """Return the Earth-fixed position of geodetic coordinates.

    Parameters
    ----------
    lat : array_like
        Geodetic latitude in rad.
    lon : array_like
        Longitude in rad, positive to the east.
    alt : array_like
        Height above the ellipsoid in m.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Returns
    -------
    array (..., 3)
        Position in m, in Earth-fixed axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import geodetic_to_ecef
    >>> geodetic_to_ecef(np.deg2rad(45.0), np.deg2rad(45.0), 1000.0).round(3)
    array([3194919.145, 3194919.145, 4488055.516])
    """
    lat, lon, alt = check_latitude(lat), as_finite(lon, "lon"), as_finite(alt, "alt")
    s, c = np.sin(lat), np.cos(lat)
    N = ellipsoid.a / np.sqrt(1.0 - ellipsoid.e2 * s * s)
    rho = (N + alt) * c
    parts = [rho * np.cos(lon), rho * np.sin(lon), (N * (1.0 - ellipsoid.e2) + alt) * s]
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def ecef_to_geodetic(p_E: Vec3, ellipsoid: Ellipsoid = WGS84) -> tuple[Any, Any, Any]:
    """Return geodetic latitude, longitude and height of a position.

    The result is exact to rounding from far outside down to the evolute, some 43 km around the
    centre of the Earth, within which the latitude is not unique. On the axis the longitude is 0.

    Parameters
    ----------
    p_E : array (..., 3)
        Position in m, in Earth-fixed axes.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Returns
    -------
    (array, array, array)
        Latitude in rad, longitude in rad and height in m.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ecef_to_geodetic
    >>> [float(x) for x in ecef_to_geodetic(np.array([6378137.0, 0.0, 0.0]))]
    [0.0, 0.0, 0.0]
    """
    p_E = check_vector(p_E, 3, "p_E")
    x, y, z = p_E[..., 0], p_E[..., 1], p_E[..., 2]
    rho = np.hypot(x, y)
    c, s = _first_normal(stop_gradient(rho), stop_gradient(z), ellipsoid)
    # The closed form is constant under differentiation: each Newton step doubles the order to
    # which derivatives are right, so after two they hold to the third.
    for _ in range(2):
        c, s = _newton(c, s, rho, z, ellipsoid)
    height = _height(c, s, rho, z, ellipsoid)
    on_axis = rho == 0.0
    lon = np.where(on_axis, 0.0, np.arctan2(y, np.where(on_axis, 1.0, x)))
    return np.arctan2(s, c), lon, height


def _first_normal(rho: Scalar, z: Scalar, ellipsoid: Ellipsoid) -> tuple[Any, Any]:
    """Return cosine and sine of the latitude by Vermeille's closed form, to some 1e-10."""
    e2 = ellipsoid.e2
    p, q = (rho / ellipsoid.a) ** 2, (1.0 - e2) * (z / ellipsoid.a) ** 2
    r = (p + q - e2 * e2) / 6.0
    root = e2 * np.sqrt(p * q)
    # Inside the evolute the discriminant is negative: taken as zero, which is its border.
    grown = np.sqrt(np.maximum(8.0 * r * r * r + root * root, 0.0)) + root
    t = np.cbrt(grown * grown)
    u = r + 0.5 * t + 2.0 * r * r / np.where(t == 0.0, 1.0, t)
    v = np.sqrt(u * u + e2 * e2 * q)
    w = e2 * (u + v - q) / (2.0 * np.where(v == 0.0, 1.0, v))
    k = (u + v) / (np.sqrt(np.maximum(w * w + u + v, 0.0)) + w + np.where(u + v == 0.0, 1.0, 0.0))
    along = k * rho / (k + e2 + np.where(k + e2 == 0.0, 1.0, 0.0))
    size = np.hypot(along, z)
    centre = size == 0.0
    size = np.where(centre, 1.0, size)
    return np.where(centre, 1.0, along / size), np.where(centre, 0.0, z / size)


def _newton(c: Scalar, s: Scalar, rho: Scalar, z: Scalar, ellipsoid: Ellipsoid) -> tuple[Any, Any]:
    """Turn the normal (c, s) until it passes through the point (rho, z): one Newton step."""
    e2 = ellipsoid.e2
    w2 = 1.0 - e2 * s * s
    N = ellipsoid.a / np.sqrt(w2)
    residual = z * c - rho * s + e2 * N * s * c
    # Distance to the centre of curvature of the meridian: M + h.
    distance = rho * c + z * s - ellipsoid.a * np.sqrt(w2) + N * (1.0 - e2) / w2
    turn = residual / np.where(distance > 0.0, distance, np.inf)
    c, s = c - turn * s, s + turn * c
    # One step of Newton towards length one: it is within turn^2 of it already.
    scale = 1.5 - 0.5 * (c * c + s * s)
    return c * scale, s * scale


def _height(c: Scalar, s: Scalar, rho: Scalar, z: Scalar, ellipsoid: Ellipsoid) -> Any:
    """Return ``rho c + z s - a W``, W^2 = 1 - e2 s^2, from the sphere of radius a outwards."""
    a, e2s2 = ellipsoid.a, ellipsoid.e2 * s * s
    # Subtracting the sphere first keeps the small differences small.
    return (rho - a * c) * c + (z - a * s) * s + a * (e2s2 / (1.0 + np.sqrt(1.0 - e2s2)))


def geodetic_rates(
    lat: Scalar, alt: Scalar, v_NED: Vec3, ellipsoid: Ellipsoid = WGS84
) -> tuple[Any, Any, Any]:
    """Return the rates of latitude, longitude and height for a velocity.

    The rate of longitude is infinite at the poles.

    Parameters
    ----------
    lat : array_like
        Geodetic latitude in rad.
    alt : array_like
        Height above the ellipsoid in m.
    v_NED : array (..., 3)
        Velocity in m/s relative to the Earth: north, east, down.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Returns
    -------
    (array, array, array)
        Rates of latitude in rad/s, longitude in rad/s and height in m/s.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import geodetic_rates
    >>> rates = geodetic_rates(0.0, 0.0, np.array([0.0, 100.0, 0.0]))
    >>> [round(float(r) * 1e6, 4) for r in rates]
    [0.0, 15.6786, -0.0]
    """
    v = check_vector(v_NED, 3, "v_NED")
    north = ellipsoid.meridian_radius(lat) + alt
    east = (ellipsoid.prime_vertical_radius(lat) + alt) * np.cos(lat)
    return v[..., 0] / north, v[..., 1] / east, -v[..., 2]


def _axes(lat: Scalar, lon: Scalar) -> tuple[list[Any], list[Any], list[Any]]:
    lat, lon = np.broadcast_arrays(check_latitude(lat), as_finite(lon, "lon"))
    sf, cf, sl, cl = np.sin(lat), np.cos(lat), np.sin(lon), np.cos(lon)
    return [-sf * cl, -sf * sl, cf], [-sl, cl, np.zeros_like(sl)], [cf * cl, cf * sl, sf]


def ned(lat: Scalar, lon: Scalar) -> RotationMatrix:
    """Return the attitude of the north-east-down frame in E.

    Its matrix takes E coordinates to NED coordinates.

    Parameters
    ----------
    lat : array_like
        Geodetic latitude in rad.
    lon : array_like
        Longitude in rad, positive to the east.

    Examples
    --------
    >>> from archimedes.environment import ned
    >>> ned(0.0, 0.0).as_matrix()
    array([[-0., -0.,  1.],
           [-0.,  1.,  0.],
           [-1., -0., -0.]])
    """
    north, east, up = _axes(lat, lon)
    return RotationMatrix.make(join_matrix([*north, *east, *(-part for part in up)]))


def enu(lat: Scalar, lon: Scalar) -> RotationMatrix:
    """Return the attitude of the east-north-up frame in E.

    Parameters
    ----------
    lat : array_like
        Geodetic latitude in rad.
    lon : array_like
        Longitude in rad, positive to the east.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import enu
    >>> enu(0.0, 0.0).rotate(np.array([1.0, 0.0, 0.0])).round(12)
    array([0., 0., 1.])
    """
    north, east, up = _axes(lat, lon)
    return RotationMatrix.make(join_matrix([*east, *north, *up]))


_FRAMES = {"ned": ned, "enu": enu}


def local_tangent_plane(
    lat: Scalar, lon: Scalar, alt: ArrayLike = 0.0, axes: str = "ned", ellipsoid: Ellipsoid = WGS84
) -> Transformation:
    """Return the transformation from E to local coordinates with their origin at a site.

    ``plane.apply(p_E)`` returns positions from the site, and ``plane.inv().apply(p_L)`` positions
    in E.

    Parameters
    ----------
    lat : array_like
        Geodetic latitude in rad.
    lon : array_like
        Longitude in rad, positive to the east.
    alt : array_like, optional
        Height above the ellipsoid in m.
    axes : {"ned", "enu"}, optional
        North-east-down or east-north-up.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import local_tangent_plane
    >>> plane = local_tangent_plane(0.0, 0.0)
    >>> plane.apply(np.array([6378137.0, 0.0, 5.0]))
    array([5., 0., 0.])
    """
    check_choice(axes, "local_tangent_plane: axes", _FRAMES)
    origin = geodetic_to_ecef(lat, lon, alt, ellipsoid)
    return Transformation.from_pose(origin, _FRAMES[axes](lat, lon))
