"""What became of the constraints, where a solver gave up beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.native_loops import native_loops
from archimedes.optimize.solvers.interior_point.newton_steps import LineSearchFailed
from archimedes.optimize.solvers.interior_point.restoration import Infeasible, Restoration

__all__ = ["judged"]

#: Ends that say nothing of the constraints, or that others are quick to say.
DOUBTED = (Status.STALLED, Status.ITERATION_LIMIT, Status.FAILED, Status.INFEASIBLE)
#: With more unknowns, only chains are looked at: other matrices are no narrow bands.
MOST = 500


def judged(task: Task, answer: Answer) -> tuple[Answer, np.ndarray | None]:
    """Return an answer that calls a problem infeasible where no point near satisfies it.

    Where one does, it is returned too: to start from again. Only solvers that gave up by
    themselves are asked: not those that were told to stop.
    """
    settings, large = task.settings, task.start.size > MOST and task.order is None
    if answer.status not in DOUBTED or settings.maxiter is not None or large or task.monitor.late():
        return answer, None
    least = max(1e2 * settings.tol, 1e-6)
    off = task.violation(answer.x, task.evaluator.values(answer.x)[1])
    loops = native_loops()
    if not least < off < np.inf or loops is None or not np.any(task.lower < task.upper):
        return answer, None
    # A solver that ran far away without coming nearer leaves numbers too large to reckon with.
    gained = not task.violation(task.start, task.evaluator.values(task.start)[1]) <= off
    start = answer.x if gained else task.start
    near = Restoration(replace(task, start=start, lam_g=None, lam_x=None), loops)
    try:
        with np.errstate(all="ignore"):
            found = near.least_violation(near.first().trial, lambda at: at.unscaled <= least)
        return answer, np.clip(found.x, task.lower, task.upper)
    except Infeasible as never:
        x = np.clip(never.trial.x, task.lower, task.upper)
        return replace(answer, x=x, status=Status.INFEASIBLE), None
    except LineSearchFailed:
        return answer, None
