"""Dense output: the state at any time of a solve, from the interpolants of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate.methods.method_table import evaluate_dense
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.stepping.step_rows import END, START, RowLayout

__all__ = ["BatchDense", "DenseOutput"]


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

    def reached(self, times: np.ndarray) -> np.ndarray:
        """Return those of the times, sorted along the solve, that it reached."""
        if not len(self.starts):
            return times[:0]
        sign = self._sign()
        return times[: np.searchsorted(sign * times, sign * self.ends[-1], side="right")]

    def _sign(self) -> float:
        return 1.0 if self.ends[-1] >= self.starts[0] else -1.0

    def __call__(self, t: Any) -> Any:
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
        found = self.x[at] + moved
        if self.project is not None and len(t):
            found = self.project(found)
        return np.where((t == self.ends[at])[:, None], self.x_ends[at], found)


class BatchDense(Sequence[DenseOutput]):
    """The dense outputs of a batch: ``dense(t)`` has the instances along the first axis."""

    def __init__(self, parts: Iterable[DenseOutput]) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)):
            return self.parts[key]
        places = np.arange(len(self.parts))[key]
        return self.parts[places] if places.ndim == 0 else BatchDense(self.parts[k] for k in places)

    def __call__(self, t: Any) -> Any:
        """Return the state trees of all instances at t, a number or an array."""
        return tree.map(lambda *leaves: np.stack(leaves), *(part(t) for part in self.parts))
