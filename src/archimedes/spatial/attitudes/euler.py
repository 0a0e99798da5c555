"""Euler angles as arrays (..., n), for every sequence of one to three axes; angles in rad.

Legend: the factors of R_BE from left to right are passive elementary rotations about the axes
i, j, k by the angles p, q, r; m is the axis that is neither i nor j; parity is +1 if (i, j, m) is
a cyclic order and -1 otherwise. For ``"xyz"``, R_BE = Rx(roll) Ry(pitch) Rz(yaw).
Extraction: Bernardes and Viollet, Quaternion to Euler angles conversion, PLoS ONE 17(11), 2022;
rates: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 2016, eq. 1.4-3, for any axes.
"""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import check_that, check_vector
from archimedes.errors import refer_to
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion
from archimedes.spatial.components import (
    atan2,
    choose,
    components,
    cos,
    join,
    join_matrix,
    select,
    sin,
    sqrt,
)
from archimedes.spatial.validation import INFINITY, check_norm, vector_components
from archimedes.typing import ArrayLike

__all__ = [
    "dcm_to_euler",
    "euler_kinematics",
    "euler_to_dcm",
    "euler_to_euler",
    "euler_to_quaternion",
    "quaternion_to_euler",
]

#: Sign of the permutation (i, j, m) of the axes, with m the one left over.
PARITY = {(0, 1): 1.0, (1, 2): 1.0, (2, 0): 1.0, (1, 0): -1.0, (2, 1): -1.0, (0, 2): -1.0}


class Sequence(NamedTuple):
    """An Euler sequence.

    `axes` are 0, 1, 2 for the letters x, y, z, in their order. `factors` lists positions in
    `axes` from left to right in the matrix product R_BE: in the order of the letters when
    extrinsic (`in_order`), in reverse when intrinsic. For three letters, `i` and `j` are the axes
    of the first two factors and `m` the one left over, `parity` the sign of the permutation
    (i, j, m), and the sequence is `proper` if the third axis is i again instead of m.
    """

    axes: tuple[int, ...]
    factors: tuple[int, ...]
    in_order: bool
    i: int = 0
    j: int = 0
    m: int = 0
    parity: float = 1.0
    proper: bool = False


@functools.cache
def parse_sequence(seq: str, full: bool = False) -> Sequence:
    """Return the meaning of an Euler sequence; with `full` it must have three letters.

    Lower case is extrinsic (about the axes of the reference frame), upper case intrinsic (about
    the axes as already turned), as in SciPy.

    >>> parse_sequence("zyx").axes
    (2, 1, 0)
    """
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3 or set(seq.lower()) - set("xyz"):
        fault = f"seq must be one to three of the letters x, y and z, got {seq!r}"
        raise ValueError(fault + refer_to("sequence"))
    if seq not in (seq.lower(), seq.upper()):
        case = "all lower case (extrinsic) or all upper case (intrinsic)"
        raise ValueError(f"seq must be {case}, got {seq!r}" + refer_to("sequence"))
    if any(a == b for a, b in pairwise(seq)):
        raise ValueError(
            f"seq must not repeat an axis next to itself, got {seq!r}" + refer_to("sequence")
        )
    axes = tuple("xyz".index(letter) for letter in seq.lower())
    order = tuple(range(len(seq)))
    in_order = seq.islower()
    factors = order if in_order else order[::-1]
    if len(seq) == 3:
        i, j, k = (axes[n] for n in factors)
        return Sequence(axes, factors, in_order, i, j, 3 - i - j, PARITY[i, j], i == k)
    if full:
        why = "since fewer do not describe every rotation or rate"
        raise ValueError(f"seq must have three letters here, {why}, got {seq!r}")
    return Sequence(axes, factors, in_order)


#: Sine (or cosine) of the middle angle below which the outer two are taken as one.
LOCK = 1e-13


def check_order(angles: object, seq: object) -> None:
    """Raise where the sequence is given first, as SciPy has it."""
    if isinstance(angles, str):
        raise TypeError(
            f"from_euler takes the angles first and then the sequence, unlike SciPy: write "
            f"from_euler(angles, {angles!r}), got {angles!r} for angles and {seq!r} for seq"
        )


def check_angles(angles: ArrayLike, seq: str, name: str = "angles") -> Any:
    """Return the angles as an array (..., n) for a sequence of n letters; n = 1 allows a scalar."""
    count = len(parse_sequence(seq).axes)
    if type(angles) is np.ndarray and angles.shape == (count,):
        return check_vector(angles, count, name)
    if count == 1 and np.shape(angles) == ():
        angles = np.reshape(angles, (1,))
    try:
        return check_vector(angles, count, name)
    except ValueError as error:
        raise ValueError(f"{error} (one per letter of seq={seq!r})") from None


def angle_components(angles: ArrayLike, seq: str, name: str = "angles") -> Any:
    """Return the checked angles component by component."""
    return components(check_angles(angles, seq, name), len(seq))


def euler_to_quaternion(angles: ArrayLike, seq: str = "xyz") -> Any:
    """Return the quaternion (..., 4) of Euler angles (..., n) in rad.

    Parameters
    ----------
    angles : array (..., n)
        Angles in rad, in the order of the letters of `seq`.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.

    Examples
    --------
    >>> euler_to_quaternion([0.1, 0.2, 0.3], "xyz")
    array([0.98334744, 0.0342708 , 0.10602051, 0.14357218])
    """
    axes, factors, *_ = parse_sequence(seq)
    half = [0.5 * p for p in angle_components(angles, seq)]
    c, s = [cos(p) for p in half], [sin(p) for p in half]
    # R_BE = R1 R2 R3 is the quaternion product q3 q2 q1: start from the last factor.
    last = factors[-1]
    zero = 0.0 * s[last]
    q = [c[last], zero, zero, zero]
    q[1 + axes[last]] = s[last]
    for n in factors[-2::-1]:
        i = axes[n]
        j, k = 1 + (i + 1) % 3, 1 + (i + 2) % 3
        w, qi, qj, qk = q[0], q[1 + i], q[j], q[k]
        q[0] = c[n] * w - s[n] * qi
        q[1 + i] = c[n] * qi + s[n] * w
        q[j] = c[n] * qj + s[n] * qk
        q[k] = c[n] * qk - s[n] * qj
    return join(q)


def euler_to_dcm(angles: ArrayLike, seq: str = "xyz") -> Any:
    """Return the passive rotation matrix R_BE (..., 3, 3) of Euler angles (..., n) in rad.

    Parameters
    ----------
    angles : array (..., n)
        Angles in rad, in the order of the letters of `seq`.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.

    Examples
    --------
    >>> euler_to_dcm([0.1, 0.2, 0.3], "xyz").round(4)
    array([[ 0.9363,  0.2896, -0.1987],
           [-0.2751,  0.9564,  0.0978],
           [ 0.2184, -0.037 ,  0.9752]])
    """
    axes, factors, *_ = parse_sequence(seq)
    parts = angle_components(angles, seq)
    c, s = [cos(p) for p in parts], [sin(p) for p in parts]
    zero = 0.0 * s[0]
    one = zero + 1.0
    rows = [[one, zero, zero], [zero, one, zero], [zero, zero, one]]
    for n in reversed(factors):
        j, k = (axes[n] + 1) % 3, (axes[n] + 2) % 3
        rows[j], rows[k] = (
            [c[n] * a + s[n] * b for a, b in zip(rows[j], rows[k])],
            [c[n] * b - s[n] * a for a, b in zip(rows[j], rows[k])],
        )
    return join_matrix([*rows[0], *rows[1], *rows[2]])


def quaternion_to_euler(q: ArrayLike, seq: str = "xyz") -> Any:
    """Return the Euler angles (..., 3) in rad, in the order of `seq`, of quaternions (..., 4).

    The first and last lie in [-pi, pi], the middle one in [-pi/2, pi/2], or in [0, pi] where the
    first and last axes are equal. In gimbal lock the last is 0 and the angles still give the
    rotation.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.

    Examples
    --------
    >>> quaternion_to_euler([1.0, 1.0, 0.0, 0.0], "xyz")
    array([1.57079633, 0.        , 0.        ])
    """
    _, _, in_order, i, j, m, parity, proper = parse_sequence(seq, True)
    parts = vector_components(q, 4, "q", False)
    w, qi, qj, qm = parts[0], parts[1 + i], parts[1 + j], parity * parts[1 + m]
    squared = w * w + qi * qi + qj * qj + qm * qm
    if type(squared) is not float or not 0.0 < squared < INFINITY:
        check_norm(squared, "quaternion q")
    if proper:
        a, b, c, d = w, qi, qj, qm
    else:
        a, b, c, d = w - qj, qi + qm, w + qj, qm - qi
    ab, cd = a * a + b * b, c * c + d * d
    tiny = LOCK * LOCK * squared
    ab_lock, cd_lock = ab < tiny, cd < tiny
    lock = ab_lock | cd_lock
    # The outer angles are the difference and the sum of the arguments of a + ib and c + id. In
    # lock one of these is lost; it is chosen such that the angle of the last letter becomes 0.
    if lock is False:  # one attitude of known value, away from lock: the quick way
        root = sqrt(ab * cd)
    else:
        root = select(lock, 0.0, sqrt(select(lock, 1.0, ab * cd)))
        flip = -1.0 if in_order else 1.0
        a, b = choose(ab_lock, (c, flip * d), (a, b))
        c, d = choose(cd_lock, (a, flip * b), (c, d))
    if proper:
        middle = atan2(2.0 * root, ab - cd)
    else:  # (cd - ab) / 2 without the cancellation, so that tiny angles keep all their digits
        middle = atan2(2.0 * (w * qj - qi * qm), root)
    ac, ad, bc, bd = a * c, a * d, b * c, b * d
    first = atan2(bc - ad, ac + bd)
    last = atan2(bc + ad if proper or parity > 0.0 else 0.0 - (bc + ad), ac - bd)
    return join([first, middle, last] if in_order else [last, middle, first])


def dcm_to_euler(matrix: ArrayLike, seq: str = "xyz") -> Any:
    """Return the Euler angles (..., 3) in rad of passive rotation matrices R_BE (..., 3, 3).

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_to_euler(np.eye(3), "zyx")
    array([0., 0., 0.])
    """
    parse_sequence(seq, True)
    return quaternion_to_euler(dcm_to_quaternion(matrix), seq)


def euler_to_euler(angles: ArrayLike, seq: str, new_seq: str) -> Any:
    """Return Euler angles (..., n) of sequence `seq` as angles (..., 3) of `new_seq`, in rad.

    Parameters
    ----------
    angles : array (..., n)
        Angles in rad, in the order of the letters of `seq`.
    seq : str
        Axes of the given angles, as in `EulerAngles`.
    new_seq : str
        Axes of the new angles.

    Examples
    --------
    >>> euler_to_euler([0.1, 0.2, 0.3], "xyz", "zyx")
    array([0.2857717 , 0.22012403, 0.03787988])
    """
    parse_sequence(new_seq, True)
    return quaternion_to_euler(euler_to_quaternion(angles, seq), new_seq)


def euler_kinematics(rpy: ArrayLike, inverse: bool = False, seq: str = "xyz") -> Any:
    """Return the matrix H (..., 3, 3) with ``rates = H @ w_B``, or its inverse.

    `rpy` (..., 3) are the angles of `seq`, in rad, in the order of its letters, and so are the
    rates. H is infinite in gimbal lock; its inverse never is.

    Parameters
    ----------
    rpy : array (..., 3)
        Angles in rad, in the order of the letters of `seq`.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.

    Examples
    --------
    >>> euler_kinematics([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    _, factors, _, i, j, m, parity, proper = parse_sequence(seq, True)
    angles = angle_components(rpy, seq, "rpy")
    p, q, _ = (angles[n] for n in factors)
    zero = 0.0 * p
    cp, sp, cq, sq = cos(p), parity * sin(p), cos(q), parity * sin(q)
    # Unit vectors in body axes: e_j and e_m after the rotation about i.
    e_i, e_j, e_m = [zero] * 3, [zero] * 3, [zero] * 3
    e_i[i] = zero + 1.0
    e_j[j], e_j[m] = cp, zero - sp
    e_m[j], e_m[m] = sp, cp
    # The third axis is along * e_i + across * e_m.
    along, across = (cq, sq) if proper else (-sq, cq)
    if inverse:
        vectors = [e_i, e_j, [along * a + across * b for a, b in zip(e_i, e_m)]]
        columns = [vectors[factors.index(n)] for n in range(3)]
        return join_matrix([column[row] for row in range(3) for column in columns])
    check_that(
        lambda x: x != 0.0, across, f"the sine or cosine of the middle angle of seq={seq!r}",
        "must not be zero: in gimbal lock Euler rates are infinite; use another sequence there, or "
        "a Quaternion",
    )  # fmt: skip
    third = [b / across for b in e_m]
    vectors = [[a - along * b for a, b in zip(e_i, third)], e_j, third]
    rows = [vectors[factors.index(n)] for n in range(3)]
    return join_matrix([*rows[0], *rows[1], *rows[2]])
