"""C structs from trees: their typedefs, where each leaf lies in them, and their values in C.

A tree becomes nested structs. A Python class gives its C type a name (``RigidBody.State`` ->
``<project>_rigid_body_state_t``), other containers are named by where they are met first. Trees
that look the same in C share one type, so that a state can be assigned from an output.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from archimedes import tree
from archimedes.backends.c.spelling import table_item
from archimedes.backends.protocol import ArrayType
from archimedes.embedded.c_text import Renames, ascii_text, snake_case
from archimedes.embedded.preparation import Prepared
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F32, F64, I64, is_float
from archimedes.tree.nodes import field_names
from archimedes.tree.treedef import LEAF, TreeDef


@dataclass(frozen=True)
class Field:
    """A member of a C struct: an array or number (``leaf``), or another struct."""

    name: str
    leaf: ArrayType | None
    struct: Struct | None
    units: str
    text: str

    @property
    def shape(self) -> ArrayType:
        """The array of a member that is not a struct."""
        assert self.leaf is not None
        return self.leaf

    @property
    def size(self) -> int:
        """How many scalars it holds."""
        if self.struct is None:
            return self.shape.size
        return sum(field.size for field in self.struct.fields)


@dataclass(frozen=True)
class Struct:
    """A typedef: its C name, members, and what it is in Python."""

    c_name: str
    fields: tuple[Field, ...]
    origin: str


@dataclass(frozen=True)
class Member:
    """A leaf in a struct: its name in Python (``path``) and in C (``access``, "x.att.array")."""

    path: str
    access: str
    number: int
    leaf: ArrayType


@dataclass(frozen=True)
class Root:
    """One of the structs ``<name>_in_t``, ``_out_t``, ``_params_t`` and the leaves in it.

    ``paths`` are the Python names of all that is in it, inner nodes too.
    """

    role: str
    struct: Struct
    members: tuple[Member, ...]
    paths: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether it holds no numbers."""
        return not self.members


@dataclass(frozen=True)
class Branch:
    """An argument or result: its structure, and number and shape of its leaves.

    A static leaf has no shape.
    """

    name: str
    treedef: TreeDef
    leaves: tuple[tuple[int, ArrayType | None], ...]


class _Walk:
    """What is gathered while one root is built."""

    def __init__(self, notes: Mapping[str, str]) -> None:
        self.notes = notes
        self.members: list[Member] = []
        self.paths: list[str] = []
        self.leaves: Iterator[tuple[int, ArrayType | None]] = iter(())


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
        self._known: dict[tuple[str, tuple[Field, ...]], Struct] = {}
        self._names = {f"{prefix}_{word}_t" for word in ("in", "out", "work", "params")}

    def root(self, role: str, branches: Sequence[Branch], notes: Mapping[str, str]) -> Root:
        """Make ``<prefix>_<role>_t`` with one member per branch; ``notes`` describe paths in it."""
        where = f"{self.prefix}_{role}_t"
        names = [branch.name for branch in branches]
        fields: list[Field] = []
        walk = _Walk(notes)
        for branch, c_name in zip(branches, self.renames.members(names, names, where)):
            walk.leaves = iter(branch.leaves)
            fields += self._field(branch.treedef, branch.name, c_name, "", walk)
        struct = Struct(where, tuple(fields), f"{_ROLES[role]} of {self.prefix}")
        if fields or role != "params":
            self.structs.append(struct)
        return Root(role, struct, tuple(walk.members), frozenset(walk.paths))

    def _field(self, node: TreeDef, path: str, access: str, units: str, walk: _Walk) -> list[Field]:
        """Describe one member in a list, which is empty if the member holds no numbers."""
        walk.paths.append(path)
        text, c_name = walk.notes.get(path, ""), access.rpartition(".")[2]
        if node is LEAF:
            number, leaf = next(walk.leaves)
            if leaf is None or leaf.size == 0:
                return []
            walk.members.append(Member(path, access, number, leaf))
            return [Field(c_name, leaf, None, units, text)]
        labels = list(node.kind.labels(node.aux, len(node.children)))
        paths = [path + label for label in labels]
        plain = [label_name(label) for label in labels]
        names = self.renames.members(plain, paths, f"struct {path}")
        known = _units(node)
        fields: list[Field] = []
        for child, name, below, label in zip(node.children, names, paths, plain):
            unit = known.get(label, "") or units
            fields += self._field(child, below, f"{access}.{name}", unit, walk)
        if not fields:
            return []
        return [Field(c_name, None, self._struct(node, tuple(fields), access), units, text)]

    def _struct(self, treedef: TreeDef, fields: tuple[Field, ...], access: str) -> Struct:
        """Return the type with these members; types that look the same are one type."""
        cls = treedef.kind.cls
        is_class = dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
        origin = treedef.kind.name.rpartition("<locals>.")[2]
        key = (origin, fields)
        if key not in self._known:
            by_access = f"{self.prefix}_{access.replace('.', '_')}"
            candidates = [f"{self.prefix}_{snake_case(origin)}"] if is_class else []
            candidates += [by_access, *(f"{by_access}_{k}" for k in range(2, 1000))]
            c_name = next(f"{c}_t" for c in candidates if f"{c}_t" not in self._names)
            self._names.add(c_name)
            self._known[key] = Struct(c_name, fields, origin)
            self.structs.append(self._known[key])
        return self._known[key]


# ---- values -----------------------------------------------------------------------------

#: What ``float_type`` and ``int_type`` may be, and what they are in C.
_FLOATS: dict[np.dtype, str] = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
_INTS: dict[np.dtype, str] = {np.dtype(np.int64): "int64_t", np.dtype(np.int32): "int32_t"}


@dataclass(frozen=True)
class Scalars:
    """The C types of the four scalar types: ``float_type`` and ``int_type`` as NumPy dtypes."""

    float_type: np.dtype
    int_type: np.dtype

    def dtype(self, code: int) -> np.dtype:
        """Return the NumPy dtype of what C stores for a dtype code."""
        fixed = np.dtype(np.float32 if code == F32 else np.bool_)
        return {F64: self.float_type, I64: self.int_type}.get(code, fixed)

    def c_type(self, code: int) -> str:
        """Return the C type for a dtype code."""
        return {**_FLOATS, **_INTS, np.dtype(np.bool_): "bool"}[self.dtype(code)]

    def literal(self, value: Any, code: int) -> str:
        """Return a constant expression with exactly this value.

        >>> scalars(float, int).literal(0.1, F64), scalars(np.float32, int).literal(0.1, F64)
        ('0.1', '0.1f')
        """
        dtype = self.dtype(code)
        if code == B8:
            return "true" if value else "false"
        if code == I64:
            if not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
                raise CodegenError(f"{value} does not fit in {_INTS[dtype]}: leave int_type=int")
            macro = "INT32_C" if dtype.itemsize == 4 else "INT64_C"
            if int(value) == np.iinfo(dtype).min:
                return f"(-{macro}({-(int(value) + 1)}) - 1)"
            return f"{int(value)}" if abs(int(value)) < 2**15 else f"{macro}({int(value)})"
        return table_item(float(dtype.type(value)), F32 if dtype.itemsize == 4 else F64)


def scalars(float_type: DTypeLike, int_type: DTypeLike) -> Scalars:
    """Check ``float_type`` and ``int_type`` and return the scalar types."""
    return Scalars(
        _check_type(float_type, _FLOATS, "float_type", "float, np.float64 (double) or np.float32"),
        _check_type(int_type, _INTS, "int_type", "int, np.int64 or np.int32"),
    )


def _check_type(value: DTypeLike, known: dict[np.dtype, str], what: str, choices: str) -> np.dtype:
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = None
    if dtype not in known:
        raise CodegenError(f"{what}={value!r} has no C type here: use {choices}")
    return dtype


def initialiser(struct: Struct, leaves: Iterator[Any], types: Scalars, indent: str = "") -> str:
    """Return the braces that initialise a struct with the leaves' values, one line per row."""
    inner = indent + "    "
    lines = []
    for k, field in enumerate(struct.fields):
        comma = "," if k + 1 < len(struct.fields) else ""
        if field.struct is not None:
            body = initialiser(field.struct, leaves, types, inner)
            lines.append(f"{inner}{body}{comma} /* {field.name} */")
        else:
            note = field.name + (f" [{ascii_text(field.units)}]" if field.units else "")
            value = np.asarray(next(leaves)).reshape(field.shape.shape)
            body = _braces(value, field.shape.code, types, inner)
            lines.append(f"{inner}{body}{comma} /* {note} */")
    return "{\n" + "\n".join(lines) + f"\n{indent}}}"


def _braces(array: np.ndarray, code: int, types: Scalars, indent: str) -> str:
    if array.ndim == 0:
        return types.literal(array[()], code)
    inner = indent + "    "
    if array.ndim > 1:
        rows = [f"{inner}{_braces(row, code, types, inner)}" for row in array]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    words = [types.literal(x, code) for x in array]
    # Rows depend on the shape alone: a changed value changes its own line only.
    if len(words) <= 4:
        return "{" + ", ".join(words) + "}"
    rows = [", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]
    return "{\n" + ",\n".join(f"{inner}{row}" for row in rows) + f"\n{indent}}}"


# ---- arguments and results --------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    """Branches of the arguments; shape, example value and path of each traced leaf."""

    branches: tuple[Branch, ...]
    leaves: tuple[ArrayType, ...]
    values: tuple[np.ndarray, ...]
    paths: tuple[str, ...]

    def check_values(self, types: Scalars, nonfinite: bool) -> None:
        """Raise for example values that the C types cannot represent."""
        for leaf, value, path in zip(self.leaves, self.values, self.paths):
            stored = types.dtype(leaf.code)
            if leaf.code == I64:
                limits = np.iinfo(stored)
                bad = (value < limits.min) | (value > limits.max)
                why = f"does not fit in {types.c_type(leaf.code)}: leave int_type=int"
            elif is_float(leaf.code):
                with np.errstate(over="ignore"):
                    bad = ~np.isfinite(value.astype(stored)) & (not nonfinite)
                kind = types.c_type(leaf.code)
                why = (
                    f"is not a finite default value of type {kind}: give a finite example, or pass "
                    "options={'nonfinite': True} if that is meant"
                )
            else:
                continue
            if bad.any():
                at = np.argwhere(bad)[0]
                element = path + "".join(f"[{k}]" for k in at)
                raise CodegenError(f"codegen: {element} = {value[tuple(at)]} {why}")


def argument_branches(prepared: Prepared) -> Arguments:
    """Return what the traced arguments look like in C; static leaves are not in it."""
    specs = iter(prepared.recording.leaves)
    branches: list[Branch] = []
    shapes: list[ArrayType] = []
    values: list[np.ndarray] = []
    paths: list[str] = []
    for name, example in prepared.arguments.items():
        leaves, treedef = tree.flatten(example)
        numbered: list[tuple[int, ArrayType | None]] = []
        for leaf, path in zip(leaves, treedef.paths(name)):
            spec = next(specs)
            shape = ArrayType(spec.code, spec.shape) if spec.traced else None
            numbered.append((len(shapes), shape))
            if shape is not None:
                shapes.append(shape)
                values.append(np.asarray(leaf))
                paths.append(path)
        branches.append(Branch(name, treedef, tuple(numbered)))
    return Arguments(tuple(branches), tuple(shapes), tuple(values), tuple(paths))


def result_branches(
    prepared: Prepared, return_names: Sequence[str] | None
) -> tuple[list[Branch], list[ArrayType]]:
    """Return what the results look like in C: the elements of a tuple by ``return_names`` or as
    y0, y1, ..., the values of a dict or namedtuple by their names, anything else as ``y``.
    """
    recording = prepared.recording
    shapes = [ArrayType(out.spec.code, out.spec.shape) for out in recording.outs]
    names, trees = _name_results(prepared, return_names)
    branches, at = [], 0
    for name, treedef in zip(names, trees):
        stop = at + treedef.num_leaves
        branches.append(Branch(name, treedef, tuple(enumerate(shapes[at:stop], at))))
        at = stop
    return branches, shapes


def _name_results(
    prepared: Prepared, return_names: Sequence[str] | None
) -> tuple[list[str], list[TreeDef]]:
    root = prepared.recording.out_tree
    several = list(root.children)
    is_tuple = root.kind.cls in (tuple, list)
    is_named = hasattr(root.kind.cls, "_fields") or issubclass(root.kind.cls, dict)
    if return_names is not None:
        names = [str(name) for name in return_names]
        if len(names) == 1 and not (is_tuple and len(several) == 1):
            return names, [root]
        if len(names) != len(several):
            raise CodegenError(
                f"codegen: {prepared.name}() returns {len(several) if is_tuple else 1} values but "
                f"return_names lists {len(names)}: {names}"
            )
        return names, several
    if is_tuple:
        return [f"y{k}" for k in range(len(several))], several
    if is_named:
        labels = root.kind.labels(root.aux, len(several))
        return [label_name(label) for label in labels], several
    return ["y"], [root]


def fixed_values(prepared: Prepared) -> Iterator[tuple[str, Any]]:
    """Yield path and value of what is fixed: static arguments, static leaves and fields."""
    yield from prepared.fixed.items()
    for name, example in prepared.arguments.items():
        leaves, treedef = tree.flatten(example)
        for leaf, path in zip(leaves, treedef.paths(name)):
            if isinstance(leaf, (bool, str)):
                yield path, leaf
        yield from _static_fields(treedef, name)


def _static_fields(treedef: TreeDef, path: str) -> Iterator[tuple[str, Any]]:
    if hasattr(treedef.kind.cls, "__dataclass_fields__"):
        for name, value in zip(field_names(treedef.kind.cls)[1], treedef.aux):
            yield f"{path}.{name}", value
    labels = treedef.kind.labels(treedef.aux, len(treedef.children))
    for label, child in zip(labels, treedef.children):
        yield from _static_fields(child, path + label)
