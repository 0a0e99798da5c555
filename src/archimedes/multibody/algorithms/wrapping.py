"""The shortest way around a circle, sphere or cylinder, and the way by a point of a ring.

Legend: in the plane of the circle of radius r around zero, a and b are the ends of the way, s the
side that it keeps to. It touches the circle at A and B, where the tangents from a and b meet it:
``A = (r^2 a + s r sqrt(a^2 - r^2) n) / a^2`` with n across a, for both senses of rotation s.
Inside a ring the way touches at one point, where it is reflected: at the angle p against the normal
``asin(r sin(p) / |a|) + asin(r sin(p) / |b|) - 2 p + g = 0``, with g the angle between a and b.
Which way is taken, and where none is, is as MuJoCo 4.0 does it.
Source: MuJoCo documentation, "XML Reference", spatial/geom.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.spatial.components import cross, matvec, transpose
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Scalar, Vec3, Vector

#: Lengths below this, in m, are none; squares of it can be added without effect.
TINY = 1e-15
#: Steps of Newton's method for the angle inside a ring: the error is squared in each.
STEPS = 14


class Wrapped(NamedTuple):
    """Whether the way touches, where (..., 3) in the world, and how long it is between these."""

    touches: Any
    first: Any
    second: Any
    length: Any


def wrap(
    x0: Vec3, x1: Vec3, at: Pose, radius: float, *, sphere: bool, side: Vec3 | None, inside: bool
) -> Wrapped:
    """Return the way from x0 to x1 (..., 3) around a sphere or a cylinder placed `at`."""
    p0, p1 = (matvec(transpose(at.R), x - at.p) for x in (x0, x1))
    flat = p0 + 0.0 * p1
    e = np.eye(3)
    axes = sphere_axes(p0, p1) if sphere else (e[0] + 0.0 * flat, e[1] + 0.0 * flat)
    a, b = (np.stack([inner(p, axis) for axis in axes], axis=-1) for p in (p0, p1))
    d = None
    if side is not None and not inside:
        s = matvec(transpose(at.R), side - at.p)
        d = unit(np.stack([inner(s, axis) for axis in axes], axis=-1))
    if inside:
        touches, A, B, arc = reflect_inside(a, b, radius)
    else:
        touches, A, B, arc = wrap_circle(a, b, d, radius)
    first, second = (P[..., :1] * axes[0] + P[..., 1:] * axes[1] for P in (A, B))
    if not sphere:
        # Along the axis the way climbs evenly.
        before, after = distance(a, A), distance(b, B)
        total = before + arc + after
        climb = p1[..., 2] - p0[..., 2]
        share = climb / np.where(total > 0.0, total, 1.0)
        first = first + (p0[..., 2] + share * before)[..., None] * e[2]
        second = second + (p0[..., 2] + share * (before + arc))[..., None] * e[2]
        arc = safe_root(arc * arc + (share * arc) ** 2)
    first, second = (at.p + matvec(at.R, x) for x in (first, second))
    return Wrapped(touches, first, second, arc)


def sphere_axes(p0: Vec3, p1: Vec3) -> tuple[Vec3, Vec3]:
    """Return axes (..., 3) of the plane through the centre and both ends, the first along p0."""
    first = unit(p0)
    normal = cross(p0, p1)
    size = np.sqrt(inner(normal, normal) + TINY**2)
    # Ends in line with the centre: any plane does.
    largest = np.argmax(np.abs(first), axis=-1)
    other = np.where(np.arange(3) == np.expand_dims(largest, -1), 0.0, 1.0)
    normal = np.where((size > 2.0 * TINY)[..., None], normal, cross(first, other))
    return first, unit(cross(unit(normal), first))


def wrap_circle(a: Vector, b: Vector, side: Vector | None, radius: float) -> tuple[Any, ...]:
    """Return whether the way around a circle touches it, where (..., 2) twice, and its arc."""
    r2 = radius * radius
    aa, bb, way = inner(a, a), inner(b, b), b - a
    dd = inner(way, way)
    apart = (aa >= r2) & (bb >= r2) & (dd >= TINY) & (radius >= TINY)
    part = np.minimum(np.maximum(-inner(way, a) / np.where(dd < TINY, 1.0, dd), 0.0), 1.0)
    nearest = a + part[..., None] * way
    clear = inner(nearest, nearest) > r2
    # The way on the side of the circle on which the straight way passes: for 1 clockwise.
    near = a[..., 1] * b[..., 0] - a[..., 0] * b[..., 1]
    if side is not None:
        # Where the straight way passes behind the circle, seen from the side, the other one.
        across = np.stack([-side[..., 1], side[..., 0]], axis=-1)
        ta, tb = inner(across, a), inner(across, b)
        apart_t = np.where(ta == tb, 1.0, tb - ta)
        crossing = (inner(side, a) * tb - inner(side, b) * ta) / apart_t
        behind = (ta * tb < 0.0) & (crossing < 0.0)
        clear, near = clear & ~behind, np.where(behind, -near, near)
    reach_a, reach_b = safe_root(aa - r2), safe_root(bb - r2)
    ends = []
    for sense in (1.0, -1.0):
        A = tangent_point(a, aa, reach_a, sense, radius)
        B = tangent_point(b, bb, reach_b, -sense, radius)
        crosses = intersect(a, A, b, B)
        if side is None:
            good = -inner(A - B, A - B)
        else:
            # Through the centre it passes on neither.
            good = np.where(near == 0.0, inner(unit(A + B), side), sense * near)
        ends.append((A, B, crosses, np.where(crosses, -1e4, good)))
    turns = ends[0][3] > ends[1][3]
    A, B = (np.where(turns[..., None], ends[0][k], ends[1][k]) for k in range(2))
    crosses = np.where(turns, ends[0][2], ends[1][2])
    angle = np.arctan2(A[..., 0] * B[..., 1] - A[..., 1] * B[..., 0], inner(A, B))
    angle = np.where(turns, -angle, angle)
    angle = np.where(angle < 0.0, angle + 2.0 * np.pi, angle)
    return apart & ~clear & ~crosses, A, B, radius * angle


def tangent_point(a: Vector, aa: Scalar, reach: Scalar, sense: float, radius: float) -> Vector:
    """Return where a tangent from a point (..., 2) meets the circle."""
    across = np.stack([a[..., 1], -a[..., 0]], axis=-1)
    size = np.where(aa > 0.0, aa, 1.0)
    along, beside = radius * radius / size, sense * radius * reach / size
    return along[..., None] * a + beside[..., None] * across


def intersect(p1: Vector, p2: Vector, p3: Vector, p4: Vector) -> Any:
    """Return whether two segments in the plane (..., 2) meet."""
    u, v, w = p2 - p1, p4 - p3, p1 - p3
    det = v[..., 1] * u[..., 0] - v[..., 0] * u[..., 1]
    none = np.abs(det) < TINY
    safe = np.where(none, 1.0, det)
    s = (v[..., 0] * w[..., 1] - v[..., 1] * w[..., 0]) / safe
    t = (u[..., 0] * w[..., 1] - u[..., 1] * w[..., 0]) / safe
    return ~none & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)


def reflect_inside(a: Vector, b: Vector, radius: float) -> tuple[Any, ...]:
    """Return whether the way by a ring touches it, where (..., 2) twice, and its arc, none."""
    la, lb, way = safe_root(inner(a, a)), safe_root(inner(b, b)), b - a
    dd = inner(way, way)
    apart = (la > radius) & (lb > radius) & (radius >= TINY)
    part = -inner(way, a) / np.where(dd < TINY, 1.0, dd)
    nearest = a + part[..., None] * way
    through = (part > 0.0) & (part < 1.0) & (inner(nearest, nearest) <= radius * radius)
    turn = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    g = np.arctan2(np.abs(turn), inner(a, b))
    ka, kb = (radius / np.where(x > radius, x, 2.0 * radius + 1.0) for x in (la, lb))
    p = 0.5 * np.pi + 0.0 * g
    for _ in range(STEPS):
        s, c = np.sin(p), np.cos(p)
        slope = sum(k * c / np.sqrt(1.0 - (k * s) ** 2) for k in (ka, kb)) - 2.0
        off = np.arcsin(ka * s) + np.arcsin(kb * s) - 2.0 * p + g
        p = p - off / slope
    met = np.arcsin(ka) + np.arcsin(kb) - np.pi + g <= 0.0
    onward = turn > 0.0
    start = np.where(onward[..., None], unit(a), unit(b))
    angle = p - np.arcsin(np.where(onward, ka, kb) * np.sin(p))
    c, s = np.cos(angle), np.sin(angle)
    at = np.stack(
        [c * start[..., 0] - s * start[..., 1], s * start[..., 0] + c * start[..., 1]], -1
    )
    found = met & (g > 1e-7) & (g < np.pi - 1e-7)
    at = radius * np.where(found[..., None], at, unit(0.5 * (a + b)))
    return apart & ~through & (g < np.pi - 1e-7), at, at, 0.0 * la


def inner(a: Vector, b: Vector) -> Any:
    """Return the inner product of the last axis."""
    return np.sum(a * b, axis=-1)


def safe_root(x: Scalar) -> Any:
    """Return the root where there is one, else zero, with derivatives that are numbers."""
    some = x > TINY**2
    return np.where(some, np.sqrt(np.where(some, x, 1.0)), 0.0)


def distance(a: Vector, b: Vector) -> Any:
    """Return how far points are apart."""
    return safe_root(inner(b - a, b - a))


def unit(x: Vector) -> Vector:
    """Return the direction of a vector; none is zero."""
    size = safe_root(inner(x, x))
    return x / np.where(size > 0.0, size, 1.0)[..., None]
