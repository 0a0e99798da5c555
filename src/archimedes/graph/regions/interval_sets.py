"""What values depend on: sets of columns, as bits of a scalar and as intervals of a block.

A scalar has a Python int: bit j stands for column j. A block has ``Rows``, one set for each of its
elements, or 0 where none depends on anything. A band, a stencil, a block of a matrix and a full
row are a few intervals each, whatever the number of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from archimedes.records import record

#: What a value depends on: a bit set, or the sets of the elements of a block.
Sets = Any

#: Sets of blocks that grow with so many steps of a loop are taken to be those of all elements.
GROWING = 64


@record
class Rows:
    """A set of columns for each element: intervals ``low`` to ``high`` (not included).

    Those of element k are numbers ``first[k]`` to ``first[k + 1]``, ascending and apart.

    >>> unit_sets(2, 3)[1], unit_sets(2, 3)[:2].union()
    (8, 12)
    """

    first: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __len__(self) -> int:
        return len(self.first) - 1

    def __bool__(self) -> bool:
        return self.low.size > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return not self and not other
        return self is other or (
            np.array_equal(self.first, other.first)
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, at: Any) -> Any:
        """Return the bit set of an element, or the sets of a run of elements."""
        if not isinstance(at, slice):
            begin, end = self.first[at], self.first[at + 1]
            return _mask(self.low[begin:end], self.high[begin:end])
        start, stop, _ = at.indices(len(self))
        begin, end = self.first[start], self.first[stop]
        first = self.first[start : stop + 1] - begin
        return Rows(first, self.low[begin:end], self.high[begin:end])

    def union(self) -> int:
        """Return all columns, as a bit set."""
        return _mask(self.low, self.high)

    def take(self, positions: np.ndarray) -> Rows:
        """Return the sets of the elements at some positions."""
        begin, count = self.first[positions], np.diff(self.first)[positions]
        first, which = _ranges(begin, count)
        return Rows(first, self.low[which], self.high[which])

    def rows(self) -> np.ndarray:
        """Return the element that each interval belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return element and column of every member, by elements.

        >>> [ids.tolist() for ids in fill(0b1011, 2).entries()]
        [[0, 0, 0, 1, 1, 1], [0, 1, 3, 0, 1, 3]]
        """
        count = self.high - self.low
        return np.repeat(self.rows(), count), _ranges(self.low, count)[1]


def _ranges(begin: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each of some ranges begins among all their members, and these."""
    first = np.zeros(len(count) + 1, dtype=np.int64)
    np.cumsum(count, out=first[1:])
    return first, np.arange(first[-1]) + np.repeat(begin - first[:-1], count)


def unit_sets(start: int, length: int) -> Rows:
    """Return the sets of elements of which each depends on one column, from ``start`` on."""
    low = np.arange(start, start + length)
    return Rows(np.arange(length + 1), low, low + 1)


def fill(mask: int, length: int) -> Sets:
    """Return the sets of ``length`` elements that all depend on ``mask``; 0 if that is empty."""
    if not mask:
        return 0
    low, high = _intervals(mask)
    first = np.arange(length + 1) * len(low)
    return Rows(first, np.tile(low, length), np.tile(high, length))


def _intervals(mask: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals of a bit set."""
    if not mask & (mask - 1):
        low = np.array([mask.bit_length() - 1] if mask else [], dtype=np.int64)
        return low, low + 1
    packed = np.frombuffer(mask.to_bytes(mask.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    bits = np.unpackbits(packed, bitorder="little").view(np.int8)
    edges = np.flatnonzero(np.diff(bits, prepend=0, append=0))
    return edges[::2], edges[1::2]


def _mask(low: np.ndarray, high: np.ndarray) -> int:
    """Return the bit set of intervals, which may overlap."""
    if low.size <= 8:
        mask = 0
        for a, b in zip(low.tolist(), high.tolist()):
            mask |= (1 << b) - (1 << a)
        return mask
    width = int(high.max())
    change = np.bincount(low, minlength=width + 1) - np.bincount(high, minlength=width + 1)
    return int.from_bytes(np.packbits(np.cumsum(change) > 0, bitorder="little").tobytes(), "little")


def merge(parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], length: int) -> Rows:
    """Return the sets of ``length`` elements, from intervals (element, low, high) in any order."""
    rows, low, high = (np.concatenate(column) for column in zip(*parts))
    width = int(high.max(initial=0)) + 1
    begin, end = rows * width + low, rows * width + high
    if np.any(begin[1:] < begin[:-1]):
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
    end = np.maximum.accumulate(end)
    # Those of one element lie apart from those of the next.
    new = np.flatnonzero(begin[1:] > end[:-1]) + 1
    begin, end = (
        begin[np.append(0, new)[: begin.size]],
        end[np.append(new, end.size)[: end.size] - 1],
    )
    rows, low = np.divmod(begin, width)
    first = np.searchsorted(rows, np.arange(length + 1))
    return Rows(first, low, end - rows * width)


def join(parts: Iterable[tuple[Any, int]]) -> Any:
    """Concatenate sets of elements: each part is a bit set or ``Rows``, and the number of elements.

    >>> join([(1, 1), (0, 2), (unit_sets(4, 2), 2)]).first.tolist()
    [0, 1, 1, 1, 2, 3]
    """
    pieces = list(parts)
    if not any(sets for sets, _ in pieces):
        return 0
    counts, lows, highs = [np.zeros(1, dtype=np.int64)], [], []
    for sets, length in pieces:
        if isinstance(sets, Rows):
            counts.append(np.diff(sets.first))
            low, high = sets.low, sets.high
        else:
            low, high = _intervals(sets)
            counts.append(np.full(length, low.size))
            if length > 1:
                low, high = np.tile(low, length), np.tile(high, length)
        lows.append(low)
        highs.append(high)
    return Rows(np.cumsum(np.concatenate(counts)), np.concatenate(lows), np.concatenate(highs))


def compose(local: Rows, other: Rows) -> Rows:
    """Return what elements depend on that depend on the elements ``local`` of another block.

    >>> compose(unit_sets(1, 2), unit_sets(5, 4)).low.tolist()
    [6, 7]
    """
    # Runs of elements are often the same ones.
    key = local.low * (len(other) + 1) + local.high
    runs, which = np.unique(key, return_inverse=True)
    low, high = np.divmod(runs, len(other) + 1)
    begin, count = other.first[low], other.first[high] - other.first[low]
    members = _ranges(begin, count)[1]
    owner = np.repeat(np.arange(len(runs)), count)
    of_runs = merge([(owner, other.low[members], other.high[members])], len(runs))
    if len(local) == len(which) and np.array_equal(local.first, np.arange(len(local) + 1)):
        return of_runs.take(which)
    taken = of_runs.take(which)
    rows = np.repeat(local.rows(), np.diff(taken.first))
    return merge([(rows, taken.low, taken.high)], len(local))


def union_of(sets: Any) -> int:
    """Return all columns that a value depends on, as a bit set."""
    return sets.union() if isinstance(sets, Rows) else int(sets)


def widen(sets: Any) -> Any:
    """Return the union of the sets of a block, for each of its elements."""
    return fill(sets.union(), len(sets)) if isinstance(sets, Rows) else sets


def unite(parts: Sequence[Any], length: int) -> Any:
    """Return the union, element by element, of the sets of blocks of a length; 0 if it is empty."""
    distinct = list({id(sets): sets for sets in parts if sets}.values())
    if len(distinct) < 2:
        return distinct[0] if distinct else 0
    return merge([(sets.rows(), sets.low, sets.high) for sets in distinct], length)


def union(a: Any, b: Any) -> Any:
    """Return the union of two bit sets, or of the sets of two blocks."""
    if not a or not b:
        return a or b
    return unite([a, b], len(a)) if isinstance(a, Rows) else a | b
