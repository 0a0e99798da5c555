"""What spherical and universal joints forbid: equations that are exact wherever the frames are.

Legend: (R, p) is frame B in frame A, s = (v, w) the twist of B relative to A in axes of B, (s', w')
its rate; a is the first axis in A, b the second in B. Both joints hold ``p = 0``, in axes of A; its
rate is ``R v``, however fast B turns. A universal one also holds the angle between its axes,
``a . R b = const``; with d = R' a its rate is ``w . (b x d)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.models.closures import Closure
from archimedes.multibody.models.spatial_algebra import Pose

__all__ = ["POINTS", "point_bias", "point_error", "point_rows"]

#: The kinds that hold a point.
POINTS = ("spherical", "universal")


def point_error(c: Closure, X: Pose) -> Any:
    """Return by how much (3,) or (4,) one is violated."""
    if c.kind == "spherical":
        return X.p
    a, b = np.array(c.axis), np.array(c.second_axis)
    return np.concatenate([X.p, np.stack([a @ (X.R @ b) - a @ b])])


def point_rows(c: Closure, X: Pose) -> Any:
    """Return the rates (3, 6) or (4, 6) of the equations, for a twist in axes of B."""
    upper = np.concatenate([X.R, np.zeros((3, 3))], axis=1)
    if c.kind == "spherical":
        return upper
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    return np.concatenate([upper, np.concatenate([np.zeros(3), np.cross(b, d)])[None]])


def point_bias(c: Closure, X: Pose, s: Any, rate: Any) -> Any:
    """Return the second rates (3,) or (4,) for a twist (6,) and its rate (6,)."""
    v, w = s[:3], s[3:]
    along = X.R @ (rate[:3] + np.cross(w, v))
    if c.kind == "spherical":
        return along
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    turned = np.cross(rate[3:], b) + np.cross(w, np.cross(w, b))
    return np.concatenate([along, np.stack([d @ turned])])
