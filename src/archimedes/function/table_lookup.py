"""Constant tables read at positions that may be traced.

NumPy offers no protocol for traced indices into plain arrays; a read becomes a lookup node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.indexing import read_table

__all__ = ["look_up", "read_at"]


def read_at(table: np.ndarray, index: Any) -> Any:
    """Return the elements of a constant 1-D table at an index, or an array of them.

    Traced positions outside the table give its ends.

    >>> read_at(np.array([1.0, 3.0, 9.0]), 2)
    np.float64(9.0)
    """
    return read_table(table, index) if is_traced(index) else np.take(table, index)


def look_up(table: np.ndarray, index: Any) -> Any:
    """Return ``table[index]`` along the first axis of a table of floats, also for traced indices.

    >>> look_up(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([3., 4.])
    """
    if not is_traced(index):
        return table[index]
    width = int(np.prod(table.shape[1:], dtype=int))
    flat = np.ascontiguousarray(table, dtype=np.float64).reshape(-1)
    places: Any = np.reshape(index * width, (*index.shape, 1)) + np.arange(width)
    return np.reshape(read_table(flat, places), (*index.shape, *table.shape[1:]))
