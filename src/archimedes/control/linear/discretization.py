"""Linear systems in continuous time as linear systems in discrete time, and back.

Franklin, Powell, Workman, "Digital control of dynamic systems", 3rd ed., ch. 4.3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.checks import check_choice, check_positive, is_traced
from archimedes.control.linear.invariant_zeros import state_units
from archimedes.control.matrix_checks import matrix
from archimedes.function import expm
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["discretize_linear"]

Matrices = tuple[Array, Array, Array, Array]


def discretize_linear(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, dt: Scalar, method: str = "zoh"
) -> Matrices:
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
    check_choice(method, "method", METHODS)
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    C = matrix(C, "C", None, n, finite=True)
    D = matrix(D, "D", C.shape[0], B.shape[1], finite=True)
    check_positive(dt, "dt", "s")
    try:
        with np.errstate(all="ignore"):
            discrete = METHODS[method](A, B, C, D, dt)
    except np.linalg.LinAlgError:
        pole = "2 / dt" if method == "tustin" else "1 / dt"
        raise np.linalg.LinAlgError(
            f"method={method!r} cannot use steps of dt={dt} s, because A has an eigenvalue at "
            f"{pole}: use shorter steps, or method='zoh'"
        ) from None
    if not is_traced(discrete) and not all(np.all(np.isfinite(part)) for part in discrete):
        raise ValueError(
            f"dt={dt} s is so long that states of this unstable system overflow in one step: use "
            "shorter steps"
        )
    return discrete


def _zero_order_hold(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
    n, m = B.shape
    top = np.concatenate([A, B], axis=1) * dt
    flow = expm(np.concatenate([top, np.zeros((m, n + m))]))
    return flow[:n, :n], flow[:n, n:], C, D


def hold_matrices(A: Array, B: Array, dt: Scalar) -> tuple[Array, Array, Array]:
    """Return F, G, H of x+ = F x + G u + H (u+ - u), exact for an input linear between samples."""
    n, m = B.shape
    top = np.concatenate([A * dt, B * dt, np.zeros((n, m))], axis=1)
    below = np.concatenate([np.zeros((m, n + m)), np.eye(m)], axis=1)
    flow = expm(np.concatenate([top, below, np.zeros((m, n + 2 * m))]))
    return flow[:n, :n], flow[:n, n : n + m], flow[:n, n + m :]


def _first_order_hold(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
    F, held, ramp = hold_matrices(A, B, dt)
    return F, held - ramp + F @ ramp, C, D + C @ ramp


def _theta_rule(theta: float) -> Callable[..., Matrices]:
    """Return the rule x+ = x + dt ((1 - theta) dx/dt + theta dx+/dt)."""

    def rule(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
        eye = np.eye(A.shape[0])
        ahead = eye - theta * dt * A
        F = np.linalg.solve(ahead, eye + (1.0 - theta) * dt * A)
        G = np.linalg.solve(ahead, dt * B)
        return F, G, np.linalg.solve(ahead.T, C.T).T, D + theta * (C @ G)

    return rule


METHODS: dict[str, Callable[..., Matrices]] = {
    "zoh": _zero_order_hold,
    "foh": _first_order_hold,
    "tustin": _theta_rule(0.5),
    "euler": _theta_rule(0.0),
    "backward": _theta_rule(1.0),
}


def continue_linear(A: Array, B: Array, C: Array, D: Array, dt: Scalar, method: str) -> Matrices:
    """Return the matrices in continuous time whose discretization by a method is A, B, C, D."""
    check_choice(method, "method", METHODS)
    theta = {"tustin": 0.5, "euler": 0.0, "backward": 1.0}.get(method)
    return (
        _undo_hold(A, B, C, D, dt, method) if theta is None else _undo_theta(A, B, C, D, dt, theta)
    )


def _undo_theta(F: Array, G: Array, C: Array, D: Array, dt: Scalar, theta: float) -> Matrices:
    eye = np.eye(F.shape[0])
    A = np.linalg.solve(dt * ((1.0 - theta) * eye + theta * F).T, (F - eye).T).T
    ahead = eye - theta * dt * A
    C = C @ ahead
    return A, ahead @ G / dt, C, D - theta * (C @ G)


def _undo_hold(F: Array, G: Array, C: Array, D: Array, dt: Scalar, method: str) -> Matrices:
    from scipy.linalg import logm

    n, m = G.shape
    poles = np.linalg.eigvals(F)
    if np.any((poles.imag == 0.0) & (poles.real <= 0.0)):
        raise ValueError(
            f"method={method!r} cannot return to continuous time: A has a pole at "
            f"{float(np.min(poles.real)):.6g}, and no continuous system has one at or below zero "
            "after a step; use method='tustin'"
        )
    units = state_units(F, G, C)  # those that suit the logarithm
    M, G = F * units.T / units, G / units
    if method == "zoh":
        flow = logm(np.block([[M, G], [np.zeros((m, n)), np.eye(m)]])).real / dt
        return flow[:n, :n] * units / units.T, flow[:n, n:] * units, C, D
    A, G = logm(M).real / dt * units / units.T, G * units
    _, held, ramp = hold_matrices(A, np.eye(n), dt)
    B = np.linalg.solve(held - ramp + F @ ramp, G)
    return A, B, C, D - C @ ramp @ B
