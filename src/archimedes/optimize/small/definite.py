"""Symmetric systems that are solved more than once: factors L D L^T, without pivoting.

Plain NumPy: straight-line code for small matrices; loops over columns and rows for larger ones.
(Golub, Van Loan, "Matrix computations", 4th ed., algorithm 4.1.1.) Where nothing but rounding is
left of a pivot its unknown is left as it is (Y. Zhang, "Solving large-scale linear programs by
interior-point methods under the MATLAB environment", Optim. Methods Softw. 10, 1998, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import scan
from archimedes.optimize.small.products import UNROLLED, in_loops

__all__ = ["pivots", "solver_of"]


#: A pivot below this part of its diagonal, for each row, is rounding; what takes its place.
_LOST, _HELD = 1e-15, 1e100


def _kept(pivot: Any, floor: Any) -> Any:
    """Return a pivot, or one so large that its unknown does not move where it is rounding."""
    return np.where(pivot <= floor, _HELD, pivot)


def _factors(M: Any, guarded: bool) -> tuple[Any, list[Any]]:
    """Return L (n, n), unit lower triangular without its diagonal, and D (n,)."""
    n = M.shape[0]
    L = np.zeros((n, n), dtype=M.dtype)
    D: list[Any] = []
    for j in range(n):
        scaled = [L[j, k] * D[k] for k in range(j)]
        pivot = M[j, j]
        for k in range(j):
            pivot = pivot - L[j, k] * scaled[k]
        pivot = _kept(pivot, _LOST * n * M[j, j]) if guarded else pivot
        D.append(pivot)
        inverse = 1.0 / np.where(pivot == 0.0, 1.0, pivot)
        for i in range(j + 1, n):
            entry = M[i, j]
            for k in range(j):
                entry = entry - L[i, k] * scaled[k]
            L[i, j] = entry * inverse
    return L, D


@in_loops
def _factors_in_loops(M: Any, floor: Any) -> tuple[Any, Any]:
    """Return L^T (n, n), of which only what is above the diagonal counts, and D (n,).

    Pivots up to ``floor`` (n,) are rounding.
    """
    places = np.arange(M.shape[0])

    def eliminate(rest: Any, j: Any) -> Any:
        row = rest[j]
        pivot = _kept(row[j], floor[j])
        inverse = 1.0 / np.where(pivot == 0.0, 1.0, pivot)
        lower = np.where(places > j, row * inverse, 0.0)
        return rest - lower[:, None] * row, np.float64(0.0)

    # Rows stay as they are once they were used.
    rest = scan(eliminate, M, places)[0]
    D = _kept(np.diagonal(rest), floor)
    return rest * (1.0 / np.where(D == 0.0, 1.0, D))[:, None], D


@in_loops
def _solved_in_loops(U: Any, D: Any, b: Any) -> Any:
    """Return x with L D L^T x = b, for U = L^T."""
    places = np.arange(b.shape[0])
    nothing = np.float64(0.0)

    def down(y: Any, j: Any) -> Any:
        return y - np.where(places > j, U[j], 0.0) * y[j], nothing

    def up(x: Any, j: Any) -> Any:
        found = np.sum(np.where(places > j, U[j] * x, 0.0))
        return np.where(places == j, x - found, x), nothing

    y = scan(down, b, places)[0] / D
    return scan(up, y, places[::-1])[0]


def pivots(M: Any) -> Any:
    """Return numbers (n,) that are all positive only if the symmetric M is positive definite.

    >>> pivots(np.array([[4.0, 2.0], [2.0, 3.0]]))
    array([4., 2.])
    """
    n = M.shape[0]
    if n > UNROLLED:
        return _factors_in_loops(M, np.full(n, -np.inf))[1]
    return np.stack(_factors(M, False)[1])


def solver_of(M: Any) -> Callable[[Any], Any]:
    """Return the function b (n,) -> M^-1 b, for a symmetric positive definite M (n, n).

    Of an M that is singular to rounding, unknowns that cannot be told are zero.

    >>> solver_of(np.array([[4.0, 2.0], [2.0, 3.0]]))(np.array([8.0, 8.0]))
    array([1., 2.])
    """
    n = M.shape[0]
    if n > UNROLLED:
        U, pivots = _factors_in_loops(M, _LOST * n * np.diagonal(M))
        return lambda b: _solved_in_loops(U, pivots, b)
    L, D = _factors(M, True)
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
