"""One trial step of a solve, in plain NumPy; the loops around it are in ``solve_loops.py``.

A :class:`Run` is where a solve stands. It is a struct, so it travels through kernels, SIMD lanes
and recordings, and can be stopped and taken up again anywhere. Its ``status`` is RUNNING until the
end of the span is reached or something failed. An :class:`Integration` begins a run and tries
steps: it chooses where a step ends, makes it by the method, compares its error with the tolerances
and returns the run after it.

Events: ``signals`` hold the event functions at both ends of a step. Where there is an event in it,
``settle`` finds the time, resets the state and begins again from there; with ``plan.events.log``
the loops then return with status SETTLED, for the driver to log the event.

HNW: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993.
HW: Hairer, Wanner, Solving Ordinary Differential Equations II, 2nd edition, 1996.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import cond, stop_gradient
from archimedes.records import record
from archimedes.simulate.methods import method_table
from archimedes.simulate.methods.method_table import Derivative, Method, Step
from archimedes.simulate.problem.state_layout import Args, Layout, Projection, rounding
from archimedes.simulate.statuses import Status
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.simulate.events.event import Signals, Watch
    from archimedes.simulate.problem.inputs import Clock
    from archimedes.typing import Array, Scalar

#: The logarithm of 0.9.
LOG_SAFETY = -0.10536051565782628
#: A step grows and shrinks by at most these factors.
GROW, SHRINK = 10.0, 0.2
#: The logarithm of 1e-4: errors below that part of the tolerance do not make steps longer still.
SMALLEST_LOG = -9.210340371976182
#: A step that would leave less than this part of itself to the end is stretched to the end.
STRETCH = 1.01
#: Fixed steps of which the rounding of time is more than this part cannot be told apart; below
#: the second, it is ignored: a step on the grid then has exactly the length that was asked for.
COARSE, INVISIBLE = 0.25, 1e-9
#: A normalisation that moves a state by more than this restarts the method.
JUMP = 1e-6


@record
class Plan:
    """All that is fixed when a solve is recorded."""

    func: Callable[..., Any]
    layout: Layout
    method: Method
    project: Projection | None = None
    adaptive: bool = True
    events: Watch | None = None
    clock: Clock | None = None
    #: The user's arguments for those that kernels take.
    arguments: Callable[[Args], Args] = tuple
    #: What ``derivative`` returns, where that is something else than the function as it is.
    bound: Callable[[tuple[Any, ...]], Derivative] | None = None

    def derivative(self, args: Args) -> Derivative:
        """Return f(t, x) on flat vectors for these arguments."""
        if self.bound is not None:
            return self.bound(args)

        def f(t: Scalar, x: Array) -> Array:
            slope = self.func(t, self.layout.unpack(x), *args)
            return self.layout.pack(self.layout.check_derivative(slope, self.func))

        return f


@struct
class Setup:
    """Numbers that a solve is given: they may differ between calls and between SIMD lanes.

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


class _Aim(NamedTuple):
    """Where a trial step is to end: at ``t_new``, ``h`` from here; ``stop`` is as far as it may go.

    ``last``: it ends at ``stop``; ``vanished``: it is lost in the rounding of time.
    """

    t_new: Any
    h: Any
    stop: Any
    last: Any
    vanished: Any


# ---- step size control -----------------------------------------------------------------------


def initial_step(
    f: Derivative,
    t: Scalar,
    x: Array,
    f0: Array,
    direction: Scalar,
    setup: Setup,
    order: int,
) -> Scalar:
    """Return the size (> 0) of a first step (HNW, II.4, "Starting step size")."""
    scale = setup.atol + np.abs(x) * setup.rtol
    d0, d1 = method_table.rms_norm(x, scale), method_table.rms_norm(f0, scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1))
    f1 = f(t + direction * h0, x + direction * h0 * f0)
    d2 = method_table.rms_norm(f1 - f0, scale) / h0
    steepest = np.maximum(d1, d2)
    flat = ~(steepest > 1e-15)  # also where a trial point gave nan
    power = _root(0.01 / np.where(flat, 1.0, steepest), order)
    return np.minimum(100.0 * h0, np.where(flat, np.maximum(1e-6, h0 * 1e-3), power))


@method_table.piece("order")
def _root(x: Scalar, order: int) -> Scalar:
    return np.power(x, 1.0 / (order + 1))


@method_table.piece()
def error_log(norm: Scalar, finite: Scalar) -> Scalar:
    """Return the log of an error's norm; where that is not finite, the largest there is."""
    return np.log(np.maximum(np.where(finite, norm, 1e300), 1e-10))


@method_table.piece("order")
def next_factor(
    log_error: Scalar, log_before: Scalar, accepted: Scalar, again: Array, order: int
) -> Scalar:
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


def smallest_step(t: Scalar, span: Scalar) -> Scalar:
    """Return the size below which a step from t is not worth trying.

    It is near the spacing of numbers at t, except where all of the span is: there steps may be
    as small as they can.
    """
    return np.minimum(16.0 * float(np.finfo(np.float64).eps) * np.abs(t), 1e-9 * span) + 1e-300


# ---- runs ------------------------------------------------------------------------------------


@record
class Integration:
    """The solve of a plan for some numbers and arguments: it begins runs and tries steps."""

    plan: Plan
    setup: Setup
    args: Args

    @cached_property
    def f(self) -> Derivative:
        """The derivative f(t, x) on flat vectors."""
        return self.plan.derivative(self.args)

    @property
    def direction(self) -> Any:
        """1 where time goes forward, -1 where it goes back."""
        return np.where(self.setup.t_end >= self.setup.t_start, 1.0, -1.0)

    @property
    def span(self) -> Any:
        """The length of the time span."""
        return np.abs(self.setup.t_end - self.setup.t_start)

    def project(self, x: Array) -> Array:
        """Return a state on the manifold of its attitudes."""
        return x if self.plan.project is None else self.plan.project(x)

    def begin(self, t: Scalar, x: Array, dense: bool) -> Run:
        """Return the run that stands at t with state x; used at the start and after resets."""
        plan, method, setup = self.plan, self.plan.method, self.setup
        memory = method.start(self.f, t, x)
        f0 = self.f(t, x)
        size = setup.h
        if plan.adaptive:
            assert method.error_order is not None
            guess = initial_step(self.f, t, x, f0, self.direction, setup, method.error_order)
            # A guess that is lost in the rounding of t is too careful: the step's error will tell.
            guess = np.maximum(guess, float(np.finfo(np.float64).eps) * np.abs(t))
            size = np.where(setup.h > 0.0, setup.h, guess)
            size = np.minimum(np.minimum(size, setup.max_step), np.abs(setup.t_end - t))
        fine = np.all(np.isfinite(f0)) & np.all(np.isfinite(x))
        none = np.where(fine, 0, 0)
        signals = None
        if plan.events is not None:
            signals = stop_gradient(plan.events.start(t, x, f0, self.direction, self.args))
        return Run(
            t=t * 1.0,
            x=x,
            h=stop_gradient(self.direction * size),
            memory=memory,
            log_error=SMALLEST_LOG + 0.0 * stop_gradient(size),
            again=fine & False,
            status=np.where(
                fine, np.where(t == setup.t_end, Status.FINISHED, Status.RUNNING), Status.NON_FINITE
            ),
            accepted=none,
            rejected=none,
            t_old=t * 1.0,
            x_old=x,
            dense=np.zeros((method.dense_degree, plan.layout.size)) if dense else None,
            signals=signals,
            suspicion=method_table.Suspicion(none, none)
            if plan.adaptive and method.stability
            else None,
        )

    def attempt(self, run: Run, wanted: Callable[[Any], Any] | None) -> Attempt:
        """Try one step; ``wanted(t_new)``: whether its interpolant is needed (None: never)."""
        plan, setup, aim = self.plan, self.setup, self._aim(run)
        step = self._step(run, aim.h)
        accepted, log_error, h_next = self._check_error(run, step, aim.h)
        accepted = accepted & ~aim.vanished
        x_new, memory = self._finish_step(aim.t_new, step, accepted)
        signals = self._signals(run, aim.t_new, x_new)
        dense = self._interpolate(run, aim, step, accepted, wanted)
        suspicion = run.suspicion
        if suspicion is not None:
            suspicion = method_table.count_hits(
                suspicion, step.stiffness, plan.method.stability or np.inf
            )
        good = Run(
            t=aim.t_new,
            x=x_new,
            h=h_next,
            memory=memory,
            log_error=log_error,
            again=accepted & False,
            status=np.where(aim.last & (aim.stop == setup.t_end), Status.FINISHED, Status.RUNNING),
            accepted=run.accepted + 1,
            rejected=run.rejected,
            t_old=run.t,
            x_old=run.x,
            dense=dense,
            signals=signals,
            suspicion=suspicion,
        )
        bad = tree.replace(
            run,
            h=h_next,
            again=accepted | True,
            status=self._status_after_rejection(run, aim, step, h_next),
            rejected=run.rejected + 1,
            dense=dense,
        )
        new = tree.map(lambda a, b: np.where(accepted, a, b), good, bad)
        return Attempt(self._act(new, aim, accepted), step, aim.h, accepted)

    def _aim(self, run: Run) -> _Aim:
        """Return where the next step is to end: at the times of sampled parts, and of the span."""
        clock, stop = self.plan.clock, self.setup.t_end
        stop = stop if clock is None else clock.stop(run.t, stop)
        left = stop - run.t
        last = STRETCH * np.abs(run.h) >= np.abs(left)
        if self.plan.adaptive:
            # The step that is really taken is run.h as rounded by adding it to t, so that time is
            # the sum of the steps.
            t_new = np.where(last, stop, run.t + run.h)
            h = t_new - run.t
            vanished = (h == 0.0) & (left != 0.0)
        else:
            t_new, h, vanished = self._on_grid(run, stop, last)
        # Differentiated, the grid of steps stands still (``odeint``: how times have derivatives).
        return _Aim(t_new, stop_gradient(h), stop, last, vanished)

    def _on_grid(self, run: Run, stop: Scalar, last: Array) -> tuple[Any, Any, Any]:
        """Return where a fixed step ends, its length, and whether it is lost in rounding.

        Times are multiples of the step, so that they do not drift; an event may have been in
        between.
        """
        t, t_start, dt = run.t, self.setup.t_start, run.h
        noise = rounding(t, t_start, stop) / np.abs(dt)
        slack = 1e-6 + noise
        count = np.floor((t - t_start) / dt + slack)
        there = np.abs(t - (t_start + count * dt)) <= slack * np.abs(dt)
        t_new = np.where(last, stop, t_start + (count + 1.0) * dt)
        exact = ~last & there & (noise <= INVISIBLE)
        return t_new, np.where(exact, dt, t_new - t), noise > COARSE

    def _step(self, run: Run, h: Scalar) -> Step:
        """Make a step; iterative methods are given the local error that it may have."""
        setup, method = self.setup, self.plan.method
        if not (self.plan.adaptive and method.iterative):
            return method.step(self.f, run.t, run.x, h, run.memory)
        scale = stop_gradient(setup.atol + setup.rtol * np.abs(run.x))
        return method.step(self.f, run.t, run.x, h, run.memory, scale)

    def _check_error(self, run: Run, step: Step, h: Scalar) -> tuple[Any, Any, Any]:
        """Return whether a step is accepted, the log of its error, and the next h."""
        plan, setup = self.plan, self.setup
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
        h_next = stop_gradient(self.direction * size)
        return accepted, np.maximum(log_error, SMALLEST_LOG), h_next

    def _finish_step(self, t: Scalar, step: Step, accepted: Array) -> tuple[Any, Any]:
        """Return state and memory after an accepted step, on the manifold."""
        if self.plan.project is None:
            return step.x, step.memory
        x = self.plan.project(step.x)
        # Smooth projections move x by less than its error, and the memory is as good as before.
        # Others change the chart (shadow Rodrigues parameters): the derivative is another one then.
        restart = accepted & (np.max(np.abs(x - step.x)) > JUMP)
        start = self.plan.method.start
        return x, cond(restart, lambda: start(self.f, t, x), lambda: step.memory)

    def _signals(self, run: Run, t: Scalar, x: Array) -> Signals | None:
        """Return the event functions at the end of a step."""
        if self.plan.events is None:
            return run.signals
        after, slope = self.plan.events.after, self.f(t, x)
        return stop_gradient(after(run.signals, t, x, slope, self.direction, self.args))

    def _interpolate(
        self, run: Run, aim: _Aim, step: Step, accepted: Array, wanted: Callable[[Any], Any] | None
    ) -> Array | None:
        """Return the interpolant that the run carries after a step."""
        if run.dense is None:
            return None
        assert wanted is not None
        # Events are searched on the interpolant.
        return cond(
            accepted if self.plan.events is not None else accepted & wanted(aim.t_new),
            lambda: self.plan.method.dense(self.f, run.t, run.x, aim.h, step),
            lambda: run.dense,
        )

    def _status_after_rejection(self, run: Run, aim: _Aim, step: Step, h_next: Scalar) -> Array:
        """Return the status after a rejected step: tried again unless it cannot be smaller."""
        failing = Status.RUNNING if self.plan.adaptive else Status.NON_FINITE
        reason = np.where(
            aim.vanished | np.isfinite(np.sum(step.x)), Status.STEP_UNDERFLOW, Status.NON_FINITE
        )
        # A step that is nan is no longer than the least one either.
        too_small = ~(np.abs(h_next) >= smallest_step(run.t, self.span))
        lost = aim.vanished | too_small | (run.t + h_next == aim.t_new)
        return np.where(lost, reason, failing)

    def _act(self, run: Run, aim: _Aim, accepted: Array) -> Run:
        """Return the run after events in the step, and after sampled parts due at its end."""
        if self.plan.events is not None:
            from archimedes.simulate.events.event_location import settle

            stepped = run
            run = cond(accepted, lambda: settle(self, stepped), lambda: stepped)
        if self.plan.clock is not None:
            settled = run
            due = (run.t == aim.stop) & accepted & (run.status != Status.EVENT)
            run = cond(due, lambda: self._tick(settled), lambda: settled)
        return run

    def _tick(self, run: Run) -> Run:
        """Return the run after sampled parts have acted, with the method restarted."""
        plan, signals = self.plan, run.signals
        assert plan.clock is not None
        x = plan.clock.flat_tick(plan.layout, run.t, run.x, plan.arguments(self.args))
        begun = self.begin(run.t, x, run.dense is not None)
        if signals is not None:
            g, rate = begun.signals.g, begun.signals.rate
            signals = tree.replace(signals, g=g, rate=rate, g_before=g, rate_before=rate)
        failed = (begun.status != Status.RUNNING) & (run.status == Status.RUNNING)
        status = np.where(failed, begun.status, run.status)
        return tree.replace(run, x=x, memory=begun.memory, status=status, signals=signals)
