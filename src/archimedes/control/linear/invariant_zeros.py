"""Invariant zeros of a linear system.

The values of s at which [[A - s I, B], [C, D]] loses rank. Rows and columns that only make infinite
zeros are deflated by orthogonal transformations until D is square and invertible (A. Emami-Naeini,
P. Van Dooren, "Computation of zeros of linear multivariable systems", Automatica 18, 1982), in
units in which the system is balanced.
"""

from __future__ import annotations

import numpy as np

from archimedes.function.matrix_exponential import balancing_units

#: Singular values below this part of the largest are zero, times the size of the system.
RANK = 1e-15


def state_units(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return units (n, 1) of the states in which a system is balanced."""
    b, c = np.abs(B).max(axis=1, initial=0.0), np.abs(C).max(axis=0, initial=0.0)
    if not (len(A) and b.any() and c.any()):
        return balancing_units(A)[:, None] if len(A) else np.ones((0, 1))
    # One input and one output stand for all: only the states may change their units.
    units = balancing_units(np.block([[A, b[:, None]], [c[None], np.zeros((1, 1))]]))
    return (units[:-1] / units[-1])[:, None]


def balance_system(
    A: np.ndarray, B: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same system with its states in units that suit it."""
    units = state_units(A, B, C)
    return A * units.T / units, B / units, C * units.T


def invariant_zeros(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return the finite invariant zeros, complex."""
    A, B, C = balance_system(A, B, C)
    size = np.linalg.norm(np.block([[A, B], [C, D]])) if A.size + D.size else 0.0
    tol = RANK * max(1, *A.shape, *D.shape) * size
    A, B, C, D = _deflate_rows(A, B, C, D, tol)
    A, C, B, D = (M.T for M in _deflate_rows(A.T, C.T, B.T, D.T, tol))
    n, r = len(A), len(D)
    if not n:
        return np.zeros(0, dtype=complex)
    if not r:
        return np.linalg.eigvals(A).astype(complex)
    from scipy.linalg import eigvals

    null = np.linalg.qr(np.concatenate([C, D], axis=1).T, mode="complete")[0][:, r:]
    zeros = eigvals(np.concatenate([A, B], axis=1) @ null, null[:n])
    return zeros[np.isfinite(zeros)].astype(complex)


def _deflate_rows(
    A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a smaller system with the same finite zeros, whose D has full row rank."""
    while True:
        rank = _rank(D, tol)
        if rank == len(D):
            return A, B, C, D
        U = np.linalg.svd(D)[0] if D.size else np.eye(len(D))
        C, D = U.T @ C, U.T @ D
        free = C[rank:]  # rows without an input
        gone = _rank(free, tol)
        C, D = C[:rank], D[:rank]
        if not gone:
            return A, B, C, D
        V = np.linalg.svd(free)[2].T
        V = np.concatenate([V[:, gone:], V[:, :gone]], axis=1)
        n = len(A) - gone
        A, B, C = V.T @ A @ V, V.T @ B, C @ V
        C, D = np.concatenate([C[:, :n], A[n:, :n]]), np.concatenate([D, B[n:]])
        A, B = A[:n, :n], B[:n]


def _rank(M: np.ndarray, tol: float) -> int:
    return int(np.sum(np.linalg.svd(M, compute_uv=False) > tol)) if M.size else 0
