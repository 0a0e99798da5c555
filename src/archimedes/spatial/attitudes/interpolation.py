"""Attitudes between others, their mean, and the attitude that aligns two sets of vectors.

Slerp and squad are written with the exponential and logarithm of the turn between their ends, which
are smooth functions, so that values and derivatives are right for coincident ends too.
Source: Shoemake, Animating rotation with quaternion curves, SIGGRAPH 1985; Quaternion calculus
and fast animation, SIGGRAPH course notes 1987 (squad).

Mean and alignment are the eigenvector of the largest eigenvalue of a symmetric 4x4 matrix
(`means.py`). A vector of infinite weight is aligned first, and the angle about it follows from the
others. Source: Davenport's q-method and the covariance in Markley and Crassidis, Fundamentals of
Spacecraft Attitude Determination and Control, 2014, sections 5.3 and 5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import as_scalar, check_that, check_vector, concrete
from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.attitudes.attitude_base import AttitudeBase, quaternion_of
from archimedes.spatial.attitudes.attitude_classes import Quaternion
from archimedes.spatial.attitudes.means import check_weights, dominant_quaternion, quaternion_mean
from archimedes.spatial.components import cross, expand, join, scaled_norm, transpose
from archimedes.typing import Array, ArrayLike, Quat, Scalar, Vec3

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


def mean(
    attitudes: Any, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = 0
) -> Quaternion:
    """Return the mean attitude of a batch.

    It minimizes the weighted sum of squared chordal distances ``|R - R_i|^2``.

    Parameters
    ----------
    attitudes : batch of attitudes
        A batch, an array (..., 4) of quaternions, or a list of attitudes.
    weights : array, optional
        Weights, equal by default: one per attitude along `axis`, or of the shape of the batch.
    axis : int, tuple of int or None, optional
        Axes of the batch to average over. The first by default; None for all.

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
    return Quaternion.make(quaternion_mean(q, weights, axis))


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
        Under an infinite weight only the angle about that vector varies.

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
        Weights, the inverse variances of the measurements. Equal to one by default. One of them
        may be infinite, a number that is known: that vector is aligned exactly, and the others
        determine the angle about it. It has no part in the residual.

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
    known = concrete(w)
    exact = [] if known is None else np.flatnonzero(np.isinf(known)).tolist()
    if len(exact) > 1:
        raise ValueError(
            f"weights must not be infinite more than once, got {w.tolist()}: two directions that "
            "are both exact disagree in general; give one of them a large finite weight"
        )
    if exact or a.shape[-2] == 1:
        return _align_exactly(a, b, w, exact[0] if exact else 0)
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


def _align_exactly(a: Vec3, b: Vec3, weights: Array, first: int) -> Alignment:
    """Return the attitude that takes the first pair exactly, and the others as well as it can."""
    u, v = a[..., first, :], b[..., first, :]
    sizes = [np.sum(x * x, axis=-1, keepdims=True) for x in (u, v)]
    for x, name in zip(sizes, ("v_B", "v_E")):
        check_that(lambda x: x > 0.0, x, f"{name} of infinite weight", "must not be zero, squared")
    u, v = u / np.sqrt(sizes[0]), v / np.sqrt(sizes[1])
    # The shortest turn from v to u; where they point apart, half a turn across v comes first.
    apart = np.sum(u * v, axis=-1, keepdims=True) < 0.0
    least = np.argmin(np.abs(v), axis=-1)
    across = cross(v, np.take(np.eye(3), least, axis=0))
    across = across / np.sqrt(np.sum(across * across, axis=-1, keepdims=True))
    half = np.concatenate([np.zeros_like(v[..., :1]), across], axis=-1)
    still = np.concatenate([np.ones_like(v[..., :1]), np.zeros_like(v)], axis=-1)
    start = np.where(apart, -v, v)
    arc = np.concatenate([1.0 + np.sum(start * u, axis=-1, keepdims=True), cross(start, u)], -1)
    turn = quaternions.quaternion_multiply(arc, np.where(apart, half, still))
    q = quaternions.quaternion_normalize(quaternions.quaternion_conjugate(turn))
    # What is left is an angle about u, by which the other vectors c of E come nearest to a.
    w = np.where(np.arange(len(weights)) == first, 0.0, weights)
    c = np.matmul(b, transpose(quaternions.quaternion_to_dcm(q)))
    along = u[..., None, :]
    in_plane = np.sum(a * c, axis=-1) - np.sum(a * along, axis=-1) * np.sum(c * along, axis=-1)
    cosine = np.sum(w * in_plane, axis=-1)
    sine = np.sum(w * np.sum(along * cross(c, a), axis=-1), axis=-1)
    free = (cosine == 0.0) & (sine == 0.0)
    angle = np.where(free, 0.0, np.arctan2(sine, np.where(free, 1.0, cosine)))[..., None]
    about = quaternions.quaternion_exp(-angle * u)
    q = quaternions.quaternion_multiply(q, about)
    misses = a - np.matmul(b, transpose(quaternions.quaternion_to_dcm(q)))
    finite = np.where(np.isinf(weights), 0.0, weights)
    rssd = root(np.sum(finite * np.sum(misses * misses, axis=-1), axis=-1))
    gain = np.where(free, 1.0, scaled_norm([cosine, sine, 0.0 * sine]))[..., None, None]
    covariance = np.where(free[..., None, None], np.inf, u[..., :, None] * u[..., None, :] / gain)
    return Alignment(Quaternion.make(q), rssd, covariance)


def root(x: Any) -> Any:
    """Return the square root, zero with derivative zero where rounding has made x negative."""
    return np.where(x > 0.0, np.sqrt(np.where(x > 0.0, x, 1.0)), 0.0)
