"""State feedback with given poles, and output feedback by regulators and estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.analysis import ctrb
from archimedes.control.linear.interconnection import as_state_space
from archimedes.control.linear.invariant_zeros import state_units
from archimedes.control.linear.regulators import dlqe, dlqr, lqe, lqr
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.linear.transfer_function import polynomial_of_roots
from archimedes.control.matrix_checks import matrix
from archimedes.typing import Array, ArrayLike

__all__ = ["acker", "lqg", "lqi", "place"]

#: How far, relative to their size, placed poles may be from what was asked for.
PLACED = 1e-5
#: How far they may be where rounding moves them more than that.
MOVED = 1e-3


def acker(A: ArrayLike, B: ArrayLike, poles: ArrayLike) -> Array:
    """Return the gain K (1, n) that places poles, by Ackermann's formula.

    For one input. The formula is exact but sensitive to rounding: use it for a few states, or in
    recorded code, where A and B may be traced; otherwise use `place`.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, 1)
        Input matrix.
    poles : array (n,)
        Eigenvalues of A - B K, real or in conjugate pairs.

    Examples
    --------
    >>> acker([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [-1.0, -2.0])
    array([[2., 3.]])
    """
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n), matrix(B, "B", n, 1)
    values = _check_poles(poles, n)
    powers = np.eye(n)
    total = np.zeros((n, n))
    for c in polynomial_of_roots(values, "poles")[::-1]:
        total, powers = total + c * powers, powers @ A
    reach = ctrb(A, B)
    if not is_traced(reach) and np.linalg.matrix_rank(reach) < n:
        raise np.linalg.LinAlgError(
            "acker: the pair (A, B) is not controllable, so poles cannot be placed at will; leave "
            "out the states that the input does not reach, with minreal"
        )
    return np.linalg.solve(reach.T, np.eye(n)[:, -1:]).T @ total


def _check_poles(poles: ArrayLike, n: int) -> np.ndarray:
    values = np.atleast_1d(np.asarray(poles, dtype=complex))
    if values.shape != (n,):
        raise ValueError(f"poles must hold {n} numbers, one per state, got {len(values)}")
    return values


def place(A: ArrayLike, B: ArrayLike, poles: ArrayLike) -> np.ndarray:
    """Return the gain K (m, n) that places poles robustly.

    Of all gains with these poles it takes one whose eigenvectors are nearly orthogonal, so that
    the poles depend little on A and B (A. Tits, Y. Yang, IEEE Trans. AC 41, 1996).

    Parameters
    ----------
    A : array (n, n)
        State matrix, of numbers.
    B : array (n, m)
        Input matrix. A pole may be asked for at most as many times as B has rank.
    poles : array (n,)
        Eigenvalues of A - B K, real or in conjugate pairs.

    Examples
    --------
    >>> K = place([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [-1.0, -2.0])
    >>> K.round(9)
    array([[2., 3.]])
    """
    from scipy.signal import place_poles

    if is_traced(A, B):
        raise TypeError("place runs on numbers: use acker in recorded code")
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    values = _check_poles(poles, n)
    rank = int(np.linalg.matrix_rank(B))
    most = max(int(np.sum(np.abs(values - p) <= 1e-12 * max(abs(p), 1e-12))) for p in values)
    if most > rank:
        if B.shape[1] == 1:
            return np.asarray(acker(A, B, poles))
        raise ValueError(
            f"place: a pole is asked for {most} times, but B has rank {rank}: move equal poles "
            "slightly apart"
        )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged: the poles are checked below
        units = state_units(A, B, np.eye(1, n) * 0.0)
        try:
            K = place_poles(A * units.T / units, B / units, values).gain_matrix / units.T
        except ValueError:
            K = np.zeros((B.shape[1], n))  # found wrong below
    placed, modes = np.linalg.eig(A - B @ K)
    size = max(np.abs(values).max(), 1e-300)
    off = max(np.abs(placed - p).min() for p in values)
    # Bauer and Fike: so much may rounding of A - B K move its poles; double ones without bound.
    moved = n * np.finfo(float).eps * np.linalg.norm(A - B @ K) * np.linalg.cond(modes)
    if not off <= max(PLACED * size, min(moved, MOVED * size)):
        raise np.linalg.LinAlgError(
            f"place: the poles of A - B K are off by {off:.3g}: is a mode of A not controllable? "
            "Keep its pole, or leave it out with minreal"
        )
    return K


def lqi(
    system: StateSpace, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the gain of a linear-quadratic regulator with integral action.

    u = -K [x; z], where z is the integral (in discrete time the sum times dt) of r - y, minimizes
    the cost of `lqr` with the state [x; z].

    Parameters
    ----------
    system : StateSpace
        The plant. z has an entry for each output.
    Q : array (n + p, n + p)
        Weights of states and integrals, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    N : array (n + p, m), optional
        Weights of the products of states and inputs. None by default.

    Returns
    -------
    (array (m, n + p), array (n + p, n + p))
        K, and X with the least cost x'Xx from x.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> K, _ = lqi(lag, np.eye(2), np.eye(1))
    >>> K.round(4)
    array([[ 1., -1.]])
    """
    system = as_state_space(system, "system")
    n, p = system.nstates, system.noutputs
    dt = 1.0 if system.dt is None else system.dt
    hold = np.zeros((p, p)) if system.dt is None else np.eye(p)
    A = np.concatenate(
        [
            np.concatenate([system.A, np.zeros((n, p))], axis=1),
            np.concatenate([-dt * system.C, hold], axis=1),
        ]
    )
    B = np.concatenate([system.B, -dt * system.D])
    return (lqr if system.dt is None else dlqr)(A, B, Q, R, N)


def lqg(system: StateSpace, Q: ArrayLike, R: ArrayLike, W: ArrayLike, V: ArrayLike) -> StateSpace:
    """Return the linear-quadratic-Gaussian controller of a plant, from its outputs to its inputs.

    It is a regulator on the estimate of a steady-state Kalman filter. It contains the sign: close
    the loop with ``feedback(plant, controller, sign=1)``.

    Parameters
    ----------
    system : StateSpace
        The plant.
    Q : array (n, n)
        Weights of the states.
    R : array (m, m)
        Weights of the inputs.
    W : array (n, n)
        Power spectral density, or covariance in discrete time, of the process noise.
    V : array (p, p)
        That of the measurement noise.

    Returns
    -------
    StateSpace
        The controller u = K(y). In discrete time it uses the measurement of the step before.

    Examples
    --------
    >>> from archimedes.control import feedback
    >>> plant = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> controller = lqg(plant, np.eye(1), np.eye(1), np.eye(1), np.eye(1))
    >>> feedback(plant, controller, sign=1).poles().round(6)
    array([-1., -1.])
    """
    system = as_state_space(system, "system")
    A, B, C, D = system
    regulate, estimate = (lqr, lqe) if system.dt is None else (dlqr, dlqe)
    K = regulate(A, B, Q, R)[0]
    L: Any = estimate(A, C, W, V)[0]
    L = L if system.dt is None else A @ L  # the gain of the predictor
    return StateSpace(
        A - B @ K - L @ C + L @ D @ K,
        L,
        -K,
        np.zeros((system.ninputs, system.noutputs)),
        system.dt,
        inputs=system.outputs,
        outputs=system.inputs,
        input_units=system.output_units,
        output_units=system.input_units,
    )
