"""Velocities of free and planar joints in axes that stand still during a step.

Legend: v, w are the linear and angular velocity of a joint in the child's axes, which turn with it:
what flies straight on has ``v' = -w x v``, and a step along that makes it ever faster. In axes that
are the child's at the start of the step and then stand still v changes by ``v' + w x v`` alone, and
a way is straight; at its end velocities are seen from the axes as they are then, turned by exp(f).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.multibody.algorithms.configurations import own_links
from archimedes.multibody.models.model import Model
from archimedes.spatial.attitudes.rotvec import rotvec_to_dcm, so3_left_jacobian
from archimedes.spatial.components import cross

__all__ = ["seen_after", "standing_still", "straight_on"]

Way = Callable[[Any, Any], Any]


def standing_still(model: Model, a: Any, v: Any) -> Any:
    """Return the rates (nv,) of velocities in axes that stand still, of those in the child's."""
    return a + joined(model, v, v, lambda v, w: cross(w, v), lambda v: 0.0 * v)


def straight_on(model: Model, moved: Any) -> Any:
    """Return what `integrate` takes (nv,) for a way (nv,) in axes that stand still."""

    def back(v: Any, f: Any) -> Any:
        return so3_left_jacobian(f, inverse=True) @ v

    return joined(model, moved, moved, back, lambda v: v)


def seen_after(model: Model, v: Any, moved: Any) -> Any:
    """Return velocities (nv,) in the child's axes after a way (nv,), of those that stood still."""
    return joined(model, v, moved, lambda v, f: rotvec_to_dcm(f) @ v, lambda v: v)


def joined(model: Model, v: Any, turn: Any, way: Way, otherwise: Callable[[Any], Any]) -> Any:
    """Return velocities (nv,), linear ones of `v` changed by a way, which the turns have a part in.

    Those that turn nothing, and angular ones, are changed `otherwise`.
    """
    parts = []
    for link in own_links(model):
        own, turned = v[link.v : link.v + link.kind.nv], turn[link.v : link.v + link.kind.nv]
        if link.kind.name == "free":
            parts += [way(own[:3], turned[3:]), otherwise(own[3:])]
        elif link.kind.name == "planar":
            # In space, of which x and y are the plane.
            zero = 0.0 * own[:1]
            flat, about = np.concatenate([own[:2], zero]), np.concatenate([zero, zero, turned[2:]])
            parts += [way(flat, about)[:2], otherwise(own[2:])]
        else:
            parts.append(otherwise(own))
    return np.concatenate(parts)
