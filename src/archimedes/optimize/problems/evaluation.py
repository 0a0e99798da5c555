"""Evaluating a problem for a solver: objective, constraints, their derivatives, counted and timed.

Symbols as in ``blocks.py``; f objective, g constraints (m,), sigma and lam the weights of the
Lagrangian  sigma f + lam . g.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from archimedes.optimize.problems.blocks import Block, BlockPatterns

__all__ = ["Evaluator", "Structure", "all_finite", "sum_by_index"]


_NONE = np.zeros(0)


class Structure:
    """Where the derivatives of a problem have entries.

    An entry may be listed more than once: its value is then the sum.
    """

    def __init__(self, patterns: Sequence[BlockPatterns], n: int, m: int) -> None:
        self.patterns, self.n, self.m = patterns, n, m
        #: What solvers have prepared for it; whoever works with it takes it out meanwhile.
        self.prepared: dict[Any, Any] = {}

    def _joined(self, name: str) -> np.ndarray:
        parts = [getattr(p, name) for p in self.patterns]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    # Long lists, which not every solver needs.
    jac_rows = cached_property(lambda self: self._joined("rows"))
    jac_columns = cached_property(lambda self: self._joined("columns"))
    hess_rows = cached_property(lambda self: self._joined("hess_rows"))
    hess_columns = cached_property(lambda self: self._joined("hess_columns"))
    gradient_at = cached_property(lambda self: self._joined("gradient_at"))

    @cached_property
    def full_gradient(self) -> bool:
        """Whether the entries of the gradient are all its numbers, in order."""
        return np.array_equal(self.gradient_at, np.arange(self.n))

    @cached_property
    def unused_unknowns(self) -> np.ndarray:
        """Unknowns that neither the objective nor a constraint depends on."""
        used = np.zeros(self.n, dtype=bool)
        used[self.gradient_at] = used[self.jac_columns] = True
        return np.flatnonzero(~used)

    def jac_matrix(self, entries: np.ndarray) -> Any:
        """Return the Jacobian (m, n) as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import coo_array

        places = (self.jac_rows, self.jac_columns)
        return coo_array((entries, places), shape=(self.m, self.n)).tocsr()

    def hess_matrix(self, entries: np.ndarray) -> Any:
        """Return the whole Hessian (n, n) as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import coo_array

        places = (self.hess_rows, self.hess_columns)
        lower = coo_array((entries, places), shape=(self.n, self.n)).tocsr()
        off = self.hess_rows != self.hess_columns
        places = (self.hess_columns[off], self.hess_rows[off])
        return lower + coo_array((entries[off], places), shape=(self.n, self.n)).tocsr()


@dataclass
class _Count:
    calls: int = 0
    seconds: float = 0.0


class Evaluator:
    """One problem with its arguments; remembers the last point, which solvers ask for twice."""

    def __init__(self, blocks: Sequence[Block], structure: Structure, args: Sequence[Any]) -> None:
        self.blocks, self.structure, self.args = blocks, structure, tuple(args)
        self.counts = {"values": _Count(), "slopes": _Count(), "curvature": _Count()}
        self._x: np.ndarray | None = None
        self._bytes = b""
        self._values: tuple[float, np.ndarray] | None = None
        self._slopes: tuple[np.ndarray, list[np.ndarray]] | None = None
        self._entries: np.ndarray | None = None
        # Rows that only one number belongs to need no summing.
        rows = [block.constraints.of(block.rows) for block in blocks]
        every = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        self._rows = every
        self._single = len(every) == structure.m and np.array_equal(every, np.arange(len(every)))
        #: Whether one block at one place returns [f, *g].
        self._whole = self._single and len(blocks) == 1 and blocks[0].returns_all

    def _move(self, x: np.ndarray) -> np.ndarray:
        if x is self._x:
            return x
        now = x.tobytes()
        if self._x is None or now != self._bytes:
            # What nobody can change need not be copied.
            self._x, self._bytes = x.copy() if x.flags.writeable else x, now
            self._values = self._slopes = None
        return self._x

    def values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f and g (m,)."""
        x = self._move(x)
        if self._values is None:
            start = time.perf_counter()
            if self._whole:
                y = self.blocks[0].values(x, self.args)[0]
                self._values = y.item(0), y[1:]
            else:
                self._values = self._sum_values(x)
            self._count("values", start)
        return self._values

    def _sum_values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        total, parts = 0.0, []
        for block in self.blocks:
            y = block.values(x, self.args)
            total += float(block.summands.of(y).sum())
            parts.append(block.constraints.of(y))
        flat = _joined(parts)
        if not self._single:
            flat = sum_by_index(self._rows, flat, self.structure.m)
        return total, flat

    def slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of f (n,) and the entries of the Jacobian of g."""
        gradient, parts = self.slope_parts(x)
        if self._entries is None:
            start = time.perf_counter()
            every = zip(self.structure.patterns, parts)
            self._entries = _joined([p.constraint_columns.of(part) for p, part in every])
            self.counts["slopes"].seconds += time.perf_counter() - start
        return gradient, self._entries

    def slope_parts(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the gradient of f (n,) and the slopes of each block, (places, entries)."""
        x = self._move(x)
        if self._slopes is None:
            start = time.perf_counter()
            parts = [block.slopes(x, self.args) for block in self.blocks]
            every = zip(self.structure.patterns, parts)
            whole = _joined([p.objective_columns.of(part) for p, part in every])
            if not self.structure.full_gradient:
                whole = sum_by_index(self.structure.gradient_at, whole, self.structure.n)
            # Without constraints their Jacobian has no entries.
            self._slopes, self._entries = (whole, parts), None if self.structure.m else _NONE
            self._count("slopes", start)
        return self._slopes

    def transposed(self, x: np.ndarray, lam: np.ndarray, absolute: bool = False) -> np.ndarray:
        """Return A^T lam (n,), A the Jacobian of g, or abs(A)^T abs(lam)."""
        total = np.zeros(self.structure.n)
        for pattern, part in zip(self.structure.patterns, self.slope_parts(x)[1]):
            total += pattern.transposed(part, lam, self.structure.n, absolute)
        return total

    def curvature(self, x: np.ndarray, sigma: float, lam: np.ndarray) -> np.ndarray:
        """Return the entries of the lower triangle of the Lagrangian's Hessian."""
        return _joined([part.ravel() for part in self.curvature_parts(x, sigma, lam)])

    def curvature_parts(self, x: np.ndarray, sigma: float, lam: np.ndarray) -> list[np.ndarray]:
        """Return the same entries of each block, (places, entries)."""
        start = time.perf_counter()
        weights = np.concatenate([lam, [sigma]])  # row -1 is the objective
        parts = [block.curvatures(x, weights[block.rows], self.args) for block in self.blocks]
        self._count("curvature", start)
        return parts

    def _count(self, what: str, start: float) -> None:
        count = self.counts[what]
        count.calls += 1
        count.seconds += time.perf_counter() - start


def sum_by_index(index: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Return (size,): for each index the sum of its values."""
    # Of no values NumPy would count integers.
    return np.bincount(index, values, minlength=size) if index.size else np.zeros(size)


def all_finite(values: np.ndarray) -> bool:
    """Return whether all numbers are finite."""
    # Only a sum that is not finite has to be looked at twice: numbers may be too large to add.
    return isfinite(values.sum()) or bool(np.isfinite(values).all())


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Return vectors as one; where only one has numbers, without a copy."""
    full = [part for part in parts if part.size]
    if len(full) == 1:
        return full[0]
    return np.concatenate(full) if full else np.zeros(0)
