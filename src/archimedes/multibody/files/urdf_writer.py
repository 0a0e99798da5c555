"""Models made URDF files.

Links are written so that reading gives the same model: a link for each body, one fixed to it for
each frame. What other tools skip, and reading uses: ``rotation``, the matrix of an <origin> whose
angles do not restore all bits, and an element <archimedes> that says whether the base floats
(``base="floating"``), which link stands for the world (``world="name"``) and that the joints are in
the order of the file (``joints="ordered"``), not in that of their names.

Motors and servos are transmissions, two motors on tendons along the same two joints a differential
one; the armature of their joints is the inertia of a rotor in words of Drake, springs and bodies
without weight are those of Gazebo. Where not the whole weight of a body is carried, or not at its
centre of mass, an attribute ``carried`` has the mass and its first moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from archimedes.multibody.files.robot_elements import SIZES
from archimedes.multibody.files.xml_text import (
    AGREES,
    MeshFiles,
    angles_of,
    bounded,
    check_names,
    element,
    neighbours,
    same_bits,
    text_of,
    uniform,
    xml_text,
)
from archimedes.multibody.models.assembly import ROOT_JOINT, has_inertia
from archimedes.multibody.models.builder import WORLD, Builder
from archimedes.multibody.models.builder_edits import free_name
from archimedes.multibody.models.builder_parts import Body, Joint, Report, Tendon, carried_row
from archimedes.multibody.models.model import GRAVITY
from archimedes.multibody.parts.actuators import Motor, Servo
from archimedes.multibody.parts.geometry import Shape
from archimedes.multibody.parts.joints import KINDS, Screw
from archimedes.spatial.components import matvec
from archimedes.spatial.spatial_algebra import IDENTITY, Pose

#: Numbers of joints that no URDF file has, and what they are called in the report.
NO_PLACE = {
    "armature": "armature", "stiffness": "spring", "rest": "rest position",
    "limit_frequency": "frequency of the stops", "limit_damping": "damping of the stops",
    "limit_impedance": "impedance of the stops", "friction_softness": "softness of friction",
}  # fmt: skip


def write_urdf(builder: Builder, path: Path) -> tuple[str, MeshFiles, Report]:
    """Return the text of a URDF file, the meshes beside it, and what is not in it."""
    writer = UrdfWriter(builder, path)
    return xml_text(writer.root), writer.meshes, writer.report


class UrdfWriter:
    """A builder made the elements of a <robot>, and the report of what has no place there."""

    def __init__(self, builder: Builder, path: Path) -> None:
        self.builder, self.report = copy(builder), Report()
        self.meshes = MeshFiles(path)
        self.root = ElementTree.Element("robot", {"name": builder.name})
        self.hints: dict[str, str] = {}
        check_names([builder.name, *builder.bodies, *builder.frames, *builder.joints], "name")
        self.check_kinds()
        self.weld_frames()
        self.split_bodies()
        self.give_root()
        children: dict[Any, list[str]] = {}
        for joint in self.builder.joints.values():
            children.setdefault(joint.parent, []).append(joint.name)
        if any(names != sorted(names) for names in children.values()):
            self.hints["joints"] = "ordered"
        if self.hints:
            element(self.root, "archimedes", **self.hints)
        order = [shape.body for shape in self.builder.geometry]
        for name in dict.fromkeys([*order, *self.builder.bodies]):
            if name in self.builder.bodies:
                self.add_link(self.builder.bodies[name])
        for joint in self.builder.joints.values():
            self.add_joint(joint)
        self.add_transmissions()
        self.add_for_gazebo()
        self.report_lost()

    def lose(self, what: str) -> None:
        """Report what is left out."""
        self.report.ignored.append(what)

    def alter(self, what: str) -> None:
        """Report what is written in another form."""
        self.report.approximated.append(what)

    # ---- what URDF has ---------------------------------------------------------------------

    def check_kinds(self) -> None:
        """Raise for joints that no URDF file can have."""
        for joint in self.builder.joints.values():
            if joint.kind.urdf is None:
                other = "; MJCF (.xml) has one" if joint.kind.mjcf is not None else ""
                what = f"URDF has no {joint.kind.name} joint{other}"
                raise ValueError(f"joint {joint.name!r}: {what}")

    def weld_frames(self) -> None:
        """Make the frames bodies without mass, before what else is on their bodies."""
        b = self.builder
        joints: dict[str, Joint] = {}
        for name, (owner, at) in b.frames.items():
            title = free_name(f"{name}_fixed", {*b.joints, *joints})
            joints[title] = Joint(title, KINDS["fixed"], owner, name, at, Screw())
            b.bodies[name] = massless(name)
        b.frames, b.joints = {}, joints | b.joints

    def split_bodies(self) -> None:
        """Give a link of its own to what is between two joints, and where an anchor is."""
        b = self.builder
        joints: dict[str, Joint] = {}
        for joint in b.joints.values():
            if b.bodies[joint.child].link_only:
                self.alter(f"a body with several joints: {joint.child!r} is a link between them")
            if not any(joint.screw.anchor):
                joints[joint.name] = joint
                continue
            anchor = np.array(joint.screw.anchor)
            name = free_name(f"{joint.child}:anchor", b.bodies)
            b.bodies[name] = massless(name)
            at = Pose(joint.at.R, joint.at.p + matvec(joint.at.R, anchor))
            screw = replace(joint.screw, anchor=(0.0, 0.0, 0.0))
            joints[joint.name] = replace(joint, child=name, at=at, screw=screw)
            title = free_name(f"{joint.child}_fixed", {*b.joints, *joints})
            back = Pose(np.eye(3), -anchor)
            joints[title] = Joint(title, KINDS["fixed"], name, joint.child, back, Screw())
            self.alter(f"joint {joint.name!r}: its anchor is the origin of a link {name!r}")
        b.joints = joints

    def give_root(self) -> None:
        """Make one link carry all others."""
        b, loose = self.builder, self.builder.unattached()
        if b.base == "floating":
            self.hints["base"] = "floating"
        if loose and not any(joint.parent is None for joint in b.joints.values()):
            return
        world = free_name(WORLD, b.bodies)
        b.bodies = {world: massless(world), **b.bodies}
        joints = {k: replace(j, parent=j.parent or world) for k, j in b.joints.items()}
        for name in loose:
            free = b.base == "floating"
            title = ROOT_JOINT if free else free_name(f"{world}_{name}", b.joints)
            kind = KINDS["free" if free else "fixed"]
            joints = {title: Joint(title, kind, world, name, IDENTITY, Screw()), **joints}
        b.joints, self.hints = joints, {"world": world}

    # ---- elements --------------------------------------------------------------------------

    def add_origin(self, parent: ElementTree.Element, at: Pose, rounded: bool = True) -> None:
        """Add an <origin>, unless it is the identity."""
        R, p = np.asarray(at.R, dtype=float), np.asarray(at.p, dtype=float)
        if same_bits(R, np.eye(3)) and same_bits(p, np.zeros(3)):
            return
        angles, exact = angles_of(R, rounded)
        matrix = None if exact else text_of(R)
        element(parent, "origin", xyz=text_of(p), rpy=text_of(angles), rotation=matrix)

    def add_link(self, body: Body) -> None:
        """Add a <link>."""
        link = element(self.root, "link", name=body.name)
        if has_inertia(body):
            inertial = element(link, "inertial")
            self.add_origin(inertial, Pose(np.eye(3), body.com))
            element(inertial, "mass", value=text_of(body.mass))
            J = np.asarray(body.inertia, dtype=float)
            rows = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2)}
            entries = {f"i{key}": text_of(J[at]) for key, at in {**rows, "zz": (2, 2)}.items()}
            element(inertial, "inertia", **entries)
        for shape in self.builder.geometry:
            if shape.body == body.name:
                self.add_shape(link, shape)
        self.report.use("link")

    def add_shape(self, link: ElementTree.Element, shape: Shape) -> None:
        """Add a <visual> or <collision>."""
        if shape.kind not in (*SIZES, "mesh"):
            self.lose(f"{shape.role} of {shape.body!r}: URDF has no {shape.kind}")
            return
        file = self.mesh_file(shape) if shape.kind == "mesh" else ""
        if file is None:
            self.lose(f"{shape.role} of {shape.body!r}: a mesh of fewer than four vertices")
            return
        part = element(link, shape.role)
        self.add_origin(part, Pose(shape.rotation, shape.position), rounded=False)
        holder = element(part, "geometry")
        if shape.kind == "mesh":
            scale = None if shape.size == (1.0, 1.0, 1.0) else text_of(shape.size)
            element(holder, "mesh", filename=file, scale=scale)
        elif shape.kind == "box":
            element(holder, "box", size=text_of(shape.size))
        else:
            sizes = dict(zip(SIZES[shape.kind], map(text_of, shape.size), strict=True))
            element(holder, shape.kind, **sizes)
        if shape.color is not None:
            element(element(part, "material", name=""), "color", rgba=text_of(shape.color))
        self.report.use(shape.role)

    def mesh_file(self, shape: Shape) -> str | None:
        """Return the name of the file of a mesh."""
        if shape.file is None:
            self.alter(f"{shape.role} of {shape.body!r}: its triangles are a file beside this one")
            return self.meshes.add(shape)
        return f"file://{shape.file}" if Path(shape.file).is_absolute() else shape.file

    def add_joint(self, joint: Joint) -> None:
        """Add a <joint>."""
        values = {key: np.ravel(value) for key, value in joint.values.items()}
        lower, upper = (
            float(values.get(key, [sign * math.inf])[0])
            for key, sign in (("lower", -1.0), ("upper", 1.0))
        )
        kind = str(joint.kind.urdf)
        if kind == "revolute" and lower == -math.inf and upper == math.inf and not joint.mimic:
            kind = "continuous"
            self.alter(f"joint {joint.name!r}, revolute without limits, is continuous")
        one = element(self.root, "joint", name=joint.name, type=kind)
        element(one, "parent", link=joint.parent)
        element(one, "child", link=joint.child)
        self.add_origin(one, joint.at)
        self.report.use("joint")
        if kind == "fixed":
            return
        if kind != "floating":
            element(one, "axis", xyz=text_of(joint.screw.axis))
        limits = {
            key: self.single(values, own, joint)
            for key, own in (("effort", "effort_limit"), ("velocity", "speed_limit"))
        }
        if kind in ("revolute", "prismatic"):
            limits |= {"lower": lower, "upper": upper}
        if kind in ("revolute", "prismatic") or np.isfinite([*limits.values()]).any():
            element(one, "limit", **{key: text_of(bounded(x)) for key, x in limits.items()})
        losses = {key: self.single(values, key, joint) for key in ("damping", "friction")}
        if any(key in values for key in losses):
            element(one, "dynamics", **{key: text_of(x) for key, x in losses.items()})
        if joint.mimic is not None:
            line = {key: text_of(getattr(joint.mimic, key)) for key in ("multiplier", "offset")}
            element(one, "mimic", joint=joint.mimic.joint, **line)

    def single(self, values: dict[str, Any], key: str, joint: Joint) -> float:
        """Return the one number that URDF has for all velocities of a joint."""
        row = values.get(key, [math.inf if key.endswith("limit") else 0.0])
        if not uniform(row):
            self.lose(f"joint {joint.name!r}: {key} that differs between its velocities")
        return float(row[0])

    # ---- what other tools have added to URDF -----------------------------------------------

    def add_transmissions(self) -> None:
        """Add motors and servos of one joint, with the armature of that, and differentials."""
        joints, rest = self.builder.joints, []
        tendons, shafts = [*self.builder.tendons], list[str]()
        waiting = [*enumerate(self.builder.actuators)]
        while waiting:
            k, each = waiting.pop(0)
            if waiting and (pair := self.differential(each, waiting[0][1])) is not None:
                self.add_differential(k, pair)
                shafts += pair.shafts
                waiting.pop(0)
                continue
            joint = joints.get(getattr(each, "joint", ""))
            if joint is None or joint.kind.nv != 1 or joint.mimic is not None or not plain(each):
                rest.append(each)
                continue
            one = element(self.root, "transmission", name=f"transmission{k}")
            element(one, "type").text = "transmission_interface/SimpleTransmission"
            element(one, "joint", name=joint.name)
            motor = element(one, "actuator", name=f"actuator{k}")
            if isinstance(each, Motor) and each.gear != 1.0:
                element(motor, "mechanicalReduction").text = text_of(each.gear)
            if (armature := float(np.ravel(joint.values.get("armature", 0.0))[0])) != 0.0:
                self.name_drake()
                element(motor, "drake:rotor_inertia", value=text_of(armature))
                element(motor, "drake:gear_ratio", value="1")
            joints[joint.name] = without(joint, "armature")
            if isinstance(each, Servo):
                self.name_drake()
                gains = {"p": text_of(each.stiffness), "d": text_of(each.damping)}
                element(motor, "drake:controller_gains", **gains)
            self.report.use("transmission")
        if shafts != [name for name in tendons if name in shafts]:
            self.alter("the tendons of differentials are in the order of their motors")
        self.builder.actuators = rest

    def differential(self, first: Any, second: Any) -> Differential | None:
        """Return the differential by which two motors turn two joints, None if there is none."""
        tendons = self.builder.tendons
        names = [getattr(each, "joint", "") for each in (first, second)]
        if names[0] == names[1] or not {*names} <= {*tendons}:
            return None
        if not all(isinstance(x, Motor) and plain(x) and x.gear == 1.0 for x in (first, second)):
            return None
        a, b = (tendons[name] for name in names)
        if len(a.arms) != 2 or {*a.arms} != {*b.arms} or not (bare(a) and bare(b)):
            return None
        joints = [*a.arms]
        arms = [float(tendon.arms[joint]) for tendon in (a, b) for joint in joints]
        ratios = reductions_of(arms)
        return None if ratios is None else Differential(names, joints, ratios)

    def add_differential(self, k: int, pair: Differential) -> None:
        """Add two motors on tendons along the same two joints."""
        one = element(self.root, "transmission", name=f"transmission{k}")
        element(one, "type").text = "transmission_interface/DifferentialTransmission"
        holders = [("joint", name) for name in pair.joints]
        holders += [("actuator", name) for name in pair.shafts]
        for n, ((tag, name), ratio) in enumerate(zip(holders, pair.ratios, strict=True)):
            part = element(one, tag, name=name)
            element(part, "role").text = f"{tag}{n % 2 + 1}"
            element(part, "mechanicalReduction").text = text_of(ratio)
        rest = {key: x for key, x in self.builder.tendons.items() if key not in pair.shafts}
        self.builder.tendons = rest
        self.report.use("transmission")

    def name_drake(self) -> None:
        """Declare the prefix of the elements of Drake."""
        self.root.set("xmlns:drake", "http://drake.mit.edu")

    def add_for_gazebo(self) -> None:
        """Add the springs of joints, and which bodies have no weight."""
        joints, bodies = self.builder.joints, self.builder.bodies
        for name, joint in joints.items():
            if joint.kind.nv != 1 or joint.mimic or not {"stiffness", "rest"} & {*joint.values}:
                continue
            one = element(self.root, "gazebo", reference=name)
            for key, tag in (("stiffness", "springStiffness"), ("rest", "springReference")):
                if key in joint.values:
                    element(one, tag).text = text_of(np.ravel(joint.values[key]))
            joints[name] = without(joint, "stiffness", "rest")
        for name, body in bodies.items():
            row = carried_row(body)
            if not np.any(row):
                continue
            whole = carried_row(replace(body, compensated=1.0, carried=None))
            off = np.allclose(row, whole, rtol=AGREES, atol=AGREES * body.mass)
            if not off:
                what = "in an attribute that other tools skip"
                self.alter(f"body {name!r}: the part of its weight that is carried is {what}")
            one = element(self.root, "gazebo", reference=name)
            text = None if same_bits(row, whole) else text_of(row)
            element(one, "turnGravityOff", carried=text).text = "true" if off else "false"

    # ---- what is left out ------------------------------------------------------------------

    def report_lost(self) -> None:
        """Report what no URDF file has a place for."""
        b = self.builder
        for key, what in NO_PLACE.items():
            names = [joint.name for joint in b.joints.values() if key in joint.values]
            if names:
                self.lose(f"{what} of {listed('joint', names)}")
        if tuple(np.ravel(b.gravity).tolist()) != GRAVITY:
            self.lose(f"gravity {text_of(b.gravity)}")
        if b.tendons:
            self.lose(listed("tendon", b.tendons))
        if b.fluid is not None:
            self.lose("forces of the fluid around")
        more = (("transmission", b.transmissions), ("keyframe", b.keyframes))
        for what, several in (("actuator", b.actuators), ("closure", b.closures), *more):
            if several:
                self.lose(f"{len(several)} {what}{'s' * (len(several) > 1)}")
        lost = {s.body for s in b.geometry} - {*b.bodies}
        if lost:
            self.lose(f"shapes of {', '.join(sorted(lost))}")


def plain(actuator: Any) -> bool:
    """Return whether an actuator is a motor or servo without limits or a rotor of its own."""
    if isinstance(actuator, Motor):
        known = (actuator.stall_torque, math.inf), (actuator.no_load_speed, math.inf)
    elif isinstance(actuator, Servo):
        known = (actuator.effort_limit, math.inf), (actuator.gear, 1.0)
    else:
        return False
    return all(np.all(np.equal(x, y)) for x, y in (*known, (actuator.rotor_inertia, 0.0)))


class Differential(NamedTuple):
    """A differential: the names of its two motors and two joints, and their four gear ratios."""

    shafts: list[str]
    joints: list[str]
    ratios: list[float]


def bare(tendon: Tendon) -> bool:
    """Return whether a tendon does nothing but pass on the force of an actuator."""
    numbers = tendon.stiffness, tendon.damping, *np.ravel(tendon.rest)
    return not (tendon.path or tendon.values or any(np.any(x) for x in numbers))


def reductions_of(arms: list[float]) -> list[float] | None:
    """Return the reductions of two joints and two motors whose products are these arms.

    The arms are those of the first motor at both joints, then those of the second. None if no
    differential has them.
    """
    a, b, c, d = arms  # of joints p, q and motors s, t: s p, s q, t p, -t q
    for p in (1.0, a, c):
        for s, t in product(quotients(a, p), quotients(c, p)):
            for q in quotients(b, s):
                if (s * p, s * q, t * p, -t * q) == (a, b, c, d):
                    return [p, q, s, t]
    return None


def quotients(x: float, y: float) -> list[float]:
    """Return numbers that times y may be x: a short one, and those next to the quotient."""
    near = x / y
    if not math.isfinite(near):
        return []
    return [each for each in (round(near, 12), *neighbours(near, 3)) if each]


def without(joint: Joint, *keys: str) -> Joint:
    """Return a joint without some of its numbers."""
    return replace(joint, values={k: x for k, x in joint.values.items() if k not in keys})


def massless(name: str) -> Body:
    """Return a body without mass."""
    return Body(name, 0.0, np.zeros(3), np.zeros((3, 3)))


def listed(what: str, names: Iterable[str]) -> str:
    """Return some names for a line of a report."""
    names = [*names]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{what}{'s' * (len(names) > 1)} {', '.join(map(repr, names[:3]))}{more}"
