"""Where events happen in a step, and how the run goes on after them.

**Searching.** A step is as long as the state allows; an event function g may be faster. It is
searched on the interpolant of the step, in pieces. A piece is believed where g at points within
agrees well enough with the cubic that has g's values and slopes at both ends: the error of a cubic
there is c u^2 (1 - u)^2 with u in [0, 1] across the piece, the points give c, and SAFETY times that
added to the cubic must leave either no zero, or exactly one. Both are read off the coefficients of
Bernstein's form, of which u^2 (1 - u)^2 is one basis function. Otherwise the piece is halved; a
piece that follows one that was believed is at most twice as long, so that the search goes from
what is known to what is not. What is certain (decision 014): pieces are no longer than a hundredth
of the span, or the step. So g cannot keep the other sign for longer than that and remain unseen,
whatever it is.

**Locating.** In the first piece with an event, bisection finds the time of each; the earliest wins,
and all within rounding of it fire together. The time is then polished with real steps of the method
up to the event, so that it is as accurate as the solution, not only as the interpolant.

**Derivatives.** The location is a constant. Where an event acts, the state is moved to the event's
own time, which depends on everything that g does, changed there, and moved back to the constant
time along the new derivative (``function/derivatives/flows.py``): to first order that is the jump
of the variational equations (the saltation matrix), and it is right to any order.

Symbols: theta in [0, 1] fraction of the step, u in [0, 1] fraction of a piece, t_e = t_old + h_e
the time of the event.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import cond, fori_loop, stop_gradient, while_loop
from archimedes.function.derivatives.flows import event_time, move_state
from archimedes.simulate.events.event import TINY, Signals, Watch, side_of_zero
from archimedes.simulate.methods.method_table import Derivative, evaluate_dense
from archimedes.simulate.statuses import Status

if TYPE_CHECKING:
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.simulate.stepping.trial_step import Integration, Run
    from archimedes.typing import Array


BISECTIONS = 60
#: Pieces of the span that are looked at in any case.
LOOKS = 100.0
#: Where within a piece g is compared with the cubic, and how much larger than seen there the error
#: may be in between.
INSIDE = (0.21, 0.47, 0.79)
SAFETY = 4.0
#: The smallest piece, as a fraction of the step: LEAST for the first PATIENCE rounds, then
#: COARSE, which bounds the work for functions that no cubic explains.
LEAST, PATIENCE, COARSE = 2.0**-26, 8192, 2.0**-12
ROUNDS = PATIENCE + 2 * 4096
#: A step after one in which the search took more rounds than this is shorter.
BUSY = 256.0


class Path:
    """The solution within a step, and the event functions along it."""

    def __init__(self, ode: Integration, run: Run) -> None:
        assert ode.plan.events is not None
        self.watch: Watch = ode.plan.events
        self.project = ode.project
        self.args = stop_gradient(ode.args)
        self.sign = ode.direction
        self.count = len(self.watch.events)
        fixed = stop_gradient((run.t_old, run.t - run.t_old, run.x_old, run.dense))
        self.t, self.h, self.x, self.dense = fixed

    def state(self, theta: Array) -> Array:
        """Return x of the interpolant."""
        x = self.x + evaluate_dense(self.dense, theta)
        return self.project(x)

    def slope(self, theta: Array) -> Array:
        """Return dx/dt of the interpolant."""
        degree = len(self.dense)
        total = self.dense[-1] * float(degree)
        for k in range(degree - 2, -1, -1):
            total = total * theta + self.dense[k] * float(k + 1)
        return total / self.h

    def values(self, theta: Array) -> Array:
        """Return g of each event (E,) at its own theta (E,), or at the same theta ()."""
        if np.ndim(theta) == 0:
            return self.watch.values(self.t + theta * self.h, self.state(theta), self.args)
        return np.stack(
            [
                self.watch.value(k, self.t + theta[k] * self.h, self.state(theta[k]), self.args)
                for k in range(self.count)
            ]
        )

    def rates(self, theta: Array) -> Array:
        """Return dg/dt along the integration, of all events at one theta: (E,)."""
        t, x = self.t + theta * self.h, self.state(theta)
        return self.sign * self.watch.rates(t, x, self.slope(theta), self.args)


class Piece(NamedTuple):
    """A part of a step, with values and rates (E,) of g at its ends.

    ``has_event``: there is an event in it; ``width``: how long the next piece may be; ``rounds``:
    how many pieces were looked at.
    """

    left: Any
    right: Any
    g_left: Any
    rate_left: Any
    g_right: Any
    rate_right: Any
    has_event: Any
    width: Any
    rounds: Any


def _bernstein(piece: Piece, length: Array) -> list[Any]:
    """Return the five coefficients of the cubic through values and rates at the ends."""
    first = piece.g_left + piece.rate_left * (length / 3.0)
    second = piece.g_right - piece.rate_right * (length / 3.0)
    return [
        piece.g_left,
        0.25 * piece.g_left + 0.75 * first,
        0.5 * (first + second),
        0.75 * second + 0.25 * piece.g_right,
        piece.g_right,
    ]


def _quartic(q: list[Any], u: float) -> Array:
    v = 1.0 - u
    powers = (v**4, 4.0 * u * v**3, 6.0 * u**2 * v**2, 4.0 * u**3 * v, u**4)
    total = powers[0] * q[0]
    for power, coefficient in zip(powers[1:], q[1:]):
        total = total + power * coefficient
    return total


def _is_believed(path: Path, piece: Piece) -> Array:
    """Return for which events (E,) the piece has no zero for sure, or exactly one."""
    width = piece.right - piece.left
    q = _bernstein(piece, width * np.abs(path.h))
    c = np.zeros(path.count)
    for u in INSIDE:
        miss = np.abs(path.values(piece.left + u * width) - _quartic(q, u))
        c = np.maximum(c, miss / (u * (1.0 - u)) ** 2)
    # c u^2 (1 - u)^2 is c / 6 in the middle coefficient.
    error = (SAFETY / 6.0) * c
    side = np.sign(piece.g_left)
    none = (side * q[1] > 0.0) & (side * q[2] > error) & (side * q[3] > 0.0) & (side * q[4] > 0.0)
    falls = [side * (a - b) for a, b in itertools.pairwise(q)]
    one = (falls[0] >= 0.0) & (falls[1] > error) & (falls[2] > error) & (falls[3] >= 0.0)
    return none | (one & (side * q[4] < 0.0)) | (side == 0.0)


def first_piece(path: Path, signals: Signals, span: Array) -> Piece:
    """Search a step whose end has these signals; the piece of the first event, if any was found."""
    size = np.abs(path.h)
    most = np.minimum(1.0, span / (LOOKS * size))
    known = np.where(signals.width > 0.0, 2.0 * signals.width / size, 1.0)

    def look(piece: Piece) -> Piece:
        reach = piece.left + piece.width
        right = np.where(piece.left + 1.01 * piece.width >= 1.0, 1.0, reach)
        rate = np.where(right == 1.0, signals.rate, path.rates(right))
        g = np.where(right == 1.0, signals.g, side_of_zero(path.values(right), rate))
        tried = piece._replace(right=right, g_right=g, rate_right=rate)
        width = right - piece.left
        least = np.where(piece.rounds < PATIENCE, LEAST, COARSE)
        good = np.all(_is_believed(path, tried)) | (width <= least)
        has_event = good & np.any(path.watch.crossings(piece.g_left, g))
        on = good & ~has_event
        return Piece(
            left=np.where(on, right, piece.left),
            right=right,
            g_left=np.where(on, g, piece.g_left),
            rate_left=np.where(on, rate, piece.rate_left),
            g_right=g,
            rate_right=rate,
            has_event=has_event,
            width=np.minimum(np.where(good, 2.0 * width, 0.5 * width), most),
            rounds=piece.rounds + 1.0,
        )

    zero = 0.0 * size
    begun = Piece(
        left=zero,
        right=zero,
        g_left=signals.g_before,
        rate_left=signals.rate_before,
        g_right=signals.g_before,
        rate_right=signals.rate_before,
        has_event=size < 0.0,
        width=np.minimum(known, most),
        rounds=zero,
    )
    return while_loop(lambda p: ~p.has_event & (p.left < 1.0), look, begun, max_steps=ROUNDS)


def limit_step(piece: Piece, h: Array, h_next: Array) -> Array:
    """Return the next step, shorter if the search in this one took many rounds."""
    size = np.abs(h) * np.maximum(BUSY / np.maximum(piece.rounds, 1.0), 0.1)
    return np.where(piece.rounds > BUSY, np.sign(h_next) * np.minimum(np.abs(h_next), size), h_next)


def locate(path: Path, piece: Piece) -> tuple[Any, Any]:
    """Return the place theta (E,) of each event in the piece, inf where there is none.

    Also the side (E,), -1 or 1, from which it crosses.
    """
    ones = np.ones(path.count)
    start = np.sign(piece.g_left)
    # A value of zero counts as the other side: the place returned is at or after the crossing.
    thetas = _bisect(
        piece.left * ones, piece.right * ones, lambda theta: np.sign(path.values(theta)) != start
    )
    crossed = path.watch.crossings(piece.g_left, piece.g_right)
    return np.where(crossed, thetas, np.inf), start


def _bisect(low: Array, high: Array, beyond: Callable[[Any], Any]) -> Array:
    """Return the first places (E,) between low and high from which on ``beyond`` holds."""

    def narrow(bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        past = beyond(middle)
        return np.where(past, low, middle), np.where(past, middle, high)

    def is_wide(bracket: tuple[Array, Array]) -> Any:
        low, high = bracket
        middle = 0.5 * (low + high)
        return np.any((middle != low) & (middle != high))

    return while_loop(is_wide, narrow, (low, high), max_steps=BISECTIONS)[1]


POLISHING = 4
#: Events this close, relative to the step, are simultaneous.
SIMULTANEOUS = 1e-10
#: Rounding of the time of an event by more than this part of the span counts.
VISIBLE = 1e-12
EPS = float(np.finfo(np.float64).eps)
#: This many events in a row with gaps below this part of the time (or span) end the run: nothing
#: would be resolved by going on.
NEAR_GAP, NEAR_COUNT = 1e-12, 20
CLOSE_GAP, CLOSE_COUNT = 1e-8, 2000


def _polish(path: Path, ode: Integration, theta: Array, mine: Array) -> Array:
    """Return h_e, improved by Newton's method on g of the earliest event with real steps.

    A change that would leave the neighbourhood of the bracket is not made: where g only grazes
    zero its derivative says nothing.
    """
    f, method = ode.plan.derivative(path.args), ode.plan.method
    memory = method.start(f, path.t, path.x)
    guess = theta * path.h
    most = 1e-3 * np.abs(path.h)

    def improve(_: object, h: Array) -> Array:
        x = ode.project(method.step(f, path.t, path.x, h, memory).x)
        g, rate = _signal_of(path.watch, mine, f, path.t + h, x, path.args)
        change = -g / np.where(rate == 0.0, 1.0, rate)
        good = (rate != 0.0) & np.isfinite(change) & (np.abs(h + change - guess) <= most)
        within = path.sign * (h + change) > 0.0
        return np.where(good & within, h + change, h)

    better = fori_loop(0, POLISHING, improve, guess)
    # Not beyond the step, of which the end (and the end of the span) is known exactly.
    return stop_gradient(np.where(np.abs(better) >= np.abs(path.h), path.h, better))


def _signal_of(
    watch: Watch, mine: Array, f: Derivative, t: Array, x: Array, args: Args
) -> tuple[Array, Array]:
    """Return g and dg/dt of the event that ``mine`` (E,) marks."""
    g = np.sum(np.where(mine, watch.values(t, x, args), 0.0))
    rate = np.sum(np.where(mine, watch.rates(t, x, f(t, x), args), 0.0))
    return g, rate


def settle(ode: Integration, run: Run) -> Run:
    """Look for events in the step that a run just made, and return it after the first one.

    If there is no event after all, the run goes on as it was. The status is EVENT where one was
    terminal.
    """
    setup, path, signals = ode.setup, Path(ode, run), stop_gradient(run.signals)
    piece = stop_gradient(first_piece(path, signals, ode.span))
    # Where a piece of the step was believed, pieces of the next one begin with its length.
    width = 0.5 * piece.width * np.abs(path.h)
    run = tree.replace(run, signals=tree.replace(run.signals, width=stop_gradient(width)))

    def go_on() -> Run:
        unknown = np.any(np.isnan(signals.g))
        status = np.where(run.t == setup.t_end, Status.FINISHED, Status.RUNNING)
        status = np.where(unknown, Status.NON_FINITE, status)
        h = stop_gradient(limit_step(piece, path.h, run.h)) if ode.plan.adaptive else run.h
        return tree.replace(run, status=status, h=h)

    def fire() -> Run:
        return _fire(ode, run, path, *stop_gradient(locate(path, piece)))

    return cond(piece.has_event, fire, go_on)


def _fire(ode: Integration, run: Run, path: Path, thetas: Array, sides: Array) -> Run:
    """Return the run after the first of the events at ``thetas`` (E,), from ``sides`` (E,)."""
    plan, setup, f = ode.plan, ode.setup, ode.f
    watch = path.watch
    memory = plan.method.start(f, path.t, run.x_old)
    theta = np.min(thetas)
    mine = _first(thetas == theta)
    close = SIMULTANEOUS * np.abs(path.h) + 4e-16 * np.abs(path.t)
    fired = np.abs(thetas - theta) * np.abs(path.h) <= close

    h_e = _polish(path, ode, theta, mine)
    t_e = np.where(h_e == path.h, stop_gradient(run.t), path.t + h_e)
    t_e, h_e = _round_time(path, ode.span, t_e, h_e, stop_gradient(run.t))
    x_e = ode.project(plan.method.step(f, path.t, run.x_old, h_e, memory).x)
    truths = watch.truths(t_e, x_e, path.args)
    if truths.any():
        # A truth value is beyond its change where the interpolant is, not only nearly so.
        at = np.where(h_e == theta * path.h, theta, h_e / path.h)
        beyond = stop_gradient(path.state(at)) + (x_e - stop_gradient(x_e))
        x_e = np.where(np.any(mine & truths), beyond, x_e)

    x, ends = _state_after(ode, watch, fired, t_e, x_e)
    g, _ = _signal_of(watch, mine, f, t_e, x_e, ode.args)
    begun = ode.begin(t_e, x, True)
    jumped = np.any(fired & np.array([event.reset is not None for event in watch.events]))
    rests = np.where(begun.signals.rate == 0.0, sides, np.sign(begun.signals.rate))
    leaving = np.where(jumped, rests, -sides)
    signals = _signals_after(run.signals, begun.signals, fired & ~truths, leaving, ode.span, t_e, g)
    count = run.signals.count + fired
    signals = tree.replace(signals, fired=fired, count=count, x_before=stop_gradient(x_e))
    going = Status.SETTLED if watch.log else Status.RUNNING
    status = np.where(begun.status == Status.RUNNING, going, begun.status)
    status = np.where(t_e == setup.t_end, Status.FINISHED, status)
    worn = (signals.near >= NEAR_COUNT) | (signals.close >= CLOSE_COUNT)
    status = np.where(ends, Status.EVENT, np.where(worn, Status.CHATTERING, status))
    # Whatever ends here, a state that no reset should give is no success.
    lost = np.all(np.isfinite(x_e)) & ~np.all(np.isfinite(x))
    status = np.where(jumped & lost, Status.RESET_NON_FINITE, status)
    part = h_e / path.h
    powers = np.stack([part ** (k + 1) for k in range(len(run.dense))])
    return tree.replace(
        begun,
        status=status,
        accepted=run.accepted,
        rejected=run.rejected,
        suspicion=run.suspicion,
        t_old=run.t_old,
        x_old=run.x_old,
        dense=run.dense * powers[:, None],
        signals=signals,
    )


def _round_time(
    path: Path, span: Array, t_e: Array, h_e: Array, t_new: Array
) -> tuple[Array, Array]:
    """Return the time of an event and the step to it.

    Time is the sum of the steps, this one too: where rounding of the time can be seen, the event is
    at the next time that there is, and the step goes there.
    """
    miss = (t_e - path.t) - h_e
    visible = np.abs(miss) > VISIBLE * span
    early = visible & (path.sign * miss < 0.0)
    # 0.75 eps |t| is more than half of the distance to the next number, and less than 1.5 of it.
    t_e = np.where(early, t_e + path.sign * (0.75 * EPS) * np.abs(t_e), t_e)
    t_e = np.where(path.sign * (t_e - t_new) > 0.0, t_new, t_e)
    return t_e, np.where(visible, t_e - path.t, h_e)


def _state_after(
    ode: Integration, watch: Watch, fired: Array, t_e: Array, x_e: Array
) -> tuple[Array, Any]:
    """Return the state after the events that fired, and whether the run ends with them.

    Each event acts at a time of its own, which has the value t_e and the derivatives of where its
    g is zero on the solution before.
    """
    f = ode.f

    def time(k: int) -> Any:
        return event_time(f, lambda t, x: watch.value(k, t, x, ode.args), t_e, x_e)

    def reset(k: int, x: Array) -> Array:
        t = time(k)
        return move_state(f, t, t_e, watch.reset(k, t, move_state(f, t_e, t, x), ode.args))

    x = x_e
    for k, event in enumerate(watch.events):
        if event.reset is not None:
            x = cond(fired[k], lambda x, k=k: reset(k, x), lambda x: x * 1.0, x)
    x = ode.project(x)
    last = _first(fired & np.array([event.terminal for event in watch.events]))
    for k, event in enumerate(watch.events):
        if event.terminal:
            x = cond(last[k], lambda x, k=k: move_state(f, t_e, time(k), x), lambda x: x * 1.0, x)
    return x, np.any(last)


def _first(marks: Array) -> Array:
    """Keep the first True of (E,)."""
    return marks & (np.cumsum(marks.astype(np.int64)) == 1)


def _signals_after(
    old: Signals, new: Signals, fired: Array, leaving: Array, span: Array, t: Array, g: Array
) -> Signals:
    """Return the signals after an event.

    An event that ``fired`` is at its zero, or next to it by rounding; on which side it is then
    counts for nothing. It is ``leaving`` to the other side if nothing was reset; otherwise to where
    its rate says, or if it rests there, to where it came from: it will fire again, and end as
    chattering.
    """
    noise = 4.0 * np.abs(g) + 1e-12 * np.maximum(np.abs(old.g_before), np.abs(old.g))
    at_zero = fired & (np.abs(new.g) <= noise)
    g_new = stop_gradient(np.where(at_zero & (np.sign(new.g) != leaving), TINY * leaving, new.g))
    rate, gap = stop_gradient(new.rate), np.abs(t - old.last)
    near = gap <= NEAR_GAP * np.maximum(np.abs(t), span)
    close = gap <= CLOSE_GAP * span
    return tree.replace(
        new,
        g=g_new,
        rate=rate,
        g_before=g_new,
        rate_before=rate,
        last=stop_gradient(t),
        width=old.width,
        near=np.where(near, old.near + 1, 0),
        close=np.where(close, old.close + 1, 0),
    )
