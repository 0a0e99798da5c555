"""The Coriolis matrix.

Legend: for a column S_i and a column S_j above it, with the inertia I and the matrix B of all that
link i carries, ``C_ji = S_j . (I dS_i + B S_i)`` and ``C_ij = S_i . (I dS_j + B S_j)``, where
dS = v x S is the rate of a column. This C has ``dM/dt = C + C'``.
Source: Echeandia and Wensing 2021 (see `common_axes`), algorithm 1.
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
from archimedes.multibody.algorithms.links import ancestors, speeds_of
from archimedes.multibody.algorithms.mass_matrix import filled
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import cross_motion, dot, momentum, rigid_sum

__all__ = ["coriolis_matrix"]


def coriolis_matrix(model: Model, q: Any, v: Any) -> Any:
    """Return the matrix C (nv, nv) at `q` (nq,), `v` (nv,): C v are the torques of velocities.

    The rate of the mass matrix is C + C', so that its difference to 2 C is skew-symmetric.

    >>> from archimedes.multibody import Builder, coriolis_matrix
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> coriolis_matrix(b.build(), [0.3], [1.0]).round(12)
    array([[0.]])
    """
    check_constant(model, "coriolis_matrix")
    tree = in_common_axes(model, q, speeds_of(model, v), [])
    I = list(tree.inertias)
    B = [bias_of(inertia, velocity) for inertia, velocity in zip(I, tree.v, strict=True)]
    rates = [[cross_motion(v_i, c) for _, c in S] for v_i, S in zip(tree.v, tree.S, strict=True)]
    entries: dict[tuple[int, int], Any] = {}

    def add(row: int, column: int, value: Any) -> None:
        place = (row, column)
        entries[place] = entries[place] + value if place in entries else value

    for i in reversed(range(len(model.links))):
        for n, (k, column) in enumerate(tree.S[i]):
            K = momentum(I[i], rates[i][n]) + bias_times(B[i], column)
            F, G = momentum(I[i], column), bias_transposed(B[i], column)
            for j, other in tree.S[i]:
                add(j, k, dot(other, K))
            for up in ancestors(model, i)[1:]:
                for (j, other), rate in zip(tree.S[up], rates[up], strict=True):
                    add(j, k, dot(other, K))
                    add(k, j, pair(F, rate, G, other))
        parent = model.links[i].parent
        if parent >= 0:
            I[parent] = rigid_sum(I[parent], I[i])
            B[parent] = bias_sum(B[parent], B[i])
    batch = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    return filled(entries, (*batch, model.nv, model.nv))


def check_constant(model: Model, name: str) -> None:
    """Raise for joints whose motions are not constant in the axes of what they carry."""
    for link in model.links:
        if link.kind.bias is not None:
            raise NotImplementedError(
                f"{name}: joint {link.joint!r} is of the kind {link.kind.name!r}, whose motions "
                "change with its coordinates; use arc.jac of rnea or crba instead"
            )
