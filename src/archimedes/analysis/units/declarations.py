"""Units that are declared: by fields of structs, and for arguments by name."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archimedes.errors import UnitsError
from archimedes.physical_units import Unit, parse_unit
from archimedes.tree.treedef import TreeDef

__all__ = ["declared_units", "leaf_units"]

#: The unit of all elements of a leaf, or of each; None where nothing is declared.
LeafUnit = Unit | tuple[Unit | None, ...] | None


def read_units(declared: Any, where: str) -> LeafUnit:
    """Return a declared unit: a text, texts for each element with commas, or a sequence of texts.

    >>> read_units("m, m/s", "x")
    (Unit('m'), Unit('m/s'))
    """
    try:
        if isinstance(declared, str) and "," in declared:
            declared = declared.split(",")
        if isinstance(declared, str):
            return _read(declared)
        if isinstance(declared, (list, tuple, np.ndarray)):
            return tuple(map(_read, np.ravel(declared).tolist()))
    except UnitsError as error:
        raise UnitsError(f"{where}: {error}") from None
    raise UnitsError(f"{where}: a unit is a text such as 'm/s', or one for each element")


class Spelled(Unit):
    """A unit as somebody writes it."""

    __slots__ = ("text",)
    text: str


def _read(text: str) -> Unit | None:
    if isinstance(text, str) and text.strip() == "?":
        return None
    unit = parse_unit(text)
    spelled = Spelled(unit.dims, unit.scale, unit.log_scale)
    spelled.text = text.strip()
    return spelled


def field_units(value: Any) -> dict[str, Any]:
    """Return what a struct declares of its fields: by metadata, and by a method ``field_units``.

    Such a method is for units that differ from instance to instance; ``"?"`` is an unknown one.
    """
    fields = dataclasses.fields(value)
    units = {f.name: f.metadata["units"] for f in fields if "units" in f.metadata}
    own = getattr(value, "field_units", None)
    return units if own is None else {**units, **own()}


def leaf_units(
    treedef: TreeDef, leaves: Sequence[Any] | None = None, outer: LeafUnit = None
) -> list[LeafUnit]:
    """Return the unit that the fields of structs declare for each leaf of a tree."""
    leaves = [0.0] * treedef.num_leaves if leaves is None else leaves
    if not treedef.children:
        return [outer] * treedef.num_leaves
    is_dataclass = dataclasses.is_dataclass(treedef.kind.cls)
    fields = field_units(treedef.unflatten(leaves)) if is_dataclass else {}
    result: list[LeafUnit] = []
    labels = treedef.kind.labels(treedef.aux, len(treedef.children))
    for label, child in zip(labels, treedef.children):
        name = label.lstrip(".")
        unit = outer
        if name in fields:
            unit = read_units(fields[name], f"{treedef.kind.cls.__qualname__}.{name}")
        mine = leaves[len(result) : len(result) + child.num_leaves]
        result += leaf_units(child, mine, unit)
    return result


def declared_units(
    treedefs: Mapping[str, TreeDef],
    shapes: Sequence[tuple[int, ...]],
    units: Mapping[str, Any],
    leaves: Sequence[Any] | None = None,
) -> list[LeafUnit]:
    """Return the unit of each leaf of named trees; those in ``units`` count more than fields.

    Keys of ``units`` are names of trees or paths in them, ``"x"`` or ``"x.pos"``.
    """
    result: list[LeafUnit] = []
    for name, treedef in treedefs.items():
        paths = treedef.paths(name)
        mine = None if leaves is None else leaves[len(result) : len(result) + len(paths)]
        own = leaf_units(treedef, mine)
        given = [key for key in units if key == name or key.startswith((f"{name}.", f"{name}["))]
        for key in sorted(given, key=len):
            at = [k for k, path in enumerate(paths) if _is_below(path, key)]
            if not at:
                raise UnitsError(
                    f"check_units: units has {key!r}, which is no value; there are "
                    + ", ".join(map(repr, paths[:20]))
                )
            for k, unit in zip(at, _spread(units[key], len(at), key)):
                own[k] = unit
        for k, (path, unit) in enumerate(zip(paths, own)):
            own[k] = _fit(unit, shapes[len(result) + k], path)
        result += own
    return result


def _is_below(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def _spread(declared: Any, count: int, key: str) -> list[LeafUnit]:
    """Return a unit for each of several leaves."""
    where = f"check_units: units[{key!r}]"
    if isinstance(declared, Mapping):
        raise UnitsError(f"{where}: write the paths as keys, such as '{key}.pos'")
    if declared is None:
        return [None] * count
    if isinstance(declared, Unit):
        return [declared] * count
    unit = read_units(declared, where)
    if count > 1 and isinstance(unit, tuple):
        if len(unit) != count:
            raise UnitsError(f"{where} has {len(unit)} units for {count} values")
        return list(unit)
    return [unit] * count


def _fit(unit: LeafUnit, shape: tuple[int, ...], path: str) -> LeafUnit:
    """Return the units of the elements of a leaf, checked against its shape."""
    if not isinstance(unit, tuple):
        return unit
    size = math.prod(shape)
    if len(unit) == size:
        return unit
    if shape and len(unit) == shape[-1]:
        return unit * (size // len(unit))
    raise UnitsError(f"{path} has {len(unit)} units for {size} elements of shape {shape}")
