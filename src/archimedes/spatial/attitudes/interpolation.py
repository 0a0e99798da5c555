"""Attitudes between others, their mean, and the attitude that aligns two sets of vectors.

Slerp and squad are written with the exponential and logarithm of the turn between their ends, which
are smooth functions, so that values and derivatives are right for coincident ends too.
Source: Shoemake, Animating rotation with quaternion curves, SIGGRAPH 1985; Quaternion calculus
and fast animation, SIGGRAPH course notes 1987 (squad).

Mean and alignment are the eigenvector of the largest eigenvalue of a symmetric 4x4 matrix. It is
found by squaring the matrix repeatedly, which uses products only: it works in traces, on batches,
and its derivative exists where the eigenvector is unique, also where the other eigenvalues
coincide.
Sources: Markley, Cheng, Crassidis and Oshman, Averaging quaternions, J. Guidance 30, 2007;
Davenport's q-method and the covariance in Markley and Crassidis, Fundamentals of Spacecraft
Attitude Determination and Control, 2014, sections 5.3 and 5.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import as_array, as_scalar, check_shape, check_that, check_vector
from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.attitudes.attitude_base import AttitudeBase, quaternion_of
from archimedes.spatial.attitudes.attitude_classes import Quaternion
from archimedes.spatial.components import choose, components, expand, join, transpose
from archimedes.typing import ArrayLike, Matrix, Quat, Scalar

__all__ = ["Alignment", "align_vectors", "mean", "slerp", "squad", "squad_controls"]


def quaternion_array(x: Any, name: str) -> Any:
    """Return the quaternion array (..., 4) of an attitude or an array."""
    return check_vector(quaternion_of(x) if hasattr(x, "as_matrix") else x, 4, name)


def like(original: Any, q: Quat) -> Any:
    """Return a quaternion array in the class of `original`, or as an array."""
    if not isinstance(original, AttitudeBase):
        return q
    return original.of_quaternion(q, **original.static())


def slerp(q0: ArrayLike, q1: ArrayLike, s: Scalar) -> Any:
    """Return the attitude on the shortest rotation, at constant rate, between two attitudes.

    The result is of the class of `q0`. ``q`` and ``-q`` are the same attitude.

    Parameters
    ----------
    q0 : attitude or array (..., 4)
        Attitude at ``s = 0``.
    q1 : attitude or array (..., 4)
        Attitude at ``s = 1``.
    s : array_like
        Fraction of the way, 0 to 1. It broadcasts against the batch of attitudes.

    Examples
    --------
    >>> slerp([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], 0.5)
    array([0.70710678, 0.70710678, 0.        , 0.        ])
    """
    a = quaternions.quaternion_normalize(quaternion_array(q0, "q0"))
    b = quaternions.quaternion_normalize(quaternion_array(q1, "q1"))
    step = expand(as_scalar(s, "s")) * quaternions.quaternion_difference(a, b)
    return like(q0, quaternions.quaternion_integrate(a, step))


def squad(q0: ArrayLike, q1: ArrayLike, control0: ArrayLike, control1: ArrayLike, s: Scalar) -> Any:
    """Return the attitude at `s` between q0 (0) and q1 (1) on a curve bent by two controls.

    With the controls of `squad_controls` the curve through many attitudes has continuous rates.

    Parameters
    ----------
    q0 : attitude or array (..., 4)
        Attitude at ``s = 0``.
    q1 : attitude or array (..., 4)
        Attitude at ``s = 1``.
    control0 : array (..., 4)
        Control of `q0`, from `squad_controls`.
    control1 : array (..., 4)
        Control of `q1`, from `squad_controls`.
    s : array_like
        Fraction of the way, 0 to 1. It broadcasts against the batch of attitudes.

    Examples
    --------
    >>> q = [1.0, 0.0, 0.0, 0.0]
    >>> squad(q, q, q, q, 0.3)
    array([1., 0., 0., 0.])
    """
    s = as_scalar(s, "s")
    outer, inner = slerp(q0, q1, s), slerp(control0, control1, s)
    return slerp(outer, inner, 2.0 * s * (1.0 - s))


def squad_controls(quats: Any) -> Any:
    """Return the controls (n, 4) of `squad` for a sequence of attitudes (n, 4).

    The ends are their own controls. The result is like `quats`.

    Parameters
    ----------
    quats : attitudes or array (n, 4)
        The sequence of attitudes.

    Examples
    --------
    >>> import numpy as np
    >>> squad_controls(np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0]])).shape
    (3, 4)
    """
    q = quaternions.quaternion_normalize(quaternion_array(quats, "quats"))
    if q.ndim != 2 or len(q) < 2:
        raise ValueError(f"quats must be a sequence of two or more attitudes, got shape {q.shape}")
    if len(q) == 2:
        return like(quats, q)
    ahead, behind = (quaternions.quaternion_difference(q[1:-1], other) for other in (q[2:], q[:-2]))
    middle = quaternions.quaternion_integrate(q[1:-1], -0.25 * (ahead + behind))
    return like(quats, np.concatenate([q[:1], middle, q[-1:]], axis=0))


# ---- means, and the attitude that aligns two sets of vectors ------------------------------------


#: The matrix is raised to the power 2^24, enough for eigenvalues that differ by 1e-6.
SQUARINGS = 24


def dominant_quaternion(K: Matrix) -> Any:
    """Return the unit eigenvector (..., 4) of the largest eigenvalue of K (..., 4, 4) >= 0."""
    for _ in range(SQUARINGS):
        K = np.matmul(K, K)
        K = K / np.trace(K, axis1=-2, axis2=-1)[..., None, None]
    # Every column is a multiple of the eigenvector: take the longest.
    best, size = components(K[..., 0], 4), K[..., 0, 0]
    for k in range(1, 4):
        longer = K[..., k, k] > size
        longer = bool(longer) if type(longer) is np.bool_ else longer
        best = choose(longer, components(K[..., k], 4), best)
        size = np.where(longer, K[..., k, k], size)
    return quaternions.quaternion_normalize(join(best))


def check_weights(weights: ArrayLike | None, count: int) -> Any:
    """Return `count` weights, not negative and with a positive sum where known."""
    if weights is None:
        return np.ones(count)
    array = as_array(weights, "weights")
    check_shape(array, "weights", (count,))
    check_that(
        lambda w: np.all(w >= 0.0) and w.sum() > 0.0, array, "weights",
        "must not be negative, nor all zero",
    )  # fmt: skip
    return array


def mean(attitudes: Any, weights: ArrayLike | None = None) -> Quaternion:
    """Return the mean attitude of a batch, over its first axis.

    It minimizes the weighted sum of squared chordal distances ``|R - R_i|^2``.

    Parameters
    ----------
    attitudes : batch of attitudes
        Attitudes along the first axis: a batch, an array (n, ..., 4) of quaternions, or a list.
    weights : array (n,), optional
        Weights, equal by default.

    Examples
    --------
    >>> from archimedes.spatial import EulerAngles, mean
    >>> mean([EulerAngles(0.1, "x"), EulerAngles(0.3, "x")]).as_euler("xyz")
    EulerAngles([0.2 0.  0. ], seq='xyz')
    """
    if isinstance(attitudes, (list, tuple)) and attitudes and hasattr(attitudes[0], "as_matrix"):
        q = np.stack([quaternion_of(a) for a in attitudes])
    else:
        q = quaternion_of(attitudes) if hasattr(attitudes, "as_matrix") else attitudes
    q = quaternions.quaternion_normalize(q)
    if q.ndim < 2 or len(q) == 0:
        raise ValueError(f"mean needs a batch of attitudes, got shape {tuple(q.shape)}")
    w = np.reshape(check_weights(weights, len(q)), (len(q), *(1,) * q.ndim))
    K = np.sum(w * q[..., :, None] * q[..., None, :], axis=0)
    return Quaternion.make(dominant_quaternion(K))


class Alignment(NamedTuple):
    """Result of `align_vectors`.

    Parameters
    ----------
    attitude : Quaternion
        The attitude of B in E.
    rssd : float
        Root of the weighted sum of squared residuals.
    covariance : array (..., 3, 3)
        Covariance in rad^2 of the small rotation vector in B, for measurements whose variances are
        the inverse of the weights. It is infinite where the vectors do not determine the attitude.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import align_vectors
    >>> attitude, rssd, covariance = align_vectors(np.eye(3), np.eye(3))
    >>> attitude, round(float(rssd), 9)
    (Quaternion([1. 0. 0. 0.]), 0.0)
    """

    attitude: Quaternion
    rssd: Any
    covariance: Any


def align_vectors(v_B: ArrayLike, v_E: ArrayLike, weights: ArrayLike | None = None) -> Alignment:
    """Return the attitude that best aligns two sets of vectors (Wahba's problem).

    It is the R_BE for which ``v_B ~ R_BE v_E``.

    Parameters
    ----------
    v_B : array (..., n, 3)
        Directions or vectors measured in B.
    v_E : array (..., n, 3)
        The same directions or vectors in E.
    weights : array (n,), optional
        Weights, the inverse variances of the measurements. Equal to one by default.

    Returns
    -------
    Alignment
        Attitude, residual and covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import align_vectors
    >>> align_vectors(np.eye(3), np.eye(3)).attitude
    Quaternion([1. 0. 0. 0.])
    """
    a, b = check_vector(v_B, 3, "v_B"), check_vector(v_E, 3, "v_E")
    if a.ndim < 2 or a.shape[-2:] != b.shape[-2:] or a.shape[-2] == 0:
        actual = f"got {tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(f"v_B and v_E must both have shape (n, 3) or (..., n, 3), {actual}")
    w = check_weights(weights, a.shape[-2])
    B = np.matmul(transpose(w[:, None] * a), b)  # sum of w a b^T
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = [[B[..., i, k] for k in range(3)] for i in range(3)]
    K = join(
        [
            xx + yy + zz, yz - zy, zx - xz, xy - yx,
            yz - zy, xx - yy - zz, xy + yx, xz + zx,
            zx - xz, xy + yx, yy - xx - zz, yz + zy,
            xy - yx, xz + zx, yz + zy, zz - xx - yy,
        ]
    )  # fmt: skip
    K = np.reshape(K, (*K.shape[:-1], 4, 4))
    squares = np.sum(w * np.sum(a * a + b * b, axis=-1), axis=-1)
    check_that(lambda x: x > 0.0, squares, "v_B and v_E", "must not all be zero")
    # No eigenvalue is below minus half of `squares`, so the shifted matrix is positive.
    q = dominant_quaternion(K / squares[..., None, None] + 0.5 * np.eye(4))
    gain = np.sum(quaternions.quaternion_to_dcm(q) * B, axis=(-2, -1))
    rssd = root(squares - 2.0 * gain)
    kappa = 0.5 * (gain * gain - np.sum(B * B, axis=(-2, -1)))
    zeta = (kappa * gain - np.linalg.det(B))[..., None, None]
    fixed = zeta > 0.0
    inverse = kappa[..., None, None] * np.eye(3) + np.matmul(B, transpose(B))
    covariance = np.where(fixed, inverse / np.where(fixed, zeta, 1.0), np.inf)
    return Alignment(Quaternion.make(q), rssd, covariance)


def root(x: Any) -> Any:
    """Return the square root, zero with derivative zero where rounding has made x negative."""
    return np.where(x > 0.0, np.sqrt(np.where(x > 0.0, x, 1.0)), 0.0)
