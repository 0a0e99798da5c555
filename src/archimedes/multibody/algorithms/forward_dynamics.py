"""Forward dynamics by the articulated-body algorithm, and its derivatives.

Legend: IA_i, pA_i are articulated inertia and bias force of link i, c_i the acceleration it has at
rest of the joints; accelerations are ordinary ones, as in `inverse_dynamics`. The columns of a
joint are eliminated one after the other, each with U = IA S, D = S.U and u = tau - S.pA, which for
a joint of several columns is the same as inverting the matrix D of the book.
Source: Featherstone 2008, table 7.1; armature adds to D (section 9.6).

Derivatives: with M the mass matrix and D_q, D_v the derivatives of inverse dynamics at the
acceleration that forward dynamics gives, ``da/dq = -M^-1 D_q``, ``da/dv = -M^-1 D_v``,
``da/dtau = M^-1``.
Source: Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, Robotics:
Science and Systems 2018, equation 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms import links, mass_matrix
from archimedes.multibody.algorithms.armature import armature_bias
from archimedes.multibody.algorithms.custom_derivatives import call_with_derivatives
from archimedes.multibody.algorithms.inverse_dynamics import AngularMotion, derivative_entries, rnea
from archimedes.multibody.algorithms.links import (
    Forces,
    bias_of,
    joint_velocity,
    links_at,
    reduce_tree,
)
from archimedes.multibody.algorithms.mass_matrix import Entries, Factors, crba, fill_matrix
from archimedes.multibody.algorithms.passive_forces import passive_derivatives, passive_torque
from archimedes.multibody.parts.joints import Free
from archimedes.multibody.parts.ranges import known_zero
from archimedes.spatial.components import components, cross
from archimedes.spatial.spatial_algebra import Articulated, Spatial
from archimedes.typing import ArrayLike, Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["aba", "aba_derivatives"]


class Eliminated(NamedTuple):
    """What is left of a column for the way back: the column, U / D and u / D."""

    v: int
    S: Spatial
    gain: Spatial
    u: Any


def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Forces = None,
    passive: bool = False,
) -> Vector:
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
    q, v, tau = links.check_state(model, forces, q=q, v=v, tau=tau)
    mass_matrix.check_inertia_of_joints(model)
    if passive:
        tau = tau + passive_torque(model, q, v)
    return call_with_derivatives(plain_aba, aba_derivatives, model, (q, v, tau), forces)


def plain_aba(model: Model, q: Vector, v: Vector, tau: Vector, forces: Forces) -> Any:
    """Return the accelerations (nv,), as they are computed."""
    if any(link.mimic for link in model.links):
        rest = tau - rnea(model, q, v, np.zeros(model.nv), forces)
        return np.linalg.solve(crba(model, q), rest[..., None])[..., 0]
    own = armature_bias(model, v)
    model, I, f_ext = reduce_tree(model, forces)
    coordinates, X, S = links_at(model, q)
    speeds, torques = components(v, model.nv), [*components(tau, model.nv)]
    for k, torque in own.items():
        torques[k] = torques[k] - torque
    order = range(len(model.links))

    # Pass 1, outward: velocities, and what they do to accelerations (c) and forces (pA).
    motion: list[AngularMotion] = []
    c: list[Spatial] = []
    pA: list[Spatial] = []
    for i, link in enumerate(model.links):
        J, parent = joint_velocity(S[i], speeds), link.parent
        if parent >= 0:
            carried = X[i].rotate_back(motion[parent].w)
            w = carried + J.angular
            swept = X[i].rotate_back(motion[parent].sweep(X[i].p))
            c.append(Spatial(swept + cross(carried + w, J.linear), cross(carried, J.angular)))
        else:
            w = J.angular
            c.append(Spatial(cross(w, J.linear), np.zeros(3)))
        if (bias := bias_of(link, coordinates[i], speeds)) is not None:
            c[i] = c[i] + bias
        motion.append(AngularMotion.of(w))
        p = motion[i].force_on(I[i])
        pA.append(p - f_ext[i] if i in f_ext else p)

    # Pass 2, inward: articulated inertias and bias forces.
    IA = [Articulated.of_rigid(inertia) for inertia in I]
    columns: list[list[Eliminated]] = [[] for _ in order]
    for i in reversed(order):
        Ia, pa, parent = IA[i], pA[i], model.links[i].parent
        for k, S_k in S[i]:
            U = Ia @ S_k
            inverse_D = 1.0 / (S_k.dot(U) + model.armature[k])
            gain, u = U.times(inverse_D), torques[k] - S_k.dot(pa)
            columns[i].append(Eliminated(k, S_k, gain, u * inverse_D))
            Ia = Ia.release_column(S_k, U, gain, free=known_zero(model.armature[k]))
            pa = pa + gain.times(u)
        if parent >= 0:
            pa = pa + Ia @ c[i]
            IA[parent] = IA[parent] + Ia.to_parent(X[i])
            pA[parent] = pA[parent] + X[i].force_to_parent(pa)

    # Pass 3, outward: accelerations.
    a: list[Spatial] = []
    ddq: list[Any] = [0.0] * model.nv
    for i, link in enumerate(model.links):
        above = a[link.parent] if link.parent >= 0 else links.world_acceleration(model)
        a_i = X[i].motion_to_child(above) + c[i]
        for k, S_k, gain, u in reversed(columns[i]):
            ddq[k] = u - gain.dot(a_i)
            a_i = a_i + S_k.times(ddq[k])
        a.append(a_i)
    shape = (*links.leading_axes(q, v, tau, forces=forces), model.nv)
    return links.broadcast_result(links.join_numbers(ddq), shape)


# ---- derivatives -------------------------------------------------------------------------------


def aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Forces = None,
    passive: bool = False,
) -> tuple[Matrix, Matrix, Matrix]:
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
    q, v, tau = links.check_state(model, forces, q=q, v=v, tau=tau)
    factors = mass_matrix.factorize(model, mass_matrix.mass_entries(model, q))
    bias = rnea(model, q, v, np.zeros(model.nv), forces, passive)
    pairs = zip(components(tau, model.nv), components(bias, model.nv), strict=True)
    a = links.join_numbers(mass_matrix.solve_rows(factors, [x - y for x, y in pairs]))
    dq, dv, _ = derivative_entries(model, q, v, a, forces)
    by_q, by_v = take_base_columns(model, q, v, dq, dv)
    if passive:
        for entries, added in zip((dq, dv), passive_derivatives(model, q, v), strict=True):
            for i in range(model.nv):
                for j in range(model.nv):
                    entries[i, j] = entries.get((i, j), 0.0) - added[..., i, j]
    shape = (*links.leading_axes(q, v, tau, forces=forces), model.nv, model.nv)
    negative = Factors(factors.branch, factors.N, [-d for d in factors.inverse_D])
    in_q, in_v = mass_matrix.solve_columns(negative, (dq, dv), shape)
    if by_q:
        in_q, in_v = (
            in_q + fill_matrix(by_q, shape),
            in_v + fill_matrix(by_v, shape),
        )
    return in_q, in_v, mass_matrix.inverse_matrix(factors, shape)


def take_base_columns(
    model: Model, q: Vector, v: Vector, dq: Entries, dv: Entries
) -> tuple[Entries, Entries]:
    """Take the columns out of D_q and D_v of which the accelerations are known, and return these.

    How a floating robot is rotated, and how fast its base goes along, matter to nothing but the
    acceleration of the base along its axes: that is ``R' g - w x v`` and what the rest makes of it.
    """
    by_q: Entries = {}
    by_v: Entries = {}
    for i, link in enumerate(model.links):
        own = range(link.v, link.v + link.kind.nv)
        loose = isinstance(link.kind, Free) and link.parent < 0
        if not (loose and known_zero(model.armature[list(own)])):
            continue
        linear, angular = own[:3], own[3:]
        for entries, columns in ((dq, own), (dv, linear)):
            for key in [key for key in entries if key[1] in columns]:
                del entries[key]
        weight = links_at(model, q).X[i].rotate_back(model.gravity)
        w = components(v, model.nv)[link.v + 3 : link.v + 6]
        by_q |= skew_entries(linear, angular, components(weight, 3))
        by_v |= skew_entries(linear, linear, [-x for x in w])
    return by_q, by_v


def skew_entries(rows: Sequence[int], columns: Sequence[int], x: Sequence[Any]) -> Entries:
    """Return the matrix of the cross product with a vector, as entries of a larger one."""
    entries = {}
    for n in range(3):
        i, j = (n + 1) % 3, (n + 2) % 3
        entries[rows[i], columns[j]], entries[rows[j], columns[i]] = -x[n], x[n]
    return entries
