"""Solving a task by sequential quadratic programming, as recorded code (``small/``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from archimedes.function import Compiled
from archimedes.function.recording_store import compile_frozen
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Limits, RecordedProgram, Settings, Task
from archimedes.optimize.small import sequential_quadratic as sequential
from archimedes.optimize.small.linear_algebra import UNROLLED
from archimedes.optimize.solvers.solver_table import Solver

#: Iterations unless the options say otherwise.
ITERATIONS = 200


def record(program: RecordedProgram, settings: Settings) -> Compiled:
    """Return ``(x0, limits, *args) -> sequential.SQPSolution``, recorded once."""
    tol, count = settings.tol, settings.maxiter or ITERATIONS

    def sqp(x0: np.ndarray, limits: Limits, *args: object) -> sequential.SQPSolution:
        func = lambda x: program.func(x, *args)  # noqa: E731
        return sequential.solve_nlp(func, x0, limits, tol=tol, max_iter=count)

    return _record_once(program, (tol, count), sqp)


def _record_once(
    program: RecordedProgram, key: Hashable, function: Callable[..., object]
) -> Compiled:
    if key not in program.kernels:
        kernel = compile_frozen(
            function,
            name=f"{function.__name__}_{program.name}",
            loops_from=UNROLLED if program.size > UNROLLED else None,
        )
        # First calls are short: they run on the unoptimized tier.
        kernel.drafts = True
        program.kernels[key] = kernel
    return program.kernels[key]


def solve(task: Task, solver: Solver) -> Answer:
    """Minimise in one native kernel, or in one per iteration if there is a callback or maxtime."""
    program, monitor = task.program, task.monitor
    assert program is not None
    limits = (task.lower, task.upper, task.low, task.high)
    with monitor.note_interrupts():
        if monitor.callback is None and task.settings.maxtime is None:
            kernel = record(program, task.settings)
            solution = kernel(task.start, limits, *task.evaluator.args)
        else:
            solution = _solve_stepwise(task, program, limits)
    status, x = Status(int(solution.status)), solution.x
    if monitor.stopped is not None:
        status, x = monitor.stopped, x if monitor.best is None else monitor.best
    return Answer(x, solution.lam_g, solution.lam_x, status, int(solution.iterations))


def _solve_stepwise(task: Task, program: RecordedProgram, limits: Limits) -> sequential.SQPSolution:
    """Solve with a look at every iteration; the steps are those of the whole, with its bits."""
    args, tol = task.evaluator.args, task.settings.tol

    def sqp_step(state: sequential.SQPState, limits: Limits, *args: object) -> sequential.SQPState:
        func = lambda x: program.func(x, *args)  # noqa: E731
        return sequential.SQPProgram(func, limits, tol).advance(state)

    step, most = _record_once(program, tol, sqp_step), task.settings.maxiter or ITERATIONS
    state = sequential.first_state(task.start, limits)
    while state.status == Status.ITERATION_LIMIT and state.steps < most:
        values = program.func(state.x, *args)
        off = task.violation(state.x, values[1:])
        if not task.monitor.after(int(state.steps), state.x, float(values[0]), off):
            break
        state = step(state, limits, *args)
    return sequential.last_state(lambda x: program.func(x, *args), state, limits)
