"""Checks of the functions of a model that filters are given, and their slopes along errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.matrix_checks import real_numbers
from archimedes.errors import ShapeDtypeError
from archimedes.function import jac
from archimedes.observers.charts import Chart, chart_of

__all__ = ["check_function", "measured", "slopes", "vector_of"]


def check_function(value: Any, name: str) -> None:
    """Raise where what should be a function cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function {name}(t, x, *args), got {value!r}")


def vector_of(value: Any) -> Any:
    """Return the numbers of a measurement that is a struct or a dict, in order; else itself."""
    is_tree = isinstance(value, Mapping) or tree.is_struct(type(value))
    return tree.ravel(value)[0] if is_tree else value


def measured(func: Callable[..., Any], t: Any, x: Any, args: Any, size: int) -> Any:
    """Call a model's measurement; returns a vector (size,)."""
    found = real_numbers(vector_of(func(t, x, *args)), "what obs returned")
    if np.shape(found) != (size,):
        raise ShapeDtypeError(
            f"obs(t, x, *args) must return a vector of shape ({size},), got {np.shape(found)}"
        )
    return found


def slopes(func: Callable[..., Any], chart: Chart, t: Any, x: Any, args: Any, state: bool) -> Any:
    """Return the Jacobian of dyn (``state``) or obs in the error of the state."""
    if chart.plain:
        return jac(func, argnums=1)(t, x, *args)
    return _slopes(np.zeros(chart.size), t, x, tuple(args), func, state)


def _along(e: Any, t: Any, x: Any, args: Any, func: Callable[..., Any], state: bool) -> Any:
    chart, x = chart_of(x)
    moved = func(t, chart.plus(x, e), *args)
    return chart.minus(moved, func(t, x, *args)) if state else vector_of(moved)


_slopes = jac(_along, static_argnames=("func", "state"))
