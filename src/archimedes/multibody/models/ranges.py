"""Checks of numbers that have a range, where they are known; messages name the argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from archimedes.spatial.components import as_array
from archimedes.spatial.validation import concrete

__all__ = ["check_not_negative", "check_numbers", "check_positive", "near"]


def check_numbers(value: Any, name: str) -> None:
    """Raise where a known number is nan; infinities are limits that are not there."""
    known = concrete(as_array(value, name))
    if known is not None and np.isnan(known).any():
        raise ValueError(f"{name} must be a number, got {shown(known)}")


def check_not_negative(value: Any, name: str) -> None:
    """Raise where a known number is negative or nan.

    >>> check_not_negative(0.0, "friction")
    >>> check_not_negative(-1.0, "friction")
    Traceback (most recent call last):
        ...
    ValueError: friction must not be negative, got -1.0
    """
    check_numbers(value, name)
    known = concrete(as_array(value, name))
    if known is not None and (known < 0.0).any():
        raise ValueError(f"{name} must not be negative, got {shown(known)}")


def check_positive(value: Any, name: str) -> None:
    """Raise where a known number is not positive and finite."""
    known = concrete(as_array(value, name))
    if known is not None and not ((known > 0.0) & np.isfinite(known)).all():
        raise ValueError(f"{name} must be positive and finite, got {shown(known)}")


def shown(known: np.ndarray) -> Any:
    """Return numbers as a message has them."""
    return known.tolist()


def near(name: Any, known: Iterable[str]) -> str:
    """Return what may have been meant by a name that is not known.

    >>> near("elbw", ["shoulder", "elbow"]), near("x", ["shoulder", "elbow"])
    ("did you mean 'elbow'?", "there are ['shoulder', 'elbow']")
    """
    from difflib import get_close_matches  # only needed for a message

    names = list(known)
    close = get_close_matches(str(name), names, n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are {names}"
