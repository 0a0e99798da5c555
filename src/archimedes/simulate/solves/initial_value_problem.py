"""Methods by name: each is imported when it is first asked for.

The instances of a solve: initial states and arguments of one, or of many along a batch axis.

What users give to a solver, made ready to record: the function, its arguments, the options.

Initial value problems, one or many: checked, flattened, solved into a Trajectory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import backend_of
from archimedes.errors import ArchimedesError, explained
from archimedes.function import Compiled
from archimedes.function.batching.batch_axes import instance, to_front
from archimedes.function.identity.states import content_of, fingerprint
from archimedes.function.identity.traversal import Same
from archimedes.simulate.methods.method_table import METHODS, Method, is_stiff
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.state_layout import (
    Layout,
    as_state,
    check_time_first,
    layout_of,
    projection,
)
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import Result, Samples
from archimedes.simulate.solves.driver import FIRST_CALL, Task, drive
from archimedes.simulate.solves.kernel_runs import Instances, one_instance
from archimedes.simulate.statuses import MANY_STEPS, RESET_NON_FINITE, message_of
from archimedes.simulate.stepping.dense_output import BatchDense
from archimedes.simulate.stepping.solve_kernels import Kernels, kernels_for
from archimedes.simulate.stepping.trial_step import Plan, Setup
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.simulate.trajectory.trajectory import Trajectory, assembled
from archimedes.symbolic.core.trace import is_tracing
from archimedes.system.floating_point import in_default_environment
from archimedes.tree import is_struct

if TYPE_CHECKING:
    from archimedes.simulate.events.event import Event, EventLike
    from archimedes.simulate.problem.inputs import Clock


#: Where methods are defined. A line here and a ``register`` there make a method available.
_MODULES = {
    "archimedes.simulate.methods.explicit": "euler heun rk4 bs3 dopri5 tsit5 dop853",
    "archimedes.simulate.methods.rosenbrock": "rodas5p",
    "archimedes.simulate.methods.implicit": "esdirk4 radau5",
    "archimedes.simulate.methods.switching": "auto",
    "archimedes.simulate.solves.bdf": "bdf",
    "archimedes.simulate.solves.sundials": "cvode ida",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


#: Names that users of the original type.
_OTHER_NAMES = {"cvodes": "cvode", "idas": "ida"}


def find_method(method: str | Method) -> Method:
    """Return the method of this name (a :class:`Method` is returned as it is).

    >>> find_method("rk4").order
    4
    """
    if isinstance(method, Method):
        return method
    method = _OTHER_NAMES.get(method, method)
    if method not in METHODS and method in _MODULE_OF:
        import_module(_MODULE_OF[method])
    if method not in METHODS:
        known = ", ".join(sorted({*_MODULE_OF, *METHODS}))
        raise ValueError(explained("method", f"method={method!r} is unknown: write one of {known}"))
    return METHODS[method]


def instances_of(
    x0: Any, args: tuple[Any, ...], in_axes: Any
) -> tuple[int, Any, list[Any], list[bool]]:
    """Bring the batch axis of x0 and args to the front.

    ``in_axes`` has an entry for x0 and one for each argument: an axis, None (shared by all), or a
    tree of these; one number stands for all. Returns the count, x0, and leaves and flags of args.
    """
    given = (in_axes,) * (1 + len(args)) if isinstance(in_axes, int) else tuple(in_axes)
    if len(given) != 1 + len(args):
        raise ValueError(
            f"in_axes has {len(given)} entries, but there are {1 + len(args)} things to describe: "
            "x0 and each of args"
        )
    everything = (x0, *args)
    leaves, treedef = tree.flatten(everything)
    axes = [axis for value, axis in zip(everything, given) for axis in _spread(value, axis)]
    count = _fronted(leaves, axes, treedef)
    own = len(tree.leaves(x0))
    # Where nothing of x0 is mapped, what is shared goes to where the other arrays lie.
    homes = [home for leaf in leaves if (home := backend_of(leaf)) is not None]
    xp = homes[0].arrays.module() if homes else np
    states = [
        leaf if axis is not None else xp.broadcast_to(xp.asarray(leaf), (count, *np.shape(leaf)))
        for leaf, axis in zip(leaves[:own], axes)
    ]
    many = [axis is not None for axis in axes[own:]]
    return count, tree.structure(x0).unflatten(states), leaves[own:], many


def _fronted(leaves: list[Any], axes: Sequence[int | None], treedef: Any) -> int:
    """Move the batch axis of each leaf to the front, in place; return its length."""
    sizes: dict[str, int] = {}
    for k, (axis, path) in enumerate(zip(axes, treedef.paths())):
        if axis is None:
            continue
        if not -np.ndim(leaves[k]) <= axis < np.ndim(leaves[k]):
            name = "x0" if path.startswith("[0]") else "args"
            raise ValueError(
                f"in_axes asks for axis {axis} of a leaf of {name} of shape {np.shape(leaves[k])}, "
                "which has no such axis: use None for what all instances share"
            )
        leaves[k] = to_front(leaves[k], axis)
        sizes[path] = len(leaves[k])
    if not sizes:
        raise ValueError("in_axes is None for everything: there is nothing to batch over")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the batch axes have different lengths: {sizes}")
    count = next(iter(sizes.values()))
    if not count:
        raise ValueError("the batch is empty: its axes have length 0")
    return count


def _spread(value: Any, axis: Any) -> list[int | None]:
    """Return the axis of each leaf of a value."""
    if axis is None or isinstance(axis, (int, np.integer)):
        return [None if axis is None else int(axis)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda part: part is not value)
    entries, given = tree.flatten(axis, is_leaf=lambda part: part is not axis)
    difference = shape.difference(given, "", parts, entries)
    if difference is not None:
        raise ValueError(f"in_axes do not match what they are for: {difference}")
    return [found for part, entry in zip(parts, entries) for found in _spread(part, entry)]


DEFAULT_METHOD = "dop853"
RTOL, ATOL = 1e-8, 1e-10
#: Steps a solve may take before it gives up; a bound against never ending, not a tuning knob.
MAX_STEPS = 10_000_000
#: Derivatives up to this many operations are copied into each stage of a step.
COPIED = 100


@dataclass
class Options:
    """How to solve: the arguments that all solvers share.

    ``dt``: fixed step (None: adaptive); ``first_step``, ``max_step`` of adaptive ones;
    ``project``: keep attitudes on their manifold; ``events``: what to watch for; ``backend``: what
    runs the kernels (None: the environment's or the default one).
    """

    rtol: Any = RTOL
    atol: Any = ATOL
    dt: float | None = None
    first_step: float | None = None
    max_step: float = np.inf
    max_steps: int | None = None
    project: bool = True
    events: EventLike | Sequence[EventLike] | None = None
    clock: Clock | None = None
    backend: str | None = None


@dataclass
class Model:
    """A derivative function made ready: ``plan`` for recording, ``args`` to go with it."""

    func: Callable[..., Any]
    key: Any
    args: tuple[Any, ...]
    full: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    #: The user's function and what else it was made of.
    source: Any

    def plan(self, layout: Layout, method: Method, options: Options, log: bool = False) -> Plan:
        """Return the plan for states of this layout; ``log``: kernels return at events."""
        return Plan(
            func=shared(self.func),
            layout=layout,
            method=method,
            project=projection(layout) if options.project else None,
            adaptive=is_adaptive(method, options.dt),
            events=_watched(options, layout, self.full, log),
            clock=options.clock,
            arguments=self.full,
        )

    def kernels(
        self, layout: Layout, method: Method, options: Options, log: bool = False
    ) -> Kernels:
        """Return the kernels for states of this layout, kept from an earlier call if possible."""
        adaptive = is_adaptive(method, options.dt)
        events = tuple(event.key for event in _events(options))
        clock = None if options.clock is None else options.clock.key
        key = (self.key, layout, method, bool(options.project), adaptive, events, log, clock)
        return kernels_for(
            key,
            lambda: self.plan(layout, method, options, log),
            self._sources(options),
            options.backend,
        )

    def _sources(self, options: Options) -> Any:
        """Return the functions of a plan, which are the same if they read the same objects."""
        if options.events is None and options.clock is None:
            return self.source
        events = _events(options)
        parts = () if options.clock is None else options.clock.parts
        return self.source, [(e.fn, e.reset) for e in events], [part.update for part in parts]


def _events(options: Options) -> tuple[Event, ...]:
    """Return the events to watch for, checked. Most solves have none and need none of it."""
    if options.events is None:
        return ()
    from archimedes.simulate.events.event import check_events

    return check_events(options.events)


def _watched(options: Options, layout: Layout, full: Any, log: bool) -> Any:
    """Return what watches for the events in a recording, None where there are none."""
    events = _events(options)
    if not events:
        return None
    from archimedes.simulate.events.event import Watch

    return Watch(events, layout, full, log)


def is_adaptive(method: Method, dt: Any) -> bool:
    """Tell whether a solve chooses its steps; a method that cannot must be given ``dt``."""
    if dt is not None:
        return False
    if method.error_order is None:
        raise ValueError(
            explained(
                "fixed steps",
                f"method={method.name!r} has no error estimate, so it takes fixed steps only: give "
                "their size with dt=..., or choose an adaptive method such as 'dop853'",
            )
        )
    return True


def shared(func: Callable[..., Any]) -> Compiled:
    """Compile a derivative such that the stages of a step share its code if it is long."""
    if isinstance(func, Compiled):
        given = func

        def func(t: Any, x: Any, *args: Any) -> Any:
            return given(t, x, *args)

        func.written_as = given.function  # type: ignore[attr-defined]
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
    check_time_first(func)
    given = argument_checks.check_args(args)
    me = func.__self__ if isinstance(func, MethodType) else None
    bound = is_struct(type(me))
    if not static_argnames and not bound:
        return Model(func, fingerprint(func), given, tuple, func)
    fixed = argument_checks.static_places(func, static_argnames, len(given))
    static = {k: given[k] for k in fixed}
    moving = tuple(a for k, a in enumerate(given) if k not in static)
    base: Any = func.__func__ if bound else func  # type: ignore[attr-defined]
    fixed_values = tuple((k, content_of(v)) for k, v in static.items())
    key = (fingerprint(base), bound, fixed_values)
    if bound:
        moving = (me, *moving)

    def full(rest: tuple[Any, ...]) -> tuple[Any, ...]:
        values = iter(rest[bound:])
        return tuple(static[k] if k in static else next(values) for k in range(len(given)))

    def call(t: Any, x: Any, *rest: Any) -> Any:
        return base(*rest[:bound], t, x, *full(rest))

    call.written_as = base  # type: ignore[attr-defined]
    return Model(call, key, moving, full, (base, tuple(map(Same, static.values()))))


@functools.lru_cache(maxsize=64)
def _tolerances(size: int, rtol: float, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of tolerances that are the same for all numbers, checked."""
    # Not np.full, which inside a recording would make them part of it.
    vectors = np.float64(rtol).repeat(size), np.float64(atol).repeat(size)
    argument_checks.check_tolerances(*vectors)
    for vector in vectors:
        vector.flags.writeable = False
    return vectors


def setup_of(layout: Layout, options: Options, start: Any, end: Any, pause: int = 0) -> Setup:
    """Return the numbers of a solve, checked."""
    if type(options.rtol) is float and type(options.atol) is float:
        rtol, atol = _tolerances(layout.size, options.rtol, options.atol)
    else:
        rtol, atol = layout.spread(options.rtol, "rtol"), layout.spread(options.atol, "atol")
        argument_checks.check_tolerances(rtol, atol)
    h = options.dt if options.dt is not None else options.first_step
    name = "dt" if options.dt is not None else "first_step"
    return Setup(
        t_start=start,
        t_end=end,
        h=0.0 if h is None else argument_checks.check_step(name, h),
        max_step=argument_checks.check_step("max_step", options.max_step),
        rtol=rtol,
        atol=atol,
        pause=pause,
    )


@dataclass
class Problem:
    """Initial value problems on flat vectors, checked, with their kernels."""

    kernels: Kernels
    setup: Setup
    instances: Instances
    max_steps: int
    #: Where the last solve ended.
    run: Any = None

    def times(self, t_eval: Any) -> np.ndarray:
        """Return output times, checked."""
        return argument_checks.check_times(t_eval, self.setup.t_start, self.setup.t_end)

    @in_default_environment
    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        monitor: Monitor | None = None,
        final: bool = False,
        threads: int | None = None,
    ) -> Trajectory:
        """Solve for the states at ``times``, at every step, or at the end only (``final``).

        A single solve keeps the interpolants of its steps where they are put out.
        """
        kernels, instances = self.kernels, self.instances
        dense = dense or (instances.alone and times is None)
        task = Task(kernels, self.setup, instances, self.max_steps, times, dense, final, threads)
        if not instances.alone:
            from archimedes.simulate.solves.batches import drive_groups

            found = drive_groups(task, monitor)
        elif kernels.plan.method.drive is not None:
            found = self._outside(times, monitor, final)
        else:
            found = drive(task, monitor)
        self.run = found.run
        return self._one(found) if instances.alone else self._many(found)

    def _outside(self, times: np.ndarray | None, monitor: Monitor | None, final: bool) -> Result:
        """Solve by a method that brings its own loop."""
        method, x0, args = self.kernels.plan.method, self.instances.x0[0], self.instances.args
        assert method.drive is not None
        if self.kernels.plan.events is not None:
            raise ArchimedesError(
                f"method={method.name!r} has no events: use a built-in method, for stiff systems "
                "method='rodas5p'"
            )
        if is_tracing():
            argument_checks.refuse_traced(self.kernels.derivative()(0.0, x0, args))
        ends = np.array([self.setup.t_end]) if final else times
        samples = Samples(self.setup, x0, ends, self.max_steps, monitor)
        return method.drive(self.kernels, args, samples)

    def _one(self, found: Result) -> Trajectory:
        """Return the trajectory of a single solve."""
        plan, run = self.kernels.plan, found.run
        status, count = found.status[0], found.lengths[0]
        looks = bool(_look_stiff(run))
        return assembled(
            t=found.t[0, :count],
            x=plan.layout.unpack(found.x[0, :count], (count,)),
            u=None,
            y=None,
            status=status,
            message=self._words(status, run, looks),
            stats=found.stats or _statistics(plan.method, run, int),
            dense=None if found.dense is None else found.dense[0],
            events=self._happened(found),
        )

    def _happened(self, found: Result) -> Any:
        """Return the events of a single solve as a table; None where none were watched for."""
        if self.kernels.plan.events is None:
            return None
        from archimedes.simulate.solves.event_logs import one_table

        return one_table(found.events[0], self.kernels.plan.layout)

    def _many(self, found: Result) -> Trajectory:
        """Return the trajectories of a batch."""
        plan = self.kernels.plan
        events = None
        if plan.events is not None:
            from archimedes.simulate.solves.event_logs import batch_table

            table = batch_table(found.events, found.starts, plan.layout, len(found.status))
            signals = found.run.signals
            count, last = map(self._here, (signals.count, signals.last))
            events = {**table, "count": count, "last": last}
        return Trajectory(
            found.t,
            plan.layout.unpack(found.x, found.t.shape),
            status=found.status,
            message=self._message(found),
            stats=_statistics(plan.method, found.run, self._here),
            dense=None if found.dense is None else BatchDense(found.dense),
            events=events,
        )

    def _words(self, status: int, run: Any, looks: bool = False, at: int | None = None) -> str:
        """Return the message of a run that ended so; ``at``: which one of a batch it is."""
        plan, t = self.kernels.plan, float(run.t if at is None else run.t[at])
        if status != RESET_NON_FINITE:
            return message_of(status, t, self.max_steps, plan.method.stiff, looks)
        here = ... if at is None else at
        x, fired = self._here(run.x)[here], self._here(run.signals.fired)[here]
        return message_of(status, t, reset=_reset_that_failed(plan, x, fired))

    def _here(self, array: Any) -> np.ndarray:
        """Return an array as NumPy's."""
        host = isinstance(array, np.ndarray)
        return array if host else self.kernels.backend.arrays.to_host(array)

    def _message(self, found: Result) -> str:
        """Say how many instances ended well, and what became of the first that did not."""
        bad = np.flatnonzero(found.status < 0)
        count = len(found.status)
        looks, run = 0, found.run
        if (run.accepted >= MANY_STEPS).any():
            run = tree.replace(run, suspicion=tree.map(self._here, run.suspicion))
            looks = int(np.sum(_look_stiff(run)))
        advice = f"; {looks} of {count} look stiff: method='rodas5p' or 'auto'" if looks else ""
        if not bad.size:
            return f"all {count} instances reached their end{advice}"
        first = int(bad[0])
        why = self._words(int(found.status[first]), found.run, at=first)
        return f"{bad.size} of {count} instances failed; instance {first}: {why}{advice}"


def _reset_that_failed(plan: Plan, x: np.ndarray, fired: np.ndarray) -> str:
    """Say which event's reset gave nan or infinity, and in which component of the state."""
    assert plan.events is not None
    resets = [event.reset for event in plan.events.events]
    numbers = [k for k, reset in enumerate(resets) if reset is not None and fired[k]]
    state = plan.layout.unpack(x)
    if hasattr(resets[numbers[0]], "written_as"):
        state = state[0]  # the user's part of a larger state
    names = [column.name for column in tree_columns(state, 0)]
    found = {name: float(v) for name, v in zip(names, x) if not np.isfinite(v)}
    values = ", ".join(f"{name} = {value}" for name, value in found.items())
    which = " and ".join(f"events[{k}]" for k in numbers)
    return f"the reset of {which} gave {values}"


def _statistics(method: Method, run: Any, shown: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what a solve cost, or each of a batch."""
    counts = {"steps": run.accepted, "rejected": run.rejected}
    if method.counts is not None:
        counts |= method.counts(run.memory)
    return {"method": method.name, **{name: shown(n) for name, n in counts.items()}}


def _look_stiff(run: Any) -> Any:
    """Tell which runs made many steps because of a stiff system."""
    suspicion = getattr(run, "suspicion", None)
    if suspicion is None:
        return np.zeros(np.shape(run.accepted), dtype=bool)
    return is_stiff(suspicion) & (run.accepted >= MANY_STEPS)


@in_default_environment
def prepare(
    func: Callable[..., Any],
    t_span: Any,
    x0: Any,
    method: str | Method | None,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    options: Options,
    in_axes: Any = None,
) -> Problem:
    """Check and flatten what a user gave; ``in_axes``: for a batch, as in ``instances_of``."""
    if in_axes is None:
        argument_checks.refuse_device_arrays(x0=x0, args=args)
    else:
        home = argument_checks.home_of_arrays(options.backend, x0=x0, args=args)
        options.backend = options.backend if home is None else home.name
        if home is not None:
            x0, args = tree.map(home.arrays.own, x0), tree.map(home.arrays.own, args)
    start, end = argument_checks.check_span(t_span, x0)
    if in_axes is None:
        state = as_state(x0)
        layout = layout_of(state)
        x = argument_checks.check_state(state, layout)
        model = model_of(func, args, static_argnames)
        instances = one_instance(x, model.args)
    else:
        model = model_of(func, args, static_argnames)
        layout, instances = _batch(func, x0, args, static_argnames, in_axes, model)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    kernels = model.kernels(layout, chosen, options, log=True)
    limit = step_limit(options, chosen.most_steps or MAX_STEPS)
    setup = setup_of(layout, options, start, end, min(limit, FIRST_CALL))
    return Problem(kernels, setup, instances, limit)


def _batch(
    func: Callable[..., Any],
    x0: Any,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    in_axes: Any,
    model: Model,
) -> tuple[Layout, Instances]:
    """Return the layout of one state of a batch, and its instances."""
    given = argument_checks.check_args(args)
    fixed = argument_checks.static_places(func, static_argnames, len(given))
    axes = (in_axes,) * (1 + len(given)) if isinstance(in_axes, int) else tuple(in_axes)
    moving = tuple(a for k, a in enumerate(given) if k not in fixed)
    if len(axes) == 1 + len(given):
        axes = (axes[0], *(a for k, a in enumerate(axes[1:]) if k not in fixed))
    count, states, leaves, many = instances_of(as_state(x0), moving, axes)
    layout = layout_of(tree.map(instance, states))
    argument_checks.check_state(states, layout)
    own = tree.leaves(model.args[: len(model.args) - len(moving)])
    flat = [np.reshape(leaf, (count, -1)) for leaf in tree.leaves(states)]
    return layout, Instances(
        count,
        np.concatenate(flat, axis=1).astype(np.float64),
        tree.structure(model.args).unflatten([*own, *leaves]),
        [*(False for _ in own), *many],
    )


def step_limit(options: Options, default: int = MAX_STEPS) -> int:
    """Return how many steps a solve may make."""
    if options.max_steps is not None and int(options.max_steps) < 1:
        raise ValueError(f"max_steps = {options.max_steps} must be at least 1")
    return default if options.max_steps is None else int(options.max_steps)
