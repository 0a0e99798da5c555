"""Input time series: values at given times, held or joined by straight lines in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.interpolation import Axis
from archimedes.function.table_lookup import look_up
from archimedes.symbolic import is_traced

__all__ = ["InputSeries"]

METHODS = ("linear", "zoh")


class InputSeries:
    """A function of time that interpolates samples: ``series(t)`` is the value at t.

    Before the first and after the last sample the value there is held. Given to `solve_ode` as
    `inputs`, it makes the solver stop at the samples, so that jumps and kinks cost no accuracy.

    Parameters
    ----------
    t : array_like (m,)
        Times of the samples, increasing.
    u : array or tree
        Values, with m samples along the first axis of every leaf.
    method : {"linear", "zoh"}, optional
        Linear interpolation, or zero-order hold: each value until the next sample.

    Examples
    --------
    >>> series = InputSeries([0.0, 1.0, 3.0], [0.0, 2.0, 4.0])
    >>> float(series(2.0)), float(InputSeries(series.t, series.u, method="zoh")(2.0))
    (3.0, 2.0)
    """

    def __init__(self, t: Any, u: Any, method: str = "linear") -> None:
        if method not in METHODS:
            raise ValueError(f"InputSeries: method={method!r} is not one of {METHODS}")
        self.t = _times(t)
        self.u = u if not isinstance(u, list) else np.array(u)
        self.method = method
        self._axis = Axis(self.t, "t", data=True)
        leaves, self._treedef = tree.flatten(self.u)
        paths = self._treedef.paths("u")
        self._tables = [_table(leaf, path, len(self.t)) for leaf, path in zip(leaves, paths)]

    def __call__(self, t: Any) -> Any:
        """Return the value at the time t; of an array of times, their values along its axes."""
        t = t if is_traced(t) else np.asarray(t, dtype=np.float64)[()]
        k = self._axis.interval(t)
        start, end = look_up(self.t, k), look_up(self.t, k + 1)
        theta = np.clip((t - start) / (end - start), 0.0, 1.0)
        if self.method == "zoh":
            theta = np.floor(theta)

        def between(table: np.ndarray) -> Any:
            low, high = look_up(table, k), look_up(table, k + 1)
            part = np.reshape(theta, (*np.shape(theta), *(1,) * (table.ndim - 1)))
            return np.where(part >= 1.0, high, low + part * (high - low))

        return self._treedef.unflatten([between(table) for table in self._tables])


def _times(t: Any) -> np.ndarray:
    times = _numbers(t, "t")
    if times.ndim != 1 or len(times) < 2:
        raise ValueError(
            f"InputSeries: t must be an array of at least 2 times, got shape {times.shape}"
        )
    if not np.isfinite(times).all():
        raise ValueError("InputSeries: t holds nan or inf: leave such samples out")
    steps = np.diff(times)
    if not np.all(steps > 0.0):
        k = int(np.argmax(~(steps > 0.0)))
        raise ValueError(
            f"InputSeries: t must be times that increase, but t[{k + 1}] = {times[k + 1]:g} "
            f"follows t[{k}] = {times[k]:g}: sort the samples (np.argsort) and drop repeated times"
        )
    return times


def _table(leaf: Any, path: str, count: int) -> np.ndarray:
    table = _numbers(leaf, path)
    if table.ndim == 0 or len(table) != count:
        raise ValueError(
            f"InputSeries: {path} has shape {table.shape}, but there are {count} "
            "times: the first axis must be time"
        )
    if not np.isfinite(table).all():
        raise ValueError(f"InputSeries: {path} holds nan or inf: leave such samples out")
    return table


def _numbers(value: Any, name: str) -> np.ndarray:
    """Return a copy as float64; anything but real numbers is refused."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"InputSeries: {name} must hold real numbers, got {array.dtype}: give real and "
            "imaginary parts, or times in seconds, as numbers"
        )
    return array.astype(np.float64)
