"""Tables of a DAVE-ML model as functions of their independent variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.function import interpolant
from archimedes.function.interpolation import read_at
from archimedes.vehicles.dave_ml.scattered import Scattered

__all__ = ["EXTRAPOLATE", "INTERPOLATE", "Axis", "Lookup"]

#: `extrapolate` -> whether the table goes on below its first and above its last breakpoint.
EXTRAPOLATE = {
    "neither": (False, False),
    "min": (True, False),
    "max": (False, True),
    "both": (True, True),
}
#: `interpolate` -> how the table is read along that variable.
INTERPOLATE = {
    "linear": "linear",
    "discrete": "step",
    "floor": "step",
    "ceiling": "step",
    "cubicSpline": "cubic",
}
#: Points of a table that may enter one value.
MOST_CORNERS = 4096


@dataclass(frozen=True)
class Axis:
    """How one independent variable enters a table."""

    variable: str
    points: tuple[float, ...]
    least: float = -np.inf
    most: float = np.inf
    extrapolate: str = "neither"
    interpolate: str = "linear"

    def enter(self, x: Any) -> Any:
        """Return where a value of the variable enters the table."""
        low, high = self.points[0], self.points[-1]
        below, above = EXTRAPOLATE[self.extrapolate]
        step = INTERPOLATE[self.interpolate] == "step"
        # One bound on each side: the narrower of the variable's range and the table's end.
        lower = self.least if below and not step else max(self.least, low)
        upper = self.most if above and not step else min(self.most, high)
        x = x if lower == -np.inf else np.maximum(x, lower)
        x = x if upper == np.inf else np.minimum(x, upper)
        return self.step(x) if step else x

    def step(self, x: Any) -> Any:
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
            self.table = _gridded(name, self.moving, data)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables it is a function of."""
        return tuple(axis.variable for axis in self.axes)

    def __call__(self, values: Any) -> Any:
        """Read the table, given the values of variables by varID."""
        if not self.moving:
            return self.table
        return self.table(*(axis.enter(values[axis.variable]) for axis in self.moving))


def _gridded(name: str, axes: tuple[Axis, ...], data: np.ndarray) -> Any:
    kinds = {INTERPOLATE[axis.interpolate] for axis in axes} - {"step"}
    method = "cubic" if kinds == {"cubic"} else "linear"
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
