"""Covariances as triangular factors: P = L L', which cannot lose their sign to rounding.

Symbols: D deviations (n, k) with D D' a covariance. Of several, side by side, the triangular factor
L of the sum comes from an orthogonal transformation: L = R' with Q R = D' (T. Kailath, A. Sayed,
B. Hassibi, "Linear estimation", 2000, 12.1 and 12.3, array algorithms).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import matrix
from archimedes.function import holds_traced
from archimedes.function.reproducible import call

__all__ = ["check_root", "covariance", "joined", "root_of"]


def joined(*deviations: Any) -> Any:
    """Return L (n, n), lower triangular, with L L' the sum of D D' over all D (n, k)."""
    D = np.concatenate(deviations, axis=1)
    n, k = D.shape
    if k < n:
        D = np.concatenate([D, np.zeros((n, n - k))], axis=1)
    R: Any = np.linalg.qr(D.T, mode="r")
    # The sign of each column is free: one with a diagonal that is not negative is unique.
    return (R * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None]).T


def root_of(P: Any) -> Any:
    """Return L with L L' = P; of numbers P may be singular, in recorded code it is definite.

    >>> root_of(np.diag([4.0, 9.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    try:
        return call(np.linalg.cholesky, P)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(P)
        return joined(vectors * np.sqrt(np.maximum(values, 0.0)))


def covariance(L: Any) -> Any:
    """Return L L'."""
    return L @ L.T


def check_root(L: Any, n: int) -> Any:
    """Return a factor (n, n), lower triangular where it is known."""
    found = matrix(L, "P", n, n)
    if not holds_traced(found):
        if not np.all(np.isfinite(found)):
            raise ValueError(f"P must hold finite numbers, got {found}")
        if np.any(np.triu(found, 1) != 0.0):
            raise ValueError(
                "P must be a lower triangular factor with square_root=True: give "
                f"np.linalg.cholesky(P), got {found}"
            )
    return found
