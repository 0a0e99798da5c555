"""Fluids in MJCF files: which body has which shapes, and what MuJoCo makes of them by itself.

On each body that moves and has mass MuJoCo lets the fluid act as on the box of the same mass and
inertia, or as on the ellipsoids of its geoms where some have ``fluidshape="ellipsoid"``. The added
mass of an ellipsoid with semi-axes a, b, c and volume V follows from

    kappa_x = a b c  integral of dl / ((a^2 + l) sqrt((a^2 + l) (b^2 + l) (c^2 + l))), 0 < l < inf,

``m_x = V kappa_x / (2 - kappa_x)`` and ``I_x = V/5 (b^2 - c^2)^2 |kappa_z - kappa_y|`` divided by
``|2 (b^2 - c^2) + (b^2 + c^2) (kappa_y - kappa_z)|``, which MuJoCo integrates at 15 points.
Sources: Tuckerman, "Inertia factors of ellipsoids for use in airship design", NACA Report 210
(1925); MuJoCo documentation, "Computation", "Fluid forces"; Piessens et al., "QUADPACK" (1983).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.files.xml_text import AGREES
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Body, Joint
from archimedes.multibody.parts.fluid import FluidBox, FluidEllipsoid
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.typing import Array, Matrix, Vec3

#: The least that MuJoCo divides by, and the least mass of a body in a fluid, mjMINVAL.
MJMINVAL = 1e-15
#: Coefficients of an ellipsoid in a fluid, in MuJoCo's order.
COEFFICIENTS = ("blunt_drag", "slender_drag", "angular_drag", "kutta_lift", "magnus_lift")
#: Points and weights of the rule of Gauss and Kronrod, of those points that are not negative.
POINTS = (
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
    0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
    0.586087235467691130294144691838259, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0.0,
)  # fmt: skip
WEIGHTS = (
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
    0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
    0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714,
)  # fmt: skip
#: How well added mass agrees with that of MuJoCo, whose constants are rounded.
SAME = 1e-6


class FluidParts(NamedTuple):
    """What a fluid acts on, by the body: a box, or ellipsoids and where they are."""

    boxes: dict[str, FluidBox]
    ellipsoids: dict[str, list[tuple[FluidEllipsoid, Pose]]]
    lost: list[str]


def fluid_parts(builder: Builder) -> FluidParts:
    """Return the shapes in the fluid by body, and what MuJoCo cannot have."""
    parts = FluidParts({}, {}, [])
    above = {joint.child: joint for joint in builder.joints.values()}
    heavy = [name for name, body in builder.bodies.items() if body.mass >= MJMINVAL]
    for shape in builder.fluid.shapes if builder.fluid is not None else ():
        body, at = carrier(builder, above, shape.frame)
        where = f"what is on {shape.frame!r} in the fluid"
        if body not in heavy:
            parts.lost.append(f"{where}, where no mass moves")
        elif isinstance(shape, FluidEllipsoid):
            at = shape.at if body == shape.frame else at @ shape.at
            parts.ellipsoids.setdefault(body, []).append((shape, at))
        elif body != shape.frame or body in parts.boxes:
            parts.lost.append(f"{where}: body {body!r} has one box, that of its mass and inertia")
        else:
            parts.boxes[body] = shape
    for body in heavy:
        if body not in parts.boxes and body not in parts.ellipsoids:
            what = "nothing of it is in the fluid; in MuJoCo the box of its mass and inertia is"
            parts.lost.append(f"body {body!r}: {what}")
        elif body in parts.boxes and body in parts.ellipsoids:
            parts.lost.append(f"body {body!r}: a box in the fluid beside ellipsoids")
    return parts


def carrier(builder: Builder, above: dict[str, Joint], name: str | None) -> tuple[Any, Pose]:
    """Return the body to which a frame or another body is welded, and its pose in that body."""
    at = IDENTITY
    while name is not None:
        if name in builder.frames:
            name, own = builder.frames[name]
        elif (joint := above.get(name)) is not None and joint.kind.name == "fixed":
            name, own = joint.parent, joint.at
        else:
            break
        at = own @ at
    return name, at


def box_axes(box: FluidBox, body: Body) -> tuple[Vec3, Matrix] | None:
    """Return the moments of inertia of a body along the axes of its box in the fluid.

    None if the box is not that of the mass and inertia of the body.
    """
    J, axes = np.asarray(body.inertia, dtype=float), np.asarray(box.rotation, dtype=float)
    turned = axes.T @ J @ axes
    moments = np.diag(turned)
    apart = np.abs(turned - np.diag(moments)).max()
    sides, center = box_sides(moments, body.mass), np.asarray(body.com)
    fits = apart <= AGREES * np.abs(J).max()
    fits &= bool(np.abs(sides - box.sides).max() <= AGREES * sides.max())
    fits &= bool(np.abs(center - box.position).max() <= AGREES * np.abs(center).max())
    return (moments, axes) if fits else None


def box_sides(moments: Vec3, mass: Any) -> Array:
    """Return the sides of the box that has this mass and these moments of inertia."""
    return np.sqrt(6.0 * np.maximum(moments.sum() - 2.0 * moments, MJMINVAL) / mass)


def has_added_mass_of_mujoco(shape: FluidEllipsoid) -> bool:
    """Return whether added mass and inertia equal those that MuJoCo computes from the semi-axes."""
    own = shape.added_mass, shape.added_inertia
    pairs = zip(own, added_mass(np.asarray(shape.semi_axes, dtype=float)), strict=True)
    return all(np.abs(x - y).max() <= SAME * max(np.abs(y).max(), MJMINVAL) for x, y in pairs)


def added_mass(semi_axes: Vec3) -> tuple[Vec3, Vec3]:
    """Return the virtual volumes and moments of the fluid around an ellipsoid, as MuJoCo does."""
    points, half = np.array(POINTS), np.array(WEIGHTS)
    x = 0.5 + 0.5 * np.concatenate([-points, points[:-1]])
    w = 0.5 * np.concatenate([half, half[:-1]])
    whole = np.prod(semi_axes)
    kappa = np.zeros(3)
    for k, own in enumerate(semi_axes):
        scale = (own * own * whole) ** 0.4
        at = scale * x**3 / (1.0 - x) ** 2
        slope = scale * x**2 * (3.0 - x) / (1.0 - x) ** 3
        roots = np.sqrt(np.prod(semi_axes[:, None] ** 2 + at, axis=0))
        kappa[k] = whole * np.sum(w * slope / ((own * own + at) * roots))
    volume = 4.0 / 3.0 * np.pi * whole
    first, second = np.roll(semi_axes, -1) ** 2, np.roll(semi_axes, -2) ** 2
    apart, both = first - second, first + second
    turned = np.roll(kappa, -1) - np.roll(kappa, -2)
    below = np.maximum(np.abs(2.0 * apart + both * turned), MJMINVAL)
    mass = volume * kappa / np.maximum(2.0 - kappa, MJMINVAL)
    return mass, volume / 5.0 * apart**2 * np.abs(turned) / below
