"""The linear systems of an interior-point method, by banded Cholesky factors.

Symbols: H (n, n) the Lagrangian's Hessian with the barrier's diagonal, A (m, n) the Jacobian, D
(m,) >= 0 a diagonal, zero for equations:

    [H  A^T] [dx  ]   [r ]
    [A  -D ] [dlam] = [rc]

With D raised to at least delta, dlam is eliminated: M dx = r + A^T D^-1 rc, M = H + A^T D^-1 A. In
the order of a chain this is a narrow band, and it is positive definite exactly where H is on the
null space of A, up to delta: that is what the inertia of the whole matrix is asked for. Steps of
refinement on the system above take the effect of delta away again. Unknowns of the border are
found by their Schur complement. The loops are native (``band_loops.py``).

A chain: two unknowns are neighbours if some block's function takes both. A few that touch
everything (final time, parameters) are the *border*, outside the band. The others are ordered as
the task says (time), or by reverse Cuthill-McKee.

Sources: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), sections 16.1,
17.4 and 19.3; M. Friedlander, D. Orban, "A primal-dual regularized interior-point method for
convex quadratic programs", Math. Program. Comput. 4, 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from archimedes.optimize.problems.blocks import BlockPatterns, Structure
from archimedes.optimize.solvers.interior_point import band_loops
from archimedes.optimize.solvers.interior_point.loop_descriptions import flatten

#: At most this many unknowns are the border.
BORDER = 40
#: Rows of A are scaled to sizes between 1 and 100.
DELTA = 1e-9
#: Where the first sweep leaves more than this part, there are more than two: so many pairs at most,
#: until no more than rounding is left.
ROUGH, SWEEPS, EXACT = 1e-3, 20, 1e-12


class Chain(NamedTuple):
    """Numbers of the free unknowns in the band and of those in the border.

    ``position`` (n,) is 0..nb-1 for unknowns in the band, nb.. in the border, -1 for fixed ones.
    """

    band: np.ndarray
    border: np.ndarray
    position: np.ndarray


def find_chain(
    patterns: Sequence[BlockPatterns], free: np.ndarray, order: np.ndarray | None
) -> Chain:
    """Return the chain of the unknowns for which ``free`` (n,) holds.

    ``order`` (n,) are positions along the chain, nan for what touches everything, or None.
    """
    n = free.size
    if order is None:
        border, band = _order_by_neighbours(patterns, free)
    else:
        border = np.isnan(order)
        band = np.flatnonzero(free & ~border)
        band = band[np.argsort(order[band], kind="stable")]
    outside = np.flatnonzero(free & border)
    position = np.full(n, -1)
    position[band] = np.arange(band.size)
    position[outside] = band.size + np.arange(outside.size)
    return Chain(band, outside, position)


def _order_by_neighbours(
    patterns: Sequence[BlockPatterns], free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which unknowns are the border, and the band by reverse Cuthill-McKee."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = free.size
    pairs = [_find_neighbours(p) for p in patterns]
    rows, columns = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    both_free = free[rows] & free[columns]
    rows, columns = rows[both_free], columns[both_free]
    # Unknowns with far more neighbours than most are the border.
    count = np.bincount(rows, minlength=n) + np.bincount(columns, minlength=n)
    usual = float(np.median(count[count > 0])) if np.any(count > 0) else 0.0
    border = count > 10.0 * usual + 20.0
    if np.count_nonzero(border) > BORDER:
        border[:] = False
    inner = np.flatnonzero(free & ~border)
    number = np.full(n, -1)
    number[inner] = np.arange(inner.size)
    inside = (number[rows] >= 0) & (number[columns] >= 0)
    i, j = number[rows[inside]], number[columns[inside]]
    edges = (np.concatenate([i, j]), np.concatenate([j, i]))
    graph = coo_array((np.ones(2 * i.size), edges), shape=(inner.size, inner.size)).tocsr()
    return border, inner[reverse_cuthill_mckee(graph, symmetric_mode=True)]


def _find_neighbours(patterns: BlockPatterns) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of unknowns with a curvature, or in one constraint: entries of A^T A."""
    from scipy.sparse import coo_array

    rows, columns = ([part] for part in patterns.hess_pairs())
    first, local, index = patterns.first, patterns.of_constraints, patterns.block.index
    if np.any(patterns.is_constraint):
        entries = (first.rows[local], first.columns[local])
        A = coo_array((np.ones(entries[0].size), entries)).tocsr()
        product = (A.T @ A).tocoo()
        lower = product.row >= product.col
        rows.append(index[:, product.row[lower]].ravel())
        columns.append(index[:, product.col[lower]].ravel())
    return np.concatenate(rows), np.concatenate(columns)


class BandedSystem:
    """The systems of one problem; all vectors are in the order of the chain, border last.

    ``loops`` are the native functions of ``loop_descriptions.py``.
    """

    def __init__(self, structure: Structure, chain: Chain, loops: SimpleNamespace) -> None:
        self.chain, nb, nt = chain, chain.band.size, chain.border.size
        self.n, self.m, self.loops = nb + nt, structure.m, loops
        spans = self._sort_rows(structure, nb)
        one, other = (chain.position[unknowns] for unknowns in structure.hess_pairs)
        low, high = np.minimum(one, other), np.maximum(one, other)
        inside = (low >= 0) & (high < nb)
        width = max(int(spans.lengths.max(initial=1)) - 1, np.max((high - low)[inside], initial=0))
        lanes, panel = np.zeros(1, dtype=np.int64), band_loops.PANEL
        loops.count_lanes(lanes)
        ld, nc = _round_up(width + panel + lanes.item(), lanes.item()), _round_up(nb, panel)
        nv = _round_up(nc + ld, 8) + 8
        self.sizes = band_loops.Sizes(nb, nt, nc, int(width), ld, nv)
        # Entries of H are in the band, beside it, in the corner, or, if of no use, behind it all.
        beside = np.where(low < nb, (high - nb) * nv + low, nt * nv + (high - nb) * nt + low - nb)
        used = np.where(high < nb, low * ld + high - low, nc * ld + beside)
        self._hessian_slots = np.where(low < 0, nc * ld + nt * nv + nt * nt, used)
        self._bind(spans)

    def _sort_rows(self, structure: Structure, nb: int) -> band_loops.Spans:
        """Sort the entries of A by rows, those of the band first; return what the rows span.

        An entry that is listed more than once has one slot. Those of unknowns that are held have
        the slot behind all others.
        """
        m, rows, columns = self.m, structure.jac_rows, self.chain.position[structure.jac_columns]
        keys = np.where(columns < 0, -1, rows * self.n + columns)
        unique, first, number = np.unique(keys, return_index=True, return_inverse=True)
        first = first[int(unique.size > 0 and unique[0] < 0) :]
        parts = 2 * rows[first] + (columns[first] >= nb)
        order = np.lexsort((first, parts))
        self.entries = count = first.size
        slots = np.full(unique.size, count)
        slots[unique.size - count + order] = np.arange(count)
        self._slots = slots[number]
        starts = np.append(0, np.bincount(parts, minlength=2 * m).cumsum())
        # Behind the entries is room for those that are dropped.
        sorted_columns = np.append(columns[first[order]], 0)
        self.A = band_loops.Rows(np.zeros(count + 9), sorted_columns, starts, m)
        self._entry_rows = rows[first[order]]
        in_band = columns[first] < nb
        rows, columns = rows[first[in_band]], columns[first[in_band]]
        firsts, lasts = np.full(m, nb), np.full(m, -1)
        np.minimum.at(firsts, rows, columns)
        np.maximum.at(lasts, rows, columns)
        lengths = np.maximum(lasts - firsts + 1, 0)
        return band_loops.Spans(firsts, lengths, np.zeros(lengths.max(initial=0) + 32))

    def _bind(self, spans: band_loops.Spans) -> None:
        """Make the arrays, and give them to the native functions."""
        loops, sizes, A, m = self.loops, self.sizes, self.A, self.m
        _, nt, nc, _, ld, nv = sizes
        self.size = nc * ld + nt * nv + nt * nt
        # In one piece, so that the system can give memory in large pages.
        self._H, M = _aligned_zeros(2, _round_up(self.size + 8, 8))
        solved = np.zeros(nc), np.zeros(nt * nv + 8), np.zeros((nt, nt))
        factors = band_loops.Factors(M, *solved, sizes)
        self._diagonal, self._over = np.zeros(self.n), np.zeros(m)
        self._raised_D, self._D = np.full(m, np.nan), np.zeros(m)
        #: The last D, where nobody can have changed it since.
        self._same_D: np.ndarray | None = None
        room = np.zeros(2 * (self.n + m))
        system = band_loops.System(factors, self._over, A, np.zeros(nv))
        correction = band_loops.Correction(self._H, self._diagonal, self._D, self._raised_D, room)
        self._gram = loops.gram.bind(*flatten(self._H, M, self._over, A, spans, sizes))
        self._factor = loops.factor.bind(*flatten(factors, self._diagonal))
        self._solve = loops.solve_factored.bind(*flatten(system))
        self._refine = loops.solve_refined.bind(*flatten(system, correction))
        self._multiply_transpose = loops.multiply_transpose.bind(*flatten(A))
        self._multiply_hessian = loops.multiply_hessian.bind(self._H, self._diagonal, *sizes)

    def take_jacobian(self, entries: np.ndarray, scale: np.ndarray | None = None) -> None:
        """Take the entries of the Jacobian (``Evaluator.slopes``), rows times ``scale`` (m,)."""
        self._scatter(entries, self._slots, self.A.entries, self.entries + 1)
        if scale is not None:
            self.loops.scale_rows(*self.A, scale)

    def find_row_maxima(self) -> np.ndarray:
        """Return the largest entry of each row of A (m,)."""
        largest = np.zeros(self.m)
        np.maximum.at(largest, self._entry_rows, np.abs(self.A.entries[: self.entries]))
        return largest

    def take_hessian(self, entries: np.ndarray | None = None) -> None:
        """Take the entries of the Hessian (``Evaluator.curvature``); None: H is zero."""
        self._scatter(entries, self._hessian_slots, self._H, self.size + 1)
        nt = self.sizes.nt
        if nt > 1:
            corner = self._H[self.size - nt * nt : self.size].reshape(nt, nt)
            corner += np.tril(corner, -1).T

    def _scatter(
        self, entries: np.ndarray | None, slots: np.ndarray, to: np.ndarray, size: int
    ) -> None:
        """Set ``size`` numbers to zero, and add each entry at its slot."""
        self.loops.set_zero(to, size)
        if entries is not None:
            numbers = np.ascontiguousarray(entries, dtype=np.float64)
            self.loops.scatter_add(numbers, slots, to, numbers.size)

    def factor(self, diagonal: np.ndarray, D: np.ndarray) -> bool:
        """Factor with ``diagonal`` (n,) added to H; returns whether the inertia is right."""
        self._diagonal[:] = diagonal
        if D is not self._same_D:
            self._D[:] = D
            np.maximum(D, DELTA, out=self._raised_D)
            np.divide(1.0, self._raised_D, out=self._over)
            self._same_D = None if D.flags.writeable else D
        self._gram()
        return self._factor() == 0

    def multiply_transpose(self, lam: np.ndarray) -> np.ndarray:
        """Return A^T lam."""
        product = np.empty(self.n)
        self._multiply_transpose(lam, product, self.n)
        return product

    def solve(
        self, r: np.ndarray, rc: np.ndarray, refined: bool = True
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx, dlam and what is left of the equations, relative to their size.

        What r has behind its n numbers is of no concern, and zero in dx. Unless it is ``refined``,
        the effect of delta and of rounding stays, and 0 is returned for what is left.
        """
        if refined:
            x, lam, left = self._solve_refined(r, rc)
            return (x, lam, left) if left <= ROUGH else self._refine_more(r, rc)
        x, lam = np.zeros(r.size), np.empty(self.m)
        self._solve(r, rc, x, lam)
        return x, lam, 0.0

    def _solve_refined(self, r: np.ndarray, rc: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx and dlam after two sweeps, and what the first one left."""
        x, lam, out = np.zeros(r.size), np.empty(self.m), np.empty(3)
        self._refine(r, rc, x, lam, out)
        left, right, size = out.tolist()
        return x, lam, left / (max(right, 1e-300) + size)

    def _refine_more(self, r: np.ndarray, rc: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx, dlam and what is left after as many sweeps as gain something.

        Long chains whose cost has little curvature are such that rounding in M, of the size of
        A^T D^-1 A, hides much of H: each sweep finds only a part of what is missing.
        """
        n, product = self.n, np.empty(self.n)
        columns, jac = self.A.columns[: self.entries], self.A.entries[: self.entries]
        x, lam, rest, rest_c, before = np.zeros(r.size), np.zeros(self.m), r, rc, np.inf
        for _ in range(SWEEPS):
            dx, dlam, _ = self._solve_refined(rest, rest_c)
            x[:n] += dx[:n]
            lam += dlam
            self._multiply_hessian(x, product)
            rest = r[:n] - product - self.multiply_transpose(lam)
            rest_c = rc - np.bincount(self._entry_rows, jac * x[columns], self.m) + self._D * lam
            left, right = (max(_largest(a), _largest(b)) for a, b in ((rest, rest_c), (r[:n], rc)))
            left /= max(right, 1e-300) + _largest(x)
            if not EXACT < left < 0.5 * before:
                break
            before = left
        return x, lam, left


def _largest(numbers: np.ndarray) -> float:
    return float(np.abs(numbers).max(initial=0.0))


def _round_up(count: int, multiple: int) -> int:
    """Return the least multiple of a number that is not below ``count``."""
    return -(-count // multiple) * multiple


def _aligned_zeros(count: int, size: int) -> np.ndarray:
    """Return arrays of zeros that begin where vectors do; ``size`` is a multiple of 8."""
    room = np.zeros(count * size + 8)
    first = -(room.ctypes.data // 8) % 8
    return room[first : first + count * size].reshape(count, size)
