"""Settling a step that may contain an event: when, which, and how the run goes on.

The time is bracketed on the interpolant of the step by bisection, one bracket an event; the
earliest wins, and all within rounding of it fire together. It is then polished with real steps of
the method up to the event, so that it is as accurate as the solution, not only as the
interpolant.

Derivatives: the location is a constant; one Newton step on g, with value zero, gives the time its
implicit derivative dt = -dg / (dg/dt). After the event the grid of steps stands still again: the
state is carried back to the constant time along the new derivative, which is the jump of the
variational equations (the saltation matrix).

Symbols: theta in [0, 1] place in the step, t_e = t_old + h_e the time of the event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import cond, fori_loop, stop_gradient, while_loop
from archimedes.simulate.events import TINY, Signals, Watch, dips
from archimedes.simulate.methods import Derivative, evaluate_dense
from archimedes.simulate.statuses import CHATTERING, EVENT, FINISHED, RUNNING, SETTLED

__all__ = ["settle"]

BISECTIONS = 60
POLISHING = 4
#: Events this close, relative to the step, are simultaneous.
SIMULTANEOUS = 1e-10
#: Rounding of the time of an event by more than this part of the span counts.
VISIBLE = 1e-12
#: So many events in a row with gaps below this part of the time (or span) end the run: nothing
#: would be resolved by going on.
NEAR_GAP, NEAR_COUNT = 1e-12, 20
CLOSE_GAP, CLOSE_COUNT = 1e-8, 2000


class _Path:
    """The solution within a step, and the event functions along it."""

    def __init__(self, plan: Any, args: Any, run: Any, sign: Any) -> None:
        self.watch: Watch = plan.events
        self.project = plan.project
        self.args = stop_gradient(args)
        self.sign = sign
        self.count = len(self.watch.events)
        fixed = stop_gradient((run.t_old, run.t - run.t_old, run.x_old, run.dense))
        self.t, self.h, self.x, self.dense = fixed

    def state(self, theta: Any) -> Any:
        x = self.x + evaluate_dense(self.dense, theta)
        return x if self.project is None else self.project(x)

    def slope(self, theta: Any) -> Any:
        """dx/dt of the interpolant."""
        degree = len(self.dense)
        total = self.dense[-1] * float(degree)
        for k in range(degree - 2, -1, -1):
            total = total * theta + self.dense[k] * float(k + 1)
        return total / self.h

    def values(self, theta: Any) -> Any:
        """g of each event at its own theta (E,)."""
        each = range(self.count)
        return np.stack(
            [
                self.watch.value(k, self.t + theta[k] * self.h, self.state(theta[k]), self.args)
                for k in each
            ]
        )

    def rates(self, theta: Any) -> Any:
        """dg/dt along the integration, of each event at its own theta (E,)."""
        found = []
        for k in range(self.count):
            t, x = self.t + theta[k] * self.h, self.state(theta[k])
            found.append(self.watch.rate(k, t, x, self.slope(theta[k]), self.args))
        return self.sign * np.stack(found)


def _bisect(low: Any, high: Any, beyond: Callable[[Any], Any]) -> Any:
    """Return the first places (E,) between low and high from which on ``beyond`` holds."""

    def narrow(bracket: Any) -> Any:
        low, high = bracket
        middle = 0.5 * (low + high)
        past = beyond(middle)
        return np.where(past, low, middle), np.where(past, middle, high)

    def wide(bracket: Any) -> Any:
        low, high = bracket
        middle = 0.5 * (low + high)
        return np.any((middle != low) & (middle != high))

    return while_loop(wide, narrow, (low, high), max_steps=BISECTIONS)[1]


def _locate(path: _Path, signals: Signals) -> tuple[Any, Any]:
    """Return the place theta (E,) of the first crossing of each event, inf where there is none.

    Also the side (E,), -1 or 1, from which it crosses.
    """
    zero, one = np.zeros(path.count), np.ones(path.count)
    side = np.sign(signals.g)
    dipping = dips(signals)

    def turning() -> Any:
        place = _bisect(zero, one, lambda theta: side * path.rates(theta) > 0.0)
        return place, path.values(place)

    # Where g dips, the turning point splits the step in two parts with one crossing at most.
    turn, low = cond(np.any(dipping), turning, lambda: (one, signals.g))
    turn = np.where(dipping, turn, 1.0)
    inner = np.where(dipping, low, signals.g)
    first = path.watch.crossed(signals.g_before, inner)
    second = path.watch.crossed(inner, signals.g) & dipping & ~first
    left = np.where(second, turn, zero)
    right = np.where(second, one, turn)
    start = np.sign(np.where(second, inner, signals.g_before))
    # A value of zero counts as the other side: the place returned is at or after the crossing.
    found = _bisect(left, right, lambda theta: np.sign(path.values(theta)) != start)
    return np.where(first | second, found, np.inf), start


def _polished(path: _Path, f: Derivative, plan: Any, memory: Any, theta: Any, mine: Any) -> Any:
    """Return h_e, improved by Newton's method on g of the earliest event with real steps.

    A change that would leave the neighbourhood of the bracket is not made: where g only grazes
    zero its derivative says nothing.
    """
    guess = theta * path.h
    most = 1e-3 * np.abs(path.h)

    def improve(_: Any, h: Any) -> Any:
        x = plan.method.step(f, path.t, path.x, h, memory).x
        x = x if plan.project is None else plan.project(x)
        t = path.t + h
        g, rate = _mine(path.watch, mine, f, t, x, path.args)
        change = -g / np.where(rate == 0.0, 1.0, rate)
        good = (rate != 0.0) & np.isfinite(change) & (np.abs(h + change - guess) <= most)
        within = path.sign * (h + change) > 0.0
        return np.where(good & within, h + change, h)

    better = fori_loop(0, POLISHING, improve, guess)
    # Not beyond the step, of which the end (and the end of the span) is known exactly.
    return np.where(np.abs(better) >= np.abs(path.h), path.h, better)


def _mine(watch: Watch, mine: Any, f: Derivative, t: Any, x: Any, args: Any) -> tuple[Any, Any]:
    """Return g and dg/dt of the event that ``mine`` (E,) marks."""
    g = np.sum(np.where(mine, watch.values(t, x, args), 0.0))
    rate = np.sum(np.where(mine, watch.rates(t, x, f(t, x), args), 0.0))
    return g, rate


def settle(plan: Any, setup: Any, args: tuple[Any, ...], run: Any, begin: Any) -> Any:
    """Look for events in the step that a run just made, and return it after the first.

    ``begin(plan, setup, t, x, args, dense)`` starts a run anew. Where there is no event after
    all the run goes on as it was. The status is EVENT where one was terminal.
    """
    sign = np.where(setup.t_end >= setup.t_start, 1.0, -1.0)
    path = _Path(plan, args, run, sign)
    signals = stop_gradient(run.signals)
    places, sides = _locate(path, signals)
    theta = np.min(places)
    found = theta <= 1.0

    def nothing() -> Any:
        return tree.replace(run, status=np.where(run.t == setup.t_end, FINISHED, RUNNING))

    return cond(found, lambda: _fire(plan, setup, args, run, begin, path, (places, sides)), nothing)


def _fire(
    plan: Any, setup: Any, args: Any, run: Any, begin: Any, path: _Path, crossing: Any
) -> Any:
    places, sides = crossing
    watch: Watch = plan.events
    f = plan.derivative(args)
    memory = plan.method.start(f, path.t, run.x_old)
    theta = np.min(places)
    mine = _first(places == theta)
    close = SIMULTANEOUS * np.abs(path.h) + 4e-16 * np.abs(path.t)
    fired = np.abs(places - theta) * np.abs(path.h) <= close

    fixed = plan.derivative(path.args)
    h_e = stop_gradient(
        _polished(path, fixed, plan, plan.method.start(fixed, path.t, path.x), theta, mine)
    )
    t_e = np.where(h_e == path.h, stop_gradient(run.t), path.t + h_e)
    # Time is the sum of the steps, this one too: where rounding of the time can be seen, the step
    # is what is left of it beside t.
    left = t_e - path.t
    seen = np.abs(left - h_e) > VISIBLE * np.abs(setup.t_end - setup.t_start)
    h_e = np.where(seen & (left != 0.0), left, h_e)
    x_e = plan.method.step(f, path.t, run.x_old, h_e, memory).x
    x_e = x_e if plan.project is None else plan.project(x_e)

    # The time's implicit derivative; its value is zero.
    slope = f(t_e, x_e)
    g, rate = _mine(watch, mine, f, t_e, x_e, args)
    change = -g / stop_gradient(np.where(rate == 0.0, 1.0, rate))
    shift = np.where(rate == 0.0, 0.0, change - stop_gradient(change))
    x_before = x_e + slope * shift

    x = x_before
    for k, event in enumerate(watch.events):
        if event.reset is not None:
            x = cond(
                fired[k], lambda x, k=k: watch.reset(k, t_e + shift, x, args), lambda x: x * 1.0, x
            )
    x = x if plan.project is None else plan.project(x)
    ends = np.any(fired & np.array([event.terminal for event in watch.events]))
    x = x - np.where(ends, 0.0, 1.0) * (f(t_e, x) * shift)

    begun = begin(plan, setup, t_e, x, args, True)
    moved = np.any(fired & np.array([event.reset is not None for event in watch.events]))
    rests = np.where(begun.signals.rate == 0.0, sides, np.sign(begun.signals.rate))
    leaving = np.where(moved, rests, -sides)
    signals = _signals(run.signals, begun.signals, fired, leaving, setup, t_e, g)
    signals = tree.replace(signals, fired=fired, x_before=stop_gradient(x_before))
    going = SETTLED if watch.log else RUNNING
    status = np.where(begun.status == RUNNING, going, begun.status)
    status = np.where(t_e == setup.t_end, FINISHED, status)
    worn = (signals.near >= NEAR_COUNT) | (signals.close >= CLOSE_COUNT)
    status = np.where(ends, EVENT, np.where(worn, CHATTERING, status))
    part = h_e / path.h
    powers = np.stack([part ** (k + 1) for k in range(len(run.dense))])
    return tree.replace(
        begun,
        status=status,
        accepted=run.accepted,
        rejected=run.rejected,
        t_old=run.t_old,
        x_old=run.x_old,
        dense=run.dense * powers[:, None],
        signals=signals,
    )


def _first(marks: Any) -> Any:
    """Keep the first True of (E,)."""
    return marks & (np.cumsum(marks.astype(np.int64)) == 1)


def _signals(
    old: Signals, new: Signals, fired: Any, leaving: Any, setup: Any, t: Any, g: Any
) -> Signals:
    """Return the signals after an event.

    An event that fired is at its zero, or next to it by rounding; on which side it is then counts
    for nothing. It is ``leaving`` to the other side if nothing was reset; otherwise to where its
    rate says, or if it rests there, to where it came from: it will fire again, and end as
    chattering.
    """
    noise = 4.0 * np.abs(g) + 1e-12 * np.maximum(np.abs(old.g_before), np.abs(old.g))
    at_zero = fired & (np.abs(new.g) <= noise)
    g_new = np.where(at_zero, TINY * leaving, new.g)
    span = np.abs(setup.t_end - setup.t_start)
    gap = np.abs(t - old.last)
    near = gap <= NEAR_GAP * np.maximum(np.abs(t), span)
    close = gap <= CLOSE_GAP * span
    return tree.replace(
        new,
        g=stop_gradient(g_new),
        rate=stop_gradient(new.rate),
        g_before=stop_gradient(g_new),
        rate_before=stop_gradient(new.rate),
        count=old.count + fired,
        last=stop_gradient(t),
        near=np.where(near, old.near + 1, 0),
        close=np.where(close, old.close + 1, 0),
    )
