"""Linear systems with a sparse matrix of one pattern, factorized block by block.

The matrix is a sparse matrix of dense blocks. Everything that does not depend on its numbers is
computed once: the order of elimination, the blocks that fill up, and the list of block products.

**Order.** Neighbours are gathered into blocks of ``SIZE`` unknowns, so that factorizing is work on
small dense matrices; then the block with the fewest neighbours is eliminated, again and again.
Sources: A. George, J. W. H. Liu, "The evolution of the minimum degree ordering algorithm", SIAM
Review 31 (1989) 1-19; for blocks of neighbours, C. Ashcraft, "Compressed graphs and the minimum
degree algorithm", SIAM J. Sci. Comput. 16 (1995) 1404-1411.

**Pivots.** Rows are exchanged within diagonal blocks, never between blocks: matrices of implicit
methods are close to diagonal where steps are short. Where elements grow beyond ``GROWTH`` the
factors are nan, so that the step is rejected and tried again with a shorter one.

**Bits.** Blocks are kept with their columns one after the other: ``block[j, i]`` is the element in
row i and column j. Order of operations, for K ascending: the diagonal block is inverted
(Gauss-Jordan, largest pivot of its column first), ``L = A[I, K] inv``, ``A[I, J] -= L A[K, J]``,
products summed over k ascending, one rounding for each product and each sum. Every way to compute
it has the same bits. Rounded factors are the same in float32, except for the inverses, which are
rounded at the end. Subnormal numbers count as zero, because they are slow and many: what is far
from the diagonal decays. (CPUs may differ in products that round to the least normal number from
below.)

**Panels.** Diagonal blocks that touch the same later ones, and each the next, are a panel. Native
code does everything that a panel does to a block behind it at once, so that the block is fetched
once and stays in registers. Where the blocks of a panel lie follows from their number, so that one
table is enough: the block for each pair of those behind it.
"""

from __future__ import annotations

import heapq
import itertools
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.backends.registry import default_backend
from archimedes.graph.derivatives.coloring import Pattern
from archimedes.records import record

#: Unknowns in a block.
SIZE = 8


@record
class Elimination:
    """``blocks``: the unknowns of each block, in the order of elimination; ``below``: for each the
    numbers of later blocks that its elimination touches, ascending.
    """

    blocks: list[list[int]]
    below: list[list[int]]


def _neighbours(rows: np.ndarray, columns: np.ndarray, n: int) -> list[list[int]]:
    """Return the unknowns that each is coupled to, in either direction."""
    off = rows != columns
    both = Pattern(rows[off], columns[off], (n, n)).symmetric
    ends = both.columns.tolist()
    return [ends[a:b] for a, b in itertools.pairwise(both.starts)]


def _gather_blocks(neighbours: list[list[int]]) -> list[list[int]]:
    """Return blocks of unknowns that are close to each other."""
    taken = [False] * len(neighbours)
    blocks: list[list[int]] = []
    loose: list[int] = []
    for start in range(len(neighbours)):
        if taken[start]:
            continue
        block, newest, links = [start], start, dict[int, int]()
        taken[start] = True
        while len(block) < SIZE:
            for k in neighbours[newest]:
                if not taken[k]:
                    links[k] = links.get(k, 0) + 1
            if not links:
                break
            # The one with the most links to the block, and the first of these.
            most = 0
            for k, count in links.items():
                if count > most or (count == most and k < newest):
                    newest, most = k, count
            del links[newest]
            taken[newest] = True
            block.append(newest)
        # Small ones share a block.
        if len(block) == SIZE:
            blocks.append(block)
        elif len(loose) + len(block) <= SIZE:
            loose += block
        else:
            blocks.append(loose)
            loose = block
    return [*blocks, loose] if loose else blocks


def order_elimination(rows: np.ndarray, columns: np.ndarray, n: int) -> Elimination:
    """Return the elimination of a system (n, n) with entries at these places.

    >>> found = order_elimination(np.array([0, 9]), np.array([9, 0]), 10)
    >>> found.blocks, found.below
    ([[0, 9, 1, 2, 3, 4, 5, 6], [7, 8]], [[], []])
    """
    neighbours = _neighbours(np.asarray(rows), np.asarray(columns), n)
    blocks = _gather_blocks(neighbours)
    home = np.empty(n, dtype=np.int64)
    for number, block in enumerate(blocks):
        home[block] = number
    homes = home.tolist()
    around = [{homes[j] for i in block for j in neighbours[i]} for block in blocks]
    for number, mine in enumerate(around):
        mine.discard(number)
    order, below = _children_first(*_least_first(around))
    position = {number: k for k, number in enumerate(order)}
    return Elimination(
        [blocks[number] for number in order],
        [sorted(position[number] for number in later) for later in below],
    )


def _children_first(order: list[int], below: list[set[int]]) -> tuple[list[int], list[set[int]]]:
    """Put every node right behind those whose first later neighbour it is: the same fill.

    What follows each other then touches the same blocks, which are still in the caches.
    """
    position = {number: k for k, number in enumerate(order)}
    parent = [min((position[other] for other in later), default=-1) for later in below]
    children: list[list[int]] = [[] for _ in order]
    roots: list[int] = []
    for k, above in enumerate(parent):
        (roots if above < 0 else children[above]).append(k)
    postorder: list[int] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        k, done = stack.pop()
        if done:
            postorder.append(k)
        else:
            stack.append((k, True))
            stack += [(child, False) for child in reversed(children[k])]
    return [order[k] for k in postorder], [below[k] for k in postorder]


def _least_first(around: list[set[int]]) -> tuple[list[int], list[set[int]]]:
    """Eliminate the node with the fewest neighbours again and again; these become neighbours.

    A neighbour that then has no others is the next one, whatever else there is: all such follow at
    once, without sets of their own (George and Liu call it mass elimination).
    """
    queue = [(len(mine), number) for number, mine in enumerate(around)]
    heapq.heapify(queue)
    order: list[int] = []
    below: list[set[int]] = []
    done = [False] * len(around)
    while queue:
        degree, number = heapq.heappop(queue)
        mine = around[number]
        if done[number] or degree != len(mine):
            continue
        inner: list[int] = []
        outer: list[int] = []
        for other in mine:
            theirs = around[other]
            theirs |= mine
            # It is among them itself, as is the one that goes.
            (inner if len(theirs) == degree + 1 else outer).append(other)
        gone = {number, *inner}
        for one in (number, *sorted(inner)):
            mine = mine - {one}
            done[one] = True
            order.append(one)
            below.append(mine)
        for other in outer:
            theirs = around[other]
            theirs -= gone
            theirs.discard(other)
            heapq.heappush(queue, (len(theirs), other))
    return order, below


#: Elements may grow by this factor in a factorisation.
GROWTH = 1e10
#: Diagonal blocks of a panel at most.
PANEL = 8
_LEAST = np.finfo(np.float32).tiny


class SparseSystem:
    """Systems (n, n) with entries at ``rows`` and ``columns`` (each place once), and a diagonal.

    ``native``: what a backend offers to factorise and solve (see ``Backend.block_factors``); by
    default, what the default backend does.

    >>> at = np.array([0, 1, 2, 0, 1]), np.array([0, 1, 2, 1, 2])
    >>> system = SparseSystem(*at, 3)
    >>> factors = system.factorize(np.array([0.0, 0.0, 0.0, -1.0, -1.0]), 2.0)
    >>> factors.solve(np.array([3.0, 3.0, 2.0]))
    array([2.5, 2. , 1. ])
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, n: int, native: Any = None) -> None:
        self.rows, self.columns, self.n = np.asarray(rows), np.asarray(columns), n
        self.elimination: Elimination = order_elimination(self.rows, self.columns, n)
        self.native = native or default_backend().block_factors()
        #: Memory of factors that are not used any more, and of rounded ones.
        self._free: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self._number()

    def _number(self) -> None:
        """Give every block a number: diagonal ones first, all below them, all right of them."""
        blocks, below = self.elimination.blocks, self.elimination.below
        count = self.count = len(blocks)
        self.starts = np.concatenate([[0], np.cumsum([len(b) for b in below])]).astype(np.int64)
        self.later = np.fromiter(itertools.chain.from_iterable(below), np.int64)
        self.pairs = len(self.later)
        self.total = count + 2 * self.pairs
        first = np.repeat(np.arange(count), np.diff(self.starts))
        #: Of each pair: the key that ``_pair`` looks for.
        self._keys = first * count + self.later
        sizes = [len(block) for block in blocks]
        unknowns = np.fromiter(itertools.chain.from_iterable(blocks), np.int64)
        home = np.repeat(np.arange(count), sizes)
        within = np.arange(self.n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.home, self.within = np.empty(self.n, np.int64), np.empty(self.n, np.int64)
        self.home[unknowns], self.within[unknowns] = home, within
        #: Where unknowns lie in the vector of all blocks.
        self.place = self.home * SIZE + self.within
        self.entries = self._positions(self.rows, self.columns)
        every = np.arange(self.n)
        self.diagonal = self._positions(every, every)
        unused = np.ones(count * SIZE, dtype=bool)
        unused[self.place] = False
        spare = np.flatnonzero(unused)
        self.spare = (spare // SIZE * SIZE + spare % SIZE) * SIZE + spare % SIZE

    def _pair(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the numbers of pairs of diagonal blocks, which exist."""
        return np.searchsorted(self._keys, first * self.count + last)

    def _block(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the numbers of the blocks at these places, which exist."""
        pair = self._pair(np.minimum(row, column), np.maximum(row, column))
        return np.where(row == column, row, self.count + pair + self.pairs * (row < column))

    def _positions(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return where elements lie among all numbers of the blocks."""
        block = self._block(self.home[rows], self.home[columns])
        return (block * SIZE + self.within[columns]) * SIZE + self.within[rows]

    @cached_property
    def panels(self) -> np.ndarray:
        """The first diagonal block of each panel, ascending; at the end how many there are."""
        sizes, later, starts = np.diff(self.starts).tolist(), self.later.tolist(), self.starts
        firsts, first = [0], 0
        for k, at in enumerate(starts[:-2].tolist(), 1):
            # What k - 1 touches but for k, k touches too: as many are the same.
            same = sizes[k - 1] == sizes[k] + 1 and later[at] == k
            if not same or k - first == PANEL:
                firsts.append(first := k)
        return np.array([*firsts, self.count], dtype=np.int64)

    @cached_property
    def targets(self) -> np.ndarray:
        """The pair of each two blocks I < J behind each panel, by panel, I and J."""
        last = self.panels[1:] - 1
        size = np.diff(self.starts)[last]
        # One for each I: how many J follow it, and where those are among ``later``.
        first = np.repeat(self.starts[last + 1], size)
        at = np.arange(len(first)) - np.repeat(np.cumsum(size) - size, size)
        at += np.repeat(self.starts[last], size)
        follow = first - at - 1
        one = np.repeat(at, follow)
        other = np.arange(len(one)) - np.repeat(np.cumsum(follow) - follow, follow) + one + 1
        return self._pair(self.later[one], self.later[other])

    def factorize(self, values: np.ndarray, shift: float, rounded: bool = False) -> Factors:
        """Return the factors of ``shift`` times the identity plus the matrix of these entries.

        ``rounded``: they are float32, so that both they and solutions, whose time is that of
        reading them, take half the time: good enough for iterations that correct themselves.
        """
        free = self._free[rounded]
        shape = self.total, SIZE, SIZE
        blocks = free.pop() if free else np.empty(shape, np.float32 if rounded else np.float64)
        flat = blocks.reshape(-1)
        flat[:] = 0.0
        with np.errstate(all="ignore"):
            flat[self.entries] = flush(values.astype(flat.dtype))
            flat[self.diagonal] += shift
        flat[self.spare] = 1.0
        largest = max(_largest(flat[self.entries]), _largest(flat[self.diagonal]))
        self.native.factorise(self, blocks)
        grown = _largest(blocks[self.count + self.pairs :])
        # Not the opposite, which nan would pass; a singular block has an infinite inverse.
        growth = grown / largest if largest else np.inf
        if not (growth <= GROWTH and np.isfinite(_largest(blocks[: self.count]))):
            blocks[:], growth = np.nan, np.inf
        return Factors(self, blocks, growth)


def _largest(numbers: np.ndarray) -> float:
    """Return the largest size of any number, 0 of none; nan where there is one."""
    return float(np.maximum(numbers.max(initial=0.0), -numbers.min(initial=0.0)))


def flush(numbers: np.ndarray) -> np.ndarray:
    """Return float32 numbers with zeros for those too small to be normal; float64 as they are."""
    if numbers.dtype == np.float64:
        return numbers
    return np.where(np.abs(numbers) < _LEAST, np.float32(0.0), numbers)


class Factors:
    """A factorised system.

    ``growth``: by which factor elements grew; infinite where the matrix is singular or they grew
    too far, so that solutions are nan.
    """

    def __init__(self, system: SparseSystem, blocks: np.ndarray, growth: float) -> None:
        self.system, self.blocks, self.growth = system, blocks, growth

    def __del__(self) -> None:
        # New memory costs as much time as a tenth of a factorisation.
        free = self.system._free[self.blocks.dtype == np.float32]
        if not free:
            free.append(self.blocks)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) for a right side (n,)."""
        system = self.system
        x = np.zeros(system.count * SIZE)
        x[system.place] = right
        system.native.solve(system, self.blocks, x)
        return x[system.place]
