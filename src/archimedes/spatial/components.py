"""Vectors as components: one set of formulas for a single attitude, a batch and a trace.

Formulas in this package are written on components, ``w, x, y, z = components(q, 4)``. A batch or a
traced array gives its slices; a single float vector gives Python floats, for which arithmetic and
`math` are ten times quicker than NumPy calls. The functions here choose between the two by type,
never by value, so the formulas above them know nothing of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy import ndarray

from archimedes.checks import FLOAT
from archimedes.typing import Array, Matrix, Scalar, Vec3

nine_doubles = Struct("9d").pack


def components(x: Array, n: int) -> Sequence[Any]:
    """Return the `n` components along the last axis."""
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype is FLOAT:
        return x.tolist()
    return [x[..., k] for k in range(n)]


def matrix_components(m: Matrix) -> Sequence[Sequence[Any]]:
    """Return the entries of a matrix (..., 3, 3) as three rows of three."""
    if type(m) is np.ndarray and m.ndim == 2 and m.dtype is FLOAT:
        return m.tolist()
    return [[m[..., i, j] for j in range(3)] for i in range(3)]


def join(parts: Sequence[Any]) -> Any:
    """Stack components along a new last axis: the inverse of `components`.

    Either all parts are Python floats or none is.
    """
    if type(parts[0]) is float:
        return np.array(parts)
    if len({np.shape(part) for part in parts}) > 1:
        parts = np.broadcast_arrays(*parts)
    return np.stack(parts, axis=-1)


def join_matrix(entries: Sequence[Any]) -> Any:
    """Make a matrix (..., 3, 3) of nine entries, row by row."""
    if type(entries[0]) is float:
        # Laying the array over a buffer of doubles is quicker than np.array(...).reshape(3, 3).
        return ndarray((3, 3), FLOAT, bytearray(nine_doubles(*entries)))
    flat = join(entries)
    return flat.reshape((*flat.shape[:-1], 3, 3))


def sqrt(x: Scalar) -> Any:
    """Return the square root."""
    return math.sqrt(x) if type(x) is float else np.sqrt(x)


def sin(x: Scalar) -> Any:
    """Return the sine, of an infinity nan as NumPy does."""
    if type(x) is not float:
        return np.sin(x)
    try:
        return math.sin(x)
    except ValueError:
        return math.nan


def cos(x: Scalar) -> Any:
    """Return the cosine, of an infinity nan as NumPy does."""
    if type(x) is not float:
        return np.cos(x)
    try:
        return math.cos(x)
    except ValueError:
        return math.nan


def atan2(y: Scalar, x: Scalar) -> Any:
    """Return the angle of the point (x, y)."""
    return math.atan2(y, x) if type(y) is float and type(x) is float else np.arctan2(y, x)


def select(test: Any, a: Scalar, b: Scalar) -> Any:
    """Return `a` where `test` holds, else `b`; both are computed, so both must be safe."""
    return (a if test else b) if type(test) is bool else np.where(test, a, b)


def choose(test: Any, a: Sequence[Any], b: Sequence[Any]) -> Sequence[Any]:
    """Apply `select` to each component."""
    if type(test) is bool:
        return a if test else b
    return [np.where(test, p, q) for p, q in zip(a, b, strict=True)]


def polynomial(coefficients: Sequence[float], x: Scalar) -> Any:
    """Evaluate the polynomial with these coefficients, constant term first, by Horner's rule."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return the sum of products of three or four components."""
    total = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return total + a[3] * b[3] if len(a) == 4 else total


def scaled_norm(v: Sequence[Any]) -> Any:
    """Return the Euclidean norm, also of tiny vectors; its derivative at zero is zero."""
    if all(type(c) is float for c in v):
        return math.hypot(*v)
    size = np.abs(v[0])
    for c in v[1:]:
        size = np.maximum(size, np.abs(c))
    zero = size == 0.0
    size = np.where(zero, 1.0, size)
    scaled = [c / size for c in v]
    return np.where(zero, 0.0, size * np.sqrt(np.where(zero, 1.0, dot(scaled, scaled))))


def cross(a: Vec3, b: Array) -> Any:
    """Return the vector product of arrays (..., 3), broadcast against each other."""
    ax, ay, az = components(a, 3)
    bx, by, bz = components(b, 3)
    return join([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def skew(v: Vec3) -> Any:
    """Return the matrix (..., 3, 3) with ``skew(v) @ u == cross(v, u)``."""
    x, y, z = components(v, 3)
    zero = 0.0 * x
    return join_matrix([zero, -z, y, z, zero, -x, -y, x, zero])


def matvec(matrix: Matrix, vector: Vec3) -> Any:
    """Return the product of matrices (..., 3, 3) and vectors (..., 3), broadcast.

    Batches are multiplied out by components: NumPy's product of many small matrices is slow.
    """
    if matrix.ndim == 2 and vector.ndim == 1:
        if matrix.dtype is vector.dtype is FLOAT and type(matrix) is type(vector) is ndarray:
            # BLAS adds in another order on every processor.
            x, y, z = vector.tolist()
            return join([a * x + b * y + c * z for a, b, c in matrix.tolist()])
        return matrix @ vector
    x, y, z = (vector[..., k] for k in range(3))
    return join(
        [matrix[..., i, 0] * x + matrix[..., i, 1] * y + matrix[..., i, 2] * z for i in range(3)]
    )


def transpose(matrix: Matrix) -> Any:
    """Return the matrices with their last two axes swapped."""
    return matrix.T if matrix.ndim == 2 else np.swapaxes(matrix, -1, -2)


def expand(x: Any) -> Any:
    """Add a last axis, so that a value per attitude multiplies its vector."""
    return x if type(x) is float else x[..., None]
