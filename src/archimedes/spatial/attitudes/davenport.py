"""Davenport angles as arrays (..., n): turns about any axes of which neighbours are orthogonal.

Legend: n1, n2, n3 are the axes, fixed ones in this order, so that the quaternion is q3 q2 q1;
rotated axes are the same in reverse. lam is the angle about n2 from n3 to n1: with the turn by it
the sequence becomes n1, n2, n1, whose angles follow as for Euler angles. a + ib and c + id have as
arguments half the sum and half the difference of the outer angles.
Source: Bernardes and Viollet, Quaternion to Euler angles conversion, PLoS ONE 17(11), 2022; the
conventions are SciPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_finite, check_choice, check_that
from archimedes.spatial.attitudes.euler import LOCK
from archimedes.spatial.attitudes.quaternions import quaternion_multiply, quaternion_normalize
from archimedes.spatial.components import choose, components, cross
from archimedes.typing import ArrayLike

__all__ = ["davenport_to_quaternion", "quaternion_to_davenport"]

ORDERS = ("e", "extrinsic", "i", "intrinsic")
#: How far from orthogonal two axes in a row may be: the cosine between them.
ORTHOGONAL = 1e-7


def _read_axes(axes: ArrayLike, order: str, counts: tuple[int, ...]) -> tuple[list[Any], bool]:
    """Return the unit axes (3,), and whether they are fixed in space."""
    check_choice(order, "order", ORDERS)
    array = as_finite(axes, "axes")
    array = array[None] if len(array.shape) == 1 else array
    if len(array.shape) != 2 or array.shape[1] != 3 or array.shape[0] not in counts:
        wanted = " or ".join(f"({n}, 3)" for n in counts)
        raise ValueError(f"axes must have shape {wanted}, got {np.shape(axes)}")
    sizes = np.sum(array * array, axis=-1)
    check_that(lambda x: x > 0.0, sizes, "the squared length of axes", "must not be zero")
    array = array / np.sqrt(sizes)[:, None]
    for k in range(1, array.shape[0]):
        cosine = np.sum(array[k - 1] * array[k])
        check_that(
            lambda x: np.abs(x) <= ORTHOGONAL, cosine, "axes",
            f"in a row must be orthogonal, but the cosine between axes[{k - 1}] and axes[{k}] is "
            "not zero",
        )  # fmt: skip
    return [array[k] for k in range(array.shape[0])], order in ORDERS[:2]


def davenport_to_quaternion(angles: ArrayLike, axes: ArrayLike, order: str = "extrinsic") -> Any:
    """Return the quaternion (..., 4) of turns about one to three axes.

    Parameters
    ----------
    angles : array (..., n)
        Angles in rad, one per axis; a number for one axis.
    axes : array (n, 3) or (3,)
        Axes of any length, neighbours orthogonal.
    order : {"extrinsic", "e", "intrinsic", "i"}, optional
        Whether the axes are fixed in space, as by default, or turn with the body.

    Examples
    --------
    >>> from archimedes.spatial import davenport_to_quaternion, euler_to_quaternion
    >>> axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> davenport_to_quaternion([0.1, 0.2, 0.3], axes)
    array([0.98334744, 0.0342708 , 0.10602051, 0.14357218])
    >>> euler_to_quaternion([0.1, 0.2, 0.3], "xyz")
    array([0.98334744, 0.0342708 , 0.10602051, 0.14357218])
    """
    units, fixed = _read_axes(axes, order, (1, 2, 3))
    values = as_finite(angles, "angles")
    values = values[None] if len(values.shape) == 0 and len(units) == 1 else values
    if tuple(values.shape[-1:]) != (len(units),):
        raise ValueError(
            f"angles must have shape ({len(units)},) or (..., {len(units)}), one per axis, got "
            f"{np.shape(angles)}"
        )
    q: Any = None
    for k, axis in enumerate(units):
        half = 0.5 * values[..., k, None]
        turn = np.concatenate([np.cos(half), np.sin(half) * axis], axis=-1)
        q = turn if q is None else quaternion_multiply(*((turn, q) if fixed else (q, turn)))
    return q


def quaternion_to_davenport(q: ArrayLike, axes: ArrayLike, order: str = "extrinsic") -> Any:
    """Return the angles (..., 3) in rad about three axes of quaternions (..., 4).

    The first and last lie in [-pi, pi], the middle one in an interval of length pi as in SciPy:
    from minus the angle between the first and the last axis on, or up to that angle. In gimbal lock
    the last is 0 and the angles still give the rotation.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.
    axes : array (3, 3)
        Axes of any length, neighbours orthogonal.
    order : {"extrinsic", "e", "intrinsic", "i"}, optional
        Whether the axes are fixed in space, as by default, or turn with the body.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import davenport_to_quaternion, quaternion_to_davenport
    >>> axes = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    >>> q = davenport_to_quaternion([0.1, 0.2, 0.3], axes, "intrinsic")
    >>> quaternion_to_davenport(q, axes, "intrinsic")
    array([0.1, 0.2, 0.3])
    """
    (n1, n2, n3), fixed = _read_axes(axes, order, (3,))
    if not fixed:
        n1, n3 = n3, n1
    lam = np.arctan2(np.sum(n3 * cross(n1, n2)), np.sum(n3 * n1))
    sign = np.where(lam < 0.0, -1.0, 1.0)  # SciPy's choice between the two sets of angles
    n2, lam = sign * n2, sign * lam
    turn = np.concatenate([np.cos(0.5 * lam)[None], np.sin(0.5 * lam) * n2])
    turned = quaternion_multiply(turn, quaternion_normalize(q))
    a, *v = components(turned, 4)
    b, c, d = (sum(p * u for p, u in zip(v, components(n, 3))) for n in (n1, n2, cross(n1, n2)))
    ab, cd = a * a + b * b, c * c + d * d
    ab_lock, cd_lock = ab < LOCK * LOCK, cd < LOCK * LOCK
    lock = ab_lock | cd_lock
    root = np.where(lock, 0.0, np.sqrt(np.where(lock, 1.0, ab * cd)))
    flip = -1.0 if fixed else 1.0
    a, b = choose(ab_lock, (c, flip * d), (a, b))
    c, d = choose(cd_lock, (a, flip * b), (c, d))
    middle = sign * (np.arctan2(2.0 * root, ab - cd) - lam)
    outer = np.arctan2(b * c + a * d, a * c - b * d), np.arctan2(b * c - a * d, a * c + b * d)
    third, first = outer if fixed else outer[::-1]
    return np.stack([first, middle, third], axis=-1)
