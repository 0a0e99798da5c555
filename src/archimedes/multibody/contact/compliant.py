"""Compliant contact: smooth forces, for solvers that choose their own steps.

Legend: s = max(-gap, 0) is how deep shapes are in each other, u the velocity of the first at the
place of contact relative to the second. The normal force is ``k s^1.5 (1 + c s')`` and never pulls,
the friction ``-mu f u_t / sqrt(u_t^2 + slip^2)``.
Source: Hunt and Crossley, J. Applied Mechanics 42, 1975.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_that
from archimedes.multibody.algorithms.kinematics import frame_twist, world_pose
from archimedes.multibody.contact.collision import materials_of, moving_frames, touches
from archimedes.multibody.contact.contact_shapes import MATERIAL, Contacts, Ground, Pair
from archimedes.multibody.systems.constraints import check_single
from archimedes.spatial.components import cross
from archimedes.typing import ArrayLike, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["contact_forces"]


def contact_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Sequence[Contacts] = (),
    ground: Ground | None = None,
    *,
    pairs: Sequence[Pair] = (),
) -> dict[str, Vector]:
    """Return the compliant contact forces on bodies, for `forces` of `rnea`, `aba`, `dynamics`.

    Each contact point is a spring of its own: a box on a face has four, a capsule along a box
    three. The forces are smooth in q and v, except where shapes first touch (the first derivative
    is continuous there) and where a box is touched at another of its faces.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    contacts : sequence of Contacts, optional
        Shapes that touch the ground.
    ground : Ground, optional
        The ground. None by default.
    pairs : sequence of Pair, optional
        Pairs of shapes that touch each other.

    Returns
    -------
    dict
        Forces (6,) by the name of the body.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Ground, contact_forces, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> q = neutral(ball)
    >>> q[2] = 0.1 - 1e-4
    >>> contact_forces(ball, q, np.zeros(6), [sphere("ball", 0.1)], Ground())["ball"].round(6)
    array([0., 0., 1., 0., 0., 0.])
    """
    q, v = check_single(model, q, "q"), check_single(model, v, "v")
    for material in materials_of(ground, pairs):
        for key in MATERIAL:
            name, rigid = f"{type(material).__name__} {key}", "contact_step is for rigid bodies"
            check_that(np.isfinite, getattr(material, key), name, f"must be finite here ({rigid})")
    total: dict[str, Any] = {}
    twists: dict[str, Any] = {}
    for touch in touches(model, q, contacts, ground, pairs):
        moving = moving_frames(model, touch)
        speed = np.zeros(3)
        for frame, sign in moving:
            if frame not in twists:
                twists[frame] = frame_twist(model, q, v, frame, "aligned")
            arm = touch.point - world_pose(model, q, frame).p
            speed = speed + sign * (twists[frame][:3] + cross(twists[frame][3:], arm))
        push = touch.share * compliant(touch.gap, touch.normal, speed, touch.material)
        for frame, sign in moving:
            name = body_of(model, frame)
            body = world_pose(model, q, name)
            f = sign * push
            force = np.concatenate([body.R.T @ f, body.R.T @ cross(touch.point - body.p, f)])
            total[name] = total[name] + force if name in total else force
    return total


def compliant(d: Scalar, n: Vec3, speed: Vec3, material: Ground | Pair) -> Vec3:
    """Return the force (3,) on the first shape."""
    inside = np.maximum(-d, 0.0)
    along = np.sum(speed * n)
    push = material.stiffness * inside * np.sqrt(np.where(inside > 0.0, inside, 1.0))
    push = push * np.maximum(1.0 - material.dissipation * along, 0.0)
    sliding = speed - along * n
    size = np.sqrt(np.sum(sliding * sliding) + material.slip_speed**2)
    return push * (n - material.friction * sliding / size)


def body_of(model: Model, frame: str) -> str:
    """Return the body that a frame is on."""
    link = model.frames[model.frame(frame)].link
    if not model.links[link].body:
        raise ValueError(f"contacts of frame {frame!r}: it is on no body that moves")
    return model.links[link].body
