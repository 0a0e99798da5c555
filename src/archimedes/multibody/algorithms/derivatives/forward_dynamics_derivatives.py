"""Derivatives of forward dynamics in the tangent space of q, in v and in tau.

Legend: with M the mass matrix and D_q, D_v the derivatives of inverse dynamics at the acceleration
that forward dynamics gives, ``da/dq = -M^-1 D_q``, ``da/dv = -M^-1 D_v``, ``da/dtau = M^-1``.
Source: Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, Robotics:
Science and Systems 2018, equation 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.multibody.algorithms.derivatives.inverse_dynamics_derivatives import (
    derivative_entries,
)
from archimedes.multibody.algorithms.derivatives.limb_columns import inverse_matrix, solved_columns
from archimedes.multibody.algorithms.factorization import (
    Entries,
    Factors,
    factorized,
    solved,
)
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.links import (
    Forces,
    check_state,
    coordinates_of,
    joined,
    leading_axes,
    poses_of,
    speeds_of,
)
from archimedes.multibody.algorithms.mass_matrix import filled, mass_entries
from archimedes.multibody.algorithms.passive_forces import passive_derivatives
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.ranges import known_zero
from archimedes.multibody.models.spatial_algebra import to_child
from archimedes.spatial.components import components

__all__ = ["aba_derivatives"]


def aba_derivatives(
    model: Model, q: Any, v: Any, tau: Any, forces: Forces = None, passive: bool = False
) -> tuple[Any, Any, Any]:
    """Return the derivatives of `aba` with respect to q, v and tau.

    The derivative in q is taken along the tangent space: that of ``aba(integrate(model, q, e), v,
    tau)`` in e (nv,). The one in tau is the inverse of the mass matrix.

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
    (array, array, array)
        Matrices (nv, nv).

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, aba_derivatives
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> aba_derivatives(b.build(), np.array([np.pi / 2]), np.zeros(1), np.zeros(1))[0].round(9)
    array([[-16.35]])
    """
    q, v, tau = check_state(model, forces, q=q, v=v, tau=tau)
    factors = factorized(model, mass_entries(model, q))
    rest = speeds_of(model, tau, "tau")
    bias = speeds_of(model, rnea(model, q, v, np.zeros(model.nv), forces, passive), "bias")
    a = joined(solved(factors, [x - y for x, y in zip(rest, bias, strict=True)]))
    dq, dv, _ = derivative_entries(model, q, v, a, forces)
    by_q, by_v = own_columns(model, q, v, dq, dv)
    if passive:
        for entries, added in zip((dq, dv), passive_derivatives(model, q, v), strict=True):
            for i in range(model.nv):
                for j in range(model.nv):
                    entries[i, j] = entries.get((i, j), 0.0) - added[..., i, j]
    shape = (*leading_axes(q, v, tau, forces=forces), model.nv, model.nv)
    negative = Factors(factors.branch, factors.N, [-d for d in factors.inverse_D])
    in_q, in_v = solved_columns(negative, (dq, dv), shape)
    if by_q:
        in_q, in_v = in_q + filled(by_q, shape), in_v + filled(by_v, shape)
    return in_q, in_v, inverse_matrix(factors, shape)


def own_columns(model: Model, q: Any, v: Any, dq: Entries, dv: Entries) -> tuple[Entries, Entries]:
    """Take the columns out of D_q and D_v of which the accelerations are known, and return these.

    How a floating robot is turned, and how fast its base goes along, matter to nothing but the
    acceleration of the base along its axes: that is ``R' g - w x v`` and what the rest makes of it.
    """
    by_q: Entries = {}
    by_v: Entries = {}
    qs = coordinates_of(model, q)
    for i, link in enumerate(model.links):
        own = range(link.v, link.v + link.kind.nv)
        loose = link.kind.name == "free" and link.parent < 0
        if not (loose and known_zero(model.armature[list(own)])):
            continue
        turned, moved = own[3:], own[:3]
        for entries, columns in ((dq, own), (dv, moved)):
            for place in [p for p in entries if p[1] in columns]:
                del entries[place]
        weight = to_child(poses_of(model, qs)[i], model.gravity)
        w = speeds_of(model, v)[link.v + 3 : link.v + 6]
        by_q |= skew_entries(moved, turned, components(weight, 3))
        by_v |= skew_entries(moved, moved, [-x for x in w])
    return by_q, by_v


def skew_entries(rows: Sequence[int], columns: Sequence[int], x: Sequence[Any]) -> Entries:
    """Return the matrix of the cross product with a vector, as entries of a larger one."""
    found = {}
    for n in range(3):
        i, j = (n + 1) % 3, (n + 2) % 3
        found[rows[i], columns[j]], found[rows[j], columns[i]] = -x[n], x[n]
    return found
