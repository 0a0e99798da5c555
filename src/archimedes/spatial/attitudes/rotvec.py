r"""Rotation vectors as arrays (..., 3): axis times angle, in rad.

Legend: v is the rotation vector of R_EB = exp([v]x), the transpose of the passive matrix R_BE.
The right Jacobian gives the body rate, ``w_B = Jr(v) dv/dt``; the left Jacobian is its transpose
and gives the rate in reference axes. c2, c3 are Stumpff functions of |v|^2.
Source: Sola, Deray and Atchuthan, A micro Lie theory, 2018, arXiv:1812.01537, eqs. 143-146.
"""

from __future__ import annotations

from typing import Any

from archimedes.spatial.attitudes.quaternions import (
    dcm_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_to_dcm,
)
from archimedes.spatial.components import dot, join_matrix, transpose
from archimedes.spatial.stumpff import stumpff
from archimedes.spatial.validation import vector_components

__all__ = [
    "dcm_to_rotvec",
    "rotvec_kinematics",
    "rotvec_to_dcm",
    "so3_left_jacobian",
    "so3_right_jacobian",
]


def rotvec_to_dcm(rotvec: Any) -> Any:
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
    return quaternion_to_dcm(quaternion_exp(rotvec))


def dcm_to_rotvec(matrix: Any) -> Any:
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
    return quaternion_log(dcm_to_quaternion(matrix))


def quadratic(v: Any, a: Any, b: Any, square: Any) -> Any:
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


def so3_right_jacobian(rotvec: Any, inverse: bool = False) -> Any:
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


def so3_left_jacobian(rotvec: Any, inverse: bool = False) -> Any:
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


def rotvec_kinematics(rotvec: Any, inverse: bool = False) -> Any:
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
