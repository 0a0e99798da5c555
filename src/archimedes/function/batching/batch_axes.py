"""Which axis of each argument the instances of a batch lie along."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST
from archimedes.backends.registry import backend_of
from archimedes.errors import explained
from archimedes.symbolic import SymbolicArray, wrap
from archimedes.symbolic.core.conversion import refuse_subclass
from archimedes.symbolic.core.traced_value import as_traced
from archimedes.tree.treedef import TreeDef

__all__ = ["check_axes", "count_instances", "instance", "leaf_axes", "spread_axes", "to_front"]


def check_axes(axes: Any, name: str) -> None:
    """Raise unless axes are ints and Nones, or a tree of those."""
    for axis in tree.leaves(axes):
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise TypeError(
                f"vmap: {name}={axes!r} holds {axis!r}, which is not an axis: give an int, None "
                "(for what all instances share), or a tuple or tree of those"
            )


def leaf_axes(in_axes: Any, args: tuple[Any, ...], name: str) -> list[int | None]:
    """Return the batch axis of every leaf of a function's arguments, None where it is shared."""
    given = in_axes
    if given is None or isinstance(given, int):
        given = (given,) * len(args)
    if len(given) != len(args):
        raise ValueError(
            f"vmap: in_axes has {len(given)} entries, but {name}() was given {len(args)} arguments"
        )
    axes: list[int | None] = []
    for arg, axis in zip(args, given):
        if axis is None or isinstance(axis, (int, np.integer)):
            count = len(tree.leaves(arg))
            axes.extend([None if axis is None else int(axis)] * count)
        else:
            axes.extend(spread_axes(axis, arg))
    return axes


def count_instances(leaves: list[Any], axes: list[int | None], treedef: TreeDef) -> int:
    """Return the one length that all mapped axes have."""
    sizes: dict[int, int] = {}
    for k, (leaf, axis) in enumerate(zip(leaves, axes)):
        refuse_subclass(leaf, functools.partial(_argument, treedef, k))
        if axis is None:
            continue
        shape = np.shape(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"vmap: argument {treedef.paths()[k]} has shape {shape}, which has no axis "
                f"{axis} to map over; set its entry of in_axes to None to share it"
            )
        sizes[k] = shape[axis]
    if not sizes:
        raise ValueError("vmap: no argument has an axis to map over (in_axes is None)")
    if len(set(sizes.values())) > 1:
        paths = treedef.paths()
        named = {paths[k]: size for k, size in sizes.items()}
        raise ValueError(
            explained("axes", f"vmap: the mapped axes have different lengths: {named}")
        )
    return next(iter(sizes.values()))


def _argument(treedef: TreeDef, k: int) -> str:
    return f"vmap: argument {treedef.paths()[k]}"


def spread_axes(axes: Any, value: Any) -> list[int | None]:
    """Match a tree of axes, which may be a prefix of the value's tree, to its leaves."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda x: x is not value)
    entries, given = tree.flatten(axes, is_leaf=lambda x: x is not axes)
    difference = shape.difference(given, "", parts, entries)
    if difference is not None:
        raise ValueError(
            f"axes {axes!r} do not match the {type(value).__name__} they are for: {difference}"
        )
    return [axis for a, v in zip(entries, parts) for axis in spread_axes(a, v)]


def to_front(leaf: Any, axis: int | None) -> Any:
    """Return a leaf with its batch axis first (None: it has none)."""
    if axis is None:
        return leaf
    leaf = as_traced(leaf)
    if not isinstance(leaf, (SymbolicArray, np.ndarray)):
        home = backend_of(leaf)
        if home is not None:
            return home.arrays.move_axis(leaf, axis, 0) if axis else leaf
        leaf = np.asarray(leaf)
    return np.moveaxis(leaf, axis, 0) if axis else leaf


def instance(leaf: Any) -> Any:
    """Return something with the shape and dtype of one instance (also of an empty batch)."""
    if isinstance(leaf, SymbolicArray):
        if leaf.shape[0]:
            return leaf[0]
        return wrap(np.zeros(leaf.shape[1:], dtype=np.int64), leaf.code, leaf.owner)
    home = None if isinstance(leaf, np.ndarray) else backend_of(leaf)
    shape, dtype = HOST.describe(leaf) if home is None else home.arrays.describe(leaf)
    return np.zeros(shape[1:], dtype=dtype)[()]
