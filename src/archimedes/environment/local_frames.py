"""Local-level frames: north-east-down and east-north-up, and tangent planes at a site.

Legend: R_NE takes E-coordinates to NED coordinates; its rows are the unit vectors north, east and
down in E.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.environment.ellipsoid import WGS84, Ellipsoid
from archimedes.environment.geodesy import check_latitude, geodetic_to_ecef
from archimedes.spatial import RotationMatrix, Transformation
from archimedes.spatial.components import join_matrix

__all__ = ["enu", "local_tangent_plane", "ned"]


def _axes(lat: Any, lon: Any) -> dict[str, list[Any]]:
    lat, lon = np.broadcast_arrays(check_latitude(lat), as_array(lon, "lon"))
    sf, cf, sl, cl = np.sin(lat), np.cos(lat), np.sin(lon), np.cos(lon)
    return {
        "north": [-sf * cl, -sf * sl, cf],
        "east": [-sl, cl, np.zeros_like(sl)],
        "up": [cf * cl, cf * sl, sf],
    }


def ned(lat: Any, lon: Any) -> RotationMatrix:
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
    axes = _axes(lat, lon)
    return RotationMatrix.make(
        join_matrix([*axes["north"], *axes["east"], *(-part for part in axes["up"])])
    )


def enu(lat: Any, lon: Any) -> RotationMatrix:
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
    axes = _axes(lat, lon)
    return RotationMatrix.make(join_matrix([*axes["east"], *axes["north"], *axes["up"]]))


_FRAMES = {"ned": ned, "enu": enu}


def local_tangent_plane(
    lat: Any, lon: Any, alt: Any = 0.0, axes: str = "ned", ellipsoid: Ellipsoid = WGS84
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
    if axes not in _FRAMES:
        raise ValueError(f"local_tangent_plane: axes={axes!r} is not one of {sorted(_FRAMES)}")
    return Transformation.from_pose(
        geodetic_to_ecef(lat, lon, alt, ellipsoid), _FRAMES[axes](lat, lon)
    )
