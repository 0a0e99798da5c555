"""Products with matrices, in steps of implicit methods."""

from __future__ import annotations

from typing import Any

from archimedes.function import vmap

__all__ = ["product"]

#: Vectors of more numbers than this are multiplied by a matrix in a loop.
WRITTEN_OUT = 12


def product(matrix: Any, vector: Any) -> Any:
    """Return matrix @ vector, as a loop over the rows where n * n products compile for long.

    >>> import numpy as np
    >>> product(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    if vector.size <= WRITTEN_OUT:
        return matrix @ vector
    return vmap(lambda row, vector: row @ vector, in_axes=(0, None))(matrix, vector)
