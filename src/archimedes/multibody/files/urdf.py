"""URDF files made builders, without other packages.

Positions are in m, angles in rad; ``rpy`` turns about fixed axes, R = Rz(yaw) Ry(pitch) Rx(roll),
from the child's coordinates to the parent's. Joints are taken in the alphabetical order of their
names below each link, as by ROS's own reader, so that q is in the order other tools give it.
Source: http://wiki.ros.org/urdf/XML.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.multibody.files import robot_elements
from archimedes.multibody.files.robot_elements import Known, RobotReader, call_at, three
from archimedes.multibody.files.urdf_extensions import DRAKE_JOINTS, UNIVERSAL_AXES, read_extension
from archimedes.multibody.files.xml_text import AGREES, unbounded
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import SLACK, Mimic, inertia_fault
from archimedes.multibody.parts.joints import KINDS
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.xml_elements import Element, number, read_elements

JOINTS = {kind.urdf: kind for kind in KINDS.values() if kind.urdf is not None}
#: Elements that are joints, and their types.
JOINT_TYPES = {"joint": JOINTS, "drake:joint": DRAKE_JOINTS}
#: Shapes under the names of Drake.
DRAKE_SIZES = {"drake:ellipsoid": ("a", "b", "c"), "drake:capsule": ("radius", "length")}
SIZES = robot_elements.SIZES | DRAKE_SIZES

#: What is read of links and joints.
KNOWN = {
    "link": Known("name type", "inertial visual collision"),
    "inertial": Known("", "origin mass inertia"),
    "origin": Known("xyz rpy quat_xyzw rotation"),
    "mass": Known("value"),
    "inertia": Known("ixx ixy ixz iyy iyz izz"),
    **dict.fromkeys(robot_elements.GEOMETRY, Known("name", "origin geometry", seen="material")),
    "geometry": Known("", " ".join((*SIZES, "mesh"))),
    **{kind: Known(" ".join(sizes)) for kind, sizes in SIZES.items()},
    "mesh": Known("filename scale"),
    "joint": Known("name type", "origin parent child axis limit dynamics mimic"),
    "drake:joint": Known("name type", "origin parent child axis dynamics drake:screw_thread_pitch"),
    "drake:screw_thread_pitch": Known("value"),
    **dict.fromkeys(("parent", "child"), Known("link")),
    "axis": Known("xyz"),
    "limit": Known("lower upper effort velocity"),
    "dynamics": Known("damping friction"),
    "mimic": Known("joint multiplier offset"),
}
#: Elements of this namespace are macros.
XACRO = "ros.org/wiki/xacro"
#: Limits of a turning joint beyond this many rad, nearly 10 turns, look like degrees.
SUSPICIOUS = 60.0
#: Numbers of a joint in the file and here.
NUMBERS = {
    "limit": {
        "lower": "lower", "upper": "upper", "velocity": "speed_limit", "effort": "effort_limit"
    },
    "dynamics": {"damping": "damping", "friction": "friction"},
}  # fmt: skip


def read_urdf(path: str | os.PathLike[str], packages: robot_elements.Packages = None) -> Builder:
    """Return a builder of a URDF file; ``builder.report`` says what became of each element.

    `packages` maps names in package:// to folders, or is a folder that holds them, or several; it
    is only needed where geometry is read.
    """
    root = read_elements(path, None)
    if root.tag != "robot":
        raise root.error(f"a URDF file is a <robot>, this is a <{root.tag}>")
    return UrdfReader(root, path, packages).read()


class UrdfReader(RobotReader):
    """A URDF file."""

    known = KNOWN
    texts = False
    sizes = SIZES

    def text(self, element: Element, key: str, default: str | None = None) -> str:
        """Return an attribute."""
        return element.get(key) if default is None else element.attributes.get(key, default)

    def read(self) -> Builder:
        """Return the builder of the file."""
        self.hints: dict[str, str] = {}
        for element in self.root:
            if "xacro" in element.tag.partition(":")[0] or XACRO in element.tag:
                remedy = "run xacro on the file and load the result"
                raise element.error(f"macros of xacro are not expanded here: {remedy}")
            if element.tag == "archimedes":
                self.hints |= element.attributes
        links = [e for e in self.root if e.tag == "link"]
        self.colors = named_colors(self.root, links)
        joints: dict[str, Element] = {}
        for element in links:
            self.read_link(element)
        for element in self.root:
            if (
                element.tag in JOINT_TYPES
                and joints.setdefault(element.get("name"), element) is not element
            ):
                raise element.error(f"a second joint {element.get('name')!r}")
        for name in joints if self.hints.get("joints") == "ordered" else sorted(joints):
            self.read_joint(joints[name], known={*joints})
        self.check_one_root()
        self.builder.base = self.hints.get("base", "fixed")
        for element in links:
            for part in element:
                if part.tag in robot_elements.GEOMETRY:
                    self.read_geometry(part, element.get("name"))
        for element in self.root:
            if element.tag not in ("link", "material", "archimedes", *JOINT_TYPES):
                read_extension(self, element)
        self.report_unit_slips()
        if (world := self.hints.get("world")) is not None:
            self.take_for_world(world)
        return self.builder

    def take_for_world(self, name: str) -> None:
        """Take the root, where the file says so, for the world itself."""
        b = self.builder
        if b.unattached() != [name]:
            raise self.root.error(f"<archimedes world={name!r}> is not the root of the links")
        del b.bodies[name]
        b.joints = {
            key: replace(joint, parent=None) if joint.parent == name else joint
            for key, joint in b.joints.items()
        }

    def read_link(self, element: Element) -> None:
        """Add the body of a <link>."""
        name, inertial = element.get("name"), element.find("inertial")
        self.report_unread(element, f"link {name!r}")
        self.report.use("link")
        if inertial is None:
            call_at(element, self.builder.add_body, name)
            return
        self.report.use("inertial")
        mass = number(inertial.need("mass").get("value"), inertial, "mass")
        at, entries = read_origin(inertial), inertial.need("inertia")
        J = robot_elements.read_inertia(lambda key: number(entries.get(key), entries, key))
        if fault := inertia_fault(J, SLACK):
            self.approximate(
                entries, f"link {name!r}: no body has this inertia: {fault}; taken as it is"
            )
        J = robot_elements.inertia_in_body(at.R, J)
        call_at(inertial, self.builder.add_body, name, mass, at.p, J)

    def read_geometry(self, part: Element, body: str) -> None:
        """Add the shape of a <visual> or <collision>."""
        holder = part.find("geometry")
        mesh = None if holder is None else holder.find("mesh")
        file = None if mesh is None else self.find_mesh(mesh, mesh.get("filename"), "package")
        self.read_shape(part, body, read_origin(part), file, self.color_of(part))

    def color_of(self, part: Element) -> tuple[float, ...] | None:
        """Return the colour of a <visual>: its own, or that of the material it names."""
        material = part.find("material")
        if material is None:
            return None
        color = material.find("color") or self.colors.get(material.attributes.get("name", ""))
        return None if color is None else self.read_color(color, color.attributes.get("rgba", ""))

    def read_joint(self, element: Element, known: set[str]) -> None:
        """Add a <joint>."""
        name, kind = element.get("name"), element.get("type")
        kinds = JOINT_TYPES[element.tag]
        if kind not in kinds:
            raise element.error(f"joint {name!r}: type {kind!r} is not one of {', '.join(kinds)}")
        at = read_origin(element)
        self.report_unread(element, f"joint {name!r}")
        values: dict[str, Any] = {}
        for part in element:
            if part.tag in NUMBERS:
                values |= self.read_numbers(part, kind, name)
        if kind in ("revolute", "prismatic") and "lower" not in values:
            self.approximate(
                element, f"joint {name!r} is {kind} and has no <limit>; it moves without one"
            )
        axis_element, follows = element.find("axis"), element.find("mimic")
        axis = [0.0, 0.0, 1.0] if kind in ("fixed", "floating") else [1.0, 0.0, 0.0]
        if axis_element is not None and kind not in ("fixed", "floating"):
            axis = triple(axis_element, "xyz", axis)
            if not any(axis):
                raise axis_element.error(f"joint {name!r}: the axis is zero")
        if follows is not None and kind != "fixed":
            values |= self.read_mimic(follows, name, known)
        if "mimic" in values:
            self.report_follower_limits(element.find("limit"), name, values["mimic"].joint)
        self.report.use("joint")
        if kind == "fixed":
            lost = [part for part in element if part.tag in NUMBERS]
            for part in [*lost, *([] if follows is None else [follows])]:
                self.ignore(part, f"<{part.tag}> of joint {name!r}, fixed")
        parent, child = element.need("parent").get("link"), element.need("child").get("link")
        values = {"axis": axis} | values
        if kind == "universal":
            values |= UNIVERSAL_AXES
        if kinds[kind].has_pitch:
            pitch = element.need("drake:screw_thread_pitch")
            values["pitch"] = number(pitch.get("value"), pitch, "pitch") / (2.0 * np.pi)
        call_at(
            element, self.builder.attach, child, parent, joint=name, kind=kinds[kind],
            rotation=at.R, position=at.p, **values,
        )  # fmt: skip

    def read_mimic(self, follows: Element, name: str, known: set[str]) -> dict[str, Mimic]:
        """Return what a joint follows; a joint that is not there leaves it free."""
        joint = follows.get("joint")
        if joint not in known:
            self.approximate(
                follows, f"joint {name!r} mimics {joint!r}, which is not there; it moves freely"
            )
            return {}
        self.report.use("mimic")
        multiplier, offset = (
            number(self.text(follows, key, default), follows, key)
            for key, default in (("multiplier", "1"), ("offset", "0"))
        )
        return {"mimic": Mimic(joint, multiplier, offset)}

    def read_numbers(self, part: Element, kind: str, name: str) -> dict[str, Any]:
        """Return the limits of a joint, or its damping and friction."""
        keys = NUMBERS[part.tag]
        texts = part.attributes
        # Planar joints have three in files of Drake.
        each = {"damping"} if kind == "planar" and len(texts.get("damping", "").split()) > 1 else {}
        values: dict[str, Any] = {
            keys[key]: unbounded(number(text, part, key))
            for key, text in texts.items()
            if key in keys and key not in each
        }
        for key in each:
            values[key] = np.array(triple(part, key, []))
            if values[key][0] != values[key][1]:
                what = f"{key} of joint {name!r} is along the axes of the child here"
                self.approximate(part, what)
        for key in ("damping", "friction"):
            if np.any(np.less(values.get(key, 0.0), 0.0)):
                raise part.error(f"joint {name!r}: {key} is negative")
        if kind == "fixed":
            return {}
        self.report.use(part.tag)
        return self.check_limits(part, kind, name, values) if part.tag == "limit" else values

    def check_limits(
        self, part: Element, kind: str, name: str, values: dict[str, float]
    ) -> dict[str, float]:
        """Return the numbers of a <limit>: of those left out, 0 for lower and upper limits."""
        if kind not in ("revolute", "prismatic"):
            lost = [key for key in ("lower", "upper") if values.pop(key, None) is not None]
            if lost:
                self.ignore(part, f"{' and '.join(lost)} of joint {name!r}, which is {kind}")
            return values
        values = {"lower": 0.0, "upper": 0.0} | values
        lower, upper = values["lower"], values["upper"]
        if lower > upper:
            raise part.error(f"joint {name!r}: the lower limit is above the upper limit")
        if kind == "revolute" and SUSPICIOUS < max(abs(lower), abs(upper)) < np.inf:
            limits = f"limits of {lower:g} to {upper:g} rad"
            self.approximate(part, f"joint {name!r}: {limits} look like degrees; taken as rad")
        return values


def named_colors(root: Element, links: list[Element]) -> dict[str, Element]:
    """Return the <color> of each named material: those of the robot count before those of links."""
    visuals = [part for link in links for part in link if part.tag == "visual"]
    materials = [part for holder in (*visuals, root) for part in holder if part.tag == "material"]
    pairs = [(each.attributes.get("name", ""), each.find("color")) for each in materials]
    return {name: color for name, color in pairs if color is not None}


def read_origin(element: Element) -> Pose:
    """Return the pose, child in parent, of an <origin>."""
    at = element.find("origin")
    if at is None:
        return IDENTITY
    if "quat_xyzw" not in at.attributes:
        R = robot_elements.by_angles(triple(at, "rpy", [0.0, 0.0, 0.0]))
    elif "rpy" in at.attributes:
        raise at.error("<origin> has both rpy and quat_xyzw: give one of them")
    else:
        words = at.attributes["quat_xyzw"].split()
        R = robot_elements.by_quaternion(words, at, "quat_xyzw")
    if "rotation" in at.attributes:
        R = read_rotation(at, R)
    return Pose(R, np.array(triple(at, "xyz", [0.0, 0.0, 0.0])))


def read_rotation(at: Element, near: np.ndarray) -> np.ndarray:
    """Return the matrix of an <origin>, all bits of what its angles say."""
    words = at.attributes["rotation"].split()
    R = np.array([number(word, at, "rotation") for word in words])
    if R.size != 9 or np.abs(R.reshape(3, 3) - near).max() > AGREES:
        remedy = "remove the attribute rotation, which is for the last bits only"
        raise at.error(f"<origin> has a rotation that is not that of its angles: {remedy}")
    return R.reshape(3, 3)


def triple(element: Element, key: str, default: list[float]) -> list[float]:
    """Return an attribute of three numbers."""
    text = element.attributes.get(key)
    return default if text is None else three(text, element, key)
