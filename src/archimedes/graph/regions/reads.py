"""How the loops of a ``Nest`` read their inputs.

A value is read as it is (``WHOLE``: a scalar, or a block that the body reads ``element`` by
``element``), or one element of a block for each point of the index space: at an affine position,
or at positions listed in a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.digests import frozen, table_digest

__all__ = ["WHOLE", "Affine", "Gather", "Read", "positions", "row_major"]


class Affine(NamedTuple):
    """Element ``offset + sum(strides[k] * index[k])``.

    >>> positions(Affine(1, (3, 1)), (2, 2)).tolist()
    [[1, 2], [4, 5]]
    """

    offset: int
    strides: tuple[int, ...]

    def last(self, shape: Sequence[int]) -> tuple[int, int]:
        """Return the least and the greatest position."""
        ends = [s * (n - 1) for s, n in zip(self.strides, shape)]
        return self.offset + sum(e for e in ends if e < 0), self.offset + sum(
            e for e in ends if e > 0
        )


class Gather:
    """Elements at listed positions, one for each point of the index space in C order."""

    __slots__ = ("digest", "table")

    def __init__(self, table: np.ndarray) -> None:
        flat = table if np.ndim(table) == 1 else np.reshape(table, -1)
        self.table = frozen(flat, np.dtype(np.int64))
        self.digest = table_digest(self.table)

    def __repr__(self) -> str:
        return f"Gather({self.digest})"


#: The value itself.
WHOLE = None
Read = Affine | Gather | None


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array in C order, in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def positions(read: Affine | Gather, shape: Sequence[int]) -> np.ndarray:
    """Return the positions that are read, as an array over the index space."""
    if isinstance(read, Gather):
        return read.table.reshape(tuple(shape))
    found = np.full(tuple(shape), read.offset, dtype=np.int64)
    for axis, (n, stride) in enumerate(zip(shape, read.strides)):
        line = np.arange(n, dtype=np.int64) * stride
        found += line.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return found
