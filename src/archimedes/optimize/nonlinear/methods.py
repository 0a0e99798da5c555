"""The small solver as a task wants it, and results as users see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.optimize.nonlinear.constraints import residuals_by_name
from archimedes.optimize.nonlinear.programs import Program
from archimedes.optimize.problems.solutions import Multipliers, OptimizeResult
from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Monitor, Settings, Task, violation

__all__ = ["Edges", "result_of", "sqp_runner"]

#: Iterations of method="sqp" unless the options say otherwise.
SQP_ITERATIONS = 200

#: Lower and upper limits of the unknowns, then of the constraints.
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def sqp_runner(
    program: Program, args: tuple[Any, ...], settings: Settings, monitor: Monitor, told: bool
) -> Callable[..., Any]:
    """Return the solver: one native kernel, or one per iteration where somebody looks on."""
    count = settings.maxiter or SQP_ITERATIONS
    if not told and settings.maxtime is None:
        kernel = program.sqp_kernel(settings.tol, count)
        return lambda x0, edges: kernel(x0, edges, *args)
    first, step, last = program.sqp_steps(settings.tol)

    def run(x0: np.ndarray, edges: Edges) -> Any:
        state = first(x0, edges)
        while state.status == Status.ITERATION_LIMIT and state.steps < count:
            values = program.func(state.x, *args)
            off = max(violation(values[1:], *edges[2:]), violation(state.x, *edges[:2]))
            if not monitor.after(int(state.steps), state.x, float(values[0]), off):
                break
            state = step(state, edges, *args)
        return last(lambda x: program.func(x, *args), state, edges)

    return run


def result_of(
    program: Program, task: Task, answer: Answer, method: str, seconds: float
) -> OptimizeResult:
    """Return an answer in the user's terms."""
    f, g = task.evaluator.values(answer.x)
    values = tree.ravel(program.values_like)[1] if program.names else None
    counts = task.evaluator.counts
    return OptimizeResult(
        x=program.unravel(answer.x),
        fun=f,
        status=answer.status,
        multipliers=Multipliers(
            None if values is None else values(answer.lam_g), program.unravel(answer.lam_x)
        ),
        iterations=answer.iterations,
        constr=None if values is None else values(g),
        residuals=residuals_by_name(g, task.low, task.high, program.values_like),
        violation=task.violation(answer.x, g),
        evaluations={name: count.calls for name, count in counts.items()},
        times={**{name: count.seconds for name, count in counts.items()}, "solve": seconds},
        solver=method,
        details=answer.details,
    )
