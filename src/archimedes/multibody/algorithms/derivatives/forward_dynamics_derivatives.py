"""Derivatives of forward dynamics in the tangent space of q, in v and in tau.

Legend: with M the mass matrix and D_q, D_v the derivatives of inverse dynamics at the acceleration
that forward dynamics gives, ``da/dq = -M^-1 D_q``, ``da/dv = -M^-1 D_v``, ``da/dtau = M^-1``.
Source: Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, Robotics:
Science and Systems 2018, equation 14.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import vmap
from archimedes.multibody.algorithms.derivatives.inverse_dynamics_derivatives import (
    derivative_entries,
)
from archimedes.multibody.algorithms.factorization import (
    Factors,
    factorized,
    inverse_entries,
    solved,
)
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.links import Forces, joined, speeds_of
from archimedes.multibody.algorithms.mass_matrix import filled, mass_entries
from archimedes.multibody.algorithms.passive_forces import passive_derivatives
from archimedes.multibody.models.model import Model
from archimedes.spatial.validation import concrete

__all__ = ["aba_derivatives"]

#: Products that are written out in a recording; beyond, columns are solved in a loop.
UNROLLED = 100_000


def aba_derivatives(
    model: Model, q: Any, v: Any, tau: Any, forces: Forces = None, passive: bool = False
) -> tuple[Any, Any, Any]:
    """Return the derivatives of `aba` in q, v and tau, each (nv, nv).

    That in q is along the tangent space: of ``aba(integrate(model, q, e), v, tau)`` in e (nv,). The
    last, in tau, is the inverse of the mass matrix.

    >>> import numpy as np
    >>> from archimedes.multibody import Builder, aba_derivatives
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> aba_derivatives(b.build(), np.array([np.pi / 2]), np.zeros(1), np.zeros(1))[0].round(9)
    array([[-16.35]])
    """
    factors = factorized(model, mass_entries(model, q))
    rest = speeds_of(model, tau, "tau")
    bias = speeds_of(model, rnea(model, q, v, np.zeros(model.nv), forces, passive), "bias")
    a = joined(solved(factors, [x - y for x, y in zip(rest, bias, strict=True)]))
    dq, dv, _ = derivative_entries(model, q, v, a, forces)
    if passive:
        for entries, added in zip((dq, dv), passive_derivatives(model, q, v), strict=True):
            for i in range(model.nv):
                for j in range(model.nv):
                    entries[i, j] = entries.get((i, j), 0.0) - added[..., i, j]
    shape = (*np.shape(a)[:-1], model.nv, model.nv)
    right = np.concatenate([filled(dq, shape), filled(dv, shape)], axis=-1)
    moved = solved_columns(
        Factors(factors.branch, factors.N, [-d for d in factors.inverse_D]), right
    )
    n = model.nv
    return moved[..., :n], moved[..., n:], filled(inverse_entries(factors), shape)


def solved_columns(factors: Factors, right: Any) -> Any:
    """Return M^-1 times a matrix (..., nv, columns).

    In a recording of a large robot the columns are a loop: written out, they would be most of it.
    """
    n = len(factors.inverse_D)
    if concrete(right) is None and len(factors.N) * right.shape[-1] > UNROLLED:
        columns = vmap(lambda c: np.stack(solved(factors, [c[k] for k in range(n)])))(right.T)
        return columns.T
    rows = [right[..., k, :] for k in range(n)]
    return np.stack(solved(broadcast(factors), rows), axis=-2)


def broadcast(factors: Factors) -> Factors:
    """Return factors whose entries multiply rows."""

    def last(x: Any) -> Any:
        return x if np.ndim(x) == 0 else x[..., None]

    N = {place: last(value) for place, value in factors.N.items()}
    return Factors(factors.branch, N, [last(d) for d in factors.inverse_D])
