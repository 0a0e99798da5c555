"""Where two boxes touch: four places of a face, or one of two edges.

Legend: half sides h, axes the columns of R, centres c. Of fifteen directions, three normals of each
box and nine products of their edges, the one along which the boxes are farthest apart (or least
deep in each other) is the normal. For a normal of a face, of the reference box, the nearest face of
the other is cut off at the sides of the reference face; of what is left four corners are kept,
those farthest in four directions, of the nearest ones.
Sources: Gottschalk, Lin and Manocha, OBBTree, SIGGRAPH 1996 (fifteen directions); Ericson 2005,
section 5.5; Liang and Barsky, ACM Transactions on Graphics 3, 1984 (cutting edges).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["FAR", "Box", "box_touches", "turned"]

#: The gap of a place that is none: too far to matter, in m.
FAR = 1e3
#: By how much of its size a face may be nearer than another and still be taken: no flicker.
PREFERENCE = 1e-5
#: What a gap counts against reach when places are chosen: the deepest is always among them.
DEPTH = 1e4
#: Edges of equal boxes on each other are within, whatever their rounding says.
SLACK = 1e-9
#: Places so near to each other, of the boxes' size, are one.
SAME = 1e-6


class Box(NamedTuple):
    """Centre (3,), axes as columns (3, 3), half sides (3,)."""

    c: Any
    R: Any
    h: Any


def box_touches(A: Box, B: Box) -> list[tuple[Any, Any, Any, Any]]:
    """Return four times the gap, the normal from B to A, the place (3,) in the world and its share.

    That is 0 where the place is one before it, else 1: of a corner there is but one.
    """
    size = np.sum(A.h) + np.sum(B.h)
    t, C = A.R.T @ (B.c - A.c), A.R.T @ B.R
    apart_A, apart_B = faces_apart(t, C, A.h, B.h), faces_apart(C.T @ t, C.T, B.h, A.h)
    swap = np.max(apart_B) > np.max(apart_A) + PREFERENCE * size
    apart = np.where(swap, np.max(apart_B), np.max(apart_A))
    refer, other = chosen(swap, B, A), chosen(swap, A, B)
    outward, corners = face_touches(refer, other, np.where(swap, apart_B, apart_A))
    n = np.where(swap, 1.0, -1.0) * outward
    crossed, edge_n, edge_gap, edge_place = edge_touch(A, B, t, C)
    by_edges = crossed & (edge_gap > apart + PREFERENCE * size)
    found = []
    for k, (gap, place) in enumerate(corners):
        edge = edge_gap if k == 0 else FAR
        again = [np.sum((place - p) ** 2) < (SAME * size) ** 2 for _, p in corners[:k]]
        found.append(
            (
                np.where(by_edges, edge, gap),
                np.where(by_edges, edge_n, n),
                np.where(by_edges, edge_place, place),
                np.where(np.any(np.stack(again)) & ~by_edges, 0.0, 1.0) if k else 1.0,
            )
        )
    return found


def chosen(test: Any, a: Box, b: Box) -> Box:
    """Return one of two boxes."""
    return Box(*(np.where(test, x, y) for x, y in zip(a, b, strict=True)))


def faces_apart(t: Any, C: Any, h: Any, other: Any) -> Any:
    """Return how far (3,) boxes are apart along the normals of the first."""
    return np.abs(t) - h - np.abs(C) @ other


def turned(k: Any, x: Any) -> Any:
    """Return an array with columns 0, 1, 2 moved so that column k is the last."""
    first, second = x[..., [1, 2, 0]], x[..., [2, 0, 1]]
    return np.where(k == 0, first, np.where(k == 1, second, x))


def face_touches(refer: Box, other: Box, apart: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return the outward normal of the reference face, and four gaps with their places."""
    k = np.argmax(apart)
    R, h = turned(k, refer.R), turned(k, refer.h)
    C, t = R.T @ other.R, R.T @ (other.c - refer.c)
    side = np.where(t[2] < 0.0, -1.0, 1.0)
    j = np.argmax(np.abs(C[2]))
    C, g = turned(j, C), turned(j, other.h)
    # The other's face that looks at the reference face: its centre and half edges a, b.
    center = t - side * np.where(C[2, 2] < 0.0, -1.0, 1.0) * g[2] * C[:, 2]
    a, b = g[0] * C[:, 0], g[1] * C[:, 1]
    places, valid = cut_face(center, a, b, h * (1.0 + SLACK))
    gaps = side * places[:, 2] - h[2]
    found = []
    for angle in np.deg2rad([55.0, 145.0, 235.0, 325.0]):
        reach = np.cos(angle) * places[:, 0] + np.sin(angle) * places[:, 1]
        best = np.argmax(np.where(valid, reach - DEPTH * gaps, -DEPTH * FAR))
        place, gap = places[best], gaps[best]
        middle = place - 0.5 * gap * side * np.array([0.0, 0.0, 1.0])
        found.append((np.where(valid[best], gap, FAR), refer.c + R @ middle))
    return side * R[:, 2], found


def cut_face(center: Any, a: Any, b: Any, h: Any) -> tuple[Any, Any]:
    """Return the corners (12, 3) of a parallelogram cut off by a rectangle, and which of them are.

    The rectangle is -h0 <= x <= h0, -h1 <= y <= h1. Two per edge of the parallelogram; and the
    corners of the rectangle that are below it.
    """
    corners = [center + x * a + y * b for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    places, valid = [], []
    for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        way = end - start
        first, last = 0.0, 1.0
        for k in range(2):
            low, high = slab(start[k], way[k], h[k])
            first, last = np.maximum(first, low), np.minimum(last, high)
        places += [start + first * way, start + last * way]
        valid += [first <= last] * 2
    area = a[0] * b[1] - a[1] * b[0]
    area = np.where(np.abs(area) < 1e-14, 1.0, area)
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        dx, dy = x * h[0] - center[0], y * h[1] - center[1]
        s, t = (dx * b[1] - dy * b[0]) / area, (a[0] * dy - a[1] * dx) / area
        height = center[2] + s * a[2] + t * b[2]
        places.append(np.stack([x * h[0], y * h[1], height]))
        valid.append((np.abs(s) <= 1.0 + SLACK) & (np.abs(t) <= 1.0 + SLACK))
    return np.stack(places), np.stack(valid)


def slab(start: Any, way: Any, h: Any) -> tuple[Any, Any]:
    """Return between which parts of a way a coordinate is within plus and minus h."""
    still = np.abs(way) < 1e-14
    safe = np.where(still, 1.0, way)
    a, b = (-h - start) / safe, (h - start) / safe
    inside = np.abs(start) <= h
    low = np.where(still, np.where(inside, 0.0, 2.0), np.minimum(a, b))
    return low, np.where(still, np.where(inside, 1.0, -1.0), np.maximum(a, b))


def edge_touch(A: Box, B: Box, t: Any, C: Any) -> tuple[Any, Any, Any, Any]:
    """Return whether edges cross, and normal, gap and place of the two that are farthest apart."""
    gaps, normals, places = [], [], []
    for i in range(3):
        for j in range(3):
            # e_i x C_j: its length is the sine of the angle between the edges.
            L = np.cross(np.eye(3)[i], C[:, j])
            squared = np.sum(L * L)
            parallel = squared < 1e-6
            L = L / np.sqrt(np.where(parallel, 1.0, squared))
            n = np.where(np.sum(L * t) < 0.0, -1.0, 1.0) * L
            gap = np.sum(n * t) - np.abs(n) @ A.h - np.abs(C.T @ n) @ B.h
            on_A = np.where(n < 0.0, -1.0, 1.0) * A.h * (np.arange(3) != i)
            sides = np.where(C.T @ n < 0.0, 1.0, -1.0) * B.h * (np.arange(3) != j)
            on_B = t + C @ sides
            # The lines on_A + s e_i and on_B + r C_j are nearest at this s.
            between, slope = on_B - on_A, C[i, j]
            rest = np.where(parallel, 1.0, 1.0 - slope * slope)
            s = (between[i] - slope * np.sum(between * C[:, j])) / rest
            gaps.append(np.where(parallel, -FAR, gap))
            normals.append(-n)
            places.append(on_A + s * np.eye(3)[i] + 0.5 * gap * n)
    best = np.argmax(np.stack(gaps))
    gap = np.stack(gaps)[best]
    return gap > -FAR, A.R @ np.stack(normals)[best], gap, A.c + A.R @ np.stack(places)[best]
