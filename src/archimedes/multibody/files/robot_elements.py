"""What the readers of URDF and SDF files share: poses, shapes, and reports of what is not read.

A report also names numbers that look like those of other units: lengths in mm, inertias in kg mm^2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Report
from archimedes.multibody.parts.geometry import make_shape
from archimedes.portable_numpy import cos, matmul, norm, sin
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.spatial.axis_rotations import AxisRotation, rotation_matrix
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.xml_elements import Element, number

#: Where the packages are that paths in a file name: a folder, several, or folders by name.
Packages: TypeAlias = (
    "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any] | None"
)


def read_origin(element: Element) -> Pose:
    """Return the pose, child in parent, of an <origin>."""
    at = element.find("origin")
    if at is None:
        return IDENTITY
    if "quat_xyzw" in at.attributes:
        if "rpy" in at.attributes:
            raise at.error("<origin> has rpy and quat_xyzw; one of them is the rotation")
        R = by_quaternion(at.attributes["quat_xyzw"].split(), at, "quat_xyzw")
    else:
        R = by_angles(triple(at, "rpy", [0.0, 0.0, 0.0]))
    return Pose(R, np.array(triple(at, "xyz", [0.0, 0.0, 0.0])))


def by_angles(angles: Sequence[float]) -> np.ndarray:
    """Return the rotation (3, 3), child to parent, of roll, pitch and yaw about fixed axes."""
    c, s = cos(np.array(angles)).tolist(), sin(np.array(angles)).tolist()
    X, Y, Z = (rotation_matrix(AxisRotation(k, c[k], s[k])) for k in range(3))
    return matmul(Z, Y, X)


def by_quaternion(words: list[str], element: Element, what: str) -> np.ndarray:
    """Return the rotation (3, 3), child to parent, of a quaternion written x y z w."""
    x, y, z, w = ([number(word, element, what) for word in words] + [np.nan] * 4)[:4]
    size = float(norm([w, x, y, z]))
    if len(words) != 4 or abs(size - 1.0) > 1e-3:
        raise element.error(f"{what} {' '.join(words)!r} must be four numbers x y z w of length 1")
    return quaternion_to_dcm(np.array([w, x, y, z]) / size).T


def inertia_in_body(R: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return an inertia (3, 3) given in axes that R turns into the body's, exactly symmetric."""
    J = J if np.all(np.eye(3) == R) else matmul(R, J, R.T)
    return 0.5 * J + 0.5 * J.T


def read_inertia(read: Callable[[str], float]) -> np.ndarray:
    """Return the matrix (3, 3) of the six numbers of an <inertia>."""
    xx, xy, xz, yy, yz, zz = map(read, ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def triple(element: Element, key: str, default: list[float]) -> list[float]:
    """Return an attribute of three numbers."""
    if key not in element.attributes:
        return default
    words = element.attributes[key].split()
    if len(words) != 3:
        raise element.error(f"{key}={element.attributes[key]!r} must be three numbers")
    return [number(word, element, key) for word in words]


def call_at(element: Element, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a call gives; its errors say where in the file the element is."""
    try:
        return call(*args, **kwargs)
    except ValueError as error:
        raise element.error(str(error)) from None


GEOMETRY = ("visual", "collision")
#: The numbers of each shape: attributes of its element in URDF, elements inside it in SDF.
SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}


def read_shape(
    builder: Builder,
    part: Element,
    body: str,
    at: Pose,
    file: Path | None,
    read: Callable[[Element, str], str],
) -> None:
    """Add the shape of a <visual> or <collision>; `read` gives the text of one of its numbers.

    `file` is that of a mesh.
    """
    holder = part.find("geometry")
    shapes = [] if holder is None else list(holder)
    kind = shapes[0].tag if len(shapes) == 1 else ""
    if kind not in (*SIZES, "mesh"):
        builder.report.ignored.append(
            f"{part.place}: <{part.tag}> of {body!r} without a known shape"
        )
        return
    words = " ".join(read(shapes[0], key) for key in SIZES.get(kind, ("scale",))).split()
    size = [number(word, shapes[0], kind) for word in words]
    shape = call_at(shapes[0], make_shape, body, part.tag, kind, size, at.R, at.p, file)
    builder.geometry = (*builder.geometry, shape)
    if kind != "mesh" or file is not None:
        builder.report.use(part.tag)


def mesh_path(name: str, path: Path, packages: Packages) -> Path | None:
    """Return where a mesh is: package://, file:// or relative to the URDF file."""
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        if isinstance(packages, Mapping):
            roots = [Path(packages[package])] if package in packages else []
        else:
            roots = [folder / package for folder in (*folders(packages), *path.resolve().parents)]
        candidates = [root / rest for root in roots]
    else:
        candidates = [path.parent / name.removeprefix("file://")]
    return next((file for file in candidates if is_file(file)), None)


def folders(packages: Packages) -> list[Path]:
    """Return the folders that hold packages: none, one, or several."""
    several: Any = packages if isinstance(packages, (list, tuple)) else [packages]
    return [Path(os.fspath(folder)) for folder in several if folder is not None]


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have does not."""
    try:
        return path.is_file()
    except OSError:
        return False


class Known(NamedTuple):
    """What is read of an element, names with blanks between: attributes, and elements inside.

    `seen` are elements that are for the eye alone: neither read nor reported.
    """

    attributes: str = ""
    elements: str = ""
    seen: str = ""


def report_unread(
    element: Element, table: Mapping[str, Known], report: Report, of: str, texts: bool = False
) -> None:
    """Add to a report what is in an element, which is `of` this, and not in the table.

    What is inside an unknown element is not looked at, nor are attributes without a value. `texts`
    says that numbers may be texts of elements.
    """
    known = table.get(element.tag, Known())
    if element.text and not texts:
        report.ignored.append(f"{element.place}: text in <{element.tag}> of {of}")
    for key, value in element.attributes.items():
        if key not in known.attributes.split() and value.strip() and not key.startswith("xmlns"):
            report.ignored.append(f"{element.place}: {key} in <{element.tag}> of {of}")
    for part in element:
        if part.tag in known.elements.split():
            report_unread(part, table, report, of, texts)
        elif part.tag not in known.seen.split():
            report.ignored.append(f"{part.place}: <{part.tag}> of {of}")


#: A body whose radius of gyration is so many times the size of the robot is suspicious, as is a
#: robot with a joint or a centre of mass so many m from what carries it.
TOO_WIDE, TOO_FAR = 20.0, 10.0


def report_unit_slips(builder: Builder, where: str) -> None:
    """Add to the report what is physical but unlikely; it is taken as it stands."""
    lengths = {f"joint {j.name!r}": size(j.position) for j in builder.joints.values()}
    lengths |= {f"the centre of {b.name!r}": size(b.com) for b in builder.bodies.values()}
    for what, length in lengths.items():
        if length > TOO_FAR:
            builder.report.approximated.append(
                f"{where}: {what} is {length:.4g} m away from what carries it, which looks like "
                "mm; taken as m"
            )
    for shape in builder.geometry:
        if shape.kind not in ("plane", "mesh") and max(shape.size) > TOO_FAR:
            builder.report.approximated.append(
                f"{where}: a {shape.kind} of {shape.body!r} is {max(shape.size):.4g} m large, "
                "which looks like mm; taken as m"
            )
    extent = max([0.05, *lengths.values()])
    for body in builder.bodies.values():
        if body.mass > 0.0:
            wide = float(np.sqrt(np.abs(np.asarray(body.inertia)).max()) / np.sqrt(body.mass))
            if wide > TOO_WIDE * extent:
                builder.report.approximated.append(
                    f"{where}: {body.name!r} of {body.mass:.4g} kg has the inertia of a body that "
                    f"is {wide:.3g} m wide, on a robot whose parts are {extent:.3g} m apart: it "
                    "looks like kg mm^2; taken as kg m^2"
                )


def size(x: object) -> float:
    """Return the length of a vector."""
    return float(np.sqrt(np.sum(np.square(np.asarray(x, dtype=float)))))


def follower_limits(limit: Element, name: str, followed: str) -> str:
    """Return what a report says of the limits of a joint that has no coordinate of its own."""
    return f"{limit.place}: <{limit.tag}> of joint {name!r}: that of {followed!r}, which it follows"


def check_one_root(builder: Builder, root: Element) -> None:
    """Raise unless one link carries all others."""
    loose = builder.unattached()
    if not builder.bodies:
        raise root.error("a robot without links")
    if len(loose) > 1:
        raise root.error(f"{len(loose)} links are the child of no joint: {loose}; one is the root")
