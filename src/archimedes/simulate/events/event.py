"""Events: what users write, and how the loops see them.

An event is a change of sign of g(t, x) along the solution. Every accepted step is searched for the
first one in it (``event_search``), which then acts (``event_location``).

Signs are taken along the integration: direction +1 is from negative to positive in the order in
which the solver meets the states, also when it goes back in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable, check_choice
from archimedes.errors import ShapeDtypeError, refer_to
from archimedes.function import jvp
from archimedes.function.dependencies.states import fingerprint
from archimedes.simulate.problem.state_layout import Args, DerivativeError, Layout, check_time_first
from archimedes.tree import struct
from archimedes.tree.struct_methods import struct_repr

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

__all__ = ["Event"]

#: What ``events`` may be or hold.
EventLike: TypeAlias = "Event | Callable[..., Any]"
#: Stands for "zero, but about to move to this side".
TINY = 1e-300


@dataclass(frozen=True, repr=False)
class Event:
    """Something that happens when a function of the state crosses zero.

    Several events at the same time all fire, in the order of the list, and each reset sees the
    state that the one before left. A function that touches zero without crossing it does not fire.

    Crossings are searched for within the steps, however fast `fn` varies compared with the state.
    The samples lie as close as the curvature of `fn` requires, and never further apart than a
    hundredth of the time span or `max_step`. A crossing and the next one back are always found if
    they are further apart than that.

    Parameters
    ----------
    fn : callable
        Function ``fn(t, x, *args)``. It returns a number, which crosses zero, or a bool, which
        changes.
    direction : {-1, 0, 1}, optional
        1: only crossings from negative to positive (False to True). -1: only the other way. 0, the
        default: both.
    terminal : bool, optional
        End the simulation at the event. False by default.
    reset : callable, optional
        Function ``reset(t, x, *args)`` that returns the state with which the simulation goes on.

    Examples
    --------
    >>> floor = Event(lambda t, x: x[0], direction=-1, reset=lambda t, x: x * np.array([1.0, -0.8]))
    >>> floor.terminal
    False
    """

    fn: Callable[..., Any]
    direction: int = 0
    terminal: bool = False
    reset: Callable[..., Any] | None = None

    __repr__ = struct_repr

    def __post_init__(self) -> None:
        check_callable(self.fn, "Event: fn", "fn(t, x, *args)")
        check_time_first(self.fn, "fn(t, x, ...)")
        check_choice(self.direction, "Event: direction", (-1, 0, 1))
        if self.reset is not None:
            check_callable(self.reset, "Event: reset", "reset(t, x, *args) -> x")
            check_time_first(self.reset, "reset(t, x, ...)")

    @property
    def key(self) -> Any:
        """What makes two events the same for a kernel."""
        reset = None if self.reset is None else fingerprint(self.reset)
        return fingerprint(self.fn), self.direction, bool(self.terminal), reset


def check_events(events: Any) -> tuple[Event, ...]:
    """Return events as a tuple: one or several, each an Event or a plain function.

    A function may have attributes ``terminal`` and ``direction``, as in SciPy.
    """
    entries = tuple(events or ()) if isinstance(events, (list, tuple, type(None))) else (events,)
    return tuple(_as_event(event, k) for k, event in enumerate(entries))


def _as_event(event: object, k: int) -> Event:
    if isinstance(event, Event):
        return event
    if not callable(event) or isinstance(event, type):
        raise TypeError(
            f"events[{k}] is a {type(event).__name__}: write a function g(t, x, *args), or "
            "arc.Event(g, ...) to say direction, terminal and reset"
        )
    direction = int(np.sign(getattr(event, "direction", 0)))
    return Event(event, direction, bool(getattr(event, "terminal", False)))


@struct
class Signals:
    """Values (E,) and rates (E,) of the event functions after a step and before it.

    ``width``: the length of the pieces in which they were looked at last, 0 at first.

    ``count`` (E,): how often each fired; ``last``: time of the last event; ``near`` and ``close``:
    how many events in a row followed the one before without (much) time between them; ``fired``
    (E,) which the last ones were, and ``x_before`` (n,) the state right before them.
    """

    g: Any
    rate: Any
    g_before: Any
    rate_before: Any
    count: Any
    last: Any
    near: Any
    close: Any
    width: Any
    fired: Any
    x_before: Any


@dataclass(frozen=True)
class Watch:
    """Events on flat vectors, as the loops see them.

    ``full(args)``: the user's arguments, from those that kernels take. ``log``: kernels return
    after each event, with status SETTLED, for the driver to log it.
    """

    events: tuple[Event, ...]
    layout: Layout
    full: Callable[[Args], Args]
    log: bool = False

    @property
    def directions(self) -> np.ndarray:
        """Directions (E,)."""
        return np.array([event.direction for event in self.events])

    def _own(self, x: Array) -> Any:
        """Return the state as a tree of its own, into which the user's function may write."""
        return self.layout.unpack(np.copy(x))

    def value(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return g of event k, a scalar."""
        g = self.events[k].fn(t, self._own(x), *self.full(args))
        if g is None:
            message = f"events[{k}].fn returned None instead of a number: is a `return` missing?"
            raise DerivativeError(message + refer_to("event"), self.events[k].fn)
        if np.shape(g) != ():
            message = (
                f"events[{k}].fn must return one number, it returned an array of shape "
                f"{np.shape(g)}: use one Event for each"
            )
            raise ValueError(message + refer_to("event"))
        # A truth value is 1 or -1, so that from False to True is up.
        return np.where(g, 1.0, -1.0) if np.result_type(g) == np.bool_ else g * 1.0

    def truths(self, t: Scalar, x: Array, args: Args) -> np.ndarray:
        """Return which events (E,) are truth values, without slope and never near zero."""
        own_args = self.full(args)
        flags = [np.result_type(e.fn(t, self._own(x), *own_args)) == np.bool_ for e in self.events]
        return np.array(flags)

    def rate(self, k: int, t: Scalar, x: Array, xdot: Array, args: Args) -> Any:
        """Return dg/dt of event k along (1, xdot)."""
        one = np.ones(())

        def along(t: Scalar, x: Array) -> Any:
            return self.value(k, t, x, args)

        return jvp(along, argnums=(0, 1))(t, x, (one, xdot))

    def values(self, t: Scalar, x: Array, args: Args) -> Any:
        """Return g of all events, (E,)."""
        return np.stack([self.value(k, t, x, args) for k in range(len(self.events))])

    def rates(self, t: Scalar, x: Array, xdot: Array, args: Args) -> Any:
        """Return dg/dt of all events, (E,)."""
        return np.stack([self.rate(k, t, x, xdot, args) for k in range(len(self.events))])

    def reset(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return the state after event k."""
        change = self.events[k].reset
        if change is None:
            return x
        state = change(t, self._own(x), *self.full(args))
        if state is None:
            raise DerivativeError(
                f"events[{k}].reset returned None instead of a state: is a `return` missing?",
                change,
            )
        return _pack_reset(self.layout, state, k)

    def start(self, t: Scalar, x: Array, xdot: Array, sign: Array, args: Args) -> Signals:
        """Return the signals where a run begins."""
        rate = sign * self.rates(t, x, xdot, args)
        g = side_of_zero(self.values(t, x, args), rate)
        none = np.zeros(len(self.events), dtype=np.int64)
        zero = 0.0 * t
        last = zero - np.inf * sign
        return Signals(g, rate, g, rate, none, last, none[0], none[0], zero, none > 0, x)

    def after(
        self, before: Signals, t: Scalar, x: Array, xdot: Array, sign: Array, args: Args
    ) -> Signals:
        """Return the signals after a step."""
        rate = sign * self.rates(t, x, xdot, args)
        g = side_of_zero(self.values(t, x, args), rate)
        return tree.replace(before, g=g, rate=rate, g_before=before.g, rate_before=before.rate)

    def crossings(self, before: Array, after: Array) -> Array:
        """Return which events (E,) crossed zero, in a direction they listen to."""
        return crossings(before, after, self.directions)


def _pack_reset(layout: Layout, state: Tree, k: int) -> Any:
    """Join what a reset returned, after checking that it is a state."""
    leaves, treedef = tree.flatten(np.stack(state) if isinstance(state, list) else state)
    if not layout.treedef.matches(treedef):
        raise ShapeDtypeError(
            f"events[{k}].reset must return a state of the structure it was given, it returned "
            f"{treedef!r}: write `return x.replace(...)`, or an array like x"
        )
    for leaf, shape, path in zip(leaves, layout.shapes, treedef.paths("x")):
        if (own := np.shape(leaf)) != shape:
            returned = f"events[{k}].reset returned {path} of shape {own}"
            raise ShapeDtypeError(f"{returned}, the state has {shape} there")
    return layout.pack(treedef.unflatten(leaves))


def side_of_zero(g: Array, rate: Array) -> Any:
    """Return g, with exact zeros moved to the side to which they are leaving."""
    return np.where(g == 0.0, TINY * np.sign(rate), g)


def crossings(before: Array, after: Array, directions: Array) -> Any:
    """Return where values change sign in the directions listened to.

    >>> crossings(np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, 2.0]), np.array([1, 1, 0]))
    array([ True, False, False])
    """
    up = (before < 0.0) & (after >= 0.0) & (directions >= 0)
    down = (before > 0.0) & (after <= 0.0) & (directions <= 0)
    return up | down
