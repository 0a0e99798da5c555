"""Names and poses in SDF files: models in worlds and in models, from the file or included.

A scope is a world or a model. Names are looked up in it, ``a::b`` in the model a inside it. A link
is in its model, a joint in its child, a frame in what it is attached to, unless ``relative_to``
names another; so is a model in what is around it, or that of its frames that ``placement_frame``
names. Source: http://sdformat.org/tutorials, "Pose Frame Semantics", "Composition".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from archimedes.multibody.files import robot_elements
from archimedes.multibody.models.builder_parts import Report
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.xml_elements import MOST, Element, number, read_elements

MODEL, WORLD, INSIDE = "__model__", "world", "::"
VERSION = re.compile("[0-9]+")
#: What has a name and a pose. Where two share a name, that of the last is meant.
NAMED = ("joint", "frame", "link")
#: Files that include each other may not do so more often than this, one in another.
DEEPEST = 20


class Included(NamedTuple):
    """A model of another file: its element, that file, and the version of the format."""

    model: Element
    path: Path
    version: list[int]


class Library:
    """Files that others include, each read once."""

    def __init__(self, packages: robot_elements.Packages, report: Report) -> None:
        self.packages, self.report = packages, report
        self.files: dict[Path, tuple[Included, int]] = {}
        self.total = 0

    def ignore(self, element: Element, what: str) -> None:
        """Report what is not in the model."""
        self.report.ignored.append(f"{element.place}: {what}")

    def find(self, include: Element, path: Path) -> Included | None:
        """Return the model that an <include> of a file names, None if it is not found."""
        uri = include.need("uri").text
        found = self.locate(uri, path)
        if found is None:
            hint = "nothing is fetched; packages= says where model:// is"
            self.ignore(include, f"<include> of {uri!r}, which was not found; {hint}")
            return None
        if found not in self.files:
            root = read_elements(found, None)
            models = [e for e in root if e.tag == "model"] if root.tag == "sdf" else []
            if len(models) != 1:
                raise include.error(f"{uri!r} has {len(models)} models; an <include> takes one")
            self.files[found] = Included(models[0], found, version_of(root)), count(models[0])
        included, size = self.files[found]
        self.total += size
        if self.total > MOST:
            raise include.error(f"more than {MOST} elements are included; too much for a model")
        return included

    def locate(self, uri: str, path: Path) -> Path | None:
        """Return the file that a URI names, of a folder the file of its youngest version."""
        scheme, _, name = uri.strip().rpartition("://")
        if scheme in ("model", "package", "gz", "ign"):
            package, _, rest = name.partition("/")
            roots = robot_elements.package_folders(package, path, self.packages)
            candidates = [root / rest for root in roots]
        else:
            candidates = [path.parent / name] if scheme in ("", "file") else []
        files = (model_file(each) for each in candidates)
        return next((file for file in files if file is not None), None)


class Scope:
    """A world or a model, with the names and poses of what is in it."""

    def __init__(
        self,
        element: Element,
        path: Path,
        version: list[int],
        library: Library,
        parent: Scope | None = None,
        include: Element | None = None,
        depth: int = 0,
    ) -> None:
        self.element, self.path, self.version, self.parent = element, path, version, parent
        self.library, self.include, self.depth = library, include, depth
        self.known: dict[int, Pose] = {}
        self.waiting: list[str] = parent.waiting if parent else []
        own = None if include is None else include.find("name")
        self.name = element.attributes.get("name", "") if own is None else own.text
        self.merged = include is not None and is_true(include.attributes.get("merge", ""))
        self.models: list[Scope] = []
        self.names: dict[str, tuple[Element, Scope]] = {}
        self.prefix: str = "" if parent is None else parent.prefix
        if parent is not None and not self.merged:
            self.prefix += self.name + INSIDE
        for part in element:
            self.add_models(part)
        taken: set[str] = set()
        for model in self.models:
            model.rename(taken)
        for inner in self.models:
            self.names |= inner.names if inner.merged else {inner.name: (inner.element, inner)}
        for tag in NAMED:
            self.names |= {e.get("name"): (e, self) for e in element if e.tag == tag}

    def add_models(self, part: Element) -> None:
        """Add the model that an element is or includes."""
        library = self.library
        if part.tag == "model":
            inner = Scope(part, self.path, self.version, library, self, None, self.depth)
            self.models.append(inner)
        elif part.tag == "include":
            if self.depth >= DEEPEST:
                raise part.error(f"more than {DEEPEST} files include each other")
            found = library.find(part, self.path)
            if found is not None:
                self.models.append(Scope(*found, library, self, part, self.depth + 1))

    def rename(self, taken: set[str]) -> None:
        """Take a name that no model before has, as simulators do, and enter it."""
        own, number = self.name, 0
        while self.name in taken:
            self.name = f"{own}_{number}"
            number += 1
        taken.add(self.name)
        if self.name != own and not self.merged:
            line = f"{self.element.place}: a second model {own!r} is {self.name!r} here"
            self.library.report.approximated.append(line)
            assert self.parent is not None
            old = self.prefix
            for scope in self.inside():
                scope.prefix = self.parent.prefix + self.name + INSIDE + scope.prefix[len(old) :]

    def unprefix(self) -> None:
        """Leave the name of the model out of those of what is in it."""
        for scope in reversed(self.inside()):
            scope.prefix = scope.prefix.removeprefix(self.prefix)

    # ---- what it says of itself --------------------------------------------------------------

    @property
    def place(self) -> Element:
        """The element that says where the model is: an <include>, or its own."""
        own = self.include
        return self.element if own is None or own.find("pose") is None else own

    @property
    def placement(self) -> str:
        """The frame of the model that its pose is of, "" for its own."""
        inner = None if self.include is None else self.include.find("placement_frame")
        own = self.element.attributes.get("placement_frame", "")
        return (own if inner is None else inner.text).strip()

    @property
    def is_static(self) -> bool:
        """Whether the model stands still, or one around it."""
        said = [e for h in (self.include, self.element) if h for e in h if e.tag == "static"]
        own = bool(said) and is_true(said[0].text)
        return own or (self.parent is not None and self.parent.is_static)

    @property
    def canonical(self) -> str:
        """The name of the link that carries the frame of the model, "" if it has none."""
        links = [e.get("name") for e in self.element if e.tag == "link"]
        nested = [f"{m.name}{INSIDE}{m.canonical}" for m in self.models if m.canonical]
        own = self.element.attributes.get("canonical_link", "").strip()
        return own or next(iter([*links, *nested]), "")

    def inside(self) -> list[Scope]:
        """Return this and all models inside, in the order of the file."""
        return [self] + [scope for model in self.models for scope in model.inside()]

    # ---- poses -------------------------------------------------------------------------------

    @property
    def placed(self) -> Pose:
        """The pose of the model in the world."""
        return IDENTITY if self.parent is None else self.parent.placed @ self.offset

    @property
    def offset(self) -> Pose:
        """The pose of the model in the scope around it."""
        assert self.parent is not None
        if id(self) not in self.known:
            with_name = f"<model> {self.name!r}"
            self.begin(with_name, self.element)
            around = pose_base(self.place.find("pose"))
            base = self.parent.local(around, self.place) if around else IDENTITY
            at = base @ pose_in(self.place)
            if self.placement:
                at = at @ self.local(self.placement, self.place).inv()
            self.known[id(self)] = at
            self.waiting.remove(with_name)
        return self.known[id(self)]

    def begin(self, name: str, asker: Element) -> None:
        """Note that a pose is being found, which is not there yet."""
        if name in self.waiting:
            raise asker.error(f"the poses of {self.waiting} are relative to each other")
        self.waiting.append(name)

    def of(self, name: str, asker: Element) -> Pose:
        """Return the pose in the world of what has this name; `asker` is who asks."""
        return IDENTITY if name == WORLD else self.placed @ self.local(name, asker)

    def local(self, name: str, asker: Element) -> Pose:
        """Return the pose in this scope of what has this name."""
        if name == MODEL:
            return IDENTITY
        if name == WORLD:
            return self.placed.inv()
        element, scope = self.find(name, asker)
        at = IDENTITY if element.tag == "model" else scope.at(element, asker)
        while scope is not self and scope.parent is not None:
            at, scope = scope.offset @ at, scope.parent
        return at

    def at(self, element: Element, asker: Element) -> Pose:
        """Return the pose, in this scope, of a link, joint or frame of its own."""
        if id(element) not in self.known:
            name = f"<{element.tag}> {element.get('name')!r}"
            self.begin(name, asker)
            base = self.local(pose_base(element.find("pose")) or usual_base(element), element)
            self.waiting.remove(name)
            self.known[id(element)] = base @ pose_in(element)
        return self.known[id(element)]

    def in_link(self, part: Element, link: str) -> Pose:
        """Return the pose in a link of a part of it, in which it is unless it says otherwise."""
        base = pose_base(part.find("pose"))
        if not base:
            return pose_in(part)
        return self.local(link, part).inv() @ (self.local(base, part) @ pose_in(part))

    # ---- names -------------------------------------------------------------------------------

    def link_of(self, name: str, asker: Element, steps: int = 100) -> str:
        """Return the full name of the link that carries a link, frame or joint, or the world's."""
        if not steps:
            raise asker.error(f"{name!r} is attached to frames that are attached to each other")
        if name == WORLD or (name == MODEL and self.parent is None):
            return WORLD
        element, scope = (self.element, self) if name == MODEL else self.find(name, asker)
        if element.tag == "link":
            return scope.prefix + element.get("name")
        on = scope.canonical if element.tag == "model" else carrier_of(element)
        if element.tag == "model" and not on:
            raise asker.error(f"model {scope.name!r} has no links")
        return scope.link_of(on, asker, steps - 1)

    def find(self, name: str, asker: Element) -> tuple[Element, Scope]:
        """Return the link, joint, frame or model of a name, and the scope that it is in."""
        if name in self.names:
            return self.names[name]
        first, _, rest = name.partition(INSIDE)
        if rest and first in self.names:
            element, scope = self.names[first]
            if element.tag == "model":
                return (element, scope) if rest == MODEL else scope.find(rest, asker)
        raise asker.error(f"there is no link, joint or frame {name!r}")


def model_file(path: Path) -> Path | None:
    """Return the file of a model, of a folder that of its youngest version; None without one."""
    config, names = path / "model.config", ["model.sdf"]
    if robot_elements.is_file(config):
        entries = [e for e in read_elements(config, None) if e.tag == "sdf"]
        names = [e.text for e in sorted(entries, key=version_of, reverse=True)]
    candidates = [path, *(path / name for name in names)]
    return next((file for file in candidates if robot_elements.is_file(file)), None)


def carrier_of(element: Element) -> str:
    """Return the name of what carries a joint or a frame."""
    return usual_base(element) if element.tag == "joint" else attachment(element)


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
    if is_true(pose.attributes.get("degrees", "false")):
        angles = np.deg2rad(angles).tolist()
    return Pose(robot_elements.by_angles(angles), position)


def version_of(element: Element) -> list[int]:
    """Return the version of the format that an element states."""
    return [int(word) for word in VERSION.findall(element.attributes.get("version", ""))]


def is_true(text: str) -> bool:
    """Return whether a text says yes."""
    return text.strip().lower() in ("true", "1")


def count(element: Element) -> int:
    """Return the number of elements in an element, with itself."""
    return 1 + sum(map(count, element))
