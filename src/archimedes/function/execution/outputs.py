"""``out=``: results written into arrays the caller keeps, for loops that allocate nothing."""

from __future__ import annotations

from typing import Any

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPE_NAMES, DTYPES

__all__ = ["result_arrays"]


def result_arrays(
    name: str, recording: Recording, out: Any, arrays: Arrays = HOST, count: int | None = None
) -> list[Any]:
    """Return the arrays of ``out`` that take the traced results of a recording, in order.

    ``out`` must have the structure of the result and an array of the right shape and dtype in
    each leaf, of the kind ``arrays``; ``count`` is the length of the leading axis of a batch.
    Results that do not depend on the arguments are written at once.
    """
    leaves, treedef = tree.flatten(out)
    difference = recording.out_tree.difference(treedef, "out")
    if difference is not None:
        raise ValueError(
            f"{name}: out does not have the structure of the result: {difference}; pass what an "
            "earlier call returned"
        )
    found = []
    for leaf, result, path in zip(leaves, recording.outs, treedef.paths("out")):
        if not result.spec.traced:
            if arrays.owns(leaf):
                arrays.copy_into(result.spec.value, leaf)
            continue
        shape = result.spec.shape if count is None else (count, *result.spec.shape)
        _check(f"{name}: {path}", leaf, arrays, shape, result.spec.code)
        found.append(leaf)
    for k, (array, path) in enumerate(zip(found, treedef.paths("out"))):
        if any(arrays.may_overlap(array, other) for other in found[:k]):
            raise ValueError(f"{name}: {path} shares memory with another array of out")
    return found


def _check(where: str, leaf: Any, arrays: Arrays, shape: tuple[int, ...], code: int) -> None:
    kind = "" if arrays is HOST else f"{arrays.kind} "
    wanted = f"a C-contiguous, writable {DTYPE_NAMES[code]} {kind}array of shape {shape}"
    if not arrays.owns(leaf):
        hint = "; a 0-d array np.empty(()) takes a scalar result" if shape == () else ""
        raise TypeError(f"{where} is a {type(leaf).__name__}, it must be {wanted}{hint}")
    its_shape, dtype = arrays.describe(leaf)
    if its_shape != shape or dtype != DTYPES[code]:
        raise ValueError(f"{where} has shape {its_shape} and dtype {dtype}, not {wanted}")
    if not arrays.is_plain(leaf):
        raise ValueError(f"{where} is not {wanted}: it is a view with gaps, or read-only")
