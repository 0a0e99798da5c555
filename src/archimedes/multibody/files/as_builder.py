"""The builder of a model: what `assemble` makes the same model of, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, concrete
from archimedes.multibody.files.xml_text import neighbours
from archimedes.multibody.models.assembly import ROOT_JOINT, is_identity
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_edits import free_name
from archimedes.multibody.models.builder_parts import Body, Joint, Mimic, Tendon, carried_row
from archimedes.multibody.models.model import LIMITS, PER_VELOCITY, Frame, Model
from archimedes.multibody.parts.joints import KINDS, Screw
from archimedes.multibody.parts.tendons import USUAL
from archimedes.spatial.spatial_algebra import Pose
from archimedes.tree import replace

#: Fields of a model that are numbers, all of which a file must know.
PLACES = ("rotations", "positions", "frame_rotations", "frame_positions", "rest", "gravity")
NUMBERS = (*PLACES, "masses", "centers", "inertias", *PER_VELOCITY, *LIMITS)


def builder_of(model: Model) -> Builder:
    """Return a builder whose `build` returns the same model.

    Bodies that were welded to others are parts of these; their frames are frames, or bodies without
    mass where they carry shapes. A frame at the origin of the world that comes first is the base.
    """
    values: dict[str, Any] = {}
    for name in (*NUMBERS, *(["compensation"] if model.compensation is not None else [])):
        values[name] = concrete(as_array(getattr(model, name)))
        if values[name] is None:
            raise ValueError(
                f"model.{name} is traced: a file needs numbers; save outside of compile"
            )
    if values["masses"].ndim != 1:
        raise ValueError(
            f"model has leading axes {values['masses'].shape[:-1]}: save one at a time"
        )
    return _Disassembly(replace(model, **values)).builder


class _Disassembly:
    """Goes through the frames of a model in order, which are in the order of its bodies."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.builder = b = Builder(model.name)
        b.gravity = model.gravity
        self.shaped = {shape.body for shape in model.geometry}
        self.names = {*model.frame_names}
        self.bodies: dict[int, str | None] = {-1: None}
        self.open = -1  # the link whose frames may still follow its own at once
        for k, frame in enumerate(model.frames):
            at = Pose(model.frame_rotations[k], model.frame_positions[k])
            if frame.link >= 0 and frame.name == model.links[frame.link].body:
                self.add_link(frame.link)
            elif k == 0 and frame.link < 0 and is_identity(at):
                b.bodies[frame.name] = Body(frame.name, 0.0, np.zeros(3), np.zeros((3, 3)))
                self.bodies[-1] = frame.name
            else:
                self.add_frame(frame, at)
        for i in range(len(model.links)):
            self.add_link(i)
        self.add_rest()

    def add_frame(self, frame: Frame, at: Pose) -> None:
        """Add a frame, or a welded body where shapes are on it or bodies came between."""
        b, owner = self.builder, self.bodies[frame.link]
        if frame.link == self.open and frame.name not in self.shaped:
            b.frames[frame.name] = (owner, at)
            return
        self.open = -2
        b.bodies[frame.name] = Body(frame.name, 0.0, np.zeros(3), np.zeros((3, 3)))
        self.attach(f"{frame.name}_fixed", "fixed", owner, frame.name, at)

    def add_link(self, i: int) -> None:
        """Add the body of a link, after the links that carry it, and its joint."""
        m, b = self.model, self.builder
        if i in self.bodies:
            return
        link = m.links[i]
        self.add_link(link.parent)
        name = link.body or self.new_name(f"{link.joint}:link")
        J = np.array(m.inertias[i])
        body = Body(name, float(m.masses[i]), m.centers[i], J, link_only=not link.body)
        b.bodies[name] = self.with_compensation(body, i)
        self.bodies[i], self.open = name, i
        if any(k.joint == link.joint for k in m.links[:i]):  # the second of a universal joint
            first = b.joints[link.joint]
            inner = b.bodies.pop(first.child)
            self.bodies[link.parent] = name
            assert inner.link_only
            screw = Screw(first.screw.axis, 0.0, first.screw.anchor, link.screw.axis)
            b.joints[link.joint] = replace(first, child=name, kind=KINDS["universal"], screw=screw)
            return
        at = Pose(m.rotations[i], m.positions[i])
        values = self.values_of(link.joint)
        mimic = None
        if link.mimic:
            source = next(k.joint for k in m.links if k.q == link.q and not k.mimic)
            mimic, values = Mimic(source, link.scale, link.offset), {}
        parent = self.bodies[link.parent]
        floats = link.kind is KINDS["free"] and link.joint == ROOT_JOINT and is_identity(at)
        alone = i == 0 and parent is None and not (b.frames or b.joints or values)
        if floats and alone:
            b.base = "floating"
            return
        b.joints[link.joint] = Joint(
            link.joint, link.kind, parent, name, at, link.screw, mimic, values
        )

    def with_compensation(self, body: Body, i: int) -> Body:
        """Return the body of a link with what carries its weight: a part of it, or mass and moment.

        It is a part where that restores all bits.
        """
        if self.model.compensation is None or not np.any(row := self.model.compensation[i]):
            return body
        if body.mass > 0.0:
            near = float(row[0]) / body.mass
            for part in dict.fromkeys([round(near, 12), *neighbours(near, 3)]):
                if np.array_equal(row, carried_row(own := replace(body, compensated=part))):
                    return own
        return replace(body, carried=np.array(row))

    def values_of(self, joint: str) -> dict[str, Any]:
        """Return the numbers of a joint that are not what they are by themselves."""
        m = self.model
        links = [link for link in m.links if link.joint == joint]
        if links[0].mimic:
            return {}
        values: dict[str, Any] = {}
        dofs, q = m.v_slice(joint), m.q_slice(joint)
        for names, rows in ((PER_VELOCITY, dofs), (LIMITS, q)):
            for name, (key, usual) in names.items():
                if np.any((row := np.array(getattr(m, name)[rows])) != usual):
                    values[key] = row
        neutral = np.concatenate([link.kind.neutral for link in links])
        if np.any((rest := np.array(m.rest[q])) != neutral):
            values["rest"] = rest
        return values

    def attach(self, joint: str, kind: str, parent: str | None, child: str, at: Pose) -> None:
        """Attach a body by a joint whose name nothing in the model has."""
        taken = {*self.builder.joints, *(link.joint for link in self.model.links)}
        name = free_name(joint, taken)
        self.builder.joints[name] = Joint(name, KINDS[kind], parent, child, at, Screw())

    def new_name(self, name: str) -> str:
        """Return a name that no body or frame has."""
        self.names.add(name := free_name(name, self.names))
        return name

    def add_rest(self) -> None:
        """Add what acts on the tree, and how it looks."""
        m, b = self.model, self.builder
        if m.tendons is not None:
            t = m.tendons
            for k, name in enumerate(t.names):
                arms = {j: float(a) for j, a in zip(t.joints, np.array(t.arms[k])) if a != 0.0}
                numbers = float(t.stiffness[k]), float(t.damping[k])
                values = {
                    key: getattr(t, key)[k]
                    for key, usual in USUAL.items()
                    if np.any(getattr(t, key)[k] != usual)
                }
                rest = np.array(t.rest[k])
                b.tendons[name] = Tendon(arms, *numbers, rest, t.paths[k], values)
        b.transmissions = {t.name: t for t in m.transmissions}
        for name, key in m.keyframes.items():
            b.keyframes[name] = {
                joint: (key.q[m.q_slice(joint)], key.v[m.v_slice(joint)]) for joint in m.joint_names
            } | {"": (key.activations, key.commands)}
        b.actuators, b.closures, b.fluid = [*m.actuators], [*m.closures], m.fluid
        b.geometry = m.geometry
