"""Products of matrices and vectors that stay small as code: straight lines or loops, by size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import Compiled, vmap

__all__ = [
    *("LimitedRows", "column_maxima", "gram", "records_loops", "row_maxima"),
    *("scale", "times", "transposed_times"),
]

#: Products of up to this many factors are unrolled.
WRITTEN_OUT = 200
#: Programs of more unknowns, or more rows, than this are loops over whole arrays, whose code does
#: not grow with their number.
UNROLLED, LONG = 16, 32


def records_loops(unknowns: int, rows: int) -> bool:
    """Return whether a program of so many unknowns and rows, bounds included, becomes loops."""
    return unknowns > UNROLLED or rows > LONG


def in_loops(function: Callable[..., Any]) -> Compiled:
    """Return the function recorded as loops over arrays, whoever calls it."""
    return Compiled(function, freeze=True, loops_from=UNROLLED)


@in_loops
def _scaled(C: Any, rows: Any, columns: Any) -> Any:
    return C * rows[:, None] * columns


@in_loops
def _row_maxima(C: Any, x: Any) -> Any:
    return np.max(np.abs(C) * x, axis=1)


@in_loops
def _column_maxima(C: Any, y: Any) -> Any:
    return np.max(np.abs(C) * y[:, None], axis=0)


@in_loops
def _product(C: Any, x: Any) -> Any:
    return C @ x


@in_loops
def _transposed_product(C: Any, y: Any) -> Any:
    return C.T @ y


@in_loops
def _gram(P: Any, C: Any, d: Any, shift: Any) -> Any:
    return P + np.eye(P.shape[0]) * shift + C.T @ (d[:, None] * C)


def scale(C: Any, rows: Any, columns: Any) -> Any:
    """Return diag(rows) C diag(columns) for C (m, n)."""
    if C.size <= WRITTEN_OUT:
        return C * rows[:, None] * columns
    return _scaled(C, rows, columns)


def row_maxima(C: Any, x: Any) -> Any:
    """Return the largest size of a term in each row of C x, for C (m, n) and x >= 0.

    >>> row_maxima(np.array([[1.0, -3.0], [0.0, 0.0]]), np.array([1.0, 2.0]))
    array([6., 0.])
    """
    if C.size <= WRITTEN_OUT:
        return np.max(np.abs(C) * x, axis=1)
    return _row_maxima(C, x)


def column_maxima(C: Any, y: Any) -> Any:
    """Return the largest size of a term in each row of C^T y, for C (m, n) and y >= 0.

    >>> column_maxima(np.array([[1.0, -3.0], [2.0, 0.0]]), np.array([1.0, 2.0]))
    array([4., 3.])
    """
    if C.size <= WRITTEN_OUT:
        return np.max(np.abs(C) * y[:, None], axis=0)
    return _column_maxima(C, y)


def times(C: Any, x: Any) -> Any:
    """Return C x for C (m, n).

    >>> times(np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return C @ x if C.size <= WRITTEN_OUT else _product(C, x)


def transposed_times(C: Any, y: Any) -> Any:
    """Return C^T y for C (m, n)."""
    return C.T @ y if C.size <= WRITTEN_OUT else _transposed_product(C, y)


def gram(P: Any, C: Any, d: Any, shift: float = 0.0) -> Any:
    """Return P + shift I + C^T diag(d) C for C (m, n) and a symmetric P (n, n)."""
    m, n = C.shape
    if m * n * n <= 8 * WRITTEN_OUT:
        return (P + np.eye(n) * shift if shift else P) + C.T @ (d[:, None] * C)
    if n > UNROLLED or C.size > WRITTEN_OUT:
        return _gram(P, C, d, np.float64(shift))
    # One row is unrolled; the rows are a loop.
    return vmap(lambda row, unit, column: row + unit + C.T @ (d * column))(
        P, np.eye(n) * shift, C.T
    )


@in_loops
def _with_diagonal(M: Any, d: Any) -> Any:
    return np.where(np.eye(M.shape[0], dtype=bool), M + d[:, None], M)


class LimitedRows:
    """C = [A; I] where there are bounds, else A (m, n): products that know of the identity.

    >>> rows = LimitedRows(np.array([[1.0, 2.0]]), True)
    >>> rows.times(np.array([3.0, 4.0]))
    array([11.,  3.,  4.])
    """

    def __init__(self, A: Any, bounded: bool) -> None:
        self.A, self.bounded = A, bounded
        self.own = A.shape[0]
        self.count = self.own + (A.shape[1] if bounded else 0)
        #: The most terms that a row of C, of C^T or of P has.
        self.width = float(max(1, A.shape[1], self.count))

    def scaled(self, rows: Any, columns: Any) -> LimitedRows:
        """Return diag(rows) A diag(columns) and its bounds, whose rows are those of I again."""
        return LimitedRows(scale(self.A, rows, columns), self.bounded)

    def magnitudes(self) -> LimitedRows:
        """Return the sizes of all numbers."""
        return LimitedRows(np.abs(self.A), self.bounded)

    def times(self, x: Any) -> Any:
        """Return C x."""
        if not self.own:
            return x if self.bounded else np.zeros(0)
        own = times(self.A, x)
        return np.concatenate([own, x]) if self.bounded else own

    def transposed_times(self, y: Any) -> Any:
        """Return C^T y."""
        if not self.own:
            return y if self.bounded else np.zeros(self.A.shape[1])
        own = transposed_times(self.A, y[: self.own])
        return own + y[self.own :] if self.bounded else own

    def gram(self, P: Any, d: Any, shift: float) -> Any:
        """Return P + shift I + C^T diag(d) C for a symmetric P (n, n)."""
        n = P.shape[0]
        M = gram(P, self.A, d[: self.own], shift) if self.own else P
        if self.own and not self.bounded:
            return M
        more = d[self.own :] if self.bounded else np.zeros(n)
        more = more if self.own else more + shift
        return _with_diagonal(M, more) if n > UNROLLED else M + np.eye(n) * more
