"""Checks of vectors and matrices that users give: shapes always, values where they are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError, explained
from archimedes.function import array
from archimedes.function.matrix_exponential import diagonal_units, in_units

__all__ = ["matrix", "real_numbers", "symmetric_matrix", "vector"]

#: How far from symmetric, and below zero, matrices may be, relative to their largest entry.
ROUNDING = 1e-9


def real_numbers(value: Any, name: str) -> Any:
    """Return real numbers as an array of floats, traced or not."""
    if is_traced(value):
        is_array = hasattr(value, "dtype") and not isinstance(value, np.ndarray)
        found = value if is_array else array(value)
    else:
        try:
            found = np.asarray(value)
        except ValueError:
            raise ShapeDtypeError(f"{name} must be an array, got {value!r}") from None
    kind = getattr(getattr(found, "dtype", None), "kind", "O")
    if kind not in "fiu":
        raise ShapeDtypeError(f"{name} must be an array of real numbers, got {value!r}")
    return found if kind == "f" else found.astype(np.float64)


def vector(value: Any, name: str, size: int | None = None) -> Any:
    """Return numbers as an array (size,)."""
    found = real_numbers(value, name)
    if np.ndim(found) != 1 or (size is not None and found.shape != (size,)):
        wanted = "(n,)" if size is None else f"({size},)"
        raise ShapeDtypeError(f"{name} must be a vector of shape {wanted}, got {np.shape(found)}")
    return found


def matrix(
    value: Any,
    name: str,
    rows: int | None = None,
    columns: int | None = None,
    *,
    finite: bool = False,
) -> Any:
    """Return numbers as an array (rows, columns); None is any number."""
    found = real_numbers(value, name)
    shape = np.shape(found)
    if len(shape) != 2 or any(w not in (None, s) for w, s in zip((rows, columns), shape)):
        wanted = ", ".join("n" if w is None else str(w) for w in (rows, columns))
        raise ShapeDtypeError(f"{name} must be a matrix of shape ({wanted}), got {shape}")
    if finite and not is_traced(found) and not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must hold finite numbers, got {found}")
    return found


def symmetric_matrix(
    value: Any, name: str, size: int | None = None, eigenvalues: str = "any"
) -> Any:
    """Return a symmetric matrix (size, size), finite and with eigenvalues as asked, where known.

    ``eigenvalues`` is "any", "not negative" (covariances) or "positive".
    """
    found = matrix(value, name, size, size, finite=True)
    if found.shape[0] != found.shape[1]:
        raise ShapeDtypeError(f"{name} must be a square matrix, got shape {found.shape}")
    if is_traced(found):
        return found
    slack = ROUNDING * np.max(np.abs(found), initial=0.0)
    if np.any(np.abs(found - found.T) > slack):
        raise ValueError(
            explained(
                "weight", f"{name} must be symmetric; use ({name} + {name}.T) / 2, got {found}"
            )
        )
    if eigenvalues == "any":
        return found
    least = np.min(np.linalg.eigvalsh(found), initial=np.inf)
    if eigenvalues == "positive" and not _is_definite(found):
        raise ValueError(
            explained(
                "weight",
                f"{name} must be positive definite, its least eigenvalue is {least:.3g}; "
                f"add a small positive number to its diagonal",
            )
        )
    if least < -slack:
        raise ValueError(
            explained(
                "weight",
                f"{name} must have no negative eigenvalues, its least is {least:.3g}: squares "
                "weighted by it would count below zero; is a sign wrong?",
            )
        )
    return found


def _is_definite(M: np.ndarray) -> bool:
    """Whether a symmetric matrix is positive definite, whatever the units of its rows."""
    if not np.all(np.diagonal(M) > 0.0):
        return False
    units = 1.0 / diagonal_units(M)
    return bool(np.min(np.linalg.eigvalsh(in_units(M, units, units)), initial=np.inf) > 0.0)
