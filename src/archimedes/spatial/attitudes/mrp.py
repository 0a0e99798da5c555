"""Modified Rodrigues parameters as arrays (..., 3): axis times tan(angle / 4).

Every rotation has two sets, s and its shadow -s/|s|^2; the one with |s| <= 1 turns by at most half
a turn. Source: Schaub and Junkins, Analytical Mechanics of Space Systems, 2018, section 3.6.
"""

from __future__ import annotations

from typing import Any

from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion, quaternion_to_dcm
from archimedes.spatial.components import dot, join, join_matrix, select, sqrt
from archimedes.spatial.validation import check_norm, vector_components

__all__ = [
    "dcm_to_mrp",
    "mrp_kinematics",
    "mrp_normalize",
    "mrp_shadow",
    "mrp_to_dcm",
    "mrp_to_quaternion",
    "quaternion_to_mrp",
]


def quaternion_to_mrp(q: Any) -> Any:
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
    w, x, y, z = c = vector_components(q, 4, "q", finite=False)
    squared = dot(c, c)
    check_norm(squared, "quaternion q")
    sign = select(w < 0.0, -1.0, 1.0)
    scale = sign / (sqrt(squared) + sign * w)
    return join([scale * x, scale * y, scale * z])


def mrp_to_quaternion(mrp: Any) -> Any:
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


def mrp_to_dcm(mrp: Any) -> Any:
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
    return quaternion_to_dcm(mrp_to_quaternion(mrp))


def dcm_to_mrp(matrix: Any) -> Any:
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
    return quaternion_to_mrp(dcm_to_quaternion(matrix))


def mrp_shadow(mrp: Any) -> Any:
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


def mrp_normalize(mrp: Any) -> Any:
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


def mrp_kinematics(mrp: Any, inverse: bool = False) -> Any:
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
