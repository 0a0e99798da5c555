"""Colouring: groups of columns (or rows) that one derivative sweep can compute together.

Two columns of a Jacobian may share a colour if no row has an entry in both (Curtis, Powell,
Reid, J. Inst. Math. Appl. 13, 1974). For a symmetric matrix a star colouring is enough, which may
need far fewer colours (Gebremedhin, Manne, Pothen, SIAM Review 47(4), 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes.graph.regions.interval_sets import join
from archimedes.records import record


@record
class Pattern:
    """Where a matrix of ``shape`` has entries: number k at (``rows[k]``, ``columns[k]``), by rows.

    >>> Pattern(np.array([0, 0, 1]), np.array([0, 2, 1]), (2, 3)).transpose.rows.tolist()
    [0, 1, 2]
    """

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]

    @cached_property
    def transpose(self) -> Pattern:
        """The pattern of the transposed matrix."""
        order = np.lexsort((self.rows, self.columns))
        return Pattern(self.columns[order], self.rows[order], self.shape[::-1])

    @cached_property
    def symmetric(self) -> Pattern:
        """The pattern of the matrix and its transposed one together."""
        n = self.shape[1]
        keys = np.concatenate([self.rows * n + self.columns, self.columns * n + self.rows])
        keys.sort(kind="stable")  # the first half is in order: quicker than ``np.unique``
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: keys.size]]
        rows, columns = np.divmod(keys, n)
        return Pattern(rows, columns, self.shape)

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of entries in each row."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @cached_property
    def starts(self) -> list[int]:
        """Where the entries of each row begin, and where the last ones end."""
        return [0, *np.cumsum(self.counts).tolist()]

    @property
    def span(self) -> int:
        """The most columns from the first to the last entry of a row."""
        starts = np.array(self.starts)[:-1][self.counts > 0]
        if not starts.size:
            return 0
        last = np.append(starts[1:], self.rows.size) - 1
        return int((self.columns[last] - self.columns[starts]).max()) + 1


def pattern_of_sets(sets: Sequence[Any], lengths: Sequence[int], columns: int) -> Pattern:
    """Return the pattern whose rows are the sets of scalars, and of blocks of these lengths.

    >>> pattern_of_sets([0b101, 0, 0b10], [0, 0, 0], 3).columns.tolist()
    [0, 2, 1]
    """
    shape = (sum(length or 1 for length in lengths), columns)
    if not any(lengths):
        return Pattern(*_bits(sets, columns), shape)
    elements = join((mine, length or 1) for mine, length in zip(sets, lengths))
    rows, at = elements.entries() if elements else np.zeros((2, 0), dtype=np.int64)
    return Pattern(rows, at, shape)


def _bits(rows: Sequence[int], columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of all set bits, by rows."""
    width = max(1, -(-columns // 64))  # words of a row
    packed = b"".join([row.to_bytes(8 * width, "little") for row in rows])
    # Few of the words have any.
    used = np.flatnonzero(np.frombuffer(packed, dtype=np.uint64))
    each = np.frombuffer(packed, dtype=np.uint8).reshape(-1, 8)[used]
    word, bit = np.nonzero(np.unpackbits(each, axis=1, bitorder="little"))
    row, start = np.divmod(used[word], width)
    return row, 64 * start + bit


def column_colors(pattern: Pattern) -> np.ndarray:
    """Colour columns greedily, fullest first; columns without entries get colour -1."""
    turned = pattern.transpose
    width = int(pattern.counts.max(initial=0))
    if pattern.span == width:
        # No fewer will do, and neighbours that share a row are never further apart.
        return np.where(turned.counts > 0, np.arange(len(turned.counts)) % max(1, width), -1)
    rows, starts = turned.columns.tolist(), turned.starts
    colors = [-1] * pattern.shape[1]
    taken = [0] * pattern.shape[0]  # colours of each row so far
    for j in np.argsort(-turned.counts, kind="stable")[: np.count_nonzero(turned.counts)].tolist():
        mine = rows[starts[j] : starts[j + 1]]
        forbidden = 0
        for i in mine:
            forbidden |= taken[i]
        free = ~forbidden & (forbidden + 1)
        for i in mine:
            taken[i] |= free
        colors[j] = free.bit_length() - 1
    return np.array(colors, dtype=np.int64)


def star_colors(pattern: Pattern) -> np.ndarray:
    """Star-colour a symmetric pattern: neighbours differ, and no path of 4 uses two colours.

    Every off-diagonal entry (i, j) is then alone in its row i among columns of j's colour, or
    alone in row j among columns of i's colour.
    """
    size, width = pattern.shape[1], int(pattern.counts.max(initial=0))
    diagonal = np.bincount(pattern.rows[pattern.rows == pattern.columns], minlength=size)
    # A long narrow band needs as many as it is wide.
    narrow = pattern.span == width <= 3 < size // 4 and np.array_equal(diagonal, pattern.counts > 0)
    if pattern.rows.size == size * size or narrow:
        return np.where(pattern.counts > 0, np.arange(size) % max(1, width), -1)
    columns, starts = pattern.columns.tolist(), pattern.starts
    neighbours = [columns[a:b] for a, b in pairwise(starts)]
    colors = [-1] * size
    once, twice = [0] * size, [0] * size  # colours among the neighbours so far
    for v in np.argsort(diagonal - pattern.counts, kind="stable").tolist():
        if not neighbours[v]:
            continue
        forbidden = 0
        for w in neighbours[v]:
            between = colors[w]
            if w == v:
                continue
            if between < 0:
                # It must not end up between two equal colours.
                forbidden |= once[w]
                continue
            forbidden |= 1 << between
            for x in neighbours[w]:
                if colors[x] >= 0 and twice[x] >> between & 1:
                    forbidden |= 1 << colors[x]
        free = ~forbidden & (forbidden + 1)
        colors[v] = free.bit_length() - 1
        for w in neighbours[v]:
            if w != v:
                twice[w] |= once[w] & free
                once[w] |= free
    return np.array(colors, dtype=np.int64)


def by_symmetry(pattern: Pattern, colors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the entries of a symmetric matrix are found: here, or across the diagonal.

    In a star colouring an entry not alone in its row is alone in the other.
    """
    rows, columns = pattern.rows, pattern.columns
    keys = rows * (int(colors.max(initial=0)) + 1) + colors[columns]
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    alone = counts[which] == 1
    return np.where(alone, rows, columns), np.where(alone, columns, rows)
