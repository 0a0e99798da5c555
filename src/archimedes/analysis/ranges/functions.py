"""Ranges and linear approximations of the elementary and special functions.

A row of the table says where a function is defined, where it grows, and how it is curved; ranges
and affine approximations follow from that. Programs of the functions are accurate to an ulp or a
few (docs/ulp.md), so that what they give on an interval lies between their values at its ends,
moved outward by a few ulps.

The approximation of ``f`` on an interval is ``alpha x + beta`` within ``delta``, with the slope of
the secant (Chebyshev's, where f has no inflection). On a piece where f is convex, ``f - alpha x``
is largest at an end, and nowhere below any of its tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from archimedes.analysis.ranges.rounding import INF, TINY, Ends, magnitude, widen
from archimedes.graph.elementary.table import evaluate
from archimedes.records import record

Array = np.ndarray
Numbers = Callable[[Array], Array]

#: Error of a program that is good to an ulp, against its value at the end of an interval.
_ULPS = 2.0**-50
#: Sines of larger arguments may be anything.
_PERIODIC_LIMIT = 2.0**40
#: Error of NumPy's functions and of a few operations with them.
_SLACK = 2.0**-46


@record
class Function:
    """What is known of a function of one number.

    ``grows`` is 1 or -1 for a monotonic function, and 0 for one with a minimum at ``turn``.
    ``curved`` are the signs of the second derivative left and right of the inflection ``knot``.
    ``low`` and ``high`` are the ends of its domain, ``least`` and ``most`` of its values.
    ``value`` and ``slope`` are NumPy's.
    """

    grows: int
    value: Numbers
    slope: Numbers
    curved: tuple[int, int]
    knot: float = INF
    low: float = -INF
    high: float = INF
    least: float = -INF
    most: float = INF
    turn: float = 0.0
    error: float = _ULPS
    absolute: float = 0.0
    #: Whether it may round to zero where it is not.
    vanishes: bool = False


_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))


def _program(name: str) -> Numbers:
    return lambda x: np.asarray(evaluate(name, x))


def _gamma_slope(x: Array) -> Array:
    return _program("gamma")(x) * _program("digamma")(x)


def _trigamma(x: Array) -> Array:
    return np.asarray(evaluate("polygamma", np.ones_like(x), x))


#: Where gamma is least on the positive axis, which is where digamma is zero.
_GAMMA_TURN = 1.4616321449683622
_TWO_BY_ROOT_PI = 2.0 / np.sqrt(pi)

FUNCTIONS = {
    "exp": Function(1, np.exp, np.exp, (1, 1), least=0.0, vanishes=True),
    "exp2": Function(1, np.exp2, lambda x: _LN2 * np.exp2(x), (1, 1), least=0.0, vanishes=True),
    "exp10": Function(
        *(1, lambda x: np.power(10.0, x), lambda x: _LN10 * np.power(10.0, x), (1, 1)),
        least=0.0,
        vanishes=True,
    ),
    "expm1": Function(1, np.expm1, np.exp, (1, 1), least=-1.0),
    "log": Function(1, np.log, lambda x: 1.0 / x, (-1, -1), low=0.0),
    "log2": Function(1, np.log2, lambda x: 1.0 / (_LN2 * x), (-1, -1), low=0.0),
    "log10": Function(1, np.log10, lambda x: 1.0 / (_LN10 * x), (-1, -1), low=0.0),
    "log1p": Function(1, np.log1p, lambda x: 1.0 / (1.0 + x), (-1, -1), low=-1.0),
    "arcsin": Function(
        1, np.arcsin, lambda x: 1.0 / np.sqrt((1.0 - x) * (1.0 + x)), (-1, 1), 0.0, -1.0, 1.0
    ),
    "arccos": Function(
        *(-1, np.arccos, lambda x: -1.0 / np.sqrt((1.0 - x) * (1.0 + x)), (1, -1), 0.0, -1.0, 1.0),
        least=0.0,
    ),
    "arctan": Function(1, np.arctan, lambda x: 1.0 / (1.0 + x * x), (1, -1), 0.0),
    "sinh": Function(1, np.sinh, np.cosh, (-1, 1), 0.0),
    "cosh": Function(0, np.cosh, np.sinh, (1, 1), least=1.0),
    "tanh": Function(
        1, np.tanh, lambda x: 1.0 - np.tanh(x) ** 2, (1, -1), 0.0, least=-1.0, most=1.0
    ),
    "arcsinh": Function(1, np.arcsinh, lambda x: 1.0 / np.sqrt(1.0 + x * x), (1, -1), 0.0),
    "arccosh": Function(
        1, np.arccosh, lambda x: 1.0 / np.sqrt((x - 1.0) * (x + 1.0)), (-1, -1), low=1.0, least=0.0
    ),
    "arctanh": Function(
        1, np.arctanh, lambda x: 1.0 / ((1.0 - x) * (1.0 + x)), (-1, 1), 0.0, -1.0, 1.0
    ),
    "cbrt": Function(1, np.cbrt, lambda x: 1.0 / (3.0 * np.cbrt(x) ** 2), (1, -1), 0.0),
    "sqrt": Function(1, np.sqrt, lambda x: 0.5 / np.sqrt(x), (-1, -1), low=0.0),
    "erf": Function(
        *(1, _program("erf"), lambda x: _TWO_BY_ROOT_PI * np.exp(-x * x), (1, -1), 0.0),
        least=-1.0,
        most=1.0,
        error=2.0**-49,
    ),
    "erfc": Function(
        *(-1, _program("erfc"), lambda x: -_TWO_BY_ROOT_PI * np.exp(-x * x), (-1, 1), 0.0),
        least=0.0,
        most=2.0,
        error=2.0**-48,
        vanishes=True,
    ),
    "gamma": Function(
        *(0, _program("gamma"), _gamma_slope, (1, 1)),
        low=0.0,
        turn=_GAMMA_TURN,
        error=2.0**-48,
        vanishes=True,
    ),
    "gammaln": Function(
        *(0, _program("gammaln"), _program("digamma"), (1, 1)),
        low=0.0,
        turn=_GAMMA_TURN,
        error=2.0**-48,
        absolute=4e-15,
    ),
    "digamma": Function(
        *(1, _program("digamma"), _trigamma, (-1, -1)),
        low=0.0,
        error=2.0**-48,
        absolute=4e-15,
    ),
}
"""Functions with at most one minimum and one inflection."""


def clip_to_domain(f: Function, ends: Ends) -> Ends:
    """Return the part of an interval where a function is defined."""
    return np.clip(ends, f.low, f.high)


def function_range(name: str, ends: Ends) -> Ends:
    """Return the interval of a function of ``FUNCTIONS`` on what is defined of an interval."""
    f = FUNCTIONS[name]
    x = clip_to_domain(f, ends)
    if f.grows == 0:
        left, right = x[0] - f.turn, x[1] - f.turn
        inside = (left <= 0.0) & (right >= 0.0)
        y = np.asarray(evaluate(name, x))
        at_turn = np.asarray(evaluate(name, np.float64(f.turn)))
        low = np.where(inside, at_turn, np.minimum(y[0], y[1]))
        y = np.stack([low, np.maximum(y[0], y[1])])
    else:
        y = np.asarray(evaluate(name, x))
        y = y if f.grows > 0 else y[::-1]
    y = widen(y, f.error, f.absolute)
    if f.vanishes:
        y[1] = np.maximum(y[1], 2.0 * TINY)
    y = np.where(np.isnan(y), np.stack([np.full_like(y[0], -INF), np.full_like(y[0], INF)]), y)
    # No -0.0 where the function has no negative values.
    least = f.least if f.least != 0.0 else 0.0
    low = np.where(y[0] <= least, least, y[0])
    return np.stack([low, np.minimum(y[1], f.most)])


def linearize(
    value: Numbers,
    slope: Numbers,
    ends: Ends,
    knot: Any,
    curved: tuple[Any, Any],
    error: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Return alpha, beta, delta with ``|f(x) - alpha x - beta| <= delta`` on intervals.

    ``curved`` are the signs of the second derivative left and right of ``knot``; ``error`` is that
    of the values that are approximated, as a share of them. Where nothing is known, delta is nan.
    """
    low, high = ends
    size = np.maximum(np.abs(low), np.abs(high))
    knot = np.clip(knot, low, high)
    points = np.stack(np.broadcast_arrays(low, knot, high))
    values = value(points)
    width = high - low
    middle = 0.5 * low + 0.5 * high
    wide = width > 1e-7 * size
    alpha = np.where(wide, (values[2] - values[0]) / np.where(wide, width, 1.0), slope(middle))
    alpha = np.where(np.isfinite(alpha), alpha, 0.0)
    rest = values - alpha * points
    top, bottom = rest.max(axis=0), rest.min(axis=0)
    for k, sign in enumerate(curved):
        left, right = points[k], points[k + 1]
        a, b, best = left, right, np.full(rest.shape[1:], -INF)
        for _ in range(4):
            t = 0.5 * a + 0.5 * b
            tilt = slope(t) - alpha
            reach = np.maximum(t - left, right - t)
            bound = sign * (value(t) - alpha * t) - np.abs(tilt) * reach * (1.0 + _SLACK)
            best = np.fmax(best, bound)
            is_left = sign * tilt > 0.0
            a, b = np.where(is_left, a, t), np.where(is_left, t, b)
        best = np.where(right > left, best, sign * rest[k])
        bottom = np.where(sign > 0, np.minimum(bottom, best), bottom)
        top = np.where(sign < 0, np.maximum(top, -best), top)
    most = np.abs(values).max(axis=0)
    slack = (_SLACK + error) * (most + np.abs(alpha) * size)
    beta = 0.5 * top + 0.5 * bottom
    return alpha, beta, 0.5 * (top - bottom) + slack


# ---- sine, cosine, tangent ----------------------------------------------------------------------


def _whole_below(x: Array) -> Array:
    """Return the largest whole number not above x, or the next where x is all but there."""
    return np.floor(x + 1e-9 + 1e-15 * np.abs(x))


def _whole_above(x: Array) -> Array:
    return np.ceil(x - 1e-9 - 1e-15 * np.abs(x))


def _meets(ends: Ends, phase: float, period: float) -> Array:
    """Return where an interval contains, or almost, ``phase`` plus a multiple of ``period``."""
    return _whole_above((ends[0] - phase) / period) <= _whole_below((ends[1] - phase) / period)


def _unknown(ends: Ends) -> Array:
    return ~(np.abs(ends).max(axis=0) < _PERIODIC_LIMIT)


def sine_range(name: str, ends: Ends) -> Ends:
    """Return the interval of sines or cosines."""
    top = 0.5 * pi if name == "sin" else 0.0
    far = _unknown(ends)
    x = np.where(far, 0.0, ends)
    y = np.sort(np.asarray(evaluate(name, x)), axis=0)
    y = widen(y, _ULPS)
    low = np.where(far | _meets(x, top + pi, 2.0 * pi), -1.0, y[0])
    high = np.where(far | _meets(x, top, 2.0 * pi), 1.0, y[1])
    return np.stack([np.maximum(low, -1.0), np.minimum(high, 1.0)])


def tangent_range(ends: Ends) -> Ends:
    """Return the interval of tangents: the whole line where there may be a pole."""
    pole = _unknown(ends) | _meets(ends, 0.5 * pi, pi)
    y = widen(np.asarray(evaluate("tan", np.where(pole, 0.0, ends))), _ULPS)
    return np.stack([np.where(pole, -INF, y[0]), np.where(pole, INF, y[1])])


def linearize_periodic(name: str, ends: Ends, unit: float) -> tuple[Array, Array, Array]:
    """Return the linear approximation of sin, cos or tan: see ``linearize``."""
    phase = 0.5 * pi if name == "cos" else 0.0
    # Inflections are at whole multiples of pi.
    first = np.ceil((ends[0] - phase) / pi)
    knot = phase + pi * first
    several = (knot + pi <= ends[1] + 1e-6) | _unknown(ends)
    if name == "tan":
        several |= _meets(ends, 0.5 * pi, pi)
    # Between the inflections n and n + 1 the sine is concave for an even n, the cosine, moved by
    # pi/2, is its negative; the tangent is convex right of each.
    if name == "tan":
        left, right = -np.ones_like(first), np.ones_like(first)
    else:
        right = np.where(first % 2.0 == 0.0, -1.0, 1.0) * (-1.0 if name == "cos" else 1.0)
        left = -right
    value: Numbers = getattr(np, name)
    slopes: dict[str, Numbers] = {
        "sin": np.cos,
        "cos": lambda x: -np.sin(x),
        "tan": lambda x: 1.0 + np.tan(x) ** 2,
    }
    alpha, beta, delta = linearize(value, slopes[name], ends, knot, (left, right), unit)
    # The knot is known to an ulp; and a sine may be larger inside than at both ends.
    delta = delta + 1e-15 * (1.0 + np.abs(knot)) + unit
    return alpha, beta, np.where(several, np.nan, delta)


# ---- functions of two numbers -------------------------------------------------------------------


def _corner_range(name: str, x: Ends, y: Ends, error: float = _ULPS) -> Ends:
    """Return the hull of a function's values at all pairs of ends."""
    a, b = np.broadcast_arrays(x[:, None], y[None, :])
    corners = np.asarray(evaluate(name, a, b))
    corners = corners.reshape(4, *corners.shape[2:])
    low = np.where(np.isnan(corners), -INF, corners).min(axis=0)
    high = np.where(np.isnan(corners), INF, corners).max(axis=0)
    return widen(np.stack([low, high]), error)


def hypot_range(x: Ends, y: Ends) -> Ends:
    """Return the interval of ``hypot``."""
    ends = _corner_range("hypot", magnitude(x), magnitude(y))
    return np.maximum(ends, 0.0)


def arctan2_range(y: Ends, x: Ends) -> Ends:
    """Return the interval of ``arctan2``: all angles where the negative x axis may be crossed."""
    right = (x[0] > 0.0) | ((x[0] == 0.0) & ~np.signbit(x[0]))
    upper = (y[0] > 0.0) | ((y[0] == 0.0) & ~np.signbit(y[0]))
    known = right | upper | (y[1] < 0.0)
    # An upper end of zero stands for both signs.
    ends = _corner_range("arctan2", np.stack([y[0], y[1] + 0.0]), np.stack([x[0], x[1] + 0.0]))
    whole = np.stack([np.full_like(ends[0], -pi), np.full_like(ends[0], pi)])
    return np.where(known, np.clip(ends, -pi, pi), whole)


def power_range(x: Ends, y: Ends) -> tuple[Ends, Array]:
    """Return the interval of powers, and where a base may be negative with a broken exponent.

    For positive bases, powers are monotonic in either operand: the ends decide.
    """
    negative = x[0] < 0.0
    ends = np.maximum(_corner_range("pow", np.maximum(x, 0.0), y), 0.0)
    ends[1] = np.maximum(ends[1], 2.0 * TINY)
    if not negative.any():
        return ends, np.zeros_like(negative)
    point = y[0] == y[1]
    whole = point & (y[0] == np.floor(y[0]))
    odd = whole & (np.floor(0.5 * y[0]) != 0.5 * y[0])
    # Of a whole exponent: that of magnitudes, with the sign of the base where the exponent is odd.
    size = np.maximum(_corner_range("pow", magnitude(x), y), 0.0)
    size[1] = np.maximum(size[1], 2.0 * TINY)
    power = np.asarray(evaluate("pow", *np.broadcast_arrays(x, y[:1])))
    falls = y[0] < 0.0
    signed = widen(np.where(falls, power[::-1], power), _ULPS, 2.0 * TINY)
    signed = np.where(np.isnan(signed) | (falls & (x[1] >= 0.0)), outward_infinite(signed), signed)
    mixed = np.where(point, ends, outward_infinite(ends))
    of_negative = np.where(whole, np.where(odd, signed, size), mixed)
    return np.where(negative, of_negative, ends), negative & ~whole


def outward_infinite(ends: Ends) -> Ends:
    """Return the whole line in the shape of an interval."""
    sign = np.array([-INF, INF]).reshape((2,) + (1,) * (ends.ndim - 1))
    return np.broadcast_to(sign, ends.shape)


def power_function(exponent: Array) -> tuple[Numbers, Numbers, tuple[Array, Array]]:
    """Return value, slope and curvature of ``x**p`` for positive x, and for any x if p is whole."""
    whole = exponent == np.floor(exponent)
    odd = whole & (np.floor(0.5 * exponent) != 0.5 * exponent)
    right = np.where((exponent < 0.0) | (exponent > 1.0), 1.0, -1.0)
    left = np.where(odd, -right, right)
    return (
        lambda x: np.power(x, exponent),
        lambda x: exponent * np.power(x, exponent - 1.0),
        (left, right),
    )


def fmod_range(x: Ends, y: Ends) -> tuple[Ends, Array]:
    """Return the interval of remainders, and where they are x less one multiple of y."""
    size = magnitude(y)
    most = np.minimum(size[1], np.abs(x).max(axis=0))
    # The remainder has the sign of x, and is smaller than y.
    low = np.where(x[0] < 0.0, -most, 0.0)
    high = np.where(x[1] > 0.0, most, 0.0)
    low = np.where(np.signbit(x[0]) & (low == 0.0), -0.0, low)
    ends = np.stack([low, high])
    point = (y[0] == y[1]) & (y[0] != 0.0)
    with_sign = (x[0] >= 0.0) | (x[1] <= 0.0)
    rest = np.fmod(x, np.where(point, y[0], 1.0))
    together = point & with_sign & (x[1] - x[0] < size[0]) & (rest[0] <= rest[1])
    same = together | (np.abs(x).max(axis=0) < size[0])
    exact = np.where(together, rest, x)
    return np.where(same, exact, ends), same
