"""Checks and limits that parts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array, concrete
from archimedes.errors import StructError
from archimedes.spatial import RigidBody

__all__ = ["check_axes", "check_flat", "check_not_negative", "check_part", "limited"]

#: What every vehicle asks of its world.
WORLD = ("state", "flight", "surroundings", "rates")


def check_axes(axes: Any, name: str) -> Any:
    """Return unit vectors (n, 3), checked where they are known."""
    axes = as_array(axes, name)
    if axes.ndim != 2 or axes.shape[1] != 3:
        raise ValueError(
            f"{name} must have shape (n, 3), one unit vector per row, got {axes.shape}"
        )
    values = concrete(axes)
    if values is not None and np.any(np.abs(np.linalg.norm(values, axis=1) - 1.0) > 1e-9):
        raise ValueError(
            f"{name} must be unit vectors, got lengths {np.linalg.norm(values, axis=1)}"
        )
    return axes


def check_not_negative(value: Any, name: str, units: str) -> None:
    """Raise where a known parameter is negative or not a number (infinite is no limit)."""
    values = concrete(as_array(value, name))
    if values is not None and not np.all(values >= 0.0):
        raise ValueError(f"{name} must not be negative, in {units}, got {value}")


def check_part(part: Any, name: str, needed: Sequence[str]) -> None:
    """Raise where a part lacks what the whole asks of it."""
    missing = [wanted for wanted in needed if not hasattr(part, wanted)]
    if missing:
        raise StructError(
            f"{name} must have {', '.join(needed)}; {type(part).__qualname__} lacks "
            f"{', '.join(missing)}"
        )


def check_flat(world: Any, name: str) -> None:
    """Raise where a world has no level ground below: its states are not those of a `FlatEarth`."""
    if getattr(world, "State", None) is not RigidBody.State:
        raise StructError(
            f"{name} needs level ground: world=FlatEarth(), got {type(world).__name__}"
        )


def limited(value: Any, limit: Any) -> Any:
    """Hold values within plus or minus a limit."""
    limit = as_array(limit, "limit")
    return np.maximum(np.minimum(value, limit), -limit)
