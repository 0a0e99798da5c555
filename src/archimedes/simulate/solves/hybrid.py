"""Models with inputs and sampled parts, made into plain ones with a larger state.

The state becomes (x, memories); the user's functions see f(t, x, [input], [memories], *args). A
time series is a sampled part of its own, so that the solver stops at its samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.errors import TraceError, refer_to
from archimedes.function import vmap
from archimedes.simulate.events.event import Event, EventLike, check_events
from archimedes.simulate.problem.inputs import Clock, InputSeries, Sampled, check_sampled
from archimedes.simulate.problem.state_layout import (
    Args,
    as_state,
    check_time_first,
    layout_of,
    rounding,
)
from archimedes.simulate.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from archimedes.typing import Scalar, Tree

#: (t, memories) -> the arguments between x and the user's own.
Between = Callable[[Any, Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Hybrid:
    """A model with an input and sampled parts: ``dynamics`` of the larger state, and the clock."""

    dynamics: Callable[..., Any]
    between: Between
    inputs: Callable[[Any], Any] | None
    clock: Clock

    @property
    def acting(self) -> Clock | None:
        """The clock, if some part acts at times of its own."""
        return self.clock if self.clock.parts else None

    def events(self, events: EventLike | Sequence[EventLike] | None) -> tuple[Event, ...]:
        """Return the user's events on the larger state."""
        return tuple(_event(event, self.between) for event in check_events(events))

    def begin(self, t: Any, x0: Tree, args: Args, axes: tuple[Any, ...] | None) -> Any:
        """Return the initial state: parts that are due at the start have acted.

        ``axes`` are those of x0 and args in a batch, None for a single solve.
        """
        x = tree.map(lambda leaf: leaf * 1.0, as_state(x0))
        memories = tuple(tree.map(lambda leaf: leaf * 1.0, p.init) for p in self.clock.parts)

        def first(x: Tree, *args: Any) -> Any:
            return self.clock.tick(t, (x, memories), args)

        if axes is None:
            return first(x, *args)
        return vmap(first, in_axes=axes)(x, *args)

    def show(self, trajectory: Trajectory) -> Trajectory:
        """Return the trajectory of the user's state, with inputs and memories as ``u``."""
        x, memories = trajectory.x
        events, dense = trajectory.events, trajectory.dense
        if events is not None and "x_before" in events:
            events = {**events, **{k: events[k][0] for k in ("x_before", "x_after")}}
        return Trajectory(
            trajectory.t,
            x,
            u=self._inputs(trajectory.t, memories),
            status=trajectory.status,
            message=trajectory.message,
            stats=trajectory.stats,
            dense=None if dense is None else _OwnDense(dense),
            events=events,
            hold=self._hold(trajectory.t),
        )

    def _hold(self, t: np.ndarray) -> str | None:
        """Return how the recorded inputs go on between the samples; None where that has no name.

        They have none if they change at times that are not among the samples.
        """
        hold = "zoh" if self.inputs is None else getattr(self.inputs, "hold", None)
        mixed = self.clock.visible and hold != "zoh"
        if hold is None or mixed or not isinstance(t, np.ndarray) or not t.size:
            return None
        samples = t.reshape(-1, t.shape[-1])[:1]
        samples = samples[~np.isnan(samples)]
        for k, part in enumerate(self.clock.parts if len(samples) else ()):
            slack = rounding(samples[0], samples[-1])
            times = part.times_between(samples[0] + slack, samples[-1])
            # Values of a series count from just before its samples on, see `_inputs`.
            early = slack if k == self.clock.visible else 0.0
            first = samples[np.searchsorted(samples, times - early)]
            if np.any(first - times > slack):
                return None
        return hold

    def _inputs(self, t: np.ndarray, memories: Tree) -> Any:
        """Return what the dynamics were given at the times: one thing, or a pair."""
        if self.inputs is None:
            return self.clock.visible_memories(memories)
        if len(memories) > self.clock.visible and tree.leaves(memories[-1]):
            values = memories[-1]
            if isinstance(t, np.ndarray):
                # A time that rounding puts just before a jump is after it.
                values = self.inputs(np.nan_to_num(t + rounding(t)))
        else:
            rows = [self.inputs(time) for time in np.nan_to_num(t).ravel()]
            values = tree.map(lambda *v: np.reshape(v, (*t.shape, *np.shape(v[0]))), *rows)
        return (values, self.clock.visible_memories(memories)) if self.clock.visible else values


class _OwnDense:
    """The dense output of the user's part of the state."""

    def __init__(self, dense: Any) -> None:
        self.dense = dense

    def __call__(self, t: Scalar) -> Any:
        return self.dense(t)[0]

    def __getitem__(self, key: object) -> _OwnDense:
        return _OwnDense(self.dense[key])


def hybrid_of(
    func: Callable[..., Any],
    inputs: Callable[[Any], Any] | None,
    sampled: Sampled | Sequence[Sampled] | None,
    start: Any,
    end: Scalar,
) -> Hybrid:
    """Put a model, its input and its sampled parts together; the ends of the span may be traced."""
    check_time_first(func)
    parts = () if sampled is None else check_sampled(sampled, start, end)
    if inputs is not None and not callable(inputs):
        message = f"inputs is a {type(inputs).__name__}: write a function u(t), or "
        raise TypeError(message + "arc.InputSeries(t, u) for samples" + refer_to("input"))
    timed = bool(parts) or isinstance(inputs, InputSeries)
    if timed and is_traced(start):
        raise TraceError(
            "t_span[0] is traced, and which samples a solve sees jumps with it: sampled parts and "
            "time series need a start that is a number, as in t_span=(0.0, T)"
        )
    if timed and not is_traced(end) and end < start:
        raise ValueError(
            f"t_span = ({start}, {end}) goes back in time, where sampled parts and time series "
            "cannot follow: simulate forward"
        )
    single, visible = isinstance(sampled, Sampled), len(parts)
    held = isinstance(inputs, InputSeries) and inputs.hold == "zoh"
    if isinstance(inputs, InputSeries):
        parts = (*parts, _series_part(inputs, start))

    # Closures over plain values, so that kernels are found again (see ``function.dependencies``).
    def between(t: Scalar, memories: Tree) -> tuple[Any, ...]:
        between_args: tuple[Any, ...] = ()
        if inputs is not None:
            between_args = (memories[-1] if held else inputs(t),)
        if visible:
            between_args = (*between_args, memories[0] if single else tuple(memories[:visible]))
        return between_args

    def dynamics(t: Scalar, state: Tree, *args: Any) -> Any:
        x, memories = state
        slope = layout_of(x).check_derivative(func(t, x, *between(t, memories), *args), func)
        return slope, tree.map(lambda leaf: 0.0 * leaf, memories)

    return Hybrid(dynamics, between, inputs, Clock(parts, single, visible))


def _event(event: Event, between: Between) -> Event:
    own, change = event.fn, event.reset

    def fn(t: Scalar, state: Tree, *args: Any) -> Any:
        return own(t, state[0], *between(t, state[1]), *args)

    def reset(t: Scalar, state: Tree, *args: Any) -> Any:
        assert change is not None
        return change(t, state[0], *between(t, state[1]), *args), state[1]

    # Where errors should point to.
    fn.written_as, reset.written_as = own, change  # type: ignore[attr-defined]
    return replace(event, fn=fn, reset=None if change is None else reset)


def _series_part(series: InputSeries, start: float) -> Sampled:
    """Return a part that holds the samples, or one that only stops at the kinks."""
    times = np.unique(np.concatenate([[start], series.t[series.t > start]]))
    if series.hold == "zoh":
        return Sampled(lambda t, x, u, *args: series(t), series(start), times=times)
    return Sampled(lambda t, x, u, *args: (), (), times=times)
