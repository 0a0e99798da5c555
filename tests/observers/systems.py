"""Systems that the tests of filters share, with their matrices."""

from __future__ import annotations

import numpy as np

from archimedes.observers import ExtendedKalmanFilter, KalmanFilter, UnscentedKalmanFilter

A = np.array([[1.0, 0.1, 0.0], [-0.2, 0.95, 0.1], [0.0, 0.05, 0.9]])
C = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])
Q = np.diag([0.01, 0.02, 0.03]) + 0.004
R = np.array([[0.1, 0.02], [0.02, 0.2]])
X0 = np.array([0.3, -0.2, 0.1])
P0 = np.diag([0.5, 0.4, 0.3]) + 0.05

LINEAR = KalmanFilter(A, C, Q, R)
EXTENDED = ExtendedKalmanFilter(lambda t, x: A @ x, lambda t, x: C @ x, Q, R)
UNSCENTED = UnscentedKalmanFilter(lambda t, x: A @ x, lambda t, x: C @ x, Q, R, kappa=0.5)


def pendulum(t, x):
    return np.array([x[0] + 0.05 * x[1], x[1] - 0.05 * (9.81 * np.sin(x[0]) + 0.1 * x[1])])


def bob(t, x):
    return np.array([np.sin(x[0]), np.cos(x[0])])


Q_PENDULUM, R_PENDULUM = np.diag([1e-5, 1e-4]), np.diag([0.01, 0.01])
PENDULUM_EKF = ExtendedKalmanFilter(pendulum, bob, Q_PENDULUM, R_PENDULUM)
PENDULUM_UKF = UnscentedKalmanFilter(pendulum, bob, Q_PENDULUM, R_PENDULUM, kappa=1.0)


def measurements(seed, count, holes=True):
    """Times (N,) and measurements (2, N) of the linear system, some of them missing."""
    rng = np.random.default_rng(seed)
    x, ys = rng.multivariate_normal(X0, P0), []
    for _ in range(count):
        x = A @ x + rng.multivariate_normal(np.zeros(3), Q)
        ys.append(C @ x + rng.multivariate_normal(np.zeros(2), R))
    ys = np.array(ys).T
    if holes:
        ys[0, 2] = ys[1, 4] = np.nan
        ys[:, 5] = np.nan
    return np.arange(count) * 1.0, ys
