"""Quaternions as arrays (..., 4), scalar first, and rotation matrices R_BE as arrays (..., 3, 3).

Legend: q = [w, x, y, z] with the right-handed Hamilton product; R_BE = quaternion_to_dcm(q) takes
E-coordinates to B-coordinates (passive), so that q is the attitude of B in E; w_B is the body rate.
Quaternions that are not of unit length are normalised on conversion.
Source: Sola, Quaternion kinematics for the error-state Kalman filter, 2017, arXiv:1711.02508.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from archimedes.checks import FLOAT, as_scalar, check_matrix, check_vector
from archimedes.spatial.components import (
    choose,
    dot,
    join,
    join_matrix,
    matrix_components,
    select,
    skew,
    sqrt,
    transpose,
)
from archimedes.spatial.stumpff import arctan_ratio, stumpff
from archimedes.spatial.validation import INFINITY, check_norm, check_rotation, vector_components
from archimedes.typing import ArrayLike, Quat, Scalar

__all__ = [
    "dcm_angular_velocity",
    "dcm_kinematics",
    "dcm_normalize",
    "dcm_to_quaternion",
    "quaternion_conjugate",
    "quaternion_exp",
    "quaternion_inverse",
    "quaternion_kinematics",
    "quaternion_kinematics_matrix",
    "quaternion_log",
    "quaternion_multiply",
    "quaternion_normalize",
    "quaternion_to_dcm",
]


def components_and_square(q: ArrayLike) -> tuple[Sequence[Any], Any]:
    """Return the components of a quaternion, checked not to be zero, and their squared norm."""
    c = vector_components(q, 4, "q", False)
    squared = dot(c, c)
    check_norm(squared, "quaternion q")
    return c, squared


def quaternion_normalize(q: ArrayLike) -> Any:
    """Return `q` (..., 4) divided by its norm.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_normalize([0.0, 3.0, 0.0, 4.0])
    array([0. , 0.6, 0. , 0.8])
    """
    c, squared = components_and_square(q)
    norm = sqrt(squared)
    return join([p / norm for p in c])


def quaternion_conjugate(q: ArrayLike) -> Any:
    """Return `q` (..., 4) with its vector part negated: the inverse of a unit quaternion.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_conjugate([1.0, 2.0, 3.0, 4.0])
    array([ 1., -2., -3., -4.])
    """
    w, x, y, z = vector_components(q, 4, "q", False)
    return join([w, -x, -y, -z])


def quaternion_inverse(q: ArrayLike) -> Any:
    """Return the quaternion (..., 4) whose product with `q` is [1, 0, 0, 0].

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_inverse([0.0, 2.0, 0.0, 0.0])
    array([ 0. , -0.5, -0. , -0. ])
    """
    (w, x, y, z), squared = components_and_square(q)
    return join([w / squared, -x / squared, -y / squared, -z / squared])


def quaternion_multiply(q1: ArrayLike, q2: ArrayLike) -> Any:
    """Return the Hamilton product of quaternions (..., 4), broadcast against each other.

    ``quaternion_to_dcm(quaternion_multiply(q1, q2)) == quaternion_to_dcm(q2) @
    quaternion_to_dcm(q1)``: first the turn q1, then q2 seen from the turned frame.

    Parameters
    ----------
    q1 : array (..., 4)
        First factor: the rotation that comes first.
    q2 : array (..., 4)
        Second factor: the rotation that follows, as seen from the rotated frame.

    Examples
    --------
    >>> quaternion_multiply([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    array([0., 0., 0., 1.])
    """
    a, b, c, d = vector_components(q1, 4, "q1", False)
    w, x, y, z = vector_components(q2, 4, "q2", False)
    return join(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )


def quaternion_to_dcm(q: Quat) -> Any:
    """Return the passive rotation matrix R_BE (..., 3, 3) of a quaternion (..., 4).

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_to_dcm([1.0, 0.0, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    # The most used conversion of all: one attitude goes the shortest way.
    single = type(q) is ndarray and q.dtype is FLOAT and q.shape == (4,)
    w, x, y, z = q.tolist() if single else vector_components(q, 4, "q", False)
    squared = w * w + x * x + y * y + z * z
    if not single or not 0.0 < squared < INFINITY:
        check_norm(squared, "quaternion q")
    s = 2.0 / squared
    sx, sy, sz = s * x, s * y, s * z
    wx, wy, wz = w * sx, w * sy, w * sz
    xx, xy, xz = x * sx, x * sy, x * sz
    yy, yz, zz = y * sy, y * sz, z * sz
    return join_matrix(
        [
            1.0 - (yy + zz), xy + wz, xz - wy,
            xy - wz, 1.0 - (xx + zz), yz + wx,
            xz + wy, yz - wx, 1.0 - (xx + yy),
        ]
    )  # fmt: skip


def dcm_to_quaternion(matrix: ArrayLike) -> Any:
    """Return the unit quaternion (..., 4) of passive rotation matrices R_BE (..., 3, 3).

    The component largest in size comes out positive; which one is largest is decided as by Shepperd
    (J. Guidance and Control 1, 1978), and none is found as the root of a difference, so derivatives
    are finite for every rotation.

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_to_quaternion(np.diag([1.0, -1.0, -1.0]))
    array([0., 1., 0., 0.])
    """
    m = check_rotation(matrix, "matrix")
    (a, b, c), (d, e, f), (g, h, i) = matrix_components(m)
    # Each row is a multiple of the quaternion: four times the row of q q^T with that component.
    by_w = [1.0 + a + e + i, f - h, g - c, b - d]
    by_x = [f - h, 1.0 + a - e - i, b + d, c + g]
    by_y = [g - c, b + d, 1.0 - a + e - i, f + h]
    by_z = [b - d, c + g, f + h, 1.0 - a - e + i]
    upper_larger = by_w[0] > by_x[1]
    wx = choose(upper_larger, by_w, by_x)
    wx_size = select(upper_larger, by_w[0], by_x[1])
    lower_larger = by_y[2] > by_z[3]
    yz = choose(lower_larger, by_y, by_z)
    yz_size = select(lower_larger, by_y[2], by_z[3])
    best = choose(wx_size >= yz_size, wx, yz)
    norm = sqrt(dot(best, best))
    return join([p / norm for p in best])


def quaternion_exp(rotvec: ArrayLike) -> Any:
    """Return the quaternion (..., 4) of rotation vectors (..., 3): axis times angle, in rad.

    Parameters
    ----------
    rotvec : array (..., 3)
        Rotation vector in rad: the axis times the angle.

    Examples
    --------
    >>> import numpy as np
    >>> quaternion_exp([0.0, 0.0, np.pi]).round(15)
    array([0., 0., 0., 1.])
    """
    x, y, z = vector_components(rotvec, 3, "rotvec")
    half = [0.5 * x, 0.5 * y, 0.5 * z]
    c0, c1 = stumpff((0, 1), dot(half, half))
    return join([c0, c1 * half[0], c1 * half[1], c1 * half[2]])


def quaternion_log(q: ArrayLike) -> Any:
    """Return the rotation vector (..., 3), of length at most pi, of quaternions (..., 4).

    ``q`` and ``-q`` give the same vector. Smooth everywhere but at half turns, where the vector
    jumps to its opposite.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.

    Examples
    --------
    >>> quaternion_log([1.0, 1.0, 0.0, 0.0])
    array([1.57079633, 0.        , 0.        ])
    """
    (w, x, y, z), _ = components_and_square(q)
    sign = select(w < 0.0, -1.0, 1.0)
    v = [x, y, z]
    scale = 2.0 * sign * arctan_ratio(dot(v, v), sign * w)
    return join([scale * x, scale * y, scale * z])


def quaternion_difference(q0: ArrayLike, q1: ArrayLike) -> Any:
    """Return the rotation vector (..., 3), in axes of the first, from one attitude to another."""
    return quaternion_log(quaternion_multiply(quaternion_inverse(q0), q1))


def quaternion_integrate(q: ArrayLike, rotvec: ArrayLike) -> Any:
    """Return the attitude (..., 4) reached from `q` by a rotation vector (..., 3) in its axes."""
    return quaternion_multiply(q, quaternion_exp(rotvec))


def quaternion_kinematics(q: ArrayLike, w: ArrayLike, baumgarte: Scalar = 1.0) -> Any:
    """Return dq/dt (..., 4) for the body rate `w` (..., 3) in body axes, in rad/s.

    ``1/2 q (x) w - baumgarte (|q|^2 - 1) q``; the second term holds the norm at one during
    integration, and 0 turns it off.

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.
    w : array (..., 3)
        Angular velocity of B relative to E in rad/s, in body axes.
    baumgarte : float, optional
        Gain in 1/s with which the norm of the quaternion is driven to one. 1 by default; 0 turns it
        off.

    Examples
    --------
    >>> quaternion_kinematics([1.0, 0.0, 0.0, 0.0], [0.0, 0.1, 0.0])
    array([0.  , 0.  , 0.05, 0.  ])
    """
    a, b, c, d = parts = vector_components(q, 4, "q", False)
    x, y, z = vector_components(w, 3, "w")
    k = as_scalar(baumgarte, "baumgarte") * (1.0 - dot(parts, parts))
    return join(
        [
            k * a - 0.5 * (b * x + c * y + d * z),
            k * b + 0.5 * (a * x + c * z - d * y),
            k * c + 0.5 * (a * y + d * x - b * z),
            k * d + 0.5 * (a * z + b * y - c * x),
        ]
    )


def quaternion_kinematics_matrix(q: ArrayLike, inverse: bool = False) -> Any:
    """Return the matrix (..., 4, 3) with ``dq/dt = M @ w_B``, or its left inverse (..., 3, 4).

    Parameters
    ----------
    q : array (..., 4)
        Quaternion [w, x, y, z], scalar first.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> quaternion_kinematics_matrix([1.0, 0.0, 0.0, 0.0], inverse=True)
    array([[-0.,  2.,  0., -0.],
           [-0., -0.,  2.,  0.],
           [-0.,  0., -0.,  2.]])
    """
    a, b, c, d = parts = vector_components(q, 4, "q", False)
    if inverse:
        squared = dot(parts, parts)
        check_norm(squared, "quaternion q")
        k = 2.0 / squared
        entries = [-b, a, d, -c, -c, -d, a, b, -d, c, -b, a]
        shape = (3, 4)
    else:
        k = 0.5
        entries = [-b, -c, -d, a, -d, c, d, a, -b, -c, b, a]
        shape = (4, 3)
    flat = join([k * p for p in entries])
    return flat.reshape((*flat.shape[:-1], *shape))


#: Newton-Schulz steps; the error is squared by each, so 0.3 falls below 1e-16 in six.
STEPS = 6


def dcm_kinematics(matrix: ArrayLike, w: ArrayLike) -> Any:
    """Return dR_BE/dt = -[w_B]x R_BE (..., 3, 3) for the body rate `w` (..., 3), in rad/s.

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.
    w : array (..., 3)
        Angular velocity of B relative to E in rad/s, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_kinematics(np.eye(3), [0.0, 0.0, 1.0])[0]
    array([0., 1., 0.])
    """
    m = check_matrix(matrix, 3, "matrix")
    return np.matmul(skew(-check_vector(w, 3, "w")), m)


def dcm_angular_velocity(matrix: ArrayLike, rate: ArrayLike) -> Any:
    """Return the body rate w_B (..., 3), in rad/s, of matrices R_BE that change by `rate`.

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Rotation matrix R_BE, which takes E to B coordinates.
    rate : array (..., 3, 3)
        Time derivative of the matrix, in 1/s.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_angular_velocity(np.eye(3), dcm_kinematics(np.eye(3), [1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    m = check_matrix(matrix, 3, "matrix")
    s = np.matmul(check_matrix(rate, 3, "rate"), transpose(m))
    x, y, z = s[..., 1, 2] - s[..., 2, 1], s[..., 2, 0] - s[..., 0, 2], s[..., 0, 1] - s[..., 1, 0]
    return 0.5 * join([x, y, z])


def dcm_normalize(matrix: ArrayLike) -> Any:
    """Return the rotation matrices nearest to matrices (..., 3, 3) that have drifted.

    Newton-Schulz iteration for the polar factor (Higham, Functions of Matrices, 2008, 8.3), for
    singular values within 0.3 of one.

    Parameters
    ----------
    matrix : array (..., 3, 3)
        Matrices that have drifted from rotation matrices. Their singular values lie within 0.3 of
        one.

    Examples
    --------
    >>> import numpy as np
    >>> dcm_normalize(1.1 * np.eye(3)).round(15)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    m = check_matrix(matrix, 3, "matrix")
    for _ in range(STEPS):
        m = 1.5 * m - 0.5 * np.matmul(m, np.matmul(transpose(m), m))
    return m
