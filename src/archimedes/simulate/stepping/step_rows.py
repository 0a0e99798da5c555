"""A step as a row of numbers: t_old, t, x_old, x and the interpolant, one after the other.

One row is one block of memory, which one kernel writes and another reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.simulate.methods.method_table import evaluate_dense

__all__ = ["END", "START", "RowLayout", "interpolated", "known", "row_of", "state_in"]

#: Columns of the times at which a step begins and ends.
START, END = 0, 1


def row_of(t_old: Any, t: Any, x_old: Any, x: Any, dense: Any) -> Any:
    """Return the row of a step; ``dense`` (degree, n) may be None."""
    parts = [np.stack([t_old, t]), x_old, x]
    if dense is not None:
        parts.append(np.reshape(dense, (-1,)))
    return np.concatenate(parts)


class RowLayout:
    """Where things are in rows (..., width) of a state of n numbers."""

    def __init__(self, size: int, degree: int) -> None:
        self.size, self.degree = size, degree
        self.width = 2 + 2 * size + degree * size

    def x_old(self, rows: Any) -> Any:
        """States at the beginning of each step, (..., n)."""
        return rows[..., 2 : 2 + self.size]

    def x(self, rows: Any) -> Any:
        """States at the end of each step, (..., n)."""
        return rows[..., 2 + self.size : 2 + 2 * self.size]

    def dense(self, rows: Any) -> Any:
        """Interpolants, (..., degree, n)."""
        return rows[..., 2 + 2 * self.size :].reshape(*rows.shape[:-1], self.degree, self.size)


def known(condition: Any, x: Any) -> Any:
    """Return x where the condition holds and nan elsewhere, with derivatives that are nan there.

    >>> known(np.array([True, False]), np.array([1.0, 2.0]))
    array([ 1., nan])
    """
    return x * np.where(condition, 1.0, np.nan)


def interpolated(
    t_old: Any,
    t_new: Any,
    x_old: Any,
    x: Any,
    dense: Any,
    t: Any,
    project: Callable[[Any], Any] | None,
) -> Any:
    """Return the state at t within a step; at its end exactly the state there."""
    length = t_new - t_old
    theta = (t - t_old) / np.where(length == 0.0, 1.0, length)
    between = x_old + evaluate_dense(dense, stop_gradient(theta))
    if project is not None:
        between = project(between)
    return np.where(t == t_new, x, between)


def state_in(parts: RowLayout, row: Any, t: Any, project: Callable[[Any], Any] | None) -> Any:
    """Return the state (n,) at t within the step of a row."""
    x_old, x, dense = parts.x_old(row), parts.x(row), parts.dense(row)
    return interpolated(row[START], row[END], x_old, x, dense, t, project)
