"""The tables in which NumPy's protocols look up what a call means for traced arrays.

The modules that know (``numpy_functions/``, ``linalg/``) add rows by decorator. Nothing in this
folder imports them: ``recording_context.py`` does, before the first recording begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.errors import refer_to
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import (
    HOLDERS,
    NO_VALUE,
    Operand,
    Traced,
    TracedValue,
    as_constant,
    as_traced,
)

_Implementation = Callable[..., Any]
_Decorator = Callable[[_Implementation], _Implementation]

#: NumPy function -> implementation with the same signature, but for ``out``.
FUNCTIONS: dict[Any, _Implementation] = {}
#: Ufunc that is a function of whole arrays (``np.matmul``) -> implementation, ``out=`` apart.
GUFUNCS: dict[Any, _Implementation] = {}
#: Asked about a ufunc without a row in ``UFUNCS``: each may add one, and tells whether it did.
ADOPTERS: list[Callable[[Any], bool]] = []
#: The same for a function without a row in ``FUNCTIONS``.
FUNCTION_ADOPTERS: list[Callable[[Any], bool]] = []


def implements(*functions: Any) -> _Decorator:
    """Register an implementation of NumPy functions for traced arrays."""

    def register(implementation: _Implementation) -> _Implementation:
        for function in functions:
            # A module imported in a recording finds in NumPy what stands for its functions.
            FUNCTIONS[getattr(function, "original", function)] = implementation
        return implementation

    return register


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
    "eig": (
        "use np.linalg.eigh for a symmetric matrix (the vectors of a general one may be complex), "
        "or np.linalg.eigvals(a).real and .imag for the values alone"
    ),
    "matrix_rank": "count what is large enough, np.sum(np.linalg.svdvals(a) > tol)",
    "array_repr": "print the result of the compiled function instead",
    "array2string": "print the result of the compiled function instead",
}


#: Where NumPy's functions have ``out`` among their positional arguments.
_OUT_POSITIONS = {
    name: position
    for position, names in (
        (1, "fix isposinf isneginf"),
        (
            2,
            "max min amax amin any all argmax argmin nanargmax nanargmin nanmax nanmin median "
            "nanmedian ptp dot outer choose concatenate stack round around",
        ),
        (
            3,
            "sum prod mean std var nansum nanprod nanmean nanstd nanvar cumsum cumprod nancumsum "
            "nancumprod clip take compress quantile percentile nanquantile nanpercentile",
        ),
        (5, "trace"),
    )
    for name in names.split()
}


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Handle ``__array_function__`` for traced arrays."""
    args = tuple([as_traced(a) for a in args])
    kwargs = {key: as_traced(value) for key, value in kwargs.items() if value is not NO_VALUE}
    implementation = FUNCTIONS.get(function)
    if implementation is None and any(adopt(function) for adopt in FUNCTION_ADOPTERS):
        implementation = FUNCTIONS.get(function)
    if implementation is not None:
        out = kwargs.pop("out", None)
        position = _OUT_POSITIONS.get(function.__name__, len(args))
        if len(args) > position:
            out, args = args[position], args[:position] + args[position + 1 :]
        result = _in_form(function, args, implementation(*args, **kwargs))
        if out is None:
            return result
        if not isinstance(result, TracedValue):
            raise trace_error(f"{_name_of(function)}(out=...) cannot be traced", "Omit out=.")
        return store_results((out,), result)
    plain_args = [as_constant(a) for a in args]
    plain_kwargs = {k: as_constant(v) for k, v in kwargs.items()}
    if not _is_any_traced(plain_args) and not _is_any_traced(list(plain_kwargs.values())):
        return function(*plain_args, **plain_kwargs)
    name = _name_of(function)
    remedy = _VALUE_DEPENDENT.get(function.__name__)
    if remedy is not None:
        section = refer_to("eigenvectors") if name == "np.linalg.eig" else refer_to("size")
        raise trace_error(
            f"{name} gives a result whose shape or value cannot be recorded",
            f"Instead, {remedy}; or wrap the call in arc.callback." + section,
        )
    raise trace_error(
        f"{name} is not available for traced arrays",
        "Write it with other NumPy functions, or wrap the call in arc.callback."
        + refer_to("foreign code"),
    )


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np")


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


def _is_any_traced(items: Any) -> bool:
    if isinstance(items, (list, tuple)):
        return any(_is_any_traced(i) for i in items)
    return isinstance(items, TracedValue)


# ---- writing results ---------------------------------------------------------------------------


def target(x: Operand, what: str = "out=, or an operator such as a += x") -> Traced:
    """Return the traced array to write to, which must have been made in the recording."""
    if isinstance(x, TracedValue):
        return x
    holder = HOLDERS.get(type(x))
    if holder is not None:
        return holder.writable(x)
    raise trace_error(
        "a traced result cannot be written into a plain NumPy array made outside the "
        f"trace ({what})",
        "Write a = a + x, or copy the array inside the function first: a = np.array(a).",
    )


def store_results(out: Sequence[Operand | None], result: Traced) -> Traced:
    """Store results in the arrays given as ``out=``."""
    results = list(result) if isinstance(result, tuple) else [result]
    for k, (array, value) in enumerate(zip(out, results)):
        if array is None:
            continue
        into = target(array)
        if not np.can_cast(value.dtype, into.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc output from {value.dtype!r} to {into.dtype!r} with casting "
                "rule 'same_kind'"
            )
        if np.broadcast_shapes(into.shape, value.shape) != into.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {into.shape} doesn't match the "
                f"broadcast shape {value.shape}"
            )
        into[...] = value
        results[k] = array
    return results[0] if len(results) == 1 else tuple(results)
