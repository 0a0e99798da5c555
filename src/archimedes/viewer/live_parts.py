"""Arrows and strip charts of a live view: what of them changes with time."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.viewer.scene import Arrow, Chart, Scene

__all__ = ["LiveArrow", "LiveChart", "at_time", "rgb"]

#: Points of a line in a chart of the live view: more would only be sent, not seen.
POINTS = 300
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9")


def rgb(color: str) -> tuple[int, int, int]:
    """Return "#rrggbb" as three numbers up to 255.

    >>> rgb("#ff8000")
    (255, 128, 0)
    """
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


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


def turned(q: Any, v: Any) -> Any:
    """Return a vector (3,) turned by a unit quaternion with its scalar first."""
    return v + 2.0 * np.cross(q[1:], np.cross(q[1:], v) + q[0] * v)


class LiveArrow:
    """A vector at a body; bodies that hang on others are followed up to the scene."""

    def __init__(self, server: Any, scene: Scene, arrow: Arrow, name: str) -> None:
        self.scene, self.arrow = scene, arrow
        body = scene.body(arrow.body)
        size = body.reach or body.radius
        self.handle = server.scene.add_arrows(
            name,
            np.zeros((1, 2, 3), dtype=np.float32),
            rgb(arrow.color),
            shaft_radius=0.02 * size,
            head_radius=0.05 * size,
            head_length=0.12 * size,
        )

    def go(self, t: float) -> None:
        """Put it where its body is at a time."""
        place, q = self._pose(self.arrow.body, t)
        start = place + turned(q, np.asarray(self.arrow.origin, dtype=float))
        along = self.arrow.scale * at_time(self.arrow.t, self.arrow.values, t)
        self.handle.points = np.stack([start, start + along])[None].astype(np.float32)

    def _pose(self, name: str, t: float) -> tuple[Any, Any]:
        body = self.scene.body(name)
        place = at_time(body.t, body.position, t)
        q = at_time(body.t, body.attitude, t, turning=True)
        if body.parent is None:
            return place, q
        p0, q0 = self._pose(body.parent, t)
        w, v = q0[0] * q[0] - q0[1:] @ q[1:], np.cross(q0[1:], q[1:])
        return p0 + turned(q0, place), np.concatenate([[w], q0[0] * q[1:] + q[0] * q0[1:] + v])


class LiveChart:
    """Lines over time and a dot on each where time stands; the title tells the values."""

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
            ({"label": "t (s)"}, *lines, *dots),
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
        return f"{self.chart.title}: {told} {self.chart.units}".rstrip()
