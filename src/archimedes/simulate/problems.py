"""From what users write to what the loops take: a problem, checked and flattened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled
from archimedes.simulate import checks
from archimedes.simulate.batches import Batch, BatchResult, batch_of, solve_batch
from archimedes.simulate.driver import Collector, Final, Monitor, Outputs, Steps, solve
from archimedes.simulate.event_driver import EventFinal, EventOutputs, EventSteps
from archimedes.simulate.events import Event, Watch, check_events
from archimedes.simulate.fingerprints import fingerprint
from archimedes.simulate.kernels import Kernels, kernels_for
from archimedes.simulate.layout import Layout, as_state, layout_of
from archimedes.simulate.loops import Plan, Setup
from archimedes.simulate.manifold import projection
from archimedes.simulate.methods import Method, find_method
from archimedes.simulate.statuses import message_of
from archimedes.simulate.trajectory import Trajectory
from archimedes.tree import is_struct
from archimedes.tree.content import content_key

__all__ = [
    "ATOL",
    "DEFAULT_METHOD",
    "RTOL",
    "Model",
    "Options",
    "Problem",
    "model_of",
    "prepare",
    "setup_of",
]

DEFAULT_METHOD = "dop853"
RTOL, ATOL = 1e-8, 1e-10
#: Steps a solve may take before it gives up; a bound against never ending, not a tuning knob.
MAX_STEPS = 10_000_000
#: Derivatives up to this many operations are copied into each stage of a step.
COPIED = 100


@dataclass(frozen=True)
class Options:
    """How to solve: the arguments that all solvers share.

    ``dt``: fixed step (None: adaptive); ``first_step``, ``max_step`` of adaptive ones;
    ``project``: keep attitudes on their manifold; ``events``: what to watch for.
    """

    rtol: Any = RTOL
    atol: Any = ATOL
    dt: float | None = None
    first_step: float | None = None
    max_step: float = np.inf
    max_steps: int | None = None
    project: bool = True
    events: Event | Sequence[Event] | None = None


@dataclass(frozen=True)
class Model:
    """A derivative function made ready: ``plan`` for recording, ``args`` to go with it."""

    func: Callable[..., Any]
    key: Any
    args: tuple[Any, ...]
    full: Callable[[tuple[Any, ...]], tuple[Any, ...]]

    def plan(self, layout: Layout, method: Method, options: Options, log: bool = False) -> Plan:
        """Return the plan for states of this layout; ``log``: kernels return at events."""
        events = check_events(options.events)
        return Plan(
            func=shared(self.func),
            layout=layout,
            method=method,
            project=projection(layout) if options.project else None,
            adaptive=checks.check_fixed(method, options.dt),
            events=Watch(events, layout, self.full, log) if events else None,
        )

    def kernels(
        self, layout: Layout, method: Method, options: Options, log: bool = False
    ) -> Kernels:
        """Return the kernels for states of this layout, kept from an earlier call if possible."""
        adaptive = checks.check_fixed(method, options.dt)
        events = tuple(event.key for event in check_events(options.events))
        key = (self.key, layout, method, bool(options.project), adaptive, events, log)
        return kernels_for(key, lambda: self.plan(layout, method, options, log))


def shared(func: Callable[..., Any]) -> Compiled:
    """Compile a derivative such that the stages of a step share its code if it is long."""
    if isinstance(func, Compiled):
        given = func

        def func(t: Any, x: Any, *args: Any) -> Any:
            return given(t, x, *args)

    compiled = Compiled(func)
    compiled.inline_limit = COPIED
    return compiled


def model_of(
    func: Callable[..., Any],
    args: Any,
    static_argnames: str | Sequence[str] | None = None,
) -> Model:
    """Take func(t, x, *args) apart into what is recorded and what a kernel is given.

    The instance of a struct's bound method is an argument like others: its numbers may change
    without a new recording.
    """
    if not callable(func):
        raise TypeError(
            f"func must be a function func(t, x, *args), got {type(func).__name__}: write "
            "odeint(f, ...), not odeint(f(t, x), ...)"
        )
    given = checks.check_args(args)
    fixed = checks.static_places(func, static_argnames, len(given))
    static = {k: given[k] for k in fixed}
    moving = tuple(a for k, a in enumerate(given) if k not in static)
    me = getattr(func, "__self__", None)
    bound = isinstance(func, MethodType) and is_struct(type(me))
    base: Any = func.__func__ if bound else func  # type: ignore[attr-defined]
    key = (fingerprint(base), bound, tuple((k, content_key(v)) for k, v in static.items()))
    if bound:
        moving = (me, *moving)

    def full(rest: tuple[Any, ...]) -> tuple[Any, ...]:
        values = iter(rest[bound:])
        return tuple(static[k] if k in static else next(values) for k in range(len(given)))

    if not static and not bound:
        return Model(func, key, moving, full)

    def call(t: Any, x: Any, *rest: Any) -> Any:
        return base(*rest[:bound], t, x, *full(rest))

    return Model(call, key, moving, full)


@dataclass(frozen=True)
class Problem:
    """An initial value problem on flat vectors, checked, with its kernels."""

    kernels: Kernels
    setup: Setup
    x0: np.ndarray
    args: tuple[Any, ...]
    max_steps: int

    def times(self, t_eval: Any) -> np.ndarray:
        """Return output times, checked."""
        return checks.check_times(t_eval, self.setup.t_start, self.setup.t_end)

    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        monitor: Monitor | None = None,
        final: bool = False,
    ) -> Trajectory:
        """Solve for the states at ``times``, at every step, or at the end only (``final``)."""
        plan, method = self.kernels.plan, self.kernels.plan.method
        collect: Any = None
        if method.drive is not None:
            ends = np.array([self.setup.t_end]) if final else times
            found = method.drive(
                self.kernels, self.setup, self.x0, self.args, ends, self.max_steps, monitor
            )
        else:
            collect = self._collector(times, dense, final)
            found = solve(
                self.kernels, self.setup, self.x0, self.args, collect, self.max_steps, monitor
            )
        run = found.run
        return Trajectory(
            found.t,
            self.kernels.plan.layout.unpack(found.x, (len(found.t),)),
            status=found.status,
            message=message_of(found.status, float(run.t), self.max_steps, method.stiff),
            stats=found.stats
            or {
                "method": method.name,
                "steps": int(run.accepted),
                "rejected": int(run.rejected),
            },
            dense=found.dense,
            events=None if plan.events is None else collect.log.table(plan.layout),
        )

    def _collector(self, times: np.ndarray | None, dense: bool, final: bool) -> Collector:
        watched = self.kernels.plan.events is not None
        if final:
            return (EventFinal if watched else Final)(self.kernels)
        if times is None or dense:
            return (EventSteps if watched else Steps)(self.kernels, self.setup, self.x0, times)
        return (EventOutputs if watched else Outputs)(self.kernels, self.setup, times)


@dataclass(frozen=True)
class BatchProblem:
    """Many initial value problems that differ in initial states and arguments."""

    kernels: Kernels
    setup: Setup
    batch: Batch
    max_steps: int

    def times(self, t_eval: Any) -> np.ndarray:
        """Return output times, checked."""
        return checks.check_times(t_eval, self.setup.t_start, self.setup.t_end)

    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        threads: int | None = None,
        monitor: Monitor | None = None,
    ) -> Trajectory:
        """Solve all for the states at ``times``, or at every step of each."""
        found = solve_batch(
            self.kernels, self.setup, self.batch, times, dense, self.max_steps, threads, monitor
        )
        method, run, layout = self.kernels.plan.method, found.run, self.kernels.plan.layout
        return Trajectory(
            found.t,
            layout.unpack(found.x, found.t.shape),
            status=found.status,
            message=self._message(found),
            stats={
                "method": method.name,
                "steps": np.asarray(run.accepted),
                "rejected": np.asarray(run.rejected),
            },
            dense=found.dense,
            events=(
                None
                if self.kernels.plan.events is None
                else {"count": run.signals.count, "last": run.signals.last}
            ),
        )

    def _message(self, found: BatchResult) -> str:
        """Say how many instances ended well, and what became of the first that did not."""
        bad = np.flatnonzero(found.status < 0)
        count = len(found.status)
        if not bad.size:
            return f"all {count} instances reached their end"
        first = int(bad[0])
        why = message_of(
            int(found.status[first]),
            float(found.run.t[first]),
            self.max_steps,
            self.kernels.plan.method.stiff,
        )
        return f"{bad.size} of {count} instances failed; instance {first}: {why}"


def prepare(
    func: Callable[..., Any],
    x0: Any,
    t_span: Any,
    method: str | Method | None,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    options: Options,
) -> Problem:
    """Check and flatten what a user gave."""
    start, end = checks.check_span(t_span)
    state = as_state(x0)
    layout = layout_of(state)
    checks.check_state(state, layout)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    model = model_of(func, args, static_argnames)
    return Problem(
        model.kernels(layout, chosen, options, log=True),
        setup_of(layout, options, start, end),
        layout.pack(state).astype(np.float64),
        model.args,
        _limit(options),
    )


def prepare_batch(
    func: Callable[..., Any],
    x0: Any,
    t_span: Any,
    method: str | Method | None,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    options: Options,
    in_axes: Any,
) -> BatchProblem:
    """Check and flatten a batch; ``in_axes`` as in ``batch_of``."""
    start, end = checks.check_span(t_span)
    given = checks.check_args(args)
    fixed = checks.static_places(func, static_argnames, len(given))
    axes = (in_axes,) * (1 + len(given)) if isinstance(in_axes, int) else tuple(in_axes)
    moving = tuple(a for k, a in enumerate(given) if k not in fixed)
    if len(axes) == 1 + len(given):
        axes = (axes[0], *(a for k, a in enumerate(axes[1:]) if k not in fixed))
    count, states, leaves, many = batch_of(as_state(x0), moving, axes)
    layout = layout_of(tree.map(lambda leaf: np.asarray(leaf)[0], states))
    checks.check_state(states, layout)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    model = model_of(func, args, static_argnames)
    own = tree.leaves(model.args[: len(model.args) - len(moving)])
    flat = [np.reshape(leaf, (count, -1)) for leaf in tree.leaves(states)]
    return BatchProblem(
        model.kernels(layout, chosen, options),
        setup_of(layout, options, start, end),
        Batch(
            count,
            np.concatenate(flat, axis=1).astype(np.float64),
            [*own, *leaves],
            tree.structure(model.args),
            [*(False for _ in own), *many],
        ),
        _limit(options),
    )


def _limit(options: Options) -> int:
    return MAX_STEPS if options.max_steps is None else int(options.max_steps)


def setup_of(layout: Layout, options: Options, start: Any, end: Any, pause: int = 0) -> Setup:
    """Return the numbers of a solve, checked."""
    rtol, atol = layout.spread(options.rtol, "rtol"), layout.spread(options.atol, "atol")
    checks.check_tolerances(rtol, atol)
    h = options.dt if options.dt is not None else options.first_step
    name = "dt" if options.dt is not None else "first_step"
    return Setup(
        t_start=start,
        t_end=end,
        h=0.0 if h is None else checks.check_step(name, h),
        max_step=checks.check_step("max_step", options.max_step),
        rtol=rtol,
        atol=atol,
        pause=pause,
    )
