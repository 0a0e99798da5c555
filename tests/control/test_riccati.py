"""Riccati equations and regulators against SciPy, their derivatives, and as compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

import archimedes as arc
from archimedes.control import dlqe, dlqr, lqe, lqr, solve_care, solve_dare
from archimedes.observers import KalmanFilter
from tests.optional_packages import import_or_skip

SOLVERS = [(solve_care, linalg.solve_continuous_are), (solve_dare, linalg.solve_discrete_are)]


def random_system(seed, cross=False):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 8), rng.integers(1, 4)
    A, B = rng.normal(size=(n, n)) / np.sqrt(n), rng.normal(size=(n, m))
    M, N = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    system = (A, B, M @ M.T + 0.1 * np.eye(n), N @ N.T + np.eye(m))
    return (*system, 0.1 * rng.normal(size=(n, m))) if cross else system


@pytest.mark.parametrize(("ours", "theirs"), SOLVERS)
def test_random_systems_against_scipy(ours, theirs):
    for seed in range(30):
        given = random_system(seed)
        wanted = theirs(*given)
        np.testing.assert_allclose(ours(*given), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    for seed in range(10):
        *given, cross = random_system(seed, cross=True)
        wanted = theirs(*given, s=cross)
        found = ours(*given, cross)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def small_system():
    A = np.array([[0.3, 1.0], [-0.5, 1.2]])
    return A, np.array([[0.0], [1.0]]), np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[0.5]])


@pytest.mark.parametrize(("ours", "theirs"), SOLVERS)
def test_compiled_on_all_backends(ours, theirs):
    given = small_system()
    fast, slow = (arc.compile(ours, backend=b)(*given) for b in ("llvm", "interpreter"))
    np.testing.assert_array_equal(fast, slow)
    wanted = theirs(*given)
    np.testing.assert_allclose(fast, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    many = arc.vmap(ours, in_axes=(0, None, None, None))(
        np.stack([given[0], 0.5 * given[0]]), *given[1:]
    )
    np.testing.assert_array_equal(many[0], fast)


def implicit_slope(discrete, A, B, Q, R, X, dA):
    """Derivative of X along dA: a Lyapunov equation of the closed loop."""
    if discrete:
        F = A - B @ np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A)
        right = dA.T @ X @ F
        return linalg.solve_discrete_lyapunov(F.T, right + right.T)
    F = A - B @ np.linalg.solve(R, B.T @ X)
    right = dA.T @ X
    return linalg.solve_continuous_lyapunov(F.T, -(right + right.T))


@pytest.mark.parametrize("discrete", [False, True])
def test_derivatives_against_the_implicit_formula(discrete):
    ours, theirs = SOLVERS[discrete]
    A, B, Q, R = small_system()
    dA = np.random.default_rng(1).normal(size=A.shape)
    wanted = implicit_slope(discrete, A, B, Q, R, theirs(A, B, Q, R), dA)
    forward = arc.jac(lambda s: ours(A + s * dA, B, Q, R))(0.0)
    np.testing.assert_allclose(forward, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    trace = arc.grad(lambda A: np.trace(ours(A, B, Q, R)))(A)
    assert np.sum(trace * dA) == pytest.approx(np.trace(wanted), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("discrete", [False, True])
def test_random_systems_compiled_with_derivatives(discrete):
    """Gains of 20 random systems by one compiled function: python-control, and their slopes."""
    control = import_or_skip("control")
    theirs = control.dlqr if discrete else control.lqr
    made = arc.compile(dlqr if discrete else lqr, backend="llvm")
    solve = solve_dare if discrete else solve_care
    slope = arc.compile(
        lambda A, dA, B, Q, R: arc.jvp(lambda A: solve(A, B, Q, R))(A, dA), backend="llvm"
    )
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, dA, M = (rng.normal(size=(4, 4)) / 2.0 for _ in range(3))
        B, N = rng.normal(size=(4, 2)), rng.normal(size=(2, 2))
        Q, R = M @ M.T + 0.1 * np.eye(4), N @ N.T + np.eye(2)
        K, X, _ = theirs(A, B, Q, R)
        found = made(A, B, Q, R)
        np.testing.assert_allclose(found[0], K, rtol=0, atol=1e-10 * max(1.0, np.abs(K).max()))
        np.testing.assert_allclose(found[1], X, rtol=0, atol=1e-10 * np.abs(X).max())
        wanted = implicit_slope(discrete, A, B, Q, R, X, dA)
        size = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(slope(A, dA, B, Q, R), wanted, rtol=0, atol=1e-9 * size)


def test_second_derivatives_of_a_closed_form():
    """b = q = r = 1: X = a + sqrt(a^2 + 1), so that its second derivative is (a^2 + 1)^-1.5."""

    def cost(a):
        one = np.eye(1)
        return solve_care(a * one, one, one, one)[0, 0]

    assert arc.grad(cost)(1.0) == pytest.approx(1 + 0.5**0.5, rel=1e-12)
    assert arc.grad(arc.grad(cost))(1.0) == pytest.approx(2.0**-1.5, rel=1e-10)


def test_regulators():
    A, B, Q, R, N = random_system(9, cross=True)
    K, X = lqr(A, B, Q, R, N)
    np.testing.assert_allclose(K, np.linalg.solve(R, B.T @ X + N.T), atol=1e-12)
    assert np.linalg.eigvals(A - B @ K).real.max() < 0
    K, X = dlqr(A, B, Q, R, N)
    assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1
    F = A - B @ K
    cost = Q + K.T @ R @ K - N @ K - (N @ K).T
    np.testing.assert_allclose(X, linalg.solve_discrete_lyapunov(F.T, cost), rtol=1e-9)


def test_estimators():
    A, C, Q, R = random_system(10)
    A, C = A.T, C.T
    L, P = lqe(A, C, Q, R)
    np.testing.assert_allclose(P, linalg.solve_continuous_are(A.T, C.T, Q, R), rtol=1e-9)
    np.testing.assert_allclose(L, P @ C.T @ np.linalg.inv(R), rtol=1e-9)
    L, P = dlqe(A, C, Q, R)
    kf = KalmanFilter(A, C, Q, R)
    after = np.eye(len(A))
    for _ in range(200):
        before = kf.predict(0.0, np.zeros(len(A)), after)
        after = kf.correct(0.0, before.x, np.zeros(len(C)), before.P).P
    np.testing.assert_allclose(P, before.P, rtol=1e-9)
    np.testing.assert_allclose(after, P - L @ C @ P, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), SOLVERS)
def test_unstable_modes_that_cost_nothing_are_stabilised(ours, theirs):
    """Without cost, 0 solves the equation and does not stabilise."""
    A, B, R = np.diag([2.0, 0.5, -3.0]) + 0.1, np.array([[1.0], [0.5], [2.0]]), np.eye(1)
    for Q in (np.zeros((3, 3)), np.diag([0.0, 1.0, 0.0])):
        np.testing.assert_allclose(ours(A, B, Q, R), theirs(A, B, Q, R), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("b", [1e-3, 1.0, 1e6])
def test_modes_on_the_limit_of_stability_that_cost_nothing(b):
    """X = 0 leaves them there: no solution stabilises them."""
    one = np.eye(1)
    for solve, a in ((solve_care, 0.0), (solve_dare, 1.0), (solve_dare, -1.0)):
        with pytest.raises(np.linalg.LinAlgError, match="on the limit of stability, and Q gives"):
            solve(a * one, b * one, 0.0 * one, one)
        assert np.isnan(arc.compile(solve)(a * one, b * one, 0.0 * one, one)).all()
    # However little they cost, there is one: X = sqrt(q r) / b.
    for q in (1e-3, 1e-20, 1e-200):
        X = solve_care(0.0 * one, b * one, q * one, one)
        np.testing.assert_allclose(X, np.sqrt(q) / b, rtol=1e-14)


def test_modes_that_cannot_be_stabilised_are_refused():
    with pytest.raises(np.linalg.LinAlgError, match="B must reach every mode"):
        solve_dare([[2.0]], [[0.0]], [[1.0]], [[1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="B must reach every mode"):
        solve_care([[1.0]], [[0.0]], [[1.0]], [[1.0]])
    with pytest.raises(np.linalg.LinAlgError, match=r"C must see every mode.* not see .* at 2"):
        dlqe([[2.0]], [[0.0]], [[1.0]], [[1.0]])
    turning = np.array([[0.1, 2.0, 0.0], [-2.0, 0.1, 0.0], [0.0, 0.0, -1.0]])
    with pytest.raises(np.linalg.LinAlgError, match=r"not reach the one at 0.1 \+- 2j: add"):
        lqr(turning, np.array([[0.0], [0.0], [1.0]]), np.eye(3), np.eye(1))
    with pytest.raises(np.linalg.LinAlgError, match=r"mode of A at 1 is on the limit .* no weight"):
        dlqr(np.diag([0.0, 1.0]), np.ones((2, 1)), np.diag([1.0, 0.0]), np.eye(1))
    one = np.eye(1)
    recorded = arc.compile(lambda a, b: solve_dare(a, b, one, one))
    assert np.isnan(recorded(2.0 * one, 0.0 * one)).all()
    recorded = arc.compile(lambda a, b: solve_care(a, b, one, one))
    assert np.isnan(recorded(one, 0.0 * one)).all()


def test_a_gain_as_c(tmp_path):
    B, Q, R = np.array([[0.0], [0.1]]), np.eye(2), np.eye(1)

    def gain(stiffness):
        A = np.array([[1.0, 0.1], [-0.1 * stiffness, 1.0]])
        return dlqr(A, B, Q, R)[0]

    project = arc.codegen(gain, (1.0,), output_dir=tmp_path, return_names=["K"])
    assert project.verify(samples=4).outputs == 2


EYE = np.eye(2)
INFINITE = np.full((2, 2), np.inf)
MESSAGES = [
    (lambda: lqr(np.ones((2, 3)), EYE, EYE, EYE), r"A must be a matrix of shape \(2, 2\)"),
    (lambda: lqr(EYE, np.ones((3, 1)), EYE, EYE), r"B must be a matrix of shape \(2, n\)"),
    (lambda: dlqr(EYE, EYE, np.eye(3), EYE), r"Q must be a matrix of shape \(2, 2\)"),
    (lambda: dlqr(EYE, EYE, EYE, 0 * EYE), "R must be positive definite"),
    (lambda: lqr(EYE, EYE, np.array([[1.0, 2.0], [0.0, 1.0]]), EYE), "Q must be symmetric"),
    (lambda: lqr(EYE, EYE, EYE, EYE, np.ones((2, 1))), r"N must be a matrix of shape \(2, 2\)"),
    (lambda: lqe(EYE, EYE, -EYE, EYE), "Q must be positive semidefinite"),
    (lambda: dlqe(EYE, np.ones((1, 3)), EYE, EYE), r"C must be a matrix of shape \(n, 2\)"),
    (lambda: dlqr(EYE, EYE, np.nan * EYE, EYE), "Q must be finite"),
    (lambda: dlqr("A", EYE, EYE, EYE), "A must be an array of real numbers"),
    (lambda: lqr(EYE, EYE, -EYE, EYE), "Q must be positive semidefinite.* is -1.* is a sign wrong"),
    (lambda: dlqr(EYE, EYE, np.diag([1.0, -1e-3]), EYE), "Q must be positive semidefinite"),
    (
        lambda: lqr(EYE, EYE, EYE, EYE, 5 * EYE),
        r"\[\[Q, N\], \[N.T, R\]\] must be positive",
    ),
    (lambda: lqr(np.nan * EYE, EYE, EYE, EYE), "A must be finite"),
    (lambda: lqe(EYE, INFINITE, EYE, EYE), "C must be finite"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
