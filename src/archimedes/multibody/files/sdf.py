"""SDF files made builders: models in a file or a world, one in another, or included from files.

Axes are in the joint's frame unless ``expressed_in`` names another; in files older than 1.5, and
where ``use_parent_model_frame`` says so, they are in the model's.
Source: http://sdformat.org/spec, version 1.7 and later.

Poses are "x y z roll pitch yaw" in m and rad, R = Rz(yaw) Ry(pitch) Rx(roll), or
"x y z qx qy qz qw"; what they are in, `sdf_scopes` says. Names of joints may be those of links in
old files, and mean these.

Joints form a tree where they can. Of several that carry one link, the first is in the tree whose
coordinate acts (a spring, limits, a joint that follows); the others hold frames together as
closures. One that carries a link that is carried, but whose parent nothing carries, is taken the
other way round.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.multibody.files import robot_elements
from archimedes.multibody.files.robot_elements import Known, RobotReader, call_at, three
from archimedes.multibody.files.sdf_scopes import (
    INSIDE,
    MODEL,
    WORLD,
    Library,
    Scope,
    is_true,
    version_of,
)
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Mimic
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.joints import KINDS, JointKind
from archimedes.portable_numpy import matmul
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Vec3
from archimedes.xml_elements import Element, number, read_elements

JOINTS = {kind.sdf: kind for kind in KINDS.values() if kind.sdf is not None}
#: Two hinges one behind the other: the axes of a universal joint need not be perpendicular.
JOINTS["revolute2"] = KINDS["universal"]
#: A ratio of the angles of two links in a third, not a joint that carries one.
GEARBOX = "gearbox"
#: Kinds that may be taken the other way round: their motion back is one about the same axis.
REVERSIBLE = ("revolute", "continuous", "prismatic", "spherical", "fixed")
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
#: What is read of worlds and models.
IN_WORLDS = ("model", "include", "frame", "joint", "gravity")
IN_MODELS = ("link", "joint", "frame", "pose", "static", "model", "include")
#: What is read of links and joints.
KNOWN = {
    "include": Known("merge", "uri name pose static placement_frame"),
    "link": Known("name", "inertial visual collision pose gravity"),
    "inertial": Known("", "pose mass inertia"),
    "inertia": Known("", "ixx ixy ixz iyy iyz izz"),
    "pose": Known("relative_to rotation_format degrees"),
    "visual": Known("name", "pose geometry", "material transparency cast_shadows visibility_flags"),
    "collision": Known("name", "pose geometry"),
    "geometry": Known("", "box sphere cylinder capsule mesh ellipsoid plane empty"),
    **{kind: Known("", " ".join(sizes)) for kind, sizes in robot_elements.SIZES.items()},
    "ellipsoid": Known("", "radii"),
    "plane": Known("", "normal size"),
    "mesh": Known("", "uri scale"),
    "joint": Known(
        "name type",
        "parent child pose axis axis2 screw_thread_pitch gearbox_ratio gearbox_reference_body",
    ),
    **dict.fromkeys(
        AXES.values(), Known("", "xyz limit dynamics mimic", seen="use_parent_model_frame")
    ),
    "xyz": Known("expressed_in"),
    "limit": Known("", "lower upper effort velocity"),
    "dynamics": Known("", "damping friction spring_stiffness spring_reference"),
    "mimic": Known("joint axis", "multiplier offset reference"),
}


def read_sdf(path: str | os.PathLike[str], packages: robot_elements.Packages = None) -> Builder:
    """Return a builder of an SDF file; ``builder.report`` says what is not in it.

    If the file has one model, names are those in it; of several they begin with that of theirs,
    ``"model::link"``, as those of models in models do.
    """
    root = read_elements(path, None)
    if root.tag != "sdf":
        raise root.error(f"an SDF file is an <sdf>, this is a <{root.tag}>")
    return SdfReader(root, path, packages).read()


@dataclass(frozen=True)
class Held:
    """A <joint>: which links it is between, and where it is in the world."""

    name: str
    element: Element
    scope: Scope
    parent: str
    child: str
    at: Pose

    @property
    def acts(self) -> bool:
        """Whether its coordinate has a spring, damping or limits, or follows another."""
        return any(
            part.tag in ("limit", "dynamics", "mimic")
            for axis in self.element
            if axis.tag in AXES.values()
            for part in axis
        )


class SdfReader(RobotReader):
    """The models of an SDF file."""

    known = KNOWN
    texts = True
    sizes = robot_elements.SIZES | {"ellipsoid": ("radii",), "plane": ("size",)}

    def text(self, element: Element, key: str, default: str | None = None) -> str:
        """Return the text of an element inside."""
        inner = element.need(key) if default is None else element.find(key)
        return default or "" if inner is None else inner.text

    def read(self) -> Builder:
        """Return the builder of the file."""
        root, builder = self.root, self.builder
        holder = root.find("world") or root
        library = Library(self.packages, self.report)
        self.world = Scope(holder, Path(self.path), version_of(root), library)
        models = self.world.models
        if not models:
            raise holder.error(f"<{holder.tag}> has 0 models; one is needed")
        self.sole = len(models) == 1
        if self.sole:
            models[0].unprefix()
        builder.name = models[0].name if self.sole else holder.attributes.get("name", "") or "world"
        self.read_around(root, holder)
        self.scopes = self.world.inside()
        self.owners: dict[str, Scope] = {}
        for scope in self.scopes:
            for element in scope.element:
                if element.tag == "link" and scope is not self.world:
                    self.read_link(element, scope)
        if not builder.bodies:
            raise holder.error("the robot has no links")
        self.read_joints()
        for scope in self.scopes:
            for element in scope.element:
                if element.tag == "frame":
                    self.read_frame(element, scope)
        self.report_unit_slips()
        self.place_roots()
        return builder

    def place_roots(self) -> None:
        """Say where what no joint carries is, and that it floats unless it is static."""
        for name in self.builder.unattached():
            scope = self.owners[name]
            self.builder.root_poses[name] = self.pose_of(name)
            if not scope.is_static:
                self.builder.base = "floating"
                self.report.use("floating base")

    def pose_of(self, name: str) -> Pose:
        """Return the pose in the world of a link by its full name."""
        if name == WORLD:
            return self.world.of(WORLD, self.root)
        scope = self.owners[name]
        return scope.of(name.removeprefix(scope.prefix), scope.element)

    def read_around(self, root: Element, holder: Element) -> None:
        """Take the gravity of a world; report what else there is around models, and of them."""
        world = self.world
        for outer in {id(root): root, id(holder): holder}.values():
            for element in outer:
                if element.tag == "gravity":
                    self.builder.gravity = np.array(three(element.text, element, "<gravity>"))
                    self.report.use("gravity")
                elif element is not holder and not (outer is holder and element.tag in IN_WORLDS):
                    self.ignore(element, f"<{element.tag}> beside the model")
        for scope in world.inside()[1:]:
            model = scope.element
            for element in model:
                if element.tag == "static" and is_true(element.text) and self.sole:
                    self.ignore(
                        element, "<static> of the model: its base is fixed, its joints move"
                    )
                elif element.tag not in IN_MODELS:
                    self.ignore(element, f"<{element.tag}> of the model")
            if scope.include is not None:
                self.report.use("include")
                self.report_unread(scope.include, f"{scope.name!r}")

    def read_link(self, element: Element, scope: Scope) -> None:
        """Add the body of a <link>, and its shapes."""
        own, inertial = element.get("name"), element.find("inertial")
        name = scope.prefix + own
        self.owners[name] = scope
        self.report_unread(element, f"link {name!r}")
        self.report.use("link")
        weight = element.find("gravity")
        lifted = 0.0 if weight is None or is_true(weight.text) else 1.0
        add = functools.partial(self.builder.add_body, gravity_compensation=lifted)
        if inertial is None:
            # What the format says of a link without numbers.
            call_at(element, add, name, 1.0, None, np.eye(3))
        else:
            at, entries = scope.in_link(inertial, own), inertial.find("inertia")
            J = robot_elements.read_inertia(
                lambda key: value_of(entries, key, float(key in ("ixx", "iyy", "izz")))
            )
            J = robot_elements.inertia_in_body(at.R, J)
            mass = value_of(inertial, "mass", 1.0)
            call_at(inertial, add, name, mass, at.p, J)
            self.report.use("inertial")
        for part in element:
            if part.tag in robot_elements.GEOMETRY:
                self.read_part(part, scope, own)

    def read_part(self, part: Element, scope: Scope, own: str) -> None:
        """Add the shape of a <visual> or <collision> of a link."""
        geometry, file = part.need("geometry"), None
        at, mesh, plane = scope.in_link(part, own), geometry.find("mesh"), geometry.find("plane")
        if mesh is not None:
            file = self.find_mesh(part, mesh.need("uri").text, "model", scope.path)
        if plane is not None:
            normal = plane.find("normal")
            z = [0.0, 0.0, 1.0] if normal is None else three(normal.text, normal, "<normal>")
            at = at @ Pose(turn_z_to(np.array(z), plane), np.zeros(3))
        self.read_shape(part, scope.prefix + own, at, file, self.color_of(part))

    def color_of(self, part: Element) -> tuple[float, ...] | None:
        """Return the diffuse colour of a <visual>, less its transparency."""
        material, clear = part.find("material"), part.find("transparency")
        diffuse = None if material is None else material.find("diffuse")
        color = None if diffuse is None else self.read_color(diffuse, diffuse.text)
        if color is None or clear is None:
            return color
        share = 1.0 - number(clear.text, clear, clear.tag)
        return *color[:3], color[3] * min(max(share, 0.0), 1.0)

    # ---- joints ----------------------------------------------------------------------------

    def read_joints(self) -> None:
        """Add all joints: those of a tree, and what closes its loops."""
        every = [
            self.find_joint(element, scope)
            for scope in self.scopes
            for element in scope.element
            if element.tag == "joint"
        ]
        self.joints: dict[str, Held] = {one.name: one for one in every}
        held = [one for one in every if one.element.get("type") != GEARBOX]
        still = {WORLD}
        if not self.sole:
            still |= {name for name, scope in self.owners.items() if scope.is_static}
        for name in still - {WORLD}:
            at = self.pose_of(name)
            self.builder.attach(name, None, kind="fixed", rotation=at.R, position=at.p)
        held = [one for one in held if not {one.parent, one.child} <= still]
        tree = self.span(held, still)
        for one in held:
            if (reverse := tree.get(one.name)) is not None:
                self.read_joint(one, reverse)
        for one in held:
            if one.name not in tree:
                self.close(one)
        for one in every:
            if one.element.get("type") == GEARBOX:
                self.read_gearbox(one)

    def span(self, held: list[Held], still: set[str]) -> dict[str, bool]:
        """Return the joints of a tree that stands on what is still: which are the other way round.

        Those that act come first, so that what is cut does not act if that can be.
        """
        group = {name: name for name in (*self.owners, WORLD)}

        def leader(name: str) -> str:
            while group[name] != name:
                group[name] = name = group[group[name]]
            return name

        for name in still:
            group[name] = WORLD
        edges: dict[str, list[Held]] = {}
        for one in sorted(held, key=lambda one: not one.acts):
            a, b = leader(one.parent), leader(one.child)
            if a != b:
                group[a] = b
                for end in (one.parent, one.child):
                    edges.setdefault(end, []).append(one)
        tree: dict[str, bool] = {}
        reached = set(still)
        children = {one.child for one in held}
        # What nothing carries comes before what is in a ring; a joint of a kind that cannot be
        # taken the other way round is left out, and what it would carry floats.
        for start in (*still, *sorted(self.owners, key=lambda name: name in children)):
            waiting = [start] if start in still or start not in reached else []
            reached.add(start)
            while waiting:
                name = waiting.pop()
                for one in edges.get(name, []):
                    other = one.child if one.parent == name else one.parent
                    reverse = other == one.parent
                    kind = JOINTS[one.element.get("type")]
                    if other not in reached and (kind.name in REVERSIBLE or not reverse):
                        tree[one.name] = reverse
                        reached.add(other)
                        waiting.append(other)
        return tree

    def find_joint(self, element: Element, scope: Scope) -> Held:
        """Return which links a <joint> is between."""
        name, word = scope.prefix + element.get("name"), element.get("type")
        if word not in (*JOINTS, GEARBOX):
            raise element.error(
                f"joint {name!r}: type {word!r} is not one of {', '.join((*JOINTS, GEARBOX))}"
            )
        self.report_unread(element, f"joint {name!r}")
        parent, child = (
            scope.link_of(element.need(tag).text, element) for tag in ("parent", "child")
        )
        if child == WORLD:
            raise element.error(f"joint {name!r}: the world cannot be the child")
        return Held(name, element, scope, parent, child, scope.placed @ scope.at(element, element))

    def close(self, one: Held) -> None:
        """Add a joint that is not in the tree, as a closure."""
        kind = JOINTS[one.element.get("type")]
        frames = []
        for end, name in (("parent", one.parent), ("child", one.child)):
            at = self.pose_of(name).inv() @ one.at
            frame = f"{one.name}:{end}"
            on = None if name == WORLD else name
            call_at(one.element, self.builder.add_frame, frame, on, at.R, at.p)
            frames.append(frame)
        values = self.read_axes(one, kind, one.at, one.at)
        keys = ("axis", "second_axis") if has_numbers(kind) else ()
        shared = {key: tuple(values[key].tolist()) for key in keys if key in values}
        pitch = values.get("pitch", 0.0)
        closure = call_at(one.element, Closure, *frames, closing(kind), pitch=pitch, **shared)
        self.builder.closures.append(closure)
        self.report.use("joint")
        if one.acts:
            lost = "limits, dynamics and <mimic>"
            self.ignore(one.element, f"{lost} of joint {one.name!r}, which closes a loop")

    def read_joint(self, one: Held, reverse: bool = False) -> None:
        """Add a joint of the tree."""
        element, name, kind = one.element, one.name, JOINTS[one.element.get("type")]
        parent, child = (one.child, one.parent) if reverse else (one.parent, one.child)
        above, below = self.pose_of(parent), self.pose_of(child)
        own = below.inv() @ one.at
        at = above.inv() @ below
        values: dict[str, Any] = {}
        if kind.anchored:
            values["anchor"] = own.p
        elif kind.rotates and np.any(np.abs(own.p) > 1e-12):
            word = element.get("type")
            raise element.error(
                f"joint {name!r}: the origin of the child must be at a {word} joint; move the link"
            )
        values |= self.read_axes(one, kind, own, below)
        if reverse and "axis" in values:
            values["axis"] = -values["axis"]
        elements = {key: element.find(tag) for key, tag in AXES.items()}
        axes = {key: axis for key, axis in elements.items() if axis is not None}
        values |= self.read_numbers(axes, name, kind)
        if kind.nq == 1 and "axis" in axes:
            values |= self.read_mimic(axes["axis"], one)
            if "mimic" in values:
                limit = axes["axis"].find("limit")
                self.report_follower_limits(limit, name, values["mimic"].joint)
        holder = None if parent == WORLD else parent
        call_at(
            element, self.builder.attach, child, holder, joint=name, kind=kind, rotation=at.R,
            position=at.p, **values,
        )  # fmt: skip
        self.report.use("joint")

    def read_axes(self, one: Held, kind: JointKind, own: Pose, below: Pose) -> dict[str, Any]:
        """Return the axes and the pitch of a joint, which `own` is in a link, that is `below`."""
        element, values = one.element, dict[str, Any]()
        elements = {key: element.find(tag) for key, tag in AXES.items()}
        axes = {key: axis for key, axis in elements.items() if axis is not None}
        if kind.has_second_axis and len(axes) < len(AXES):
            word = element.get("type")
            raise element.error(f"joint {one.name!r}: a {word} joint has an <axis> and an <axis2>")
        for key, axis in axes.items():
            if key == "axis" or kind.has_second_axis:
                values[key] = self.read_direction(axis, one.scope, own, below)
        if has_numbers(kind) and "axis" not in values:
            values["axis"] = matmul(own.R, np.array([0.0, 0.0, 1.0]))
        if kind.has_pitch:
            values["pitch"] = value_of(element, "screw_thread_pitch", None) / (2.0 * np.pi)
        return values

    def read_direction(self, axis: Element, scope: Scope, own: Pose, below: Pose) -> Vec3:
        """Return an axis in axes of the child."""
        vector, flag = axis.find("xyz"), axis.find("use_parent_model_frame")
        xyz, frame = [0.0, 0.0, 1.0], ""
        if vector is not None:
            xyz = three(vector.text, vector, "<xyz>")
            frame = vector.attributes.get("expressed_in", "").strip()
        in_model = bool(scope.version) and scope.version < AXES_OF_JOINTS
        if not frame and (in_model if flag is None else is_true(flag.text)):
            frame = MODEL
        R = own.R if not frame else matmul(below.R.T, scope.of(frame, axis).R)
        return matmul(R, np.array(xyz))

    def read_gearbox(self, one: Held) -> None:
        """Add a ratio of the angles of parent and child in a third link, if hinges carry them."""
        name, element = one.name, one.element
        base = one.scope.link_of(element.need("gearbox_reference_body").text, element)
        ratio = value_of(element, "gearbox_ratio", 1.0)
        arms, below = {}, self.pose_of(one.child)
        for (key, tag), link in zip(AXES.items(), (one.parent, one.child), strict=True):
            axis = element.find(tag) or element.need("axis")
            own = self.read_direction(axis, one.scope, below.inv() @ one.at, below)
            hinge = self.hinge_between(base, link, matmul(below.R, own))
            if hinge is None:
                self.ignore(element, f"joint {name!r}: no hinge between {base!r} and {link!r}")
                return
            arms[hinge[0]] = hinge[1] * (ratio if key == "axis" else 1.0)
        self.builder.closures.append(call_at(element, Coupling, arms))
        self.report.use("joint")

    def hinge_between(self, base: str, link: str, way: Vec3) -> tuple[str, float] | None:
        """Return the hinge by which a link turns in another about a direction, and its sense."""
        for joint in self.builder.joints.values():
            pair = (joint.parent or WORLD, joint.child)
            if joint.kind.spins and joint.mimic is None and pair in ((base, link), (link, base)):
                axis = matmul(self.pose_of(joint.child).R, np.array(joint.screw.axis))
                along = float(np.sum(axis * way) / np.sqrt(np.sum(way * way)))
                if abs(along) > 1.0 - 1e-6:
                    sense = 1.0 if pair == (base, link) else -1.0
                    return joint.name, sense * np.sign(along)
        return None

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

    def read_mimic(self, axis: Element, one: Held) -> dict[str, Mimic]:
        """Return what a joint follows: ``multiplier * (q_other - reference) + offset``."""
        follows = axis.find("mimic")
        if follows is None:
            return {}
        joint, which = follows.get("joint"), follows.attributes.get("axis", "axis")
        leader = self.followed(joint, one)
        if which != "axis" or leader is None:
            self.ignore(follows, f"<mimic> of {which} of joint {joint!r}")
            return {}
        multiplier, offset, reference = (
            value_of(follows, tag, default)
            for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        self.report.use("mimic")
        return {"mimic": Mimic(leader, multiplier, offset - multiplier * reference)}

    def followed(self, joint: str, one: Held) -> str | None:
        """Return the full name of a joint that another names, None if it is not there."""
        prefix, _, own = joint.rpartition(INSIDE)
        scope: Scope | None = one.scope
        for part in prefix.split(INSIDE) if prefix else ():
            scope = next((m for m in scope.models if m.name == part), None) if scope else None
        name = "" if scope is None else scope.prefix + own
        return name if name in self.joints else None

    def read_frame(self, element: Element, scope: Scope) -> None:
        """Add a <frame> on the link that carries it."""
        own = element.get("name")
        name, on = scope.prefix + own, scope.link_of(own, element)
        at = self.pose_of(on).inv() @ (scope.placed @ scope.at(element, element))
        call_at(element, self.builder.add_frame, name, None if on == WORLD else on, at.R, at.p)
        self.report.use("frame")


def closing(kind: JointKind) -> str:
    """Return the kind of joint that holds frames together, in place of one."""
    return "revolute" if kind.name == "continuous" else kind.name


def turn_z_to(normal: Vec3, plane: Element) -> Any:
    """Return a rotation (3, 3) that takes the z axis to a direction."""
    length = float(np.sqrt(np.sum(normal * normal)))
    if length == 0.0:
        raise plane.error("the <normal> of a plane is zero")
    z = normal / length
    x = np.eye(3)[int(np.argmin(np.abs(z)))]
    y = np.cross(z, x)
    y = y / np.sqrt(np.sum(y * y))
    return np.eye(3) if z[2] == 1.0 else np.stack([np.cross(y, z), y, z], axis=1)


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
