"""What joints whose motions form a group forbid: everywhere on it, also far from where they began.

Legend: X is frame B in frame A, P the projection on the joint's motions and T the rows that span
the rest. ``X = exp(m) exp(d)`` with ``m = P log X`` the joint's own motion and d what is left: the
violation is ``c = T d``, in axes of B, and its rate ``T s + O(d)`` for the relative twist s,
whatever m is. (``T log X`` vanishes with it, but its rate turns with m: by a quarter at half a
turn, where what should die out grows.) A turn of a screw is known up
to whole turns only: taken are those at which it would be nearest to where it is along its axis.

What spherical and universal joints forbid: equations that are exact wherever the frames are.

Legend: (R, p) is frame B in frame A, s = (v, w) the twist of B relative to A in axes of B, (s', w')
its rate; a is the first axis in A, b the second in B. Both joints hold ``p = 0``, in axes of A; its
rate is ``R v``, however fast B turns. A universal one also holds the angle between its axes,
``a . R b = const``; with d = R' a its rate is ``w . (b x d)``.
"""

from __future__ import annotations

import numpy as np

from archimedes.multibody.parts.closures import Closure
from archimedes.multibody.parts.joints import KINDS
from archimedes.spatial.se3 import homogeneous, se3_adjoint, se3_exp, se3_log, se3_right_jacobian
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Matrix, Vec3, Vector


def group_error(c: Closure, X: Pose) -> Vector:
    """Return by how much (m,) a closure is violated, in m and rad."""
    return c.rows @ split_motion(c, X)[2]


def group_slope(c: Closure, X: Pose) -> Matrix:
    """Return the derivative (m, 6) of `group_error` along twists of B, violated or not."""
    e, m, d = split_motion(c, X)
    back = np.eye(6)
    if c.kind != "fixed":
        moving = se3_right_jacobian(m) @ own_motions(c) @ se3_right_jacobian(e, inverse=True)
        back = back - se3_adjoint(se3_exp(-d)) @ moving
    return c.rows @ (se3_right_jacobian(d, inverse=True) @ back)


def split_motion(c: Closure, X: Pose) -> tuple[Vector, Vector, Vector]:
    """Return log X, m and d, each (6,)."""
    T = homogeneous(X.R, X.p - whole_turns(c, X))
    e = se3_log(T)
    if c.kind == "fixed":
        return e, np.zeros(6), e
    m = own_motions(c) @ e
    return e, m, se3_log(se3_exp(-m) @ T)


def own_motions(c: Closure) -> np.ndarray:
    """Return P (6, 6)."""
    return np.eye(6) - c.rows.T @ c.rows


def whole_turns(c: Closure, X: Pose) -> Vec3:
    """Return how far (3,) a screw has gone in whole turns."""
    lead = 2.0 * np.pi * c.pitch
    if lead == 0.0:
        return np.zeros(3)
    axis = np.array(c.axis)
    e = se3_log(homogeneous(X.R, X.p))
    return lead * np.floor((axis @ e[:3] - c.pitch * (axis @ e[3:])) / lead + 0.5) * axis


def holds_point(c: Closure) -> bool:
    """Return whether a closure holds a point: it has equations of its own."""
    return KINDS[c.kind].holds_point


def point_error(c: Closure, X: Pose) -> Vector:
    """Return by how much (3,) or (4,) a closure is violated."""
    if c.second_axis is None:
        return X.p
    a, b = np.array(c.axis), np.array(c.second_axis)
    return np.concatenate([X.p, np.stack([a @ (X.R @ b) - a @ b])])


def point_rows(c: Closure, X: Pose) -> Matrix:
    """Return the rates (3, 6) or (4, 6) of the equations, for a twist in axes of B."""
    upper = np.concatenate([X.R, np.zeros((3, 3))], axis=1)
    if c.second_axis is None:
        return upper
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    return np.concatenate([upper, np.concatenate([np.zeros(3), np.cross(b, d)])[None]])


def point_bias(c: Closure, X: Pose, s: Vector, rate: Vector) -> Vector:
    """Return the second rates (3,) or (4,) for a twist (6,) and its rate (6,)."""
    v, w = s[:3], s[3:]
    along = X.R @ (rate[:3] + np.cross(w, v))
    if c.second_axis is None:
        return along
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    turned = np.cross(rate[3:], b) + np.cross(w, np.cross(w, b))
    return np.concatenate([along, np.stack([d @ turned])])
