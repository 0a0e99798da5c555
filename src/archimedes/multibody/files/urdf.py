"""URDF files made builders, without other packages.

Positions are in m, angles in rad; ``rpy`` turns about fixed axes, R = Rz(yaw) Ry(pitch) Rx(roll),
from the child's coordinates to the parent's. Joints are taken in the alphabetical order of their
names below each link, as by ROS's own reader, so that q is in the order other tools give it.
Source: http://wiki.ros.org/urdf/XML.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archimedes.multibody.files.robot_elements import (
    GEOMETRY,
    Known,
    Packages,
    call_at,
    check_one_root,
    follower_limits,
    inertia_in_body,
    mesh_path,
    read_inertia,
    read_origin,
    read_shape,
    report_unit_slips,
    report_unread,
    triple,
)
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import SLACK, Mimic, Report, inertia_fault
from archimedes.multibody.parts.joints import KINDS
from archimedes.xml_elements import Element, number, read_elements

JOINTS = {kind.urdf: kind for kind in KINDS.values() if kind.urdf is not None}

#: What is read of links and joints.
KNOWN = {
    "link": Known("name type", "inertial visual collision"),
    "inertial": Known("", "origin mass inertia"),
    "origin": Known("xyz rpy quat_xyzw"),
    "mass": Known("value"),
    "inertia": Known("ixx ixy ixz iyy iyz izz"),
    **dict.fromkeys(GEOMETRY, Known("name", "origin geometry", seen="material")),
    "geometry": Known("", "box sphere cylinder capsule mesh"),
    "box": Known("size"),
    "sphere": Known("radius"),
    **dict.fromkeys(("cylinder", "capsule"), Known("radius length")),
    "mesh": Known("filename scale"),
    "joint": Known("name type", "origin parent child axis limit dynamics mimic"),
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


def read_urdf(path: str | os.PathLike[str], packages: Packages = None) -> Builder:
    """Return a builder of a URDF file; ``builder.report`` says what became of each element.

    `packages` maps names in package:// to folders, or is a folder that holds them, or several; it
    is only needed where geometry is read.
    """
    root = read_elements(path, None)
    if root.tag != "robot":
        raise root.error(f"a URDF file is a <robot>, this is a <{root.tag}>")
    builder = Builder(root.attributes.get("name", Path(path).stem))
    links = [e for e in root if e.tag == "link"]
    joints = [e for e in root if e.tag == "joint"]
    for element in root:
        if "xacro" in element.tag.partition(":")[0] or XACRO in element.tag:
            raise element.error(
                "macros of xacro are not expanded here: run xacro on the file and load the result"
            )
        if element.tag not in ("link", "joint", "material"):
            builder.report.ignored.append(
                f"{element.place}: <{element.tag}> is not part of a robot"
            )
    for element in links:
        read_link(builder, element)
    check_names(joints, "joint", "name")
    known = {e.get("name") for e in joints}
    for element in sorted(joints, key=lambda e: e.get("name")):
        read_joint(builder, element, known)
    check_one_root(builder, root)
    for element in links:
        for part in element:
            if part.tag in GEOMETRY:
                file = mesh_file(part, Path(path), packages, builder.report)
                at = read_origin(part)
                read_shape(builder, part, element.get("name"), at, file, shape_numbers)
    report_unit_slips(builder, root.place)
    return builder


def read_link(builder: Builder, element: Element) -> None:
    """Add the body of a <link>."""
    name = element.get("name")
    inertial = element.find("inertial")
    report_unread(element, KNOWN, builder.report, f"link {name!r}")
    builder.report.use("link")
    if inertial is None:
        call_at(element, builder.add_body, name)
        return
    builder.report.use("inertial")
    mass = number(inertial.need("mass").get("value"), inertial, "mass")
    at, entries = read_origin(inertial), inertial.need("inertia")
    J = read_inertia(lambda key: number(entries.get(key), entries, key))
    if fault := inertia_fault(J, SLACK):
        builder.report.approximated.append(
            f"{entries.place}: link {name!r}: no body has this inertia: {fault}; taken as it is"
        )
    call_at(inertial, builder.add_body, name, mass, at.p, inertia_in_body(at.R, J))


def read_joint(builder: Builder, element: Element, known: set[str]) -> None:
    """Add a <joint>."""
    name, kind = element.get("name"), element.get("type")
    if kind not in JOINTS:
        raise element.error(f"joint {name!r}: type {kind!r} is not one of {', '.join(JOINTS)}")
    at = read_origin(element)
    values: dict[str, Any] = {}
    report_unread(element, KNOWN, builder.report, f"joint {name!r}")
    read = [part for part in element if part.tag in READ]
    for part in read:
        values |= READ[part.tag](part, kind, builder, name)
    if kind in ("revolute", "prismatic") and "lower" not in values:
        builder.report.approximated.append(
            f"{element.place}: joint {name!r} is {kind} and has no <limit>; it moves without one"
        )
    axis_element, follows = element.find("axis"), element.find("mimic")
    axis = [1.0, 0.0, 0.0]
    if axis_element is not None and kind not in ("fixed", "floating"):
        axis = triple(axis_element, "xyz", [1.0, 0.0, 0.0])
        if not any(axis):
            raise axis_element.error(f"joint {name!r}: the axis is zero")
    mimic = (
        read_mimic(builder, follows, name, known)
        if follows is not None and kind != "fixed"
        else None
    )
    if mimic is not None and (limit := element.find("limit")) is not None:
        builder.report.ignored.append(follower_limits(limit, name, mimic.joint))
    builder.report.use("joint")
    parent, child = element.need("parent").get("link"), element.need("child").get("link")
    if kind == "fixed":
        values = {}
        lost = [*read, *([] if follows is None else [follows])]
        builder.report.ignored += [f"{x.place}: <{x.tag}> of joint {name!r}, fixed" for x in lost]
    call_at(
        element, builder.attach, child, parent, joint=name, kind=JOINTS[kind], axis=axis,
        rotation=at.R, position=at.p, mimic=mimic, **values,
    )  # fmt: skip


def read_mimic(builder: Builder, follows: Element, name: str, known: set[str]) -> Mimic | None:
    """Return what a joint follows; a joint that is not there leaves it free, and is reported."""
    if follows.get("joint") not in known:
        builder.report.approximated.append(
            f"{follows.place}: joint {name!r} mimics {follows.get('joint')!r}, which is not there; "
            "it moves freely"
        )
        return None
    builder.report.use("mimic")
    multiplier, offset = (
        number(follows.attributes.get(key, default), follows, key)
        for key, default in (("multiplier", "1"), ("offset", "0"))
    )
    return Mimic(follows.get("joint"), multiplier, offset)


def read_limit(part: Element, kind: str, builder: Builder, name: str) -> dict[str, Any]:
    """Return the limits of a joint."""
    values = {
        LIMIT[key]: number(text, part, key) for key, text in part.attributes.items() if key in LIMIT
    }
    if kind == "fixed":
        return {}
    if kind not in ("revolute", "prismatic"):
        lost = [key for key in ("lower", "upper") if values.pop(key, None) is not None]
        if lost:
            builder.report.ignored.append(
                f"{part.place}: {' and '.join(lost)} of joint {name!r}, which is {kind}"
            )
    elif values.get("lower", 0.0) > values.get("upper", 0.0):
        raise part.error(f"joint {name!r}: the lower limit is above the upper limit")
    else:
        values = {"lower": 0.0, "upper": 0.0} | values
    if kind == "revolute" and max(abs(values["lower"]), abs(values["upper"])) > SUSPICIOUS:
        builder.report.approximated.append(
            f"{part.place}: joint {name!r}: limits of {values['lower']:g} to {values['upper']:g} "
            "rad look like degrees; taken as rad"
        )
    builder.report.use("limit")
    return values


def read_dynamics(part: Element, kind: str, builder: Builder, name: str) -> dict[str, Any]:
    """Return damping and friction of a joint."""
    values = {}
    for key, text in part.attributes.items():
        if key in ("damping", "friction"):
            values[key] = number(text, part, key)
            if values[key] < 0.0:
                raise part.error(f"joint {name!r}: {key} is negative")
    if kind == "fixed":
        return {}
    builder.report.use("dynamics")
    return values


LIMIT = {
    "lower": "lower",
    "upper": "upper",
    "velocity": "speed_limit",
    "effort": "effort_limit",
}
READ: dict[str, Callable[[Element, str, Builder, str], dict[str, Any]]] = {
    "limit": read_limit,
    "dynamics": read_dynamics,
}


def shape_numbers(shape: Element, key: str) -> str:
    """Return the text of a number of a shape."""
    return shape.attributes.get(key, "1 1 1") if key == "scale" else shape.get(key)


def mesh_file(part: Element, path: Path, packages: Packages, report: Report) -> Path | None:
    """Return the file of the mesh in a <visual> or <collision>, if it has one that is there."""
    holder = part.find("geometry")
    mesh = None if holder is None else holder.find("mesh")
    if mesh is None:
        return None
    file = mesh_path(mesh.get("filename"), path, packages)
    if file is None:
        report.ignored.append(
            f"{mesh.place}: mesh {mesh.get('filename')!r} was not found; packages= says where "
            "package:// is"
        )
    return file


def check_names(elements: list[Element], what: str, key: str) -> None:
    """Raise at the second element of a name."""
    seen = set()
    for element in elements:
        if element.get(key) in seen:
            raise element.error(f"a second {what} {element.get(key)!r}")
        seen.add(element.get(key))
