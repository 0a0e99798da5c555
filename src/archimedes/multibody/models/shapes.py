"""Shapes that go with a robot: what a viewer or a collision test needs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Shape", "Surface", "shape_at"]


class Surface:
    """Triangles of a mesh that comes with a model, not from a file of its own.

    It is never changed. Two surfaces are equal if their vertices and triangles are.

    Parameters
    ----------
    vertices : array (n, 3)
        Vertices in m, in the axes of the shape.
    triangles : array of int (m, 3)
        Vertices of each triangle.

    Examples
    --------
    >>> from archimedes.multibody import Surface
    >>> plate = Surface([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> plate, plate == Surface(plate.vertices, plate.triangles)
    (Surface(3 vertices, 1 triangle), True)
    """

    __slots__ = ("digest", "triangles", "vertices")

    def __init__(self, vertices: Any, triangles: Any) -> None:
        self.vertices = np.array(vertices, dtype=float).reshape(-1, 3)
        self.triangles = np.array(triangles, dtype=np.int64).reshape(-1, 3)
        if self.triangles.size and not (
            self.triangles.min() >= 0 and self.triangles.max() < len(self.vertices)
        ):
            raise ValueError(f"triangles must be numbers of the {len(self.vertices)} vertices")
        if not np.isfinite(self.vertices).all():
            raise ValueError("vertices must be finite, got nan or inf")
        for array in (self.vertices, self.triangles):
            array.flags.writeable = False
        kept = self.vertices.tobytes() + self.triangles.tobytes()
        self.digest = hashlib.blake2b(kept, digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Surface) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        n = len(self.triangles)
        return f"Surface({len(self.vertices)} vertices, {n} triangle{'' if n == 1 else 's'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Surface, (self.vertices, self.triangles)

    def __content__(self) -> tuple[bytes]:
        return (self.digest,)


#: Kinds of shapes, and how many numbers their sizes are; what they are used for.
COUNTS = {
    "box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 2, "mesh": 3
}  # fmt: skip
ROLES = ("visual", "collision")


class Shape(NamedTuple):
    """A shape on a body.

    ``frame_pose(model, q, shape.body)`` says where the body is.

    Parameters
    ----------
    body : str
        Name of the body.
    role : {"visual", "collision"}
        What the shape is for.
    kind : str
        ``"box"``, ``"sphere"``, ``"cylinder"``, ``"capsule"``, ``"ellipsoid"``, ``"plane"`` or
        ``"mesh"``.
    size : tuple of float
        Edges (x, y, z) of a box; (radius,) of a sphere; (radius, length) of a cylinder or capsule
        along z, where the length of a capsule is between the centres of its ends; half axes of an
        ellipsoid; (x, y) of a plane, 0 for infinite; or the scale of a mesh. All in m.
    rotation : matrix (3, 3)
        Rotation matrix from the shape to the body.
    position : (float, float, float)
        Position in m in the body.
    file : str, optional
        File of a mesh. None if it was not found.
    surface : Surface, optional
        Triangles of a mesh.

    Examples
    --------
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
    surface: Surface | None = None

    def __content__(self) -> tuple[Any, ...]:
        return tuple(self)


def shape_at(
    body: str,
    role: str,
    kind: str,
    size: Sequence[Any],
    R: Any,
    p: Any,
    file: Any = None,
    surface: Surface | None = None,
) -> Shape:
    """Return a shape, all of it tuples: calls need not look whether it has changed."""
    check_shape(body, role, kind, size)
    rows = tuple(tuple(row) for row in np.asarray(R, dtype=float).tolist())
    path = None if file is None else str(file)
    place = tuple(np.asarray(p, dtype=float).tolist())
    return Shape(body, role, kind, tuple(float(x) for x in size), rows, place, path, surface)


def check_shape(body: str, role: str, kind: str, size: Sequence[Any]) -> None:
    """Raise where there is no such shape."""
    where = f"shape of {body!r}"
    if role not in ROLES:
        raise ValueError(f"{where}: role={role!r} must be one of {', '.join(ROLES)}")
    if kind not in COUNTS:
        raise ValueError(f"{where}: kind={kind!r} must be one of {', '.join(COUNTS)}")
    numbers = np.array(size, dtype=float)
    if numbers.shape != (COUNTS[kind],):
        raise ValueError(
            f"{where}: a {kind} has {COUNTS[kind]} size{'s' * (COUNTS[kind] > 1)}, got "
            f"{np.shape(size)}"
        )
    if not np.isfinite(numbers).all() or (kind != "mesh" and (numbers < 0.0).any()):
        raise ValueError(f"{where}: sizes must be finite and not negative, in m, got {size}")
