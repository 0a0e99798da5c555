"""Functions of matrices with derivatives in closed form, and how the graph gets to know these.

A rule is written with arrays: ``push`` maps tangents of operands to tangents of results, ``pull``
is its transpose (left out where the graph may transpose ``push`` by itself). Functions that give
eigenvectors or singular vectors say instead how these turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from archimedes.graph.derivatives.quotients import Turn
from archimedes.graph.derivatives.spectral_derivatives import spectral_forward, spectral_reverse
from archimedes.graph.dtypes import DTYPES, block_type
from archimedes.graph.ops import CODES, CONST
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Switch, While
from archimedes.symbolic.core.array_scans import array_input, array_of, array_value
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.loop_nests import loops_from
from archimedes.symbolic.core.trace import Trace, current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg.matrices import is_wide_matrix

__all__ = [
    "Blocks",
    "Formula",
    "Layout",
    "MatrixFunction",
    "Rule",
    "Spectrum",
    "Turns",
    "call",
    "choose",
    "emitting",
    "repeat_while",
    "rule_of",
]

#: ``formula(operands, results, rows)``: ``rows`` holds, for each direction, one array per operand
#: (push) or a result (pull); so does the answer, for results (push) or operands (pull).
Formula = Callable[[Sequence[Any], Sequence[Any], list[list[Any]]], list[list[Any]]]

#: What the graph expects of a rule; see ``DerivativeRule``.
Pass = Callable[[Graph, np.ndarray, np.ndarray, list[list[int | None]]], Any] | None

_ADD = CODES["add"]


@dataclass(frozen=True)
class Turns:
    """How the vectors of a matrix turn, on arrays; see ``spectral_derivatives.py``.

    ``gaps(results)`` are the gaps of all turns and the speeds of the values along each of them.
    ``rates(results, row)`` is the change of each result along a turn, for which ``row`` reads
    constant tables with a row for each turn. ``numerators(results, bars)`` are the m of all turns
    and the sizes of their terms, one array each. ``gathered(results, bars, turned)`` is the
    adjoint of the operand from those of the values and the m / u.
    """

    gaps: Callable[[Sequence[Any]], tuple[Any, list[dict[int, float]]]]
    rates: Callable[[Sequence[Any], Callable[[np.ndarray], Any]], list[Any]]
    numerators: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, Any]]
    gathered: Callable[[Sequence[Any], Sequence[Any], Any], Any]


@dataclass(frozen=True)
class Spectrum:
    """Which result holds the values of a matrix, and which hold vectors.

    Functions of one ``family`` give the same values. Vectors are known up to a choice only: where
    values are equal only functions free of that choice have a derivative.
    """

    family: str
    values: int
    vectors: tuple[int, ...] = ()
    turns: Turns | None = None


@dataclass(frozen=True)
class MatrixFunction:
    """A function of arrays with a derivative in closed form.

    ``body`` takes arrays and returns a tuple of arrays, all of one floating dtype. ``spectrum``
    says which results are eigenvalues or singular values, and how their vectors turn.
    """

    name: str
    body: Callable[..., tuple[Any, ...]]
    push: Formula
    pull: Formula | None = None
    spectrum: Spectrum | None = None
    #: The body for wide matrices, which are blocks: a loop, whatever their size.
    wide: Callable[..., tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class Layout:
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


@dataclass(frozen=True)
class Blocks:
    """Several wide arrays: one block each, or a scalar. What ``Layout`` is to elements."""

    code: int
    shapes: tuple[tuple[int, ...], ...]

    def arrays(self, trace: Trace, flat: Sequence[int]) -> list[Any]:
        """Return the arrays that ids stand for."""
        return [array_of(trace, int(i), s, self.code) for i, s in zip(flat, self.shapes)]

    def changes(self, trace: Trace, flat: Sequence[int | None]) -> list[Any]:
        """Return the arrays of tangents or adjoints, zero where there is none."""
        g, given = trace.graph, []
        for i, shape in zip(flat, self.shapes):
            kind = block_type(self.code, math.prod(shape)) if shape else self.code
            given.append(g.const(0.0, kind) if i is None else int(i))
        return self.arrays(trace, given)

    def gather(self, trace: Trace, arrays: Sequence[Any], count: int) -> list[int | None]:
        """Return the ids of tangents or adjoints."""
        return [array_value(trace, array, self.code) for array in arrays]


class Rule:
    """A formula on arrays as the graph's derivative rule on ids."""

    pattern = None

    def __init__(
        self, function: MatrixFunction, takes: Layout | Blocks, gives: Layout | Blocks
    ) -> None:
        self.name = function.name
        self._function = function
        self._takes = takes
        self._gives = gives
        self.forward: Pass = self._forward
        self.reverse: Pass = None if function.pull is None else self._reverse

    @contextmanager
    def _emitting(self, g: Graph) -> Iterator[Trace]:
        """Let formulas append to a graph: in loops, where arrays are blocks."""
        loops = loops_from(2, 1) if isinstance(self._takes, Blocks) else nullcontext()
        with emitting(g) as trace, loops:
            yield trace

    def _forward(
        self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[list[int | None]]
    ) -> list[list[int | None]]:
        with self._emitting(g) as trace:
            operands = self._takes.arrays(trace, inputs.tolist())
            results = self._gives.arrays(trace, outs.tolist())
            given = [self._takes.changes(trace, row) for row in rows]
            found = self._function.push(operands, results, given)
            return [self._gives.gather(trace, row, len(outs)) for row in found]

    def _reverse(
        self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[list[int | None]]
    ) -> list[list[int | None]]:
        assert self._function.pull is not None
        with self._emitting(g) as trace:
            operands = self._takes.arrays(trace, inputs.tolist())
            results = self._gives.arrays(trace, outs.tolist())
            given = [self._gives.changes(trace, row) for row in rows]
            found = self._function.pull(operands, results, given)
            return [self._takes.gather(trace, row, len(inputs)) for row in found]


class _ValueRule(Rule):
    """The rule of a function that gives the values of a matrix."""

    def __init__(self, function: MatrixFunction, takes: Layout, gives: Layout) -> None:
        super().__init__(function, takes, gives)
        assert function.spectrum is not None
        self._spectrum = function.spectrum
        self.family = self._spectrum.family
        places = gives.by_array()
        self.value_places = places[self._spectrum.values]
        vectors = self._spectrum.vectors
        self.whole = frozenset(k for r in vectors for k in places[r] if k is not None)


class _SpectralRule(_ValueRule):
    """Formulas on arrays as a ``SpectralRule`` on ids."""

    def __init__(self, function: MatrixFunction, takes: Layout, gives: Layout) -> None:
        super().__init__(function, takes, gives)
        assert self._spectrum.turns is not None
        self._turns = self._spectrum.turns
        self.reverse = partial(spectral_reverse, self)
        self.through = partial(spectral_forward, self)

    def values(self, g: Graph, outs: Sequence[int]) -> list[int]:
        with emitting(g) as trace:
            return trace.ids_of(self._gives.arrays(trace, outs)[self._spectrum.values]).tolist()

    def turns(self, g: Graph, outs: Sequence[int]) -> list[Turn]:
        with emitting(g) as trace:
            gaps, speeds = self._turns.gaps(self._gives.arrays(trace, outs))
            ids = trace.ids_of(gaps).tolist()
            return [Turn(i, s, self._angle(s)) for i, s in zip(ids, speeds)]

    def _angle(self, speeds: dict[int, float]) -> float:
        """Vectors that are known in part, or leave their space, are not turned for a trial."""
        places = self._gives.by_array()
        known = any(k is None for r in self._spectrum.vectors for k in places[r])
        return 1.0 if len(speeds) == 2 and not known else 0.0

    def rates(self, g: Graph, outs: Sequence[int], number: int) -> list[int | None]:
        with emitting(g) as trace:
            chosen = partial(_row, g, number, self._gives.code)
            found = self._turns.rates(self._gives.arrays(trace, outs), chosen)
            return self._gives.gather(trace, found, len(outs))

    def numerators(
        self, g: Graph, outs: Sequence[int], rows: list[list[int | None]]
    ) -> list[list[tuple[int, int]]]:
        found = []
        with emitting(g) as trace:
            results = self._gives.arrays(trace, outs)
            for row in rows:
                pair = self._turns.numerators(results, self._gives.changes(trace, row))
                m, size = (trace.ids_of(array).tolist() for array in pair)
                found.append(list(zip(m, size)))
        return found

    def gathered(
        self,
        g: Graph,
        inputs: Sequence[int],
        outs: Sequence[int],
        rows: list[list[int | None]],
        turned: list[list[int]],
    ) -> list[list[int | None]]:
        found = []
        with emitting(g) as trace:
            results = self._gives.arrays(trace, outs)
            for row, ids in zip(rows, turned):
                quotients = wrap(np.array(ids, dtype=np.int64), self._gives.code, trace)
                bars = self._gives.changes(trace, row)
                bar = self._turns.gathered(results, bars, quotients)
                found.append(self._takes.gather(trace, [bar], len(inputs)))
        return found


def _row(g: Graph, number: int, code: int, table: np.ndarray) -> Traced:
    """Return the row of a constant table whose number is computed."""
    columns = table.reshape(len(table), -1).T.astype(DTYPES[code])
    ids = [g.lookup(column, number) if column.any() else g.const(0.0, code) for column in columns]
    return wrap(np.array(ids, dtype=np.int64).reshape(table.shape[1:]), code)


def rule_of(function: MatrixFunction, takes: Layout | Blocks, gives: Layout | Blocks) -> Rule:
    """Return the derivative of a function recorded for one layout of operands and results."""
    if function.spectrum is None:
        return Rule(function, takes, gives)
    if function.spectrum.turns is None:
        return _ValueRule(function, takes, gives)
    return _SpectralRule(function, takes, gives)


@contextmanager
def emitting(g: Graph) -> Iterator[Trace]:
    """Let array code append to a given graph."""
    trace = Trace()
    trace.graph = g
    with trace:
        yield trace


# ---- calls --------------------------------------------------------------------------------------


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
    with Trace() as trace, loops_from(2, 1):
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
