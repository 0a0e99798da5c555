"""Rotation vectors (axis times angle) and modified Rodrigues parameters as arrays (..., 3).

Legend: v is the rotation vector of R_EB = exp([v]x), the transpose of the passive matrix R_BE.
The right Jacobian gives the body rate, ``w_B = Jr(v) dv/dt``; the left Jacobian is its transpose
and gives the rate in reference axes. c2, c3 are Stumpff functions of |v|^2.
Source: Sola, Deray and Atchuthan, A micro Lie theory, 2018, arXiv:1812.01537, eqs. 143-146.

Modified Rodrigues parameters s are the axis times tan(angle / 4). Every rotation has two sets, s
and its shadow -s/|s|^2; the one with |s| <= 1 rotates by at most 180 degrees.
Source: Schaub and Junkins, Analytical Mechanics of Space Systems, 2018, section 3.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.components import dot, join, join_matrix, select, sqrt, transpose
from archimedes.spatial.stumpff import stumpff
from archimedes.spatial.validation import check_norm, vector_components
from archimedes.typing import ArrayLike, Scalar

__all__ = [
    "dcm_to_mrp",
    "dcm_to_rotvec",
    "mrp_kinematics",
    "mrp_normalize",
    "mrp_shadow",
    "mrp_to_dcm",
    "mrp_to_quaternion",
    "quaternion_to_mrp",
    "rotvec_kinematics",
    "rotvec_to_dcm",
    "so3_left_jacobian",
    "so3_right_jacobian",
]


def rotvec_to_dcm(rotvec: ArrayLike) -> Any:
    """Return the passive rotation matrix R_BE (..., 3, 3) of rotation vectors (..., 3).

    Parameters
    ----------
    rotvec : array (..., 3)
        Rotation vector in rad: the axis times the angle.

    Examples
    --------
    >>> rotvec_to_dcm([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    return quaternions.quaternion_to_dcm(quaternions.quaternion_exp(rotvec))


def dcm_to_rotvec(matrix: ArrayLike) -> Any:
    """Return the rotation vector (..., 3) of passive rotation matrices R_BE (..., 3, 3).

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_to_rotvec(np.eye(3))
    array([0., 0., 0.])
    """
    return quaternions.quaternion_log(quaternions.dcm_to_quaternion(matrix))


def quadratic(v: Sequence[Any], a: Scalar, b: Scalar, square: Scalar) -> Any:
    """Return the matrix ``I + a [v]x + b [v]x^2`` of the components of v; `square` is |v|^2."""
    x, y, z = v
    ax, ay, az = a * x, a * y, a * z
    bx, by = b * x, b * y
    xy, xz, yz = bx * y, bx * z, by * z
    one = 1.0 - b * square
    return join_matrix(
        [
            one + bx * x, xy - az, xz + ay,
            xy + az, one + by * y, yz - ax,
            xz - ay, yz + ax, one + b * z * z,
        ]
    )  # fmt: skip


def so3_right_jacobian(rotvec: ArrayLike, inverse: bool = False) -> Any:
    """Return the right Jacobian of the exponential (..., 3, 3) at `rotvec`, or its inverse.

    ``w_B = so3_right_jacobian(v) @ dv_dt``. The inverse exists for angles below 2 pi.

    Parameters
    ----------
    rotvec : array (..., 3)
        Rotation vector in rad: the axis times the angle.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> so3_right_jacobian([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    v = vector_components(rotvec, 3, "rotvec")
    square = dot(v, v)
    if inverse:
        # (1 - (h) cot h)/(4 h^2) at h^2 = |v|^2 / 4, without its cancellation at zero
        c1, c2, c3 = stumpff((1, 2, 3), 0.25 * square)
        return quadratic(v, 0.5, 0.25 * (c2 - c3) / c1, square)
    c2, c3 = stumpff((2, 3), square)
    return quadratic(v, -c2, c3, square)


def so3_left_jacobian(rotvec: ArrayLike, inverse: bool = False) -> Any:
    """Return the left Jacobian of the exponential (..., 3, 3) at `rotvec`, or its inverse.

    ``w_E = so3_left_jacobian(v) @ dv_dt``, the rate of B in reference axes.

    Parameters
    ----------
    rotvec : array (..., 3)
        Rotation vector in rad: the axis times the angle.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> so3_left_jacobian([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    return transpose(so3_right_jacobian(rotvec, inverse))


def rotvec_kinematics(rotvec: ArrayLike, inverse: bool = False) -> Any:
    """Return the matrix M (..., 3, 3) with ``dv/dt = M @ w_B``, or its inverse.

    Parameters
    ----------
    rotvec : array (..., 3)
        Rotation vector in rad: the axis times the angle.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> rotvec_kinematics([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    return so3_right_jacobian(rotvec, not inverse)


def quaternion_to_mrp(q: ArrayLike) -> Any:
    """Return the parameters (..., 3) with ``|s| <= 1`` of quaternions (..., 4).

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_to_mrp([0.0, 1.0, 0.0, 0.0])
    array([1., 0., 0.])
    """
    (w, x, y, z), squared = quaternions.components_and_square(q)
    sign = select(w < 0.0, -1.0, 1.0)
    scale = sign / (sqrt(squared) + sign * w)
    return join([scale * x, scale * y, scale * z])


def mrp_to_quaternion(mrp: ArrayLike) -> Any:
    """Return the unit quaternion (..., 4) of parameters (..., 3) of either set.

    Parameters
    ----------
    mrp : array (..., 3)
        Modified Rodrigues parameters: the axis times tan(angle/4).

    Examples
    --------
    >>> mrp_to_quaternion([1.0, 0.0, 0.0])
    array([0., 1., 0., 0.])
    """
    x, y, z = c = vector_components(mrp, 3, "mrp")
    squared = dot(c, c)
    scale = 2.0 / (1.0 + squared)
    return join([0.5 * scale * (1.0 - squared), scale * x, scale * y, scale * z])


def mrp_to_dcm(mrp: ArrayLike) -> Any:
    """Return the passive rotation matrix R_BE (..., 3, 3) of parameters (..., 3).

    Parameters
    ----------
    mrp : array (..., 3)
        Modified Rodrigues parameters: the axis times tan(angle/4).

    Examples
    --------
    >>> mrp_to_dcm([0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    return quaternions.quaternion_to_dcm(mrp_to_quaternion(mrp))


def dcm_to_mrp(matrix: ArrayLike) -> Any:
    """Return the parameters (..., 3) with ``|s| <= 1`` of rotation matrices R_BE (..., 3, 3).

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_to_mrp(np.eye(3))
    array([0., 0., 0.])
    """
    return quaternion_to_mrp(quaternions.dcm_to_quaternion(matrix))


def mrp_shadow(mrp: ArrayLike) -> Any:
    """Return the other parameters (..., 3) of the same rotation, ``-s / |s|^2``.

    Parameters
    ----------
    mrp : array (..., 3)
        Modified Rodrigues parameters: the axis times tan(angle/4).

    Examples
    --------
    >>> mrp_shadow([0.5, 0.0, 0.0])
    array([-2., -0., -0.])
    """
    c = vector_components(mrp, 3, "mrp")
    squared = dot(c, c)
    check_norm(squared, "mrp")
    return join([-p / squared for p in c])


def mrp_normalize(mrp: ArrayLike) -> Any:
    """Return the parameters (..., 3) of the same rotation with ``|s| <= 1``.

    Parameters
    ----------
    mrp : array (..., 3)
        Modified Rodrigues parameters: the axis times tan(angle/4).

    Examples
    --------
    >>> mrp_normalize([-2.0, 0.0, 0.0])
    array([ 0.5, -0. , -0. ])
    """
    c = vector_components(mrp, 3, "mrp")
    squared = dot(c, c)
    outside = squared > 1.0
    scale = select(outside, -1.0 / select(outside, squared, 1.0), 1.0)
    return join([scale * p for p in c])


def mrp_kinematics(mrp: ArrayLike, inverse: bool = False) -> Any:
    """Return the matrix M (..., 3, 3) with ``ds/dt = M @ w_B``, or its inverse.

    Parameters
    ----------
    mrp : array (..., 3)
        Modified Rodrigues parameters: the axis times tan(angle/4).
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> mrp_kinematics([0.0, 0.0, 0.0])
    array([[0.25, 0.  , 0.  ],
           [0.  , 0.25, 0.  ],
           [0.  , 0.  , 0.25]])
    """
    x, y, z = c = vector_components(mrp, 3, "mrp")
    squared = dot(c, c)
    if inverse:  # the matrix is orthogonal up to the factor (1 + |s|^2)/4
        turn, scale = -1.0, 4.0 / ((1.0 + squared) * (1.0 + squared))
    else:
        turn, scale = 1.0, 0.25
    one = scale * (1.0 - squared)
    twice = 2.0 * scale
    tx, ty, tz = turn * x, turn * y, turn * z
    return join_matrix(
        [
            one + twice * x * x, twice * (x * y - tz), twice * (x * z + ty),
            twice * (x * y + tz), one + twice * y * y, twice * (y * z - tx),
            twice * (x * z - ty), twice * (y * z + tx), one + twice * z * z,
        ]
    )  # fmt: skip
