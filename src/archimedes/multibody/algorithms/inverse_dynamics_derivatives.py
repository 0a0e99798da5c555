"""Derivatives of inverse dynamics in the tangent space of q, in v and in a.

Legend, all in common axes: for column S_j of joint j, with v_p and a_p velocity and acceleration
of its parent, P_j = v_p x S_j and Q_j = a_p x S_j + v_p x P_j are what turning the joint a little
does to the velocities and accelerations beyond it; R_j = P_j + v_j x S_j does it for its speed. I,
B and f are inertia, the matrix B (`common_axes`) and force of all that link i carries. For column
S_j at or above column S_i,

    dtau_j/dq_i = S_j . (2 B P_i + I Q_i + S_i x* f),   dtau_i/dq_j = S_i . (2 B P_j + I Q_j)
    dtau_j/dv_i = S_j . (2 B S_i + I R_i),              dtau_i/dv_j = S_i . (2 B S_j + I R_j)

the term with f only where j is strictly above i.
Source: Singh, Russell and Wensing, Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra, IEEE Robotics and Automation Letters 7, 2022, equations 13 to 17.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.algorithms.common_axes import (
    bias_of,
    bias_sum,
    bias_times,
    bias_transposed,
    in_common_axes,
    pair,
)
from archimedes.multibody.algorithms.coriolis import check_constant
from archimedes.multibody.algorithms.links import Forces, ancestors, external_forces, speeds_of
from archimedes.multibody.algorithms.mass_matrix import add_pair, filled
from archimedes.multibody.algorithms.passive_forces import passive_derivatives
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Spatial,
    cross_force,
    cross_motion,
    dot,
    force_to_parent,
    momentum,
    rigid_sum,
)

__all__ = ["derivative_entries", "rnea_derivatives"]

Entries = dict[tuple[int, int], Any]


def rnea_derivatives(
    model: Model, q: Any, v: Any, a: Any, forces: Forces = None, passive: bool = False
) -> tuple[Any, Any, Any]:
    """Return the derivatives of `rnea` in q, v and a, each (nv, nv).

    That in q is along the tangent space: of ``rnea(integrate(model, q, e), v, a)`` in e (nv,). The
    last is the mass matrix. `forces` stay as they are in the axes of their bodies.

    >>> import numpy as np
    >>> from archimedes.multibody import Builder, rnea_derivatives
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> rnea_derivatives(b.build(), np.array([np.pi / 2]), np.zeros(1), np.zeros(1))[0]
    array([[9.81]])
    """
    dq, dv, da = derivative_entries(model, q, v, a, forces)
    for k in range(model.nv):
        da[k, k] = da[k, k] + model.armature[k]
    batch = np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, v, a)))
    shape = (*batch, model.nv, model.nv)
    by_q, by_v = filled(dq, shape), filled(dv, shape)
    if passive:
        own_q, own_v = passive_derivatives(model, q, v)
        by_q, by_v = by_q - own_q, by_v - own_v
    return by_q, by_v, filled(da, shape)


def derivative_entries(
    model: Model, q: Any, v: Any, a: Any, forces: Forces
) -> tuple[Entries, Entries, Entries]:
    """Return the entries that are not zero, without armature."""
    check_constant(model, "rnea_derivatives")
    tree = in_common_axes(model, q, speeds_of(model, v), speeds_of(model, a, "a"))
    acting = external_forces(model, forces)
    I = list(tree.inertias)
    B, f, P, Q, R = [], [], [], [], []
    for i, S in enumerate(tree.S):
        v_i, v_p, a_p = tree.v[i], tree.v_parent[i], tree.a_parent[i]
        B.append(bias_of(I[i], v_i))
        f_i = momentum(I[i], tree.a[i]) + cross_force(v_i, momentum(I[i], v_i))
        f.append(f_i - force_to_parent(tree.poses[i], acting[i]) if i in acting else f_i)
        rates = [cross_motion(v_i, c) for _, c in S]
        turned = [cross_motion(a_p, c) for _, c in S]
        if v_p is None:
            zero = Spatial(np.zeros(3), np.zeros(3))
            P.append([zero for _ in S])
        else:
            P.append([cross_motion(v_p, c) for _, c in S])
            turned = [x + cross_motion(v_p, p) for x, p in zip(turned, P[i], strict=True)]
            rates = [x + p for x, p in zip(rates, P[i], strict=True)]
        Q.append(turned)
        R.append(rates)
    dq: Entries = {}
    dv: Entries = {}
    da: Entries = {}

    def add(entries: Entries, row: int, column: int, value: Any) -> None:
        place = (row, column)
        entries[place] = entries[place] + value if place in entries else value

    for i in reversed(range(len(model.links))):
        for n, (k, column) in enumerate(tree.S[i]):
            F, G = momentum(I[i], column), 2.0 * bias_transposed(B[i], column)
            K = momentum(I[i], Q[i][n]) + bias_times(B[i], P[i][n]).times(2.0)
            above = K + cross_force(column, f[i])
            L = momentum(I[i], R[i][n]) + bias_times(B[i], column).times(2.0)
            for m, (j, other) in enumerate(tree.S[i]):
                add(dq, j, k, dot(other, K))
                add(dv, j, k, dot(other, L))
                if m <= n:
                    add_pair(da, k, j, dot(other, F))
            for up in ancestors(model, i)[1:]:
                for m, (j, other) in enumerate(tree.S[up]):
                    add(dq, j, k, dot(other, above))
                    add(dv, j, k, dot(other, L))
                    add(dq, k, j, pair(F, Q[up][m], G, P[up][m]))
                    add(dv, k, j, pair(F, R[up][m], G, other))
                    add_pair(da, k, j, dot(other, F), twice=k == j)
        parent = model.links[i].parent
        if parent >= 0:
            I[parent] = rigid_sum(I[parent], I[i])
            B[parent] = bias_sum(B[parent], B[i])
            f[parent] = f[parent] + f[i]
    return dq, dv, da
