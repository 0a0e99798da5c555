"""Tables of a DAVE-ML model as functions of their independent variables.

Scattered data are linear on the simplices of their Delaunay triangulation. Legend: x are the
coordinates scaled to 0..1 over the data, b the barycentric coordinates in a simplex, affine in x:
b = A (x, 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.function import interpolant
from archimedes.function.interpolation import read_at
from archimedes.typing import Scalar

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


#: `extrapolate`: where the table goes on, below its first and above its last breakpoint.
EXTRAPOLATE = ("neither", "min", "max", "both")
#: `interpolate`: how the table is read along that variable, and those that read it in steps.
INTERPOLATE = ("linear", "discrete", "floor", "ceiling", "cubicSpline")
STEPS = ("discrete", "floor", "ceiling")
#: Points of a table that may enter one value.
MOST_CORNERS = 4096


def limit(x: Scalar, least: float, most: float) -> Any:
    """Hold a value between two bounds, of which either may be infinite."""
    x = x if least == -np.inf else np.maximum(x, least)
    return x if most == np.inf else np.minimum(x, most)


@dataclass(frozen=True)
class Axis:
    """How one independent variable enters a table."""

    variable: str
    points: tuple[float, ...]
    least: float = -np.inf
    most: float = np.inf
    extrapolate: str = "neither"
    interpolate: str = "linear"

    def enter(self, x: Scalar) -> Any:
        """Return where a value of the variable enters the table."""
        step = self.interpolate in STEPS
        # One bound on each side: the narrower of the variable's range and the table's end.
        lower, upper = max(self.least, self.points[0]), min(self.most, self.points[-1])
        if self.extrapolate in ("min", "both") and not step:
            lower = self.least
        if self.extrapolate in ("max", "both") and not step:
            upper = self.most
        x = limit(x, lower, upper)
        return self.step(x) if step else x

    def step(self, x: Scalar) -> Any:
        """Return the breakpoint that holds at x."""
        points = np.array(self.points)
        if self.interpolate == "ceiling":
            k = np.searchsorted(points[:-1], x, side="left")
        else:
            ends = points[1:] if self.interpolate == "floor" else (points[1:] + points[:-1]) / 2.0
            k = np.searchsorted(ends, x, side="right")
        return np.where(np.isnan(x), np.nan, read_at(points, k))


class Lookup:
    """A table read at the values of its independent variables.

    `data` are the values at the breakpoints, the last axis fastest, or rows (points, n + 1) of
    coordinates and value.
    """

    def __init__(self, name: str, axes: tuple[Axis, ...], data: np.ndarray) -> None:
        self.name = name
        self.axes = axes
        # A variable with one breakpoint does not matter to the table.
        self.moving = tuple(axis for axis in axes if len(axis.points) > 1)
        self.table: Any = float(data.ravel()[0])
        if data.ndim == 2:
            self.moving = axes
            on = all(axis.extrapolate == "both" for axis in axes)
            self.table = Scattered(data[:, :-1], data[:, -1], "extrapolate" if on else "hold")
        elif self.moving:
            self.table = _interpolate_grid(name, self.moving, data)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables it is a function of."""
        return tuple(axis.variable for axis in self.axes)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Read the table, given the values of variables by varID."""
        if not self.moving:
            return self.table
        return self.table(*(axis.enter(values[axis.variable]) for axis in self.moving))


def _interpolate_grid(name: str, axes: tuple[Axis, ...], data: np.ndarray) -> Any:
    kinds = {axis.interpolate for axis in axes} - {*STEPS}
    method = "cubic" if kinds == {"cubicSpline"} else "linear"
    corners = (4 if method == "cubic" else 2) ** len(axes)
    if corners > MOST_CORNERS:
        raise ValueError(
            f"{len(axes)} variables need {corners} points for one value; at most {MOST_CORNERS}"
        )
    return interpolant(
        [np.array(axis.points) for axis in axes],
        data.reshape([len(axis.points) for axis in axes]),
        method=method,
        name=name,
        outside="extrapolate",
    )
