"""What users wrote besides the right-hand side, compiled for loops that are not recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from archimedes.simulate.events.event import Watch
from archimedes.simulate.problem.sampled_parts import Clock
from archimedes.simulate.problem.state_layout import Layout

__all__ = ["compiled_clock", "compiled_watch"]

#: (function, name, what it calls of the user's) -> what is called in its place.
Compile = Callable[[Callable[..., Any], str, tuple[Any, ...]], Callable[..., Any]]


@dataclass(frozen=True)
class _CompiledWatch(Watch):
    """Events whose functions are compiled, one by one; ``plain`` are these events as they are."""

    plain: Any = None
    compiled: Any = None
    made: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def _call(self, what: str, k: int, *args: Any) -> Any:
        function = self.made.get((what, k))
        if function is None:
            plain = getattr(self.plain, what)
            event = self.events[k]

            def call(*args: Any) -> Any:
                return plain(k, *args)

            function = self.compiled(call, f"events[{k}].{what}", (event.fn, event.reset))
            self.made[what, k] = function
        return function(*args)

    def value(self, k: int, t: Any, x: Any, args: tuple[Any, ...]) -> Any:
        """Return g of event k."""
        return self._call("value", k, float(t), x, args)

    def rate(self, k: int, t: Any, x: Any, xdot: Any, args: tuple[Any, ...]) -> Any:
        """Return dg/dt of event k."""
        return self._call("rate", k, float(t), x, xdot, args)

    def reset(self, k: int, t: Any, x: Any, args: tuple[Any, ...]) -> Any:
        """Return the state after event k."""
        return self._call("reset", k, float(t), x, args)


def compiled_watch(watch: Watch | None, compiled: Compile) -> Watch | None:
    """Return the same events with compiled functions."""
    if watch is None:
        return None
    return _CompiledWatch(**_own(watch), plain=watch, compiled=compiled)


@dataclass(frozen=True)
class _CompiledClock(Clock):
    """Sampled parts that act by one compiled function."""

    plain: Any = None
    compiled: Any = None
    made: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def flat_tick(self, layout: Layout, t: Any, x: Any, args: tuple[Any, ...]) -> Any:
        """Return the state after the parts that are due at t have acted."""
        if layout not in self.made:

            def tick(t: Any, x: Any, args: tuple[Any, ...]) -> Any:
                return self.plain.flat_tick(layout, t, x, args)

            updates = tuple(part.update for part in self.parts)
            self.made[layout] = self.compiled(tick, "sampled", updates)
        return self.made[layout](float(t), x, args)


def compiled_clock(clock: Clock | None, compiled: Compile) -> Clock | None:
    """Return the same sampled parts, compiled."""
    return clock and _CompiledClock(**_own(clock), plain=clock, compiled=compiled)


def _own(given: Any) -> dict[str, Any]:
    return {one.name: getattr(given, one.name) for one in fields(given)}
