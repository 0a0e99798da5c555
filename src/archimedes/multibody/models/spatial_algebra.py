"""Spatial vectors inside the algorithms: pairs of 3-vectors, poses, and three kinds of inertia.

Legend: a motion is (linear, angular) = (v, w) at the origin of its frame, a force (f, n); a pose
(R, p) of a child in its parent takes child coordinates to the parent's, ``x_P = p + R x_B``.
A rigid inertia is (m, h, J): mass, first moment m c, second moment about the origin; an
articulated one (A, H, J) the blocks of ``f = A v + H w, n = H' v + J w``. All arrays may have
leading axes.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 2 (angular part first there).

`archimedes.spatial` has the same as structs, whose values are checked each time one is made; in
the inner loops of a robot that would be most of the work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.multibody.models.turns import (
    Turn,
    turned,
    turned_back,
    turned_matrix,
    turned_symmetric,
)
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

__all__ = [
    "Articulated",
    "Pose",
    "Rigid",
    "Spatial",
    "articulated",
    "compose",
    "cross_force",
    "cross_motion",
    "dot",
    "force_to_parent",
    "inverse",
    "momentum",
    "motion_to_child",
    "motion_to_parent",
    "outer",
    "rigid",
    "rigid_sum",
    "rigid_to_parent",
    "rotated",
    "rotated_symmetric",
    "symmetric",
    "to_child",
    "to_parent",
]


class Spatial(NamedTuple):
    """A motion or a force: its linear and its angular part, each (..., 3)."""

    linear: Any
    angular: Any

    def __add__(self, other: Any) -> Spatial:
        return Spatial(self.linear + other.linear, self.angular + other.angular)

    def __sub__(self, other: Any) -> Spatial:
        return Spatial(self.linear - other.linear, self.angular - other.angular)

    def times(self, factor: Any) -> Spatial:
        """Return the vector times a number (...)."""
        s = expand(factor)
        return Spatial(s * self.linear, s * self.angular)

    @property
    def array(self) -> Any:
        """The six numbers (..., 6), linear part first."""
        return np.concatenate([self.linear, self.angular], axis=-1)


class Pose(NamedTuple):
    """Where a child is in its parent: rotation (..., 3, 3) and position (..., 3).

    Where the rotation is known to be a few turns about coordinate axes, these are what is used.
    """

    R: Any
    p: Any
    turns: tuple[Turn, ...] | None = None


class Rigid(NamedTuple):
    """Inertia of rigid bodies: mass, first moment (..., 3), second moment (..., 3, 3)."""

    m: Any
    h: Any
    J: Any


class Articulated(NamedTuple):
    """Blocks (..., 3, 3) of a symmetric 6x6 inertia [[A, H], [H', J]]."""

    A: Any
    H: Any
    J: Any


def compose(outer_pose: Pose, inner: Pose) -> Pose:
    """Return the pose in the outermost frame of what is at `inner` in the frame between."""
    R, p, _ = outer_pose
    return Pose(matmul(R, inner.R), p + matvec(R, inner.p))


def inverse(X: Pose) -> Pose:
    """Return the pose of the parent in the child."""
    Rt = transpose(X.R)
    return Pose(Rt, -matvec(Rt, X.p))


def to_parent(X: Pose, v: Any) -> Any:
    """Return a direction (..., 3) given in the child in the axes of the parent."""
    return matvec(X.R, v) if X.turns is None else turned(X.turns, v)


def to_child(X: Pose, v: Any) -> Any:
    """Return a direction (..., 3) given in the parent in the axes of the child."""
    return matvec(transpose(X.R), v) if X.turns is None else turned_back(X.turns, v)


def motion_to_child(X: Pose, m: Spatial) -> Spatial:
    """Return a motion given in the parent in the coordinates of the child."""
    return Spatial(to_child(X, m.linear + cross(m.angular, X.p)), to_child(X, m.angular))


def motion_to_parent(X: Pose, m: Spatial) -> Spatial:
    """Return a motion given in the child in the coordinates of the parent."""
    w = to_parent(X, m.angular)
    return Spatial(to_parent(X, m.linear) + cross(X.p, w), w)


def force_to_parent(X: Pose, f: Spatial) -> Spatial:
    """Return a force given in the child in the coordinates of the parent."""
    linear = to_parent(X, f.linear)
    return Spatial(linear, to_parent(X, f.angular) + cross(X.p, linear))


def cross_motion(v: Spatial, m: Spatial) -> Spatial:
    """Return ``v x m``: the rate of a motion that moves along with v."""
    return Spatial(
        cross(v.angular, m.linear) + cross(v.linear, m.angular), cross(v.angular, m.angular)
    )


def cross_force(v: Spatial, f: Spatial) -> Spatial:
    """Return ``v x* f``: the rate of a force that moves along with v."""
    return Spatial(
        cross(v.angular, f.linear), cross(v.angular, f.angular) + cross(v.linear, f.linear)
    )


def dot(a: Spatial, b: Spatial) -> Any:
    """Return the power of a force and a motion, a sum over six products."""
    return dot3(a.linear, b.linear) + dot3(a.angular, b.angular)


def dot3(a: Any, b: Any) -> Any:
    """Return the scalar product of vectors (..., 3); a Python float for two plain ones."""
    x, y = components(a, 3), components(b, 3)
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def outer(a: Any, b: Any) -> Any:
    """Return the matrix ``a b'`` (..., 3, 3) of two vectors (..., 3)."""
    return a[..., :, None] * b[..., None, :]


def symmetric(M: Any) -> Any:
    """Return the matrix with its upper triangle mirrored.

    What was computed for the lower one is then read by nobody, and drops out of a recording.
    """
    (a, b, c), (_, d, e), (_, _, f) = matrix_components(M)
    return join_matrix([a, b, c, b, d, e, c, e, f])


def rotated(X: Pose, M: Any) -> Any:
    """Return ``R M R'``."""
    if X.turns is not None:
        return turned_matrix(X.turns, M)
    return matmul(X.R, M, transpose(X.R))


def rotated_symmetric(X: Pose, M: Any) -> Any:
    """Return ``R M R'`` of a symmetric matrix."""
    if X.turns is not None:
        return turned_symmetric(X.turns, M)
    return symmetric(matmul(X.R, M, transpose(X.R)))


def rigid(mass: Any, com: Any, inertia: Any) -> Rigid:
    """Return the inertia of a body of mass (), centre (3,), inertia (3, 3) about that centre."""
    h = expand(mass) * com
    c2 = np.sum(h * com, axis=-1)[..., None, None] * np.eye(3)
    return Rigid(mass, h, inertia + c2 - outer(h, com))


def momentum(I: Rigid, v: Spatial) -> Spatial:
    """Return ``I v``, a force vector."""
    linear = expand(I.m) * v.linear + cross(v.angular, I.h)
    return Spatial(linear, matvec(I.J, v.angular) + cross(I.h, v.linear))


def rigid_sum(a: Rigid, b: Rigid) -> Rigid:
    """Return the inertia of two bodies that move together."""
    return Rigid(a.m + b.m, a.h + b.h, a.J + b.J)


def rigid_to_parent(X: Pose, I: Rigid) -> Rigid:
    """Return a rigid inertia given in the child in the coordinates of the parent."""
    h = to_parent(X, I.h)
    shift = expand(I.m) * X.p
    (x, y, z), (a, b, c) = components(2.0 * X.p, 3), components(h + 0.5 * shift, 3)
    xx, yy, zz = x * a, y * b, z * c
    x, y, z = components(X.p, 3)
    xy, xz, yz = -(x * b + y * a), -(x * c + z * a), -(y * c + z * b)
    J = rotated_symmetric(X, I.J) + join_matrix([yy + zz, xy, xz, xy, zz + xx, yz, xz, yz, xx + yy])
    return Rigid(I.m, h + shift, symmetric(J))


def articulated(I: Rigid) -> Articulated:
    """Return the blocks of a rigid inertia."""
    m = np.asarray(I.m)
    return Articulated(m[..., None, None] * np.eye(3), -skew(I.h), I.J)
