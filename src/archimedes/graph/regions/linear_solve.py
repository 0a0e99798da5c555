"""``Solve``: a system of linear equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import block_type
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import CountOperations, Region, Run, Weight
from archimedes.records import record


@record
class Solve(Region):
    """Solve ``A X = B`` by elimination with partial pivoting: n*n values of A, then n*columns of B.

    With ``blocks``, A, B and X are one block each. The order of operations is part of the
    contract (see ``eliminate``): every backend gives the same bits. A singular matrix gives inf or
    nan.
    """

    size: int
    columns: int
    dtype: int
    blocks: bool = field(default=False, kw_only=True)

    @property
    def out_dtypes(self) -> list[int]:
        count = self.size * self.columns
        return [block_type(self.dtype, count)] if self.blocks else [self.dtype] * count

    def summary(self) -> str:
        return f"{self.size} x {self.size}, {self.columns} columns"

    def retype(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtype=dtype(self.dtype))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        n, m = self.size, self.columns
        if self.blocks:
            a, b = values
            return [eliminate(a.reshape(n, n), b.reshape(n, m)).reshape(-1)]
        shape = np.broadcast_shapes(*(np.shape(x) for x in values))
        operands = np.stack([np.broadcast_to(x, shape) for x in values], axis=-1)
        a = operands[..., : n * n].reshape(*shape, n, n)
        b = operands[..., n * n :].reshape(*shape, n, m)
        flat = eliminate(a, b).reshape(*shape, n * m)
        return [flat[..., k] for k in range(n * m)]

    def count(self, operations: CountOperations, weight: Weight) -> Counter[str]:
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
        # A nan is never larger, and nothing is larger than one that is first.
        pivot = np.argmax(np.where(np.isnan(size), -1.0, size), axis=-1)
        pivot = np.where(np.isnan(size[..., 0]), 0, pivot)
        chosen = np.take_along_axis(work, (pivot + k)[..., None, None], axis=-2)
        np.put_along_axis(work, (pivot + k)[..., None, None], work[..., k : k + 1, :], axis=-2)
        work[..., k : k + 1, :] = chosen
        factor = work[..., k + 1 :, k] / work[..., k, k, None]
        work[..., k + 1 :, k + 1 :] -= factor[..., None] * work[..., k, None, k + 1 :]
    x = work[..., n:]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[..., k, :] -= work[..., k, j, None] * x[..., j, :]
        x[..., k, :] /= work[..., k, k, None]
    return x
