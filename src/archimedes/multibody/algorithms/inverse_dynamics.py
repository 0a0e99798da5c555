"""Inverse dynamics by the recursive Newton-Euler algorithm.

Legend: w_i, dw_i are angular velocity and acceleration of link i, a_i the acceleration of its
origin, f_i the force through its joint, all in its own axes; the world accelerates by minus
gravity. (vJ, wJ) is the motion of the joint.
Source: Featherstone 2008, table 5.1, with ordinary accelerations (`newton_euler`).
"""

from __future__ import annotations

from typing import Any

from archimedes.multibody.algorithms.derivatives.inverse_dynamics_derivatives import (
    rnea_derivatives,
)
from archimedes.multibody.algorithms.derivatives.own_derivatives import recorded
from archimedes.multibody.algorithms.joint_frames import in_joint_frames
from archimedes.multibody.algorithms.links import (
    Column,
    Forces,
    check_state,
    columns_of,
    coordinates_of,
    external_forces,
    gravity_of,
    joined,
    leading_axes,
    moving,
    poses_of,
    speeds_of,
    spread,
)
from archimedes.multibody.algorithms.moved_inertias import moved_inertias_of
from archimedes.multibody.algorithms.newton_euler import Turning, needed_force, swept, turning
from archimedes.multibody.algorithms.passive_forces import passive_torque
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Rigid,
    Spatial,
    dot,
    force_to_parent,
    to_child,
)
from archimedes.spatial.components import cross, expand

__all__ = ["gravity_torque", "rnea"]


def rnea(model: Model, q: Any, v: Any, a: Any, forces: Forces = None, passive: bool = False) -> Any:
    """Return the torques that accelerations need, by the recursive Newton-Euler algorithm.

    Leading axes broadcast.

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
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    passive : bool, optional
        Include damping, friction and springs of the joints. False by default.

    Returns
    -------
    array (..., nv)
        Torques in N m, or forces in N.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, rnea
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> rnea(b.build(), q=np.zeros(1), v=np.zeros(1), a=np.zeros(1))
    array([-9.81])
    """
    x = check_state(model, forces, q=q, v=v, a=a)
    torques = recorded(plain_rnea, rnea_derivatives, model, x, forces)
    return torques - passive_torque(model, q, v) if passive else torques


def plain_rnea(model: Model, q: Any, v: Any, a: Any, forces: Forces) -> Any:
    """Return the torques (nv,), as they are computed."""
    model, forces = in_joint_frames(model, forces)
    X, S, f_of = link_forces(model, q, v, a, forces, moved_inertias_of(model))
    rates = speeds_of(model, a, "a")
    torques, _ = torques_of(model, X, S, f_of)
    found = joined([t + model.armature[k] * rates[k] for k, t in enumerate(torques)])
    return spread(found, (*leading_axes(q, v, a, forces=forces), model.nv))


def link_forces(
    model: Model, q: Any, v: Any, a: Any, forces: Forces, inertias: list[Rigid]
) -> tuple[list[Pose], list[list[Column]], list[Spatial]]:
    """Return poses and columns of the links, and the force that each needs for its own motion."""
    qs = coordinates_of(model, q)
    speeds, rates = speeds_of(model, v), speeds_of(model, a, "a")
    X, S = poses_of(model, qs), columns_of(model, qs)
    acting = external_forces(model, forces)
    w_of: list[Any] = []
    dw_of: list[Any] = []
    a_of: list[Any] = []
    turning_of: list[Turning] = []
    f_of: list[Spatial] = []
    for i, link in enumerate(model.links):
        up, J, a_J = link.parent, moving(S[i], speeds), moving(S[i], rates)
        if link.kind.bias is not None:
            a_J = a_J + link.kind.bias(link.screw, qs[i], speeds[link.v : link.v + link.kind.nv])
        if up < 0:
            w, dw = J.angular, a_J.angular
            a_i = to_child(X[i], gravity_of(model).linear) + cross(w, J.linear)
        else:
            carried = to_child(X[i], w_of[up])
            w = carried + J.angular
            dw = to_child(X[i], dw_of[up]) + a_J.angular + cross(carried, J.angular)
            a_i = to_child(X[i], a_of[up] + swept(turning_of[up], X[i].p))
            a_i = a_i + cross(carried + w, J.linear)
        a_i = a_i + a_J.linear
        w_of.append(w)
        dw_of.append(dw)
        a_of.append(a_i)
        turning_of.append(turning(w, dw))
        f_i = needed_force(inertias[i], turning_of[i], a_i)
        f_of.append(f_i - acting[i] if i in acting else f_i)
    return X, S, f_of


def gravity_torque(model: Model, q: Any) -> Any:
    """Return the torques that hold the robot at rest.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., nv)
        Torques.

    Examples
    --------
    >>> from archimedes.multibody import Builder, gravity_torque
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> gravity_torque(b.build(), [0.0])
    array([-9.81])
    """
    model, _ = in_joint_frames(model)
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    a_of: list[Any] = []
    for i, link in enumerate(model.links):
        above = a_of[link.parent] if link.parent >= 0 else gravity_of(model).linear
        a_of.append(to_child(X[i], above))
    inertias = moved_inertias_of(model)
    f_of = [Spatial(expand(I.m) * a, cross(I.h, a)) for I, a in zip(inertias, a_of, strict=True)]
    torques, _ = torques_of(model, X, S, f_of)
    return spread(joined(torques), (*leading_axes(q), model.nv))


def torques_of(
    model: Model, X: list[Pose], S: list[list[Column]], forces: list[Spatial]
) -> tuple[list[Any], list[Spatial]]:
    """Return the torques that carry the forces which each link needs, and those through joints."""
    total = list(forces)
    torques: list[Any] = [0.0] * model.nv
    for i in reversed(range(len(model.links))):
        for k, column in S[i]:
            torques[k] = torques[k] + dot(column, total[i])
        parent = model.links[i].parent
        if parent >= 0:
            total[parent] = total[parent] + force_to_parent(X[i], total[i])
    return torques, total
