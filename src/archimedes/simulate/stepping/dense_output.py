"""Dense output: the state at any time of a solve, from the interpolants of its steps.

A step is a row of numbers: t_old, t, x_old, x and the interpolant, one after the other. One row is
one block of memory, which one kernel writes and another reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.function import stop_gradient
from archimedes.simulate.methods.method_table import evaluate_dense
from archimedes.simulate.problem.state_layout import Layout

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar

#: Columns of the times at which a step begins and ends.
START, END = 0, 1


def row_of(t_old: Array, t: Scalar, x_old: Array, x: Array, dense: Array) -> Any:
    """Return the row of a step; ``dense`` (degree, n) may be None."""
    parts = [np.stack([t_old, t]), x_old, x]
    if dense is not None:
        parts.append(np.reshape(dense, (-1,)))
    return np.concatenate(parts)


class RowLayout:
    """Where times, states and interpolants are in rows (..., width), for states of n numbers."""

    def __init__(self, size: int, degree: int) -> None:
        self.size, self.degree = size, degree
        self.width = 2 + 2 * size + degree * size

    def x_old(self, rows: Array) -> Any:
        """States at the beginning of each step, (..., n)."""
        return rows[..., 2 : 2 + self.size]

    def x(self, rows: Array) -> Any:
        """States at the end of each step, (..., n)."""
        return rows[..., 2 + self.size : 2 + 2 * self.size]

    def dense(self, rows: Array) -> Any:
        """Interpolants, (..., degree, n)."""
        return rows[..., 2 + 2 * self.size :].reshape(*rows.shape[:-1], self.degree, self.size)


def nan_unless(condition: Array, x: Array) -> Any:
    """Return x where the condition holds and nan elsewhere, with derivatives that are nan there.

    >>> nan_unless(np.array([True, False]), np.array([1.0, 2.0]))
    array([ 1., nan])
    """
    return x * np.where(condition, 1.0, np.nan)


def interpolate(
    t_old: Array,
    t_new: Array,
    x_old: Array,
    x: Array,
    dense: Array,
    t: Scalar,
    project: Callable[[Any], Any] | None,
) -> Any:
    """Return the state at t within a step; at its end exactly the state there."""
    length = t_new - t_old
    theta = (t - t_old) / np.where(length == 0.0, 1.0, length)
    between = x_old + evaluate_dense(dense, stop_gradient(theta))
    if project is not None:
        between = project(between)
    return np.where(t == t_new, x, between)


def state_in(parts: RowLayout, row: Array, t: Scalar, project: Callable[[Any], Any] | None) -> Any:
    """Return the state (n,) at t within the step of a row."""
    x_old, x, dense = parts.x_old(row), parts.x(row), parts.dense(row)
    return interpolate(row[START], row[END], x_old, x, dense, t, project)


@dataclass(slots=True, eq=False)
class DenseOutput:
    """``dense(t)`` is the state tree at t (a number, or an array that becomes leading axes).

    One row per step: from ``starts`` (s,) with state ``x`` (s, n) to ``ends`` (s,) with state
    ``x_ends`` (s, n), in between by coefficients (s, degree, n). At a time where one step ends and
    the next begins the earlier one is used.
    """

    starts: np.ndarray
    ends: np.ndarray
    x: np.ndarray
    x_ends: np.ndarray
    coefficients: np.ndarray
    layout: Layout
    project: Callable[[Any], Any] | None = None

    @classmethod
    def of_rows(
        cls,
        rows: np.ndarray,
        parts: RowLayout,
        layout: Layout,
        project: Callable[[Any], Any] | None,
    ) -> DenseOutput:
        """Make it from rows (s, width) of steps that follow each other."""
        x_old, x, dense = parts.x_old(rows), parts.x(rows), parts.dense(rows)
        return cls(rows[:, START], rows[:, END], x_old, x, dense, layout, project)

    def times_reached(self, times: np.ndarray) -> np.ndarray:
        """Return those of the times, sorted along the solve, that it reached."""
        if not len(self.starts):
            return times[:0]
        sign = self._sign()
        return times[: np.searchsorted(sign * times, sign * self.ends[-1], side="right")]

    def _sign(self) -> float:
        return 1.0 if self.ends[-1] >= self.starts[0] else -1.0

    def __call__(self, t: Scalar) -> Any:
        """Return the state tree at t; times outside the solve raise."""
        times = np.asarray(t, dtype=np.float64)
        rows = self.rows(times.ravel())
        return self.layout.unpack(rows.reshape(*times.shape, -1), times.shape)

    def rows(self, t: np.ndarray) -> np.ndarray:
        """Return the flat states at times (m,), shape (m, n)."""
        if not len(self.starts):
            raise ValueError("the solve made no step: there is nothing to interpolate")
        sign = self._sign()
        first, last = self.starts[0], self.ends[-1]
        outside = ~((sign * (t - first) >= 0.0) & (sign * (last - t) >= 0.0))
        if outside.any():
            raise ValueError(
                f"t = {t[outside][0]:.17g} is outside the part that was computed, "
                f"{first:.17g} to {last:.17g}"
            )
        at = np.searchsorted(sign * self.ends, sign * t)
        lengths = self.ends[at] - self.starts[at]
        # Only a solve's very first time can lie in a step without length, made by an event there.
        theta = (t - self.starts[at]) / np.where(lengths == 0.0, 1.0, lengths)
        moved = evaluate_dense(np.moveaxis(self.coefficients[at], 1, 0), theta[:, None])
        states = self.x[at] + moved
        if self.project is not None and len(t):
            states = self.project(states)
        return np.where((t == self.ends[at])[:, None], self.x_ends[at], states)


class BatchDense(Sequence[DenseOutput]):
    """The dense outputs of a batch: ``dense(t)`` has the instances along the first axis."""

    def __init__(self, parts: Iterable[DenseOutput]) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)):
            return self.parts[key]
        chosen = np.arange(len(self.parts))[key]
        return self.parts[chosen] if chosen.ndim == 0 else BatchDense(self.parts[k] for k in chosen)

    def __call__(self, t: Scalar) -> Any:
        """Return the state trees of all instances at t, a number or an array."""
        return tree.map(lambda *leaves: np.stack(leaves), *(part(t) for part in self.parts))
