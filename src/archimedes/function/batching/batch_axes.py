"""Axes of instances: where they lie in the arguments of a batch, and where in its results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.registry import backend_of
from archimedes.errors import refer_to
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import code_of
from archimedes.symbolic import SymbolicArray, as_traced, wrap
from archimedes.symbolic.core.conversion import refuse_subclass
from archimedes.tree.treedef import TreeDef


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
    entries = in_axes
    if entries is None or isinstance(entries, int):
        entries = (entries,) * len(args)
    if len(entries) != len(args):
        raise ValueError(
            f"vmap: in_axes has {len(entries)} entries, but {name}() was given {len(args)} "
            "arguments"
        )
    return [axis for arg, axes in zip(args, entries) for axis in spread_axes(axes, arg)]


def count_instances(
    leaves: list[Any], axes: list[int | None], treedef: TreeDef, caller: str = "vmap"
) -> int:
    """Return the one length that all mapped axes have; ``caller`` is who maps, for errors."""
    sizes: dict[int, int] = {}
    for k, (leaf, axis) in enumerate(zip(leaves, axes)):
        refuse_subclass(leaf, functools.partial(_argument_name, treedef, k, caller))
        if axis is None:
            continue
        shape = np.shape(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"{caller}: argument {treedef.paths()[k]} has shape {shape}, which has no axis "
                f"{axis} to map over; set its entry of in_axes to None to share it"
            )
        sizes[k] = shape[axis]
    if not sizes:
        raise ValueError(f"{caller}: no argument has an axis to map over (in_axes is None)")
    if len(set(sizes.values())) > 1:
        paths = treedef.paths()
        named = {paths[k]: size for k, size in sizes.items()}
        raise ValueError(
            f"{caller}: the mapped axes have different lengths: {named}" + refer_to("axes")
        )
    return next(iter(sizes.values()))


def _argument_name(treedef: TreeDef, k: int, caller: str) -> str:
    return f"{caller}: argument {treedef.paths()[k]}"


def spread_axes(axes: Any, value: Any) -> list[int | None]:
    """Match a tree of axes, which may be a prefix of the value's tree, to its leaves."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda x: x is not value)
    entries, structure = tree.flatten(axes, is_leaf=lambda x: x is not axes)
    difference = shape.difference(structure, "", parts, entries)
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


def place_results(
    recording: Recording, result: Any, axes: Any, count: int, batched: list[bool], arrays: Arrays
) -> Any:
    """Move the batch axis of each result leaf to where ``axes`` wants it."""
    if axes == 0 and all(out.spec.traced for out in recording.outs):
        return result
    leaves, treedef = tree.flatten(result)
    per_leaf = spread_axes(axes, result)
    varies = _varies(recording, batched) if None in per_leaf else []
    placed = []
    for leaf, axis, out, path in zip(leaves, per_leaf, recording.outs, treedef.paths("result")):
        if axis is None:
            if any(varies[out.start : out.stop]):
                raise ValueError(
                    f"vmap: out_axes is None for {path}, which differs between instances: "
                    "give it an axis"
                )
            placed.append(_shared(leaf, count, path, arrays) if out.spec.traced else leaf)
            continue
        if not out.spec.traced:
            leaf = _repeat(leaf, count, arrays)
        if not -np.ndim(leaf) <= axis < np.ndim(leaf):
            raise ValueError(
                f"vmap: out_axes={axis} is out of range for {path}, which with the batch has "
                f"{np.ndim(leaf)} axes"
            )
        placed.append(arrays.move_axis(leaf, 0, axis) if axis else leaf)
    return treedef.unflatten(placed)


def _repeat(value: Any, count: int, arrays: Arrays) -> Any:
    """Return a value that no instance changes, once for each of them."""
    whole = np.broadcast_to(value, (count, *np.shape(value))).copy()
    code = code_of(whole.dtype)
    return whole if arrays is HOST or code is None else arrays.take(whole, code, whole.shape)


def _varies(recording: Recording, batched: list[bool]) -> list[bool]:
    """Return for each output of the graph whether a batched input reaches it."""
    g = recording.graph
    reached = [False] * len(g.op)
    for spec, start, many in zip(recording.leaves, recording.offsets(), batched):
        if many and spec.traced:
            for i in g.inputs[start : start + spec.size]:
                reached[i] = True
    for i in g.live():
        reached[i] = reached[i] or any(reached[j] for j in g.operands(i))
    return [reached[i] for i in g.outputs]


def _shared(leaf: Any, count: int, path: str, arrays: Arrays) -> Any:
    """Return the value that all instances share."""
    if not count:
        raise ValueError(f"vmap: out_axes is None for {path}, but an empty batch has no value")
    return arrays.first(leaf)
