"""Arguments out of ranges: corners, points in between, and special ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from archimedes.function.leaf_specs import LeafSpec
from archimedes.graph.dtypes import B8, DTYPES, I64

#: Up to so many numbers all corners are taken; of more, as many as these have.
_ALL_CORNERS = 6


def sample(
    ends: np.ndarray, names: Sequence[str], specs: Sequence[LeafSpec], count: int
) -> list[np.ndarray]:
    """Return at most ``count`` samples of all leaves, with an axis of them in front.

    ``ends`` (2, numbers) are the least and the greatest values of the numbers of all leaves. First
    comes the middle, then corners, then zeros where a range holds zero, then random points.
    """
    low, high = ends
    owners = np.repeat(np.arange(len(specs)), [spec.size for spec in specs])
    unbounded = np.flatnonzero((low < high) & ~(np.isfinite(low) & np.isfinite(high)))
    if unbounded.size:
        k = int(unbounded[0])
        raise ValueError(
            f"precision: the range of {names[owners[k]]}, from {low[k]:g} to {high[k]:g}, cannot "
            "be sampled: give finite ends"
        )
    free = np.flatnonzero(low < high)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        span = np.where(low < high, high - low, 0.0)

    def inside(part: np.ndarray) -> np.ndarray:
        return np.where(low < high, low + part * span, low)

    if len(free) <= _ALL_CORNERS:
        corners = list(product((False, True), repeat=len(free)))
        choices = np.array(corners, dtype=bool).reshape(len(corners), len(free))
    else:
        choices = rng.random((2**_ALL_CORNERS, len(free))) < 0.5
        choices[0], choices[1] = False, True
    points = [inside(np.full(len(low), 0.5))]
    for choice in choices if len(free) else ():
        corner = low.copy()
        corner[free] = np.where(choice, high[free], low[free])
        points.append(corner)
    for k in free[(low[free] < 0) & (high[free] > 0)][: 2**_ALL_CORNERS]:
        point = inside(rng.random(len(low)))
        point[k] = 0.0
        points.append(point)
    if len(free):
        points += [inside(rng.random(len(low))) for _ in range(count - len(points))]
    table = np.array(points[: max(count, 1)])
    leaves, at = [], 0
    for spec in specs:
        columns = table[:, at : at + spec.size]
        at += spec.size
        if spec.code in (I64, B8):
            columns = np.rint(columns)
        leaves.append(columns.reshape(len(table), *spec.shape).astype(DTYPES[spec.code]))
    return leaves
