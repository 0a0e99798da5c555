"""Linear-quadratic regulators and estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.matrix_equations import solve_definite, solve_riccati
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.linear.unstabilizable_modes import ESTIMATOR
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.typing import Array, ArrayLike

__all__ = ["dlqe", "dlqr", "lqe", "lqr"]


def lqr(
    A: Any, B: ArrayLike, Q: ArrayLike, R: Any = None, N: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the gain of the linear-quadratic regulator.

    For dx/dt = A x + B u, u = -K x minimizes the integral of x'Qx + u'Ru + 2x'Nu. The cost must not
    be negative for any x and u, and B must reach every unstable mode; `solve_care` also solves with
    negative weights.

    Parameters
    ----------
    A : array (n, n)
        State matrix. A `StateSpace` stands for A and B: ``lqr(system, Q, R)``.
    B : array (n, m)
        Input matrix.
    Q : array (n, n)
        Weights of the states, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    N : array (n, m), optional
        Weights of the products of states and inputs. None by default.

    Returns
    -------
    (array (m, n), array (n, n))
        K, and X with the least cost x'Xx from x.

    Examples
    --------
    >>> K, X = lqr([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], np.eye(2), [[1.0]])
    >>> K.round(4)
    array([[1.    , 1.7321]])
    """
    A, B, Q, R, N = _read_system(A, B, Q, R, N, discrete=False)
    _check_cost(Q, R, N)
    X = solve_riccati(A, B, Q, R, N, discrete=False)
    BX = matrix(B, "B").T @ X
    return solve_definite(matrix(R, "R"), BX if N is None else BX + matrix(N, "N").T), X


def dlqr(
    A: Any, B: ArrayLike, Q: ArrayLike, R: Any = None, N: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the gain of the linear-quadratic regulator in discrete time.

    For x+ = A x + B u, u = -K x minimizes the sum of x'Qx + u'Ru + 2x'Nu. The conditions are those
    of `lqr`.

    Parameters
    ----------
    A : array (n, n)
        State matrix. A `StateSpace` stands for A and B: ``lqr(system, Q, R)``.
    B : array (n, m)
        Input matrix.
    Q : array (n, n)
        Weights of the states, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    N : array (n, m), optional
        Weights of the products of states and inputs. None by default.

    Returns
    -------
    (array (m, n), array (n, n))
        K, and X with the least cost x'Xx from x.

    Examples
    --------
    >>> K, X = dlqr([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> K.round(4)
    array([[0.618]])
    """
    A, B, Q, R, N = _read_system(A, B, Q, R, N, discrete=True)
    _check_cost(Q, R, N)
    X = solve_riccati(A, B, Q, R, N, discrete=True)
    B = matrix(B, "B")
    BXA = B.T @ X @ matrix(A, "A")
    right = BXA if N is None else BXA + matrix(N, "N").T
    return solve_definite(matrix(R, "R") + B.T @ X @ B, right), X


def lqe(A: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike) -> tuple[Array, Array]:
    """Return the gain of the steady-state Kalman-Bucy filter.

    dx/dt = A x + w is observed as y = C x + v. The estimate follows dx/dt = A x + L (y - C x), and
    P is the covariance of its error.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    C : array (m, n)
        Output matrix.
    Q : array (n, n)
        Power spectral density of the process noise w.
    R : array (m, m)
        Power spectral density of the measurement noise v, positive definite.

    Returns
    -------
    (array (n, m), array (n, n))
        L and P.

    Examples
    --------
    >>> L, P = lqe([[0.0]], [[1.0]], [[4.0]], [[1.0]])
    >>> L.round(6), P.round(6)
    (array([[2.]]), array([[2.]]))
    """
    A, C, Q, R = _dual_system(A, C, Q, R)
    P = solve_riccati(A, C, Q, R, None, discrete=False, words=ESTIMATOR)
    return solve_definite(R, C.T @ P).T, P


def dlqe(A: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike) -> tuple[Array, Array]:
    """Return the gain of the steady-state Kalman filter.

    x+ = A x + w is observed as y = C x + v. A prediction x, whose error has the covariance P, is
    corrected to x + L (y - C x).

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    C : array (m, n)
        Output matrix.
    Q : array (n, n)
        Covariance of the process noise w.
    R : array (m, m)
        Covariance of the measurement noise v, positive definite.

    Returns
    -------
    (array (n, m), array (n, n))
        L and P.

    Examples
    --------
    >>> L, P = dlqe([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> L.round(4), P.round(4)
    (array([[0.618]]), array([[1.618]]))
    """
    A, C, Q, R = _dual_system(A, C, Q, R)
    P = solve_riccati(A, C, Q, R, None, discrete=True, words=ESTIMATOR)
    return solve_definite(R + C.T @ P @ C, C.T @ P).T, P


def _read_system(A: Any, B: Any, Q: Any, R: Any, N: Any, discrete: bool) -> tuple[Any, ...]:
    """Return A, B, Q, R, N of what may be (system, Q, R, N)."""
    if isinstance(A, StateSpace):
        if (A.dt is not None) != discrete:
            right = "lqr" if discrete else "dlqr"
            raise ValueError(f"this system has dt = {A.dt}: use {right}")
        A, B, Q, R, N = A.A, A.B, B, Q, R if N is None else N
    if R is None:
        raise TypeError("R, the weights of the inputs, is missing")
    return A, B, Q, R, N


def _check_cost(Q: ArrayLike, R: ArrayLike, N: ArrayLike | None) -> None:
    """Raise where x'Qx + u'Ru + 2x'Nu, as far as it is known, can be below zero."""
    if N is None:
        symmetric_matrix(Q, "Q", eigenvalues="not negative")
        return
    Q, R, N = symmetric_matrix(Q, "Q"), symmetric_matrix(R, "R"), matrix(N, "N", finite=True)
    if is_traced(Q, R, N) or N.shape != (len(Q), len(R)):
        return  # shapes are judged with those of A and B
    both = np.concatenate([np.concatenate([Q, N], axis=1), np.concatenate([N.T, R], axis=1)])
    symmetric_matrix(both, "[[Q, N], [N.T, R]]", eigenvalues="not negative")


def _dual_system(
    A: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """Return the system whose regulator is the estimator, with errors that name what was given."""
    n = matrix(A, "A").shape[0]
    A, C = matrix(A, "A", n, n, finite=True), matrix(C, "C", None, n, finite=True)
    R = symmetric_matrix(R, "R", C.shape[0], "positive")
    return A.T, C.T, symmetric_matrix(Q, "Q", n, "not negative"), R
