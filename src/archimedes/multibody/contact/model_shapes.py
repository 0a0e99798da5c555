"""The shapes of a model that collide, as contacts."""

from __future__ import annotations

import numpy as np

from archimedes.multibody.contact.shapes import Contacts, box, capsule, sphere
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.shapes import Shape

__all__ = ["contact_shapes"]

#: A cylinder is touched at so many points of each rim.
RIM = 8


def contact_shapes(model: Model, *bodies: str) -> list[Contacts]:
    """Return the collision shapes of a model, for `contact_step` and `contact_forces`.

    A cylinder touches at eight points of each of its rims. Shapes of other kinds are an error: name
    the bodies without them, or give their contacts yourself.

    Parameters
    ----------
    model : Model
        The robot.
    *bodies
        Names of bodies. All by default.

    Examples
    --------
    >>> from archimedes.multibody import Builder, contact_shapes
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.add_shape("ball", "sphere", [0.2], "collision")
    >>> contact_shapes(b.build(base="floating"))[0].radius
    0.2
    """
    for name in bodies:
        model.frame(name)  # an error that names it
    chosen = [s for s in model.geometry if s.role == "collision"]
    return [contact_of(s) for s in chosen if not bodies or s.body in bodies]


def contact_of(shape: Shape) -> Contacts:
    """Return one shape as contacts."""
    R, p = np.array(shape.rotation), np.array(shape.position)
    if shape.kind == "sphere":
        return sphere(shape.body, shape.size[0], p)
    if shape.kind == "capsule":
        return capsule(shape.body, shape.size[0], shape.size[1], R, p)
    if shape.kind == "box":
        return box(shape.body, shape.size, R, p)
    if shape.kind == "cylinder":
        radius, length = shape.size
        angles = 2.0 * np.pi * np.arange(RIM) / RIM
        rim = radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
        ends = [rim + np.array([0.0, 0.0, z]) for z in (-0.5 * length, 0.5 * length)]
        return Contacts(shape.body, np.concatenate(ends) @ R.T + p)
    raise ValueError(
        f"the {shape.kind} of {shape.body!r} has no contacts: name the bodies that touch, or give "
        "Contacts(frame, points)"
    )
