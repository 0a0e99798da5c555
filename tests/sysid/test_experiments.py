"""Fits to several experiments, by several methods, of outputs that are single numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

import archimedes as arc
from archimedes.observers import ExtendedKalmanFilter, KalmanFilter, filter_series
from archimedes.sysid import Timeseries, multiple_shooting, output_error, pem
from tests.optimize.conftest import require_ipopt

GUESS = {"a": 0.5, "b": 1.0}


def drive(seed, count, x=0.0, noise=0.1):
    """One experiment with x+ = 0.9 x + 0.5 u + w, measured exactly."""
    rng = np.random.default_rng(seed)
    us, ys = rng.normal(size=count), np.zeros(count)
    for k in range(count):
        ys[k] = x
        x = 0.9 * x + 0.5 * us[k] + noise * rng.normal()
    return Timeseries(0.1 * np.arange(count), us, ys)


SERIES = [drive(0, 60), drive(1, 40, x=3.0), drive(2, 25, x=-5.0)]
FIRST = [np.array([one.ys[0, 0]]) for one in SERIES]
EKF = ExtendedKalmanFilter(
    lambda t, x, u, p: p["a"] * x + p["b"] * u, lambda t, x, u, p: x[0], Q=0.01, R=1e-12
)


def regression():
    """Least squares over all steps within the experiments, none across them."""
    X = np.concatenate([np.stack([s.ys[0, :-1], s.us[0, :-1]], 1) for s in SERIES])
    y = np.concatenate([s.ys[0, 1:] for s in SERIES])
    values, squares = np.linalg.lstsq(X, y, rcond=None)[:2]
    return values, np.linalg.inv(X.T @ X) * squares[0] / len(y)


@pytest.mark.parametrize("method", [None, "lm", "bfgs", "ipm", "ipopt"])
def test_several_experiments_by_any_method_are_one_regression(method):
    if method == "ipopt":
        require_ipopt()
    values, covariance = regression()
    fit = pem(EKF, SERIES, GUESS, FIRST, method=method)
    assert fit.success, fit.message
    np.testing.assert_allclose(fit.values, values, rtol=2e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=0.05, atol=1e-9)
    assert fit.nit == fit.iterations >= 1 and fit.fun == fit.cost > 0.0
    assert [e.shape for e in fit.residuals] == [(1, 60), (1, 40), (1, 25)]
    assert len(fit.x0) == len(fit.data) == len(fit.predicted) == 3
    assert fit.fit[0] > 50.0 and "explained" in str(fit) and "correlations" in fit.report()
    assert fit.tests().white


def test_one_experiment_in_a_list_is_that_experiment():
    alone, listed = (pem(EKF, d, GUESS, FIRST[0]) for d in (SERIES[0], SERIES[:1]))
    np.testing.assert_array_equal(alone.values, listed.values)
    np.testing.assert_array_equal(alone.residuals, listed.residuals[0])
    # One state for all of them, as an array or as a list of numbers.
    for x0 in (np.zeros(1), [0.0]):  # a list of numbers is one state
        assert np.ravel(pem(EKF, SERIES[:2], GUESS, x0).x0).tolist() == [0.0, 0.0]


@pytest.mark.long
def test_bounds_and_other_methods():
    tight = {
        m: pem(EKF, SERIES, GUESS, FIRST, bounds=(0.0, {"a": 0.8, "b": 2.0}), method=m)
        for m in ("lm", "bfgs")
    }
    for fit in tight.values():
        assert fit.p["a"] == pytest.approx(0.8, abs=1e-9)
    assert tight["lm"].p["b"] == pytest.approx(float(tight["bfgs"].p["b"]), rel=1e-5)


def test_first_states_of_each_experiment_are_fitted():
    fit = pem(EKF, SERIES, GUESS, np.ones(1), estimate_x0=True)
    np.testing.assert_allclose([x[0] for x in fit.x0], [x[0] for x in FIRST], atol=1e-6)


def test_output_errors_of_several_experiments():
    """Steps of several sizes: SciPy's curve_fit of the closed form over all of them."""
    rng = np.random.default_rng(5)
    rate = lambda t, u, gain, rate: gain * u * (1 - np.exp(-rate * t))
    grids = [np.linspace(0.0, 2.0, 41), np.linspace(0.0, 1.0, 31)]
    sizes = [1.0, -3.0]
    data = [
        Timeseries(t, np.full(len(t), u), rate(t, u, 2.0, 3.0) + 0.05 * rng.normal(size=len(t)))
        for t, u in zip(grids, sizes)
    ]
    model = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    given = (model, lambda t, x, u, p: x, data, {"gain": 1.0, "rate": 1.0})
    fit = output_error(*given, np.zeros(1), substeps=3)
    t, u, y = (np.concatenate(p) for p in zip(*((d.ts, d.us[0], d.ys[0]) for d in data)))
    wanted, covariance = curve_fit(lambda t, *p: rate(t, u, *p), t, y, [1.0, 1.0], xtol=1e-14)
    np.testing.assert_allclose(fit.values, wanted, rtol=1e-5)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-3)
    parts = multiple_shooting(*given, [np.zeros(1), np.zeros(1)], substeps=3, segments=3)
    np.testing.assert_allclose(parts.values, wanted, rtol=1e-5)
    assert len(arc.plot(fit).axes) == 6  # a row for each experiment


def test_a_second_identification_with_known_parameters():
    """Fit, simulate the fit, fit again: the parameters come back."""
    first = pem(EKF, SERIES, GUESS, FIRST)
    again = []
    for one in SERIES:
        x, ys = one.ys[0, 0], []
        for u in one.us[0]:
            ys.append(x)
            x = first.p["a"] * x + first.p["b"] * u
        again.append(one.replace(ys=np.array(ys)))
    second = pem(EKF, again, GUESS, FIRST)
    np.testing.assert_allclose(second.values, first.values, rtol=1e-7)


def test_the_filter_along_the_data_gives_the_residuals_of_the_fit():
    one = SERIES[1]
    fit = pem(EKF, one, GUESS, FIRST[1])
    found = filter_series(
        EKF, one.ts, one.ys, FIRST[1], EKF.Q, (fit.p,), us=one.us, predict_first=False
    )
    np.testing.assert_allclose(found.innovation, fit.residuals, atol=1e-12)


def test_likelihood_of_several_experiments():
    """The noise that drives them, with its own parameter."""
    make = lambda p: KalmanFilter([[0.9]], [[1.0]], np.exp(p["log_q"]) * np.eye(1), 1e-6, [[0.5]])
    for method in (None, "bfgs"):
        fit = pem(make, SERIES, {"log_q": 0.0}, FIRST, likelihood=True, method=method, P0=[[1e-6]])
        assert fit.success, fit.message
        w = [s.ys[0, 1:] - 0.9 * s.ys[0, :-1] - 0.5 * s.us[0, :-1] for s in SERIES]
        assert np.exp(fit.p["log_q"]) == pytest.approx(np.mean(np.concatenate(w) ** 2), rel=1e-3)


TWO = Timeseries([0.0, 0.1, 0.2], np.ones((2, 3)), np.ones(3))
FINE = Timeseries([0.0, 0.05, 0.1], np.ones(3), np.ones(3))
MESSAGES = [
    (lambda: pem(EKF, [], GUESS, [0.0]), "data must hold at least one Timeseries.*an empty list"),
    (lambda: pem(EKF, [SERIES[0], 3.0], GUESS, [0.0]), r"data\[1\] must be a Timeseries"),
    (lambda: pem(EKF, 3.0, GUESS, [0.0]), r"data must be a Timeseries\(ts, us, ys\), got float"),
    (
        lambda: pem(EKF, [SERIES[0], TWO], GUESS, [0.0]),
        r"data\[1\] has 2 inputs, 1 outputs and hold='zoh', data\[0\] has 1 inputs",
    ),
    (
        lambda: output_error(
            EKF.dyn, EKF.obs, [SERIES[0], SERIES[0].replace(hold="foh")], GUESS, [0.0]
        ),
        r"data\[1\] has 1 inputs, 1 outputs and hold='foh', data\[0\] .* hold='zoh': all exp",
    ),
    (
        lambda: pem(EKF, [SERIES[0], FINE], GUESS, [0.0]),
        r"data\[1\] has steps of 0.05 s, data\[0\] of 0.1 s, and a filter has one step",
    ),
    (
        lambda: pem(EKF, SERIES, GUESS, FIRST[:2]),
        "x0 lists 2 states for 3 experiments: give one for each, or one state for all",
    ),
    (lambda: pem(EKF, SERIES[:2], GUESS, [np.zeros(1), np.zeros(2)]), r"x0\[1\] has the numbers"),
    (lambda: pem(EKF, SERIES, GUESS, FIRST, method="newton"), "method='newton' is not one of 'lm'"),
    (
        lambda: pem(lambda p: EKF, SERIES, GUESS, FIRST, method="lm", likelihood=True),
        "method='lm' needs a sum of squares, which the likelihood is not: leave method out",
    ),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_experiments_that_do_not_fit_together(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_numbers_as_outputs_are_vectors_of_one():
    data, vector = SERIES[0], EKF.replace(obs=lambda t, x, u, p: x)
    a, b = (pem(ekf, data, GUESS, FIRST[0]) for ekf in (EKF, vector))
    np.testing.assert_array_equal(a.values, b.values)
    assert isinstance(arc.tree.leaves(a.p)[0], float | np.floating)
