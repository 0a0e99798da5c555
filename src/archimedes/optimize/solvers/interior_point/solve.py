"""Solving a task: by the method of this package, by IPOPT where it cannot go on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.method import InteriorPoint, LineSearchFailed
from archimedes.optimize.solvers.interior_point.native_loops import native_loops
from archimedes.optimize.solvers.interrupts import noting_interrupts

__all__ = ["solve"]

#: Options besides those of all solvers: the first weight of the barrier.
OPTIONS = {"mu_init"}


def solve(task: Task) -> Answer:
    """Minimise; raises what the functions or the callback raised."""
    for name in task.settings.more:
        if name not in OPTIONS:
            raise ValueError(
                f"options: method='ipm' takes no option {name!r}; it takes 'maxiter', 'maxtime', "
                f"'tol' and {sorted(OPTIONS)}"
            )
    loops = native_loops()
    if loops is None:
        return _by_ipopt(task)
    made = InteriorPoint(task, loops)
    try:
        with noting_interrupts(task.monitor), np.errstate(all="ignore"):
            return made.run()
    except LineSearchFailed:
        return _handed_over(task, made)
    finally:
        task.evaluator.structure.prepared[made.key] = made.system


def _by_ipopt(task: Task) -> Answer:
    from archimedes.optimize.solvers import ipopt

    return ipopt.solve(task)


def _handed_over(task: Task, made: InteriorPoint) -> Answer:
    """Have IPOPT go on from the best point so far, and where that fails from the user's start."""
    best, iterations = task.monitor.best, made.iterations
    starts = [task.start]
    if best is not None and _is_feasible(task, best):
        starts.insert(0, best)
    answer, details = made.answer(made.at, Status.STALLED), ""
    for start in starts:
        settings = replace(task.settings, more={})
        if settings.maxiter is not None:
            settings = replace(settings, maxiter=settings.maxiter - iterations)
        if (settings.maxiter is not None and settings.maxiter <= 0) or task.monitor.late():
            break
        try:
            attempt = replace(task, start=start, settings=settings, lam_g=None, lam_x=None)
            answer = _by_ipopt(attempt)
        except ImportError:
            break
        iterations += answer.iterations
        details = f"IPOPT went on after {made.iterations} iterations"
        if answer.status not in (Status.STALLED, Status.ITERATION_LIMIT, Status.INFEASIBLE):
            break
    answer.iterations = iterations
    answer.details = "; ".join(part for part in (answer.details, details) if part)
    return answer


def _is_feasible(task: Task, x: np.ndarray) -> bool:
    return task.violation(x, task.evaluator.values(x)[1]) <= max(1e2 * task.settings.tol, 1e-6)
