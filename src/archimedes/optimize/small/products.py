"""Products of matrices and vectors that stay small as code: straight lines or loops, by size."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import scan, vmap

__all__ = ["gram", "times", "transposed_times"]

#: Products of up to this many factors are written out.
WRITTEN_OUT = 200


def times(C: Any, x: Any) -> Any:
    """Return C x for C (m, n).

    >>> times(np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    if C.size <= WRITTEN_OUT:
        return C @ x
    return vmap(lambda row: row @ x)(C)


def transposed_times(C: Any, y: Any) -> Any:
    """Return C^T y for C (m, n)."""
    if C.size <= WRITTEN_OUT:
        return C.T @ y

    def add(total: Any, item: Any) -> Any:
        row, factor = item
        return total + row * factor, np.float64(0.0)

    return scan(add, np.zeros(C.shape[1]), (C, y))[0]


def gram(P: Any, C: Any, d: Any) -> Any:
    """Return P + C^T diag(d) C for C (m, n) and a symmetric P (n, n)."""
    m, n = C.shape
    if m * n * n <= 8 * WRITTEN_OUT:
        return P + C.T @ (d[:, None] * C)

    def add(total: Any, item: Any) -> Any:
        row, weight = item
        return total + row[:, None] * (row * weight), np.float64(0.0)

    return scan(add, P * 1.0, (C, d))[0]
