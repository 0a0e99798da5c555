"""Problems without a solution, by every method: called what they are, in few iterations."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.optimize import Status, minimize

METHODS = ("ipm", "sqp", "ipopt", "SLSQP")
RNG = np.random.default_rng(0)
ROWS, RIGHT = RNG.normal(size=(8, 5)), RNG.normal(size=8)


def square(x):
    return np.sum(x**2)


def rows(*functions):
    return lambda x: np.stack([f(x) for f in functions])


def problem(obj, x0, constr=None, low=0.0, high=0.0, bounds=None):
    more = {} if constr is None else {"constr": constr, "constr_bounds": (low, high)}
    return {"obj": obj, "x0": np.array(x0, dtype=float), "bounds": bounds, **more}


total = lambda x: x[0] + x[1]
INFEASIBLE = {
    "no real root": problem(square, [1, 1], lambda x: x[0] ** 2 + 1.0),
    "planes": problem(square, [1, 1], rows(total, total), [0, 1], [0, 1]),
    "half-planes": problem(square, [1, 1], rows(total, total), [None, 1], [0, None]),
    "bounds": problem(square, [0.5, 0.5], total, 3.0, None, (0.0, 1.0)),
    "equations and bounds": problem(square, [0.5, 0.5], total, 3.0, 3.0, (0.0, 1.0)),
    "discs": problem(
        *(total, [0.5, 0.5], rows(square, lambda x: (x[0] - 5) ** 2 + x[1] ** 2), None, 1.0)
    ),
    "a sine": problem(square, [0.5], lambda x: np.sin(x[0]), 2.0, 2.0),
    "a far limit": problem(square, [0.5], lambda x: np.exp(x[0]), None, -1.0),
    "too many": problem(
        *(square, [0.5, 2], rows(lambda x: x[0] - 1, lambda x: x[1] - 1, lambda x: total(x) - 3))
    ),
    "a cycle": problem(
        *(np.sum, [1, 1, 1]),
        *(rows(lambda x: x[0] - x[1], lambda x: x[1] - x[2], lambda x: x[2] - x[0]), 1.0, None),
    ),
    "small numbers": problem(square, [1, 1], lambda x: 1e-3 * (x[0] ** 2 + 1.0)),
    "random planes": problem(
        *(square, np.zeros(5), lambda x: np.concatenate([ROWS @ x, ROWS @ x])),
        np.concatenate([np.full(8, -np.inf), RIGHT + 1.0]),
        np.concatenate([RIGHT, np.full(8, np.inf)]),
    ),
    # Byrd, Curtis, Nocedal, SIAM J. Optim. 20(5), 2010, section 5: "isolated" and "unique".
    "isolated": problem(
        *(total, [3, 2]),
        rows(
            lambda x: -(x[0] ** 2) + x[1] - 1,
            lambda x: -(x[0] ** 2) - x[1] - 1,
            lambda x: x[0] - x[1] ** 2 - 1,
            lambda x: -x[0] - x[1] ** 2 - 1,
        ),
        *(0.0, None),
    ),
    "unique": problem(
        *(total, [3, 2], rows(lambda x: x[1] - x[0] ** 2 - 1, lambda x: 0.3 * (1 - np.exp(x[1])))),
        *(0.0, None),
    ),
}
UNBOUNDED = {
    "a slope": problem(lambda x: x[0], [1]),
    "a gentle slope": problem(lambda x: 1e-6 * x[0], [1]),
    "flat and curved": problem(lambda x: x[0] + x[1] ** 2, [1, 1]),
    "flat and steep": problem(lambda x: x[0] + 1e4 * x[1] ** 2, [1, 1]),
    "curved, then flat": problem(
        lambda x: np.where(x[0] > 0, x[0] ** 2, 0.0) + x[0] + x[1] ** 2, [5, 1]
    ),
    "between planes": problem(lambda x: -total(x), [1, 1], lambda x: x[0] - x[1], -1.0, 1.0),
    "along a line": problem(lambda x: x[0], [1, 1], lambda x: x[0] - x[1]),
    "a saddle": problem(lambda x: x[0] ** 2 - x[1] ** 2, [1, 0.5]),
    "an exponential": problem(lambda x: -np.exp(x[0]), [1]),
    "a valley": problem(lambda x: (x[1] - x[0] ** 2) ** 2 + x[2], [1, 2, 3]),
    "a softened corner": problem(
        lambda x: np.log1p(np.exp(x[0])) + 0.5 * x[1] ** 2 - x[1] + 2 * x[0], [5, 1]
    ),
}
#: Minima that a wrong verdict would be easy for: f falls without end elsewhere, starts at the
#: centre of a sphere, equations that repeat each other, a point that IPOPT calls infeasible
#: (Waechter, Biegler, Math. Program. 88, 2000), limits without room, unknowns of any size.
SOLVED = {
    "a cubic": (problem(lambda x: x[0] ** 3 - 3 * x[0], [30]), -2.0),
    "far away": (problem(lambda x: -x[0] + 1e-9 * x[0] ** 2, [0]), -2.5e8),
    "a sphere": (problem(total, [0, 0], lambda x: square(x) - 1), -np.sqrt(2)),
    "repeated": (
        problem(
            *(square, [0.5, 2]),
            rows(lambda x: x[0] - 1, lambda x: x[1] - 1, lambda x: total(x) - 2),
        ),
        2.0,
    ),
    "between": (
        problem(
            *(lambda x: x[0], [-2, 3, 1]),
            rows(lambda x: x[0] ** 2 - x[1] - 1, lambda x: x[0] - x[2] - 0.5),
            bounds=([None, 0, 0], None),
        ),
        1.0,
    ),
    "no room": (
        problem(
            *(lambda x: (x[0] - 1) ** 2 + (x[1] - 1) ** 2, [0.3, 0.2], lambda x: x[0] * x[1]),
            *(None, 0.0, (0.0, None)),
        ),
        1.0,
    ),
    "sizes": (
        problem(lambda x: (1e8 * x[0] - 1) ** 2 + (1e-8 * x[1] - 1) ** 2 + 1.0, [0, 0]),
        1.0,
    ),
}
#: What is quick enough for every run: a few by each method.
QUICK = {("ipm", name) for name in (*INFEASIBLE, *UNBOUNDED)}
QUICK |= {("sqp", "no real root"), ("sqp", "flat and curved"), ("ipopt", "between")}


def cases(names, methods=METHODS):
    pairs = [(method, name) for name in names for method in methods]
    marks = [() if pair in QUICK else (pytest.mark.long,) for pair in pairs]
    return [pytest.param(*pair, marks=mark) for pair, mark in zip(pairs, marks)]


def solved(method, given, request):
    if method == "ipm":
        request.getfixturevalue("without_ipopt")
    return minimize(**given, method=method)


@pytest.mark.parametrize(("method", "name"), cases(INFEASIBLE))
def test_infeasible(method, name, request):
    """Without IPOPT the interior-point method called most of these stalled, SQP all."""
    found = solved(method, INFEASIBLE[name], request)
    assert found.status is Status.INFEASIBLE, found.message
    assert found.violation > 1e-5
    assert "farthest off is" in found.message


@pytest.mark.parametrize(("method", "name"), cases(UNBOUNDED, METHODS[:3]))
def test_unbounded(method, name, request):
    """It took up to 3,000 iterations, or the limit was the answer."""
    found = solved(method, UNBOUNDED[name], request)
    assert found.status is Status.UNBOUNDED, found.message
    assert found.iterations <= 100


@pytest.mark.parametrize(("method", "name"), cases(SOLVED, METHODS[:3]))
def test_solved_all_the_same(method, name, request):
    given, best = SOLVED[name]
    found = solved(method, given, request)
    assert found.success, found.message
    assert found.violation < 1e-6
    assert found.fun == pytest.approx(best, rel=1e-6)


def test_a_pole_is_no_minimum():
    """The slope of sqrt is infinite at 0, where a step must be tiny: it was called solved."""
    found = minimize(lambda x: np.sqrt(x[0]) + x[0] ** 2, np.ones(1), method="sqp")
    assert not found.success


def test_huge_numbers_are_no_error():
    """A step of 1e193 made Python raise OverflowError."""
    found = minimize(lambda x: np.log1p(np.exp(x)) + 2.0 * x, 5.0, method="ipm")
    assert found.status is Status.UNBOUNDED


def test_a_point_that_is_none_is_not_returned():
    """SciPy's methods return what they tried last, here nan."""
    found = minimize(lambda x: -np.exp(x[0]), np.ones(1), method="SLSQP")
    assert not found.success
    assert np.isfinite(found.x[0])


def test_the_best_point_may_be_the_start():
    """SciPy's methods tell of no point before their first step, which may lead far off."""
    rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    found = minimize(rosenbrock, [-1.2, 1.0], method="SLSQP", options={"maxtime": 1e-9})
    assert found.status is Status.TIME_LIMIT
    assert found.fun <= 24.2


def test_objectives_without_unknowns_are_refused():
    with pytest.raises(ValueError, match="depends on the unknowns x0"):
        minimize(lambda x: 3, np.ones(2))


def test_a_guess_on_top_of_a_hill_is_no_minimum():
    """All slopes are zero there: it was solved after 0 iterations."""
    hill = minimize(lambda x: np.sum(x**4) - np.sum(x**2), np.zeros(2), method="ipm")
    assert hill.success and hill.fun == pytest.approx(-0.5)
    falls = minimize(lambda x: -np.sum(x**2), np.zeros(2), method="ipm")
    assert falls.status is Status.UNBOUNDED
    flat = minimize(lambda x: 0.0 * x[0], [1.0], constr=lambda x: x[0] - 1.0, method="ipm")
    assert flat.success and flat.iterations == 0


def test_limits_of_the_user_are_respected():
    """Nobody looks for a proof after the last iteration that was asked for."""
    found = minimize(**INFEASIBLE["isolated"], method="sqp", options={"maxiter": 2})
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations == 2
