"""Velocities and accelerations of all links, and what velocities do to inertias, in their own axes.

Legend: S_i are the columns of joint i, v_i and a_i velocity and (spatial) acceleration of its link,
v_p and a_p those of its parent, all in the axes of link i, where columns are mostly zeros and ones.
The world accelerates by minus gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.multibody.algorithms.links import (
    Column,
    columns_of,
    coordinates_of,
    gravity_of,
    moving,
    poses_of,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Rigid,
    Spatial,
    cross_motion,
    dot3,
    momentum,
    motion_to_child,
    rotated,
    to_parent,
)
from archimedes.spatial.components import cross, matvec, skew, transpose

__all__ = [
    "Bias",
    "Motions",
    "bias_of",
    "bias_sum",
    "bias_times",
    "bias_to_parent",
    "bias_transposed",
    "motions_of",
    "pair",
]


class Motions(NamedTuple):
    """Poses in the parents, columns and motions of all links; parents of the first have none."""

    X: list[Pose]
    S: list[list[Column]]
    v: list[Spatial]
    v_parent: list[Spatial | None]
    a: list[Spatial]
    a_parent: list[Spatial]


def motions_of(model: Model, q: Any, speeds: Sequence[Any], rates: Sequence[Any]) -> Motions:
    """Return all links at coordinates q (..., nq), with speeds and accelerations of the joints.

    Zero rates are left out of the sums: pass an empty list for none.
    """
    qs = coordinates_of(model, q)
    found = Motions(poses_of(model, qs), columns_of(model, qs), [], [], [], [])
    for i, link in enumerate(model.links):
        X, up = found.X[i], link.parent
        vJ = moving(found.S[i], speeds)
        if up < 0:
            v_p, v, a_p = None, vJ, motion_to_child(X, gravity_of(model))
            a = a_p
        else:
            v_p, a_p = motion_to_child(X, found.v[up]), motion_to_child(X, found.a[up])
            v, a = v_p + vJ, a_p + cross_motion(v_p, vJ)
        found.v_parent.append(v_p)
        found.v.append(v)
        found.a_parent.append(a_p)
        found.a.append(a + moving(found.S[i], rates) if rates else a)
    return found


class Bias(NamedTuple):
    """The matrix B of an inertia and a velocity: B m = (w_m x P, W w_m), with ``B v = v x* I v``.

    P is the linear momentum, W = -[w] (tr(J)/2 - J) - [h] [v]. In the same axes both add up.
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
    W = -matmul(skew(v.angular), E) - matmul(skew(I.h), skew(v.linear))
    return Bias(P, W)


def bias_sum(a: Bias, b: Bias) -> Bias:
    """Return B of two bodies that move together."""
    return Bias(a.P + b.P, a.W + b.W)


def bias_to_parent(X: Pose, B: Bias) -> Bias:
    """Return B given in the child in the coordinates of the parent."""
    P = to_parent(X, B.P)
    return Bias(P, rotated(X, B.W) - matmul(skew(X.p), skew(P)))


def bias_times(B: Bias, m: Spatial) -> Spatial:
    """Return the force ``B m``."""
    return Spatial(cross(m.angular, B.P), matvec(B.W, m.angular))


def bias_transposed(B: Bias, m: Spatial) -> Any:
    """Return the angular part (..., 3) of ``B' m``; its linear part is zero."""
    return cross(B.P, m.linear) + matvec(transpose(B.W), m.angular)


def pair(F: Spatial, m: Spatial, G: Any, n: Spatial) -> Any:
    """Return ``F . m + G . n``, G a force without linear part."""
    return dot3(F.linear, m.linear) + dot3(F.angular, m.angular) + dot3(G, n.angular)
