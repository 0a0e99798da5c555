"""What sensors on a robot measure, without noise: encoders, inertial units, forces in joints.

Noise and drift are those of `archimedes.vehicles.sensors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archimedes.checks import check_positive
from archimedes.multibody.algorithms import links
from archimedes.multibody.algorithms.inverse_dynamics import link_forces, torques_of
from archimedes.multibody.algorithms.kinematics import frame_motion, world_pose
from archimedes.spatial.components import cross, matvec, transpose
from archimedes.typing import ArrayLike, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["encoder", "imu", "joint_wrench"]


def encoder(
    model: Model, q: ArrayLike, joint: str, counts: Scalar | None = None, zero: Scalar = 0.0
) -> Scalar:
    """Return the reading of an encoder on a joint of one coordinate, in rad or m.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    joint : str
        Name of the joint.
    counts : float, optional
        Counts per rad or m, rounded down. By default the reading is exact.
    zero : float, optional
        Coordinate at which the encoder reads zero.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, encoder
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> encoder(b.build(), np.array([0.1234]), "hinge", counts=100.0)
    np.float64(0.12)
    """
    k, _ = links.offsets_of(model, joint, "an encoder reads one coordinate")
    if counts is not None:
        check_positive(counts, "encoder counts, per rad or m,")
    angle = links.check_coordinates(model, q, "q")[..., k] - zero
    return angle if counts is None else np.floor(angle * counts) / counts


def imu(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str) -> tuple[Vec3, Vec3]:
    """Return what an inertial measurement unit at a frame measures.

    At rest the specific force is minus gravity: it points up.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    a : array (..., nv)
        Acceleration in m/s^2 and rad/s^2.
    frame : str
        Name of a frame or body.

    Returns
    -------
    (array (3,), array (3,))
        Specific force in m/s^2 and angular velocity in rad/s, in the axes of the frame.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, imu
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> force, rate = imu(b.build(), np.zeros(1), np.ones(1), np.zeros(1), "bob")
    >>> force, rate
    (array([0.  , 0.  , 9.81]), array([0., 0., 1.]))
    """
    velocity, acceleration = frame_motion(model, q, v, a, frame)
    felt = acceleration.linear + cross(velocity.angular, velocity.linear)
    down = matvec(transpose(world_pose(model, q, frame).R), model.gravity)
    return felt - down, velocity.angular


def joint_wrench(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, joint: str, forces: links.Forces = None
) -> Vector:
    """Return the force and moment that a joint passes on to what it carries.

    This is what a sensor in the joint measures. Its part along the motion of the joint is the
    torque of `rnea` (without armature).

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    a : array (..., nv)
        Acceleration in m/s^2 and rad/s^2.
    joint : str
        Name of the joint.
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.

    Returns
    -------
    array (6,)
        Force and moment at the origin of the carried body, in its axes, linear part first.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, joint_wrench
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> joint_wrench(b.build(), *np.zeros((3, 1)), "hinge")
    array([ 0.  ,  0.  , 19.62,  0.  , -9.81,  0.  ])
    """
    model.q_slice(joint)  # an error that names the joint
    last = max(i for i, link in enumerate(model.links) if link.joint == joint)
    q, v, a = links.check_state(model, forces, q=q, v=v, a=a)
    _, through = torques_of(model, *link_forces(links.read_tree(model, forces), q, v, a))
    return through[last].array
