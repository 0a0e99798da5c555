"""Initial value problems, one or many: checked, flattened, with their kernels, and solved.

``prepare`` makes a :class:`Problem` of what a user gave to a solver; ``Problem.solve`` returns its
trajectory.
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
from archimedes.errors import ArchimedesError, refer_to
from archimedes.function import Compiled
from archimedes.function.batching.batch_axes import count_instances, instance, spread_axes, to_front
from archimedes.function.dependencies.states import content_of, fingerprint
from archimedes.simulate.methods.method_table import METHODS, Method, is_stiff
from archimedes.simulate.problem import argument_checks, state_layout
from archimedes.simulate.problem.state_layout import Args, Layout
from archimedes.simulate.solves import driver
from archimedes.simulate.solves.collectors import Result, Samples, batch_table, one_table
from archimedes.simulate.solves.driver import Monitor
from archimedes.simulate.solves.kernel_runs import Instances
from archimedes.simulate.statuses import MANY_STEPS, Status, message_of
from archimedes.simulate.stepping.dense_output import BatchDense
from archimedes.simulate.stepping.solve_kernels import Kernels, kernels_for
from archimedes.simulate.stepping.trial_step import Plan, Run, Setup
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.simulate.trajectory.trajectory import Trajectory, assemble_trajectory
from archimedes.symbolic.core.trace import is_tracing
from archimedes.system.floating_point import in_default_environment
from archimedes.tree import is_struct

if TYPE_CHECKING:
    from archimedes.simulate.problem.inputs import Clock, Sampled
    from archimedes.simulate.solves.hybrid import Hybrid
    from archimedes.typing import ArrayLike, Scalar, Tree

#: The modules that define the methods. A line here and a ``register`` there make one available.
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

DEFAULT_METHOD = "dop853"
RTOL, ATOL = 1e-8, 1e-10
#: Steps a solve may take before it gives up; a bound against never ending, not a tuning knob.
MAX_STEPS = 10_000_000
#: Derivatives up to this many operations are copied into each stage of a step.
INLINE_LIMIT = 100


def find_method(method: str | Method | None) -> Method:
    """Return the method of this name (a :class:`Method` is returned as it is), or the default.

    >>> find_method("rk4").order
    4
    """
    if isinstance(method, Method):
        return method
    name = DEFAULT_METHOD if method is None else _OTHER_NAMES.get(method, method)
    if name not in METHODS and name in _MODULE_OF:
        import_module(_MODULE_OF[name])
    if name not in METHODS:
        known = ", ".join(sorted({*_MODULE_OF, *METHODS}))
        raise ValueError(f"method={method!r} is unknown: write one of {known}" + refer_to("method"))
    return METHODS[name]


@dataclass(eq=False, repr=False)
class Options:
    """How to solve: the arguments that all solvers share, as users give them.

    ``clock`` is what ``inputs`` and ``sampled`` become.
    """

    method: str | Method | None = None
    static_argnames: str | Sequence[str] | None = None
    rtol: Any = RTOL
    atol: Any = ATOL
    dt: float | None = None
    first_step: float | None = None
    max_step: float = np.inf
    max_steps: int | None = None
    project: bool = True
    events: Any = None
    inputs: Callable[[Any], Any] | None = None
    sampled: Sampled | Sequence[Sampled] | None = None
    backend: str | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if self.events is not None:  # most solves have none, and import nothing of them
            from archimedes.simulate.events.event import check_events

            self.events = check_events(self.events)

    def is_adaptive(self, method: Method) -> bool:
        """Return whether a solve chooses its steps; a method that cannot must be given ``dt``."""
        if self.dt is None and method.error_order is None:
            message = (
                f"method={method.name!r} has no error estimate, so it takes fixed steps only: give "
                "their size with dt=..., or choose an adaptive method such as 'dop853'"
            )
            raise ValueError(message + refer_to("fixed steps"))
        return self.dt is None

    def step_limit(self, default: int = MAX_STEPS) -> int:
        """Return how many steps a solve may make."""
        if self.max_steps is not None and int(self.max_steps) < 1:
            raise ValueError(f"max_steps = {self.max_steps} must be at least 1")
        return default if self.max_steps is None else int(self.max_steps)

    def setup(self, layout: Layout, start: Scalar, end: Scalar, pause: int = 0) -> Setup:
        """Return the numbers of a solve, checked."""
        if type(self.rtol) is float and type(self.atol) is float:
            rtol, atol = _equal_tolerances(layout.size, self.rtol, self.atol)
        else:
            rtol, atol = layout.spread(self.rtol, "rtol"), layout.spread(self.atol, "atol")
            argument_checks.check_tolerances(rtol, atol)
        name = "first_step" if self.dt is None else "dt"
        h = getattr(self, name)
        h = 0.0 if h is None else argument_checks.check_step(name, h)
        max_step = argument_checks.check_step("max_step", self.max_step)
        return Setup(start, end, h, max_step, rtol, atol, pause)


@functools.lru_cache(maxsize=64)
def _equal_tolerances(size: int, rtol: float, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of tolerances that are the same for all numbers, checked."""
    # Not np.full, which inside a recording would make them part of it.
    vectors = np.float64(rtol).repeat(size), np.float64(atol).repeat(size)
    argument_checks.check_tolerances(*vectors)
    for vector in vectors:
        vector.flags.writeable = False
    return vectors


@dataclass(eq=False, repr=False)
class Model:
    """A derivative function made ready: ``plan`` for recording, ``args`` to go with it.

    ``full`` returns the user's arguments for those that kernels take, and ``static`` are the
    numbers of the user's arguments that are no inputs of a kernel.
    """

    func: Callable[..., Any]
    key: Any
    args: Args
    full: Callable[[Args], Args]
    static: Sequence[int] = ()

    def plan(self, layout: Layout, method: Method, options: Options, log: bool = False) -> Plan:
        """Return the plan for states of this layout; ``log``: kernels return at events."""
        watch = None
        if options.events:
            from archimedes.simulate.events.event import Watch

            watch = Watch(options.events, layout, self.full, log)
        return Plan(
            func=share_code(self.func),
            layout=layout,
            method=method,
            project=state_layout.projection(layout) if options.project else None,
            adaptive=options.is_adaptive(method),
            events=watch,
            clock=options.clock,
            arguments=self.full,
        )

    def kernels(self, layout: Layout, method: Method, options: Options) -> Kernels:
        """Return the kernels for states of this layout, kept from an earlier call if possible.

        Functions that read the same objects have the same kernels.
        """
        clock, events = options.clock, options.events or ()
        forms = (bool(options.project), options.is_adaptive(method))
        keys = (tuple(event.key for event in events), None if clock is None else clock.key)
        build = lambda: self.plan(layout, method, options, log=True)  # noqa: E731
        return kernels_for((self.key, layout, method, forms, keys), build, options.backend)


def share_code(func: Callable[..., Any]) -> Compiled:
    """Compile a derivative such that the stages of a step share its code if it is long."""
    if isinstance(func, Compiled):
        compiled_by_user = func

        def func(t: Scalar, x: Tree, *args: Tree) -> Tree:
            return compiled_by_user(t, x, *args)

        func.written_as = compiled_by_user.function  # type: ignore[attr-defined]
    compiled = Compiled(func)
    compiled.inline_limit = INLINE_LIMIT
    return compiled


def model_of(
    func: Callable[..., Any],
    args: Args,
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
    state_layout.check_time_first(func)
    owner = func.__self__ if isinstance(func, MethodType) else None
    bound = is_struct(type(owner))
    if not static_argnames and not bound:
        return Model(func, fingerprint(func), args, tuple)
    static = {
        k: args[k] for k in argument_checks.static_positions(func, static_argnames, len(args))
    }
    inputs = tuple(value for k, value in enumerate(args) if k not in static)
    base: Any = func.__func__ if bound else func  # type: ignore[attr-defined]
    contents = tuple((k, content_of(value)) for k, value in static.items())

    def full(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        values = iter(inputs[bound:])
        return tuple(static[k] if k in static else next(values) for k in range(len(args)))

    def call(t: Scalar, x: Tree, *inputs: Tree) -> Tree:
        return base(*inputs[:bound], t, x, *full(inputs))

    call.written_as = base  # type: ignore[attr-defined]
    return Model(
        call,
        (fingerprint(base), bound, contents),
        (owner, *inputs) if bound else inputs,
        full,
        tuple(static),
    )


def expand_parts(
    func: Callable[..., Any],
    t_span: Sequence[Scalar],
    x0: Tree,
    args: Args,
    options: Options,
    in_axes: tuple[Any, ...] | None = None,
) -> tuple[Hybrid | None, Callable[..., Any], Tree]:
    """Return a model with inputs or sampled parts as a plain one, with a larger state.

    Returns None, func and x0 where it has neither. In a batch, the instances lie along the first
    axis of the larger state.
    """
    if options.inputs is None and options.sampled is None:
        return None, func, x0
    if options.static_argnames:
        raise ValueError("static_argnames cannot be combined with inputs or sampled")
    from archimedes.simulate.solves.hybrid import hybrid_of

    start, end = argument_checks.check_span(t_span, x0)
    hybrid = hybrid_of(func, options.inputs, options.sampled, start, end)
    options.clock, options.events = hybrid.acting, hybrid.events(options.events)
    return hybrid, hybrid.dynamics, hybrid.begin(start, x0, args, in_axes)


def axes_tuple(in_axes: Any, args: Args) -> tuple[Any, ...] | None:
    """Return the batch axes of x0 and each of args; one number stands for all."""
    if in_axes is None:
        return None
    axes = (in_axes,) * (1 + len(args)) if isinstance(in_axes, int) else tuple(in_axes)
    if len(axes) != 1 + len(args):
        raise ValueError(
            f"in_axes has {len(axes)} entries, but there are {1 + len(args)} values to describe: "
            "x0 and each of args"
        )
    return axes


@in_default_environment
def prepare(
    func: Callable[..., Any],
    t_span: Sequence[Scalar],
    x0: Tree,
    args: Args,
    options: Options,
    in_axes: tuple[Any, ...] | None = None,
) -> Problem:
    """Check and flatten what a user gave; ``in_axes``: batch axes of x0 and each of args."""
    if in_axes is None:
        argument_checks.refuse_device_arrays(x0=x0, args=args)
    else:
        home = argument_checks.home_of_arrays(options.backend, x0=x0, args=args)
        if home is not None:
            options.backend = home.name
            x0, args = tree.map(home.arrays.own, x0), tree.map(home.arrays.own, args)
    start, end = argument_checks.check_span(t_span, x0)
    model = model_of(func, args, options.static_argnames)
    if in_axes is None:
        state = state_layout.as_state(x0)
        layout = state_layout.layout_of(state)
        x = argument_checks.check_state(state, layout)
        instances = Instances(1, x[None], model.args, alone=True)
    else:
        layout, instances = _batch(model, x0, args, in_axes)
    method = find_method(options.method)
    kernels = model.kernels(layout, method, options)
    limit = options.step_limit(method.most_steps or MAX_STEPS)
    setup = options.setup(layout, start, end, min(limit, driver.FIRST_CALL))
    return Problem(kernels, setup, instances, limit)


def _batch(
    model: Model, x0: Tree, args: Args, in_axes: tuple[Any, ...]
) -> tuple[Layout, Instances]:
    """Return the layout of one state of a batch, and its instances."""
    axes_and_values = zip(in_axes, (state_layout.as_state(x0), *args), strict=True)
    pairs = [pair for k, pair in enumerate(axes_and_values) if k - 1 not in model.static]
    values = tuple(value for _, value in pairs)
    leaves, treedef = tree.flatten(values)
    axes = [axis for entry, value in pairs for axis in spread_axes(entry, value)]
    count = count_instances(leaves, axes, treedef, "solve_ode")
    if not count:
        raise ValueError("the batch is empty: its axes have length 0")
    leaves = list(map(to_front, leaves, axes))
    # Where nothing of x0 is mapped, what is shared goes to where the other arrays lie.
    homes = [home for leaf in leaves if (home := backend_of(leaf)) is not None]
    xp = homes[0].arrays.module() if homes else np
    size = len(tree.leaves(values[0]))
    states = [
        leaf if axis is not None else xp.broadcast_to(xp.asarray(leaf), (count, *np.shape(leaf)))
        for leaf, axis in zip(leaves[:size], axes)
    ]
    layout = state_layout.layout_of(
        tree.structure(values[0]).unflatten(list(map(instance, states)))
    )
    argument_checks.check_state(tree.structure(values[0]).unflatten(states), layout)
    flat = [np.reshape(leaf, (count, -1)) for leaf in states]
    own = tree.leaves(model.args[: len(model.args) - len(values) + 1])
    return layout, Instances(
        count,
        np.concatenate(flat, axis=1).astype(np.float64),
        tree.structure(model.args).unflatten([*own, *leaves[size:]]),
        [*(False for _ in own), *(axis is not None for axis in axes[size:])],
    )


@dataclass(eq=False, repr=False)
class Problem:
    """Initial value problems on flat vectors, checked, with their kernels."""

    kernels: Kernels
    setup: Setup
    instances: Instances
    max_steps: int
    #: Where the last solve ended.
    run: Any = None

    @in_default_environment
    def solve(
        self,
        t_eval: ArrayLike | None = None,
        dense: bool = False,
        progress: bool | Monitor | None = None,
        final: bool = False,
        threads: int | None = None,
    ) -> Trajectory:
        """Solve for the states at ``t_eval``, at every step, or at the end only (``final``).

        A single solve keeps the interpolants of its steps where every step is returned.
        """
        kernels, setup, instances = self.kernels, self.setup, self.instances
        times = None
        if t_eval is not None:
            times = argument_checks.check_times(t_eval, setup.t_start, setup.t_end)
        dense = dense or (instances.alone and times is None)
        task = driver.Task(kernels, setup, instances, self.max_steps, times, dense, final, threads)
        with driver.monitor_of(progress) as monitor:
            if not instances.alone:
                result = driver.drive_batch(task, monitor)
            elif kernels.plan.method.drive is not None:
                result = self._drive_outside(times, monitor, final)
            else:
                result = driver.drive(task, monitor)
        self.run = result.run
        return self._trajectory(result)

    def _drive_outside(
        self, times: np.ndarray | None, monitor: Monitor | None, final: bool
    ) -> Result:
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
        return method.drive(
            self.kernels, args, Samples(self.setup, x0, ends, self.max_steps, monitor)
        )

    def _trajectory(self, result: Result) -> Trajectory:
        """Return the trajectory of a single solve, or those of a batch."""
        plan, one, stats = self.kernels.plan, self.instances.alone, result.stats
        t, x, dense = result.t, result.x, result.dense
        if one:
            t, x = t[0, : result.lengths[0]], x[0, : result.lengths[0]]
        if stats is None:
            counts = {"steps": result.run.accepted, "rejected": result.run.rejected}
            if plan.method.counts is not None:
                counts |= plan.method.counts(result.run.memory)
            show = int if one else self._to_host
            stats = {"method": plan.method.name, **{name: show(n) for name, n in counts.items()}}
        return assemble_trajectory(
            t=t,
            x=plan.layout.unpack(x, t.shape),
            status=result.status[0] if one else result.status,
            message=self._message(result),
            stats=stats,
            dense=None if dense is None else dense[0] if one else BatchDense(dense),
            events=None if plan.events is None else self._event_table(result),
        )

    def _event_table(self, result: Result) -> dict[str, Any]:
        """Return the events that happened, as users see them."""
        layout, signals = self.kernels.plan.layout, result.run.signals
        if self.instances.alone:
            return one_table(result.events[0], layout)
        table = batch_table(result.events, result.starts, layout, len(result.status))
        count, last = map(self._to_host, (signals.count, signals.last))
        return {**table, "count": count, "last": last}

    def _to_host(self, array: Any) -> np.ndarray:
        """Return an array as NumPy's."""
        host = isinstance(array, np.ndarray)
        return array if host else self.kernels.backend.arrays.to_host(array)

    def _message(self, result: Result) -> str:
        """Return how a solve ended; of a batch, how many did well and why the first failed."""
        run, count = result.run, len(result.status)
        if self.instances.alone:
            return self._explain(result.status[0], run, bool(_look_stiff(run)))
        bad = np.flatnonzero(result.status < 0)
        stiff, advice = 0, ""
        if (run.accepted >= MANY_STEPS).any():
            suspicion = tree.map(self._to_host, run.suspicion)
            stiff = int(np.sum(_look_stiff(tree.replace(run, suspicion=suspicion))))
        if stiff:
            advice = f"; {stiff} of {count} look stiff: method='rodas5p' or 'auto'"
        if not bad.size:
            return f"all {count} instances reached their end{advice}"
        first = int(bad[0])
        why = self._explain(int(result.status[first]), run, at=first)
        return f"{bad.size} of {count} instances failed; instance {first}: {why}{advice}"

    def _explain(self, status: int, run: Run, stiff: bool = False, at: int | None = None) -> str:
        """Return the message of a run that ended so; ``at``: which one of a batch it is."""
        plan, t = self.kernels.plan, float(run.t if at is None else run.t[at])
        if status != Status.RESET_NON_FINITE:
            return message_of(status, t, self.max_steps, plan.method.stiff, stiff)
        here = ... if at is None else at
        x, fired = self._to_host(run.x)[here], self._to_host(run.signals.fired)[here]
        return message_of(status, t, reset=_explain_reset(plan, x, fired))


def _explain_reset(plan: Plan, x: np.ndarray, fired: np.ndarray) -> str:
    """Return which event's reset gave nan or infinity, and in which component of the state."""
    assert plan.events is not None
    resets = [event.reset for event in plan.events.events]
    numbers = [k for k, reset in enumerate(resets) if reset is not None and fired[k]]
    state = plan.layout.unpack(x)
    if hasattr(resets[numbers[0]], "written_as"):
        state = state[0]  # the user's part of a larger state
    names = [column.name for column in tree_columns(state, 0)]
    values = [f"{name} = {float(v)}" for name, v in zip(names, x) if not np.isfinite(v)]
    which = " and ".join(f"events[{k}]" for k in numbers)
    return f"the reset of {which} gave {', '.join(values)}"


def _look_stiff(run: Run) -> Any:
    """Return which runs made many steps because of a stiff system."""
    suspicion = getattr(run, "suspicion", None)
    if suspicion is None:
        return np.zeros(np.shape(run.accepted), dtype=bool)
    return is_stiff(suspicion) & (run.accepted >= MANY_STEPS)
