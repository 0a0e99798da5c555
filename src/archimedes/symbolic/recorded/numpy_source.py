"""NumPy functions that NumPy itself writes in Python: its own code runs on traced arrays.

``np.kron`` or ``np.pad`` are compositions of other NumPy functions, and would be recorded if a user
had written them. So they are treated as if a user had: the functions of NumPy's module are copied
with globals of their own, in which ``asarray``, ``empty`` and their like are the versions that user
code gets while it is being recorded (``numpy_overrides.py``). NumPy's module is not touched, and
other threads see nothing. Checks and messages are NumPy's.

This works where NumPy's code decides by shapes and dtypes. Where it decides by values, as
``np.linspace`` does (is the step zero?), the function is written for recordings by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.traced_value import Operand, Traced, as_traced
from archimedes.symbolic.core.user_frames import treat_as_numpy
from archimedes.symbolic.recorded.numpy_overrides import recording_versions

#: The name of the copies' module: it is none of NumPy's, so that its code counts as a user's.
_NAME = "copies of NumPy's functions"
treat_as_numpy(_NAME)


class _Converter:
    """The arrays that NumPy's code asks for; a result made of them is returned as it is."""

    def __init__(self, *arrays: Operand) -> None:
        self._arrays = tuple(lift(a) for a in arrays)

    def __getitem__(self, k: int) -> Traced:
        return self._arrays[k]

    def as_arrays(self, **kwargs: Any) -> tuple[Traced, ...]:
        """Return all arrays."""
        return self._arrays

    def wrap(self, result: Traced, to_scalar: bool | None = None) -> Traced:
        """Return a result as it is."""
        return result


#: Helpers of NumPy that look at the classes of arrays.
_HELPERS: dict[str, Any] = {
    "_array_converter": _Converter,
    "_makearray": lambda a: (lift(a), lambda result: result),
}


class _Module:
    """A module inside NumPy; what ``numpy`` has as well is taken from there."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(np if hasattr(np, name) else self._module, name)


@cache
def _copy_names(module: str) -> dict[str, Any]:
    """Return the names of a module of NumPy, with functions that use the copies of each other."""
    originals, versions = vars(sys.modules[module]), recording_versions()
    names = {**originals, "__name__": _NAME}
    for name, value in originals.items():
        if id(value) in versions:
            names[name] = versions[id(value)]
        elif name in _HELPERS:
            names[name] = _HELPERS[name]
        elif isinstance(value, ModuleType) and value.__name__.startswith("numpy."):
            names[name] = _Module(value)
        elif isinstance(value, FunctionType) and value.__globals__ is originals:
            names[name] = _copy_function(value, names)
    return names


def _copy_function(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def numpy_source(function: Any) -> Callable[..., Any]:
    """Return NumPy's own implementation of a function, for traced arrays."""
    source = function.__wrapped__

    def call(*args: Any, **kwargs: Any) -> Traced:
        names = _copy_names(source.__globals__["__name__"])
        return as_traced(_copy_function(source, names)(*args, **kwargs))

    return call


def implement_by_source(*functions: Any) -> None:
    """Register NumPy's own implementations of functions for traced arrays."""
    for function in functions:
        implements(function)(numpy_source(function))
