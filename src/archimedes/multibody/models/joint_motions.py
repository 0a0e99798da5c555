"""What kinds of joints are made of: `JointKind`, `Screw`, and turns about axes and anchors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from archimedes.multibody.models.spatial_algebra import Pose, Spatial
from archimedes.multibody.models.turns import Turn
from archimedes.spatial.components import cos, join, join_matrix, matvec, sin

__all__ = [
    "ZERO",
    "JointKind",
    "Numbers",
    "Screw",
    "about",
    "along",
    "fields_of",
    "no_turn",
    "turn",
    "turning",
]

Numbers = Sequence[Any]
ZERO = np.zeros(3)


@dataclass(frozen=True)
class Screw:
    """What a joint turns about or slides along: a unit axis, and the pitch in m/rad.

    The axis, or the centre of a spherical joint, passes through `anchor` in the child's axes.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    pitch: float = 0.0
    anchor: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __content__(self) -> tuple[Any, ...]:
        return fields_of(self)


@dataclass(frozen=True)
class JointKind:
    """How a child moves in its parent; the functions take the joint's `Screw` first.

    `rates` gives dq/dt for v, `tangent` is its inverse; `straight` kinds have dq/dt = v and limits
    on each coordinate. For kinds whose S is not constant, `bias` is dS/dt v in the child's axes and
    `column_rates` the derivative (6, nv, nq) of S. Kinds that turn about their axis at most say so
    by `turns`, the rotation of their pose as turns; those that `spins` do nothing else.
    """

    name: str
    nq: int
    nv: int
    pose: Callable[[Screw, Numbers], Pose]
    columns: Callable[[Screw, Numbers], list[Spatial]]
    neutral: tuple[float, ...]
    integrate: Callable[[Numbers, Numbers], Numbers]
    difference: Callable[[Numbers, Numbers], Numbers]
    rates: Callable[[Numbers, Numbers], Numbers]
    tangent: Callable[[Numbers, Numbers], Numbers]
    straight: bool = True
    bias: Callable[[Screw, Numbers, Numbers], Spatial] | None = None
    column_rates: Callable[[Any], Any] | None = None
    turns: Callable[[Screw, Numbers], tuple[Turn, ...] | None] | None = None
    spins: bool = False

    def __repr__(self) -> str:
        return f"<{self.name} joint>"

    def __content__(self) -> tuple[Any, ...]:
        # Compiled functions check whether what they read has changed: this never does, and a robot
        # has hundreds of such attributes.
        return fields_of(self)


def fields_of(value: Any) -> tuple[Any, ...]:
    """Return what a frozen dataclass holds."""
    return tuple(getattr(value, f.name) for f in fields(value))


def turn(axis: Sequence[float], angle: Any) -> Any:
    """Return the matrix (..., 3, 3), child to parent, of a turn about a unit axis.

    Entries that an axis along x, y or z leaves at 0 or 1 are exactly that.
    """
    c, s = cos(angle), sin(angle)
    zero = 0.0 * c
    rest = 1.0 - c
    rows: list[Any] = []
    for i in range(3):
        for j in range(3):
            if i == j:
                fixed = abs(axis[i]) == 1.0
                rows.append(zero + 1.0 if fixed else c + axis[i] * axis[i] * rest)
            else:
                k = 3 - i - j
                sign = axis[k] if (j - i) % 3 == 2 else -axis[k]
                both = axis[i] * axis[j]
                rows.append((zero if both == 0.0 else both * rest) + _times(sign, s, zero))
    return join_matrix(rows)


def _times(factor: float, x: Any, zero: Any) -> Any:
    return zero if factor == 0.0 else (x if factor == 1.0 else factor * x)


def along(axis: Sequence[float], distance: Any) -> Any:
    """Return the vector (..., 3) of a distance along an axis."""
    return join([a * distance for a in axis])


def about(screw: Screw, R: Any) -> Any:
    """Return where the child's origin is when the child has turned about the anchor."""
    if not any(screw.anchor):
        return np.zeros((*R.shape[:-2], 3))
    anchor = np.array(screw.anchor)
    return anchor - matvec(R, np.broadcast_to(anchor, (*R.shape[:-2], 3)))


def turning(screw: Screw, axis: Any) -> Spatial:
    """Return the motion of a turn about an axis through the anchor."""
    return Spatial(np.cross(np.array(screw.anchor), axis) if any(screw.anchor) else ZERO, axis)


def no_turn(distance: Any) -> Any:
    """Return the identity (..., 3, 3) for each of a batch of numbers."""
    return np.broadcast_to(np.eye(3), (*np.shape(distance), 3, 3))
