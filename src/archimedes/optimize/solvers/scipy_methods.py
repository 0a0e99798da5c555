"""Solving a task with the methods of ``scipy.optimize.minimize``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.optimize.problems.statuses import Status
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


def solve(task: Task, name: str) -> Answer:
    """Minimise with a method of SciPy; multipliers are those least squares gives at the end."""
    from scipy import optimize

    minimize: Any = optimize.minimize
    method = METHODS[name.lower()]
    _check(task, method)
    evaluator, monitor, settings = task.evaluator, task.monitor, task.settings
    state = {"number": 0}

    def follow(intermediate_result: Any) -> None:
        state["number"] += 1
        # Some methods give the point alone.
        x = np.asarray(getattr(intermediate_result, "x", intermediate_result))
        f, g = evaluator.values(x)
        if not monitor.after(state["number"], x, f, task.violation(x, g)):
            raise StopIteration

    # An error e of x changes f by its square: what f may change by is smaller than tol.
    options = {n: settings.tol ** (1.5 if n == "ftol" else 1.0) for n in method.tolerances}
    if settings.maxiter is not None:
        options[method.maxiter] = settings.maxiter
    given: dict[str, Any] = {"method": method.name, "options": {**options, **settings.more}}
    if method.gradient:
        given["jac"] = lambda x: evaluator.slopes(x)[0]
    if method.hessian:
        none = np.zeros(task.low.size)
        structure = evaluator.structure
        given["hess"] = lambda x: structure.hess_matrix(evaluator.curvature(x, 1.0, none)).toarray()
    if method.bounds and np.any(np.isfinite([task.lower, task.upper])):
        given["bounds"] = list(zip(task.lower, task.upper))
    if method.constraints and task.low.size:
        given["constraints"] = _constraints(task, method)
    try:
        with warnings.catch_warnings():
            # SciPy warns of what the status says, and of options that it does not know.
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Unknown solver options")
            found = minimize(lambda x: evaluator.values(x)[0], task.start, callback=follow, **given)
    except optimize.OptimizeWarning as unknown:
        raise ValueError(
            f"options: {unknown}, which SciPy's {method.name} does not take besides 'maxiter', "
            "'maxtime' and 'tol'"
        ) from None
    except KeyboardInterrupt:
        monitor.failed(KeyboardInterrupt())
        best = task.start if monitor.best is None else monitor.best
        return _answer(task, best, Status.INTERRUPTED, "")
    x = np.asarray(found.x)
    if monitor.best is not None and (monitor.stopped or not np.all(np.isfinite(x))):
        x = monitor.best  # some methods return what they tried last
    answer = _answer(task, x, _status(task, found), str(found.message).strip())
    if method.gradient:
        answer.status = _judged(task, answer)
    own = getattr(found, "v", None)
    if own is not None and task.low.size:  # trust-constr knows its multipliers
        answer.lam_g = np.asarray(own[0])
        answer.lam_x = np.asarray(own[1]) if len(own) > 1 else answer.lam_x
    return answer


def _check(task: Task, method: Method) -> None:
    if task.low.size and not method.constraints:
        able = [m.name for m in _TABLE if m.constraints]
        raise ValueError(
            f"method={method.name!r} takes no constraints: use 'ipopt' or one of {able}"
        )
    if not method.bounds and np.any(np.isfinite([task.lower, task.upper])):
        able = [m.name for m in _TABLE if m.bounds]
        raise ValueError(f"method={method.name!r} takes no bounds: use 'ipopt' or one of {able}")


def _constraints(task: Task, method: Method) -> Any:
    from scipy.optimize import NonlinearConstraint

    evaluator, structure = task.evaluator, task.evaluator.structure

    def jacobian(x: Any) -> Any:
        return structure.jac_matrix(evaluator.slopes(x)[1]).toarray()

    def curvature(x: Any, v: Any) -> Any:
        return structure.hess_matrix(evaluator.curvature(x, 0.0, np.asarray(v))).toarray()

    more: dict[str, Any] = {"jac": jacobian} if method.gradient else {}
    if method.hessian:
        more["hess"] = curvature
    return NonlinearConstraint(lambda x: evaluator.values(x)[1], task.low, task.high, **more)


def _status(task: Task, found: Any) -> Status:
    """Say how it ended in our words: SciPy's numbers differ from method to method."""
    if task.monitor.stopped is not None:
        return task.monitor.stopped
    x = np.asarray(found.x)
    f, g = task.evaluator.values(x)
    if not (np.isfinite(f) and np.all(np.isfinite(g)) and np.all(np.isfinite(x))):
        return Status.NOT_FINITE
    text = str(found.message).lower()
    if "iteration" in text and ("limit" in text or "exceed" in text or "maximum" in text):
        return Status.ITERATION_LIMIT
    if not _feasible(task, x, g):
        # Whether there are points that are is found out later.
        return Status.STALLED
    if f < -1e15:
        return Status.UNBOUNDED
    return Status.SOLVED if found.success else Status.STALLED


def _feasible(task: Task, x: np.ndarray, g: np.ndarray) -> bool:
    return task.violation(x, g) <= max(1e2 * task.settings.tol, 1e-6)


def _judged(task: Task, answer: Answer) -> Status:
    """Look at the conditions of a minimum: line searches end at rounding, f may stand still."""
    g = task.evaluator.values(answer.x)[1]
    if answer.status not in (Status.SOLVED, Status.STALLED) or not _feasible(task, answer.x, g):
        return answer.status
    gradient, entries = task.evaluator.slopes(answer.x)
    A = task.evaluator.structure.jac_matrix(entries)
    rest = gradient + A.T @ answer.lam_g + answer.lam_x
    size = 1.0 + max(np.abs(lam).max(initial=0.0) for lam in (answer.lam_g, answer.lam_x))
    left = float(np.abs(rest).max()) / size
    if left <= max(1e2 * task.settings.tol, 1e-6):
        return Status.SOLVED
    return Status.ACCEPTABLE if answer.status is Status.SOLVED else Status.STALLED


def _answer(task: Task, x: np.ndarray, status: Status, details: str) -> Answer:
    """Estimate the multipliers by least squares over the limits that hold."""
    lam_g, lam_x = np.zeros(task.low.size), np.zeros(x.size)
    f, g = task.evaluator.values(x)
    if np.isfinite(f):
        gradient, entries = task.evaluator.slopes(x)
        A = task.evaluator.structure.jac_matrix(entries).toarray()
        near = max(1e-5, 1e2 * task.settings.tol)
        rows = np.flatnonzero((g <= task.low + near) | (g >= task.high - near))
        bounds = np.flatnonzero((x <= task.lower + near) | (x >= task.upper - near))
        basis = np.concatenate([A[rows], np.eye(x.size)[bounds]])
        if basis.size and np.all(np.isfinite(basis)) and np.all(np.isfinite(gradient)):
            found = np.linalg.lstsq(basis.T, -gradient, rcond=None)[0]
            lam_g[rows], lam_x[bounds] = found[: rows.size], found[rows.size :]
    return Answer(x, lam_g, lam_x, status, task.monitor.iterations, details)
