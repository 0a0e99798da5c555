"""Distances between shapes, for planners: how far apart, where, and along which direction.

Legend: the distance d is negative where shapes overlap; the normal n points from the second shape
to the first; with a and b the nearest points on them, ``a - b = d n``.

Spheres and capsules have formulas. Boxes and hulls are polytopes, whose nearest points the search
of Gilbert, Johnson and Keerthi finds (`hulls`). Two boxes that overlap part along one of fifteen
directions (`collision`), other polytopes along a normal of a face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import check_type
from archimedes.function import compile
from archimedes.multibody.contact.collision import (
    POLYTOPES,
    Box,
    Solid,
    core_of,
    edge_touch,
    ground_centers,
    pair_touches,
    solid,
    terrain_touches,
)
from archimedes.multibody.contact.contact_shapes import ENDLESS_KINDS, Contacts, Ground
from archimedes.multibody.contact.hulls import Core, nearest
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.systems.constraints import check_single
from archimedes.typing import ArrayLike, Scalar, Vec3

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["Distance", "distance"]


class Distance(NamedTuple):
    """How far two shapes are apart, and where they are nearest to each other.

    Parameters
    ----------
    distance : float
        Distance in m, negative where the shapes overlap.
    normal : array (3,)
        Direction in the world from the second shape to the first.
    first : array (3,)
        Point of the first shape, in m in the world.
    second : array (3,)
        Point of the second shape, with ``first - second == distance * normal``.

    Examples
    --------
    >>> from archimedes.multibody import Distance
    >>> Distance(0.1, [0.0, 0.0, 1.0], [0.0, 0.0, 0.1], [0.0, 0.0, 0.0]).distance
    0.1
    """

    distance: Scalar
    normal: Vec3
    first: Vec3
    second: Vec3


def distance(model: Model, q: ArrayLike, first: Contacts, second: Contacts | Ground) -> Distance:
    """Return the distance of two shapes, the direction between them, and their nearest points.

    The distance is continuous in `q`, and differentiable except where the nearest points jump. It
    is negative where shapes overlap: how far they must move to part. For spheres, capsules,
    half-spaces, two boxes, and rounded hulls within their rounding, no way out is shorter. Other
    boxes, hulls and capsules that overlap deeper part along a normal of a face. Higher above a
    height field than a sphere is large, the distance is that from what is below it.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (nq,)
        Configuration.
    first : Contacts
        First shape.
    second : Contacts or Ground
        Second shape, or the ground.

    Returns
    -------
    Distance
        Distance in m, normal, and the nearest points of both shapes in the world.

    Examples
    --------
    >>> from archimedes.multibody import Builder, Ground, box, distance, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> q = neutral(ball)
    >>> q[2] = 0.5
    >>> found = distance(ball, q, sphere("ball", 0.1), box("world", [1.0, 1.0, 0.2]))
    >>> found.distance.round(9), found.second.round(9)
    (np.float64(0.3), array([0. , 0. , 0.1]))
    >>> distance(ball, q, sphere("ball", 0.1), Ground()).distance.round(9)
    np.float64(0.4)
    """
    check_type(first, "first", Contacts)
    q = check_single(model, q, "q")
    if isinstance(second, Ground):
        return ground_distance(model, q, first, second)
    check_type(second, "second", Contacts, "or a Ground")
    if {first.kind, second.kind} <= {*ENDLESS_KINDS}:
        both = "half-spaces" if first.kind == second.kind == "half-space" else "height fields"
        raise ValueError(f"first and second are {both}, which have no distance")
    return Distance(*shape_distance(model, q, first, second))


def ground_distance(model: Model, q: Any, shape: Contacts, ground: Ground) -> Distance:
    """Return the distance of a shape from the ground: of its nearest sphere or corner."""
    if shape.kind == "half-space":
        raise ValueError(f"the half-space on {shape.frame!r} has no distance from the ground")
    S = solid(model, q, shape)
    if isinstance(ground.height, HeightField):
        return Distance(*least([
            (d, n, point + 0.5 * d * n, point - 0.5 * d * n)
            for d, n, point, _ in terrain_touches(S, shape.kind, ground)
        ]))  # fmt: skip
    found = []
    centers, _, radius = ground_centers(S, shape.kind, ground)
    for center in centers:
        above, n = ground.gap(center)
        a = center - radius * n
        found.append((above - radius, n, a, a - (above - radius) * n))
    return Distance(*least(found))


def shape_distance(model: Model, q: Any, a: Contacts, b: Contacts) -> tuple[Any, ...]:
    """Return distance, normal from b to a, and the nearest points on both."""
    kinds = {a.kind, b.kind}
    cores = not kinds & {*ENDLESS_KINDS} and kinds != {"points", "box"}
    if cores and kinds & {"box", *POLYTOPES}:
        A, B = solid(model, q, a), solid(model, q, b)
        found = [core_kernel(P, Q) for P in convex_cores(A, a) for Q in convex_cores(B, b)]
        if a.kind == b.kind == "box":
            return least_deep_boxes(A, B, found[0])
        return least(found)
    return least([
        (d, n, point + 0.5 * d * n, point - 0.5 * d * n)
        for d, n, point, *_ in pair_touches(model, q, a, b)
    ])  # fmt: skip


def convex_cores(S: Solid, shape: Contacts) -> list[Core]:
    """Return the convex parts of a shape: one, or the spheres of a set of spheres."""
    if shape.kind != "points":
        return [core_of(S)]
    return [core_of(S._replace(centers=[center])) for center in S.centers]


def least(found: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the distance that is the least of several, with its normal and points."""
    if len(found) == 1:
        return found[0]
    best = np.argmin(np.stack([each[0] for each in found]))
    columns = zip(*found, strict=True)
    return tuple(np.take(np.stack(column), best, axis=0) for column in columns)


def least_deep_boxes(A: Solid, B: Solid, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a distance of two boxes, which may overlap least along the product of two edges."""
    crossed, n, gap, middle = edge_kernel(A.middle, A.axes, A.half, B.middle, B.axes, B.half)
    edges = crossed & (found[0] < 0.0) & (gap > found[0])
    other = (gap, n, middle + 0.5 * gap * n, middle - 0.5 * gap * n)
    return tuple(np.where(edges, x, y) for x, y in zip(other, found, strict=True))


def nearest_edges(c: Vec3, R: Any, h: Vec3, d: Vec3, Q: Any, g: Vec3) -> tuple[Any, Any, Any, Any]:
    """Return `edge_touch` of two boxes: centres c and d, axes R and Q, half sides h and g."""
    A, B = Box(c, R, h), Box(d, Q, g)
    return edge_touch(A, B, A.R.T @ (B.c - A.c), A.R.T @ B.R)


#: Pairs of shapes with as many corners share a program.
core_kernel, edge_kernel = compile(nearest), compile(nearest_edges)
