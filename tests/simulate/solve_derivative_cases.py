"""Functions of one number that go through a solve, with closed forms to compare with.

``fn(p)`` is made of ``odeint``; ``exact(p)`` is the same function for mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import archimedes as arc

__all__ = ["CASES", "REPEATED", "Case"]

G = 9.81


class Case(NamedTuple):
    """A function, its closed form, and where to compare them."""

    name: str
    fn: Callable[[Any], Any]
    exact: Callable[[Any], Any]
    at: float


def decay(t, x, *k):
    return -x if not k else -k[0] * x


def forced(t, x):
    return np.cos(t) * x


def forced_exact(a, b):
    """The solution at b of x' = cos(t) x that is 1 at a."""
    return mp.exp(mp.sin(b) - mp.sin(a))


def falling(t, x):
    return np.stack([x[1], -G + 0.0 * x[0]])


def hits(**how):
    return arc.Event(lambda t, x: x[0], direction=-1, **how)


def bounce(t, x, *args):
    return np.stack([x[0], -0.8 * x[1]])


def drop(h, span, events, method="bs3", **options):
    """A falling ball, which every method follows exactly: one of few stages is compiled sooner."""
    return arc.odeint(falling, span, np.stack([h, 0.0 * h]), method, events=events, **options)


def height_after(h, time, bounces, speed=0.8):
    """Height of a dropped ball after this many bounces."""
    t = mp.sqrt(2 * h / G)
    v = speed * G * t
    for _ in range(bounces - 1):
        t = t + 2 * v / G
        v = speed * v
    s = time - t
    return v * s - G * s**2 / 2


# ---- times of the span ---------------------------------------------------------------------

TIMES = [
    Case(
        "end of a decay",
        lambda T: arc.odeint(decay, (0.0, T), 1.0),
        lambda T: mp.exp(-T),
        1.5,
    ),
    Case(
        "end, only time",
        lambda T: arc.odeint(lambda t, x: np.cos(t), (0.0, T), 0.0),
        lambda T: mp.sin(T),
        1.5,
    ),
    Case(
        "end, time and state",
        lambda T: arc.odeint(forced, (0.3, T), 1.0),
        lambda T: forced_exact(0.3, T),
        1.5,
    ),
    Case(
        "start of a decay",
        lambda s: arc.odeint(decay, (s, 2.0), 1.0),
        lambda s: mp.exp(s - 2),
        0.7,
    ),
    Case(
        "start, only time",
        lambda s: arc.odeint(lambda t, x: np.cos(t), (s, 2.0), 0.5),
        lambda s: mp.mpf(0.5) + mp.sin(2) - mp.sin(s),
        0.7,
    ),
    Case(
        "start, time and state",
        lambda s: arc.odeint(forced, (s, 2.0), 1.0),
        lambda s: forced_exact(s, 2),
        0.7,
    ),
    Case(
        "both ends at once",
        lambda s: arc.odeint(forced, (s, s * s + 1.0), s),
        lambda s: s * forced_exact(s, s * s + 1),
        0.7,
    ),
    Case(
        "back in time",
        lambda s: arc.odeint(forced, (s, 0.2), 1.0),
        lambda s: forced_exact(s, 0.2),
        1.1,
    ),
    Case(
        "a span without length",
        lambda s: arc.odeint(forced, (0.7, s), 2.0),
        lambda s: 2 * forced_exact(mp.mpf(0.7), s),
        0.7,
    ),
    Case(
        "parameter, state and end",
        lambda k: arc.odeint(decay, (0.0, k * k), np.sin(k), args=(k,)),
        lambda k: mp.sin(k) * mp.exp(-(k**3)),
        1.1,
    ),
    Case(
        "a parameter closed over",
        lambda k: arc.odeint(lambda t, x: -k * t * x, (0.0, k), 1.0),
        lambda k: mp.exp(-(k**3) / 2),
        1.1,
    ),
    Case(
        "a tree of states",
        lambda T: arc.odeint(
            lambda t, s: {"x": s["v"], "v": -s["x"]}, (0.2, T), {"x": 0.0, "v": 1.0}
        )["x"],
        lambda T: mp.sin(T - 0.2),
        1.5,
    ),
    Case(
        "blow-up",
        lambda T: arc.odeint(lambda t, x: x * x, (0.0, T), 1.0),
        lambda T: 1 / (1 - T),
        0.4,
    ),
]


def _method(name, **options):
    return Case(
        f"both ends by {name}",
        lambda s: arc.odeint(forced, (s, 2.0 * s), 1.0, name, **options),
        lambda s: forced_exact(s, 2 * s),
        0.7,
    )


METHODS = [
    _method("dopri5"),
    _method("tsit5"),
    _method("bs3", rtol=1e-10),
    _method("rodas5p"),
    _method("esdirk4"),
    _method("rk4", dt=0.0031),
    _method("heun", dt=0.0001, max_steps=20_000),
]

# ---- times of outputs ----------------------------------------------------------------------

OUTPUTS = [
    Case(
        "one output",
        lambda s: arc.odeint(forced, (0.0, 2.0), 1.0, t_eval=np.stack([s]))[0],
        lambda s: forced_exact(0, s),
        1.3,
    ),
    Case(
        "several outputs",
        lambda s: np.sum(arc.odeint(forced, (0.0, 2.0), 1.0, t_eval=np.stack([s * s, s, 1.5 * s]))),
        lambda s: forced_exact(0, s * s) + forced_exact(0, s) + forced_exact(0, 1.5 * s),
        0.9,
    ),
    Case(
        "outputs, start and parameter",
        lambda s: arc.odeint(
            lambda t, x, k: k * np.cos(t) * x, (s, 3.0), 1.0, t_eval=np.stack([2 * s]), args=(s,)
        )[0],
        lambda s: mp.exp(s * (mp.sin(2 * s) - mp.sin(s))),
        0.9,
    ),
    Case(
        "the end does not move outputs",
        lambda T: arc.odeint(forced, (0.0, T), T, t_eval=np.array([0.5]))[0],
        lambda T: T * forced_exact(0, 0.5),
        1.3,
    ),
    Case(
        "outputs of trees",
        lambda s: arc.odeint(
            lambda t, q: {"x": q["v"], "v": -q["x"]},
            (0.0, 3.0),
            {"x": 0.0, "v": 1.0},
            t_eval=np.stack([s, 2.0 * s]),
        )["v"][1],
        lambda s: mp.cos(2 * s),
        1.1,
    ),
]

# ---- events --------------------------------------------------------------------------------


def switching(t, x, k):
    """x[1] is the mode: decay by k in mode 0, growth at rate 2 in mode 1."""
    return np.stack([np.where(x[1] > 0.5, 2.0 * x[0], -k * x[0]), 0.0 * x[1]])


def _switched(k):
    event = arc.Event(
        lambda t, x, k: x[0] - 0.4 * k,
        direction=-1,
        reset=lambda t, x, k: np.stack([x[0], 1.0 + 0.0 * x[1]]),
    )
    start = np.array([1.0, 0.0])
    return arc.odeint(switching, (0.0, 1.2), start, "tsit5", args=(k,), events=event)[0]


def _kick(p):
    event = arc.Event(lambda t, x, p: t - p, reset=lambda t, x, p: x + p * t)
    return arc.odeint(lambda t, x, p: -x, (0.0, 2.0), 1.0, "tsit5", args=(p,), events=event)


def _ramp(c):
    """A ball lands on a floor that rises at speed c; the time of landing is the third state."""
    event = arc.Event(lambda t, x, c: x[0] - c * t, direction=-1, terminal=True)
    end = arc.odeint(
        lambda t, x, c: np.stack([x[1], -G + 0.0 * x[0], 1.0 + 0.0 * x[0]]),
        (0.0, 10.0),
        np.array([5.0, 0.0, 0.0]),
        "bs3",
        args=(c,),
        events=event,
    )
    return end[2]


def _two_balls(h):
    """Two balls dropped together from 2 and h = 2: their bounces are one event in time."""

    def both(t, x):
        return np.concatenate([falling(t, x[:2]), falling(t, x[2:])])

    events = [
        arc.Event(
            lambda t, x: x[0],
            direction=-1,
            reset=lambda t, x: np.concatenate([bounce(t, x[:2]), x[2:]]),
        ),
        arc.Event(
            lambda t, x: x[2],
            direction=-1,
            reset=lambda t, x: np.concatenate([x[:2], bounce(t, x[2:])]),
        ),
    ]
    start = np.stack([2.0, 0.0, h, 0.0 * h])
    end = arc.odeint(both, (0.0, 1.0), start, "bs3", events=events)
    return end[2] + 0.5 * end[0]


def _twice_the_same(h):
    """Two events with the same g: the first turns the speed, the second takes half of it."""
    events = [hits(reset=bounce), hits(reset=lambda t, x: np.stack([x[0], 0.5 * x[1]]))]
    return drop(h, (0.0, 0.9), events)[0]


EVENTS = [
    Case(
        "impact speed",
        lambda h: drop(h, (0.0, 10.0), hits(terminal=True))[1],
        lambda h: -mp.sqrt(2 * G * h),
        5.0,
    ),
    Case(
        "height after a bounce",
        lambda h: drop(h, (0.0, 1.6), hits(reset=bounce))[0],
        lambda h: height_after(h, 1.6, 1),
        5.0,
    ),
    Case(
        "two bounces",
        lambda h: drop(h, (0.0, 1.5), hits(reset=bounce))[0],
        lambda h: height_after(h, 1.5, 2),
        1.0,
    ),
    Case(
        "height and end of the span",
        lambda s: drop(s * s, (0.0, 1.0 + s), hits(reset=bounce))[0],
        lambda s: height_after(s * s, 1 + s, 2),
        1.4,
    ),
    Case(
        "start of the span before a bounce",
        lambda s: drop(2.0 + 0.0 * s, (s, 1.0), hits(reset=bounce))[0],
        lambda s: height_after(mp.mpf(2), 1 - s, 1),
        0.1,
    ),
    Case(
        "time of landing on a rising floor",
        _ramp,
        lambda c: (-c + mp.sqrt(c * c + 2 * G * 5)) / G,
        0.7,
    ),
    Case(
        "an event in time, reset by time and parameter",
        _kick,
        lambda p: (mp.exp(-p) + p * p) * mp.exp(p - 2),
        0.8,
    ),
    Case(
        "dynamics that switch",
        _switched,
        # x reaches 0.4 k at t1 = -log(0.4 k) / k
        lambda k: 0.4 * k * mp.exp(2 * (mp.mpf(1.2) + mp.log(mp.mpf(0.4) * k) / k)),
        1.3,
    ),
    Case(
        "two events at one time",
        _two_balls,
        lambda h: height_after(h, 1, 1) + height_after(mp.mpf(2), 1, 1) / 2,
        2.0,
    ),
    Case(
        "two events of one function",
        _twice_the_same,
        lambda h: height_after(h, mp.mpf(0.9), 1, mp.mpf(0.4)),
        2.0,
    ),
    Case(
        "an event that ends the run after a reset",
        lambda h: np.sum(drop(h, (0.0, 10.0), hits(reset=bounce, terminal=True)) * [1.0, 2.0]),
        lambda h: 2 * mp.mpf(0.8) * mp.sqrt(2 * G * h),
        5.0,
    ),
    Case(
        "the end of the span is beyond the event",
        lambda T: drop(T, (0.0, T), hits(terminal=True))[1],
        lambda T: -mp.sqrt(2 * G * T),
        5.0,
    ),
    Case(
        "outputs before and after a bounce",
        lambda h: np.sum(
            drop(h, (0.0, 1.0), hits(reset=bounce), t_eval=np.stack([0.1 * h, 0.4 * h]))[0]
        ),
        lambda h: h - G * (h / 10) ** 2 / 2 + height_after(h, mp.mpf(0.4) * h, 1),
        2.0,
    ),
    Case(
        "a bounce by rodas5p",
        lambda h: drop(h, (0.0, 1.0), hits(reset=bounce), method="rodas5p")[0],
        lambda h: height_after(h, 1, 1),
        2.0,
    ),
    Case(
        "a bounce in fixed steps",
        lambda h: drop(h, (0.0, 1.0), hits(reset=bounce), method="rk4", dt=0.03)[0],
        lambda h: height_after(h, 1, 1),
        2.0,
    ),
]

CASES = [*TIMES, *METHODS, *OUTPUTS, *EVENTS]

#: Cases that add nothing to others of the list where derivatives are made in another way.
REPEATED = {
    "two bounces",
    "start of the span before a bounce",
    "a bounce by rodas5p",
    "a bounce in fixed steps",
    "an event that ends the run after a reset",
    "two events of one function",
    "outputs, start and parameter",
    "start, only time",
    "both ends by tsit5",
    "both ends by heun",
}
