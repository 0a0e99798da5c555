"""Builders changed: joints locked, another builder's bodies and joints taken over."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.multibody.models.closures import Coupling
from archimedes.multibody.models.joints import KINDS, JointKind, Screw
from archimedes.multibody.models.parts import Joint, placement, within
from archimedes.multibody.models.spatial_algebra import Pose, compose
from archimedes.spatial.components import as_array
from archimedes.spatial.validation import check_finite

if TYPE_CHECKING:
    from archimedes.multibody.models.builder import Builder

__all__ = ["lock", "merge"]


def merge(
    builder: Builder, other: Builder, carrier: str | None, prefix: str, rotation: Any, position: Any
) -> None:
    """Take over all of `other`, names with a prefix, its base fixed to the body `carrier`."""
    check_names(builder, other, prefix)
    other = copy(other)  # which may be the builder itself
    at = Pose(*placement(rotation, position, "merge"))

    def owner(name: str | None) -> str | None:
        return carrier if name is None else prefix + name

    for body in other.bodies.values():
        builder.bodies[prefix + body.name] = replace(body, name=prefix + body.name)
    for joint in other.joints.values():
        mimic = joint.mimic and replace(joint.mimic, joint=prefix + joint.mimic.joint)
        name, child = prefix + joint.name, prefix + joint.child
        moved = replace(joint, name=name, parent=owner(joint.parent), child=child, mimic=mimic)
        if joint.parent is None:
            placed = compose(at, Pose(joint.rotation, joint.position))
            moved = replace(moved, rotation=placed.R, position=placed.p)
        builder.joints[name] = moved
    for name, (on, pose) in other.frames.items():
        builder.frames[prefix + name] = (owner(on), compose(at, pose) if on is None else pose)
    for base in other.unattached():
        builder.weld(prefix + base, carrier, rotation=rotation, position=position)
    take_over(builder, other, prefix)


def take_over(builder: Builder, other: Builder, prefix: str) -> None:
    """Take over what is named after bodies and joints, and what the report says."""
    moved = (s._replace(body=prefix + s.body) for s in other.geometry)
    builder.geometry = (*builder.geometry, *moved)
    for name, tendon in other.tendons.items():
        arms = {prefix + joint: arm for joint, arm in tendon.arms.items()}
        values = {"stiffness": tendon.stiffness, "damping": tendon.damping}
        builder.add_tendon(prefix + name, arms, rest=tendon.rest, **values)
    builder.actuators += [a.renamed(prefix) for a in other.actuators]
    builder.closures += [c.renamed(prefix) for c in other.closures]
    builder.report.add(other.report)


def check_names(builder: Builder, other: Builder, prefix: str) -> None:
    """Raise where something has a name that is there already, before anything is taken over."""
    for what, names, known in (
        ("body or frame", [*other.bodies, *other.frames], {*builder.bodies, *builder.frames}),
        ("joint", [*other.joints], {*builder.joints}),
        ("tendon", [*other.tendons], {*builder.tendons}),
    ):
        for name in names:
            if prefix + name in known:
                raise ValueError(
                    f"{what} {prefix + name!r} is there already; merge with another prefix"
                )


def lock(builder: Builder, joint: Joint, value: Any) -> None:
    """Fix a joint at coordinates, and those that follow it where they are then."""
    if joint.kind == "fixed":
        return
    q = locked_at(joint, value)
    at = compose(Pose(joint.rotation, joint.position), pose_at(joint, q))
    builder.joints[joint.name] = replace(
        joint, kind="fixed", rotation=at.R, position=at.p, mimic=None, values={}
    )
    if len(q) == 1:
        lock_along(builder, joint.name, q[0])
    drop_actuators(builder, joint.name)
    for other in list(builder.joints.values()):
        if other.mimic and other.mimic.joint == joint.name:
            follows = replace(other, mimic=None, values={})
            lock(builder, follows, other.mimic.multiplier * q[0] + other.mimic.offset)


def locked_at(joint: Joint, value: Any) -> list[Any]:
    """Return the coordinates at which a joint is locked."""
    size = joint.kind.nq if isinstance(joint.kind, JointKind) else 2
    q = as_array(value, f"lock({joint.name!r})")
    if tuple(q.shape) not in ((), (size,)):
        raise ValueError(
            f"lock: joint {joint.name!r} takes a number or {size} of them, got shape "
            f"{tuple(q.shape)}"
        )
    check_finite(q, f"lock: joint {joint.name!r}")
    within(joint, q)
    return list(np.broadcast_to(q, (size,)))


def pose_at(joint: Joint, q: list[Any]) -> Pose:
    """Return the pose of a joint's child at its coordinates."""
    if isinstance(joint.kind, JointKind):
        return joint.kind.pose(joint.screw, q)
    if joint.second_axis is None:
        raise ValueError(f"joint {joint.name!r}: a universal joint needs a second_axis")
    turns = KINDS["revolute"].pose
    return compose(turns(joint.screw, q[:1]), turns(Screw(joint.second_axis), q[1:]))


def lock_along(builder: Builder, name: str, q: Any) -> None:
    """Take a locked joint out of tendons and couplings, whose lengths it adds to all the same."""
    for key, tendon in list(builder.tendons.items()):
        if name in tendon.arms:
            arms = {k: arm for k, arm in tendon.arms.items() if k != name}
            builder.tendons[key] = replace(
                tendon, arms=arms, rest=tendon.rest - tendon.arms[name] * q
            )
    builder.tendons = {k: t for k, t in builder.tendons.items() if t.arms}
    for k, held in enumerate(builder.closures):
        if isinstance(held, Coupling) and name in held.names:
            arms = {key: arm for key, arm in held.arms if key != name}
            if not arms:
                raise ValueError(f"lock: {held} holds joint {name!r} already")
            offset = held.offset - float(dict(held.arms)[name] * q)
            builder.closures[k] = Coupling(arms, offset)


def drop_actuators(builder: Builder, name: str) -> None:
    """Take off the actuators of a locked joint, and report them."""
    kept = [a for a in builder.actuators if name not in a.joints]
    for _ in range(len(builder.actuators) - len(kept)):
        builder.report.ignored.append(f"{builder.name}: an actuator of {name!r}, which is locked")
    builder.actuators = kept
