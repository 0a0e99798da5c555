"""Kinds of joints: one class each, with all that is asked of it, and their table `KINDS`.

Legend: q are a joint's coordinates, v its velocities, both lists of numbers (or of arrays with the
leading axes of a batch). A kind says where the child is (`pose`), along which motions S it moves
(`columns`, in the child's axes, linear part first; v are their speeds), and how q moves along v on
its manifold. All kinds of the table have a constant S, so that ``d/dt S = v x S`` in fixed axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, table 4.1.

To add a kind, write a class below and enter it in `KINDS`; nothing else knows kinds by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from archimedes.checks import check_shape, check_vector
from archimedes.multibody.parts.ranges import known_numbers
from archimedes.portable_numpy import matmul, norm
from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian, so3_right_jacobian
from archimedes.spatial.axis_rotations import AxisRotation, axis_rotation
from archimedes.spatial.components import components, cos, join, join_matrix, matvec, sin, transpose
from archimedes.spatial.se3 import se3_right_jacobian
from archimedes.spatial.spatial_algebra import Pose, Spatial
from archimedes.spatial.stumpff import stumpff
from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vec3, Vector

Numbers = Sequence[Any]
#: A map of velocities, and one of a linear velocity (3,) that depends on a rotation (3,).
Map = Callable[[Any], Any]
LinearMap = Callable[[Any, Any], Any]
ZERO = np.zeros(3)


@dataclass(frozen=True)
class Screw:
    """What a joint rotates about or slides along: a unit axis, and the pitch in m/rad.

    The axis, or the centre of a spherical joint, passes through `anchor` in the child's axes. A
    universal joint has a second axis.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    pitch: float = 0.0
    anchor: tuple[float, float, float] = (0.0, 0.0, 0.0)
    second_axis: tuple[float, float, float] | None = None

    def __content__(self) -> tuple[Any, ...]:
        # Calls of a recorded function look whether what it reads has changed: a screw never does.
        return self.axis, self.pitch, self.anchor, self.second_axis


@dataclass(frozen=True, repr=False)
class JointKind:
    """How a child moves in its parent: the base of all kinds, with what most of them share.

    `urdf`, `sdf` and `mjcf` are the kind's names in robot files (None: it does not occur there).
    """

    name: str
    urdf: str | None = None
    sdf: str | None = None
    mjcf: int | None = None

    #: Numbers of coordinates and velocities.
    nq = nv = 1
    #: Coordinates are plain numbers with dq/dt = v, and have limits.
    straight = True
    #: Names of the coordinates and velocities of a joint with several, and all their units.
    q_names: ClassVar[tuple[str, ...]] = ()
    v_names: ClassVar[tuple[str, ...]] = ()
    q_units: ClassVar[tuple[str, ...]] = ("rad",)
    v_units: ClassVar[tuple[str, ...]] = ("rad/s",)
    #: The child may rotate; about an anchor beside its origin; about one axis and nothing else.
    rotates, anchored, spins = True, False, False
    #: The motion looks the same from all sides of the axis.
    axial = False
    #: What a screw has for this kind alone.
    has_pitch = has_second_axis = False
    #: A closure can hold frames by it: its motions form a group, or it holds a point.
    closes, holds_point = True, False
    #: S changes with q: there are `bias` and `column_rates`.
    varies = False
    #: Which of its velocities are along, and which about, x, y and z of the child (None: none).
    turning: ClassVar[tuple[tuple[int | None, ...], tuple[int | None, ...]] | None] = None

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Return the pose of the child in the parent."""
        raise NotImplementedError

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the motions S of the child, in its own axes."""
        raise NotImplementedError

    def factors(self, screw: Screw, q: Numbers) -> tuple[AxisRotation, ...] | None:
        """Return the rotation of the pose about coordinate axes, None if it is no such product."""
        return None

    def parts(self, screw: Screw) -> list[tuple[JointKind, Screw]]:
        """Return the kinds, one behind the other, that a joint of this kind is made of."""
        return [(self, screw)]

    def bias(self, screw: Screw, q: Numbers, v: Numbers) -> Spatial:
        """Return dS/dt v in the child's axes, for kinds whose S varies."""
        raise NotImplementedError

    def column_rates(self, q: Numbers, v: Numbers) -> list[Spatial]:
        """Return dS/dt in the child's axes, for kinds whose S varies."""
        raise NotImplementedError

    @property
    def neutral(self) -> tuple[float, ...]:
        """The coordinates at which the child is where the joint is."""
        return (0.0,) * self.nq

    def integrate(self, q: Numbers, v: Numbers) -> Numbers:
        """Return q after moving along v for a unit of time."""
        return [a + b for a, b in zip(q, v, strict=True)]

    def difference(self, q0: Numbers, q1: Numbers) -> Numbers:
        """Return the v that leads from q0 to q1."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def difference_slope(self, d: Vector) -> Matrix:
        """Return the derivative (nv, nv) of a difference d along the tangent space at its end."""
        return np.broadcast_to(np.eye(d.shape[-1]), (*np.shape(d), d.shape[-1]))

    def rates(self, q: Numbers, v: Numbers) -> Numbers:
        """Return dq/dt for v."""
        return v

    def tangent(self, q: Numbers, dq: Numbers) -> Numbers:
        """Return v for dq/dt."""
        return dq

    def draw(self, rng: np.random.Generator, low: Vector, high: Vector) -> Numbers:
        """Return random coordinates, between `low` and `high` if they are plain numbers."""
        return rng.uniform(low, high).tolist()

    def map_linear(self, v: Vector, turn: Vector, linear: LinearMap, other: Map) -> list[Array]:
        """Return v with ``linear(velocity, rotation)`` in place of a velocity in axes that rotate.

        The rotation is that of `turn` (nv,). All that is not such a velocity becomes ``other(v)``.
        """
        return [other(v)]

    def __repr__(self) -> str:
        return f"<{self.name} joint>"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__content__" not in cls.__dict__:  # which is not inherited
            cls.__content__ = JointKind.__content__  # type: ignore[method-assign]

    def __content__(self) -> tuple[Any, ...]:
        return (self.name,)

    def __reduce__(self) -> tuple[Any, ...]:
        return find_kind, (self.name,)


# ---- about and along one axis ------------------------------------------------------------------


class Revolute(JointKind):
    """Rotation about the axis."""

    anchored = spins = axial = True

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Rotate about the axis."""
        R = rotation_about(screw.axis, q[0])
        return Pose(R, origin_about_anchor(screw, R))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the rotation."""
        return [rotation_through_anchor(screw, np.array(screw.axis))]

    def factors(self, screw: Screw, q: Numbers) -> tuple[AxisRotation, ...] | None:
        """Return the rotation, if the axis is a coordinate axis."""
        return axis_rotation(screw.axis, q[0])


class Prismatic(JointKind):
    """Translation along the axis."""

    rotates, axial = False, True
    q_units, v_units = ("m",), ("m/s",)

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Slide along the axis."""
        return Pose(np.broadcast_to(np.eye(3), (*np.shape(q[0]), 3, 3)), along(screw.axis, q[0]))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the translation."""
        return [Spatial(np.array(screw.axis), ZERO)]

    def factors(self, screw: Screw, q: Numbers) -> tuple[AxisRotation, ...]:
        """Return no rotation."""
        return ()


class Helical(JointKind):
    """Rotation about the axis with a translation along it by the pitch."""

    axial = has_pitch = True

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Rotate about the axis and slide along it."""
        return Pose(rotation_about(screw.axis, q[0]), along(screw.axis, screw.pitch * q[0]))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the rotation with its translation."""
        axis = np.array(screw.axis)
        return [Spatial(screw.pitch * axis, axis)]

    def factors(self, screw: Screw, q: Numbers) -> tuple[AxisRotation, ...] | None:
        """Return the rotation, if the axis is a coordinate axis."""
        return axis_rotation(screw.axis, q[0])


class Cylindrical(JointKind):
    """Translation q[0] along the axis and rotation q[1] about it."""

    nq = nv = 2
    axial = True
    q_names = v_names = ("slide", "turn")
    q_units, v_units = ("m", "rad"), ("m/s", "rad/s")

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Slide along the axis and rotate about it."""
        return Pose(rotation_about(screw.axis, q[1]), along(screw.axis, q[0]))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the translation and the rotation."""
        axis = np.array(screw.axis)
        return [Spatial(axis, ZERO), Spatial(ZERO, axis)]

    def factors(self, screw: Screw, q: Numbers) -> tuple[AxisRotation, ...] | None:
        """Return the rotation, if the axis is a coordinate axis."""
        return axis_rotation(screw.axis, q[1])


# ---- in a plane: q = (x, y, angle), v = (vx, vy, w) in the child's axes ------------------------


class Planar(JointKind):
    """Translation in the plane normal to the axis, and rotation about the axis."""

    nq = nv = 3
    turning = ((0, 1, None), (None, None, 2))
    straight = False
    q_names, q_units = ("x", "y", "angle"), ("m", "m", "rad")
    v_names, v_units = ("vx", "vy", "w"), ("m/s", "m/s", "rad/s")

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Slide in the plane, then rotate about the axis."""
        x, y, _ = plane_axes(screw.axis)
        shift = [x[k] * q[0] + y[k] * q[1] for k in range(3)]
        return Pose(rotation_about(screw.axis, q[2]), join(shift))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the two translations and the rotation."""
        x, y, n = plane_axes(screw.axis)
        return [Spatial(x, ZERO), Spatial(y, ZERO), Spatial(ZERO, n)]

    def integrate(self, q: Numbers, v: Numbers) -> Numbers:
        """Move along a twist of the plane."""
        w = v[2]
        a, b = turn_factors(w)
        dx, dy = rotate_2d(q[2], a * v[0] - b * v[1], b * v[0] + a * v[1])
        return [q[0] + dx, q[1] + dy, q[2] + w]

    def difference(self, q0: Numbers, q1: Numbers) -> Numbers:
        """Return the twist of the plane that leads from q0 to q1."""
        w = q1[2] - q0[2]
        x, y = rotate_2d(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
        a, b = turn_factors(w)
        size = a * a + b * b
        return [(a * x + b * y) / size, (a * y - b * x) / size, w]

    def difference_slope(self, d: Vector) -> Matrix:
        """Return that of a motion in space that stays in the plane."""
        zero = 0.0 * d[..., :1]
        twist = np.concatenate([d[..., :2], zero, zero, zero, d[..., 2:]], axis=-1)
        J = se3_right_jacobian(twist, inverse=True)
        return J[..., [0, 1, 5], :][..., :, [0, 1, 5]]

    def rates(self, q: Numbers, v: Numbers) -> Numbers:
        """Return dq/dt."""
        return [*rotate_2d(q[2], v[0], v[1]), v[2]]

    def tangent(self, q: Numbers, dq: Numbers) -> Numbers:
        """Return v for dq/dt."""
        return [*rotate_2d(-q[2], dq[0], dq[1]), dq[2]]

    def draw(self, rng: np.random.Generator, low: Vector, high: Vector) -> Numbers:
        """Return where a random twist leads."""
        twist = rng.normal(size=3) * np.pi
        rng.normal(size=4), rng.uniform(-1.0, 1.0, 3)  # as many numbers as for other kinds
        return self.integrate(self.neutral, twist.tolist())

    def map_linear(self, v: Vector, turn: Vector, linear: LinearMap, other: Map) -> list[Array]:
        """Change the velocity in the plane, as one in space of which x and y are the plane."""
        zero = 0.0 * v[:1]
        flat, about = np.concatenate([v[:2], zero]), np.concatenate([zero, zero, turn[2:]])
        return [linear(flat, about)[:2], other(v[2:])]


# ---- any rotation: q a quaternion of any length, v in the child's axes -------------------------


class Spherical(JointKind):
    """Rotation about any axis through the anchor."""

    nq, nv = 4, 3
    straight = False
    q_names: ClassVar[tuple[str, ...]] = ("qw", "qx", "qy", "qz")
    q_units: ClassVar[tuple[str, ...]] = ("",) * 4
    v_names: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s",) * 3
    anchored = holds_point = True
    neutral: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Rotate by the quaternion."""
        R = rotation_of(q)
        return Pose(R, origin_about_anchor(screw, R))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return the rotations about x, y and z."""
        return [rotation_through_anchor(screw, e) for e in np.eye(3)]

    def integrate(self, q: Numbers, v: Numbers) -> Numbers:
        """Rotate by a rotation vector, seen from the child."""
        moved = quaternions.quaternion_integrate(join(q), join(v))
        return components(quaternions.quaternion_normalize(moved), 4)

    def difference(self, q0: Numbers, q1: Numbers) -> Numbers:
        """Return the rotation vector, seen from the child, that leads from q0 to q1."""
        back = quaternions.quaternion_conjugate(join(q0))
        turn = quaternions.quaternion_multiply(back, join(q1))
        return components(quaternions.quaternion_log(turn), 3)

    def difference_slope(self, d: Vector) -> Matrix:
        """Return the inverse right Jacobian of SO(3)."""
        return so3_right_jacobian(d, inverse=True)

    def rates(self, q: Numbers, v: Numbers) -> Numbers:
        """Return dq/dt."""
        return components(quaternions.quaternion_kinematics(join(q), join(v), 0.0), 4)

    def tangent(self, q: Numbers, dq: Numbers) -> Numbers:
        """Return v for dq/dt; along the quaternion itself nothing moves."""
        back = quaternions.quaternion_kinematics_matrix(join(q), inverse=True)
        d = join(dq)
        rows = [sum(back[..., i, k] * d[..., k] for k in range(4)) for i in range(3)]
        return rows if back.ndim > 2 or type(back) is not np.ndarray else [float(r) for r in rows]

    def draw(self, rng: np.random.Generator, low: Vector, high: Vector) -> Numbers:
        """Return a rotation, of all equally likely ones, and a position if the joint has one."""
        rng.normal(size=self.nv)  # as many numbers as for a planar joint
        q = rng.normal(size=4)
        position = rng.uniform(-1.0, 1.0, 3).tolist()  # in a cube of 2 m around the origin
        return [*position, *(q / np.sqrt(q @ q))][-self.nq :]


# ---- free: q = (position, quaternion), v = (linear, angular) in the child's axes ---------------


class Free(Spherical):
    """Any motion."""

    nq, nv = 7, 6
    turning = ((0, 1, 2), (3, 4, 5))
    q_names = ("x", "y", "z", *Spherical.q_names)
    q_units = (*("m",) * 3, *Spherical.q_units)
    v_names = ("vx", "vy", "vz", *Spherical.v_names)
    v_units = (*("m/s",) * 3, *Spherical.v_units)
    anchored = holds_point = closes = False
    neutral = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Place the child at the position, rotated by the quaternion."""
        return Pose(rotation_of(q[3:]), join(q[:3]))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return all six motions."""
        return [Spatial(e, ZERO) for e in np.eye(3)] + [Spatial(ZERO, e) for e in np.eye(3)]

    def integrate(self, q: Numbers, v: Numbers) -> Numbers:
        """Move along a twist, seen from the child."""
        shift = matvec(so3_left_jacobian(join(v[3:])), join(v[:3]))
        moved = components(matvec(rotation_of(q[3:]), shift), 3)
        return [*JointKind.integrate(self, q[:3], moved), *super().integrate(q[3:], v[3:])]

    def difference(self, q0: Numbers, q1: Numbers) -> Numbers:
        """Return the twist, seen from the child, that leads from q0 to q1."""
        rotation = super().difference(q0[3:], q1[3:])
        apart = join(JointKind.difference(self, q0[:3], q1[:3]))
        shift = matvec(quaternions.quaternion_to_dcm(join(q0[3:])), apart)
        linear = matvec(so3_left_jacobian(join(rotation), inverse=True), shift)
        return [*components(linear, 3), *rotation]

    def difference_slope(self, d: Vector) -> Matrix:
        """Return the inverse right Jacobian of SE(3)."""
        return se3_right_jacobian(d, inverse=True)

    def rates(self, q: Numbers, v: Numbers) -> Numbers:
        """Return dq/dt."""
        linear = matvec(rotation_of(q[3:]), join(v[:3]))
        return [*components(linear, 3), *super().rates(q[3:], v[3:])]

    def tangent(self, q: Numbers, dq: Numbers) -> Numbers:
        """Return v for dq/dt."""
        linear = matvec(quaternions.quaternion_to_dcm(join(q[3:])), join(dq[:3]))
        return [*components(linear, 3), *super().tangent(q[3:], dq[3:])]

    def map_linear(self, v: Vector, turn: Vector, linear: LinearMap, other: Map) -> list[Array]:
        """Change the linear velocity."""
        return [linear(v[:3], turn[3:]), other(v[3:])]


# ---- made of others, or of nothing -------------------------------------------------------------


class Universal(JointKind):
    """Two revolute joints about crossed axes."""

    nq = nv = 2
    holds_point = has_second_axis = True

    def parts(self, screw: Screw) -> list[tuple[JointKind, Screw]]:
        """Return the two revolute joints."""
        assert screw.second_axis is not None
        first, second = Screw(screw.axis, anchor=screw.anchor), Screw(screw.second_axis)
        return [(KINDS["revolute"], first), (KINDS["revolute"], second)]

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Rotate about one axis after the other."""
        (first, a), (second, b) = self.parts(screw)
        return first.pose(a, q[:1]) @ second.pose(b, q[1:])


class Fixed(JointKind):
    """No motion: parent and child are one body."""

    nq = nv = 0
    rotates = False

    def pose(self, screw: Screw, q: Numbers) -> Pose:
        """Stay where the joint is."""
        return Pose(np.eye(3), np.zeros(3))

    def columns(self, screw: Screw, q: Numbers) -> list[Spatial]:
        """Return nothing."""
        return []

    def parts(self, screw: Screw) -> list[tuple[JointKind, Screw]]:
        """Return nothing."""
        return []


#: Kinds by name. A mimic joint is any kind of one coordinate that follows another joint's.
KINDS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        Revolute("revolute", urdf="revolute", sdf="revolute", mjcf=3),
        Revolute("continuous", urdf="continuous", sdf="continuous"),
        Prismatic("prismatic", urdf="prismatic", sdf="prismatic", mjcf=2),
        Helical("helical", sdf="screw"),
        Cylindrical("cylindrical"),
        Planar("planar", urdf="planar"),
        Spherical("spherical", sdf="ball", mjcf=1),
        Free("free", urdf="floating", mjcf=0),
        Universal("universal", sdf="universal"),
        Fixed("fixed", urdf="fixed", sdf="fixed"),
    )
}


def find_kind(kind: JointKind | str) -> JointKind:
    """Return a kind of the table by its name, or a user's own."""
    if isinstance(kind, JointKind):
        return kind
    if kind not in KINDS:
        known = f"the kinds are {', '.join(KINDS)}, and user_joint(...) makes others"
        raise ValueError(f"kind={kind!r} is not a kind of joint; {known}")
    return KINDS[kind]


# ---- rotations about axes and anchors ----------------------------------------------------------


def rotation_about(axis: Sequence[float], angle: Scalar) -> Matrix:
    """Return the matrix (..., 3, 3), child to parent, of a rotation about a unit axis.

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
                sine = zero if sign == 0.0 else s if sign == 1.0 else sign * s
                rows.append((zero if both == 0.0 else both * rest) + sine)
    return join_matrix(rows)


def rotation_of(q: Numbers) -> Matrix:
    """Return the matrix (..., 3, 3), child to parent, of a quaternion."""
    return transpose(quaternions.quaternion_to_dcm(join(q)))


def along(axis: Sequence[float], distance: Scalar) -> Vec3:
    """Return the vector (..., 3) of a distance along an axis."""
    return join([a * distance for a in axis])


def origin_about_anchor(screw: Screw, R: Matrix) -> Vec3:
    """Return where the child's origin is when the child has rotated about the anchor."""
    if not any(screw.anchor):
        return np.zeros((*R.shape[:-2], 3))
    anchor = np.array(screw.anchor)
    return anchor - matvec(R, np.broadcast_to(anchor, (*R.shape[:-2], 3)))


def rotation_through_anchor(screw: Screw, axis: Vec3) -> Spatial:
    """Return the motion of a rotation about an axis through the anchor."""
    return Spatial(np.cross(np.array(screw.anchor), axis) if any(screw.anchor) else ZERO, axis)


def plane_axes(axis: Sequence[float]) -> Matrix:
    """Return the rows x, y, axis of a right-handed frame on a plane normal to `axis`.

    For z they are those of the frame itself; for other axes x is chosen in the plane of the
    normal and the frame's axis that is farthest from it, rotated the short way.
    """
    n = np.array(axis)
    start = np.eye(3)[int(np.argmin(np.abs(n)))] if abs(n[2]) != 1.0 else np.array([1.0, 0, 0])
    x = start - matmul(start, n) * n
    x = x / norm(x)
    return np.stack([x, np.cross(n, x), n])


def turn_factors(w: Scalar) -> tuple[Any, Any]:
    """Return sin(w) / w and (1 - cos(w)) / w, by which a turn bends a way in the plane."""
    c1, c2 = stumpff((1, 2), w * w)
    return c1, c2 * w


def rotate_2d(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Any, Any]:
    """Return the plane vector (x, y) rotated by an angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


def unit_axis(axis: ArrayLike, name: str) -> tuple[float, float, float]:
    """Return a unit vector along an axis; those along x, y, z keep exact zeros and ones."""
    remedy = "To vary the direction of a joint give it a traced rotation"
    values = known_numbers(axis, name, remedy)
    check_shape(values, name, (3,))
    largest = float(np.abs(values).max())
    if largest == 0.0:
        raise ValueError(f"{name} must not be zero")
    if not 1e-100 < largest < 1e100:
        values = values / largest  # whose squares are numbers
    if np.count_nonzero(values) == 1:
        values = np.sign(values)
    size = float(norm(values))
    if abs(size - 1.0) > 1e-15:
        values = values / size
    x, y, z = values.tolist()
    return (x, y, z)


def make_screw(
    kind: JointKind, where: str, axis: ArrayLike, second_axis: ArrayLike | None = None,
    pitch: float = 0.0, anchor: ArrayLike = (0.0, 0.0, 0.0),
) -> Screw:  # fmt: skip
    """Return a screw, checked to have what its kind of joint needs, and nothing else."""
    first = unit_axis(axis, f"{where}: axis")
    second = None if second_axis is None else unit_axis(second_axis, f"{where}: second_axis")
    lead = known_numbers(pitch, f"{where}: pitch, in m per rad,", "Give it as a number")
    hint = "Put the child's origin there, and give its position, com and frames as traced numbers"
    through = known_numbers(check_vector(anchor, 3, f"{where}: anchor"), f"{where}: anchor", hint)
    for attribute, value, what in (
        ("has_pitch", lead, "a pitch"),
        ("has_second_axis", second, "a second_axis"),
        ("anchored", through.any(), "an anchor"),
    ):
        if value and not getattr(kind, attribute):
            names = " and ".join(k.name for k in KINDS.values() if getattr(k, attribute))
            raise ValueError(f"{where}: only {names} joints have {what}")
    if kind.has_second_axis and second is None:
        raise ValueError(f"{where}: a {kind.name} joint needs a second_axis")
    if second is not None and abs(np.dot(first, second)) > 1.0 - 1e-9:
        remedy = "kind='revolute' turns about one axis"
        raise ValueError(f"{where}: second_axis={second} must not be along axis={first}: {remedy}")
    return Screw(first, float(lead), tuple(through.tolist()), second)
