"""Kinds of joints: one row of `KINDS` for each, and `user_joint` for those of your own.

Legend: q are a joint's coordinates, v its velocities, both lists of numbers (or of arrays with the
leading axes of a batch). A kind says where the child is (`pose`), along which motions S it moves
(`columns`, in the child's axes, linear part first; v are their speeds), and how q moves along v on
its manifold. All kinds of the table have a constant S, so that ``d/dt S = v x S`` in fixed axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, table 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.multibody.spatial_algebra import Pose, Spatial
from archimedes.spatial.attitudes.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_kinematics,
    quaternion_kinematics_matrix,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_dcm,
)
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian
from archimedes.spatial.components import (
    components,
    cos,
    join,
    join_matrix,
    matvec,
    sin,
    transpose,
)
from archimedes.spatial.stumpff import stumpff

__all__ = ["KINDS", "JointKind", "Screw"]

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


@dataclass(frozen=True)
class JointKind:
    """How a child moves in its parent; the functions take the joint's `Screw` first.

    `rates` gives dq/dt for v, `tangent` is its inverse; `straight` kinds have dq/dt = v and limits
    on each coordinate. For kinds whose S is not constant, `bias` is dS/dt v in the child's axes and
    `column_rates` the derivative (6, nv, nq) of S.
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

    def __repr__(self) -> str:
        return f"<{self.name} joint>"


# ---- turning and sliding ---------------------------------------------------------------------


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


def _along(axis: Sequence[float], distance: Any) -> Any:
    return join([a * distance for a in axis])


def _about(screw: Screw, R: Any) -> Any:
    """Return where the child's origin is when the child has turned about the anchor."""
    if not any(screw.anchor):
        return np.zeros((*R.shape[:-2], 3))
    anchor = np.array(screw.anchor)
    return anchor - matvec(R, np.broadcast_to(anchor, (*R.shape[:-2], 3)))


def _turning(screw: Screw, axis: Any) -> Spatial:
    """Return the motion of a turn about an axis through the anchor."""
    return Spatial(np.cross(np.array(screw.anchor), axis) if any(screw.anchor) else ZERO, axis)


def _no_turn(distance: Any) -> Any:
    return np.broadcast_to(np.eye(3), (*np.shape(distance), 3, 3))


def revolute_pose(screw: Screw, q: Numbers) -> Pose:
    """Turn about the axis."""
    R = turn(screw.axis, q[0])
    return Pose(R, _about(screw, R))


def prismatic_pose(screw: Screw, q: Numbers) -> Pose:
    """Slide along the axis."""
    return Pose(_no_turn(q[0]), _along(screw.axis, q[0]))


def helical_pose(screw: Screw, q: Numbers) -> Pose:
    """Turn about the axis and slide along it by the pitch."""
    return Pose(turn(screw.axis, q[0]), _along(screw.axis, screw.pitch * q[0]))


def cylindrical_pose(screw: Screw, q: Numbers) -> Pose:
    """Slide along the axis by q[0], turn about it by q[1]."""
    return Pose(turn(screw.axis, q[1]), _along(screw.axis, q[0]))


def revolute_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the turn."""
    return [_turning(screw, np.array(screw.axis))]


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


def _plus(q: Numbers, v: Numbers) -> Numbers:
    return [a + b for a, b in zip(q, v, strict=True)]


def _minus(q0: Numbers, q1: Numbers) -> Numbers:
    return [b - a for a, b in zip(q0, q1, strict=True)]


def _second(q: Numbers, v: Numbers) -> Numbers:
    return v


# ---- a plane: q = (x, y, angle), v = (vx, vy, w) in the child's axes ---------------------------


def plane_axes(axis: Sequence[float]) -> Any:
    """Return the rows x, y, axis of a right-handed frame on a plane normal to `axis`.

    For z they are those of the frame itself; for other axes x is chosen in the plane of the
    normal and the frame's axis that is farthest from it, turned the short way.
    """
    n = np.array(axis)
    start = np.eye(3)[int(np.argmin(np.abs(n)))] if abs(n[2]) != 1.0 else np.array([1.0, 0, 0])
    x = start - (start @ n) * n
    x = x / np.sqrt(x @ x)
    return np.stack([x, np.cross(n, x), n])


def planar_pose(screw: Screw, q: Numbers) -> Pose:
    """Slide in the plane normal to the axis, then turn about the axis."""
    x, y, _ = plane_axes(screw.axis)
    shift = [x[k] * q[0] + y[k] * q[1] for k in range(3)]
    return Pose(turn(screw.axis, q[2]), join(shift))


def planar_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the two slides and the turn."""
    x, y, n = plane_axes(screw.axis)
    return [Spatial(x, ZERO), Spatial(y, ZERO), Spatial(ZERO, n)]


def turned_2d(angle: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the plane vector (x, y) turned by an angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


def planar_integrate(q: Numbers, v: Numbers) -> Numbers:
    """Move along a twist of the plane."""
    w = v[2]
    c1, c2 = stumpff((1, 2), w * w)
    a, b = c1, c2 * w
    dx, dy = turned_2d(q[2], a * v[0] - b * v[1], b * v[0] + a * v[1])
    return [q[0] + dx, q[1] + dy, q[2] + w]


def planar_difference(q0: Numbers, q1: Numbers) -> Numbers:
    """Return the twist of the plane that leads from q0 to q1."""
    w = q1[2] - q0[2]
    x, y = turned_2d(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
    c1, c2 = stumpff((1, 2), w * w)
    a, b = c1, c2 * w
    size = a * a + b * b
    return [(a * x + b * y) / size, (a * y - b * x) / size, w]


def planar_rates(q: Numbers, v: Numbers) -> Numbers:
    """Return dq/dt."""
    return [*turned_2d(q[2], v[0], v[1]), v[2]]


def planar_tangent(q: Numbers, dq: Numbers) -> Numbers:
    """Return v for dq/dt."""
    return [*turned_2d(-q[2], dq[0], dq[1]), dq[2]]


# ---- turning any way: q a quaternion, v in the child's axes ------------------------------------


def spherical_pose(screw: Screw, q: Numbers) -> Pose:
    """Turn by the quaternion, of any length."""
    R = transpose(quaternion_to_dcm(join(q)))
    return Pose(R, _about(screw, R))


def spherical_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the turns about x, y and z."""
    return [_turning(screw, e) for e in np.eye(3)]


def spherical_integrate(q: Numbers, v: Numbers) -> Numbers:
    """Turn by a rotation vector, seen from the child."""
    turned = quaternion_multiply(join(q), quaternion_exp(join(v)))
    return components(quaternion_normalize(turned), 4)


def spherical_difference(q0: Numbers, q1: Numbers) -> Numbers:
    """Return the rotation vector, seen from the child, that leads from q0 to q1."""
    back = quaternion_conjugate(join(q0))
    return components(quaternion_log(quaternion_multiply(back, join(q1))), 3)


def spherical_rates(q: Numbers, v: Numbers) -> Numbers:
    """Return dq/dt."""
    return components(quaternion_kinematics(join(q), join(v), 0.0), 4)


def spherical_tangent(q: Numbers, dq: Numbers) -> Numbers:
    """Return v for dq/dt; along the quaternion itself nothing moves."""
    back = quaternion_kinematics_matrix(join(q), inverse=True)
    d = join(dq)
    rows = [sum(back[..., i, k] * d[..., k] for k in range(4)) for i in range(3)]
    return rows if back.ndim > 2 or type(back) is not np.ndarray else [float(r) for r in rows]


# ---- free: q = (position, quaternion), v = (linear, angular) in the child's axes ---------------


def free_pose(screw: Screw, q: Numbers) -> Pose:
    """Be anywhere."""
    return Pose(transpose(quaternion_to_dcm(join(q[3:]))), join(q[:3]))


def free_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return all six motions."""
    return [Spatial(e, ZERO) for e in np.eye(3)] + [Spatial(ZERO, e) for e in np.eye(3)]


def free_integrate(q: Numbers, v: Numbers) -> Numbers:
    """Move along a twist, seen from the child."""
    shift = matvec(so3_left_jacobian(join(v[3:])), join(v[:3]))
    moved = components(matvec(transpose(quaternion_to_dcm(join(q[3:]))), shift), 3)
    return [*_plus(q[:3], moved), *spherical_integrate(q[3:], v[3:])]


def free_difference(q0: Numbers, q1: Numbers) -> Numbers:
    """Return the twist, seen from the child, that leads from q0 to q1."""
    turned = spherical_difference(q0[3:], q1[3:])
    shift = matvec(quaternion_to_dcm(join(q0[3:])), join(_minus(q0[:3], q1[:3])))
    along = matvec(so3_left_jacobian(join(turned), inverse=True), shift)
    return [*components(along, 3), *turned]


def free_rates(q: Numbers, v: Numbers) -> Numbers:
    """Return dq/dt."""
    moved = matvec(transpose(quaternion_to_dcm(join(q[3:]))), join(v[:3]))
    return [*components(moved, 3), *spherical_rates(q[3:], v[3:])]


def free_tangent(q: Numbers, dq: Numbers) -> Numbers:
    """Return v for dq/dt."""
    moved = matvec(quaternion_to_dcm(join(q[3:])), join(dq[:3]))
    return [*components(moved, 3), *spherical_tangent(q[3:], dq[3:])]


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
        straight("revolute", 1, revolute_pose, revolute_columns),
        straight("continuous", 1, revolute_pose, revolute_columns),
        straight("prismatic", 1, prismatic_pose, prismatic_columns),
        straight("helical", 1, helical_pose, helical_columns),
        straight("cylindrical", 2, cylindrical_pose, cylindrical_columns),
        JointKind("planar", 3, 3, planar_pose, planar_columns, (0.0,) * 3, *PLANAR, False),
        JointKind("spherical", 4, 3, spherical_pose, spherical_columns, UNIT, *SPHERICAL, False),
        JointKind("free", 7, 6, free_pose, free_columns, (0.0,) * 3 + UNIT, *FREE, False),
    )
}
