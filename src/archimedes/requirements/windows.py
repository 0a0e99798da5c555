"""Minima over sliding windows, strict and smooth, in plain NumPy.

A fold is an associative operation along time: the minimum, or a smooth one. Windows are given by
the positions of their first and last sample, both of which never decrease. Anchors are chosen such
that every window contains one: the fold over a window is then that of a fold back from the anchor
and one forward from it, and all of these take one pass over the samples (van Herk 1992, for windows
of different lengths), or few passes in recorded code. Where windows start and end is known from the
times, before any value is, so that recorded code has fixed shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.records import record
from archimedes.typing import Array

#: Stands for "nothing" in a sum of exponentials: far below any exponent, and not infinite, because
#: differences of infinities have no derivative.
NOTHING = -1e30
#: Recorded arrays of so many samples are combined as a whole.
MANY = 4096


@record
class Fold:
    """The minimum, or with a positive width ``-width log(sum(exp(-v / width)))``, below it."""

    width: float = 0.0

    def enter(self, values: Any) -> Any:
        """Return values in the form in which they are folded."""
        return -values / self.width if self.width else values

    def leave(self, folded: Any) -> Any:
        """Return what was folded as a value again."""
        return -folded * self.width if self.width else folded

    @property
    def neutral(self) -> float:
        """What changes nothing, in the form in which values are folded."""
        return NOTHING if self.width else np.inf

    @property
    def ufunc(self) -> np.ufunc:
        """The operation on two folded values."""
        return np.logaddexp if self.width else np.minimum

    def pair(self, first: Any, second: Any) -> Any:
        """Return the minimum of two values, element by element."""
        if not self.width:
            return np.minimum(first, second)
        return self.leave(self.ufunc(self.enter(first), self.enter(second)))


def fold_windows(values: Array, first: np.ndarray, last: np.ndarray, fold: Fold) -> Any:
    """Return the minimum of ``values[..., first[k] : last[k] + 1]`` for each k.

    `first` and `last` never decrease, and no window is empty.

    >>> fold_windows(np.array([3.0, 1.0, 2.0, 4.0]), np.array([0, 2]), np.array([1, 3]), Fold())
    array([1., 2.])
    """
    values = fold.enter(values)
    if len(first) == 1:
        whole = fold.ufunc.reduce(values[..., first[0] : last[0] + 1], axis=-1)
        return fold.leave(whole)[..., None]
    anchors = _find_anchors(first, last)
    starts = np.concatenate([first[:1], anchors + 1])
    ends = np.concatenate([anchors, last[-1:]])
    # The samples between anchors as rows, filled up with what changes nothing.
    longest = max(int((ends - starts).max()) + 1, 1)
    places = starts[:, None] + np.arange(longest)
    inside = places <= ends[:, None]
    rows = values[..., np.where(inside, places, 0)]
    if not inside.all():
        rows = np.where(inside, rows, fold.neutral)
    forward = _accumulate(rows, fold)
    back = _accumulate(rows[..., ::-1], fold)[..., ::-1]
    row = np.searchsorted(anchors, first)
    on_anchor = last == anchors[row]
    after = np.where(on_anchor, row, row + 1)
    result = _take(back, row, first - starts[row])
    if not on_anchor.all():
        rest = _take(forward, after, last - starts[after])
        result = np.where(on_anchor, result, fold.ufunc(result, rest))
    return fold.leave(result)


def _accumulate(rows: Array, fold: Fold) -> Any:
    """Return the fold of each row up to each of its places.

    In recorded code of many samples the distance over which places are combined doubles from step
    to step: few operations on whole arrays instead of one for each place.
    """
    if np.size(rows) < MANY or not is_traced(rows):
        return fold.ufunc.accumulate(rows, axis=-1)
    distance, length = 1, rows.shape[-1]
    while distance < length:
        before = np.full((*rows.shape[:-1], distance), fold.neutral)
        rows = fold.ufunc(rows, np.concatenate([before, rows[..., :-distance]], axis=-1))
        distance *= 2
    return rows


def _find_anchors(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return positions of which each window holds one, and reaches no further than the next one."""
    anchors, k = [], 0
    while k < len(first):
        anchors.append(last[k])
        k = int(np.searchsorted(first, last[k], side="right"))
    return np.array(anchors)


def _take(rows: Array, row: np.ndarray, column: np.ndarray) -> Any:
    """Return ``rows[..., row, column]``."""
    flat = np.reshape(rows, (*rows.shape[:-2], rows.shape[-2] * rows.shape[-1]))
    return flat[..., row * rows.shape[-1] + column]
