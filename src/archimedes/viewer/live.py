"""A scene shown live through viser, in a browser on this or another machine.

viser brings its own page and its own libraries; what a scene is made of is the same.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from archimedes.simulate.trajectory.exports import require
from archimedes.viewer.packing import bounds, round_number
from archimedes.viewer.scene import Body, Scene

__all__ = ["Live", "serve"]

SPEEDS = ("0.1", "0.5", "1", "2", "5", "10", "100", "1000")


def at_time(t_all: Any, rows: Any, t: float, turning: bool = False) -> np.ndarray:
    """Return the row at a time: straight between two, quaternions the short way and unit."""
    k = int(np.clip(np.searchsorted(t_all, t, side="right") - 1, 0, max(len(t_all) - 2, 0)))
    after = min(k + 1, len(t_all) - 1)
    step = t_all[after] - t_all[k]
    part = float(np.clip((t - t_all[k]) / step, 0.0, 1.0)) if step > 0.0 else 0.0
    a, b = rows[..., k, :], rows[..., after, :]
    if not turning:
        return a + part * (b - a)
    sign = np.where(np.sum(a * b, axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    q = a + part * (sign * b - a)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


class Live:
    """A running server: `server` is viser's, `go(t)` moves to a time, `stop()` ends it."""

    def __init__(self, scene: Scene, port: int) -> None:
        viser = require("viser", "viewer", "View.live")
        scene.check()
        self.scene = scene
        self.server = viser.ViserServer(port=port, verbose=False)
        self.now = scene.span[0]
        self._over = threading.Event()
        self._handles = [self._add_body(k, body) for k, body in enumerate(scene.bodies)]
        self._ghosts = [self._add_ghosts(k) for k in range(len(scene.ghosts))]
        self._add_world()
        self._add_controls()
        self.go(self.now)
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    # ---- what is drawn -------------------------------------------------------------------

    def _path(self, k: int) -> str:
        parent = self.scene.bodies[k].parent
        names = [b.name for b in self.scene.bodies]
        return f"{'' if parent is None else self._path(names.index(parent))}/body{k}"

    def _add_body(self, k: int, body: Body) -> Any:
        draw, path = self.server.scene, self._path(k)
        length = 1.25 * (body.radius if body.meshes else body.reach)
        handle = draw.add_frame(
            path, show_axes=body.framed, axes_length=length, axes_radius=0.02 * length
        )
        for j, mesh in enumerate(body.meshes):
            rgb = tuple(int(mesh.color[i : i + 2], 16) for i in (1, 3, 5))
            draw.add_mesh_simple(
                f"{path}/mesh{j}",
                mesh.vertices.astype(np.float32),
                mesh.triangles.astype(np.uint32),
                color=rgb,
                opacity=None if mesh.opacity >= 1.0 else mesh.opacity,
                side="double",
            )
        if body.trail and len(body.position) > 1:
            self._add_line(f"/trail{k}", body.position, body.color or "#f2662b", 2.5)
        return handle

    def _add_line(self, name: str, points: Any, color: str, width: float) -> None:
        rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        pairs = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        colors = np.broadcast_to(np.array(rgb, dtype=np.uint8), pairs.shape)
        self.server.scene.add_line_segments(name, pairs, colors, line_width=width)

    def _add_ghosts(self, k: int) -> Any:
        ghosts = self.scene.ghosts[k]
        rgb = tuple(int(ghosts.color[i : i + 2], 16) for i in (1, 3, 5))
        places = np.nan_to_num(ghosts.position[:, 0]).astype(np.float32)
        return self.server.scene.add_point_cloud(
            f"/ghosts{k}", places, colors=rgb, point_size=0.25 * ghosts.size
        )

    def _add_world(self) -> None:
        draw, (centre, extent) = self.server.scene, bounds(self.scene)
        draw.set_up_direction("+z")
        for k, path in enumerate(self.scene.paths):
            self._add_line(f"/path{k}", path.points, path.color, 1.5)
        if self.scene.ground is not None:
            cell = self.scene.ground.cell or round_number(extent / 12.0)
            place = (float(centre[0]), float(centre[1]), self.scene.ground.height)
            draw.add_grid("/ground", 4 * extent, 4 * extent, position=place, cell_size=cell)
        if self.scene.earth is not None:
            draw.add_icosphere("/earth", self.scene.earth.radius, color=(30, 80, 140))

    # ---- time ----------------------------------------------------------------------------

    def _add_controls(self) -> None:
        first, last = self.scene.span
        gui = self.server.gui
        step = (last - first) / 2000.0 or 1.0
        self._slider = gui.add_slider(
            "time (s)", min=first, max=max(last, first + step), step=step, initial_value=first
        )
        self._playing = gui.add_checkbox("play", initial_value=False)
        self._speed = gui.add_dropdown("speed", options=SPEEDS, initial_value="1")
        self._slider.on_update(lambda _: self.go(self._slider.value))

    def go(self, t: float) -> None:
        """Show the scene at a time in s."""
        self.now = float(t)
        for body, handle in zip(self.scene.bodies, self._handles):
            handle.position = at_time(body.t, body.position, self.now)
            handle.wxyz = at_time(body.t, body.attitude, self.now, turning=True)
        for ghosts, handle in zip(self.scene.ghosts, self._ghosts):
            here = np.nan_to_num(at_time(ghosts.t, ghosts.position, self.now))
            handle.points = here.astype(np.float32)

    def _play(self) -> None:
        before = time.monotonic()
        while not self._over.wait(1.0 / 30.0):
            stamp = time.monotonic()
            if self._playing.value:
                t = self.now + (stamp - before) * float(self._speed.value)
                first, last = self.scene.span
                self._slider.value = first if t > last else t
                self.go(self._slider.value)
            before = stamp

    def stop(self) -> None:
        """End the server."""
        self._over.set()
        self._thread.join(5.0)
        self.server.stop()


def serve(scene: Scene, port: int = 8080) -> Live:
    """Start a server that shows a scene; it says its address, and ends with `stop()`."""
    return Live(scene, port)
