"""Linear systems in continuous time as linear systems in steps.

Franklin, Powell, Workman, "Digital control of dynamic systems", 3rd ed., ch. 4.3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import check_positive, matrix
from archimedes.function import expm, holds_traced

__all__ = ["discretize_linear"]

Matrices = tuple[Any, Any, Any, Any]


def discretize_linear(A: Any, B: Any, C: Any, D: Any, dt: Any, method: str = "zoh") -> Matrices:
    """Return the matrices of a linear system in discrete time.

    The result is differentiable, also with respect to `dt`.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    C : array (p, n)
        Output matrix.
    D : array (p, m)
        Feedthrough matrix.
    dt : float
        Length of a step in s.
    method : {"zoh", "foh", "tustin", "euler", "backward"}, optional
        Inputs held over a step (exact), inputs linear between samples (exact), trapezoidal rule,
        explicit Euler, implicit Euler.

    Returns
    -------
    Matrices
        A, B, C, D of x+ = A x + B u, y = C x + D u.

    Examples
    --------
    >>> A, B, C, D = discretize_linear([[-1.0]], [[1.0]], [[1.0]], [[0.0]], dt=0.1)
    >>> A.round(6), B.round(6)
    (array([[0.904837]]), array([[0.095163]]))
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    C = matrix(C, "C", None, n, finite=True)
    D = matrix(D, "D", C.shape[0], B.shape[1], finite=True)
    check_positive(dt, "dt")
    try:
        with np.errstate(all="ignore"):
            found = METHODS[method](A, B, C, D, dt)
    except np.linalg.LinAlgError:
        pole = "2 / dt" if method == "tustin" else "1 / dt"
        raise np.linalg.LinAlgError(
            f"method={method!r} has no steps of dt={dt} s for an A with an eigenvalue at {pole}: "
            "take shorter steps, or method='zoh'"
        ) from None
    if not holds_traced(found) and not all(np.all(np.isfinite(part)) for part in found):
        raise ValueError(
            f"dt={dt} s is so long that states of this unstable system grow beyond all numbers in "
            "one step: take shorter steps"
        )
    return found


def _zero_order_hold(A: Any, B: Any, C: Any, D: Any, dt: Any) -> Matrices:
    n, m = B.shape
    top = np.concatenate([A, B], axis=1) * dt
    moved = expm(np.concatenate([top, np.zeros((m, n + m))]))
    return moved[:n, :n], moved[:n, n:], C, D


def _first_order_hold(A: Any, B: Any, C: Any, D: Any, dt: Any) -> Matrices:
    n, m = B.shape
    top = np.concatenate([A * dt, B * dt, np.zeros((n, m))], axis=1)
    below = np.concatenate([np.zeros((m, n + m)), np.eye(m)], axis=1)
    moved = expm(np.concatenate([top, below, np.zeros((m, n + 2 * m))]))
    F, held, ramp = moved[:n, :n], moved[:n, n : n + m], moved[:n, n + m :]
    return F, held - ramp + F @ ramp, C, D + C @ ramp


def _weighted(share: float) -> Callable[..., Matrices]:
    """Return the rule x+ = x + dt ((1 - share) dx/dt + share dx+/dt)."""

    def rule(A: Any, B: Any, C: Any, D: Any, dt: Any) -> Matrices:
        eye = np.eye(A.shape[0])
        ahead = eye - share * dt * A
        F = np.linalg.solve(ahead, eye + (1.0 - share) * dt * A)
        G = np.linalg.solve(ahead, dt * B)
        return F, G, np.linalg.solve(ahead.T, C.T).T, D + share * (C @ G)

    return rule


METHODS: dict[str, Callable[..., Matrices]] = {
    "zoh": _zero_order_hold,
    "foh": _first_order_hold,
    "tustin": _weighted(0.5),
    "euler": _weighted(0.0),
    "backward": _weighted(1.0),
}
