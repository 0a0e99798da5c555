"""Matrix functions recorded as ``Call`` regions that bring their own derivative.

A body is recorded once for the literals among its operands, so that zeros and constants fold
inside it; literals among its results are visible outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from archimedes.graph.ops import CODES, CONST
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Switch, While
from archimedes.symbolic.core.steps import array_input, array_value
from archimedes.symbolic.core.trace import Trace, current_trace
from archimedes.symbolic.core.wide import wide_from
from archimedes.symbolic.linalg.checks import is_wide_matrix
from archimedes.symbolic.linalg.matrix_rules import Blocks, Layout, MatrixFunction, Rule, rule_of

__all__ = ["call", "choose", "repeat_while"]


@lru_cache(maxsize=1024)
def _recorded(function: MatrixFunction, takes: Layout) -> tuple[Graph, Layout, Rule]:
    """Record a body for one layout of operands, once: equal calls share body and rule."""
    with Trace() as trace:
        ids = trace.graph.add_inputs(takes.code, max(takes.places, default=-1) + 1)
        results = function.body(*takes.arrays(trace, ids.tolist()))
        flat = [i for r in results for i in trace.ids_of(r).ravel().tolist()]
        trace.graph.outputs = [i for i in flat if trace.graph.op[i] != CONST]
        gives = _layout(trace, results, None)
    return prune(trace.graph), gives, rule_of(function, takes, gives)


def _layout(trace: Trace, arrays: Sequence[Any], position: dict[int, int] | None) -> Layout:
    """Describe arrays of a trace: equal ids share a place in ``position``, which is filled in.

    Without ``position`` each element gets a place of its own.
    """
    value = trace.graph.value
    places: list[int] = []
    literals: list[float] = []
    count = 0
    for i in (i for array in arrays for i in trace.ids_of(array).ravel().tolist()):
        literal = value.get(i)
        literals.append(0.0 if literal is None else literal)
        if literal is not None:
            places.append(-1)
        elif position is None:
            places.append(count)
            count += 1
        else:
            places.append(position.setdefault(i, len(position)))
    return Layout(arrays[0].code, tuple(a.shape for a in arrays), tuple(places), tuple(literals))


def call(function: MatrixFunction, *arrays: Any) -> tuple[Any, ...]:
    """Record ``function.body(*arrays)`` as a region with the function's own derivative.

    Where every operand is a literal the body is recorded in place, and folds.
    """
    trace = current_trace()
    if function.wide is not None and is_wide_matrix(arrays[0]):
        return _call_on_blocks(function, arrays)
    position: dict[int, int] = {}
    takes = _layout(trace, arrays, position)
    if not position:
        return function.body(*arrays)
    body, gives, rule = _recorded(function, takes)
    outs = trace.graph.region(Call(list(position), body, rule))
    return tuple(gives.arrays(trace, outs.tolist()))


@lru_cache(maxsize=1024)
def _recorded_on_blocks(function: MatrixFunction, takes: Blocks) -> tuple[Graph, Blocks, Rule]:
    """Record the body for wide matrices of some shapes, once."""
    assert function.wide is not None
    with Trace() as trace, wide_from(2, 1):
        results = function.wide(*(array_input(trace, s, takes.code) for s in takes.shapes))
        trace.graph.outputs = [array_value(trace, x, takes.code) for x in results]
        gives = Blocks(takes.code, tuple(x.shape for x in results))
    return prune(trace.graph), gives, rule_of(function, takes, gives)


def _call_on_blocks(function: MatrixFunction, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Record a function of wide matrices."""
    trace = current_trace()
    takes = Blocks(arrays[0].code, tuple(a.shape for a in arrays))
    body, gives, rule = _recorded_on_blocks(function, takes)
    given = [array_value(trace, a, takes.code) for a in arrays]
    outs = trace.graph.region(Call(given, body, rule))
    return tuple(gives.arrays(trace, outs.tolist()))


def repeat_while(
    g: Graph,
    carry: Sequence[int],
    shared: Sequence[int],
    test: Callable[[Graph, list[int], list[int]], int],
    step: Callable[[Graph, list[int], list[int]], list[int]],
    limit: int,
) -> list[int]:
    """Emit a bounded loop: ``carry = step(carry, shared)`` while ``test(carry, shared)``."""
    n = len(carry)

    def record(function: Callable[..., Any]) -> Graph:
        body = Graph()
        ids = [body.input(g.dtype[i]) for i in [*carry, *shared]]
        outs = function(body, ids[:n], ids[n:])
        body.outputs = list(outs) if isinstance(outs, list) else [outs]
        return prune(body)

    region = While([*carry, *shared], record(test), record(step), n, limit)
    return g.region(region).tolist()


def choose(
    g: Graph,
    test: int,
    operands: Sequence[int],
    when_true: Callable[[Graph, list[int]], list[int]],
    when_false: Callable[[Graph, list[int]], list[int]],
) -> list[int]:
    """Emit a branch: only the side that ``test`` calls for runs. Both give as many results."""

    def record(side: Callable[[Graph, list[int]], list[int]]) -> Graph:
        body = Graph()
        body.outputs = side(body, [body.input(g.dtype[i]) for i in operands])
        return prune(body)

    index = g.emit(CODES["i64"], test)
    branches = (record(when_false), record(when_true))
    return g.region(Switch(np.array([index, *operands]), branches)).tolist()
