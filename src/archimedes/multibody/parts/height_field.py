"""Terrain as heights on a grid."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from archimedes.checks import check_positive, check_shape
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["HeightField"]


class HeightField:
    """Heights on a grid, with two triangles in each cell, as MuJoCo and others have them.

    It is never changed, and its numbers must be known: a recorded function has them as a table.
    ``field(x, y)`` is the height at a place, so that ``Ground(height=field)`` takes it.

    Parameters
    ----------
    heights : array (rows, columns)
        Heights in m. Columns go along x, rows along y, both at least 2.
    size : (float, float)
        Lengths in m of the whole along x and y. Its middle is at the origin.

    Examples
    --------
    >>> from archimedes.multibody import HeightField
    >>> ramp = HeightField([[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]], size=(4.0, 2.0))
    >>> ramp, float(ramp(1.0, 0.0))
    (HeightField(2 x 3, 4 m x 2 m), 0.75)
    """

    __slots__ = ("digest", "heights", "size")

    def __init__(self, heights: ArrayLike, size: tuple[float, float]) -> None:
        table = np.array(heights, dtype=float)
        if table.ndim != 2 or min(table.shape) < 2:
            raise ValueError(
                f"HeightField heights must be (rows, columns) of at least 2, got {table.shape}"
            )
        if not np.isfinite(table).all():
            raise ValueError("HeightField heights must be finite, got nan or inf")
        check_shape(np.array(size, dtype=float), "HeightField size, along x and y,", (2,))
        check_positive(np.array(size, dtype=float), "HeightField size", "m")
        x, y = size
        self.heights, self.size = table, (float(x), float(y))
        table.flags.writeable = False
        data = repr((table.shape, self.size)).encode() + table.tobytes()
        self.digest = hashlib.blake2b(data, digest_size=16).digest()

    @property
    def spacing(self) -> tuple[float, float]:
        """The lengths of a cell in m along x and y."""
        rows, columns = self.heights.shape
        return self.size[0] / (columns - 1), self.size[1] / (rows - 1)

    def __call__(self, x: Scalar, y: Scalar) -> Any:
        """Return the height at a place; beyond the edges it is that of the edge."""
        rows, columns = self.heights.shape
        dx, dy = self.spacing
        c = np.minimum(np.maximum(x / dx + 0.5 * (columns - 1), 0.0), columns - 1.0)
        r = np.minimum(np.maximum(y / dy + 0.5 * (rows - 1), 0.0), rows - 1.0)
        column, row = whole(c, columns - 2), whole(r, rows - 2)
        u, w = c - column, r - row
        at = row * columns + column
        flat = self.heights.ravel()
        first, last = np.take(flat, at), np.take(flat, at + columns + 1)
        beside = np.take(flat, np.where(u >= w, at + 1, at + columns))
        along = np.where(u >= w, u, w)
        return first + along * (beside - first) + np.where(u >= w, w, u) * (last - beside)

    def triangles(self) -> tuple[Array, Array]:
        """Return vertices (n, 3) in m, and the numbers of those of each triangle (m, 3)."""
        rows, columns = self.heights.shape
        x = np.linspace(-0.5, 0.5, columns) * self.size[0]
        y = np.linspace(-0.5, 0.5, rows) * self.size[1]
        X, Y = np.meshgrid(x, y)
        vertices = np.stack([X.ravel(), Y.ravel(), self.heights.ravel()], axis=1)
        first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
        below = np.stack([first, first + 1, first + columns + 1], axis=1)
        above = np.stack([first, first + columns + 1, first + columns], axis=1)
        return vertices, np.concatenate([below, above])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeightField) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        rows, columns = self.heights.shape
        return f"HeightField({rows} x {columns}, {self.size[0]:g} m x {self.size[1]:g} m)"

    def __reduce__(self) -> tuple[Any, ...]:
        return HeightField, (self.heights, self.size)

    def __content__(self) -> tuple[bytes]:
        return (self.digest,)


def whole(x: Scalar, most: int) -> Array:
    """Return the largest integer below a number that is not negative, at most so much."""
    return np.minimum(np.floor(x), 1.0 * most).astype(np.int64)
