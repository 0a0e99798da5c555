"""The loops of a solve, written once in NumPy and recorded into one native kernel.

Around the trial steps of ``trial_step.py``: to given times, over a number of steps or of trials,
to the end. A kernel also returns, with a run that is still RUNNING, when ``setup.pause`` trial
steps have been made: the driver then looks for interrupts, reports progress, and calls again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import cond, scan, while_loop
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.dense_output import interpolate, nan_unless, row_of
from archimedes.simulate.stepping.trial_step import Integration, Run

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar

#: Bound of loops that end by themselves (a bound is needed by reverse mode only).
FOREVER = 2**40


def _is_running(ode: Integration, run: Run) -> Any:
    return (run.status == Status.RUNNING) & (run.accepted + run.rejected < ode.setup.pause)


def _repeat(
    ode: Integration,
    going: Callable[[Run], Any],
    wanted: Callable[[Any], Any] | None,
    run: Run,
    limit: int,
) -> Run:
    """Try steps while ``going``, at most about ``limit`` of them.

    A finite limit is for reverse mode, which keeps a state for every round a loop could make: a
    loop of loops keeps 2 sqrt(limit) of them, makes each step twice, and skips blocks not needed.
    """

    def step(run: Run) -> Run:
        return ode.attempt(run, wanted).run

    if limit == FOREVER:
        return while_loop(going, step, run, adaptive=ode.plan.adaptive)
    size = max(1, int(np.ceil(np.sqrt(limit))))

    def block(run: Run, _: object) -> tuple[Run, None]:
        def some() -> Run:
            return while_loop(going, step, run, max_steps=size, adaptive=ode.plan.adaptive)

        return cond(going(run), some, lambda: run), None

    return scan(block, run, length=-(-limit // size))[0]


def go_to_end(ode: Integration, run: Run, limit: int = FOREVER) -> Run:
    """Go on to the end of the span; no interpolants are computed."""
    wanted = None if run.dense is None else lambda t_new: t_new != t_new
    return _repeat(ode, lambda r: _is_running(ode, r), wanted, run, limit)


def go_to_times(
    ode: Integration, run: Run, times: Array, limit: int = FOREVER
) -> tuple[Run, Array]:
    """Go on to each of ``times`` (m,) in turn and return the states there, (m, n).

    Steps are not shortened to hit a time. Where the run stops before a time the state there is
    nan.
    """
    direction = ode.direction

    def to(run: Run, time: Scalar) -> tuple[Run, Array]:
        def missing(t: Scalar) -> Any:
            return direction * (time - t) > 0.0

        def going(run: Run) -> Any:
            return _is_running(ode, run) & missing(run.t)

        run = _repeat(ode, going, lambda t_new: ~missing(t_new), run, limit)
        ends = (run.t_old, run.t, run.x_old, run.x)
        return run, nan_unless(
            ~missing(run.t), interpolate(*ends, run.dense, time, ode.plan.project)
        )

    return scan(to, run, times)


def make_steps(ode: Integration, run: Run, count: int) -> tuple[Run, Array]:
    """Make up to ``count`` accepted steps; return a row for each (see ``dense_output.py``).

    Rows after the last step made repeat it.
    """
    wanted = None if run.dense is None else lambda t_new: t_new == t_new

    def one(run: Run, _: object) -> tuple[Run, Array]:
        before = run.accepted
        going = lambda r: _is_running(ode, r) & (r.accepted == before)  # noqa: E731
        run = _repeat(ode, going, wanted, run, FOREVER)
        return run, row_of(run.t_old, run.t, run.x_old, run.x, run.dense)

    return scan(one, run, length=count)


def try_steps(ode: Integration, run: Run, count: int) -> tuple[Run, Array]:
    """Try ``count`` steps; return a row for each, whose two times are equal where none was made.

    As ``make_steps`` for runs without events and sampled parts, but quicker: a run need not carry
    its interpolant from one step to the next, and in a batch no instance waits for the retry of
    another.
    """
    nothing = np.zeros((ode.plan.method.dense_degree, ode.plan.layout.size))

    def one(run: Run, _: object) -> tuple[Run, Array]:
        def rest() -> tuple[Run, Array]:
            return run, row_of(run.t, run.t, run.x, run.x, nothing)

        return cond(_is_running(ode, run), lambda: _try(ode, run, nothing)[:2], rest)

    return scan(one, run, length=count)


def _try(ode: Integration, run: Run, nothing: Array, wanted: Any = True) -> tuple[Run, Array, Any]:
    """Try a step; return the run, its row, and whether it was made.

    ``wanted`` tells of a run whether its step needs an interpolant; it is ``nothing`` elsewhere.
    """
    new, step, h, accepted = ode.attempt(run, None)
    dense = cond(
        accepted if wanted is True else accepted & wanted(new.t),
        lambda: ode.plan.method.dense(ode.f, run.t, run.x, h, step),
        lambda: nothing,
    )
    return new, row_of(run.t, new.t, run.x, new.x, dense), accepted


def try_step(ode: Integration, run: Run, time: Scalar | None = None) -> tuple[Any, ...]:
    """Try a step; return the run, its row, whether it was made, and whether to go on.

    One round of ``try_steps``, for a loop of native code around it. ``time``: the next output, so
    that steps before it need no interpolant.
    """
    nothing = np.zeros((ode.plan.method.dense_degree, ode.plan.layout.size))
    new, row, accepted = _try(ode, run, nothing, True if time is None else _reaches(ode, time))
    return new, row, accepted, _is_running(ode, new)


def make_step(ode: Integration, run: Run, time: Scalar | None = None) -> tuple[Any, ...]:
    """Try a step of a run that may have events: one round of ``make_steps``, as ``try_step``."""
    wanted = (lambda t_new: t_new == t_new) if time is None else _reaches(ode, time)
    new = ode.attempt(run, wanted).run
    row = row_of(new.t_old, new.t, new.x_old, new.x, new.dense)
    return new, row, new.accepted > run.accepted, _is_running(ode, new)


def _reaches(ode: Integration, time: Scalar) -> Callable[[Any], Any]:
    """Return the test whether a step to ``t_new`` reaches the next output, at ``time``."""
    return lambda t_new: ode.direction * (time - t_new) <= 0.0
