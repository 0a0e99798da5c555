"""Checks of what filters are given: vectors, covariances, functions. Values only where known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.errors import ShapeDtypeError
from archimedes.function import array, holds_traced

__all__ = ["check_covariance", "check_function", "matrix", "returned_vector", "vector"]

#: How far from symmetric, and below zero, a covariance may be, relative to its largest entry.
ROUNDING = 1e-9


def _numbers(value: Any, name: str) -> Any:
    """Return real numbers as an array of floats, traced or not."""
    if holds_traced(value):
        found = array(value) if isinstance(value, list | tuple | np.ndarray) else value
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
    found = _numbers(value, name)
    if np.ndim(found) != 1 or (size is not None and found.shape != (size,)):
        wanted = "(n,)" if size is None else f"({size},)"
        raise ShapeDtypeError(f"{name} must be a vector of shape {wanted}, got {np.shape(found)}")
    return found


def matrix(value: Any, name: str, rows: int | None = None, columns: int | None = None) -> Any:
    """Return numbers as an array (rows, columns); None is any number."""
    found = _numbers(value, name)
    shape = np.shape(found)
    if len(shape) != 2 or any(w not in (None, s) for w, s in zip((rows, columns), shape)):
        wanted = ", ".join("n" if w is None else str(w) for w in (rows, columns))
        raise ShapeDtypeError(f"{name} must be a matrix of shape ({wanted}), got {shape}")
    return found


def check_covariance(
    value: Any, name: str, size: int | None = None, *, definite: bool = False
) -> Any:
    """Return a covariance (size, size): finite, symmetric and not negative, where known."""
    found = matrix(value, name, size, size)
    if found.shape[0] != found.shape[1]:
        raise ShapeDtypeError(f"{name} must be a square matrix, got shape {found.shape}")
    if holds_traced(found):
        return found
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must hold finite numbers, got {found}")
    slack = ROUNDING * np.max(np.abs(found), initial=0.0)
    if np.any(np.abs(found - found.T) > slack):
        raise ValueError(f"{name} must be symmetric; use ({name} + {name}.T) / 2, got {found}")
    least = np.min(np.linalg.eigvalsh(found), initial=np.inf)
    if definite and not least > 0.0:
        raise ValueError(
            f"{name} must be positive definite, its least eigenvalue is {least:.3g}; "
            f"add a small positive number to its diagonal"
        )
    if least < -slack:
        raise ValueError(
            f"{name} must be a covariance (no negative eigenvalues), its least is {least:.3g}"
        )
    return found


def check_function(value: Any, name: str) -> None:
    """Raise where what should be a function cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function {name}(t, x, *args), got {value!r}")


def returned_vector(
    func: Callable[..., Any], name: str, t: Any, x: Any, args: Any, size: int
) -> Any:
    """Call a model's function; returns a vector (size,)."""
    found = _numbers(func(t, x, *args), f"what {name} returned")
    if np.shape(found) != (size,):
        raise ShapeDtypeError(
            f"{name}(t, x, *args) must return a vector of shape ({size},), got {np.shape(found)}"
        )
    return found
