"""The turning Earth: rotation angle, and coordinates between inertial and Earth-fixed axes.

Legend: I is a frame whose axes do not turn and whose z-axis is the axis of rotation; E turns with
the Earth; angle is that of E's x-axis from I's, in rad. Precession, nutation and polar motion are
left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_vector
from archimedes.environment.ellipsoid import WGS84, Ellipsoid
from archimedes.spatial import EulerAngles

__all__ = ["earth_attitude", "earth_rotation_angle", "ecef_to_eci", "eci_to_ecef"]

#: Turns at noon on 2000-01-01 (UT1), and turns per day beyond one (IAU 2000, resolution B1.8).
_TURNS_AT_J2000 = 0.7790572732640
_EXTRA_TURNS_PER_DAY = 0.00273781191135448


def earth_rotation_angle(day: Any, fraction: Any = 0.0) -> Any:
    """Return the Earth rotation angle in rad, in [0, 2 pi).

    Parameters
    ----------
    day : array_like
        Julian date (UT1) in days.
    fraction : array_like, optional
        Further days. The date is ``day + fraction``; whole or half days and the rest given apart
        keep all digits.

    Examples
    --------
    >>> from archimedes.environment import earth_rotation_angle
    >>> round(float(earth_rotation_angle(2451545.0)), 6)
    4.894961
    """
    since = (as_array(day, "day") - 2451545.0) + fraction
    # Whole turns of the date itself drop out before they cost digits.
    turns = (np.mod(day, 1.0) + np.mod(fraction, 1.0)) % 1.0
    turns = (turns + _TURNS_AT_J2000 + _EXTRA_TURNS_PER_DAY * since) % 1.0
    return 2.0 * np.pi * turns


def earth_attitude(angle: Any) -> EulerAngles:
    """Return the attitude of the Earth-fixed frame E in the inertial frame I.

    Parameters
    ----------
    angle : float
        Rotation angle of the Earth in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import earth_attitude
    >>> earth_attitude(np.pi / 2).rotate(np.array([0.0, 1.0, 0.0])).round(12)
    array([1., 0., 0.])
    """
    return EulerAngles(angle, "z")


def eci_to_ecef(
    p_I: Any, v_I: Any = None, *, angle: Any, ellipsoid: Ellipsoid = WGS84
) -> tuple[Any, Any]:
    """Return Earth-fixed position and velocity, from inertial ones.

    Parameters
    ----------
    p_I : array (..., 3)
        Position in m, in inertial axes.
    v_I : array (..., 3), optional
        Inertial velocity in m/s, in inertial axes. Without it the second result is None.
    angle : float
        Rotation angle of the Earth in rad.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Returns
    -------
    (array, array or None)
        Position in m, and velocity in m/s relative to the Earth, in Earth-fixed axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import WGS84, eci_to_ecef
    >>> p = np.array([4.2164e7, 0.0, 0.0])
    >>> eci_to_ecef(p, WGS84.omega * np.array([0.0, 4.2164e7, 0.0]), angle=0.0)[1]
    array([0., 0., 0.])
    """
    p_I = check_vector(p_I, 3, "p_I")
    c, s = np.cos(angle), np.sin(angle)
    p_E = _turn(p_I, c, s)
    if v_I is None:
        return p_E, None
    return p_E, _turn(check_vector(v_I, 3, "v_I"), c, s) - _spin(p_E, ellipsoid)


def ecef_to_eci(
    p_E: Any, v_E: Any = None, *, angle: Any, ellipsoid: Ellipsoid = WGS84
) -> tuple[Any, Any]:
    """Return inertial position and velocity, from Earth-fixed ones.

    Parameters
    ----------
    p_E : array (..., 3)
        Position in m, in Earth-fixed axes.
    v_E : array (..., 3), optional
        Velocity in m/s relative to the Earth, in Earth-fixed axes. Without it the second result is
        None.
    angle : float
        Rotation angle of the Earth in rad.
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.

    Returns
    -------
    (array, array or None)
        Position in m and velocity in m/s, in inertial axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ecef_to_eci
    >>> p_I, v_I = ecef_to_eci(np.array([7e6, 0.0, 0.0]), np.zeros(3), angle=0.0)
    >>> v_I.round(3)
    array([  0.   , 510.448,   0.   ])
    """
    p_E = check_vector(p_E, 3, "p_E")
    c, s = np.cos(angle), -np.sin(angle)
    p_I = _turn(p_E, c, s)
    if v_E is None:
        return p_I, None
    return p_I, _turn(check_vector(v_E, 3, "v_E") + _spin(p_E, ellipsoid), c, s)


def _turn(v: Any, c: Any, s: Any) -> Any:
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack(np.broadcast_arrays(c * x + s * y, c * y - s * x, z), axis=-1)


def _spin(p_E: Any, ellipsoid: Ellipsoid) -> Any:
    x, y = p_E[..., 0], p_E[..., 1]
    return ellipsoid.omega * np.stack([-y, x, np.zeros_like(x)], axis=-1)
