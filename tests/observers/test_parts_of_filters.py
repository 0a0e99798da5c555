"""Filters without a model, of single numbers, and along inputs that are held."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control
from archimedes.observers import (
    ExtendedKalmanFilter,
    KalmanFilter,
    UnscentedKalmanFilter,
    filter_series,
    rts_smoother,
)
from archimedes.spatial import Quaternion
from archimedes.sysid import Timeseries

from .systems import P0, X0, A, C, Q, R

Y = np.array([0.3, -0.2])
see = lambda t, x: C @ x
move = lambda t, x: A @ x
PAIRS = {
    "linear": (KalmanFilter(A, C, Q, R), KalmanFilter(C=C, R=R)),
    "extended": (ExtendedKalmanFilter(move, see, Q, R), ExtendedKalmanFilter(obs=see, R=R)),
    "unscented": (UnscentedKalmanFilter(move, see, Q, R), UnscentedKalmanFilter(obs=see, R=R)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_correction_alone_needs_no_model(name):
    whole, part = PAIRS[name]
    assert (whole.nx, whole.ny, part.ny) == (3, 2, 2)
    assert part.nx == (3 if name == "linear" else None)
    wanted, found = (f.correct(0.0, X0, Y, P0) for f in (whole, part))
    for a, b in zip(arc.tree.leaves(wanted), arc.tree.leaves(found)):
        np.testing.assert_array_equal(a, b)
    model = "A" if name == "linear" else "dyn"
    words = (
        f"this filter has no {model} and no Q, .* give {model} and Q to predict, or call correct"
    )
    for call in (part.predict, lambda t, x, P: part.step(t, x, Y, P)):
        with pytest.raises(ValueError, match=words):
            call(0.0, X0, P0)
    recorded = arc.compile(lambda x: part.correct(0.0, x, Y, P0).x)(X0)
    np.testing.assert_allclose(recorded, found.x, rtol=1e-15)


def test_states_of_attitudes_without_q():
    east = lambda t, x: x["att"].rotate(np.array([1.0, 0.0, 0.0]))
    ekf = ExtendedKalmanFilter(obs=east, R=1e-4 * np.eye(3))
    x = {"att": Quaternion.identity(), "bias": np.zeros(3)}
    found = ekf.correct(0.0, x, [np.cos(0.1), -np.sin(0.1), 0.0], np.eye(6))
    assert found.x["att"].as_euler("xyz").array[2] == pytest.approx(0.1, abs=1e-3)


MESSAGES = [
    (lambda: ExtendedKalmanFilter(R=1.0), r"obs must be a function obs\(t, x, \*args\), got None"),
    (lambda: ExtendedKalmanFilter(obs=see), "R must be an array of real numbers, got None"),
    (lambda: KalmanFilter(R=1.0), "C must be an array of real numbers, got None"),
    (
        lambda: ExtendedKalmanFilter(move, see, R=R).predict(0.0, X0, P0),
        "has no Q, so that it only",
    ),
    (lambda: ExtendedKalmanFilter(3.0, see, Q, R), r"dyn must be a function dyn\(t, x, \*args\)"),
    (lambda: UnscentedKalmanFilter(obs=see, R=R, kappa=-2.0), "kappa must be above"),
    (lambda: PAIRS["extended"][1].correct(0.0, X0, Y, np.eye(2)), r"P must be .*\(3, 3\)"),
    (lambda: ExtendedKalmanFilter(obs=see, R=-1.0), "R must be positive definite"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_what_is_missing_is_named(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


@pytest.mark.parametrize("kind", [ExtendedKalmanFilter, UnscentedKalmanFilter])
@pytest.mark.parametrize("root", [False, True])
def test_single_numbers_are_vectors_of_one(kind, root):
    move = lambda t, x: np.stack([x[0] + 0.1 * x[1], 0.9 * x[1]])
    number = kind(move, lambda t, x: np.sin(x[0]), 0.01 * np.eye(2), 0.1, square_root=root)
    vector = kind(move, lambda t, x: np.sin(x[:1]), 0.01 * np.eye(2), [[0.1]], square_root=root)
    assert number.ny == 1 and number.R.shape == (1, 1)
    x, P = np.array([0.2, 1.0]), np.eye(2)
    a, b = number.step(0.0, x, 0.5, P), vector.step(0.0, x, [0.5], P)
    for one, other in zip(arc.tree.leaves(a), arc.tree.leaves(b)):
        np.testing.assert_array_equal(one, other)
    assert a.innovation.shape == (1,)
    compiled = arc.compile(lambda y: number.step(0.0, x, y, P).x)(0.5)
    np.testing.assert_allclose(compiled, a.x, atol=1e-15)
    lost = number.step(0.0, x, np.nan, P)
    np.testing.assert_allclose(lost.x, number.predict(0.0, x, P).x, atol=1e-14)


F, G = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([[0.0], [1.0]])
TS = 0.1 * np.arange(31)
US = np.random.default_rng(4).normal(size=(1, 31))


@pytest.mark.parametrize("kind", ["linear", "extended"])
def test_stumble_filters_hold_the_inputs_that_simulations_hold(kind):
    """Along its own simulation, from the true state, a filter has nothing to correct."""
    series = arc.InputSeries(TS, US.T)
    start = np.array([1.0, 0.0])
    traj = arc.solve_ode(
        lambda t, x, u: F @ x + G @ u, (0.0, TS[-1]), start, inputs=series, t_eval=TS
    )
    Ad, Bd, *_ = control.discretize_linear(F, G, np.eye(2), np.zeros((2, 1)), 0.1)
    noise = (1e-6 * np.eye(2), 1e-2 * np.eye(1))
    if kind == "linear":
        observer = KalmanFilter(Ad, [[1.0, 0.0]], *noise, Bd)
    else:
        observer = ExtendedKalmanFilter(
            lambda t, x, u: Ad @ x + Bd @ u, lambda t, x, u: x[0], *noise
        )
    given = (TS, traj.x[:, 0], start, 1e-6 * np.eye(2))
    for us in (US, US[0], series, Timeseries(TS, US, TS)):
        found = filter_series(observer, *given, us=us, predict_first=False)
        np.testing.assert_allclose(found.innovation, 0.0, atol=1e-7)
        np.testing.assert_allclose(found.x, traj.x.T, atol=1e-7)
    smooth, _ = rts_smoother(observer, *given, us=US, predict_first=False)
    np.testing.assert_allclose(smooth, traj.x.T, atol=1e-7)
    with pytest.raises(ValueError, match=r"us.hold='foh', but a filter sees one input per step"):
        filter_series(observer, *given, us=arc.InputSeries(TS, US.T, "foh"))


def test_times_of_steps_and_of_measurements():
    """x+ = t, y = x + t: the time at the beginning of a step, and that of the sample."""
    ekf = ExtendedKalmanFilter(lambda t, x: 0.0 * x + t, lambda t, x: x + t, [[0.0]], [[1.0]])
    ts, ys = np.array([1.0, 2.0, 4.0]), np.zeros((1, 3))
    found = filter_series(ekf, ts, ys, np.array([7.0]), [[0.0]])
    np.testing.assert_array_equal(found.innovation[0], [-(0.0 + 1.0), -(1.0 + 2.0), -(2.0 + 4.0)])
    at = filter_series(ekf, ts, ys, np.array([7.0]), [[0.0]], predict_first=False)
    np.testing.assert_array_equal(at.innovation[0], [-(7.0 + 1.0), -(1.0 + 2.0), -(2.0 + 4.0)])
    one = filter_series(ekf, ts[:1], ys[:, :1], np.array([7.0]), [[0.0]], predict_first=False)
    np.testing.assert_array_equal(one.innovation, [[-8.0]])
    assert one.x.shape == (1, 1) and one.P.shape == (1, 1, 1)


def test_a_filter_that_begins_with_a_prediction_is_a_loop_of_steps():
    ys = np.random.default_rng(1).normal(size=(2, 8))
    found = filter_series(PAIRS["linear"][0], np.arange(8.0), ys, X0, P0)
    x, P = X0, P0
    for k in range(8):
        x, P, _ = PAIRS["linear"][0].step(float(k), x, ys[:, k], P)
        np.testing.assert_allclose(found.x[:, k], x, atol=1e-12)
