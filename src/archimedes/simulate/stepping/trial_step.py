"""Step size control: the first step, and the PI controller of the others.

HNW: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993.
HW: Hairer, Wanner, Solving Ordinary Differential Equations II, 2nd edition, 1996.

A run: where a solve stands, and what it is made of; how it begins.

A run is a struct, so it travels through kernels, lanes and recordings, and can be stopped and
taken up again anywhere. Its ``status`` is RUNNING until the end of the span is reached or
something failed. ``trial_step.py`` moves it on.

One trial step of a run, in plain NumPy; the loops around it are in ``solve_loops.py``.

Events: ``signals`` hold the event functions at both ends of a step. Where there is an event in it
``settle`` finds the time, resets the state and begins again from there; with
``plan.events.log`` the loops then return with status SETTLED, for the driver to log the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import cond, stop_gradient
from archimedes.simulate.methods.method_table import (
    Derivative,
    Method,
    Step,
    Suspicion,
    piece,
    rms_norm,
    suspected,
)
from archimedes.simulate.problem.state_layout import Layout, Projection, rounding
from archimedes.simulate.statuses import EVENT, FINISHED, NON_FINITE, RUNNING, STEP_UNDERFLOW
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.simulate.events.event import Watch
    from archimedes.simulate.problem.inputs import Clock


#: The logarithm of 0.9.
LOG_SAFETY = -0.10536051565782628
#: A step grows and shrinks by at most these factors.
GROW, SHRINK = 10.0, 0.2
#: The logarithm of 1e-4: errors below that part of the tolerance do not make steps longer still.
SMALLEST_LOG = -9.210340371976182


def initial_step(
    f: Derivative, t: Any, x: Any, f0: Any, direction: Any, atol: Any, rtol: Any, order: int
) -> Any:
    """Return the size (> 0) of a first step (HNW, II.4, "Starting step size")."""
    scale = atol + np.abs(x) * rtol
    d0, d1 = rms_norm(x, scale), rms_norm(f0, scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1))
    f1 = f(t + direction * h0, x + direction * h0 * f0)
    d2 = rms_norm(f1 - f0, scale) / h0
    steepest = np.maximum(d1, d2)
    flat = ~(steepest > 1e-15)  # also where a trial point gave nan
    power = _root(0.01 / np.where(flat, 1.0, steepest), order)
    return np.minimum(100.0 * h0, np.where(flat, np.maximum(1e-6, h0 * 1e-3), power))


@piece("order")
def _root(x: Any, order: int) -> Any:
    return np.power(x, 1.0 / (order + 1))


@piece()
def error_log(norm: Any, finite: Any) -> Any:
    """Return the log of an error's norm; where that is not finite, the largest there is."""
    return np.log(np.maximum(np.where(finite, norm, 1e300), 1e-10))


@piece("order")
def next_factor(log_error: Any, log_before: Any, accepted: Any, again: Any, order: int) -> Any:
    """Return by how much to change the step after one of this error (log of its norm).

    The PI controller of HW IV.2 eq. (2.43), with beta = 0.2 / (order + 1) as in DOPRI5; a
    rejected step is judged by its own error alone, and the step after it does not grow
    (``again``).
    """
    q = order + 1
    beta = 0.2 / q
    alpha = 1.0 / q - 0.75 * beta
    integral = LOG_SAFETY - alpha * log_error
    wish = np.exp(np.where(accepted, integral + beta * log_before, integral))
    most = np.where(accepted & ~again, GROW, 1.0)
    return np.minimum(most, np.maximum(SHRINK, wish))


def smallest_step(t: Any, span: Any) -> Any:
    """Return the size below which a step from t is not worth trying.

    It is near the spacing of numbers at t, except where all of the span is: there steps may be
    as small as they can.
    """
    return np.minimum(16.0 * float(np.finfo(np.float64).eps) * np.abs(t), 1e-9 * span) + 1e-300


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
    #: What ``derivative`` returns, where that is something else than the function as it is.
    bound: Callable[[tuple[Any, ...]], Derivative] | None = None

    def derivative(self, args: tuple[Any, ...]) -> Derivative:
        """Return f(t, x) on flat vectors for these arguments."""
        if self.bound is not None:
            return self.bound(args)

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


def direction_of(setup: Setup) -> Any:
    """Return 1 where time goes forward, -1 where it goes back."""
    return np.where(setup.t_end >= setup.t_start, 1.0, -1.0)


def begin_run(plan: Plan, setup: Setup, t: Any, x: Any, args: tuple[Any, ...], dense: bool) -> Run:
    """Return the run that stands at t with state x; used at the start and after resets."""
    f, method = plan.derivative(args), plan.method
    memory = method.start(f, t, x)
    f0 = f(t, x)
    if plan.adaptive:
        assert method.error_order is not None
        guess = initial_step(
            f, t, x, f0, direction_of(setup), setup.atol, setup.rtol, method.error_order
        )
        # A guess that is lost in the rounding of t is too careful: the step's error will tell.
        guess = np.maximum(guess, float(np.finfo(np.float64).eps) * np.abs(t))
        size = np.where(setup.h > 0.0, setup.h, guess)
        size = np.minimum(np.minimum(size, setup.max_step), np.abs(setup.t_end - t))
    else:
        size = setup.h
    fine = np.all(np.isfinite(f0)) & np.all(np.isfinite(x))
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


#: A step that would leave less than this part of itself to the end is stretched to the end.
STRETCH = 1.01
#: Fixed steps of which the rounding of time is more than this part cannot be told apart; below
#: the second, it is ignored: a step on the grid then has exactly the length that was asked for.
COARSE, INVISIBLE = 0.25, 1e-9
#: A normalisation that moves a state by more than this restarts the method.
JUMP = 1e-6


class Attempt(NamedTuple):
    """A step that was tried: the run after it, the step, its length, whether it was accepted."""

    run: Run
    step: Step
    h: Any
    accepted: Any


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
    log_error = error_log(norm, finite)
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


class _Aim(NamedTuple):
    """Where a trial step is to end: at ``t_new``, ``h`` from here; ``stop`` is as far as it may go.

    ``last``: it ends at ``stop``; ``vanished``: it is lost in the rounding of time.
    """

    t_new: Any
    h: Any
    stop: Any
    last: Any
    vanished: Any


def _aimed(plan: Plan, setup: Setup, run: Run) -> _Aim:
    """Return where the next step is to end: at the times of sampled parts, and of the span."""
    stop = setup.t_end if plan.clock is None else plan.clock.stop(run.t, setup.t_end)
    left = stop - run.t
    last = STRETCH * np.abs(run.h) >= np.abs(left)
    if plan.adaptive:
        # The step that is really taken is run.h as rounded by adding it to t, so that time is the
        # sum of the steps.
        t_new = np.where(last, stop, run.t + run.h)
        h = t_new - run.t
        vanished = (h == 0.0) & (left != 0.0)
    else:
        t_new, h, vanished = _on_grid(setup, run, stop, last)
    # Differentiated, the grid of steps stands still (``odeint`` says how times have derivatives).
    return _Aim(t_new, stop_gradient(h), stop, last, vanished)


def attempt(
    plan: Plan,
    setup: Setup,
    args: tuple[Any, ...],
    run: Run,
    wanted: Callable[[Any], Any] | None,
) -> Attempt:
    """Try one step. ``wanted(t_new)`` tells whether its interpolant is needed (None: never)."""
    f, aim = plan.derivative(args), _aimed(plan, setup, run)
    step = plan.method.step(f, run.t, run.x, aim.h, run.memory, *_allowed_error(plan, setup, run))
    accepted, log_error, h_next = _judged(plan, setup, run, step, aim.h)
    accepted = accepted & ~aim.vanished
    x_new, memory = _projected(plan, f, aim.t_new, step, accepted)
    signals = _signals(plan, setup, args, run, f, aim.t_new, x_new)
    dense = _interpolant(plan, f, run, aim, step, accepted, wanted)
    good = Run(
        t=aim.t_new,
        x=x_new,
        h=h_next,
        memory=memory,
        log_error=log_error,
        again=accepted & False,
        status=np.where(aim.last & (aim.stop == setup.t_end), FINISHED, RUNNING),
        accepted=run.accepted + 1,
        rejected=run.rejected,
        t_old=run.t,
        x_old=run.x,
        dense=dense,
        signals=signals,
        suspicion=_suspicion(plan, run, step),
    )
    bad = tree.replace(
        run,
        h=h_next,
        again=accepted | True,
        status=_refused(plan, setup, run, aim, step, h_next),
        rejected=run.rejected + 1,
        dense=dense,
    )
    made = _choose(accepted, good, bad)
    return Attempt(_acted(plan, setup, args, made, aim, accepted), step, aim.h, accepted)


def _allowed_error(plan: Plan, setup: Setup, run: Run) -> tuple[Any, ...]:
    """Return the local error that a step may have, for methods that take it."""
    if not (plan.adaptive and plan.method.iterative):
        return ()
    return (stop_gradient(setup.atol + setup.rtol * np.abs(run.x)),)


def _signals(
    plan: Plan, setup: Setup, args: Any, run: Run, f: Derivative, t_new: Any, x_new: Any
) -> Any:
    """Return the event functions at the end of a step."""
    if plan.events is None:
        return run.signals
    slope, sign = f(t_new, x_new), direction_of(setup)
    return stop_gradient(plan.events.after(run.signals, t_new, x_new, slope, sign, args))


def _interpolant(
    plan: Plan,
    f: Derivative,
    run: Run,
    aim: _Aim,
    step: Step,
    accepted: Any,
    wanted: Callable[[Any], Any] | None,
) -> Any:
    """Return the interpolant that the run carries after a step."""
    if run.dense is None:
        return None
    assert wanted is not None
    # Events are searched on the interpolant.
    return cond(
        accepted if plan.events is not None else accepted & wanted(aim.t_new),
        lambda: plan.method.dense(f, run.t, run.x, aim.h, step),
        lambda: run.dense,
    )


def _suspicion(plan: Plan, run: Run, step: Step) -> Any:
    """Return what speaks for a stiff system after a step that was accepted."""
    if run.suspicion is None:
        return None
    return suspected(run.suspicion, step.stiffness, plan.method.stability or np.inf)


def _refused(plan: Plan, setup: Setup, run: Run, aim: _Aim, step: Step, h_next: Any) -> Any:
    """Return the status after a step that was refused: tried again unless it cannot be smaller."""
    failing = NON_FINITE if not plan.adaptive else RUNNING
    refused = np.where(aim.vanished | np.isfinite(np.sum(step.x)), STEP_UNDERFLOW, NON_FINITE)
    least = smallest_step(run.t, np.abs(setup.t_end - setup.t_start))
    # A step that is nan is no longer than the least one either.
    lost = aim.vanished | ~(np.abs(h_next) >= least) | (run.t + h_next == aim.t_new)
    return np.where(lost, refused, failing)


def _acted(plan: Plan, setup: Setup, args: Any, run: Run, aim: _Aim, accepted: Any) -> Run:
    """Return the run after events in the step, and after sampled parts that are due at its end."""
    if plan.events is not None:
        from archimedes.simulate.events.event_location import settle

        stepped = run
        run = cond(
            accepted,
            lambda: settle(plan, setup, args, stepped, begin_run),
            lambda: stepped,
        )
    if plan.clock is not None:
        settled = run
        due = (run.t == aim.stop) & accepted & (run.status != EVENT)
        run = cond(due, lambda: _ticked(plan, setup, args, settled), lambda: settled)
    return run


def _ticked(plan: Plan, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
    """Return the run after sampled parts have acted, with the method restarted."""
    assert plan.clock is not None
    x = plan.clock.flat_tick(plan.layout, run.t, run.x, plan.arguments(args))
    begun = begin_run(plan, setup, run.t, x, args, run.dense is not None)
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
