"""All places at which a model may touch the ground or itself: gaps, normals, and who is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.function import compile
from archimedes.multibody.algorithms.kinematics import world_pose
from archimedes.multibody.contact.box_pairs import Box, box_touches, turned
from archimedes.multibody.contact.nearest import (
    TINY,
    along_box,
    box_distance,
    direction,
    on_segment,
    segments_nearest,
)
from archimedes.multibody.contact.shapes import Contacts, Ground, Pair
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import Pose

__all__ = ["Touch", "is_fixed", "touches"]


class Touch(NamedTuple):
    """A place that may touch: gap, normal from second to first, place (3,), all in the world.

    `second` is the frame of the other shape, None for the ground; `material` has the numbers of
    `Ground` and `Pair`. `share` is what it counts as a spring of its own, 0 where it is the same
    place as another.
    """

    gap: Any
    normal: Any
    place: Any
    first: str
    second: str | None
    material: Any
    share: Any = 1.0


class Solid(NamedTuple):
    """A shape in the world."""

    centers: list[Any]
    radius: Any
    axes: Any
    middle: Any
    half: Any


def touches(
    model: Model, q: Any, contacts: Sequence[Contacts], ground: Ground | None, pairs: Sequence[Pair]
) -> list[Touch]:
    """Return all places that may touch at `q` (nq,), in the order of the shapes and pairs."""
    for given, kind, name in ((contacts, Contacts, "contacts"), (pairs, Pair, "pairs")):
        if not isinstance(given, (list, tuple)) or not all(isinstance(x, kind) for x in given):
            raise TypeError(f"{name} must be a list of {kind.__name__}, got {given!r:.80}")
    if ground is not None and not isinstance(ground, Ground):
        raise TypeError(f"ground must be a Ground, got {type(ground).__name__}")
    if contacts and ground is None:
        raise ValueError("contacts need a ground: pass a Ground, or give pairs= of shapes alone")
    for material in (*pairs, *(() if ground is None else (ground,))):
        check_single(material)
    found = []
    still: list[str] = []
    for shape in contacts:
        assert ground is not None
        S = solid(model, q, shape)
        for center in S.centers if shape.kind != "box" else facing(S, ground.gap(S.middle)[1]):
            away, n = ground.gap(center)
            d = away - shape.radius
            found.append(Touch(d, n, center - shape.radius * n, shape.frame, None, ground))
    for pair in pairs:
        first, second = pair.first.frame, pair.second.frame
        if link_of(model, first) == link_of(model, second):
            still.append(f"Pair of frames {first!r} and {second!r}: neither moves on the other")
            continue  # parts of one body, which `every_pair` cannot know, do not push each other
        for d, n, place, *share in pair_touches(model, q, pair.first, pair.second):
            found.append(Touch(d, n, place, first, second, pair, *share))
    if not found:
        nothing = "there is nothing that could touch: give contacts and a ground, or pairs"
        raise ValueError("; ".join([*still[:1], nothing]))
    return found


def check_single(material: Any) -> None:
    """Raise where a number of a ground or pair is an array."""
    for key in ("friction", "stiffness", "dissipation", "slip_speed"):
        shape = np.shape(getattr(material, key))
        if shape != ():
            raise ValueError(
                f"{type(material).__name__} {key} must be one number, got an array of shape "
                f"{shape}; arc.vmap takes many"
            )


def is_fixed(model: Model, frame: str | None) -> bool:
    """Whether a frame is part of the world."""
    if frame is None or (frame == "world" and "world" not in model.frame_names):
        return True
    return model.frames[model.frame(frame)].link < 0


def link_of(model: Model, frame: str) -> int:
    """Return the link that a frame is on, -1 for the world."""
    return -1 if is_fixed(model, frame) else model.frames[model.frame(frame)].link


def solid(model: Model, q: Any, shape: Contacts) -> Solid:
    """Return a shape where it is in the world."""
    X = Pose(np.eye(3), np.zeros(3))
    if shape.frame != "world" or "world" in model.frame_names:
        X = world_pose(model, q, shape.frame)
    centers = [X.p + X.R @ shape.centers[k] for k in range(shape.centers.shape[0])]
    middle = X.p + X.R @ shape.position
    return Solid(centers, shape.radius, X.R @ shape.rotation, middle, 0.5 * shape.size)


def pair_touches(model: Model, q: Any, a: Contacts, b: Contacts) -> list[tuple[Any, ...]]:
    """Return gap, normal from b to a, and place of all that two shapes may touch at.

    Fourth the share, where it is not one.
    """
    A, B = solid(model, q, a), solid(model, q, b)
    if (a.kind, b.kind) in MEETINGS:
        return MEETINGS[a.kind, b.kind](A, B)
    return [(d, -n, *rest) for d, n, *rest in MEETINGS[b.kind, a.kind](B, A)]


def spheres(place: Any, radius: Any, other: Any, other_radius: Any) -> tuple[Any, Any, Any]:
    """Return the touch of two spheres."""
    away, n = direction(place - other)
    d = away - radius - other_radius
    return d, n, other + (other_radius + 0.5 * d) * n


def points_points(A: Solid, B: Solid) -> list[Any]:
    """Return the touches of all spheres of two sets."""
    return [spheres(p, A.radius, o, B.radius) for p in A.centers for o in B.centers]


def points_capsule(A: Solid, B: Solid) -> list[Any]:
    """Return the touch of each sphere with a capsule."""
    start, end = B.centers
    found = []
    for p in A.centers:
        nearest = start + on_segment(p, start, end) * (end - start)
        found.append(spheres(p, A.radius, nearest, B.radius))
    return found


def sphere_box(p: Any, radius: Any, B: Solid) -> tuple[Any, Any, Any]:
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
    found = []
    for p in A.centers:
        d = np.sum((p - B.middle) * n) - A.radius
        found.append((d, n, p - (A.radius + 0.5 * d) * n))
    return found


def box_half_space(A: Solid, B: Solid) -> list[Any]:
    """Return the touches of the corners of the face that looks at a half-space."""
    corners = facing(A, B.axes[:, 2])
    return points_half_space(A._replace(centers=corners), B)


def facing(A: Solid, n: Any) -> list[Any]:
    """Return the four corners of the face of a box that is turned most against a normal."""
    k = np.argmax(np.abs(A.axes.T @ n))
    R, h = turned(k, A.axes), turned(k, A.half)
    side = np.where(np.sum(R[:, 2] * n) < 0.0, 1.0, -1.0)
    center, a, b = A.middle + side * h[2] * R[:, 2], h[0] * R[:, 0], h[1] * R[:, 1]
    return [center + x * a + y * b for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]


def capsule_capsule(A: Solid, B: Solid) -> list[Any]:
    """Return three touches: where they are nearest, and where A's ends are along B."""
    (a0, a1), (b0, b1) = A.centers, B.centers
    s, t = segments_nearest(a0, a1, b0, b1)
    nearest = a0 + s * (a1 - a0)
    found: list[Any] = [spheres(nearest, A.radius, b0 + t * (b1 - b0), B.radius)]
    for end in (a0, a1):
        on_B = b0 + on_segment(end, b0, b1) * (b1 - b0)
        on_A = a0 + on_segment(on_B, a0, a1) * (a1 - a0)
        touch = spheres(on_A, A.radius, on_B, B.radius)
        found.append((*touch, share_of(on_A - nearest, A.radius)))
    return found


def capsule_box(A: Solid, B: Solid) -> list[Any]:
    """Return three touches: where a capsule is nearest to a box, and where it leaves its face."""
    start, end = A.centers
    parts = along_box(B.axes.T @ (start - B.middle), B.axes.T @ (end - B.middle), B.half)
    places = [start + t * (end - start) for t in parts]
    shares = [share_of(place - places[0], A.radius) for place in places[1:]]
    touches = [sphere_box(place, A.radius, B) for place in places]
    return [touches[0], *((*t, share) for t, share in zip(touches[1:], shares, strict=True))]


def share_of(away: Any, radius: Any) -> Any:
    """Return what a place counts that is so far (3,) from another: nothing at it, one beyond."""
    squared = np.sum(away * away)
    return squared / (squared + radius * radius + TINY * TINY)


def box_box(A: Solid, B: Solid) -> list[Any]:
    """Return the four touches of two boxes."""
    return box_kernel(*(Box(X.middle, X.axes, X.half) for X in (A, B)))


#: The program of two boxes is long: pairs of boxes share it.
box_kernel = compile(box_touches)


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
    ("box", "half-space"): box_half_space,
}
