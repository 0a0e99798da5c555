"""Riccati equations by structured doubling, in balanced units: bounded loops, with derivatives.

Symbols: X solution, G = B R^-1 B^T, H the iterate that becomes X, F the closed loop's 2^k-th power.
Chu, Fan, Lin, Wang, "Structure-preserving algorithms for periodic discrete-time algebraic Riccati
equations", Int. J. Control 77 (2004), eq. 3; Chu, Fan, Lin, "A structure-preserving doubling
algorithm for continuous-time algebraic Riccati equations", Linear Algebra Appl. 396 (2005). Units
balance the Hamiltonian matrix (P. Benner, "Symplectic balancing of Hamiltonian matrices", SIAM J.
Sci. Comput. 22, 2001). Steps of Newton's method remove what rounding has left (D. Kleinman, IEEE
Trans. AC 13, 1968): Lyapunov equations of the closed loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.lyapunov import (
    DOUBLINGS,
    LEFT,
    continuous_correction,
    discrete_correction,
)
from archimedes.control.linear.unstabilizable_modes import REGULATOR, Words, no_solution
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.function import stop_gradient
from archimedes.function.matrix_exponential import (
    balancing_units,
    diagonal_units,
    in_units,
    repeat_while,
)

__all__ = ["care", "dare", "solve_care", "solve_dare", "solve_definite"]

#: A closed loop on the limit of stability dies away by half in each doubling, where others square
#: what is left of them; one that still does so here is on the limit but for rounding.
LIMIT = 1e-7
#: The first step of Newton's method corrects at most this part of X, or X is nothing but rounding;
#: one that corrects less than the other part is the last.
CORRECTION, ENOUGH = 0.1, 1e-9
#: Most steps of Newton's method, and the part that stands for the one before the first.
NEWTON_STEPS, FIRST = 5, 1e300


def solve_dare(A: Any, B: Any, Q: Any, R: Any, N: Any = None) -> Any:
    """Return the stabilizing X (n, n) of A'XA - X - (A'XB + N)(B'XB + R)^-1(B'XA + N') + Q = 0.

    States and inputs may be in any units. B must reach every unstable mode of A; otherwise
    LinAlgError is raised, and inside a compiled function X is nan. The solution has derivatives of
    any order, compiles, maps and generates C.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    Q : array (n, n)
        Weights of the states, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    N : array (n, m), optional
        Weights of the products of states and inputs. None by default.

    Examples
    --------
    >>> solve_dare([[2.0]], [[1.0]], [[1.0]], [[1.0]]).round(6)
    array([[4.236068]])
    """
    return dare(A, B, Q, R, N)


def solve_care(A: Any, B: Any, Q: Any, R: Any, N: Any = None) -> Any:
    """Return the stabilizing X (n, n) of A'X + XA - (XB + N) R^-1 (B'X + N') + Q = 0.

    The conditions and derivatives are those of `solve_dare`.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    Q : array (n, n)
        Weights of the states, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    N : array (n, m), optional
        Weights of the products of states and inputs. None by default.

    Examples
    --------
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
    A, G, Q = _without_cross(*given)
    units = _hamiltonian_units(A, G, Q)
    inverse = 1.0 / units
    balanced = in_units(A, inverse, units), in_units(G, inverse, inverse), in_units(Q, units, units)
    traced = is_traced(given)
    try:
        with np.errstate(all="ignore"):
            X = solve(*balanced)
        failed = not traced and bool(np.any(np.isnan(X)))
    except np.linalg.LinAlgError:
        if traced:
            raise
        failed = True
    if failed:
        B = in_units(given[1], inverse, 1.0 / diagonal_units(given[3]))
        raise no_solution(balanced[0], B, balanced[2], discrete, words)
    return in_units(X, inverse, inverse)


def solve_definite(M: Any, right: Any) -> Any:
    """Return M^-1 right for a positive definite M, whose rows may be in any units."""
    units = 1.0 / diagonal_units(M)
    return units[:, None] * np.linalg.solve(in_units(M, units, units), units[:, None] * right)


def _without_cross(A: Any, B: Any, Q: Any, R: Any, N: Any) -> tuple[Any, Any, Any]:
    """Return A, G, Q of the same equation without N."""
    if N is None:
        return A, B @ solve_definite(R, B.T), Q
    solved = solve_definite(R, np.concatenate([B.T, N.T], axis=1))
    n = A.shape[0]
    return A - B @ solved[:, n:], B @ solved[:, :n], Q - N @ solved[:, n:]


def _hamiltonian_units(A: Any, G: Any, Q: Any) -> Any:
    """Return the units (n,) of the states that balance [[A, -G], [-Q, -A']]."""
    n = A.shape[0]
    above, below = np.concatenate([A, G], axis=1), np.concatenate([Q, A.T], axis=1)
    units = balancing_units(np.concatenate([above, below]))
    # Costates are in the inverse units of the states, but for rounding to powers of two.
    power = np.rint(0.5 * np.log2(units[:n] / units[n:]))
    return np.ldexp(np.ones(n), power.astype(np.int64))


def _dare(A: Any, G: Any, Q: Any) -> Any:
    def step(X: Any) -> Any:
        closed = np.linalg.solve(np.eye(A.shape[0]) + G @ X, A)
        return discrete_correction(closed.T)(_symmetric(A.T @ X @ closed - X + Q))

    return _corrected(_doubled(A, G, Q), step)


def _care(A: Any, G: Any, H: Any) -> Any:
    """Cayley's transform makes the equation a discrete one with the same solution."""
    eye = np.eye(A.shape[0])
    # Any pole to the right of A's eigenvalues will do; X does not depend on it.
    pole = 1.25 * _size(A) + np.sqrt(_size(G) * _size(H))
    pole = np.where(pole > 0.0, pole, 1.0)
    shifted = np.linalg.inv(A - pole * eye)
    W = np.linalg.inv((A - pole * eye).T + H @ shifted @ G)
    X = _doubled(
        eye + 2.0 * pole * W.T, 2.0 * pole * (shifted @ G @ W), 2.0 * pole * (W @ H @ shifted)
    )

    def step(X: Any) -> Any:
        closed = A - G @ X
        return continuous_correction(closed.T)(_symmetric(A.T @ X + X @ closed + H))

    return _corrected(X, step)


def _symmetric(M: Any) -> Any:
    return 0.5 * (M + M.T)


def _corrected(X: Any, step: Callable[[Any], Any]) -> Any:
    """Return X after steps of Newton's method, mostly one; nan where the first is not small.

    A step is nan where the closed loop is not stable, and large where rounding has decided X. One
    that the next does not undercut by far was rounding of the residual, and is not taken.
    """

    def unfinished(carry: tuple[Any, ...]) -> Any:
        part = carry[2]
        return (part > ENOUGH) & ((part <= CORRECTION) | (part == FIRST))  # false for nan

    def improve(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        X, change, part = carry
        trial = X + change
        following = step(trial)
        small, whole = (np.max(np.abs(stop_gradient(M))) for M in (following, trial))
        ahead = small / np.where(whole > 0.0, whole, 1.0)
        better = ahead <= 0.2 * part  # false for nan
        ended = np.where(part <= CORRECTION, 0.0, np.nan)
        return (
            np.where(better, trial, X),
            np.where(better, following, 0.0),
            np.where(better, ahead, ended),
        )

    start = X, np.zeros(X.shape), np.array(FIRST)
    X, change, part = repeat_while(unfinished, improve, start, NEWTON_STEPS)
    return np.where(part <= CORRECTION, X + change, np.nan)


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

    def unfinished(carry: tuple[Any, ...]) -> Any:
        return carry[3] >= LEFT  # false for nan

    def double(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        F, G, H, size, halving = carry
        solved = np.linalg.solve(np.eye(n) + G @ H, np.concatenate([F, G], axis=1))
        FW, GW = solved[:, :n], solved[:, n:]
        G, H = G + F @ GW @ F.T, H + F.T @ H @ FW
        F = F @ FW
        after = np.max(np.abs(stop_gradient(F)))
        halving = np.where(after > 0.3 * size, after, halving)
        return F, _symmetric(G), _symmetric(H), after, halving

    one = np.ones(())
    _, _, H, size, halving = repeat_while(unfinished, double, (F, G, H, one, one), DOUBLINGS)
    return np.where((size < LEFT) & (halving > LIMIT), H + last, np.nan)
