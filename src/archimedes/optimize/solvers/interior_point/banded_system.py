"""The linear systems of an interior-point method, by banded Cholesky factors.

Symbols: H (n, n) the Lagrangian's Hessian with the barrier's diagonal, A (m, n) the Jacobian, D
(m,) >= 0 a diagonal, zero for equations:

    [H  A^T] [dx  ]   [r ]
    [A  -D ] [dlam] = [rc]

With D raised to at least delta, dlam is eliminated: (H + A^T D^-1 A) dx = r + A^T D^-1 rc. In the
order of a chain this is a narrow band, and it is positive definite exactly where H is on the
null space of A, up to delta: that is what the inertia of the whole matrix is asked for. Steps of
refinement on the system above take the effect of delta away again. Unknowns of the border are
found by their Schur complement.

Sources: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), sections 16.1,
17.4 and 19.3; M. Friedlander, D. Orban, "A primal-dual regularized interior-point method for
convex quadratic programs", Math. Program. Comput. 4, 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import numpy as np

from archimedes.optimize.problems.blocks import BlockPatterns
from archimedes.optimize.problems.evaluation import Structure, summed
from archimedes.optimize.solvers.interior_point.chains import Chain, gram_pairs

__all__ = ["BandedSystem", "Care"]

#: Rows of A are scaled to sizes between 1 and 100.
DELTA = 1e-9
REFINEMENTS, RESIDUAL = 8, 1e-10


class Care(Enum):
    """How a system is solved: the effect of delta and of rounding is left, or taken away.

    PLAIN leaves them, REFINED takes them away but for equations that are almost dependent, EXACT
    from these, too.
    """

    PLAIN = auto()
    REFINED = auto()
    EXACT = auto()


class _Products:
    """A^T diag(d) A of one block, as entries of the band."""

    def __init__(self, patterns: BlockPatterns, chain: Chain, begin: int) -> None:
        block, first = patterns.block, patterns.first
        rows = first.rows[patterns.of_constraints]
        columns = first.columns[patterns.of_constraints]
        self.count, self.begin = block.places, begin
        self.end = begin + block.places * rows.size
        inside = chain.place[block.index] < chain.band.size
        # Fixed unknowns and those of the border have no part in the band.
        used = np.flatnonzero(np.any(inside & (chain.place[block.index] >= 0), axis=0))
        number = np.full(block.index.shape[1], -1)
        number[used] = np.arange(used.size)
        self.kept = np.flatnonzero(number[columns] >= 0)
        above, left = gram_pairs(rows[self.kept], number[columns[self.kept]])
        i, j = (chain.place[block.index[:, used[k]]] for k in (above, left))
        good = (i >= 0) & (j >= 0) & (i < chain.band.size) & (j < chain.band.size)
        low, high = np.minimum(i, j), np.maximum(i, j)
        size = chain.band.size * (chain.width + 1)
        self.target = np.where(good, high - low + low * (chain.width + 1), size).ravel()
        self.rows_used, self.row_numbers = np.unique(rows, return_inverse=True)
        self.at = self.row_numbers[self.kept] * used.size + number[columns[self.kept]]
        self.pair = above * used.size + left
        self.shape = (self.rows_used.size, used.size)
        self.dense = np.zeros((self.count, self.rows_used.size * used.size))
        self.weight_rows = block.rows[:, self.rows_used]
        self.sparse = block.places == 1 and self.dense.size > 20_000
        if self.sparse:
            self._set_up_sparse(above, left)

    def _set_up_sparse(self, above: np.ndarray, left: np.ndarray) -> None:
        from scipy.sparse import coo_array

        rows, columns = divmod(self.at, self.shape[1])
        keys = above * self.shape[1] + left
        self.order = np.argsort(keys)
        self.keys = keys[self.order]
        self.places = (rows, columns)
        self.make = coo_array
        self.dense = np.zeros((1, 0))

    def entries(self, jacobian: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the entries at ``target``."""
        own = jacobian[self.begin : self.end].reshape(self.count, -1)
        d = weights[self.weight_rows]
        if self.sparse:
            return self._sparse_entries(own[0, self.kept], d[0])
        self.dense[:, self.at] = own if self.kept.size == own.shape[1] else own[:, self.kept]
        J = self.dense.reshape(self.count, *self.shape)
        product = np.matmul(J.transpose(0, 2, 1), J * d[:, :, None])
        return product.reshape(self.count, -1).take(self.pair, axis=1).ravel()

    def _sparse_entries(self, values: np.ndarray, d: np.ndarray) -> np.ndarray:
        A = self.make((values * np.sqrt(d)[self.places[0]], self.places), shape=self.shape).tocsr()
        product = (A.T @ A).tocoo()
        lower = product.row >= product.col
        keys = product.row[lower].astype(np.int64) * self.shape[1] + product.col[lower]
        found = np.zeros(self.keys.size)
        found[self.order[np.searchsorted(self.keys, keys)]] = product.data[lower]
        return found


class BandedSystem:
    """The systems of one problem; all vectors are in the order of the chain, border last."""

    def __init__(
        self, structure: Structure, patterns: Sequence[BlockPatterns], chain: Chain
    ) -> None:
        from scipy.linalg import blas, lapack
        from scipy.sparse import csc_array, csr_array

        self._lapack, self._blas = lapack, blas
        self._base: tuple[np.ndarray, np.ndarray] | None = None
        self.chain, self.nb, self.nt = chain, chain.band.size, chain.border.size
        self.n, self.m, self.width = self.nb + self.nt, structure.m, chain.width
        self._hessian_targets(structure)
        begin, self.products = 0, []
        for p in patterns:
            if p.of_constraints.size:
                self.products.append(_Products(p, chain, begin))
                begin = self.products[-1].end
        parts = [p.target for p in self.products]
        self._targets = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        kept = np.flatnonzero(chain.place[structure.jac_columns] >= 0)
        rows = structure.jac_rows[kept]
        by_row = np.argsort(rows, kind="stable")
        self._jac_order = kept[by_row]
        starts = np.searchsorted(rows[by_row], np.arange(self.m + 1))
        columns = chain.place[structure.jac_columns[self._jac_order]]
        self._jac = np.zeros(columns.size)
        # Both share the entries.
        self.A = csr_array((self._jac, columns, starts), shape=(self.m, self.n))
        self.At = csc_array((self._jac, columns, starts), shape=(self.n, self.m))
        self.A.data = self.At.data = self._jac
        self._border_entries = np.flatnonzero(columns >= self.nb)
        self._border_places = (
            rows[by_row][self._border_entries] * self.nt + columns[self._border_entries] - self.nb
        )

    def _hessian_targets(self, structure: Structure) -> None:
        """Entries of H are in the band, beside the border (n, nt), or dropped."""
        nb, w = self.nb, self.width
        i, j = (self.chain.place[v] for v in (structure.hess_rows, structure.hess_columns))
        low, high = np.minimum(i, j), np.maximum(i, j)
        band, border = nb * (w + 1), self.n * self.nt
        at = np.where(high < nb, high - low + low * (w + 1), band + low * self.nt + high - nb)
        self._hess_at = np.where(low < 0, band + border, at)
        self._sizes = (band, border)

    def take_jacobian(self, jacobian: np.ndarray) -> None:
        """Take the entries of A, as a structure lists them."""
        self._entries, self._base = jacobian, None
        # All places exist: the mode saves a copy.
        np.take(jacobian, self._jac_order, out=self._jac, mode="clip")
        if self.nt:
            self._Ab = np.zeros((self.m, self.nt))
            self._Ab.ravel()[self._border_places] = self._jac.take(self._border_entries)

    def load(self, hessian: np.ndarray | None) -> None:
        """Take the entries of H, as a structure lists them; None: H is zero."""
        self._base = None
        band, border = self._sizes
        flat: np.ndarray
        if hessian is None:
            flat = np.zeros(band + border)
        else:
            flat = summed(self._hess_at, hessian, band + border + 1)
        self._H = flat[:band].reshape(self.nb, self.width + 1).T
        if self.nt:
            corner = flat[band : band + border].reshape(self.n, self.nt)
            self._Hb, upper = corner[: self.nb], corner[self.nb :]
            self._corner = upper + upper.T
            self._corner.flat[:: self.nt + 1] *= 0.5

    def factor(self, diagonal: np.ndarray, D: np.ndarray) -> bool:
        """Factor with ``diagonal`` (n,) added to H; returns whether the inertia is right."""
        self._diagonal = diagonal
        self._given_D, self._D = D, np.maximum(D, DELTA)
        K = self._together().copy(order="F")
        K[0] += diagonal[: self.nb]
        self._factor, info = self._lapack.dpbtrf(K, lower=1, overwrite_ab=1)
        if info != 0:
            return False
        return self._factor_border() if self.nt else True

    def _together(self) -> np.ndarray:
        """Return the band of M = H + A^T D^-1 A, kept for trials with other diagonals."""
        if self._base is None or not np.array_equal(self._D, self._base[0]):
            self._over = 1.0 / self._D
            K = self._H
            if self.products:
                parts = [p.entries(self._entries, self._over) for p in self.products]
                weights = parts[0] if len(parts) == 1 else np.concatenate(parts)
                flat = summed(self._targets, weights, self._sizes[0] + 1)
                K = K + flat[:-1].reshape(self.nb, self.width + 1).T
            self._base = self._D, K
            if self.nt:
                self._border_of_M()
        return self._base[1]

    def _border_of_M(self) -> None:
        """Find the columns of M beside the band, without the diagonal."""
        M = self.At @ (self._over[:, None] * self._Ab)
        self._M_beside = self._Hb + M[: self.nb]
        self._M_corner = self._corner + M[self.nb :]

    def _factor_border(self) -> bool:
        """Factor the Schur complement of the border."""
        self._X = self._band_solve(self._M_beside)
        S = self._M_corner - self._M_beside.T @ self._X
        S.flat[:: self.nt + 1] += self._diagonal[self.nb :]
        factor, info = self._lapack.dpotrf(0.5 * (S + S.T), lower=1)
        if info == 0:
            self._S = factor
        return bool(info == 0)

    def _band_solve(self, right: np.ndarray) -> np.ndarray:
        return self._lapack.dpbtrs(self._factor, right, lower=1)[0]

    def _times(self, x: np.ndarray) -> np.ndarray:
        """Return H x, its diagonal included."""
        if not self.nt:
            start = self._diagonal * x
            return self._blas.dsbmv(
                self.width, 1.0, self._H, x, beta=1.0, y=start, lower=1, overwrite_y=1
            )
        top = x[: self.nb]
        found = self._diagonal * x
        found[: self.nb] += self._blas.dsbmv(self.width, 1.0, self._H, top, lower=1)
        found[: self.nb] += self._Hb @ x[self.nb :]
        found[self.nb :] += self._Hb.T @ top + self._corner @ x[self.nb :]
        return found

    def _once(self, r: np.ndarray, rc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve with the factors."""
        right = r + self.At @ (self._over * rc) if self.m else r
        if self.nt:
            top = self._band_solve(right[: self.nb])
            rest = right[self.nb :] - self._M_beside.T @ top
            t = self._lapack.dpotrs(self._S, rest, lower=1)[0]
            x = np.concatenate([top - self._X @ t, t])
        else:
            x = self._band_solve(right)
        return x, self._over * (self.A @ x - rc)

    def _rest(self, v: np.ndarray, right: np.ndarray) -> np.ndarray:
        x, lam = v[: self.n], v[self.n :]
        top = self._times(x) + self.At @ lam
        return right - np.concatenate([top, self.A @ x - self._given_D * lam])

    def _by_factors(self, right: np.ndarray) -> np.ndarray:
        return np.concatenate(self._once(right[: self.n], right[self.n :]))

    def solve(
        self, r: np.ndarray, rc: np.ndarray, care: Care = Care.REFINED
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dx, dlam and what is left of the equations, relative to their size.

        With ``Care.PLAIN`` nobody looks at what is left: 0 is returned for it.
        """
        x, lam = self._once(r, rc)
        if care is Care.PLAIN:
            return x, lam, 0.0
        if care is Care.EXACT:
            v, right = np.concatenate([x, lam]), np.concatenate([r, rc])
            size = max(_largest(right), 1e-300)
            v, left = self._accelerated(v, self._rest(v, right), right, size)
            return v[: self.n], v[self.n :], left
        rest = r - self._times(x)
        rest -= self.At @ lam
        left = _largest(rest) / (max(_largest(r), _largest(rc), 1e-300) + _largest(x))
        # The equations are met up to delta by construction.
        rest_c = (self._given_D - self._D) * lam
        more, more_lam = self._once(rest, rest_c)
        return x + more, lam + more_lam, left

    def _accelerated(
        self, v: np.ndarray, rest: np.ndarray, right: np.ndarray, size: float
    ) -> tuple[np.ndarray, float]:
        """Refine by GMRES, the factors being its preconditioner."""
        norm = float(np.linalg.norm(rest))
        basis, images = [rest / norm], []
        H = np.zeros((REFINEMENTS + 1, REFINEMENTS))
        best, least = v, _largest(rest) / (size + _largest(v[: self.n]))
        zero = np.zeros_like(rest)
        for k in range(REFINEMENTS):
            images.append(self._by_factors(basis[k]))
            new = -self._rest(images[k], zero)
            for j, b in enumerate(basis):
                H[j, k] = b @ new
                new = new - H[j, k] * b
            H[k + 1, k] = np.linalg.norm(new)
            e = np.zeros(k + 2)
            e[0] = norm
            y = np.linalg.lstsq(H[: k + 2, : k + 1], e, rcond=None)[0]
            moved = v + sum(a * b for a, b in zip(y, images))
            now = _largest(self._rest(moved, right)) / (size + _largest(moved[: self.n]))
            if now < least:
                best, least = moved, now
            if least < RESIDUAL or H[k + 1, k] < 1e-14 * norm:
                break
            basis.append(new / H[k + 1, k])
        return best, least


def _largest(v: np.ndarray) -> float:
    return float(np.abs(v).max()) if v.size else 0.0
