"""Runs that failed: their status, the words for it, and what stands in place of their results.

A run is good (0) or has failed: with nan in its results (which is what a recorded solve gives when
it fails), or, where the model is called as plain Python, with an arithmetic error. Other errors
are mistakes in the model and end the campaign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate.statuses import FINISHED, NON_FINITE, SimulationError

__all__ = ["NUMERICAL", "RAISED", "fill_in", "listed", "reasons", "statuses_of"]

#: Status of a run whose model raised an error; other values are those of a solve.
RAISED = -100
#: Errors that are failures of a run, not of the model.
NUMERICAL = (ArithmeticError, np.linalg.LinAlgError, SimulationError)
#: Runs and reasons that are listed by name.
LISTED, NAMED = 10, 3


def statuses_of(results: Any, count: int) -> np.ndarray:
    """Return the status of each of `count` runs by their stacked results: nan is a failure.

    >>> statuses_of({"a": np.array([1.0, np.nan]), "b": np.array([1, 2])}, 2)
    array([ 0, -2])
    """
    bad = np.zeros(count, dtype=bool)
    for leaf in map(np.asarray, tree.leaves(results)):
        if leaf.dtype.kind in "fc" and leaf.shape[:1] == (count,):
            bad |= _with_nan(leaf)
    return np.where(bad, NON_FINITE, FINISHED)


def _with_nan(rows: np.ndarray) -> np.ndarray:
    """Tell which rows hold nan."""
    return np.isnan(rows).any(axis=tuple(range(1, rows.ndim)))


def fill_in(stacked: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return an array with the rows `stacked` where runs are `good`, and nan (or none) elsewhere.

    Whole numbers become float64, which has nan.

    >>> fill_in(np.array([1, 2]), np.array([True, False, True]))
    array([ 1., nan,  2.])
    """
    kind = stacked.dtype.kind
    dtype = np.dtype(np.float64) if kind in "biu" else stacked.dtype
    nothing: Any = {"U": "", "S": b"", "O": None, "M": "NaT", "m": "NaT"}.get(kind, np.nan)
    rows = np.full((len(good), *stacked.shape[1:]), nothing, dtype=dtype)
    rows[good] = stacked
    return rows


def reasons(results: Any, status: np.ndarray, messages: dict[int, str], runs: Any) -> str:
    """Say why runs failed, the most frequent reason first: ``nan in result.range (12 runs)``."""
    count: Counter[str] = Counter()
    for run in np.asarray(runs)[status == RAISED].tolist():
        count[messages[run]] += 1
    rows = status == NON_FINITE
    for path, leaf in zip(tree.structure(results).paths("result"), tree.leaves(results)):
        values = np.asarray(leaf)
        if values.dtype.kind in "fc" and values.shape[:1] == status.shape:
            count[f"nan in {path}"] += int(_with_nan(values[rows]).sum())
    found = [f"{why} ({_runs(number)})" for why, number in count.most_common() if number]
    return "; ".join(found[:NAMED] + ([f"{len(found) - NAMED} more"] if found[NAMED:] else []))


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def listed(runs: Sequence[int]) -> str:
    """Return the numbers of runs as text, the first of them if there are many."""
    shown = ", ".join(map(str, runs[:LISTED]))
    return shown if len(runs) <= LISTED else f"{shown}, ..."
