"""Discretisations, transfer functions and digital filters against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

import archimedes as arc
from archimedes.control import IIRFilter, StateSpace, discretize_linear, tf2ss

NAMES = {
    "zoh": "zoh",
    "foh": "foh",
    "tustin": "bilinear",
    "euler": "euler",
    "backward": "backward_diff",
}


def random_system(seed):
    rng = np.random.default_rng(seed)
    n, m, p = rng.integers(1, 6), rng.integers(1, 4), rng.integers(1, 4)
    shapes = [(n, n), (n, m), (p, n), (p, m)]
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("method", NAMES)
def test_discretisations_against_scipy(method):
    for seed in range(20):
        system = random_system(seed)
        wanted = signal.cont2discrete(tuple(system), 0.1, NAMES[method])[:4]
        for a, b in zip(discretize_linear(*system, 0.1, method), wanted):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", NAMES)
def test_discretisations_compiled_with_derivatives(method):
    A, B = np.array([[0.2, 1.0], [-2.0, -0.4]]), np.array([[0.3], [1.0]])
    C, D = np.array([[1.0, 0.5]]), np.array([[0.1]])

    def flat(A, dt):
        return np.concatenate([M.ravel() for M in discretize_linear(A, B, C, D, dt, method)])

    fast, slow = (arc.compile(flat, backend=b)(A, 0.1) for b in ("llvm", "interpreter"))
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_allclose(fast, flat(A, 0.1), rtol=1e-10, atol=1e-13)
    slope = arc.jac(flat, argnums=1)(A, 0.1)
    difference = (flat(A, 0.1 + 1e-6) - flat(A, 0.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, difference, atol=1e-7)
    dA = np.random.default_rng(0).normal(size=A.shape)
    slope = arc.jac(lambda s: flat(A + s * dA, 0.1))(0.0)
    difference = (flat(A + 1e-6 * dA, 0.1) - flat(A - 1e-6 * dA, 0.1)) / 2e-6
    np.testing.assert_allclose(slope, difference, atol=1e-7)


@pytest.mark.parametrize(
    ("num", "den"),
    [([1.0], [1.0, 2.0]), ([2.0, 1.0, 3.0], [2.0, 4.0, 5.0]), ([1, 2], [1, 2, 3, 4])],
)
def test_transfer_functions_against_scipy(num, den):
    ours = tf2ss(num, den)
    for a, b in zip((ours.A, ours.B, ours.C, ours.D), signal.tf2ss(num, den)):
        np.testing.assert_allclose(a, b, atol=1e-14)


def test_a_system_steps_as_scipys_does():
    system = tf2ss([1.0, 2.0], [1.0, 0.5, 4.0]).discretize(0.05, "foh")
    us = np.sin(np.arange(30) * 0.3)[:, None]
    _, ys = arc.scan(system.step, np.zeros(2), us)
    _, wanted, _ = signal.dlsim((system.A, system.B, system.C, system.D, 0.05), us)
    np.testing.assert_allclose(ys, wanted, atol=1e-13)
    np.testing.assert_array_equal(
        system.rates(np.ones(2), [1.0]), system.A @ np.ones(2) + system.B[:, 0]
    )
    np.testing.assert_array_equal(system.output(np.ones(2), [1.0]), system.C.sum() + system.D[0])


@pytest.mark.parametrize("order", [1, 3])
def test_digital_filters_against_scipy(order):
    b, a = signal.butter(order, 0.2)
    block = IIRFilter(2.0 * b, 2.0 * a)
    us = np.random.default_rng(0).normal(size=50)
    wanted = signal.lfilter(b, a, us)
    _, ys = arc.scan(block.step, block.start(), us)
    np.testing.assert_allclose(ys, wanted, atol=1e-13)
    run = arc.compile(lambda us: arc.scan(block.step, block.start(), us)[1])
    np.testing.assert_allclose(run(us), wanted, atol=1e-13)
    mean = IIRFilter([0.5, 0.5], [1.0])
    np.testing.assert_allclose(
        arc.scan(mean.step, mean.start(), us)[1], signal.lfilter([0.5, 0.5], [1.0], us)
    )


ONE = np.eye(1)
MESSAGES = [
    (
        lambda: discretize_linear(ONE, ONE, ONE, ONE, 0.1, "cubic"),
        "'cubic' is not one of 'zoh'",
    ),
    (lambda: discretize_linear(ONE, ONE, ONE, ONE, 0.0), "dt must be positive and finite"),
    (lambda: discretize_linear(ONE, ONE, ONE, np.eye(2), 0.1), r"D must be a matrix of shape"),
    (lambda: StateSpace(np.ones((1, 2)), ONE, ONE, ONE), r"A must be a matrix of shape \(1, 1\)"),
    (lambda: StateSpace(ONE, ONE, ONE, ONE).step([1.0], [1.0, 2.0]), "input must be a vector"),
    (lambda: tf2ss([1.0, 2.0, 3.0], [1.0, 2.0]), "is not proper: its numerator has degree 2"),
    (lambda: tf2ss([1.0], [0.0]), "den must hold finite numbers that are not all zero"),
    (lambda: IIRFilter([], [1.0]), "at least one coefficient"),
    (lambda: IIRFilter([1.0], [1.0, 2.0]).step(np.zeros(3), 1.0), "state must be a vector"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
