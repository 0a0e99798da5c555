"""Names and units of the numbers in a tree: what tables, plots and files call each of them.

A number is named by the path of its leaf and its place in it: ``pos[0]``, ``wing.cl``,
``J[0,1]``. Where the tree is one array the name starts with the tree's own (``x[0]``). The array
inside an attitude is called as the attitude, ``att[0]``. Units come from ``field(units=...)``; a
unit given for a whole struct holds for what is in it unless that has its own.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from archimedes import tree
from archimedes.tree.treedef import LEAF, TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree

#: Parts of a trajectory that tables hold, by the name that their columns start with.
PARTS = ("x", "u", "y")

#: A field, a number in brackets, or a key in brackets as `repr` writes it.
STEP = re.compile(
    r"""\.?([^.\[]+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""", re.DOTALL
)
#: The most steps of a name.
DEEPEST = 50
KEY = re.compile(r"\['([A-Za-z_]\w*)'\]")


class LeafLabel(NamedTuple):
    """The name of a leaf, unit and limits of its numbers ("" and None where none are known)."""

    name: str
    units: str
    limits: tuple[float, float] | None = None


class Column(NamedTuple):
    """One number of a tree over time: name, unit, its leaf, its place in that leaf, its limits."""

    name: str
    units: str
    leaf: int
    place: tuple[int, ...]
    limits: tuple[float, float] | None = None


@functools.cache
def field_tags(cls: type, tag: str) -> dict[str, Any]:
    """Return what the fields of a struct class declare (units, limits), by name."""
    if not dataclasses.is_dataclass(cls):
        return {}
    return {f.name: f.metadata[tag] for f in dataclasses.fields(cls) if tag in f.metadata}


def walk(
    node: TreeDef, path: str, units: str, limits: tuple[float, float] | None = None
) -> Iterator[LeafLabel]:
    """Yield the label of each leaf below `node`, in the order of the leaves."""
    if node is LEAF:
        yield LeafLabel(path, units, limits)
        return
    labels = node.kind.labels(node.aux, len(node.children))
    own, ranges = field_tags(node.kind.cls, "units"), field_tags(node.kind.cls, "limits")
    if hasattr(node.kind.cls, "leaf_units"):  # names and units that belong to the object
        own = node.kind.cls.leaf_units(node.aux)
    wrapper = list(labels) == [".array"]  # an attitude is called by its own name
    for label, child in zip(labels, node.children, strict=True):
        name = KEY.fullmatch(label)
        below = path if wrapper else path + (f".{name[1]}" if name else label)
        field = label[1:]
        yield from walk(child, below, own.get(field, units), ranges.get(field, limits))


def label_leaves(treedef: TreeDef, root: str = "x", prefix: bool = True) -> list[LeafLabel]:
    """Return the label of each leaf of a structure.

    `root` names the tree; with `prefix` it starts every name, without it only the names that have
    no field to start with.

    >>> from archimedes import tree
    >>> [leaf.name for leaf in label_leaves(tree.structure({"a": 0, "b": [0, 0]}), prefix=False)]
    ['a', 'b[0]', 'b[1]']
    """
    labels = []
    for path, units, limits in walk(treedef, "", ""):
        bare = path[1:] if path.startswith(".") and not prefix else root + path
        labels.append(LeafLabel(bare, units, limits))
    return labels


def component_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of the numbers in a leaf of a shape, in C order.

    >>> component_names("J", (1, 2))
    ['J[0,0]', 'J[0,1]']
    """
    if not shape:
        return [name]
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]


def path_steps(name: str) -> list[Any]:
    """Return the fields, numbers and keys that the name of a leaf consists of.

    >>> path_steps("x.wing['a.b'][0]")
    ['x', 'wing', 'a.b', 0]
    """
    return [_read_step(name, match) for match in find_steps(name)]


def find_steps(name: str) -> list[re.Match[str]]:
    """Return the matches of the steps of a name, of which a file may not have too many."""
    steps = list(itertools.islice(STEP.finditer(name), DEEPEST + 1))
    if len(steps) > DEEPEST:
        raise ValueError(f"{name[:60]}... is nested more than {DEEPEST} deep")
    return steps


def _read_step(name: str, match: re.Match[str]) -> Any:
    """Return the field, number or key that a step of a leaf's name stands for."""
    field, number, key = match.groups()
    if key is None:
        return int(number) if number else field
    try:
        return ast.literal_eval(key)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"the name {name!r} has a key that is not text: {key}") from error


def tree_columns(value: Tree, lead: int, root: str = "x", prefix: bool = True) -> list[Column]:
    """Return the columns of a tree whose leaves have `lead` leading axes of batch and time."""
    leaves, treedef = tree.flatten(value)
    columns = []
    for k, (leaf, label) in enumerate(zip(leaves, label_leaves(treedef, root, prefix))):
        shape = tuple(np.shape(leaf)[lead:])
        for name, index in zip(component_names(label.name, shape), np.ndindex(*shape)):
            columns.append(Column(name, label.units, k, index, label.limits))
    return columns


Named = TypeVar("Named", LeafLabel, Column)


def add_units(labels: Iterable[Named], given: Mapping[str, str], part: str) -> list[Named]:
    """Return labels with the units that are given by name where they have none of their own.

    Names of the state may start with ``x.`` or not.

    >>> add_units([LeafLabel("x.pos", ""), LeafLabel("t", "s")], {"pos": "m", "t": "h"}, "x")
    [LeafLabel(name='x.pos', units='m', limits=None), LeafLabel(name='t', units='s', limits=None)]
    """
    if not given:
        return list(labels)
    return [each if each.units else _with_units(each, given, part) for each in labels]


def _with_units(label: Named, given: Mapping[str, str], part: str) -> Named:
    names = [label.name]
    if isinstance(label, Column) and label.place:
        names.append(label.name[: label.name.rindex("[")])
    if part == "x":
        names += [name[2:] if name.startswith("x.") else f"x.{name}" for name in names]
    units = next((given[name] for name in names if name in given), "")
    return label._replace(units=units)


def check_unit_names(units: Mapping[str, str] | None, where: str) -> Mapping[str, str]:
    """Return units by name as what nobody can change."""
    given = dict(units or {})
    if wrong := [name for name, unit in given.items() if not isinstance(unit, str)]:
        raise TypeError(
            f"{where}: the unit of {wrong[0]!r} must be text such as 'm/s', got {given[wrong[0]]!r}"
        )
    return MappingProxyType(given)


def split_names(names: Iterable[str], rooted: bool = False) -> dict[str, list[str]]:
    """Return the column names that belong to each part of a trajectory, ``x``, ``u`` or ``y``.

    Names that start with ``x`` as a whole word mark the state; if there are any, ``u`` and ``y``
    mark inputs and outputs likewise. Otherwise only ``u[`` ``u.`` ``y[`` and ``y.`` do, so that a
    state may have components called u or y. `rooted` says that the state is known already.

    >>> split_names(["pos[0]", "u[0]", "y"])
    {'x': ['pos[0]', 'y'], 'u': ['u[0]'], 'y': []}
    """
    names = list(names)
    rooted = rooted or any(_starts_with("x", name) for name in names)
    parts: dict[str, list[str]] = {part: [] for part in PARTS}
    for name in names:
        marked = (p for p in ("u", "y") if _starts_with(p, name) and (rooted or name != p))
        parts[next(marked, "x")].append(name)
    return parts


def needs_prefix(names: Mapping[str, list[str]], taken: Iterable[str] = ("t", "run")) -> bool:
    """Return whether names of x, u and y would be misread, so that x needs its ``x.`` in front.

    >>> needs_prefix({"x": ["pos"], "u": ["u[0]"], "y": []})
    False
    >>> needs_prefix({"x": ["pos"], "u": ["u"], "y": []})
    True
    """
    every = [*taken, *(name for part in PARTS for name in names[part])]
    return len(set(every)) < len(every) or split_names(every[len(list(taken)) :]) != names


def _starts_with(part: str, name: str) -> bool:
    return name == part or name.startswith((f"{part}.", f"{part}["))
