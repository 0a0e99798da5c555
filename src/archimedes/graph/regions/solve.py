"""``Solve``: a system of linear equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run

__all__ = ["Solve", "eliminate"]


@dataclass(frozen=True, eq=False)
class Solve(Region):
    """Solve ``A X = B`` by elimination with partial pivoting: n*n values of A, then n*columns of B.

    The order of operations is part of the contract (see ``eliminate``): every backend gives
    the same bits. A singular matrix gives inf or nan.
    """

    size: int
    columns: int
    dtype: int

    @property
    def out_dtypes(self) -> list[int]:
        return [self.dtype] * (self.size * self.columns)

    def settings(self) -> tuple[Any, ...]:
        return (self.size, self.columns, self.dtype)

    def summary(self) -> str:
        return f"{self.size} x {self.size}, {self.columns} columns"

    def faults(self, g: Graph) -> Iterator[str]:
        expected = self.size * (self.size + self.columns)
        if len(self.inputs) != expected or self.dtype not in (F64, F32):
            yield f"needs {expected} floating-point operands"
        if any(g.dtype[j] != self.dtype for j in self.inputs.tolist()):
            yield "has operands of mixed dtypes"

    def retyped(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtype=dtype(self.dtype))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        n, m = self.size, self.columns
        shape = np.broadcast_shapes(*(np.shape(x) for x in values))
        wide = np.stack([np.broadcast_to(x, shape) for x in values], axis=-1)
        a = wide[..., : n * n].reshape(*shape, n, n)
        b = wide[..., n * n :].reshape(*shape, n, m)
        flat = eliminate(a, b).reshape(*shape, n * m)
        return [flat[..., k] for k in range(n * m)]

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        """Count elimination and back substitution of n rows with m right-hand sides."""
        n, m = self.size, self.columns
        below = n * (n - 1) // 2
        inner = sum((n - 1 - k) * (n - 1 - k + m) for k in range(n)) + below * m
        pivoting = {"abs": n * (n + 1) // 2, "lt": below}
        return Counter({"div": below + n * m, "mul": inner, "sub": inner, **pivoting})

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.size**2 * (self.size + self.columns)


def eliminate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve by Gaussian elimination with partial pivoting, in the order all backends keep.

    For each column: the first row with the largest magnitude becomes the pivot row; each row
    below subtracts factor * pivot row, left to right, the right-hand sides after. Then back
    substitution from the last row: subtract the known unknowns in ascending order, divide.
    """
    n = a.shape[-1]
    work = np.concatenate([a, b], axis=-1).copy()
    for k in range(n):
        size = np.abs(work[..., k:, k])
        pivot = np.zeros(size.shape[:-1], dtype=np.int64)
        best = size[..., 0]
        for row in range(1, n - k):
            better = size[..., row] > best
            pivot, best = np.where(better, row, pivot), np.where(better, size[..., row], best)
        chosen = np.take_along_axis(work, (pivot + k)[..., None, None], axis=-2)
        np.put_along_axis(work, (pivot + k)[..., None, None], work[..., k : k + 1, :], axis=-2)
        work[..., k : k + 1, :] = chosen
        for row in range(k + 1, n):
            factor = work[..., row, k] / work[..., k, k]
            work[..., row, k + 1 :] -= factor[..., None] * work[..., k, k + 1 :]
    x = work[..., n:]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[..., k, :] -= work[..., k, j, None] * x[..., j, :]
        x[..., k, :] /= work[..., k, k, None]
    return x
