"""Interval arithmetic with directed rounding, on NumPy arrays.

An interval is an array ``ends`` of shape ``(2, ...)``: lower ends, then upper ends, closed, with
infinities as values that can be reached. Every function here returns ends that enclose the exact
results; since they are floating-point numbers and rounding is monotonic, they enclose the rounded
results as well, whatever the direction of rounding, and with or without fused multiply-adds.

NumPy rounds to nearest only. Errors of sums and products are themselves floating-point numbers
(Dekker 1971, Knuth 4.2.2), which say whether and where an end has to move to the next number.

A lower end of ``+0.0`` says that the interval does not contain ``-0.0``. An upper end of zero
contains both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

INF = np.inf
#: The least positive number.
TINY = 5e-324
#: Products between these are far enough from under- and overflow for their errors to be exact.
_SMALL, _LARGE = 2.0**-960, 2.0**990
_SPLITTER = 134217729.0  # 2**27 + 1
#: -1 for lower ends, +1 for upper ends, by number of axes.
_OUTWARD = [np.array([-1.0, 1.0]).reshape((2,) + (1,) * k) for k in range(8)]
INT_MAX = 2.0**63

Ends = np.ndarray


def outward_signs(ends: Ends) -> np.ndarray:
    """Return -1 for lower and +1 for upper ends, to broadcast against `ends`."""
    return _OUTWARD[ends.ndim - 1]


def _step(x: Any, sign: Any) -> Any:
    """Return the next number above (sign 1) or below (sign -1); nan becomes infinite."""
    beyond = sign * INF
    moved = np.nextafter(x, beyond)
    return np.where(np.isnan(moved), beyond, moved)


def _round_outward(value: Any, error: Any, sign: Any) -> Any:
    """Move rounded values to the next number where their error, or an unknown one, asks for it."""
    moves = ~(error * sign <= 0.0)  # an error that is nan is not known
    return np.where(moves, _step(value, sign), value) if moves.any() else value


def _sum_error(a: Any, b: Any, total: Any) -> Any:
    virtual = total - a
    return (a - (total - virtual)) + (b - virtual)


def _product_error(a: Any, b: Any, product: Any) -> Any:
    """Return the error of a product; nan where it cannot be computed exactly."""
    big_a, big_b = _SPLITTER * a, _SPLITTER * b
    high_a, high_b = big_a - (big_a - a), big_b - (big_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    size = np.abs(product)
    exact = ((size > _SMALL) & (size < _LARGE)) | (a == 0.0) | (b == 0.0)
    exact &= (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE)
    return error if exact.all() else np.where(exact, error, np.nan)


def add(a: Ends, b: Ends) -> Ends:
    """Return the interval of sums."""
    total = a + b
    return _round_outward(total, _sum_error(a, b, total), outward_signs(total))


def negate(a: Ends) -> Ends:
    """Return the interval of negatives."""
    return -(a[::-1] + 0.0)  # an upper end of zero stands for both signs


def subtract(a: Ends, b: Ends) -> Ends:
    """Return the interval of differences."""
    return add(a, negate(b))


def _corners(a: Ends, b: Ends) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends so that they broadcast to all pairs of them, along the first two axes."""
    return a[:, None], b[None, :]


def _hull_of_corners(values: Any, error: Any, sign_of_zero: Any) -> Ends:
    """Return the least and the largest of rounded corners, moved outward.

    ``sign_of_zero`` is the sign of the exact value, for corners that have become zero.
    """
    is_zero = values == 0.0
    ends = []
    for sign, pick in ((-1.0, np.min), (1.0, np.max)):
        moved = _round_outward(values, error, sign)
        if is_zero.any():
            moved = np.where(is_zero, np.where(sign_of_zero == sign, sign * TINY, 0.0), moved)
        ends.append(pick(moved, axis=(0, 1)))
    return np.stack(ends)


def multiply(a: Ends, b: Ends) -> Ends:
    """Return the interval of products; zero times infinity counts as zero."""
    x, y = _corners(a, b)
    product = x * y
    product = np.where(np.isnan(product), 0.0, product) if np.isnan(product).any() else product
    ends = _hull_of_corners(product, _product_error(x, y, product), np.sign(x) * np.sign(y))
    # Zero has its sign where both factors have theirs.
    negative = np.signbit(a[0]) | np.signbit(b[0])
    ends[0] = np.where((ends[0] == 0.0) & negative, -0.0, ends[0])
    return ends


def magnitude(a: Ends) -> Ends:
    """Return the interval of absolute values."""
    size = np.abs(a)
    low = np.where((a[0] <= 0.0) & (a[1] >= 0.0), 0.0, np.minimum(size[0], size[1]))
    return np.stack([low, np.maximum(size[0], size[1])])


def square(a: Ends) -> Ends:
    """Return the interval of squares."""
    size = magnitude(a)
    product = size * size
    ends = _round_outward(product, _product_error(size, size, product), outward_signs(product))
    under = (product == 0.0) & (size != 0.0)
    ends = np.where(under, np.where(outward_signs(product) > 0.0, TINY, 0.0), ends)
    return np.maximum(ends, 0.0)


def divide(a: Ends, b: Ends) -> Ends:
    """Return the interval of quotients; the whole line where the divisor may be zero."""
    zero = (b[0] <= 0.0) & (b[1] >= 0.0)
    # Zero at the lower end, and without its negative, has a known sign.
    positive = zero & (b[0] == 0.0) & ~np.signbit(b[0]) & (a[0] >= 0.0)
    divisor = np.where(zero, np.where(positive & (b[1] > 0.0), b[1], 1.0), b)
    x, y = _corners(a, divisor)
    quotient = x / y
    if np.isnan(quotient).any():  # infinity by infinity
        quotient = np.where(np.isnan(quotient), np.sign(x) * np.sign(y) * INF, quotient)
        extra = np.zeros_like(quotient)
        quotient = np.concatenate([quotient, extra])
        x, y = (np.concatenate([np.broadcast_to(v, extra.shape)] * 2) for v in (x, y))
    product = quotient * y
    error = ((x - product) - _product_error(quotient, y, product)) * np.sign(y)
    small = (np.abs(x) < _SMALL) & (x != 0.0)
    error = np.where(small | ~np.isfinite(quotient), np.nan, error)
    ends = _hull_of_corners(quotient, error, np.sign(x) * np.sign(y))
    ends[0] = np.where((ends[0] == 0.0) & (np.signbit(a[0]) | np.signbit(b[0])), -0.0, ends[0])
    if zero.any():
        ends[0] = np.where(zero & ~positive, -INF, ends[0])
        ends[1] = np.where(zero, INF, ends[1])
    return ends


def root(a: Ends) -> Ends:
    """Return the interval of square roots of what is not negative."""
    x = np.maximum(a, 0.0)
    value = np.sqrt(x)
    product = value * value
    error = (x - product) - _product_error(value, value, product)
    ends = _round_outward(value, np.where(value == 0.0, 0.0, error), outward_signs(value))
    ends = np.maximum(ends, 0.0)
    ends[0] = np.where((ends[0] == 0.0) & np.signbit(a[0]), -0.0, ends[0])
    return ends


def widen(ends: Ends, relative: float, absolute: float = 0.0, zeros: bool = False) -> Ends:
    """Return the interval with its ends moved outward by a share of themselves.

    Zero stays zero unless ``zeros``: functions that are accurate to a share of their values have
    zeros where they should have them.
    """
    size, sign = np.abs(ends), outward_signs(ends)
    distance = relative * np.where(np.isfinite(size), size, 0.0) + absolute
    moved = _step(ends + sign * distance, sign)
    return moved if zeros or absolute else np.where(size == 0.0, ends, moved)


def intersect(a: Ends, b: Ends) -> Ends:
    """Return what two enclosures of the same values have in common; the first where that is none.

    Zeros keep the sign of the first.
    """
    low, high = np.where(b[0] > a[0], b[0], a[0]), np.where(b[1] < a[1], b[1], a[1])
    bad = ~(low <= high)
    if bad.any():
        low, high = np.where(bad, a[0], low), np.where(bad, a[1], high)
    return np.stack(np.broadcast_arrays(low, high))


def hull(a: Ends, b: Ends) -> Ends:
    """Return the least interval that contains two."""
    low = np.minimum(a[0], b[0])
    low = np.where((low == 0.0) & (np.signbit(a[0]) | np.signbit(b[0])), -0.0, low)
    return np.stack([low, np.maximum(a[1], b[1])])


def to_float32(ends: Ends) -> Ends:
    """Return the interval with its ends moved outward to numbers of float32."""
    narrow = ends.astype(np.float32)
    sign = outward_signs(ends)
    beyond = np.nextafter(narrow, (sign * INF).astype(np.float32))
    return np.where((narrow - ends) * sign < 0.0, beyond, narrow).astype(np.float64)


def to_int64(ends: Ends) -> tuple[Ends, np.ndarray]:
    """Return the interval of whole numbers, and where it may have wrapped around."""
    wraps = (ends[0] < -INT_MAX) | (ends[1] > INT_MAX)
    if not wraps.any():
        return ends, wraps
    whole = np.stack([np.full(wraps.shape, -INT_MAX), np.full(wraps.shape, INT_MAX)])
    return np.where(wraps, whole, ends), wraps


def with_negative_zero(low: np.ndarray) -> np.ndarray:
    """Return lower ends of which those that are zero may stand for a negative zero."""
    return np.where(low == 0.0, -0.0, low)


def contains_zero(ends: Ends) -> np.ndarray:
    """Return where an interval contains zero."""
    return (ends[0] <= 0.0) & (ends[1] >= 0.0)
