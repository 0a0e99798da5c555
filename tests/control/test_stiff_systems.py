"""Stiff systems with states in all units: Lyapunov and Riccati equations against 60 digits.

Rates are up to 1e6 apart, units 1e-6 to 1e6. What has a solution is solved; what is refused has
none.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import (
    StateSpace,
    balanced_truncation,
    discretize_linear,
    dlqe,
    dlqr,
    frequency_response,
    gramians,
    lqe,
    lqr,
    solve_care,
    solve_dare,
    solve_dlyap,
    solve_lyap,
)
from tests.control.many_digits import (
    exact_lyapunov,
    exact_riccati,
    scaled_error,
    stiff_system,
)

#: A few systems at each run of the tests, 200 in the long one.
SOME = [range(6), pytest.param(range(6, 200), marks=pytest.mark.long)]


def in_steps(system, dt=None):
    """A, B and C of a system in steps of ``dt``, by default three times its fastest."""
    dt = 3.0 / np.abs(np.linalg.eigvals(system.A)).max() if dt is None else dt
    plain = StateSpace(system.A, system.B, system.C, np.zeros((len(system.C), system.B.shape[1])))
    return plain.discretize(dt)


@pytest.mark.parametrize("seeds", SOME)
def test_gramians(seeds):
    for seed in seeds:
        A, B, C, *_ = stiff_system(seed)
        reach, sight = gramians(StateSpace(A, B, C, np.zeros((len(C), B.shape[1]))))
        assert scaled_error(reach, exact_lyapunov(A, B @ B.T)) < 1e-10, seed
        assert scaled_error(sight, exact_lyapunov(A.T, C.T @ C)) < 1e-10, seed


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 100), marks=pytest.mark.long)])
def test_gramians_in_steps(seeds):
    for seed in seeds:
        system = in_steps(stiff_system(seed))
        reach, sight = gramians(system)
        A, B, C = system.A, system.B, system.C
        assert scaled_error(reach, exact_lyapunov(A, B @ B.T, discrete=True)) < 1e-9, seed
        assert scaled_error(sight, exact_lyapunov(A.T, C.T @ C, discrete=True)) < 1e-9, seed


def gain_error(found, exact, states, inputs):
    """The largest error of a gain relative to its largest entry, in units of inputs and states."""
    in_units = inputs[:, None] / states
    return np.abs((found - exact) * in_units).max() / np.abs(exact * in_units).max()


def check_errors(errors):
    """Nearly all to nine digits. Two of the 200 keep fewer, here as with SciPy's solvers.

    They have fast modes that their only input can hardly tell apart. SciPy's largest errors, with
    the same units, are 3e-6 in continuous time and 1.4e-5 in steps.
    """
    assert np.median(errors) < 1e-12
    assert np.quantile(errors, 0.95) < 1e-9
    assert np.max(errors) < 2e-5


@pytest.mark.parametrize("seeds", SOME)
def test_regulators_and_estimators(seeds):
    errors = []
    for seed in seeds:
        A, B, _, Q, R, _ = stiff_system(seed, unstable=0.4)
        X, K = exact_riccati(A, B, Q, R)
        states, inputs = np.sqrt(np.diag(X)), np.sqrt(np.diag(R))
        gain, cost = lqr(A, B, Q, R)
        # The estimator of the transposed system is its regulator.
        L, P = lqe(A.T, B.T, Q, R)
        errors += [scaled_error(cost, X), scaled_error(P, X)]
        errors += [gain_error(k, K, states, inputs) for k in (gain, L.T)]
    check_errors(errors)


@pytest.mark.parametrize("seeds", SOME)
def test_regulators_and_estimators_in_steps(seeds):
    errors = []
    for seed in seeds:
        system = stiff_system(seed, unstable=0.4)
        sampled, Q, R = in_steps(system), system.Q, system.R
        A, B = sampled.A, sampled.B
        X, K = exact_riccati(A, B, Q, R, discrete=True)
        gain, cost = dlqr(A, B, Q, R)
        _, P = dlqe(A.T, B.T, Q, R)
        errors += [scaled_error(cost, X), scaled_error(P, X)]
        inputs = np.sqrt(np.diag(R + B.T @ X @ B))
        errors.append(gain_error(gain, K, np.sqrt(np.diag(X)), inputs))
    check_errors(errors)


def unstabilizable(seed):
    """A system with a mode on the right that no input reaches, in all units, and that mode."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    pole = 10.0 ** rng.uniform(-3, 3)
    A = np.zeros((n, n))
    A[:-1, :-1] = np.diag(10.0 ** rng.uniform(-3, 3, n - 1) * rng.choice([-1.0, -1.0, 1.0], n - 1))
    A[:-1, -1], A[-1, -1] = pole * rng.normal(size=n - 1), pole
    B = np.vstack([rng.normal(size=(n - 1, m)), np.zeros((1, m))])
    # Half of them with exact zeros, half with what rounding leaves of a rotation.
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0] if seed % 2 else np.eye(n)[rng.permutation(n)]
    units = 10.0 ** rng.uniform(-6, 6, n)
    A, B = turn @ A @ turn.T * units[:, None] / units, turn @ B * units[:, None]
    return A, B, np.diag(rng.uniform(0.1, 1.0, n) / units**2), np.eye(m), pole


@pytest.mark.parametrize("seed", range(60))
def test_what_cannot_be_stabilised_is_refused_by_name(seed):
    A, B, Q, R, pole = unstabilizable(seed)
    with pytest.raises(np.linalg.LinAlgError, match="B must reach every mode") as caught:
        lqr(A, B, Q, R)
    named = float(str(caught.value).split("the one at ")[1].split(":")[0])
    assert named == pytest.approx(pole, rel=2e-3)
    with pytest.raises(np.linalg.LinAlgError, match="C must see every mode"):
        lqe(A.T, B.T, Q, R)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_not_stable_has_no_gramian(seed):
    system = stiff_system(seed)
    fast = np.abs(np.linalg.eigvals(system.A)).max()
    A = -system.A  # all modes on the right
    with pytest.raises(np.linalg.LinAlgError, match="must have negative real parts, and one is at"):
        solve_lyap(A, system.B @ system.B.T)
    with pytest.raises(np.linalg.LinAlgError, match="must be inside the unit circle, and one is"):
        solve_dlyap(np.eye(len(A)) + A / fast, system.B @ system.B.T)


def test_rates_further_apart():
    """1e12 and more, as long as the numbers say what they are."""
    for fast in (1e8, 1e12, 1e15):
        A = np.array([[-1.0, 1e-3], [0.0, -fast]])
        Q = np.array([[2.0, 0.5], [0.5, 3.0]])
        assert scaled_error(solve_lyap(A, Q), exact_lyapunov(A, Q)) < 1e-14
        B = np.eye(2)
        X, _ = exact_riccati(A, B, Q, B)
        assert scaled_error(solve_care(A, B, Q, B), X) < 1e-14


def test_weights_of_inputs_in_other_units():
    """A positive definite R is taken for one, whatever the units of the inputs."""
    units = np.array([1e-7, 1e7, 1.0])
    R = (np.full((3, 3), 0.99) + 0.01 * np.eye(3)) * np.outer(units, units)
    A, B = np.diag([1.0, -1.0, 2.0]), np.eye(3) * units
    K, X = lqr(A, B, np.eye(3), R)
    exact, gain = exact_riccati(A, B, np.eye(3), R)
    assert scaled_error(X, exact) < 1e-12
    assert gain_error(K, gain, np.ones(3), units) < 1e-12
    with pytest.raises(ValueError, match="R must be positive definite"):
        lqr(A, B, np.eye(3), R - 0.02 * np.diag(np.diag(R)))


@pytest.mark.parametrize("solve", [solve_care, solve_dare])
def test_recorded_code_gives_the_same(solve):
    system = stiff_system(4, unstable=0.4)  # five states
    A, B = system.A, system.B
    if solve is solve_dare:
        sampled = in_steps(system)
        A, B = sampled.A, sampled.B
    given = A, B, system.Q, system.R
    eager = solve(*given)
    slow, native = (arc.compile(solve, backend=b)(*given) for b in ("interpreter", "llvm"))
    np.testing.assert_array_equal(native, slow)
    assert scaled_error(native, eager) < 1e-10


@pytest.mark.parametrize("solve", [solve_lyap, solve_dlyap])
def test_recorded_lyapunov_equations_give_the_same(solve):
    system = stiff_system(4)
    A = system.A if solve is solve_lyap else in_steps(system).A
    Q = np.diag(system.units**2)
    eager = solve(A, Q)
    slow, native = (arc.compile(solve, backend=b)(A, Q) for b in ("interpreter", "llvm"))
    np.testing.assert_array_equal(native, slow)
    assert scaled_error(native, eager) < 1e-12
    assert np.isnan(arc.compile(solve)(-100.0 * A, Q)).all()


def test_derivatives():
    """Along a change of A: Lyapunov equations of the closed loop, in 60 digits."""
    A, B, _, Q, R, units = stiff_system(24, unstable=0.4)  # three states
    dA = np.random.default_rng(0).normal(size=A.shape) * units[:, None] / units
    X, K = exact_riccati(A, B, Q, R)
    right = dA.T @ X
    wanted = exact_lyapunov((A - B @ K).T, right + right.T)
    found = arc.jvp(lambda A: solve_care(A, B, Q, R))(A, dA)
    size = np.sqrt(np.diag(X))
    error, scale = ((found - wanted) / np.outer(size, size), wanted / np.outer(size, size))
    assert np.abs(error).max() < 1e-8 * np.abs(scale).max()
    slope = arc.grad(lambda A: np.trace(in_scale(solve_care(A, B, Q, R), size)))(A)
    assert np.sum(slope * dA) == pytest.approx(np.trace(in_scale(wanted, size)), rel=1e-7)
    stable = stiff_system(24).A
    P = exact_lyapunov(stable, B @ B.T)
    right = dA @ P
    wanted = exact_lyapunov(stable, right + right.T)
    found = arc.jvp(lambda A: solve_lyap(A, B @ B.T))(stable, dA)
    size = np.sqrt(np.diag(P))
    error, scale = in_scale(found - wanted, size), in_scale(wanted, size)
    assert np.abs(error).max() < 1e-9 * np.abs(scale).max()


def in_scale(M, size):
    return M / np.outer(size, size)


def test_balanced_truncation_does_not_depend_on_units():
    for seed in (5, 13, 16):
        A, B, C, *_, units = stiff_system(seed, decades=2.0)
        D = np.zeros((len(C), B.shape[1]))
        plain = StateSpace(A / units[:, None] * units, B / units[:, None], C * units, D)
        given = StateSpace(A, B, C, D)
        a, b = (balanced_truncation(s, min(2, len(A))) for s in (plain, given))
        np.testing.assert_allclose(b.hankel, a.hankel, rtol=0, atol=1e-11 * a.hankel[0])
        omega = np.logspace(-2, 2, 20)
        here, there = (frequency_response(s.system, omega).values for s in (a, b))
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-9 * np.abs(here).max())


@pytest.mark.parametrize("method", ["zoh", "foh"])
def test_discretisation_does_not_depend_on_units(method):
    """One state in micrometres, one in megametres: the others keep their digits."""
    rng = np.random.default_rng(0)
    recorded = arc.compile(lambda *given: discretize_linear(*given, 0.1, method))
    for units in ([1e6, 1.0, 1.0], [1.0, 1e-6, 1e6]):
        A, B, C = rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), rng.normal(size=(1, 3))
        T = np.array(units)[:, None]
        plain = StateSpace(A, B, C, np.zeros((1, 2))).discretize(0.1, method)
        given = StateSpace(A * T / T.T, B * T, C / T.T, np.zeros((1, 2)))
        found = given.discretize(0.1, method)
        np.testing.assert_allclose(found.A / T * T.T, plain.A, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.B / T, plain.B, rtol=0, atol=1e-14)
        native = recorded(given.A, given.B, given.C, given.D)[0]
        np.testing.assert_allclose(native / T * T.T, plain.A, rtol=0, atol=1e-14)
