"""Control systems that are stiff and in all units, and solutions of their equations in 60 digits.

Solutions are checked where they are made: what they leave of the equation, and the stability of
the closed loop, by numbers of mpmath.
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np

__all__ = ["System", "exact_lyapunov", "exact_riccati", "scaled_error", "stiff_system", "to_mpmath"]

DIGITS = 60


class System(NamedTuple):
    """Matrices of a system, weights, and the units of its states."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    units: np.ndarray


def _rates(rng: np.random.Generator, n: int, decades: float, unstable: float) -> np.ndarray:
    """A block diagonal matrix of modes whose rates are up to ``decades`` apart."""
    A, k = np.zeros((n, n)), 0
    while k < n:
        rate = 10.0 ** rng.uniform(-decades / 2, decades / 2)
        sign = 1.0 if rng.random() < unstable else -1.0
        if k + 1 < n and rng.random() < 0.4:
            damping = rng.uniform(0.05, 1.0)
            a, b = sign * damping * rate, rate * np.sqrt(1.0 - damping**2)
            A[k : k + 2, k : k + 2] = [[a, b], [-b, a]]
            k += 2
        else:
            A[k, k] = sign * rate
            k += 1
    return A


def stiff_system(seed: int, unstable: float = 0.0, decades: float = 6.0) -> System:
    """A random system of up to six states, whose rates are stiff and whose units are 1e-6 to 1e6.

    In turn its modes are mixed by a rotation, coupled one way, and not coupled at all. Inputs are
    in units from 1e-3 to 1e3. One or more inputs and outputs.
    """
    rng = np.random.default_rng(seed)
    n, (m, p) = int(rng.integers(1, 7)), rng.integers(1, 4, 2)
    A = _rates(rng, n, decades, unstable)
    if seed % 3 == 0:
        turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
        A = turn @ A @ turn.T
    elif seed % 3 == 1:
        root = np.sqrt(np.abs(np.diag(A)))
        A = A + 0.3 * np.triu(rng.normal(size=(n, n)), 1) * np.outer(root, root)
    B, C = rng.normal(size=(n, m)), rng.normal(size=(p, n))
    units, inputs = 10.0 ** rng.uniform(-6, 6, n), 10.0 ** rng.uniform(-3, 3, m)
    A, B, C = A * units[:, None] / units, B * units[:, None] * inputs, C / units
    Q = 10.0 ** rng.uniform(-2, 2) * C.T @ C + np.diag(rng.uniform(0.1, 1.0, n) / units**2)
    mixed = rng.normal(size=(m, m))
    R = (mixed @ mixed.T + np.eye(m)) * np.outer(inputs, inputs)
    return System(A, B, C, 0.5 * (Q + Q.T), 0.5 * (R + R.T), units)


def to_mpmath(M: np.ndarray) -> mpmath.matrix:
    return mpmath.matrix(np.asarray(M, dtype=float).tolist())


def _floats(M: mpmath.matrix) -> np.ndarray:
    return np.array([[float(M[i, j]) for j in range(M.cols)] for i in range(M.rows)])


def _largest(M: mpmath.matrix) -> mpmath.mpf:
    return max(abs(x) for x in M)


def exact_lyapunov(A: np.ndarray, Q: np.ndarray, discrete: bool = False) -> np.ndarray:
    """Solve A X + X A' + Q = 0, or A X A' - X + Q = 0, as n^2 linear equations."""
    n = len(A)
    with mpmath.workdps(DIGITS + 20):
        M, right = to_mpmath(A), -mpmath.matrix([mpmath.mpf(float(x)) for x in Q.ravel()])
        K = mpmath.zeros(n * n)
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    if not discrete:
                        K[i * n + j, k * n + j] += M[i, k]
                        K[i * n + j, i * n + k] += M[j, k]
                        continue
                    for h in range(n):
                        K[i * n + j, k * n + h] += M[i, k] * M[j, h]
                if discrete:
                    K[i * n + j, i * n + j] -= 1
        X = mpmath.lu_solve(K, right)
        return np.array([float(x) for x in X]).reshape(n, n)


def exact_riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, discrete: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stabilising solution X of a Riccati equation, and its gain K."""
    n = len(A)
    with mpmath.workdps(2 * DIGITS):
        eye, M, W, b, r = mpmath.eye(n), *(to_mpmath(x) for x in (A, Q, B, R))
        G = b * r**-1 * b.T
        F, g, X = M, G, W
        if not discrete:
            size = [mpmath.norm(x) for x in (M, G, W)]
            pole = 2 * size[0] + mpmath.sqrt(size[1] * size[2])
            left = (M - pole * eye) ** -1
            V = ((M - pole * eye).T + W * left * G) ** -1
            F, g, X = eye + 2 * pole * V.T, 2 * pole * left * G * V, 2 * pole * V * W * left
        for _ in range(200):
            V = (eye + g * X) ** -1
            step = F.T * X * V * F
            g, F, X = g + F * V * g * F.T, F * V * F, X + step
            if _largest(step) < mpmath.mpf(10) ** (-DIGITS - 20) * _largest(X):
                break
        if discrete:
            K = (r + b.T * X * b) ** -1 * (b.T * X * M)
            left_over = M.T * X * (M - b * K) - X + W
        else:
            K = r**-1 * (b.T * X)
            left_over = M.T * X + X * (M - b * K) + W
        assert _largest(left_over) < mpmath.mpf(10) ** -DIGITS * _largest(X) * (1 + _largest(M))
        poles = mpmath.eig(M - b * K, left=False, right=False)
        assert all(abs(x) < 1 if discrete else mpmath.re(x) < 0 for x in poles)
        return _floats(X), _floats(K)


def scaled_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error of a covariance or cost, in units in which its diagonal is one."""
    root = np.sqrt(np.diag(exact))
    return float(np.max(np.abs(found - exact) / np.outer(root, root)))
