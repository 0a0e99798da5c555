"""Arguments out of ranges: corners, points in between, and special ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from archimedes.function.leaf_specs import LeafSpec
from archimedes.graph.dtypes import B8, DTYPES, I64

#: Up to so many numbers all corners are taken; of more, as many as these have.
_ALL_CORNERS = 6


def read_ranges(
    names: Sequence[str], specs: Sequence[LeafSpec], values: Sequence[Any], ranges: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the least and the greatest value of each traced argument; those not named are fixed.

    ``ranges`` names arguments or leaves of them (``"x"``, ``"x.pos"``) with pairs of numbers or
    arrays of their shape.
    """
    if not isinstance(ranges, Mapping):
        raise TypeError(
            f"precision: ranges is a {type(ranges).__name__}: give a dict such as "
            "{'x': (-1.0, 1.0)}, by the names of arguments"
        )
    bounds: list[tuple[np.ndarray, np.ndarray]] = []
    used: set[str] = set()
    for name, spec, value in zip(names, specs, values):
        fixed = np.broadcast_to(np.asarray(value, dtype=DTYPES[spec.code]), spec.shape)
        low = high = fixed
        for key, pair in ranges.items():
            if key != name and not name.startswith((f"{key}.", f"{key}[")):
                continue
            used.add(key)
            low, high = _read_pair(key, pair, spec)
        bounds.append((low, high))
    for key in ranges:
        if key not in used:
            raise ValueError(
                f"precision: ranges names {key!r}, which is no argument: there are {list(names)}"
            )
    return bounds


def _read_pair(key: str, pair: Any, spec: LeafSpec) -> tuple[np.ndarray, np.ndarray]:
    dtype = DTYPES[spec.code]
    try:
        low, high = pair
        low, high = (np.broadcast_to(np.asarray(x, dtype=dtype), spec.shape) for x in (low, high))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"precision: ranges[{key!r}] = {pair!r} must be a pair of numbers, or of arrays of "
            f"shape {spec.shape}: (low, high)"
        ) from error
    if spec.code != B8 and not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError(f"precision: ranges[{key!r}] = {pair!r} must be finite")
    if np.any(low > high):
        raise ValueError(f"precision: ranges[{key!r}] = {pair!r}: lower limit above upper limit")
    return low, high


def sample(
    bounds: Sequence[tuple[np.ndarray, np.ndarray]], specs: Sequence[LeafSpec], count: int
) -> tuple[list[np.ndarray], int]:
    """Return samples of all leaves, with an axis of them in front, and how many there are.

    First the middle, then corners, then zeros where a range holds zero, then random points.
    """
    low = np.concatenate([np.ravel(a).astype(float) for a, _ in bounds] or [np.zeros(0)])
    high = np.concatenate([np.ravel(b).astype(float) for _, b in bounds] or [np.zeros(0)])
    free = np.flatnonzero(low < high)
    rng = np.random.default_rng(0)
    points = [low + 0.5 * (high - low)]
    if len(free) <= _ALL_CORNERS:
        corners = list(product((False, True), repeat=len(free)))
        choices = np.array(corners, dtype=bool).reshape(len(corners), len(free))
    else:
        choices = rng.random((2**_ALL_CORNERS, len(free))) < 0.5
        choices[0], choices[1] = False, True
    for choice in choices:
        corner = low.copy()
        corner[free] = np.where(choice, high[free], low[free])
        points.append(corner)
    for k in free[(low[free] < 0) & (high[free] > 0)][: 2**_ALL_CORNERS]:
        point = low + rng.random(len(low)) * (high - low)
        point[k] = 0.0
        points.append(point)
    inner = low + rng.random((max(0, count - len(points)), len(low))) * (high - low)
    table = np.array([*points, *inner])[: max(count, 1)]
    leaves, at = [], 0
    for spec in specs:
        columns = table[:, at : at + spec.size]
        at += spec.size
        if spec.code in (I64, B8):
            columns = np.rint(columns)
        leaves.append(columns.reshape(len(table), *spec.shape).astype(DTYPES[spec.code]))
    return leaves, len(table)
