"""Forward dynamics by the articulated-body algorithm.

Legend: IA_i, pA_i are articulated inertia and bias force of link i, c_i the acceleration it has at
rest of the joints; accelerations are ordinary ones, as in `newton_euler`. The columns of a joint
are eliminated one after the other, each with U = IA S, D = S.U and u = tau - S.pA, which for a
joint of several columns is the same as inverting the matrix D of the book.
Source: Featherstone 2008, table 7.1; armature adds to D (section 9.6).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.function.reproducible import matmul
from archimedes.multibody.algorithms.derivatives.forward_dynamics_derivatives import aba_derivatives
from archimedes.multibody.algorithms.derivatives.own_derivatives import recorded
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.joint_frames import in_joint_frames
from archimedes.multibody.algorithms.links import (
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
from archimedes.multibody.algorithms.mass_matrix import crba
from archimedes.multibody.algorithms.moved_inertias import moved_inertias_of
from archimedes.multibody.algorithms.newton_euler import Turning, needed_force, swept, turning
from archimedes.multibody.algorithms.passive_forces import passive_torque
from archimedes.multibody.algorithms.singular_inertia import check_inertia_of_joints
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.ranges import known_zero
from archimedes.multibody.models.spatial_algebra import (
    Articulated,
    Pose,
    Spatial,
    articulated,
    dot,
    force_to_parent,
    motion_to_child,
    outer,
    rotated,
    rotated_symmetric,
    symmetric,
    to_child,
)
from archimedes.spatial.components import cross, matvec, skew, transpose

__all__ = ["aba"]


class Eliminated(NamedTuple):
    """What is left of a column for the way back: U / D, u / D, and the column."""

    v: int
    S: Spatial
    gain: Spatial
    u: Any


def aba(
    model: Model, q: Any, v: Any, tau: Any, forces: Forces = None, passive: bool = False
) -> Any:
    """Return the accelerations that torques give, by the articulated-body algorithm.

    Leading axes broadcast. Models with mimic joints are solved by their mass matrix. A joint that
    moves nothing with inertia is an error; if the numbers of the model are traced, it gives nan or
    inf.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    tau : array (..., nv)
        Torques of the joints in N m, or forces in N.
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    passive : bool, optional
        Include damping, friction and springs of the joints. False by default.

    Returns
    -------
    array (..., nv)
        Accelerations in m/s^2 and rad/s^2.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, aba
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> aba(b.build(), q=np.zeros(1), v=np.zeros(1), tau=np.zeros(1))
    array([16.35])
    """
    q, v, tau = check_state(model, forces, q=q, v=v, tau=tau)
    check_inertia_of_joints(model)
    if passive:
        tau = tau + passive_torque(model, q, v)
    x = (q, v, tau)
    return recorded(plain_aba, aba_derivatives, model, x, forces)


def plain_aba(model: Model, q: Any, v: Any, tau: Any, forces: Forces) -> Any:
    """Return the accelerations (nv,), as they are computed."""
    if any(link.mimic for link in model.links):
        return by_mass_matrix(model, q, v, tau, forces)
    model, forces = in_joint_frames(model, forces)
    qs = coordinates_of(model, q)
    speeds, torques = speeds_of(model, v), speeds_of(model, tau, "tau")
    X, S = poses_of(model, qs), columns_of(model, qs)
    acting = external_forces(model, forces)
    n = len(model.links)
    inertias = moved_inertias_of(model)

    w_of: list[Any] = []
    turning_of: list[Turning] = []
    c_of: list[Any] = [None] * n
    pA: list[Spatial] = []
    for i, link in enumerate(model.links):
        up, J = link.parent, moving(S[i], speeds)
        w = J.angular
        if up >= 0:
            carried = to_child(X[i], w_of[up])
            w = carried + w
            pulled = to_child(X[i], swept(turning_of[up], X[i].p))
            c_of[i] = Spatial(pulled + cross(carried + w, J.linear), cross(carried, J.angular))
        else:
            c_of[i] = Spatial(cross(w, J.linear), np.zeros(3))
        if link.kind.bias is not None:
            bias = link.kind.bias(link.screw, qs[i], speeds[link.v : link.v + link.kind.nv])
            c_of[i] = c_of[i] + bias
        w_of.append(w)
        turning_of.append(turning(w))
        p = needed_force(inertias[i], turning_of[i])
        pA.append(p - acting[i] if i in acting else p)

    IA = [articulated(I) for I in inertias]
    kept: list[list[Eliminated]] = [[] for _ in range(n)]
    for i in reversed(range(n)):
        I, p, parent = IA[i], pA[i], model.links[i].parent
        for k, column in S[i]:
            U = times(I, column)
            inverse_D = 1.0 / (dot(column, U) + model.armature[k])
            gain, u = U.times(inverse_D), torques[k] - dot(column, p)
            kept[i].append(Eliminated(k, column, gain, u * inverse_D))
            I = without(I, U, gain)
            if known_zero(model.armature[k]):
                I = freed(I, column)
            p = p + gain.times(u)
        if parent >= 0:
            p = p + times(I, c_of[i])
            IA[parent] = summed(IA[parent], articulated_to_parent(X[i], I))
            pA[parent] = pA[parent] + force_to_parent(X[i], p)

    accelerations: list[Any] = [0.0] * model.nv
    a_of: list[Spatial] = []
    for i, link in enumerate(model.links):
        a_i = motion_to_child(X[i], a_of[link.parent] if link.parent >= 0 else gravity_of(model))
        a_i = a_i + c_of[i]
        for k, column, gain, u in reversed(kept[i]):
            accelerations[k] = u - dot(gain, a_i)
            a_i = a_i + column.times(accelerations[k])
        a_of.append(a_i)
    return spread(joined(accelerations), (*leading_axes(q, v, tau, forces=forces), model.nv))


def times(I: Articulated, m: Spatial) -> Spatial:
    """Return the force that an articulated inertia needs for a motion."""
    return Spatial(
        matvec(I.A, m.linear) + matvec(I.H, m.angular),
        matvec(transpose(I.H), m.linear) + matvec(I.J, m.angular),
    )


def summed(a: Articulated, b: Articulated) -> Articulated:
    """Return the sum of two inertias."""
    return Articulated(a.A + b.A, a.H + b.H, a.J + b.J)


def without(I: Articulated, U: Spatial, gain: Spatial) -> Articulated:
    """Return the inertia with one motion left free: ``I - U U' / D``."""
    return Articulated(
        symmetric(I.A - outer(U.linear, gain.linear)),
        I.H - outer(U.linear, gain.angular),
        symmetric(I.J - outer(U.angular, gain.angular)),
    )


def freed(I: Articulated, column: Spatial) -> Articulated:
    """Return the inertia with exact zeros along a motion that is free, where it is along an axis.

    Without armature nothing resists the motion: what is left there is rounding, and zeros that are
    known shorten the program.
    """
    linear, angular = concrete(column.linear), concrete(column.angular)
    if linear is None or angular is None or np.count_nonzero([*linear, *angular]) != 1:
        return I
    across_l, across_a = np.where(linear == 0.0, 1.0, 0.0), np.where(angular == 0.0, 1.0, 0.0)
    return Articulated(
        I.A * np.outer(across_l, across_l),
        I.H * np.outer(across_l, across_a),
        I.J * np.outer(across_a, across_a),
    )


def articulated_to_parent(X: Pose, I: Articulated) -> Articulated:
    """Return an articulated inertia given in the child in the coordinates of the parent."""
    P = skew(X.p)
    A, H = rotated_symmetric(X, I.A), rotated(X, I.H)
    shifted = H - matmul(A, P)
    J = rotated_symmetric(X, I.J) + matmul(P, shifted) - matmul(transpose(H), P)
    return Articulated(A, shifted, symmetric(J))


def by_mass_matrix(model: Model, q: Any, v: Any, tau: Any, forces: Forces) -> Any:
    """Return the accelerations by solving with the mass matrix."""

    bias = rnea(model, q, v, np.zeros(model.nv), forces)
    rest = tau - bias
    return np.linalg.solve(crba(model, q), rest[..., None])[..., 0]
