"""The tables in which NumPy's protocols look up what a call means for traced arrays.

The modules that know (``numpy_functions/``, ``linalg/``) add rows by decorator. Nothing in this
folder imports them: ``recording_context.py`` does, before the first recording begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "ADOPTERS",
    "FUNCTIONS",
    "FUNCTION_ADOPTERS",
    "GUFUNCS",
    "UFUNC_METHODS",
    "implements",
    "ufunc_method",
]

_Implementation = Callable[..., Any]
_Decorator = Callable[[_Implementation], _Implementation]

#: NumPy function -> implementation with the same signature.
FUNCTIONS: dict[Any, _Implementation] = {}
#: Ufunc that is a function of whole arrays (``np.matmul``) -> implementation, ``out=`` apart.
GUFUNCS: dict[Any, _Implementation] = {}
#: Method of a ufunc ("reduce") -> implementation, which takes the ufunc first.
UFUNC_METHODS: dict[str, _Implementation] = {}
#: Asked about a ufunc without a row in ``UFUNCS``: each may add one, and tells whether it did.
ADOPTERS: list[Callable[[Any], bool]] = []
#: The same for a function without a row in ``FUNCTIONS``.
FUNCTION_ADOPTERS: list[Callable[[Any], bool]] = []


def _adding_to(table: dict[Any, _Implementation], keys: tuple[Any, ...]) -> _Decorator:
    def register(implementation: _Implementation) -> _Implementation:
        for key in keys:
            # A module imported in a recording finds in NumPy what stands for its functions.
            table[getattr(key, "original", key)] = implementation
        return implementation

    return register


def implements(*functions: Any) -> _Decorator:
    """Register an implementation of NumPy functions for traced arrays."""
    return _adding_to(FUNCTIONS, functions)


def ufunc_method(name: str) -> _Decorator:
    """Register how a method of ufuncs (``np.add.reduce``) works on traced arrays."""
    return _adding_to(UFUNC_METHODS, (name,))
