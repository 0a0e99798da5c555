"""Kinds of joints: one row of `KINDS` for each, and `user_joint` for those of your own.

Legend: q are a joint's coordinates, v its velocities, both lists of numbers (or of arrays with the
leading axes of a batch). A kind says where the child is (`pose`), along which motions S it moves
(`columns`, in the child's axes, linear part first; v are their speeds), and how q moves along v on
its manifold. All kinds of the table have a constant S, so that ``d/dt S = v x S`` in fixed axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, table 4.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.models.curved_joints import (
    free_columns,
    free_difference,
    free_integrate,
    free_pose,
    free_rates,
    free_tangent,
    planar_columns,
    planar_difference,
    planar_integrate,
    planar_pose,
    planar_rates,
    planar_tangent,
    spherical_columns,
    spherical_difference,
    spherical_integrate,
    spherical_pose,
    spherical_rates,
    spherical_tangent,
)
from archimedes.multibody.models.joint_motions import (
    ZERO,
    JointKind,
    Numbers,
    Screw,
    about,
    along,
    no_turn,
    turn,
    turning,
)
from archimedes.multibody.models.spatial_algebra import Pose, Spatial
from archimedes.multibody.models.turns import Turn, about_axis

__all__ = ["KINDS", "JointKind", "Screw", "straight", "turn"]


def revolute_pose(screw: Screw, q: Numbers) -> Pose:
    """Turn about the axis."""
    R = turn(screw.axis, q[0])
    return Pose(R, about(screw, R))


def prismatic_pose(screw: Screw, q: Numbers) -> Pose:
    """Slide along the axis."""
    return Pose(no_turn(q[0]), along(screw.axis, q[0]))


def helical_pose(screw: Screw, q: Numbers) -> Pose:
    """Turn about the axis and slide along it by the pitch."""
    return Pose(turn(screw.axis, q[0]), along(screw.axis, screw.pitch * q[0]))


def cylindrical_pose(screw: Screw, q: Numbers) -> Pose:
    """Slide along the axis by q[0], turn about it by q[1]."""
    return Pose(turn(screw.axis, q[1]), along(screw.axis, q[0]))


def revolute_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the turn."""
    return [turning(screw, np.array(screw.axis))]


def prismatic_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the slide."""
    return [Spatial(np.array(screw.axis), ZERO)]


def helical_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the turn with the slide that goes with it."""
    axis = np.array(screw.axis)
    return [Spatial(screw.pitch * axis, axis)]


def cylindrical_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the slide and the turn."""
    return [*prismatic_columns(screw, q), *revolute_columns(screw, q)]


def _first_turn(screw: Screw, q: Numbers) -> tuple[Turn, ...] | None:
    return about_axis(screw.axis, q[0])


def _second_turn(screw: Screw, q: Numbers) -> tuple[Turn, ...] | None:
    return about_axis(screw.axis, q[1])


def _no_turn(screw: Screw, q: Numbers) -> tuple[Turn, ...]:
    return ()


def _plus(q: Numbers, v: Numbers) -> Numbers:
    return [a + b for a, b in zip(q, v, strict=True)]


def _minus(q0: Numbers, q1: Numbers) -> Numbers:
    return [b - a for a, b in zip(q0, q1, strict=True)]


def _second(q: Numbers, v: Numbers) -> Numbers:
    return v


# ---- the table -------------------------------------------------------------------------------


def straight(name: str, count: int, pose: Any, columns: Any, **more: Any) -> JointKind:
    """Return a kind whose coordinates are plain numbers with dq/dt = v."""
    functions = (pose, columns, (0.0,) * count, _plus, _minus, _second, _second)
    return JointKind(name, count, count, *functions, **more)


PLANAR = (planar_integrate, planar_difference, planar_rates, planar_tangent)
SPHERICAL = (spherical_integrate, spherical_difference, spherical_rates, spherical_tangent)
FREE = (free_integrate, free_difference, free_rates, free_tangent)
UNIT = (1.0, 0.0, 0.0, 0.0)

#: Kinds by name. Three more names are known to the builder: "fixed" makes one body of two,
#: "universal" is two revolute joints about crossed axes, and a mimic joint is any kind of one
#: coordinate that follows another joint's.
KINDS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        straight("revolute", 1, revolute_pose, revolute_columns, turns=_first_turn, spins=True),
        straight("continuous", 1, revolute_pose, revolute_columns, turns=_first_turn, spins=True),
        straight("prismatic", 1, prismatic_pose, prismatic_columns, turns=_no_turn),
        straight("helical", 1, helical_pose, helical_columns, turns=_first_turn),
        straight("cylindrical", 2, cylindrical_pose, cylindrical_columns, turns=_second_turn),
        JointKind("planar", 3, 3, planar_pose, planar_columns, (0.0,) * 3, *PLANAR, False),
        JointKind("spherical", 4, 3, spherical_pose, spherical_columns, UNIT, *SPHERICAL, False),
        JointKind("free", 7, 6, free_pose, free_columns, (0.0,) * 3 + UNIT, *FREE, False),
    )
}
