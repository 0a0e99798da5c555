"""Where frames are, how they move, and how that changes.

Legend: F is a frame on link i, X_WF its pose in the world. A twist in "body" axes is that of F in
its own coordinates, in "world" axes that of the body's point at the world's origin, in "aligned"
axes that of F's origin in axes of the world. An acceleration is the rate of the twist in the same
axes: in "body" and "world" axes the spatial acceleration, in "aligned" axes the acceleration that
an accelerometer would measure (without gravity).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.multibody.algorithms.links import (
    ancestors,
    check_state,
    columns_of,
    coordinates_of,
    leading_axes,
    moving,
    poses_of,
    speeds_of,
    spread,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Spatial,
    compose,
    cross_motion,
    motion_to_child,
    motion_to_parent,
)
from archimedes.spatial.attitudes.rotation_matrix import RotationMatrix
from archimedes.spatial.components import cross, matvec
from archimedes.spatial.transformation import Transformation

__all__ = ["AXES", "frame_acceleration", "frame_pose", "frame_twist"]

AXES = ("body", "world", "aligned")


def frame_pose(model: Model, q: Any, frame: str) -> Transformation:
    """Return the transformation from a frame to the world.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    frame : str
        Name of a frame or body.

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
    X, leading = world_pose(model, q, frame), leading_axes(q)
    X = Pose(spread(X.R, (*leading, 3, 3)), spread(X.p, (*leading, 3)))
    return Transformation(X.p, RotationMatrix.make(X.R))


def frame_twist(model: Model, q: Any, v: Any, frame: str, axes: str = "body") -> Any:
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
    check_axes(axes)
    q, v = check_state(model, q=q, v=v)
    velocity, _ = motions(model, q, v, None, frame)
    return spread(shown(model, q, frame, axes, velocity).array, (*leading_axes(q, v), 6))


def frame_acceleration(model: Model, q: Any, v: Any, a: Any, frame: str, axes: str = "body") -> Any:
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
    check_axes(axes)
    q, v, a = check_state(model, q=q, v=v, a=a)
    velocity, acceleration = motions(model, q, v, a, frame)
    assert acceleration is not None
    if axes == "aligned":
        turning = cross(velocity.angular, velocity.linear)
        acceleration = Spatial(acceleration.linear + turning, acceleration.angular)
    found = shown(model, q, frame, axes, acceleration).array
    return spread(found, (*leading_axes(q, v, a), 6))


def motions(model: Model, q: Any, v: Any, a: Any, frame: str) -> tuple[Spatial, Spatial | None]:
    """Return velocity and spatial acceleration of a frame in its own coordinates."""
    k = model.frame(frame)
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    speeds = speeds_of(model, v)
    rates = None if a is None else speeds_of(model, a, "a")
    zero = np.zeros((*np.shape(q)[:-1], 3))
    velocity = acceleration = Spatial(zero, zero)
    for i in reversed(ancestors(model, model.frames[k].link)):
        link = model.links[i]
        vJ = moving(S[i], speeds)
        velocity = motion_to_child(X[i], velocity) + vJ
        if rates is not None:
            acceleration = motion_to_child(X[i], acceleration) + moving(S[i], rates)
            acceleration = acceleration + cross_motion(velocity, vJ)
            if link.kind.bias is not None:
                own = speeds[link.v : link.v + link.kind.nv]
                acceleration = acceleration + link.kind.bias(link.screw, qs[i], own)
    at = Pose(model.frame_rotations[k], model.frame_positions[k])
    moved = motion_to_child(at, velocity)
    return moved, None if rates is None else motion_to_child(at, acceleration)


def world_pose(model: Model, q: Any, frame: str) -> Pose:
    """Return the pose of a frame in the world."""
    k = model.frame(frame)
    qs = coordinates_of(model, q)
    pose = Pose(model.frame_rotations[k], model.frame_positions[k])
    for i in ancestors(model, model.frames[k].link):
        pose = compose(link_pose(model, qs, i), pose)
    return pose


def link_pose(model: Model, qs: list[Sequence[Any]], i: int) -> Pose:
    """Return the pose of a link in its parent."""
    link = model.links[i]
    at = Pose(model.rotations[i], model.positions[i])
    return compose(at, link.kind.pose(link.screw, qs[i]))


def world_poses(model: Model, X: list[Pose]) -> list[Pose]:
    """Return the poses of all links in the world for those in their parents."""
    found: list[Pose] = []
    for link, own in zip(model.links, X, strict=True):
        found.append(own if link.parent < 0 else compose(found[link.parent], own))
    return found


def shown(model: Model, q: Any, frame: str, axes: str, motion: Spatial) -> Spatial:
    """Return a motion given in a frame's own coordinates in other axes."""
    return motion if axes == "body" else in_axes(world_pose(model, q, frame), motion, axes)


def in_axes(X_WF: Pose, motion: Spatial, axes: str) -> Spatial:
    """Return a motion in the coordinates of F in "body", "world" or "aligned" axes."""
    if axes == "body":
        return motion
    if axes == "world":
        return motion_to_parent(X_WF, motion)
    return Spatial(matvec(X_WF.R, motion.linear), matvec(X_WF.R, motion.angular))


def check_axes(axes: str) -> None:
    """Raise for axes that there are not."""
    if axes not in AXES:
        raise ValueError(f"axes must be one of {', '.join(AXES)}, got {axes!r}")
