"""Where shapes of a model touch the ground or each other: gaps, normals and points.

Legend: a gap is negative where shapes overlap; its normal points from the second to the first.
A vector of zero length has no direction; the z axis is used.
Source: Ericson, Real-Time Collision Detection, 2005, sections 5.1.2 to 5.1.9.

Two boxes touch at four points of a face, or at one of two edges. Half sides are h, axes the columns
of R, centres c. Of fifteen directions, three normals of each box and nine products of their edges,
the one along which the boxes are farthest apart (or least deep in each other) is the normal. For a
normal of a face, of the reference box, the nearest face of the other is cut off at the sides of the
reference face; of what is left four corners are taken, those farthest in four directions, of the
nearest ones.
Sources: Gottschalk, Lin and Manocha, OBBTree, SIGGRAPH 1996 (fifteen directions); Ericson 2005,
section 5.5; Liang and Barsky, ACM Transactions on Graphics 3, 1984 (cutting edges).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import check_type
from archimedes.function import compile
from archimedes.multibody.algorithms.kinematics import world_pose
from archimedes.multibody.contact.contact_shapes import MATERIAL, Contacts, Ground, Pair
from archimedes.multibody.contact.hulls import (
    Core,
    core_kernel,
    point_kernel,
    segment_kernel,
    tangents,
)
from archimedes.multibody.contact.terrain import field_places
from archimedes.multibody.parts.height_field import HeightField
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Array, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model


# ---- where spheres, segments and boxes are nearest to each other ---------------------------------

TINY = 1e-14


def direction(way: Vec3) -> tuple[Scalar, Vec3]:
    """Return the length of a vector (3,) and its direction."""
    squared = np.sum(way * way)
    none = squared < TINY * TINY
    length = np.sqrt(np.where(none, 1.0, squared))
    up = np.array([0.0, 0.0, 1.0])
    return np.where(none, 0.0, length), np.where(none, up, way / length)


def within(x: Array, low: Scalar, high: Scalar) -> Any:
    """Return a number moved into an interval."""
    return np.minimum(np.maximum(x, low), high)


def quotient(a: Scalar, b: Scalar, otherwise: Scalar = 0.0) -> Any:
    """Return a / b, where b is not zero."""
    none = np.abs(b) < TINY
    return np.where(none, otherwise, a / np.where(none, 1.0, b))


def on_segment(point: Vec3, start: Vec3, end: Vec3) -> Scalar:
    """Return which part (0 to 1) of a segment is nearest to a point (3,)."""
    way = end - start
    return within(quotient(np.sum((point - start) * way), np.sum(way * way)), 0.0, 1.0)


def segments_nearest(a0: Vec3, a1: Vec3, b0: Vec3, b1: Vec3) -> tuple[Any, Any]:
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


def box_distance(point: Vec3, half: Vec3) -> tuple[Scalar, Vec3]:
    """Return the distance of a point (3,) from a box around zero of half sides (3,), and normal."""
    surplus = np.abs(point) - half
    side = np.where(point < 0.0, -1.0, 1.0)
    outside, n_out = direction(side * np.maximum(surplus, 0.0))
    inside = np.max(surplus)
    # One of the faces that are nearest, the last where several are.
    k = 2 - np.argmax(surplus[::-1])
    n_in = side * np.where(np.arange(3) == k, 1.0, 0.0)
    is_in = inside <= 0.0
    return np.where(is_in, inside, outside), np.where(is_in, n_in, n_out)


def along_box(start: Vec3, end: Vec3, half: Vec3) -> tuple[Any, Any, Any]:
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

    def slope(points: Array) -> Array:
        return np.sum((points - within(points, -half, half)) * way, axis=-1)

    slopes = slope(start + at[:, None] * way)
    low = np.max(np.where(slopes <= 0.0, at, 0.0))
    high = np.min(np.where(slopes >= 0.0, at, 1.0))
    s_low, s_high = slope(start + low * way), slope(start + high * way)
    straight = quotient(-s_low * (high - low), s_high - s_low, 0.5 * (high - low))
    best = within(np.where(high > low, low + straight, low), 0.0, 1.0)
    _, n = box_distance(start + best * way, half)
    across = np.arange(3) != np.argmax(np.abs(n))
    first: Any = 0.0
    last: Any = 1.0
    for k in range(3):
        a, b = slab(start[k], way[k], half[k])
        first = np.where(across[k], np.maximum(first, a), first)
        last = np.where(across[k], np.minimum(last, b), last)
    above = first <= last
    return best, np.where(above, first, best), np.where(above, last, best)


# ---- where two boxes touch -----------------------------------------------------------------------

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
#: Into how many parts a capsule is cut to see where it is lowest above a height field; how often
#: the place is then improved.
ALONG, ROUNDS = 8, 8
#: A cylinder stands on end up to this angle in rad; no point of its rim counts as the lowest.
UPRIGHT = 1e-4


class Box(NamedTuple):
    """Centre (3,), axes as columns (3, 3), half sides (3,)."""

    c: Any
    R: Any
    h: Any


def box_touches(A: Box, B: Box) -> list[tuple[Any, Any, Any, Any]]:
    """Return, four times, gap, normal from B to A, point (3,) in the world, and its share.

    That is 0 where the place is one before it, else 1: of a corner there is but one.
    """
    size = np.sum(A.h) + np.sum(B.h)
    t, C = A.R.T @ (B.c - A.c), A.R.T @ B.R
    apart_A, apart_B = faces_apart(t, C, A.h, B.h), faces_apart(C.T @ t, C.T, B.h, A.h)
    swap = np.max(apart_B) > np.max(apart_A) + PREFERENCE * size
    apart = np.where(swap, np.max(apart_B), np.max(apart_A))
    refer, other = choose_box(swap, B, A), choose_box(swap, A, B)
    outward, corners = face_touches(refer, other, np.where(swap, apart_B, apart_A))
    n = np.where(swap, 1.0, -1.0) * outward
    crossed, edge_n, edge_gap, edge_point = edge_touch(A, B, t, C)
    by_edges = crossed & (edge_gap > apart + PREFERENCE * size)
    touches: list[tuple[Any, Any, Any, Any]] = []
    for k, (gap, point) in enumerate(corners):
        edge = (edge_gap if k == 0 else FAR, edge_n, edge_point)
        touch = [np.where(by_edges, x, y) for x, y in zip(edge, (gap, n, point), strict=True)]
        again = [np.sum((point - p) ** 2) < (SAME * size) ** 2 for _, p in corners[:k]]
        share = np.where(np.any(np.stack(again)) & ~by_edges, 0.0, 1.0) if k else 1.0
        touches.append((touch[0], touch[1], touch[2], share))
    return touches


def choose_box(test: Array, a: Box, b: Box) -> Box:
    """Return one of two boxes."""
    return Box(*(np.where(test, x, y) for x, y in zip(a, b, strict=True)))


def faces_apart(t: Vec3, C: Matrix, h: Vec3, other: Vec3) -> Vec3:
    """Return how far (3,) boxes are apart along the normals of the first."""
    return np.abs(t) - h - np.abs(C) @ other


def roll_axes(k: int | np.integer[Any], x: Array) -> Array:
    """Return an array with columns 0, 1, 2 rolled so that column k is the last."""
    first, second = x[..., [1, 2, 0]], x[..., [2, 0, 1]]
    return np.where(k == 0, first, np.where(k == 1, second, x))


def face_touches(refer: Box, other: Box, apart: Vec3) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return the outward normal of the reference face, and four gaps with their places."""
    k = np.argmax(apart)
    R, h = roll_axes(k, refer.R), roll_axes(k, refer.h)
    C, t = R.T @ other.R, R.T @ (other.c - refer.c)
    side = np.where(t[2] < 0.0, -1.0, 1.0)
    j = np.argmax(np.abs(C[2]))
    C, g = roll_axes(j, C), roll_axes(j, other.h)
    # The other's face that looks at the reference face: its centre and half edges a, b.
    center = t - side * np.where(C[2, 2] < 0.0, -1.0, 1.0) * g[2] * C[:, 2]
    a, b = g[0] * C[:, 0], g[1] * C[:, 1]
    points, valid = cut_face(center, a, b, h * (1.0 + SLACK))
    gaps = side * points[:, 2] - h[2]
    touches = []
    for angle in np.deg2rad([55.0, 145.0, 235.0, 325.0]):
        reach = np.cos(angle) * points[:, 0] + np.sin(angle) * points[:, 1]
        best = np.argmax(np.where(valid, reach - DEPTH * gaps, -DEPTH * FAR))
        point, gap = points[best], gaps[best]
        middle = point - 0.5 * gap * side * np.array([0.0, 0.0, 1.0])
        touches.append((np.where(valid[best], gap, FAR), refer.c + R @ middle))
    return side * R[:, 2], touches


def cut_face(center: Vec3, a: Vec3, b: Vec3, h: Vec3) -> tuple[Array, Array]:
    """Return the corners (12, 3) of a parallelogram cut off by a rectangle, and which of them are.

    The rectangle is -h0 <= x <= h0, -h1 <= y <= h1. Two per edge of the parallelogram; and the
    corners of the rectangle that are below it.
    """
    corners = [center + x * a + y * b for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    points, valid = [], []
    for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        way = end - start
        first, last = 0.0, 1.0
        for k in range(2):
            low, high = slab(start[k], way[k], h[k])
            first, last = np.maximum(first, low), np.minimum(last, high)
        points += [start + first * way, start + last * way]
        valid += [first <= last] * 2
    area = a[0] * b[1] - a[1] * b[0]
    area = np.where(np.abs(area) < 1e-14, 1.0, area)
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        dx, dy = x * h[0] - center[0], y * h[1] - center[1]
        s, t = (dx * b[1] - dy * b[0]) / area, (a[0] * dy - a[1] * dx) / area
        height = center[2] + s * a[2] + t * b[2]
        points.append(np.stack([x * h[0], y * h[1], height]))
        valid.append((np.abs(s) <= 1.0 + SLACK) & (np.abs(t) <= 1.0 + SLACK))
    return np.stack(points), np.stack(valid)


def slab(start: Scalar, way: Scalar, h: Scalar) -> tuple[Any, Any]:
    """Return between which parts of a way a coordinate is within plus and minus h."""
    still = np.abs(way) < 1e-14
    safe = np.where(still, 1.0, way)
    a, b = (-h - start) / safe, (h - start) / safe
    inside = np.abs(start) <= h
    low = np.where(still, np.where(inside, 0.0, 2.0), np.minimum(a, b))
    return low, np.where(still, np.where(inside, 1.0, -1.0), np.maximum(a, b))


def edge_touch(A: Box, B: Box, t: Vec3, C: Matrix) -> tuple[Any, Any, Any, Any]:
    """Return whether edges cross, and normal, gap and place of the two that are farthest apart."""
    gaps, normals, points = [], [], []
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
            points.append(on_A + s * np.eye(3)[i] + 0.5 * gap * n)
    best = np.argmax(np.stack(gaps))
    gap = np.stack(gaps)[best]
    return gap > -FAR, A.R @ np.stack(normals)[best], gap, A.c + A.R @ np.stack(points)[best]


# ---- all contacts of a model ---------------------------------------------------------------------


class Touch(NamedTuple):
    """A point that may touch: gap, normal from second to first, point (3,), all in the world.

    `second` is the frame of the other shape, None for the ground; `material` has the numbers of
    `Ground` and `Pair`. `share` is what it counts as a spring of its own, 0 where it is the same
    place as another. `along` (3,) is the axis of a capsule on a plane, None elsewhere.
    """

    gap: Any
    normal: Any
    point: Any
    first: str
    second: str | None
    material: Any
    share: Any = 1.0
    along: Any = None


class Solid(NamedTuple):
    """A shape in the world."""

    centers: Any
    radius: Any
    axes: Any
    middle: Any
    half: Any
    polygons: Any = None
    heights: Any = None
    endless: bool = False


def touches(
    model: Model,
    q: Vector,
    contacts: Sequence[Contacts],
    ground: Ground | None,
    pairs: Sequence[Pair],
) -> list[Touch]:
    """Return all points that may touch at `q` (nq,), in the order of the shapes and pairs."""
    every: list[Touch] = []
    for shape, other, material in meetings_of(model, contacts, ground, pairs):
        along, second = None, None if other is None else other.frame
        if other is None:
            S = solid(model, q, shape)
            found = ground_touches(S, shape.kind, material)
            if not isinstance(material.height, HeightField):
                along = axis_of(S, shape.kind)
        else:
            found = pair_touches(model, q, shape, other)
            if other.kind == "half-space":
                along = axis_of(solid(model, q, shape), shape.kind)
            elif shape.kind == "half-space":
                along = axis_of(solid(model, q, other), other.kind)
        for d, n, point, *share in found:
            touch = Touch(d, n, point, shape.frame, second, material, *share)
            every.append(touch._replace(along=along))
    return every


class Meeting(NamedTuple):
    """A shape that may touch another one, or the ground, which is None, and their material."""

    first: Contacts
    second: Contacts | None
    material: Any


def meetings_of(
    model: Model, contacts: Sequence[Contacts], ground: Ground | None, pairs: Sequence[Pair]
) -> list[Meeting]:
    """Return which shapes may touch what, in the order of the shapes and pairs."""
    for values, kind, name in ((contacts, Contacts, "contacts"), (pairs, Pair, "pairs")):
        if not isinstance(values, (list, tuple)) or not all(isinstance(x, kind) for x in values):
            raise TypeError(f"{name} must be a list of {kind.__name__}, got {values!r:.80}")
    if ground is not None:
        check_type(ground, "ground", Ground)
    if contacts and ground is None:
        raise ValueError("contacts need a ground: pass a Ground, or give pairs= of shapes alone")
    for material in materials_of(ground, pairs):
        for key in MATERIAL:
            if shape := np.shape(getattr(material, key)):
                actual = f"got an array of shape {shape}; use arc.vmap for many"
                raise ValueError(f"{type(material).__name__} {key} must be one number, {actual}")
    every: list[Meeting] = []
    still: list[str] = []
    for shape in contacts:
        if is_fixed(model, shape.frame):
            still.append(f"contacts on {shape.frame!r}: neither that nor the ground moves")
            continue
        every.append(Meeting(shape, None, ground))
    for pair in pairs:
        first, second = pair.first.frame, pair.second.frame
        if link_of(model, first) == link_of(model, second):
            still.append(f"Pair of frames {first!r} and {second!r}: neither moves on the other")
            continue  # parts of one body, which `every_pair` cannot know, do not push each other
        every.append(Meeting(pair.first, pair.second, pair))
    if not every:
        nothing = "there is nothing that could touch: give contacts and a ground, or pairs"
        raise ValueError("; ".join([*still[:1], nothing]))
    return every


def terrain_touches(S: Solid, kind: str, ground: Ground) -> list[tuple[Any, ...]]:
    """Return gap, normal, point and share of every place where a height field may be touched."""
    if (kind, "heightfield") not in MEETINGS:
        raise ValueError(f"a {kind} does not touch a Ground whose height is a HeightField")
    axes = np.stack([*tangents(ground.normal), ground.normal], axis=1)
    terrain = Solid(None, 0.0, axes, ground.point, None, None, ground.height, endless=True)
    return MEETINGS[kind, "heightfield"](S, terrain)


def ground_touches(S: Solid, kind: str, ground: Ground) -> list[tuple[Any, ...]]:
    """Return gap, normal, point and share of every place where a shape may touch the ground."""
    if isinstance(ground.height, HeightField):
        found = terrain_touches(S, kind, ground)
        return [(d, n, point + 0.5 * d * n, share) for d, n, point, share in found]
    centers, shares, radius = ground_centers(S, kind, ground)
    touches = []
    for center, share in zip(centers, shares, strict=True):
        away, n = ground.gap(center)
        touches.append((away - radius, n, center - radius * n, share))
    return touches


def ground_centers(
    S: Solid, kind: str, ground: Ground
) -> tuple[Sequence[Any], Sequence[Any], Scalar]:
    """Return centres of spheres of a shape that the ground may touch, their shares and radius."""
    if kind in FACING_PLACES:
        return FACING_PLACES[kind](S, ground.gap(S.middle)[1])
    return S.centers, [1.0] * len(S.centers), S.radius


def axis_of(S: Solid, kind: str) -> Vec3 | None:
    """Return the axis (3,) of a capsule, from one end to the other; None of other shapes."""
    return S.centers[1] - S.centers[0] if kind == "capsule" else None


def materials_of(ground: Ground | None, pairs: Sequence[Pair]) -> list[Ground | Pair]:
    """Return all that has friction and stiffness."""
    return [*pairs, *(() if ground is None else (ground,))]


def is_fixed(model: Model, frame: str) -> bool:
    """Return whether a frame is part of the world."""
    if frame == "world" and "world" not in model.frame_names:
        return True
    return model.frames[model.frame(frame)].link < 0


def moving_frames(model: Model, touch: Touch) -> list[tuple[str, float]]:
    """Return the frames of a touch that move, and the sign of the normal on each."""
    sides = ((touch.first, 1.0), (touch.second, -1.0))
    return [(frame, sign) for frame, sign in sides if frame and not is_fixed(model, frame)]


def link_of(model: Model, frame: str) -> int:
    """Return the link that a frame is on, -1 for the world."""
    return -1 if is_fixed(model, frame) else model.frames[model.frame(frame)].link


def solid(model: Model, q: Vector, shape: Contacts) -> Solid:
    """Return a shape where it is in the world."""
    X = Pose(np.eye(3), np.zeros(3))
    if shape.frame != "world" or "world" in model.frame_names:
        X = world_pose(model, q, shape.frame)
    return place_shape(shape, X)


def place_shape(shape: Any, X: Pose) -> Solid:
    """Return a shape whose frame has a pose in the world."""
    centers: Any = [X.p + X.R @ shape.centers[k] for k in range(shape.centers.shape[0])]
    middle = X.p + X.R @ shape.position
    if shape.polygons is not None:
        # Many, as rows of one array: their programs do not grow with their number.
        centers = shape.centers @ X.R.T + X.p
        if shape.kind == "hull":
            middle = np.sum(centers, axis=0) / centers.shape[0]
    axes = X.R @ shape.rotation
    half = 0.5 * shape.size
    return Solid(centers, shape.radius, axes, middle, half, shape.polygons, shape.heights)


def pair_touches(model: Model, q: Vector, a: Contacts, b: Contacts) -> list[tuple[Any, ...]]:
    """Return gap, normal from b to a, and point of every place where two shapes may touch.

    Fourth the share, where it is not one.
    """
    return solid_touches(solid(model, q, a), solid(model, q, b), a.kind, b.kind)


def solid_touches(A: Solid, B: Solid, a: str, b: str) -> list[tuple[Any, ...]]:
    """Return `pair_touches` of shapes of two kinds where they are in the world."""
    if (a, b) in MEETINGS:
        return MEETINGS[a, b](A, B)
    return [(d, -n, *rest) for d, n, *rest in MEETINGS[b, a](B, A)]


def spheres(point: Vec3, radius: Scalar, other: Vec3, other_radius: Scalar) -> tuple[Any, Any, Any]:
    """Return the touch of two spheres."""
    away, n = direction(point - other)
    d = away - radius - other_radius
    return d, n, other + (other_radius + 0.5 * d) * n


def points_points(A: Solid, B: Solid) -> list[Any]:
    """Return the touches of all spheres of two sets."""
    return [spheres(p, A.radius, o, B.radius) for p in A.centers for o in B.centers]


def points_capsule(A: Solid, B: Solid) -> list[Any]:
    """Return the touch of each sphere with a capsule."""
    start, end = B.centers
    nearest = [start + on_segment(p, start, end) * (end - start) for p in A.centers]
    pairs = zip(A.centers, nearest, strict=True)
    return [spheres(p, A.radius, other, B.radius) for p, other in pairs]


def sphere_box(p: Vec3, radius: Scalar, B: Solid) -> tuple[Any, Any, Any]:
    """Return the touch of a sphere with a box."""
    away, n = box_distance(B.axes.T @ (p - B.middle), B.half)
    d, n = away - radius, B.axes @ n
    return d, n, p - (radius + 0.5 * d) * n


def points_box(A: Solid, B: Solid) -> list[Any]:
    """Return the touch of each sphere with a box."""
    return [sphere_box(p, A.radius, B) for p in A.centers]


def points_half_space(A: Solid, B: Solid) -> list[Any]:
    """Return the touch of each sphere with a half-space."""
    n = B.axes[:, 2]
    gaps = [np.sum((p - B.middle) * n) - A.radius for p in A.centers]
    pairs = zip(A.centers, gaps, strict=True)
    return [(d, n, p - (A.radius + 0.5 * d) * n) for p, d in pairs]


def facing_half_space(A: Solid, B: Solid, kind: str) -> list[Any]:
    """Return the touches of the places of a solid that look at a half-space."""
    places, shares, radius = FACING_PLACES[kind](A, B.axes[:, 2])
    touches = points_half_space(A._replace(centers=places, radius=radius), B)
    return [(*touch, share) for touch, share in zip(touches, shares, strict=True)]


# ---- where shapes touch a height field -----------------------------------------------------------


def sphere_field(p: Vec3, radius: Scalar, B: Solid) -> list[Any]:
    """Return the touches of a sphere with a height field: where it is nearest to its surface."""
    at = B.axes.T @ (p - B.middle)
    places = field_places(B.heights, at, radius)
    if B.endless:
        places[0] = go_on_level(B.heights, at, radius, places[0])
    touches = []
    for d, own, share in places:
        n = B.axes @ own
        touches.append((d, n, p - (radius + 0.5 * d) * n, share))
    return touches


def go_on_level(field: HeightField, at: Vec3, radius: Scalar, place: Any) -> Any:
    """Return a place on a field, or beyond its edges that on the plane which goes on there."""
    beyond = (np.abs(at[0]) > 0.5 * field.size[0]) | (np.abs(at[1]) > 0.5 * field.size[1])
    above, n = Ground(point=np.zeros(3), height=field).gap(at)
    plane = (above - radius, n, 1.0)
    return tuple(np.where(beyond, x, y) for x, y in zip(plane, place, strict=True))


def points_field(A: Solid, B: Solid) -> list[Any]:
    """Return the touches of each sphere with a height field."""
    return [touch for p in A.centers for touch in sphere_field(p, A.radius, B)]


def facing_field(A: Solid, B: Solid, kind: str) -> list[Any]:
    """Return the touches of the places of a solid that look at the face below its middle."""
    below = Ground(point=np.zeros(3), height=B.heights)
    _, n = below.gap(B.axes.T @ (A.middle - B.middle))
    places, shares, radius = FACING_PLACES[kind](A, B.axes @ n)
    return [
        (d, n, point, own * share)
        for p, own in zip(places, shares, strict=True)
        for d, n, point, share in sphere_field(p, radius, B)
    ]


def capsule_field(A: Solid, B: Solid) -> list[Any]:
    """Return the touches of the ends of a capsule, and where it is nearest between them.

    That is found by going to the surface and back, from the lowest of some places above it.
    """
    start, end = A.centers
    way, touches = end - start, points_field(A, B)
    parts = np.arange(1, ALONG) / ALONG
    points = (start + parts[:, None] * way - B.middle) @ B.axes
    t = parts[np.argmin(points[:, 2] - B.heights(points[:, 0], points[:, 1]))]
    for _ in range(ROUNDS):
        d, n, _, _ = sphere_field(start + t * way, 0.0, B)[0]
        t = on_segment(start + t * way - d * n, start, end)
    [(d, n, point, share), *_] = sphere_field(start + t * way, A.radius, B)
    apart = share_of(t * way, A.radius) * share_of((1.0 - t) * way, A.radius)
    return [*touches, (d, n, point, share * apart)]


def box_places(A: Solid, n: Vec3) -> tuple[list[Any], list[Any], Scalar]:
    """Return the four corners of a box that look against a normal, their shares and radius."""
    return facing_corners(A, n), [1.0] * 4, A.radius


def ellipsoid_place(A: Solid, n: Vec3) -> tuple[list[Any], list[Any], Scalar]:
    """Return the point of an ellipsoid that is farthest against a normal, share, and no radius."""
    way = A.half * (A.axes.T @ n)
    return [A.middle - A.axes @ (A.half * way / np.sqrt(np.sum(way * way)))], [1.0], 0.0


def cylinder_places(A: Solid, n: Vec3) -> tuple[list[Any], list[Any], Scalar]:
    """Return four points of a cylinder that look against a normal, shares, and no radius.

    The lowest of the lower rim and two beside it, each a third of the circle on; and that of the
    upper rim. On end, where no point of the rim is lowest, they are three of the rim and one
    between them.
    """
    along, across, size = A.axes[:, 2], A.axes[:, 0], A.half
    lean = np.sum(n * along)
    down = lean * along - n
    squared = np.sum(down * down)
    upright = squared < UPRIGHT * UPRIGHT
    length = np.sqrt(np.where(upright, 1.0, squared))
    lowest = np.where(upright, down / UPRIGHT, down / length)
    first = np.where(upright, across, down / length)
    beside = np.cross(along, first)
    side = np.where(lean < 0.0, 1.0, -1.0) * size[2] * along
    rims = [-0.5 * first + turn * np.sqrt(0.75) * beside for turn in (1.0, -1.0)]
    ways = [side + size[0] * way for way in (lowest, *rims)]
    ways.append(np.where(upright, side + size[0] * first, size[0] * lowest - side))
    # The two rims of a disk are one.
    single = np.where(~upright & (size[2] <= SAME * size[0]), 0.0, 1.0)
    return [A.middle + way for way in ways], [1.0, 1.0, 1.0, single], 0.0


def facing_corners(A: Solid, n: Vec3) -> list[Vec3]:
    """Return the four corners of the face of a box that is turned most against a normal."""
    k = np.argmax(np.abs(A.axes.T @ n))
    R, h = roll_axes(k, A.axes), roll_axes(k, A.half)
    side = np.where(np.sum(R[:, 2] * n) < 0.0, 1.0, -1.0)
    center, a, b = A.middle + side * h[2] * R[:, 2], h[0] * R[:, 0], h[1] * R[:, 1]
    return [center + x * a + y * b for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]


def lowest_corners(A: Solid, n: Vec3) -> tuple[list[Any], list[Any], Scalar]:
    """Return four corners of a hull that are farthest against a normal, their shares and radius.

    Of those that are equally far, the ones that lie farthest in four directions. The share is 0
    where the corner is one before it, else 1.
    """
    heights = A.centers @ n
    corners: list[Any] = []
    chosen: list[Any] = []
    shares: list[Any] = []
    x, y = tangents(n)
    for angle in np.deg2rad([55.0, 145.0, 235.0, 325.0]):
        reach = A.centers @ (np.cos(angle) * x + np.sin(angle) * y)
        best = np.argmax(reach - DEPTH * heights)
        again = [best == other for other in chosen]
        shares.append(np.where(np.any(np.stack(again)), 0.0, 1.0) if again else 1.0)
        chosen.append(best)
        corners.append(np.take(A.centers, best, axis=0))
    return corners, shares, A.radius


def hull_hull(A: Solid, B: Solid) -> list[Any]:
    """Return four touches of two rounded polytopes."""
    return core_kernel(core_of(A), core_of(B))


def points_hull(A: Solid, B: Solid) -> list[Any]:
    """Return the touch of each sphere with a hull."""
    core = core_of(B)
    return [point_kernel(core_of(A._replace(centers=[p])), core) for p in A.centers]


def capsule_hull(A: Solid, B: Solid) -> list[Any]:
    """Return three touches: where a capsule is nearest to a hull, and its ends over a face."""
    return segment_kernel(core_of(A), core_of(B))


def core_of(S: Solid) -> Core:
    """Return a sphere, a capsule, a box or a hull as a rounded polytope."""
    if S.polygons is not None:
        return Core(S.centers, S.radius, S.polygons.corners, S.polygons.normals @ S.axes.T)
    V = np.stack(S.centers)
    if len(S.centers) == 8:
        normals = np.concatenate([S.axes.T, -S.axes.T])
        return Core(V, 0.0 * S.radius, BOX_CORNERS, normals)
    return Core(V, S.radius, np.arange(len(S.centers))[None, :], np.zeros((1, 3)))


#: Faces of a box by the numbers of its corners, as `box` has them: +x, +y, +z, -x, -y, -z.
BOX_CORNERS = np.array(
    [[4, 6, 7, 5], [2, 3, 7, 6], [1, 5, 7, 3], [0, 1, 3, 2], [0, 4, 5, 1], [0, 2, 6, 4]]
)


def capsule_capsule(A: Solid, B: Solid) -> list[Any]:
    """Return three touches: where they are nearest, and where A's ends are along B."""
    (a0, a1), (b0, b1) = A.centers, B.centers
    s, t = segments_nearest(a0, a1, b0, b1)
    nearest = a0 + s * (a1 - a0)
    touches: list[Any] = [spheres(nearest, A.radius, b0 + t * (b1 - b0), B.radius)]
    for end in (a0, a1):
        on_B = b0 + on_segment(end, b0, b1) * (b1 - b0)
        on_A = a0 + on_segment(on_B, a0, a1) * (a1 - a0)
        touch = spheres(on_A, A.radius, on_B, B.radius)
        touches.append((*touch, share_of(on_A - nearest, A.radius)))
    return touches


def capsule_box(A: Solid, B: Solid) -> list[Any]:
    """Return three touches: where a capsule is nearest to a box, and where it leaves its face."""
    start, end = A.centers
    parts = along_box(B.axes.T @ (start - B.middle), B.axes.T @ (end - B.middle), B.half)
    points = [start + t * (end - start) for t in parts]
    shares = [share_of(point - points[0], A.radius) for point in points[1:]]
    touches = [sphere_box(point, A.radius, B) for point in points]
    return [touches[0], *((*t, share) for t, share in zip(touches[1:], shares, strict=True))]


def share_of(away: Vec3, radius: Scalar) -> Scalar:
    """Return what a place counts that is so far (3,) from another: nothing at it, one beyond."""
    squared = np.sum(away * away)
    return squared / (squared + radius * radius + TINY * TINY)


def box_box(A: Solid, B: Solid) -> list[Any]:
    """Return the four touches of two boxes."""
    return box_kernel(*(Box(X.middle, X.axes, X.half) for X in (A, B)))


#: The program of two boxes is long: pairs of boxes share it.
box_kernel = compile(box_touches)


#: Which places of a solid a plane may touch, by the solid and the plane's normal.
FACING_PLACES: dict[str, Callable[[Solid, Vec3], tuple[list[Any], list[Any], Scalar]]] = {
    "box": box_places,
    "hull": lowest_corners,
    "cylinder": cylinder_places,
    "ellipsoid": ellipsoid_place,
}
#: How two kinds meet; what is missing is there the other way round.
MEETINGS: dict[tuple[str, str], Callable[[Solid, Solid], list[Any]]] = {
    ("points", "points"): points_points,
    ("points", "capsule"): points_capsule,
    ("points", "box"): points_box,
    ("points", "half-space"): points_half_space,
    ("capsule", "capsule"): capsule_capsule,
    ("capsule", "box"): capsule_box,
    ("capsule", "half-space"): points_half_space,
    ("box", "box"): box_box,
}
#: What meets others as the polytope that it has.
POLYTOPES = ("hull", "cylinder", "ellipsoid")
MEETINGS["points", "heightfield"] = points_field
MEETINGS["capsule", "heightfield"] = capsule_field
for kind in FACING_PLACES:
    MEETINGS[kind, "heightfield"] = partial(facing_field, kind=kind)
    MEETINGS[kind, "half-space"] = partial(facing_half_space, kind=kind)
for number, kind in enumerate(POLYTOPES):
    MEETINGS["points", kind] = points_hull
    MEETINGS["capsule", kind] = capsule_hull
    for other in ("box", *POLYTOPES[: number + 1]):
        MEETINGS[other, kind] = hull_hull
