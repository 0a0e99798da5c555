"""Masses and inertias of shapes of one density: closed forms, and meshes through trimesh.

Legend: J about the centre of the shape, in its axes; a capsule is a cylinder with two half spheres,
whose centres are 3/8 of the radius from their flat sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.installation import install_command
from archimedes.multibody.models.shapes import Shape

__all__ = ["inertia_of_shapes"]


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
    if not 0.0 < density < np.inf:
        raise ValueError(f"density must be positive and finite, in kg/m^3, got {density}")
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
    "box": box,
    "sphere": sphere,
    "ellipsoid": ellipsoid,
    "cylinder": cylinder,
    "capsule": capsule,
}


def mesh(shape: Shape) -> tuple[float, Any, Any]:
    """Return volume, centre and inertia per density of what a mesh encloses."""
    if shape.file is None and shape.surface is None:
        raise ValueError(f"the mesh of {shape.body!r} was not found: its inertia is not known")
    try:
        import trimesh  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(f"meshes are read by trimesh: {install_command('robots')}") from None
    found = triangles_of(trimesh, shape)
    found.apply_scale(shape.size)
    if not found.is_watertight or not found.volume > 0.0:
        raise ValueError(
            f"{shape.file or shape.surface}, the mesh of {shape.body!r}, is no closed surface; "
            "give the body a mass and an inertia"
        )
    found.density = 1.0
    return float(found.volume), np.array(found.center_mass), np.array(found.moment_inertia)


def triangles_of(trimesh: Any, shape: Shape) -> Any:
    """Return the triangles of a mesh as trimesh keeps them."""
    if shape.surface is not None:
        return trimesh.Trimesh(shape.surface.vertices, shape.surface.triangles)
    try:
        return trimesh.load(shape.file, force="mesh")
    except Exception as error:
        raise ValueError(f"{shape.file}: trimesh cannot read it: {error}") from None
