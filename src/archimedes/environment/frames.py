"""The frames of flight in one tree: from inertial axes to sensors.

Frames: "eci" (inertial), "ecef" (turns with the Earth), "ned" (north-east-down at the vehicle's
place), "body", "stability" and "wind" (air-path axes). Add sensors and sites with `add_frame`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment.earth_rotation import earth_attitude
from archimedes.environment.ellipsoid import WGS84, Ellipsoid
from archimedes.environment.geodesy import ecef_to_geodetic
from archimedes.environment.local_frames import ned
from archimedes.spatial import EulerAngles, KinematicTree, Transformation

__all__ = ["air_path_angles", "flight_frames"]


def air_path_angles(v_B: Any) -> tuple[Any, Any]:
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
    u, v, w = v_B[..., 0], v_B[..., 1], v_B[..., 2]
    across = np.hypot(u, w)
    still = (across == 0.0) & (v == 0.0)
    alpha = np.arctan2(w, np.where(across == 0.0, 1.0, u))
    return alpha, np.arctan2(v, np.where(still, 1.0, across))


def flight_frames(
    ellipsoid: Ellipsoid = WGS84, angle: float = 0.0, *, wind: Any = None
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

    def to_ecef(t: Any) -> Transformation:
        return Transformation(np.zeros(3), earth_attitude(angle + ellipsoid.omega * t))

    def local(state: Any) -> Any:
        lat, lon, _ = ecef_to_geodetic(state.pos, ellipsoid)
        return ned(lat, lon)

    def to_ned(t: Any, state: Any) -> Transformation:
        return Transformation.from_pose(state.pos, local(state))

    def to_body(t: Any, state: Any) -> Transformation:
        return Transformation.from_pose(state.pos, state.att)

    def air_path(t: Any, state: Any) -> tuple[Any, Any]:
        v_E = state.v_E
        if wind is not None:
            v_E = v_E - local(state).rotate(wind(t, state.pos), inverse=True)
        return air_path_angles(state.att.rotate(v_E))

    def to_stability(t: Any, state: Any) -> Transformation:
        alpha, _ = air_path(t, state)
        return Transformation(np.zeros(3), EulerAngles(-alpha, "y"))

    def to_wind(t: Any, state: Any) -> Transformation:
        _, beta = air_path(t, state)
        return Transformation(np.zeros(3), EulerAngles(beta, "z"))

    tree = KinematicTree("eci")
    tree.add_frame("ecef", "eci", to_ecef)
    tree.add_frame("ned", "ecef", to_ned)
    tree.add_frame("body", "ecef", to_body)
    tree.add_frame("stability", "body", to_stability)
    tree.add_frame("wind", "stability", to_wind)
    return tree
