"""Riccati and Lyapunov equations by doubling, in balanced units: bounded loops, with derivatives.

Riccati equations by structured doubling. Symbols: X solution, G = B R^-1 B^T, H the iterate that
becomes X, F the closed loop's 2^k-th power.
Chu, Fan, Lin, Wang, "Structure-preserving algorithms for periodic discrete-time algebraic Riccati
equations", Int. J. Control 77 (2004), eq. 3; Chu, Fan, Lin, "A structure-preserving doubling
algorithm for continuous-time algebraic Riccati equations", Linear Algebra Appl. 396 (2005). Units
balance the Hamiltonian matrix (P. Benner, "Symplectic balancing of Hamiltonian matrices", SIAM J.
Sci. Comput. 22, 2001). Steps of Newton's method remove what rounding has left (D. Kleinman, IEEE
Trans. AC 13, 1968): Lyapunov equations of the closed loop.

Lyapunov equations: X = sum of F^k Q F'^k over all k is reached in steps X <- X + F X F', F <- F F
(R. Smith, "Matrix equation XA + BX = C", SIAM J. Appl. Math. 16, 1968); a Cayley transform makes it
serve continuous time. Its pole is the geometric mean of the largest and the smallest rate, so that
stiff systems take few steps. What rounding leaves of the equation is solved for once more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.unstabilizable_modes import REGULATOR, Words, explain_failure
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.function import fori_loop, stop_gradient
from archimedes.function.matrix_exponential import (
    balancing_units,
    diagonal_units,
    in_units,
    repeat_while,
)
from archimedes.typing import Array, ArrayLike

__all__ = ["solve_care", "solve_dare", "solve_dlyap", "solve_lyap"]

#: Most doublings: every spectral radius below one that double precision holds has died away.
DOUBLINGS = 60
#: What may be left of the power of a matrix that has died away.
LEFT = 1e-16
#: A closed loop on the limit of stability dies away by half in each doubling, where others square
#: what is left of them; one that still does so here is on the limit but for rounding.
LIMIT = 1e-7
#: The first step of Newton's method corrects at most this part of X, or X is nothing but rounding;
#: one that corrects less than the other part is the last.
CORRECTION, ENOUGH = 0.1, 1e-9
#: Most steps of Newton's method, and the part that stands for the one before the first.
NEWTON_STEPS, FIRST = 5, 1e300


def solve_dare(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> Array:
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
    return solve_riccati(A, B, Q, R, N, discrete=True)


def solve_care(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> Array:
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
    return solve_riccati(A, B, Q, R, N, discrete=False)


def solve_riccati(
    A: ArrayLike,
    B: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    N: ArrayLike | None,
    discrete: bool,
    words: Words = REGULATOR,
) -> Array:
    """Solve as `solve_dare` or `solve_care` does, with errors in the words of who asks.

    Without a stabilising solution X is nan; plain numbers raise instead.
    """
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    m = B.shape[1]
    Q, R = symmetric_matrix(Q, "Q", n), symmetric_matrix(R, "R", m, eigenvalues="positive")
    N = None if N is None else matrix(N, "N", n, m, finite=True)
    F, G, H = _without_cross(A, B, Q, R, N)
    units = _hamiltonian_units(F, G, H)
    inverse = 1.0 / units
    balanced = in_units(F, inverse, units), in_units(G, inverse, inverse), in_units(H, units, units)
    traced = is_traced(A, B, Q, R, N)
    try:
        with np.errstate(all="ignore"):
            X = (_dare if discrete else _care)(*balanced)
        failed = not traced and bool(np.any(np.isnan(X)))
    except np.linalg.LinAlgError:
        if traced:
            raise
        failed = True
    if failed:
        scaled_B = in_units(B, inverse, 1.0 / diagonal_units(R))
        raise explain_failure(balanced[0], scaled_B, balanced[2], discrete, words)
    return in_units(X, inverse, inverse)


def solve_definite(M: Array, right: Array) -> Array:
    """Return M^-1 right for a positive definite M, whose rows may be in any units."""
    units = 1.0 / diagonal_units(M)
    return units[:, None] * np.linalg.solve(in_units(M, units, units), units[:, None] * right)


def _without_cross(
    A: Array, B: Array, Q: Array, R: Array, N: Array | None
) -> tuple[Array, Array, Array]:
    """Return A, G, Q of the same equation without N."""
    if N is None:
        return A, B @ solve_definite(R, B.T), Q
    solved = solve_definite(R, np.concatenate([B.T, N.T], axis=1))
    n = A.shape[0]
    return A - B @ solved[:, n:], B @ solved[:, :n], Q - N @ solved[:, n:]


def _hamiltonian_units(A: Array, G: Array, Q: Array) -> Array:
    """Return the units (n,) of the states that balance [[A, -G], [-Q, -A']]."""
    n = A.shape[0]
    above, below = np.concatenate([A, G], axis=1), np.concatenate([Q, A.T], axis=1)
    units = balancing_units(np.concatenate([above, below]))
    # Costates are in the inverse units of the states, but for rounding to powers of two.
    power = np.rint(0.5 * np.log2(units[:n] / units[n:]))
    return np.ldexp(np.ones(n), power.astype(np.int64))


def _dare(A: Array, G: Array, Q: Array) -> Array:
    def step(X: Array) -> Array:
        closed = np.linalg.solve(np.eye(A.shape[0]) + G @ X, A)
        return discrete_correction(closed.T)(_symmetric(A.T @ X @ closed - X + Q))

    return _correct(_double(A, G, Q), step, _noise(G, Q))


def _care(A: Array, G: Array, H: Array) -> Array:
    """Cayley's transform makes the equation a discrete one with the same solution."""
    eye = np.eye(A.shape[0])
    # Any pole to the right of A's eigenvalues will do; X does not depend on it.
    pole = 1.25 * _size(A) + np.sqrt(_size(G) * _size(H))
    pole = np.where(pole > 0.0, pole, 1.0)
    shifted = np.linalg.inv(A - pole * eye)
    W = np.linalg.inv((A - pole * eye).T + H @ shifted @ G)
    X = _double(
        eye + 2.0 * pole * W.T, 2.0 * pole * (shifted @ G @ W), 2.0 * pole * (W @ H @ shifted)
    )

    def step(X: Array) -> Array:
        closed = A - G @ X
        return continuous_correction(closed.T)(_symmetric(A.T @ X + X @ closed + H))

    return _correct(X, step, _noise(G, H))


def _symmetric(M: Array) -> Array:
    return 0.5 * (M + M.T)


def _noise(G: Array, H: Array) -> Array:
    """Return the size below which X is zero: rounding of the last cost of `_double`, if H is 0."""
    cost, reach = _size(H), _size(G)
    return np.where((cost == 0.0) & (reach > 0.0), 1e-10 / np.where(reach > 0.0, reach, 1.0), 0.0)


def _correct(X: Array, step: Callable[[Array], Array], noise: Array) -> Array:
    """Return X after steps of Newton's method, mostly one; nan where the first is not small.

    A step is nan where the closed loop is not stable, and large where rounding has decided X. One
    that the next does not undercut by far was rounding of the residual, and is not taken. An X
    below ``noise`` is zero.
    """

    def is_unfinished(carry: tuple[Array, ...]) -> Array:
        part = carry[2]
        return (part > ENOUGH) & ((part <= CORRECTION) | (part == FIRST))  # false for nan

    def improve(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        X, change, part = carry
        trial = X + change
        following = step(trial)
        small, whole = (np.max(np.abs(stop_gradient(M))) for M in (following, trial))
        whole = np.maximum(whole, noise)
        ahead = small / np.where(whole > 0.0, whole, 1.0)
        better = ahead <= 0.2 * part  # false for nan
        ended = np.where(part <= CORRECTION, 0.0, np.nan)
        pairs = (trial, X), (following, 0.0), (ahead, ended)
        return tuple(np.where(better, new, old) for new, old in pairs)

    start = X, np.zeros(X.shape), np.array(FIRST)
    X, change, part = repeat_while(is_unfinished, improve, start, NEWTON_STEPS)
    return np.where(part <= CORRECTION, X + change, np.nan)


def _size(M: Array) -> Array:
    """Return the norm of a matrix that scales something: a constant to derivatives."""
    M = stop_gradient(M)
    return np.sqrt(np.sum(M * M))


def _double(F: Array, G: Array, H: Array) -> Array:
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

    def is_unfinished(carry: tuple[Array, ...]) -> Array:
        return carry[3] >= LEFT  # false for nan

    def double(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        F, G, H, size, halving = carry
        solved = np.linalg.solve(np.eye(n) + G @ H, np.concatenate([F, G], axis=1))
        FW, GW = solved[:, :n], solved[:, n:]
        G, H = G + F @ GW @ F.T, H + F.T @ H @ FW
        F = F @ FW
        after = np.max(np.abs(stop_gradient(F)))
        halving = np.where(after > 0.3 * size, after, halving)
        return F, _symmetric(G), _symmetric(H), after, halving

    one = np.ones(())
    _, _, H, size, halving = repeat_while(is_unfinished, double, (F, G, H, one, one), DOUBLINGS)
    return np.where((size < LEFT) & (halving > LIMIT), H + last, np.nan)


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
    return _solve_lyapunov(A, Q, discrete=True)


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
    return _solve_lyapunov(A, Q, discrete=False)


def discrete_correction(A: Array) -> Callable[[Array], Array]:
    """Return the function of Q whose value X solves A X A' - X + Q = 0, nan if A is unstable."""
    return lambda Q: _sum_powers(A, Q)


def continuous_correction(A: Array) -> Callable[[Array], Array]:
    """Return the function of Q whose value X solves A X + X A' + Q = 0, nan if A is unstable."""
    eye, held = np.eye(A.shape[0]), stop_gradient(A)
    # X does not depend on the pole.
    pole = np.sqrt(_size(held) / _size(np.linalg.inv(held)))
    left = np.linalg.inv(pole * eye - A)
    F = left @ (pole * eye + A)
    return lambda Q: _sum_powers(F, 2.0 * pole * (left @ Q @ left.T))


def _sum_powers(F: Array, X: Array) -> Array:
    def is_unfinished(carry: tuple[Array, Array]) -> Array:
        return np.max(np.abs(carry[0])) >= LEFT  # false for nan

    def double(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        F, X = carry
        X = X + F @ X @ F.T
        return F @ F, 0.5 * (X + X.T)

    F, X = repeat_while(is_unfinished, double, (F, X), DOUBLINGS)
    return np.where(np.max(np.abs(F)) < LEFT, X, np.nan)


def _solve_lyapunov(A: ArrayLike, Q: ArrayLike, discrete: bool) -> Array:
    n = matrix(A, "A").shape[0]
    A, Q = matrix(A, "A", n, n, finite=True), symmetric_matrix(Q, "Q", n)
    traced = is_traced(A, Q)
    units = balancing_units(A)
    M = in_units(A, 1.0 / units, units)
    balanced_Q = in_units(Q, 1.0 / units, 1.0 / units)
    try:
        with np.errstate(all="ignore"):
            solve = (discrete_correction if discrete else continuous_correction)(M)

            def improve(_: object, X: Array) -> Array:
                terms = M @ X @ M.T - X if discrete else M @ X + X @ M.T
                return X + solve(balanced_Q + terms)

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
    text = f"no solution: all eigenvalues of A must {need}, and one is at {pole}"
    if np.max(beyond) < 0.0:
        text += ", so near the limit that rounding decides in double precision"
    return np.linalg.LinAlgError(text)
