"""What joints whose motions form a group forbid: everywhere on it, also far from where they began.

Legend: X is frame B in frame A, P the projection on the joint's motions and T the rows that span
the rest. ``X = exp(m) exp(d)`` with ``m = P log X`` the joint's own motion and d what is left: the
violation is ``c = T d``, in axes of B, and its rate ``T s + O(d)`` for the relative twist s,
whatever m is. (``T log X`` vanishes with it, but its rate turns with m: by a quarter at half a
turn, where what should die out grows.) A turn of a screw is known up
to whole turns only: taken are those at which it would be nearest to where it is along its axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.models.closures import Closure
from archimedes.multibody.models.spatial_algebra import Pose
from archimedes.spatial.se3 import homogeneous, se3_adjoint, se3_exp, se3_log, se3_right_jacobian

__all__ = ["group_error", "group_slope"]


def group_error(c: Closure, X: Pose) -> Any:
    """Return by how much (m,) a closure is violated, in m and rad."""
    return c.rows @ parted(c, X)[2]


def group_slope(c: Closure, X: Pose) -> Any:
    """Return the derivative (m, 6) of `group_error` along twists of B, violated or not."""
    e, m, d = parted(c, X)
    back = np.eye(6)
    if c.kind != "fixed":
        moving = se3_right_jacobian(m) @ own_motions(c) @ se3_right_jacobian(e, inverse=True)
        back = back - se3_adjoint(se3_exp(-d)) @ moving
    return c.rows @ (se3_right_jacobian(d, inverse=True) @ back)


def parted(c: Closure, X: Pose) -> tuple[Any, Any, Any]:
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


def whole_turns(c: Closure, X: Pose) -> Any:
    """Return how far (3,) a screw has gone in whole turns."""
    lead = 2.0 * np.pi * c.pitch
    if c.kind != "helical" or lead == 0.0:
        return np.zeros(3)
    axis = np.array(c.axis)
    e = se3_log(homogeneous(X.R, X.p))
    return lead * np.floor((axis @ e[:3] - c.pitch * (axis @ e[3:])) / lead + 0.5) * axis
