"""Solving a task with the methods of ``scipy.optimize.minimize``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task

__all__ = ["METHODS", "solve"]


@dataclass(frozen=True)
class Method:
    """What a method of SciPy can take, and what it calls its tolerances and limits."""

    name: str
    bounds: bool = False
    constraints: bool = False
    gradient: bool = True
    hessian: bool = False
    tolerances: tuple[str, ...] = ()
    maxiter: str = "maxiter"


_TABLE = (
    Method("SLSQP", True, True, tolerances=("ftol",)),
    Method("trust-constr", True, True, hessian=True, tolerances=("gtol", "xtol", "barrier_tol")),
    Method("L-BFGS-B", True, tolerances=("gtol", "ftol")),
    Method("TNC", True, tolerances=("gtol", "ftol"), maxiter="maxfun"),
    Method("BFGS", tolerances=("gtol",)),
    Method("CG", tolerances=("gtol",)),
    Method("Newton-CG", hessian=True, tolerances=("xtol",)),
    Method("trust-exact", hessian=True, tolerances=("gtol",)),
    Method("trust-ncg", hessian=True, tolerances=("gtol",)),
    Method("trust-krylov", hessian=True, tolerances=("gtol",)),
    Method("Nelder-Mead", True, gradient=False, tolerances=("xatol", "fatol")),
    Method("Powell", True, gradient=False, tolerances=("xtol", "ftol")),
    Method("COBYQA", True, True, gradient=False, tolerances=("final_tr_radius",)),
)
METHODS = {method.name.lower(): method for method in _TABLE}
#: Objectives with larger slopes at the start are scaled where the method wants it.
MOST_SLOPE = 100.0


def solve(task: Task, name: str) -> Answer:
    """Minimise with a method of SciPy over the unknowns that are free.

    It is given no multipliers, and returns none: whoever checks the answer estimates them.
    """
    from scipy import optimize

    minimize: Any = optimize.minimize
    method = METHODS[name.lower()]
    problem = _Problem(task, method.name == "SLSQP")
    _check(problem, method)
    monitor, settings = task.monitor, task.settings
    state = {"number": 0}

    def follow(point: Any) -> None:
        state["number"] += 1
        # Some methods give the point alone.
        x = problem.whole(np.asarray(getattr(point, "x", point)))
        f, g = task.evaluator.values(x)
        if not monitor.after(state["number"], x, f, task.violation(x, g)):
            raise StopIteration

    # An error e of x changes f by its square: what f may change by is smaller than tol.
    options = {n: settings.tol ** (1.5 if n == "ftol" else 1.0) for n in method.tolerances}
    if settings.maxiter is not None:
        options[method.maxiter] = settings.maxiter
    if method.name == "trust-constr":
        # It would take the minimum of a barrier problem for its own; near a solution a large
        # barrier would only lead away again.
        options["gtol"] = settings.tol**2
        if task.lam_g is not None:
            options |= {"initial_barrier_parameter": 0.1 * settings.tol}
    given: dict[str, Any] = {"method": method.name, "options": {**options, **settings.more}}
    if method.gradient:
        given["jac"] = problem.gradient
    if method.hessian:
        none = np.zeros(task.low.size)
        given["hess"] = lambda z: problem.hessian(z, 1.0, none)
    if method.bounds and problem.bounded:
        given["bounds"] = list(zip(problem.lower, problem.upper))
    if method.constraints and problem.rows.size:
        given["constraints"] = problem.constraints(method)
    # SciPy gives a callback of this name the state, any other one the point.
    told = lambda intermediate_result: follow(intermediate_result)  # noqa: E731
    given["callback"] = follow if method.name == "TNC" else told
    try:
        with warnings.catch_warnings():
            # SciPy warns of what the status says, and of options that it does not know.
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Unknown solver options")
            found = minimize(problem.cost, task.start[problem.free], **given)
    except optimize.OptimizeWarning as unknown:
        raise ValueError(
            f"options: {unknown}, which SciPy's {method.name} does not take besides 'maxiter', "
            "'maxtime' and 'tol'"
        ) from None
    except (KeyboardInterrupt, StopIteration) as stop:
        # Not every method catches what its callback raises.
        if isinstance(stop, KeyboardInterrupt):
            monitor.failed(stop)
        best = task.start if monitor.best is None else monitor.best
        return _answer(task, best, monitor.stopped or Status.INTERRUPTED, "")
    x = problem.whole(np.asarray(found.x))
    status = _status(task, x, found)
    if monitor.best is not None and (monitor.stopped or not np.all(np.isfinite(x))):
        x = monitor.best  # some methods return what they tried last
    return _answer(task, x, status, str(found.message).strip())


def _answer(task: Task, x: np.ndarray, status: Status, details: str) -> Answer:
    none = (np.zeros(task.low.size), np.zeros(x.size))
    return Answer(x, *none, status, task.monitor.iterations, details)


class _Problem:
    """A task as SciPy wants it: unknowns that are free, constraints that have limits.

    SLSQP calls constraints incompatible where slopes of the objective are large: for it the
    objective is ``scaled``.
    """

    def __init__(self, task: Task, scaled: bool) -> None:
        self.task = task
        slope = np.abs(task.evaluator.slopes(task.start)[0]).max(initial=0.0)
        self.scale = MOST_SLOPE / slope if scaled and np.inf > slope > MOST_SLOPE else 1.0
        self.free = np.flatnonzero(task.lower < task.upper)
        self.rows = np.flatnonzero(np.isfinite(task.low) | np.isfinite(task.high))
        self.lower, self.upper = task.lower[self.free], task.upper[self.free]
        self.bounded = bool(np.any(np.isfinite([self.lower, self.upper])))

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
        return evaluator.structure.hess_matrix(entries).toarray()[np.ix_(self.free, self.free)]

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        evaluator = self.task.evaluator
        A = evaluator.structure.jac_matrix(evaluator.slopes(self.whole(z))[1]).toarray()
        return A[np.ix_(self.rows, self.free)]

    def constraints(self, method: Method) -> Any:
        """Return the constraints as SciPy's."""
        from scipy.optimize import NonlinearConstraint

        task, rows = self.task, self.rows

        def curvature(z: Any, v: Any) -> Any:
            lam = np.zeros(task.low.size)
            lam[rows] = v
            return self.hessian(z, 0.0, lam)

        more: dict[str, Any] = {"jac": self.jacobian} if method.gradient else {}
        if method.hessian:
            more["hess"] = curvature
        values = lambda z: task.evaluator.values(self.whole(z))[1][rows]  # noqa: E731
        return NonlinearConstraint(values, task.low[rows], task.high[rows], **more)


def _check(problem: _Problem, method: Method) -> None:
    if problem.rows.size and not method.constraints:
        able = [m.name for m in _TABLE if m.constraints]
        raise ValueError(
            f"method={method.name!r} takes no constraints: use 'ipopt' or one of {able}"
        )
    if problem.bounded and not method.bounds:
        able = [m.name for m in _TABLE if m.bounds]
        raise ValueError(f"method={method.name!r} takes no bounds: use 'ipopt' or one of {able}")


def _status(task: Task, x: np.ndarray, found: Any) -> Status:
    """Say how it ended in our words: SciPy's numbers differ from method to method."""
    if task.monitor.stopped is not None:
        return task.monitor.stopped
    f, g = task.evaluator.values(x)
    if not (np.isfinite(f) and np.all(np.isfinite(g)) and np.all(np.isfinite(x))):
        return Status.NOT_FINITE
    text = str(found.message).lower()
    if "iteration" in text and ("limit" in text or "exceed" in text or "maximum" in text):
        return Status.ITERATION_LIMIT
    if task.violation(x, g) > max(1e2 * task.settings.tol, 1e-6):
        # Whether there are points that are feasible is found out later.
        return Status.STALLED
    if f < -1e15:
        return Status.UNBOUNDED
    return Status.SOLVED if found.success else Status.STALLED
