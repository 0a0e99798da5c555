"""Filters in recorded code, and what they cannot take."""

from __future__ import annotations

import numpy as np

from archimedes.observers import AttitudeFilter, ExtendedKalmanFilter, UnscentedKalmanFilter
from archimedes.spatial import Quaternion
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
    ekf = ExtendedKalmanFilter(swing, lambda t, x: x[0], Q, np.eye(2))
    return run(lambda x, y: ekf.step(0.0, x, y, P).x)(X, np.array([0.4, 0.1]))


@entry("filters")
def one_measurement_as_a_number(run):
    ekf = ExtendedKalmanFilter(swing, lambda t, x: x[0], Q, R)
    return run(lambda x, y: ekf.step(0.0, x, y, P).x)(X, 0.4)


@entry("filters", error=ValueError, eager_error=ValueError, says=["P must be positive"], line=False)
def a_covariance_with_a_negative_variance(run):
    return run(lambda x, y: EKF.step(0.0, x, y, np.diag([1.0, -1.0])).x)(X, np.array([0.4]))


STARS = np.array([[0.0, 0.0, 1.0], [0.8, 0.6, 0.0]])
LEVEL = AttitudeFilter.State(Quaternion.identity(), np.zeros(3))
SEEN = np.array([0.0, 0.05, 1.0, 0.8, 0.6, 0.0])


@entry("filters", rtol=1e-9)
def a_step_of_an_attitude_with_traced_noise(run):
    def step(noise, y):
        observer = AttitudeFilter(STARS, dt=0.1, sight=noise)
        return np.diagonal(observer.step(0.0, LEVEL, y, 0.1 * np.eye(6), (np.zeros(3),)).P)

    return run(step)(0.01, SEEN)


@entry("filters", rtol=1e-9)
def factors_of_covariances(run):
    observer = UKF.replace(square_root=True)
    return run(lambda x, y, L: tuple(observer.step(0.0, x, y, L)))(X, np.array([0.4]), P)


@entry("filters", error=ValueError, eager_error=ValueError, says=["np.linalg.cholesky"], line=False)
def a_covariance_for_a_factor(run):
    observer = EKF.replace(square_root=True)
    return run(lambda x: observer.step(0.0, x, np.array([0.4]), P + 0.1).x)(X)


@entry("filters", error=ValueError, eager_error=ValueError, says=["structure of x"], line=False)
def dynamics_that_lose_a_part_of_the_state(run):
    ekf = ExtendedKalmanFilter(lambda t, x: {"a": x["a"]}, lambda t, x: x["a"], Q, R)
    return run(lambda x: ekf.step(0.0, x, np.array([0.4]), P).x)({"a": X[:1], "b": X[1:]})


@entry("filters", error=ValueError, eager_error=ValueError, says=["(w_B,)"], line=False)
def an_attitude_without_its_gyro(run):
    observer = AttitudeFilter(STARS, dt=0.1, sight=0.01)
    return run(lambda y: observer.step(0.0, LEVEL, y, 0.1 * np.eye(6)).P)(SEEN)


@entry("filters", error=ValueError, eager_error=ValueError, says=["y[0] is inf"], line=False)
def a_measurement_that_is_infinite(run):
    return EKF.step(0.0, X, np.array([np.inf]), P).x
