"""The torques of armature in free and planar joints, whose velocities are in the child's axes.

Legend: v and w are the linear and the angular velocity of a free or planar joint, both in the
child's axes, a its armature along them, p = a v. Its kinetic energy, 1/2 a v^2, is that of a mass
that flies straight on, so that a torque of the joint is not only a v' but also

    w x p along the axes,   v x p about them

(Lagrange's equations in quasi-coordinates). As a matrix that is ``C = [[0, -[p]], [-[p], 0]]``
times (v, w), with C = -C'. Source: Meirovitch, Methods of Analytical Dynamics, 1970, section 4.12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archimedes.multibody.algorithms.mass_matrix import Entries, add_entry
from archimedes.multibody.parts.ranges import known_zero
from archimedes.spatial.components import components
from archimedes.typing import Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["add_armature_coriolis", "add_armature_slope", "armature_bias"]


class Turning(NamedTuple):
    """A joint whose axes turn with the child.

    `along` and `about` are the indices of its velocities along and about the child's x, y and z
    axes, or None where it has none. v, w and a are their values and the armature.
    """

    along: Sequence[int | None]
    about: Sequence[int | None]
    v: list[Any]
    w: list[Any]
    a: list[Any]

    @property
    def p(self) -> list[Any]:
        """Momentum of the armature."""
        return [a * v for a, v in zip(self.a, self.v, strict=True)]


def turning_joints(model: Model, v: Vector) -> Iterator[Turning]:
    """Yield the joints whose armature acts along axes that turn."""
    speeds = components(v, model.nv)
    for link in model.links:
        if link.kind.turning is None or known_zero(model.armature[link.v_slice]):
            continue
        along, about = ([None if k is None else link.v + k for k in x] for x in link.kind.turning)
        moving, turn = ([0.0 if k is None else speeds[k] for k in x] for x in (along, about))
        armature = [0.0 if k is None else model.armature[k] for k in along]
        yield Turning(along, about, moving, turn, armature)


def armature_bias(model: Model, v: Vector) -> dict[int, Any]:
    """Return the torques that armature needs at zero acceleration, by the index of the velocity."""
    bias: dict[int, Any] = {}
    for joint in turning_joints(model, v):
        p = joint.p
        for rows, x in ((joint.along, joint.w), (joint.about, joint.v)):
            for k, row in enumerate(rows):
                i, j = (k + 1) % 3, (k + 2) % 3
                if row is not None:
                    bias[row] = x[i] * p[j] - x[j] * p[i]
    return bias


def add_armature_slope(model: Model, v: Vector, by_v: Entries) -> None:
    """Add the derivatives of `armature_bias` with respect to velocities to entries."""
    for along, about, x, w, a in turning_joints(model, v):
        p = [a_k * x_k for a_k, x_k in zip(a, x, strict=True)]
        add_cross(by_v, along, along, [(w, a)])
        add_cross(by_v, along, about, [(p, [-1.0] * 3)])
        add_cross(by_v, about, along, [(x, a), (p, [-1.0] * 3)])


def add_armature_coriolis(model: Model, v: Vector, C: Entries) -> None:
    """Add the matrix C of `armature_bias` to entries."""
    for joint in turning_joints(model, v):
        for rows, columns in ((joint.along, joint.about), (joint.about, joint.along)):
            add_cross(C, rows, columns, [(joint.p, [-1.0] * 3)])


def add_cross(
    entries: Entries,
    rows: Sequence[int | None],
    columns: Sequence[int | None],
    terms: Sequence[tuple[Sequence[Any], Sequence[Any]]],
) -> None:
    """Add ``[x] diag(a)`` for each pair (x, a) to entries; None is a missing row or column."""
    for x, a in terms:
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            for row, column, value in ((i, j, -x[k]), (j, i, x[k])):
                if rows[row] is not None and columns[column] is not None:
                    add_entry(entries, rows[row], columns[column], value * a[column])  # type: ignore[arg-type]
