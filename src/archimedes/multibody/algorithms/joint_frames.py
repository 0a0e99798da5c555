"""Links in frames on the axes of their joints: what the algorithms over torques work with.

Where an axis does not pass through the origin of its body, the origin moves when the joint turns,
and where the axis is not along x, y or z, every entry of the rotation is a sum of products (files
of MuJoCo have both). In a frame on the axis, with z along it, positions are constants and the
rotation is one turn. Torques, accelerations and mass matrices are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.multibody.algorithms.links import Forces, external_forces
from archimedes.multibody.models.assembly import cleaned
from archimedes.multibody.models.model import Link, Model
from archimedes.multibody.models.turns import about_axis, length
from archimedes.spatial.components import cross, matvec

__all__ = ["in_joint_frames"]

#: Kinds that turn about an anchor, and those whose axis may be any.
ANCHORED = ("revolute", "continuous", "spherical")
ALONG = ("revolute", "continuous", "prismatic", "helical", "cylindrical")


class Inside(NamedTuple):
    """A frame in a link: its origin, and its axes as columns."""

    origin: np.ndarray
    axes: np.ndarray


def in_joint_frames(model: Model, forces: Forces = None) -> tuple[Model, Forces]:
    """Return the model with its links in frames on their joints, and the forces in these."""
    frames = [frame_of(link) for link in model.links]
    plain = [not f.origin.any() and np.array_equal(f.axes, np.eye(3)) for f in frames]
    if all(plain):
        return model, forces
    world = Inside(np.zeros(3), np.eye(3))
    rotations, positions, centers, inertias = [], [], [], []
    for i, (link, own) in enumerate(zip(model.links, frames, strict=True)):
        up = frames[link.parent] if link.parent >= 0 else world
        R, p = model.rotations[i], model.positions[i]
        rotations.append(cleaned(turned_into(up, matmul(R, own.axes))))
        positions.append(turned_into(up, p + matvec(R, own.origin) - up.origin))
        centers.append(turned_into(own, model.centers[i] - own.origin))
        inertias.append(turned_into(own, matmul(model.inertias[i], own.axes)))
    values = {
        "links": tuple(map(on_axis, model.links)),
        "rotations": np.stack(rotations),
        "positions": np.stack(positions),
        "centers": np.stack(centers),
        "inertias": np.stack(inertias),
    }
    moved: Any = model.replace(**values)  # type: ignore[attr-defined]
    if forces is None:
        return moved, None
    shifted = {}
    for i, f in external_forces(model, forces).items():
        moment = f.angular - cross(frames[i].origin, f.linear)
        parts = [matvec(frames[i].axes.T, x) for x in (f.linear, moment)]
        shifted[model.links[i].body] = np.concatenate(parts, axis=-1)
    return moved, shifted


def frame_of(link: Link) -> Inside:
    """Return the frame of a link's joint in the link."""
    name, screw = link.kind.name, link.screw
    origin = np.array(screw.anchor) if name in ANCHORED else np.zeros(3)
    skew = name in ALONG and about_axis(screw.axis, 0.0) is None
    return Inside(origin, axes_along(screw.axis) if skew else np.eye(3))


def axes_along(axis: Sequence[float]) -> np.ndarray:
    """Return a rotation whose third column is a unit axis."""
    x, y, z = axis
    side = length(x, y)
    return np.array(
        [[z * x / side, -y / side, x], [z * y / side, x / side, y], [-side, 0.0, z]]
    )  # by its angles about z and y


def on_axis(link: Link) -> Link:
    """Return the link with the screw that it has in its joint's frame."""
    screw = link.screw
    if link.kind.name in ALONG and about_axis(screw.axis, 0.0) is None:
        screw = replace(screw, axis=(0.0, 0.0, 1.0))
    if link.kind.name in ANCHORED:
        screw = replace(screw, anchor=(0.0, 0.0, 0.0))
    return replace(link, screw=screw)


def turned_into(frame: Inside, x: Any) -> Any:
    """Return a vector (3,) or the columns of a matrix in the axes of a frame."""
    return x if np.array_equal(frame.axes, np.eye(3)) else matmul(frame.axes.T, x)
