"""Where the instances of a batch go in its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.function.batching.batch_axes import spread_axes
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import code_of

__all__ = ["place_results"]


def place_results(
    recording: Recording, result: Any, axes: Any, count: int, batched: list[bool], arrays: Arrays
) -> Any:
    """Move the batch axis of each result leaf to where ``axes`` wants it."""
    if axes == 0 and all(out.spec.traced for out in recording.outs):
        return result
    leaves, treedef = tree.flatten(result)
    if axes is None or isinstance(axes, int):
        per_leaf = [axes] * len(leaves)
    else:
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
            leaf = _repeated(leaf, count, arrays)
        if not -np.ndim(leaf) <= axis < np.ndim(leaf):
            raise ValueError(
                f"vmap: out_axes={axis} is out of range for {path}, which with the batch has "
                f"{np.ndim(leaf)} axes"
            )
        placed.append(arrays.move_axis(leaf, 0, axis) if axis else leaf)
    return treedef.unflatten(placed)


def _repeated(value: Any, count: int, arrays: Arrays) -> Any:
    """Return a value that no instance changes, once for each of them."""
    whole = np.broadcast_to(value, (count, *np.shape(value))).copy()
    code = code_of(whole.dtype)
    return whole if arrays is HOST or code is None else arrays.take(whole, code, whole.shape)


def _varies(recording: Recording, batched: list[bool]) -> list[bool]:
    """Tell for each output of the graph whether a batched input reaches it."""
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
