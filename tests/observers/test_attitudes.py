"""States that are trees and hold attitudes; the multiplicative filter, and its consistency."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.observers import (
    AttitudeFilter,
    ExtendedKalmanFilter,
    UnscentedKalmanFilter,
    consistency_bounds,
    filter_series,
    nees,
    rts_smoother,
)
from archimedes.spatial import Quaternion
from tests.observers.systems import P0, X0, A, C, Q, R, measurements


@arc.struct
class Named:
    place: np.ndarray
    rate: float


def as_tree(x):
    return Named(x[:2], x[2])


def tree_dyn(t, x):
    return as_tree(A @ np.concatenate([x.place, x.rate[None]]))


def tree_obs(t, x):
    y = C @ np.concatenate([x.place, x.rate[None]])
    return {"a": y[0], "b": y[1]}


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("kind", [ExtendedKalmanFilter, UnscentedKalmanFilter])
def test_trees_are_vectors_with_names(kind, root):
    plain = kind(lambda t, x: A @ x, lambda t, x: C @ x, Q, R, square_root=root)
    named = kind(tree_dyn, tree_obs, Q, R, square_root=root)
    P = plain.of_covariance(P0)
    y = np.array([0.3, -0.1])
    wanted = plain.step(0.0, X0, y, P)
    for given in (y, {"a": 0.3, "b": -0.1}):
        found = named.step(0.0, as_tree(X0), given, P)
        assert isinstance(found.x, Named)
        np.testing.assert_allclose(arc.tree.ravel(found.x)[0], wanted.x, atol=1e-13)
        np.testing.assert_allclose(found.P, wanted.P, atol=1e-13)
    ts, ys = measurements(8, 12)
    a, b = filter_series(plain, ts, ys, X0, P0), filter_series(named, ts, ys, as_tree(X0), P0)
    # Times last for arrays, first in trees, as odeint has it.
    assert a.x.shape == (3, 12) and b.x.place.shape == (12, 2)
    np.testing.assert_allclose(b.x.place, a.x[:2].T, atol=1e-12)
    (x, P), (named_x, named_P) = (
        rts_smoother(f, ts, ys, x0, P0) for f, x0 in ((plain, X0), (named, as_tree(X0)))
    )
    np.testing.assert_allclose(named_x.rate, x[2], atol=1e-11)
    np.testing.assert_allclose(named_P, P, atol=1e-11)
    assert nees(as_tree(X0), as_tree(X0 + 0.1), P0) == pytest.approx(nees(X0, X0 + 0.1, P0))


STARS = np.array([[0.0, 0.0, 1.0], [0.8, 0.6, 0.0], [-0.6, 0.0, 0.8]])
SIGHT = 0.01
FILTER = AttitudeFilter(STARS, dt=0.5, sight=SIGHT, gyro_noise=2e-3, bias_noise=1e-3)
#: Three degrees: a first guess so coarse that sines are not angles (some 0.2 rad against sensors
#: of 0.01) is beyond what a linear correction can be consistent with.
START = np.diag([0.05**2] * 3 + [0.02**2] * 3)


def rate(k):
    return np.stack([0.1 * np.sin(0.2 * k), 0.05 * np.cos(0.3 * k), 0.08 + 0.0 * k])


def one_run(key, observer, count):
    """Fly truth and filter with a gyro that errs as the filter believes; returns NEES and NIS."""
    first, gyro, sight = arc.random.split(key, 3)
    dt = observer.dt
    L = np.linalg.cholesky(observer.noise())
    w = arc.random.normal(gyro, (count, 6)) @ L.T
    v = SIGHT * arc.random.normal(sight, (count, 9))
    e0 = np.linalg.cholesky(START) @ arc.random.normal(first, 6)
    guess = AttitudeFilter.State(Quaternion.from_euler([0.3, -0.2, 0.5]), np.zeros(3))
    true = AttitudeFilter.State(guess.att * Quaternion.exp(e0[:3]), guess.bias + e0[3:])

    def sample(carry, given):
        true, x, P = carry
        k, turn, noise = given
        # The true rate is what the gyro reads less its bias; noise turns and drifts the truth.
        read = rate(k) + true.bias
        moved = Quaternion.exp(rate(k) * dt + turn[:3])
        true = AttitudeFilter.State((true.att * moved).normalize(), true.bias + turn[3:])
        y = np.reshape((true.att.as_matrix() @ STARS.T).T, (-1,)) + noise
        found = observer.step(0.0, x, y, P, args=(read,))
        error = nees(true, found.x, observer.to_covariance(found.P))
        return (true, found.x, found.P), (error, found.nis)

    start = (true, guess, observer.of_covariance(START))
    return arc.scan(sample, start, (np.arange(float(count)), w, v))[1]


@pytest.mark.long
@pytest.mark.parametrize("root", [False, True])
def test_the_attitude_filter_is_consistent(root):
    """NEES and NIS of 1,000 seeded runs, as one native batch, within bounds of 99.9 %."""
    runs, count = 1000, 20
    observer = FILTER.replace(square_root=root)
    keys = arc.random.split(arc.random.key(11), runs)
    errors, innovations = arc.vmap(lambda key: one_run(key, observer, count))(keys)
    assert errors.shape == (runs, count)
    low, high = consistency_bounds(6, runs, 0.999)
    inside = (errors.mean(axis=0) > low) & (errors.mean(axis=0) < high)
    assert np.all(inside), errors.mean(axis=0)
    low, high = consistency_bounds(9, runs * count, 0.999)
    assert low < innovations.mean() < high


@pytest.mark.long
def test_the_unscented_filter_on_attitudes_agrees():
    noise, sight = FILTER.noise(), SIGHT**2 * np.eye(9)
    ukf = UnscentedKalmanFilter(FILTER.dyn, FILTER.obs, noise, sight, kappa=1.0)
    x = AttitudeFilter.State(Quaternion.from_euler([0.3, -0.2, 0.5]), np.full(3, 0.01))
    P = np.diag([1e-4] * 3 + [1e-6] * 3)
    y = np.reshape((x.att.as_matrix() @ STARS.T).T, (-1,)) + 0.01
    a, b = (f.step(0.0, x, y, P, args=(np.full(3, 0.1),)) for f in (FILTER, ukf))
    assert a.x.att.angle_to(b.x.att) < 1e-4
    np.testing.assert_allclose(a.x.bias, b.x.bias, atol=1e-5)
    np.testing.assert_allclose(a.P, b.P, atol=1e-6)
    assert abs(np.sum(b.x.att.array**2) - 1.0) < 1e-12


def test_a_quaternion_is_not_changed_by_its_sign_and_stars_may_be_missing():
    x = AttitudeFilter.State(Quaternion.from_euler([0.3, -0.2, 0.5]), np.zeros(3))
    other = x.replace(att=Quaternion(-x.att.array))
    y = np.reshape((x.att.as_matrix() @ STARS.T).T, (-1,)) + 0.01
    y[3:6] = np.nan
    a, b = (FILTER.step(0.0, v, y, START, args=(np.zeros(3),)) for v in (x, other))
    np.testing.assert_allclose(a.P, b.P, atol=1e-15)
    assert a.x.att.angle_to(b.x.att) < 1e-12
    lost = FILTER.step(0.0, x, np.full(9, np.nan), START, args=(np.zeros(3),))
    assert lost.x.att.angle_to(x.att) < 1e-12 and lost.nis == 0.0


@pytest.mark.long
def test_smoothed_attitudes_are_nearer_to_the_truth():
    rng = np.random.default_rng(0)
    truth, ys = Quaternion.from_euler([0.3, -0.2, 0.5]), []
    states = []
    for _ in range(30):
        truth = truth * Quaternion.exp(0.5 * np.array([0.1, 0.0, 0.05]))
        states.append(truth)
        ys.append(np.reshape((truth.as_matrix() @ STARS.T).T, (-1,)) + 0.1 * rng.normal(size=9))
    observer = FILTER.replace(sight=0.1, gyro_noise=1e-3)
    x0 = AttitudeFilter.State(Quaternion.from_euler([0.3, -0.2, 0.5]), np.zeros(3))
    us = np.tile(np.array([[0.11], [0.0], [0.05]]), (1, 30))  # a bias of 0.01 in roll
    given = (np.arange(30.0), np.array(ys).T, x0, START)
    run = arc.compile(lambda ys: rts_smoother(observer, given[0], ys, x0, START, us=us))
    smooth, _ = run(given[1])
    filtered = filter_series(observer, *given, us=us)
    errors = [
        np.mean([float(s.angle_to(Quaternion(q))) for s, q in zip(states, found.att.array)])
        for found in (smooth, filtered.x)
    ]
    assert errors[0] < 0.8 * errors[1]
    assert abs(smooth.bias[0, 0] - 0.01) < 0.02


@pytest.mark.long
def test_as_c(tmp_path):
    x = AttitudeFilter.State(Quaternion.from_euler([0.3, -0.2, 0.5]), np.zeros(3))
    y = np.reshape((x.att.as_matrix() @ STARS.T).T, (-1,)) + 0.01
    one = arc.compile(FILTER.step, backend="interpreter")(0.0, x, y, START, (np.zeros(3),))
    two = arc.compile(FILTER.step, backend="llvm")(0.0, x, y, START, (np.zeros(3),))
    for a, b in zip(arc.tree.leaves(one), arc.tree.leaves(two)):
        np.testing.assert_array_equal(a, b)

    def attitude_step(x, y, P, w_B):
        x, P, _ = FILTER.step(0.0, x, y, P, (w_B,))
        return x, P

    project = arc.codegen(
        attitude_step, (x, y, START, np.zeros(3)), output_dir=tmp_path, return_names=["xn", "Pn"]
    )
    assert project.verify(samples=3).outputs == 43


LEVEL = AttitudeFilter.State(Quaternion.identity(), np.zeros(3))
MESSAGES = [
    (lambda: AttitudeFilter(STARS, dt=0.0, sight=0.1), "dt must be positive and finite"),
    (lambda: AttitudeFilter(STARS, dt=0.1, sight=0.0), "sight must be positive and finite"),
    (lambda: AttitudeFilter(STARS.T[:, :2], dt=0.1, sight=0.1), r"references must be a matrix"),
    (
        lambda: FILTER.step(
            0.0, AttitudeFilter.State(Quaternion.identity(), np.zeros(3)), [], START
        ),
        r"args must be \(w_B,\)",
    ),
    (
        lambda: ExtendedKalmanFilter(lambda t, x: x, tree_obs, Q, R).step(
            0.0, {"a": np.zeros(2)}, [0.0, 0.0], P0
        ),
        "x has errors of 2 numbers .* the covariances 3",
    ),
    (
        lambda: ExtendedKalmanFilter(lambda t, x: x.place, tree_obs, Q, R).step(
            0.0, as_tree(X0), [0.0, 0.0], P0
        ),
        "dyn.* must return a state with the structure of x",
    ),
    (lambda: consistency_bounds(0, 10), "must be positive"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument_and_the_remedy(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("root", [False, True])
def test_iterated_corrections_find_the_likeliest_attitude(root):
    """Against SciPy's least squares of errors and sights, each divided by its deviation."""
    from scipy.optimize import least_squares

    directions = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    x = AttitudeFilter.State(Quaternion.from_euler([0.1, -0.2, 0.3], "xyz"), np.zeros(3))
    P = np.diag([0.3, 0.2, 0.4, 0.01, 0.01, 0.01]) ** 2
    turned = x.att.mul(Quaternion.exp(np.array([0.5, -0.3, 0.6])))
    y = AttitudeFilter(directions, 0.1, 0.05).obs(0.0, AttitudeFilter.State(turned, np.zeros(3)))

    def rest(e):
        att = x.att.mul(Quaternion.exp(e))
        seen = np.ravel((att.as_matrix() @ directions.T).T)
        return np.concatenate([e / np.array([0.3, 0.2, 0.4]), (y - seen) / 0.05])

    best = x.att.mul(Quaternion.exp(least_squares(rest, np.zeros(3), xtol=1e-14, ftol=1e-15).x))
    given = np.linalg.cholesky(P) if root else P
    off = []
    for count in (1, 2, 8):
        observer = AttitudeFilter(directions, 0.1, 0.05, square_root=root, iterations=count)
        found = observer.correct(0.0, x, y, given)
        off.append(np.linalg.norm((found.x.att.inv().mul(best)).log()))
    assert off[0] > 10 * off[1] > 0.0
    assert off[2] < 1e-7
    once = AttitudeFilter(directions, 0.1, 0.05, square_root=root).correct(0.0, x, y, given)
    np.testing.assert_array_equal(found.innovation, once.innovation)
    with pytest.raises(ValueError, match="iterations must be a whole number of at least 1"):
        AttitudeFilter(directions, 0.1, 0.05, iterations=0)
