"""Riccati equations by structured doubling: a bounded number of steps, with derivatives.

Symbols: X solution, G = B R^-1 B^T, H the iterate that becomes X, F the closed loop's 2^k-th power.
Chu, Fan, Lin, Wang, "Structure-preserving algorithms for periodic discrete-time algebraic Riccati
equations", Int. J. Control 77 (2004), eq. 3; Chu, Fan, Lin, "A structure-preserving doubling
algorithm for continuous-time algebraic Riccati equations", Linear Algebra Appl. 396 (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.linear.unreached_modes import REGULATOR, Words, no_solution
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.function import holds_traced, scan, stop_gradient

__all__ = ["care", "dare", "solve_care", "solve_dare"]

#: Doublings: closed loops with a spectral radius up to 1 - 1e-8 have died away after them.
DOUBLINGS = 32
#: What may be left of the closed loop's power where the iteration has converged.
LEFT = 1e-16


def solve_dare(A: Any, B: Any, Q: Any, R: Any, N: Any = None) -> Any:
    """Return the stabilising X (n, n) of A'XA - X - (A'XB + N)(B'XB + R)^-1(B'XA + N') + Q = 0.

    Q is symmetric (n, n), R positive definite (m, m), N (n, m) or None. B must reach every mode
    of A that is not stable; otherwise plain numbers raise LinAlgError, and in recorded code X is
    nan. It has derivatives of any order, compiles, maps and generates C.

    >>> solve_dare([[2.0]], [[1.0]], [[1.0]], [[1.0]]).round(6)
    array([[4.236068]])
    """
    return dare(A, B, Q, R, N)


def solve_care(A: Any, B: Any, Q: Any, R: Any, N: Any = None) -> Any:
    """Return the stabilising X (n, n) of A'X + XA - (XB + N) R^-1 (B'X + N') + Q = 0.

    As `solve_dare`, for continuous time.

    >>> solve_care([[1.0]], [[1.0]], [[3.0]], [[1.0]]).round(6)
    array([[3.]])
    """
    return care(A, B, Q, R, N)


def dare(A: Any, B: Any, Q: Any, R: Any, N: Any = None, words: Words = REGULATOR) -> Any:
    """Solve as `solve_dare` does, with errors in the words of who asks."""
    return _answer(_dare, True, words, *_checked(A, B, Q, R, N))


def care(A: Any, B: Any, Q: Any, R: Any, N: Any = None, words: Words = REGULATOR) -> Any:
    """Solve as `solve_care` does, with errors in the words of who asks."""
    return _answer(_care, False, words, *_checked(A, B, Q, R, N))


def _checked(A: Any, B: Any, Q: Any, R: Any, N: Any) -> tuple[Any, ...]:
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    m = B.shape[1]
    Q = symmetric_matrix(Q, "Q", n)
    R = symmetric_matrix(R, "R", m, eigenvalues="positive")
    return A, B, Q, R, None if N is None else matrix(N, "N", n, m, finite=True)


def _answer(solve: Any, discrete: bool, words: Words, *given: Any) -> Any:
    """Return X, nan without a stabilising solution; plain numbers raise instead."""
    try:
        with np.errstate(all="ignore"):
            X = solve(*given)
        # Also plain numbers give a traced X within a recording, where loops are recorded.
        failed = not holds_traced(X) and bool(np.any(np.isnan(X)))
    except np.linalg.LinAlgError:
        if holds_traced(given):
            raise
        failed = True
    if failed:
        A, B, Q, R, N = given
        A, _, Q = _without_cross(A, B, Q, R, N)
        raise no_solution(A, B, Q, discrete, words)
    return X


def _without_cross(A: Any, B: Any, Q: Any, R: Any, N: Any) -> tuple[Any, Any, Any]:
    """Return A, G, Q of the same equation without N."""
    if N is None:
        return A, B @ np.linalg.solve(R, B.T), Q
    solved = np.linalg.solve(R, np.concatenate([B.T, N.T], axis=1))
    n = A.shape[0]
    return A - B @ solved[:, n:], B @ solved[:, :n], Q - N @ solved[:, n:]


def _dare(A: Any, B: Any, Q: Any, R: Any, N: Any) -> Any:
    return _doubled(*_without_cross(A, B, Q, R, N))


def _care(A: Any, B: Any, Q: Any, R: Any, N: Any) -> Any:
    """Cayley's transform makes the equation a discrete one with the same solution."""
    A, G, H = _without_cross(A, B, Q, R, N)
    eye = np.eye(A.shape[0])
    # Any pole to the right of A's eigenvalues will do; X does not depend on it.
    pole = 1.25 * _size(A) + np.sqrt(_size(G) * _size(H))
    pole = np.where(pole > 0.0, pole, 1.0)
    shifted = np.linalg.inv(A - pole * eye)
    W = np.linalg.inv((A - pole * eye).T + H @ shifted @ G)
    return _doubled(
        eye + 2.0 * pole * W.T, 2.0 * pole * (shifted @ G @ W), 2.0 * pole * (W @ H @ shifted)
    )


def _size(M: Any) -> Any:
    """Return the norm of a matrix that scales something: a constant to derivatives."""
    M = stop_gradient(M)
    return np.sqrt(np.sum(M * M))


def _doubled(F: Any, G: Any, H: Any) -> Any:
    """Return X after doublings; nan where F has not died away (X does not stabilise).

    Doubling sums the cost of 2^k steps. A cost of the last state, ``last``, makes unstable modes
    count that cost nothing else: X - last solves the equation of F, G, H below.
    """
    n = F.shape[0]
    cost, reach = _size(H), _size(G)
    last = np.where(cost > 0.0, cost, 1.0 / np.where(reach > 0.0, reach, 1.0)) * np.eye(n)
    solved = np.linalg.solve(np.eye(n) + G @ last, np.concatenate([F, G], axis=1))
    H = H + F.T @ last @ solved[:, :n] - last
    F, G = solved[:, :n], solved[:, n:]

    def double(carry: Any, _: Any) -> Any:
        F, G, H = carry
        solved = np.linalg.solve(np.eye(n) + G @ H, np.concatenate([F, G], axis=1))
        FW, GW = solved[:, :n], solved[:, n:]
        G, H = G + F @ GW @ F.T, H + F.T @ H @ FW
        return (F @ FW, 0.5 * (G + G.T), 0.5 * (H + H.T)), None

    (F, _, H), _ = scan(double, (F, G, H), length=DOUBLINGS)
    return np.where(np.max(np.abs(F)) < LEFT, H + last, np.nan)
