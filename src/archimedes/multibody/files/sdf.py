"""SDF files made builders: one model of links and joints, without other packages.

Axes are in the joint's frame unless ``expressed_in`` names another; in files older than 1.5, and
where ``use_parent_model_frame`` says so, they are in the model's.
Source: http://sdformat.org/spec, version 1.7 and later.

Poses are "x y z roll pitch yaw" in m and rad, R = Rz(yaw) Ry(pitch) Rx(roll), or
"x y z qx qy qz qw"; a link's is in the model, a joint's in its child, unless ``relative_to`` names
another link, joint or frame, through chains of these. Names of joints may be those of links in old
files, and mean these.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from archimedes.multibody.files import robot_elements
from archimedes.multibody.files.robot_elements import Known, RobotReader, call_at, three
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Mimic
from archimedes.multibody.parts.joints import KINDS, JointKind
from archimedes.portable_numpy import matmul
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.typing import Vec3
from archimedes.xml_elements import Element, number, read_elements

JOINTS = {kind.sdf: kind for kind in KINDS.values() if kind.sdf is not None}
#: Where a number of a joint's axis is in the file, and what it is called here.
NUMBERS = {
    "limit/lower": "lower",
    "limit/upper": "upper",
    "limit/effort": "effort_limit",
    "limit/velocity": "speed_limit",
    "dynamics/damping": "damping",
    "dynamics/friction": "friction",
    "dynamics/spring_stiffness": "stiffness",
    "dynamics/spring_reference": "rest",
}


#: Axes of a joint here and in the file.
AXES = {"axis": "axis", "second_axis": "axis2"}
#: What a limit is where there is none, and how that may be written.
NONE = {"lower": -np.inf, "upper": np.inf, "effort_limit": np.inf, "speed_limit": np.inf}
INFINITE = ("inf", "+inf", "-inf")
#: The version from which on axes are in the frame of the joint.
AXES_OF_JOINTS = [1, 5]
VERSION = re.compile("[0-9]+")
#: What is read of links and joints.
KNOWN = {
    "link": Known("name", "inertial visual collision pose"),
    "inertial": Known("", "pose mass inertia"),
    "inertia": Known("", "ixx ixy ixz iyy iyz izz"),
    "pose": Known("relative_to rotation_format degrees"),
    "visual": Known("name", "pose geometry", "material transparency cast_shadows visibility_flags"),
    "collision": Known("name", "pose geometry"),
    "geometry": Known("", "box sphere cylinder capsule mesh"),
    **{kind: Known("", " ".join(sizes)) for kind, sizes in robot_elements.SIZES.items()},
    "mesh": Known("", "uri scale"),
    "joint": Known("name type", "parent child pose axis axis2 screw_thread_pitch"),
    **dict.fromkeys(
        AXES.values(), Known("", "xyz limit dynamics mimic", seen="use_parent_model_frame")
    ),
    "xyz": Known("expressed_in"),
    "limit": Known("", "lower upper effort velocity"),
    "dynamics": Known("", "damping friction spring_stiffness spring_reference"),
    "mimic": Known("joint axis", "multiplier offset reference"),
}


def read_sdf(path: str | os.PathLike[str], packages: robot_elements.Packages = None) -> Builder:
    """Return a builder of an SDF file with one model; ``builder.report`` says what is not in it."""
    root = read_elements(path, None)
    if root.tag != "sdf":
        raise root.error(f"an SDF file is an <sdf>, this is a <{root.tag}>")
    holder = root.find("world") or root
    models = [e for e in holder if e.tag == "model"]
    if len(models) != 1:
        raise holder.error(f"<{holder.tag}> has {len(models)} models; one is read")
    return SdfReader(models[0], path, packages).read(root, holder)


class SdfReader(RobotReader):
    """The model of an SDF file."""

    known = KNOWN
    texts = True

    def text(self, element: Element, key: str, default: str | None = None) -> str:
        """Return the text of an element inside."""
        inner = element.need(key) if default is None else element.find(key)
        return default or "" if inner is None else inner.text

    def read(self, root: Element, holder: Element) -> Builder:
        """Return the builder of the model, which `holder` holds."""
        model, builder = self.root, self.builder
        self.read_around(root, holder)
        self.poses = Poses(model)
        version = [int(word) for word in VERSION.findall(root.attributes.get("version", ""))]
        self.axes_in_model = bool(version) and version < AXES_OF_JOINTS
        for tag, read in (("link", self.read_link), ("joint", self.read_joint)):
            for element in model:
                if element.tag == tag:
                    read(element)
        self.check_one_root()
        for element in model:
            if element.tag == "frame":
                self.read_frame(element)
        self.report_unit_slips()
        if (loose := builder.unattached()) and not is_static(model):
            builder.base = "floating"
            self.report.use("floating base")
        if loose and not is_identity(self.poses.of(loose[0], model)):
            base = "the base is where q or the world's origin puts it"
            self.approximate(model, f"the pose of {loose[0]!r} in the model: {base}")
        return builder

    def read_around(self, root: Element, holder: Element) -> None:
        """Take the gravity of a world; report what else there is around a model, and of it."""
        model = self.root
        for outer in {id(root): root, id(holder): holder}.values():
            for element in outer:
                if element.tag == "gravity":
                    self.builder.gravity = np.array(three(element.text, element, "<gravity>"))
                    self.report.use("gravity")
                elif element is not model and element is not holder:
                    self.ignore(element, f"<{element.tag}> beside the model")
        for element in model:
            if element.tag == "static" and is_static(model):
                self.ignore(element, "<static> of the model: its base is fixed, its joints move")
            elif element.tag not in ("link", "joint", "frame", "pose", "static"):
                self.ignore(element, f"<{element.tag}> of the model")
        if model.attributes.get("placement_frame", ""):
            self.ignore(model, "placement_frame of the model")

    def read_link(self, element: Element) -> None:
        """Add the body of a <link>, and its shapes."""
        name, inertial = element.get("name"), element.find("inertial")
        self.report_unread(element, f"link {name!r}")
        self.report.use("link")
        if inertial is None:
            # What the format says of a link without numbers.
            call_at(element, self.builder.add_body, name, 1.0, None, np.eye(3))
        else:
            at, entries = self.poses.inside(inertial, name), inertial.find("inertia")
            J = robot_elements.read_inertia(
                lambda key: value_of(entries, key, float(key in ("ixx", "iyy", "izz")))
            )
            J = robot_elements.inertia_in_body(at.R, J)
            mass = value_of(inertial, "mass", 1.0)
            call_at(inertial, self.builder.add_body, name, mass, at.p, J)
            self.report.use("inertial")
        for part in element:
            if part.tag in robot_elements.GEOMETRY:
                mesh = part.need("geometry").find("mesh")
                file = None
                if mesh is not None:
                    file = self.find_mesh(part, mesh.need("uri").text, "model")
                at = self.poses.inside(part, name)
                self.read_shape(part, name, at, file, self.color_of(part))

    def color_of(self, part: Element) -> tuple[float, ...] | None:
        """Return the diffuse colour of a <visual>, less its transparency."""
        material, clear = part.find("material"), part.find("transparency")
        diffuse = None if material is None else material.find("diffuse")
        color = None if diffuse is None else self.read_color(diffuse, diffuse.text)
        if color is None or clear is None:
            return color
        share = 1.0 - number(clear.text, clear, clear.tag)
        return *color[:3], color[3] * min(max(share, 0.0), 1.0)

    def read_joint(self, element: Element) -> None:
        """Add a <joint>."""
        poses, name, word = self.poses, element.get("name"), element.get("type")
        if word not in JOINTS:
            raise element.error(f"joint {name!r}: type {word!r} is not one of {', '.join(JOINTS)}")
        kind = JOINTS[word]
        self.report_unread(element, f"joint {name!r}")
        parent, child = (
            poses.link_of(element.need(tag).text, element) for tag in ("parent", "child")
        )
        if child == "world":
            raise element.error(f"joint {name!r}: the world cannot be the child")
        above, below = poses.of(parent, element), poses.of(child, element)
        own = below.inv() @ poses.at(element, element)
        at = above.inv() @ below
        values: dict[str, Any] = {}
        if kind.anchored:
            values["anchor"] = own.p
        elif kind.rotates and np.any(np.abs(own.p) > 1e-12):
            raise element.error(
                f"joint {name!r}: the origin of the child must be at a {word} joint; move the link"
            )
        elements = {key: element.find(tag) for key, tag in AXES.items()}
        axes = {key: axis for key, axis in elements.items() if axis is not None}
        if kind.has_second_axis and len(axes) < len(AXES):
            raise element.error(f"joint {name!r}: a {word} joint has an <axis> and an <axis2>")
        for key, axis in axes.items():
            values[key] = self.read_direction(axis, own, below)
        if has_numbers(kind) and "axis" not in values:
            values["axis"] = matmul(own.R, np.array([0.0, 0.0, 1.0]))
        if kind.has_pitch:
            values["pitch"] = value_of(element, "screw_thread_pitch", None) / (2.0 * np.pi)
        values |= self.read_numbers(axes, name, kind)
        if kind.nq == 1 and "axis" in axes:
            values |= self.read_mimic(axes["axis"])
            if "mimic" in values:
                limit = axes["axis"].find("limit")
                self.report_follower_limits(limit, name, values["mimic"].joint)
        holder = None if parent == "world" else parent
        call_at(
            element, self.builder.attach, child, holder, joint=name, kind=kind, rotation=at.R,
            position=at.p, **values,
        )  # fmt: skip
        self.report.use("joint")

    def read_direction(self, axis: Element, own: Pose, below: Pose) -> Vec3:
        """Return an axis in axes of the child."""
        vector, flag = axis.find("xyz"), axis.find("use_parent_model_frame")
        xyz, frame = [0.0, 0.0, 1.0], ""
        if vector is not None:
            xyz = three(vector.text, vector, "<xyz>")
            frame = vector.attributes.get("expressed_in", "").strip()
        if not frame and (self.axes_in_model if flag is None else flag.text in ("true", "1")):
            frame = MODEL
        R = own.R if not frame else matmul(below.R.T, self.poses.of(frame, axis).R)
        return matmul(R, np.array(xyz))

    def read_numbers(self, axes: dict[str, Element], name: str, kind: JointKind) -> dict[str, Any]:
        """Return limits, damping, friction and springs of the axes of a joint, lists of two."""
        each = [numbers_of(axis, name) for axis in axes.values()]
        if not has_numbers(kind) or not each:
            for axis, values in zip(axes.values(), each, strict=True):
                if values:
                    of = f"<{axis.tag}> of joint {name!r}, which is {kind.sdf}"
                    self.ignore(axis, f"limits and dynamics in {of}")
            return {}
        if kind.name == "continuous" and each[0].keys() & {"lower", "upper"}:
            self.ignore(axes["axis"], f"lower and upper of joint {name!r}, which is continuous")
            each[0] = {k: v for k, v in each[0].items() if k not in ("lower", "upper")}
        if not kind.has_second_axis:
            return each[0]
        both = {key for values in each for key in values}
        return {key: [values.get(key, NONE.get(key, 0.0)) for values in each] for key in both}

    def read_mimic(self, axis: Element) -> dict[str, Mimic]:
        """Return what a joint follows: ``multiplier * (q_other - reference) + offset``."""
        follows = axis.find("mimic")
        if follows is None:
            return {}
        joint, which = follows.get("joint"), follows.attributes.get("axis", "axis")
        if which != "axis" or joint not in self.poses.elements:
            self.ignore(follows, f"<mimic> of {which} of joint {joint!r}")
            return {}
        multiplier, offset, reference = (
            value_of(follows, tag, default)
            for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        self.report.use("mimic")
        return {"mimic": Mimic(joint, multiplier, offset - multiplier * reference)}

    def read_frame(self, element: Element) -> None:
        """Add a <frame> on the link that carries it."""
        name = element.get("name")
        on = self.poses.link_of(name, element)
        at = self.poses.of(on, element).inv() @ self.poses.at(element, element)
        call_at(element, self.builder.add_frame, name, on, at.R, at.p)
        self.report.use("frame")


def is_static(model: Element) -> bool:
    """Return whether a model stands still."""
    return any(e.tag == "static" and e.text in ("true", "1") for e in model)


def has_numbers(kind: JointKind) -> bool:
    """Return whether a joint has limits, damping and springs in these files."""
    return kind.straight and kind.nv > 0


def numbers_of(axis: Element, name: str) -> dict[str, float]:
    """Return limits, damping, friction and springs of one axis."""
    values: dict[str, float] = {}
    for part in axis:
        for inner in part:
            key = NUMBERS.get(f"{part.tag}/{inner.tag}")
            if key is not None and not (key in NONE and inner.text.lower() in INFINITE):
                values[key] = number(inner.text, inner, inner.tag)
    for key in NONE:
        # -1 and 1e16 are the format's words for none.
        negative = key.endswith("_limit") and values.get(key, 0.0) < 0.0
        if negative or abs(values.get(key, 0.0)) >= 1e16:
            values.pop(key)
    if values.get("lower", -np.inf) > values.get("upper", np.inf):
        raise axis.error(f"joint {name!r}: the lower limit is above the upper limit")
    return values


def value_of(element: Element | None, tag: str, default: float | None) -> Any:
    """Return the number in an element."""
    if element is None:
        return default
    inner = element.find(tag) if default is not None else element.need(tag)
    return default if inner is None else number(inner.text, inner, tag)


MODEL, WORLD = "__model__", "world"


class Poses:
    """Poses of links, joints and frames in the world, and the links that carry them."""

    def __init__(self, model: Element) -> None:
        self.model, self.known, self.waiting = pose_in(model), dict[int, Pose](), list[str]()
        self.elements: dict[str, Element] = {}
        for tag in ("joint", "frame", "link"):
            self.elements |= {e.get("name"): e for e in model if e.tag == tag}
        links = [e.get("name") for e in model if e.tag == "link"]
        self.canonical = model.attributes.get("canonical_link", "") or next(iter(links), "")

    def of(self, name: str, asker: Element) -> Pose:
        """Return the pose of what has this name; `asker` is who asks."""
        if name == WORLD:
            return IDENTITY
        return self.model if name == MODEL else self.at(self.find(name, asker), asker)

    def at(self, element: Element, asker: Element) -> Pose:
        """Return the pose of a link, joint or frame."""
        if id(element) not in self.known:
            name = f"<{element.tag}> {element.get('name')!r}"
            if name in self.waiting:
                raise asker.error(f"the poses of {self.waiting} are relative to each other")
            self.waiting.append(name)
            base = self.of(pose_base(element.find("pose")) or usual_base(element), element)
            self.waiting.remove(name)
            self.known[id(element)] = base @ pose_in(element)
        return self.known[id(element)]

    def inside(self, part: Element, link: str) -> Pose:
        """Return the pose in a link of a part of it, in which it is unless it says otherwise."""
        base = pose_base(part.find("pose"))
        if not base:
            return pose_in(part)
        return self.of(link, part).inv() @ (self.of(base, part) @ pose_in(part))

    def link_of(self, name: str, asker: Element, steps: int = 100) -> str:
        """Return the link that carries a link, frame or joint: the world, or one of the model."""
        if name == WORLD or (name != MODEL and self.find(name, asker).tag == "link"):
            return name
        if not steps:
            raise asker.error(f"{name!r} is attached to frames that are attached to each other")
        if name == MODEL:
            on = self.canonical
        else:
            element = self.find(name, asker)
            on = usual_base(element) if element.tag == "joint" else attachment(element)
        return self.link_of(on, asker, steps - 1)

    def find(self, name: str, asker: Element) -> Element:
        """Return the link, joint or frame of a name."""
        if name not in self.elements:
            raise asker.error(f"there is no link, joint or frame {name!r}")
        return self.elements[name]


def usual_base(element: Element) -> str:
    """Return what a pose is in where the file does not say."""
    return element.need("child").text if element.tag == "joint" else attachment(element)


def attachment(element: Element) -> str:
    """Return what a frame is attached to; a link is to its model."""
    return element.attributes.get("attached_to", "").strip() or MODEL


def pose_base(pose: Element | None) -> str:
    """Return what a <pose> is said to be in, "" where that is left open."""
    return "" if pose is None else pose.attributes.get("relative_to", "").strip()


def pose_in(element: Element) -> Pose:
    """Return the <pose> in an element."""
    pose = element.find("pose")
    if pose is None or not pose.text:
        return IDENTITY
    words = pose.text.split()
    form = pose.attributes.get("rotation_format", "euler_rpy")
    if (form, len(words)) not in (("euler_rpy", 6), ("quat_xyzw", 7)):
        wanted = 'x y z roll pitch yaw, or seven with rotation_format="quat_xyzw"'
        raise pose.error(f"<pose> {pose.text!r} must be six numbers: {wanted}")
    position = np.array([number(word, pose, "pose") for word in words[:3]])
    if form == "quat_xyzw":
        return Pose(
            robot_elements.by_quaternion(words[3:], pose, "the quaternion of <pose>"), position
        )
    angles = [number(word, pose, "pose") for word in words[3:]]
    if pose.attributes.get("degrees", "false") in ("true", "1"):
        angles = np.deg2rad(angles).tolist()
    return Pose(robot_elements.by_angles(angles), position)


def is_identity(pose: Pose) -> bool:
    """Return whether a pose leaves all where it is."""
    return bool(np.all(np.eye(3) == pose.R) and not np.any(pose.p))
