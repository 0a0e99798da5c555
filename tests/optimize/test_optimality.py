"""The conditions of a minimum: checked in the user's units, whatever method found the point."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.optimize import Status, minimize, nlp_solver
from archimedes.optimize.problems.optimality import check_optimality
from archimedes.optimize.solvers.solver_table import SOLVERS
from tests.long_parameters import long_but

METHODS = tuple(solver.name for solver in SOLVERS.values())
QUICK = ("ipopt", "ipm", "sqp", "SLSQP", "BFGS", "Nelder-Mead")
EVERY = long_but(QUICK, METHODS)

#: Starts at which all slopes vanish and which are no minima: (objective, arguments, minimum).
STATIONARY = {
    "a maximum": (lambda x: np.cos(x[0]) + x[1] ** 2, {"x0": [0.0, 0.0]}, -1.0),
    "a hill": (lambda x: np.sum(x**4) - np.sum(x**2), {"x0": [0.0, 0.0]}, -0.5),
    "a saddle": (lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4, {"x0": [1.0, 0.0]}, -0.25),
    "a maximum in a box": (
        lambda x: -(x[0] ** 2) + x[1] ** 2,
        {"x0": [0.0, 1.0], "bounds": (-1.0, 2.0)},
        -4.0,
    ),
    "a maximum at a bound": (
        lambda x: -(x[0] ** 2) + x[1] ** 2,
        {"x0": [0.0, 1.0], "bounds": (0.0, 2.0)},
        -4.0,
    ),
    "a maximum on a circle": (
        lambda x: x[0],
        {"x0": [1.0, 0.0], "constr": lambda x: x[0] ** 2 + x[1] ** 2 - 1},
        -1.0,
    ),
}


def takes(method, more):
    """Return whether a method takes what is asked for."""
    able = SOLVERS[method.lower()]
    bounds, rows = more.get("bounds") is not None, more.get("constr") is not None
    return (able.bounds or not bounds) and (able.constraints or not rows)


def pairs(cases):
    """Return methods with the cases that they take: the quick ones by default."""
    given = [(m, name) for m in METHODS for name, (_, more, _) in cases.items() if takes(m, more)]
    long = pytest.mark.long
    return [pytest.param(*pair, marks=() if pair[0] in QUICK else long) for pair in given]


@pytest.mark.parametrize(("method", "name"), pairs(STATIONARY))
def test_a_start_without_slopes_is_no_minimum(method, name):
    """Four methods wrote "the conditions of a minimum hold" at a maximum."""
    obj, more, best = STATIONARY[name]
    found = minimize(obj, method=method, **more)
    if found.success or method in QUICK:
        assert found.success, found.message
        # "in a box": -1 is a minimum too, at the other bound.
        assert found.fun == pytest.approx(best, abs=1e-5) or found.fun == pytest.approx(-1.0)
    assert found.fun < obj(np.array(more["x0"])) - 0.1


@pytest.mark.parametrize("start", [1e4, 1e6])
@pytest.mark.parametrize("method", EVERY)
def test_tolerances_do_not_depend_on_the_start(method, start):
    """(x - 1)^4 was solved at 1.594 from 1e4, and unbounded for `sqp` from 1e6."""
    found = minimize(lambda x: (x[0] - 1.0) ** 4, [start], method=method)
    assert found.status is not Status.UNBOUNDED
    if found.success or method in QUICK:
        assert found.success, found.message
        assert found.x[0] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e16])
def test_a_failure_is_no_success(scale):
    """SLSQP called constraints incompatible at [5, 5]; the answer was called solved."""
    cost = lambda x: scale * ((x[0] - 3.0) ** 2 + (x[1] - 2.0) ** 2)
    found = minimize(cost, [5.0, 5.0], bounds=(0.0, 5.0), method="SLSQP")
    assert found.success, found.message
    np.testing.assert_allclose(found.x, [3.0, 2.0], atol=1e-6)


def checked(obj, x0, x, lam, bounds=(-np.inf, np.inf)):
    """Check the conditions at x of a problem with bounds that starts from x0."""
    solver, start = nlp_solver(obj), np.array(x0)
    limits = [np.full(start.size, bound) for bound in bounds]
    edges = (*limits, np.zeros(0), np.zeros(0))
    task = solver._task(solver.program(start, ()), start, (), edges)
    return check_optimality(task, np.array(x), np.zeros(0), np.array(lam))


@pytest.mark.parametrize(
    ("x", "lam", "status"),
    [
        ([0.0, 0.0], [0.0, 0.0], Status.SOLVED),
        ([1.0, 0.0], [-2.0, 0.0], Status.STALLED),
        ([0.5, 0.0], [-1.0, 0.0], Status.STALLED),
    ],
)
def test_signs_of_multipliers(x, lam, status):
    """Slopes that push against a limit from its wrong side balance nothing."""
    found = checked(lambda x: x[0] ** 2 + x[1] ** 2, [1.0, 0.0], x, lam, (0.0, 1.0))
    assert found.status is status, found


def test_unknowns_that_ran_away_are_no_minimum():
    """Far out slopes and curvature are zero to the last bit: f is lower at 0."""
    found = checked(lambda x: 2.0 - np.exp(-(x[0] ** 2)), [1.0], [100.0], [0.0])
    assert found.status is Status.UNBOUNDED, found


#: Unknowns that nothing depends on or that bounds hold, and constraints without unknowns:
#: arguments and the solution, or None where a constant constraint does not hold.
square = lambda x: (x[0] - 1.0) ** 2
both = lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2
IDLE = {
    "an unused unknown": (square, {"x0": [0.0, 5.0]}, [1.0, 5.0]),
    "an unused unknown beyond its bound": (
        *(square, {"x0": [0.0, 5.0], "bounds": (-1.0, [9.0, 3.0])}, [1.0, 3.0]),
    ),
    "a held unknown": (both, {"x0": [0.0, 0.0], "bounds": ([0.0, 3.0], [None, 3.0])}, [1.0, 3.0]),
    "all are held": (both, {"x0": [0.0, 0.0], "bounds": ([0.0, 3.0], [0.0, 3.0])}, [0.0, 3.0]),
    "a constant row": (
        square,
        {
            "x0": [0.0],
            "constr": lambda x: np.array([x[0], 3.0]),
            "constr_bounds": (2.0, [None, 4.0]),
        },
        [2.0],
    ),
    "a row without limits": (
        square,
        {
            "x0": [0.0],
            "constr": lambda x: np.array([x[0], x[0] ** 2]),
            "constr_bounds": ([2.0, None], [None, None]),
        },
        [2.0],
    ),
    "a row of held unknowns": (
        both,
        {"x0": [0.0, 1.0], "constr": lambda x: x[0] ** 2 - 4.0, "bounds": ([2, None], [2, None])},
        [2.0, 2.0],
    ),
    "a constant row that does not hold": (
        square,
        {
            "x0": [2.2],
            "constr": lambda x: np.array([x[0], 3.0]),
            "constr_bounds": (2.0, [None, 2.5]),
        },
        None,
    ),
}


@pytest.mark.parametrize(("method", "name"), pairs(IDLE))
def test_unknowns_and_constraints_that_do_nothing(method, name):
    """They were refused, or broke TNC, COBYQA and `ipm`."""
    obj, more, x = IDLE[name]
    found = minimize(obj, method=method, **more)
    if x is None:
        assert found.status is Status.INFEASIBLE
        assert "farthest off is constr, by 0.5" in found.message
    else:
        assert found.success, found.message
        np.testing.assert_allclose(found.x, x, atol=1e-6)
