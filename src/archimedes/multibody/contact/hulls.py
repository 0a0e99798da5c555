"""Convex polytopes that touch: distance, normal, and the places where they meet.

Legend: a shape is a core, the convex hull of points, that is rounded by a radius. Points of a core
are rows of V (n, 3), a its points, b those of the other; w = a - b are points of their Minkowski
difference, of which x is the one nearest to zero: the cores are |x| apart, along x.

The algorithm of Gilbert, Johnson and Keerthi: x is the point nearest to zero of a simplex of up to
four w. The w that is farthest against x replaces one of them, until none is farther than x itself.
A simplex has fifteen parts: four corners, six edges, four faces, itself. The part counts whose
point nearest to zero is inside it and nearest of all; the corners beside it are dropped. The
iteration only looks for which points these are. Then x follows from them by a formula, whose
derivatives are those of distance and normal.

Where the cores themselves overlap, the face along whose normal they are least deep in each other
tells the way out.

Faces that look at each other touch at several places. The edges of one face are cut off at the
sides of the other, the reference face: the one whose normal is nearest to that of the contact. Of
what is left four corners are taken, as for boxes (`collision`).
Sources: Gilbert, Johnson and Keerthi, IEEE Journal of Robotics and Automation 4, 1988; Ericson,
Real-Time Collision Detection, 2005, sections 5.1.9 and 9.5; Cyrus and Beck, Computers & Graphics 3,
1978 (cutting segments at convex polygons).
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from archimedes.function import compile, stop_gradient, while_loop
from archimedes.typing import Array, ArrayLike, Matrix, Vec3, Vector

#: Steps of the search; 99 % of random pairs of 100 points take fewer than 12.
STEPS = 64
#: Nothing is nearer by more than this part of the squared distance: the search is done.
CLOSE = 1e-13
#: Cores count as overlapping below this part of their size.
OVERLAP = 1e-9
#: Faces may touch at several places up to this cosine between their normals: 25 deg.
FACING = 0.9
#: The gap of a place that is none, in m, and what a gap counts against reach (as for boxes).
FAR, DEPTH = 1e3, 1e4
#: Corners are as near as the shapes are up to this part of their size; places so near are one.
NEAR, SAME = 1e-9, 1e-6
#: Corners of equal faces on each other are within, whatever their rounding says.
SLACK = 1e-9
#: The parts of a simplex, as rows of which corners they have: the smaller ones first, so that of
#: equally near ones the one with fewest corners counts.
PARTS = [[k for k in range(4) if n >> k & 1] for n in sorted(range(1, 16), key=int.bit_count)]


class Polygons:
    """The faces of a convex hull: flat polygons with outward normals. It is never changed.

    Parameters
    ----------
    corners : array of int (faces, k)
        Corners of each face in order, seen from outside counter-clockwise; the last is repeated
        where a face has fewer than others.
    normals : array (faces, 3)
        Outward normals of length one.
    """

    __slots__ = ("corners", "digest", "normals")

    def __init__(self, corners: Array, normals: Array) -> None:
        self.corners, self.normals = corners, normals
        for array in (corners, normals):
            array.flags.writeable = False
        data = repr(corners.shape).encode() + corners.tobytes() + normals.tobytes()
        self.digest = hashlib.blake2b(data, digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polygons) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Polygons({len(self.corners)} faces)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Polygons, (self.corners, self.normals)

    def __content__(self) -> tuple[bytes]:
        return (self.digest,)


class Core(NamedTuple):
    """A core in the world: points V (n, 3), radius, corners (f, k) and normals (f, 3) of faces.

    A segment, or a point, has one face with that many corners, and a normal of zero.
    """

    V: Any
    radius: Any
    corners: Any
    normals: Any


class Places(NamedTuple):
    """Where faces may touch: gaps (m,), FAR where there is none, and points (m, 3).

    `ends` are the numbers of the two ends of what is left of the first edge.
    """

    gaps: Any
    points: Any
    outward: Any
    ends: tuple[int, int]


def core_touches(A: Core, B: Core) -> list[tuple[Any, Any, Any, Any]]:
    """Return, four times, gap, normal from B to A, point (3,) in the world, and its share.

    One of them is where the shapes are nearest to each other. A share is 0 where the place is one
    before it, else 1.
    """
    gap, n, middle = nearest_touch(A, B)
    at = facing_places(A, B, n)
    x = tangent_of(at.outward)
    y = np.cross(at.outward, x)
    chosen = []
    for angle in np.deg2rad([55.0, 145.0, 235.0, 325.0]):
        reach = at.points @ (np.cos(angle) * x + np.sin(angle) * y)
        chosen.append(np.argmax(reach - DEPTH * at.gaps))
    gaps = np.stack([np.take(at.gaps, best) for best in chosen])
    # Where the shapes are nearest to each other is one of the places, in exchange for the highest.
    size = spread_of(A.V) + spread_of(B.V)
    missing = np.min(gaps) > gap + NEAR * size
    highest = np.argmax(gaps)
    touches: list[tuple[Any, Any, Any, Any]] = []
    for k in range(4):
        here = missing & (highest == k)
        point = np.where(here, middle, np.take(at.points, chosen[k], axis=0))
        again = [np.sum((point - t[2]) ** 2) < (SAME * size) ** 2 for t in touches]
        share = np.where(np.any(np.stack(again)), 0.0, 1.0) if again else 1.0
        touches.append((np.where(here, gap, gaps[k]), n, point, share))
    return touches


def segment_touches(A: Core, B: Core) -> list[tuple[Any, Any, Any, Any]]:
    """Return three touches of a rounded segment: where it is nearest, and where it leaves a face.

    As `core_touches` does.
    """
    gap, n, middle = nearest_touch(A, B)
    at = facing_places(A, B, n)
    size = spread_of(A.V) + spread_of(B.V)
    touches: list[tuple[Any, Any, Any, Any]] = [(gap, n, middle, 1.0)]
    for k in at.ends:
        again = [np.sum((at.points[k] - t[2]) ** 2) < (SAME * size) ** 2 for t in touches]
        share = np.where(np.any(np.stack(again)), 0.0, 1.0)
        touches.append((at.gaps[k], n, at.points[k], share))
    return touches


def nearest_touch(A: Core, B: Core) -> tuple[Any, Any, Any]:
    """Return gap, normal from B to A, and the point halfway where shapes are nearest."""
    gap, n, on_A, on_B = nearest(A, B)
    return gap, n, 0.5 * (on_A + on_B)


def facing_places(A: Core, B: Core, n: Vec3) -> Places:
    """Return where the two faces that look at each other along a normal touch."""
    facing_A, facing_B = -(A.normals @ n), B.normals @ n
    # Of two that look equally straight it is A's, whatever the rounding says.
    swap = np.max(facing_B) > np.max(facing_A) + 1e-5
    face_A, face_B = np.argmax(facing_A), np.argmax(facing_B)
    k = max(A.corners.shape[1], B.corners.shape[1])
    corners_A, corners_B = face_corners(A, face_A, k), face_corners(B, face_B, k)
    refer, other = np.where(swap, corners_B, corners_A), np.where(swap, corners_A, corners_B)
    outward = np.where(swap, np.take(B.normals, face_B, axis=0), np.take(A.normals, face_A, axis=0))
    along = np.where(swap, n, -n)
    points, heights, valid = cut_polygon(refer, outward, other, along)
    valid = valid & (np.maximum(np.max(facing_A), np.max(facing_B)) > FACING)
    gaps = heights - A.radius - B.radius
    # Halfway between the rounded faces.
    beyond = 0.5 * gaps + np.where(swap, A.radius, B.radius)
    places = points - beyond[:, None] * along
    return Places(np.where(valid, gaps, FAR), places, outward, (0, k))


def nearest(A: Core, B: Core) -> tuple[Any, Any, Any, Any]:
    """Return the gap of two rounded cores, the normal from B to A, and where it is on each."""
    ids_A, ids_B = nearest_corners(stop_gradient(A.V), stop_gradient(B.V))
    P, Q = np.take(A.V, ids_A, axis=0), np.take(B.V, ids_B, axis=0)
    weights = simplex_weights(P - Q)[0]
    a, b = weights @ P, weights @ Q
    x = a - b
    squared = np.sum(x * x)
    apart = squared > (OVERLAP * (spread_of(A.V) + spread_of(B.V))) ** 2
    distance = np.sqrt(np.where(apart, squared, 1.0))
    depth, way, on_A, on_B = way_out(A, B)
    n = np.where(apart, x / distance, way)
    gap = np.where(apart, distance, depth) - A.radius - B.radius
    on_A = np.where(apart, a, on_A) - A.radius * n
    on_B = np.where(apart, b, on_B) + B.radius * n
    return gap, n, on_A, on_B


def nearest_corners(V: Matrix, W: Matrix) -> tuple[Any, Any]:
    """Return the numbers (4,) of points of each core between which the nearest points are."""
    slots = np.arange(4)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        ids_A, ids_B, weights, x, _, count = state
        i, j = np.argmax(-(V @ x)), np.argmax(W @ x)
        w = np.take(V, i, axis=0) - np.take(W, j, axis=0)
        squared = np.sum(x * x)
        there = np.any((ids_A == i) & (ids_B == j) & (weights > 0.0))
        done = there | (squared - np.sum(x * w) <= CLOSE * squared)
        # Into a slot of weight zero; a simplex with four corners contains zero, and is the end.
        free = np.argmin(weights)
        here = (slots == free) & ~done
        ids_A, ids_B = np.where(here, i, ids_A), np.where(here, j, ids_B)
        weights, x = simplex_weights(np.take(V, ids_A, axis=0) - np.take(W, ids_B, axis=0))
        # Slots of weight zero repeat a corner that counts: what they held before is forgotten.
        keep = np.argmax(weights)
        counts = weights > 0.0
        ids_A = np.where(counts, ids_A, np.take(ids_A, keep))
        ids_B = np.where(counts, ids_B, np.take(ids_B, keep))
        done = done | np.all(counts) | (np.sum(x * x) >= squared)
        return ids_A, ids_B, weights, x, done, count + 1

    def goes_on(state: tuple[Any, ...]) -> Any:
        return ~state[4] & (state[5] < STEPS)

    zero = np.zeros(4, dtype=np.int64)
    begin = (zero, zero, np.array([1.0, 0.0, 0.0, 0.0]), V[0] - W[0], np.bool_(False), 0)
    ids_A, ids_B, *_ = while_loop(goes_on, step, begin, max_steps=STEPS)
    return ids_A, ids_B


def simplex_weights(S: Matrix) -> tuple[Any, Any]:
    """Return weights (4,) of the corners S (4, 3) of a simplex, and its point nearest to zero."""
    best: Any = np.array([1.0, 0.0, 0.0, 0.0])
    point, least = S[0], np.sum(S[0] * S[0])
    for part in PARTS[1:]:
        weights = part_weights([S[k] for k in part])
        inside = weights[0] > 0.0
        for weight in weights[1:]:
            inside = inside & (weight > 0.0)
        full = np.stack([weights[part.index(k)] if k in part else 0.0 * least for k in range(4)])
        x = full @ S
        squared = np.sum(x * x)
        better = inside & (squared < least)
        best, point = np.where(better, full, best), np.where(better, x, point)
        least = np.where(better, squared, least)
    return best, point


def part_weights(corners: list[Vec3]) -> list[Any]:
    """Return the weights of the point nearest to zero of a line, a plane or all of space.

    They are negative, or zero, where the part is degenerate.
    """
    if len(corners) == 1:
        return [1.0 + 0.0 * corners[0][0]]
    o, *others = corners
    E = [c - o for c in others]
    if len(E) == 1:
        length = np.sum(E[0] * E[0])
        t = -np.sum(E[0] * o) / np.where(length > 0.0, length, 1.0)
        t = np.where(length > 0.0, t, -1.0)
        return [1.0 - t, t]
    if len(E) == 2:
        n = np.cross(E[0], E[1])
        area = np.sum(n * n)
        flat = area <= 1e-28 * np.sum(E[0] * E[0]) * np.sum(E[1] * E[1])
        n = n / np.where(flat, 1.0, area)
        v = np.where(flat, -1.0, -np.sum(np.cross(o, E[1]) * n))
        w = np.where(flat, -1.0, np.sum(np.cross(o, E[0]) * n))
        return [1.0 - v - w, v, w]
    n = np.cross(E[1], E[2])
    volume = np.sum(E[0] * n)
    lengths = np.sqrt(np.sum(E[0] * E[0]) * np.sum(E[1] * E[1]) * np.sum(E[2] * E[2]))
    flat = np.abs(volume) <= 1e-14 * lengths
    safe = np.where(flat, 1.0, volume)
    r = -np.sum(o * n) / safe
    s = -np.sum(o * np.cross(E[2], E[0])) / safe
    t = -np.sum(o * np.cross(E[0], E[1])) / safe
    r = np.where(flat, -1.0, r)
    return [1.0 - r - s - t, r, s, t]


def way_out(A: Core, B: Core) -> tuple[Any, Any, Any, Any]:
    """Return how far cores are apart along the best normal of a face, it, and where.

    Negative where they overlap.
    """
    depth_A, n_A, a, b = least_deep(A, B.V)
    depth_B, n_B, other_b, other_a = least_deep(B, A.V)
    swap = depth_B > depth_A
    pick = [np.where(swap, x, y) for x, y in ((n_B, -n_A), (other_a, a), (other_b, b))]
    return np.where(swap, depth_B, depth_A), *pick


def least_deep(A: Core, W: Matrix) -> tuple[Any, Any, Any, Any]:
    """Return the largest height of a core above a face of another, its normal, and two points."""
    levels = np.max(A.normals @ A.V.T, axis=1)
    heights = np.min(A.normals @ W.T, axis=1) - levels
    # A normal of zero is no face.
    real = np.sum(A.normals * A.normals, axis=1) > 0.5
    k = np.argmax(np.where(real, heights, -FAR))
    n = np.take(A.normals, k, axis=0)
    b = np.take(W, np.argmin(W @ n), axis=0)
    height = np.where(np.take(real, k), np.sum(n * b) - np.take(levels, k), -FAR)
    return height, n, b - height * n, b


def spread_of(V: Matrix) -> Any:
    """Return the size of a core."""
    return np.max(np.max(V, axis=0) - np.min(V, axis=0)) + 1e-30


def face_corners(A: Core, k: Any, count: int) -> Any:
    """Return the corners (count, 3) of face number k, the last of them as often as needed."""
    numbers = np.minimum(np.arange(count), A.corners.shape[1] - 1)
    return np.take(A.V, np.take(A.corners, k, axis=0)[numbers], axis=0)


def cut_polygon(
    refer: Matrix, normal: Vec3, other: Matrix, along: Vec3
) -> tuple[Array, Vector, Array]:
    """Return corners (3 k, 3) of a polygon cut off at the sides of another, and their heights.

    Heights are along `along` above the plane of the reference polygon, whose normal is `normal`.
    The third array tells which of them are corners. The first two of each edge of `other`, then
    what of it is above the corners of the reference polygon.
    """
    k = refer.shape[0]
    ends = np.concatenate([refer[1:], refer[:1]])
    inward = np.cross(normal, ends - refer)
    inward = inward / np.sqrt(np.maximum(np.sum(inward * inward, axis=1), 1e-300))[:, None]
    size = np.max(np.max(refer, axis=0) - np.min(refer, axis=0))
    start = other
    way = np.concatenate([other[1:], other[:1]]) - other
    # Of each edge (rows) the parts within each side (columns).
    at = (start[:, None, :] - refer) * inward
    inside, slope = np.sum(at, axis=2) + SLACK * size, way @ inward.T
    still = np.abs(slope) <= 1e-14 * size
    part = -inside / np.where(still, 1.0, slope)
    low = np.where(still, np.where(inside >= 0.0, 0.0, 2.0), np.where(slope > 0.0, part, 0.0))
    high = np.where(still, 1.0, np.where(slope < 0.0, part, 1.0))
    first = np.maximum(np.max(low, axis=1), 0.0)
    last = np.minimum(np.min(high, axis=1), 1.0)
    cut_at = (np.minimum(first, 1.0), np.maximum(last, 0.0))
    cut = [start + part[:, None] * way for part in cut_at]
    # Corners of the reference polygon, moved along its normal onto the other polygon's plane.
    flat = polygon_normal(other)
    lean = np.sum(flat * normal)
    upright = np.abs(lean) > 1e-9
    drop = np.sum((other[0] - refer) * flat, axis=1)
    lift = np.where(upright, drop / np.where(upright, lean, 1.0), 0.0)
    above = refer + lift[:, None] * normal
    side = np.cross(flat, way)
    within = np.sum((above[:, None, :] - start) * side, axis=2)
    lengths = np.sqrt(np.sum(side * side, axis=1))
    within_all = np.all(within >= -SLACK * size * lengths, axis=1) & upright
    points = np.concatenate([*cut, above])
    valid = np.concatenate([first <= last, first <= last, within_all])
    steep = np.sum(normal * along)
    heights = ((points - refer[0]) @ normal) / np.where(np.abs(steep) > 0.1, steep, 1.0)
    assert points.shape == (3 * k, 3)
    return points, heights, valid


def polygon_normal(corners: Matrix) -> Any:
    """Return the normal of a polygon by Newell's formula; zero for a segment."""
    n = np.sum(np.cross(corners, np.concatenate([corners[1:], corners[:1]])), axis=0)
    squared = np.sum(n * n)
    none = squared <= 1e-300
    return np.where(none, 0.0, n / np.sqrt(np.where(none, 1.0, squared)))


def tangent_of(n: Vec3) -> Any:
    """Return a direction across a normal, or x where that is zero."""
    zero = np.sum(n * n) < 0.5
    return np.where(zero, np.array([1.0, 0.0, 0.0]), tangents(n)[0])


def tangents(n: Vec3) -> tuple[Vec3, Vec3]:
    """Return two directions that form a right-handed frame with a normal (3,)."""
    # Duff et al., Building an orthonormal basis, revisited, J. Computer Graphics Techniques 6, 2017
    sign = np.where(n[2] < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    first = np.stack([1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    return first, np.stack([b, sign + n[1] * n[1] * a, -n[1]])


#: Pairs of hulls with as many corners share a program.
core_kernel = compile(core_touches)
segment_kernel, point_kernel = compile(segment_touches), compile(nearest_touch)


# ---- from points to hulls ------------------------------------------------------------------------

EYE, ORIGIN = np.eye(3), np.zeros(3)
#: How much a hull is rounded unless told, as a part of the radius of the largest ball in it.
ROUNDING = 0.02
#: Triangles whose normals differ by less are one face, in rad.
FLAT = 1e-6


def hull_core(
    points: ArrayLike,
    rounding: float | None,
    name: str,
    rotation: ArrayLike = EYE,
    position: ArrayLike = ORIGIN,
) -> tuple[Array, float, Polygons]:
    """Return the points of the core of a rounded convex hull, its radius, and its faces."""
    from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

    P = np.array(points, dtype=float)
    if P.ndim != 2 or P.shape[1:] != (3,) or not np.isfinite(P).all():
        raise ValueError(f"{name}: points must be finite and (n, 3), got shape {P.shape}")
    P = P @ np.asarray(rotation).T + position
    remedy = "a hull needs four points that are not in one plane; use Contacts for flat sets"
    try:
        outer = ConvexHull(P)
    except (QhullError, ValueError) as error:
        raise ValueError(f"{name}: these {len(P)} points have no volume; {remedy}") from error
    center, inradius = largest_ball(outer.equations)
    if inradius <= 1e-9 * np.ptp(P, axis=0).max():
        raise ValueError(f"{name}: these {len(P)} points have no volume; {remedy}")
    radius = ROUNDING * inradius if rounding is None else float(rounding)
    if not 0.0 <= radius < inradius:
        most = f"the largest ball inside has a radius of {inradius:.4g} m"
        raise ValueError(f"{name}: rounding must be from 0 to below it ({most}), got {radius}")
    if radius:
        inner = outer.equations.copy()
        inner[:, 3] += radius
        P = HalfspaceIntersection(inner, center).intersections
        P = P[np.lexsort(P.T)]
        # What is one corner is found several times, with rounding.
        near = 1e-9 * np.ptp(P, axis=0).max()
        distinct: list[Any] = []
        for p in P:
            if not any(np.abs(p - other).max() < near for other in distinct):
                distinct.append(p)
        P = np.array(distinct)
    hull = ConvexHull(P)
    faces: list[tuple[Any, set[int]]] = []
    for equation, triangle in zip(hull.equations, hull.simplices, strict=True):
        n = equation[:3]
        for normal, corners in faces:
            if n @ normal > 1.0 - 0.5 * FLAT**2:
                corners.update(triangle)
                break
        else:
            faces.append((n, {*triangle.tolist()}))
    used = np.unique(hull.vertices)
    number = {int(old): new for new, old in enumerate(used)}
    loops: list[list[int]] = [
        ordered(hull.points, sorted(map(int, corners)), n) for n, corners in faces
    ]
    longest = max(map(len, loops))
    rows = [[number[i] for i in loop + loop[-1:] * (longest - len(loop))] for loop in loops]
    normals = np.array([n / np.sqrt(n @ n) for n, _ in faces])
    return hull.points[used], radius, Polygons(np.array(rows, dtype=np.int64), normals)


def largest_ball(equations: Array) -> tuple[Array, float]:
    """Return centre and radius of the largest ball below planes ``n p + d <= 0``."""
    from scipy.optimize import linprog

    A = np.column_stack([equations[:, :3], np.ones(len(equations))])
    limits = [(None, None)] * 3 + [(0.0, None)]
    result = linprog([0.0, 0.0, 0.0, -1.0], A, -equations[:, 3], bounds=limits)
    x = np.zeros(4) if result.x is None else result.x  # where there is none
    return x[:3], float(x[3])


def ordered(points: Array, corners: list[int], n: Array) -> list[int]:
    """Return the corners of a face counter-clockwise about its normal."""
    P = points[corners]
    middle = P.mean(axis=0)
    x = P[0] - middle
    y = np.cross(n, x)
    angles = np.arctan2((P - middle) @ y, (P - middle) @ x)
    return [corners[k] for k in np.argsort(angles, kind="stable")]
