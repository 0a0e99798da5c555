"""What every algorithm starts from: the coordinates, poses and motions S of each link.

Legend: links are numbered so that parents come first; X_i is the pose of link i in its parent,
S_i the columns along which its joint moves it, in its own axes, each with the velocity it belongs
to. A mimic joint's columns are scaled and belong to the velocity of the joint it follows, so that
sums over columns are all that algorithms need to know of it.

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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from archimedes import tree
from archimedes.checks import as_array, check_last, concrete
from archimedes.errors import refer_to
from archimedes.portable_numpy import matmul
from archimedes.spatial import axis_rotations
from archimedes.spatial.axis_rotations import AxisRotation, coordinate_axis, round_rotation
from archimedes.spatial.components import (
    components,
    cross,
    join,
    join_matrix,
    matrix_components,
    matvec,
)
from archimedes.spatial.spatial_algebra import Pose, Rigid, Spatial
from archimedes.typing import Array, ArrayLike, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model


#: External forces: by the name of a body, or an array (..., bodies, 6).
Forces: TypeAlias = "Mapping[str, Any] | Array | None"
Numbers = Sequence[Any]


class Column(NamedTuple):
    """A motion S of a joint, in the axes of its link, and the velocity that it belongs to."""

    v: int
    S: Spatial


class Links(NamedTuple):
    """All links at a configuration: joint coordinates, poses in the parents, columns."""

    q: list[Numbers]
    X: list[Pose]
    S: list[list[Column]]


class SameModel:
    """A model as a key of a cache: the same object."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameModel) and self.model is other.model

    def __hash__(self) -> int:
        return id(self.model)


# ---- arguments and results ---------------------------------------------------------------------


def check_model(model: Model) -> None:
    """Raise if something else is passed for a model."""
    if not hasattr(model, "joint_names"):
        actual = f"got {type(model).__name__}; load(path) and builder.build() return one"
        raise TypeError(f"model, the first argument, must be a Model, {actual}")


def has_known_numbers(model: Model) -> bool:
    """Return whether the inertias of a model and where its joints are, are known numbers."""
    numbers = (model.rotations, model.positions, model.masses, model.centers, model.inertias)
    return all(concrete(array) is not None for array in (*numbers, model.armature))


def check_coordinates(model: Model, x: ArrayLike, name: str) -> Vector:
    """Return an argument as an array (..., nq) where its name is q, q0, ..., else (..., nv)."""
    check_model(model)
    array = as_array(x, name)
    kind = "nq" if name.startswith("q") else "nv"
    size = model.nq if kind == "nq" else model.nv
    if tuple(array.shape[-1:]) != (size,):
        raise ValueError(
            f"{name} must have shape ({size},) or (..., {size}) for {model.name!r} "
            f"({kind}={size}), got {tuple(array.shape)}" + refer_to("coordinates")
        )
    return array


def check_state(model: Model, forces: Forces = None, **values: ArrayLike) -> tuple[Vector, ...]:
    """Return q, v and others as arrays whose leading axes fit each other, and those of forces."""
    arrays = tuple(check_coordinates(model, x, name) for name, x in values.items())
    if forces is not None or any(array.ndim > 1 for array in arrays):
        try:
            leading_axes(*arrays, forces=forces)
        except ValueError:
            shapes = [f"{n} {tuple(a.shape)}" for n, a in zip(values, arrays, strict=True)]
            each = forces.items() if isinstance(forces, Mapping) else [("forces", forces)]
            shapes += [f"{n} {tuple(np.shape(f))}" for n, f in each if f is not None]
            message = f"leading axes must broadcast, got shapes {', '.join(shapes)}"
            raise ValueError(message) from None
    return arrays


def leading_axes(*vectors: ArrayLike, forces: Forces = None) -> tuple[int, ...]:
    """Return the leading axes to which vectors (..., n) and forces on bodies broadcast."""
    shapes = [np.shape(x)[:-1] for x in vectors]
    if isinstance(forces, Mapping):
        shapes += [np.shape(x)[:-1] for x in forces.values()]
    elif forces is not None:
        shapes.append(np.shape(forces)[:-2])
    return np.broadcast_shapes(*shapes) if any(shapes) else ()


def broadcast_result(x: Array, shape: tuple[int, ...]) -> Array:
    """Return a result in the shape to which its arguments broadcast.

    If an argument has no effect on the result, its leading axes are missing from it.
    """
    if tuple(np.shape(x)) == shape:
        return x
    full = np.broadcast_to(x, shape)
    return full.copy() if type(full) is np.ndarray else full


def join_numbers(parts: Numbers) -> Array:
    """Return numbers as an array along a new last axis; plain zeros take the others' shape."""
    shape = next((np.shape(x) for x in parts if type(x) is not float), None)
    if shape is None:
        return np.array(parts, dtype=float)
    return join([np.zeros(shape) + x if type(x) is float else x for x in parts])


# ---- links at a configuration ------------------------------------------------------------------


def coordinates_of(model: Model, q: ArrayLike) -> list[Numbers]:
    """Return the coordinates of each link's joint."""
    parts = components(check_coordinates(model, q, "q"), model.nq)
    coordinates = []
    for link in model.links:
        own = parts[link.q_slice]
        coordinates.append([link.scale * x + link.offset for x in own] if link.mimic else own)
    return coordinates


def links_at(model: Model, q: ArrayLike) -> Links:
    """Return the links at a configuration."""
    coordinates = coordinates_of(model, q)
    poses, columns = [], []
    for i, (link, own) in enumerate(zip(model.links, coordinates, strict=True)):
        X = link_pose(model, i, own)
        poses.append(X._replace(factors=rotation_factors(model, i, own)))
        S = link.kind.columns(link.screw, own)
        if link.mimic:
            S = [column.times(link.scale) for column in S]
        columns.append([Column(link.v + k, column) for k, column in enumerate(S)])
    return Links(coordinates, poses, columns)


def link_pose(model: Model, i: int, q: Numbers) -> Pose:
    """Return the pose of a link in its parent, at the coordinates of its joint."""
    link = model.links[i]
    return placement_of(model, i) @ link.kind.pose(link.screw, q)


def placement_of(model: Model, i: int) -> Pose:
    """Return where the joint of a link is in the parent."""
    return Pose(model.rotations[i], model.positions[i])


def rotation_factors(model: Model, i: int, q: Numbers) -> tuple[AxisRotation, ...] | None:
    """Return the rotation of a link in its parent as a few rotations about coordinate axes."""
    link, R = model.links[i], concrete(model.rotations[i])
    own = link.kind.factors(link.screw, q)
    if R is None or own is None or R.ndim > 2:
        return None
    fixed = fixed_factors(np.asarray(R, dtype=float).tobytes(), own[0].axis if own else None)
    return None if fixed is None else axis_rotations.merge_rotations([*fixed, *own])


@lru_cache(maxsize=4096)
def fixed_factors(R: bytes, last: int | None) -> tuple[AxisRotation, ...] | None:
    """Return `factor_rotation` of a matrix; finding the factors takes longer than using them."""
    return axis_rotations.factor_rotation(np.frombuffer(R).reshape(3, 3), last)


def joint_velocity(columns: list[Column], speeds: Numbers) -> Spatial:
    """Return the motion of a joint: the sum of its columns times their speeds."""
    total = columns[0].S.times(speeds[columns[0].v])
    for k, S in columns[1:]:
        total = total + S.times(speeds[k])
    return total


def bias_of(link: Link, q: Numbers, speeds: Numbers) -> Spatial | None:
    """Return dS/dt v of a joint in the child's axes, None if its columns S are constant."""
    return link.kind.bias(link.screw, q, speeds[link.v_slice]) if link.kind.varies else None


def offsets_of(model: Model, joint: str, why: str) -> tuple[int, int]:
    """Return where the coordinate and the velocity of a joint are, which must have one of each."""
    q, v = model.q_slice(joint), model.v_slice(joint)
    if q.stop - q.start != 1 or v.stop - v.start != 1:
        raise ValueError(f"joint {joint!r} has {v.stop - v.start} velocities; {why}")
    return q.start, v.start


def ancestors(model: Model, i: int) -> list[int]:
    """Return a link and all that carry it, towards the world."""
    chain = []
    while i >= 0:
        chain.append(i)
        i = model.links[i].parent
    return chain


# ---- inertias and forces -----------------------------------------------------------------------


def inertias_of(model: Model) -> list[Rigid]:
    """Return the inertia of each link in its own axes."""
    rows = zip(model.masses, model.centers, model.inertias, strict=True)
    return [Rigid.about_center(*row) for row in rows]


def world_acceleration(model: Model) -> Spatial:
    """Return the acceleration of the world that stands for gravity: minus gravity."""
    return Spatial(-model.gravity, np.zeros(3))


def external_forces(model: Model, forces: Forces) -> dict[int, Spatial]:
    """Return forces on links: of an array (..., bodies, 6), or a mapping of names to (..., 6).

    They act at the origin of the body's frame, in its axes, linear part first.
    """
    if forces is None:
        return {}
    if not isinstance(forces, Mapping):
        array = as_array(forces, "forces")
        shape = (len(model.body_names), 6)
        if tuple(array.shape[-2:]) != shape:
            wanted = f"{shape}, a row for each of body_names, or be a mapping of these to (6,)"
            raise ValueError(f"forces must have shape {wanted}; got shape {tuple(array.shape)}")
        forces = {name: array[..., k, :] for k, name in enumerate(model.body_names)}
    by_link = {}
    for name, value in forces.items():
        array = as_array(value, f"forces[{name!r}]")
        check_last(array, 6, f"forces[{name!r}]")
        by_link[model.body(name)] = Spatial(array[..., :3], array[..., 3:])
    return by_link


# ---- the tree that the algorithms over torques work with ----------------------------------------


class Tree(NamedTuple):
    """A model, the inertia of each link, and the external forces on links, in the links' axes."""

    model: Model
    inertias: list[Rigid]
    forces: dict[int, Spatial]


class Frame(NamedTuple):
    """A frame in a link: its origin, and its axes as columns."""

    origin: np.ndarray
    axes: np.ndarray

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
    if any(is_skew(link) or has_anchor(link) for link in model.links):
        frames = [joint_frame(link) for link in model.links]
        model = describe_in(model, frames)
        for i, f in acting.items():
            moment = f.angular - cross(frames[i].origin, f.linear)
            acting[i] = Spatial(*(matvec(frames[i].axes.T, x) for x in (f.linear, moment)))
    return Tree(model, move_rods(model), acting)


def describe_in(model: Model, frames: list[Frame]) -> Model:
    """Return the model with its links described in other frames, on their joints."""
    rows = []
    for i, (link, own) in enumerate(zip(model.links, frames, strict=True)):
        up = frames[link.parent] if link.parent >= 0 else WORLD
        R, p = model.rotations[i], model.positions[i]
        rotation = round_rotation(up.rotate_into(matmul(R, own.axes)))
        position = up.rotate_into(p + matvec(R, own.origin) - up.origin)
        center = own.rotate_into(model.centers[i] - own.origin)
        inertia = own.rotate_into(matmul(model.inertias[i], own.axes))
        rows.append((rotation, position, center, inertia))
    R, p, c, J = map(np.stack, zip(*rows, strict=True))
    links = tuple(map(align_screw, model.links))
    return tree.replace(model, links=links, rotations=R, positions=p, centers=c, inertias=J)


def is_skew(link: Link) -> bool:
    """Return whether a joint has an axis that could be a coordinate axis and is none."""
    return link.kind.axial and coordinate_axis(link.screw.axis) is None


def has_anchor(link: Link) -> bool:
    """Return whether a joint's axis passes beside the origin of its link."""
    return link.kind.anchored and any(link.screw.anchor)


def joint_frame(link: Link) -> Frame:
    """Return the frame of a link's joint in the link."""
    origin = np.array(link.screw.anchor) if link.kind.anchored else np.zeros(3)
    return Frame(origin, axes_along(link.screw.axis) if is_skew(link) else np.eye(3))


def axes_along(axis: Sequence[float]) -> np.ndarray:
    """Return a rotation whose third column is a unit axis."""
    x, y, z = axis
    side = axis_rotations.hypotenuse(x, y)
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
