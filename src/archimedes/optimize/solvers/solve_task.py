"""Methods by name: solving a task with one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.optimize.problems.optimality import LEAST, Optimality, check_optimality
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task, violation
from archimedes.optimize.problems.unboundedness import Runaway

__all__ = ["CHAINED", "check_method", "solve_task"]

#: Those besides SciPy's.
OWN = ("ipopt", "ipm", "sqp")
#: Those of trajectories, which are too large for one kernel.
CHAINED = ("ipm", "ipopt")
#: Ends whose points are checked, and those that say more than the point they went on from.
CHECKED = (Status.SOLVED, Status.ACCEPTABLE, Status.STALLED)
LEADING_ON = (Status.UNBOUNDED, Status.INTERRUPTED, Status.TIME_LIMIT)
#: How often a method goes on from a point that it called solved, and how far, relative to the
#: unknowns, it starts beside a maximum or a saddle.
RESTARTS, ASIDE = 4, 1e-2


def check_method(method: str, what: str = "method", own: tuple[str, ...] = OWN) -> None:
    """Refuse names that are neither ``own`` ones nor SciPy's."""
    if isinstance(method, str) and method in own:
        return
    from archimedes.optimize.solvers.scipy_methods import METHODS

    if not isinstance(method, str) or method.lower() not in METHODS:
        names = (*own, *(m.name for m in METHODS.values()))
        raise ValueError(f"{what}={method!r} is not one of {names}")


def solve_task(task: Task, method: str) -> Answer:
    """Solve with a method by name; what is called solved has been checked.

    Functions without values at the start are the answer at once, and so are constraints that do
    not depend on unknowns and do not hold.
    """
    f, g = task.evaluator.values(task.start)
    none = (np.zeros(task.low.size), np.zeros(task.start.size))
    if not (np.isfinite(f) and np.all(np.isfinite(g))):
        return Answer(task.start, *none, Status.NOT_FINITE, 0, "at x0")
    task, holds = _without_constants(task, g)
    if not holds:
        return Answer(task.start, *none, Status.INFEASIBLE, 0)
    if not np.any(task.lower < task.upper):
        return _held(task, g)
    # Some methods tell of no point before their first step.
    task.monitor.seen(task.start, f, task.violation(task.start, g))
    task.monitor.runs_away = Runaway(task)
    return _confirmed(task, method, _answered(task, method))


def _held(task: Task, g: np.ndarray) -> Answer:
    """Return the only point there is, where bounds hold every unknown."""
    gradient, _ = task.evaluator.slopes(task.start)
    fits = task.violation(task.start, g) <= max(task.settings.tol, LEAST)
    status = Status.SOLVED if fits else Status.INFEASIBLE
    return Answer(task.start.copy(), np.zeros(g.size), -gradient, status, 0)


def _without_constants(task: Task, g: np.ndarray) -> tuple[Task, bool]:
    """Hold unknowns that nothing depends on, and free constraints that depend on no free unknown.

    Also returns whether these constraints hold.
    """
    structure = task.evaluator.structure
    if task.order is not None:
        return task, True  # trajectories have none
    unused = structure.unused_unknowns
    lower, upper = task.lower.copy(), task.upper.copy()
    lower[unused] = upper[unused] = task.start[unused]
    free = (lower < upper)[structure.jac_columns]
    idle = np.setdiff1d(np.arange(task.low.size), structure.jac_rows[free])
    if not (idle.size or unused.size):
        return task, True
    low, high = task.low.copy(), task.high.copy()
    holds = violation(g[idle], low[idle], high[idle]) <= max(task.settings.tol, LEAST)
    low[idle], high[idle] = -np.inf, np.inf
    return replace(task, low=low, high=high, lower=lower, upper=upper), holds


def _answered(task: Task, method: str) -> Answer:
    """Return what a method says, and what becomes of the constraints where it gives up."""
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
    from archimedes.optimize.solvers.interior_point.restoration import check_feasibility

    answer, feasible = check_feasibility(task, answer)
    if feasible is None or answer.status is Status.ITERATION_LIMIT:
        return answer
    again = _solved_elsewhere(replace(task, start=feasible, lam_g=None, lam_x=None), method)
    again.iterations += answer.iterations
    return again


def _confirmed(task: Task, method: str, answer: Answer) -> Answer:
    """Return an answer that is called solved only where the conditions of a minimum hold.

    Where a method stopped short of them, it goes on from there, with scales of that point; where
    it stopped at a maximum or a saddle, from a point beside it. A method's own limit of iterations
    may be reached at a minimum.
    """
    if answer.status is Status.ITERATION_LIMIT and task.settings.maxiter is None:
        found = check_optimality(task, answer.x, answer.lam_g, answer.lam_x)
        return _judged(answer, found, answer.iterations) if found.error <= 1.0 else answer
    best: tuple[Answer, Optimality] | None = None
    for attempt in range(RESTARTS + 1):
        if answer.status not in CHECKED:
            if best is None or best[1].descent is not None or answer.status in LEADING_ON:
                return answer
            # Going on from a point that was almost good enough has not made it worse.
            return _judged(*best, answer.iterations)
        found = check_optimality(task, answer.x, answer.lam_g, answer.lam_x)
        if best is None or best[1].descent is not None or found.error < best[1].error:
            best = answer, found
        stopped = attempt == RESTARTS or found.status in (Status.SOLVED, Status.UNBOUNDED)
        if stopped or not (answer.status.success or found.descent is not None):
            break
        if found.status is Status.ACCEPTABLE and answer.status is Status.ACCEPTABLE:
            break
        again = _restarted(task, method, answer, found)
        if again is None:
            break
        answer = again
    assert best is not None
    return _judged(*best, answer.iterations)


def _judged(answer: Answer, found: Optimality, iterations: int) -> Answer:
    """Return an answer with the status that its point deserves."""
    status, details = found.status, answer.details
    if status is Status.ACCEPTABLE and not answer.status.success:
        status = Status.STALLED
    if not status.success:
        details = "; ".join(part for part in (details, found.reason) if part)
    lam = {"lam_g": found.lam_g, "lam_x": found.lam_x}
    return replace(answer, status=status, details=details, iterations=iterations, **lam)


def _restarted(task: Task, method: str, answer: Answer, found: Optimality) -> Answer | None:
    """Go on from an answer that is no minimum; None where the user's limits are reached."""
    settings, start = task.settings, answer.x
    if settings.maxiter is not None:
        settings = replace(settings, maxiter=settings.maxiter - answer.iterations)
    if task.monitor.late() or (settings.maxiter is not None and settings.maxiter <= 0):
        return None
    warm: dict[str, Any] = {"lam_g": found.lam_g, "lam_x": found.lam_x}
    if found.descent is not None:
        start, warm = _beside(task, answer.x, found.descent), {"lam_g": None, "lam_x": None}
    task.monitor.before = answer.iterations
    again = _answered(replace(task, start=start, settings=settings, **warm), method)
    again.iterations += answer.iterations
    return again


def _beside(task: Task, x: np.ndarray, descent: np.ndarray) -> np.ndarray:
    """Return a point near x along a direction of descent, on its better side."""
    sides = [np.clip(x + sign * ASIDE * descent, task.lower, task.upper) for sign in (1.0, -1.0)]
    costs = [task.evaluator.values(side)[0] for side in sides]
    return sides[int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))]


def _by_interior_point(task: Task) -> Answer:
    from archimedes.optimize.solvers.interior_point.method import solve

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
    with task.monitor.note_interrupts():
        found = task.kernel(task.start, (task.lower, task.upper, task.low, task.high))
    status, count = Status(int(found.status)), int(found.iterations)
    monitor, x = task.monitor, found.x
    if monitor.stopped is not None:
        status, x = monitor.stopped, x if monitor.best is None else monitor.best
    return Answer(x, found.lam_g, found.lam_x, status, count)
