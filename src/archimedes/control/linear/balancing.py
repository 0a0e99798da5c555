"""Lyapunov equations by doubling, Gramians, and balanced truncation.

Doubling: X = sum of F^k Q F'^k over all k is reached in steps X <- X + F X F', F <- F F (R. Smith,
"Matrix equation XA + BX = C", SIAM J. Appl. Math. 16, 1968); a Cayley transform makes it serve
continuous time. Truncation by square roots: M. Safonov, R. Chiang, IEEE Trans. AC 34, 1989.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.control.linear.state_space import StateSpace
from archimedes.control.matrix_checks import matrix, symmetric_matrix
from archimedes.function import holds_traced, scan, stop_gradient

__all__ = ["Reduced", "balanced_truncation", "gramians", "solve_dlyap", "solve_lyap"]

#: Doublings: spectral radii up to 1 - 1e-8 have died away after them.
DOUBLINGS = 32


def solve_dlyap(A: Any, Q: Any) -> Any:
    """Return X (n, n) of A X A' - X + Q = 0, for a stable A (n, n) and a symmetric Q.

    With derivatives, in recorded code; an unstable A raises LinAlgError, and is nan there.

    >>> solve_dlyap([[0.5]], [[3.0]])
    array([[4.]])
    """
    A, Q = _checked(A, Q)
    return _answer(_doubled(A, Q), "all eigenvalues of A must be inside the unit circle")


def solve_lyap(A: Any, Q: Any) -> Any:
    """Return X (n, n) of A X + X A' + Q = 0; as `solve_dlyap`, for continuous time.

    >>> solve_lyap([[-1.0]], [[4.0]]).round(12)
    array([[2.]])
    """
    A, Q = _checked(A, Q)
    eye = np.eye(A.shape[0])
    # Any positive pole will do: of the size of A's eigenvalues few steps are needed.
    held = stop_gradient(A)
    pole = np.sqrt(np.sum(held * held) / A.shape[0])
    pole = np.where(pole > 0.0, pole, 1.0)
    need = "all eigenvalues of A must have negative real parts"
    try:
        left = np.linalg.inv(pole * eye - A)
    except np.linalg.LinAlgError:  # the pole is an eigenvalue, which is not stable then
        raise np.linalg.LinAlgError(f"no solution: {need}") from None
    F = left @ (pole * eye + A)
    return _answer(_doubled(F, 2.0 * pole * (left @ Q @ left.T)), need)


def _checked(A: Any, Q: Any) -> tuple[Any, Any]:
    n = matrix(A, "A").shape[0]
    return matrix(A, "A", n, n), symmetric_matrix(Q, "Q", n)


def _doubled(F: Any, X: Any) -> Any:
    def double(carry: Any, _: Any) -> Any:
        F, X = carry
        X = X + F @ X @ F.T
        return (F @ F, 0.5 * (X + X.T)), None

    with np.errstate(all="ignore"):
        (F, X), _ = scan(double, (F, X), length=DOUBLINGS)
        return np.where(np.max(np.abs(F)) < 1e-16, X, np.nan)


def _answer(X: Any, need: str) -> Any:
    if not holds_traced(X) and np.any(np.isnan(X)):
        raise np.linalg.LinAlgError(f"no solution: {need}")
    return X


def gramians(system: StateSpace) -> tuple[Any, Any]:
    """Return the Gramians (n, n) of controllability and observability of a stable system.

    >>> lag = StateSpace([[-1.0]], [[2.0]], [[1.0]], [[0.0]])
    >>> gramians(lag)[0].round(12)
    array([[2.]])
    """
    solve = solve_lyap if system.dt is None else solve_dlyap
    return solve(system.A, system.B @ system.B.T), solve(system.A.T, system.C.T @ system.C)


class Reduced(NamedTuple):
    """A smaller system and what it was made of.

    ``hankel`` (n,) are the Hankel singular values; twice the sum of those left out bounds the
    largest error of the frequency response, ``error_bound``. x_reduced = ``left`` @ x, and
    x is near ``right`` @ x_reduced.

    >>> from archimedes.control import StateSpace, balanced_truncation
    >>> two = StateSpace([[-1.0, 0.0], [0.0, -9.0]], [[1.0], [0.1]], [[1.0, 0.1]], [[0.0]])
    >>> small = balanced_truncation(two, 1)
    >>> small.left.shape, small.right.shape, bool(small.hankel[0] > 100 * small.hankel[1])
    ((1, 2), (2, 1), True)
    """

    system: StateSpace
    hankel: Any
    error_bound: Any
    left: Any
    right: Any


def balanced_truncation(system: StateSpace, order: int) -> Reduced:
    """Return the system of ``order`` states that are most controllable and observable.

    Of a stable system; the poles of the result are stable, too. Works in recorded code.

    >>> two = StateSpace([[-1.0, 0.0], [0.0, -9.0]], [[1.0], [0.1]], [[1.0, 0.1]], [[0.0]])
    >>> found = balanced_truncation(two, 1)
    >>> bool(found.error_bound < 0.002), found.system.A.shape
    (True, (1, 1))
    """
    if not isinstance(system, StateSpace):
        raise TypeError(f"system must be a control.StateSpace, got {type(system).__name__}")
    n = system.A.shape[0]
    if not 1 <= int(order) <= n:
        raise ValueError(f"order must be between 1 and the {n} states, got {order}")
    reach, sight = (_root(M) for M in gramians(system))
    U, hankel, Vt = np.linalg.svd(sight.T @ reach)
    k = int(order)
    if not holds_traced(hankel) and not hankel[k - 1] > 1e-14 * hankel[0]:
        able = int(np.sum(hankel > 1e-14 * hankel[0]))
        raise ValueError(
            f"order={order} is more than the {able} states that inputs reach and outputs show: "
            f"take order={able} or less"
        )
    scale = 1.0 / np.sqrt(hankel[:k])
    left = scale[:, None] * (U[:, :k].T @ sight.T)
    right = (reach @ Vt[:k].T) * scale
    kept = StateSpace(
        left @ system.A @ right,
        left @ system.B,
        system.C @ right,
        system.D,
        system.dt,
        inputs=system.inputs,
        outputs=system.outputs,
        input_units=system.input_units,
        output_units=system.output_units,
    )
    return Reduced(kept, hankel, 2.0 * np.sum(hankel[k:]), left, right)


def _root(M: Any) -> Any:
    """Return S with S S' = M, for M that may be singular."""
    values, vectors = np.linalg.eigh(M)
    return vectors * np.sqrt(np.maximum(values, 0.0))
