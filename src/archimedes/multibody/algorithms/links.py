"""What every algorithm starts from: the coordinates, poses and motions S of each link.

Legend: links are numbered so that parents come first; X_i is the pose of link i in its parent,
S_i the columns along which its joint moves it, in its own axes, each with the velocity it belongs
to. A mimic joint's columns are scaled and belong to the velocity of the joint it follows, so that
sums over columns are all that algorithms need to know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import as_array, check_last, concrete
from archimedes.errors import explained
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import Pose, Rigid, Spatial, compose, rigid
from archimedes.multibody.models.turns import Turn, merged, turns_of
from archimedes.spatial.components import components, join

__all__ = [
    "Column",
    "Forces",
    "ancestors",
    "check_coordinates",
    "check_state",
    "columns_of",
    "coordinates_of",
    "external_forces",
    "gravity_of",
    "inertias_of",
    "joined",
    "leading_axes",
    "moving",
    "not_a_model",
    "placement_of",
    "poses_of",
    "speeds_of",
    "spread",
]

Forces = Any


class Column(NamedTuple):
    """A motion S of a joint, in the axes of its link, and the velocity that it belongs to."""

    v: int
    S: Spatial


def check_coordinates(model: Model, x: Any, name: str) -> Any:
    """Return an argument as an array (..., nq) where its name is q, q0, ..., else (..., nv)."""
    if not isinstance(model, Model):
        raise TypeError(not_a_model(model))
    array = as_array(x, name)
    kind = "nq" if name.startswith("q") else "nv"
    size = model.nq if kind == "nq" else model.nv
    if tuple(array.shape[-1:]) != (size,):
        raise ValueError(
            explained(
                "coordinates",
                f"{name} must have shape ({size},) or (..., {size}) for {model.name!r} "
                f"({kind}={size}), got {tuple(array.shape)}",
            )
        )
    return array


def check_state(model: Model, forces: Forces = None, **given: Any) -> tuple[Any, ...]:
    """Return q, v and others as arrays whose leading axes fit each other, and those of forces."""
    arrays = tuple(check_coordinates(model, x, name) for name, x in given.items())
    if forces is not None or any(array.ndim > 1 for array in arrays):
        try:
            leading_axes(*arrays, forces=forces)
        except ValueError:
            shapes = [f"{n} {tuple(a.shape)}" for n, a in zip(given, arrays, strict=True)]
            each = forces.items() if hasattr(forces, "items") else [("forces", forces)]
            shapes += [f"{n} {tuple(np.shape(f))}" for n, f in each if f is not None]
            message = f"leading axes must broadcast, got shapes {', '.join(shapes)}"
            raise ValueError(message) from None
    return arrays


def not_a_model(x: Any) -> str:
    """Return the message where something else was given for a model."""
    return (
        "model, the first argument, must be a Model, as load(path) and builder.build() return, got "
        f"{type(x).__name__}"
    )


def coordinates_of(model: Model, q: Any) -> list[Sequence[Any]]:
    """Return the coordinates of each link's joint."""
    parts = components(check_coordinates(model, q, "q"), model.nq)
    found = []
    for link in model.links:
        own = parts[link.q : link.q + link.kind.nq]
        found.append([link.scale * x + link.offset for x in own] if link.mimic else own)
    return found


def speeds_of(model: Model, v: Any, name: str = "v") -> Sequence[Any]:
    """Return the numbers of a velocity, acceleration or torque (..., nv)."""
    return components(check_coordinates(model, v, name), model.nv)


def poses_of(model: Model, qs: list[Sequence[Any]]) -> list[Pose]:
    """Return the pose of each link in its parent."""
    found = []
    for i, link in enumerate(model.links):
        X = compose(placement_of(model, i), link.kind.pose(link.screw, qs[i]))
        found.append(X._replace(turns=turns_between(model, i, qs[i])))
    return found


def placement_of(model: Model, i: int) -> Pose:
    """Return where the joint of a link is in the parent."""
    return Pose(model.rotations[i], model.positions[i])


def turns_between(model: Model, i: int, q: Sequence[Any]) -> tuple[Turn, ...] | None:
    """Return the rotation of a link in its parent as turns, where it is known to be a few."""
    link, R = model.links[i], concrete(model.rotations[i])
    own = link.kind.turns(link.screw, q) if link.kind.turns is not None else None
    if R is None or own is None or R.ndim > 2:
        return None
    fixed = fixed_turns(R.astype(float).tobytes(), own[0].axis if own else None)
    return None if fixed is None else merged([*fixed, *own])


@lru_cache(maxsize=4096)
def fixed_turns(R: bytes, last: int | None) -> tuple[Turn, ...] | None:
    """Return `turns_of` a matrix; finding them takes longer than using them."""
    return turns_of(np.frombuffer(R).reshape(3, 3), last)


def columns_of(model: Model, qs: list[Sequence[Any]]) -> list[list[Column]]:
    """Return the motions of each link's joint."""
    found = []
    for link, q in zip(model.links, qs, strict=True):
        columns = link.kind.columns(link.screw, q)
        if link.mimic:
            columns = [S.times(link.scale) for S in columns]
        found.append([Column(link.v + k, S) for k, S in enumerate(columns)])
    return found


def moving(columns: list[Column], speeds: Sequence[Any]) -> Spatial:
    """Return the motion of a joint: the sum of its columns times their speeds."""
    total = columns[0].S.times(speeds[columns[0].v])
    for k, S in columns[1:]:
        total = total + S.times(speeds[k])
    return total


def inertias_of(model: Model) -> list[Rigid]:
    """Return the inertia of each link in its own axes."""
    n = len(model.links)
    return [rigid(model.masses[i], model.centers[i], model.inertias[i]) for i in range(n)]


def gravity_of(model: Model) -> Spatial:
    """Return the acceleration of the world that stands for gravity: minus gravity."""
    return Spatial(-model.gravity, np.zeros(3))


def ancestors(model: Model, i: int) -> list[int]:
    """Return a link and all that carry it, towards the world."""
    chain = []
    while i >= 0:
        chain.append(i)
        i = model.links[i].parent
    return chain


def joined(parts: Sequence[Any]) -> Any:
    """Return numbers as an array along a new last axis; none has not come up yet: zero."""
    shape = next((np.shape(x) for x in parts if type(x) is not float), None)
    if shape is None:
        return np.array(parts, dtype=float)
    return join([np.zeros(shape) + x if type(x) is float else x for x in parts])


def leading_axes(*vectors: Any, forces: Forces = None) -> tuple[int, ...]:
    """Return the leading axes that vectors (..., n) and forces on bodies have together."""
    shapes = [np.shape(x)[:-1] for x in vectors]
    if hasattr(forces, "items"):
        shapes += [np.shape(x)[:-1] for x in forces.values()]
    elif forces is not None:
        shapes.append(np.shape(forces)[:-2])
    return np.broadcast_shapes(*shapes) if any(shapes) else ()


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a result in the shape that its arguments have together.

    What an argument has no effect on comes out without that one's leading axes.
    """
    if tuple(np.shape(x)) == shape:
        return x
    wide = np.broadcast_to(x, shape)
    return wide.copy() if type(wide) is np.ndarray else wide


def external_forces(model: Model, forces: Forces) -> dict[int, Spatial]:
    """Return forces on links: of an array (..., bodies, 6), or a mapping of names to (..., 6).

    They act at the origin of the body's frame, in its axes, linear part first.
    """
    if forces is None:
        return {}
    if not hasattr(forces, "items"):
        array = as_array(forces, "forces")
        shape = (len(model.body_names), 6)
        if tuple(array.shape[-2:]) != shape:
            raise ValueError(
                f"forces must have shape {shape}, a row for each of body_names, or be a mapping "
                f"of body names to (6,); got shape {tuple(array.shape)}"
            )
        forces = {name: array[..., k, :] for k, name in enumerate(model.body_names)}
    found = {}
    for name, value in forces.items():
        array = as_array(value, f"forces[{name!r}]")
        check_last(array, 6, f"forces[{name!r}]")
        found[model.body(name)] = Spatial(array[..., :3], array[..., 3:])
    return found
