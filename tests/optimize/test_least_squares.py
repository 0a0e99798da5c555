"""Least squares: classical problems against SciPy, bounds, trees, and how failures show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import archimedes as arc
from archimedes.optimize import LMResult, LMStatus, implicit, least_squares, lm_solve, root

TIMES = np.linspace(0.0, 4.0, 30)
DATA = 2.5 * np.exp(-1.3 * TIMES) + 0.4 + 0.02 * np.sin(37.0 * TIMES)


def rosenbrock(x):
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def powell_singular(x):
    a, b, c, d = x
    return np.stack([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


def beale(x):
    powers = np.array([1.0, 2.0, 3.0])
    return np.array([1.5, 2.25, 2.625]) - x[0] * (1 - x[1] ** powers)


def wood(x):
    a, b, c, d = x
    return np.stack(
        [
            10 * (b - a**2),
            1 - a,
            90**0.5 * (d - c**2),
            1 - c,
            10**0.5 * (b + d - 2),
            (b - d) / 10**0.5,
        ]
    )


def exponential(p):
    return p[0] * np.exp(-p[1] * TIMES) + p[2] - DATA


# More, Garbow, Hillstrom, ACM TOMS 7(1), 1981: functions 1, 13, 5, 14.
PROBLEMS = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0]),
    "rosenbrock from far": (rosenbrock, [-120.0, 100.0]),
    "beale": (beale, [1.0, 1.0]),
    "wood": (wood, [-3.0, -1.0, -3.0, -1.0]),
    "exponential": (exponential, [1.0, 1.0, 0.0]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_classical_problems_against_scipy(name):
    func, x0 = PROBLEMS[name]
    found = least_squares(func, x0)
    known = scipy_optimize.least_squares(
        func, x0, jac=arc.jac(func), method="lm", xtol=1e-13, ftol=1e-13, gtol=1e-13
    )
    assert isinstance(found, LMResult)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, known.x, rtol=1e-6)
    assert found.cost <= known.cost * (1 + 1e-12) + 1e-20
    np.testing.assert_allclose(found.jac, arc.jac(func)(found.x))
    assert found.history[-1]["cost"] == found.cost
    assert found.nfev >= found.njev == found.nit + 1


def test_a_singular_minimum_is_approached():
    found = lm_solve(powell_singular, np.array([3.0, -1.0, 0.0, 1.0]))
    assert found.success
    assert np.abs(found.x).max() < 1e-3
    assert found.cost < 1e-12


@pytest.mark.parametrize(
    ("func", "x0", "bounds"),
    [
        (rosenbrock, [-1.2, 1.0], ([-2.0, -2.0], [0.5, 2.0])),
        (rosenbrock, [2.0, 2.0], (1.5, None)),
        (exponential, [1.0, 0.5, 0.0], (0.0, [3.0, 1.0, 5.0])),
        (beale, [1.0, 0.1], (None, [2.5, 5.0])),
    ],
)
def test_bounds_against_scipy(func, x0, bounds):
    found = least_squares(func, x0, bounds=bounds)
    limits = [
        -np.inf if bounds[0] is None else bounds[0],
        np.inf if bounds[1] is None else bounds[1],
    ]
    known = scipy_optimize.least_squares(
        func, x0, bounds=limits, jac=arc.jac(func), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    assert found.success, found.message
    np.testing.assert_allclose(found.x, known.x, rtol=1e-5, atol=1e-7)
    assert found.cost <= known.cost * (1 + 1e-9)
    assert np.any(found.active_mask)
    assert np.all((np.asarray(limits[0]) <= found.x) & (found.x <= np.asarray(limits[1])))


def test_dependent_unknowns():
    func = lambda x: np.stack([x[0] + x[1] - 2.0, 2 * (x[0] + x[1]) - 4.5, x[0] + x[1]])
    found = lm_solve(func, [5.0, -1.0])
    known = scipy_optimize.least_squares(func, [5.0, -1.0])
    assert found.success
    assert found.cost == pytest.approx(known.cost, rel=1e-12)
    with pytest.raises(ValueError, match="rank is 1 of 2"):
        found.covariance()


def test_covariance_is_that_of_curve_fit():
    model = lambda t, a, b, c: a * np.exp(-b * t) + c
    _, known = scipy_optimize.curve_fit(model, TIMES, DATA, [1.0, 1.0, 0.0], ftol=1e-14, xtol=1e-14)
    found = least_squares(exponential, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(found.covariance(), known, rtol=1e-5)
    with pytest.raises(ValueError, match="2 residuals for 2 unknowns"):
        lm_solve(rosenbrock, [-1.2, 1.0]).covariance()


def test_structures_and_arguments():
    @arc.struct
    class Line:
        slope: float
        offset: float

    func = lambda p, t, y: {"misfit": p.slope * t + p.offset - y}
    found = least_squares(func, Line(0.0, 0.0), args=(TIMES, 3 * TIMES - 1))
    assert isinstance(found.x, Line)
    assert (float(found.x.slope), float(found.x.offset)) == pytest.approx((3.0, -1.0))


def test_a_start_without_value():
    found = lm_solve(lambda x: np.log(x), [-1.0])
    assert found.status is LMStatus.NON_FINITE
    assert not found.success
    assert "bounds=" in found.message


def test_steps_into_the_undefined_are_taken_back():
    found = lm_solve(lambda x: np.sqrt(x) - 0.01, [9.0])
    assert found.success
    assert found.x[0] == pytest.approx(1e-4, rel=1e-6)


def test_too_few_evaluations():
    found = lm_solve(rosenbrock, [-1.2, 1.0], max_nfev=3)
    assert found.status is LMStatus.MAX_FEVAL
    assert found.nfev == 3
    assert not found.success
    assert "max_nfev" in found.message


def test_a_wrong_derivative_is_a_stall_and_no_success():
    wrong = lambda x: x + 2 * (arc.stop_gradient(-x)) + 3.0  # value 3 - x, slope said to be 1
    found = lm_solve(wrong, [1.0])
    assert found.status is LMStatus.STALLED
    assert not found.success


def test_a_solution_at_the_start():
    found = lm_solve(rosenbrock, [1.0, 1.0])
    assert (found.status, found.nfev, found.nit) == (LMStatus.GTOL_REACHED, 1, 0)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: least_squares(rosenbrock, [0.0, 0.0], method="simplex"),
            ValueError,
            "jac=arc.jac",
        ),
        (
            lambda: least_squares(rosenbrock, [0.0, 0.0], foo=1),
            TypeError,
            "'foo' is not one of",
        ),
        (lambda: lm_solve(rosenbrock, [5.0, 0.0], bounds=(0.0, 1.0)), ValueError, r"x0\[0\] is 5"),
        (
            lambda: lm_solve(rosenbrock, [0.0, 0.0], bounds=(1.0, 0.0)),
            ValueError,
            "bounds: no number lies between",
        ),
        (
            lambda: lm_solve(rosenbrock, [0.0, 0.0], bounds=([0.0] * 3, 1.0)),
            ValueError,
            r"bounds\[0\] must hold numbers that broadcast to shape \(2,\)",
        ),
        (lambda: lm_solve(rosenbrock, []), ValueError, "no numbers"),
        (
            lambda: arc.compile(lambda x: lm_solve(rosenbrock, x).x)(np.zeros(2)),
            TypeError,
            r"arc\.root\(arc\.grad",
        ),
    ],
)
def test_errors_teach(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_the_other_names_are_here():
    assert root is arc.root
    assert implicit is arc.implicit
    assert arc.optimize.lm_solve is lm_solve


@pytest.mark.parametrize("empty", [lambda x: np.zeros(0), lambda x: None])
def test_no_residuals_are_an_error(empty):
    """Nothing to minimise is no success: the data were empty, or a return was forgotten."""
    with pytest.raises(ValueError, match=r"func returns no residuals.* return"):
        least_squares(empty, np.ones(2))


def test_residuals_that_are_rounding_are_a_success():
    """Scaled so that rounding alone is above every tolerance: the fit is exact all the same."""
    t = np.linspace(0.0, 1.0, 50)
    misfit = lambda p: 1e5 * (p[0] * np.exp(p[1] * t) - 2.0 * np.exp(-1.3 * t))
    found = least_squares(misfit, [1.0, 1.0], ftol=1e-12, xtol=1e-12, gtol=1e-12)
    assert found.success and found.status is LMStatus.ROUNDING_REACHED
    assert "is rounding" in found.message
    np.testing.assert_allclose(found.x, [2.0, -1.3], rtol=1e-13)


def test_the_options_and_results_of_other_solvers():
    from archimedes.optimize import Multipliers

    found = least_squares(rosenbrock, [-1.2, 1.0], options={"maxiter": 2, "tol": 1e-9})
    assert found.status is LMStatus.MAX_ITERATIONS and found.iterations == 2
    late = least_squares(rosenbrock, [-1.2, 1.0], options={"maxtime": 1e-9})
    assert late.status is LMStatus.TIME_LIMIT and "raise maxtime" in late.message
    held = least_squares(lambda x: x["a"] - 3.0, {"a": 1.0}, bounds=(None, {"a": 2.0}))
    assert isinstance(held.multipliers, Multipliers)
    assert held.multipliers.bounds["a"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="maxtime=-1 must be a positive number"):
        least_squares(rosenbrock, [-1.2, 1.0], options={"maxtime": -1})


def test_an_interrupt_returns_the_best_point():
    calls = []

    def slopes(x):
        calls.append(x)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return arc.jac(rosenbrock)(x)

    found = lm_solve(rosenbrock, np.array([-1.2, 1.0]), jac=slopes)
    assert found.status is LMStatus.INTERRUPTED and not found.success
    np.testing.assert_array_equal(found.x, calls[2])
    assert found.cost < 0.5 * np.sum(rosenbrock(calls[0]) ** 2)


def test_bounds_as_trees_with_nothing_in_places_and_equal_ones():
    start = {"a": 1.0, "b": np.zeros(2)}
    misfit = lambda x: np.concatenate([[x["a"] - 3.0], x["b"] - 5.0])
    found = least_squares(misfit, start, bounds=({"a": 1.0, "b": None}, {"a": 1.0, "b": 4.0}))
    assert found.success and found.x["a"] == 1.0
    np.testing.assert_array_equal(found.x["b"], [4.0, 4.0])


def test_a_closure_over_traced_values_is_named():
    with pytest.raises(TypeError, match="least_squares run on numbers"):
        arc.compile(lambda p: least_squares(lambda x: x - p, np.zeros(1)).x)(1.0)


def test_residuals_that_stay():
    """At 0 the Jacobian is zero and the cost is not: no step lowers it, and none should."""
    found = lm_solve(lambda p: p**2 + 1.0, [1.0])
    assert found.success, found.message
    np.testing.assert_allclose(found.x, 0.0, atol=1e-7)


def test_parameters_of_any_size():
    """A column that is small beside another one was taken for rounding, and converged at once."""
    found = lm_solve(lambda p: np.array([1e8 * p[0] - 1.0, 1e-8 * p[1] - 1.0]), [0.0, 0.0])
    assert found.success, found.message
    np.testing.assert_allclose(found.x, [1e-8, 1e8], rtol=1e-6)


def test_slopes_that_jump_are_passed():
    """A piecewise linear system, solved on another piece than that of the point where it stalls."""
    rng = np.random.default_rng(53)
    A, B, kinks = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    found = least_squares(lambda x: A @ x + 3.0 * B @ np.maximum(x - kinks, 0.0) - 1.0, np.zeros(3))
    assert found.success, found.message
    left = A @ found.x + 3.0 * B @ np.maximum(found.x - kinks, 0.0) - 1.0
    np.testing.assert_allclose(left, 0.0, atol=1e-12)


def test_a_stalled_fit_stays_where_it_was_best():
    """Where nothing helps behind the kink, the point before it is returned, and no success."""
    rng = np.random.default_rng(0)
    A, B, kinks = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    found = least_squares(lambda x: A @ x + 3.0 * B @ np.maximum(x - kinks, 0.0) - 1.0, np.zeros(3))
    assert not found.success and found.status == LMStatus.STALLED
    left = A @ found.x + 3.0 * B @ np.maximum(found.x - kinks, 0.0) - 1.0
    assert found.cost == pytest.approx(0.5 * left @ left, rel=1e-12) and found.cost < 1.5


def test_an_unknown_at_a_maximum_leaves_it():
    """The slope in x[0] vanishes at the start, where the cost is largest."""
    found = least_squares(lambda x: np.stack([x[0] ** 2 - 1.0, x[1] - 2.0]), [0.0, 0.0])
    assert found.success and found.cost < 1e-20
    np.testing.assert_allclose(np.abs(found.x), [1.0, 2.0], atol=1e-9)
    unused = least_squares(lambda x: np.stack([x[0] - 1.0, 2.0 * x[0] + 1.0]), [0.0, 5.0])
    assert unused.success and unused.x[1] == 5.0
