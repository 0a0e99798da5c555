"""Solving a task: a solver's answer is checked, and the solver goes on where it stopped short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.optimality import (
    LEAST,
    Optimality,
    Unboundedness,
    check_optimality,
)
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task, violation
from archimedes.optimize.solvers.solver_table import SOLVERS, Solver

#: Statuses whose points are checked, and those that are final wherever the method started.
CHECKED = (Status.SOLVED, Status.ACCEPTABLE, Status.STALLED)
LEADING_ON = (Status.UNBOUNDED, Status.INTERRUPTED, Status.TIME_LIMIT)
#: How often a method goes on from a point that it called solved, and how far, relative to the
#: unknowns, it starts beside a maximum or a saddle.
RESTARTS, ASIDE = 4, 1e-2


def solve_task(task: Task, solver: Solver) -> Answer:
    """Solve a task; what is called solved has been checked.

    If a function is not finite at the start, or a constraint that depends on no unknown does not
    hold, that is the answer, and no solver is called.
    """
    f, g = task.evaluator.values(task.start)
    if not (np.isfinite(f) and np.all(np.isfinite(g))):
        return task.answer(task.start, Status.NOT_FINITE, "at x0")
    task, holds = _without_constants(task, g)
    if not holds:
        return task.answer(task.start, Status.INFEASIBLE)
    if not np.any(task.lower < task.upper):
        return _answer_held(task, g)
    solver.check(task)
    # Some methods report no point before their first step.
    task.monitor.compare(task.start, f, task.violation(task.start, g))
    task.monitor.is_unbounded = Unboundedness(task)
    return _confirm(task, solver, _solve_once(task, solver))


def _answer_held(task: Task, g: np.ndarray) -> Answer:
    """Return the only point there is, where bounds hold every unknown."""
    gradient, _ = task.evaluator.slopes(task.start)
    fits = task.violation(task.start, g) <= max(task.settings.tol, LEAST)
    status = Status.SOLVED if fits else Status.INFEASIBLE
    return replace(task.answer(task.start.copy(), status), lam_x=-gradient)


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


def _solve_once(task: Task, solver: Solver) -> Answer:
    """Call a solver. Where it gives up, find out whether the constraints can be met at all."""
    answer = solver.solve(task, solver)
    if answer.status is Status.OVERDETERMINED:
        # IPOPT takes no more equations than unknowns, though some may repeat others.
        own = SOLVERS["ipm"]
        answer = own.solve(replace(task, settings=replace(task.settings, more={})), own)
        answer.details = answer.details or "by method='ipm': more equations than free unknowns"
    if solver.proves_infeasible or answer.status.success or not task.low.size:
        return answer
    from archimedes.optimize.solvers.interior_point.restoration import check_feasibility

    answer, feasible = check_feasibility(task, answer)
    if feasible is None or answer.status is Status.ITERATION_LIMIT:
        return answer
    again = solver.solve(replace(task, start=feasible, lam_g=None, lam_x=None), solver)
    again.iterations += answer.iterations
    return again


def _confirm(task: Task, solver: Solver, answer: Answer) -> Answer:
    """Return an answer that is called solved only where the conditions of a minimum hold.

    Where a method stopped short of them, it is started again from its point; where it stopped at a
    maximum or a saddle, from a point beside it. A method may also reach its own limit of iterations
    at a minimum.
    """
    if answer.status is Status.ITERATION_LIMIT and task.settings.maxiter is None:
        check = check_optimality(task, answer.x, answer.lam_g, answer.lam_x)
        return _grade(answer, check, answer.iterations) if check.error <= 1.0 else answer
    best: tuple[Answer, Optimality] | None = None
    for attempt in range(RESTARTS + 1):
        if answer.status not in CHECKED:
            if best is None or best[1].descent is not None or answer.status in LEADING_ON:
                return answer
            # Going on from a point that was almost good enough has not made it worse.
            return _grade(*best, answer.iterations)
        check = check_optimality(task, answer.x, answer.lam_g, answer.lam_x)
        if best is None or best[1].descent is not None or check.error < best[1].error:
            best = answer, check
        stopped = attempt == RESTARTS or check.status in (Status.SOLVED, Status.UNBOUNDED)
        if stopped or not (answer.status.success or check.descent is not None):
            break
        if check.status is Status.ACCEPTABLE and answer.status is Status.ACCEPTABLE:
            break
        again = _restart(task, solver, answer, check)
        if again is None:
            break
        answer = again
    assert best is not None
    return _grade(*best, answer.iterations)


def _grade(answer: Answer, check: Optimality, iterations: int) -> Answer:
    """Return an answer with the status that its point deserves."""
    status, details = check.status, answer.details
    if status is Status.ACCEPTABLE and not answer.status.success:
        status = Status.STALLED
    if not status.success:
        details = "; ".join(part for part in (details, check.reason) if part)
    return Answer(answer.x, check.lam_g, check.lam_x, status, iterations, details)


def _restart(task: Task, solver: Solver, answer: Answer, check: Optimality) -> Answer | None:
    """Go on from an answer that is no minimum; None where the user's limits are reached."""
    settings = task.settings.after(answer.iterations)
    if settings is None or task.monitor.is_late():
        return None
    again = replace(task, start=answer.x, settings=settings, lam_g=check.lam_g, lam_x=check.lam_x)
    if check.descent is not None:
        start = _step_aside(task, answer.x, check.descent)
        again = replace(again, start=start, lam_g=None, lam_x=None)
    task.monitor.before = answer.iterations
    new = _solve_once(again, solver)
    new.iterations += answer.iterations
    return new


def _step_aside(task: Task, x: np.ndarray, descent: np.ndarray) -> np.ndarray:
    """Return a point near x along a direction of descent, on its better side."""
    sides = [np.clip(x + sign * ASIDE * descent, task.lower, task.upper) for sign in (1.0, -1.0)]
    costs = [task.evaluator.values(side)[0] for side in sides]
    return sides[int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))]
