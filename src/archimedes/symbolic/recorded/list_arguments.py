"""Lists and tuples that hold traced numbers, given to NumPy's functions: ``np.max([x, 1.0])``.

NumPy offers its protocols to arrays, not to the items of a list: of a list of traced numbers it
makes an array of Python objects, and computes on those by rules of its own. So, in a thread that
records, a version of each function makes of such a list the array that ``np.array`` would make
(Python's numbers become float64, int64 or bool, NumPy's scalars keep their dtype) and calls the
original. See docs/decisions/020-lists-of-traced-numbers.md.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.trace import is_tracing, stands_for_numpy
from archimedes.symbolic.recorded.stands import is_called_by_user

__all__ = ["array_functions", "take_lists", "with_arrays"]

stands_for_numpy(__name__)

#: Arguments that are sequences of arrays: each of their items is one, or a list that makes one.
_SEQUENCES: dict[str, frozenset[Any]] = {
    **dict.fromkeys(
        [
            "concatenate",
            "concat",
            "stack",
            "vstack",
            "hstack",
            "dstack",
            "column_stack",
            "row_stack",
        ],
        frozenset({0, "arrays", "tup"}),
    ),
    "select": frozenset({0, 1, "condlist", "choicelist"}),
    "choose": frozenset({1, "choices"}),
    "piecewise": frozenset({1, 2, "condlist", "funclist"}),
    "lexsort": frozenset({0, "keys"}),
    "multi_dot": frozenset({0, "arrays"}),
    "ravel_multi_index": frozenset({0, "multi_index"}),
}
#: Arguments that are not arrays, though they may be tuples; for ``np.block`` the nesting counts.
_ASIDE: dict[str, frozenset[Any]] = {"block": frozenset({0, "arrays"})}
_ALWAYS_ASIDE = frozenset({"out", "shape", "axis", "axes"})
_LISTS = frozenset({list, tuple})


def _as_array(x: Any) -> Any:
    return lift(x) if isinstance(x, (list, tuple)) and is_traced(x) else x


def _argument(name: str, key: Any, x: Any) -> Any:
    if not isinstance(x, (list, tuple)) or key in _ALWAYS_ASIDE or not is_traced(x):
        return x
    if key in _ASIDE.get(name, ()):
        return x
    if key in _SEQUENCES.get(name, ()):
        items = [_as_array(item) for item in x]
        return tuple(items) if isinstance(x, tuple) else items
    return lift(x)


def with_arrays(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a NumPy function with arrays in place of lists of traced numbers."""
    return (
        tuple([_argument(name, k, a) for k, a in enumerate(args)]),
        {key: _argument(name, key, value) for key, value in kwargs.items()},
    )


def take_lists(original: Any) -> Callable[..., Any]:
    """Return a version of a NumPy function that takes lists of traced numbers."""
    name = original.__name__

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) in _LISTS:
                break
        else:
            if not kwargs:
                return original(*args)
        if is_tracing() and is_called_by_user(sys._getframe(1)):
            args, kwargs = with_arrays(name, args, kwargs)
        return original(*args, **kwargs)

    return call


def array_functions(module: ModuleType) -> dict[str, Any]:
    """Return the functions of a module of NumPy that offer its protocol to arrays."""
    kind = type(np.sum)
    return {name: f for name, f in vars(module).items() if isinstance(f, kind) and name[0] != "_"}
