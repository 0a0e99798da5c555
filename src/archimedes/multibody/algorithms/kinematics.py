"""Poses, twists, accelerations and Jacobians of frames; momentum and energies of all bodies.

Legend: F is a frame on link i, X_WF its pose in the world. A twist in "body" axes is that of F in
its own coordinates, in "world" axes that of the body's point at the world's origin, in "aligned"
axes that of F's origin in axes of the world. An acceleration is the rate of the twist in the same
axes: in "body" and "world" axes the spatial acceleration, in "aligned" axes the acceleration that
an accelerometer would measure (without gravity).

Jacobians: column S_j of a joint above frame F, in the coordinates of F, is c_j; it moves along with
link j, so its rate in those coordinates is ``(v_j - v_F) x c_j``.
Source: Featherstone 2008, section 2.10 (moving coordinates) and 3.3.

Momentum: c is the centre of mass, h = (linear, angular momentum about c) in axes of the world, and
A the matrix with ``h = A v``: the momentum of what a joint carries, for each column of the joint.
Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_choice, check_vector
from archimedes.multibody.algorithms import links
from archimedes.spatial.attitudes.attitude_base import Attitude
from archimedes.spatial.attitudes.attitude_classes import RotationMatrix
from archimedes.spatial.components import components, cross, matvec
from archimedes.spatial.spatial_algebra import Pose, Spatial
from archimedes.spatial.transformation import Transformation
from archimedes.spatial.validation import check_rotation
from archimedes.typing import ArrayLike, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = [
    "center_of_mass",
    "centroidal_matrix",
    "centroidal_momentum",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_twist",
    "kinetic_energy",
    "pose",
    "potential_energy",
]


AXES = ("body", "world", "aligned")


def frame_pose(model: Model, q: ArrayLike, frame: str) -> Transformation:
    """Return the pose of a frame: the transformation from its coordinates to the world's.

    `pose` makes the same kind of object of a position and an attitude.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    frame : str
        Name of a frame or body.

    Returns
    -------
    Transformation
        ``t`` is the position of the frame in the world in m, ``r.as_matrix()`` takes coordinates in
        the frame to coordinates in the world. ``r.inv()`` is the attitude of the frame.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, frame_pose
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bob", position=[1.0, 0.0, 0.0])
    >>> frame_pose(b.build(), [np.pi / 2], "tip").t.round(3)
    array([0., 1., 0.])
    """
    X, leading = world_pose(model, q, frame), links.leading_axes(q)
    R, p = links.broadcast_result(X.R, (*leading, 3, 3)), links.broadcast_result(X.p, (*leading, 3))
    return Transformation(p, RotationMatrix.make(R))


def pose(position: ArrayLike, attitude: Any) -> Transformation:
    """Return the pose of something at a position with an attitude, both in the world.

    A pose takes coordinates in a body to coordinates in the world: `frame_pose` returns one, and
    `inverse_kinematics` takes them as targets. ``Transformation.from_pose`` is its inverse.

    Parameters
    ----------
    position : array (..., 3)
        Position in the world in m.
    attitude : attitude, or array (..., 3, 3)
        An attitude of `archimedes.spatial`, whose matrix takes world coordinates to the body; a
        rotation matrix that takes body coordinates to the world, whose columns are the axes of the
        body in the world; or a ``Rotation`` of SciPy, whose matrix is of the second kind.

    Returns
    -------
    Transformation
        The transformation from the body to the world.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import pose
    >>> from archimedes.spatial import EulerAngles
    >>> hand = pose([0.5, 0.0, 0.3], EulerAngles(np.deg2rad([0.0, 90.0, 0.0]), "xyz"))
    >>> hand.apply(np.array([0.1, 0.0, 0.0])).round(12)  # 0.1 m along the hand's x axis: down
    array([0.5, 0. , 0.2])
    """
    p = check_vector(position, 3, "position")
    if isinstance(attitude, Attitude):
        R = np.swapaxes(attitude.as_matrix(), -1, -2)
    else:
        of_scipy = type(attitude).__module__.partition(".")[0] == "scipy"
        matrix = attitude.as_matrix() if of_scipy else attitude
        if np.shape(matrix)[-2:] != (3, 3):
            given = f"an array of shape {np.shape(matrix)}" if np.shape(matrix) else repr(attitude)
            raise TypeError(
                "attitude must be an attitude, such as Quaternion(q) or EulerAngles(rpy, 'xyz'), "
                f"or a matrix (3, 3) from the body to the world; got {given}"
            )
        R = check_rotation(matrix, "attitude")
    leading = np.broadcast_shapes(p.shape[:-1], R.shape[:-2])
    p = links.broadcast_result(p, (*leading, 3))
    return Transformation(p, RotationMatrix.make(links.broadcast_result(R, (*leading, 3, 3))))


def frame_twist(model: Model, q: ArrayLike, v: ArrayLike, frame: str, axes: str = "body") -> Vector:
    """Return the velocity of a frame.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    frame : str
        Name of a frame or body.
    axes : {"body", "world", "aligned"}, optional
        Axes of the result. ``"body"``: those of the frame. ``"world"``: those of the world, where
        the linear part belongs to the point of the body at the origin of the world. ``"aligned"``:
        parallel to the world, at the origin of the frame.

    Returns
    -------
    array (..., 6)
        Velocity, linear part first.

    Examples
    --------
    >>> from archimedes.multibody import Builder, frame_twist
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bob", position=[1.0, 0.0, 0.0])
    >>> frame_twist(b.build(), [0.0], [2.0], "tip")
    array([0., 2., 0., 0., 0., 2.])
    """
    check_choice(axes, "axes", AXES)
    q, v = links.check_state(model, q=q, v=v)
    velocity, _ = frame_motion(model, q, v, None, frame)
    if axes != "body":
        velocity = in_axes(world_pose(model, q, frame), velocity, axes)
    return links.broadcast_result(velocity.array, (*links.leading_axes(q, v), 6))


def frame_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str, axes: str = "body"
) -> Vector:
    """Return the acceleration of a frame, the rate of `frame_twist`.

    In ``"body"`` and ``"world"`` axes it is the spatial acceleration. In ``"aligned"`` axes the
    linear part is the ordinary acceleration of the origin of the frame. Gravity is not included.

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
    axes : {"body", "world", "aligned"}, optional
        Axes of the result. ``"body"``: those of the frame. ``"world"``: those of the world, where
        the linear part belongs to the point of the body at the origin of the world. ``"aligned"``:
        parallel to the world, at the origin of the frame.

    Returns
    -------
    array (..., 6)
        Acceleration, linear part first.

    Examples
    --------
    >>> from archimedes.multibody import Builder, frame_acceleration
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bob", position=[1.0, 0.0, 0.0])
    >>> frame_acceleration(b.build(), [0.0], [2.0], [0.0], "tip", axes="aligned")
    array([-4.,  0.,  0.,  0.,  0.,  0.])
    """
    check_choice(axes, "axes", AXES)
    q, v, a = links.check_state(model, q=q, v=v, a=a)
    velocity, acceleration = frame_motion(model, q, v, a, frame)
    if axes == "aligned":
        turning = cross(velocity.angular, velocity.linear)
        acceleration = Spatial(acceleration.linear + turning, acceleration.angular)
    if axes != "body":
        acceleration = in_axes(world_pose(model, q, frame), acceleration, axes)
    return links.broadcast_result(acceleration.array, (*links.leading_axes(q, v, a), 6))


def frame_motion(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike | None, frame: str
) -> tuple[Spatial, Spatial]:
    """Return velocity and spatial acceleration of a frame in its own coordinates.

    Without `a` the acceleration is zero.
    """
    k = model.frame(frame)
    coordinates, X, S = links.links_at(model, q)
    speeds = components(links.check_coordinates(model, v, "v"), model.nv)
    rates = None if a is None else components(links.check_coordinates(model, a, "a"), model.nv)
    zero = np.zeros((*np.shape(q)[:-1], 3))
    velocity = acceleration = Spatial(zero, zero)
    for i in reversed(links.ancestors(model, model.frames[k].link)):
        vJ = links.joint_velocity(S[i], speeds)
        velocity = X[i].motion_to_child(velocity) + vJ
        if rates is not None:
            acceleration = X[i].motion_to_child(acceleration) + links.joint_velocity(S[i], rates)
            acceleration = acceleration + velocity.cross(vJ)
            if (bias := links.bias_of(model.links[i], coordinates[i], speeds)) is not None:
                acceleration = acceleration + bias
    at = frame_placement(model, k)
    return at.motion_to_child(velocity), at.motion_to_child(acceleration)


def frame_placement(model: Model, k: int) -> Pose:
    """Return where a frame is in its link."""
    return Pose(model.frame_rotations[k], model.frame_positions[k])


def world_pose(model: Model, q: ArrayLike, frame: str) -> Pose:
    """Return the pose of a frame in the world."""
    k = model.frame(frame)
    coordinates = links.coordinates_of(model, q)
    pose = frame_placement(model, k)
    for i in links.ancestors(model, model.frames[k].link):
        pose = links.link_pose(model, i, coordinates[i]) @ pose
    return pose


def world_poses(model: Model, X: list[Pose]) -> list[Pose]:
    """Return the poses of all links in the world for those in their parents."""
    poses: list[Pose] = []
    for link, own in zip(model.links, X, strict=True):
        poses.append(own if link.parent < 0 else poses[link.parent] @ own)
    return poses


def in_axes(X_WF: Pose, motion: Spatial, axes: str) -> Spatial:
    """Return a motion in the coordinates of F in "body", "world" or "aligned" axes."""
    if axes == "body":
        return motion
    if axes == "world":
        return X_WF.motion_to_parent(motion)
    return Spatial(matvec(X_WF.R, motion.linear), matvec(X_WF.R, motion.angular))


def frame_jacobian(model: Model, q: ArrayLike, frame: str, axes: str = "body") -> Matrix:
    """Return the Jacobian of a frame, with ``frame_twist == J @ v``.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    frame : str
        Name of a frame or body.
    axes : {"body", "world", "aligned"}, optional
        Axes of the result. ``"body"``: those of the frame. ``"world"``: those of the world, where
        the linear part belongs to the point of the body at the origin of the world. ``"aligned"``:
        parallel to the world, at the origin of the frame.

    Returns
    -------
    array (..., 6, nv)
        The Jacobian, linear part first.

    Examples
    --------
    >>> from archimedes.multibody import Builder, frame_jacobian
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bob", position=[1.0, 0.0, 0.0])
    >>> frame_jacobian(b.build(), [0.0], "tip").T
    array([[0., 1., 0., 0., 0., 1.]])
    """
    check_choice(axes, "axes", AXES)
    chain, X_WF = chain_above(model, q, frame)
    columns = [(k, in_axes(X_WF, c, axes)) for _, _, own in chain for k, c in own]
    return column_matrix(model, links.leading_axes(q), columns)


def frame_jacobian_rate(
    model: Model, q: ArrayLike, v: ArrayLike, frame: str, axes: str = "body"
) -> Matrix:
    """Return the time derivative of `frame_jacobian`: ``frame_acceleration == J @ a + J_rate @ v``.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    frame : str
        Name of a frame or body.
    axes : {"body", "world", "aligned"}, optional
        Axes of the result. ``"body"``: those of the frame. ``"world"``: those of the world, where
        the linear part belongs to the point of the body at the origin of the world. ``"aligned"``:
        parallel to the world, at the origin of the frame.

    Returns
    -------
    array (..., 6, nv)
        The rate.

    Examples
    --------
    >>> from archimedes.multibody import Builder, frame_jacobian_rate
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bob", position=[1.0, 0.0, 0.0])
    >>> frame_jacobian_rate(b.build(), [0.0], [2.0], "tip", axes="aligned").T
    array([[-2.,  0.,  0.,  0.,  0.,  0.]])
    """
    check_choice(axes, "axes", AXES)
    q, v = links.check_state(model, q=q, v=v)
    chain, X_WF = chain_above(model, q, frame)
    v_F, _ = frame_motion(model, q, v, None, frame)
    v_links, coordinates = link_velocities(model, q, v), links.coordinates_of(model, q)
    turning = Spatial(np.zeros(3), v_F.angular)
    seen_from: dict[str, Callable[[Spatial], Spatial]] = {
        "body": lambda v_j: v_j - v_F,
        "world": lambda v_j: v_j,
        "aligned": lambda v_j: v_j - v_F + turning,
    }
    columns = []
    for i, X, own in chain:
        link, relative = model.links[i], seen_from[axes](X.motion_to_child(v_links[i]))
        rates = [(k, relative.cross(c)) for k, c in own]
        if link.kind.varies:
            changes = link.kind.column_rates(coordinates[i], components(v, model.nv)[link.v_slice])
            rates += [(link.v + k, X.motion_to_child(c)) for k, c in enumerate(changes)]
        columns += [(k, in_axes(X_WF, c, axes)) for k, c in rates]
    return column_matrix(model, links.leading_axes(q, v), columns)


def chain_above(
    model: Model, q: ArrayLike, frame: str
) -> tuple[list[tuple[int, Pose, list[tuple[int, Spatial]]]], Pose]:
    """Return, per link above F, F's pose in it and its columns in F; and F's pose in the world."""
    k = model.frame(frame)
    _, X, S = links.links_at(model, q)
    pose = frame_placement(model, k)
    chain = []
    for i in links.ancestors(model, model.frames[k].link):
        chain.append((i, pose, [(n, pose.motion_to_child(c)) for n, c in S[i]]))
        pose = X[i] @ pose
    return chain, pose


def link_velocities(model: Model, q: ArrayLike, v: Vector) -> list[Spatial]:
    """Return the velocity of each link in its own coordinates."""
    _, X, S = links.links_at(model, q)
    speeds = components(v, model.nv)
    velocities: list[Spatial] = []
    for i, link in enumerate(model.links):
        own = links.joint_velocity(S[i], speeds)
        if link.parent >= 0:
            own = X[i].motion_to_child(velocities[link.parent]) + own
        velocities.append(own)
    return velocities


def column_matrix(
    model: Model, leading: tuple[int, ...], columns: list[tuple[int, Spatial]]
) -> Matrix:
    """Return columns, some of which may belong to the same velocity, as a matrix (..., 6, nv)."""
    matrix = np.zeros((*leading, 6, model.nv))
    total: dict[int, Spatial] = {}
    for k, c in columns:
        total[k] = total[k] + c if k in total else c
    for k, c in total.items():
        matrix[..., :, k] = c.array
    return matrix


# ---- centre of mass, momentum and energies of the moving bodies ---------------------------------


def center_of_mass(model: Model, q: ArrayLike) -> Vec3:
    """Return the centre of mass of the moving bodies.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., 3)
        Position in m, in the world.

    Examples
    --------
    >>> from archimedes.multibody import Builder, center_of_mass
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1], position=[0, 0, 1])
    >>> center_of_mass(b.build(), [0.0])
    array([0.5, 0. , 1. ])
    """
    return first_moment(model, q) / np.sum(model.masses)


def first_moment(model: Model, q: ArrayLike) -> Vec3:
    """Return the sum (3,) of the masses times the positions of their centres in the world."""
    X = world_poses(model, links.links_at(model, q).X)
    total: Any = np.zeros(3)
    for i, at in enumerate(X):
        total = total + model.masses[i] * (at.p + matvec(at.R, model.centers[i]))
    return total


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the momentum of the moving bodies, in axes of the world.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Returns
    -------
    array (..., 6)
        Linear momentum in kg m/s, then angular momentum about the centre of mass in kg m^2/s.

    Examples
    --------
    >>> from archimedes.multibody import Builder, centroidal_momentum
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> centroidal_momentum(b.build(), [0.0], [1.0])
    array([0. , 1. , 0. , 0. , 0. , 0.1])
    """
    A = centroidal_matrix(model, q)
    v = links.check_coordinates(model, v, "v")
    return reduce(add, [A[..., :, k] * v[..., k, None] for k in range(model.nv)])


def centroidal_matrix(model: Model, q: ArrayLike) -> Matrix:
    """Return the centroidal momentum matrix A (6, nv), with ``centroidal_momentum == A @ v``.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Examples
    --------
    >>> from archimedes.multibody import Builder, centroidal_matrix
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> centroidal_matrix(b.build(), [0.0]).T
    array([[0. , 1. , 0. , 0. , 0. , 0.1]])
    """
    _, X, S = links.links_at(model, q)
    Ic = links.inertias_of(model)
    for i in reversed(range(len(model.links))):
        parent = model.links[i].parent
        if parent >= 0:
            Ic[parent] = Ic[parent] + Ic[i].to_parent(X[i])
    c = center_of_mass(model, q)
    columns: list[tuple[int, Spatial]] = []
    for i, at in enumerate(world_poses(model, X)):
        about = Pose(at.R, at.p - c)
        columns += [(k, about.force_to_parent(Ic[i] @ column)) for k, column in S[i]]
    return column_matrix(model, links.leading_axes(q), columns)


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike) -> Scalar:
    """Return the kinetic energy in J; armature is included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Examples
    --------
    >>> from archimedes.multibody import Builder, kinetic_energy
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> round(float(kinetic_energy(b.build(), [0.0], [1.0])), 12)
    0.3
    """
    q, v = links.check_state(model, q=q, v=v)
    total = np.sum(model.armature * v * v, axis=-1)
    for I, velocity in zip(links.inertias_of(model), link_velocities(model, q, v), strict=True):
        total = total + velocity.dot(I @ velocity)
    return links.broadcast_result(0.5 * total, links.leading_axes(q, v))


def potential_energy(model: Model, q: ArrayLike) -> Scalar:
    """Return the potential energy in J, zero at the origin of the world.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Examples
    --------
    >>> from archimedes.multibody import Builder, potential_energy
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1], position=[0, 0, 1])
    >>> round(float(potential_energy(b.build(), [0.0])), 12)
    19.62
    """
    return -np.sum(first_moment(model, q) * model.gravity, axis=-1)
