"""A scene as a binary glTF file (``.glb``): bodies as nodes, with their motion as an animation.

glTF has y up: the node at the root turns the axes of the scene, with z up, into those. Times start
at zero with the scene. Numbers are in single precision, as the format has them.
Source: Khronos Group, glTF 2.0 Specification.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from archimedes.typing import ArrayLike
from archimedes.version import __version__
from archimedes.viewer.html import corner_normals
from archimedes.viewer.motion import Moving, linear_color, moving_bodies
from archimedes.viewer.scene import Mesh, Path, Scene

#: Codes of the specification: kinds of numbers, targets of buffers, kinds of primitives.
FLOAT, UNSIGNED = 5126, 5125
VERTICES, INDICES = 34962, 34963
LINE_STRIP, TRIANGLES = 3, 4
WIDTHS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
#: A quarter turn about x, scalar last: z up becomes y up.
UPRIGHT = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]


def glb(scene: Scene) -> bytes:
    """Return a scene as the bytes of a ``.glb`` file."""
    return GltfWriter(scene).bytes()


class GltfWriter:
    """The parts of a glTF file, and the bytes that its accessors point to."""

    def __init__(self, scene: Scene) -> None:
        self.data = bytearray()
        self.lists: dict[str, list[Any]] = {
            name: [] for name in ("nodes", "meshes", "materials", "accessors", "bufferViews")
        }
        self.materials: dict[tuple[Any, ...], int] = {}
        self.meshes: dict[tuple[int, ...], int] = {}
        self.times: dict[bytes, int] = {}
        self.channels: list[Any] = []
        self.samplers: list[Any] = []
        self.start = scene.span[0]
        root = self.add("nodes", {"name": scene.title or "scene", "rotation": UPRIGHT})
        children: list[int] = []
        numbers: dict[str, int] = {}
        for body in moving_bodies(scene, single=True):
            numbers[body.name] = self.add_body(body)
            if body.parent is None:
                children.append(numbers[body.name])
            else:
                parent = self.lists["nodes"][numbers[body.parent]]
                parent.setdefault("children", []).append(numbers[body.name])
        children += [self.add_path(path) for path in scene.paths if len(path.points) > 1]
        self.lists["nodes"][root]["children"] = children
        self.title = scene.title

    def add(self, kind: str, part: dict[str, Any]) -> int:
        """Add a part; return its number."""
        self.lists[kind].append(part)
        return len(self.lists[kind]) - 1

    def accessor(self, values: ArrayLike, target: int | None = None, bounds: bool = False) -> int:
        """Add numbers (n,) or (n, k); return the number of their accessor."""
        array = np.ascontiguousarray(values, dtype="<u4" if target == INDICES else "<f4")
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": array.nbytes}
        self.data += array.tobytes()
        part: dict[str, Any] = {
            "bufferView": self.add("bufferViews", view | ({"target": target} if target else {})),
            "componentType": UNSIGNED if target == INDICES else FLOAT,
            "count": len(array),
            "type": WIDTHS[1 if array.ndim == 1 else array.shape[1]],
        }
        if bounds:
            rows = array.reshape(len(array), -1)
            part |= {"min": rows.min(axis=0).tolist(), "max": rows.max(axis=0).tolist()}
        return self.add("accessors", part)

    def add_body(self, body: Moving) -> int:
        """Add a body and its motion; return the number of its node."""
        q = np.roll(body.attitude, -1, axis=1)  # scalar last
        node: dict[str, Any] = {
            "name": body.name,
            "translation": body.position[0].tolist(),
            "rotation": q[0].tolist(),
        }
        if body.meshes:
            node["mesh"] = self.add_mesh(body.name, body.meshes)
        number = self.add("nodes", node)
        if body.is_moving:
            for path, values in (("translation", body.position), ("rotation", q)):
                self.animate(number, path, body.t, values)
        return number

    def animate(self, node: int, path: str, t: ArrayLike, values: ArrayLike) -> None:
        """Add the key frames of a node."""
        times = (np.asarray(t) - self.start).astype("<f4")
        if (key := times.tobytes()) not in self.times:
            self.times[key] = self.accessor(times, bounds=True)
        sampler = {"input": self.times[key], "output": self.accessor(values)}
        self.samplers.append(sampler | {"interpolation": "LINEAR"})
        target = {"node": node, "path": path}
        self.channels.append({"sampler": len(self.samplers) - 1, "target": target})

    def add_mesh(self, name: str, meshes: list[Mesh]) -> int:
        """Add the meshes of a body, those of several ghosts once; return their number."""
        key = tuple(id(mesh.vertices) for mesh in meshes)
        if key not in self.meshes:
            primitives = [self.primitive(mesh) for mesh in meshes]
            self.meshes[key] = self.add("meshes", {"name": name, "primitives": primitives})
        return self.meshes[key]

    def primitive(self, mesh: Mesh) -> dict[str, Any]:
        """Return the triangles of a mesh."""
        corners = mesh.vertices[mesh.triangles].reshape(-1, 3)
        rows = np.hstack([corners, corner_normals(mesh)]).astype("<f4") + np.float32(0.0)
        rows, indices = np.unique(rows, axis=0, return_inverse=True)
        attributes = {
            "POSITION": self.accessor(rows[:, :3], VERTICES, bounds=True),
            "NORMAL": self.accessor(rows[:, 3:], VERTICES),
        }
        return {
            "attributes": attributes,
            "indices": self.accessor(np.ravel(indices), INDICES),
            "material": self.material(mesh.color, mesh.opacity),
            "mode": TRIANGLES,
        }

    def add_path(self, path: Path) -> int:
        """Add a line; return the number of its node."""
        points = {"POSITION": self.accessor(path.points, VERTICES, bounds=True)}
        material = self.material(path.color, 1.0)
        line = {"attributes": points, "material": material, "mode": LINE_STRIP}
        mesh = self.add("meshes", {"name": path.name, "primitives": [line]})
        return self.add("nodes", {"name": path.name, "mesh": mesh})

    def material(self, color: str, opacity: float) -> int:
        """Return the number of a material."""
        if (key := (color, opacity)) not in self.materials:
            look = {
                "baseColorFactor": [*linear_color(color), float(opacity)],
                "metallicFactor": 0.0,
                "roughnessFactor": 0.7,
            }
            part = {"name": color, "pbrMetallicRoughness": look, "doubleSided": True}
            blend = {"alphaMode": "BLEND"} if opacity < 1.0 else {}
            self.materials[key] = self.add("materials", part | blend)
        return self.materials[key]

    def bytes(self) -> bytes:
        """Return the file."""
        asset = {"version": "2.0", "generator": f"Archimedes {__version__}"}
        document: dict[str, Any] = {
            "asset": asset | {"extras": {"start": self.start}},
            "scene": 0,
            "scenes": [{"name": self.title or "scene", "nodes": [0]}],
            **{name: parts for name, parts in self.lists.items() if parts},
        }
        if self.channels:
            motion = {"name": "motion", "channels": self.channels, "samplers": self.samplers}
            document["animations"] = [motion]
        chunks = []
        if self.data:
            document["buffers"] = [{"byteLength": len(self.data)}]
            chunks.append((b"BIN\0", bytes(self.data), b"\0"))
        text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        chunks.insert(0, (b"JSON", text, b" "))
        body = b""
        for kind, content, filler in chunks:
            padded = content + filler * (-len(content) % 4)
            body += struct.pack("<I4s", len(padded), kind) + padded
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body
