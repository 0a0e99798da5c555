"""Numbers of robots that look like those of other units: mm for m, g cm^2 for kg m^2, deg for rad.

Sources of the bounds. A body of mass m inside a sphere of radius r about its centre of mass has
principal moments whose sum is at most 2 m r^2 (the trace of the inertia is twice the second moment
about the centre). Materials: from foams (about 10 kg/m^3) to osmium (22,590 kg/m^3); shells are
mostly air, so that the lower bound is a tenth of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Body, Joint, inertia_fault
from archimedes.multibody.parts.geometry import ROLES, Shape, mesh_vertices, volume_of
from archimedes.typing import Matrix

#: A body whose radius of gyration is so many times the size of the robot is suspicious, as is a
#: robot with a joint or a centre of mass so many m from what carries it.
TOO_WIDE, TOO_FAR = 20.0, 10.0
#: Densities in kg/m^3 between which bodies with their shells and hollows are.
LIGHTEST, DENSEST = 1.0, 25_000.0
#: An inertia may exceed the largest that its shapes allow by this factor: shapes are simplified.
LARGEST_EXCESS = 10.0
#: Bodies that are smaller or lighter stand for sensors and frames, with numbers made up: m, kg.
DUMMY_REACH, DUMMY_MASS = 0.01, 0.01
#: Limits of joints that turn are in deg between these, in rad; beyond, they stand for none.
MOST_TURN, NO_LIMIT = 8.0 * np.pi, 1e4
#: Faults of the triangle inequality below this share are rounding in the file.
ROUNDED = 0.01


class Slip(NamedTuple):
    """A number that is likely in another unit: of which element, by kind and name."""

    kind: str
    name: str
    message: str


def find_slips(builder: Builder) -> list[Slip]:
    """Return lengths that look like mm and inertias that look like kg mm^2.

    They are compared with the robot as a whole, which needs no shapes.

    Parameters
    ----------
    builder : Builder
        The robot.
    """
    bodies = builder.bodies.values()
    joints = {("joint", j.name): f"joint {j.name!r}" for j in builder.joints.values()}
    lengths = {("joint", j.name): length(j.at.p) for j in builder.joints.values()}
    lengths |= {("body", b.name): length(b.com) for b in bodies}
    away = "m away from what carries it, which looks like mm; taken as m"
    slips = [
        Slip(*what, f"{joints.get(what, f'the centre of {what[1]!r}')} is {size:.4g} {away}")
        for what, size in lengths.items()
        if size > TOO_FAR
    ]
    for shape in builder.geometry:
        if shape.kind not in ("plane", "mesh", "heightfield") and max(shape.size) > TOO_FAR:
            large = f"a {shape.kind} of {shape.body!r} is {max(shape.size):.4g} m large"
            slips.append(Slip("body", shape.body, f"{large}, which looks like mm; taken as m"))
    extent = max([0.05, *lengths.values()])
    for body in bodies:
        if body.mass > 0.0:
            wide = float(np.sqrt(np.abs(np.asarray(body.inertia)).max()) / np.sqrt(body.mass))
            if wide > TOO_WIDE * extent:
                own = f"{body.name!r} of {body.mass:.4g} kg has the inertia of a body that is"
                extents = f"{wide:.3g} m wide, on a robot whose parts are {extent:.3g} m apart"
                units = "it looks like kg mm^2; taken as kg m^2"
                slips.append(Slip("body", body.name, f"{own} {extents}: {units}"))
    return slips


def find_doubtful(builder: Builder) -> list[Slip]:
    """Return bodies that no distribution of mass or material gives, and limits that look like deg.

    A body is compared with its own shapes; one without shapes is compared with nothing but the
    triangle inequality. Meshes count where the package trimesh can read them.

    Parameters
    ----------
    builder : Builder
        The robot.
    """
    shapes: dict[str, list[Shape]] = {}
    for shape in builder.geometry:
        shapes.setdefault(shape.body, []).append(shape)
    slips = [s for j in builder.joints.values() for s in check_limits(j)]
    for body in builder.bodies.values():
        known = concrete(np.asarray(body.inertia))
        if isinstance(body.mass, (int, float)) and known is not None and body.mass > 0.0:
            slips += check_body(body, float(body.mass), known, shapes.get(body.name, []))
    return slips


def check_limits(joint: Joint) -> Iterator[Slip]:
    """Yield the limits of a joint that turns if they are too large for rad."""
    if joint.kind.q_units != ("rad",):
        return
    for name in ("lower", "upper"):
        limit = concrete(np.asarray(joint.values.get(name, 0.0)))
        if limit is not None and MOST_TURN < np.abs(limit).max() < NO_LIMIT:
            turns = float(np.abs(limit).max()) / (2.0 * np.pi)
            message = f"the {name} limit of joint {joint.name!r} is {float(limit):g} rad"
            remedy = f"{turns:.3g} turns: it looks like deg, convert it to rad"
            yield Slip("joint", joint.name, f"{message}, which is {remedy}")


def check_body(body: Body, mass: float, J: Matrix, shapes: list[Shape]) -> Iterator[Slip]:
    """Yield what is wrong with the mass and the inertia of a body."""
    if fault := inertia_fault(J, ROUNDED):
        text = (
            f"no body has the inertia of {body.name!r}: {fault}; check its order (ixx ixy ixz ...)"
        )
        yield Slip("body", body.name, f"{text}, signs and units")
    solids = [shape for shape in shapes if shape.kind != "plane"]
    extents = [points for s in solids if (points := corners(s)) is not None]
    if not extents or mass < DUMMY_MASS:
        return
    reach = max(length(p - np.asarray(body.com)) for points in extents for p in points)
    if reach < DUMMY_REACH:
        return
    widest = max(float(np.ptp(points, axis=0).max()) for points in extents)
    if widest > TOO_FAR:
        text = (
            f"the shapes of {body.name!r} are {widest:.4g} m large: they look like mm; scale them"
        )
        yield Slip("body", body.name, f"{text} by 0.001")
        return
    excess = float(np.trace(J)) / (2.0 * mass * reach**2)
    if excess > LARGEST_EXCESS:
        text = (
            f"the inertia of {body.name!r} is {excess:.3g} times the largest that {mass:.4g} kg "
            f"within its shapes ({reach:.3g} m from the centre of mass) can have"
        )
        yield Slip("body", body.name, f"{text}: it looks like {guess_inertia_unit(excess)}")
    # From below by the solids that are closed, from above by the boxes around all shapes.
    least = max(sum(volume_or_zero(s) for s in solids if s.role == role) for role in ROLES)
    most = sum(float(np.prod(np.ptp(points, axis=0))) for points in extents)
    if least > 0.0 and mass / least < LIGHTEST:
        text = f"{body.name!r} has {mass:.4g} kg in {least:.3g} m^3, less than any foam"
        yield Slip("body", body.name, f"{text}: the mass looks like t, or the shapes like mm")
    if len(extents) == len(solids) and mass > DENSEST * most:
        text = f"{body.name!r} has {mass:.4g} kg in at most {most:.3g} m^3, more than any metal"
        yield Slip("body", body.name, f"{text}: the mass looks like g")


def guess_inertia_unit(excess: float) -> str:
    """Return the unit in which an inertia that is too large by a factor was likely written."""
    if excess > 3e5:
        return "g cm^2 or kg mm^2"
    return "kg cm^2" if excess > 3e3 else "another unit, or a number made up"


def corners(shape: Shape) -> np.ndarray | None:
    """Return the corners (n, 3) of a box around a shape, in the body; None where not known."""
    half = np.array({
        "box": [0.5 * s for s in shape.size],
        "sphere": [shape.size[0]] * 3,
        "ellipsoid": list(shape.size),
        "cylinder": [shape.size[0]] * 2 + [0.5 * shape.size[-1]],
        "capsule": [shape.size[0]] * 2 + [0.5 * shape.size[-1] + shape.size[0]],
    }.get(shape.kind, [np.nan] * 3))  # fmt: skip
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    points = signs * half
    if shape.kind == "mesh":
        solid = read_mesh(shape)
        if solid is None:
            return None
        low, high = solid.min(axis=0), solid.max(axis=0)
        points = 0.5 * (low + high) + signs * 0.5 * (high - low)
    return points @ np.array(shape.rotation).T + np.array(shape.position)


def read_mesh(shape: Shape) -> np.ndarray | None:
    """Return the vertices (n, 3) of a mesh in m, or None where it cannot be read."""
    try:
        vertices = mesh_vertices(shape)
    except (ImportError, ValueError):
        return None
    return vertices if len(vertices) else None


def volume_or_zero(shape: Shape) -> float:
    """Return the volume of a shape in m^3, 0 for meshes that are no closed surface."""
    try:
        return volume_of(shape)[0]
    except (ImportError, ValueError):
        return 0.0


def length(x: object) -> float:
    """Return the length of a vector."""
    return float(np.sqrt(np.sum(np.square(np.asarray(x, dtype=float)))))
