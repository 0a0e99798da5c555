"""Sparse Jacobians of large models: their patterns, their entries, and linear systems with them.

**Jacobians** df/dx of right-hand sides. Columns that share no row are computed together, as the
exact derivative along one direction (A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation
of sparse Jacobian matrices", IMA J. Appl. Math. 13 (1974) 117-119).

**Pencils** dF/dxdot + c dF/dx of implicit equations F(t, x, xdot) = 0. Such a matrix need not be
large on its diagonal: users write equations in any order, and an algebraic one may not hold the
unknown of its own number. So rows are first scaled and brought into the order that makes the
diagonal largest, and then factorized block by block as Jacobians are. Where elements grow too far,
the order is chosen anew. Source: I. S. Duff, J. Koster, "On algorithms for permuting large entries
to the diagonal of a sparse matrix", SIAM J. Matrix Anal. Appl. 22 (2001) 973-996.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import jvp
from archimedes.function.derivatives.sparse import structure
from archimedes.graph.derivatives.coloring import Pattern, column_colors
from archimedes.simulate.sparse.sparse_systems import SparseSystem
from archimedes.slow_notice import notify_if_slow

if TYPE_CHECKING:
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import Array, Scalar


#: Returns the solution (n,) of a linear system for a right side (n,).
Solver = Callable[[np.ndarray], np.ndarray]


class Compression:
    """A sparsity pattern, in the order of columns, and few directions that give all its entries.

    Parameters
    ----------
    rows, columns
        Where entries are, each place once.
    n
        Number of columns.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, n: int) -> None:
        order = np.lexsort((rows, columns))
        self.rows, self.columns = rows[order], columns[order]
        # In the order of columns, they are the rows of the transposed matrix.
        height = int(rows.max(initial=-1)) + 1
        groups = column_colors(Pattern(self.columns, self.rows, (n, height)).transpose)
        count = int(groups.max(initial=-1)) + 1
        self.directions = [np.where(groups == k, 1.0, 0.0) for k in range(count)]
        own = groups[self.columns]
        self.parts = [np.flatnonzero(own == k) for k in range(count)]

    def values(self, along: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the entries of the matrix whose product with a direction is ``along`` of it."""
        values = np.empty(len(self.rows))
        for direction, part in zip(self.directions, self.parts):
            values[part] = along(direction)[self.rows[part]]
        return values


class CompressedJacobian:
    """The Jacobian of ``f(t, x, args)`` (n,) in x for one structure of arguments.

    ``native`` compiles a function as solves do; ``factors`` is what a backend has for systems.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        native: Callable[..., Any],
        t: Scalar,
        x: np.ndarray,
        args: Args,
        factors: Any,
    ) -> None:
        self.size = x.size
        with notify_if_slow(
            "finding the pattern of a Jacobian and the order of elimination", self._slow
        ):
            rows, columns, _ = structure(f, argnums=1)(t, x, args)
            self.pattern = Compression(rows, columns, x.size)
            self.rows, self.columns = self.pattern.rows, self.pattern.columns
            self.system = SparseSystem(self.rows, self.columns, x.size, factors)
        self.still = np.zeros(x.size)
        self._stages: dict[int, SparseSystem] = {}

        def along(t: Scalar, x: Array, dt: Scalar, dx: Array, args: Args) -> Any:
            return jvp(f, argnums=(0, 1))(t, x, args, (dt, dx))

        self.along = native(along, "along")

    def _slow(self) -> str:
        return (
            f"the state has {self.size:,} numbers. It is done once for a model; systems that are "
            "not stiff need none of it with an explicit method, such as 'dop853'"
        )

    def stages(self, count: int) -> SparseSystem:
        """Return systems with a copy of the Jacobian for each pair of ``count`` stages."""
        if count not in self._stages:
            n, (i, j) = self.size, np.divmod(np.arange(count * count), count)
            rows, columns = np.add.outer(i * n, self.rows), np.add.outer(j * n, self.columns)
            self._stages[count] = SparseSystem(
                rows.ravel(), columns.ravel(), count * n, self.system.native
            )
        return self._stages[count]

    def at(self, t: Scalar, x: np.ndarray, args: Args) -> tuple[np.ndarray, SparseJacobian]:
        """Return df/dt and df/dx."""
        t = float(t)
        values = self.pattern.values(lambda direction: self.along(t, x, 0.0, direction, args))
        return self.along(t, x, 1.0, self.still, args), SparseJacobian(self, values)


class SparseJacobian:
    """A Jacobian: its entries, and systems with it."""

    def __init__(self, form: CompressedJacobian, values: np.ndarray) -> None:
        self.form, self.values = form, values

    def solver(
        self, diagonal: Scalar, factor: float, rounded: bool = False
    ) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (diagonal + factor J) x = r; see ``factorize``."""
        system = self.form.system
        return system.factorize(factor * self.values, float(diagonal), rounded).solve

    def stage_solver(self, coefficients: np.ndarray, h: Scalar) -> Solver:
        """Return r -> x, the solution of (I - h coefficients kron J) x = r: all stages at once."""
        system = self.form.stages(len(coefficients))
        return system.factorize(-h * np.kron(coefficients.ravel(), self.values), 1.0).solve

    def norm(self) -> Any:
        """Return the largest sum of sizes in a row."""
        sums = np.bincount(self.form.rows, np.abs(self.values), self.form.size)
        return sums.max(initial=0.0)


#: Where elements grow by more than this factor, another order of rows is looked for.
GROWTH = 1e4


def match_rows(
    rows: np.ndarray, columns: np.ndarray, exponents: np.ndarray, n: int
) -> np.ndarray | None:
    """Return for each row of a matrix the column whose diagonal it goes to.

    Parameters
    ----------
    rows, columns
        Where entries are, each place once.
    exponents
        Sizes of the entries as powers of two, integers.
    n
        Number of rows and of columns.

    Returns
    -------
    numpy.ndarray or None
        (n,): the permutation with the largest product of diagonal entries; None where every
        permutation has a zero on the diagonal.

    Examples
    --------
    >>> at = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> match_rows(*at, np.array([5, 0, 0]), 2).tolist()
    [1, 0]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    weights = 1.0 + (exponents.max(initial=0) - exponents)
    try:
        matched, partners = min_weight_full_bipartite_matching(
            csr_array((weights, (rows, columns)), shape=(n, n))
        )
    except ValueError:
        return None
    order = np.empty(n, np.int64)
    order[matched] = partners
    return order


class CompressedPencil:
    """dF/dxdot and dF/dx of ``F(t, x, xdot, args)`` (n,) for one structure of arguments.

    ``native`` compiles a function as solves do.
    """

    def __init__(
        self,
        F: Callable[..., Any],
        native: Callable[..., Any],
        point: tuple[float, np.ndarray, np.ndarray, Any],
    ) -> None:
        n = self.size = point[1].size
        entries = [structure(F, argnums=k)(*point) for k in (1, 2)]
        patterns = [Compression(rows, columns, n) for rows, columns, _ in entries]
        self.by_x, self.by_xdot = patterns
        keys = [pattern.rows * n + pattern.columns for pattern in patterns]
        every = np.unique(np.concatenate(keys))
        self.rows, self.columns = np.divmod(every, n)
        #: Where entries of the two are among all.
        self.at_x, self.at_xdot = (np.searchsorted(every, key) for key in keys)
        self.still = np.zeros(n)
        #: The order of rows, and systems in this order.
        self.order: np.ndarray | None = None
        self.system: SparseSystem | None = None

        def along(t: Scalar, x: Array, xdot: Array, args: Args, *direction: Array) -> Any:
            return jvp(F, argnums=(0, 1, 2))(t, x, xdot, args, direction)

        self.along = native(along, "along")

    def at(self, t: float, x: np.ndarray, xdot: np.ndarray, args: Args) -> SparsePencil:
        """Return the two matrices at a point."""
        point, still = (t, x, xdot, args), self.still
        by_x = self.by_x.values(lambda d: self.along(*point, 0.0, d, still))
        by_xdot = self.by_xdot.values(lambda d: self.along(*point, 0.0, still, d))
        return SparsePencil(self, by_x, by_xdot)

    def by_time(self, t: float, x: np.ndarray, xdot: np.ndarray, args: Args) -> np.ndarray:
        """Return dF/dt, (n,)."""
        return self.along(t, x, xdot, args, 1.0, self.still, self.still)

    def reorder(self, values: np.ndarray) -> bool:
        """Choose the order of rows for these entries; return whether it is another one."""
        used = np.flatnonzero((values != 0.0) & np.isfinite(values))
        exponents = np.frexp(values[used])[1]
        order = match_rows(self.rows[used], self.columns[used], exponents, self.size)
        if order is None or (self.order is not None and np.array_equal(order, self.order)):
            return False
        self.order = order
        self.system = SparseSystem(order[self.rows], self.columns, self.size)
        return True


class SparsePencil:
    """dF/dx and dF/dxdot at a point: their entries, and systems with them."""

    def __init__(self, form: CompressedPencil, by_x: np.ndarray, by_xdot: np.ndarray) -> None:
        self.form, self.by_x, self.by_xdot = form, by_x, by_xdot

    def solver(self, c: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return r -> y, the solution of (dF/dxdot + c dF/dx) y = r; nan where it is singular."""
        form = self.form
        values = np.zeros(len(form.rows))
        values[form.at_xdot] = self.by_xdot
        values[form.at_x] += c * self.by_x
        left = _powers(values, form.rows, form.size)
        values = values * left[form.rows]
        right = _powers(values, form.columns, form.size)
        values = values * right[form.columns]
        factors = None if form.system is None else form.system.factorize(values, 0.0)
        if (factors is None or factors.growth > GROWTH) and form.reorder(values):
            assert form.system is not None
            factors = form.system.factorize(values, 0.0)
        if factors is None:
            return lambda r: np.full(form.size, np.nan)
        order, solve = form.order, factors.solve

        def solution(r: np.ndarray) -> np.ndarray:
            moved = np.empty_like(r)
            moved[order] = left * r
            return right * solve(moved)

        return solution

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Return dF/dx and dF/dxdot, each (n, n)."""
        form, matrices = self.form, np.zeros((2, self.form.size, self.form.size))
        matrices[0, form.by_x.rows, form.by_x.columns] = self.by_x
        matrices[1, form.by_xdot.rows, form.by_xdot.columns] = self.by_xdot
        return matrices[0], matrices[1]

    def norm(self) -> float:
        """Return the largest size of an entry; nan where there is one."""
        return float(np.abs(np.concatenate([self.by_x, self.by_xdot])).max(initial=0.0))


def _powers(values: np.ndarray, groups: np.ndarray, n: int) -> np.ndarray:
    """Return powers of two (n,) that bring the largest entry of each group to about one."""
    largest = np.zeros(n)
    np.maximum.at(largest, groups, np.abs(values))
    usable = np.isfinite(largest) & (largest > 0.0)
    return np.ldexp(1.0, -np.where(usable, np.frexp(largest)[1], 0))
