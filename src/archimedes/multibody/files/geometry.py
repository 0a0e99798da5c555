"""Shapes that go with a robot, as they are in its file: what a viewer or a collision test needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archimedes.multibody.files.placements import guarded, origin, triple
from archimedes.multibody.models.reports import Report
from archimedes.multibody.models.shapes import Shape, shape_at
from archimedes.numbers_in_text import number
from archimedes.xml_elements import Element

__all__ = ["GEOMETRY", "read_geometry"]

GEOMETRY = ("visual", "collision")
#: The numbers of each shape, by the attributes of its element.
SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}
SIZES["capsule"] = ("radius", "length")


def read_geometry(
    links: list[Element], path: Path, packages: Any, report: Report
) -> tuple[Shape, ...]:
    """Return the shapes of all <visual> and <collision> elements of a URDF file."""
    found = []
    for link in links:
        for part in link:
            if part.tag in GEOMETRY:
                shape = read_shape(part, link.get("name"), path, packages, report)
                found += [] if shape is None else [shape]
    return tuple(found)


def read_shape(part: Element, body: str, path: Path, packages: Any, report: Report) -> Shape | None:
    """Return one shape; what it is made of comes from its <geometry>."""
    holder = part.find("geometry")
    shapes = [] if holder is None else list(holder)
    if len(shapes) != 1 or (shapes[0].tag not in SIZES and shapes[0].tag != "mesh"):
        report.ignored.append(f"{part.place}: <{part.tag}> of {body!r} without a known shape")
        return None
    inner = shapes[0]
    R, p = origin(part)
    if inner.tag != "mesh":
        report.use(part.tag)
        texts = [word for key in SIZES[inner.tag] for word in inner.get(key).split()]
        size = tuple(number(word, inner, inner.tag) for word in texts)
        return guarded(inner, shape_at, body, part.tag, inner.tag, size, R, p)
    file = mesh_path(inner.get("filename"), path, packages)
    if file is None:
        report.ignored.append(
            f"{inner.place}: mesh {inner.get('filename')!r} was not found; packages= says where "
            "package:// is"
        )
    else:
        report.use(part.tag)
    scale = tuple(triple(inner, "scale", [1.0, 1.0, 1.0]))
    return guarded(inner, shape_at, body, part.tag, "mesh", scale, R, p, file)


def mesh_path(name: str, path: Path, packages: Any) -> Path | None:
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


def folders(packages: Any) -> list[Path]:
    """Return the folders that hold packages: none, one, or several."""
    several = packages if isinstance(packages, (list, tuple)) else [packages]
    return [Path(os.fspath(folder)) for folder in several if folder is not None]


def is_file(path: Path) -> bool:
    """Whether a file is there; a name that no file can have is not."""
    try:
        return path.is_file()
    except OSError:
        return False
