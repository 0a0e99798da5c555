"""Checks of vectors and matrices that users give: shapes always, values where they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from archimedes.checks import check_finite, is_traced, transpose_hint
from archimedes.errors import ShapeDtypeError, refer_to
from archimedes.function import array
from archimedes.function.matrix_exponential import diagonal_units, in_units
from archimedes.typing import Array, ArrayLike

#: How far from symmetric, and below zero, matrices may be, relative to their largest entry.
ROUNDING = 1e-9


def real_numbers(value: ArrayLike, name: str) -> Array:
    """Return real numbers as an array of floats, traced or not."""
    numbers: Any = value
    if is_traced(value):
        is_array = hasattr(value, "dtype") and not isinstance(value, np.ndarray)
        numbers = value if is_array else array(value)
    else:
        try:
            numbers = np.asarray(value)
        except ValueError:
            raise ShapeDtypeError(f"{name} must be an array, got {value!r}") from None
    kind = getattr(getattr(numbers, "dtype", None), "kind", "O")
    if kind not in "fiu":
        raise ShapeDtypeError(f"{name} must be an array of real numbers, got {value!r}")
    return numbers if kind == "f" else numbers.astype(np.float64)


def vector(value: ArrayLike, name: str, size: int | None = None) -> Array:
    """Return numbers as an array (size,)."""
    numbers = real_numbers(value, name)
    if np.ndim(numbers) != 1 or (size is not None and numbers.shape != (size,)):
        wanted = "(n,)" if size is None else f"({size},)"
        raise ShapeDtypeError(f"{name} must be a vector of shape {wanted}, got {np.shape(numbers)}")
    return numbers


def matrix(
    value: ArrayLike,
    name: str,
    rows: int | None = None,
    columns: int | None = None,
    *,
    finite: bool = False,
) -> Array:
    """Return numbers as an array (rows, columns); None is any number. A number is (1, 1)."""
    numbers = real_numbers(value, name)
    numbers = np.reshape(numbers, (1, 1)) if np.ndim(numbers) == 0 else numbers
    shape = np.shape(numbers)
    if len(shape) != 2 or any(w not in (None, s) for w, s in zip((rows, columns), shape)):
        wanted = ", ".join("n" if w is None else str(w) for w in (rows, columns))
        raise ShapeDtypeError(f"{name} must be a matrix of shape ({wanted}), got {shape}")
    if finite:
        check_finite(numbers, name)
    return numbers


def signal_rows(value: ArrayLike, name: str, count: int) -> Array:
    """Return signals as rows (rows, count), the times along the last axis; one may be (count,)."""
    rows = real_numbers(value, name)
    rows = rows[None] if np.ndim(rows) == 1 else rows
    shape = np.shape(rows)
    if len(shape) != 2 or shape[1] != count:
        raise ShapeDtypeError(
            f"{name} must have one column per time, shape (rows, {count}), got {shape}"
            + transpose_hint(shape, count, name, -1)
        )
    return rows


def symmetric_matrix(
    value: ArrayLike, name: str, size: int | None = None, eigenvalues: str = "any"
) -> Array:
    """Return a symmetric matrix (size, size), finite and with eigenvalues as asked, where known.

    ``eigenvalues`` is "any", "not negative" (covariances) or "positive".
    """
    numbers = matrix(value, name, size, size, finite=True)
    if numbers.shape[0] != numbers.shape[1]:
        raise ShapeDtypeError(f"{name} must be a square matrix, got shape {numbers.shape}")
    if is_traced(numbers):
        return numbers
    slack = ROUNDING * np.max(np.abs(numbers), initial=0.0)
    if np.any(np.abs(numbers - numbers.T) > slack):
        raise ValueError(
            f"{name} must be symmetric; use ({name} + {name}.T) / 2, got {numbers}"
            + refer_to("weight")
        )
    if eigenvalues == "any":
        return numbers
    least = np.min(np.linalg.eigvalsh(numbers), initial=np.inf)
    if eigenvalues == "positive" and not _is_definite(numbers):
        raise ValueError(
            f"{name} must be positive definite, but its smallest eigenvalue is {least:.3g}; "
            f"add a small positive number to its diagonal" + refer_to("weight")
        )
    if least < -slack:
        raise ValueError(
            f"{name} must be positive semidefinite, but its smallest eigenvalue is {least:.3g}: "
            "is a sign wrong?" + refer_to("weight")
        )
    return numbers


def check_sizes(block: object, sizes: Mapping[str, int]) -> None:
    """Raise where an attribute of a block is neither a number nor a vector of its size."""
    for name, size in sizes.items():
        shape = np.shape(getattr(block, name))
        if shape not in ((), (size,)):
            raise ValueError(f"{name} must be a number or a vector ({size},), got {shape}")


def _is_definite(M: np.ndarray) -> bool:
    """Return whether a symmetric matrix is positive definite, whatever the units of its rows."""
    if not np.all(np.diagonal(M) > 0.0):
        return False
    units = 1.0 / diagonal_units(M)
    return bool(np.min(np.linalg.eigvalsh(in_units(M, units, units)), initial=np.inf) > 0.0)
