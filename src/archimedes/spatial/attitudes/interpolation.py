"""Interpolation of attitudes: slerp, squad.

Both are written with the exponential and logarithm of the turn between their ends, which are
smooth functions, so that values and derivatives are right for coincident ends too.
Source: Shoemake, Animating rotation with quaternion curves, SIGGRAPH 1985; Quaternion calculus
and fast animation, SIGGRAPH course notes 1987 (squad).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_scalar, check_vector
from archimedes.spatial.attitudes.attitude_base import AttitudeBase, quaternion_of
from archimedes.spatial.attitudes.quaternions import (
    quaternion_difference,
    quaternion_integrate,
    quaternion_normalize,
)
from archimedes.spatial.components import expand
from archimedes.typing import ArrayLike, Quat, Scalar

__all__ = ["slerp", "squad", "squad_controls"]


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
    a = quaternion_normalize(quaternion_array(q0, "q0"))
    b = quaternion_normalize(quaternion_array(q1, "q1"))
    step = expand(as_scalar(s, "s")) * quaternion_difference(a, b)
    return like(q0, quaternion_integrate(a, step))


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
    q = quaternion_normalize(quaternion_array(quats, "quats"))
    if q.ndim != 2 or len(q) < 2:
        raise ValueError(f"quats must be a sequence of two or more attitudes, got shape {q.shape}")
    if len(q) == 2:
        return like(quats, q)
    ahead, behind = (quaternion_difference(q[1:-1], other) for other in (q[2:], q[:-2]))
    middle = quaternion_integrate(q[1:-1], -0.25 * (ahead + behind))
    return like(quats, np.concatenate([q[:1], middle, q[-1:]], axis=0))
