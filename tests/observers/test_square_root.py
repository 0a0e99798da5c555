"""Filters that carry factors of covariances: the same estimates, and factors that stay factors."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.observers import KalmanFilter, filter_series, nees, rts_smoother
from tests.observers.systems import (
    EXTENDED,
    LINEAR,
    P0,
    PENDULUM_EKF,
    PENDULUM_UKF,
    UNSCENTED,
    X0,
    measurements,
)

ROOTS = {
    "linear": LINEAR,
    "extended": EXTENDED,
    "unscented": UNSCENTED,
    "pendulum ekf": PENDULUM_EKF,
    "pendulum ukf": PENDULUM_UKF,
}


def start(observer):
    if observer.Q.shape[0] == 3:
        return X0, P0, np.array([0.1, np.nan])
    return np.array([0.8, -0.3]), np.array([[0.1, 0.02], [0.02, 0.2]]), np.array([0.7, 0.6])


@pytest.mark.parametrize("name", ROOTS)
def test_a_step_is_that_of_the_covariance(name):
    observer = ROOTS[name]
    x, P, y = start(observer)
    root = observer.replace(square_root=True)
    L = np.linalg.cholesky(P)
    wanted, found = observer.step(0.0, x, y, P), root.step(0.0, x, y, L)
    assert np.all(np.triu(found.P, 1) == 0.0) and np.all(np.diagonal(found.P) > 0.0)
    np.testing.assert_allclose(found.P @ found.P.T, wanted.P, rtol=1e-10, atol=1e-13)
    for part in ("x", "innovation", "S", "nis"):
        np.testing.assert_allclose(
            getattr(found, part), getattr(wanted, part), rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("name", ["linear", "extended", "unscented"])
def test_series_and_smoothers(name):
    """Also: the unscented filter in square roots is the Kalman filter, to 1e-10."""
    ts, ys = measurements(5, 20)
    root = ROOTS[name].replace(square_root=True)
    wanted, found = (filter_series(f, ts, ys, X0, P0) for f in (LINEAR, root))
    for a, b in zip(arc.tree.leaves(wanted), arc.tree.leaves(found)):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)
    for a, b in zip(*(rts_smoother(f, ts, ys, X0, P0) for f in (LINEAR, root))):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


@pytest.mark.long_cases("pendulum*")
@pytest.mark.parametrize("name", ROOTS)
def test_compiled_mapped_and_gated(name):
    x, P, y = start(ROOTS[name])
    root = ROOTS[name].replace(square_root=True, gate=1e-3)
    L = np.linalg.cholesky(P)
    fast, slow = (arc.compile(root.step, backend=b)(0.0, x, y, L) for b in ("llvm", "interpreter"))
    many = arc.vmap(root.step, in_axes=(None, 0, None, None))(0.0, np.stack([x, 0.9 * x]), y, L)
    before = root.predict(0.0, x, L)
    np.testing.assert_allclose(fast.P, before.P, atol=1e-14)  # beyond the gate
    for a, b, c in zip(*map(arc.tree.leaves, (fast, slow, many))):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(c[0], a)


def test_where_the_covariance_loses_its_sign():
    """A sensor a million times finer than the first guess, in float32-sized noise.

    Bierman's example: P = I, H = [1, 1 + d] twice with noise d^2, d^2 below the precision. The
    ordinary update without Joseph's form gives a singular matrix; factors keep two digits at least.
    """
    d = 1e-9
    kf = KalmanFilter(np.eye(2), [[1.0, 1.0], [1.0, 1.0 + d]], 0 * np.eye(2), d**2 * np.eye(2))
    root = kf.replace(square_root=True)
    found = root.correct(0.0, np.zeros(2), np.zeros(2), np.eye(2))
    P = found.P @ found.P.T
    from mpmath import matrix, mp

    with mp.workdps(60):
        C = matrix([[1, 1], [1, 1 + mp.mpf(d)]])
        D = mp.mpf(d)
        exact = (mp.eye(2) + C.T * C / D**2) ** -1
        wanted = np.array([[float(exact[i, j]) for j in range(2)] for i in range(2)])
    np.testing.assert_allclose(P, wanted, rtol=1e-6)


@pytest.mark.long
def test_derivatives_and_c(tmp_path):
    root = PENDULUM_EKF.replace(square_root=True)
    x, P, y = start(root)
    L = np.linalg.cholesky(P)

    def spread(q):
        return np.sum(root.replace(Q=q * root.Q).step(0.0, x, y, L).P)

    difference = (spread(1 + 1e-5) - spread(1 - 1e-5)) / 2e-5
    assert arc.grad(spread)(1.0) == pytest.approx(difference, rel=1e-6)

    def root_step(x, y, L):
        x, L, _ = root.step(0.0, x, y, L)
        return x, L

    project = arc.codegen(
        root_step, (x, y, L), output_dir=tmp_path, return_names=["x_new", "L_new"]
    )
    assert project.verify(samples=4).outputs == 6


MESSAGES = [
    (lambda: LINEAR.replace(square_root=True).step(0.0, X0, [1.0, 1.0], P0), "np.linalg.cholesky"),
    (lambda: UNSCENTED.replace(square_root=True, kappa=-0.5), "kappa must not be negative"),
    (
        lambda: LINEAR.replace(square_root=True).step(0.0, X0, [1.0, 1.0], np.nan * P0),
        "P must be finite",
    ),
    (lambda: nees(X0, X0, 0 * P0), "P must be positive definite"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument_and_the_remedy(call, words):
    with pytest.raises(ValueError, match=words):
        call()
