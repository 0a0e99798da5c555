"""Mapping over sorted items, each with the row it belongs to: natively in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from archimedes.function.batching.vmap_calls import vmap
from archimedes.function.compiled import Compiled

__all__ = ["Over", "over_runs"]


class Over(Protocol):
    """What :func:`over_runs` returns."""

    def bound(
        self, key: int, items: np.ndarray, sign: float, results: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
        """Return ``f(rows, places, done)``."""

    def along(
        self, key: int, rows: np.ndarray, done: np.ndarray
    ) -> Callable[[int, np.ndarray, float, np.ndarray], None]:
        """Return ``f(steps, items, sign, results)``: one sequence, in memory that stays."""


def over_runs(function: Compiled, width: int) -> Over:
    """Map ``function(row, item) -> result`` (of float64) over sequences of rows and items.

    ``over_runs(...).bound(key, items, sign, results)`` returns ``f(rows, places, done)``. Of each
    sequence of ``rows`` (N, s, width), an item of ``items`` (m,) belongs to the first row whose
    column ``key`` is not before it; both ascend (descend where ``sign`` is -1). ``done`` (N,) is
    how many items each sequence has behind it, and is moved on. Results go to
    ``results[places[k]]``, (N', m, n), in sequence k; what lies behind the items done is undefined.
    ``along`` is the same for one sequence whose rows lie in the same memory at each call.

    >>> from archimedes.function import compile
    >>> rows, items = np.array([[[1.0, 10.0], [2.0, 20.0]]]), np.array([0.5, 1.0, 1.5, 3.0])
    >>> done, results = np.array([0]), np.zeros((1, 4, 1))
    >>> over = over_runs(compile(lambda row, item: (row[1] + item)[None]), 2)
    >>> over.bound(0, items, 1.0, results)(rows, np.array([0]), done)
    >>> done, results[0, :3, 0]
    (array([3]), array([10.5, 11. , 21.5]))
    """
    _, _, tiers = function.lookup((np.zeros(width), np.float64(0.0)), {})
    runs = None if tiers is None else tiers.kernel().sorted_runs()
    return RunByRun(vmap(function, in_axes=(None, 0))) if runs is None else runs


class RunByRun:
    """The same in Python."""

    def along(
        self, key: int, rows: np.ndarray, done: np.ndarray
    ) -> Callable[[int, np.ndarray, float, np.ndarray], None]:
        """Return ``f(steps, items, sign, results)``."""
        here = np.zeros(1, np.int64)

        def run(steps: int, items: np.ndarray, sign: float, results: np.ndarray) -> None:
            self.bound(key, items, sign, results[None])(rows[None, :steps], here, done)

        return run

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.function = function

    def bound(
        self, key: int, items: np.ndarray, sign: float, results: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
        """Return ``f(rows, places, done)``."""

        def run(rows: np.ndarray, places: np.ndarray, done: np.ndarray) -> None:
            for k, (sequence, place) in enumerate(zip(rows, places)):
                stops = np.searchsorted(sign * items, sign * sequence[:, key], side="right")
                for row, stop in zip(sequence, stops.tolist()):
                    if stop > done[k]:
                        part = slice(int(done[k]), stop)
                        results[place, part] = self.function(row, items[part])
                        done[k] = stop

        return run
