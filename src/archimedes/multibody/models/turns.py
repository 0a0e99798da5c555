"""Rotations as turns about coordinate axes, the cheapest way to rotate vectors and matrices.

Legend: a turn about axis k by an angle of cosine c and sine s takes the components (i, j) that
follow k in the cycle x, y, z to (c x_i - s x_j, s x_i + c x_j); that along k stays. A symmetric
matrix takes 8 products, of which a product with R on both sides would be 45. Turns are listed from
the parent to the child, ``R = T_1 T_2 ... T_n``.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, section A.4: inertias turned about one
axis at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from archimedes.function.reproducible import matmul
from archimedes.spatial.components import components, cos, join, join_matrix, matrix_components, sin

__all__ = [
    "Turn",
    "about_axis",
    "length",
    "merged",
    "rotation_of",
    "turned",
    "turned_back",
    "turned_matrix",
    "turned_symmetric",
    "turns_of",
]

#: How far the product of turns may be from the matrix that they stand for.
TOLERANCE = 1e-14


class Turn(NamedTuple):
    """A turn about coordinate axis 0, 1 or 2 by an angle of this cosine and sine."""

    axis: int
    c: Any
    s: Any


def about_axis(axis: Sequence[float], angle: Any) -> tuple[Turn, ...] | None:
    """Return a turn by an angle about an axis that is along a coordinate axis, else None."""
    if sorted(map(abs, axis)) != [0.0, 0.0, 1.0]:
        return None
    k = max(range(3), key=lambda k: abs(axis[k]))
    s = sin(angle)
    return (Turn(k, cos(angle), s if axis[k] > 0 else -s),)


def merged(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns with neighbours about one axis made one, and without idle ones."""
    found: list[Turn] = []
    for turn in turns:
        if type(turn.c) is float and turn.c == 1.0 and turn.s == 0.0:
            continue
        if found and found[-1].axis == turn.axis:
            axis, c, s = found.pop()
            turn = Turn(axis, c * turn.c - s * turn.s, s * turn.c + c * turn.s)
        found.append(turn)
    return tuple(found)


def turns_of(R: np.ndarray, last: int | None = None) -> tuple[Turn, ...] | None:
    """Return turns whose product is a rotation matrix of known numbers, as few as there are.

    Where the axis `last` is given, a turn about it is to follow, with which the last one merges.

    >>> turns_of(np.array([[1.0, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]]))
    (Turn(axis=0, c=0.6, s=0.8),)
    """
    ways = [_euler(R, k, m) for k, m in permutations(range(3), 2) if last is None or k == last]

    def price(turns: tuple[Turn, ...]) -> tuple[int, int]:
        counted = [t for t in turns if t is not turns[-1] or t.axis != last]
        return sum(t.c != 0.0 and t.s != 0.0 for t in counted), len(counted)

    for turns in sorted(ways, key=price):
        product = np.eye(3)
        for turn in turns:
            product = matmul(product, rotation_of(turn))
        exact = all(abs(t.c * t.c + t.s * t.s - 1.0) <= TOLERANCE for t in turns)
        if exact and np.abs(product - R).max() <= TOLERANCE:
            return turns
    return None


def length(x: float, y: float) -> float:
    """Return the length of a vector, however short: ``math.hypot`` rounds as the C library does."""
    _, power = math.frexp(max(abs(x), abs(y)))
    x, y = math.ldexp(x, -power), math.ldexp(y, -power)
    return math.ldexp(math.sqrt(x * x + y * y), power)


def rotation_of(turn: Turn) -> np.ndarray:
    """Return the rotation (3, 3) of a turn by known numbers."""
    k, c, s = turn
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.zeros((3, 3))
    R[k, k] = 1.0
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def _euler(R: np.ndarray, k: int, m: int) -> tuple[Turn, ...]:
    """Return R as turns about the axes k, m and k."""
    i, j = (k + 1) % 3, (k + 2) % 3
    entry = R.tolist()
    if entry[i][k] == entry[j][k] == 0.0:
        # The axis k stays or is turned over: half a turn about m, and one about k.
        over = Turn(m, 1.0 if entry[k][k] > 0 else -1.0, 0.0)
        rest = matmul(rotation_of(over).T, R).tolist()
        return merged([over, Turn(k, rest[i][i], rest[j][i])])
    # The middle turn by alpha tips k: its column has sin(alpha) times the first turn's cosine and
    # sine, its row those of the last one.
    x, y = (-entry[j][k], entry[i][k]) if m == i else (entry[i][k], entry[j][k])
    u, w = (entry[k][j], entry[k][i]) if m == i else (-entry[k][i], entry[k][j])
    sine = x if y == 0.0 else y if x == 0.0 else length(x, y)
    # Of a small sine few digits are left in these: each is made a turn, and `turns_of` looks
    # whether the product is still the matrix.
    other = math.copysign(length(u, w), sine)
    middle = Turn(m, entry[k][k], sine)
    if other == 0.0:
        return ()
    return merged([Turn(k, x / sine, y / sine), middle, Turn(k, u / other, w / other)])


# ---- turning ---------------------------------------------------------------------------------


def _joined(parts: Sequence[Any]) -> Any:
    """Return components as an array; some may be plain numbers beside others that are not."""
    floats = [type(x) is float for x in parts]
    if any(floats) and not all(floats):
        return np.stack(np.broadcast_arrays(*parts), axis=-1)
    return join(parts)


def _both(c: Any, s: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return (c x - s y, s x + c y), without products where the angle is a multiple of 90 deg."""
    if type(c) is float and c == 0.0:
        return (-y, x) if s > 0 else (y, -x)
    if type(c) is float and s == 0.0:
        return (x, y) if c > 0 else (-x, -y)
    return c * x - s * y, s * x + c * y


def turned(turns: Sequence[Turn], v: Any) -> Any:
    """Return ``R v`` (..., 3)."""
    parts = list(components(v, 3))
    for k, c, s in reversed(turns):
        i, j = (k + 1) % 3, (k + 2) % 3
        parts[i], parts[j] = _both(c, s, parts[i], parts[j])
    return _joined(parts)


def turned_back(turns: Sequence[Turn], v: Any) -> Any:
    """Return ``R' v`` (..., 3)."""
    parts = list(components(v, 3))
    for k, c, s in turns:
        i, j = (k + 1) % 3, (k + 2) % 3
        parts[i], parts[j] = _both(c, -s, parts[i], parts[j])
    return _joined(parts)


def turned_symmetric(turns: Sequence[Turn], M: Any) -> Any:
    """Return ``R M R'`` of a symmetric matrix (..., 3, 3), of which the upper triangle is read."""
    (a, b, c), (_, d, e), (_, _, f) = matrix_components(M)
    entry = [[a, b, c], [b, d, e], [c, e, f]]
    for turn in reversed(turns):
        _turn_symmetric(turn, entry)
    return _matrix_of(entry)


def _turn_symmetric(turn: Turn, M: list[list[Any]]) -> None:
    k, c, s = turn
    i, j = (k + 1) % 3, (k + 2) % 3
    M[i][k], M[j][k] = _both(c, s, M[i][k], M[j][k])
    M[k][i], M[k][j] = M[i][k], M[j][k]
    a, b, d = M[i][i], M[i][j], M[j][j]
    if type(c) is float and c == 0.0:
        M[i][i], M[j][j], both = d, a, -b
    elif type(c) is float and s == 0.0:
        both = b
    else:
        # The trace stays, and the rest turns by twice the angle.
        u = c * (a - d) - ((s + s) * b if type(s) is float else s * (b + b))
        M[i][i], M[j][j], both = d + c * u, a - c * u, b + s * u
    M[i][j] = M[j][i] = both


def turned_matrix(turns: Sequence[Turn], M: Any) -> Any:
    """Return ``R M R'`` of a matrix (..., 3, 3)."""
    entry = [list(row) for row in matrix_components(M)]
    for turn in reversed(turns):
        _turn_matrix(turn, entry)
    return _matrix_of(entry)


def _turn_matrix(turn: Turn, M: list[list[Any]]) -> None:
    k, c, s = turn
    i, j = (k + 1) % 3, (k + 2) % 3
    M[i][k], M[j][k] = _both(c, s, M[i][k], M[j][k])
    M[k][i], M[k][j] = _both(c, s, M[k][i], M[k][j])
    a, b, d, e = M[i][i], M[i][j], M[j][i], M[j][j]
    if type(c) is float and c == 0.0:
        M[i][i], M[i][j], M[j][i], M[j][j] = e, -d, -b, a
    elif type(c) is not float or s != 0.0:
        u = c * (a - e) - s * (b + d)
        M[i][i], M[j][j] = e + c * u, a - c * u
        M[i][j], M[j][i] = b + s * u, d + s * u


def _matrix_of(entry: list[list[Any]]) -> Any:
    flat = [x for row in entry for x in row]
    floats = [type(x) is float for x in flat]
    if any(floats) and not all(floats):
        made = np.stack(np.broadcast_arrays(*flat), axis=-1)
        return made.reshape((*made.shape[:-1], 3, 3))
    return join_matrix(flat)
