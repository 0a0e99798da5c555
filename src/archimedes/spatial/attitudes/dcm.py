"""Passive rotation matrices R_BE as arrays (..., 3, 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import check_matrix, check_vector
from archimedes.spatial.components import join, skew, transpose

__all__ = ["dcm_angular_velocity", "dcm_kinematics", "dcm_normalize"]

#: Newton-Schulz steps; the error is squared by each, so 0.3 falls below 1e-16 in six.
STEPS = 6


def dcm_kinematics(matrix: Any, w: Any) -> Any:
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


def dcm_angular_velocity(matrix: Any, rate: Any) -> Any:
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


def dcm_normalize(matrix: Any) -> Any:
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
