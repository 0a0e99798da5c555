"""C structs from trees: which typedefs there are, and where each leaf lies in them.

A tree becomes nested structs. A Python class gives its C type a name (``RigidBody.State`` ->
``<project>_rigid_body_state_t``), other containers are named by where they are met first. Trees
that look the same in C share one type, so that a state can be assigned from an output.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archimedes.embedded.c_types.naming import Renames, snake_case
from archimedes.tree.treedef import LEAF, TreeDef

__all__ = ["Branch", "Field", "Layout", "LeafShape", "Place", "Root", "Struct", "label_name"]


@dataclass(frozen=True)
class LeafShape:
    """Dtype code and shape of one leaf."""

    code: int
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Field:
    """A member of a C struct: an array or number (``leaf``), or another struct."""

    name: str
    leaf: LeafShape | None
    struct: Struct | None
    units: str
    text: str


@dataclass(frozen=True)
class Struct:
    """A typedef: its C name, members, and what it is in Python."""

    c_name: str
    fields: tuple[Field, ...]
    origin: str


@dataclass(frozen=True)
class Place:
    """Where one leaf is: in Python (``path``) and in the struct (``access``, "x.att.array")."""

    path: str
    access: str
    number: int
    leaf: LeafShape


@dataclass(frozen=True)
class Root:
    """One of the structs ``<name>_in_t``, ``_out_t``, ``_params_t`` and where its leaves are.

    ``paths`` are the Python names of all that is in it, inner nodes too.
    """

    role: str
    struct: Struct
    places: tuple[Place, ...]
    paths: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether it holds no numbers."""
        return not self.places


@dataclass(frozen=True)
class Branch:
    """An argument or result: its structure, and number and shape of its leaves.

    A static leaf has no shape.
    """

    name: str
    treedef: TreeDef
    leaves: tuple[tuple[int, LeafShape | None], ...]


class _Walk:
    """What is gathered while one root is built."""

    def __init__(self, notes: Mapping[str, str]) -> None:
        self.notes = notes
        self.places: list[Place] = []
        self.paths: list[str] = []
        self.leaves: Iterator[tuple[int, LeafShape | None]] = iter(())


_ROLES = {"in": "inputs", "out": "outputs", "params": "parameters"}


def label_name(label: str) -> str:
    """Return the plain name in a tree's label: ``.pos``, ``['mass']``, ``[0]``.

    >>> label_name(".pos"), label_name("['mass']"), label_name("[0]")
    ('pos', 'mass', 'item_0')
    """
    if label.startswith("."):
        return label[1:]
    try:
        key = ast.literal_eval(label[1:-1])
    except (SyntaxError, ValueError):
        return label[1:-1]
    return f"item_{key}" if isinstance(key, int) else str(key)


def _units(treedef: TreeDef) -> dict[str, str]:
    """Return the units that the fields of a struct's class declare."""
    if not dataclasses.is_dataclass(treedef.kind.cls):
        return {}
    fields = dataclasses.fields(treedef.kind.cls)
    return {f.name: str(f.metadata.get("units", "")) for f in fields}


class Layout:
    """Collects the C structs of one project."""

    def __init__(self, prefix: str, renames: Renames) -> None:
        self.prefix = prefix
        self.renames = renames
        #: All typedefs, members before the structs that hold them.
        self.structs: list[Struct] = []
        self._known: dict[Any, Struct] = {}
        self._names = {f"{prefix}_{word}_t" for word in ("in", "out", "work", "params")}

    def root(self, role: str, members: Sequence[Branch], notes: Mapping[str, str]) -> Root:
        """Make ``<prefix>_<role>_t`` with one member per branch; ``notes`` describe paths in it."""
        where = f"{self.prefix}_{role}_t"
        names = [branch.name for branch in members]
        fields: list[Field] = []
        walk = _Walk(notes)
        for branch, c_name in zip(members, self.renames.members(names, names, where)):
            walk.leaves = iter(branch.leaves)
            field = self._field(branch.treedef, c_name, branch.name, c_name, "", walk)
            if field is not None:
                fields.append(field)
        struct = Struct(where, tuple(fields), f"{_ROLES[role]} of {self.prefix}")
        if fields or role != "params":
            self.structs.append(struct)
        return Root(role, struct, tuple(walk.places), frozenset(walk.paths))

    def _field(
        self,
        treedef: TreeDef,
        c_name: str,
        path: str,
        access: str,
        units: str,
        walk: _Walk,
    ) -> Field | None:
        """Describe one member; None where it holds no numbers."""
        walk.paths.append(path)
        text = walk.notes.get(path, "")
        if treedef is LEAF:
            number, leaf = next(walk.leaves)
            if leaf is None or leaf.size == 0:
                return None
            walk.places.append(Place(path, access, number, leaf))
            return Field(c_name, leaf, None, units, text)
        labels = list(treedef.kind.labels(treedef.aux, len(treedef.children)))
        paths = [path + label for label in labels]
        plain = [label_name(label) for label in labels]
        names = self.renames.members(plain, paths, f"struct {path}")
        known = _units(treedef)
        fields = []
        for child, name, below, unit_of in zip(treedef.children, names, paths, plain):
            inner = f"{access}.{name}"
            unit = known.get(unit_of, "") or units
            field = self._field(child, name, below, inner, unit, walk)
            if field is not None:
                fields.append(field)
        if not fields:
            return None
        return Field(c_name, None, self._struct(treedef, tuple(fields), access), units, text)

    def _struct(self, treedef: TreeDef, fields: tuple[Field, ...], access: str) -> Struct:
        """Return the type with these members, a known one where there is one."""
        is_class = dataclasses.is_dataclass(treedef.kind.cls) or hasattr(
            treedef.kind.cls, "_fields"
        )
        origin = treedef.kind.name.rpartition("<locals>.")[2]
        key = (origin, fields)
        if key not in self._known:
            by_place = f"{self.prefix}_{access.replace('.', '_')}"
            candidates = [f"{self.prefix}_{snake_case(origin)}"] if is_class else []
            candidates += [by_place, *(f"{by_place}_{k}" for k in range(2, 1000))]
            c_name = next(f"{c}_t" for c in candidates if f"{c}_t" not in self._names)
            self._names.add(c_name)
            self._known[key] = Struct(c_name, fields, origin)
            self.structs.append(self._known[key])
        return self._known[key]
