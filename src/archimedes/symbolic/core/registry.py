"""The table of NumPy functions that work on traced arrays; modules add rows by decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.symbolic.core.dispatch import cast_ids, lift, wrap
from archimedes.symbolic.core.trace import current_trace

__all__ = ["FUNCTIONS", "implements", "known"]

#: NumPy function -> implementation with the same signature.
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation of NumPy functions for traced arrays."""

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = implementation
        return implementation

    return register


def known(x: Any) -> Any:
    """Return traced arrays whose values are known as NumPy arrays; anything else unchanged."""
    from archimedes.symbolic.core.array import SymbolicArray

    if isinstance(x, SymbolicArray):
        value = x.constant()
        return x if value is None else value
    if isinstance(x, (list, tuple)) and any(isinstance(i, (SymbolicArray, list, tuple)) for i in x):
        items = [known(i) for i in x]
        return type(x)(items) if type(x) in (list, tuple) else x
    return x


def as_float(x: Any) -> Any:
    """Lift to a traced floating-point array: ints and bools become float64, as NumPy's do."""
    x = lift(x)
    if x.code in (0, 1):
        return x
    trace = current_trace()
    return wrap(cast_ids(trace.graph, trace.ids_of(x), x.code, 0), 0, trace)
