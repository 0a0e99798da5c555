"""Filters in recorded code, and what they cannot take."""

from __future__ import annotations

import numpy as np

from archimedes.observers import ExtendedKalmanFilter, UnscentedKalmanFilter
from tests.misuse.catalogue import entry

Q, R = 0.01 * np.eye(2), np.array([[0.1]])
X, P = np.array([0.5, -0.2]), np.eye(2)


def swing(t, x):
    return np.stack([x[0] + 0.1 * x[1], x[1] - 0.1 * np.sin(x[0])])


def angle(t, x):
    return x[:1]


EKF = ExtendedKalmanFilter(swing, angle, Q, R)
UKF = UnscentedKalmanFilter(swing, angle, Q, R)


@entry("filters")
def an_extended_step_with_a_missing_measurement(run):
    step = run(lambda x, y: tuple(EKF.step(0.0, x, y, P)))
    return step(X, np.array([0.4])), step(X, np.array([np.nan]))


@entry("filters")
def an_unscented_step(run):
    return run(lambda x, y: UKF.step(0.0, x, y, P).x)(X, np.array([0.4]))


@entry("filters")
def a_filter_made_inside(run):
    def step(q, x, y):
        return ExtendedKalmanFilter(swing, angle, q * np.eye(2), R).step(0.0, x, y, P).x

    return run(step)(0.01, X, np.array([0.4]))


@entry("filters", error=ValueError, eager_error=ValueError, says=["y must be", "(1,)"], line=False)
def a_measurement_of_another_size(run):
    return run(lambda x, y: EKF.step(0.0, x, y, P).x)(X, np.array([0.4, 0.1]))


@entry("filters", error=ValueError, eager_error=ValueError, says=["obs(t, x"], line=False)
def a_measurement_function_that_returns_a_number(run):
    ekf = ExtendedKalmanFilter(swing, lambda t, x: x[0], Q, R)
    return run(lambda x, y: ekf.step(0.0, x, y, P).x)(X, np.array([0.4]))


@entry("filters", error=ValueError, eager_error=ValueError, says=["P must have"], line=False)
def a_covariance_with_a_negative_variance(run):
    return run(lambda x, y: EKF.step(0.0, x, y, np.diag([1.0, -1.0])).x)(X, np.array([0.4]))
