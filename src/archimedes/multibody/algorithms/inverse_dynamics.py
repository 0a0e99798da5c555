"""Inverse dynamics by the recursive Newton-Euler algorithm, its derivatives, the Coriolis matrix.

Legend, all in the axes of link i, about its origin: w, dw are angular velocity and acceleration, a
the acceleration of the origin in the ordinary sense (that of an accelerometer there, with the world
accelerating by minus gravity), f the force through the joint, (vJ, wJ) the motion of the joint, m,
h, J mass, first and second moment. E is the matrix that gives the acceleration of a point x of the
link relative to the origin,

    E x = dw x x + w x (w x x),   f = m a + E h,   n = h x a + J dw + w x J w.

Against spatial accelerations this saves the linear velocities, which nothing depends on.
Sources: Featherstone 2008, table 5.1; Luh, Walker and Paul, On-line computational scheme for
mechanical manipulators, J. Dynamic Systems, Measurement and Control 102, 1980; the form with E is
Khalil's.

Derivatives: for column S_j of joint j, with v_p and a_p velocity and (spatial) acceleration of its
parent, P_j = v_p x S_j and Q_j = a_p x S_j + v_p x P_j are what a small rotation of the joint does
to the velocities and accelerations beyond it; R_j = P_j + v_j x S_j does it for its speed. I, B and
f are inertia, the matrix B (`Bias`) and force of all that link i carries. Each of these is in
the axes of its link; the forces of column i are moved from link to link towards the world. For
column S_j at or above column S_i,

    dtau_j/dq_i = S_j . (2 B P_i + I Q_i + S_i x* f),   dtau_i/dq_j = S_i . (2 B P_j + I Q_j)
    dtau_j/dv_i = S_j . (2 B S_i + I R_i),              dtau_i/dv_j = S_i . (2 B S_j + I R_j)

the term with f only where j is strictly above i.
Source: Singh, Russell and Wensing, Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra, IEEE Robotics and Automation Letters 7, 2022, equations 13 to 17 (where all
is in the axes of the world).

The Coriolis matrix: for a column S_i and a column S_j above it, with the inertia I and the matrix B
of all that link i carries, ``C_ji = S_j . (I dS_i + B S_i)`` and ``C_ij = S_i . (I dS_j + B S_j)``,
where dS = v x S is the rate of a column. This C has ``dM/dt = C + C'``.
Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel
symbols for rigid-body systems, J. Comput. Nonlinear Dynamics 16, 2021, algorithm 1, in the axes of
the links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms.armature import (
    add_armature_coriolis,
    add_armature_slope,
    armature_bias,
)
from archimedes.multibody.algorithms.custom_derivatives import call_with_derivatives
from archimedes.multibody.algorithms.links import (
    Column,
    Forces,
    Links,
    Tree,
    bias_of,
    broadcast_result,
    check_state,
    inertias_of,
    join_numbers,
    joint_velocity,
    leading_axes,
    links_at,
    reduce_tree,
    world_acceleration,
)
from archimedes.multibody.algorithms.mass_matrix import Entries, add_entry, add_pair, fill_matrix
from archimedes.multibody.algorithms.passive_forces import passive_derivatives, passive_torque
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import (
    components,
    cross,
    expand,
    join,
    matrix_components,
    matvec,
    skew,
    transpose,
)
from archimedes.spatial.spatial_algebra import Pose, Rigid, Spatial, dot3
from archimedes.typing import ArrayLike, Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["coriolis_matrix", "gravity_torque", "rnea", "rnea_derivatives"]


def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    forces: Forces = None,
    passive: bool = False,
) -> Vector:
    """Return the torques that accelerations need, by the recursive Newton-Euler algorithm.

    Leading axes broadcast.

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
    array (..., nv)
        Torques in N m, or forces in N.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, rnea
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> rnea(b.build(), q=np.zeros(1), v=np.zeros(1), a=np.zeros(1))
    array([-9.81])
    """
    x = check_state(model, forces, q=q, v=v, a=a)
    torques = call_with_derivatives(plain_rnea, rnea_derivatives, model, x, forces)
    return torques - passive_torque(model, q, v) if passive else torques


def plain_rnea(model: Model, q: Vector, v: Vector, a: Vector, forces: Forces) -> Vector:
    """Return the torques (nv,), as they are computed."""
    tree = reduce_tree(model, forces)
    links, f = link_forces(tree, q, v, a)
    torques, _ = torques_of(tree.model, links, f)
    rates = components(a, model.nv)
    for k, torque in armature_bias(model, v).items():
        torques[k] = torques[k] + torque
    total = join_numbers([t + model.armature[k] * rates[k] for k, t in enumerate(torques)])
    return broadcast_result(total, (*leading_axes(q, v, a, forces=forces), model.nv))


def link_forces(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[Links, list[Spatial]]:
    """Return the links, and the force that each needs for its own motion (outward pass)."""
    model = tree.model
    links, speeds, rates = links_at(model, q), components(v, model.nv), components(a, model.nv)
    motion: list[AngularMotion] = []
    a_of: list[Any] = []
    f: list[Spatial] = []
    for i, link in enumerate(model.links):
        X, up = links.X[i], link.parent
        J, a_J = joint_velocity(links.S[i], speeds), joint_velocity(links.S[i], rates)
        if (bias := bias_of(link, links.q[i], speeds)) is not None:
            a_J = a_J + bias
        if up < 0:
            w, dw = J.angular, a_J.angular
            a_i = X.rotate_back(world_acceleration(model).linear) + cross(w, J.linear)
        else:
            carried = X.rotate_back(motion[up].w)
            w = carried + J.angular
            dw = X.rotate_back(motion[up].dw) + a_J.angular + cross(carried, J.angular)
            a_i = X.rotate_back(a_of[up] + motion[up].sweep(X.p)) + cross(carried + w, J.linear)
        a_of.append(a_i + a_J.linear)
        motion.append(AngularMotion.of(w, dw))
        f_i = motion[i].force_on(tree.inertias[i], a_of[i])
        f.append(f_i - tree.forces[i] if i in tree.forces else f_i)
    return links, f


def torques_of(
    model: Model, links: Links, forces: list[Spatial]
) -> tuple[list[Any], list[Spatial]]:
    """Return the torques for the forces that each link needs, and those through the joints."""
    total = list(forces)
    torques: list[Any] = [0.0] * model.nv
    for i in reversed(range(len(model.links))):
        for k, column in links.S[i]:
            torques[k] = torques[k] + column.dot(total[i])
        parent = model.links[i].parent
        if parent >= 0:
            total[parent] = total[parent] + links.X[i].force_to_parent(total[i])
    return torques, total


def gravity_torque(model: Model, q: ArrayLike) -> Vector:
    """Return the torques that hold the robot at rest.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., nv)
        Torques.

    Examples
    --------
    >>> from archimedes.multibody import Builder, gravity_torque
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> gravity_torque(b.build(), [0.0])
    array([-9.81])
    """
    tree = reduce_tree(model)
    links = links_at(tree.model, q)
    a_of: list[Any] = []
    for link, X in zip(model.links, links.X, strict=True):
        above = a_of[link.parent] if link.parent >= 0 else world_acceleration(model).linear
        a_of.append(X.rotate_back(above))
    rows = zip(tree.inertias, a_of, strict=True)
    torques, _ = torques_of(
        tree.model, links, [Spatial(expand(I.m) * a, cross(I.h, a)) for I, a in rows]
    )
    return broadcast_result(join_numbers(torques), (*leading_axes(q), model.nv))


# ---- the force that a rigid body needs, by Newton and Euler ------------------------------------


class AngularMotion(NamedTuple):
    """Angular velocity, angular acceleration (None: zero) and the entries of E."""

    w: Any
    dw: Any
    E: list[list[Any]]

    @classmethod
    def of(cls, w: Vec3, dw: Vec3 | None = None) -> AngularMotion:
        """Return E of an angular velocity and acceleration (..., 3), with these."""
        x, y, z = components(w, 3)
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        if dw is None:
            E = [[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]]
            return cls(w, None, E)
        p, q, r = components(dw, 3)
        E = [
            [-(yy + zz), xy - r, xz + q],
            [xy + r, -(xx + zz), yz - p],
            [xz - q, yz + p, -(xx + yy)],
        ]
        return cls(w, dw, E)

    def sweep(self, x: Vec3) -> Vec3:
        """Return ``E x`` (..., 3), the acceleration of a point of the link."""
        a, b, c = components(x, 3)
        return join([row[0] * a + row[1] * b + row[2] * c for row in self.E])

    def force_on(self, I: Rigid, a: Vec3 | None = None) -> Spatial:
        """Return force and moment at the origin of a body whose origin accelerates by a."""
        linear, angular = self.sweep(I.h), self.spin_moment(I.J)
        if a is None:
            return Spatial(linear, angular)
        return Spatial(linear + expand(I.m) * a, angular + cross(I.h, a))

    def spin_moment(self, J: Matrix) -> Vec3:
        """Return ``J dw + w x J w`` (..., 3), of products that E has already."""
        (x, y, z), E = components(self.w, 3), self.E
        (Jxx, Jxy, Jxz), (_, Jyy, Jyz), (_, _, Jzz) = matrix_components(J)
        # Each line: what a rotation about the other two axes does to the products of inertia.
        moments = [
            (Jzz - Jyy) * (y * z) + Jyz * (E[1][1] - E[2][2]) + (Jxz * E[1][0] - Jxy * E[2][0]),
            (Jxx - Jzz) * (x * z) + Jxz * (E[2][2] - E[0][0]) + (Jxy * E[2][1] - Jyz * E[0][1]),
            (Jyy - Jxx) * (x * y) + Jxy * (E[0][0] - E[1][1]) + (Jyz * E[0][2] - Jxz * E[1][2]),
        ]
        if self.dw is not None:
            rates = components(self.dw, 3)
            moments = [n + D * r for n, D, r in zip(moments, (Jxx, Jyy, Jzz), rates, strict=True)]
        return join(moments)


# ---- the Coriolis matrix, and motions of all links in their own axes ----------------------------


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
    add_armature_coriolis(model, v, C)
    return fill_matrix(C, (*leading_axes(q, v), model.nv, model.nv))


def check_constant(model: Model, name: str) -> None:
    """Raise for joints whose motions are not constant in the axes of what they carry."""
    for link in model.links:
        if link.kind.varies:
            kind = f"of the kind {link.kind.name!r}, whose motions change with its coordinates"
            remedy = "use arc.jac of rnea or crba instead"
            raise NotImplementedError(f"{name}: joint {link.joint!r} is {kind}; {remedy}")


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


# ---- derivatives -------------------------------------------------------------------------------


def rnea_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    forces: Forces = None,
    passive: bool = False,
) -> tuple[Matrix, Matrix, Matrix]:
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
    by_q, by_v = fill_matrix(dq, shape), fill_matrix(dv, shape)
    if passive:
        own_q, own_v = passive_derivatives(model, q, v)
        by_q, by_v = by_q - own_q, by_v - own_v
    return by_q, by_v, fill_matrix(da, shape)


def column_changes(
    links: LinkMotions, i: int
) -> tuple[Sequence[Spatial], Sequence[Spatial], Sequence[Spatial]]:
    """Return P, Q and R of the columns of a joint."""
    v_p, columns = links.v_parent[i], [column for _, column in links.S[i]]
    rates = [links.v[i].cross(c) for c in columns]
    Q = [links.a_parent[i].cross(c) for c in columns]
    if v_p is None:
        return [Spatial(np.zeros(3), np.zeros(3))] * len(columns), Q, rates
    P = [v_p.cross(c) for c in columns]
    Q = [x + v_p.cross(p) for x, p in zip(Q, P, strict=True)]
    return P, Q, [x + p for x, p in zip(rates, P, strict=True)]


def derivative_entries(
    model: Model, q: Vector, v: Vector, a: Vector, forces: Forces
) -> tuple[Entries, Entries, Entries]:
    """Return the entries that are not zero; those in a without armature."""
    check_constant(model, "rnea_derivatives")
    whole = model
    model, I, acting = reduce_tree(model, forces)
    links = link_motions(model, q, components(v, model.nv), components(a, model.nv))
    # Twice the matrix B, which is what all formulas have, is that of twice the inertia.
    B = [
        Bias.of_body(Rigid(2.0 * x.m, 2.0 * x.h, 2.0 * x.J), v)
        for x, v in zip(I, links.v, strict=True)
    ]
    f = []
    for i, (v_i, a_i) in enumerate(zip(links.v, links.a, strict=True)):
        f_i = I[i] @ a_i + v_i.cross_force(I[i] @ v_i)
        f.append(f_i - acting[i] if i in acting else f_i)
    changes = [column_changes(links, i) for i in range(len(model.links))]
    dq: Entries = {}
    dv: Entries = {}
    da: Entries = {}
    for i in reversed(range(len(model.links))):
        P, Q, R = changes[i]
        for n, (k, column) in enumerate(links.S[i]):
            F, G = I[i] @ column, B[i].angular_transpose(column)
            K = I[i] @ Q[n] + B[i] @ P[n]
            L = I[i] @ R[n] + B[i] @ column
            for m, (j, other) in enumerate(links.S[i]):
                add_entry(dq, j, k, other.dot(K))
                add_entry(dv, j, k, other.dot(L))
                if m <= n:
                    add_pair(da, k, j, other.dot(F))
            K, at = K + column.cross_force(f[i]), i
            while (above := model.links[at].parent) >= 0:
                X, at = links.X[at], above
                K, L, F = (X.force_to_parent(force) for force in (K, L, F))
                G = X.rotate(G)
                P_at, Q_at, R_at = changes[at]
                for m, (j, other) in enumerate(links.S[at]):
                    add_entry(dq, j, k, other.dot(K))
                    add_entry(dv, j, k, other.dot(L))
                    add_entry(dq, k, j, pair(F, Q_at[m], G, P_at[m]))
                    add_entry(dv, k, j, pair(F, R_at[m], G, other))
                    add_pair(da, k, j, other.dot(F), twice=k == j)
        parent = model.links[i].parent
        if parent >= 0:
            X = links.X[i]
            I[parent] = I[parent] + I[i].to_parent(X)
            B[parent] = B[parent] + B[i].to_parent(X)
            f[parent] = f[parent] + X.force_to_parent(f[i])
    add_armature_slope(whole, v, dv)
    return dq, dv, da
