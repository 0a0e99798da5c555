"""All links of a tree in the same axes, for sums over pairs of joints.

Legend: the axes are the world's, or, below a free joint, those of the body it carries, at this
moment; nothing depends on where a floating robot is, and no digits are lost on its way. S_i are
the columns of joint i, v_i the velocity of its link, v_p and a_p velocity and acceleration of its
parent, in which the world accelerates by minus gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms.links import (
    Column,
    columns_of,
    coordinates_of,
    gravity_of,
    inertias_of,
    moving,
    poses_of,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Rigid,
    Spatial,
    compose,
    cross_motion,
    dot3,
    momentum,
    motion_to_parent,
    rigid_to_parent,
)
from archimedes.spatial.components import cross, matvec, skew, transpose

__all__ = ["Bias", "Tree", "bias_of", "bias_sum", "bias_times", "bias_transposed", "in_common_axes"]


class Tree(NamedTuple):
    """Poses, columns, inertias and motions of all links in common axes."""

    poses: list[Pose]
    S: list[list[Column]]
    inertias: list[Rigid]
    v: list[Spatial]
    v_parent: list[Spatial | None]
    a: list[Spatial]
    a_parent: list[Spatial]


def in_common_axes(model: Model, q: Any, speeds: Sequence[Any], rates: Sequence[Any]) -> Tree:
    """Return all links at coordinates q (..., nq), with speeds and accelerations of the joints.

    Zero rates are left out of the sums: pass an empty list for none.
    """
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    tree = Tree([], [], [], [], [], [], [])
    own = inertias_of(model)
    for i, link in enumerate(model.links):
        up = link.parent
        gravity = gravity_of(model)
        if up < 0 and link.kind.name == "free":
            pose = Pose(np.eye(3), np.zeros(3))
            gravity = Spatial(matvec(transpose(X[i].R), gravity.linear), gravity.angular)
            columns, inertia = S[i], own[i]
        else:
            pose = X[i] if up < 0 else compose(tree.poses[up], X[i])
            columns = [Column(k, motion_to_parent(pose, c)) for k, c in S[i]]
            inertia = rigid_to_parent(pose, own[i])
        vJ = moving(columns, speeds)
        v = vJ if up < 0 else tree.v[up] + vJ
        a_parent = gravity if up < 0 else tree.a[up]
        a = a_parent if up < 0 else a_parent + cross_motion(v, vJ)
        tree.poses.append(pose)
        tree.S.append(columns)
        tree.inertias.append(inertia)
        tree.v_parent.append(None if up < 0 else tree.v[up])
        tree.v.append(v)
        tree.a_parent.append(a_parent)
        tree.a.append(a + moving(columns, rates) if rates else a)
    return tree


class Bias(NamedTuple):
    """The matrix B of an inertia and a velocity: B m = (w_m x P, W w_m), with ``B v = v x* I v``.

    P is the linear momentum, W = -[w] (tr(J)/2 - J) - [h] [v]. In common axes both add up.
    Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel
    symbols for rigid-body systems, J. Comput. Nonlinear Dynamics 16, 2021, equation 24, whose three
    terms come out as these.
    """

    P: Any
    W: Any


def bias_of(I: Rigid, v: Spatial) -> Bias:
    """Return B of one body."""
    P = momentum(I, v).linear
    half = 0.5 * (I.J[..., 0, 0] + I.J[..., 1, 1] + I.J[..., 2, 2])
    E = half[..., None, None] * np.eye(3) - I.J
    W = -np.matmul(skew(v.angular), E) - np.matmul(skew(I.h), skew(v.linear))
    return Bias(P, W)


def bias_sum(a: Bias, b: Bias) -> Bias:
    """Return B of two bodies that move together."""
    return Bias(a.P + b.P, a.W + b.W)


def bias_times(B: Bias, m: Spatial) -> Spatial:
    """Return the force ``B m``."""
    return Spatial(cross(m.angular, B.P), matvec(B.W, m.angular))


def bias_transposed(B: Bias, m: Spatial) -> Any:
    """Return the angular part (..., 3) of ``B' m``; its linear part is zero."""
    return cross(B.P, m.linear) + matvec(transpose(B.W), m.angular)


def pair(F: Spatial, m: Spatial, G: Any, n: Spatial) -> Any:
    """Return ``F . m + G . n``, G a force without linear part."""
    return dot3(F.linear, m.linear) + dot3(F.angular, m.angular) + dot3(G, n.angular)
