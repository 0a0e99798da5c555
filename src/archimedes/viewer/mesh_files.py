"""Meshes of robots' files: STL and OBJ read here, other formats by trimesh where it is installed.

Files come from anywhere: they are data, only the named file is opened (materials and textures are
not), and what does not fit its own description is an error that names the file.
"""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.multibody.parts.geometry import Surface
from archimedes.typing import Array, ArrayLike
from archimedes.viewer.scene import Mesh

#: Triangles of a mesh beyond which it is made coarser: a page holds many meshes.
MOST_TRIANGLES = 6000
MOST_BYTES = 200_000_000
STL_HEADER, STL_RECORD = 84, 50


class MeshFileError(ValueError):
    """A file does not hold the mesh that its name promises."""


def read_mesh(path: str | PathLike[str], scale: ArrayLike = (1.0, 1.0, 1.0), **look: Any) -> Mesh:
    """Return the mesh of a file, `scale` (3,) times its size; `look` are colour and opacity.

    Meshes of very many triangles are made coarser.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plate.obj")
    ...     _ = file.write_text("v 0 0 0\\nv 1 0 0\\nv 1 1 0\\nv 0 1 0\\nf 1 2 3 4\\n")
    ...     plate = read_mesh(file, scale=[2.0, 2.0, 2.0])
    >>> plate.vertices.max(axis=0), len(plate.triangles)
    (array([2., 2., 0.]), 2)
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise MeshFileError(f"{path}: too large to read, {size:,} bytes of {MOST_BYTES:,}")
        vertices, triangles = READERS.get(path.suffix.lower(), _by_trimesh)(path)
    except (OSError, UnicodeDecodeError) as error:
        raise MeshFileError(f"{path}: cannot be read: {error}") from error
    if not len(triangles):
        raise MeshFileError(f"{path}: holds no triangles")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise MeshFileError(f"{path}: a face refers to a vertex that is not in the file")
    if not np.all(np.isfinite(vertices)):
        raise MeshFileError(f"{path}: holds nan or inf")
    return _make_mesh(vertices, triangles, scale, **look)


def surface_mesh(surface: Surface, scale: ArrayLike = (1.0, 1.0, 1.0), **look: Any) -> Mesh:
    """Return the mesh of triangles that came with a model, as `read_mesh` does that of a file."""
    return _make_mesh(surface.vertices, surface.triangles, scale, **look)


def _make_mesh(vertices: Array, triangles: Array, scale: ArrayLike, **look: Any) -> Mesh:
    """Return a mesh of these triangles, made coarser where they are very many."""
    vertices, triangles = simplify(vertices, triangles, MOST_TRIANGLES)
    factors = np.asarray(scale, dtype=float)
    if np.prod(factors) < 0.0:  # mirrored: the outside stays outside
        triangles = triangles[:, ::-1]
    return Mesh(vertices * factors, triangles, **look)


def _stl(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read STL: binary where the number of triangles fits the length of the file, else text."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:STL_HEADER], "little") if len(data) >= STL_HEADER else -1
    if count >= 0 and len(data) == STL_HEADER + STL_RECORD * count:
        rows = np.frombuffer(data, dtype=np.uint8, offset=STL_HEADER).reshape(count, STL_RECORD)
        corners = np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(-1, 3)
    elif data.lstrip()[:5].lower() == b"solid":
        lines = (line.split() for line in data.decode("ascii", "replace").splitlines())
        corners = _floats([w[1:4] for w in lines if w and w[0].lower() == "vertex"], path)
        if len(corners) % 3:
            raise MeshFileError(f"{path}: {len(corners)} corners are not whole triangles")
    else:
        raise MeshFileError(f"{path}: is neither binary STL of {count:,} triangles nor text")
    unique, number = np.unique(corners, axis=0, return_inverse=True)
    return unique.astype(float), np.asarray(number).reshape(-1, 3)


def _obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read vertices and faces of OBJ; faces of more corners become fans."""
    vertices: list[list[str]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in path.read_text("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "v":
            vertices.append(words[1:4])
        elif len(words) >= 4 and words[0] == "f":
            try:
                corners = [int(word.partition("/")[0]) for word in words[1:]]
            except ValueError:
                raise MeshFileError(f"{path}: {line.strip()[:60]!r} is not a face") from None
            # Numbers count from one, negative ones back from the last vertex so far.
            corners = [c - 1 if c > 0 else len(vertices) + c for c in corners]
            triangles += [(corners[0], a, b) for a, b in pairwise(corners[1:])]
    return _floats(vertices, path), np.array(triangles, dtype=int).reshape(-1, 3)


def _floats(words: list[list[str]], path: Path) -> np.ndarray:
    try:
        return np.array(words, dtype=float).reshape(-1, 3)
    except ValueError:
        raise MeshFileError(f"{path}: some vertex is not three numbers") from None


def _by_trimesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if importlib.util.find_spec("trimesh") is None:
        raise MeshFileError(
            f"{path}: STL and OBJ are read; {path.suffix or 'others'} needs trimesh: "
            "pip install trimesh pycollada"
        )
    import trimesh

    try:
        mesh: Any = trimesh.load(str(path), force="mesh", skip_materials=True)
        return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=int)
    except Exception as error:  # trimesh raises what its readers happen to raise
        raise MeshFileError(f"{path}: trimesh cannot read it: {error}") from error


READERS = {".stl": _stl, ".obj": _obj}


def simplify(vertices: Array, triangles: Array, most: int) -> tuple[Array, Array]:
    """Return a mesh of at most `most` triangles: vertices in one cell of a grid become one.

    >>> grid = np.stack(np.meshgrid([0, 1, 2], [0, 1, 2], [0.0]), -1).reshape(-1, 3)
    >>> few = simplify(grid, np.array([[0, 1, 3], [1, 4, 3], [4, 5, 7], [5, 8, 7]]), 2)
    >>> len(few[1]) <= 2
    True
    """
    span = float(np.ptp(vertices, axis=0).max()) or 1.0
    cells = 256.0
    while len(triangles) > most:
        cell = np.floor((vertices - vertices.min(axis=0)) / (span / cells))
        _, first, number = np.unique(cell, axis=0, return_index=True, return_inverse=True)
        faces = np.asarray(number).reshape(-1)[triangles]
        a, b, c = faces.T
        vertices, triangles = vertices[first], faces[(a != b) & (b != c) & (c != a)]
        cells *= 0.75
    return vertices, triangles
