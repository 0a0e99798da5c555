"""Shapes that go with a robot: what a viewer or a collision test needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """One shape on a body: `role` is "visual" or "collision", `kind` box, sphere, ..., mesh.

    `size` is (x, y, z) of a box, (radius,), (radius, length) or the scale of a mesh, whose `file`
    is a path, None where it was not found; `rotation` (3, 3) and `position` (3,) are in the body.
    """

    body: str
    role: str
    kind: str
    size: tuple[float, ...]
    rotation: np.ndarray
    position: np.ndarray
    file: Path | None = None
