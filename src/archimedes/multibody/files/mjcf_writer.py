"""Models made MJCF files.

Numbers are written such that MuJoCo's compiler leaves them as they are. What it has to compute, and
what MuJoCo has no place for, is in the ``user`` data of elements, which it carries along unread; a
custom text `MARK` says that they are there:

- of a body its rotation and inertia (18), and of its box in a fluid sides, rotation, position (15)
- of a frame and a shape their rotation (9), which for a shape may be followed by `NO_COLOR` or by
  `COLOR` and its colour (4)
- of a geom that is there for the fluid alone its rotation (9), `IN_FLUID`, added mass and added
  inertia (6)
- of a joint `HINGE`, or `CONTINUOUS`, and the limits of its speeds.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.files.mjcf import (
    COLOR,
    CONTINUOUS,
    HINGE,
    IN_FLUID,
    MARK,
    NO_COLOR,
    USUAL,
    stop_of,
)
from archimedes.multibody.files.mjcf_fluid import (
    COEFFICIENTS,
    FluidParts,
    box_axes,
    fluid_parts,
    has_added_mass_of_mujoco,
)
from archimedes.multibody.files.robot_elements import inertia_in_body
from archimedes.multibody.files.urdf_writer import listed
from archimedes.multibody.files.xml_text import (
    AGREES,
    MeshFiles,
    bounded,
    check_names,
    element,
    neighbours,
    quaternion_of,
    restores,
    same_bits,
    text_of,
    uniform,
    xml_text,
)
from archimedes.multibody.models.assembly import ROOT_JOINT, is_identity
from archimedes.multibody.models.builder import WORLD, Builder
from archimedes.multibody.models.builder_parts import Body, Joint, Report, Tendon
from archimedes.multibody.parts.actuators import (
    DELAYED_HOLDS,
    Delayed,
    Drive,
    Lagged,
    Motor,
    Muscle,
    Servo,
)
from archimedes.multibody.parts.closures import IMPEDANCE, Closure, Coupling
from archimedes.multibody.parts.geometry import Shape
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.parts.joints import KINDS, Screw
from archimedes.multibody.parts.ranges import known_numbers
from archimedes.multibody.parts.tendons import FRICTION_SOFTNESS, Pulley, Wrap, frames_of
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.spatial.spatial_algebra import IDENTITY, Pose

TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}
TYPES["free"] = "free"
#: Bodies that move have more mass and inertia than this in MuJoCo, mjMINVAL.
LEAST = 1e-15
#: Half of each size, or the size itself.
HALVES = {
    "plane": (0.5, 0.5), "sphere": (1.0,), "capsule": (1.0, 0.5), "ellipsoid": (1.0, 1.0, 1.0),
    "cylinder": (1.0, 0.5), "box": (0.5, 0.5, 0.5),
}  # fmt: skip
#: What stops of tendons are by themselves.
USUAL_STOP = {"limit_frequency": 50.0, "limit_damping": 1.0}
#: How thick height fields are below their lowest place, in m.
FLOOR = 1.0
#: What MuJoCo calls the holds of `Delayed`.
INTERPOLATIONS = dict(zip(DELAYED_HOLDS, ("zoh", "linear", "cubic"), strict=True))
#: What MuJoCo reads of meshes.
MESHES = (".stl", ".obj", ".msh")


def write_mjcf(builder: Builder, path: Path) -> tuple[str, MeshFiles, Report]:
    """Return the text of an MJCF file, the meshes beside it, and what is not in it."""
    writer = MjcfWriter(builder, path)
    return xml_text(writer.root), writer.meshes, writer.report


class Chain(NamedTuple):
    """A body with its joints, the first of which says where it is in its parent."""

    body: Body
    joints: list[Joint]
    parent: str | None
    at: Pose


class MjcfWriter:
    """A builder made the elements of a <mujoco>, and the report of what has no place there."""

    def __init__(self, builder: Builder, path: Path) -> None:
        self.builder, self.report = builder, Report()
        self.meshes, self.assets = MeshFiles(path), dict[tuple[str, str], str]()
        self.fields: dict[HeightField, str] = {}
        self.root = ElementTree.Element("mujoco", {"model": builder.name})
        self.exact = False
        self.couplings: list[Coupling] = []  # of joints that follow others
        self.order: list[Joint] = []  # of the coordinates in the file
        self.commanded: list[int] = []  # which actuators are written
        names = [builder.name, *builder.bodies, *builder.frames, *builder.joints, *builder.tendons]
        check_names(names, "name")
        element(self.root, "compiler", angle="radian", inertiafromgeom="false")
        option = element(self.root, "option", gravity=text_of(builder.gravity))
        self.put_in_fluid(option)
        self.custom = element(self.root, "custom")
        self.asset = element(self.root, "asset")
        self.add_tree()
        self.add_equalities()
        self.add_tendons()
        self.add_actuators()
        self.add_keyframes()
        if self.exact:
            element(self.custom, "text", name=MARK, data="1")
        for section in list(self.root):
            if len(section) == 0 and not section.attrib:
                self.root.remove(section)

    def lose(self, what: str) -> None:
        """Report what is left out."""
        self.report.ignored.append(what)

    def alter(self, what: str) -> None:
        """Report what is written in another form."""
        self.report.approximated.append(what)

    def put_in_fluid(self, option: ElementTree.Element) -> None:
        """Add the fluid around, and note which bodies have which shapes in it."""
        fluid = self.builder.fluid
        known = fluid is not None and bool(fluid.density > 0.0 or fluid.viscosity > 0.0)
        if fluid is not None and not known:
            self.lose("a fluid that has neither density nor viscosity")
        self.fluid = fluid_parts(self.builder) if known else FluidParts({}, {}, [])
        for what in self.fluid.lost:
            self.lose(what)
        if fluid is not None and known:
            for key in ("density", "viscosity", "wind"):
                option.set(key, text_of(getattr(fluid, key)))
            self.report.use("fluid")

    def user(self, *rows: Any) -> str:
        """Return user data; the file says that they are there."""
        self.exact = True
        return text_of(np.concatenate([np.ravel(row) for row in rows]))

    # ---- bodies ------------------------------------------------------------------------------

    def add_tree(self) -> None:
        """Add all bodies, parents first, with their joints, frames and shapes."""
        b = self.builder
        world = element(self.root, "worldbody")
        holders: dict[str | None, ElementTree.Element] = {None: world}
        chains = {chain.body.name: chain for chain in map(self.chain, b.bodies.values()) if chain}
        children: dict[str | None, list[str]] = {}
        for name in self.in_order(chains):
            children.setdefault(chains[name].parent, []).append(name)
        self.add_frames(None, world)
        self.add_shapes(WORLD if WORLD not in b.bodies else None, world)
        waiting = children.get(None, [])[::-1]
        while waiting:
            name = waiting.pop()
            chain = chains[name]
            below = holders[chain.parent]
            bare = name == WORLD or all(shape.body != name for shape in b.geometry)
            if bare and name in b.unattached() and not chain.joints:
                holders[name] = below  # the base is the world itself
                element(below, "site", name=name)
                self.add_shapes(name, below)
            else:
                holders[name] = self.add_body(chain, below)
            self.add_frames(name, holders[name])
            waiting += children.get(name, [])[::-1]

    def in_order(self, chains: dict[str, Chain]) -> list[str]:
        """Return the bodies in the order of their joints, the base first."""
        carried = [joint.child for joint in self.builder.joints.values()]
        return [n for n in (*self.builder.unattached(), *carried) if n in chains]

    def chain(self, body: Body) -> Chain | None:
        """Return a body with its joints; None for what is between two of them."""
        b = self.builder
        if body.link_only:
            return None
        above = {joint.child: joint for joint in b.joints.values()}
        if body.name not in above:
            if b.base == "fixed":
                return Chain(body, [], None, IDENTITY)
            root = Joint(ROOT_JOINT, KINDS["free"], None, body.name, IDENTITY, Screw())
            return Chain(body, [root], None, IDENTITY)
        joints = [above[body.name]]
        while joints[0].parent and b.bodies[joints[0].parent].link_only:
            joints.insert(0, above[joints[0].parent])
        for joint in joints[1:]:
            if self.reference(joint) is None:
                where = f"joint {joint.name!r} is not at the origin of what joint"
                raise ValueError(f"{where} {joints[0].name!r} moves; MJCF has no massless bodies")
        kinds = [joint.kind.name for joint in joints]
        if kinds == ["fixed"]:
            return Chain(body, [], joints[0].parent, joints[0].at)
        return Chain(body, joints, joints[0].parent, joints[0].at)

    def add_body(self, chain: Chain, below: ElementTree.Element) -> ElementTree.Element:
        """Add a <body> with its inertia, joints and shapes."""
        body, at = chain.body, chain.at
        if body.name == WORLD:
            raise ValueError(f"body {WORLD!r}: MuJoCo's own world has that name; rename it")
        for joint in chain.joints:
            self.check_joint(joint, chain)
        if [joint.kind.name for joint in chain.joints] == ["free"]:
            # Where a body is in the file, there its free joint is at rest.
            rest = np.array(chain.joints[0].values.get("rest", KINDS["free"].neutral))
            q, p, R, exact = rest[3:], rest[:3], None, True
        else:
            R, p = np.asarray(at.R, dtype=float), at.p
            q, exact = quaternion_of(R)
        one = element(below, "body", name=body.name, pos=shown(p, 0.0), quat=quaternion_text(q))
        if np.any(part := self.carried_part(body)):
            one.set("gravcomp", text_of(part))
        same = self.add_inertial(one, body) if chain.joints else True
        box = self.fluid.boxes.get(body.name)
        if not (exact and same) or box is not None:
            more = [] if box is None else [box.sides, box.rotation, box.position]
            one.set("user", self.user(np.eye(3) if R is None else R, body.inertia, *more))
        for joint in chain.joints:
            self.add_joint(one, joint, joint is chain.joints[0])
        self.add_shapes(body.name, one)
        self.add_ellipsoids(body.name, one)
        self.report.use("body")
        return one

    def carried_part(self, body: Body) -> float:
        """Return the part of the weight of a body that is carried at its centre of mass."""
        if body.carried is None:
            return float(body.compensated)
        mass = float(body.carried[0])
        close = AGREES * max(abs(mass), body.mass)
        if body.mass < LEAST or not np.allclose(
            body.carried[1:], mass * np.asarray(body.com), rtol=AGREES, atol=close
        ):
            self.lose(f"body {body.name!r}: its weight is carried beside its centre of mass")
            return 0.0
        self.alter(f"body {body.name!r}: the carried part of its weight, in its last bits")
        return mass / body.mass

    def add_inertial(self, one: ElementTree.Element, body: Body) -> bool:
        """Add an <inertial>; return whether reading restores the bits of the inertia."""
        J, where = np.asarray(body.inertia, dtype=float), f"body {body.name!r}"
        moments, axes = np.diag(J), np.eye(3)
        box = self.fluid.boxes.get(body.name)
        own = None if box is None else box_axes(box, body)
        if box is not None and own is None:
            self.lose(f"{where}: a box in the fluid that is not that of its mass and inertia")
        if own is not None:
            moments, axes = own
        elif np.any(np.diag(moments) != J):
            scale = float(np.abs(J).max())
            moments, axes = np.linalg.eigh((0.5 * J + 0.5 * J.T) / scale)
            moments, axes = moments * scale, axes * np.sign(np.linalg.det(axes))
        q, _ = quaternion_of(axes)
        low, middle, high = np.sort(moments)
        if body.mass < LEAST or low < LEAST:
            why = "MuJoCo takes no moving body without mass and inertia"
            raise ValueError(f"{where}: mass {body.mass:g} kg, least moment {low:g} kg m^2: {why}")
        if high > low + middle:
            if high > (low + middle) * (1.0 + AGREES):
                self.lose(f"{where}: a moment of inertia above the sum of the others")
            moments = np.where(moments == high, np.nextafter(low + middle, 0.0), moments)
        element(
            one, "inertial", mass=text_of(body.mass), pos=text_of(body.com),
            quat=quaternion_text(q), diaginertia=text_of(moments),
        )  # fmt: skip
        restored = inertia_in_body(quaternion_to_dcm(q).T, np.diag(moments))
        return same_bits(restored, J)

    def add_frames(self, owner: str | None, one: ElementTree.Element) -> None:
        """Add the frames on a body as sites."""
        for name, (on, at) in self.builder.frames.items():
            if on == owner:
                self.add_placed(one, "site", at, name=name)
                self.report.use("site")
                for wrap in self.wraps():
                    if wrap.frame == name:
                        self.add_placed(
                            one, "geom", at, name=wrap_name(wrap), type=wrap.shape, contype="0",
                            conaffinity="0", group="4", mass="0",
                            size=text_of([wrap.radius] + [wrap.radius] * (wrap.shape != "sphere")),
                        )  # fmt: skip

    def wraps(self) -> list[Wrap]:
        """Return what tendons wrap around, each once."""
        paths = [tendon.path for tendon in self.builder.tendons.values()]
        found = [part for path in paths for part in path if isinstance(part, Wrap)]
        return list({wrap_name(wrap): wrap for wrap in found}.values())

    def add_placed(
        self, one: ElementTree.Element, tag: str, at: Pose, **attributes: str | None
    ) -> ElementTree.Element:
        """Add an element that has a position and a rotation."""
        R = np.asarray(at.R, dtype=float)
        q, exact = quaternion_of(R)
        user = None if exact else self.user(R)
        return element(
            one, tag, **attributes, pos=shown(at.p, 0.0), quat=quaternion_text(q), user=user
        )

    # ---- joints ------------------------------------------------------------------------------

    def check_joint(self, joint: Joint, chain: Chain) -> None:
        """Raise for a joint that MJCF does not have."""
        where = f"joint {joint.name!r}"
        if joint.mimic is not None:
            other = joint.mimic.joint
            self.lose(f"{where}, which follows {other!r}: it moves alone, and an equality holds it")
            arms = {joint.name: 1.0, other: -joint.mimic.multiplier}
            self.couplings.append(Coupling(arms, joint.mimic.offset))
        if joint.kind.name not in TYPES:
            other = "; URDF (.urdf) has one" if joint.kind.urdf is not None else ""
            raise ValueError(f"{where}: MJCF has no {joint.kind.name} joint{other}")
        if joint.kind.name == "free" and (chain.parent is not None or not is_identity(chain.at)):
            base = [n for n in self.builder.unattached() if self.builder.base == "fixed"]
            if not (chain.parent in base and is_identity(chain.at)):
                what = "in MJCF a free joint moves in the world, from its origin"
                raise ValueError(f"{where}: {what}")

    def reference(self, joint: Joint) -> float | None:
        """Return at which coordinate a joint is where the joint before it has left the body."""
        if is_identity(joint.at):
            return 0.0
        kind, axis = joint.kind, np.array(joint.screw.axis)
        R, p = np.asarray(joint.at.R, dtype=float), np.asarray(joint.at.p, dtype=float)
        if kind.nq != 1:
            return None
        turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        sine = 0.5 * float(np.sum(axis * turn))
        angle = math.atan2(sine, 0.5 * (float(np.trace(R)) - 1.0))
        near = angle if kind.rotates else float(np.sum(axis * p))
        for q in (round(near, 15), *neighbours(near, 3)):
            at = kind.pose(joint.screw, [q])
            if restores(at.R, R) and same_bits(at.p, p):
                return -q
        at = kind.pose(joint.screw, [near])
        close = max(np.abs(at.R - R).max(), np.abs(at.p - p).max()) < AGREES
        return -near if close else None

    def add_joint(self, one: ElementTree.Element, joint: Joint, first: bool) -> None:
        """Add a <joint>."""
        kind, values = joint.kind, {key: np.ravel(x) for key, x in joint.values.items()}
        numbers: dict[str, Any] = {
            "damping": self.single(values, "damping", joint),
            "frictionloss": self.single(values, "friction", joint),
            "armature": self.single(values, "armature", joint),
            "stiffness": self.single(values, "stiffness", joint),
        }
        if not first and not is_identity(joint.at):
            numbers["ref"] = self.reference(joint)
        rest = values.pop("rest", None)
        if kind.nq == 1 and rest is not None:
            numbers["springref"] = rest[0]
        elif kind.name == "spherical" and rest is not None:
            self.lose(f"joint {joint.name!r}: the rest of a spherical joint")
        elif rest is not None and abs(float(np.linalg.norm(rest[3:])) - 1.0) > LEAST:
            self.alter(f"joint {joint.name!r}: the quaternion of its rest has length 1")
        if kind.anchored and any(joint.screw.anchor):
            numbers["pos"] = joint.screw.anchor
        if kind.axial:
            numbers["axis"] = joint.screw.axis
        texts = {key: text_of(x) for key, x in numbers.items() if np.any(x)}
        limits = [
            values.pop(key, [sign * np.inf])[0] for key, sign in (("lower", -1), ("upper", 1))
        ]
        if kind.name == "spherical":
            most = float(self.single(values, "angle_limit", joint, np.inf))
            limits = [0.0, most] if most < np.inf else [-np.inf, np.inf]
        if limits[0] == limits[1]:
            self.lose(f"joint {joint.name!r}: limits that are both {limits[0]:g}; lock it instead")
        elif np.isfinite(limits).any():
            texts |= {"limited": "true", "range": text_of(bounded(limits))}
            texts |= self.stop(values, joint)
        elif {"limit_frequency", "limit_damping", "limit_impedance"} & {*values}:
            self.lose(f"joint {joint.name!r}: stops without limits")
        creep = np.array(values.get("friction_softness", FRICTION_SOFTNESS)).reshape(-1, 7)
        if np.any(creep != creep[0]):
            self.lose(f"joint {joint.name!r}: friction_softness that differs between velocities")
        texts |= softness_texts("friction", creep[0][:2], creep[0][2:])
        effort = float(self.single(values, "effort_limit", joint, np.inf))
        if np.isfinite(effort):
            self.add_effort_limit(texts, effort, joint)
        if "speed_limit" in values or kind.name == "continuous":
            speeds = bounded(values.get("speed_limit", np.full(kind.nv, np.inf)))
            texts["user"] = self.user(CONTINUOUS if kind.name == "continuous" else HINGE, speeds)
        element(one, "joint", name=joint.name, type=TYPES[kind.name], **texts)
        self.order.append(joint)
        self.report.use("joint")

    def stop(self, values: dict[str, Any], joint: Joint) -> dict[str, str]:
        """Return the reference of the solver at the limits of a joint, if it is not the usual."""
        frequency = float(self.single(values, "limit_frequency", joint, 50.0))
        damping = float(self.single(values, "limit_damping", joint, 1.0))
        rows = np.array(values.get("limit_impedance", IMPEDANCE)).reshape(-1, 5)
        if np.any(rows != rows[0]):
            self.lose(f"joint {joint.name!r}: limit_impedance that differs between coordinates")
        return softness_texts("limit", (frequency, damping), rows[0])

    def add_effort_limit(self, texts: dict[str, str], effort: float, joint: Joint) -> None:
        """Add the largest torque of a joint."""
        if joint.kind.nq != 1 or effort == 0.0:
            self.lose(f"joint {joint.name!r}: an effort_limit of {effort:g}")
            return
        limits = text_of([-effort, effort])
        texts |= {"actuatorfrclimited": "true", "actuatorfrcrange": limits}

    def single(
        self, values: dict[str, Any], key: str, joint: Joint, usual: float = 0.0
    ) -> np.ndarray:
        """Return the one number that MJCF has for all velocities of a joint."""
        row = values.pop(key, [usual])
        if not uniform(row):
            self.lose(f"joint {joint.name!r}: {key} that differs between its velocities")
        return np.array(row[0])

    # ---- shapes ------------------------------------------------------------------------------

    def add_shapes(self, body: str | None, one: ElementTree.Element) -> None:
        """Add the shapes of a body."""
        for shape in self.builder.geometry:
            if shape.body == body:
                self.add_shape(one, shape)

    def add_shape(self, one: ElementTree.Element, shape: Shape) -> None:
        """Add a <geom>."""
        where = f"{shape.role} of {shape.body!r}"
        if shape.kind == "mesh" and (mesh := self.mesh(shape)) is None:
            self.lose(f"{where}: its mesh {shape.file!r} was not found, or is no surface")
            return
        if isinstance(shape.surface, HeightField):
            shape = self.height_field(shape, shape.surface)
        sizes = HALVES.get(shape.kind, ())
        size = [half * x for half, x in zip(sizes, shape.size)]
        if shape.kind == "plane":
            size.append(1.0)
        collides = shape.role == "collision"
        q, exact = quaternion_of(R := np.array(shape.rotation), rounded=False)
        color = [NO_COLOR] if shape.color is None else [COLOR, *shape.color]
        known = shape.color is not None and np.array_equal(
            np.array(shape.color, np.float32), shape.color
        )
        element(
            one, "geom", pos=shown(shape.position, 0.0), quat=quaternion_text(q),
            type="hfield" if shape.kind == "heightfield" else shape.kind,
            size=text_of(size) if size else None, mesh=mesh if shape.kind == "mesh" else None,
            hfield=shape.file if shape.kind == "heightfield" else None,
            rgba=None if shape.color is None else text_of(shape.color),
            contype=None if collides else "0", conaffinity=None if collides else "0",
            group="3" if collides else "1", user=None if exact and known else self.user(R, color),
        )  # fmt: skip
        self.report.use("geom")

    def add_ellipsoids(self, body: str, one: ElementTree.Element) -> None:
        """Add the fluid ellipsoids of a body as geoms without contact."""
        for shape, at in self.fluid.ellipsoids.get(body, []):
            if shape.frame != body:
                self.alter(f"an ellipsoid of {shape.frame!r} in the fluid is one of {body!r}")
            if not has_added_mass_of_mujoco(shape):
                what = "an ellipsoid in the fluid whose added mass is not what MuJoCo computes"
                self.lose(f"body {body!r}: {what}")
            R = np.asarray(at.R, dtype=float)
            q, _ = quaternion_of(R)
            element(
                one, "geom", pos=shown(at.p, 0.0), quat=quaternion_text(q), type="ellipsoid",
                size=text_of(shape.semi_axes), fluidshape="ellipsoid", contype="0",
                fluidcoef=text_of([getattr(shape, key) for key in COEFFICIENTS]),
                conaffinity="0", group="5",
                user=self.user(R, [IN_FLUID], shape.added_mass, shape.added_inertia),
            )  # fmt: skip

    def height_field(self, shape: Shape, field: HeightField) -> Shape:
        """Return a height field as a shape whose file is its asset, its lowest place at zero."""
        low, high = float(field.heights.min()), float(field.heights.max())
        top = (high - low) or 1.0
        if field not in self.fields:
            self.fields[field] = f"hfield{len(self.fields)}"
            rows, columns = field.heights.shape
            x, y = field.size
            element(
                self.asset, "hfield", name=self.fields[field], nrow=str(rows), ncol=str(columns),
                size=text_of([0.5 * x, 0.5 * y, top, FLOOR]),
                elevation=text_of((field.heights[::-1] - low).ravel() / top),
            )  # fmt: skip
        self.alter(f"{shape.role} of {shape.body!r}: MuJoCo keeps seven digits of heights")
        place = np.array(shape.position) + low * np.array(shape.rotation)[:, 2]
        return shape._replace(position=tuple(place.tolist()), file=self.fields[field])

    def mesh(self, shape: Shape) -> str | None:
        """Return the name of the asset of a mesh, None where its file is not there."""
        file = shape.file
        if shape.surface is None and not (file and Path(file).is_file()):
            return None
        if file is None or not is_read_by_mujoco(Path(file)):
            self.alter(f"{shape.role} of {shape.body!r}: its mesh is a file beside this one")
            file = self.meshes.add(shape)
            if file is None:
                return None
        key = (file, text_of(shape.size))
        if key not in self.assets:
            self.assets[key] = f"mesh{len(self.assets)}"
            scale = None if shape.size == (1.0, 1.0, 1.0) else key[1]
            # Its inertia counts for nothing; that of a shell is known without a volume, too.
            attributes = {"name": self.assets[key], "file": file, "inertia": "shell"}
            element(self.asset, "mesh", **attributes, scale=scale)
        return self.assets[key]

    # ---- closures, tendons, actuators --------------------------------------------------------

    def add_equalities(self) -> None:
        """Add the closures: frames held together, coupled joints."""
        equality = element(self.root, "equality")
        for k, held in enumerate([*self.builder.closures, *self.couplings]):
            if isinstance(held, Coupling):
                self.add_coupling(equality, held, k)
            elif isinstance(held, Closure):
                self.add_closure(equality, held, k)
        if len(equality):
            self.report.use("equality")

    def add_coupling(self, equality: ElementTree.Element, held: Coupling, k: int) -> None:
        """Add a <joint> equality: the first joint as a line of the second."""
        (one, arm), *others = held.arms
        kinds = {name in self.builder.tendons for name in held.names}
        known = {*self.builder.tendons, *self.builder.joints}
        if held.follows is not None or True in kinds:
            poly = [*held.polynomial, *([0.0] * 4)][:4]
            alone = not others and arm == 1.0 and len(kinds) == 1 and len(held.polynomial) <= 4
            if not alone or True in kinds or held.start or held.names - known:
                self.lose(f"closure {k}, a coupling of {listed('length', sorted(held.names))}")
                return
            line = text_of([held.offset, *poly])
            more = equality_texts(held)
            element(equality, "joint", joint1=one, joint2=held.follows, polycoef=line, **more)
            return
        if len(others) > 1:
            self.lose(f"closure {k}, which couples {len(held.arms)} joints; MJCF couples two")
            return
        if arm != 1.0:
            self.alter(f"closure {k}: its coupling is divided by the arm {arm:g}")
        slope = -others[0][1] / arm if others else 0.0
        line = text_of([held.offset / arm, slope, 0.0, 0.0, 0.0])
        other = others[0][0] if others else None
        more = equality_texts(held)
        element(equality, "joint", joint1=one, joint2=other, polycoef=line, **more)

    def add_closure(self, equality: ElementTree.Element, held: Closure, k: int) -> None:
        """Add a <connect> or a <weld> of two frames."""
        tags = {"spherical": "connect", "fixed": "weld"}
        sites = [self.site(name) for name in (held.first, held.second)]
        if held.kind not in tags or None in sites:
            what = held.kind if held.kind not in tags else f"{held.first!r} or {held.second!r}"
            self.lose(f"closure {k}: MJCF holds frames by points, or all of them, not {what}")
            return
        more = equality_texts(held)
        if held.kind == "fixed" and held.softness.turning != 1.0:
            more["torquescale"] = text_of(held.softness.turning)
        element(equality, tags[held.kind], site1=sites[0], site2=sites[1], **more)

    def site(self, name: str) -> str | None:
        """Return the name of a frame that is a site, None if it is none."""
        return name if name in self.builder.frames else None

    def add_tendons(self) -> None:
        """Add the tendons."""
        tendon = element(self.root, "tendon")
        for name, each in self.builder.tendons.items():
            rest = np.asarray(each.rest, dtype=float)
            if np.all(rest == -1.0):
                self.lose(f"tendon {name!r}: a rest of -1, which in MJCF means none")
            numbers = {"stiffness": each.stiffness, "damping": each.damping, "springlength": rest}
            numbers["frictionloss"] = each.values.get("friction", 0.0)
            texts = {key: text_of(x) for key, x in numbers.items()}
            creep = np.array(each.values.get("friction_softness", FRICTION_SOFTNESS))
            texts |= softness_texts("friction", creep[:2], creep[2:])
            limits = [each.values.get("lower", -np.inf), each.values.get("upper", np.inf)]
            if np.isfinite(limits).any():
                f, z = (float(each.values.get(key, USUAL_STOP[key])) for key in USUAL_STOP)
                texts |= {"limited": "true", "range": text_of(bounded(limits))}
                own = each.values.get("limit_impedance", IMPEDANCE)
                texts |= softness_texts("limit", (f, z), own)
            texts |= self.effort_texts(name, each)
            lost = [n for n in frames_of(each.path) - {w.frame for w in self.wraps()}
                    if n not in self.builder.frames]  # fmt: skip
            lost += [w.frame for w in self.wraps() if w.frame not in self.builder.frames]
            if each.path and lost:
                self.lose(f"tendon {name!r}: {lost[0]!r} on its path is a body, not a frame")
                continue
            one = element(tendon, "spatial" if each.path else "fixed", name=name, **texts)
            for part in each.path:
                if isinstance(part, Pulley):
                    element(one, "pulley", divisor=text_of(part.divisor))
                elif isinstance(part, Wrap):
                    element(one, "geom", geom=wrap_name(part), sidesite=part.side)
                else:
                    element(one, "site", site=part)
            for joint, arm in each.arms.items():
                element(one, "joint", joint=joint, coef=text_of(arm))
            self.report.use("tendon")

    def effort_texts(self, name: str, tendon: Tendon) -> dict[str, str]:
        """Return the limits of what actuators give a tendon: in MJCF before their gears."""
        limits = np.array([tendon.values.get("effort_lower", -np.inf),
                           tendon.values.get("effort_upper", np.inf)])  # fmt: skip
        if not np.isfinite(limits).any():
            return {}
        inner = [*self.builder.actuators]
        while any(isinstance(x, (Delayed, Lagged)) for x in inner):
            inner = [x.actuator if isinstance(x, (Delayed, Lagged)) else x for x in inner]
        drives = [as_drive(x) for x in inner]
        gears = {float(d.arms[0]) for d in drives if d is not None and d.joints == (name,)} or {1.0}
        if len(gears) > 1 or 0.0 in gears:
            self.lose(f"tendon {name!r}: limits of effort of actuators with several gears")
            return {}
        (gear,) = gears
        own = np.sort(limits / gear)
        if not np.array_equal(np.sort(gear * own), limits):
            self.alter(f"the limits of effort of tendon {name!r} are rounded")
        return {"actuatorfrclimited": "true", "actuatorfrcrange": text_of(bounded(own))}

    def add_actuators(self) -> None:
        """Add the actuators."""
        section = element(self.root, "actuator")
        for k, actuator in enumerate(self.builder.actuators):
            lag: dict[str, str | None] = {}
            if isinstance(actuator, Delayed):
                lag = {"delay": text_of(actuator.delay), "nsample": str(actuator.samples)}
                lag["interp"] = INTERPOLATIONS[actuator.hold]
                actuator = actuator.actuator
            inner = actuator
            if isinstance(actuator, Lagged):
                inner = actuator.actuator
                T = actuator.time_constant
                lag["dyntype"] = "integrator" if T is None else "filter"
                lag["dynprm"] = None if T is None else text_of(T)
                lag |= range_of("act", actuator.activation_range)
            if isinstance(inner, Muscle):
                self.add_muscle(section, inner, k, lag)
                continue
            drive = as_drive(inner)
            on = None if drive is None else self.transmission(drive)
            if drive is None or on is None:
                self.lose(
                    f"actuator {k}, a {type(inner).__name__} of {listed('joint', inner.joints)}"
                )
                continue
            if inner is not drive:
                self.alter(f"actuator {k}, a {type(inner).__name__}, is a general one")
            self.commanded.append(k)
            if known_numbers(drive.rotor_inertia, "rotor_inertia", "") or np.any(
                np.asarray(drive.gear) != 1
            ):
                self.lose(f"actuator {k}: its gear and rotor, which with_rotors uses")
            commands = drive.command_range
            if isinstance(actuator, Lagged):
                if np.isfinite(commands).any():
                    self.lose(f"actuator {k}: a range of the activation as a command")
                commands = actuator.command_range
            gain, bias = np.asarray(drive.gain, float), np.asarray(drive.bias, float)
            element(
                section, "general", **on, **range_of("ctrl", commands), **lag,
                **range_of("force", drive.force_range), gainprm=text_of(gain),
                gaintype="affine" if gain[1:].any() else "fixed",
                biastype="affine" if bias.any() else "none",
                biasprm=text_of(bias) if bias.any() else None,
            )  # fmt: skip
            self.report.use("actuator")

    def transmission(self, drive: Drive) -> dict[str, str] | None:
        """Return what an actuator acts on, and its gear: a joint, or a tendon along its joints."""
        arms = np.asarray(drive.arms, dtype=float)
        if len(drive.joints) == 1 and drive.joints[0] not in self.builder.joints:
            return self.on_length(drive.joints[0], float(arms[0]))
        if len(drive.joints) == 1:
            return {"joint": drive.joints[0], "gear": text_of(arms[0])}
        for name, tendon in self.builder.tendons.items():
            own = np.array(list(tendon.arms.values()))
            free = "effort_lower" not in tendon.values and "effort_upper" not in tendon.values
            if free and tuple(tendon.arms) == tuple(drive.joints):
                near = arms[0] / own[0]
                for gear in (round(near, 12), near, np.nextafter(near, 0), np.nextafter(near, 1e9)):
                    if np.array_equal(gear * own, arms):
                        return {"tendon": name, "gear": text_of(gear)}
        return None

    def on_length(self, name: str, arm: float) -> dict[str, str] | None:
        """Return how an actuator is on a tendon or a transmission, None if MJCF cannot say it."""
        b = self.builder
        if name in b.tendons:
            return {"tendon": name, "gear": text_of(arm)}
        t = b.transmissions[name]
        gear, joint = arm * np.asarray(t.gear, dtype=float), b.joints.get(t.on)
        if t.kind == "joint" and joint is not None:
            ball = joint.kind.name == "spherical"
            gear = np.concatenate([gear[3:], np.zeros(3)]) if ball else gear
            on = {"jointinparent" if t.in_parent else "joint": t.on}
        elif self.site(t.on) is None or (t.reference and self.site(t.reference) is None):
            return None
        elif t.kind == "crank":
            on = {"cranksite": t.on, "slidersite": str(t.reference)}
            on["cranklength"] = text_of(t.rod)
        else:
            on = {"site": t.on} | ({"refsite": t.reference} if t.reference else {})
        return {"name": name, **on, "gear": text_of(gear)}

    def add_muscle(
        self, section: ElementTree.Element, muscle: Muscle, k: int, late: dict[str, str | None]
    ) -> None:
        """Add a <muscle>."""
        gear = float(muscle.gear)
        on = self.transmission(Drive((muscle.joint,), np.array([gear])))
        if on is None:
            self.lose(f"actuator {k}, a muscle of {muscle.joint!r}")
            return
        numbers = {
            "lengthrange": muscle.length_range, "range": muscle.operating_range,
            "force": muscle.peak, "lmin": muscle.active_range[0], "lmax": muscle.active_range[1],
            "vmax": muscle.top_speed, "fpmax": muscle.passive_peak,
            "fvmax": muscle.eccentric_peak, "timeconst": muscle.time_constants,
            "tausmooth": muscle.smoothing,
        }  # fmt: skip
        texts = {key: text_of(x) for key, x in numbers.items()}
        element(section, "muscle", **on, **late, **range_of("force", muscle.force_range), **texts)
        self.commanded.append(k)
        self.report.use("actuator")

    def add_keyframes(self) -> None:
        """Add the keyframes; those that hold more than is written are lost."""
        section = element(self.root, "keyframe")
        every = self.builder.actuators
        stateful = [k for k, a in enumerate(every) if hasattr(a, "activation_rate")]
        for name, values in self.builder.keyframes.items():
            q, v = [], []
            for joint in self.order:
                own_q, own_v = values.get(joint.name, (joint.kind.neutral, np.zeros(joint.kind.nv)))
                own_v = np.array(own_v)
                if joint.kind.name == "free":  # in axes of the world
                    own_v[:3] = quaternion_to_dcm(np.array(own_q[3:])).T @ own_v[:3]
                q.append(own_q)
                v.append(own_v)
            act, ctrl = values.get("", (np.zeros(0), np.zeros(0)))
            texts = {"qpos": text_of(np.concatenate(q)), "qvel": text_of(np.concatenate(v))}
            if len(ctrl) == len(every):
                own_act = [act[n] for n, k in enumerate(stateful) if k in self.commanded]
                own_ctrl = [ctrl[k] for k in self.commanded]
                texts |= {"act": text_of(own_act)} if own_act else {}
                texts |= {"ctrl": text_of(own_ctrl)} if own_ctrl else {}
            element(section, "key", name=name, **texts)
            self.report.use("key")


def equality_texts(held: Closure | Coupling) -> dict[str, str]:
    """Return how soft an equality is."""
    own = held.softness
    return softness_texts("", (own.frequency, own.damping), own.impedance)


def softness_texts(what: str, stop: Any, impedance: Any) -> dict[str, str]:
    """Return the reference and impedance of constraints, where they are not the usual ones.

    `what` ends the names of both: "limit", "friction", or "" for equalities.
    """
    frequency, damping = (float(x) for x in stop)
    texts = {}
    if (frequency, damping) != stop_of(np.array(USUAL["solref"])):
        soft = -frequency * frequency, -2.0 * frequency * damping
        near = 1.0 / max(frequency * damping, LEAST)
        stiff = [(t, damping) for t in (round(near, 12), *neighbours(near, 3)) if t and damping]
        right = (x for x in [*stiff, soft] if stop_of(np.array(x)) == (frequency, damping))
        texts[f"solref{what}"] = text_of(next(right, soft))
    if tuple(np.asarray(impedance)) != USUAL["solimp"]:
        texts[f"solimp{what}"] = text_of(impedance)
    return texts


def wrap_name(wrap: Wrap) -> str:
    """Return the name of the shape that a tendon wraps around."""
    return f"{wrap.frame}:{wrap.shape}:{wrap.radius:g}"


def as_drive(actuator: Any) -> Drive | None:
    """Return the drive that does what an actuator does, None if none does."""
    if isinstance(actuator, Drive):
        return actuator
    most, joints = np.array([-1.0, 1.0]), tuple(actuator.joints)
    known = [concrete(np.asarray(x)) for x in actuator.__dict__.values() if not isinstance(x, str)]
    if any(x is None for x in known):
        return None
    rotor = actuator.rotor_inertia
    if isinstance(actuator, Servo):
        k, d = float(actuator.stiffness), float(actuator.damping)
        limits = most * actuator.effort_limit
        return Drive(
            joints, np.ones(1), np.array([k, 0.0, 0.0]), np.array([0.0, -k, -d]),
            force_range=limits, gear=actuator.gear if rotor else 1.0, rotor_inertia=rotor,
        )  # fmt: skip
    if isinstance(actuator, Motor) and np.isinf(actuator.no_load_speed):
        limits = most * actuator.stall_torque
        return Drive(
            joints, np.array([float(actuator.gear)]), command_range=limits,
            gear=actuator.gear if rotor else 1.0, rotor_inertia=rotor,
        )  # fmt: skip
    return None


def range_of(what: str, limits: Any) -> dict[str, str | None]:
    """Return the attributes of a range, none where all numbers are allowed."""
    limits = np.asarray(limits, dtype=float)
    if not np.isfinite(limits).any():
        return {}
    return {f"{what}limited": "true", f"{what}range": text_of(bounded(limits))}


def quaternion_text(q: np.ndarray) -> str | None:
    """Return a quaternion as text, None for no rotation."""
    return None if np.array_equal(q, [1.0, 0.0, 0.0, 0.0]) else text_of(q)


def shown(values: Any, usual: float) -> str | None:
    """Return numbers as text, None if all are what they are without it."""
    return text_of(values) if np.any(np.asarray(values) != usual) else None


def is_read_by_mujoco(file: Path) -> bool:
    """Return whether MuJoCo reads a mesh: OBJ, its own, or STL that is not text."""
    if file.suffix.lower() != ".stl":
        return file.suffix.lower() in MESHES
    with file.open("rb") as stream:
        head = stream.read(84)
    count = int.from_bytes(head[80:84], "little")
    return file.stat().st_size == 84 + 50 * count and 0 < count <= 200_000
