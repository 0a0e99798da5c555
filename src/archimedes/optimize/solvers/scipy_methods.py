"""Solving a task with the methods of ``scipy.optimize.minimize``."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
from scipy import optimize

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.solver_table import Solver


def solve(task: Task, solver: Solver) -> Answer:
    """Minimise with a method of SciPy over the unknowns that are free.

    It is given no multipliers, and returns none: whoever checks the answer estimates them.
    """
    problem, monitor = _Problem(task, solver), task.monitor
    number, minimize = 0, cast(Any, optimize.minimize)

    def follow(point: np.ndarray, *_: object) -> None:
        nonlocal number
        number += 1
        x = problem.whole(np.asarray(point))
        f, g = task.evaluator.values(x)
        if not monitor.after(number, x, f, task.violation(x, g)):
            raise StopIteration

    try:
        with warnings.catch_warnings():
            # SciPy warns of what the status says, and of options that it does not know.
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Unknown solver options")
            start = task.start[problem.free]
            result = minimize(problem.cost, start, callback=follow, **problem.arguments())
    except optimize.OptimizeWarning as unknown:
        known = "besides 'maxiter', 'maxtime' and 'tol'"
        raise ValueError(f"options: {unknown}, not taken by {solver.name} {known}") from None
    except (KeyboardInterrupt, StopIteration) as stop:
        # Not every method catches what its callback raises.
        if isinstance(stop, KeyboardInterrupt):
            monitor.fail(stop)
        best = task.start if monitor.best is None else monitor.best
        return task.answer(best, monitor.stopped or Status.INTERRUPTED)
    x = problem.whole(np.asarray(result.x))
    status = _status(task, x, result)
    if monitor.best is not None and (monitor.stopped or not np.all(np.isfinite(x))):
        x = monitor.best  # some methods return what they tried last
    return task.answer(x, status, str(result.message).strip())


class _Problem:
    """A task as SciPy wants it: unknowns that are free, constraints that have limits."""

    def __init__(self, task: Task, solver: Solver) -> None:
        self.task, self.solver = task, solver
        slope = np.abs(task.evaluator.slopes(task.start)[0]).max(initial=0.0)
        most = solver.most_slope
        self.scale = most / slope if np.inf > slope > most else 1.0
        self.free = np.flatnonzero(task.lower < task.upper)
        self.rows = np.flatnonzero(np.isfinite(task.low) | np.isfinite(task.high))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``scipy.optimize.minimize`` besides cost, start and callback."""
        task, solver, settings = self.task, self.solver, self.task.settings
        options = {name: settings.tol**power for name, power in solver.tolerances.items()}
        if settings.maxiter is not None:
            options[solver.maxiter] = settings.maxiter
        if solver.name == "trust-constr" and task.lam_g is not None:
            # Near a solution a large barrier would only lead away again.
            options["initial_barrier_parameter"] = 0.1 * settings.tol
        arguments: dict[str, Any] = {"method": solver.name, "options": {**options, **settings.more}}
        if solver.derivatives > 0:
            arguments["jac"] = self.gradient
        if solver.derivatives > 1:
            none = np.zeros(task.low.size)
            arguments["hess"] = lambda z: self.hessian(z, 1.0, none)
        bounds = task.lower[self.free], task.upper[self.free]
        if np.any(np.isfinite(bounds)):
            arguments["bounds"] = list(zip(*bounds))
        if self.rows.size:
            arguments["constraints"] = self.constraints()
        return arguments

    def whole(self, z: np.ndarray) -> np.ndarray:
        """Return all unknowns."""
        x = self.task.start.copy()
        x[self.free] = z
        return x

    def cost(self, z: np.ndarray) -> float:
        return self.task.evaluator.values(self.whole(z))[0] * self.scale

    def gradient(self, z: np.ndarray) -> np.ndarray:
        return self.task.evaluator.slopes(self.whole(z))[0][self.free] * self.scale

    def hessian(self, z: np.ndarray, sigma: float, lam: np.ndarray) -> np.ndarray:
        evaluator = self.task.evaluator
        entries = evaluator.curvature(self.whole(z), sigma, lam)
        return evaluator.structure.hessian(entries)[np.ix_(self.free, self.free)]

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        evaluator = self.task.evaluator
        A = evaluator.structure.jacobian(evaluator.slopes(self.whole(z))[1])
        return A[np.ix_(self.rows, self.free)]

    def constraints(self) -> optimize.NonlinearConstraint:
        """Return the constraints as SciPy's."""
        task, rows = self.task, self.rows

        def values(z: np.ndarray) -> np.ndarray:
            return task.evaluator.values(self.whole(z))[1][rows]

        def curvature(z: np.ndarray, v: np.ndarray) -> np.ndarray:
            lam = np.zeros(task.low.size)
            lam[rows] = v
            return self.hessian(z, 0.0, lam)

        derivatives = {"jac": self.jacobian, "hess": curvature}
        asked: dict[str, Any] = dict(list(derivatives.items())[: self.solver.derivatives])
        return optimize.NonlinearConstraint(values, task.low[rows], task.high[rows], **asked)


def _status(task: Task, x: np.ndarray, result: optimize.OptimizeResult) -> Status:
    """Say how it ended in our words: SciPy's numbers differ from method to method."""
    if task.monitor.stopped is not None:
        return task.monitor.stopped
    f, g = task.evaluator.values(x)
    if not (np.isfinite(f) and np.all(np.isfinite(g)) and np.all(np.isfinite(x))):
        return Status.NOT_FINITE
    text = str(result.message).lower()
    if "iteration" in text and ("limit" in text or "exceed" in text or "maximum" in text):
        return Status.ITERATION_LIMIT
    if task.violation(x, g) > max(1e2 * task.settings.tol, 1e-6):
        # Whether there are points that are feasible is found out later.
        return Status.STALLED
    if f < -1e15:
        return Status.UNBOUNDED
    return Status.SOLVED if result.success else Status.STALLED
