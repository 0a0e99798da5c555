"""Spatial vectors inside algorithms: pairs of 3-vectors, poses, and two kinds of inertia.

Legend: a motion is (linear, angular) = (v, w) at the origin of its frame, a force (f, n); a pose
(R, p) of a child in its parent takes child coordinates to the parent's, ``x_P = p + R x_B``.
A rigid inertia is (m, h, J): mass, first moment m c, second moment about the origin; an
articulated one (A, H, J) the blocks of ``f = A v + H w, n = H' v + J w``. All arrays may have
leading axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 2 (angular part first there).

`Motion`, `Force` and `Transformation` are the same for users: structs whose values are checked each
time one is made. In the inner loops of a robot that would be most of the work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.portable_numpy import matmul
from archimedes.spatial import axis_rotations
from archimedes.spatial.axis_rotations import AxisRotation
from archimedes.spatial.components import (
    components,
    cross,
    expand,
    join_matrix,
    matrix_components,
    matvec,
    skew,
    transpose,
)
from archimedes.typing import Matrix, Scalar, Vec3


class Spatial(NamedTuple):
    """A motion or a force: its linear and its angular part, each (..., 3)."""

    linear: Any
    angular: Any

    def __add__(self, other: Any) -> Spatial:
        return Spatial(self.linear + other.linear, self.angular + other.angular)

    def __sub__(self, other: Spatial) -> Spatial:
        return Spatial(self.linear - other.linear, self.angular - other.angular)

    def times(self, factor: Scalar) -> Spatial:
        """Return the vector times a number (...)."""
        s = expand(factor)
        return Spatial(s * self.linear, s * self.angular)

    def dot(self, other: Spatial) -> Any:
        """Return the power of a force and a motion, a sum over six products."""
        return dot3(self.linear, other.linear) + dot3(self.angular, other.angular)

    def cross(self, m: Spatial) -> Spatial:
        """Return ``v x m``: the rate of a motion that moves along with this one."""
        w = self.angular
        return Spatial(cross(w, m.linear) + cross(self.linear, m.angular), cross(w, m.angular))

    def cross_force(self, f: Spatial) -> Spatial:
        """Return ``v x* f``: the rate of a force that moves along with this motion."""
        w = self.angular
        return Spatial(cross(w, f.linear), cross(w, f.angular) + cross(self.linear, f.linear))

    @property
    def array(self) -> Any:
        """The six numbers (..., 6), linear part first."""
        return np.concatenate([self.linear, self.angular], axis=-1)


class Pose(NamedTuple):
    """Where a child is in its parent: rotation (..., 3, 3) and position (..., 3).

    If the rotation is known to be a product of a few `factors` about coordinate axes, vectors and
    matrices are rotated by these.
    """

    R: Any
    p: Any
    factors: tuple[AxisRotation, ...] | None = None

    def __matmul__(self, inner: Pose) -> Pose:
        return Pose(matmul(self.R, inner.R), self.p + matvec(self.R, inner.p))

    def inv(self) -> Pose:
        """Return the pose of the parent in the child."""
        Rt = transpose(self.R)
        return Pose(Rt, -matvec(Rt, self.p))

    def rotate(self, v: Vec3) -> Vec3:
        """Return a direction (..., 3) given in the child in the axes of the parent."""
        if self.factors is None:
            return matvec(self.R, v)
        return axis_rotations.rotate_vector(self.factors, v)

    def rotate_back(self, v: Vec3) -> Vec3:
        """Return a direction (..., 3) given in the parent in the axes of the child."""
        if self.factors is None:
            return matvec(transpose(self.R), v)
        return axis_rotations.rotate_back(self.factors, v)

    def rotate_matrix(self, M: Matrix) -> Matrix:
        """Return ``R M R'``."""
        if self.factors is None:
            return matmul(self.R, M, transpose(self.R))
        return axis_rotations.rotate_matrix(self.factors, M)

    def rotate_symmetric(self, M: Matrix) -> Matrix:
        """Return ``R M R'`` of a symmetric matrix."""
        if self.factors is None:
            return symmetric(self.rotate_matrix(M))
        return axis_rotations.rotate_symmetric(self.factors, M)

    def motion_to_child(self, m: Spatial) -> Spatial:
        """Return a motion given in the parent in the coordinates of the child."""
        linear = m.linear + cross(m.angular, self.p)
        return Spatial(self.rotate_back(linear), self.rotate_back(m.angular))

    def motion_to_parent(self, m: Spatial) -> Spatial:
        """Return a motion given in the child in the coordinates of the parent."""
        w = self.rotate(m.angular)
        return Spatial(self.rotate(m.linear) + cross(self.p, w), w)

    def force_to_parent(self, f: Spatial) -> Spatial:
        """Return a force given in the child in the coordinates of the parent."""
        linear = self.rotate(f.linear)
        return Spatial(linear, self.rotate(f.angular) + cross(self.p, linear))


IDENTITY = Pose(np.eye(3), np.zeros(3))


class Rigid(NamedTuple):
    """Inertia of rigid bodies: mass, first moment (..., 3), second moment (..., 3, 3)."""

    m: Any
    h: Any
    J: Any

    @classmethod
    def about_center(cls, mass: Scalar, com: Vec3, inertia: Matrix) -> Rigid:
        """Return the inertia of a body of mass (), centre (3,), inertia (3, 3) about it."""
        h = expand(mass) * com
        c2 = np.sum(h * com, axis=-1)[..., None, None] * np.eye(3)
        return cls(mass, h, inertia + c2 - outer(h, com))

    def __add__(self, other: Any) -> Rigid:
        return Rigid(self.m + other.m, self.h + other.h, self.J + other.J)

    def __matmul__(self, v: Spatial) -> Spatial:
        linear = expand(self.m) * v.linear + cross(v.angular, self.h)
        return Spatial(linear, matvec(self.J, v.angular) + cross(self.h, v.linear))

    def to_parent(self, X: Pose) -> Rigid:
        """Return the inertia, given in the child, in the coordinates of the parent."""
        h = X.rotate(self.h)
        shift = expand(self.m) * X.p
        (x, y, z), (a, b, c) = components(2.0 * X.p, 3), components(h + 0.5 * shift, 3)
        xx, yy, zz = x * a, y * b, z * c
        x, y, z = components(X.p, 3)
        xy, xz, yz = -(x * b + y * a), -(x * c + z * a), -(y * c + z * b)
        J = X.rotate_symmetric(self.J)
        J = J + join_matrix([yy + zz, xy, xz, xy, zz + xx, yz, xz, yz, xx + yy])
        return Rigid(self.m, h + shift, symmetric(J))


class Articulated(NamedTuple):
    """Blocks (..., 3, 3) of a symmetric 6x6 inertia [[A, H], [H', J]]."""

    A: Any
    H: Any
    J: Any

    @classmethod
    def of_rigid(cls, body: Rigid) -> Articulated:
        """Return the blocks of a rigid inertia."""
        return cls(np.asarray(body.m)[..., None, None] * np.eye(3), -skew(body.h), body.J)

    def __add__(self, other: Any) -> Articulated:
        return Articulated(self.A + other.A, self.H + other.H, self.J + other.J)

    def __matmul__(self, m: Spatial) -> Spatial:
        return Spatial(
            matvec(self.A, m.linear) + matvec(self.H, m.angular),
            matvec(transpose(self.H), m.linear) + matvec(self.J, m.angular),
        )

    def to_parent(self, X: Pose) -> Articulated:
        """Return the inertia, given in the child, in the coordinates of the parent."""
        P = skew(X.p)
        A, H = X.rotate_symmetric(self.A), X.rotate_matrix(self.H)
        shifted = H - matmul(A, P)
        J = X.rotate_symmetric(self.J) + matmul(P, shifted) - matmul(transpose(H), P)
        return Articulated(A, shifted, symmetric(J))

    def release_column(self, S: Spatial, U: Spatial, gain: Spatial, free: bool) -> Articulated:
        """Return the inertia with the motion S left to a joint: ``I - U U' / D``, gain = U / D.

        Nothing resists a `free` motion, so what is left along it is rounding: if S is along an
        axis, the result has exact zeros there, which shorten a recorded program.
        """
        A = symmetric(self.A - outer(U.linear, gain.linear))
        H = self.H - outer(U.linear, gain.angular)
        J = symmetric(self.J - outer(U.angular, gain.angular))
        linear, angular = concrete(S.linear), concrete(S.angular)
        if not free or linear is None or angular is None:
            return Articulated(A, H, J)
        if np.count_nonzero([*linear, *angular]) != 1:
            return Articulated(A, H, J)
        v, w = np.where(linear == 0.0, 1.0, 0.0), np.where(angular == 0.0, 1.0, 0.0)
        return Articulated(A * np.outer(v, v), H * np.outer(v, w), J * np.outer(w, w))


def dot3(a: Vec3, b: Vec3) -> Any:
    """Return the scalar product of vectors (..., 3); a Python float for two plain ones."""
    x, y = components(a, 3), components(b, 3)
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def outer(a: Vec3, b: Vec3) -> Matrix:
    """Return the matrix ``a b'`` (..., 3, 3) of two vectors (..., 3)."""
    return a[..., :, None] * b[..., None, :]


def symmetric(M: Matrix) -> Matrix:
    """Return the matrix with its upper triangle mirrored.

    What was computed for the lower triangle is then read by nobody, and drops out of a recording.
    """
    (a, b, c), (_, d, e), (_, _, f) = matrix_components(M)
    return join_matrix([a, b, c, b, d, e, c, e, f])
