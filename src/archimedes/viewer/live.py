"""A scene shown live through viser, in a browser on this or another machine.

viser brings its own page and its own libraries; what a scene is made of is the same.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from archimedes.checks import check_type
from archimedes.display import axis_label
from archimedes.simulate.trajectory.exports import require
from archimedes.spatial.attitudes.quaternions import quaternion_multiply
from archimedes.typing import Array
from archimedes.viewer.html import bounds, round_number
from archimedes.viewer.scene import Arrow, Body, Chart, Scene

SPEEDS = ("0.1", "0.5", "1", "2", "5", "10", "100", "1000")
#: Points of a line in a chart of the live view: more would only be sent, not seen.
POINTS = 300
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9")


class Live:
    """A running server at `url`: `server` is viser's, `go(t)` moves to a time, `stop()` ends it."""

    def __init__(self, scene: Scene, port: int, host: str) -> None:
        viser = require("viser", "viewer", "View.live")
        check_type(host, "View.live: host", str, 'such as "127.0.0.1"')
        scene.check()
        self.scene = scene
        self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self.now = scene.span[0]
        self._over = threading.Event()
        self._handles = [self._add_body(k, body) for k, body in enumerate(scene.bodies)]
        self._ghosts = [self._add_ghosts(k) for k in range(len(scene.ghosts))]
        self._arrows = [
            LiveArrow(self.server, scene, arrow, f"/arrow{k}")
            for k, arrow in enumerate(scene.arrows)
        ]
        self._add_world()
        self._add_controls()
        self._charts = [LiveChart(self.server, chart) for chart in scene.charts]
        self._told = 0.0
        self._show(self.now)
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
        axes = {"axes_length": length, "axes_radius": 0.02 * length}
        handle = draw.add_frame(path, show_axes=body.framed, **axes)
        for j, mesh in enumerate(body.meshes):
            solid = mesh.vertices.astype(np.float32), mesh.triangles.astype(np.uint32)
            opacity = None if mesh.opacity >= 1.0 else mesh.opacity
            look = {"color": rgb(mesh.color), "opacity": opacity, "side": "double"}
            draw.add_mesh_simple(f"{path}/mesh{j}", *solid, **look)
        if body.trail and len(body.position) > 1:
            self._add_line(f"/trail{k}", body.position, body.color or "#f2662b", 2.5)
        return handle

    def _add_line(self, name: str, points: Array, color: str, width: float) -> None:
        pairs = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        wide = {"thickness": width, "thickness_units": "screen"}
        self.server.scene.add_line_segments(name, pairs, rgb(color), **wide)

    def _add_ghosts(self, k: int) -> Any:
        ghosts = self.scene.ghosts[k]
        points = np.nan_to_num(ghosts.position[:, 0]).astype(np.float32)
        look = {"colors": rgb(ghosts.color), "point_size": 0.25 * ghosts.size}
        return self.server.scene.add_point_cloud(f"/ghosts{k}", points, **look)

    def _add_world(self) -> None:
        draw, (centre, extent) = self.server.scene, bounds(self.scene)
        draw.set_up_direction("+z")
        for k, path in enumerate(self.scene.paths):
            self._add_line(f"/path{k}", path.points, path.color, 1.5)
        self._look(centre, extent)
        if self.scene.ground is not None:
            cell = self.scene.ground.cell or round_number(extent / 12.0)
            middle = (float(centre[0]), float(centre[1]), self.scene.ground.height)
            draw.add_grid("/ground", 4 * extent, 4 * extent, position=middle, cell_size=cell)
        if self.scene.earth is not None:
            draw.add_icosphere("/earth", self.scene.earth.radius, color=(30, 80, 140))

    def _look(self, centre: Array, extent: float) -> None:
        """Set the camera of new viewers to that of the scene."""
        camera = self.scene.camera
        body = self.scene.body(camera.body or self.scene.bodies[0].name)
        near = camera.mode in ("chase", "follow") and body.parent is None
        at = body.position[0] if near else centre if camera.target is None else camera.target
        size = body.reach or body.radius
        distance = camera.distance or (4.2 * size if near else 2.2 * extent)
        azimuth, elevation = np.deg2rad(camera.azimuth), np.deg2rad(camera.elevation)
        if camera.mode == "chase":
            w, x, y, z = body.attitude[0]
            azimuth += np.arctan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z))
        level = np.cos(elevation)
        out = [level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)]
        seen = self.server.initial_camera
        seen.up, seen.look_at = (0.0, 0.0, 1.0), tuple(map(float, at))
        seen.position = tuple(map(float, np.asarray(at) + distance * np.array(out)))
        seen.near, seen.far = 0.01 * distance, 20.0 * (extent + distance)

    # ---- time ----------------------------------------------------------------------------

    def _add_controls(self) -> None:
        first, last = self.scene.span
        gui = self.server.gui
        step = (last - first) / 2000.0 or 1.0
        limits = {"min": first, "max": max(last, first + step), "step": step}
        self._slider = gui.add_slider("time (s)", **limits, initial_value=first)
        self._playing = gui.add_checkbox("play", initial_value=True)
        self._speed = gui.add_dropdown("speed", options=SPEEDS, initial_value="1")
        self._follow = gui.add_checkbox("follow", initial_value=self.scene.earth is None)
        self._slider.on_update(lambda _: self._on_slider())

    def _on_slider(self) -> None:
        if abs(self._slider.value - self.now) > 1e-9:
            self.go(self._slider.value)

    def _target_position(self) -> Array:
        """Return where the body is that cameras follow."""
        body = self.scene.body(self.scene.camera.body or self.scene.bodies[0].name)
        return at_time(body.t, body.position, self.now) if body.parent is None else np.zeros(3)

    def go(self, t: float) -> None:
        """Stop at a time in s, and show the scene there."""
        self._playing.value = False
        self._show(t)

    def _show(self, t: float) -> None:
        before = self._target_position()
        self.now = float(t)
        self._slider.value = self.now
        if self._follow.value:
            shift = self._target_position() - before
            for client in self.server.get_clients().values():
                if client.camera.update_timestamp:  # of those that have looked already
                    client.camera.position = client.camera.position + shift
        for body, handle in zip(self.scene.bodies, self._handles):
            handle.position = at_time(body.t, body.position, self.now)
            handle.wxyz = at_time(body.t, body.attitude, self.now, turning=True)
        for ghosts, handle in zip(self.scene.ghosts, self._ghosts):
            here = np.nan_to_num(at_time(ghosts.t, ghosts.position, self.now))
            handle.points = here.astype(np.float32)
        for arrow in self._arrows:
            arrow.go(self.now)
        # Lines of charts are sent anew with every change: a few times a second are enough.
        stamp = time.monotonic()
        if not self._playing.value or stamp - self._told > 0.2:
            self._told = stamp
            for chart in self._charts:
                chart.go(self.now)

    def _play(self) -> None:
        before = time.monotonic()
        while not self._over.wait(1.0 / 30.0):
            stamp = time.monotonic()
            if self._playing.value:
                t = self.now + (stamp - before) * float(self._speed.value)
                first, last = self.scene.span
                self._show(first if t > last else t)
            before = stamp

    def stop(self) -> None:
        """End the server."""
        self._over.set()
        self._thread.join(5.0)
        self.server.stop()


# ---- what changes with time -------------------------------------------------------------


def rgb(color: str) -> tuple[int, int, int]:
    """Return "#rrggbb" as three numbers up to 255.

    >>> rgb("#ff8000")
    (255, 128, 0)
    """
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def at_time(t_all: Array, rows: Array, t: float, turning: bool = False) -> Array:
    """Interpolate rows at a time; quaternions take the shorter way and stay unit."""
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


def rotate(q: Array, v: Array) -> Array:
    """Return a vector (3,) rotated by a unit quaternion with its scalar first."""
    return v + 2.0 * np.cross(q[1:], np.cross(q[1:], v) + q[0] * v)


class LiveArrow:
    """A vector at a body, which may be attached to another body."""

    def __init__(self, server: Any, scene: Scene, arrow: Arrow, name: str) -> None:
        self.scene, self.arrow = scene, arrow
        body = scene.body(arrow.body)
        size = body.reach or body.radius
        points = np.zeros((1, 2, 3), dtype=np.float32)
        form = {"shaft_radius": 0.02 * size, "head_radius": 0.05 * size, "head_length": 0.12 * size}
        self.handle = server.scene.add_arrows(name, points, rgb(arrow.color), **form)

    def go(self, t: float) -> None:
        """Put it where its body is at a time."""
        position, q = self._pose(self.arrow.body, t)
        start = position + rotate(q, np.asarray(self.arrow.origin, dtype=float))
        along = self.arrow.scale * at_time(self.arrow.t, self.arrow.values, t)
        self.handle.points = np.stack([start, start + along])[None].astype(np.float32)

    def _pose(self, name: str, t: float) -> tuple[Array, Array]:
        body = self.scene.body(name)
        position = at_time(body.t, body.position, t)
        q = at_time(body.t, body.attitude, t, turning=True)
        if body.parent is None:
            return position, q
        p0, q0 = self._pose(body.parent, t)
        return p0 + rotate(q0, position), np.asarray(quaternion_multiply(q0, q))


class LiveChart:
    """Lines over time with a dot at the current time; the title shows the values."""

    def __init__(self, server: Any, chart: Chart) -> None:
        self.chart = chart
        picked = np.unique(np.linspace(0, len(chart.t) - 1, POINTS).astype(int))
        self.t, self.rows = chart.t[picked], chart.values[:, picked]
        lines = tuple(
            {"label": label or chart.title, "stroke": CYCLE[k % len(CYCLE)], "width": 2}
            for k, label in enumerate(chart.labels)
        )
        dots = tuple(
            {"label": "now", "stroke": line["stroke"], "width": 0, "points": {"show": True}}
            for line in lines
        )
        self.handle = server.gui.add_uplot(
            self._data(self.t[0]),
            ({"label": "time (s)"}, *lines, *dots),
            title=self._title(self.t[0]),
            # Ranges are given: where time is not there are no dots, nan, of which none follows.
            scales={"x": {"time": False}, "y": {"range": self._range()}},
            legend={"show": False},
            height=150,
        )

    def go(self, t: float) -> None:
        """Move the dots to a time, and say what the values are."""
        self.handle.data = self._data(t)
        self.handle.title = self._title(t)

    def _range(self) -> tuple[float, float]:
        known = self.rows[np.isfinite(self.rows)]
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        rest = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        return float(low - rest), float(high + rest)

    def _data(self, t: float) -> tuple[np.ndarray, ...]:
        here = int(np.argmin(np.abs(self.t - t)))
        dots = np.full(self.rows.shape, np.nan)
        dots[:, here] = self.rows[:, here]
        return (self.t, *self.rows, *dots)

    def _title(self, t: float) -> str:
        now = at_time(self.chart.t, self.chart.values.T, t)
        names = [f"{label} " if label else "" for label in self.chart.labels]
        told = ", ".join(f"{name}{value:.4g}" for name, value in zip(names, now))
        return f"{axis_label(self.chart.title, self.chart.units)}: {told}"
