"""Points of bodies: how they move, and how far apart shapes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_type
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.contact.collision import is_fixed, link_of
from archimedes.multibody.contact.contact_shapes import Contacts, Ground, Pair
from archimedes.multibody.contact.distances import distance
from archimedes.spatial.components import skew
from archimedes.typing import Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["Couple", "couples_of", "distances", "point_jacobian"]

#: Two shapes, or a shape and the ground.
Couple = tuple[Contacts, Contacts | Ground]


def point_jacobian(model: Model, q: Vector, frame: str, point: Vec3) -> Matrix:
    """Return the Jacobian (3, nv) of a point, given in the world, that moves with a frame."""
    if is_fixed(model, frame):
        return np.zeros((3, model.nv))
    J = frame_jacobian(model, q, frame, "aligned")
    return J[:3] - skew(point - world_pose(model, q, frame).p) @ J[3:]


def couples_of(avoid: Sequence[Pair | Couple]) -> list[Couple]:
    """Return what should be kept apart as couples; raise where something else is given."""
    couples: list[Couple] = []
    for each in avoid:
        pair: Any = (each.first, each.second) if isinstance(each, Pair) else each
        if not isinstance(pair, tuple) or len(pair) != 2:
            kind = type(each).__name__
            raise TypeError(f"avoid takes Pairs, or tuples of two shapes, got {kind}")
        check_type(pair[0], "the first shape of avoid", Contacts, "such as mb.sphere(frame, 0.1)")
        if not isinstance(pair[1], Ground):
            check_type(pair[1], "the second shape of avoid", Contacts, "or a Ground")
        couples.append(pair)
    return couples


def distances(model: Model, q: Vector, couples: Sequence[Couple]) -> tuple[Vector, Matrix]:
    """Return the distances (k,) of shapes, and their derivatives (k, nv) in the tangent space.

    The nearest points move with their bodies; that they move on these does not change the distance.
    """
    values, rows = [], []
    for first, second in couples:
        links = [link_of(model, s.frame) for s in (first, second) if isinstance(s, Contacts)]
        if len(links) == 2 and links[0] == links[1]:
            both = " and ".join(repr(s.frame) for s in (first, second) if isinstance(s, Contacts))
            raise ValueError(f"avoid: {both} are one body; nothing changes their distance")
        d, n, a, b = distance(model, q, first, second)
        row = n @ point_jacobian(model, q, first.frame, a)
        if isinstance(second, Contacts):
            row = row - n @ point_jacobian(model, q, second.frame, b)
        values.append(d)
        rows.append(row)
    return np.stack(values), np.stack(rows)
