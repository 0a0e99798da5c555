"""Unknowns in the order of a chain, so that matrices of a problem are narrow bands.

Two unknowns are neighbours if some block's function takes both. A few that touch everything (final
time, parameters) are the *border*: they are kept out of the band. The others are ordered as the
task says (time), or by reverse Cuthill-McKee.

Where the entries of a block's derivatives are, in tables: nothing is listed entry by entry.

The linear systems of an interior-point method, by banded Cholesky factors.

Symbols: H (n, n) the Lagrangian's Hessian with the barrier's diagonal, A (m, n) the Jacobian, D
(m,) >= 0 a diagonal, zero for equations:

    [H  A^T] [dx  ]   [r ]
    [A  -D ] [dlam] = [rc]

With D raised to at least delta, dlam is eliminated: M dx = r + A^T D^-1 rc, M = H + A^T D^-1 A. In
the order of a chain this is a narrow band, and it is positive definite exactly where H is on the
null space of A, up to delta: that is what the inertia of the whole matrix is asked for. Steps of
refinement on the system above take the effect of delta away again. Unknowns of the border are
found by their Schur complement. The loops are native (``band_loops.py``, ``place_loops.py``).

Sources: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), sections 16.1,
17.4 and 19.3; M. Friedlander, D. Orban, "A primal-dual regularized interior-point method for
convex quadratic programs", Math. Program. Comput. 4, 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from archimedes.optimize.problems.blocks import BlockPatterns
from archimedes.optimize.problems.evaluation import Structure, summed
from archimedes.optimize.solvers.interior_point.band_loops import PANEL

__all__ = ["BandedSystem", "Care", "Chain", "EntryTable", "chain_of"]

#: At most this many unknowns are the border.
BORDER = 40


class Chain(NamedTuple):
    """Numbers of the free unknowns in the band and of those in the border.

    ``place`` (n,) is where an unknown is: 0..nb-1 in the band, nb.. in the border, -1 if fixed.
    """

    band: np.ndarray
    border: np.ndarray
    place: np.ndarray


def chain_of(
    patterns: Sequence[BlockPatterns], free: np.ndarray, order: np.ndarray | None
) -> Chain:
    """Return the chain of the unknowns for which ``free`` (n,) holds.

    ``order`` (n,) are positions along the chain, nan for what touches everything, or None.
    """
    n = free.size
    if order is None:
        rows, columns = _all_neighbours(patterns, free)
        border = _busy(rows, columns, n)
        band = _cuthill_mckee(rows, columns, np.flatnonzero(free & ~border), n)
    else:
        border = np.isnan(order)
        band = np.flatnonzero(free & ~border)
        band = band[np.argsort(order[band], kind="stable")]
    outside = np.flatnonzero(free & border)
    place = np.full(n, -1)
    place[band] = np.arange(band.size)
    place[outside] = band.size + np.arange(outside.size)
    return Chain(band, outside, place)


def _all_neighbours(
    patterns: Sequence[BlockPatterns], free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of free unknowns that meet somewhere."""
    pairs = [_neighbours(p) for p in patterns]
    rows = np.concatenate([a for a, _ in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    columns = np.concatenate([b for _, b in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    kept = free[rows] & free[columns]
    return rows[kept], columns[kept]


def _neighbours(patterns: BlockPatterns) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of unknowns with a curvature, or in one constraint."""
    block, first = patterns.block, patterns.first
    above, left = gram_pairs(
        first.rows[patterns.of_constraints], first.columns[patterns.of_constraints]
    )
    index = block.index
    rows = np.concatenate([patterns.hess_rows, index[:, above].ravel()])
    columns = np.concatenate([patterns.hess_columns, index[:, left].ravel()])
    return rows, columns


def gram_pairs(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries (row >= column) of A^T A, for A with entries at these places."""
    from scipy.sparse import coo_array

    if not rows.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    A = coo_array((np.ones(rows.size), (rows, columns))).tocsr()
    product = (A.T @ A).tocoo()
    lower = product.row >= product.col
    return product.row[lower].astype(np.int64), product.col[lower].astype(np.int64)


def _busy(rows: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """Tell which unknowns have far more neighbours than most."""
    count = np.bincount(rows, minlength=n) + np.bincount(columns, minlength=n)
    usual = float(np.median(count[count > 0])) if np.any(count > 0) else 0.0
    busy = count > 10.0 * usual + 20.0
    return busy if np.count_nonzero(busy) <= BORDER else np.zeros(n, dtype=bool)


def _cuthill_mckee(rows: np.ndarray, columns: np.ndarray, kept: np.ndarray, n: int) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    number = np.full(n, -1)
    number[kept] = np.arange(kept.size)
    inside = (number[rows] >= 0) & (number[columns] >= 0)
    i, j = number[rows[inside]], number[columns[inside]]
    every = (np.concatenate([i, j]), np.concatenate([j, i]))
    shape = (kept.size, kept.size)
    graph = coo_array((np.ones(every[0].size), every), shape=shape).tocsr()
    return kept[reverse_cuthill_mckee(graph, symmetric_mode=True)]


class EntryTable:
    """The patterns of a block as native functions take them (``place_loops.py``)."""

    def __init__(self, patterns: BlockPatterns) -> None:
        first, second, block = patterns.first, patterns.second, patterns.block
        arrays = (block.rows, block.index, first.rows, first.columns, second.rows, second.columns)
        self._arrays = [np.ascontiguousarray(a, dtype=np.int64) for a in arrays]
        rows, index, *local = self._arrays
        self.first, self.second = (rows, index, *local[:2]), (index, *local[2:])
        places, ny, nz = block.places, block.rows.shape[1], block.index.shape[1]
        self.first_sizes, self.second_sizes = (places, ny, nz, first.nnz), (places, nz, second.nnz)
        # In one piece, so that the system can give memory in large pages.
        count = places * first.nnz
        room = np.empty(count + places * second.nnz, dtype=np.int64)
        #: Where each entry of the slopes is among those of A, and each of the curvatures in H.
        self.slots, self.places = room[:count], room[count:]

    def _at(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and unknowns of entries, -1 being the row of the objective."""
        rows, index, above, left = self._arrays[:4]
        k, e = np.divmod(entries, above.size)
        return rows[k, above[e]], index[k, left[e]]

    def places_in_rows(self, place: np.ndarray, n: int) -> np.ndarray:
        """Return a number for each place in A that an entry belongs to, -1 for none."""
        rows, unknowns = self._at(np.arange(self.slots.size))
        columns = place[unknowns]
        return np.where((rows < 0) | (columns < 0), -1, rows * n + columns)

    def dropped(self, slot: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, unknowns and numbers of the entries of constraints with this slot."""
        found = np.flatnonzero(self.slots == slot)
        rows, unknowns = self._at(found)
        kept = rows >= 0
        return rows[kept], unknowns[kept], found[kept]


#: Rows of A are scaled to sizes between 1 and 100.
DELTA = 1e-9
#: Where the first sweep leaves more than this part, there are more than two: so many pairs at most,
#: until no more than rounding is left.
ROUGH, SWEEPS, EXACT = 1e-3, 20, 1e-12


class Care(Enum):
    """How a system is solved: the effect of delta and of rounding is left, or taken away.

    PLAIN leaves them, REFINED takes them away but for equations that are almost dependent.
    """

    PLAIN = auto()
    REFINED = auto()


class BandedSystem:
    """The systems of one problem; all vectors are in the order of the chain, border last.

    ``loops`` are the native functions of ``native_loops.py``.
    """

    def __init__(self, structure: Structure, chain: Chain, loops: Any) -> None:
        self.chain, self.nb, self.nt = chain, chain.band.size, chain.border.size
        self.n, self.m, self.loops = self.nb + self.nt, structure.m, loops
        self._tables = [EntryTable(patterns) for patterns in structure.patterns]
        self._take_rows()
        reach = np.zeros(1, dtype=np.int64)
        for table in self._tables:
            loops.reach(*table.second, chain.place, *table.second_sizes, self.nb, reach)
        self.width = max(self.longest - 1, int(reach[0]), 0)
        self._take_room()
        self._take_hessian()
        self._bind()

    def _take_rows(self) -> None:
        """Sort the entries of A by rows; where each is, and which columns a row spans."""
        place, nb = self.chain.place, self.nb
        starts = np.zeros(2 * self.m + 1, dtype=np.int64)
        for table in self._tables:
            self.loops.count_rows(*table.first, place, *table.first_sizes, nb, starts)
        self.starts = starts.cumsum()
        self._make_columns(int(self.starts[-1]))
        nexts = self.starts.copy()
        for table in self._tables:
            given = (*table.first, place, *table.first_sizes, nb, nexts, self.entries)
            self.loops.fill_rows(*given, table.slots, self.columns)
        out = np.zeros(2, dtype=np.int64)
        self.firsts, self.lengths = (np.zeros(self.m, dtype=np.int64) for _ in range(2))
        self._spans(out)
        if out[1]:
            self._share_slots()
            self._spans(out)
        self.longest = int(out[0])
        self.jac = np.zeros(self.entries + 9)

    def _make_columns(self, entries: int) -> None:
        """Make room for so many entries; behind them is a slot for what is dropped."""
        self.entries, self.columns = entries, np.zeros(entries + 1, dtype=np.int64)

    def _share_slots(self) -> None:
        """Give entries that are listed more than once one slot."""
        key = np.concatenate([t.places_in_rows(self.chain.place, self.n) for t in self._tables])
        every, number = np.unique(key, return_inverse=True)
        dropped = int(every[0] < 0)
        once = every[dropped:]
        self._make_columns(once.size)
        rows, self.columns[:-1] = np.divmod(once, self.n)
        parts = np.bincount(2 * rows + (self.columns[:-1] >= self.nb), minlength=2 * self.m)
        self.starts[1:] = parts.cumsum()
        slots = np.where(number < dropped, once.size, number - dropped)
        for table in self._tables:
            table.slots[:], slots = slots[: table.slots.size], slots[table.slots.size :]

    def _spans(self, out: np.ndarray) -> None:
        seen = np.full(self.n, -1, dtype=np.int64)
        self.loops.spans(self.columns, self.starts, self.m, self.firsts, self.lengths, seen, out)

    def _take_room(self) -> None:
        """Make the arrays; ``kept`` columns of ``ld`` numbers are the band (``band_loops.py``)."""
        nb, nt = self.nb, self.nt
        lanes = np.zeros(1, dtype=np.int64)
        self.loops.vectors(lanes)
        self.ld = _multiple(self.width + PANEL + int(lanes[0]), int(lanes[0]))
        self.kept = _multiple(nb, PANEL)
        self.nv = _multiple(self.kept + self.ld, 8) + 8
        self.size = self.kept * self.ld + nt * self.nv + nt * nt
        # In one piece, so that the system can give memory in large pages.
        self._H, self._M = _aligned(2, _multiple(self.size + 8, 8))
        self._inverse, self._y = np.zeros(self.kept), np.zeros(self.nv)
        self._X, self._S = np.zeros(nt * self.nv + 8), np.zeros((nt, nt))
        self._span = np.zeros(self.longest + 32)
        self._diagonal, self._over = np.zeros(self.n), np.zeros(self.m)
        self._D, self._given_D = np.full(self.m, np.nan), np.zeros(self.m)
        #: The last D, where nobody can have changed it since.
        self._same_D: np.ndarray | None = None
        self._zeros, self._room = np.zeros(self.n), np.zeros(2 * (self.n + self.m))

    def _take_hessian(self) -> None:
        """Find where the entries of H are."""
        sizes = (self.nb, self.nt, self.kept, self.ld, self.nv)
        for table in self._tables:
            given = (*table.second, self.chain.place, *table.second_sizes, *sizes)
            self.loops.hessian_places(*given, table.places)

    def _bind(self) -> None:
        """Give the native functions what is the same in all calls."""
        loops = self.loops
        sizes = (self.nb, self.nt, self.kept, self.width, self.ld, self.nv)
        A = (self.jac, self.columns, self.starts)
        factors = (self._M, self._inverse, self._X, self._S)
        self._gram = loops.gram.bind(
            *(self._H, self._M, self.size, self._over, *A),
            *(self.firsts, self.lengths, self._span),
            *(self.m, self.nb, self.nt, self.ld, self.kept, self.nv),
        )
        self._factor = loops.factor.bind(*factors, self._diagonal, *sizes)
        system = (*factors, self._over, *A, self._y, self.m, *sizes)
        self._solve = loops.by_factors.bind(*system)
        more = (self._H, self._diagonal, self._given_D, self._D, self._room)
        self._refine = loops.refined.bind(*system, *more)
        self._transposed = loops.transposed.bind(*A, self.m)
        self._times = loops.times.bind(self._H, self._diagonal, *sizes)

    def take_jacobian(self, parts: Sequence[np.ndarray], scale: np.ndarray | None = None) -> None:
        """Take the slopes of each block (``Evaluator.slope_parts``), rows times ``scale`` (m,)."""
        self._add(parts, [table.slots for table in self._tables], self.jac, self.entries + 1)
        if scale is not None:
            self.loops.scale_rows(self.jac, self.starts, scale, self.m)

    def largest_of_rows(self) -> np.ndarray:
        """Return the largest entry of each row of A (m,)."""
        found = np.zeros(self.m)
        self.loops.largest_of_rows(self.jac, self.starts, self.m, found)
        return found

    def held(self, parts: Sequence[np.ndarray], lam: np.ndarray) -> np.ndarray:
        """Return the product of A^T and lam for all of the problem's unknowns that bounds hold.

        ``parts`` are slopes as in ``take_jacobian``; the others' numbers are zero.
        """
        total = np.zeros(self.chain.place.size)
        for table, part in zip(self._tables, parts):
            rows, columns, at = table.dropped(self.entries)
            total += summed(columns, part.ravel()[at] * lam[rows], total.size)
        return total

    def load(self, parts: Sequence[np.ndarray] = ()) -> None:
        """Take the curvatures of each block (``Evaluator.curvature_parts``); none: H is zero."""
        self._add(parts, [table.places for table in self._tables], self._H, self.size + 1)
        if self.nt > 1:
            self.loops.mirror(self._H, self.nt, self.kept, self.ld, self.nv)

    def _add(self, parts: Any, places: list[np.ndarray], to: np.ndarray, size: int) -> None:
        """Set ``size`` numbers to zero, and add each entry of all parts at its place."""
        self.loops.zeros(to, size)
        for part, at in zip(parts, places):
            entries = np.ascontiguousarray(part, dtype=np.float64)
            self.loops.add_at(entries, at, to, entries.size)

    def factor(self, diagonal: np.ndarray, D: np.ndarray) -> bool:
        """Factor with ``diagonal`` (n,) added to H; returns whether the inertia is right."""
        self._diagonal[:] = diagonal
        if D is not self._same_D:
            self._given_D[:] = D
            np.maximum(D, DELTA, out=self._D)
            np.divide(1.0, self._D, out=self._over)
            self._same_D = None if D.flags.writeable else D
        self._gram()
        return self._factor() == 0

    def transposed(self, lam: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Return start + A^T lam."""
        found = np.empty(self.n)
        self._transposed(lam, self._zeros if start is None else start, found, self.n)
        return found

    def solve(
        self, r: np.ndarray, rc: np.ndarray, care: Care = Care.REFINED
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx, dlam and what is left of the equations, relative to their size.

        What r has behind its n numbers is of no concern, and zero in dx. With ``Care.PLAIN``
        nobody looks at what is left: 0 is returned for it.
        """
        if care is Care.REFINED:
            x, lam, left = self._refined(r, rc)
            return (x, lam, left) if left <= ROUGH else self._refined_more(r, rc)
        x, lam = np.zeros(r.size), np.empty(self.m)
        self._solve(r, rc, x, lam)
        return x, lam, 0.0

    def _refined(self, r: np.ndarray, rc: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx and dlam after two sweeps, and what the first one left."""
        x, lam, out = np.zeros(r.size), np.empty(self.m), np.empty(3)
        self._refine(r, rc, x, lam, out)
        left, given, size = out.tolist()
        return x, lam, left / (max(given, 1e-300) + size)

    def _refined_more(self, r: np.ndarray, rc: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx, dlam and what is left after as many sweeps as gain something.

        Long chains whose cost has little curvature are such that rounding in M, of the size of
        A^T D^-1 A, hides much of H: each sweep finds only a part of what is missing.
        """
        n, product = self.n, np.empty(self.n)
        rows = np.repeat(np.arange(self.m), np.diff(self.starts[::2]))
        columns, jac = self.columns[: self.entries], self.jac[: self.entries]
        x, lam, rest, rest_c, before = np.zeros(r.size), np.zeros(self.m), r, rc, np.inf
        for _ in range(SWEEPS):
            dx, dlam, _ = self._refined(rest, rest_c)
            x, lam = x + dx, lam + dlam
            self._times(x, product)
            rest = r[:n] - product - self.transposed(lam)
            rest_c = rc - np.bincount(rows, jac * x[columns], self.m) + self._given_D * lam
            left, given = (max(_largest(a), _largest(b)) for a, b in ((rest, rest_c), (r[:n], rc)))
            left /= max(given, 1e-300) + _largest(x)
            if not EXACT < left < 0.5 * before:
                break
            before = left
        return x, lam, left


def _largest(numbers: np.ndarray) -> float:
    return float(np.abs(numbers).max(initial=0.0))


def _multiple(count: int, of: int) -> int:
    """Return the least multiple of a number that is not below ``count``."""
    return -(-count // of) * of


def _aligned(count: int, size: int) -> np.ndarray:
    """Return arrays of zeros that begin where vectors do; ``size`` is a multiple of 8."""
    room = np.zeros(count * size + 8)
    first = -(room.ctypes.data // 8) % 8
    return room[first : first + count * size].reshape(count, size)
