"""Jacobians of frames, and their rates.

Legend: column S_j of a joint above frame F, in the coordinates of F, is c_j; it moves along with
link j, so its rate in those coordinates is ``(v_j - v_F) x c_j``.
Source: Featherstone 2008, section 2.10 (moving coordinates) and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.multibody.algorithms.kinematics import check_axes, in_axes, motions
from archimedes.multibody.algorithms.links import (
    ancestors,
    check_state,
    columns_of,
    coordinates_of,
    leading_axes,
    moving,
    poses_of,
    speeds_of,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Spatial,
    compose,
    cross_motion,
    motion_to_child,
)

__all__ = ["frame_jacobian", "frame_jacobian_rate"]


def frame_jacobian(model: Model, q: Any, frame: str, axes: str = "body") -> Any:
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
    check_axes(axes)
    chain, X_WF = above(model, q, frame)
    columns = [(k, in_axes(X_WF, c, axes)) for i, X, cs in chain for k, c in cs]
    return matrix(model, leading_axes(q), columns)


def frame_jacobian_rate(model: Model, q: Any, v: Any, frame: str, axes: str = "body") -> Any:
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
    check_axes(axes)
    q, v = check_state(model, q=q, v=v)
    chain, X_WF = above(model, q, frame)
    v_F, _ = motions(model, q, v, None, frame)
    v_links = link_velocities(model, q, v)
    turning = Spatial(np.zeros(3), v_F.angular)
    seen_from: dict[str, Callable[[Spatial], Spatial]] = {
        "body": lambda v_j: v_j - v_F,
        "world": lambda v_j: v_j,
        "aligned": lambda v_j: v_j - v_F + turning,
    }
    columns = []
    for i, X, cs in chain:
        relative = seen_from[axes](motion_to_child(X, v_links[i]))
        columns += [(k, in_axes(X_WF, cross_motion(relative, c), axes)) for k, c in cs]
    rate = matrix(model, leading_axes(q, v), columns)
    for i, X, _ in chain:
        rate = rate + varying(model, q, v, i, X, X_WF, axes)
    return rate


def above(
    model: Model, q: Any, frame: str
) -> tuple[list[tuple[int, Pose, list[tuple[int, Spatial]]]], Pose]:
    """Return, per link above F, F's pose in it and its columns in F; and F's pose in the world."""
    k = model.frame(frame)
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    pose = Pose(model.frame_rotations[k], model.frame_positions[k])
    chain = []
    for i in ancestors(model, model.frames[k].link):
        chain.append((i, pose, [(n, motion_to_child(pose, c)) for n, c in S[i]]))
        pose = compose(X[i], pose)
    return chain, pose


def link_velocities(model: Model, q: Any, v: Any) -> list[Spatial]:
    """Return the velocity of each link in its own coordinates."""
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    speeds = speeds_of(model, v)
    found: list[Spatial] = []
    for i, link in enumerate(model.links):
        own = moving(S[i], speeds)
        found.append(own if link.parent < 0 else motion_to_child(X[i], found[link.parent]) + own)
    return found


def matrix(model: Model, leading: tuple[int, ...], columns: list[tuple[int, Spatial]]) -> Any:
    """Return columns, some of which may belong to the same velocity, as a matrix (..., 6, nv)."""
    found = np.zeros((*leading, 6, model.nv))
    total: dict[int, Spatial] = {}
    for k, c in columns:
        total[k] = total[k] + c if k in total else c
    for k, c in total.items():
        found[..., :, k] = c.array
    return found


def varying(model: Model, q: Any, v: Any, i: int, X: Pose, X_WF: Pose, axes: str) -> Any:
    """Return what a motion S that is not constant in its link's axes adds to the rate."""
    link = model.links[i]
    if link.kind.bias is None:
        return 0.0
    from archimedes.multibody.models.user_joints import column_rates

    qs = coordinates_of(model, q)
    rates = column_rates(link, qs[i], speeds_of(model, v)[link.v : link.v + link.kind.nv])
    moved = [in_axes(X_WF, motion_to_child(X, c), axes) for c in rates]
    return matrix(model, (), [(link.v + k, c) for k, c in enumerate(moved)])
