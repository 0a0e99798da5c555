"""Changes to a builder: remove bodies, lock joints, take over all of another builder."""

from __future__ import annotations

from collections.abc import Container, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_shape, concrete
from archimedes.multibody.models.builder_parts import Joint, check_within_limits
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.geometry import Shape
from archimedes.multibody.parts.joints import KINDS
from archimedes.multibody.parts.ranges import known_numbers
from archimedes.multibody.parts.tendons import frames_of, rename_path
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import ArrayLike, Scalar

if TYPE_CHECKING:
    from archimedes.multibody.models.builder import Builder


def merge(builder: Builder, other: Builder, carrier: str | None, prefix: str, at: Pose) -> None:
    """Take over all of `other`, names with a prefix, its base fixed to the body `carrier`."""
    check_names(builder, other, prefix)
    other = copy(other)  # which may be the builder itself

    def owner(name: str | None) -> str | None:
        return carrier if name is None else prefix + name

    def place(shape: Shape) -> Shape:
        """Return a shape of the other; what stands in its world goes where that world is now."""
        if shape.body != "world" or "world" in other.bodies:
            return shape._replace(body=prefix + shape.body)
        pose = at @ Pose(np.array(shape.rotation), np.array(shape.position))
        rotation, position = tuple(map(tuple, pose.R.tolist())), tuple(pose.p.tolist())
        return shape._replace(body=carrier or "world", rotation=rotation, position=position)

    def rename(held: Closure | Coupling) -> Closure | Coupling:
        """Return a closure of the other; its world becomes a frame where that world is now."""
        if isinstance(held, Coupling) or held.first != "world":
            return held.renamed(prefix)
        if "world" in other.bodies or "world" in other.frames:  # which is meant then
            return replace(held, first=f"{prefix}world", second=prefix + held.second)
        name = free_name(f"{prefix}{held.second}:held", {*builder.bodies, *builder.frames})
        builder.frames[name] = (carrier, at @ Pose(np.eye(3), np.array(held.place, dtype=float)))
        return replace(held, first=name, second=prefix + held.second, place=(0.0, 0.0, 0.0))

    for body in other.bodies.values():
        builder.bodies[prefix + body.name] = replace(body, name=prefix + body.name)
    for joint in other.joints.values():
        mimic = joint.mimic and replace(joint.mimic, joint=prefix + joint.mimic.joint)
        name, child = prefix + joint.name, prefix + joint.child
        pose = joint.at if joint.parent else at @ joint.at
        builder.joints[name] = replace(
            joint, name=name, parent=owner(joint.parent), child=child, mimic=mimic, at=pose
        )
    for name, (on, pose) in other.frames.items():
        builder.frames[prefix + name] = (owner(on), at @ pose if on is None else pose)
    for base in other.unattached():
        name = free_name(f"{carrier or 'world'}_{prefix}{base}", builder.joints)
        there = at @ other.root_poses[base] if base in other.root_poses else at
        builder.attach(
            prefix + base, carrier, joint=name, kind="fixed", rotation=there.R, position=there.p
        )
    builder.closures += map(rename, other.closures)
    builder.geometry += tuple(map(place, other.geometry))
    for name, tendon in other.tendons.items():
        arms = {prefix + joint: arm for joint, arm in tendon.arms.items()}
        path = rename_path(tendon.path, prefix)
        builder.tendons[prefix + name] = replace(tendon, arms=arms, path=path)
    for name, transmission in other.transmissions.items():
        builder.transmissions[prefix + name] = transmission.renamed(prefix)
    if other.fluid is not None:
        shapes = [shape.renamed(prefix) for shape in other.fluid.shapes]
        fluid = other.fluid if builder.fluid is None else builder.fluid
        own = () if builder.fluid is None else builder.fluid.shapes
        builder.fluid = fluid.with_shapes([*own, *shapes])
    if other.keyframes:
        builder.report.ignored.append(f"{builder.name}: keyframes of {other.name!r}")
    builder.actuators += [a.renamed(prefix) for a in other.actuators]
    builder.report.add(other.report)


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: primes are added until it is new."""
    while name in taken:
        name += "'"
    return name


def check_names(builder: Builder, other: Builder, prefix: str) -> None:
    """Raise if a name already exists, before anything is taken over."""
    for what, names, known in (
        ("body or frame", [*other.bodies, *other.frames], {*builder.bodies, *builder.frames}),
        ("joint", [*other.joints], {*builder.joints}),
        ("tendon", [*other.tendons], {*builder.tendons}),
        ("transmission", [*other.transmissions], {*builder.transmissions}),
    ):
        for name in sorted({prefix + name for name in names} & known):
            raise ValueError(f"{what} {name!r} already exists; merge with another prefix")


def remove(builder: Builder, body: str) -> None:
    """Take off a body with all it carries, and what needs any of it."""
    gone = {body}
    while more := {j.child for j in builder.joints.values() if j.parent in gone} - gone:
        gone |= more
    joints = {j.name for j in builder.joints.values() if j.child in gone}
    frames = gone | {k for k, f in builder.frames.items() if f[0] in gone}
    builder.bodies = {k: b for k, b in builder.bodies.items() if k not in gone}
    builder.joints = {k: j for k, j in builder.joints.items() if k not in joints}
    builder.frames = {k: f for k, f in builder.frames.items() if k not in frames}
    builder.geometry = tuple(s for s in builder.geometry if s.body not in gone)
    if builder.fluid is not None:
        around = [shape for shape in builder.fluid.shapes if shape.frame not in frames]
        builder.fluid = builder.fluid.with_shapes(around)

    def stays(what: str, names: set[str], lost: set[str]) -> bool:
        if names & lost and names - lost:
            gone_with = f"{sorted(names & lost)} went with {body!r}"
            builder.report.ignored.append(f"{builder.name}: {what} of {sorted(names)}: {gone_with}")
        return not names & lost

    known = {*builder.tendons, *builder.transmissions}
    builder.tendons = {
        k: t
        for k, t in builder.tendons.items()
        if stays(f"tendon {k!r}", {*t.arms, *frames_of(t.path)}, joints | frames)
    }
    builder.transmissions = {
        k: t
        for k, t in builder.transmissions.items()
        if stays(f"transmission {k!r}", {t.on, t.reference or t.on}, joints | frames)
    }
    joints |= known - {*builder.tendons, *builder.transmissions}
    builder.actuators = [a for a in builder.actuators if stays("an actuator", {*a.joints}, joints)]
    needed = [(c, joints if isinstance(c, Coupling) else frames) for c in builder.closures]
    builder.closures = [c for c, lost in needed if stays("a closure", c.names, lost)]


def check_follows(joint: Joint, values: Mapping[str, Scalar]) -> None:
    """Raise if a joint is locked elsewhere than where the joint that it follows takes it."""
    assert joint.mimic is not None
    own, other = (concrete(as_array(values[k])) for k in (joint.name, joint.mimic.joint))
    if own is None or other is None:
        return
    there = joint.mimic.multiplier * other + joint.mimic.offset
    if not np.allclose(own, there, rtol=1e-9, atol=1e-9):
        at = f"at {there.tolist()} then, not at {own.tolist()}"
        raise ValueError(f"lock: joint {joint.name!r} follows {joint.mimic.joint!r} and is {at}")


def lock(builder: Builder, joint: Joint, value: ArrayLike) -> None:
    """Fix a joint at coordinates, and with it the joints that follow it."""
    if joint.kind is KINDS["fixed"]:
        return
    q = check_locked_at(joint, value)
    at = joint.at @ joint.kind.pose(joint.screw, q)
    builder.joints[joint.name] = replace(joint, kind=KINDS["fixed"], at=at, mimic=None, values={})
    if len(q) == 1:
        lock_along(builder, joint.name, q[0])
    lost_names = {joint.name}
    for key, transmission in list(builder.transmissions.items()):
        if transmission.kind == "joint" and transmission.on == joint.name:
            lost_names.add(key)
            del builder.transmissions[key]
    staying = [a for a in builder.actuators if not lost_names & {*a.joints}]
    lost = f"{builder.name}: an actuator of {joint.name!r}, which is locked"
    builder.report.ignored += [lost] * (len(builder.actuators) - len(staying))
    builder.actuators = staying
    for other in list(builder.joints.values()):
        if other.mimic and other.mimic.joint == joint.name:
            follows = replace(other, mimic=None, values={})
            lock(builder, follows, other.mimic.multiplier * q[0] + other.mimic.offset)


def check_locked_at(joint: Joint, value: ArrayLike) -> list[Any]:
    """Return the coordinates at which a joint is locked."""
    where, size = f"lock: joint {joint.name!r}", joint.kind.nq
    q = as_array(value, where)
    check_shape(q, f"{where}: coordinates", (), (size,))
    check_finite(q, where)
    check_within_limits(joint, q)
    known = concrete(q)
    if joint.kind.nq != joint.kind.nv and (
        q.ndim == 0 or (known is not None and not known[-4:].any())
    ):
        raise ValueError(
            f"{where} has a quaternion: give all {size} coordinates, (1, 0, 0, 0) last for no turn"
        )
    return list(np.broadcast_to(q, (size,)))


def lock_along(builder: Builder, name: str, q: Scalar) -> None:
    """Take a locked joint out of tendons and couplings, whose lengths it adds to all the same."""
    for key, tendon in list(builder.tendons.items()):
        if name in tendon.arms:
            arms = {k: arm for k, arm in tendon.arms.items() if k != name}
            gone = tendon.arms[name] * q
            values = {
                k: x - gone if k in ("lower", "upper") else x for k, x in tendon.values.items()
            }
            builder.tendons[key] = replace(
                tendon, arms=arms, rest=tendon.rest - gone, values=values
            )
    builder.tendons = {k: t for k, t in builder.tendons.items() if t.arms or t.path}
    for k, held in enumerate(builder.closures):
        if isinstance(held, Coupling) and name == held.follows:
            known = known_numbers(q, f"lock: joint {name!r}, which {held} follows", "")
            powers = [
                c * float(known - held.start) ** (n + 1) for n, c in enumerate(held.polynomial)
            ]
            builder.closures[k] = held = Coupling(held.arms, held.offset + sum(powers))
        if isinstance(held, Coupling) and name in held.names:
            arms = {key: arm for key, arm in held.arms if key != name}
            if not arms:
                raise ValueError(f"lock: {held} holds joint {name!r} already")
            known = known_numbers(
                q, f"lock: joint {name!r}, which {held} holds,", "Lock it at a number"
            )
            offset = held.offset - float(dict(held.arms)[name] * known)
            builder.closures[k] = replace(held, arms=arms, offset=offset)
