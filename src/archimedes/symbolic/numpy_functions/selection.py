"""Choosing between values: where, select, piecewise, clip and their like."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.blocks.references import scalar_ids
from archimedes.graph.dtypes import B8
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.casting import cast_ids
from archimedes.symbolic.core.dispatch import lift, lift_many, wrap
from archimedes.symbolic.core.registry import GUFUNCS, implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_content import known
from archimedes.symbolic.core.ufunc_methods import finish
from archimedes.symbolic.core.wide import elementwise, in_loops

__all__ = ["where"]

_SELECT = CODES["select"]
_MISSING: Any = object()


def _select_node(g: Graph, test: int, a: int, b: int) -> int:
    return g.emit(_SELECT, test, a, b)


@implements(np.where)
def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING) -> Any:
    """Choose elementwise; both sides are computed, the condition decides which value is kept."""
    if x is _MISSING or y is _MISSING:
        raise trace_error(
            "np.where with a condition alone has a shape that depends on values",
            "Give all three arguments: np.where(condition, x, y).",
        )
    trace = current_trace()
    g = trace.graph
    test = lift(condition)
    x, y = lift_many([x, y], weak=True)
    tests = cast_ids(g, trace.elements_of(test), test.code, B8)
    ids = np.where(tests, x.ids, y.ids)  # for its order in memory
    if in_loops(g, ids.size, tests, x.ids, y.ids):
        dtypes = (B8, x.code, x.code)
        made = elementwise(g, [tests, x.ids, y.ids], dtypes, ids.shape, _select_node)
        ids[...] = made[0]
    else:
        spread = np.broadcast_arrays(*(scalar_ids(g, s) for s in (tests, x.ids, y.ids)))
        rows = zip(*(s.ravel().tolist() for s in spread))
        flat = [g.emit(_SELECT, t, a, b) for t, a, b in rows]
        ids[...] = np.array(flat, dtype=np.int64).reshape(ids.shape)
    return wrap(ids, x.code, trace)


@implements(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    *choices, result = lift_many([*choicelist, default], weak=True)
    for condition, choice in zip(reversed(list(condlist)), reversed(choices)):
        result = where(condition, choice, result)
    shape = np.broadcast_shapes(*(np.shape(c) for c in condlist), result.shape)
    return np.broadcast_to(result, shape).copy()


@implements(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = lift(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else list(lift(condlist))
    if conditions and np.ndim(conditions[0]) == 0 and x.ndim > 0:
        conditions = [condlist]
    values = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    result = np.zeros_like(x)
    if len(values) == len(conditions) + 1:
        result = np.broadcast_to(lift(values.pop()).astype(x.dtype), x.shape).copy()
    elif len(values) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    for condition, value in zip(conditions, values):
        # A mask selects along the leading axes, as in x[mask].
        missing = x.ndim - np.ndim(condition)
        condition = np.reshape(condition, (*np.shape(condition), *(1,) * missing))
        result = where(condition, lift(value).astype(x.dtype), result)
    return result


@implements(np.clip)
def _clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **kwargs: Any,
) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    result = lift(a)
    if low is not None:
        result = np.maximum(result, low)
    if high is not None:
        result = np.minimum(result, high)
    return finish(out, result if result is not a else result.copy())


# The method ``x.clip`` of a plain array calls a ufunc.
GUFUNCS[np._core.umath.clip] = _clip  # type: ignore[attr-defined]


@implements(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index = known(lift(a))
    options = lift_many(list(choices))
    if not isinstance(index, SymbolicArray):
        spread = np.broadcast_arrays(index, *(o.ids for o in options))
        picked = np.choose(spread[0], spread[1:], mode=mode)  # type: ignore[call-overload]
        return finish(out, wrap(picked, options[0].code))
    if mode == "wrap":
        index = np.remainder(index, len(options))
    result = options[-1]
    for k in reversed(range(len(options) - 1)):
        result = where(index <= k, options[k], result)
    shape = np.broadcast_shapes(index.shape, *(o.shape for o in options))
    return finish(out, np.broadcast_to(result, shape).copy())
