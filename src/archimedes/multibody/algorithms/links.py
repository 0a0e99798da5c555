"""What every algorithm starts from: the coordinates, poses and motions S of each link.

Legend: links are numbered so that parents come first; X_i is the pose of link i in its parent,
S_i the columns along which its joint moves it, in its own axes, each with the velocity it belongs
to. A mimic joint's columns are scaled and belong to the velocity of the joint it follows, so that
sums over columns are all that algorithms need to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.checks import as_array, check_last, concrete
from archimedes.errors import refer_to
from archimedes.spatial.axis_rotations import AxisRotation, factor_rotation, merge_rotations
from archimedes.spatial.components import components, join
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
        raise TypeError(
            "model, the first argument, must be a Model, as load(path) and builder.build() return, "
            f"got {type(model).__name__}"
        )


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
    fixed = fixed_factors(R.astype(float).tobytes(), own[0].axis if own else None)
    return None if fixed is None else merge_rotations([*fixed, *own])


@lru_cache(maxsize=4096)
def fixed_factors(R: bytes, last: int | None) -> tuple[AxisRotation, ...] | None:
    """Return `factor_rotation` of a matrix; finding the factors takes longer than using them."""
    return factor_rotation(np.frombuffer(R).reshape(3, 3), last)


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
            raise ValueError(
                f"forces must have shape {shape}, a row for each of body_names, or be a mapping "
                f"of body names to (6,); got shape {tuple(array.shape)}"
            )
        forces = {name: array[..., k, :] for k, name in enumerate(model.body_names)}
    by_link = {}
    for name, value in forces.items():
        array = as_array(value, f"forces[{name!r}]")
        check_last(array, 6, f"forces[{name!r}]")
        by_link[model.body(name)] = Spatial(array[..., :3], array[..., 3:])
    return by_link
