"""Checks of arguments whose values are known; traced arrays pass without a node added.

Every check names the argument and says what to give instead. A shape is always known, so shapes
are checked in traces too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from archimedes import checks
from archimedes.errors import refer_to
from archimedes.spatial.components import components
from archimedes.typing import ArrayLike, Scalar

INFINITY = math.inf
ndarray = np.ndarray

#: How far from orthonormal a matrix may be and still be taken for a rotation.
ROTATION_TOLERANCE = 1e-6


def vector_components(x: ArrayLike, n: int, name: str, finite: bool = True) -> Sequence[Any]:
    """Return the components of a vector (..., n), checked to be finite if asked.

    Functions that check a norm computed from the components need not ask.
    """
    if type(x) is ndarray and x.dtype is checks.FLOAT and x.ndim == 1:
        parts = x.tolist()
        if len(parts) == n and (not finite or isfinite(sum(parts))):
            return parts
    array = checks.as_array(x, name)
    checks.check_last(array, n, name)
    if finite:
        checks.check_finite(array, name)
    return components(array, n)


def check_norm(squared: Scalar, name: str) -> None:
    """Raise if a known squared norm is zero, nan or infinite."""
    if type(squared) is float and 0.0 < squared < INFINITY:
        return
    values = checks.concrete(squared)
    if values is not None and not np.all((values > 0.0) & (values < INFINITY)):
        raise ValueError(
            f"{name} must be finite and not zero to be taken as a rotation, got squared norm "
            f"{squared}" + refer_to("zero quaternion")
        )


def check_rotation(x: ArrayLike, name: str) -> Any:
    """Return `x` as an array (..., 3, 3), checked to be proper and orthonormal if known."""
    matrix = checks.check_matrix(x, 3, name)
    values = checks.concrete(matrix)
    if values is None:
        return matrix
    error = np.abs(values @ np.swapaxes(values, -1, -2) - np.eye(3)).max(initial=0.0)
    if error > ROTATION_TOLERANCE:
        fault = f"its rows times their transpose differ from the identity by {error:.2g}"
        remedy = "If it has only drifted, use RotationMatrix(matrix).normalize()"
        raise ValueError(f"{name} must be orthogonal: {fault}. {remedy}" + refer_to("rotation"))
    if np.any(np.linalg.det(values) < 0.0):
        fault = "is a reflection (determinant -1), not a rotation: check the handedness of the axes"
        raise ValueError(f"{name} {fault}" + refer_to("rotation"))
    return matrix


def check_inertia(J: ArrayLike, name: str) -> None:
    """Raise if a known inertia matrix is asymmetric or not positive definite."""
    matrix = checks.check_matrix(J, 3, name)
    values = checks.concrete(matrix)
    if values is None:
        return
    scale = np.abs(values).max(initial=0.0)
    if np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0.0) > 1e-9 * scale:
        raise ValueError(f"{name} must be symmetric, got {values}")
    try:
        np.linalg.cholesky(values)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} must be positive definite (principal moments greater than zero), got {values}"
        ) from None
