"""Checks of the functions of a model that filters are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import real_numbers
from archimedes.errors import ShapeDtypeError

__all__ = ["check_function", "returned_vector"]


def check_function(value: Any, name: str) -> None:
    """Raise where what should be a function cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function {name}(t, x, *args), got {value!r}")


def returned_vector(
    func: Callable[..., Any], name: str, t: Any, x: Any, args: Any, size: int
) -> Any:
    """Call a model's function; returns a vector (size,)."""
    found = real_numbers(func(t, x, *args), f"what {name} returned")
    if np.shape(found) != (size,):
        raise ShapeDtypeError(
            f"{name}(t, x, *args) must return a vector of shape ({size},), got {np.shape(found)}"
        )
    return found
