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


def _static_positions(name: str, positions: Operand) -> np.ndarray:
    positions = as_constant(positions)
    if isinstance(positions, SymbolicArray):
        raise trace_error(
            f"np.{name} at traced positions cannot be recorded",
            "Assign one by one, a[k] = value, or choose with np.where(condition, value, a).",
        )
    return np.asarray(positions)


@implements(np.put)
def _put(a: Operand, ind: Operand, v: Operand, mode: Any = "raise") -> None:
    into = target(a, "np.put")
    numbers = np.arange(into.size).take(_static_positions("put", ind), mode=mode)
    if np.size(v):
        into.flat[numbers] = v


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
    if np.size(vals) == 1:
        _putmask(arr, mask, vals)
    elif np.size(vals) == 0:
        raise ValueError("Cannot insert from an empty array!")
    else:
        target(arr, "np.place").flat[np.flatnonzero(_static_positions("place", mask))] = vals
