"""A satellite with wings of solar cells, and a rocket in stages, from the numbers of the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.viewer.meshes import X, box, cylinder, moved, revolve
from archimedes.viewer.scene import Mesh

__all__ = ["rocket_nose", "rocket_stage", "satellite"]

GOLD, CELLS, FRAME, WHITE, DARK = "#c9973c", "#24408e", "#aab2bd", "#e9edf2", "#3a4049"


def satellite(size: float = 1.0) -> list[Mesh]:
    """Return a box of an edge `size` in m with two wings along y and a dish towards x."""
    parts = [
        box([1.0, 1.0, 1.0], color=GOLD),
        moved(box([0.86, 0.86, 0.05], color=WHITE), [0, 0, 0.52]),
        moved(box([0.86, 0.86, 0.05], color=WHITE), [0, 0, -0.52]),
        revolve([[0.5, 0.05], [0.72, 0.06]], 10, color=FRAME),
        revolve([[0.72, 0.1], [0.78, 0.26], [0.9, 0.4], [0.88, 0.4]], 24, color=WHITE),
        revolve([[0.8, 0.02], [1.05, 0.02]], 8, color=DARK),
    ]
    for side in (-1.0, 1.0):
        boom = cylinder(0.03, 0.5, axis=[0, 1, 0], n=8, color=FRAME)
        parts.append(moved(boom, [0, side * 0.72, 0]))
        for k in range(3):
            middle = np.array([0.0, side * (1.45 + 1.0 * k), 0.0])
            parts.append(moved(box([0.98, 0.94, 0.035], color=FRAME), middle))
            for row in (-0.25, 0.25):
                cells = box([0.44, 0.84, 0.05], color=CELLS)
                parts.append(moved(cells, middle + np.array([row, 0.0, 0.0])))
    return [Mesh(size * m.vertices, m.triangles, m.color, m.opacity, m.crease) for m in parts]


def rocket_stage(bottom: float, length: float, radius: float, band: str) -> list[Mesh]:
    """Return a stage along x from `bottom` m up, with its engine below and a band of colour."""
    top = bottom + length
    bell = 0.85 * radius
    parts = [
        revolve([[bottom, radius], [top, radius]], 32, color=WHITE),
        revolve([[top - 0.35, 1.012 * radius], [top, 1.012 * radius]], 32, color=DARK),
        revolve([[bottom, 1.012 * radius], [bottom + 0.5, 1.012 * radius]], 32, color=band),
        revolve(
            [
                [bottom, 0.28 * bell],
                [bottom - 0.25 * bell, 0.4 * bell],
                [bottom - 1.2 * bell, bell],
            ],
            24,
            color=DARK,
        ),
    ]
    return parts


def rocket_nose(bottom: float, length: float, radius: float) -> list[Mesh]:
    """Return the ogive on top."""
    s = np.linspace(0.0, 1.0, 9)
    profile = np.stack([bottom + length * s, radius * np.sqrt(np.maximum(1.0 - s**1.7, 0.0))], 1)
    return [revolve(profile, 32, color="#d9dee5")]


def plume(length: float, radius: float) -> Mesh:
    """Return a flame from the origin towards -x."""
    s = np.linspace(0.0, 1.0, 7)
    profile = np.stack([-length * s, radius * (1.0 + 0.5 * s) * (1.0 - s**2) ** 0.5], axis=1)
    return revolve(profile[::-1], 20, color="#ffb347", opacity=0.55)


def landing_legs(radius: float, length: float, count: int = 4) -> list[Mesh]:
    """Return legs about the tail at x = 0, spread out."""
    parts = []
    for angle in 2.0 * np.pi * (np.arange(count) + 0.5) / count:
        out = np.array([0.0, np.cos(angle), np.sin(angle)])
        start, end = 0.9 * radius * out + length * X, (radius + 0.75 * length) * out - 0.45 * X
        parts.append(rod(start, end, 0.09 * radius + 0.02, color=DARK))
        parts.append(moved(cylinder(0.22 * radius, 0.06, axis=X, n=14, color=DARK), end))
    return parts


def rod(start: Any, end: Any, radius: float, **look: Any) -> Mesh:
    """Return a rod between two points."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    way = b - a
    return moved(
        cylinder(radius, float(np.linalg.norm(way)), axis=way, n=12, **look), 0.5 * (a + b)
    )
