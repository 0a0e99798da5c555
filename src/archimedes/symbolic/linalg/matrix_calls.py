"""Matrix functions recorded as ``Call`` regions that bring their own derivative.

A body is recorded once for the literals among its operands, so that zeros and constants fold
inside it; literals among its results are visible outside. A rule is written with arrays:
``push`` maps tangents of operands to tangents of results, ``pull`` is its transpose (left out
where the graph may transpose ``push`` by itself).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from archimedes.graph.ops import CODES
from archimedes.graph.passes import prune
from archimedes.graph.program import CONST, Graph
from archimedes.graph.regions import Call, Switch, While
from archimedes.symbolic.core.dispatch import wrap
from archimedes.symbolic.core.trace import Trace, current_trace

__all__ = ["Formula", "MatrixFunction", "call", "choose", "emitting", "repeat_while"]

#: ``formula(operands, results, rows)``: ``rows`` holds, for each direction, one array an operand
#: (push) or a result (pull); so does the answer, for results (push) or operands (pull).
Formula = Callable[[Sequence[Any], Sequence[Any], list[list[Any]]], list[list[Any]]]

#: What the graph expects of a rule; see ``DerivativeRule``.
Pass = Callable[[Graph, np.ndarray, np.ndarray, list[list[int | None]]], Any] | None

_ADD = CODES["add"]


@dataclass(frozen=True)
class MatrixFunction:
    """A function of arrays with a derivative in closed form.

    ``body`` takes arrays and returns a tuple of arrays, all of one floating dtype. ``values`` is
    the result that holds eigenvalues or singular values. ``vectors`` are the results that are
    known up to a choice only: at ties they have a derivative only in functions free of that
    choice, which ``pull`` knows and ``push`` cannot know.
    """

    name: str
    body: Callable[..., tuple[Any, ...]]
    push: Formula
    pull: Formula | None = None
    values: int | None = None
    vectors: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Layout:
    """Where the elements of several arrays are: at a position of a flat list, or literal."""

    code: int
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    literals: tuple[float, ...]  # one per element; meaningful where the place is -1

    def arrays(self, trace: Trace, flat: Sequence[int]) -> list[Any]:
        """Lay out ids of values."""
        const = trace.graph.const
        ids = [
            int(flat[place]) if place >= 0 else const(literal, self.code)
            for place, literal in zip(self.places, self.literals)
        ]
        return self._split(trace, ids)

    def changes(self, trace: Trace, flat: Sequence[int | None]) -> list[Any]:
        """Lay out ids of tangents or adjoints; those of literals are zero."""
        zero = trace.graph.const(0.0, self.code)
        given = [None if place < 0 else flat[place] for place in self.places]
        return self._split(trace, [zero if i is None else int(i) for i in given])

    def by_array(self) -> list[list[int | None]]:
        """Return the places of each array's elements; None for a literal."""
        places = iter(self.places)
        counts = [int(np.prod(shape, dtype=int)) for shape in self.shapes]
        return [[None if (k := next(places)) < 0 else k for _ in range(n)] for n in counts]

    def _split(self, trace: Trace, ids: list[int]) -> list[Any]:
        arrays, start = [], 0
        for shape in self.shapes:
            count = int(np.prod(shape, dtype=int))
            part = np.array(ids[start : start + count], dtype=np.int64)
            arrays.append(wrap(part.reshape(shape), self.code, trace))
            start += count
        return arrays

    def gather(self, trace: Trace, arrays: Sequence[Any], count: int) -> list[int | None]:
        """Collect tangents or adjoints by position, adding where an element appears twice."""
        g = trace.graph
        flat: list[int | None] = [None] * count
        ids = [i for array in arrays for i in trace.ids_of(array).ravel().tolist()]
        for place, i in zip(self.places, ids):
            if place >= 0 and g.value.get(i) != 0:
                old = flat[place]
                flat[place] = i if old is None else g.emit(_ADD, old, i)
        return flat


class _Rule:
    """A formula on arrays as the graph's derivative rule on ids."""

    pattern = None

    def __init__(self, function: MatrixFunction, takes: _Layout, gives: _Layout) -> None:
        self.name = function.name
        self._function = function
        self._takes = takes
        self._gives = gives
        self.forward: Pass = self._forward
        self.reverse: Pass = None if function.pull is None else self._reverse
        places = gives.by_array()
        self.value_places = [] if function.values is None else places[function.values]
        self.whole = frozenset(k for r in function.vectors for k in places[r] if k is not None)

    def _forward(
        self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[list[int | None]]
    ) -> list[list[int | None]]:
        with emitting(g) as trace:
            operands = self._takes.arrays(trace, inputs.tolist())
            results = self._gives.arrays(trace, outs.tolist())
            given = [self._takes.changes(trace, row) for row in rows]
            found = self._function.push(operands, results, given)
            return [self._gives.gather(trace, row, len(outs)) for row in found]

    def _reverse(
        self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[list[int | None]]
    ) -> list[list[int | None]]:
        assert self._function.pull is not None
        with emitting(g) as trace:
            operands = self._takes.arrays(trace, inputs.tolist())
            results = self._gives.arrays(trace, outs.tolist())
            given = [self._gives.changes(trace, row) for row in rows]
            found = self._function.pull(operands, results, given)
            return [self._takes.gather(trace, row, len(inputs)) for row in found]


@contextmanager
def emitting(g: Graph) -> Iterator[Trace]:
    """Let array code append to a given graph."""
    trace = Trace()
    trace.graph = g
    with trace:
        yield trace


@lru_cache(maxsize=1024)
def _recorded(function: MatrixFunction, takes: _Layout) -> tuple[Graph, _Layout, _Rule]:
    """Record a body for one layout of operands, once: equal calls share body and rule."""
    with Trace() as trace:
        ids = trace.graph.add_inputs(takes.code, max(takes.places, default=-1) + 1)
        results = function.body(*takes.arrays(trace, ids.tolist()))
        flat = [i for r in results for i in trace.ids_of(r).ravel().tolist()]
        trace.graph.outputs = [i for i in flat if trace.graph.op[i] != CONST]
        gives = _layout(trace, results, None)
    return prune(trace.graph), gives, _Rule(function, takes, gives)


def _layout(trace: Trace, arrays: Sequence[Any], position: dict[int, int] | None) -> _Layout:
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
    return _Layout(arrays[0].code, tuple(a.shape for a in arrays), tuple(places), tuple(literals))


def call(function: MatrixFunction, *arrays: Any) -> tuple[Any, ...]:
    """Record ``function.body(*arrays)`` as a region with the function's own derivative.

    Where every operand is a literal the body is recorded in place, and folds.
    """
    trace = current_trace()
    position: dict[int, int] = {}
    takes = _layout(trace, arrays, position)
    if not position:
        return function.body(*arrays)
    body, gives, rule = _recorded(function, takes)
    outs = trace.graph.region(Call(list(position), body, rule))
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
