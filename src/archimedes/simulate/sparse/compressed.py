"""Jacobians of large right-hand sides: their pattern, few directions that give all entries.

Columns that share no row get one direction together (A. R. Curtis, M. J. D. Powell, J. K. Reid,
"On the estimation of sparse Jacobian matrices", IMA J. Appl. Math. 13 (1974) 117-119); the
derivative along it is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import jvp
from archimedes.function.derivatives.sparse import structure
from archimedes.simulate.sparse.block_factors import Factors, SparseSystem
from archimedes.waiting import reported

__all__ = ["CompressedJacobian", "Compression", "SparseJacobian", "grouped"]


def grouped(rows: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """Return a group (n,) for each column, such that columns of one share no row; -1: no entries.

    >>> at = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2])
    >>> grouped(*at, 3).tolist()
    [0, 1, 0]
    """
    order = np.lexsort((rows, columns))
    starts = np.searchsorted(columns[order], np.arange(n + 1)).tolist()
    sorted_rows = rows[order].tolist()
    #: Groups in each row: bit k stands for group k.
    used = [0] * (int(rows.max(initial=-1)) + 1)
    groups = [-1] * n
    for j in range(n):
        mine = sorted_rows[starts[j] : starts[j + 1]]
        if not mine:
            continue
        taken = 0
        for i in mine:
            taken |= used[i]
        free = ~taken & (taken + 1)  # the first that is not taken
        groups[j] = free.bit_length() - 1
        for i in mine:
            used[i] |= free
    return np.array(groups, dtype=np.int64)


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
        groups = grouped(self.rows, self.columns, n)
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
        t: Any,
        x: np.ndarray,
        args: Any,
        factors: Any,
    ) -> None:
        self.size = x.size
        with reported("finding the pattern of a Jacobian and the order of elimination", self._slow):
            rows, columns, _ = structure(f, argnums=1)(t, x, args)
            self.pattern = Compression(rows, columns, x.size)
            self.rows, self.columns = self.pattern.rows, self.pattern.columns
            self.system = SparseSystem(self.rows, self.columns, x.size, factors)
        self.still = np.zeros(x.size)
        self._stages: dict[int, SparseSystem] = {}

        def along(t: Any, x: Any, dt: Any, dx: Any, args: Any) -> Any:
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

    def at(self, t: Any, x: np.ndarray, args: Any) -> tuple[np.ndarray, SparseJacobian]:
        """Return df/dt and df/dx."""
        t = float(t)
        values = self.pattern.values(lambda direction: self.along(t, x, 0.0, direction, args))
        return self.along(t, x, 1.0, self.still, args), SparseJacobian(self, values)


class SparseJacobian:
    """A Jacobian: its entries, and systems with it."""

    def __init__(self, form: CompressedJacobian, values: np.ndarray) -> None:
        self.form, self.values = form, values

    def solver(self, diagonal: Any, factor: float, rounded: bool = False) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (diagonal + factor J) x = r; see ``factored``."""
        system = self.form.system
        factors: Factors = system.factored(factor * self.values, float(diagonal), rounded)
        return factors.solve

    def stage_solver(self, coefficients: np.ndarray, h: Any) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (I - h coefficients kron J) x = r: all stages at once."""
        system = self.form.stages(len(coefficients))
        return system.factored(-h * np.kron(coefficients.ravel(), self.values), 1.0).solve

    def norm(self) -> Any:
        """Return the largest sum of sizes in a row."""
        sums = np.bincount(self.form.rows, np.abs(self.values), self.form.size)
        return sums.max(initial=0.0)
