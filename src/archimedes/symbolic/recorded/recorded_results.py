"""What NumPy's functions of numbers return inside a recording: arrays that take traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.recorded.recorded_memory import RecordedMemory, as_plain, as_recorded

__all__ = ["call_plainly", "claimed"]

ndarray = np.ndarray


def call_plainly(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function on the numbers of arrays made while recording."""
    given: list[tuple[Any, Any]] = []
    result = function(*_plain_tree(args, given), **_plain_tree(kwargs, given))
    return _result(result, given)


def _plain_tree(x: Any, seen: list[tuple[Any, Any]]) -> Any:
    """Replace arrays made while recording by plain ones; note every array and what it was."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([_plain_tree(item, seen) for item in x])
    if kind is dict:
        return {key: _plain_tree(item, seen) for key, item in x.items()}
    if isinstance(x, ndarray):
        seen.append((as_plain(x), x))
        return seen[-1][0]
    return x


def _owner(x: np.ndarray) -> Any:
    base: Any = x
    while base is not None:
        x, base = base, getattr(base, "base", None)
    return x


def _result(result: Any, given: list[tuple[Any, Any]]) -> Any:
    """Let arrays in a result take traced values, unless they are or view an outside array."""
    if isinstance(result, (tuple, list)):
        parts = [_result(r, given) for r in result]
        make = getattr(type(result), "_make", type(result))
        return make(parts)
    if type(result) is not ndarray:
        return result
    for plain, original in given:
        if result is plain:
            return original
    owner = _owner(result)
    for plain, original in given:
        if _owner(plain) is owner and not isinstance(original, RecordedMemory):
            return result
    return as_recorded(result)


def claimed(result: Any, *given: Any) -> Any:
    """Return what a NumPy function made of its arguments as what user code gets to see."""
    if isinstance(result, SymbolicArray):
        return result
    seen: list[tuple[Any, Any]] = []
    _plain_tree(given, seen)
    return _result(result, seen)
