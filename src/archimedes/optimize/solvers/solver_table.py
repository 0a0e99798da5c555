"""The solvers of nonlinear programs: a row says all that is asked of one.

`minimize`, `nlp_solver`, `OptimalControl` and `Phases` take the names of the rows as ``method=``.
A solver gets a :class:`Task` and returns an :class:`Answer`; `solve_task` calls it, checks what it
calls solved, and has it go on where that does not hold. To add one, write a function
``solve(task, solver)`` and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from importlib import import_module
from typing import Any

import numpy as np

from archimedes.checks import check_choice
from archimedes.optimize.problems.optimality import (
    LEAST,
    Optimality,
    Unboundedness,
    check_optimality,
)
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task, violation
from archimedes.records import record


@record
class Solver:
    """A row of the table.

    Parameters
    ----------
    name : str
        Name, as users write it after ``method=``; upper and lower case are the same.
    solve : callable
        ``solve(task, solver)`` minimizes, where `solver` is this row.
    bounds : bool, optional
        Whether it takes bounds of the unknowns.
    constraints : bool, optional
        Whether it takes constraints.
    derivatives : int, optional
        The highest derivatives that it asks for: 0, 1 (gradients) or 2 (Hessians).
    options : tuple of str, optional
        Names of its own options, besides ``maxiter``, ``maxtime`` and ``tol``. None: it takes any,
        and raises ValueError for those that it does not know.
    record : callable, optional
        ``record(program, settings)`` returns the solver as recorded code: a function ``(x0, limits,
        *args)`` of vectors. Such a solver becomes part of compiled functions. It needs the whole
        problem as one function, which trajectories are too large for.
    proves_infeasible : bool, optional
        Whether INFEASIBLE is proven. Otherwise the constraints are looked at once more.
    tolerances : mapping, optional
        Names of its tolerances, and the power of ``tol`` that each of them is.
    maxiter : str, optional
        Its name of the largest number of iterations.
    most_slope : float, optional
        The objective is scaled such that no slope at the start is larger than this.
    """

    name: str
    solve: Callable[[Task, Solver], Answer]
    bounds: bool = False
    constraints: bool = False
    derivatives: int = 1
    options: tuple[str, ...] | None = None
    record: Callable[..., Callable[..., Any]] | None = None
    proves_infeasible: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)
    maxiter: str = "maxiter"
    most_slope: float = np.inf

    def check(self, task: Task) -> None:
        """Raise where a task has something that this solver does not take."""
        free = task.lower < task.upper
        bounds = (task.lower[free], task.upper[free])
        for what, limits in (("constraints", (task.low, task.high)), ("bounds", bounds)):
            if not getattr(self, what) and np.any(np.isfinite(limits)):
                able = [s.name for s in SOLVERS.values() if getattr(s, what)]
                raise ValueError(f"method={self.name!r} takes no {what}: use one of {able}")
        for name in () if self.options is None else task.settings.more:
            known = ("maxiter", "maxtime", "tol", *(self.options or ()))
            check_choice(name, f"options: method={self.name!r}: option", known)


def _import(module: str, function: str = "solve") -> Callable[..., Any]:
    """Return a function of a module of this folder, which is imported when it is called."""

    def call(*arguments: object) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), function)(*arguments)

    return call


def _scipy(name: str, takes: str, derivatives: int, **tolerances: float) -> Solver:
    """Return the row of a method of SciPy."""
    solve, able = _import("scipy_methods"), ("bounds" in takes, "constraints" in takes)
    return Solver(name, solve, *able, derivatives, tolerances=tolerances)


# An error e of x changes f by its square: what f may change by is smaller than tol. SLSQP calls
# constraints incompatible where slopes of the objective are large. trust-constr would take the
# minimum of a barrier problem for its own.
_ANY: dict[str, Any] = {"bounds": True, "constraints": True, "derivatives": 2}
_ROWS = (
    Solver(
        *("ipm", _import("interior_point.method")),
        **_ANY,
        options=("mu_init",),
        proves_infeasible=True,
    ),
    Solver("ipopt", _import("ipopt"), **_ANY),
    Solver("sqp", _import("sqp"), **_ANY, options=(), record=_import("sqp", "record")),
    replace(_scipy("SLSQP", "bounds, constraints", 1, ftol=1.5), most_slope=100.0),
    _scipy("trust-constr", "bounds, constraints", 2, gtol=2.0, xtol=1.0, barrier_tol=1.0),
    _scipy("L-BFGS-B", "bounds", 1, gtol=1.0, ftol=1.5),
    replace(_scipy("TNC", "bounds", 1, gtol=1.0, ftol=1.5), maxiter="maxfun"),
    _scipy("BFGS", "", 1, gtol=1.0),
    _scipy("CG", "", 1, gtol=1.0),
    _scipy("Newton-CG", "", 2, xtol=1.0),
    _scipy("trust-exact", "", 2, gtol=1.0),
    _scipy("trust-ncg", "", 2, gtol=1.0),
    _scipy("trust-krylov", "", 2, gtol=1.0),
    _scipy("Nelder-Mead", "bounds", 0, xatol=1.0, fatol=1.0),
    _scipy("Powell", "bounds", 0, xtol=1.0, ftol=1.5),
    _scipy("COBYQA", "bounds, constraints", 0, final_tr_radius=1.0),
)
#: All solvers by name, in lower case.
SOLVERS: dict[str, Solver] = {row.name.lower(): row for row in _ROWS}
#: What users of other packages call a solver.
_ALIASES = {"sqpmethod": "sqp"}


def find_solver(method: str, trajectory: bool = False) -> Solver:
    """Return a solver by name; only those that take a ``trajectory`` where that is asked for."""
    name = method.lower() if isinstance(method, str) else ""
    able = {key: s for key, s in SOLVERS.items() if not (trajectory and s.record)}
    solver = able.get(_ALIASES.get(name, name))
    if solver is None:
        raise ValueError(f"method={method!r} is not one of {tuple(s.name for s in able.values())}")
    return solver


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
        # The only point there is: bounds hold every unknown.
        fits = task.violation(task.start, g) <= max(task.settings.tol, LEAST)
        held = task.answer(task.start.copy(), Status.SOLVED if fits else Status.INFEASIBLE)
        return replace(held, lam_x=-task.evaluator.slopes(task.start)[0])
    solver.check(task)
    # Some methods report no point before their first step.
    task.monitor.compare(task.start, f, task.violation(task.start, g))
    task.monitor.is_unbounded = Unboundedness(task)
    return _confirm(task, solver, _solve_once(task, solver))


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
