"""Checks of known numbers, and arrays that nobody can write to."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_that, concrete
from archimedes.tree.content import is_read_only


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
