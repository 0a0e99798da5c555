"""The equations of closures and couplings: by how much they are violated, and the rates of that.

What joints whose motions form a group forbid: everywhere on it, also far from where they began.

Legend: X is frame B in frame A, s the twist of B relative to A in axes of B, P the projection on
the joint's motions and T the rows that span the rest. ``X = exp(m) exp(d)`` with ``m = P log X``
the joint's own motion and d what is left: the violation is ``c = T d``, in axes of B, and its rate
``T s + O(d)``, whatever m is. (``T log X`` vanishes with it, but its rate turns with m: by a
quarter at half a turn, where what should die out grows.) A turn of a screw is known up to whole
turns only: taken are those at which it would be nearest to where it is along its axis.

What spherical and universal joints forbid: equations that are exact wherever the frames are.

Legend: (R, p) is frame B in frame A, s = (v, w) the twist of B relative to A in axes of B, (s', w')
its rate; a is the first axis in A, b the second in B. Both joints hold ``p = 0``, in axes of A; its
rate is ``R v``, however fast B turns. A universal one also holds the angle between its axes,
``a . R b = const``; with d = R' a its rate is ``w . (b x d)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archimedes.multibody.algorithms.kinematics import frame_jacobian, frame_motion, world_pose
from archimedes.multibody.algorithms.links import offsets_of
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.joints import KINDS
from archimedes.spatial.se3 import homogeneous, se3_adjoint, se3_exp, se3_log, se3_right_jacobian
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model


class CouplingEquations:
    """A sum of coordinates that is held at a number."""

    def __init__(self, model: Model, c: Coupling) -> None:
        self.c, self.row = c, np.zeros((1, model.nv))
        one = "a Coupling is of joints with one coordinate"
        self.offsets = [offsets_of(model, name, one) for name, _ in c.arms]
        for (_, v), (_, arm) in zip(self.offsets, c.arms, strict=True):
            self.row[0, v] += arm

    def error(self, q: Vector) -> Vector:
        """Return by how much (1,) it is violated."""
        pairs = zip(self.offsets, self.c.arms, strict=True)
        return np.stack([sum(arm * q[..., at] for (at, _), (_, arm) in pairs) - self.c.offset])

    def rows(self, q: Vector) -> Matrix:
        """Return the row (1, nv) of the velocities that it forbids."""
        return self.row

    slope = rows

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return its second rate (1,) at zero joint accelerations."""
        return np.zeros(1)


class ClosureEquations:
    """A closure whose joint's motions form a group."""

    def __init__(self, model: Model, c: Closure) -> None:
        self.model, self.c = model, c
        self.on_world = c.first == "world" and "world" not in model.frame_names
        first = -1 if self.on_world else model.frames[model.frame(c.first)].link
        if first == model.frames[model.frame(c.second)].link:
            where = "both fixed to the world" if first < 0 else "on one body"
            raise ValueError(f"Closure of {c.first!r} and {c.second!r}: they are {where}")

    # ---- frame B relative to frame A -----------------------------------------------------

    def pose(self, q: Vector) -> Pose:
        """Return the pose of B in A."""
        A = Pose(np.eye(3), np.array(self.c.place, dtype=float))
        if not self.on_world:
            A = world_pose(self.model, q, self.c.first)
        B = world_pose(self.model, q, self.c.second)
        return Pose(A.R.T @ B.R, A.R.T @ (B.p - A.p))

    def jacobian(self, q: Vector) -> Matrix:
        """Return the matrix (6, nv) of the relative twist in axes of B."""
        J = frame_jacobian(self.model, q, self.c.second)
        if self.on_world:
            return J
        X = self.pose(q)
        back = se3_adjoint(homogeneous(X.R.T, -(X.R.T @ X.p)))
        return J - back @ frame_jacobian(self.model, q, self.c.first)

    def acceleration(self, q: Vector, v: Vector) -> Vector:
        """Return the relative acceleration (6,) in axes of B at zero joint accelerations."""
        still = np.zeros(self.model.nv)
        v_B, a_B = frame_motion(self.model, q, v, still, self.c.second)
        if self.on_world:
            return a_B.array
        v_A, a_A = frame_motion(self.model, q, v, still, self.c.first)
        X = self.pose(q)
        carried = X.motion_to_child(v_A)
        along = (v_B - carried).cross(carried)
        return (a_B - X.motion_to_child(a_A) + along).array

    # ---- the equations -------------------------------------------------------------------

    def error(self, q: Vector) -> Vector:
        """Return by how much (m,) it is violated, in m and rad."""
        return self.c.rows @ self.split_motion(self.pose(q))[2]

    def rows(self, q: Vector) -> Matrix:
        """Return the rows (m, nv) of the velocities that it forbids."""
        return self.c.rows @ self.jacobian(q)

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return the second rate (m,) at zero joint accelerations."""
        return self.c.rows @ self.acceleration(q, v)

    def slope(self, q: Vector) -> Matrix:
        """Return the derivative (m, nv) of `error`, violated or not."""
        e, m, d = self.split_motion(self.pose(q))
        back = np.eye(6)
        if self.c.kind != "fixed":
            own = se3_right_jacobian(m) @ self.own_motions
            moving = own @ se3_right_jacobian(e, inverse=True)
            back = back - se3_adjoint(se3_exp(-d)) @ moving
        slope = self.c.rows @ (se3_right_jacobian(d, inverse=True) @ back)
        return slope @ self.jacobian(q)

    def split_motion(self, X: Pose) -> tuple[Vector, Vector, Vector]:
        """Return log X, m and d, each (6,)."""
        T = homogeneous(X.R, X.p - self.whole_turns(X))
        e = se3_log(T)
        if self.c.kind == "fixed":
            return e, np.zeros(6), e
        m = self.own_motions @ e
        return e, m, se3_log(se3_exp(-m) @ T)

    @property
    def own_motions(self) -> np.ndarray:
        """P (6, 6)."""
        return np.eye(6) - self.c.rows.T @ self.c.rows

    def whole_turns(self, X: Pose) -> Vec3:
        """Return how far (3,) a screw has gone in whole turns."""
        pitch, axis = self.c.pitch, np.array(self.c.axis)
        lead = 2.0 * np.pi * pitch
        if lead == 0.0:
            return np.zeros(3)
        e = se3_log(homogeneous(X.R, X.p))
        return lead * np.floor((axis @ e[:3] - pitch * (axis @ e[3:])) / lead + 0.5) * axis


class PointEquations(ClosureEquations):
    """A closure that holds a point, and an angle between axes if it has two: they are exact."""

    def error(self, q: Vector) -> Vector:
        """Return by how much (3,) or (4,) it is violated."""
        X = self.pose(q)
        if self.c.second_axis is None:
            return X.p
        a, b = np.array(self.c.axis), np.array(self.c.second_axis)
        return np.concatenate([X.p, np.stack([a @ (X.R @ b) - a @ b])])

    def rows(self, q: Vector) -> Matrix:
        """Return the rates (3, nv) or (4, nv) of the equations."""
        R = self.pose(q).R
        rates = np.concatenate([R, np.zeros((3, 3))], axis=1)
        if self.c.second_axis is not None:
            b, d = np.array(self.c.second_axis), R.T @ np.array(self.c.axis)
            turn = np.concatenate([np.zeros(3), np.cross(b, d)])
            rates = np.concatenate([rates, turn[None]])
        return rates @ self.jacobian(q)

    slope = rows

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return the second rates (3,) or (4,) at zero joint accelerations."""
        rate, s, R = self.acceleration(q, v), self.jacobian(q) @ v, self.pose(q).R
        w = s[3:]
        along = R @ (rate[:3] + np.cross(w, s[:3]))
        if self.c.second_axis is None:
            return along
        b, d = np.array(self.c.second_axis), R.T @ np.array(self.c.axis)
        turned = np.cross(rate[3:], b) + np.cross(w, np.cross(w, b))
        return np.concatenate([along, np.stack([d @ turned])])


def equations_of(model: Model, c: Closure | Coupling) -> CouplingEquations | ClosureEquations:
    """Return the equations of a constraint."""
    if isinstance(c, Coupling):
        return CouplingEquations(model, c)
    return (PointEquations if KINDS[c.kind].holds_point else ClosureEquations)(model, c)
