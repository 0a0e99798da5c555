"""Problems on the edge: no solution, flat costs, odd limits; true statuses, errors that teach."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import archimedes as arc
from archimedes.optimize import Multipliers, Status, fixed_point, minimize, qpsol, root, solve_qp

EYE, NONE = np.eye(2), np.zeros(2)

# ---- the native solver of nonlinear programs ----------------------------------------------

ENDS = {
    "a pole": (lambda x: np.log(x[0]), np.ones(1), {}, Status.STALLED),
    "a slope": (lambda x: np.sum(x), NONE, {}, Status.UNBOUNDED),
    "a hill": (lambda x: -(x[0] ** 2), np.ones(1), {}, Status.UNBOUNDED),
    "no real root": (
        lambda x: np.sum((x - 1.5) ** 2),
        np.ones(1),
        {"constr": lambda x: x[0] ** 2 + 1.0},
        Status.INFEASIBLE,
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_native_solver_says_how_it_ended(name):
    """Each was called solved, or a limit of iterations, before."""
    obj, x0, more, status = ENDS[name]
    found = minimize(obj, x0, method="sqp", **more)
    assert found.status is status, found.message
    assert not found.success


def test_far_bounds_are_reached():
    """A cost without curvature in one direction, bounded a million away."""
    found = minimize(lambda x: x[0] + x[1] ** 2, np.ones(2), method="sqp", bounds=(-1e6, None))
    assert found.success, found.message
    np.testing.assert_allclose(found.x, [-1e6, 0.0], atol=1e-6)


# ---- whatever the solver -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ipopt", "ipm", "sqp", "SLSQP"])
def test_an_interrupt_in_the_callback_returns_the_best_point(method):
    def stop(iteration):
        raise KeyboardInterrupt

    found = minimize(lambda x: np.sum((x - 1.5) ** 2), NONE, method=method, callback=stop)
    assert found.status is Status.INTERRUPTED
    assert np.all(np.isfinite(found.x))


def test_options_that_scipy_does_not_know_are_an_error():
    with pytest.raises(ValueError, match=r"Unknown solver options: maxitre.*SLSQP"):
        minimize(lambda x: np.sum(x**2), np.ones(2), method="SLSQP", options={"maxitre": 3})


def test_a_minimum_of_scipy_is_one_to_the_tolerance():
    """f is flat there: its changes must be much smaller than what x may be off."""
    found = minimize(
        lambda x: np.sum((x - 3.0) ** 2),
        np.array([1.0, 2.0]),
        method="SLSQP",
        bounds=([0.0, 0.0], None),
    )
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.x, 3.0, atol=1e-6)


@pytest.mark.parametrize("method", ["ipm", "ipopt", "sqp"])
def test_structs_of_bounds_with_nothing_in_places(method):
    @arc.struct
    class Pair:
        a: float
        b: np.ndarray

    start = Pair(1.0, np.array([1.0, 2.0]))
    cost = lambda x: (x.a - 1.5) ** 2 + np.sum((x.b - 3.0) ** 2)
    bounds = (Pair(None, np.zeros(2)), Pair(1.2, None))
    found = minimize(cost, start, method=method, bounds=bounds)
    assert found.x.a == pytest.approx(1.2, abs=1e-6)
    np.testing.assert_allclose(found.x.b, 3.0, atol=1e-6)
    assert found.multipliers.bounds.a == pytest.approx(0.6, abs=1e-5)
    held = minimize(cost, start, method=method, bounds=(start, start))
    assert held.success and held.x.a == 1.0
    with pytest.raises(ValueError, match=r"multipliers.bounds must have the structure"):
        minimize(cost, start, method=method, multipliers=Multipliers(None, np.zeros(7)))


# ---- quadratic programs ----------------------------------------------------------------------


def transport(n):
    """A linear program with many solutions: all weight on any unknown."""
    return np.zeros((n, n)), -np.ones(n), np.ones((1, n)), -np.inf, 1.0, 0.0, np.inf


@pytest.mark.long_cases("20")
@pytest.mark.parametrize("n", [2, 5, 20])
def test_costs_without_curvature(n):
    """Pivots that rounding has taken are no reason to give up."""
    found = solve_qp(*transport(n))
    assert found.status == Status.SOLVED
    assert found.fun == pytest.approx(-1.0, abs=1e-6)
    point = solve_qp(np.zeros((n, n)), np.zeros(n), np.ones((1, n)), 1.0, 1.0)
    assert point.status == Status.SOLVED and np.sum(point.x) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_random_linear_programs_against_scipy(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    A, c = rng.normal(size=(m, n)), rng.normal(size=n)
    high = A @ rng.uniform(0.0, 1.0, size=n) + rng.uniform(0.0, 0.5, size=m)
    found = solve_qp(np.zeros((n, n)), c, A, -np.inf, high, 0.0, 2.0)
    wanted = linprog(c, A, high, bounds=(0.0, 2.0))
    assert found.status == Status.SOLVED
    assert found.fun == pytest.approx(wanted.fun, abs=1e-6)


def test_limits_that_are_not_numbers_in_recorded_code():
    solved = arc.compile(lambda lower: solve_qp(EYE, NONE, lower=lower).status)
    assert solved(np.array([np.nan, 0.0])) == Status.NOT_FINITE
    assert solved(np.array([np.inf, 0.0])) == Status.INFEASIBLE
    assert solved(np.array([-np.inf, 0.0])) == Status.SOLVED


square = lambda x: np.sum((x - 1.0) ** 2)
MESSAGES = [
    (lambda: solve_qp(EYE, NONE, lower=[np.nan, 0.0]), r"lower limit nan .* of \[0\]"),
    (lambda: solve_qp(EYE, NONE, lower=np.inf), r"lower and upper: no number lies between .*inf"),
    (lambda: solve_qp(EYE, NONE, low=0.0), "there is no A; limits of x itself are lower"),
    (lambda: qpsol(square, lambda x: x[0] * x[1], NONE), "constr is not linear.* use minimize"),
    (
        lambda: qpsol(square, lambda x: x, NONE, lba=2.0, uba=1.0),
        "lba and uba: no number lies",
    ),
    (lambda: qpsol(square, None, NONE * np.nan), r"x0\[0\] is nan: a start must be finite"),
    (lambda: root(lambda x: x[:1], NONE), "1 equations for 2 unknowns.*least_squares"),
    (lambda: root(lambda x: x - 1.0, np.nan), "x0 is nan: a start must be finite"),
    (lambda: root(lambda x: x, "a"), "x0 must be a tree of numbers"),
    (lambda: root(lambda x: x, 1.0, bounds=(3.0, 0.0)), "bounds: lower limit above upper limit"),
    (lambda: fixed_point(lambda x: x[:1], NONE), r"must return what x0 is.* \[\(1,\)\]"),
    (lambda: fixed_point(lambda x: np.sum(x), NONE), "must return what x0 is"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_where_a_function_is_not_defined():
    with pytest.raises(arc.ConvergenceError, match="nan or infinite there: start where it is"):
        root(lambda x: np.log(x) - 1.0, -1.0)
    with pytest.raises(TypeError, match="guess must be the QPSolution"):
        solve_qp(EYE, NONE, guess=np.zeros(2))


# ---- derivatives of solutions ----------------------------------------------------------------


@pytest.mark.long_cases("None")
@pytest.mark.parametrize("limit", [None, 0.9])
def test_second_derivatives_of_solutions(limit):
    """They go through the solution, not past it: against differences of first derivatives."""
    solver = arc.nlp_solver(
        lambda x, k: k * np.sum((x - 1.0) ** 2) + np.sum(x**4),
        lambda x, k: x[0] * x[1] + k * x[0],
        method="sqp",
    )
    best = lambda k: np.sum(solver(np.zeros(2), k, constr_bounds=(None, limit)) ** 3)
    slope, step = arc.grad(best), 1e-4
    wanted = (slope(1.3 + step) - slope(1.3 - step)) / (2.0 * step)
    assert arc.hess(best)(1.3) == pytest.approx(wanted, rel=1e-5)
    assert arc.grad(arc.grad(best))(1.3) == pytest.approx(wanted, rel=1e-5)


def test_second_derivatives_of_quadratic_programs():
    """x = -q / p without limits; on a limit the multiplier has them."""

    def least(p):
        return solve_qp(p * np.eye(1), np.ones(1), lower=-9.0).fun

    assert arc.grad(arc.grad(least))(2.0) == pytest.approx(-1.0 / 2.0**3, rel=1e-9)


def test_derivatives_where_constraints_repeat_each_other():
    """Multipliers are not unique there, x is."""
    solver = arc.nlp_solver(
        lambda x, p: np.sum((x - p) ** 2),
        lambda x, p: np.stack([x[0] + x[1], 2.0 * (x[0] + x[1])]),
        method="sqp",
    )
    limits = (None, np.array([1.0, 2.0]))
    slope = arc.jac(lambda p: solver(np.zeros(2), p, constr_bounds=limits))
    np.testing.assert_allclose(
        slope(np.array([2.0, 1.5])), [[0.5, -0.5], [-0.5, 0.5]], rtol=0.0, atol=1e-9
    )


def test_a_list_of_pairs_is_not_taken_for_limits():
    """SciPy's way: with two unknowns it would silently mean something else."""
    with pytest.raises(ValueError, match=r"not a list of pairs.*bounds=\(\[0.0, 1.0\]"):
        minimize(square, np.array([0.2, 1.5]), bounds=[(0.0, 0.5), (1.0, 2.0)])
