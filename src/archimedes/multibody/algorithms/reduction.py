"""The tree that the algorithms over torques work with, and the reduction that makes it small.

`reduce_tree` runs before `rnea`, `aba` and `crba`, so that these read as in the book:

- Each link is described in a frame on its joint. Where an axis does not pass through the origin of
  its body, the origin moves when the joint turns, and where the axis is not along x, y or z, every
  entry of the rotation is a sum of products (files of MuJoCo have both). In a frame on the axis,
  with z along it, positions are constants and the rotation is one about a coordinate axis.
- What rotates without effect belongs to the parent. A thin rod along the axis of a revolute joint
  resists the same whether it rotates with the joint or not. So much of a body as is such a rod (its
  mass, its first moment along the axis, one second moment across) is moved to the parent; the rest
  has four numbers less to multiply with.

Torques, accelerations and mass matrices are the same; the forces that carry the bodies are not.
Source: Gautier and Khalil, Direct calculation of minimum set of inertial parameters of serial
robots, IEEE Trans. Robotics and Automation 6, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.multibody.algorithms.links import (
    Forces,
    external_forces,
    inertias_of,
    placement_of,
)
from archimedes.portable_numpy import matmul
from archimedes.spatial.axis_rotations import coordinate_axis, hypotenuse, round_rotation
from archimedes.spatial.components import (
    components,
    cross,
    join,
    join_matrix,
    matrix_components,
    matvec,
)
from archimedes.spatial.spatial_algebra import Rigid, Spatial
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model


class Tree(NamedTuple):
    """A model, the inertia of each link, and the external forces on links, in the links' axes."""

    model: Model
    inertias: list[Rigid]
    forces: dict[int, Spatial]


class Frame(NamedTuple):
    """A frame in a link: its origin, and its axes as columns."""

    origin: np.ndarray
    axes: np.ndarray

    @property
    def is_identity(self) -> bool:
        """Return whether it is the frame of the link itself."""
        return not self.origin.any() and np.array_equal(self.axes, np.eye(3))

    def rotate_into(self, x: Array) -> Array:
        """Return a vector (3,) or the columns of a matrix in the axes of the frame."""
        return x if np.array_equal(self.axes, np.eye(3)) else matmul(self.axes.T, x)


WORLD = Frame(np.zeros(3), np.eye(3))


def read_tree(model: Model, forces: Forces = None) -> Tree:
    """Return the tree of a model as it stands."""
    return Tree(model, inertias_of(model), external_forces(model, forces))


def reduce_tree(model: Model, forces: Forces = None) -> Tree:
    """Return the tree that gives the same torques and accelerations for the least work."""
    acting = external_forces(model, forces)
    frames = [joint_frame(link) for link in model.links]
    if not all(frame.is_identity for frame in frames):
        model = describe_in(model, frames)
        for i, f in acting.items():
            moment = f.angular - cross(frames[i].origin, f.linear)
            acting[i] = Spatial(*(matvec(frames[i].axes.T, x) for x in (f.linear, moment)))
    return Tree(model, move_rods(model), acting)


def describe_in(model: Model, frames: list[Frame]) -> Model:
    """Return the model with its links described in other frames, on their joints."""
    rotations, positions, centers, inertias = [], [], [], []
    for i, (link, own) in enumerate(zip(model.links, frames, strict=True)):
        up = frames[link.parent] if link.parent >= 0 else WORLD
        R, p = model.rotations[i], model.positions[i]
        rotations.append(round_rotation(up.rotate_into(matmul(R, own.axes))))
        positions.append(up.rotate_into(p + matvec(R, own.origin) - up.origin))
        centers.append(own.rotate_into(model.centers[i] - own.origin))
        inertias.append(own.rotate_into(matmul(model.inertias[i], own.axes)))
    return tree.replace(
        model,
        links=tuple(map(align_screw, model.links)),
        rotations=np.stack(rotations),
        positions=np.stack(positions),
        centers=np.stack(centers),
        inertias=np.stack(inertias),
    )


def is_skew(link: Link) -> bool:
    """Return whether a joint has an axis that could be a coordinate axis and is none."""
    return link.kind.axial and coordinate_axis(link.screw.axis) is None


def joint_frame(link: Link) -> Frame:
    """Return the frame of a link's joint in the link."""
    origin = np.array(link.screw.anchor) if link.kind.anchored else np.zeros(3)
    return Frame(origin, axes_along(link.screw.axis) if is_skew(link) else np.eye(3))


def axes_along(axis: Sequence[float]) -> np.ndarray:
    """Return a rotation whose third column is a unit axis."""
    x, y, z = axis
    side = hypotenuse(x, y)
    return np.array(
        [[z * x / side, -y / side, x], [z * y / side, x / side, y], [-side, 0.0, z]]
    )  # by its angles about z and y


def align_screw(link: Link) -> Link:
    """Return the link with the screw that it has in its joint's frame."""
    screw = link.screw
    if is_skew(link):
        screw = replace(screw, axis=(0.0, 0.0, 1.0))
    if link.kind.anchored:
        screw = replace(screw, anchor=(0.0, 0.0, 0.0))
    return replace(link, screw=screw)


def move_rods(model: Model) -> list[Rigid]:
    """Return the inertia of each link without its rod, and with those of the links it carries."""
    inertias = inertias_of(model)
    for i in reversed(range(len(model.links))):
        link = model.links[i]
        axis = coordinate_axis(link.screw.axis)
        if not link.kind.spins or axis is None or any(link.screw.anchor):
            continue
        rod, inertias[i] = split_rod(inertias[i], axis)
        if link.parent >= 0:
            inertias[link.parent] = inertias[link.parent] + rod.to_parent(placement_of(model, i))
    return inertias


def split_rod(I: Rigid, k: int) -> tuple[Rigid, Rigid]:
    """Return the part of an inertia that is a thin rod along coordinate axis k, and the rest."""
    i, j = (k + 1) % 3, (k + 2) % 3
    along, J = list(components(I.h, 3)), [list(row) for row in matrix_components(I.J)]
    zero, across = 0.0 * along[k], J[j][j]
    rod_h, rod_J = [zero] * 3, [[zero] * 3 for _ in range(3)]
    rod_h[k], rod_J[i][i], rod_J[j][j] = along[k], across, across
    along[k], J[i][i], J[j][j] = zero, J[i][i] - across, zero
    rod = Rigid(I.m, join(rod_h), join_matrix([x for row in rod_J for x in row]))
    return rod, Rigid(0.0, join(along), join_matrix([x for row in J for x in row]))
