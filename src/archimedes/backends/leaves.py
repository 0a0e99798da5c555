"""The arrays of a program: which of its inputs and outputs each holds, blocks or scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import block_type, length_of


def leaf_values(kinds: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return how many inputs (or outputs) of these types each array of so many items holds.

    An array that is a block holds one; an array of scalars holds as many as it has items.

    >>> from archimedes.graph.dtypes import F64, block_type
    >>> leaf_values([F64, F64, block_type(F64, 100), F64], [2, 0, 100, 1])
    [2, 0, 1, 1]
    """
    counts: list[int] = []
    at = 0
    for size in sizes:
        block = size and at < len(kinds) and length_of(kinds[at])
        counts.append(1 if block else size)
        at += counts[-1]
    return counts


def types_of_arrays(kinds: Sequence[int], leaves: Sequence[tuple[int, int]]) -> list[int]:
    """Return the types of inputs (or outputs) that arrays of (size, dtype) describe.

    ``kinds`` are those of the graph, which say where a block is meant.
    """
    listed: list[int] = []
    for (size, dtype), count in zip(leaves, leaf_values(kinds, [size for size, _ in leaves])):
        block = size and len(listed) < len(kinds) and length_of(kinds[len(listed)])
        listed += [block_type(dtype, size) if block else dtype] * count
    return listed


def values_in(arrays: Sequence[np.ndarray], kinds: Sequence[int]) -> list[Any]:
    """Return the inputs of these types that arrays hold: scalars, and blocks as 1-D arrays."""
    values: list[Any] = []
    for array in arrays:
        flat = array.ravel() if isinstance(array, np.ndarray) else np.ravel(array)
        if flat.size and length_of(kinds[len(values)]):
            values.append(flat)
        else:
            values.extend(flat)
    return values


def put_values(values: Sequence[Any], kinds: Sequence[int], arrays: Sequence[np.ndarray]) -> None:
    """Write outputs of these types to the arrays that hold them."""
    at = 0
    for array in arrays:
        if array.size and length_of(kinds[at]):
            array.reshape(-1)[:] = values[at]
            at += 1
            continue
        end = at + array.size
        array.reshape(-1)[:] = values[at:end]
        at = end
