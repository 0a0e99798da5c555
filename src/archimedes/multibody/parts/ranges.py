"""Checks of known numbers and of placements, and arrays that nobody can write to."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_that, check_vector, concrete
from archimedes.spatial.spatial_algebra import Pose
from archimedes.spatial.validation import check_rotation
from archimedes.tree.content import is_read_only
from archimedes.typing import Array, ArrayLike


def check_numbers(value: Any, name: str) -> None:
    """Raise if a known number is nan; infinity stands for no limit."""
    check_that(lambda x: ~np.isnan(x), value, name, "must be a number")


def known_numbers(value: Any, name: str, remedy: str) -> np.ndarray:
    """Return finite numbers that must be known; for traced ones the error names a `remedy`.

    >>> known_numbers(np.inf, "pitch", "")
    Traceback (most recent call last):
        ...
    ValueError: pitch must be finite, got inf
    """
    known = concrete(as_array(value, name))
    if known is None:
        raise ValueError(
            f"{name} must be known, not traced: it decides which program is recorded. {remedy}"
        )
    check_finite(known, name)
    return known


def known_zero(x: Any) -> bool:
    """Return whether numbers are known to be zero, all of them.

    >>> known_zero([0.0, 0]), known_zero([0.0, 1.0])
    (True, False)
    """
    known = concrete(as_array(x))
    return known is not None and not known.any()


def read_only(array: Any) -> Any:
    """Return an array that is read-only, a copy if it can be written to."""
    if type(array) is np.ndarray and not is_read_only(array):
        array = array.copy()
        array.flags.writeable = False
    return array


def check_placement(rotation: Any, position: ArrayLike | None, name: str) -> Pose:
    """Return a pose of a rotation (3, 3), child to parent, and a position (3,).

    A rotation is a matrix, or an attitude of `archimedes.spatial` of the child in the parent.
    """
    if hasattr(rotation, "as_matrix"):
        rotation = rotation.as_matrix().T
    R = np.eye(3) if rotation is None else check_rotation(rotation, f"{name} rotation")
    p = np.zeros(3) if position is None else check_vector(position, 3, f"{name} position")
    check_one(R, (3, 3), f"{name} rotation")
    check_one(p, (3,), f"{name} position")
    return Pose(read_only(R), read_only(p))


def check_one(array: Array, shape: tuple[int, ...], name: str) -> None:
    """Raise if an array has leading axes: a builder makes one model."""
    if tuple(array.shape) != shape:
        why = "a builder makes one model; arc.vmap of a function that builds makes many"
        raise ValueError(f"{name} must have shape {shape}, got {tuple(array.shape)}: {why}")
