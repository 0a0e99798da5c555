"""Frequency responses, margins, Lyapunov equations, reduction: python-control and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

import archimedes as arc
from archimedes.control import (
    StateSpace,
    balanced_truncation,
    discretize_linear,
    dlqr,
    frequency_response,
    gramians,
    lqe,
    lqr,
    margins,
    modes,
    solve_dlyap,
    solve_lyap,
    tf2ss,
)
from tests.optional_packages import import_or_skip

OMEGA = np.logspace(-2, 2, 40)


def random_system(seed, dt=None, n=None):
    """A stable system with several inputs and outputs."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 7))
    m, p = rng.integers(1, 3, size=2)
    A = rng.normal(size=(n, n))
    A = A - (np.linalg.eigvals(A).real.max() + 0.2) * np.eye(n)
    if dt is not None:
        A = linalg.expm(A * dt)
    shapes = [(n, m), (p, n), (p, m)]
    return StateSpace(A, *[rng.normal(size=shape) for shape in shapes], dt)


@pytest.mark.long
@pytest.mark.parametrize("dt", [None, 0.03])
def test_responses_against_a_formula_and_python_control(dt):
    control = import_or_skip("control")
    for seed in range(8):
        system = random_system(seed, dt)
        found = frequency_response(system, OMEGA)
        s = 1j * OMEGA if dt is None else np.exp(1j * OMEGA * dt)
        n = len(system.A)
        wanted = np.stack(
            [system.C @ np.linalg.solve(z * np.eye(n) - system.A, system.B) + system.D for z in s],
            axis=-1,
        )
        np.testing.assert_allclose(found.values, wanted, rtol=1e-10, atol=1e-12)
        theirs = system.to_control()(s, squeeze=False)
        np.testing.assert_allclose(found.values, theirs, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.magnitude, np.abs(wanted), rtol=1e-10)
        jumps = np.exp(1j * found.phase) * found.magnitude
        np.testing.assert_allclose(jumps, wanted, rtol=1e-9, atol=1e-11)
    assert control is not None


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_responses_in_recorded_code_with_derivatives(backend):
    def peak(damping):
        system = StateSpace(
            np.array([[0.0, 1.0], [-1.0, -2.0 * damping]]), [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]
        )
        return frequency_response(system, np.array([0.5, 1.0])).magnitude[0, 0, 1]

    # At its frequency the magnitude is 1 / (2 damping).
    assert arc.compile(peak, backend=backend)(0.1) == pytest.approx(5.0, rel=1e-12)
    assert arc.grad(peak)(0.1) == pytest.approx(-50.0, rel=1e-10)


LOOPS = {
    "third order": ([4.0], [1.0, 3.0, 3.0, 1.0], None),
    "integrator": ([10.0], [1.0, 7.0, 10.0, 0.0], None),
    "conditionally stable": ([60.0, 120.0, 90.0], [1.0, 8.0, 9.0, 0.0, 0.0], None),
    "direct": ([0.5, 1.0, 3.0], [1.0, 0.4, 0.5], None),
    "in steps": ([0.02, 0.018], [1.0, -1.7, 0.72], 0.1),
    "no crossing": ([0.5], [1.0, 1.0], None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_margins_against_python_control(name):
    control = import_or_skip("control")
    num, den, dt = LOOPS[name]
    found = margins(tf2ss(num, den, dt))
    theirs = control.TransferFunction(num, den, 0 if dt is None else dt)
    gm, pm, _, wcg, wcp, _ = control.stability_margins(theirs)
    np.testing.assert_allclose(found.gain, gm, rtol=1e-6)
    np.testing.assert_allclose(np.rad2deg(found.phase), pm, rtol=1e-6)
    np.testing.assert_allclose(found.gain_frequency, wcg, rtol=1e-5)
    np.testing.assert_allclose(found.phase_frequency, wcp, rtol=1e-5)


def test_a_closed_loop_at_its_margins_is_on_the_limit():
    """Gains and delays of the margin put a pole of the closed loop on the axis."""
    loop = tf2ss([10.0], [1.0, 7.0, 10.0, 0.0])
    found = margins(loop)
    A = loop.A - found.gain * loop.B @ loop.C
    assert np.min(np.abs(np.linalg.eigvals(A).real)) < 1e-9
    lag = np.exp(-1j * found.phase_frequency * found.delay)
    value = frequency_response(loop, [found.phase_frequency]).values[0, 0, 0]
    assert abs(value * lag + 1.0) < 1e-9


@pytest.mark.parametrize(
    ("ours", "theirs", "dt"),
    [
        (solve_lyap, lambda A, Q: linalg.solve_continuous_lyapunov(A, -Q), None),
        (solve_dlyap, linalg.solve_discrete_lyapunov, 0.1),
    ],
)
def test_lyapunov_equations(ours, theirs, dt):
    for seed in range(20):
        A = random_system(seed, dt).A
        M = np.random.default_rng(seed).normal(size=A.shape)
        wanted = theirs(A, M @ M.T)
        found = ours(A, M @ M.T)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    with pytest.raises(np.linalg.LinAlgError, match="all eigenvalues of A must"):
        ours(2.0 * np.eye(2), np.eye(2))
    # X = q / (2 a), or q / (1 - a^2): its derivative in a.
    slope = arc.grad(lambda a: ours(a * np.eye(1), np.eye(1))[0, 0])(-0.5)
    assert slope == pytest.approx(2.0 if dt is None else -1.0 / 0.75**2, rel=1e-10)


@pytest.mark.long_cases("0.1")
@pytest.mark.parametrize("dt", [None, 0.1])
def test_reduction_keeps_within_its_bound(dt):
    for seed in range(5):
        system = random_system(seed, dt, n=6)
        found = balanced_truncation(system, 3)
        error = (
            frequency_response(system, OMEGA).values
            - frequency_response(found.system, OMEGA).values
        )
        worst = np.linalg.norm(np.moveaxis(error, -1, 0), 2, axis=(1, 2)).max()
        assert worst <= found.error_bound * (1 + 1e-9)
        assert np.all(np.diff(found.hankel) <= 0.0)
        if dt is None:
            solve = linalg.solve_continuous_lyapunov
            A, B, C = system.A, system.B, system.C
            product = solve(A, -B @ B.T) @ solve(A.T, -C.T @ C)
            wanted = np.sqrt(np.sort(np.linalg.eigvals(product).real)[::-1])
            np.testing.assert_allclose(found.hankel, wanted, rtol=1e-7)
        np.testing.assert_allclose(found.left @ found.right, np.eye(3), atol=1e-8)
        poles = found.system.poles()
        assert np.all(poles.real < 0) if dt is None else np.all(np.abs(poles) < 1)
    whole = balanced_truncation(system, 6)
    a, b = (frequency_response(s, OMEGA).values for s in (system, whole.system))
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    assert whole.error_bound == 0.0
    Wc, Wo = gramians(whole.system)
    np.testing.assert_allclose(Wc, np.diag(whole.hankel), atol=1e-8)
    np.testing.assert_allclose(Wo, np.diag(whole.hankel), atol=1e-8)


@pytest.mark.long
def test_regulators_and_discretisations_against_python_control():
    control = import_or_skip("control")
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
        M, N = rng.normal(size=(n, n)), rng.normal(size=(m, m))
        Q, R = M @ M.T + 0.1 * np.eye(n), N @ N.T + np.eye(m)
        for ours, theirs in ((lqr, control.lqr), (dlqr, control.dlqr)):
            K, X, _ = theirs(A, B, Q, R)
            found = ours(A, B, Q, R)
            np.testing.assert_allclose(found[0], K, rtol=0, atol=1e-10 * max(1, np.abs(K).max()))
            np.testing.assert_allclose(found[1], X, rtol=0, atol=1e-10 * np.abs(X).max())
        L, P, _ = control.lqe(A, np.eye(n), B.T, Q, R)
        found = lqe(A, B.T, Q, R)
        # Of 50 digits both are off by this much where P has a condition of 3e5 (seed 8).
        within = max(1e-10, 1e-15 * np.linalg.cond(P))
        np.testing.assert_allclose(found[0], L, rtol=0, atol=within * max(1, np.abs(L).max()))
        np.testing.assert_allclose(found[1], P, rtol=0, atol=within * np.abs(P).max())
        C, D = rng.normal(size=(2, n)), rng.normal(size=(2, m))
        system = control.ss(A, B, C, D)
        for ours, theirs in (("zoh", "zoh"), ("tustin", "bilinear"), ("foh", "foh")):
            wanted = control.sample_system(system, 0.07, theirs)
            found = discretize_linear(A, B, C, D, 0.07, ours)
            for a, k in zip(found, "ABCD"):
                np.testing.assert_allclose(a, getattr(wanted, k), rtol=1e-10, atol=1e-11)


def test_poles_in_recorded_code():
    A = np.array([[0.0, 1.0], [-4.0, -0.4]])
    system = StateSpace(A, np.eye(2, 1), np.eye(1, 2), np.zeros((1, 1)))

    def real(A):
        return StateSpace(A, system.B, system.C, system.D).poles().real

    np.testing.assert_allclose(arc.compile(real)(A), np.linalg.eigvals(A).real, atol=1e-14)
    assert modes(system)[0].frequency == pytest.approx(2.0)


ONE = np.eye(1)
MESSAGES = [
    (lambda: margins(StateSpace(-np.eye(2), np.eye(2), np.eye(2), 0 * np.eye(2))), "loop.part"),
    (lambda: frequency_response("lag", [1.0]), "must be a StateSpace, a TransferFunction"),
    (lambda: frequency_response(StateSpace(ONE, ONE, ONE, ONE), []), "at least one frequency"),
    (lambda: balanced_truncation(StateSpace(-ONE, ONE, ONE, ONE), 2), "between 1 and the 1 states"),
    (lambda: StateSpace(ONE, ONE, ONE, ONE, 0.1).discretize(0.1), "in steps of dt = 0.1 s already"),
    (lambda: margins(StateSpace(-ONE, ONE, ONE, ONE, 0.1)), "pole at z = -1"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
