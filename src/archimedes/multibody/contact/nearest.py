"""Where shapes are nearest to each other: spheres, segments and boxes; signed distances.

Legend: a distance is negative where shapes overlap, its normal points from the second to the first.
Lengths of zero have no direction: there the z axis is as good as any.
Source: Ericson, Real-Time Collision Detection, 2005, sections 5.1.2 to 5.1.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["TINY", "along_box", "box_distance", "direction", "on_segment", "segments_nearest"]

TINY = 1e-14


def direction(way: Any) -> tuple[Any, Any]:
    """Return the length of a vector (3,) and its direction."""
    squared = np.sum(way * way)
    none = squared < TINY * TINY
    length = np.sqrt(np.where(none, 1.0, squared))
    up = np.array([0.0, 0.0, 1.0])
    return np.where(none, 0.0, length), np.where(none, up, way / length)


def within(x: Any, low: Any, high: Any) -> Any:
    """Return a number moved into an interval."""
    return np.minimum(np.maximum(x, low), high)


def quotient(a: Any, b: Any, otherwise: Any = 0.0) -> Any:
    """Return a / b, where b is not zero."""
    none = np.abs(b) < TINY
    return np.where(none, otherwise, a / np.where(none, 1.0, b))


def on_segment(place: Any, start: Any, end: Any) -> Any:
    """Return which part (0 to 1) of a segment is nearest to a place (3,)."""
    way = end - start
    return within(quotient(np.sum((place - start) * way), np.sum(way * way)), 0.0, 1.0)


def segments_nearest(a0: Any, a1: Any, b0: Any, b1: Any) -> tuple[Any, Any]:
    """Return which parts of two segments are nearest to each other."""
    u, w, between = a1 - a0, b1 - b0, a0 - b0
    uu, ww, uw = np.sum(u * u), np.sum(w * w), np.sum(u * w)
    ub, wb = np.sum(u * between), np.sum(w * between)
    apart = uu * ww - uw * uw
    parallel = apart <= 1e-12 * uu * ww
    s = np.where(parallel, 0.5, (uw * wb - ub * ww) / np.where(parallel, 1.0, apart))
    s = within(s, 0.0, 1.0)
    t = within(quotient(uw * s + wb, ww), 0.0, 1.0)
    return within(quotient(uw * t - ub, uu), 0.0, 1.0), t


def box_distance(place: Any, half: Any) -> tuple[Any, Any]:
    """Return the distance of a place (3,) from a box around zero of half sides (3,), and normal."""
    surplus = np.abs(place) - half
    side = np.where(place < 0.0, -1.0, 1.0)
    outside, n_out = direction(side * np.maximum(surplus, 0.0))
    inside = np.max(surplus)
    # One of the faces that are nearest, the last where several are.
    k = 2 - np.argmax(surplus[::-1])
    n_in = side * np.where(np.arange(3) == k, 1.0, 0.0)
    is_in = inside <= 0.0
    return np.where(is_in, inside, outside), np.where(is_in, n_in, n_out)


def along_box(start: Any, end: Any, half: Any) -> tuple[Any, Any, Any]:
    """Return the parts of a segment that matter to a box around zero.

    The part that is nearest, and the two between which the segment is above the face that is
    nearest to it, both the first one where it is above no face.
    """
    way = end - start
    # The squared distance is convex and piecewise quadratic: its slope is monotone, and straight
    # between the places at which the segment crosses planes of faces.
    breaks = [np.zeros(3), np.ones(3)]
    breaks += [within(quotient(s * half - start, way), 0.0, 1.0) for s in (-1.0, 1.0)]
    at = np.concatenate(breaks)
    points = start + at[:, None] * way
    slopes = np.sum((points - within(points, -half, half)) * way, axis=1)
    low = np.max(np.where(slopes <= 0.0, at, 0.0))
    high = np.min(np.where(slopes >= 0.0, at, 1.0))
    s_low, s_high = (slope_at(start + t * way, way, half) for t in (low, high))
    straight = quotient(-s_low * (high - low), s_high - s_low, 0.5 * (high - low))
    best = within(np.where(high > low, low + straight, low), 0.0, 1.0)
    _, n = box_distance(start + best * way, half)
    across = np.arange(3) != np.argmax(np.abs(n))
    first: Any = 0.0
    last: Any = 1.0
    for k in range(3):
        a, b = sorted_pair(
            *(quotient(s * half[k] - start[k], way[k], 2.0 * s) for s in (-1.0, 1.0))
        )
        outside = (np.abs(way[k]) < TINY) & (np.abs(start[k]) > half[k])
        first = np.where(across[k], np.maximum(first, np.where(outside, 2.0, a)), first)
        last = np.where(across[k], np.minimum(last, np.where(outside, -1.0, b)), last)
    above = first <= last
    return best, np.where(above, first, best), np.where(above, last, best)


def slope_at(place: Any, way: Any, half: Any) -> Any:
    """Return half the slope of the squared distance from a box along a way."""
    return np.sum((place - within(place, -half, half)) * way)


def sorted_pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two numbers, the smaller one first."""
    return np.minimum(a, b), np.maximum(a, b)
