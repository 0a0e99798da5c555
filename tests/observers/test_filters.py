"""Filters against each other, against batch least squares, and as compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import archimedes as arc
from archimedes.observers import (
    ExtendedKalmanFilter,
    KalmanFilter,
    UnscentedKalmanFilter,
    filter_series,
    nees,
    rts_smoother,
)
from tests.optional_packages import import_or_skip

from .systems import (
    EXTENDED,
    LINEAR,
    P0,
    PENDULUM_EKF,
    PENDULUM_UKF,
    Q_PENDULUM,
    R_PENDULUM,
    UNSCENTED,
    X0,
    A,
    C,
    Q,
    R,
    bob,
    measurements,
    pendulum,
)


def batch(count, ys):
    """All states from all measurements: one least-squares problem, whitened, with its covariance.

    Unknowns are the state before the first sample and those at the samples.
    """
    n = 3
    rows, right = [], []

    def add(blocks, value, covariance):
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        row = np.zeros((len(value), n * (count + 1)))
        for k, block in blocks:
            row[:, n * k : n * (k + 1)] = block
        rows.append(whiten @ row)
        right.append(whiten @ value)

    add([(0, np.eye(n))], X0, P0)
    for k in range(count):
        add([(k + 1, np.eye(n)), (k, -A)], np.zeros(n), Q)
        seen = ~np.isnan(ys[:, k])
        if seen.any():
            add([(k + 1, C[seen])], ys[seen, k], R[np.ix_(seen, seen)])
    J, b = np.concatenate(rows), np.concatenate(right)
    x = np.linalg.lstsq(J, b, rcond=None)[0].reshape(count + 1, n)[1:]
    P = np.linalg.inv(J.T @ J)
    blocks = [P[n * k : n * (k + 1), n * k : n * (k + 1)] for k in range(1, count + 1)]
    return x.T, np.moveaxis(np.array(blocks), 0, -1)


@pytest.mark.parametrize("observer", [LINEAR, EXTENDED, UNSCENTED])
def test_filter_and_smoother_are_least_squares_on_a_linear_system(observer):
    ts, ys = measurements(0, 9)
    filtered = filter_series(observer, ts, ys, X0, P0)
    for count in (1, 3, 6, 9):
        x, P = batch(count, ys)
        np.testing.assert_allclose(filtered.x[:, count - 1], x[:, -1], atol=1e-10)
        np.testing.assert_allclose(filtered.P[..., count - 1], P[..., -1], atol=1e-10)
    smooth = rts_smoother(observer, ts, ys, X0, P0)
    np.testing.assert_allclose(smooth[0], x, atol=1e-10)
    np.testing.assert_allclose(smooth[1], P, atol=1e-10)
    one = rts_smoother(observer, ts[:1], ys[:, :1], X0, P0)
    np.testing.assert_array_equal(one[0], filtered.x[:, :1])


@pytest.mark.parametrize("kappa", [0.0, 1.0, -1.0])
def test_the_unscented_filter_is_the_linear_one_on_a_linear_system(kappa):
    ukf = UNSCENTED.replace(kappa=kappa)
    ts, ys = measurements(1, 40)
    wanted, found = (filter_series(f, ts, ys, X0, P0) for f in (LINEAR, ukf))
    for a, b in zip(arc.tree.leaves(wanted), arc.tree.leaves(found)):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


def test_a_missing_measurement_is_one_that_was_not_made():
    y = np.array([np.nan, 0.4])
    alone = KalmanFilter(A, C[1:], Q, R[1:, 1:]).step(0.0, X0, y[1:], P0)
    for observer in (LINEAR, EXTENDED, UNSCENTED):
        found = observer.step(0.0, X0, y, P0)
        np.testing.assert_allclose(found.x, alone.x, atol=1e-13)
        np.testing.assert_allclose(found.P, alone.P, atol=1e-13)
        np.testing.assert_allclose(found.nis, alone.nis, atol=1e-13)
        assert found.innovation[0] == 0.0
        before = observer.predict(0.0, X0, P0)
        found = observer.step(0.0, X0, np.full(2, np.nan), P0)
        np.testing.assert_allclose(found.x, before.x, atol=1e-15)
        np.testing.assert_allclose(found.P, before.P, atol=1e-15)
        assert found.nis == 0.0


def test_missing_may_be_marked_otherwise():
    y = np.array([-999.0, 0.4])
    wanted = LINEAR.step(0.0, X0, np.array([np.nan, 0.4]), P0)
    np.testing.assert_array_equal(LINEAR.replace(missing=-999.0).step(0.0, X0, y, P0).x, wanted.x)
    always = LINEAR.replace(missing=None)
    gap = np.array([np.nan, 0.4])
    assert np.all(np.isnan(arc.compile(lambda y: always.step(0.0, X0, y, P0).x)(gap)))
    with pytest.raises(ValueError, match=r"y\[0\] is nan.*make the filter with missing=np.nan"):
        always.step(0.0, X0, gap, P0)
    with pytest.raises(ValueError, match=r"y\[1\] is inf: a measurement is .* or nan where"):
        LINEAR.step(0.0, X0, np.array([0.1, np.inf]), P0)
    with pytest.raises(ValueError, match="x must hold finite numbers"):
        LINEAR.step(0.0, X0 * np.nan, y, P0)


def test_smoothing_what_is_known_exactly():
    """Without noise and doubt nothing later corrects anything: no division by zero."""
    sure = LINEAR.replace(Q=0.0 * LINEAR.Q)
    ts, ys = np.arange(4.0), np.ones((2, 4))
    x, P = rts_smoother(sure, ts, ys, X0, 0.0 * P0)
    np.testing.assert_array_equal(x, filter_series(sure, ts, ys, X0, 0.0 * P0).x)
    np.testing.assert_array_equal(P, 0.0)
    one = KalmanFilter([[1.0]], [[1.0]], [[0.1]], [[1.0]])
    row, rows = np.arange(4.0), np.arange(4.0)[None]
    for run in (filter_series, rts_smoother):
        np.testing.assert_array_equal(
            *(arc.tree.leaves(run(one, ts, given, [0.0], [[1.0]]))[0] for given in (row, rows))
        )


@pytest.mark.parametrize("observer", [LINEAR, EXTENDED, UNSCENTED])
def test_outliers_are_not_used(observer):
    strict = observer.replace(gate=9.0)
    good, bad = np.array([0.2, -0.1]), np.array([30.0, -0.1])
    before = observer.predict(0.0, X0, P0)
    for run in (strict.step, arc.compile(strict.step)):
        found = run(0.0, X0, good, P0)
        assert found.nis < 9.0
        np.testing.assert_allclose(found.x, observer.step(0.0, X0, good, P0).x, atol=1e-13)
        found = run(0.0, X0, bad, P0)
        assert found.nis > 9.0
        np.testing.assert_allclose(found.x, before.x, atol=1e-14)
        np.testing.assert_allclose(found.P, before.P, atol=1e-14)


def textbook_ekf(x, P, y):
    """Equations of a textbook with derivatives by hand."""
    F = np.array([[1.0, 0.05], [-0.05 * 9.81 * np.cos(x[0]), 1.0 - 0.005]])
    x, P = pendulum(0.0, x), F @ P @ F.T + Q_PENDULUM
    H = np.array([[np.cos(x[0]), 0.0], [-np.sin(x[0]), 0.0]])
    S = H @ P @ H.T + R_PENDULUM
    K = P @ H.T @ np.linalg.inv(S)
    e = y - bob(0.0, x)
    return x + K @ e, P - K @ H @ P, e, e @ np.linalg.inv(S) @ e


def textbook_ukf(x, P, y, kappa=1.0):
    def moments(func, x, P, noise):
        n = len(x)
        L = np.linalg.cholesky((n + kappa) * P)
        points = [x] + [x + s * L[:, i] for i in range(n) for s in (1, -1)]
        w = [kappa / (n + kappa)] + [0.5 / (n + kappa)] * (2 * n)
        z = [func(0.0, p) for p in points]
        mean = sum(wi * zi for wi, zi in zip(w, z))
        S = noise + sum(wi * np.outer(zi - mean, zi - mean) for wi, zi in zip(w, z))
        cross = sum(wi * np.outer(p - x, zi - mean) for wi, p, zi in zip(w, points, z))
        return mean, S, cross

    x, P, _ = moments(pendulum, x, P, Q_PENDULUM)
    mean, S, cross = moments(bob, x, P, R_PENDULUM)
    K = cross @ np.linalg.inv(S)
    e = y - mean
    return x + K @ e, P - K @ S @ K.T, e, e @ np.linalg.inv(S) @ e


START = (np.array([0.8, -0.3]), np.array([0.7, 0.6]), np.array([[0.1, 0.02], [0.02, 0.2]]))


@pytest.mark.parametrize(
    ("observer", "textbook"), [(PENDULUM_EKF, textbook_ekf), (PENDULUM_UKF, textbook_ukf)]
)
def test_nonlinear_filters_against_a_textbook(observer, textbook):
    x, y, P = START
    found = observer.step(0.0, x, y, P)
    wanted = textbook(x, P, y)
    for a, b in zip((*found, found.nis), wanted):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("observer", [LINEAR, PENDULUM_EKF, PENDULUM_UKF])
def test_compiled_mapped_and_scanned_steps(observer):
    n = observer.Q.shape[0]
    x, y, P = (X0, np.array([0.1, np.nan]), P0) if n == 3 else START
    eager = observer.step(0.0, x, y, P)
    slow, fast = (arc.compile(observer.step, backend=b) for b in ("interpreter", "llvm"))
    one = fast(0.0, x, y, P)
    many = arc.vmap(observer.step, in_axes=(None, 0, 0, None))(
        0.0, np.stack([x, 0.9 * x]), np.stack([y, y]), P
    )
    for a, b, c, d in zip(*map(arc.tree.leaves, (eager, one, slow(0.0, x, y, P), many))):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(c, b)
        np.testing.assert_array_equal(d[0], b)


def test_series_in_recorded_code_with_derivatives_in_the_noise():
    ts, ys = measurements(2, 12)

    def misfit(scale):
        kf = LINEAR.replace(Q=scale * Q)
        found = filter_series(kf, ts, ys, X0, P0)
        smooth, _ = rts_smoother(kf, ts, ys, X0, P0)
        return np.sum(found.nis) + np.sum(smooth**2)

    slope = arc.grad(misfit)(1.0)
    assert slope == pytest.approx((misfit(1 + 1e-5) - misfit(1 - 1e-5)) / 2e-5, rel=1e-7)
    np.testing.assert_allclose(arc.compile(misfit)(1.0), misfit(1.0), rtol=1e-11)


def test_a_step_as_c(tmp_path):
    def step(t, x, y, P):
        x, P, _ = PENDULUM_EKF.step(t, x, y, P)
        return x, P

    x, y, P = START
    project = arc.codegen(
        step, (0.0, x, y, P), output_dir=tmp_path, return_names=["x_new", "P_new"]
    )
    assert project.verify(samples=4).outputs == 6


def test_inputs_and_arguments():
    B = np.array([[0.0], [1.0], [0.0]])
    kf = KalmanFilter(A, C, Q, R, B=B)
    ekf = ExtendedKalmanFilter(lambda t, x, u, b: A @ x + b @ u, lambda t, x, u, b: C @ x, Q, R)
    ts, ys = measurements(3, 6)
    us = np.sin(ts)[None, :]
    wanted = filter_series(kf, ts, ys, X0, P0, us=us)
    found = filter_series(ekf, ts, ys, X0, P0, (B,), us=us)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-13)
    step = kf.step(ts[0], X0, ys[:, 0], P0, (us[:, 0],))
    np.testing.assert_allclose(step.x, wanted.x[:, 0], atol=1e-14)


def test_errors_and_innovations_are_as_large_as_filters_say():
    """1,000 seeded runs as one batch: mean NEES and NIS within their 99.9 % bounds."""
    runs, count = 1000, 8
    L0, LQ, LR = (np.linalg.cholesky(M) for M in (P0, Q, R))

    def run(key):
        start, process, sensor = arc.random.split(key, 3)
        w = arc.random.normal(process, (count, 3))
        v = arc.random.normal(sensor, (count, 2))

        def sample(carry, noise):
            true, x, P = carry
            true = A @ true + LQ @ noise[0]
            found = UNSCENTED.step(0.0, x, C @ true + LR @ noise[1], P)
            return (true, found.x, found.P), found.nis

        first = (X0 + L0 @ arc.random.normal(start, 3), X0, P0)
        (true, x, P), nis = arc.scan(sample, first, (w, v))
        return nees(true, x, P), nis

    errors, innovations = arc.vmap(run)(arc.random.split(arc.random.key(7), runs))
    low, high = chi2.ppf([0.0005, 0.9995], 3 * runs) / runs
    assert low < errors.mean() < high
    low, high = chi2.ppf([0.0005, 0.9995], 2 * runs * count) / (runs * count)
    assert low < innovations.mean() < high


def test_against_filterpy():
    kalman = import_or_skip("filterpy.kalman")
    theirs = kalman.KalmanFilter(dim_x=3, dim_z=2)
    theirs.x, theirs.P, theirs.F, theirs.H, theirs.Q, theirs.R = X0.copy(), P0, A, C, Q, R
    ts, ys = measurements(4, 10, holes=False)
    ours = filter_series(LINEAR, ts, ys, X0, P0)
    for k in range(10):
        theirs.predict()
        theirs.update(ys[:, k])
        np.testing.assert_allclose(ours.x[:, k], theirs.x, atol=1e-12)


def test_unscented_square_root_and_smoother_against_filterpy():
    kalman = import_or_skip("filterpy.kalman")
    points = kalman.JulierSigmaPoints(2, kappa=1.0)
    theirs = kalman.UnscentedKalmanFilter(
        2, 2, 0.05, lambda x: bob(0.0, x), lambda x, dt: pendulum(0.0, x), points
    )
    x, y, P = START
    theirs.x, theirs.P, theirs.Q, theirs.R = x.copy(), P.copy(), Q_PENDULUM, R_PENDULUM
    theirs.predict()
    # It draws points anew for the measurement only where told to.
    theirs.sigmas_f = points.sigma_points(theirs.x, theirs.P)
    theirs.update(y)
    ours = PENDULUM_UKF.step(0.0, x, y, P)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-10)
    np.testing.assert_allclose(ours.P, theirs.P, atol=1e-10)
    ts, ys = measurements(4, 10, holes=False)
    filtered = filter_series(LINEAR, ts, ys, X0, P0)
    plain = kalman.KalmanFilter(dim_x=3, dim_z=2)
    plain.F, plain.H, plain.Q, plain.R = A, C, Q, R
    wanted = plain.rts_smoother(filtered.x.T[:, :, None], np.moveaxis(filtered.P, -1, 0))
    found = rts_smoother(LINEAR, ts, ys, X0, P0)
    np.testing.assert_allclose(found[0].T, wanted[0][:, :, 0], atol=1e-10)
    root = kalman.SquareRootKalmanFilter(dim_x=3, dim_z=2)
    root.F, root.H, root.Q, root.R = A, C, Q, R
    root.x, root.P = X0[:, None].copy(), P0
    root.predict()
    root.update(ys[:, :1])
    step = LINEAR.replace(square_root=True).step(0.0, X0, ys[:, 0], np.linalg.cholesky(P0))
    np.testing.assert_allclose(step.x, root.x[:, 0], atol=1e-10)
    np.testing.assert_allclose(step.P @ step.P.T, root.P, atol=1e-10)


NEGATIVE = np.diag([1.0, -1.0, 1.0])
MESSAGES = [
    (
        lambda: LINEAR.replace(Q=NEGATIVE),
        "Q must be positive semidefinite.*smallest eigenvalue is -1",
    ),
    (lambda: LINEAR.replace(R=np.zeros((2, 2))), "R must be positive definite.*add a small"),
    (lambda: LINEAR.replace(Q=np.triu(np.ones((3, 3)))), r"Q must be symmetric; use \(Q \+ Q.T\)"),
    (lambda: LINEAR.replace(C=np.ones((2, 2))), r"C must be a matrix of shape \(n, 3\)"),
    (lambda: LINEAR.replace(Q=np.eye(2)), r"Q must be a matrix of shape \(3, 3\), got \(2, 2\)"),
    (lambda: LINEAR.step(0.0, X0, [1.0], P0), r"y must be a vector of shape \(2,\), got \(1,\)"),
    (lambda: LINEAR.step(0.0, X0[:2], [1.0, 1.0], P0), r"x must be a vector of shape \(3,\)"),
    (lambda: EXTENDED.step(0.0, X0, [1.0, 1.0], NEGATIVE), "P must be positive semidefinite"),
    (lambda: UNSCENTED.step(0.0, X0, [1.0, 1.0], 0 * P0), "P must be positive definite"),
    (lambda: LINEAR.replace(gate=0.0), "gate must be above zero"),
    (lambda: UNSCENTED.replace(kappa=-3.0), "kappa must be above -n = -3"),
    (lambda: EXTENDED.replace(dyn=A), r"dyn must be a function dyn\(t, x, \*args\)"),
    (
        lambda: EXTENDED.replace(dyn=lambda t, x: x[:2]).step(0.0, X0, [1.0, 1.0], P0),
        r"dyn\(t, x, \*args\) must return a vector of shape \(3,\), got \(2,\)",
    ),
    (lambda: EXTENDED.step(0.0, X0, [1.0, 1.0], P0, 3.0), "args must be a tuple"),
    (
        lambda: LINEAR.step(0.0, X0, [1.0, 1.0], P0, (1.0,)),
        r"args must be \(u,\) if the filter has B",
    ),
    (lambda: LINEAR.step(0.0, {"a": 1.0}, [1.0, 1.0], P0), "x must be an array of real numbers"),
    (lambda: filter_series(LINEAR, [0.0], np.ones((3, 2)), X0, P0), "one column per time"),
    (lambda: rts_smoother(LINEAR, [], np.ones((2, 0)), X0, P0), "at least one time"),
    (lambda: nees(X0, X0[:2], np.eye(2)), r"x_true must be a vector of shape \(2,\)"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument_and_the_remedy(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_an_estimate_unpacks_as_three():
    found = UnscentedKalmanFilter(lambda t, x: x, lambda t, x: x, [[1.0]], [[1.0]]).step(
        0.0, [0.0], [1.0], [[1.0]]
    )
    x, P, innovation = found
    assert x is found.x and P is found.P and innovation is found.innovation
