"""What users give to a solver, made ready to record: the function, its arguments, the options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import explained
from archimedes.function import Compiled
from archimedes.function.identity.states import content_of, fingerprint
from archimedes.function.identity.traversal import Same
from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.state_layout import Layout, check_time_first
from archimedes.simulate.stepping.manifold import projection
from archimedes.simulate.stepping.run_state import Plan, Setup
from archimedes.simulate.stepping.solve_kernels import Kernels, kernels_for
from archimedes.tree import is_struct

if TYPE_CHECKING:
    from archimedes.simulate.events.event import Event, EventLike
    from archimedes.simulate.problem.sampled_parts import Clock

__all__ = [
    "ATOL",
    "DEFAULT_METHOD",
    "MAX_STEPS",
    "RTOL",
    "Model",
    "Options",
    "model_of",
    "setup_of",
]

DEFAULT_METHOD = "dop853"
RTOL, ATOL = 1e-8, 1e-10
#: Steps a solve may take before it gives up; a bound against never ending, not a tuning knob.
MAX_STEPS = 10_000_000
#: Derivatives up to this many operations are copied into each stage of a step.
COPIED = 100


@lazy_dataclass
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


@lazy_dataclass
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
