"""The tables in which NumPy's protocols look up what a call means for traced arrays.

The modules that know (``numpy_functions/``, ``linalg/``) add rows by decorator. Nothing in this
folder imports them: ``recording_context.py`` does, before the first recording begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import TracedValue, as_constant, as_traced

__all__ = [
    "ADOPTERS",
    "FUNCTIONS",
    "FUNCTION_ADOPTERS",
    "GUFUNCS",
    "UFUNC_METHODS",
    "call_function",
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


# ---- looking up ---------------------------------------------------------------------------------

#: Functions whose result without axes is an array.
_ARRAYS = (
    "where select piecewise copy tensordot zeros_like ones_like full_like empty_like broadcast_to"
)
_ARRAY_FUNCTIONS = frozenset(getattr(np, name) for name in _ARRAYS.split())
#: Functions that read an attribute.
_ATTRIBUTES = frozenset({np.real, np.imag})
#: Functions that give an array, but a scalar for a NumPy scalar.
_SCALARS_STAY_SCALARS = frozenset({np.reshape, np.squeeze, np.transpose})

_SETS = (
    "union1d intersect1d setdiff1d setxor1d trim_zeros unique_all unique_counts unique_inverse "
    "unique_values"
)
_VALUE_DEPENDENT = {
    "unique": "keep all elements, or sort them with np.sort",
    "nonzero": "use np.where(condition, x, y), which keeps the shape",
    "argwhere": "use np.where(condition, x, y), which keeps the shape",
    "flatnonzero": "use np.where(condition, x, y), which keeps the shape",
    "extract": "use np.where(condition, x, 0), which keeps the shape",
    **dict.fromkeys(_SETS.split(), "keep all elements, and choose with np.isin and np.where"),
    "bincount": "count with np.histogram and static edges, or np.sum(x == k)",
    "polydiv": "give the degrees statically and use np.linalg.solve",
    "roots": "use arc.root with a starting value",
    "array_repr": "print the result of the compiled function instead",
    "array2string": "print the result of the compiled function instead",
}


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Handle ``__array_function__`` for traced arrays."""
    args = tuple([as_traced(a) for a in args])
    kwargs = {key: as_traced(value) for key, value in kwargs.items()}
    implementation = FUNCTIONS.get(function)
    if implementation is None and any(adopt(function) for adopt in FUNCTION_ADOPTERS):
        implementation = FUNCTIONS.get(function)
    if implementation is not None:
        return _in_form(function, args, implementation(*args, **kwargs))
    plain_args = [as_constant(a) for a in args]
    plain_kwargs = {k: as_constant(v) for k, v in kwargs.items()}
    if not _any_traced(plain_args) and not _any_traced(list(plain_kwargs.values())):
        return function(*plain_args, **plain_kwargs)
    name = f"{function.__module__}.{function.__name__}".replace("numpy", "np")
    remedy = _VALUE_DEPENDENT.get(function.__name__)
    if remedy is not None:
        raise trace_error(
            f"{name} gives a result whose shape or value cannot be recorded",
            explained("size", f"Instead, {remedy}; or wrap the call in arc.callback."),
        )
    raise trace_error(
        f"{name} is not available for traced arrays",
        explained(
            "foreign code", "Write it with other NumPy functions, or wrap the call in arc.callback."
        ),
    )


def _in_form(function: Any, args: tuple[Any, ...], result: Any) -> Any:
    """Return results without axes as NumPy gives them: scalars, or arrays for a few functions."""
    if type(result) in (tuple, list):
        return type(result)(_in_form(function, args, part) for part in result)
    if not isinstance(result, TracedValue) or result.ids.ndim or function in _ATTRIBUTES:
        return result
    array = function in _ARRAY_FUNCTIONS
    if function in _SCALARS_STAY_SCALARS and args and isinstance(args[0], TracedValue):
        array = args[0].weak or args[0].form() is TracedValue.array
    form = TracedValue.array if array else TracedValue.scalar
    return result if type(result) is form else form(result.ids, result.code, result.owner)


def _any_traced(items: Any) -> bool:
    if isinstance(items, (list, tuple)):
        return any(_any_traced(i) for i in items)
    return isinstance(items, TracedValue)
