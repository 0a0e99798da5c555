"""Meshes of files: STL and OBJ are read here, others (COLLADA, glTF, PLY, ...) by trimesh.

Files come from anywhere: they are data, and what does not fit its own description is an error that
names the file. Besides the named file only its materials and textures are opened. A part of a mesh
has one colour: that of its material, or the mean of its texture over the part. As in RViz, lengths
of COLLADA files are in their own unit, and their `up_axis` is not looked at.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.installation import install_command
from archimedes.typing import Array, ArrayLike

#: Triangles of a robot beyond which its largest meshes are made coarser: a page holds them all.
MOST_TRIANGLES = 160_000
MOST_BYTES = 200_000_000
#: How names of files start that are in a package.
SCHEMES = ("package://", "model://")
STL_HEADER, STL_RECORD = 84, 50
#: Textures are made so small, in pixels, before their colours are read.
TEXTURE = 256
#: Materials that are less opaque than this are meant to be seen: exporters disagree about opacity.
LEAST_OPACITY = 0.05


class MeshFileError(ValueError):
    """A file does not hold the mesh that its name promises."""


class Part(NamedTuple):
    """Triangles of one material: red, green, blue and opacity from 0 to 1, if they are known."""

    vertices: Array
    triangles: Array
    color: Sequence[float] | None = None


def read_parts(path: str | PathLike[str]) -> list[Part]:
    """Return the triangles of a file, one part for each material.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plate.obj")
    ...     _ = file.write_text("v 0 0 0\\nv 1 0 0\\nv 1 1 0\\nv 0 1 0\\nf 1 2 3 4\\n")
    ...     (plate,) = read_parts(file)
    >>> plate.vertices.max(axis=0), len(plate.triangles), plate.color
    (array([1., 1., 0.]), 2, None)
    """
    name, path = str(path), Path(path)
    if not is_file(path):
        hint = "; name the folder of its package (packages=)" if name.startswith(SCHEMES) else ""
        raise MeshFileError(f"{name}: no such file{hint}")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise MeshFileError(f"{path}: too large to read, {size:,} bytes of {MOST_BYTES:,}")
        parts = READERS.get(path.suffix.lower(), by_trimesh)(path)
    except (OSError, UnicodeDecodeError) as error:
        raise MeshFileError(f"{path}: cannot be read: {error}") from error
    parts = [part for part in parts if len(part.triangles)]
    if not parts:
        raise MeshFileError(f"{path}: holds no triangles")
    for vertices, triangles, _ in parts:
        if triangles.min() < 0 or triangles.max() >= len(vertices):
            raise MeshFileError(f"{path}: a face refers to a vertex that is not in the file")
        if not np.all(np.isfinite(vertices)):
            raise MeshFileError(f"{path}: holds nan or inf")
    return parts


def scale_part(part: Part, scale: ArrayLike) -> Part:
    """Return a part `scale` (3,) times its size; the outside of a mirror image stays outside."""
    factors = np.asarray(scale, dtype=float)
    triangles = part.triangles[:, ::-1] if np.prod(factors) < 0.0 else part.triangles
    return part._replace(vertices=part.vertices * factors, triangles=triangles)


def look_of(color: Sequence[float] | None) -> dict[str, Any]:
    """Return the fields of a `Mesh` for red, green, blue and opacity, none where they are unknown.

    >>> look_of((1.0, 0.5, 0.0, 0.25))
    {'color': '#ff8000', 'opacity': 0.25}
    """
    if color is None:
        return {}
    r, g, b, opacity = (float(np.clip(part, 0.0, 1.0)) for part in (*color, 1.0)[:4])
    look = {"color": f"#{round(255 * r):02x}{round(255 * g):02x}{round(255 * b):02x}"}
    return {**look, "opacity": opacity if opacity >= LEAST_OPACITY else 1.0}


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have does not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


# ---- STL --------------------------------------------------------------------------------


def read_stl(path: Path) -> list[Part]:
    """Read STL: binary where the number of triangles fits the length of the file, else text."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:STL_HEADER], "little") if len(data) >= STL_HEADER else -1
    end = STL_HEADER + STL_RECORD * count
    if count >= 0 and end <= len(data):
        rows = np.frombuffer(data[STL_HEADER:end], dtype=np.uint8).reshape(count, STL_RECORD)
        corners = np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(-1, 3)
    elif data.lstrip()[:5].lower() == b"solid":
        lines = (line.split() for line in data.decode("ascii", "replace").splitlines())
        corners = floats([w[1:4] for w in lines if w and w[0].lower() == "vertex"], path)
        if len(corners) % 3:
            raise MeshFileError(f"{path}: {len(corners)} corners are not whole triangles")
    else:
        raise MeshFileError(
            f"{path}: is not STL: text begins with 'solid', and a binary file holds as many "
            "triangles as its header says"
        )
    unique, number = np.unique(corners, axis=0, return_inverse=True)
    return [Part(unique.astype(float), np.asarray(number).reshape(-1, 3))]


def floats(words: list[list[str]], path: Path, count: int = 3) -> np.ndarray:
    """Return rows of numbers from their texts."""
    try:
        return np.array(words, dtype=float).reshape(-1, count)
    except ValueError:
        what = {2: "two", 3: "three"}[count]
        raise MeshFileError(f"{path}: some vertex is not {what} numbers") from None


# ---- OBJ and its materials --------------------------------------------------------------


class Material(NamedTuple):
    """A material of an MTL file: its colour, and the file of its texture if it has one."""

    color: list[float]
    texture: Path | None = None


def read_obj(path: Path) -> list[Part]:
    """Read vertices and faces of OBJ, by material; faces of more corners become fans."""
    vertices: list[list[str]] = []
    places: list[list[str]] = []  # on textures
    faces: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    materials: dict[str, Material] = {}
    name = ""
    for line in path.read_text("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "v":
            vertices.append(words[1:4])
        elif len(words) >= 3 and words[0] == "vt":
            places.append(words[1:3])
        elif len(words) >= 4 and words[0] == "f":
            corners = [corner_of(word, len(vertices), len(places)) for word in words[1:]]
            if None in corners:
                raise MeshFileError(f"{path}: {line.strip()[:60]!r} is not a face")
            fan = [(corners[0], a, b) for a, b in pairwise(corners[1:])]
            faces.setdefault(name, []).extend(fan)  # type: ignore[arg-type]
        elif len(words) >= 2 and words[0] in ("usemtl", "mtllib"):
            rest = line.split(None, 1)[1].strip()
            if words[0] == "mtllib":
                materials |= read_mtl(path.parent / rest)
            else:
                name = rest
    points, uv = floats(vertices, path), floats(places, path, 2)
    parts = []
    for name, triples in faces.items():
        indices = np.array(triples, dtype=int).reshape(-1, 3, 2)
        triangles, at = indices[..., 0], indices[..., 1]
        known = uv[at[(at >= 0) & (at < len(uv))]]
        color = color_of(materials[name], known) if name in materials else None
        parts.append(Part(points, triangles, color))
    return parts


def corner_of(word: str, vertices: int, places: int) -> tuple[int, int] | None:
    """Return the vertex and the place on the texture of a corner "v/vt/vn"; -1 for no place.

    Numbers count from one, negative ones back from the last so far.
    """
    first, _, rest = word.partition("/")
    second = rest.partition("/")[0]
    try:
        v, vt = int(first), int(second or 0)
    except ValueError:
        return None
    return v - 1 if v > 0 else vertices + v, vt - 1 if vt >= 0 else places + vt


def read_mtl(path: Path) -> dict[str, Material]:
    """Return the materials of an MTL file by name; none where there is no such file."""
    materials: dict[str, Material] = {}
    name = ""
    if not is_file(path) or path.stat().st_size > MOST_BYTES:
        return materials
    for line in path.read_text("utf-8", "replace").splitlines():
        key, _, rest = line.strip().partition(" ")
        words = rest.split()
        if key == "newmtl":
            name = rest.strip()
            materials[name] = Material([1.0, 1.0, 1.0, 1.0])
        elif name and words and key in ("Kd", "d", "Tr", "map_Kd"):
            old = materials[name]
            if key == "map_Kd":  # options come first
                texture = path.parent / words[-1].replace("\\", "/")
                materials[name] = old._replace(texture=texture)
                continue
            try:
                numbers = [float(word) for word in words[:3]]
            except ValueError:
                continue
            if key == "Kd" and len(numbers) == 3:
                old.color[:3] = numbers
            elif key != "Kd":
                old.color[3] = numbers[0] if key == "d" else 1.0 - numbers[0]
    return materials


def color_of(material: Material, uv: Array) -> list[float]:
    """Return the colour of a material; a texture counts with its mean over places `uv` (n, 2)."""
    if material.texture is None or not is_file(material.texture):
        return material.color
    from PIL import Image

    try:
        with Image.open(material.texture) as image:
            small = image.convert("RGBA").resize((TEXTURE, TEXTURE), Image.Resampling.BOX)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):  # not an image
        return material.color
    pixels = np.asarray(small, dtype=float) / 255.0
    if len(uv):
        u, v = (np.nan_to_num(uv) % 1.0).T
        pixels = pixels[((1.0 - v) * (TEXTURE - 1)).astype(int), (u * (TEXTURE - 1)).astype(int)]
    return (pixels.reshape(-1, 4).mean(axis=0) * [1.0, 1.0, 1.0, material.color[3]]).tolist()


# ---- other formats ----------------------------------------------------------------------

#: Packages beside trimesh that a format needs.
NEEDS = {".dae": ("trimesh", "collada")}


def by_trimesh(path: Path) -> list[Part]:
    """Read a file through trimesh: its meshes with their places in the scene, in m."""
    suffix = path.suffix.lower()
    needed = NEEDS.get(suffix, ("trimesh",))
    if any(importlib.util.find_spec(name) is None for name in needed):
        readers = " and ".join(needed).replace("collada", "pycollada")
        raise MeshFileError(
            f"{path}: {suffix or 'such'} files are read by {readers}: {install_command('robots')}"
        )
    import trimesh

    try:
        scene: Any = trimesh.load_scene(str(path), process=False)
        parts = []
        for node in scene.graph.nodes_geometry:
            T, name = scene.graph[node]
            mesh = scene.geometry[name]
            if not hasattr(mesh, "faces"):
                continue
            points = unit_of(mesh) * trimesh.transform_points(mesh.vertices, T)
            triangles = np.asarray(mesh.faces, dtype=int)
            if np.linalg.det(T[:3, :3]) < 0.0:
                triangles = triangles[:, ::-1]
            parts.append(Part(np.asarray(points, dtype=float), triangles, color_by_trimesh(mesh)))
        return merge_parts(parts)
    except Exception as error:  # trimesh raises what its readers happen to raise
        raise MeshFileError(f"{path}: trimesh cannot read it: {error}") from error


def unit_of(mesh: Any) -> float:
    """Return the unit of a mesh in m, as trimesh tells it of COLLADA: "0.001 * meters"."""
    words = str(mesh.metadata.get("units", "")).split(" * meters")
    return float(words[0]) if len(words) == 2 else 1.0


def color_by_trimesh(mesh: Any) -> list[float] | None:
    """Return the mean colour of a mesh, of its vertices, its texture or its material."""
    visual = mesh.visual
    if not visual.defined:
        return None
    material = getattr(visual, "material", None)
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    if material is not None and image is None:
        return (np.asarray(material.main_color, dtype=float) / 255.0).tolist()
    colors = visual.vertex_colors if material is None else visual.to_color().vertex_colors
    return (np.asarray(colors, dtype=float).reshape(-1, 4).mean(axis=0) / 255.0).tolist()


def merge_parts(parts: Sequence[Part]) -> list[Part]:
    """Return parts of different colours: those of one colour become one."""
    groups: dict[Any, list[Part]] = {}
    for part in parts:
        key = None if part.color is None else tuple(np.round(part.color, 3))
        groups.setdefault(key, []).append(part)
    merged = []
    for same in groups.values():
        starts = np.cumsum([0, *(len(part.vertices) for part in same)])
        vertices = np.concatenate([part.vertices for part in same])
        triangles = np.concatenate([p.triangles + k for p, k in zip(same, starts)])
        merged.append(Part(vertices, triangles, same[0].color))
    return merged


READERS: dict[str, Callable[[Path], list[Part]]] = {".stl": read_stl, ".obj": read_obj}


# ---- fewer triangles --------------------------------------------------------------------


def largest_part(counts: Sequence[int], most: int) -> int:
    """Return how many triangles a part may have so that all of them together have `most`.

    >>> largest_part([10, 500, 900], 610)
    300
    """
    rest = most
    for k, count in enumerate(sorted(counts)):
        share = rest // (len(counts) - k)
        if count > share:
            return share
        rest -= count
    return max(counts, default=0)


def simplify(vertices: Array, triangles: Array, most: int) -> tuple[Array, Array]:
    """Return a mesh of at most `most` triangles: vertices in one cell of a grid become one.

    It lies where the sum of squared distances to the planes of its triangles is least.
    Source: P. Lindstrom, Out-of-core simplification of large polygonal models, SIGGRAPH 2000.

    >>> grid = np.stack(np.meshgrid([0, 1, 2], [0, 1, 2], [0.0]), -1).reshape(-1, 3)
    >>> few = simplify(grid, np.array([[0, 1, 3], [1, 4, 3], [4, 5, 7], [5, 8, 7]]), 2)
    >>> len(few[1]) <= 2
    True
    """
    span = float(np.ptp(vertices, axis=0).max()) or 1.0
    low, cells = vertices.min(axis=0), 512.0
    number, faces = np.arange(len(vertices)), triangles
    while len(faces) > most:
        grid = np.floor((vertices - low) * (cells / span)).astype(np.int64)
        _, number = np.unique(grid @ [1 << 40, 1 << 20, 1], return_inverse=True)
        number = np.asarray(number).reshape(-1)
        faces = number[triangles]
        a, b, c = faces.T
        faces = faces[(a != b) & (b != c) & (c != a)]
        cells *= min(0.9, (most / max(len(faces), 1)) ** 0.5)  # triangles go with its square
    if faces is triangles:
        return vertices, triangles
    return merge_vertices(vertices, triangles, number), np.unique(faces, axis=0)


def merge_vertices(vertices: Array, triangles: Array, number: Array) -> Array:
    """Return one vertex for each `number`, near all planes of the triangles that meet there."""
    count = int(number.max()) + 1
    weight = np.bincount(number, minlength=count)[:, None]
    mean = np.stack([np.bincount(number, x, count) for x in vertices.T], axis=1) / weight
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    quadrics = np.zeros((count, 3, 3))
    offsets = np.zeros((count, 3))
    for corner in triangles.T:
        k = number[corner]
        np.add.at(quadrics, k, normals[:, :, None] * normals[:, None, :])
        np.add.at(offsets, k, normals * np.sum(normals * (a - mean[k]), axis=1)[:, None])
    # What the planes leave open stays at the mean: along a plane, or along an edge.
    size = np.trace(quadrics, axis1=1, axis2=2)[:, None, None]
    quadrics += (0.02 * size + 1e-300) * np.eye(3)
    return mean + np.linalg.solve(quadrics, offsets[..., None])[..., 0]
