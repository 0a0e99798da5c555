"""What scene files share: bodies as key frames, meshes without flat triangles, colours.

Key frames have increasing times, finite positions and quaternions of length 1 whose signs do not
jump, so that whoever interpolates between them takes the short way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from archimedes.typing import Array
from archimedes.viewer.html import PATHS_OF_GHOSTS
from archimedes.viewer.meshes import dart
from archimedes.viewer.scene import Body, Ghosts, Mesh, Scene


class Moving(NamedTuple):
    """A body along its key frames: times (m,), positions (m, 3), quaternions (m, 4)."""

    name: str
    parent: str | None
    meshes: list[Mesh]
    t: Array
    position: Array
    attitude: Array

    @property
    def is_moving(self) -> bool:
        """Whether it is ever elsewhere than at first."""
        return any(np.any(x != x[0]) for x in (self.position, self.attitude))


def moving_bodies(scene: Scene, single: bool = False) -> list[Moving]:
    """Return the bodies of a scene, then its ghosts.

    With `single`, the times since the start of the scene differ in single precision.
    """
    scene.check()
    start = scene.span[0] if single else None
    every = [key_frames(body, start) for body in scene.bodies]
    taken = {body.name for body in every}
    for ghosts in scene.ghosts:
        for body in ghost_bodies(ghosts):
            name = body.name
            while name in taken:
                name += "'"
            taken.add(name)
            every.append(key_frames(replace(body, name=name), start))
    return every


def key_frames(body: Body, start: float | None) -> Moving:
    """Return a body along its key frames; with `start`, times differ in single precision after."""
    t = np.asarray(body.t, dtype=float)
    # Of samples at one time, the last counts.
    shown = t if start is None else (t - start).astype(np.float32)
    keep = np.append(shown[1:] > shown[:-1], True)
    q = np.array(body.attitude, dtype=float)[keep]
    sizes = np.linalg.norm(q, axis=1, keepdims=True)
    if np.any(sizes == 0.0):
        raise ValueError(f"body {body.name!r}: a quaternion of its attitude is zero")
    q = q / sizes
    flips = np.cumprod(np.append(1.0, np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0)))
    position = np.array(body.position, dtype=float)[keep]
    meshes = [solid for mesh in body.meshes if len((solid := without_flat(mesh)).triangles)]
    return Moving(body.name, body.parent, meshes, t[keep], position, flips[:, None] * q)


def ghost_bodies(ghosts: Ghosts) -> Iterator[Body]:
    """Yield flights of a batch as bodies, spread over it, at the times where they are known."""
    count = len(ghosts.position)
    chosen = np.unique(np.linspace(0, count - 1, min(count, PATHS_OF_GHOSTS)).round().astype(int))
    shape = dart()
    size = ghosts.size / max(float(np.ptp(shape.vertices, axis=0).max()), 1e-12)
    shape = replace(shape, vertices=size * shape.vertices, color=ghosts.color, opacity=0.5)
    for k in chosen.tolist():
        known = np.isfinite(ghosts.position[k]).all(axis=1)
        q = np.tile([1.0, 0.0, 0.0, 0.0], (len(ghosts.t), 1))
        if ghosts.attitude is not None:
            q = ghosts.attitude[k]
            known &= np.isfinite(q).all(axis=1)
        if known.any():
            name = f"{ghosts.name} {k}"
            yield Body(name, [shape], ghosts.t[known], ghosts.position[k][known], q[known])


def without_flat(mesh: Mesh) -> Mesh:
    """Return a mesh without triangles that have no area, in single precision."""
    a, b, c = np.moveaxis(mesh.vertices.astype(np.float32)[mesh.triangles].astype(float), 1, 0)
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    edges = np.maximum(np.linalg.norm(b - a, axis=1), np.linalg.norm(c - a, axis=1))
    return replace(mesh, triangles=mesh.triangles[areas > 1e-12 * edges * edges])


def linear_color(color: str) -> list[float]:
    """Return red, green and blue in proportion to light, as files have them (IEC 61966-2-1)."""
    sRGB = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    return np.where(sRGB <= 0.04045, sRGB / 12.92, ((sRGB + 0.055) / 1.055) ** 2.4).tolist()
