"""NumPy's functions for the package's own numbers, with the same bits on every processor.

NumPy's elementary functions, its products of matrices and its linear algebra are those of the
processor: vector units, BLAS and LAPACK round in different orders, by a unit in the last place.
What such a function makes of plain numbers while a model is built or recorded becomes a constant of
the model, and its results would differ from machine to machine. So constants are computed by the
functions here. Traced values go to NumPy's functions, and are recorded as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.graph.elementary import evaluate

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vector


def sin(x: ArrayLike) -> Array:
    """Return the sine."""
    return np.sin(x) if is_traced(x) else evaluate("sin", np.asarray(x, float))


def cos(x: ArrayLike) -> Array:
    """Return the cosine."""
    return np.cos(x) if is_traced(x) else evaluate("cos", np.asarray(x, float))


def arctan(x: ArrayLike) -> Array:
    """Return the arc tangent."""
    return np.arctan(x) if is_traced(x) else evaluate("arctan", np.asarray(x, float))


def log(x: ArrayLike) -> Array:
    """Return the natural logarithm."""
    return np.log(x) if is_traced(x) else evaluate("log", np.asarray(x, float))


def matmul(a: ArrayLike, b: ArrayLike, *more: ArrayLike) -> Any:
    """Return the product of two or more matrices (..., n, m), or of matrices and vectors (n,).

    Terms are added one after the other, from the first on.

    >>> matmul(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    if more:
        return matmul(matmul(a, b), *more)
    if is_traced(a, b):
        return np.matmul(a, b)
    left, right = np.asarray(a), np.asarray(b)
    row, column = left.ndim == 1, right.ndim == 1
    left = left[None, :] if row else left
    right = right[:, None] if column else right
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(f"matmul: shapes {np.shape(a)} and {np.shape(b)} do not fit")
    total = np.add.reduce(left[..., :, :, None] * right[..., None, :, :], axis=-2)
    total = total[..., 0] if column else total
    return total[..., 0, :] if row and not column else total[..., 0] if row else total


def norm(x: ArrayLike) -> Scalar:
    """Return the length of a vector (n,)."""
    return np.sqrt(matmul(x, x))


def solve_least_squares(A: Matrix, b: Vector) -> Vector:
    """Return the x (n,) for which |A x - b| is least, for plain numbers A (m, n) and b (m,).

    By Householder's reflections. Where columns depend on each other, but for rounding, it is the
    shortest such x, by NumPy's singular values: one of many, whose last digits are the processor's.

    >>> solve_least_squares(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3, 5]))
    array([1., 2.])
    """
    R, y = np.array(A, dtype=float), np.array(b, dtype=float)
    m, n = R.shape
    if m < n:
        return np.linalg.lstsq(A, b, rcond=None)[0]
    for k in range(n):
        v = np.array(R[k:, k])
        v[0] += np.copysign(norm(v), v[0])
        if v[0] != 0.0:
            v = v / v[0]  # so that a column with one number in it is exchanged without rounding
            factor = 2.0 / matmul(v, v)
            R[k:, k:] -= v[:, None] * (factor * matmul(v, R[k:, k:]))
            y[k:] -= v * (factor * matmul(v, y[k:]))
    sizes = np.abs(np.diagonal(R))
    if not sizes.min(initial=np.inf) > 1e-13 * sizes.max(initial=0.0):
        return np.linalg.lstsq(A, b, rcond=None)[0]
    x = np.zeros(n)
    for k in reversed(range(n)):
        x[k] = (y[k] - matmul(R[k, k + 1 : n], x[k + 1 :])) / R[k, k]
    return x
