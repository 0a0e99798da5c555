"""``out=``: results written into arrays the caller keeps, for loops that allocate nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPE_NAMES, DTYPES

__all__ = ["result_arrays"]


def result_arrays(
    name: str, recording: Recording, out: Any, count: int | None = None
) -> list[np.ndarray]:
    """Return the arrays of ``out`` that take the traced results of a recording, in order.

    ``out`` must have the structure of the result and an array of the right shape and dtype in
    each leaf; ``count`` is the length of the leading axis of a batch. Results that do not depend
    on the arguments are written at once.
    """
    leaves, treedef = tree.flatten(out)
    difference = recording.out_tree.difference(treedef, "out")
    if difference is not None:
        raise ValueError(
            f"{name}: out does not have the structure of the result: {difference}; pass what an "
            "earlier call returned"
        )
    arrays = []
    for leaf, result, path in zip(leaves, recording.outs, treedef.paths("out")):
        if result.spec.code < 0:
            if isinstance(leaf, np.ndarray):
                leaf[...] = result.spec.value
            continue
        shape = result.spec.shape if count is None else (count, *result.spec.shape)
        _check(f"{name}: {path}", leaf, shape, result.spec.code)
        arrays.append(leaf)
    for k, (array, path) in enumerate(zip(arrays, treedef.paths("out"))):
        if any(np.may_share_memory(array, other) for other in arrays[:k]):
            raise ValueError(f"{name}: {path} shares memory with another array of out")
    return arrays


def _check(where: str, leaf: Any, shape: tuple[int, ...], code: int) -> None:
    wanted = f"a C-contiguous, writable {DTYPE_NAMES[code]} array of shape {shape}"
    if not isinstance(leaf, np.ndarray):
        hint = "; a 0-d array np.empty(()) takes a scalar result" if shape == () else ""
        raise TypeError(f"{where} is a {type(leaf).__name__}, it must be {wanted}{hint}")
    if leaf.shape != shape or leaf.dtype != DTYPES[code]:
        raise ValueError(f"{where} has shape {leaf.shape} and dtype {leaf.dtype}, not {wanted}")
    if not leaf.flags.c_contiguous or not leaf.flags.writeable or not leaf.flags.aligned:
        raise ValueError(f"{where} is not {wanted}: it is a view with gaps, or read-only")
