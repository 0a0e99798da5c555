"""Lyapunov equations by doubling, in units in which A is balanced.

Doubling: X = sum of F^k Q F'^k over all k is reached in steps X <- X + F X F', F <- F F (R. Smith,
"Matrix equation XA + BX = C", SIAM J. Appl. Math. 16, 1968); a Cayley transform makes it serve
continuous time. Its pole is the geometric mean of the largest and the smallest rate, so that stiff
systems take few steps. What rounding leaves of the equation is solved for once more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.function import fori_loop, stop_gradient
from archimedes.function.matrix_exponential import balancing_units, in_units, repeat_while
from archimedes.typing import Array, ArrayLike

__all__ = ["solve_dlyap", "solve_lyap"]

#: Most doublings: every spectral radius below one that double precision holds has died away.
DOUBLINGS = 60
#: What may be left of the power of a matrix that has died away.
LEFT = 1e-16


def solve_dlyap(A: ArrayLike, Q: ArrayLike) -> Array:
    """Return X (n, n) of the discrete Lyapunov equation A X A' - X + Q = 0.

    States may be in any units. The solution is differentiable and works inside compiled functions.
    If A is not stable, LinAlgError is raised; inside a compiled function X is nan.

    Parameters
    ----------
    A : array (n, n)
        Matrix with all eigenvalues inside the unit circle.
    Q : array (n, n)
        Symmetric matrix.

    Examples
    --------
    >>> solve_dlyap([[0.5]], [[3.0]])
    array([[4.]])
    """
    return _solve(A, Q, discrete_correction, lambda A, X: A @ X @ A.T - X, discrete=True)


def solve_lyap(A: ArrayLike, Q: ArrayLike) -> Array:
    """Return X (n, n) of the Lyapunov equation A X + X A' + Q = 0.

    The conditions are those of `solve_dlyap`, in continuous time.

    Parameters
    ----------
    A : array (n, n)
        Matrix with all eigenvalues in the left half-plane.
    Q : array (n, n)
        Symmetric matrix.

    Examples
    --------
    >>> solve_lyap([[-1.0]], [[4.0]]).round(12)
    array([[2.]])
    """
    return _solve(A, Q, continuous_correction, lambda A, X: A @ X + X @ A.T, discrete=False)


def discrete_correction(A: Array) -> Callable[[Array], Array]:
    """Return the function of Q whose value X solves A X A' - X + Q = 0, nan if A is unstable."""
    return lambda Q: _double(A, Q)


def continuous_correction(A: Array) -> Callable[[Array], Array]:
    """Return the function of Q whose value X solves A X + X A' + Q = 0, nan if A is unstable."""
    eye, held = np.eye(A.shape[0]), stop_gradient(A)
    # X does not depend on the pole.
    pole = np.sqrt(_norm(held) / _norm(np.linalg.inv(held)))
    left = np.linalg.inv(pole * eye - A)
    F = left @ (pole * eye + A)
    return lambda Q: _double(F, 2.0 * pole * (left @ Q @ left.T))


def _norm(M: Array) -> Array:
    return np.sqrt(np.sum(M * M))


def _double(F: Array, X: Array) -> Array:
    def is_unfinished(carry: tuple[Array, Array]) -> Array:
        return np.max(np.abs(carry[0])) >= LEFT  # false for nan

    def double(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        F, X = carry
        X = X + F @ X @ F.T
        return F @ F, 0.5 * (X + X.T)

    F, X = repeat_while(is_unfinished, double, (F, X), DOUBLINGS)
    return np.where(np.max(np.abs(F)) < LEFT, X, np.nan)


def _solve(
    A: ArrayLike,
    Q: ArrayLike,
    correction: Callable[[Array], Callable[[Array], Array]],
    terms: Callable[[Array, Array], Array],
    *,
    discrete: bool,
) -> Array:
    n = matrix(A, "A").shape[0]
    A, Q = matrix(A, "A", n, n, finite=True), symmetric_matrix(Q, "Q", n)
    traced = is_traced(A, Q)
    units = balancing_units(A)
    M = in_units(A, 1.0 / units, units)
    balanced_Q = in_units(Q, 1.0 / units, 1.0 / units)
    try:
        with np.errstate(all="ignore"):
            solve = correction(M)

            def improve(_: object, X: Array) -> Array:
                return X + solve(balanced_Q + terms(M, X))

            X = np.zeros((n, n))
            X = fori_loop(0, 2, improve, X) if traced else improve(1, improve(0, X))
    except np.linalg.LinAlgError:  # a pole or a rate of zero is an eigenvalue
        if traced:
            raise
        raise _not_stable(A, discrete) from None
    if not traced and np.any(np.isnan(X)):
        raise _not_stable(A, discrete)
    return in_units(X, units, units)


def _not_stable(A: np.ndarray, discrete: bool) -> np.linalg.LinAlgError:
    """Return the error of an equation whose A is not stable, which names the eigenvalue."""
    poles = np.linalg.eigvals(A)
    beyond = np.abs(poles) - 1.0 if discrete else poles.real
    worst = poles[np.argmax(beyond)]
    need = "be inside the unit circle" if discrete else "have negative real parts"
    pole = f"{worst.real:.6g}" + (f" +- {abs(worst.imag):.6g}j" if worst.imag else "")
    if np.max(beyond) < 0.0:
        return np.linalg.LinAlgError(
            f"no solution in double precision: all eigenvalues of A must {need}, and the one at "
            f"{pole} is so near the limit that rounding decides"
        )
    return np.linalg.LinAlgError(
        f"no solution: all eigenvalues of A must {need}, and one is at {pole}"
    )
