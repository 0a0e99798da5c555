"""Entry point of ``__array_function__``: the table, and the error for what is not in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.symbolic.core.registry import FUNCTION_ADOPTERS, FUNCTIONS
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_content import known, traced_or_same
from archimedes.symbolic.core.traced_value import TracedValue

__all__ = ["call_function"]

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
    args = tuple([traced_or_same(a) for a in args])
    kwargs = {key: traced_or_same(value) for key, value in kwargs.items()}
    implementation = FUNCTIONS.get(function)
    if implementation is None and any(adopt(function) for adopt in FUNCTION_ADOPTERS):
        implementation = FUNCTIONS.get(function)
    if implementation is not None:
        return _in_form(function, args, implementation(*args, **kwargs))
    plain_args = [known(a) for a in args]
    plain_kwargs = {k: known(v) for k, v in kwargs.items()}
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
