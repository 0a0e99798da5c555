"""Numbers, rotations and meshes as the texts of robot files, such that reading restores the bits.

A rotation is written as angles or as a quaternion, whichever the format has. Where these restore
its nine numbers to the last bit, that is all; where they cannot (a product of rotations has nine
rounding errors, three angles have three), the writer adds the matrix in a place that other tools
skip, and readers take it in place of what it agrees with to `AGREES`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from archimedes.multibody.files.robot_elements import by_angles
from archimedes.multibody.parts.geometry import Shape, Surface, triangles_of
from archimedes.portable_numpy import cos, sin
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion, quaternion_to_dcm
from archimedes.spatial.axis_rotations import round_rotation
from archimedes.typing import ArrayLike, Matrix

#: What stands for no limit where a format takes finite numbers only.
UNLIMITED = float(np.finfo(float).max)
#: A matrix beside angles or a quaternion is that rotation if it agrees with it to this.
AGREES = 1e-12
#: Characters that no XML file can have.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def text_of(values: ArrayLike) -> str:
    """Return numbers as text from which reading restores every bit.

    >>> text_of([0.1, -2.0, 1e-30])
    '0.1 -2 1e-30'
    """
    numbers = np.ravel(np.asarray(values, dtype=float)).tolist()
    return " ".join(repr(x).removesuffix(".0") for x in numbers)


def bounded(values: ArrayLike) -> np.ndarray:
    """Return limits with the largest finite numbers in place of infinite ones."""
    return np.clip(np.asarray(values, dtype=float), -UNLIMITED, UNLIMITED)


def unbounded(x: float) -> float:
    """Return a limit read from a file: infinite where it is the largest finite number."""
    return math.copysign(math.inf, x) if abs(x) >= UNLIMITED else x


def angles_of(R: Matrix, rounded: bool = True) -> tuple[np.ndarray, bool]:
    """Return roll, pitch and yaw of a rotation (3, 3), and whether they restore all its bits.

    A `rounded` one is kept without what rounding has left of zeros (`round_rotation`).
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    near = np.array([roll, pitch, yaw])

    def keeps(value: float, entry: float) -> bool:
        return value == entry or (rounded and abs(value - entry) < 1e-15 and entry == round(value))

    # The numbers that a person or a program wrote are among the short ones, or next to ours. Two
    # entries say which of these a roll or yaw can be, one which pitch.
    rolls, pitches, yaws = (
        {t: (float(cos(t)), float(sin(t))) for t in (*short_numbers(x), *neighbours(x, 3))}
        for x in near.tolist()
    )
    for pitch, (cp, sp) in pitches.items():
        if not keeps(-sp, R[2, 0]):
            continue
        first, last = (
            [t for t, (c, s) in turns.items() if keeps(c * cp, C) and keeps(s * cp, S)]
            for turns, C, S in ((rolls, R[2, 2], R[2, 1]), (yaws, R[0, 0], R[1, 0]))
        )
        for roll, yaw in itertools.product(first, last):
            if restores(by_angles([roll, pitch, yaw]), R, rounded):
                return np.array([roll, pitch, yaw]), True
    return near, False


def short_numbers(x: float) -> list[float]:
    """Return numbers of few digits near one."""
    return [y for y in (round(x, digits) for digits in (4, 8, 15)) if abs(y - x) < 1e-7]


def quaternion_of(R: Matrix, rounded: bool = True) -> tuple[np.ndarray, bool]:
    """Return the quaternion of a rotation (3, 3), and whether it restores all its bits."""
    near = dcm_to_quaternion(np.asarray(R).T)
    for scale in range(3):
        for q in itertools.product(*(neighbours(x, scale) for x in near.tolist())):
            if restores(quaternion_to_dcm(np.array(q)).T, R, rounded):
                return np.array(q), True
    return near, False


def neighbours(x: float, count: int) -> list[float]:
    """Return a number and those within a count of units in its last place; of zero itself."""
    return [x] if x == 0.0 else [x + k * math.ulp(x) for k in range(-count, count + 1)]


def restores(candidate: Matrix, R: Matrix, rounded: bool = True) -> bool:
    """Return whether a rotation is another, as it is or as a model keeps it."""
    return same_bits(candidate, R) or (rounded and same_bits(round_rotation(candidate), R))


def same_bits(a: Matrix, b: Matrix) -> bool:
    """Return whether numbers are the same to the last bit, the sign of zero included."""
    return np.ascontiguousarray(a, float).tobytes() == np.ascontiguousarray(b, float).tobytes()


def element(parent: ElementTree.Element, tag: str, **attributes: str | None) -> ElementTree.Element:
    """Add an element with the attributes that are not None; a final _ of a name is dropped."""
    given = {key.rstrip("_"): value for key, value in attributes.items() if value is not None}
    return ElementTree.SubElement(parent, tag, given)


def xml_text(root: ElementTree.Element) -> str:
    """Return an XML document, indented."""
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def check_names(names: Iterable[str], what: str) -> None:
    """Raise if a name has characters that no XML file can have."""
    for name in names:
        if FORBIDDEN.search(name):
            raise ValueError(f"{what} {name!r} has characters that no XML file has; rename it")


class MeshFiles:
    """Meshes that go into files beside that of the robot, in a folder named after it."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent / f"{path.stem}_meshes"
        self.texts: dict[str, str] = {}
        self.names: dict[object, str] = {}

    def add(self, shape: Shape) -> str | None:
        """Return the path, relative to the robot's file, of a mesh as an OBJ file.

        None if it is no surface: it has fewer than four vertices.
        """
        key = shape.surface or shape.file
        if key not in self.names:
            own = shape.surface
            surface = own if isinstance(own, Surface) else surface_of_file(shape)
            if len(surface.vertices) < 4:  # which MuJoCo refuses
                return None
            name = f"mesh{len(self.names)}.obj"
            self.names[key] = f"{self.folder.name}/{name}"
            self.texts[name] = obj_text(surface)
        return self.names[key]

    def write(self) -> None:
        """Write the files."""
        for name, text in self.texts.items():
            self.folder.mkdir(exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8", newline="\n")


def surface_of_file(shape: Shape) -> Surface:
    """Return the triangles of the file of a mesh."""
    mesh = triangles_of(shape, "it cannot be written")
    return Surface(mesh.vertices, mesh.faces)


def obj_text(surface: Surface) -> str:
    """Return triangles as an OBJ file."""
    vertices = [f"v {text_of(v)}" for v in surface.vertices]
    faces = [f"f {a} {b} {c}" for a, b, c in (surface.triangles + 1).tolist()]
    return "\n".join([*vertices, *faces, ""])


def uniform(values: Sequence[float] | np.ndarray) -> bool:
    """Return whether all numbers are the same."""
    return len({*np.ravel(values).tolist()}) <= 1
