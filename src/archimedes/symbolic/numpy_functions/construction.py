"""Arrays made from traced values (linspace, vander, pad) and functions that write into arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.registry import implements, target
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced, as_constant
from archimedes.symbolic.numpy_functions.structural import static_argument
from archimedes.symbolic.recorded.numpy_source import implement_by_source, numpy_source

__all__: list[str] = []


# Ends of a geometric sequence must not be zero, and a step of zero is taken by another way.
implement_by_source(np.linspace, np.logspace, np.geomspace, unknown_is_false=True)


implement_by_source(np.vander, np.apply_along_axis, np.apply_over_axes)


@implements(np.pad)
def _pad(array: Operand, pad_width: Operand, mode: Any = "constant", **kwargs: Any) -> Traced:
    widths = static_argument("pad", pad_width)
    return numpy_source(np.pad)(array, widths, mode, **kwargs)


# ---- writing -----------------------------------------------------------------------------------


def _scatter(
    function: Callable[..., Any], a: Operand, values: Operand, *args: Any, **kwargs: Any
) -> None:
    """Let NumPy write positions of the values, in the order ``function(a, *args, values)``."""
    into = target(a, f"np.{function.__name__}")
    source = lift(values)
    origin = np.full(into.shape, -1)
    function(origin, *args, np.arange(source.size).reshape(source.shape), **kwargs)
    if source.size:
        chosen = source.reshape(-1)[np.maximum(origin, 0)].astype(into.dtype)
        into[...] = np.where(origin >= 0, chosen, into)


def _no_traced_positions(name: str, *positions: Any) -> list[Any]:
    static = [as_constant(p) for p in positions]
    if any(isinstance(p, SymbolicArray) for p in static):
        raise trace_error(
            f"np.{name} at traced positions cannot be recorded",
            "Assign one by one, a[k] = value, or choose with np.where(condition, value, a).",
        )
    return static


@implements(np.put)
def _put(a: Operand, ind: Operand, v: Operand, mode: str = "raise") -> None:
    (ind,) = _no_traced_positions("put", ind)
    _scatter(np.put, a, v, ind, mode=mode)


def _write_by_source(function: Callable[..., None]) -> Callable[..., None]:
    write = numpy_source(function)
    return lambda a, *args, **kwargs: write(target(a, f"np.{function.__name__}"), *args, **kwargs)


for _function in (np.put_along_axis, np.fill_diagonal):
    implements(_function)(_write_by_source(_function))


@implements(np.putmask)
def _putmask(a: Operand, mask: Operand, values: Operand) -> None:
    into = target(a, "np.putmask")
    spread = np.resize(lift(values).astype(into.dtype), into.shape)
    into[...] = np.where(mask, spread, into)


@implements(np.place)
def _place(arr: Operand, mask: Operand, vals: Operand) -> None:
    mask = as_constant(mask)
    if not isinstance(mask, SymbolicArray):
        _scatter(np.place, arr, vals, mask)
    elif lift(vals).size == 1:
        _putmask(arr, mask, vals)
    else:
        _no_traced_positions("place", mask)
