"""The rotating Earth and the frames of flight: from inertial axes to sensors.

Legend: I is a frame whose axes do not rotate and whose z-axis is the axis of rotation; E rotates
with the Earth; angle is that of E's x-axis from I's, in rad. Precession, nutation and polar motion
are left out. The tree of `flight_frames` has the frames "eci" (inertial), "ecef" (rotates with the
Earth), "ned" (north-east-down at the vehicle), "body", "stability" and "wind" (air-path axes). Add
sensors and sites with `add_frame`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.checks import as_array, as_finite, check_last, check_vector
from archimedes.environment.geodesy import WGS84, Ellipsoid, ecef_to_geodetic, ned
from archimedes.spatial import EulerAngles, KinematicTree, Transformation
from archimedes.typing import ArrayLike, Scalar, Vec3

__all__ = [
    "air_path_angles",
    "earth_attitude",
    "earth_rotation_angle",
    "ecef_to_eci",
    "eci_to_ecef",
    "flight_frames",
]

#: Turns at noon on 2000-01-01 (UT1), and turns per day beyond one (IAU 2000, resolution B1.8).
_TURNS_AT_J2000 = 0.7790572732640
_EXTRA_TURNS_PER_DAY = 0.00273781191135448


def earth_rotation_angle(day: ArrayLike, fraction: Scalar = 0.0) -> Any:
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
    day, fraction = as_finite(day, "day"), as_finite(fraction, "fraction")
    since = (day - 2451545.0) + fraction
    # Whole turns of the date itself drop out before they cost digits.
    turns = (np.mod(day, 1.0) + np.mod(fraction, 1.0)) % 1.0
    turns = (turns + _TURNS_AT_J2000 + _EXTRA_TURNS_PER_DAY * since) % 1.0
    return 2.0 * np.pi * turns


def earth_attitude(angle: Scalar) -> EulerAngles:
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
    p_I: Vec3, v_I: Vec3 | None = None, *, angle: Scalar, ellipsoid: Ellipsoid = WGS84
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
    angle = as_finite(angle, "angle")
    c, s = np.cos(angle), np.sin(angle)
    p_E = _turn(p_I, c, s)
    if v_I is None:
        return p_E, None
    return p_E, _turn(check_vector(v_I, 3, "v_I"), c, s) - _spin(p_E, ellipsoid)


def ecef_to_eci(
    p_E: Vec3, v_E: Vec3 | None = None, *, angle: Scalar, ellipsoid: Ellipsoid = WGS84
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
    angle = as_finite(angle, "angle")
    c, s = np.cos(angle), -np.sin(angle)
    p_I = _turn(p_E, c, s)
    if v_E is None:
        return p_I, None
    return p_I, _turn(check_vector(v_E, 3, "v_E") + _spin(p_E, ellipsoid), c, s)


def _turn(v: Vec3, c: Scalar, s: Scalar) -> Any:
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack(np.broadcast_arrays(c * x + s * y, c * y - s * x, z), axis=-1)


def _spin(p_E: Vec3, ellipsoid: Ellipsoid) -> Any:
    x, y = p_E[..., 0], p_E[..., 1]
    return ellipsoid.omega * np.stack([-y, x, np.zeros_like(x)], axis=-1)


def air_path_angles(v_B: Vec3) -> tuple[Any, Any]:
    """Return the angles of attack and sideslip of a velocity through the air.

    At rest both are 0.

    Parameters
    ----------
    v_B : array (..., 3)
        Velocity in m/s of the body through the air, in body axes.

    Returns
    -------
    (array, array)
        Angle of attack and angle of sideslip in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import air_path_angles
    >>> [float(a) for a in air_path_angles(np.array([100.0, 0.0, 0.0]))]
    [0.0, 0.0]
    """
    v_B = as_array(v_B, "v_B")
    check_last(v_B, 3, "v_B")
    u, v, w = v_B[..., 0], v_B[..., 1], v_B[..., 2]
    across = np.hypot(u, w)
    still = (across == 0.0) & (v == 0.0)
    alpha = np.arctan2(w, np.where(across == 0.0, 1.0, u))
    return alpha, np.arctan2(v, np.where(still, 1.0, across))


def flight_frames(
    ellipsoid: Ellipsoid = WGS84,
    angle: float = 0.0,
    *,
    wind: Callable[[Any, Any], Any] | None = None,
) -> KinematicTree:
    """Return the tree of frames eci, ecef, ned, body, stability, wind for a vehicle.

    The state that is passed to `get_transform` has the position `pos` in Earth-fixed axes, the
    attitude `att` of the body in those axes, and the velocity `v_E` relative to the Earth in them,
    as `EarthReferencedBody.State` does.

    Parameters
    ----------
    ellipsoid : Ellipsoid, optional
        Shape, gravity and rotation of the planet. `WGS84` by default.
    angle : float, optional
        Rotation angle of the Earth in rad at t = 0.
    wind : callable, optional
        A wind model of `archimedes.environment`, used by the air-path frames. No wind by default.

    Examples
    --------
    >>> from archimedes.environment import flight_frames
    >>> print(flight_frames())
    eci
    └─ ecef (function of t)
       ├─ ned (function of t, state)
       └─ body (function of t, state)
          └─ stability (function of t, state)
             └─ wind (function of t, state)
    """

    def to_ecef(t: Scalar) -> Transformation:
        return Transformation(np.zeros(3), earth_attitude(angle + ellipsoid.omega * t))

    def local(state: Any) -> Any:
        lat, lon, _ = ecef_to_geodetic(state.pos, ellipsoid)
        return ned(lat, lon)

    def to_ned(t: Scalar, state: Any) -> Transformation:
        return Transformation.from_pose(state.pos, local(state))

    def to_body(t: Scalar, state: Any) -> Transformation:
        return Transformation.from_pose(state.pos, state.att)

    def air_path(t: Scalar, state: Any) -> tuple[Any, Any]:
        v_E = state.v_E
        if wind is not None:
            v_E = v_E - local(state).rotate(wind(t, state.pos), inverse=True)
        return air_path_angles(state.att.rotate(v_E))

    def to_stability(t: Scalar, state: Any) -> Transformation:
        alpha, _ = air_path(t, state)
        return Transformation(np.zeros(3), EulerAngles(-alpha, "y"))

    def to_wind(t: Scalar, state: Any) -> Transformation:
        _, beta = air_path(t, state)
        return Transformation(np.zeros(3), EulerAngles(beta, "z"))

    tree = KinematicTree("eci")
    tree.add_frame("ecef", "eci", to_ecef)
    tree.add_frame("ned", "ecef", to_ned)
    tree.add_frame("body", "ecef", to_body)
    tree.add_frame("stability", "body", to_stability)
    tree.add_frame("wind", "stability", to_wind)
    return tree
