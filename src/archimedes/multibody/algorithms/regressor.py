"""Torques as a product of a matrix and the inertial parameters of the bodies.

Legend: a body's ten parameters are m, m c (3), and Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin
of its frame. The force that moves it is linear in them: with v, w velocity and a', alpha its
spatial acceleration (gravity included), a = a' + w x v that of the origin,
``f = m a + (alpha x + w x w x) m c`` and ``n = I alpha + w x I w + m c x a``.
Source: Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and
links, Int. J. Robotics Research 5, 1986.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.algorithms.links import (
    check_state,
    columns_of,
    coordinates_of,
    gravity_of,
    inertias_of,
    leading_axes,
    moving,
    poses_of,
    speeds_of,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Spatial,
    cross_motion,
    dot,
    force_to_parent,
    motion_to_child,
)
from archimedes.spatial.components import components, cross, join

__all__ = ["inertial_parameters", "torque_regressor"]


def torque_regressor(model: Model, q: Any, v: Any, a: Any) -> Any:
    """Return the matrix that gives `rnea` when multiplied by the inertial parameters.

    Its ten columns per body, in the order of `body_names`, belong to m, m c and Ixx, Ixy, Iyy, Ixz,
    Iyz, Izz about the origin of the frame of the body; see `inertial_parameters`. Torques of
    armature are not included.

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

    Returns
    -------
    array (nv, 10 bodies)
        The regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, inertial_parameters, rnea, torque_regressor
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> arm, state = b.build(), (np.array([0.1]), np.array([2.0]), np.array([3.0]))
    >>> Y = torque_regressor(arm, *state)
    >>> np.allclose(Y @ inertial_parameters(arm), rnea(arm, *state))
    True
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    qs = coordinates_of(model, q)
    speeds, rates = speeds_of(model, v), speeds_of(model, a, "a")
    X, S = poses_of(model, qs), columns_of(model, qs)
    v_of: list[Spatial] = []
    a_of: list[Spatial] = []
    for i, link in enumerate(model.links):
        vJ = moving(S[i], speeds)
        a_i = motion_to_child(X[i], a_of[link.parent] if link.parent >= 0 else gravity_of(model))
        v_i = motion_to_child(X[i], v_of[link.parent]) + vJ if link.parent >= 0 else vJ
        a_i = a_i + moving(S[i], rates) + cross_motion(v_i, vJ)
        if link.kind.bias is not None:
            a_i = a_i + link.kind.bias(link.screw, qs[i], speeds[link.v : link.v + link.kind.nv])
        v_of.append(v_i)
        a_of.append(a_i)
    bodies = [i for i, link in enumerate(model.links) if link.body]
    found = np.zeros((*leading_axes(q, v, a), model.nv, 10 * len(bodies)))
    for n, body in enumerate(bodies):
        for k, force in enumerate(body_regressor(v_of[body], a_of[body])):
            at = body
            torques: dict[int, Any] = {}
            while at >= 0:
                for j, column in S[at]:
                    part = dot(column, force)
                    torques[j] = torques[j] + part if j in torques else part
                force = force_to_parent(X[at], force)
                at = model.links[at].parent
            for j, value in torques.items():
                found[..., j, 10 * n + k] = value
    return found


def body_regressor(v: Spatial, a: Spatial) -> list[Spatial]:
    """Return the forces that a unit of each of the ten parameters needs."""
    w, turning = v.angular, a.angular
    push = a.linear + cross(w, v.linear)
    zero = np.zeros(np.shape(push))
    found = [Spatial(push, zero)]
    for e in np.eye(3):
        arm = np.broadcast_to(e, np.shape(push))
        found.append(Spatial(cross(turning, arm) + cross(w, cross(w, arm)), cross(arm, push)))
    for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)):
        found.append(Spatial(zero, unit_moment(i, j, turning) + cross(w, unit_moment(i, j, w))))
    return found


def unit_moment(i: int, j: int, x: Any) -> Any:
    """Return the product of the inertia with ones at (i, j) and (j, i), and a vector."""
    parts = components(x, 3)
    rows = [0.0 * parts[0]] * 3
    rows[i] = parts[j]
    rows[j] = parts[i]
    return join(rows)


def inertial_parameters(model: Model) -> Any:
    """Return the inertial parameters, by which `torque_regressor` is multiplied.

    Parameters
    ----------
    model : Model
        The robot.

    Returns
    -------
    array (10 bodies,)
        Parameters.

    Examples
    --------
    >>> from archimedes.multibody import Builder, inertial_parameters
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> inertial_parameters(b.build())
    array([2. , 1. , 0. , 0. , 0.1, 0. , 0.6, 0. , 0. , 0.6])
    """
    rows = []
    for link, I in zip(model.links, inertias_of(model), strict=True):
        if link.body:
            J = [I.J[0, 0], I.J[0, 1], I.J[1, 1], I.J[0, 2], I.J[1, 2], I.J[2, 2]]
            rows.append(np.concatenate([np.stack([I.m]), I.h, np.stack(J)]))
    return np.concatenate(rows)
