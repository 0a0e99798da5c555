"""A solver is added as CONTRIBUTING.md says: a function, and a row of the table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import archimedes as arc
from archimedes.optimize import OptimalControl, Status, minimize, nlp_solver
from archimedes.optimize.problems.tasks import Answer
from archimedes.optimize.solvers.solver_table import SOLVERS, Solver
from tests.optimize.catalogue import PROBLEMS


def solve(task, solver):
    """Minimise the augmented Lagrangian, with multipliers that follow the constraints.

    Each constraint adds rho/2 dist(g + lam/rho, [low, high])^2 (Nocedal, Wright, "Numerical
    optimization", 2nd ed., algorithm 17.4); bounds are left to L-BFGS-B.
    """
    settings, evaluator = task.settings, task.evaluator
    rho = settings.more.get("penalty", 10.0)
    x, lam = task.start, np.zeros(task.low.size)
    bounds = list(zip(task.lower, task.upper))

    def shifted_residuals(x):
        shifted = evaluator.values(x)[1] + lam / rho
        return shifted - np.clip(shifted, task.low, task.high)

    def cost(x):
        return evaluator.values(x)[0] + 0.5 * rho * np.sum(shifted_residuals(x) ** 2)

    def slope(x):
        prices = rho * shifted_residuals(x)
        return evaluator.slopes(x)[0] + evaluator.multiply_transpose(x, prices)

    options = {"ftol": 1e-15, "gtol": 1e-1 * settings.tol}
    for number in range(settings.maxiter or 100):
        result = scipy_minimize(cost, x, jac=slope, bounds=bounds, options=options)
        lam, before, x = rho * shifted_residuals(result.x), task.violation(x), result.x
        violation = task.violation(x)
        if not task.monitor.after(number, x, evaluator.values(x)[0], violation):
            return task.answer(x, task.monitor.stopped)
        if violation <= 1e-1 * settings.tol:
            lam_x = -slope(x)
            return Answer(x, lam, lam_x, Status.SOLVED, number + 1)
        rho = rho if violation < 0.25 * before else 10.0 * rho
    return task.answer(x, Status.ITERATION_LIMIT)


@pytest.fixture(autouse=True)
def row(monkeypatch):
    row = Solver("ALM", solve, bounds=True, constraints=True, options=("penalty",))
    monkeypatch.setitem(SOLVERS, "alm", row)


@pytest.mark.parametrize("name", ["HS5", "HS8", "HS14", "HS71", "beale"])
def test_it_finds_the_published_minima(name):
    problem = PROBLEMS[name]
    arguments = problem.arguments()
    solver = nlp_solver(problem.obj, arguments.get("constr"), method="ALM")
    limits = {"bounds": problem.bounds, "constr_bounds": arguments.get("constr_bounds")}
    found = solver.solve(problem.x0, **limits)
    assert found.success, found.message
    assert found.fun == pytest.approx(problem.best, rel=1e-5, abs=1e-5)


def test_what_every_method_has_it_has():
    def away(x):
        return np.sum((x - 3.0) ** 2)

    found = minimize(away, np.zeros(2), constr=np.sum, constr_bounds=(None, 2.0), method="alm")
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    np.testing.assert_allclose(found.multipliers.constr, 4.0, atol=1e-5)
    # Limits of iterations, callbacks, options.
    few = minimize(away, np.zeros(2), constr=np.sum, method="alm", options={"maxiter": 1})
    assert few.status is Status.ITERATION_LIMIT
    stopped = minimize(away, np.zeros(2), constr=np.sum, method="alm", callback=lambda i: True)
    assert stopped.status is Status.INTERRUPTED
    with pytest.raises(ValueError, match=r"option='rho' is not one of .*'penalty'"):
        minimize(away, np.zeros(2), method="alm", options={"rho": 1.0})
    with pytest.raises(ValueError, match=r"'BFGS' takes no constraints: use one of .*'ALM'"):
        minimize(away, np.zeros(2), constr=np.sum, method="BFGS")
    # Derivatives of the solution, in recorded code.
    solver = nlp_solver(lambda x, p: np.sum((x - p) ** 2), lambda x, p: x[0] + x[1], method="alm")
    slope = arc.grad(lambda p: solver(np.zeros(2), p, constr_bounds=(None, 2.0))[0])
    np.testing.assert_allclose(slope(np.array([3.0, 3.0])), [0.5, -0.5], atol=1e-6)


def test_trajectories():
    problem = OptimalControl(
        lambda t, x, u: u, running_cost=lambda t, x, u: u**2, initial=0.0, final=1.0
    )
    found = problem.solve({"x": 0.0, "u": 0.0}, intervals=3, method="alm")
    assert found.success and found.fun == pytest.approx(1.0, abs=1e-6)


def test_an_answer_that_is_no_minimum_is_not_called_solved(monkeypatch):
    def guess(task, solver):
        return task.answer(task.start, Status.SOLVED)

    monkeypatch.setitem(SOLVERS, "guess", Solver("guess", guess))
    found = minimize(lambda x: (x - 1.0) ** 2, 0.0, method="guess")
    assert not found.success and "slope" in found.message
