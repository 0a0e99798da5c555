"""Lists and tuples that hold traced numbers, given to NumPy's functions: ``np.max([x, 1.0])``.

NumPy offers its protocols to arrays, not to the items of a list: of a list of traced numbers it
makes an array of Python objects, and computes on those by rules of its own. So, while a recording
is under way, each of NumPy's functions and ufuncs is replaced by a ``Stand``, which makes of such a
list the array that ``np.array`` would make (Python's numbers become float64, int64 or bool,
NumPy's scalars keep their dtype) and calls the original. A stand equals what it stands for, and
has its class, name and hash. See docs/decisions/020-lists-of-traced-numbers.md.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.trace import is_internal, is_tracing, stands_for_numpy
from archimedes.symbolic.core.traced_content import holds_traced

__all__ = ["Stand", "stands", "with_arrays"]

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
    "at": frozenset({1, "indices"}),
}
#: Arguments that are not arrays, though they may be tuples; for ``np.block`` the nesting counts.
_ASIDE: dict[str, frozenset[Any]] = {"block": frozenset({0, "arrays"})}
_ALWAYS_ASIDE = frozenset({"out", "shape", "axis", "axes"})
_LISTS = frozenset({list, tuple})


def _as_array(x: Any) -> Any:
    return lift(x) if isinstance(x, (list, tuple)) and holds_traced(x) else x


def _argument(name: str, key: Any, x: Any) -> Any:
    if not isinstance(x, (list, tuple)) or key in _ALWAYS_ASIDE or not holds_traced(x):
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


class _Text:
    """The text of a stand is that of its function: ``numpy.ma`` reads it when it is imported."""

    def __get__(self, stand: Any, owner: type) -> str:
        own = "What stands for a NumPy function while a recording is under way."
        return own if stand is None else stand.original.__doc__


class Stand:  # noqa: D101  see _Text
    __slots__ = ("_name", "original")

    __class__ = property(lambda self: type(self.original))
    __doc__ = _Text()

    def __init__(self, original: Any, name: str = "") -> None:
        self.original = original
        self._name = name or original.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        for a in args:
            if type(a) in _LISTS:
                break
        else:
            if not kwargs:
                return self.original(*args)
        if is_tracing() and not is_internal(sys._getframe(1)):
            args, kwargs = with_arrays(self._name, args, kwargs)
        return self.original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.original, name)
        if name in ("reduce", "accumulate", "reduceat", "outer", "at"):
            return Stand(found, name)
        return found

    def __eq__(self, other: object) -> bool:
        return bool(self.original == (other.original if type(other) is Stand else other))

    def __hash__(self) -> int:
        return hash(self.original)

    def __repr__(self) -> str:
        return repr(self.original)

    def __reduce__(self) -> Any:
        return _named, (getattr(self.original, "__module__", None) or "numpy", self._name)


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def stands() -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """List modules with their functions and ufuncs, and what stands for each."""
    kinds = (np.ufunc, type(np.sum))
    made: dict[int, Stand] = {}
    found = []
    for module in (np, np.linalg, np.fft):
        functions = {
            name: f for name, f in vars(module).items() if isinstance(f, kinds) and name[0] != "_"
        }
        versions = {name: made.setdefault(id(f), Stand(f)) for name, f in functions.items()}
        found.append((module, functions, versions))
    return found
