"""A multirotor from its rotors, a car from its axles, a T-handle, and a body of no known shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.viewer.meshes import X, Y, Z, arrow, box, capsule, cylinder, moved, sphere
from archimedes.viewer.scene import Mesh
from archimedes.viewer.shapes.spacecraft import rod

__all__ = ["car", "multirotor", "plain_body", "t_handle"]

CARBON, ORANGE, LIGHT = "#343a43", "#e8743b", "#c9d0d9"


def multirotor(positions: Any) -> list[Mesh]:
    """Return a frame with an arm, a motor and a disc for each rotor at `positions` (n, 3)."""
    places = np.asarray(positions, dtype=float)
    reach = float(np.linalg.norm(places, axis=1).max())
    parts = [
        moved(capsule(0.16 * reach, 0.34 * reach, axis=X, color=LIGHT), [0, 0, -0.03 * reach]),
        moved(box([0.4 * reach, 0.22 * reach, 0.12 * reach], color=CARBON), [0, 0, 0.12 * reach]),
        moved(sphere(0.07 * reach, 14, color="#1d2127"), [0.34 * reach, 0, 0.08 * reach]),
    ]
    gap = float(np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1).min())
    for place in places:
        front = place[0] > 0.0
        parts.append(rod([0, 0, 0], place, 0.045 * reach, color=ORANGE if front else CARBON))
        parts.append(
            moved(
                cylinder(0.09 * reach, 0.16 * reach, n=16, color=CARBON), place - 0.06 * reach * Z
            )
        )
        disc = cylinder(0.44 * gap, 0.012 * reach, n=36, color="#9fb4cc", opacity=0.35)
        parts.append(moved(disc, place - 0.16 * reach * Z))
    for side in (-1.0, 1.0):
        y = 0.28 * reach * side
        foot = rod([-0.4 * reach, y, 0.42 * reach], [0.4 * reach, y, 0.42 * reach], 0.025 * reach)
        parts.append(foot)
        for x in (-0.22, 0.22):
            parts.append(
                rod([x * reach, 0.4 * y, 0.1 * reach], [x * reach, y, 0.42 * reach], 0.02 * reach)
            )
    return parts


def car(front: float, rear: float, track: float, height: float) -> list[Mesh]:
    """Return a car about its centre of mass: x forward, z down, wheels below the axles."""
    length, width = front + rear + 1.6, track + 0.25
    wheel = 0.32
    parts = [
        moved(box([length, width, 0.55], color="#c0392b"), [0.5 * (front - rear), 0, 0.0]),
        moved(box([0.52 * length, 0.86 * width, 0.5], color="#2b3440"), [-0.15, 0, -0.5]),
        moved(box([0.46 * length, 0.8 * width, 0.06], color="#c0392b"), [-0.15, 0, -0.77]),
    ]
    for x in (front, -rear):
        for y in (-0.5 * track, 0.5 * track):
            place = np.array([x, y, height - wheel])
            parts.append(moved(cylinder(wheel, 0.22, axis=Y, color="#20242a"), place))
            parts.append(moved(cylinder(0.6 * wheel, 0.235, axis=Y, color="#b8c0cc"), place))
    return parts


def t_handle(size: float = 1.0) -> list[Mesh]:
    """Return the handle that flips when it is spun: a bar along y on a stem along x."""
    return [
        cylinder(0.16 * size, 1.5 * size, axis=Y, color="#c9973c"),
        moved(cylinder(0.12 * size, 0.9 * size, axis=X, color="#aab2bd"), [0.45 * size, 0, 0]),
        moved(cylinder(0.17 * size, 0.12 * size, axis=X, color="#e8743b"), [0.92 * size, 0, 0]),
    ]


def plain_body(inertia: Any = None, mass: float | None = None, size: float = 1.0) -> list[Mesh]:
    """Return a block with an arrow ahead; with mass and inertia, the block that has them."""
    edges = np.array([1.0, 0.6, 0.3]) * size
    if inertia is not None and mass:
        J = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
        squares = 6.0 / float(mass) * (J.sum() - 2.0 * J)  # of a block: J1 = m (b^2 + c^2) / 12
        edges = np.sqrt(np.maximum(squares, 1e-4 * squares.max()))
    tip = 0.5 * float(edges[0])
    pointer = arrow(0.6 * tip, 0.06 * tip, color=ORANGE)
    return [box(edges, color=LIGHT), moved(pointer, [tip, 0, 0])]
