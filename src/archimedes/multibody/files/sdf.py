"""SDF files made builders: one model of links and joints, without other packages.

Axes are in the joint's frame unless ``expressed_in`` names another; in files older than 1.5, and
where ``use_parent_model_frame`` says so, they are in the model's.
Source: http://sdformat.org/spec, version 1.7 and later.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.multibody.files.geometry import GEOMETRY, mesh_path
from archimedes.multibody.files.placements import guarded, inertia_in_body
from archimedes.multibody.files.sdf_places import MODEL, Places, is_identity
from archimedes.multibody.files.unit_slips import report_unit_slips
from archimedes.multibody.files.unread import Known, report_unread
from archimedes.multibody.files.urdf import check_one_root, follower_limits
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.parts import Mimic
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
    **{kind: Known("", " ".join(sizes)) for kind, sizes in SIZES.items()},
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
    read_around(builder, root, holder, model)
    places = Places(model)
    for element in model:
        if element.tag == "link":
            read_link(builder, element, places, Path(path), packages)
    version = [int(word) for word in VERSION.findall(root.attributes.get("version", ""))]
    old = bool(version) and version < AXES_OF_JOINTS
    for element in model:
        if element.tag == "joint":
            read_joint(builder, element, places, old)
    check_one_root(builder, model)
    for element in model:
        if element.tag == "frame":
            read_frame(builder, element, places)
    report_unit_slips(builder, model.place)
    if (loose := builder.unattached()) and not is_static(model):
        builder.base = "floating"
        builder.report.use("floating base")
    if loose and not is_identity(places.of(loose[0], model)):
        builder.report.approximated.append(
            f"{model.place}: the pose of {loose[0]!r} in the model: the base is where q or the "
            "world's origin puts it"
        )
    return builder


def is_static(model: Element) -> bool:
    """Return whether a model stands still."""
    return any(e.tag == "static" and e.text in ("true", "1") for e in model)


def read_around(builder: Builder, root: Element, holder: Element, model: Element) -> None:
    """Take the gravity of a world; report what else there is around a model, and of it."""
    for outer in {id(root): root, id(holder): holder}.values():
        for element in outer:
            if element.tag == "gravity":
                builder.gravity = np.array(three(element))
                builder.report.use("gravity")
            elif element is not model and element is not holder:
                builder.report.ignored.append(f"{element.place}: <{element.tag}> beside the model")
    for element in model:
        if element.tag == "static" and is_static(model):
            builder.report.ignored.append(
                f"{element.place}: <static> of the model: its base is fixed, its joints move"
            )
        elif element.tag not in ("link", "joint", "frame", "pose", "static"):
            builder.report.ignored.append(f"{element.place}: <{element.tag}> of the model")
    if model.attributes.get("placement_frame", ""):
        builder.report.ignored.append(f"{model.place}: placement_frame of the model")


def read_link(
    builder: Builder, element: Element, places: Places, path: Path, packages: Any
) -> None:
    """Add the body of a <link>, and its shapes."""
    name, inertial = element.get("name"), element.find("inertial")
    report_unread(element, KNOWN, builder.report, f"link {name!r}", texts=True)
    builder.report.use("link")
    if inertial is None:
        # What the format says of a link without numbers.
        guarded(element, builder.add_body, name, 1.0, None, np.eye(3))
    else:
        at, entries = places.inside(inertial, name), inertial.find("inertia")
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
            read_shape(builder, part, name, places.inside(part, name), path, packages)


def read_shape(
    builder: Builder, part: Element, body: str, at: Pose, path: Path, packages: Any
) -> None:
    """Add a <visual> or <collision>."""
    shapes = list(part.need("geometry"))
    kind = shapes[0].tag if len(shapes) == 1 else ""
    file = None
    if kind == "mesh":
        uri = shapes[0].need("uri").text
        file = mesh_path(uri.replace("model://", "package://", 1), path, packages)
        scale = shapes[0].find("scale")
        words = ["1"] * 3 if scale is None else scale.text.split()
    elif kind in SIZES:
        words = [w for key in SIZES[kind] for w in shapes[0].need(key).text.split()]
    if kind == "mesh" and file is None:
        builder.report.ignored.append(
            f"{part.place}: mesh {uri!r} of {body!r} was not found; packages= says where "
            "model:// is"
        )
        return
    if kind not in (*SIZES, "mesh"):
        builder.report.ignored.append(f"{part.place}: the shape of a <{part.tag}> of {body!r}")
        return
    size = [number(word, part, kind) for word in words]
    builder.geometry = (
        *builder.geometry,
        guarded(part, shape_at, body, part.tag, kind, size, at.R, at.p, file),
    )
    builder.report.use(part.tag)


def read_joint(builder: Builder, element: Element, places: Places, old: bool) -> None:
    """Add a <joint>."""
    name, kind = element.get("name"), element.get("type")
    if kind not in KINDS:
        raise element.error(f"joint {name!r}: type {kind!r} is none of {', '.join(KINDS)}")
    report_unread(element, KNOWN, builder.report, f"joint {name!r}", texts=True)
    parent, child = (places.link_of(element.need(tag).text, element) for tag in ("parent", "child"))
    if child == "world":
        raise element.error(f"joint {name!r}: the world cannot be the child")
    above, below = places.of(parent, element), places.of(child, element)
    own = compose(inverse(below), places.at(element, element))
    at = compose(inverse(above), below)
    values: dict[str, Any] = {}
    if KINDS[kind] in ANCHORED:
        values["anchor"] = own.p
    elif kind in ("universal", "screw") and np.any(np.abs(own.p) > 1e-12):
        raise element.error(
            f"joint {name!r}: the origin of the child must be at a {kind} joint; move the link"
        )
    axes = {key: element.find(tag) for key, tag in AXES.items()}
    found = {key: axis for key, axis in axes.items() if axis is not None}
    if kind == "universal" and len(found) < len(AXES):
        raise element.error(f"joint {name!r}: a universal joint has an <axis> and an <axis2>")
    for key, axis in found.items():
        values[key] = direction(axis, own, below, places, old)
    if kind not in ("fixed", "ball") and "axis" not in values:
        values["axis"] = matmul(own.R, np.array([0.0, 0.0, 1.0]))
    if kind == "screw":
        values["pitch"] = value_of(element, "screw_thread_pitch", None) / (2.0 * np.pi)
    values |= numbers(found, builder, name, kind)
    if kind not in ("fixed", "ball", "universal") and "axis" in found:
        values |= mimicked(found["axis"], builder, places)
        limit = found["axis"].find("limit")
        if "mimic" in values and limit is not None:
            builder.report.ignored.append(follower_limits(limit, name, values["mimic"].joint))
    holder = None if parent == "world" else parent
    guarded(
        element, builder.attach, child, holder, joint=name, kind=KINDS[kind], rotation=at.R,
        position=at.p, **values,
    )  # fmt: skip
    builder.report.use("joint")


def direction(axis: Element, own: Pose, below: Pose, places: Places, old: bool) -> Any:
    """Return an axis in axes of the child."""
    found, flag = axis.find("xyz"), axis.find("use_parent_model_frame")
    xyz = np.array([0.0, 0.0, 1.0] if found is None else three(found))
    named = "" if found is None else found.attributes.get("expressed_in", "").strip()
    in_model = old if flag is None else flag.text in ("true", "1")
    if not named and in_model:
        named = MODEL
    R = own.R if not named else matmul(below.R.T, places.of(named, axis).R)
    return matmul(R, xyz)


def numbers(axes: dict[str, Element], builder: Builder, name: str, kind: str) -> dict[str, Any]:
    """Return limits, damping, friction and springs of the axes of a joint: two of a universal."""
    each = [numbers_of(axis, name) for axis in axes.values()]
    if kind in ("fixed", "ball") or not each:
        lost = [axis for axis, found in zip(axes.values(), each, strict=True) if found]
        builder.report.ignored += [
            f"{axis.place}: limits and dynamics in <{axis.tag}> of joint {name!r}, which is {kind}"
            for axis in lost
        ]
        return {}
    if kind == "continuous" and each[0].keys() & {"lower", "upper"}:
        builder.report.ignored.append(
            f"{axes['axis'].place}: lower and upper of joint {name!r}, which is continuous"
        )
        each[0] = {k: v for k, v in each[0].items() if k not in ("lower", "upper")}
    if kind != "universal":
        return each[0]
    both = {key for found in each for key in found}
    return {key: [found.get(key, NONE.get(key, 0.0)) for found in each] for key in both}


def numbers_of(axis: Element, name: str) -> dict[str, float]:
    """Return limits, damping, friction and springs of one axis."""
    values: dict[str, float] = {}
    for part in axis:
        for inner in part:
            key = NUMBERS.get(f"{part.tag}/{inner.tag}")
            if key in NONE and inner.text.lower() in INFINITE:
                continue
            if key is not None:
                values[key] = number(inner.text, inner, inner.tag)
    for key in NONE:
        # -1 and 1e16 are the format's words for none.
        negative = key.endswith("_limit") and values.get(key, 0.0) < 0.0
        if negative or abs(values.get(key, 0.0)) >= 1e16:
            values.pop(key)
    if values.get("lower", -np.inf) > values.get("upper", np.inf):
        raise axis.error(f"joint {name!r}: the lower limit is above the upper one")
    return values


def mimicked(axis: Element, builder: Builder, places: Places) -> dict[str, Any]:
    """Return what a joint follows: ``multiplier * (q_other - reference) + offset``."""
    follows = axis.find("mimic")
    if follows is None:
        return {}
    joint, which = follows.get("joint"), follows.attributes.get("axis", "axis")
    if which != "axis" or joint not in places.elements:
        builder.report.ignored.append(f"{follows.place}: <mimic> of {which} of joint {joint!r}")
        return {}
    multiplier, offset, reference = (
        value_of(follows, tag, default)
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    )
    builder.report.use("mimic")
    return {"mimic": Mimic(joint, multiplier, offset - multiplier * reference)}


def read_frame(builder: Builder, element: Element, places: Places) -> None:
    """Add a <frame> on the link that carries it."""
    name = element.get("name")
    on = places.link_of(name, element)
    at = compose(inverse(places.of(on, element)), places.at(element, element))
    guarded(element, builder.add_frame, name, on, at.R, at.p)
    builder.report.use("frame")


def three(element: Element) -> list[float]:
    """Return the three numbers in an element."""
    words = element.text.split()
    if len(words) != 3:
        raise element.error(f"<{element.tag}> must be three numbers")
    return [number(word, element, element.tag) for word in words]


def value_of(element: Element, tag: str, default: Any) -> Any:
    """Return the number in an element."""
    found = element.find(tag) if default is not None else element.need(tag)
    return default if found is None else number(found.text, found, tag)
