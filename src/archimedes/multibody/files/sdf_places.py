"""Where things are in an SDF file: poses through chains of ``relative_to``, and who carries them.

Poses are "x y z roll pitch yaw" in m and rad, R = Rz(yaw) Ry(pitch) Rx(roll), or
"x y z qx qy qz qw"; a link's is in the model, a joint's in its child, unless ``relative_to`` names
another link, joint or frame. Names of joints may be those of links in old files, and mean these.
Source: http://sdformat.org/spec, version 1.7 and later.
"""

from __future__ import annotations

import numpy as np

from archimedes.multibody.files.placements import by_angles, by_quaternion
from archimedes.multibody.models.spatial_algebra import Pose, compose, inverse
from archimedes.numbers_in_text import number
from archimedes.xml_elements import Element

__all__ = ["MODEL", "Places", "is_identity", "pose_in"]

IDENTITY = Pose(np.eye(3), np.zeros(3))
MODEL, WORLD = "__model__", "world"


class Places:
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
        return self.model if name == MODEL else self.at(self.found(name, asker), asker)

    def at(self, element: Element, asker: Element) -> Pose:
        """Return the pose of a link, joint or frame."""
        if id(element) not in self.known:
            name = f"<{element.tag}> {element.get('name')!r}"
            if name in self.waiting:
                raise asker.error(f"the poses of {self.waiting} are relative to each other")
            self.waiting.append(name)
            base = self.of(named(element.find("pose")) or usual_base(element), element)
            self.waiting.remove(name)
            self.known[id(element)] = compose(base, pose_in(element))
        return self.known[id(element)]

    def inside(self, part: Element, link: str) -> Pose:
        """Return the pose in a link of a part of it, in which it is unless it says otherwise."""
        base = named(part.find("pose"))
        if not base:
            return pose_in(part)
        there = compose(self.of(base, part), pose_in(part))
        return compose(inverse(self.of(link, part)), there)

    def link_of(self, name: str, asker: Element, steps: int = 100) -> str:
        """Return the link that carries a link, frame or joint: the world, or one of the model."""
        if name == WORLD or (name != MODEL and self.found(name, asker).tag == "link"):
            return name
        if not steps:
            raise asker.error(f"{name!r} is attached to frames that are attached to each other")
        if name == MODEL:
            on = self.canonical
        else:
            element = self.found(name, asker)
            on = usual_base(element) if element.tag == "joint" else attached(element)
        return self.link_of(on, asker, steps - 1)

    def found(self, name: str, asker: Element) -> Element:
        """Return the link, joint or frame of a name."""
        if name not in self.elements:
            raise asker.error(f"there is no link, joint or frame {name!r}")
        return self.elements[name]


def usual_base(element: Element) -> str:
    """Return what a pose is in where the file does not say."""
    return element.need("child").text if element.tag == "joint" else attached(element)


def attached(element: Element) -> str:
    """Return what a frame is attached to; a link is to its model."""
    return element.attributes.get("attached_to", "").strip() or MODEL


def named(pose: Element | None) -> str:
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
        raise pose.error(
            f"<pose> {pose.text!r} must be six numbers: x y z roll pitch yaw, or seven with "
            'rotation_format="quat_xyzw"'
        )
    place = np.array([number(word, pose, "pose") for word in words[:3]])
    if form == "quat_xyzw":
        return Pose(by_quaternion(words[3:], pose, "the quaternion of <pose>"), place)
    angles = [number(word, pose, "pose") for word in words[3:]]
    if pose.attributes.get("degrees", "false") in ("true", "1"):
        angles = np.deg2rad(angles).tolist()
    return Pose(by_angles(angles), place)


def is_identity(pose: Pose) -> bool:
    """Whether a pose leaves all where it is."""
    return bool(np.all(np.eye(3) == pose.R) and not np.any(pose.p))
