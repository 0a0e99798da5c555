"""Rotations as products of rotations about coordinate axes, the cheapest way to rotate.

Legend: a rotation about axis k by an angle of cosine c and sine s takes the components (i, j) that
follow k in the cycle x, y, z to (c x_i - s x_j, s x_i + c x_j); the component along k stays. A
symmetric matrix takes 8 products, where a product with R on both sides takes 45. Factors are listed
from the parent to the child, ``R = T_1 T_2 ... T_n``.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, section A.4: inertias are rotated about
one axis at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import components, cos, join, join_matrix, matrix_components, sin
from archimedes.typing import Matrix, Scalar, Vec3

#: How far the product of the factors may be from the matrix that they stand for.
TOLERANCE = 1e-14


#: The two axes that rotate into each other about each axis.
PLANES = ((1, 2), (2, 0), (0, 1))


class AxisRotation(NamedTuple):
    """A rotation about coordinate axis 0, 1 or 2 by an angle of this cosine and sine."""

    axis: int
    c: Any
    s: Any

    @property
    def plane(self) -> tuple[int, int]:
        """The two axes that rotate into each other."""
        return PLANES[self.axis]

    def rotate(self, x: Any, y: Scalar) -> tuple[Any, Any]:
        """Return (c x - s y, s x + c y), without products for a multiple of 90 deg."""
        _, c, s = self
        if type(c) is float and c == 0.0:
            return (-y, x) if s > 0 else (y, -x)
        if type(c) is float and s == 0.0:
            return (x, y) if c > 0 else (-x, -y)
        return c * x - s * y, s * x + c * y


@lru_cache(maxsize=1024)
def coordinate_axis(axis: tuple[float, ...]) -> int | None:
    """Return the coordinate axis 0, 1 or 2 that a unit axis is along, or None."""
    if sorted(map(abs, axis)) != [0.0, 0.0, 1.0]:
        return None
    return max(range(3), key=lambda k: abs(axis[k]))


def axis_rotation(axis: tuple[float, ...], angle: Scalar) -> tuple[AxisRotation, ...] | None:
    """Return the rotation about an axis that is along a coordinate axis, else None."""
    k = coordinate_axis(axis)
    if k is None:
        return None
    s = sin(angle)
    return (AxisRotation(k, cos(angle), s if axis[k] > 0 else -s),)


def merge_rotations(rotations: Sequence[AxisRotation]) -> tuple[AxisRotation, ...]:
    """Return the factors with neighbours about one axis made one, and without the identity."""
    merged: list[AxisRotation] = []
    for factor in rotations:
        if type(factor.c) is float and factor.c == 1.0 and factor.s == 0.0:
            continue
        if merged and merged[-1].axis == factor.axis:
            axis, c, s = merged.pop()
            factor = AxisRotation(axis, c * factor.c - s * factor.s, s * factor.c + c * factor.s)
        merged.append(factor)
    return tuple(merged)


def factor_rotation(R: np.ndarray, last: int | None = None) -> tuple[AxisRotation, ...] | None:
    """Return the fewest factors whose product is a rotation matrix of known numbers.

    Give the axis `last` if a rotation about it follows: the last factor will then merge with it.

    >>> factor_rotation(np.array([[1.0, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]]))
    (AxisRotation(axis=0, c=0.6, s=0.8),)
    """
    ways = [_euler_factors(R, k, m) for k, m in permutations(range(3), 2) if last in (None, k)]

    def cost(factors: tuple[AxisRotation, ...]) -> tuple[int, int]:
        counted = [t for t in factors if t is not factors[-1] or t.axis != last]
        return sum(t.c != 0.0 and t.s != 0.0 for t in counted), len(counted)

    for factors in sorted(ways, key=cost):
        product = np.eye(3)
        for factor in factors:
            product = matmul(product, rotation_matrix(factor))
        exact = all(abs(t.c * t.c + t.s * t.s - 1.0) <= TOLERANCE for t in factors)
        if exact and np.abs(product - R).max() <= TOLERANCE:
            return factors
    return None


def hypotenuse(x: float, y: float) -> float:
    """Return the length of a vector, however short: ``math.hypot`` rounds as the C library does."""
    _, power = math.frexp(max(abs(x), abs(y)))
    x, y = math.ldexp(x, -power), math.ldexp(y, -power)
    return math.ldexp(math.sqrt(x * x + y * y), power)


def rotation_matrix(rotation: AxisRotation) -> np.ndarray:
    """Return the matrix (3, 3) of a rotation by known numbers."""
    (k, c, s), (i, j) = rotation, rotation.plane
    R = np.zeros((3, 3))
    R[k, k] = 1.0
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def round_rotation(R: Matrix) -> Matrix:
    """Return a rotation without what rounding has left of zeros, such as cos(pi / 2).

    Exact zeros make shorter programs; what is taken off is below 1e-15.
    """
    values = concrete(R)
    if values is None:
        return R
    near = np.round(values)
    return np.where(np.abs(values - near) < 1e-15, near + 0.0, values)


def _euler_factors(R: np.ndarray, k: int, m: int) -> tuple[AxisRotation, ...]:
    """Return R as rotations about the axes k, m and k."""
    (i, j), entry = PLANES[k], R.tolist()
    if entry[i][k] == entry[j][k] == 0.0:
        # The axis k stays or is turned over: half a turn about m, and one about k.
        over = AxisRotation(m, 1.0 if entry[k][k] > 0 else -1.0, 0.0)
        rest = matmul(rotation_matrix(over).T, R).tolist()
        return merge_rotations([over, AxisRotation(k, rest[i][i], rest[j][i])])
    # The middle rotation by alpha tips k: its column has sin(alpha) times the first one's cosine
    # and sine, its row those of the last one.
    x, y = (-entry[j][k], entry[i][k]) if m == i else (entry[i][k], entry[j][k])
    u, w = (entry[k][j], entry[k][i]) if m == i else (-entry[k][i], entry[k][j])
    sine = x if y == 0.0 else y if x == 0.0 else hypotenuse(x, y)
    # A small sine leaves few digits in these: each is made a rotation, and `factor_rotation` checks
    # that the product is still the matrix.
    other = math.copysign(hypotenuse(u, w), sine)
    if other == 0.0:
        return ()
    first, last = AxisRotation(k, x / sine, y / sine), AxisRotation(k, u / other, w / other)
    return merge_rotations([first, AxisRotation(m, entry[k][k], sine), last])


# ---- rotating --------------------------------------------------------------------------------


def _broadcast(parts: Sequence[Any]) -> Sequence[Any]:
    """Return entries of one shape: some may be plain numbers beside others that are not."""
    kinds = {*map(type, parts)}
    return np.broadcast_arrays(*parts) if float in kinds and len(kinds) > 1 else parts


def rotate_vector(rotations: Sequence[AxisRotation], v: Vec3) -> Vec3:
    """Return ``R v`` (..., 3)."""
    parts = list(components(v, 3))
    for rotation in reversed(rotations):
        i, j = rotation.plane
        parts[i], parts[j] = rotation.rotate(parts[i], parts[j])
    return join(_broadcast(parts))


def rotate_back(rotations: Sequence[AxisRotation], v: Vec3) -> Vec3:
    """Return ``R' v`` (..., 3)."""
    return rotate_vector([AxisRotation(k, c, -s) for k, c, s in reversed(rotations)], v)


def rotate_symmetric(rotations: Sequence[AxisRotation], M: Matrix) -> Matrix:
    """Return ``R M R'`` of a symmetric matrix (..., 3, 3), of which the upper triangle is read."""
    (a, b, c), (_, d, e), (_, _, f) = matrix_components(M)
    entry = [[a, b, c], [b, d, e], [c, e, f]]
    for rotation in reversed(rotations):
        (k, c, s), (i, j) = rotation, rotation.plane
        entry[k][i], entry[k][j] = entry[i][k], entry[j][k] = rotation.rotate(
            entry[i][k], entry[j][k]
        )
        a, b, d = entry[i][i], entry[i][j], entry[j][j]
        if type(c) is float and c == 0.0:
            entry[i][i], entry[j][j], b = d, a, -b
        elif type(c) is not float or s != 0.0:
            # The trace stays, and the rest rotates by twice the angle.
            u = c * (a - d) - ((s + s) * b if type(s) is float else s * (b + b))
            entry[i][i], entry[j][j], b = d + c * u, a - c * u, b + s * u
        entry[i][j] = entry[j][i] = b
    return _join_rows(entry)


def rotate_matrix(rotations: Sequence[AxisRotation], M: Matrix) -> Matrix:
    """Return ``R M R'`` of a matrix (..., 3, 3)."""
    entry = [list(row) for row in matrix_components(M)]
    for rotation in reversed(rotations):
        (k, c, s), (i, j) = rotation, rotation.plane
        entry[i][k], entry[j][k] = rotation.rotate(entry[i][k], entry[j][k])
        entry[k][i], entry[k][j] = rotation.rotate(entry[k][i], entry[k][j])
        a, b, d, e = entry[i][i], entry[i][j], entry[j][i], entry[j][j]
        if type(c) is float and c == 0.0:
            entry[i][i], entry[i][j], entry[j][i], entry[j][j] = e, -d, -b, a
        elif type(c) is not float or s != 0.0:
            u = c * (a - e) - s * (b + d)
            entry[i][i], entry[j][j] = e + c * u, a - c * u
            entry[i][j], entry[j][i] = b + s * u, d + s * u
    return _join_rows(entry)


def _join_rows(rows: list[list[Any]]) -> Matrix:
    return join_matrix(_broadcast([x for row in rows for x in row]))
