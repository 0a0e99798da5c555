"""SDF files made builders: one model of links and joints, without other packages.

Poses are "x y z roll pitch yaw" in m and rad, R = Rz(yaw) Ry(pitch) Rx(roll); a link's is in the
model, a joint's in its child, unless ``relative_to`` names another link, joint or frame. Axes are
in the joint's frame unless ``expressed_in`` names another.
Source: http://sdformat.org/spec, version 1.7 and later.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.multibody.files.geometry import GEOMETRY, mesh_path
from archimedes.multibody.files.placements import by_angles, guarded, inertia_in_body
from archimedes.multibody.files.unit_slips import report_unit_slips
from archimedes.multibody.files.urdf import check_one_root
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.shapes import shape_at
from archimedes.multibody.models.spatial_algebra import Pose, compose, inverse
from archimedes.numbers_in_text import number
from archimedes.xml_elements import Element, read_elements

__all__ = ["read_sdf"]

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "screw": "helical",
    "fixed": "fixed",
}
#: Kinds that turn about a point of the child, which need not be its origin.
ANCHORED = ("revolute", "continuous", "spherical")
SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}
IDENTITY = Pose(np.eye(3), np.zeros(3))
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


def read_sdf(path: str | os.PathLike[str], packages: Any = None) -> Builder:
    """Return a builder of an SDF file with one model; ``builder.report`` says what is not in it."""
    root = read_elements(path, None)
    if root.tag != "sdf":
        raise root.error(f"an SDF file is an <sdf>, this is a <{root.tag}>")
    holder = root.find("world") or root
    models = [e for e in holder if e.tag == "model"]
    if len(models) != 1:
        raise holder.error(f"<{holder.tag}> has {len(models)} models; one is read")
    model = models[0]
    builder = Builder(model.attributes.get("name", Path(path).stem))
    places = Places(model)
    for element in model:
        if element.tag == "link":
            read_link(builder, element, Path(path), packages)
        elif element.tag not in ("joint", "frame", "pose", "static"):
            builder.report.ignored.append(f"{element.place}: <{element.tag}> of the model")
    for element in model:
        if element.tag == "joint":
            read_joint(builder, element, places)
    check_one_root(builder, model)
    for element in model:
        if element.tag == "frame":
            read_frame(builder, element, places)
    report_unit_slips(builder, model.place)
    if (loose := builder.unattached()) and not is_identity(places.of(loose[0], model)):
        builder.report.approximated.append(
            f"{model.place}: the pose of {loose[0]!r} in the model: the base is where q or the "
            "world's origin puts it"
        )
    return builder


class Places:
    """Poses of links, joints and frames in the model, through chains of ``relative_to``."""

    def __init__(self, model: Element) -> None:
        self.known: dict[str, Pose] = {"__model__": IDENTITY}
        self.elements = {e.get("name"): e for e in model if e.tag in ("link", "joint", "frame")}
        self.waiting: list[str] = []

    def of(self, name: str, element: Element) -> Pose:
        """Return the pose of what has this name; `element` is who asks."""
        if name in self.known:
            return self.known[name]
        if name not in self.elements:
            raise element.error(f"there is no link, joint or frame {name!r}")
        if name in self.waiting:
            raise element.error(f"the poses of {self.waiting} are relative to each other")
        self.waiting.append(name)
        own = self.elements[name]
        pose = own.find("pose")
        given = "" if pose is None else pose.attributes.get("relative_to", "").strip()
        base = given or usual_base(own)
        found = compose(self.of(base, own) if base != "world" else IDENTITY, pose_in(own))
        self.waiting.remove(name)
        self.known[name] = found
        return found


def usual_base(element: Element) -> str:
    """Return what a pose is in where the file does not say."""
    if element.tag == "joint":
        return element.need("child").text
    return element.attributes.get("attached_to", "__model__") or "__model__"


def pose_in(element: Element) -> Pose:
    """Return the <pose> in an element."""
    pose = element.find("pose")
    if pose is None or not pose.text:
        return IDENTITY
    words = pose.text.split()
    if len(words) != 6 or pose.attributes.get("rotation_format", "euler_rpy") != "euler_rpy":
        raise pose.error(f"<pose> {pose.text!r} must be six numbers: x y z roll pitch yaw")
    x, y, z, *angles = (number(word, pose, "pose") for word in words)
    if pose.attributes.get("degrees", "false") in ("true", "1"):
        angles = np.deg2rad(angles).tolist()
    return Pose(by_angles(angles), np.array([x, y, z]))


def read_link(builder: Builder, element: Element, path: Path, packages: Any) -> None:
    """Add the body of a <link>, and its shapes."""
    name, inertial = element.get("name"), element.find("inertial")
    builder.report.use("link")
    if inertial is None:
        # What the format says of a link without numbers.
        guarded(element, builder.add_body, name, 1.0, None, np.eye(3))
    else:
        at, entries = pose_in(inertial), inertial.find("inertia")
        mass = value_of(inertial, "mass", 1.0)
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        usual = dict.fromkeys(keys, 0.0) | {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
        xx, xy, xz, yy, yz, zz = (
            usual[k] if entries is None else value_of(entries, k, usual[k]) for k in keys
        )
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        guarded(inertial, builder.add_body, name, mass, at.p, inertia_in_body(at.R, J))
        builder.report.use("inertial")
    for part in element:
        if part.tag in GEOMETRY:
            read_shape(builder, part, name, path, packages)
        elif part.tag not in ("inertial", "pose"):
            builder.report.ignored.append(f"{part.place}: <{part.tag}> of link {name!r}")


def read_shape(builder: Builder, part: Element, body: str, path: Path, packages: Any) -> None:
    """Add a <visual> or <collision>."""
    shapes = list(part.need("geometry"))
    kind = shapes[0].tag if len(shapes) == 1 else ""
    at, file = pose_in(part), None
    if kind == "mesh":
        uri = shapes[0].need("uri").text.replace("model://", "package://", 1)
        file = mesh_path(uri, path, packages)
        scale = shapes[0].find("scale")
        words = ["1"] * 3 if scale is None else scale.text.split()
    elif kind in SIZES:
        words = [w for key in SIZES[kind] for w in shapes[0].need(key).text.split()]
    if kind not in (*SIZES, "mesh") or (kind == "mesh" and file is None):
        builder.report.ignored.append(f"{part.place}: the shape of a <{part.tag}> of {body!r}")
        return
    size = [number(word, part, kind) for word in words]
    builder.geometry = (
        *builder.geometry,
        guarded(part, shape_at, body, part.tag, kind, size, at.R, at.p, file),
    )
    builder.report.use(part.tag)


def read_joint(builder: Builder, element: Element, places: Places) -> None:
    """Add a <joint>."""
    name, kind = element.get("name"), element.get("type")
    if kind not in KINDS:
        raise element.error(f"joint {name!r}: type {kind!r} is none of {', '.join(KINDS)}")
    parent, child = element.need("parent").text, element.need("child").text
    if child == "world":
        raise element.error(f"joint {name!r}: the world cannot be the child")
    above = IDENTITY if parent == "world" else places.of(parent, element)
    below, joint = places.of(child, element), places.of(name, element)
    at, own = compose(inverse(above), below), compose(inverse(below), joint)
    values: dict[str, Any] = {}
    if KINDS[kind] in ANCHORED:
        values["anchor"] = own.p
    elif kind in ("universal", "screw") and np.any(np.abs(own.p) > 1e-12):
        raise element.error(
            f"joint {name!r}: the origin of the child must be at a {kind} joint; move the link"
        )
    for key, tag in (("axis", "axis"), ("second_axis", "axis2")):
        if (axis := element.find(tag)) is not None:
            values[key] = direction(axis, own, below, places)
    if kind not in ("fixed", "ball") and "axis" not in values:
        values["axis"] = own.R @ np.array([0.0, 0.0, 1.0])
    if (axis := element.find("axis")) is not None and kind not in ("fixed", "ball"):
        values |= numbers(axis, builder, name, kind)
    if kind == "screw":
        values["pitch"] = value_of(element, "screw_thread_pitch", None) / (2.0 * np.pi)
    known = ("parent", "child", "axis", "axis2", "pose", "screw_thread_pitch")
    for part in element:
        if part.tag not in known:
            builder.report.ignored.append(f"{part.place}: <{part.tag}> of joint {name!r}")
    holder = None if parent == "world" else parent
    guarded(
        element, builder.attach, child, holder, joint=name, kind=KINDS[kind], rotation=at.R,
        position=at.p, **values,
    )  # fmt: skip
    builder.report.use("joint")


def direction(axis: Element, own: Pose, below: Pose, places: Places) -> Any:
    """Return an axis in axes of the child."""
    found = axis.find("xyz")
    words = ["0", "0", "1"] if found is None else found.text.split()
    if len(words) != 3:
        raise axis.error("<xyz> must be three numbers")
    xyz = np.array([number(word, axis, "xyz") for word in words])
    named = "" if found is None else found.attributes.get("expressed_in", "").strip()
    R = own.R if not named else below.R.T @ places.of(named, axis).R
    return R @ xyz


def numbers(axis: Element, builder: Builder, name: str, kind: str) -> dict[str, Any]:
    """Return limits, damping, friction and springs of an axis."""
    values: dict[str, Any] = {}
    for part in axis:
        for inner in part:
            key = NUMBERS.get(f"{part.tag}/{inner.tag}")
            if key is None:
                builder.report.ignored.append(f"{inner.place}: <{inner.tag}> of joint {name!r}")
            else:
                values[key] = number(inner.text, inner, inner.tag)
    if values.get("lower", -np.inf) > values.get("upper", np.inf):
        raise axis.error(f"joint {name!r}: the lower limit is above the upper one")
    for key, least in (("effort_limit", 0.0), ("speed_limit", 0.0)):
        if values.get(key, 0.0) < least:  # -1 is the format's word for none
            values.pop(key)
    if kind == "universal":
        values = {k: v for k, v in values.items() if k in ("damping", "friction", "stiffness")}
    return values


def read_frame(builder: Builder, element: Element, places: Places) -> None:
    """Add a <frame> that is attached to a link."""
    name, on = element.get("name"), element.attributes.get("attached_to", "")
    if on not in builder.bodies:
        builder.report.ignored.append(f"{element.place}: <frame> {name!r}, attached to no link")
        return
    at = compose(inverse(places.of(on, element)), places.of(name, element))
    guarded(element, builder.add_frame, name, on, at.R, at.p)
    builder.report.use("frame")


def value_of(element: Element, tag: str, default: Any) -> Any:
    """Return the number in an element."""
    found = element.find(tag) if default is not None else element.need(tag)
    return default if found is None else number(found.text, found, tag)


def is_identity(pose: Pose) -> bool:
    """Whether a pose leaves all where it is."""
    return bool(np.all(np.eye(3) == pose.R) and not np.any(pose.p))
