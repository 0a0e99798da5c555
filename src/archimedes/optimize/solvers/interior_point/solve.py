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
    start = made.at.trial.x.copy()
    settings = replace(task.settings, more={})
    if settings.maxiter is not None:
        settings = replace(settings, maxiter=max(1, settings.maxiter - made.iterations))
    try:
        answer = _by_ipopt(replace(task, start=start, settings=settings, lam_g=None, lam_x=None))
    except ImportError:
        return made.answer(made.at, Status.STALLED)
    answer.iterations += made.iterations
    answer.details = f"{answer.details}; IPOPT went on after {made.iterations} iterations".strip(
        "; "
    )
    return answer
