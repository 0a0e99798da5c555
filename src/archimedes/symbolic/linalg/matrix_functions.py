"""Functions of matrices with derivatives in closed form, recorded as ``Call`` regions.

A rule is written with arrays: ``push`` maps tangents of operands to tangents of results, ``pull``
is its transpose (left out where the graph may transpose ``push`` by itself). Functions that give
eigenvectors or singular vectors say instead how these turn.

A small matrix is scalarized: the body is recorded once for the literals among its operands, so that
zeros and constants fold inside it, and literals among its results are visible outside. A large
matrix is a block, and its body is loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from archimedes.graph.derivatives.quotients import Turn
from archimedes.graph.derivatives.spectral_derivatives import spectral_forward, spectral_reverse
from archimedes.graph.dtypes import DTYPES, block_type
from archimedes.graph.ops import CODES, CONST
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph, origins
from archimedes.graph.regions import Call, Switch, While
from archimedes.symbolic.core.array_scans import array_input, array_of, array_value
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.loop_nests import loops_from
from archimedes.symbolic.core.trace import Trace, current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg.matrices import is_large

#: The operands, or the results, of a function.
Arrays = Sequence[Traced]
#: Tangents or adjoints of several arrays: for each direction, one array for each of them.
Changes = list[list[Traced]]
#: ``formula(operands, results, changes)`` takes changes of operands to those of results (push), or
#: the other way (pull).
Formula = Callable[[Arrays, Arrays, Changes], Changes]
#: One row of ids for each direction; None is zero.
Rows = list[list[int | None]]
#: What the graph expects of a rule; see ``DerivativeRule``.
Pass = Callable[[Graph, np.ndarray, np.ndarray, Rows], Any] | None

_ADD = CODES["add"]


# ---- functions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turns:
    """How the vectors of a matrix turn, on arrays; see ``spectral_derivatives.py``.

    ``gaps(results)`` are the gaps of all turns and the speeds of the values along each of them.
    ``rates(results, row)`` is the change of each result along a turn, for which ``row`` reads
    constant tables with a row for each turn. ``numerators(results, bars)`` are the m of all turns
    and the sizes of their terms, one array each. ``gather(results, bars, quotients)`` is the
    adjoint of the operand from those of the values and the m / u.
    """

    gaps: Callable[[Sequence[Traced]], tuple[Traced, list[dict[int, float]]]]
    rates: Callable[[Sequence[Traced], Callable[[np.ndarray], Traced]], list[Traced]]
    numerators: Callable[[Sequence[Traced], Sequence[Traced]], tuple[Traced, Traced]]
    gather: Callable[[Sequence[Traced], Sequence[Traced], Traced], Traced]


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

    ``body`` takes arrays and returns a tuple of arrays, all of one floating dtype; ``loop_body``
    does the same for large matrices, where all arrays are blocks (default: none of them are large).
    With ``inline``, small matrices have no region, and the derivative of their body's nodes.
    ``spectrum`` says which results are eigenvalues or singular values, and how their vectors turn.
    """

    name: str
    body: Callable[..., tuple[Traced, ...]]
    push: Formula
    pull: Formula | None = None
    spectrum: Spectrum | None = None
    loop_body: Callable[..., tuple[Traced, ...]] | None = None
    inline: bool = False


def call(function: MatrixFunction, *arrays: Traced) -> tuple[Traced, ...]:
    """Record a function of arrays as a region with the function's own derivative.

    Where every operand is a literal the body is recorded in place, and folds.
    """
    trace = current_trace()
    takes: Layout
    if function.loop_body is not None and is_large(arrays[0]):
        takes = Blocks(arrays[0].code, tuple(a.shape for a in arrays))
        inputs = takes.ids(trace, arrays)
    else:
        position: dict[int, int] = {}
        takes = _describe(trace, arrays, position)
        inputs = list(position)
        if not inputs or function.inline:
            return function.body(*arrays)
    body, gives, rule = _record(function, takes, origins.kind is not None)
    return tuple(gives.arrays(trace, trace.graph.region(Call(inputs, body, rule)).tolist()))


@lru_cache(maxsize=1024)
def _record(function: MatrixFunction, takes: Layout, checks: bool) -> tuple[Graph, Layout, Rule]:
    """Record a body for one layout of operands, once: equal calls share body and rule.

    Bodies that are recorded while the program is checked (``checks``) are not for others.
    """
    gives: Layout
    with _emit_to(Graph(), takes) as trace:
        if isinstance(takes, Blocks):
            assert function.loop_body is not None
            results = function.loop_body(*(array_input(trace, s, takes.code) for s in takes.shapes))
            gives = Blocks(takes.code, tuple(x.shape for x in results))
            trace.graph.outputs = gives.ids(trace, results)
        else:
            assert isinstance(takes, Elements)
            ids = trace.graph.add_inputs(takes.code, max(takes.positions, default=-1) + 1)
            results = function.body(*takes.arrays(trace, ids.tolist()))
            gives = _describe(trace, results, None)
            trace.graph.outputs = [
                i for i in _flat_ids(trace, results) if trace.graph.op[i] != CONST
            ]
    return prune(trace.graph), gives, _rule_of(function, takes, gives)


@contextmanager
def _emit_to(g: Graph, layout: Layout) -> Iterator[Trace]:
    """Let array code append to a graph: in loops, where arrays are blocks."""
    with Trace(g) as trace:
        if isinstance(layout, Blocks):
            with loops_from(2, 1):
                yield trace
        else:
            yield trace


# ---- where the elements of arrays are ----------------------------------------------------------


def _flat_ids(trace: Trace, arrays: Sequence[Traced]) -> list[int]:
    return [i for array in arrays for i in trace.ids_of(array).ravel().tolist()]


@dataclass(frozen=True)
class Layout:
    """Arrays of some shapes and one dtype as a flat list of ids."""

    code: int
    shapes: tuple[tuple[int, ...], ...]

    def arrays(self, trace: Trace, flat: Sequence[int]) -> list[Traced]:
        """Return the arrays that ids stand for."""
        parts = [np.array(part, dtype=np.int64) for part in self.split(flat)]
        return [wrap(ids.reshape(s), self.code, trace) for ids, s in zip(parts, self.shapes)]

    def split(self, flat: Sequence[Any]) -> list[Any]:
        """Return the part of a flat list that belongs to each array."""
        sizes = np.cumsum([0, *map(math.prod, self.shapes)]).tolist()
        return [flat[i:j] for i, j in pairwise(sizes)]

    def ids(self, trace: Trace, arrays: Sequence[Traced]) -> list[int]:
        """Return the ids of arrays."""
        return _flat_ids(trace, arrays)

    def changes(self, trace: Trace, flat: Sequence[int | None]) -> list[Traced]:
        """Return the arrays of tangents or adjoints, zero where there is none."""
        raise NotImplementedError

    def gather(self, trace: Trace, arrays: Sequence[Traced], count: int) -> list[int | None]:
        """Return the ids of tangents or adjoints."""
        raise NotImplementedError


@dataclass(frozen=True)
class Elements(Layout):
    """A layout in which each element is at a position of the flat list, or literal."""

    positions: tuple[int, ...]
    literals: tuple[float, ...]  # one per element; meaningful where the position is -1

    def arrays(self, trace: Trace, flat: Sequence[int]) -> list[Traced]:
        """Return the arrays that ids stand for."""
        const = trace.graph.const
        pairs = zip(self.positions, self.literals)
        return super().arrays(
            trace, [int(flat[k]) if k >= 0 else const(literal, self.code) for k, literal in pairs]
        )

    def changes(self, trace: Trace, flat: Sequence[int | None]) -> list[Traced]:
        """Return the arrays of tangents or adjoints; those of literals are zero."""
        zero = trace.graph.const(0.0, self.code)
        ids = (None if k < 0 else flat[k] for k in self.positions)
        return super().arrays(trace, [zero if i is None else int(i) for i in ids])

    def gather(self, trace: Trace, arrays: Sequence[Traced], count: int) -> list[int | None]:
        """Collect tangents or adjoints by position, adding where an element appears twice."""
        g = trace.graph
        flat: list[int | None] = [None] * count
        for k, i in zip(self.positions, _flat_ids(trace, arrays)):
            if k >= 0 and g.value.get(i) != 0:
                old = flat[k]
                flat[k] = i if old is None else g.emit(_ADD, old, i)
        return flat


def _describe(trace: Trace, arrays: Sequence[Traced], position: dict[int, int] | None) -> Elements:
    """Describe arrays of a trace: equal ids share a position in ``position``, which is filled in.

    Without ``position`` each element gets a position of its own.
    """
    values = [(i, trace.graph.value.get(i)) for i in _flat_ids(trace, arrays)]
    numbers: dict[int, int] = {} if position is None else position
    positions = []
    for k, (i, literal) in enumerate(values):
        key = k if position is None else i
        positions.append(-1 if literal is not None else numbers.setdefault(key, len(numbers)))
    literals = tuple(0.0 if literal is None else literal for _, literal in values)
    shapes = tuple(a.shape for a in arrays)
    return Elements(arrays[0].code, shapes, tuple(positions), literals)


@dataclass(frozen=True)
class Blocks(Layout):
    """A layout in which each array is one id: of a block, or of a scalar."""

    def arrays(self, trace: Trace, flat: Sequence[int]) -> list[Traced]:
        """Return the arrays that ids stand for."""
        return [array_of(trace, int(i), s, self.code) for i, s in zip(flat, self.shapes)]

    def ids(self, trace: Trace, arrays: Sequence[Traced]) -> list[int]:
        """Return the ids of arrays."""
        return [array_value(trace, array, self.code) for array in arrays]

    def changes(self, trace: Trace, flat: Sequence[int | None]) -> list[Traced]:
        """Return the arrays of tangents or adjoints, zero where there is none."""
        kinds = [block_type(self.code, math.prod(s)) if s else self.code for s in self.shapes]
        const = trace.graph.const
        return self.arrays(
            trace, [const(0.0, kind) if i is None else i for i, kind in zip(flat, kinds)]
        )

    def gather(self, trace: Trace, arrays: Sequence[Traced], count: int) -> list[int | None]:
        """Return the ids of tangents or adjoints."""
        return [*self.ids(trace, arrays)]


# ---- derivatives -------------------------------------------------------------------------------


class Rule:
    """A formula on arrays as the graph's derivative rule on ids."""

    pattern: ClassVar[None] = None

    def __init__(self, function: MatrixFunction, takes: Layout, gives: Layout) -> None:
        self.name = function.name
        self._takes, self._gives = takes, gives
        self.forward: Pass = self._apply(function.push, takes, gives)
        self.reverse: Pass = self._apply(function.pull, gives, takes)

    def _apply(self, formula: Formula | None, source: Layout, target: Layout) -> Pass:
        """Return the pass that takes changes in one layout to changes in another."""
        if formula is None:
            return None

        def apply(g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: Rows) -> Rows:
            with _emit_to(g, self._takes) as trace:
                operands = self._takes.arrays(trace, inputs.tolist())
                results = self._gives.arrays(trace, outs.tolist())
                changes = [source.changes(trace, row) for row in rows]
                count = len(inputs if target is self._takes else outs)
                images = formula(operands, results, changes)
                return [target.gather(trace, row, count) for row in images]

        return apply


class _ValueRule(Rule):
    """The rule of a function that gives the values of a matrix."""

    def __init__(self, function: MatrixFunction, takes: Elements, gives: Elements) -> None:
        super().__init__(function, takes, gives)
        assert function.spectrum is not None
        self._spectrum = function.spectrum
        self.family = self._spectrum.family
        positions = gives.split([None if k < 0 else k for k in gives.positions])
        self.value_outputs = positions[self._spectrum.values]
        vectors = [k for r in self._spectrum.vectors for k in positions[r]]
        self.gauge_dependent = frozenset(k for k in vectors if k is not None)
        self._has_literal_vectors = None in vectors


class _SpectralRule(_ValueRule):
    """Formulas on arrays as a ``SpectralRule`` on ids."""

    def __init__(self, function: MatrixFunction, takes: Elements, gives: Elements) -> None:
        super().__init__(function, takes, gives)
        assert self._spectrum.turns is not None
        self._turns = self._spectrum.turns
        self.reverse = partial(spectral_reverse, self)
        self.through = partial(spectral_forward, self)

    def values(self, g: Graph, outs: Sequence[int]) -> list[int]:
        with Trace(g) as trace:
            return trace.ids_of(self._gives.arrays(trace, outs)[self._spectrum.values]).tolist()

    def turns(self, g: Graph, outs: Sequence[int]) -> list[Turn]:
        with Trace(g) as trace:
            gaps, speeds = self._turns.gaps(self._gives.arrays(trace, outs))
            ids = trace.ids_of(gaps).tolist()
            return [Turn(i, s, self._angle(s)) for i, s in zip(ids, speeds)]

    def _angle(self, speeds: dict[int, float]) -> float:
        """Vectors that are known in part, or leave their space, are not turned for a trial."""
        return 1.0 if len(speeds) == 2 and not self._has_literal_vectors else 0.0

    def rates(self, g: Graph, outs: Sequence[int], number: int) -> list[int | None]:
        with Trace(g) as trace:
            row = partial(_read_row, g, number, self._gives.code)
            rates = self._turns.rates(self._gives.arrays(trace, outs), row)
            return self._gives.gather(trace, rates, len(outs))

    def numerators(self, g: Graph, outs: Sequence[int], rows: Rows) -> list[list[tuple[int, int]]]:
        with Trace(g) as trace:
            results = self._gives.arrays(trace, outs)
            pairs = [
                self._turns.numerators(results, self._gives.changes(trace, row)) for row in rows
            ]
            return [list(zip(*(trace.ids_of(array).tolist() for array in pair))) for pair in pairs]

    def gather_adjoints(
        self,
        g: Graph,
        inputs: Sequence[int],
        outs: Sequence[int],
        rows: Rows,
        turned: list[list[int]],
    ) -> Rows:
        with Trace(g) as trace:
            results = self._gives.arrays(trace, outs)
            adjoints = []
            for row, ids in zip(rows, turned):
                quotients = wrap(np.array(ids, dtype=np.int64), self._gives.code, trace)
                bars = self._gives.changes(trace, row)
                bar = self._turns.gather(results, bars, quotients)
                adjoints.append(self._takes.gather(trace, [bar], len(inputs)))
            return adjoints


def _read_row(g: Graph, number: int, code: int, table: np.ndarray) -> Traced:
    """Return the row of a constant table whose number is computed."""
    columns = table.reshape(len(table), -1).T.astype(DTYPES[code])
    ids = [g.lookup(column, number) if column.any() else g.const(0.0, code) for column in columns]
    return wrap(np.array(ids, dtype=np.int64).reshape(table.shape[1:]), code)


def _rule_of(function: MatrixFunction, takes: Layout, gives: Layout) -> Rule:
    """Return the derivative of a function recorded for one layout of operands and results."""
    if function.spectrum is None:
        return Rule(function, takes, gives)
    assert isinstance(takes, Elements) and isinstance(gives, Elements)
    kind = _ValueRule if function.spectrum.turns is None else _SpectralRule
    return kind(function, takes, gives)


# ---- loops and branches ------------------------------------------------------------------------


def repeat_while(
    test: Callable[[list[Traced], list[Traced]], Traced],
    step: Callable[[list[Traced], list[Traced]], Sequence[Traced]],
    carry: Sequence[Traced],
    shared: Sequence[Traced],
    limit: int,
    blocks: bool = False,
) -> list[Traced]:
    """Return the last of ``carry = step(carry, shared)`` while ``test(carry, shared)`` is true.

    With ``blocks``, all arrays are blocks, and the step is loops.
    """
    trace, code = current_trace(), carry[0].code
    kind = Blocks if blocks else Layout
    carried, common = (kind(code, tuple(x.shape for x in xs)) for xs in (carry, shared))
    start = carried.ids(trace, carry)
    inputs = [*start, *common.ids(trace, shared)]

    def record(function: Callable[..., Any]) -> Graph:
        body = Graph()
        with _emit_to(body, carried) as inner:
            ids = [body.input(trace.graph.dtype[i]) for i in inputs]
            own, others = ids[: len(start)], ids[len(start) :]
            outs = function(carried.arrays(inner, own), common.arrays(inner, others))
            is_test = function is test
            body.outputs = [array_value(inner, outs)] if is_test else carried.ids(inner, outs)
        return prune(body)

    region = While(inputs, record(test), record(step), len(start), limit)
    return carried.arrays(trace, trace.graph.region(region).tolist())


def branch(
    test: Traced,
    arrays: Sequence[Traced],
    when_true: Callable[..., Sequence[Traced]],
    when_false: Callable[..., Sequence[Traced]],
) -> list[Traced]:
    """Return the arrays that one of two functions returns: only the side that is needed runs."""
    trace, code = current_trace(), arrays[0].code
    kind = Blocks if is_large(arrays[0]) else Layout
    takes = kind(code, tuple(a.shape for a in arrays))
    inputs = takes.ids(trace, arrays)
    gives = takes

    def record(side: Callable[..., Sequence[Traced]]) -> Graph:
        nonlocal gives
        body = Graph()
        with _emit_to(body, takes) as inner:
            ids = [body.input(trace.graph.dtype[i]) for i in inputs]
            results = side(*takes.arrays(inner, ids))
            gives = kind(code, tuple(x.shape for x in results))
            body.outputs = gives.ids(inner, results)
        return prune(body)

    index = trace.graph.emit(CODES["i64"], array_value(trace, test))
    sides = (record(when_false), record(when_true))
    outs = trace.graph.region(Switch(np.array([index, *inputs]), sides)).tolist()
    return gives.arrays(trace, outs)
