"""Methods by name: solving a task with one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.runaways import Runaway
from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interrupts import noting_interrupts

__all__ = ["CHAINED", "check_method", "solve_task"]

#: Those besides SciPy's.
OWN = ("ipopt", "ipm", "sqp")
#: Those of trajectories, which are too large for one kernel.
CHAINED = ("ipm", "ipopt")


def check_method(method: str, what: str = "method", own: tuple[str, ...] = OWN) -> None:
    """Refuse names that are neither ``own`` ones nor SciPy's."""
    if isinstance(method, str) and method in own:
        return
    from archimedes.optimize.solvers.scipy_methods import METHODS

    if not isinstance(method, str) or method.lower() not in METHODS:
        names = (*own, *(m.name for m in METHODS.values()))
        raise ValueError(f"{what}={method!r} is not one of {names}")


def solve_task(task: Task, method: str) -> Answer:
    """Solve with a method by name, unless the functions have no values at the start."""
    f, g = task.evaluator.values(task.start)
    if not (np.isfinite(f) and np.all(np.isfinite(g))):
        none = (np.zeros(task.low.size), np.zeros(task.start.size))
        return Answer(task.start, *none, Status.NOT_FINITE, 0, "at x0")
    # Some methods tell of no point before their first step.
    task.monitor.seen(task.start, f, task.violation(task.start, g))
    task.monitor.runs_away = Runaway(task)
    # What nobody uses is not imported.
    if method == "ipm":
        return _by_interior_point(task)
    answer = _solved_elsewhere(task, method)
    if answer.status is Status.OVERDETERMINED:
        # IPOPT takes no more equations than unknowns, though some may repeat others.
        answer = _by_interior_point(replace(task, settings=replace(task.settings, more={})))
        answer.details = answer.details or "by method='ipm': more equations than free unknowns"
    if answer.status.success or not task.low.size:
        return answer
    from archimedes.optimize.solvers.interior_point.feasibility import judged

    answer, feasible = judged(task, answer)
    if feasible is None or answer.status is Status.ITERATION_LIMIT:
        return answer
    again = _solved_elsewhere(replace(task, start=feasible, lam_g=None, lam_x=None), method)
    again.iterations += answer.iterations
    return again


def _by_interior_point(task: Task) -> Answer:
    from archimedes.optimize.solvers.interior_point.solve import solve

    return solve(task)


def _solved_elsewhere(task: Task, method: str) -> Answer:
    if method == "sqp":
        return _by_kernel(task)
    if method == "ipopt":
        from archimedes.optimize.solvers import ipopt

        return ipopt.solve(task)
    from archimedes.optimize.solvers import scipy_methods

    return scipy_methods.solve(task, method)


def _by_kernel(task: Task) -> Answer:
    assert task.kernel is not None
    with noting_interrupts(task.monitor):
        found = task.kernel(task.start, (task.lower, task.upper, task.low, task.high))
    status, count = Status(int(found.status)), int(found.iterations)
    monitor, x = task.monitor, found.x
    if monitor.stopped is not None:
        status, x = monitor.stopped, x if monitor.best is None else monitor.best
    return Answer(x, found.lam_g, found.lam_x, status, count)
