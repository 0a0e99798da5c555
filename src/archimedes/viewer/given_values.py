"""Numbers, times and colours that users give to a scene, checked by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import concrete
from archimedes.errors import TraceError

__all__ = ["check_color", "known", "numbers", "rows", "times"]


def numbers(values: Any, what: str, shape: tuple[int | None, ...], nan: bool = False) -> Any:
    """Return an array of a shape (None: any length), finite unless `nan` is allowed."""
    array = np.asarray(known(values, what), dtype=np.float64)
    fits = array.ndim == len(shape) and all(n is None or n == k for n, k in zip(shape, array.shape))
    if not fits:
        wanted = str(tuple("any" if n is None else n for n in shape)).replace("'", "")
        raise ValueError(f"{what} must have shape {wanted}, got {array.shape}")
    if not nan and not np.all(np.isfinite(array)):
        raise ValueError(f"{what} holds nan or inf: leave out what is not known")
    return array


def known(values: Any, what: str) -> Any:
    """Return numbers that are there as an array; inside a recorded function there are none yet."""
    array = np.asarray(values)
    if concrete(array) is None and array.dtype != object:
        raise TraceError(
            f"{what} has no numbers yet: the function around it is being recorded. Return it from "
            "that function, and draw what the call gives"
        )
    return array


def times(t: Any, what: str) -> Any:
    """Return times (m,) that do not go back."""
    array = numbers(np.atleast_1d(np.asarray(t, dtype=np.float64)), f"{what}: t", (None,))
    if not len(array) or np.any(np.diff(array) < 0.0):
        raise ValueError(f"{what}: t must have one time at least, none before the one in front")
    return array


def rows(values: Any, t: Any, width: int, what: str) -> Any:
    """Return a row for each time; a single row holds for all."""
    array = np.asarray(known(values, what), dtype=np.float64)
    if array.shape == (width,):
        array = np.broadcast_to(array, (len(t), width))
    return numbers(array, what, (len(t), width))


def check_color(text: str, what: str) -> None:
    """Refuse colours that are not written "#rrggbb"."""
    if not (isinstance(text, str) and len(text) == 7 and text[0] == "#"):
        raise ValueError(f'{what} must be written "#rrggbb", got {text!r}')
    int(text[1:], 16)
