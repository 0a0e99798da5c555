"""Looking for events within a step: the first place where an event function changes sign.

A step is as long as the state allows; an event function g may be faster. It is searched on the
interpolant of the step, in pieces. A piece is believed where g at points within agrees well enough
with the cubic that has g's values and slopes at both ends: the error of a cubic there is
c u^2 (1 - u)^2 with u in [0, 1] across the piece, the points give c, and SAFETY times that added to
the cubic must leave either no zero, or exactly one. Both are read off the coefficients of
Bernstein's form, of which u^2 (1 - u)^2 is one basis function. Otherwise the piece is halved; a
piece that follows one that was believed is at most twice as long, so that the search goes from
what is known to what is not.

What is certain (decision 014): pieces are no longer than a hundredth of the span, or the step. So
g cannot keep the other sign for longer than that and remain unseen, whatever it is.

Symbols: theta in [0, 1] place in the step, u in [0, 1] place in a piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes.function import stop_gradient, while_loop
from archimedes.simulate.events.event import Signals, Watch, sided
from archimedes.simulate.methods.method_table import evaluate_dense

__all__ = ["Path", "Piece", "bounded", "first_piece", "located"]

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

    def __init__(self, plan: Any, args: Any, run: Any, sign: Any) -> None:
        self.watch: Watch = plan.events
        self.project = plan.project
        self.args = stop_gradient(args)
        self.sign = sign
        self.count = len(self.watch.events)
        fixed = stop_gradient((run.t_old, run.t - run.t_old, run.x_old, run.dense))
        self.t, self.h, self.x, self.dense = fixed

    def state(self, theta: Any) -> Any:
        """Return x of the interpolant."""
        x = self.x + evaluate_dense(self.dense, theta)
        return x if self.project is None else self.project(x)

    def slope(self, theta: Any) -> Any:
        """Return dx/dt of the interpolant."""
        degree = len(self.dense)
        total = self.dense[-1] * float(degree)
        for k in range(degree - 2, -1, -1):
            total = total * theta + self.dense[k] * float(k + 1)
        return total / self.h

    def values(self, theta: Any) -> Any:
        """Return g of each event (E,) at its own theta (E,), or at the same theta ()."""
        if np.ndim(theta) == 0:
            return self.watch.values(self.t + theta * self.h, self.state(theta), self.args)
        return np.stack(
            [
                self.watch.value(k, self.t + theta[k] * self.h, self.state(theta[k]), self.args)
                for k in range(self.count)
            ]
        )

    def rates(self, theta: Any) -> Any:
        """Return dg/dt along the integration, of all events at one theta: (E,)."""
        t, x = self.t + theta * self.h, self.state(theta)
        return self.sign * self.watch.rates(t, x, self.slope(theta), self.args)


class Piece(NamedTuple):
    """A part of a step, with values and rates (E,) of g at its ends.

    ``found``: there is an event in it; ``width``: how long the next piece may be, ``rounds``: how
    many were looked at.
    """

    left: Any
    right: Any
    g_left: Any
    rate_left: Any
    g_right: Any
    rate_right: Any
    found: Any
    width: Any
    rounds: Any


def _bernstein(piece: Piece, length: Any) -> list[Any]:
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


def _quartic(q: list[Any], u: float) -> Any:
    v = 1.0 - u
    powers = (v**4, 4.0 * u * v**3, 6.0 * u**2 * v**2, 4.0 * u**3 * v, u**4)
    total = powers[0] * q[0]
    for power, coefficient in zip(powers[1:], q[1:]):
        total = total + power * coefficient
    return total


def _believed(path: Path, piece: Piece) -> Any:
    """Tell for which events (E,) the piece has no zero for sure, or exactly one."""
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


def first_piece(path: Path, signals: Signals, span: Any) -> Piece:
    """Search a step whose end has these signals; the piece of the first event, if any was found."""
    size = np.abs(path.h)
    most = np.minimum(1.0, span / (LOOKS * size))
    known = np.where(signals.width > 0.0, 2.0 * signals.width / size, 1.0)

    def look(piece: Piece) -> Piece:
        reach = piece.left + piece.width
        right = np.where(piece.left + 1.01 * piece.width >= 1.0, 1.0, reach)
        rate = np.where(right == 1.0, signals.rate, path.rates(right))
        g = np.where(right == 1.0, signals.g, sided(path.values(right), rate))
        tried = piece._replace(right=right, g_right=g, rate_right=rate)
        width = right - piece.left
        least = np.where(piece.rounds < PATIENCE, LEAST, COARSE)
        good = np.all(_believed(path, tried)) | (width <= least)
        found = good & np.any(path.watch.crossed(piece.g_left, g))
        on = good & ~found
        return Piece(
            left=np.where(on, right, piece.left),
            right=right,
            g_left=np.where(on, g, piece.g_left),
            rate_left=np.where(on, rate, piece.rate_left),
            g_right=g,
            rate_right=rate,
            found=found,
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
        found=size < 0.0,
        width=np.minimum(known, most),
        rounds=zero,
    )
    return while_loop(lambda p: ~p.found & (p.left < 1.0), look, begun, max_steps=ROUNDS)


def bounded(piece: Piece, h: Any, h_next: Any) -> Any:
    """Return the next step, shorter if the search in this one took many rounds."""
    size = np.abs(h) * np.maximum(BUSY / np.maximum(piece.rounds, 1.0), 0.1)
    return np.where(piece.rounds > BUSY, np.sign(h_next) * np.minimum(np.abs(h_next), size), h_next)


def located(path: Path, piece: Piece) -> tuple[Any, Any]:
    """Return the place theta (E,) of each event in the piece, inf where there is none.

    Also the side (E,), -1 or 1, from which it crosses.
    """
    ones = np.ones(path.count)
    start = np.sign(piece.g_left)
    # A value of zero counts as the other side: the place returned is at or after the crossing.
    found = _bisect(
        piece.left * ones, piece.right * ones, lambda theta: np.sign(path.values(theta)) != start
    )
    crossed = path.watch.crossed(piece.g_left, piece.g_right)
    return np.where(crossed, found, np.inf), start


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
