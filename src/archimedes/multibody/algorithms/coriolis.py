"""The Coriolis matrix, and motions of all links in their own axes.

Legend: S_i are the columns of joint i, v_i and a_i velocity and (spatial) acceleration of its link,
v_p and a_p those of its parent, all in the axes of link i, where columns are mostly zeros and ones.
The world accelerates by minus gravity. For a column S_i and a column S_j above it, with the inertia
I and the matrix B of all that link i carries, ``C_ji = S_j . (I dS_i + B S_i)`` and
``C_ij = S_i . (I dS_j + B S_j)``, where dS = v x S is the rate of a column. This C has
``dM/dt = C + C'``.
Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel
symbols for rigid-body systems, J. Comput. Nonlinear Dynamics 16, 2021, algorithm 1, in the axes of
the links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms.links import (
    Column,
    check_state,
    inertias_of,
    joint_velocity,
    leading_axes,
    links_at,
    world_acceleration,
)
from archimedes.multibody.algorithms.mass_matrix import Entries, add_entry, fill_matrix
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import components, cross, matvec, skew, transpose
from archimedes.spatial.spatial_algebra import Pose, Rigid, Spatial, dot3
from archimedes.typing import ArrayLike, Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["coriolis_matrix"]


def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> Matrix:
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
    links = link_motions(model, q, components(v, model.nv), [])
    I = inertias_of(model)
    B = [Bias.of_body(inertia, velocity) for inertia, velocity in zip(I, links.v, strict=True)]
    rates = [[v_i.cross(c) for _, c in S] for v_i, S in zip(links.v, links.S, strict=True)]
    C: Entries = {}
    for i in reversed(range(len(model.links))):
        for n, (k, column) in enumerate(links.S[i]):
            K = I[i] @ rates[i][n] + B[i] @ column
            F, G = I[i] @ column, B[i].angular_transpose(column)
            for j, other in links.S[i]:
                add_entry(C, j, k, other.dot(K))
            at = i
            while (above := model.links[at].parent) >= 0:
                X, at = links.X[at], above
                K, F, G = X.force_to_parent(K), X.force_to_parent(F), X.rotate(G)
                for (j, other), rate in zip(links.S[at], rates[at], strict=True):
                    add_entry(C, j, k, other.dot(K))
                    add_entry(C, k, j, pair(F, rate, G, other))
        parent = model.links[i].parent
        if parent >= 0:
            I[parent] = I[parent] + I[i].to_parent(links.X[i])
            B[parent] = B[parent] + B[i].to_parent(links.X[i])
    return fill_matrix(C, (*leading_axes(q, v), model.nv, model.nv))


def check_constant(model: Model, name: str) -> None:
    """Raise for joints whose motions are not constant in the axes of what they carry."""
    for link in model.links:
        if link.kind.varies:
            raise NotImplementedError(
                f"{name}: joint {link.joint!r} is of the kind {link.kind.name!r}, whose motions "
                "change with its coordinates; use arc.jac of rnea or crba instead"
            )


class LinkMotions(NamedTuple):
    """Poses in the parents, columns and motions of all links; parents of the first have none."""

    X: list[Pose]
    S: list[list[Column]]
    v: list[Spatial]
    v_parent: list[Spatial | None]
    a: list[Spatial]
    a_parent: list[Spatial]


def link_motions(
    model: Model, q: Vector, speeds: Sequence[Any], rates: Sequence[Any]
) -> LinkMotions:
    """Return all links at coordinates q (..., nq), with speeds and accelerations of the joints.

    Zero rates are left out of the sums: pass an empty list for none.
    """
    _, X, S = links_at(model, q)
    motions = LinkMotions(X, S, [], [], [], [])
    for i, link in enumerate(model.links):
        up, vJ = link.parent, joint_velocity(S[i], speeds)
        if up < 0:
            v_p, v, a_p = None, vJ, X[i].motion_to_child(world_acceleration(model))
            a = a_p
        else:
            v_p, a_p = X[i].motion_to_child(motions.v[up]), X[i].motion_to_child(motions.a[up])
            v, a = v_p + vJ, a_p + v_p.cross(vJ)
        motions.v_parent.append(v_p)
        motions.v.append(v)
        motions.a_parent.append(a_p)
        motions.a.append(a + joint_velocity(S[i], rates) if rates else a)
    return motions


class Bias(NamedTuple):
    """The matrix B of an inertia and a velocity: B m = (w_m x P, W w_m), with ``B v = v x* I v``.

    P is the linear momentum, W = -[w] (tr(J)/2 - J) - [h] [v]. In the same axes both add up.
    Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel
    symbols for rigid-body systems, J. Comput. Nonlinear Dynamics 16, 2021, equation 24, whose three
    terms come out as these.
    """

    P: Any
    W: Any

    @classmethod
    def of_body(cls, I: Rigid, v: Spatial) -> Bias:
        """Return B of one body."""
        half = 0.5 * (I.J[..., 0, 0] + I.J[..., 1, 1] + I.J[..., 2, 2])
        E = half[..., None, None] * np.eye(3) - I.J
        W = -matmul(skew(v.angular), E) - matmul(skew(I.h), skew(v.linear))
        return cls((I @ v).linear, W)

    def __add__(self, other: Any) -> Bias:
        return Bias(self.P + other.P, self.W + other.W)

    def __matmul__(self, m: Spatial) -> Spatial:
        return Spatial(cross(m.angular, self.P), matvec(self.W, m.angular))

    def to_parent(self, X: Pose) -> Bias:
        """Return B, given in the child, in the coordinates of the parent."""
        P = X.rotate(self.P)
        return Bias(P, X.rotate_matrix(self.W) - matmul(skew(X.p), skew(P)))

    def angular_transpose(self, m: Spatial) -> Vec3:
        """Return the angular part (..., 3) of ``B' m``; its linear part is zero."""
        return cross(self.P, m.linear) + matvec(transpose(self.W), m.angular)


def pair(F: Spatial, m: Spatial, G: Vec3, n: Spatial) -> Any:
    """Return ``F . m + G . n``, G a force without linear part."""
    return F.dot(m) + dot3(G, n.angular)
