"""Where spheres touch a height field: the places that are nearest, of faces, edges and vertices.

Legend: p is the centre of a sphere in axes of the field, z up; all vectors are from p. A feature (a
face, an edge, a vertex) has a point c nearest to p. The distance from p has a local minimum there
if p is over the inside of a face, or if what is beside an edge or a vertex is farther away:
``-c . (o - c) <= 0`` for the vertices o beside it. A sphere may touch at these minima: one on a
plane, however many triangles it has, two in a valley, three in a pit. Only cells that a sphere can
reach are looked at, so the work does not grow with the grid.

Below the surface the way out is along the normal of the nearest face over whose inside p is.
Source: Ericson, Real-Time Collision Detection, 2005, section 5.1 (regions of Voronoi).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import concrete
from archimedes.function import compile
from archimedes.multibody.parts.height_field import HeightField, whole
from archimedes.typing import Array, Matrix, Scalar, Vec3, Vector

#: The gap of a place that is none: farther than any that is one, in m.
FAR = 1e12
#: So far beyond its edges, in cells, p counts as over a face.
OVER = 1e-9
#: Places whose normals are as equal as this, by their product, are one.
SAME = 1.0 - 1e-7
#: The least square of a distance that has a direction, in m^2.
TINY = 1e-28
#: How many places a sphere may touch.
PLACES = 3


def field_places(field: HeightField, p: Vec3, radius: Scalar) -> list[tuple[Any, Any, Any]]:
    """Return gap, normal and share of the places where a sphere may touch a height field.

    All in axes of the field. The share of a place that there is not is zero.
    """
    known = concrete(np.asarray(radius))
    if known is None:
        remedy = "the cells that it reaches must be known when the function is recorded"
        raise ValueError(f"the radius of what touches a height field must be a number: {remedy}")
    rows, columns = field.heights.shape
    dx, dy = field.spacing
    down, across = (
        np.arange(min(2 * int(np.ceil(float(known) / d)) + 1, n - 1) + 3)
        for d, n in ((dy, rows), (dx, columns))
    )
    found = place_kernel(p, field.heights, np.array([dx, dy]), down, across)
    count = PLACES if float(known) > 0.0 else 1
    return [(gap - radius, n, share) for gap, n, share in found[:count]]


def find_places(
    p: Vec3, heights: Matrix, spacing: Vector, down: Array, across: Array
) -> list[tuple[Any, Any, Any]]:
    """Return distance, normal and share of the nearest places of a point, from the nearest on.

    `down` and `across` are counts from 0, as many as vertices are looked at along y and x: those of
    the cells within reach, and one more on each side.
    """
    rows, columns = heights.shape
    dx, dy = spacing[0], spacing[1]
    x, y = p[0] / dx + 0.5 * (columns - 1), p[1] / dy + 0.5 * (rows - 1)
    column, row = (
        whole(np.minimum(np.maximum(at, 0.0), n - 1.0), n - 2)
        for at, n in ((x, columns), (y, rows))
    )
    left, low = (
        np.minimum(np.maximum(at - (len(span) - 4) // 2, 0), n - len(span) + 2)
        for at, span, n in ((column, across, columns), (row, down, rows))
    )
    # Beyond the edges of the field a vertex beside another is that on the edge.
    c, r = (
        np.minimum(np.maximum(first - 1 + span, 0), n - 1)
        for first, span, n in ((left, across, columns), (low, down, rows))
    )
    Z = np.take(heights.ravel(), r[:, None] * columns + c[None, :]) - p[2]
    X = (c - 0.5 * (columns - 1)) * dx - p[0] + 0.0 * Z
    Y = ((r - 0.5 * (rows - 1)) * dy - p[1])[:, None] + 0.0 * Z
    V = np.stack([X, Y, Z], axis=-1)

    s, n, inside = faces(V[1:-1, 1:-1], dx, dy)
    cell = (row - low) * (len(across) - 3) + column - left
    half = np.where(x - column >= y - row, 0, len(s) // 2)  # those below the diagonals come first
    own, own_n = s[cell + half], n[cell + half]
    above = own >= 0.0
    distances, directions = [np.abs(s)], [n]
    valid = [inside & np.where(above, s >= 0.0, s <= 0.0)]
    for d, direction, minimum in (*edges(V, dx), vertices(V, dx)):
        distances.append(d)
        directions.append(direction)
        valid.append(minimum & above)
    d, n = np.concatenate(distances), np.concatenate(directions)
    free, every = np.concatenate(valid), []
    over = (x >= 0.0) & (x <= columns - 1.0) & (y >= 0.0) & (y <= rows - 1.0)
    side = np.where(above, 1.0, -1.0)
    for k in range(PLACES):
        size = np.where(free, d, FAR)
        best = np.argmin(size)
        some = np.any(free)
        gap, normal = side * d[best], n[best]
        if k == 0:  # below a valley p may be over the inside of no face
            gap, normal = np.where(some, gap, own), np.where(some, normal, own_n)
            some = over
        exists = some & over & (above | (k == 0))
        every.append((np.where(exists, gap, FAR), normal, np.where(exists, 1.0, 0.0)))
        free = free & (n @ normal < SAME)
    return every


def faces(V: Array, dx: Scalar, dy: Scalar) -> tuple[Vector, Matrix, Array]:
    """Return how far p is above faces, their normals, and whether it is over the inside of each.

    Of vertices (r, c, 3); first come the faces below the diagonals of all cells, then those above.
    """
    a, b, c, e = V[:-1, :-1], V[:-1, 1:], V[1:, 1:], V[1:, :-1]
    parts = []
    for along, up in ((b[..., 2] - a[..., 2], c[..., 2] - b[..., 2]),
                      (c[..., 2] - e[..., 2], e[..., 2] - a[..., 2])):  # fmt: skip
        n = np.stack([-along / dx, -up / dy, 0.0 * up + 1.0], axis=-1)
        n = n / np.sqrt(np.sum(n * n, axis=-1))[..., None]
        s = -np.sum(a * n, axis=-1)
        foot = -a - s[..., None] * n
        parts.append((s, n, foot[..., 0] / dx, foot[..., 1] / dy))
    within = []
    for (_, _, u, w), below in zip(parts, (True, False), strict=True):
        more, less = (u, w) if below else (w, u)
        within.append((less >= -OVER) & (more <= 1.0 + OVER) & (less <= more + OVER))
    s, n, inside = (
        np.concatenate([one.reshape(-1, *one.shape[2:]) for one in both])
        for both in ([part[0] for part in parts], [part[1] for part in parts], within)
    )
    return s, n, inside


def edges(V: Array, dx: Scalar) -> list[tuple[Vector, Matrix, Array]]:
    """Return distances, normals and whether it is a minimum, of edges along x, y and diagonals."""
    ends = (
        (V[1:-1, 1:-2], V[1:-1, 2:-1], V[2:, 2:-1], V[:-2, 1:-2]),
        (V[1:-2, 1:-1], V[2:-1, 1:-1], V[2:-1, 2:], V[1:-2, :-2]),
        (V[1:-2, 1:-2], V[2:-1, 2:-1], V[1:-2, 2:-1], V[2:-1, 1:-2]),
    )
    found = []
    for start, end, one, other in ends:
        way = end - start
        t = -np.sum(start * way, axis=-1) / np.sum(way * way, axis=-1)
        c = start + t[..., None] * way
        minimum = (t > 0.0) & (t < 1.0) & farther(c, one, dx) & farther(c, other, dx)
        found.append(nearest(c, minimum))
    return found


def vertices(V: Array, dx: Scalar) -> tuple[Vector, Matrix, Array]:
    """Return distances, normals and whether it is a minimum, of vertices."""
    c = V[1:-1, 1:-1]
    beside = (V[2:, 1:-1], V[:-2, 1:-1], V[1:-1, 2:], V[1:-1, :-2], V[2:, 2:], V[:-2, :-2])
    minimum = farther(c, beside[0], dx)
    for o in beside[1:]:
        minimum = minimum & farther(c, o, dx)
    return nearest(c, minimum)


def farther(c: Array, o: Array, dx: Scalar) -> Array:
    """Return whether the way from c to o leads away from p."""
    return np.sum(c * (o - c), axis=-1) >= -1e-12 * dx * dx


def nearest(c: Array, minimum: Array) -> tuple[Vector, Matrix, Array]:
    """Return the distances of points from p, and the directions from them to p."""
    c = c.reshape(-1, 3)
    d = np.sqrt(np.maximum(np.sum(c * c, axis=-1), TINY))
    return d, -c / d[:, None], minimum.ravel()


#: All spheres of one reach share a program.
place_kernel = compile(find_places)
