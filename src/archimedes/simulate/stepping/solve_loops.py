"""The loops of a solve, written once in NumPy and recorded into one native kernel.

Around the trial steps of ``trial_step.py``: to given times, over a number of steps or of tries,
to the end. A kernel also returns, with a run that is still RUNNING, when ``setup.pause`` trial
steps have been made: the driver then looks for interrupts, reports progress, and calls again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import cond, scan, while_loop
from archimedes.simulate.statuses import RUNNING
from archimedes.simulate.stepping.dense_output import interpolated, known, row_of
from archimedes.simulate.stepping.trial_step import Plan, Run, Setup, attempt, direction_of

#: Bound of loops that end by themselves (a bound is needed by reverse mode only).
FOREVER = 2**40


def _running(setup: Setup, run: Run) -> Any:
    return (run.status == RUNNING) & (run.accepted + run.rejected < setup.pause)


def _repeat(
    going: Callable[[Run], Any],
    body: Callable[[Run], Run],
    run: Run,
    limit: int,
    adaptive: bool,
) -> Run:
    """Run ``body`` while ``going``, at most about ``limit`` times.

    A finite limit is for reverse mode, which keeps a state for every round a loop could make: a
    loop of loops keeps 2 sqrt(limit) of them, makes each step twice, and skips blocks not needed.
    """
    if limit == FOREVER:
        return while_loop(going, body, run, adaptive=adaptive)
    block = max(1, int(np.ceil(np.sqrt(limit))))

    def blocks(run: Run, _: Any) -> tuple[Run, None]:
        def some() -> Run:
            return while_loop(going, body, run, max_steps=block, adaptive=adaptive)

        return cond(going(run), some, lambda: run), None

    return scan(blocks, run, length=-(-limit // block))[0]


def go_to_times(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, times: Any, limit: int = FOREVER
) -> tuple[Run, Any]:
    """Go on to each of ``times`` (m,) in turn and return the states there, (m, n).

    Steps are not shortened to hit a time. Where the run stops before a time the state there is
    nan.
    """
    direction = direction_of(setup)

    def to(run: Run, time: Any) -> tuple[Run, Any]:
        def missing(t: Any) -> Any:
            return direction * (time - t) > 0.0

        run = _repeat(
            lambda r: _running(setup, r) & missing(r.t),
            lambda r: attempt(plan, setup, args, r, lambda t_new: ~missing(t_new)).run,
            run,
            limit,
            plan.adaptive,
        )
        x = interpolated(run.t_old, run.t, run.x_old, run.x, run.dense, time, plan.project)
        return run, known(~missing(run.t), x)

    return scan(to, run, times)


def make_steps(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, count: int
) -> tuple[Run, Any]:
    """Make up to ``count`` accepted steps; return a row for each (see ``step_rows``).

    Rows after the last step made repeat it.
    """
    wanted = None if run.dense is None else lambda t_new: t_new == t_new

    def one(run: Run, _: Any) -> tuple[Run, Any]:
        before = run.accepted
        run = while_loop(
            lambda r: _running(setup, r) & (r.accepted == before),
            lambda r: attempt(plan, setup, args, r, wanted).run,
            run,
            adaptive=plan.adaptive,
        )
        return run, row_of(run.t_old, run.t, run.x_old, run.x, run.dense)

    return scan(one, run, length=count)


def try_steps(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, count: int
) -> tuple[Run, Any]:
    """Try ``count`` steps; return a row for each, whose two times are equal where none was made.

    As ``make_steps`` for runs without events and sampled parts, but quicker: a run need not carry
    its interpolant from one step to the next, and in a batch no instance waits for the retry of
    another.
    """
    f, method = plan.derivative(args), plan.method
    nothing = np.zeros((method.dense_degree, plan.layout.size))

    def one(run: Run, _: Any) -> tuple[Run, Any]:
        def go() -> tuple[Run, Any]:
            new, step, h, accepted = attempt(plan, setup, args, run, None)
            dense = cond(
                accepted,
                lambda: method.dense(f, run.t, run.x, h, step),
                lambda: nothing,
            )
            return new, row_of(run.t, new.t, run.x, new.x, dense)

        def rest() -> tuple[Run, Any]:
            return run, row_of(run.t, run.t, run.x, run.x, nothing)

        return cond(_running(setup, run), go, rest)

    return scan(one, run, length=count)


def one_try(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, time: Any = None
) -> tuple[Any, ...]:
    """Try a step; return the run, its row, whether it was made, and whether to go on.

    One round of ``try_steps``, for a loop of native code around it. ``time``: the next output, so
    that steps before it need no interpolant.
    """
    f, method = plan.derivative(args), plan.method
    new, step, h, accepted = attempt(plan, setup, args, run, None)
    dense = cond(
        accepted & _reached(setup, new.t, time),
        lambda: method.dense(f, run.t, run.x, h, step),
        lambda: np.zeros((method.dense_degree, plan.layout.size)),
    )
    row = row_of(run.t, new.t, run.x, new.x, dense)
    return new, row, accepted, _running(setup, new)


def _reached(setup: Setup, t_new: Any, time: Any) -> Any:
    """Tell whether a step to ``t_new`` has an output, the next of which is at ``time`` if any."""
    return True if time is None else direction_of(setup) * (time - t_new) <= 0.0


def one_attempt(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, time: Any = None
) -> tuple[Any, ...]:
    """Try a step of a run that may have events: one round of ``make_steps``, as ``one_try``."""

    def wanted(t_new: Any) -> Any:
        return t_new == t_new if time is None else _reached(setup, t_new, time)

    new = attempt(plan, setup, args, run, wanted).run
    row = row_of(new.t_old, new.t, new.x_old, new.x, new.dense)
    return new, row, new.accepted > run.accepted, _running(setup, new)


def go_to_end(
    plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run, limit: int = FOREVER
) -> Run:
    """Go on to the end of the span; no interpolants are computed."""
    wanted = None if run.dense is None else lambda t_new: t_new != t_new
    return _repeat(
        lambda r: _running(setup, r),
        lambda r: attempt(plan, setup, args, r, wanted).run,
        run,
        limit,
        plan.adaptive,
    )
