"""Sums and products of vectors that steps are made of."""

from __future__ import annotations

from typing import Any

from archimedes.function import vmap

__all__ = ["product", "weighted"]

#: Vectors of more numbers than this are multiplied by a matrix in a loop.
WRITTEN_OUT = 12


def weighted(weights: Any, vectors: Any, start: Any = None) -> Any:
    """Return ``start`` plus the sum of weights times vectors, in order, without the zero weights.

    >>> import numpy as np
    >>> weighted((2.0, 0.0, 1.0), [np.array([1.0]), np.array([5.0]), np.array([3.0])])
    array([5.])
    """
    total = start
    for weight, vector in zip(weights, vectors):
        if weight:
            term = vector if weight == 1.0 else weight * vector
            total = term if total is None else total + term
    return total


def product(matrix: Any, vector: Any) -> Any:
    """Return matrix @ vector, as a loop over the rows where n * n products compile for long.

    >>> import numpy as np
    >>> product(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    if vector.size <= WRITTEN_OUT:
        return matrix @ vector
    return vmap(lambda row, vector: row @ vector, in_axes=(0, None))(matrix, vector)
