"""Shapes that go with a robot: what a viewer or a collision test needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.function.identity.object_parts import PARTS

__all__ = ["Shape", "shape_at"]


class Shape(NamedTuple):
    """One shape on a body: `role` is "visual" or "collision", `kind` box, sphere, ..., mesh.

    `size` is (x, y, z) of a box, (radius,) of a sphere, (radius, length) of a cylinder or capsule
    along z (a capsule's length is between the centres of its ends), half axes of an ellipsoid,
    (x, y) of a plane, 0 for no end, or the scale of a mesh, whose `file` is a path, None where it
    was not found; `rotation` (3, 3), from the shape to the body, and `position` (3,) are in the
    body. ``frame_pose(model, q, shape.body)`` says where that is.

    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.add_shape("bob", "sphere", [0.2], "visual")
    >>> shape = b.build(base="floating").geometry[0]
    >>> shape.kind, shape.size, shape.position
    ('sphere', (0.2,), (0.0, 0.0, 0.0))
    """

    body: str
    role: str
    kind: str
    size: tuple[float, ...]
    rotation: tuple[tuple[float, ...], ...]
    position: tuple[float, ...]
    file: str | None = None


# Tuples of a class of their own: known by what they hold.
PARTS[Shape] = tuple


def shape_at(
    body: str, role: str, kind: str, size: Sequence[Any], R: Any, p: Any, file: Any = None
) -> Shape:
    """Return a shape, all of it tuples: calls need not look whether it has changed."""
    rows = tuple(tuple(row) for row in np.asarray(R, dtype=float).tolist())
    path = None if file is None else str(file)
    place = tuple(np.asarray(p, dtype=float).tolist())
    return Shape(body, role, kind, tuple(float(x) for x in size), rows, place, path)
