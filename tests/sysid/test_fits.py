"""Fits against closed forms, SciPy and known parameters, within their stated confidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

import archimedes as arc
from archimedes.observers import ExtendedKalmanFilter, KalmanFilter, UnscentedKalmanFilter
from archimedes.sysid import Timeseries, multiple_shooting, output_error, pem


def lag(t, x, u, p):
    return p["rate"] * (p["gain"] * u - x)


def seen(t, x, u, p):
    return x


TRUE = {"gain": 2.0, "rate": 3.0}
GUESS = {"gain": 1.0, "rate": 1.0}


def step_response(seed=0, count=60, noise=0.05):
    """A lag after a step, at times that are not even, with some samples missing."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.uniform(0.0, 2.0, size=count))
    ts[0] = 0.0
    ys = 2.0 * (1.0 - np.exp(-3.0 * ts)) + noise * rng.normal(size=count)
    ys[[5, 17]] = np.nan
    return Timeseries(ts, np.ones(count), ys)


def test_output_error_is_least_squares_of_the_closed_form():
    """SciPy's curve_fit: the same parameters and the same covariance."""
    data = step_response()
    # So many steps that their error does not count.
    found = output_error(lag, seen, data, GUESS, np.zeros(1), substeps=8, options={"tol": 1e-12})
    assert found.success, found.message
    good = np.isfinite(data.ys[0])
    wanted, covariance = curve_fit(
        lambda t, gain, rate: gain * (1.0 - np.exp(-rate * t)),
        data.ts[good],
        data.ys[0, good],
        [1.0, 1.0],
        xtol=1e-14,
        ftol=1e-14,
    )
    assert found.names == ("gain", "rate")
    np.testing.assert_allclose(found.values, wanted, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-5)
    low, high = found.confidence(0.999)
    for name, value in TRUE.items():
        assert low[name] < value < high[name]
    assert found.fit[0] > 90.0 and found.tests().white
    assert np.isnan(found.residuals[0, 5])
    assert "gain" in str(found) and "explained" in str(found)
    other = step_response(seed=1)
    assert found.validate(other)[0] > 85.0 and found.predict(other).shape == (1, 60)


@pytest.mark.long
def test_bounds_fixed_numbers_and_first_states():
    data = step_response(2)
    held = output_error(lag, seen, data, GUESS | {"gain": 2.0}, [0.0], bounds={"gain": (2.0, 2.0)})
    assert held.p["gain"] == 2.0 and held.std["gain"] == 0.0 and held.std["rate"] > 0.0
    tight = output_error(lag, seen, data, GUESS, [0.0], bounds=(0.0, {"gain": 1.5, "rate": 9.0}))
    assert tight.p["gain"] == 1.5 and tight.at_bounds == ("gain",)
    moved = output_error(lag, seen, data, GUESS, [0.5], estimate_x0=True)
    assert moved.success and abs(moved.x0[0]) < 0.2
    assert moved.std["gain"] > output_error(lag, seen, data, GUESS, [0.0]).std["gain"]


@pytest.mark.long
def test_what_data_cannot_tell_is_named():
    def twice(t, x, u, p):
        return p["rate"] * (p["gain"] * p["scale"] * u - x)

    found = output_error(twice, seen, step_response(), GUESS | {"scale": 1.0}, [0.0])
    assert not found.success
    assert "do not determine gain, scale: fix some of them with equal bounds" in found.message


@pytest.mark.long
@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_inputs_between_samples(hold):
    """A lag driven by a ramp: closed form for an input that is linear, or held, in between."""
    ts = np.concatenate([[0.0], np.cumsum(np.random.default_rng(3).uniform(0.02, 0.1, size=50))])
    us, x, ys = 0.5 * ts, 0.0, [0.0]
    for k in range(50):
        h, (a, b) = ts[k + 1] - ts[k], us[k : k + 2]
        decay = np.exp(-3.0 * h)
        if hold == "zoh":
            x = x * decay + 2.0 * a * (1.0 - decay)
        else:
            slope = (b - a) / h
            x = x * decay + 2.0 * ((a - slope / 3.0) * (1.0 - decay) + slope * h)
        ys.append(x)
    data = Timeseries(ts, us, np.array(ys), hold=hold)
    found = output_error(lag, seen, data, GUESS, [0.0], substeps=4)
    assert found.p["gain"] == pytest.approx(2.0, rel=1e-5)
    assert found.p["rate"] == pytest.approx(3.0, rel=1e-5)


@pytest.mark.long
def test_discrete_models_of_structs():
    @arc.struct
    class State:
        place: float
        speed: float

    @arc.struct
    class Params:
        drag: float
        pull: np.ndarray

    def move(t, x, u, p):
        return State(x.place + 0.1 * x.speed, x.speed + 0.1 * (p.pull @ u - p.drag * x.speed))

    rng = np.random.default_rng(5)
    us, truth = rng.normal(size=(2, 80)), Params(0.7, np.array([1.5, -0.5]))
    x, ys = State(0.0, 0.0), []
    for k in range(80):
        ys.append([x.place, x.speed])
        x = move(0.0, x, us[:, k], truth)
    ys = np.array(ys).T + np.array([[0.01], [0.05]]) * rng.normal(size=(2, 80))
    data = Timeseries(0.1 * np.arange(80), us, ys)
    found = output_error(
        move,
        lambda t, x, u, p: {"a": x.place, "b": x.speed},
        data,
        Params(0.1, np.zeros(2)),
        State(0.0, 0.0),
        discrete=True,
    )
    assert isinstance(found.p, Params) and found.names == ("drag", "pull[0]", "pull[1]")
    low, high = found.confidence(0.999)
    assert low.drag < 0.7 < high.drag
    assert np.all((low.pull < truth.pull) & (truth.pull < high.pull))
    assert isinstance(found.x0, State)


@pytest.mark.long
def test_multiple_shooting_where_one_run_is_lost():
    """A pendulum that falls: errors of the first guess grow by e^8 in one run."""

    def falling(t, x, u, p):
        return np.stack([x[1], p["grow"] * np.sin(x[0]) + u[0]])

    ts = np.linspace(0.0, 4.0, 81)
    us = -1.5 * np.sin(2.0 * ts)
    fine = arc.odeint(
        lambda t, x: falling(t, x, np.array([-1.5 * np.sin(2.0 * t)]), {"grow": 4.0}),
        (0.0, 4.0),
        np.array([0.1, 0.0]),
        t_eval=ts,
    )
    rng = np.random.default_rng(0)
    data = Timeseries(ts, us, fine[:1] + 0.01 * rng.normal(size=81), hold="foh")
    guess = np.stack([data.ys[0], np.gradient(data.ys[0], ts)])
    given = {"bounds": (0.1, 20.0), "estimate_x0": True, "substeps": 2}
    found = multiple_shooting(
        falling,
        lambda t, x, u, p: x[:1],
        data,
        {"grow": 1.0},
        [0.1, 0.0],
        states=guess,
        segments=5,
        **given,
    )
    assert found.success, found.message
    low, high = found.confidence(0.999)
    assert low["grow"] < 4.0 < high["grow"] and found.std["grow"] < 0.01
    # At the solution both are one problem: a run of one segment from there stays, same covariance.
    one = output_error(falling, lambda t, x, u, p: x[:1], data, found.p, found.x0, **given)
    assert one.p["grow"] == pytest.approx(found.p["grow"], rel=1e-5)
    assert one.std["grow"] == pytest.approx(found.std["grow"], rel=1e-3)


# ---- prediction errors ---------------------------------------------------------------------------


def simulate(seed, count=300, q=0.02, r=0.05, a=0.9, b=0.5):
    rng = np.random.default_rng(seed)
    us, x, ys = np.sign(np.sin(0.3 * np.arange(count)))[None], 0.0, []
    for k in range(count):
        ys.append(x + r * rng.normal())
        x = a * x + b * us[0, k] + q * rng.normal()
    return Timeseries(0.1 * np.arange(count), us, np.array(ys))


def first_order(t, x, u, p):
    return p["a"] * x + p["b"] * u


EKF = ExtendedKalmanFilter(first_order, seen, Q=[[0.02**2]], R=[[0.05**2]])


@pytest.mark.long
def test_without_noise_of_measurement_it_is_a_regression():
    """With R next to nothing the prediction is that from the last sample: least squares."""
    data = simulate(0, r=0.0)
    observer = EKF.replace(Q=np.array([[1.0]]), R=np.array([[1e-12]]))
    found = pem(observer, data, {"a": 0.1, "b": 0.1}, [0.0])
    rows = np.stack([data.ys[0, :-1], data.us[0, :-1]], axis=1)
    wanted, left = np.linalg.lstsq(rows, data.ys[0, 1:], rcond=None)[:2]
    np.testing.assert_allclose(found.values, wanted, rtol=1e-6)
    # The first sample, at x0, is a residual of zero more.
    covariance = left[0] / (len(rows) + 1 - 2) * np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ekf", "ukf", "kf", "root"])
def test_known_parameters_within_their_confidence(kind):
    observer = {
        "ekf": EKF,
        "ukf": UnscentedKalmanFilter(first_order, seen, EKF.Q, EKF.R),
        "kf": lambda p: KalmanFilter(
            np.reshape(p["a"], (1, 1)), [[1.0]], EKF.Q, EKF.R, B=np.reshape(p["b"], (1, 1))
        ),
        "root": EKF.replace(square_root=True),
    }[kind]
    data = simulate(1)
    data.ys[0, 40:45] = np.nan
    found = pem(observer, data, {"a": 0.5, "b": 1.0}, [0.0])
    assert found.success, found.message
    low, high = found.confidence(0.999)
    assert low["a"] < 0.9 < high["a"] and low["b"] < 0.5 < high["b"]
    assert found.std["a"] < 0.01 and found.tests().white
    # A model of another order is told by its residuals.
    assert found.fit[0] > 90.0


@pytest.mark.long
def test_confidence_is_what_it_says():
    """Of 16 numbers, intervals of 90 % hold the truth as often as chance would have it."""
    hits = []
    for seed in range(8):
        found = pem(EKF, simulate(100 + seed, count=120), {"a": 0.7, "b": 0.8}, [0.0])
        low, high = found.confidence(0.9)
        hits += [low["a"] < 0.9 < high["a"], low["b"] < 0.5 < high["b"]]
    # Binomial, 16 of 0.9: 11 or fewer happen with probability 0.017.
    assert sum(hits) >= 12


@pytest.mark.long
def test_residuals_of_a_wrong_model_are_not_white():
    """A second-order system fitted by one of first order."""
    rng = np.random.default_rng(0)
    us, x, ys = np.sign(rng.normal(size=(1, 300))), np.zeros(2), []
    for k in range(300):
        ys.append(x[0] + 0.01 * rng.normal())
        x = np.array([[0.9, 0.3], [-0.3, 0.8]]) @ x + np.array([0.0, 0.5]) * us[0, k]
    data = Timeseries(0.1 * np.arange(300), us, np.array(ys))
    found = pem(EKF, data, {"a": 0.5, "b": 0.5}, [0.0])
    tests = found.tests()
    assert not tests.white and not tests.independent
    assert "NOT white" in str(tests)


@pytest.mark.long
def test_figures(tmp_path):
    import matplotlib

    matplotlib.use("agg")
    found = output_error(lag, seen, step_response(), GUESS, np.zeros(1))
    for figure in (arc.plot(found), arc.plot(found, step_response(3))):
        figure.savefig(tmp_path / "fit.png")
        assert len(figure.axes) == 3
        matplotlib.pyplot.close(figure)


DATA = simulate(0, count=20)
MESSAGES = [
    (lambda: pem(EKF, (1, 2, 3), GUESS, [0.0]), r"data\[0\] must be a Timeseries\(ts, us, ys\)"),
    (lambda: pem(3.0, DATA, GUESS, [0.0]), "predictor must be a filter"),
    (lambda: pem(lambda p: 3.0, DATA, GUESS, [0.0]), r"predictor\(p\) must return a filter"),
    (lambda: pem(EKF, DATA, {"a": np.nan, "b": 1.0}, [0.0]), "p_guess must be finite: a is not"),
    (lambda: pem(EKF, DATA, {}, [0.0]), "p_guess holds no numbers"),
    (lambda: pem(EKF, DATA, {"a": 1.0, "b": 1.0}, [0.0], P0=[[-1.0]]), "P0 must be positive"),
    (
        lambda: pem(EKF, DATA, {"a": 2.0, "b": 1.0}, [0.0], bounds=(0.0, 1.0)),
        r"p_guess is outside its bounds: a is 2, not in \[0, 1\]",
    ),
    (
        lambda: pem(EKF, DATA, {"a": 0.5, "b": 0.5}, [0.0], bounds=(1.0, 0.0)),
        r"bounds: no number lies between .* of \['a'\]",
    ),
    (
        lambda: pem(EKF, step_response(), {"a": 0.5, "b": 0.5}, [0.0]),
        r"ts is not uniform: steps go from .* use data.resample\(dt\), or output_error",
    ),
    (
        lambda: output_error(lambda t, x, u, p: x[:0], seen, DATA, GUESS, [0.0]),
        "dynamics returns 0 numbers for a state of 1",
    ),
    (
        lambda: output_error(lag, lambda t, x, u, p: np.zeros(2), DATA, GUESS, [0.0]),
        "outputs returns 2 numbers, ys of data has 1 rows",
    ),
    (lambda: output_error(lag, seen, DATA, GUESS, [0.0], hold="cubic"), "'cubic' is not one of"),
    (lambda: output_error(lag, seen, DATA, GUESS, [0.0], segments=40), "segments must be between"),
    (lambda: output_error(lag, seen, DATA, GUESS, [0.0], weights=-1.0), "weights must be positive"),
    (
        lambda: output_error(lag, seen, DATA, GUESS, [0.0], weights=[1.0, 1.0]),
        "weights must be a nu",
    ),
    (
        lambda: output_error(
            lambda t, x, u, p: x * np.log(p["gain"]), seen, DATA, {"gain": -1.0}, [1.0]
        ),
        "the model gives nan or infinite outputs with p_guess",
    ),
    (
        lambda: output_error(lag, seen, DATA[:4], {"gain": np.ones(9), "rate": 1.0}, [0.0]),
        "broadcast|numbers",
    ),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument_and_the_remedy(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_fits_are_not_recorded():
    with pytest.raises(TypeError, match="fits run on numbers"):
        arc.compile(lambda g: output_error(lag, seen, DATA, {"gain": g, "rate": 1.0}, [0.0]).p)(1.0)


@pytest.mark.long
def test_noise_is_fitted_by_the_likelihood():
    """Against a likelihood in plain Python, minimised by SciPy; the truth within its confidence."""
    from scipy.optimize import minimize as peer

    rng, n, truth = np.random.default_rng(4), 300, {"a": 0.9, "q": np.log(0.3), "r": np.log(0.2)}
    x, ys = 0.0, np.zeros(n)
    for k in range(n):
        ys[k] = x + np.exp(0.5 * truth["r"]) * rng.normal()
        x = truth["a"] * x + np.exp(0.5 * truth["q"]) * rng.normal()
    data = Timeseries(np.arange(float(n)), np.zeros((0, n)), ys[None])

    def predictor(p):
        Q, R = (np.reshape(np.exp(p[name]), (1, 1)) for name in ("q", "r"))
        return KalmanFilter(A=np.reshape(p["a"], (1, 1)), C=np.eye(1), Q=Q, R=R)

    guess = {"a": 0.5, "q": 0.0, "r": 0.0}
    found = pem(predictor, data, guess, np.zeros(1), P0=[[1.0]], likelihood=True)
    assert found.success, found.message

    def surprise(v):
        a, q, r = v[0], np.exp(v[1]), np.exp(v[2])
        x, P, total = 0.0, 1.0, 0.0
        for k, y in enumerate(ys):
            if k:
                x, P = a * x, a * a * P + q
            S, e = P + r, y - x
            total += 0.5 * (e * e / S + np.log(S))
            x, P = x + P / S * e, P * r / S
        return total

    best = peer(
        surprise, [0.5, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}
    )
    assert found.cost == pytest.approx(best.fun, abs=1e-6)
    values = np.array([found.p[name] for name in ("a", "q", "r")])
    np.testing.assert_allclose(values, best.x, atol=1e-4)
    deviations = np.sqrt(np.diagonal(found.covariance))
    wanted = np.array([truth[name] for name in ("a", "q", "r")])
    assert np.all(np.abs(values - wanted) < 3.5 * deviations)
    assert np.all(deviations < 0.5)


def test_a_likelihood_that_is_not_finite_says_so():
    data = Timeseries(np.arange(5.0), np.zeros((0, 5)), np.ones((1, 5)))
    filter_of = lambda p: KalmanFilter(A=np.eye(1), C=np.eye(1), Q=np.eye(1), R=p * np.eye(1))
    with pytest.raises(ValueError, match="likelihood is not finite with p_guess"):
        pem(filter_of, data, -9.0, np.zeros(1), P0=[[1.0]], likelihood=True)


def test_data_without_noise_are_a_success():
    """What is left is rounding: no step lowers it, and none need to."""
    ts = np.linspace(0.0, 2.0, 41)
    data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    guess = {"gain": 1.0, "rate": 1.0}
    for count in (1, 4):
        found = output_error(lag, lambda t, x, u, p: x, data, guess, np.zeros(1), segments=count)
        assert found.success, found.message
        assert found.p["gain"] == pytest.approx(2.0, rel=1e-9)
        assert found.cost < 1e-15


@pytest.mark.parametrize(("segments", "rate"), [(1, -250.0), (4, 1e4)])
def test_a_guess_that_diverges_is_said_to(segments, rate):
    """Weights that nobody gave were blamed: the noise was estimated to be infinite."""
    ts = np.linspace(0.0, 2.0, 41)
    data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    guess = {"gain": 1.0, "rate": rate}
    with pytest.raises(ValueError, match="the model diverges with p_guess") as caught:
        output_error(lag, seen, data, guess, np.zeros(1), segments=segments)
    assert "weights" not in str(caught.value) and "bounds=" in str(caught.value)


def test_a_guess_far_away_is_no_minimum():
    """A huge cost at the first trial was taken for convergence where the fit began."""
    ts = np.linspace(0.0, 2.0, 41)
    data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    found = output_error(lag, seen, data, {"gain": 1.0, "rate": -20.0}, np.zeros(1))
    assert not found.success or found.cost < 1e-6


def test_pem_from_far_away():
    """Rates off by twenty: it stopped at 1.4e6, where nothing is a minimum."""

    def model(t, x, u, p):
        return x * np.exp(0.1 * p["a"]) + p["b"] * np.exp(p["c"] * u)

    rng = np.random.default_rng(0)
    us, x, ys = np.linspace(0.0, 1.0, 100), np.ones(1), []
    truth = {"a": -1.0, "b": 0.2, "c": 1.0}
    for u in us:
        ys.append(x[0] + 0.02 * rng.normal())
        x = model(0.0, x, u, truth)
    data = Timeseries(0.1 * np.arange(100), us, np.array(ys))
    ekf = ExtendedKalmanFilter(model, lambda t, x, u, p: x, Q=[[1e-6]], R=[[4e-4]])
    found = pem(ekf, data, {"a": -20.0, "b": 0.1, "c": -5.0}, np.ones(1))
    assert found.success, found.message
    # A sum of 100 squares of unit variance, and parameters within their confidence.
    assert 30.0 < found.cost < 75.0
    low, high = found.confidence(0.9999)
    assert all(low[name] < truth[name] < high[name] for name in truth)
