r"""Rigid motions on arrays: exponential, logarithm, adjoint and Jacobians of SE(3).

Legend: T is a homogeneous matrix (..., 4, 4) with rotation R = T[:3, :3] and translation
t = T[:3, 3]; a twist xi (..., 6) is [rho, phi], linear part first, and T = exp(xi) turns by the
rotation vector phi (R = exp([phi]x)). Stumpff functions c_k are of |phi|^2.
Sources: Barfoot, State Estimation for Robotics, 2017, section 7.1 (Q is eq. 7.86b); the linear part
comes first as in Pinocchio, whose ``exp6``, ``log6``, ``Jexp6`` (right Jacobian) and ``Jlog6`` (its
inverse at the logarithm) give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import check_matrix, check_vector
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion, quaternion_log
from archimedes.spatial.attitudes.rotvec import rotvec_to_dcm, so3_left_jacobian
from archimedes.spatial.components import matvec, skew, transpose
from archimedes.spatial.stumpff import stumpff
from archimedes.typing import ArrayLike, Matrix, Vec3

__all__ = ["se3_adjoint", "se3_exp", "se3_left_jacobian", "se3_log", "se3_right_jacobian"]


def homogeneous(R: Matrix, t: Vec3) -> Any:
    """Return the matrix (..., 4, 4) of a rotation matrix (..., 3, 3) and a vector (..., 3).

    >>> import numpy as np
    >>> homogeneous(np.eye(3), np.array([1.0, 2.0, 3.0]))[:, 3]
    array([1., 2., 3., 1.])
    """
    top = np.concatenate([R, t[..., None]], axis=-1)
    bottom = np.broadcast_to(np.array([[0.0, 0.0, 0.0, 1.0]]), (*top.shape[:-2], 1, 4))
    return np.concatenate([top, bottom], axis=-2)


def blocks(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Any:
    """Return the matrix (..., 6, 6) of four blocks [[a, b], [c, d]]."""
    top, bottom = np.concatenate([a, b], axis=-1), np.concatenate([c, d], axis=-1)
    return np.concatenate([top, bottom], axis=-2)


def se3_exp(xi: ArrayLike) -> Any:
    """Return the homogeneous matrix (..., 4, 4) of a twist (..., 6), linear part first.

    Parameters
    ----------
    xi : array (..., 6)
        Twist, linear part first.

    Examples
    --------
    >>> se3_exp([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])[:3, 3]
    array([1., 2., 3.])
    """
    xi = check_vector(xi, 6, "xi")
    rho, phi = xi[..., :3], xi[..., 3:]
    return homogeneous(rotvec_to_dcm(-phi), matvec(so3_left_jacobian(phi), rho))


def se3_log(T: ArrayLike) -> Any:
    """Return the twist (..., 6), linear part first, of a homogeneous matrix (..., 4, 4).

    Parameters
    ----------
    T : array (..., 4, 4)
        Homogeneous matrix.

    Examples
    --------
    >>> import numpy as np
    >>> se3_log(np.eye(4))
    array([0., 0., 0., 0., 0., 0.])
    """
    T = check_matrix(T, 4, "T")
    # R is exp([phi]x), the transpose of the passive matrix of phi
    phi = quaternion_log(dcm_to_quaternion(transpose(T[..., :3, :3])))
    rho = matvec(so3_left_jacobian(phi, inverse=True), T[..., :3, 3])
    return np.concatenate([rho, phi], axis=-1)


def se3_adjoint(T: ArrayLike) -> Any:
    """Return the matrix (..., 6, 6) that takes twists to the coordinates T takes points to.

    Parameters
    ----------
    T : array (..., 4, 4)
        Homogeneous matrix.

    Examples
    --------
    >>> import numpy as np
    >>> se3_adjoint(np.eye(4)).trace()
    np.float64(6.0)
    """
    T = check_matrix(T, 4, "T")
    R = T[..., :3, :3]
    return blocks(R, np.matmul(skew(T[..., :3, 3]), R), np.zeros_like(R), R)


def se3_left_jacobian(xi: ArrayLike, inverse: bool = False) -> Any:
    """Return the left Jacobian of `se3_exp` (..., 6, 6) at a twist (..., 6), or its inverse.

    Parameters
    ----------
    xi : array (..., 6)
        Twist, linear part first.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.all(se3_left_jacobian(np.zeros(6)) == np.eye(6)))
    True
    """
    xi = check_vector(xi, 6, "xi")
    phi = xi[..., 3:]
    P, S = skew(xi[..., :3]), skew(phi)
    c3, c4, c5 = (c[..., None, None] for c in stumpff((3, 4, 5), np.sum(phi * phi, axis=-1)))
    SP, PS = np.matmul(S, P), np.matmul(P, S)
    SPS = np.matmul(SP, S)
    Q = (
        0.5 * P
        + c3 * (SP + PS + SPS)
        + c4 * (np.matmul(S, SP) + np.matmul(PS, S) - 3.0 * SPS)
        + 0.5 * (c4 - 3.0 * c5) * (np.matmul(SPS, S) + np.matmul(S, SPS))
    )
    J = so3_left_jacobian(phi, inverse)
    upper = -np.matmul(J, np.matmul(Q, J)) if inverse else Q
    return blocks(J, upper, np.zeros_like(J), J)


def se3_right_jacobian(xi: ArrayLike, inverse: bool = False) -> Any:
    """Return the right Jacobian of `se3_exp` (..., 6, 6) at a twist (..., 6), or its inverse.

    ``exp(xi)^-1 d/dt exp(xi)`` is the twist ``se3_right_jacobian(xi) @ dxi_dt``.

    Parameters
    ----------
    xi : array (..., 6)
        Twist, linear part first.
    inverse : bool, optional
        Return the inverse matrix instead. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.all(se3_right_jacobian(np.zeros(6)) == np.eye(6)))
    True
    """
    return se3_left_jacobian(-check_vector(xi, 6, "xi"), inverse)
