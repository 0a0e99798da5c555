"""States and event times on the solution of a differential equation, for derivatives in time.

Both functions return what they are given; their derivatives, of any order, are those of the
solution. The mathematics is in ``graph/derivatives/time_derivatives.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function.recording import Recording
from archimedes.function.region_bodies import flatten_traced, record_body
from archimedes.graph.derivatives import time_derivatives
from archimedes.graph.dtypes import F64
from archimedes.symbolic import SymbolicArray, current_trace, is_tracing, wrap

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar


def move_state(f: Callable[[Any, Any], Any], a: Scalar, b: Scalar, x: Array) -> Array:
    """Return the state at time b of the solution of x' = f(t, x) that has state x (n,) at a.

    Only for a and b of the same value, so that the value is x; derivatives with respect to a, b,
    x and everything f reads are those of the solution.
    """
    if not is_tracing():
        return x
    time, end, state = _floats(a), _floats(b), _floats(x)
    field = _record(f, time, state, x)
    g, ids = current_trace().graph, current_trace().ids_of
    ids_at_end = time_derivatives.move(
        g, field.graph, int(ids(time)), int(ids(end)), ids(state).tolist(), field.captured
    )
    return wrap(np.array(ids_at_end, dtype=np.int64), F64).astype(x.dtype)


def event_time(
    f: Callable[[Any, Any], Any], event: Callable[[Any, Any], Any], t: Scalar, x: Array
) -> Scalar:
    """Return the time at which event(t, x) is zero on the solution that has state x (n,) at t.

    Only where it is zero at t itself, so that the value is t. Where the event function only
    touches zero, derivatives of the time are not finite.
    """
    if not is_tracing():
        return t
    time, state = _floats(t), _floats(x)
    field, guard = _record(f, time, state, x), _record(event, time, state, x)
    g, ids = current_trace().graph, current_trace().ids_of
    crossing = time_derivatives.cross(
        g,
        field.graph,
        guard.graph,
        int(ids(time)),
        ids(state).tolist(),
        field.captured,
        guard.captured,
    )
    return wrap(np.array(crossing, dtype=np.int64), F64)


def _floats(x: Scalar) -> SymbolicArray:
    (array,) = flatten_traced(x, "x").arrays
    return array.astype(np.float64)


def _record(
    fn: Callable[[Any, Any], Any], time: SymbolicArray, state: SymbolicArray, like: Array
) -> Recording:
    """Record a function of time and state; every traced number it reads is a captured input."""

    def call(t: Any, x: Any) -> Any:
        return _floats(fn(t, x.astype(like.dtype)))

    return record_body(call, [flatten_traced(time, "t"), flatten_traced(state, "x")])
