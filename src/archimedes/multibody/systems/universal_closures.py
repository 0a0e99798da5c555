"""What a universal joint forbids: four equations, exact wherever the frames are.

Legend: (R, p) is frame B in frame A, s = (v, w) the twist of B relative to A in axes of B, (s', w')
its rate; a is the first axis in A, b the second in B. The joint holds ``p = 0`` and the angle
between its axes, ``a . R b = const``; with d = R' a the rates are ``R v`` and ``w . (b x d)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.models.closures import Closure
from archimedes.multibody.models.spatial_algebra import Pose

__all__ = ["universal_bias", "universal_error", "universal_rows"]


def universal_error(c: Closure, X: Pose) -> Any:
    """Return by how much (4,) it is violated."""
    a, b = np.array(c.axis), np.array(c.second_axis)
    return np.concatenate([X.p, np.stack([a @ (X.R @ b) - a @ b])])


def universal_rows(c: Closure, X: Pose) -> Any:
    """Return the rates (4, 6) of the equations, for a twist in axes of B."""
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    upper = np.concatenate([X.R, np.zeros((3, 3))], axis=1)
    return np.concatenate([upper, np.concatenate([np.zeros(3), np.cross(b, d)])[None]])


def universal_bias(c: Closure, X: Pose, s: Any, rate: Any) -> Any:
    """Return the second rates (4,) for a twist (6,) and its rate (6,)."""
    b, d = np.array(c.second_axis), X.R.T @ np.array(c.axis)
    v, w = s[:3], s[3:]
    turned = np.cross(rate[3:], b) + np.cross(w, np.cross(w, b))
    return np.concatenate([X.R @ (rate[:3] + np.cross(w, v)), np.stack([d @ turned])])
