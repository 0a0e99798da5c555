"""Derivatives of inverse dynamics in the tangent space of q, in v and in a.

Legend: for column S_j of joint j, with v_p and a_p velocity and acceleration of its parent,
P_j = v_p x S_j and Q_j = a_p x S_j + v_p x P_j are what turning the joint a little does to the
velocities and accelerations beyond it; R_j = P_j + v_j x S_j does it for its speed. I, B and f are
inertia, the matrix B (`link_motions`) and force of all that link i carries. Each of these is in the
axes of its link; the forces of column i are moved from link to link towards the world. For column
S_j at or above column S_i,

    dtau_j/dq_i = S_j . (2 B P_i + I Q_i + S_i x* f),   dtau_i/dq_j = S_i . (2 B P_j + I Q_j)
    dtau_j/dv_i = S_j . (2 B S_i + I R_i),              dtau_i/dv_j = S_i . (2 B S_j + I R_j)

the term with f only where j is strictly above i.
Source: Singh, Russell and Wensing, Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra, IEEE Robotics and Automation Letters 7, 2022, equations 13 to 17 (where all
is in the axes of the world).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms.coriolis import check_constant
from archimedes.multibody.algorithms.derivatives.link_motions import (
    Motions,
    bias_of,
    bias_sum,
    bias_times,
    bias_to_parent,
    bias_transposed,
    motions_of,
    pair,
)
from archimedes.multibody.algorithms.joint_frames import in_joint_frames
from archimedes.multibody.algorithms.links import (
    Forces,
    check_state,
    external_forces,
    leading_axes,
    speeds_of,
)
from archimedes.multibody.algorithms.mass_matrix import add_pair, filled
from archimedes.multibody.algorithms.moved_inertias import moved_inertias_of
from archimedes.multibody.algorithms.passive_forces import passive_derivatives
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Rigid,
    Spatial,
    cross_force,
    cross_motion,
    dot,
    force_to_parent,
    momentum,
    rigid_sum,
    rigid_to_parent,
    to_parent,
)

__all__ = ["derivative_entries", "rnea_derivatives"]

Entries = dict[tuple[int, int], Any]


def rnea_derivatives(
    model: Model, q: Any, v: Any, a: Any, forces: Forces = None, passive: bool = False
) -> tuple[Any, Any, Any]:
    """Return the derivatives of `rnea` with respect to q, v and a.

    The derivative in q is taken along the tangent space: that of ``rnea(integrate(model, q, e), v,
    a)`` in e (nv,). The one in a is the mass matrix. The forces stay constant in the axes of their
    bodies.

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
    (array, array, array)
        Matrices (nv, nv).

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, rnea_derivatives
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> rnea_derivatives(b.build(), np.array([np.pi / 2]), np.zeros(1), np.zeros(1))[0]
    array([[9.81]])
    """
    q, v, a = check_state(model, forces, q=q, v=v, a=a)
    dq, dv, da = derivative_entries(model, q, v, a, forces)
    for k in range(model.nv):
        da[k, k] = da[k, k] + model.armature[k]
    shape = (*leading_axes(q, v, a, forces=forces), model.nv, model.nv)
    by_q, by_v = filled(dq, shape), filled(dv, shape)
    if passive:
        own_q, own_v = passive_derivatives(model, q, v)
        by_q, by_v = by_q - own_q, by_v - own_v
    return by_q, by_v, filled(da, shape)


class Turned(NamedTuple):
    """P, Q and R of the columns of a joint."""

    P: list[Spatial]
    Q: list[Spatial]
    R: list[Spatial]


def turned_columns(links: Motions, i: int) -> Turned:
    """Return what turning a joint a little, or its speed, does beyond it."""
    v_i, v_p, a_p = links.v[i], links.v_parent[i], links.a_parent[i]
    columns = [c for _, c in links.S[i]]
    rates, turned = [cross_motion(v_i, c) for c in columns], [cross_motion(a_p, c) for c in columns]
    if v_p is None:
        zero = Spatial(np.zeros(3), np.zeros(3))
        return Turned([zero for _ in columns], turned, rates)
    P = [cross_motion(v_p, c) for c in columns]
    Q = [x + cross_motion(v_p, p) for x, p in zip(turned, P, strict=True)]
    return Turned(P, Q, [x + p for x, p in zip(rates, P, strict=True)])


def derivative_entries(
    model: Model, q: Any, v: Any, a: Any, forces: Forces
) -> tuple[Entries, Entries, Entries]:
    """Return the entries that are not zero, without armature."""
    check_constant(model, "rnea_derivatives")
    model, forces = in_joint_frames(model, forces)
    links = motions_of(model, q, speeds_of(model, v), speeds_of(model, a, "a"))
    acting = external_forces(model, forces)
    I = moved_inertias_of(model)
    # Twice the matrix B, which is what all formulas have, is that of twice the inertia.
    B = [
        bias_of(Rigid(2.0 * x.m, 2.0 * x.h, 2.0 * x.J), v) for x, v in zip(I, links.v, strict=True)
    ]
    f = []
    for i, (v_i, a_i) in enumerate(zip(links.v, links.a, strict=True)):
        f_i = momentum(I[i], a_i) + cross_force(v_i, momentum(I[i], v_i))
        f.append(f_i - acting[i] if i in acting else f_i)
    turned = [turned_columns(links, i) for i in range(len(model.links))]
    dq: Entries = {}
    dv: Entries = {}
    da: Entries = {}

    def add(entries: Entries, row: int, column: int, value: Any) -> None:
        place = (row, column)
        entries[place] = entries[place] + value if place in entries else value

    for i in reversed(range(len(model.links))):
        P, Q, R = turned[i]
        for n, (k, column) in enumerate(links.S[i]):
            F, G = momentum(I[i], column), bias_transposed(B[i], column)
            K = momentum(I[i], Q[n]) + bias_times(B[i], P[n])
            L = momentum(I[i], R[n]) + bias_times(B[i], column)
            for m, (j, other) in enumerate(links.S[i]):
                add(dq, j, k, dot(other, K))
                add(dv, j, k, dot(other, L))
                if m <= n:
                    add_pair(da, k, j, dot(other, F))
            K, at = K + cross_force(column, f[i]), i
            while (above := model.links[at].parent) >= 0:
                X, at = links.X[at], above
                K, L, F = (force_to_parent(X, force) for force in (K, L, F))
                G = to_parent(X, G)
                for m, (j, other) in enumerate(links.S[at]):
                    add(dq, j, k, dot(other, K))
                    add(dv, j, k, dot(other, L))
                    add(dq, k, j, pair(F, turned[at].Q[m], G, turned[at].P[m]))
                    add(dv, k, j, pair(F, turned[at].R[m], G, other))
                    add_pair(da, k, j, dot(other, F), twice=k == j)
        parent = model.links[i].parent
        if parent >= 0:
            X = links.X[i]
            I[parent] = rigid_sum(I[parent], rigid_to_parent(X, I[i]))
            B[parent] = bias_sum(B[parent], bias_to_parent(X, B[i]))
            f[parent] = f[parent] + force_to_parent(X, f[i])
    return dq, dv, da
