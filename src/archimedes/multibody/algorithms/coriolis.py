"""The Coriolis matrix.

Legend: for a column S_i and a column S_j above it, with the inertia I and the matrix B of all that
link i carries, ``C_ji = S_j . (I dS_i + B S_i)`` and ``C_ij = S_i . (I dS_j + B S_j)``, where
dS = v x S is the rate of a column. This C has ``dM/dt = C + C'``.
Source: Echeandia and Wensing 2021 (see `link_motions`), algorithm 1, in the axes of the links.
"""

from __future__ import annotations

from typing import Any

from archimedes.multibody.algorithms.derivatives.link_motions import (
    bias_of,
    bias_sum,
    bias_times,
    bias_to_parent,
    bias_transposed,
    motions_of,
    pair,
)
from archimedes.multibody.algorithms.links import (
    check_state,
    inertias_of,
    leading_axes,
    speeds_of,
)
from archimedes.multibody.algorithms.mass_matrix import filled
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    cross_motion,
    dot,
    force_to_parent,
    momentum,
    rigid_sum,
    rigid_to_parent,
    to_parent,
)

__all__ = ["coriolis_matrix"]


def coriolis_matrix(model: Model, q: Any, v: Any) -> Any:
    """Return the Coriolis matrix C: C v are the torques that velocities need.

    The rate of the mass matrix M is C + C', so that dM/dt - 2 C is skew-symmetric.

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
    array (nv, nv)
        The matrix.

    Examples
    --------
    >>> from archimedes.multibody import Builder, coriolis_matrix
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> coriolis_matrix(b.build(), [0.3], [1.0]).round(12)
    array([[0.]])
    """
    q, v = check_state(model, q=q, v=v)
    check_constant(model, "coriolis_matrix")
    links = motions_of(model, q, speeds_of(model, v), [])
    I = inertias_of(model)
    B = [bias_of(inertia, velocity) for inertia, velocity in zip(I, links.v, strict=True)]
    rates = [[cross_motion(v_i, c) for _, c in S] for v_i, S in zip(links.v, links.S, strict=True)]
    entries: dict[tuple[int, int], Any] = {}

    def add(row: int, column: int, value: Any) -> None:
        place = (row, column)
        entries[place] = entries[place] + value if place in entries else value

    for i in reversed(range(len(model.links))):
        for n, (k, column) in enumerate(links.S[i]):
            K = momentum(I[i], rates[i][n]) + bias_times(B[i], column)
            F, G = momentum(I[i], column), bias_transposed(B[i], column)
            for j, other in links.S[i]:
                add(j, k, dot(other, K))
            at = i
            while (above := model.links[at].parent) >= 0:
                X, at = links.X[at], above
                K, F, G = force_to_parent(X, K), force_to_parent(X, F), to_parent(X, G)
                for (j, other), rate in zip(links.S[at], rates[at], strict=True):
                    add(j, k, dot(other, K))
                    add(k, j, pair(F, rate, G, other))
        parent = model.links[i].parent
        if parent >= 0:
            I[parent] = rigid_sum(I[parent], rigid_to_parent(links.X[i], I[i]))
            B[parent] = bias_sum(B[parent], bias_to_parent(links.X[i], B[i]))
    return filled(entries, (*leading_axes(q, v), model.nv, model.nv))


def check_constant(model: Model, name: str) -> None:
    """Raise for joints whose motions are not constant in the axes of what they carry."""
    for link in model.links:
        if link.kind.bias is not None:
            raise NotImplementedError(
                f"{name}: joint {link.joint!r} is of the kind {link.kind.name!r}, whose motions "
                "change with its coordinates; use arc.jac of rnea or crba instead"
            )
