"""Meshes: simple solids and ways to put them together, in m."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.typing import Array, ArrayLike, Scalar
from archimedes.viewer.scene import Mesh

__all__ = ["arrow", "box", "capsule", "cylinder", "loft", "moved", "panel", "revolve", "sphere"]


X, Y, Z = np.eye(3)


def moved(mesh: Mesh, position: ArrayLike = (0, 0, 0), rotation: ArrayLike | None = None) -> Mesh:
    """Return a mesh that is rotated, then translated.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    position : array (3,), optional
        Translation in m, which follows the rotation.
    rotation : array (3, 3), optional
        Rotation matrix. None by default.

    Examples
    --------
    >>> from archimedes.viewer import box, moved
    >>> moved(box([1, 1, 1]), position=[2, 0, 0]).vertices[:, 0].min()
    np.float64(1.5)
    """
    R = np.eye(3) if rotation is None else np.asarray(rotation, dtype=float)
    return replace(mesh, vertices=mesh.vertices @ R.T + np.asarray(position, dtype=float))


def mirror(meshes: Iterable[Mesh], axis: int = 1) -> list[Mesh]:
    """Return meshes and their mirror images across a plane through the origin."""
    flip = np.ones(3)
    flip[axis] = -1.0
    meshes = list(meshes)
    turned = [(m, m.vertices * flip, m.triangles[:, ::-1]) for m in meshes]
    return meshes + [replace(m, vertices=v, triangles=t) for m, v, t in turned]


def box(size: ArrayLike, **look: Any) -> Mesh:
    """Return a box with its centre at the origin.

    Parameters
    ----------
    size : array (3,)
        Lengths of the edges in m.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> box([1.0, 2.0, 3.0]).vertices.max(axis=0)
    array([0.5, 1. , 1.5])
    """
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    quads = [
        *((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1)),
        *((2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)),
    ]
    faces = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return Mesh(0.5 * corners * np.asarray(size, dtype=float), np.array(faces), **look)


def rings(k: int, n: int) -> Array:
    """Return the triangles between neighbours of `k` closed rings with `n` vertices each."""
    first = np.arange(k - 1)[:, None] * n + np.arange(n)
    second = np.arange(k - 1)[:, None] * n + (np.arange(n) + 1) % n
    halves = [(first, first + n, second + n), (first, second + n, second)]
    return np.concatenate([np.stack(half, axis=-1).reshape(-1, 3) for half in halves])


def loft(sections: ArrayLike, **look: Any) -> Mesh:
    """Return the surface over closed sections, with both ends closed.

    Parameters
    ----------
    sections : array (k, n, 3)
        Closed sections of n points each, in m. If the last one is the first again, the surface is a
        ring, which has no ends.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import loft
    >>> square = np.array([[0, -1, -1], [0, 1, -1], [0, 1, 1], [0, -1, 1]])
    >>> loft([square, square + [3, 0, 0]]).vertices.max(axis=0)
    array([3., 1., 1.])
    """
    sections = np.asarray(sections, dtype=float)
    k, n, _ = sections.shape
    ends = np.stack([sections[0].mean(axis=0), sections[-1].mean(axis=0)])
    first, last = k * n, k * n + 1
    caps = [(first, j, (j + 1) % n) for j in range(n)]
    base = (k - 1) * n
    caps += [(last, base + (j + 1) % n, base + j) for j in range(n)]
    is_ring = k > 2 and np.allclose(sections[0], sections[-1])
    faces = rings(k, n) if is_ring else np.concatenate([rings(k, n), np.array(caps)])
    points = np.concatenate([sections.reshape(-1, 3), ends])
    a, b, c = np.moveaxis(points[faces] - points.mean(axis=0), 1, 0)
    inside_out = np.sum(a * np.cross(b, c)) < 0.0  # six times the volume
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    faces = faces[areas > 1e-12 * np.ptp(points) ** 2]  # at a pole, half of them have none
    return Mesh(points, faces[:, ::-1] if inside_out else faces, **look)


def ellipse(
    x: float, half_width: float, half_height: float, z: float = 0.0, n: int = 20, power: float = 2.0
) -> Array:
    """Return a section (n, 3) across x, a superellipse; z points down in bodies that fly."""
    angle = 2.0 * np.pi * np.arange(n) / n
    c, s = np.cos(angle), np.sin(angle)
    round_ = lambda u: np.sign(u) * np.abs(u) ** (2.0 / power)  # noqa: E731
    return np.stack([np.full(n, x), half_width * round_(c), z + half_height * round_(s)], axis=1)


def revolve(profile: ArrayLike, n: int = 24, **look: Any) -> Mesh:
    """Return the solid of revolution of a profile about the x axis.

    Parameters
    ----------
    profile : array (k, 2)
        Positions along the x axis and radii, in m. A closed profile makes a ring.
    n : int, optional
        Number of corners around, or along, the shape.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> revolve([[0.0, 1.0], [2.0, 1.0]], n=8).vertices[:, 0].max()
    np.float64(2.0)
    """
    return loft([ellipse(x, r, r, n=n) for x, r in np.asarray(profile, dtype=float)], **look)


def along(axis: ArrayLike) -> Array:
    """Return a rotation (3, 3) that takes x to a direction."""
    x = np.asarray(axis, dtype=float)
    x = x / np.linalg.norm(x)
    y = np.cross(Z if abs(x[2]) < 0.9 else X, x)
    y /= np.linalg.norm(y)
    return np.stack([x, y, np.cross(x, y)], axis=1)


def cylinder(radius: float, length: float, axis: ArrayLike = Z, n: int = 24, **look: Any) -> Mesh:
    """Return a cylinder with its centre at the origin.

    Parameters
    ----------
    radius : float
        Radius in m.
    length : float
        Length in m.
    axis : array (3,), optional
        Unit vector along the axis, z by default.
    n : int, optional
        Number of corners around, or along, the shape.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> from archimedes.viewer import cylinder
    >>> cylinder(0.1, 1.0, axis=[1, 0, 0]).vertices.max(axis=0).round(6)
    array([0.5, 0.1, 0.1])
    """
    solid = revolve([[-0.5 * length, radius], [0.5 * length, radius]], n, **look)
    return moved(solid, rotation=along(axis))


def sphere(radius: float, n: int = 24, **look: Any) -> Mesh:
    """Return a sphere about the origin.

    Parameters
    ----------
    radius : float
        Radius in m.
    n : int, optional
        Number of corners around, or along, the shape.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> np.linalg.norm(sphere(2.0).vertices, axis=1).max().round(6)
    np.float64(2.0)
    """
    angle = np.linspace(0.0, np.pi, n // 2 + 1)
    return revolve(radius * np.stack([-np.cos(angle), np.sin(angle)], axis=1), n, **look)


def capsule(radius: float, length: float, axis: ArrayLike = Z, n: int = 20, **look: Any) -> Mesh:
    """Return a cylinder with round ends, centred at the origin.

    Parameters
    ----------
    radius : float
        Radius in m.
    length : float
        Length in m of the cylinder, without the ends.
    axis : array (3,), optional
        Unit vector along the axis, z by default.
    n : int, optional
        Number of corners around, or along, the shape.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> from archimedes.viewer import capsule
    >>> float(capsule(0.1, 1.0).vertices[:, 2].max().round(6))
    0.6
    """
    angle = np.linspace(0.0, 0.5 * np.pi, n // 4 + 1)
    cap = radius * np.stack([np.sin(angle), np.cos(angle)], axis=1) + [0.5 * length, 0.0]
    profile = np.concatenate([cap[::-1] * [-1, 1], cap])
    return moved(revolve(profile, n, **look), rotation=along(axis))


def arrow(length: float = 1.0, radius: float = 0.035, n: int = 14, **look: Any) -> Mesh:
    """Return an arrow along x from the origin.

    Parameters
    ----------
    length : float, optional
        Length in m.
    radius : float, optional
        Radius in m.
    n : int, optional
        Number of corners around, or along, the shape.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> from archimedes.viewer import arrow
    >>> arrow(2.0).vertices[:, 0].max()
    np.float64(2.0)
    """
    neck = length - min(5.0 * radius, 0.4 * length)
    profile = [[0, radius], [neck, radius], [neck, 2.4 * radius], [length, 0.0]]
    return revolve(profile, n, **look)


#: A thin symmetric section: places along the chord and half thicknesses in parts of the largest.
AIRFOIL = np.array([[0, 0], [0.04, 0.45], [0.2, 0.9], [0.42, 1], [0.75, 0.55], [1, 0.04]])


def panel(
    root: Sequence[float],
    tip: Sequence[float],
    thickness: Sequence[float] = (0.05, 0.03),
    **look: Any,
) -> Mesh:
    """Return a wing panel from root to tip.

    Parameters
    ----------
    root : tuple of 4 floats
        x of the leading edge, y, z and chord at the root, in m. The trailing edge lies behind,
        towards -x.
    tip : tuple of 4 floats
        The same at the tip.
    thickness : (float, float), optional
        Thickness of root and tip relative to their chords.
    **look
        Fields of `Mesh` that determine how it looks, such as ``color``.

    Examples
    --------
    >>> from archimedes.viewer import panel
    >>> wing = panel(root=(0.0, 0.0, 0.0, 2.0), tip=(-1.0, 5.0, 0.0, 0.8))
    >>> wing.vertices.max(axis=0).round(3), wing.vertices.min(axis=0).round(3)
    (array([0.  , 5.  , 0.05]), array([-2.  ,  0.  , -0.05]))
    """
    span = np.asarray(tip[1:3], dtype=float) - np.asarray(root[1:3], dtype=float)
    up = np.array([0.0, -span[1], span[0]]) / np.linalg.norm(span)
    loop = np.concatenate([AIRFOIL, (AIRFOIL * [1, -1])[-1:0:-1]])
    sections = []
    for (x, y, z, chord), part in zip((root, tip), thickness):
        back = np.array([x, y, z]) - loop[:, :1] * chord * X
        sections.append(back + loop[:, 1:] * 0.5 * part * chord * up)
    return loft(sections, **{"crease": 0.5, **look})


def dart(length: float = 1.0) -> Mesh:
    """Return a folded dart along x: what a ghost looks like, six triangles."""
    points = [[0.6, 0, 0], [-0.4, 0.33, 0], [-0.4, -0.33, 0], [-0.3, 0, 0.06], [-0.3, 0, -0.12]]
    faces = [[0, 1, 4], [0, 4, 2], [0, 3, 1], [0, 2, 3], [1, 3, 4], [2, 4, 3]]
    return Mesh(length * np.array(points), np.array(faces), crease=0.1)


def rod(start: ArrayLike, end: ArrayLike, radius: float, **look: Any) -> Mesh:
    """Return a rod between two points."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(b - a))
    return moved(cylinder(radius, length, axis=b - a, n=12, **look), 0.5 * (a + b))


def squares_of_edges(inertia: ArrayLike, mass: Scalar) -> Array:
    """Return the squares (3,) of the edges of the block that has this inertia and mass."""
    J = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    return 6.0 / float(mass) * (J.sum() - 2.0 * J)  # of a block: J1 = m (b^2 + c^2) / 12
