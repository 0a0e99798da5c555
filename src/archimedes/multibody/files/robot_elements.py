"""What the readers of URDF and SDF files share: poses, shapes, and reports of what is not read.

A report also names numbers that look like those of other units: lengths in mm, inertias in kg mm^2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.multibody.files.plausibility import find_slips
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.parts.geometry import make_color, make_shape
from archimedes.portable_numpy import cos, matmul, norm, sin
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.spatial.axis_rotations import AxisRotation, rotation_matrix
from archimedes.spatial.spatial_algebra import Pose
from archimedes.xml_elements import Element, number

#: Where the packages are that paths in a file name: a folder, several, or folders by name.
Packages: TypeAlias = (
    "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any] | None"
)
GEOMETRY = ("visual", "collision")
#: Where Gazebo and its successors look for models.
GAZEBO_PATHS = (
    "GAZEBO_MODEL_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH"
)  # fmt: skip
#: The numbers of each shape: attributes of its element in URDF, elements inside it in SDF.
SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}


class Known(NamedTuple):
    """What is read of an element, names with blanks between: attributes, and elements inside.

    `seen` are elements that are for the eye alone: neither read nor reported.
    """

    attributes: str = ""
    elements: str = ""
    seen: str = ""


class RobotReader:
    """A file of a robot, read element by element into a builder that reports what is left out.

    `known` is what is read of each element; `texts` says that numbers may be texts of elements.
    """

    known: Mapping[str, Known]
    texts: bool
    sizes: Mapping[str, tuple[str, ...]] = SIZES

    def __init__(
        self, root: Element, path: str | os.PathLike[str], packages: Packages = None
    ) -> None:
        self.root, self.path, self.packages = root, Path(path), packages
        self.builder = Builder(root.attributes.get("name", self.path.stem))
        self.report = self.builder.report

    def text(self, element: Element, key: str, default: str | None = None) -> str:
        """Return the text of a number of an element; without a default it must be there."""
        raise NotImplementedError

    def ignore(self, element: Element, what: str) -> None:
        """Report what is not in the model."""
        self.report.ignored.append(f"{element.place}: {what}")

    def approximate(self, element: Element, what: str) -> None:
        """Report what is in the model otherwise than in the file."""
        self.report.approximated.append(f"{element.place}: {what}")

    def report_unread(
        self,
        element: Element,
        of: str,
        table: Mapping[str, Known] | None = None,
        texts: bool | None = None,
    ) -> None:
        """Report what is in an element, which is `of` this, and not in the table.

        What is inside an unknown element is not looked at, nor are attributes without a value.
        """
        table, texts = table or self.known, self.texts if texts is None else texts
        known = table.get(element.tag, Known())
        if element.text and not texts:
            self.ignore(element, f"text in <{element.tag}> of {of}")
        for key, text in element.attributes.items():
            if key not in known.attributes.split() and text.strip() and not key.startswith("xmlns"):
                self.ignore(element, f"{key} in <{element.tag}> of {of}")
        for part in element:
            if part.tag in known.elements.split():
                self.report_unread(part, of, table, texts)
            elif part.tag not in known.seen.split():
                self.ignore(part, f"<{part.tag}> of {of}")

    def read_color(self, element: Element, text: str) -> tuple[float, ...] | None:
        """Return red, green, blue and opacity of a text; what is no colour is reported."""
        try:
            return make_color([float(word) for word in text.split()], f"<{element.tag}>")
        except ValueError:
            self.ignore(element, f"{text!r} is no colour: three or four numbers from 0 to 1")
            return None

    def read_shape(
        self,
        part: Element,
        body: str,
        at: Pose,
        file: Path | str | None,
        color: tuple[float, ...] | None = None,
    ) -> None:
        """Add the shape of a <visual> or <collision>; `file` is that of a mesh."""
        holder = part.find("geometry")
        shapes = [] if holder is None else list(holder)
        kind = shapes[0].tag if len(shapes) == 1 else ""
        sort = kind.rpartition(":")[2]
        if kind == "empty":
            return
        if kind not in (*self.sizes, "mesh"):
            self.ignore(part, f"<{part.tag}> of {body!r} without a known shape")
            return
        words = (
            self.text(shapes[0], "scale", "1 1 1")
            if kind == "mesh"
            else " ".join(self.text(shapes[0], key) for key in self.sizes[kind])
        )
        size = [number(word, shapes[0], kind) for word in words.split()]
        shape = call_at(shapes[0], make_shape, body, part.tag, sort, size, at, file, None, color)
        self.builder.geometry += (shape,)
        if not isinstance(file, str):
            self.report.use(part.tag)

    def find_mesh(
        self, element: Element, name: str, scheme: str, path: Path | None = None
    ) -> Path | str:
        """Return the file of a mesh, or its name where it is not found, which is reported.

        `path` is the file that names it, by default that of the robot.
        """
        uri = name.replace(f"{scheme}://", "package://", 1)
        file = mesh_path(uri, path or self.path, self.packages)
        if file is None:
            hint = f"packages= says where {scheme}:// is"
            self.ignore(element, f"mesh {name!r} was not found; {hint}")
        return file or name

    def report_follower_limits(self, limit: Element | None, name: str, followed: str) -> None:
        """Report the limits of a joint that has no coordinate of its own."""
        if limit is not None:
            own = f"<{limit.tag}> of joint {name!r}"
            self.ignore(limit, f"{own}: that of {followed!r}, which it follows")

    def check_one_root(self) -> None:
        """Raise unless one link carries all others."""
        loose = self.builder.unattached()
        if not self.builder.bodies:
            raise self.root.error("the robot has no links")
        if len(loose) > 1:
            raise self.root.error(
                f"{len(loose)} links are the child of no joint: {loose}; one is the root"
            )

    def report_unit_slips(self) -> None:
        """Report what is physical but unlikely; it is taken as it stands."""
        for slip in find_slips(self.builder):
            self.approximate(self.root, slip.message)


def call_at(element: Element, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a call gives; its errors say where in the file the element is."""
    try:
        return call(*args, **kwargs)
    except ValueError as error:
        raise element.error(str(error)) from None


def three(text: str, element: Element, what: str) -> list[float]:
    """Return the three numbers in a text."""
    words = text.split()
    if len(words) != 3:
        raise element.error(f"{what} must be three numbers, got {text!r}")
    return [number(word, element, what) for word in words]


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


def mesh_path(name: str, path: Path, packages: Packages) -> Path | None:
    """Return where a mesh is: package://, file:// or relative to the file of the robot.

    A folder above the file may have another name than the package has.
    """
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        roots = [*package_folders(package, path, packages), *path.resolve().parents]
        candidates = [root / rest for root in roots]
    else:
        candidates = [path.parent / name.removeprefix("file://")]
    return next((file for file in candidates if is_file(file)), None)


def package_folders(package: str, path: Path, packages: Packages) -> list[Path]:
    """Return what may be the folder of a package that a file names.

    Packages are looked for in `packages`, in the folders above the file, and where ROS
    (``ROS_PACKAGE_PATH``, ``AMENT_PREFIX_PATH``) and Gazebo have them.
    """
    if isinstance(packages, Mapping):
        return [Path(packages[package])] if package in packages else []
    several: Any = packages if isinstance(packages, (list, tuple)) else [packages]
    folders = [Path(os.fspath(folder)) for folder in several if folder is not None]
    above = path.resolve().parents
    roots = [folder / package for folder in (*folders, *above, *ros_folders())]
    return roots + [folder for folder in folders if folder.name == package]


def ros_folders() -> list[Path]:
    """Return the folders in which ROS looks for packages, and Gazebo for models."""
    first = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    second = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    gazebo = [f for key in GAZEBO_PATHS for f in os.environ.get(key, "").split(os.pathsep)]
    return [Path(f) for f in (*first, *gazebo) if f] + [Path(f, "share") for f in second if f]


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have does not."""
    try:
        return path.is_file()
    except OSError:
        return False
