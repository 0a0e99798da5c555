"""A run, and one trial step of it, in plain NumPy; the loops around it are in ``loops.py``.

``begin`` makes a run, ``attempt`` tries one step. A run is a struct, so it travels through
kernels, lanes and recordings, and can be stopped and taken up again anywhere. Its ``status`` is
RUNNING until the end of the span is reached or something failed.

Events: ``signals`` hold the event functions at both ends of a step. Where there is an event in it
``settle`` finds the time, resets the state and begins again from there; with
``plan.events.log`` the loops then return with status SETTLED, for the driver to log the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import cond, stop_gradient
from archimedes.simulate.events.event import Watch
from archimedes.simulate.events.event_location import settle
from archimedes.simulate.methods.method_table import Derivative, Method, Step
from archimedes.simulate.methods.stiffness import Suspicion, suspected
from archimedes.simulate.problem.sampled_parts import Clock
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.problem.time_rounding import rounding
from archimedes.simulate.statuses import EVENT, FINISHED, NON_FINITE, RUNNING, STEP_UNDERFLOW
from archimedes.simulate.stepping.manifold import Projection
from archimedes.simulate.stepping.step_size import (
    SMALLEST_LOG,
    initial_step,
    next_factor,
    smallest_step,
)
from archimedes.tree import struct

__all__ = ["Attempt", "Plan", "Run", "Setup", "attempt", "begin", "direction_of"]

#: A step that would leave less than this part of itself to the end is stretched to the end.
STRETCH = 1.01
#: Fixed steps of which the rounding of time is more than this part cannot be told apart; below
#: the second, it is ignored: a step on the grid then has exactly the length that was asked for.
COARSE, INVISIBLE = 0.25, 1e-9
#: A normalisation that moves a state by more than this starts the method anew.
JUMP = 1e-6


@dataclass(frozen=True)
class Plan:
    """All that is fixed when a solve is recorded."""

    func: Callable[..., Any]
    layout: Layout
    method: Method
    project: Projection | None = None
    adaptive: bool = True
    events: Watch | None = None
    clock: Clock | None = None

    arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple

    def derivative(self, args: tuple[Any, ...]) -> Derivative:
        """Return f(t, x) on flat vectors for these arguments."""

        def f(t: Any, x: Any) -> Any:
            found = self.func(t, self.layout.unpack(x), *args)
            return self.layout.pack_derivative(found, self.func)

        return f


@struct
class Setup:
    """Numbers that a solve is given: they may differ between calls and between lanes.

    ``h`` is the fixed step, or a wish for the first one (0: to be chosen); ``pause`` the number of
    trial steps at which the loops return.
    """

    t_start: Any
    t_end: Any
    h: Any
    max_step: Any
    rtol: Any
    atol: Any
    pause: Any


@struct
class Run:
    """Where a solve stands: at time t with state x; the step before began at t_old, x_old."""

    t: Any
    x: Any
    h: Any
    memory: Any
    log_error: Any
    again: Any
    status: Any
    accepted: Any
    rejected: Any
    t_old: Any
    x_old: Any
    dense: Any
    signals: Any
    #: What speaks for a stiff system; None for methods that do not look out for it.
    suspicion: Any


class Attempt(NamedTuple):
    """A step that was tried: the run after it, the step, its length, whether it was accepted."""

    run: Run
    step: Step
    h: Any
    accepted: Any


def direction_of(setup: Setup) -> Any:
    """Return 1 where time goes forward, -1 where it goes back."""
    return np.where(setup.t_end >= setup.t_start, 1.0, -1.0)


def begin(plan: Plan, setup: Setup, t: Any, x: Any, args: tuple[Any, ...], dense: bool) -> Run:
    """Return the run that stands at t with state x; used at the start and after resets."""
    f, method = plan.derivative(args), plan.method
    memory = method.start(f, t, x)
    f0 = f(t, x)
    if plan.adaptive:
        assert method.error_order is not None
        guess = initial_step(
            f, t, x, f0, direction_of(setup), setup.atol, setup.rtol, method.error_order
        )
        # A guess that would vanish beside t is too careful: the error of the step will tell.
        guess = np.maximum(guess, float(np.finfo(np.float64).eps) * np.abs(t))
        size = np.where(setup.h > 0.0, setup.h, guess)
        size = np.minimum(np.minimum(size, setup.max_step), np.abs(setup.t_end - t))
    else:
        size = setup.h
    fine = np.all(np.isfinite(f0))
    degree = method.dense_degree
    return Run(
        t=t * 1.0,
        x=x,
        h=stop_gradient(direction_of(setup) * size),
        memory=memory,
        log_error=SMALLEST_LOG + 0.0 * stop_gradient(size),
        again=fine & False,
        status=np.where(fine, np.where(t == setup.t_end, FINISHED, RUNNING), NON_FINITE),
        accepted=np.where(fine, 0, 0),
        rejected=np.where(fine, 0, 0),
        t_old=t * 1.0,
        x_old=x,
        dense=np.zeros((degree, plan.layout.size)) if dense else None,
        signals=(
            None
            if plan.events is None
            else stop_gradient(plan.events.start(t, x, f0, direction_of(setup), args))
        ),
        suspicion=_unsuspected(fine) if plan.adaptive and method.stability else None,
    )


def _unsuspected(fine: Any) -> Suspicion:
    return Suspicion(np.where(fine, 0, 0), np.where(fine, 0, 0))


def _judged(plan: Plan, setup: Setup, run: Run, step: Step, h: Any) -> tuple[Any, Any, Any]:
    """Return whether a step is accepted, the log of its error, and the next h."""
    finite = np.all(np.isfinite(step.x))
    if not plan.adaptive:
        return finite, run.log_error, run.h
    x, new, error = stop_gradient((run.x, step.x, step.error))
    scale = setup.atol + setup.rtol * np.maximum(np.abs(x), np.abs(new))
    norm = plan.method.norm(error, scale)
    finite = finite & np.isfinite(norm)
    accepted = finite & (norm <= 1.0)
    # Where the norm is nan the step shrinks as much as it may.
    log_error = np.log(np.maximum(np.where(finite, norm, 1e300), 1e-10))
    order = plan.method.error_order
    assert order is not None
    factor = next_factor(log_error, run.log_error, accepted, run.again, order)
    size = np.minimum(np.abs(h) * factor, setup.max_step)
    return accepted, np.maximum(log_error, SMALLEST_LOG), stop_gradient(direction_of(setup) * size)


def _projected(plan: Plan, f: Derivative, t: Any, step: Step, accepted: Any) -> tuple[Any, Any]:
    """Return state and memory after an accepted step, on the manifold."""
    if plan.project is None:
        return step.x, step.memory
    x = plan.project(step.x)
    # Smooth projections move x by less than its error, and the memory is as good as before.
    # Others change the chart (shadow Rodrigues parameters): the derivative is another one then.
    jumped = np.max(np.abs(x - step.x)) > JUMP
    memory = cond(accepted & jumped, lambda: plan.method.start(f, t, x), lambda: step.memory)
    return x, memory


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return tree.map(lambda a, b: np.where(condition, a, b), yes, no)


def _on_grid(setup: Setup, run: Run, stop: Any, last: Any) -> tuple[Any, Any, Any]:
    """Return where a fixed step ends, its length, and whether it is lost in rounding.

    Times are multiples of the step, so that they do not drift; an event may have been in between.
    """
    t, t_start, dt = run.t, setup.t_start, run.h
    noise = rounding(t, t_start, stop) / np.abs(dt)
    slack = 1e-6 + noise
    count = np.floor((t - t_start) / dt + slack)
    there = np.abs(t - (t_start + count * dt)) <= slack * np.abs(dt)
    t_new = np.where(last, stop, t_start + (count + 1.0) * dt)
    exact = ~last & there & (noise <= INVISIBLE)
    return t_new, np.where(exact, dt, t_new - t), noise > COARSE


def attempt(
    plan: Plan,
    setup: Setup,
    args: tuple[Any, ...],
    run: Run,
    wanted: Callable[[Any], Any] | None,
) -> Attempt:
    """Try one step. ``wanted(t_new)`` tells whether its interpolant is needed (None: never)."""
    f, method = plan.derivative(args), plan.method
    # Steps end at the times of sampled parts, and at the end of the span.
    stop = setup.t_end if plan.clock is None else plan.clock.stop(run.t, setup.t_end)
    left = stop - run.t
    last = STRETCH * np.abs(run.h) >= np.abs(left)
    if plan.adaptive:
        # The step that is really taken: what is left of run.h beside t, so that time is the sum
        # of the steps.
        t_new = np.where(last, stop, run.t + run.h)
        h = t_new - run.t
        vanished = (h == 0.0) & (left != 0.0)
    else:
        t_new, h, vanished = _on_grid(setup, run, stop, last)
    # Differentiated, the grid of steps stands still (``odeint`` says how times have derivatives).
    h = stop_gradient(h)
    step = method.step(f, run.t, run.x, h, run.memory)
    accepted, log_error, h_next = _judged(plan, setup, run, step, h)
    accepted = accepted & ~vanished
    x_new, memory = _projected(plan, f, t_new, step, accepted)
    status = np.where(last & (stop == setup.t_end), FINISHED, RUNNING)
    signals = run.signals
    if plan.events is not None:
        slope = f(t_new, x_new)
        signals = plan.events.after(run.signals, t_new, x_new, slope, direction_of(setup), args)
        signals = stop_gradient(signals)
    dense = run.dense
    if dense is not None:
        assert wanted is not None
        # Events are searched on the interpolant.
        dense = cond(
            accepted if plan.events is not None else accepted & wanted(t_new),
            lambda: method.dense(f, run.t, run.x, h, step),
            lambda: run.dense,
        )
    # A rejected step is tried again unless it cannot be made smaller.
    failing = NON_FINITE if not plan.adaptive else RUNNING
    refused = np.where(vanished | np.isfinite(np.sum(step.x)), STEP_UNDERFLOW, NON_FINITE)
    least = smallest_step(run.t, np.abs(setup.t_end - setup.t_start))
    lost = vanished | (np.abs(h_next) < least) | (run.t + h_next == t_new)
    good = Run(
        t=t_new,
        x=x_new,
        h=h_next,
        memory=memory,
        log_error=log_error,
        again=accepted & False,
        status=status,
        accepted=run.accepted + 1,
        rejected=run.rejected,
        t_old=run.t,
        x_old=run.x,
        dense=dense,
        signals=signals,
        suspicion=(
            None
            if run.suspicion is None
            else suspected(run.suspicion, step.stiffness, method.stability or np.inf)
        ),
    )
    bad = tree.replace(
        run,
        h=h_next,
        again=accepted | True,
        status=np.where(lost, refused, failing),
        rejected=run.rejected + 1,
        dense=dense,
    )
    run = _choose(accepted, good, bad)
    if plan.events is not None:
        stepped = run
        run = cond(
            accepted,
            lambda: settle(plan, setup, args, stepped, begin),
            lambda: stepped,
        )
    if plan.clock is not None:
        settled = run
        due = (run.t == stop) & accepted & (run.status != EVENT)
        run = cond(due, lambda: _ticked(plan, setup, args, settled), lambda: settled)
    return Attempt(run, step, h, accepted)


def _ticked(plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
    """Return the run after sampled parts have acted, with a method that begins anew."""
    assert plan.clock is not None
    x = plan.clock.flat_tick(plan.layout, run.t, run.x, plan.arguments(args))
    begun = begin(plan, setup, run.t, x, args, run.dense is not None)
    signals = begun.signals
    if signals is not None:
        new = begun.signals
        signals = tree.replace(
            run.signals, g=new.g, rate=new.rate, g_before=new.g, rate_before=new.rate
        )
    failed = begun.status != RUNNING
    return tree.replace(
        run,
        x=x,
        memory=begun.memory,
        status=np.where(failed & (run.status == RUNNING), begun.status, run.status),
        signals=signals,
    )
