"""Joints whose coordinates are points of a manifold: in a plane, turning any way, free.

Each has its pose, its columns, and q moved along v, apart by v, dq/dt for v, and v for dq/dt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function.reproducible import matmul, norm
from archimedes.multibody.models.joint_motions import ZERO, Numbers, Screw, about, turn, turning
from archimedes.multibody.models.spatial_algebra import Pose, Spatial
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
    matvec,
    sin,
    transpose,
)
from archimedes.spatial.stumpff import stumpff

__all__ = [
    "free_columns",
    "free_difference",
    "free_integrate",
    "free_pose",
    "free_rates",
    "free_tangent",
    "planar_columns",
    "planar_difference",
    "planar_integrate",
    "planar_pose",
    "planar_rates",
    "planar_tangent",
    "spherical_columns",
    "spherical_difference",
    "spherical_integrate",
    "spherical_pose",
    "spherical_rates",
    "spherical_tangent",
]


# ---- a plane: q = (x, y, angle), v = (vx, vy, w) in the child's axes ---------------------------


def plane_axes(axis: Sequence[float]) -> Any:
    """Return the rows x, y, axis of a right-handed frame on a plane normal to `axis`.

    For z they are those of the frame itself; for other axes x is chosen in the plane of the
    normal and the frame's axis that is farthest from it, turned the short way.
    """
    n = np.array(axis)
    start = np.eye(3)[int(np.argmin(np.abs(n)))] if abs(n[2]) != 1.0 else np.array([1.0, 0, 0])
    x = start - matmul(start, n) * n
    x = x / norm(x)
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
    return Pose(R, about(screw, R))


def spherical_columns(screw: Screw, q: Numbers) -> list[Spatial]:
    """Return the turns about x, y and z."""
    return [turning(screw, e) for e in np.eye(3)]


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


def _plus(q: Numbers, v: Numbers) -> Numbers:
    return [a + b for a, b in zip(q, v, strict=True)]


def _minus(q0: Numbers, q1: Numbers) -> Numbers:
    return [b - a for a, b in zip(q0, q1, strict=True)]
