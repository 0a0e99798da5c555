"""The variables of an FMU: what each leaf of a struct is called, and where it lies in memory.

Names are FMI's structured names: ``x.pos``, ``u.throttle``, ``p['drag area']`` becomes
``p.'drag area'``. The elements of arrays and lists are counted from 1.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.embedded.c_structs import label_name
from archimedes.embedded.c_text import c_identifier
from archimedes.errors import CodegenError
from archimedes.tree.treedef import LEAF, TreeDef

#: The types of variables, by the kind of dtype of a leaf.
TYPES = {"f": "real", "i": "integer", "u": "integer", "b": "boolean"}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
#: What may stand in a quoted name; anything else is spelled out.
_QUOTABLE = frozenset(" !#$%&()*+,-./:;<=>?@[]^{}|~")


@dataclass(frozen=True)
class Leaf:
    """An array or number in a struct: its name, place in the bank of its type, and description.

    ``minimum``, ``maximum``, ``units`` and ``description`` are those of the field that holds it.
    """

    name: str
    path: str
    type: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    value: np.ndarray
    units: str = ""
    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    #: Whether it is an int of Python, where a float may have been meant.
    is_plain_int: bool = False

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    @property
    def span(self) -> slice:
        """Where it lies in its bank."""
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Branch:
    """A tree whose numbers lie in banks; static leaves are part of the program."""

    treedef: TreeDef
    leaves: tuple[Leaf | None, ...]
    static: tuple[Any, ...]

    @property
    def variables(self) -> tuple[Leaf, ...]:
        """The leaves that are numbers."""
        return tuple(leaf for leaf in self.leaves if leaf is not None)

    def unpack(self, banks: Mapping[str, Any]) -> Any:
        """Return the tree of what lies in the banks."""
        values = []
        for leaf, fixed in zip(self.leaves, self.static):
            if leaf is None:
                values.append(fixed)
                continue
            part = banks[leaf.type][leaf.span].reshape(leaf.shape)
            narrow = leaf.dtype.kind == "f" and leaf.dtype.itemsize < 8
            values.append(part.astype(np.float32) if narrow else part)
        return self.treedef.unflatten(values)


class Banks:
    """How many numbers of each type there are, and their start values."""

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {"real": [], "integer": [], "boolean": []}

    def add(self, type_: str, value: np.ndarray) -> int:
        """Append values; return where they begin."""
        bank = self.values[type_]
        offset = len(bank)
        bank.extend(value.ravel().tolist())
        return offset

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the banks as arrays."""
        dtypes = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}
        return {name: np.array(bank, dtypes[name]) for name, bank in self.values.items()}


def branch_of(value: Any, root: str, banks: Banks, what: str) -> Branch:
    """Return where the leaves of a tree lie; text, flags and functions are part of the program."""
    leaves, treedef = tree.flatten(value)
    details = list(_describe(treedef, root, _Details()))
    found: list[Leaf | None] = []
    for leaf, path, (name, detail) in zip(leaves, treedef.paths(what), details):
        if isinstance(leaf, (bool, str, bytes)) or callable(leaf):
            if root == "y" and not isinstance(leaf, bool):
                raise CodegenError(
                    f"export_fmu: outputs returns a {type(leaf).__name__} as {path}: an output is "
                    "a number or an array of numbers"
                )
            if root != "y":
                found.append(None)
                continue
        array = np.asarray(leaf)
        if array.dtype.kind not in TYPES:
            raise CodegenError(
                f"export_fmu: {path} is a {type(leaf).__name__}, which is no variable of an FMU: "
                "give numbers and arrays of numbers, and declare other fields static"
            )
        if array.size == 0:
            found.append(None)
            continue
        if array.dtype.kind == "f" and root != "y" and not np.all(np.isfinite(array)):
            raise ValueError(
                f"export_fmu: {path} is nan or infinite ({array}): a variable of an FMU starts "
                "with a finite number"
            )
        kind = TYPES[array.dtype.kind]
        offset = banks.add(kind, array)
        plain = type(leaf) is int
        place = (name, path, kind, offset, array.shape, array.dtype, array)
        found.append(Leaf(*place, **vars(detail), is_plain_int=plain))
    fixed = tuple(None if leaf else value for leaf, value in zip(found, leaves))
    return Branch(treedef, tuple(found), fixed)


# ---- names and descriptions -----------------------------------------------------------------


@dataclass(frozen=True)
class _Details:
    """What a field says about the numbers in it."""

    units: str = ""
    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None


def _describe(node: TreeDef, name: str, detail: _Details) -> Iterator[tuple[str, _Details]]:
    """Return name and details of each leaf below a node, in order."""
    if node is LEAF:
        yield name, detail
        return
    labels = list(node.kind.labels(node.aux, len(node.children)))
    known = _field_details(node.kind.cls)
    for label, child in zip(labels, node.children):
        own = known.get(label_name(label), _Details())
        merged = dataclasses.replace(
            own, units=own.units or detail.units, description=own.description or detail.description
        )
        yield from _describe(child, join_name(name, label), merged)


def join_name(name: str, label: str) -> str:
    """Return the structured name of a part: ``.pos``, ``['drag area']``, ``[0]``.

    >>> join_name("x", ".pos"), join_name("p", "['drag area']"), join_name("u[3]", "[0]")
    ('x.pos', "p.'drag area'", 'u[3,1]')
    """
    if re.fullmatch(r"\[\d+\]", label):
        return add_index(name, str(int(label[1:-1]) + 1))
    return f"{name}.{quote_name(label_name(label))}"


def add_index(name: str, index: str) -> str:
    """Return the name of an element; the indices of nested lists are one list."""
    return f"{name[:-1]},{index}]" if name.endswith("]") else f"{name}[{index}]"


def quote_name(text: str) -> str:
    """Return text as a part of a structured name, in quotes where it is no identifier.

    >>> quote_name("mass"), quote_name("α"), quote_name("it's 2")
    ('mass', 'alpha', "'it_s 2'")
    """
    spelled = "".join(
        char
        if char.isascii() and (char.isalnum() or char == "_" or char in _QUOTABLE)
        else c_identifier(char)
        if char.isalpha()
        else "_"
        for char in text
    )
    return spelled if _IDENTIFIER.match(spelled) else f"'{spelled or '_'}'"


def element_names(leaf_name: str, shape: Sequence[int]) -> list[str]:
    """Return the names of the elements of an array, row by row.

    >>> element_names("x.R", (1, 2)), element_names("x.m", ())
    (['x.R[1,1]', 'x.R[1,2]'], ['x.m'])
    """
    if not shape:
        return [leaf_name]
    indices = np.ndindex(*shape)
    return [add_index(leaf_name, ",".join(str(k + 1) for k in index)) for index in indices]


def _field_details(cls: type) -> dict[str, _Details]:
    """Return what the fields of a struct declare, by name."""
    if not dataclasses.is_dataclass(cls):
        return {}
    texts = _parameter_texts(cls)
    details = {}
    for field in dataclasses.fields(cls):
        meta = field.metadata
        low, high = meta.get("limits", (None, None))
        details[field.name] = _Details(
            units=str(meta.get("units", "")),
            description=str(meta.get("description", texts.get(field.name, ""))),
            minimum=low,
            maximum=high,
            nominal=meta.get("nominal"),
        )
    return details


_ENTRY = re.compile(r"^(\w+(?:, *\w+)*)(?: *:.*)?$")


def _parameter_texts(cls: type) -> dict[str, str]:
    """Return the descriptions in the sections Parameters and Attributes of a docstring."""
    texts: dict[str, list[str]] = {}
    for base in reversed(cls.__mro__):
        doc = base.__dict__.get("__doc__")
        lines = inspect.cleandoc(doc).splitlines() if isinstance(doc, str) else []
        names: list[str] = []
        inside = False
        for line, below in zip(lines, [*lines[1:], ""]):
            if below and set(below) == {"-"}:
                inside, names = line.strip() in ("Parameters", "Attributes"), []
            elif inside and (entry := _ENTRY.match(line)) and set(line) != {"-"}:
                names = [name.strip() for name in entry[1].split(",")]
                texts |= {name: [] for name in names}
            elif inside and line.startswith("    "):
                for name in names:
                    texts[name].append(line.strip())
    return {name: " ".join(parts) for name, parts in texts.items()}
