"""Linear systems with a sparse matrix of one pattern, factorised block by block.

The matrix is a sparse matrix of dense blocks. All that does not depend on its numbers is found
once: the order of elimination, the blocks that fill up, and the list of block products. Rows are
exchanged within diagonal blocks, never between blocks: matrices of implicit methods are close to
diagonal where steps are short, and where elements grow beyond ``GROWTH`` the factors are nan, so
that the step is rejected and tried again with a shorter one.

Blocks are kept with their columns one after the other: ``block[j, i]`` is the element in row i and
column j. Order of operations, for K ascending: the diagonal block is inverted (Gauss-Jordan,
largest pivot of its column first), ``L = A[I, K] inv``, ``A[I, J] -= L A[K, J]``, products summed
over k ascending, one rounding for each product and each sum. Every way to compute it has the same
bits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from archimedes.simulate.sparse.elimination import SIZE, Elimination, eliminated

__all__ = ["Factors", "SparseSystem"]

#: Elements may grow by this factor in a factorisation.
GROWTH = 1e10
#: Diagonal blocks that are eliminated before what lies behind all of them is touched.
PANEL = 8


class SparseSystem:
    """Systems (n, n) with entries at ``rows`` and ``columns`` (each place once), and a diagonal.

    ``native``: what a backend offers to factorise and solve (see ``Backend.block_factors``).

    >>> at = np.array([0, 1, 2, 0, 1]), np.array([0, 1, 2, 1, 2])
    >>> system = SparseSystem(*at, 3)
    >>> factors = system.factored(np.array([0.0, 0.0, 0.0, -1.0, -1.0]), 2.0)
    >>> factors.solve(np.array([3.0, 3.0, 2.0]))
    array([2.5, 2. , 1. ])
    """

    def __init__(self, rows: Any, columns: Any, n: int, native: Any = None) -> None:
        self.rows, self.columns, self.n = np.asarray(rows), np.asarray(columns), n
        self.elimination: Elimination = eliminated(self.rows, self.columns, n)
        self.native = native
        #: Memory of factors that are not used any more.
        self._free: list[np.ndarray] = []
        self._free_rounded: list[np.ndarray] = []
        self._number()

    def _number(self) -> None:
        """Give every block a number: diagonal ones first, then pairs below and right of them."""
        blocks, below = self.elimination.blocks, self.elimination.below
        count = len(blocks)
        self.count = count
        self.starts = np.concatenate([[0], np.cumsum([len(b) for b in below])]).astype(np.int64)
        self.later = np.array([k for b in below for k in b], dtype=np.int64)
        pairs = len(self.later)
        self.lower = count + 2 * np.arange(pairs)
        self.upper = self.lower + 1
        self.total = count + 2 * pairs
        self.home = np.empty(self.n, dtype=np.int64)
        self.within = np.empty(self.n, dtype=np.int64)
        for number, block in enumerate(blocks):
            self.home[block], self.within[block] = number, range(len(block))
        #: Where unknowns lie in the vector of all blocks.
        self.place = self.home * SIZE + self.within
        self.entries = self._positions(self.rows, self.columns)
        every = np.arange(self.n)
        self.diagonal = self._positions(every, every)
        unused = np.ones(count * SIZE, dtype=bool)
        unused[self.place] = False
        spare = np.flatnonzero(unused)
        self.spare = (spare // SIZE * SIZE + spare % SIZE) * SIZE + spare % SIZE

    def _block(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the numbers of the blocks at these places, which exist."""
        first, last = np.minimum(row, column), np.maximum(row, column)
        key = np.repeat(np.arange(self.count), np.diff(self.starts)) * self.count + self.later
        at = np.searchsorted(key, first * self.count + last) if len(key) else first
        return np.where(row == column, row, self.count + 2 * at + (row < column))

    def _positions(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return where elements lie among all numbers of the blocks."""
        block = self._block(self.home[rows], self.home[columns])
        return (block * SIZE + self.within[columns]) * SIZE + self.within[rows]

    def _panels(self) -> np.ndarray:
        """Return for each K the last one of its panel: some that follow as neighbours."""
        last = np.arange(self.count)
        first = 0
        for k in range(1, self.count):
            before = self.later[self.starts[k - 1] : self.starts[k]]
            if k - first < PANEL and len(before) and before[0] == k:
                continue
            last[first:k] = k - 1
            first = k
        last[first:] = self.count - 1
        return last

    @cached_property
    def products(self) -> tuple[np.ndarray, np.ndarray]:
        """The products of the factorisation: (m, 3) of target, left, right; where each K begins.

        Products whose target lies behind a panel are made at its end, those of one target one
        after the other: the target is fetched once. It gets them in the same order, K ascending.
        """
        sizes = np.diff(self.starts)
        pivot = np.repeat(np.arange(self.count), sizes * sizes)
        within = np.arange(len(pivot)) - np.repeat(np.cumsum(sizes * sizes) - sizes**2, sizes**2)
        row, column = np.divmod(within, sizes[pivot])
        row, column = row + self.starts[pivot], column + self.starts[pivot]
        target = self._block(self.later[row], self.later[column])
        last = self._panels()[pivot]
        behind = np.minimum(self.later[row], self.later[column]) > last
        at = np.where(behind, last, pivot)
        # By ``at``, those behind last, by target and, as they are now, by pivot.
        key = (2 * at + behind) * self.total + np.where(behind, target, 0)
        order = np.argsort(key, kind="stable")
        made = np.stack([target, self.lower[row], self.upper[column]], axis=1)[order]
        begins = np.searchsorted(at[order], np.arange(self.count + 1))
        return np.ascontiguousarray(made, dtype=np.int64), begins.astype(np.int64)

    def factored(self, values: np.ndarray, shift: float, rounded: bool = False) -> Factors:
        """Return the factors of ``shift`` times the identity plus the matrix of these entries.

        ``rounded``: they are kept as float32, so that a solution, whose time is that of reading
        them, takes half of it: good enough for iterations that correct themselves.
        """
        blocks = self._free.pop() if self._free else np.empty((self.total, SIZE, SIZE))
        flat = blocks.reshape(-1)
        flat[:] = 0.0
        flat[self.entries] = values
        flat[self.diagonal] += shift
        flat[self.spare] = 1.0
        largest = max(_largest(flat[self.entries]), _largest(flat[self.diagonal]))
        factorise = _factorise if self.native is None else self.native.factorise
        factorise(self, blocks)
        if rounded:
            room = self._free_rounded.pop() if self._free_rounded else np.empty(blocks.shape, "f4")
            with np.errstate(all="ignore"):
                room[...] = blocks
            self._free.append(blocks)
            blocks = room
        grown = _largest(blocks[self.count + 1 :: 2])
        # Not the opposite, which nan would pass; a singular block has an infinite inverse.
        if not (grown <= GROWTH * largest and np.isfinite(_largest(blocks[: self.count]))):
            blocks[:] = np.nan
        return Factors(self, blocks)


def _largest(numbers: np.ndarray) -> float:
    """Return the largest size of any number, 0 of none; nan where there is one."""
    return float(np.maximum(numbers.max(initial=0.0), -numbers.min(initial=0.0)))


class Factors:
    """A factorised system."""

    def __init__(self, system: SparseSystem, blocks: np.ndarray) -> None:
        self.system, self.blocks = system, blocks

    def __del__(self) -> None:
        # New memory costs as much time as a tenth of a factorisation.
        system = self.system
        free = system._free if self.blocks.dtype == np.float64 else system._free_rounded
        if not free:
            free.append(self.blocks)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) for a right side (n,)."""
        system = self.system
        x = np.zeros(system.count * SIZE)
        x[system.place] = right
        solve = _solve if system.native is None else system.native.solve
        solve(system, self.blocks, x)
        return x[system.place]


# ---- what the numbers mean, in NumPy ---------------------------------------------------------


def _inverted(block: np.ndarray) -> np.ndarray:
    """Return the inverse of a block, columns one after the other as it is itself."""
    left, right = block.T.copy(), np.eye(SIZE)
    for c in range(SIZE):
        p = c
        for r in range(c + 1, SIZE):
            if abs(left[r, c]) > abs(left[p, c]):
                p = r
        if p != c:
            for part in (left, right):
                part[[c, p]] = part[[p, c]]
        scale = 1.0 / left[c, c]
        left[c] *= scale
        right[c] *= scale
        for r in range(SIZE):
            if r != c:
                factor = left[r, c]
                left[r] -= factor * left[c]
                right[r] -= factor * right[c]
    return right.T


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left times right for blocks (m, ...)."""
    total = left[:, None, 0, :] * right[:, :, 0, None]
    for k in range(1, SIZE):
        total = total + left[:, None, k, :] * right[:, :, k, None]
    return total


def _factorise(system: SparseSystem, blocks: np.ndarray) -> None:
    products, starts = system.products
    with np.errstate(all="ignore"):
        for k in range(system.count):
            lower = system.lower[system.starts[k] : system.starts[k + 1]]
            blocks[k] = _inverted(blocks[k])
            if len(lower):
                blocks[lower] = _product(blocks[lower], blocks[k][None])
            for target, left, right in products[starts[k] : starts[k + 1]]:
                for j in range(SIZE):
                    blocks[target] -= blocks[left][None, j, :] * blocks[right][:, j, None]


def _solve(system: SparseSystem, blocks: np.ndarray, x: np.ndarray) -> None:
    parts = x.reshape(system.count, SIZE)
    blocks = blocks.astype(np.float64)
    spans = list(zip(system.starts.tolist(), system.starts[1:].tolist()))
    with np.errstate(all="ignore"):
        for k, (a, b) in enumerate(spans):
            for p in range(a, b):
                block, to = blocks[system.lower[p]], system.later[p]
                for j in range(SIZE):
                    parts[to] = parts[to] - block[j] * parts[k, j]
        for k, (a, b) in reversed(list(enumerate(spans))):
            mine = parts[k].copy()
            for p in range(a, b):
                block, other = blocks[system.upper[p]], parts[system.later[p]]
                for j in range(SIZE):
                    mine = mine - block[j] * other[j]
            total = blocks[k][0] * mine[0]
            for j in range(1, SIZE):
                total = total + blocks[k][j] * mine[j]
            parts[k] = total
