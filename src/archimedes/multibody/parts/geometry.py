"""Shapes that go with a robot, and their masses and inertias at one density.

A viewer or a collision test needs the shapes. Inertias are closed forms, those of meshes come from
trimesh. Legend: J about the centre of the shape, in its axes; a capsule is a cylinder with two half
spheres, whose centres are 3/8 of the radius from their flat sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import as_array, check_choice, check_positive, check_shape, check_that
from archimedes.installation import install_command
from archimedes.multibody.parts.height_field import HeightField
from archimedes.portable_numpy import matmul
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import ArrayLike

__all__ = ["Shape", "Surface", "inertia_of_shapes"]


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

    def __init__(self, vertices: ArrayLike, triangles: ArrayLike) -> None:
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
        data = self.vertices.tobytes() + self.triangles.tobytes()
        self.digest = hashlib.blake2b(data, digest_size=16).digest()

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
    "box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 2, "mesh": 3,
    "heightfield": 2,
}  # fmt: skip
ROLES = ("visual", "collision")


class Shape(NamedTuple):
    """A shape on a body.

    ``frame_pose(model, q, shape.body)`` says where the body is.

    Parameters
    ----------
    body : str
        Name of the body; ``"world"`` for what stands around a robot in an MJCF file.
    role : {"visual", "collision"}
        What the shape is for.
    kind : str
        ``"box"``, ``"sphere"``, ``"cylinder"``, ``"capsule"``, ``"ellipsoid"``, ``"plane"``,
        ``"mesh"`` or ``"heightfield"``.
    size : tuple of float
        Edges (x, y, z) of a box; (radius,) of a sphere; (radius, length) of a cylinder or capsule
        along z, where the length of a capsule is between the centres of its ends; half axes of an
        ellipsoid; (x, y) of a plane, 0 for infinite, or of a height field, its own; or the scale of
        a mesh. All in m.
    rotation : matrix (3, 3)
        Rotation matrix from the shape to the body.
    position : (float, float, float)
        Position in m in the body.
    file : str, optional
        File of a mesh; its name as the robot's file has it where there is no such file.
    surface : Surface or HeightField, optional
        Triangles of a mesh, or heights.
    color : (float, float, float, float), optional
        Red, green, blue and opacity from 0 to 1. None if the robot's file says nothing; meshes may
        have colours of their own, which count first.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.add_shape("bob", "sphere", [0.2], "visual", color=[1.0, 0.5, 0.0])
    >>> shape = b.build(base="floating").geometry[0]
    >>> shape.kind, shape.size, shape.position, shape.color
    ('sphere', (0.2,), (0.0, 0.0, 0.0), (1.0, 0.5, 0.0, 1.0))
    """

    body: str
    role: str
    kind: str
    size: tuple[float, ...]
    rotation: tuple[tuple[float, ...], ...]
    position: tuple[float, ...]
    file: str | None = None
    surface: Surface | HeightField | None = None
    color: tuple[float, ...] | None = None

    def __content__(self) -> tuple[Any, ...]:
        return tuple(self)


def make_shape(
    body: str, role: str, kind: str, size: Sequence[float], at: Pose, file: Any = None,
    surface: Surface | HeightField | None = None, color: ArrayLike | None = None,
) -> Shape:  # fmt: skip
    """Return a shape made of tuples, so that calls need not check whether it has changed."""
    where, numbers = f"shape of {body!r}", np.array(size, dtype=float)
    check_choice(role, f"{where}: role", ROLES)
    check_choice(kind, f"{where}: kind", COUNTS)
    check_shape(numbers, f"{where}: size of a {kind}", (COUNTS[kind],))
    if not np.isfinite(numbers).all() or (kind != "mesh" and (numbers < 0.0).any()):
        raise ValueError(f"{where}: sizes must be finite and not negative, in m, got {size}")
    if (kind == "heightfield") != isinstance(surface, HeightField):
        raise ValueError(f"{where}: a heightfield, and nothing else, has a HeightField as surface=")
    if isinstance(surface, HeightField) and surface.size != tuple(numbers.tolist()):
        raise ValueError(f"{where}: size {size} is not that of {surface}: give surface.size")
    rows = tuple(tuple(row) for row in np.asarray(at.R, dtype=float).tolist())
    path = None if file is None else str(file)
    position = tuple(np.asarray(at.p, dtype=float).tolist())
    rgba = None if color is None else make_color(color, f"{where}: color")
    return Shape(body, role, kind, tuple(numbers.tolist()), rows, position, path, surface, rgba)


def make_color(color: ArrayLike, name: str) -> tuple[float, ...]:
    """Return red, green, blue and opacity; colours without an opacity are opaque."""
    parts = as_array(color, name)
    check_shape(parts, name, (3,), (4,))
    check_that(lambda x: (x >= 0.0) & (x <= 1.0), parts, name, "must be within 0 and 1")
    return (*parts.tolist(), 1.0)[:4]


def inertia_of_shapes(shapes: Iterable[Shape], density: float) -> tuple[float, Any, Any]:
    """Return mass, centre and inertia of shapes of uniform density.

    Where shapes overlap they count twice. Meshes are read by the package trimesh (the extra
    ``robots``), and must be closed surfaces.

    Parameters
    ----------
    shapes : iterable of Shape
        The shapes.
    density : float
        Density in kg/m^3.

    Returns
    -------
    (float, array (3,), array (3, 3))
        Mass in kg, centre of mass in m, and inertia in kg m^2 about it, in axes of the body.

    Examples
    --------
    >>> from archimedes.multibody import Builder, inertia_of_shapes
    >>> b = Builder()
    >>> b.add_body("crate")
    >>> b.add_shape("crate", "box", [0.1, 0.2, 0.3])
    >>> mass, center, inertia = inertia_of_shapes(b.geometry, 1000.0)
    >>> round(mass, 12), inertia.diagonal().round(12)
    (6.0, array([0.065, 0.05 , 0.025]))
    """
    check_positive(density, "density", "kg/m^3")
    parts = []
    for shape in shapes:
        R, p = np.array(shape.rotation), np.array(shape.position)
        volume, center, J = volume_of(shape)
        parts.append((density * volume, p + matmul(R, center), density * matmul(R, J, R.T)))
    mass = sum(m for m, _, _ in parts)
    if not parts or mass == 0.0:
        raise ValueError("inertia_of_shapes: no shape has a volume")
    center = sum(m * c for m, c, _ in parts) / mass
    total = np.zeros((3, 3))
    for m, c, J in parts:
        d = c - center
        total += J + m * (matmul(d, d) * np.eye(3) - np.outer(d, d))
    return float(mass), center, total


def volume_of(shape: Shape) -> tuple[float, Any, Any]:
    """Return volume, centre and inertia per density of a shape in its own axes."""
    if shape.kind == "mesh":
        return mesh(shape)
    if shape.kind not in FORMS:
        raise ValueError(f"a {shape.kind} of {shape.body!r} has no volume")
    volume, moments = FORMS[shape.kind](*shape.size)
    return volume, np.zeros(3), np.diag(moments)


def box(x: float, y: float, z: float) -> tuple[float, list[float]]:
    """Return volume and moments of a box."""
    v = x * y * z
    return v, [v * (y * y + z * z) / 12, v * (x * x + z * z) / 12, v * (x * x + y * y) / 12]


def ellipsoid(x: float, y: float, z: float) -> tuple[float, list[float]]:
    """Return volume and moments of an ellipsoid of these half axes."""
    v = 4.0 / 3.0 * np.pi * x * y * z
    return v, [v * (y * y + z * z) / 5, v * (x * x + z * z) / 5, v * (x * x + y * y) / 5]


def sphere(r: float) -> tuple[float, list[float]]:
    """Return volume and moments of a sphere."""
    return ellipsoid(r, r, r)


def cylinder(r: float, length: float) -> tuple[float, list[float]]:
    """Return volume and moments of a cylinder along z."""
    v = np.pi * r * r * length
    across = v * (3 * r * r + length * length) / 12
    return v, [across, across, v * r * r / 2]


def capsule(r: float, length: float) -> tuple[float, list[float]]:
    """Return volume and moments of a capsule along z, `length` between the centres of its ends."""
    v, (across, _, along) = cylinder(r, length)
    ends = 4.0 / 3.0 * np.pi * r**3
    # Half a sphere about its own centre is 2/5 r^2 - (3/8 r)^2 across; then moved outwards.
    off = 0.5 * length + 0.375 * r
    across += ends * (0.4 * r * r - (0.375 * r) ** 2 + off * off)
    return v + ends, [across, across, along + ends * 0.4 * r * r]


FORMS: dict[str, Callable[..., tuple[float, list[float]]]] = {
    form.__name__: form for form in (box, sphere, ellipsoid, cylinder, capsule)
}


def mesh(shape: Shape) -> tuple[float, Any, Any]:
    """Return volume, centre and inertia per density of what a mesh encloses."""
    solid = triangles_of(shape, "its inertia is not known")
    solid.apply_scale(shape.size)
    if not solid.is_watertight or not solid.volume > 0.0:
        mesh = f"{shape.file or shape.surface}, the mesh of {shape.body!r},"
        raise ValueError(f"{mesh} is not a closed surface; give the body a mass and an inertia")
    solid.density = 1.0
    return float(solid.volume), np.array(solid.center_mass), np.array(solid.moment_inertia)


def mesh_vertices(shape: Shape) -> Any:
    """Return the vertices (n, 3) of a mesh in m, in the axes of the shape."""
    if isinstance(shape.surface, Surface):
        return shape.surface.vertices * np.array(shape.size)
    return np.array(triangles_of(shape, "nothing can touch it").vertices) * np.array(shape.size)


def mesh_surface(shape: Shape) -> Surface:
    """Return the triangles of a mesh in m, in the axes of the shape."""
    if isinstance(shape.surface, Surface):
        return Surface(mesh_vertices(shape), shape.surface.triangles)
    return Surface(mesh_vertices(shape), triangles_of(shape, "nothing can touch it").faces)


def triangles_of(shape: Shape, consequence: str) -> Any:
    """Return the triangles of a mesh as trimesh keeps them."""
    if shape.surface is None and not (shape.file and Path(shape.file).is_file()):
        raise ValueError(f"the mesh of {shape.body!r} was not found: {consequence}")
    try:
        import trimesh  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(f"meshes are read by trimesh: {install_command('robots')}") from None
    if isinstance(shape.surface, Surface):
        return trimesh.Trimesh(shape.surface.vertices, shape.surface.triangles)
    try:
        return trimesh.load(shape.file, force="mesh")
    except Exception as error:
        raise ValueError(f"{shape.file}: trimesh cannot read it: {error}") from None
