"""NumPy functions that NumPy itself writes in Python: its own code runs on traced arrays.

``np.kron`` or ``np.pad`` are compositions of other NumPy functions, and would be recorded if a user
had written them. So they are treated as if a user had: the functions of NumPy's module are copied
with globals of their own, in which ``asarray``, ``empty`` and their like are the versions that user
code gets while it is being recorded (``numpy_overrides.py``). NumPy's module is not touched, and
other threads see nothing. Checks and messages are NumPy's.

This works where NumPy's code decides by shapes and dtypes, or by values that are known while
recording. Of other values a few functions ask only whether they are wrong, or whether they allow a
simpler computation: such questions can be answered with no (``unknown_is_false``).
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
from archimedes.symbolic.core.traced_value import UNKNOWN_IS_FALSE, Operand, Traced, as_traced
from archimedes.symbolic.core.user_frames import treat_as_numpy
from archimedes.symbolic.recorded.numpy_overrides import recording_versions

#: The name of the copies' module: it is none of NumPy's, so that its code counts as a user's.
_NAME = "copies of NumPy's functions"
treat_as_numpy(_NAME)
treat_as_numpy(UNKNOWN_IS_FALSE)


class _Converter:
    """The arrays that NumPy's code asks for; a result made of them is returned as it is."""

    def __init__(self, *operands: Operand) -> None:
        self._operands, self._arrays = operands, tuple(lift(a) for a in operands)

    def __getitem__(self, k: int) -> Traced:
        return self._arrays[k]

    def as_arrays(self, **kwargs: Any) -> tuple[Traced, ...]:
        """Return all arrays."""
        return self._arrays

    def result_type(self, ensure_inexact: bool = False) -> np.dtype:
        """Return the common dtype, one of floats if wanted so."""
        pairs = zip(self._operands, self._arrays)
        kinds = [x if isinstance(x, (int, float)) else array for x, array in pairs]
        return np.result_type(*kinds, *([1.0] if ensure_inexact else []))

    def wrap(self, result: Traced, to_scalar: bool | None = None) -> Traced:
        """Return a result as it is."""
        return result


#: Helpers of NumPy that are written in C, or look at the classes of arrays.
HELPERS: dict[str, Any] = {
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
def _copy_names(module: str, name: str) -> dict[str, Any]:
    """Return the names of a module of NumPy, with functions that use the copies of each other."""
    originals, versions = vars(sys.modules[module]), recording_versions()
    names = {**originals, "__name__": name}
    for key, value in originals.items():
        if id(value) in versions:
            names[key] = versions[id(value)]
        elif key in HELPERS:
            names[key] = HELPERS[key]
        elif isinstance(value, ModuleType) and value.__name__.startswith("numpy."):
            names[key] = _Module(value)
        elif isinstance(value, FunctionType) and value.__globals__ is originals:
            names[key] = _copy_function(value, names)
    return names


def _copy_function(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def numpy_source(function: Any, unknown_is_false: bool = False) -> Callable[..., Any]:
    """Return NumPy's own implementation of a function, for traced arrays."""
    source = function.__wrapped__
    name = UNKNOWN_IS_FALSE if unknown_is_false else _NAME

    def call(*args: Any, **kwargs: Any) -> Traced:
        names = _copy_names(source.__globals__["__name__"], name)
        return as_traced(_copy_function(source, names)(*args, **kwargs))

    return call


def implement_by_source(*functions: Any, unknown_is_false: bool = False) -> None:
    """Register NumPy's own implementations of functions for traced arrays."""
    for function in functions:
        implements(function)(numpy_source(function, unknown_is_false))
