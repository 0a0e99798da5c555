"""Input time series: values at given times, held or joined by straight lines in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.interpolation import Axis
from archimedes.symbolic import is_traced
from archimedes.symbolic.tables import read_table

__all__ = ["InputSeries", "look_up"]

METHODS = ("linear", "zoh")


def look_up(table: np.ndarray, index: Any) -> Any:
    """Return ``table[index]`` along the first axis, also for a traced index (a scalar).

    >>> look_up(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([3., 4.])
    """
    if not is_traced(index):
        return table[index]
    width = int(np.prod(table.shape[1:], dtype=int))
    flat = np.ascontiguousarray(table, dtype=np.float64).reshape(-1)
    places = index * width + np.arange(width)
    return np.reshape(read_table(flat, places), table.shape[1:])


class InputSeries:
    """A function of time given by samples: ``series(t)`` is the value at t.

    ``t`` (m,) increases; every leaf of ``u`` (an array or a tree) has m values along its first
    axis. ``method`` is "linear", or "zoh" (zero-order hold: each value until the next sample).
    Before the first and after the last sample the value there is held. Given to ``solve_ode`` as
    ``inputs``, the solver stops at the samples, so that jumps and kinks cost no accuracy.

    >>> series = InputSeries([0.0, 1.0, 3.0], [0.0, 2.0, 4.0])
    >>> float(series(2.0)), float(InputSeries(series.t, series.u, method="zoh")(2.0))
    (3.0, 2.0)
    """

    def __init__(self, t: Any, u: Any, method: str = "linear") -> None:
        if method not in METHODS:
            raise ValueError(f"InputSeries: method={method!r} is not one of {METHODS}")
        self.t = np.array(t, dtype=np.float64)
        if self.t.ndim != 1 or len(self.t) < 2 or not np.all(np.diff(self.t) > 0.0):
            raise ValueError(
                "InputSeries: t must be an array of at least 2 times that increase, got shape "
                f"{self.t.shape}"
            )
        self.u = u if not isinstance(u, list) else np.array(u)
        self.method = method
        self._axis = Axis(self.t, "t")
        leaves, self._treedef = tree.flatten(self.u)
        self._tables = [np.array(leaf, dtype=np.float64) for leaf in leaves]
        for table, path in zip(self._tables, self._treedef.paths("u")):
            if np.ndim(table) == 0 or len(table) != len(self.t):
                raise ValueError(
                    f"InputSeries: {path} has shape {table.shape}, but there are {len(self.t)} "
                    "times: the first axis must be time"
                )
            if not np.isfinite(table).all():
                raise ValueError(f"InputSeries: {path} holds nan or inf")

    def __call__(self, t: Any) -> Any:
        """Return the value at the time t, a scalar."""
        k = self._axis.interval(t)
        start, end = look_up(self.t, k), look_up(self.t, k + 1)
        theta = np.clip((t - start) / (end - start), 0.0, 1.0)
        if self.method == "zoh":
            theta = np.floor(theta)

        def between(table: np.ndarray) -> Any:
            low, high = look_up(table, k), look_up(table, k + 1)
            return np.where(theta >= 1.0, high, low + theta * (high - low))

        return self._treedef.unflatten([between(table) for table in self._tables])
