"""Forces and moments that stand for what the equations of `RigidBody` leave out.

Each is added to ``F_B`` or ``M_B`` of the input. Legend: CM is the centre of mass, R a reference
point fixed in the body, r_CM_B the position of CM from R; all vectors (..., 3) in body axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, as_scalar
from archimedes.spatial.components import cross, expand, matvec
from archimedes.typing import ArrayLike, Scalar, Vec3

__all__ = [
    "cm_velocity",
    "exhaust_thrust",
    "gyroscopic_moment",
    "inertia_rate_moment",
    "mass_rate_force",
    "moment_about_cm",
    "parallel_axis",
    "reference_velocity",
    "rotating_frame_acceleration",
]


def mass_rate_force(dm_dt: ArrayLike, v_B: ArrayLike) -> Any:
    """Return ``-dm_dt v_B`` in N: mass that leaves, or comes, with zero inertial velocity.

    Right for a body that collects resting dust, or drops what it first brings to rest. For a rocket
    use `exhaust_thrust` instead.

    Parameters
    ----------
    dm_dt : float
        Rate of change of the mass in kg/s, negative if mass leaves.
    v_B : array (..., 3)
        Inertial velocity in m/s, in body axes.

    Examples
    --------
    >>> mass_rate_force(-2.0, [10.0, 0.0, 0.0])
    array([20.,  0.,  0.])
    """
    return -expand(as_scalar(dm_dt, "dm_dt")) * as_array(v_B, "v_B")


def exhaust_thrust(dm_dt: Scalar, v_rel_B: ArrayLike) -> Any:
    """Return the thrust ``dm_dt v_rel_B`` in N of mass leaving at `v_rel_B` relative to the body.

    `dm_dt` is negative for a rocket. This is the whole effect on the velocity of the remaining
    body: with it, ``dm_dt`` of the input stays zero (Tsiolkovsky).

    Parameters
    ----------
    dm_dt : float
        Rate of change of the mass in kg/s, negative if mass leaves.
    v_rel_B : array (..., 3)
        Velocity in m/s of the leaving mass relative to the body, in body axes.

    Examples
    --------
    >>> exhaust_thrust(-2.0, [-3000.0, 0.0, 0.0])
    array([6000.,   -0.,   -0.])
    """
    return expand(as_scalar(dm_dt, "dm_dt")) * as_array(v_rel_B, "v_rel_B")


def inertia_rate_moment(dJ_dt: ArrayLike, w_B: Vec3) -> Any:
    """Return ``-dJ_dt w_B`` in N m: inertia that changes while angular momentum is kept.

    Parameters
    ----------
    dJ_dt : array (..., 3, 3)
        Rate of change of the inertia in kg m^2/s.
    w_B : array (..., 3)
        Angular velocity in rad/s, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> inertia_rate_moment(np.eye(3), [0.0, 0.0, 2.0])
    array([-0., -0., -2.])
    """
    return -matvec(as_array(dJ_dt, "dJ_dt"), as_array(w_B, "w_B"))


def cm_velocity(
    v_ref_B: ArrayLike, w_B: Vec3, r_CM_B: ArrayLike, dr_CM_B: ArrayLike = (0.0, 0.0, 0.0)
) -> Any:
    """Return the velocity of the centre of mass, the state ``v_B``, from that of the reference.

    `dr_CM_B` is the velocity of the centre of mass within the body.

    Parameters
    ----------
    v_ref_B : array (..., 3)
        Velocity in m/s of the reference point, in body axes.
    w_B : array (..., 3)
        Angular velocity in rad/s, in body axes.
    r_CM_B : array (..., 3)
        Position in m of the centre of mass from the reference point, in body axes.
    dr_CM_B : array (..., 3), optional
        Velocity in m/s of the centre of mass within the body. Zero by default.

    Examples
    --------
    >>> cm_velocity([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    array([0., 0., 0.])
    """
    shift = as_array(dr_CM_B, "dr_CM_B") + cross(as_array(w_B, "w_B"), as_array(r_CM_B, "r_CM_B"))
    return as_array(v_ref_B, "v_ref_B") + shift


def reference_velocity(
    v_B: ArrayLike, w_B: Vec3, r_CM_B: ArrayLike, dr_CM_B: ArrayLike = (0.0, 0.0, 0.0)
) -> Any:
    """Return the velocity of the reference point, at which aerodynamics are often defined.

    Parameters
    ----------
    v_B : array (..., 3)
        Velocity in m/s of the centre of mass, in body axes.
    w_B : array (..., 3)
        Angular velocity in rad/s, in body axes.
    r_CM_B : array (..., 3)
        Position in m of the centre of mass from the reference point, in body axes.
    dr_CM_B : array (..., 3), optional
        Velocity in m/s of the centre of mass within the body. Zero by default.

    Examples
    --------
    >>> reference_velocity([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    array([1., 0., 0.])
    """
    shift = as_array(dr_CM_B, "dr_CM_B") + cross(as_array(w_B, "w_B"), as_array(r_CM_B, "r_CM_B"))
    return as_array(v_B, "v_B") - shift


def moment_about_cm(M_ref_B: ArrayLike, F_B: ArrayLike, r_CM_B: ArrayLike) -> Any:
    """Return the moment about the centre of mass of a force `F_B` and moment at the reference.

    Parameters
    ----------
    M_ref_B : array (..., 3)
        Moment in N m about the reference point, in body axes.
    F_B : array (..., 3)
        Force in N, in body axes.
    r_CM_B : array (..., 3)
        Position in m of the centre of mass from the reference point, in body axes.

    Examples
    --------
    >>> moment_about_cm([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    array([0., 1., 0.])
    """
    arm = cross(as_array(r_CM_B, "r_CM_B"), as_array(F_B, "F_B"))
    return as_array(M_ref_B, "M_ref_B") - arm


def parallel_axis(J_B: ArrayLike, m: ArrayLike, r_B: ArrayLike) -> Any:
    """Return the inertia about a point `r_B` from the centre of mass, from that about it.

    Parameters
    ----------
    J_B : array (..., 3, 3)
        Inertia in kg m^2 about the centre of mass, in body axes.
    m : float
        Mass in kg.
    r_B : array (..., 3)
        Position in m of the point from the centre of mass.

    Examples
    --------
    >>> import numpy as np
    >>> parallel_axis(np.eye(3), 2.0, [1.0, 0.0, 0.0]).diagonal()
    array([1., 3., 3.])
    """
    r = as_array(r_B, "r_B")
    square = np.sum(r * r, axis=-1)[..., None, None] * np.eye(3)
    m = expand(expand(as_scalar(m, "m")))
    return as_array(J_B, "J_B") + m * (square - r[..., :, None] * r[..., None, :])


def gyroscopic_moment(w_B: Vec3, h_B: ArrayLike, dh_dt: ArrayLike = (0.0, 0.0, 0.0)) -> Any:
    """Return ``-dh_dt - w_B x h_B`` in N m for internal angular momentum `h_B` (rotors, wheels).

    `h_B` is the angular momentum of the internal parts relative to the body, and `dh_dt` its rate
    of change in body axes: minus the motor's torque on the body.

    Parameters
    ----------
    w_B : array (..., 3)
        Angular velocity in rad/s, in body axes.
    h_B : array (..., 3)
        Angular momentum in N m s of the internal parts relative to the body, in body axes.
    dh_dt : array (..., 3), optional
        Its rate of change in N m in body axes: minus the torque of the motor on the body. Zero by
        default.

    Examples
    --------
    >>> gyroscopic_moment([0.0, 1.0, 0.0], [2.0, 0.0, 0.0])
    array([0., 0., 2.])
    """
    turn = cross(as_array(w_B, "w_B"), as_array(h_B, "h_B"))
    return 0.0 - as_array(dh_dt, "dh_dt") - turn


def rotating_frame_acceleration(
    pos: ArrayLike, vel: ArrayLike, Omega: ArrayLike, dOmega_dt: ArrayLike | None = None
) -> Any:
    """Return the apparent acceleration in a frame that rotates at `Omega`, in its coordinates.

    ``-2 Omega x vel - Omega x (Omega x pos) - dOmega_dt x pos``: Coriolis, centrifugal and Euler.

    Parameters
    ----------
    pos : array (..., 3)
        Position in m in the frame.
    vel : array (..., 3)
        Velocity in m/s relative to the frame.
    Omega : array (..., 3)
        Angular velocity of the frame in rad/s, in its coordinates.
    dOmega_dt : array (..., 3), optional
        Angular acceleration of the frame in rad/s^2. Zero by default.

    Examples
    --------
    >>> rotating_frame_acceleration([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    array([4., 0., 0.])
    """
    pos, vel = as_array(pos, "pos"), as_array(vel, "vel")
    Omega = as_array(Omega, "Omega")
    total = 0.0 - cross(Omega, 2.0 * vel + cross(Omega, pos))
    return total if dOmega_dt is None else total - cross(as_array(dOmega_dt, "dOmega_dt"), pos)
