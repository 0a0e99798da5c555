"""Scattered data as a function: linear on the simplices of their Delaunay triangulation.

Legend: x are the coordinates scaled to 0..1 over the data, b the barycentric coordinates in a
simplex, affine in x: b = A (x, 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function.interpolation import read_at

__all__ = ["Scattered", "read_at"]

#: All simplices are looked at for each value: more than these make the program too large.
MOST = 1000


class Scattered:
    """A function through scattered points (k, n) with values (k,).

    Within the hull of the points it is what SciPy's LinearNDInterpolator gives for scaled
    coordinates; beyond, the nearest simplex goes on (`outside="extrapolate"`) or the weights of its
    corners are held at zero (`outside="hold"`).
    """

    def __init__(self, points: np.ndarray, values: np.ndarray, outside: str) -> None:
        from scipy.spatial import Delaunay, QhullError

        self.outside = outside
        self.low, self.size = points.min(axis=0), np.ptp(points, axis=0)
        if not np.all(self.size > 0.0) or len(points) <= points.shape[1]:
            raise ValueError("its points do not span the space of its variables")
        unit = (points - self.low) / self.size
        try:
            corners = Delaunay(unit).simplices
        except QhullError:
            raise ValueError("its points do not span the space of its variables") from None
        sides = np.concatenate([unit[corners], np.ones((*corners.shape, 1))], axis=-1)
        # Slivers of no volume on the hull hold no point.
        solid = np.abs(np.linalg.det(sides)) > 1e-12
        if not 0 < solid.sum() <= MOST:
            raise ValueError(f"it has {solid.sum()} simplices; at most {MOST} can be searched")
        #: A (n + 1, n + 1, simplices) and the values at the corners (n + 1, simplices).
        self.A = np.moveaxis(np.linalg.inv(sides[solid]), (2, 1), (0, 1)).copy()
        self.corner_values = values[corners[solid]].T.copy()

    def __call__(self, *coordinates: Any) -> Any:
        """Evaluate at one coordinate per variable; arrays elementwise."""
        x = [(c - low) / size for c, low, size in zip(coordinates, self.low, self.size)]
        x = [*np.broadcast_arrays(*x), 1.0] if len(x) > 1 else [*x, 1.0]
        every = [sum(a * np.asarray(c)[..., None] for a, c in zip(row, x)) for row in self.A]
        least = every[0]
        for b in every[1:]:
            least = np.minimum(least, b)
        k = np.argmax(least, axis=-1)
        weights = [sum(read_at(a, k) * c for a, c in zip(row, x)) for row in self.A]
        if self.outside == "hold":
            weights = [np.maximum(w, 0.0) for w in weights]
            total = sum(weights)
            weights = [w / total for w in weights]
        return sum(w * read_at(value, k) for w, value in zip(weights, self.corner_values))
