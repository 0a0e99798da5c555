"""``interpolant``: tables as functions, 1-D to n-D, linear and cubic.

Written in plain NumPy, so that it runs eagerly, recorded and in every backend alike. Tables are
constants. NumPy offers no protocol for traced indices into plain arrays: reading a table at one
becomes a lookup node (``read_at``, ``look_up``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_choice, check_finite, check_increasing, is_traced
from archimedes.symbolic.core.indexing import read_table

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["Interpolant", "interpolant"]


def read_at(table: np.ndarray, index: Any) -> Any:
    """Return the elements of a constant 1-D table at an index, or an array of them.

    Traced positions outside the table give its ends.

    >>> read_at(np.array([1.0, 3.0, 9.0]), 2)
    np.float64(9.0)
    """
    return read_table(table, index) if is_traced(index) else np.take(table, index)


def look_up(table: np.ndarray, index: Any) -> Any:
    """Return ``table[index]`` along the first axis of a table of floats, also where it is traced.

    >>> look_up(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([3., 4.])
    """
    if not is_traced(index) or is_traced(table):
        return table[index]
    width = int(np.prod(table.shape[1:], dtype=int))
    flat = np.ascontiguousarray(table, dtype=np.float64).reshape(-1)
    positions: Any = np.reshape(index * width, (*index.shape, 1)) + np.arange(width)
    return np.reshape(read_table(flat, positions), (*index.shape, *table.shape[1:]))


class Axis:
    """One grid axis: finds the interval of a point, evenly spaced grids without a search."""

    def __init__(self, points: ArrayLike, name: str, data: bool = False) -> None:
        #: Whether no point of the grid may become part of the code: other grids share it.
        self.data = data
        self.grid, self.name = np.array(points, dtype=np.float64), name
        check_increasing(self.grid, f"interpolant: grid axis {name}")

    def interval(self, x: Scalar) -> Array:
        """Return the last k for which grid[k] is at or before x, for the interval that follows."""
        last = len(self.grid) - 2
        index = np.isnan(x).astype(np.int64) if self.data else np.zeros_like(x, dtype=np.int64)
        # Binary search by powers of two, from the largest jump down.
        jump = 1 << max(last.bit_length() - 1, 0)
        while jump:
            ahead = np.minimum(index + jump, last)
            index = np.where(x >= read_at(self.grid, ahead), np.maximum(index, ahead), index)
            jump //= 2
        # Jumps that were cut at the end may leave one step to take.
        ahead = np.minimum(index + 1, last)
        return np.where(x >= read_at(self.grid, ahead), ahead, index)


class Interpolant:
    """A table as a function of its coordinates, made by :func:`interpolant`.

    Parameters
    ----------
    axes : list of Axis
        Coordinates along each axis.
    data : array
        Values or spline coefficients.
    method : str
        ``"linear"`` or ``"cubic"``.
    outside : str
        What happens beyond the grid, as in :func:`interpolant`.
    name : str
        Name of the function.
    ret_name : str, optional
        Name of the result.

    Examples
    --------
    >>> import archimedes as arc
    >>> table = arc.interpolant([[0.0, 1.0, 2.0]], [0.0, 10.0, 40.0])
    >>> float(table(1.5))
    25.0
    """

    def __init__(
        self,
        axes: list[Axis],
        data: np.ndarray,
        method: str,
        outside: str,
        name: str,
        ret_name: str | None = None,
    ):
        #: Names of function, coordinates and value.
        self.name = name
        self.arg_names = tuple(axis.name for axis in axes)
        self.return_names = (ret_name or f"{name}_value",)
        self.axes, self.data, self.method, self.outside = axes, data, method, outside
        self.__name__ = name
        self._basis = [(Linear if method == "linear" else Cubic)(axis) for axis in axes]
        coefficients = data
        for k, basis in enumerate(self._basis):
            coefficients = basis.fit(coefficients, k)
        self._flat = np.ascontiguousarray(coefficients).ravel()
        self._shape = coefficients.shape

    def __repr__(self) -> str:
        names = ", ".join(self.arg_names)
        return f"<interpolant {self.__name__}({names}), {self.method}, {self.data.shape} points>"

    def __call__(self, *coordinates: Scalar, **named: Scalar) -> Array:
        """Evaluate at one coordinate per axis, in order or by name; arrays elementwise."""
        rest = self.arg_names[len(coordinates) :]
        if named and set(named) == set(rest):
            coordinates = (*coordinates, *(named[name] for name in rest))
        elif named:
            raise TypeError(
                f"{self.__name__}() takes the coordinates {list(self.arg_names)}, got "
                f"{len(coordinates)} in order and {sorted(named)} by name"
            )
        if len(coordinates) != len(self.axes):
            names = list(self.arg_names)
            raise TypeError(
                f"{self.__name__}() takes {len(names)} coordinates {names}, got {len(coordinates)}"
            )
        points: list[Any] = [
            c if hasattr(c, "ndim") else np.asarray(c, dtype=float) for c in coordinates
        ]
        inside: Any = True
        weights, starts = [], []
        for axis, basis, x in zip(self.axes, self._basis, points):
            x = x * 1.0
            low, high = axis.grid[0], axis.grid[-1]
            if self.outside == "nan":
                inside = inside & (x >= low) & (x <= high)
            if self.outside != "extrapolate":
                x = np.clip(x, low, high)
            k = axis.interval(x)
            weights.append(basis.weights(x, k))
            starts.append(basis.start(k))
        strides = [int(np.prod(self._shape[k + 1 :], dtype=int)) for k in range(len(starts))]
        base = sum(k * stride for k, stride in zip(starts, strides))
        total: Any = 0.0
        for corner in itertools.product(*(range(len(w)) for w in weights)):
            offset = sum(c * stride for c, stride in zip(corner, strides))
            term = read_at(self._flat, base + offset)
            for c, w in zip(corner, weights):
                term = term * w[c]
            total = total + term
        if self.outside == "nan":
            total = np.where(inside, total, np.nan)
        return total


class Linear:
    """Weights of the two ends of an interval."""

    def __init__(self, axis: Axis) -> None:
        self.grid = axis.grid

    def fit(self, data: np.ndarray, axis: int) -> np.ndarray:
        """Linear interpolation uses the data as they are."""
        return data

    def start(self, k: Array) -> Array:
        """Return the first row of the table that interval k reads."""
        return k

    def weights(self, x: Array, k: Array) -> list[Array]:
        """Return the weights of points k and k + 1."""
        left, right = read_at(self.grid, k), read_at(self.grid, k + 1)
        s = (x - left) / (right - left)
        return [1.0 - s, s]


class Cubic:
    """Weights of the four B-splines that cover an interval (not-a-knot end conditions)."""

    def __init__(self, axis: Axis) -> None:
        if len(axis.grid) < 4:
            raise ValueError(
                f"interpolant: method='cubic' needs at least 4 points along {axis.name}, got "
                f"{len(axis.grid)}; use method='linear'"
            )
        self.grid = axis.grid
        # Not-a-knot: the second and the last but one grid points are not knots.
        inner = axis.grid[2:-2]
        self.knots = np.concatenate([[axis.grid[0]] * 4, inner, [axis.grid[-1]] * 4])
        last = len(axis.grid) - 2
        # Grid interval -> first of the four splines that are non-zero there.
        self.first = np.clip(np.arange(last + 1) - 1, 0, len(axis.grid) - 4)

    def fit(self, data: np.ndarray, axis: int) -> np.ndarray:
        """Return spline coefficients along one axis of the data.

        Row i of the equations says that the spline has the value of the data at point i. They are
        solved by elimination without exchanges, which such equations do not need (de Boor, A
        Practical Guide to Splines, chapter XIII), in an order that no processor changes.
        """
        n = len(self.grid)
        first = self.first[np.minimum(np.arange(n), n - 2)]
        band = np.zeros((n, 7))  # column c of row i is at c - i + 3
        basis = _cubic_basis(self.grid, [self.knots[first + 1 + j] for j in range(6)])
        for j, values in enumerate(basis):
            band[np.arange(n), first + j - np.arange(n) + 3] = values
        rows, right = band.tolist(), np.array(np.moveaxis(data, axis, 0))
        for i in range(n):
            for k in range(i + 1, min(i + 3, n)):
                factor = rows[k][i - k + 3] / rows[i][3]
                for c in range(i, i + 4):
                    rows[k][c - k + 3] -= factor * rows[i][c - i + 3]
                right[k] -= factor * right[i]
        for i in reversed(range(n)):
            for k in range(i + 1, min(i + 4, n)):
                right[i] -= rows[i][k - i + 3] * right[k]
            right[i] /= rows[i][3]
        return np.moveaxis(right, 0, axis)

    def start(self, k: Array) -> Array:
        """Return the first row of the table that interval k reads."""
        return read_at(self.first, k)

    def weights(self, x: Array, k: Array) -> list[Array]:
        """Return the four B-spline values at x."""
        first = self.start(k)
        return _cubic_basis(x, [read_at(self.knots, first + 1 + j) for j in range(6)])


def _cubic_basis(x: Array, t: Sequence[Array]) -> list[Any]:
    """Return the values of the four cubic B-splines on [t[2], t[3]], from the six knots around it.

    de Boor, A Practical Guide to Splines, chapter X, (8).
    """
    values = [1.0]
    for degree in (1, 2, 3):
        right = [t[2 + r] - x for r in range(1, degree + 1)]
        left = [x - t[3 - r] for r in range(1, degree + 1)]
        saved: Any = 0.0
        new = []
        for r in range(degree):
            part = values[r] / (right[r] + left[degree - 1 - r])
            new.append(saved + right[r] * part)
            saved = left[degree - 1 - r] * part
        values = [*new, saved]
    return values


def interpolant(
    grid: Sequence[ArrayLike] | Array,
    data: ArrayLike,
    method: str = "linear",
    arg_names: Sequence[str] | None = None,
    ret_name: str | None = None,
    name: str | None = None,
    *,
    outside: str = "clamp",
) -> Interpolant:
    """Return a function that interpolates tabulated data.

    Parameters
    ----------
    grid : array_like (n,) or sequence of them
        Coordinates along each axis, increasing. A single array for a table of one dimension.
    data : array_like
        Values with one axis for each array of `grid`, or one vector of all values in Fortran order
        (the first axis fastest).
    method : {"linear", "cubic"}, optional
        Multilinear interpolation, or a tensor-product cubic spline with two continuous derivatives
        and not-a-knot ends. ``"bspline"`` is another name of the latter.
    arg_names : sequence of str, optional
        Names of the coordinates, by which they can be given.
    ret_name : str, optional
        Name of the result.
    name : str, optional
        Name of the function.
    outside : {"clamp", "extrapolate", "nan"}, optional
        What happens beyond the grid: the value at the edge with zero slope, the continuation of the
        outermost piece, or nan.

    Returns
    -------
    Interpolant
        Function of one coordinate for each axis.

    Examples
    --------
    >>> f = interpolant([[0.0, 1.0, 2.0]], [0.0, 10.0, 40.0])
    >>> float(f(1.5)), float(f(9.0))
    (25.0, 40.0)
    """
    values = np.array(data, dtype=np.float64)
    if not hasattr(grid, "__len__") or len(grid) == 0:
        raise ValueError(
            "interpolant: grid must be a list of 1-D arrays, one for each axis of data, got "
            f"{grid!r}"
        )
    axes_given: Sequence[Any] = [grid] if np.ndim(grid[0]) == 0 else list(grid)
    names = list(arg_names) if arg_names is not None else [f"x{k}" for k in range(len(axes_given))]
    if len(names) != len(axes_given):
        raise ValueError(
            f"interpolant: arg_names lists {len(names)} names for {len(axes_given)} axes"
        )
    method = "cubic" if method == "bspline" else method
    check_choice(method, "interpolant: method", ("linear", "cubic"))
    check_choice(outside, "interpolant: outside", ("clamp", "extrapolate", "nan"))
    axes = [Axis(points, axis_name) for points, axis_name in zip(axes_given, names)]
    shape = tuple(len(axis.grid) for axis in axes)
    if values.ndim == 1 and len(shape) > 1 and values.size == int(np.prod(shape)):
        values = values.reshape(shape, order="F")
    if values.shape != shape:
        raise ValueError(f"interpolant: data has shape {values.shape}, but the grid is {shape}")
    check_finite(values, "interpolant: data")
    title = name or ret_name or "interpolant"
    return Interpolant(axes, values, method, outside, title, ret_name)
