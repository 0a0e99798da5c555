"""One builder's bodies, joints and all that is named after them taken over by another."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archimedes.multibody.models.parts import placement
from archimedes.multibody.models.spatial_algebra import Pose, compose

if TYPE_CHECKING:
    from archimedes.multibody.models.builder import Builder

__all__ = ["merge"]


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
