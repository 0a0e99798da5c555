"""Data and fits: what cannot be a series, and what cannot be fitted."""

from __future__ import annotations

import numpy as np

from archimedes.observers import ExtendedKalmanFilter
from archimedes.sysid import Timeseries, output_error, pem, residual_tests
from tests.misuse.catalogue import entry

TS, ONES = np.array([0.0, 0.1, 0.2, 0.3]), np.ones(4)
DATA = Timeseries(TS, ONES, ONES)
UNEVEN = Timeseries(TS**2, ONES, ONES)


def lag(t, x, u, p):
    return p * (u - x)


def seen(t, x, u, p):
    return x


EKF = ExtendedKalmanFilter(lag, seen, [[0.1]], [[0.1]])


def refused(says):
    return entry("data", error=ValueError, eager_error=ValueError, says=says, line=False)


@refused(["ts must increase", "sort"])
def times_that_repeat(run):
    return Timeseries([0.0, 0.0, 1.0], None, np.ones(3))


@refused(["transpose it", "give us.T"])
def times_first(run):
    return Timeseries(TS, np.ones((4, 2)), ONES)


@refused(["us must hold finite numbers", "data[a:b]"])
def inputs_that_are_nan(run):
    return Timeseries(TS, ONES * np.nan, ONES)


@refused(["ts is not uniform", "data.resample(dt)"])
def a_filter_on_times_that_are_not_even(run):
    return pem(EKF, UNEVEN, 1.0, np.zeros(1))


@refused(["p_guess must be finite"])
def a_guess_that_is_nan(run):
    return pem(EKF, DATA, np.nan, np.zeros(1))


@refused(["p_guess is outside its bounds"])
def a_guess_outside_its_bounds(run):
    return output_error(lag, seen, DATA, 3.0, np.zeros(1), bounds=(0.0, 1.0))


@refused(["P0 must be positive semidefinite"])
def a_covariance_that_is_negative(run):
    return pem(EKF, DATA, 1.0, np.zeros(1), P0=[[-1.0]])


@refused(["lags must be between"])
def more_lags_than_samples(run):
    return residual_tests(np.ones((1, 10)), lags=10)


@entry("data", error=TypeError, says=["fits run on numbers"], line=False)
def a_fit_that_is_recorded(run):
    run(lambda p: output_error(lag, seen, DATA, p, np.zeros(1)).p)(0.5)


@entry("data", error=TypeError, eager_error=TypeError, says=["Timeseries(ts, us, ys)"], line=False)
def arrays_for_a_series(run):
    return pem(EKF, (TS, ONES, ONES), 1.0, np.zeros(1))


@refused(["no measurement of", "leave that output out"])
def data_without_a_measurement(run):
    return output_error(lag, seen, Timeseries(TS, ONES, ONES * np.nan), 1.0, np.zeros(1))


@refused(["bounds fix every parameter"])
def a_fit_of_nothing(run):
    return output_error(lag, seen, DATA, 1.0, np.zeros(1), bounds=(1.0, 1.0))
