"""Symmetric systems that are solved more than once: factors L D L^T, without pivoting.

Plain NumPy: unrolled for small matrices; larger ones are solved by elimination, which is a loop.
(Golub, Van Loan, "Matrix computations", 4th ed., algorithm 4.1.1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["pivots", "solver_of"]

#: Matrices up to this size are factored in straight-line code.
UNROLLED = 16


def _factors(M: Any) -> tuple[Any, list[Any]]:
    """Return L (n, n), unit lower triangular without its diagonal, and D (n,)."""
    n = M.shape[0]
    L = np.zeros((n, n), dtype=M.dtype)
    D: list[Any] = []
    for j in range(n):
        scaled = [L[j, k] * D[k] for k in range(j)]
        pivot = M[j, j]
        for k in range(j):
            pivot = pivot - L[j, k] * scaled[k]
        D.append(pivot)
        inverse = 1.0 / np.where(pivot == 0.0, 1.0, pivot)
        for i in range(j + 1, n):
            entry = M[i, j]
            for k in range(j):
                entry = entry - L[i, k] * scaled[k]
            L[i, j] = entry * inverse
    return L, D


def pivots(M: Any) -> Any:
    """Return numbers (n,) that are all positive only if the symmetric M is positive definite.

    They are the pivots D; for large matrices, the least that Gershgorin's circles allow.
    """
    n = M.shape[0]
    if n > UNROLLED:
        across = np.sum(np.abs(M), axis=1) - np.abs(np.diagonal(M))
        return np.diagonal(M) - across
    return np.stack(_factors(M)[1])


def solver_of(M: Any) -> Callable[[Any], Any]:
    """Return the function b (n,) -> M^-1 b, for a symmetric positive definite M (n, n).

    >>> solver_of(np.array([[4.0, 2.0], [2.0, 3.0]]))(np.array([8.0, 8.0]))
    array([1., 2.])
    """
    n = M.shape[0]
    if n > UNROLLED:
        return lambda b: np.linalg.solve(M, b)
    L, D = _factors(M)
    inverse = [1.0 / pivot for pivot in D]

    def solve(b: Any) -> Any:
        y = [b[i] for i in range(n)]
        for i in range(n):
            for k in range(i):
                y[i] = y[i] - L[i, k] * y[k]
        y = [y[i] * inverse[i] for i in range(n)]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                y[i] = y[i] - L[k, i] * y[k]
        return np.stack(y)

    return solve
