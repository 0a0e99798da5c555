"""Quotients by differences of eigenvalues or singular values, also where these are equal.

Legend: w are the values of a matrix. A *turn* is a way to choose other vectors, and u its *gap*: a
difference of values (or a sum, or a value) by which derivatives along the turn are divided. m is
such a derivative. D is a direction in the values along which u grows by 2.

For a function that does not depend on the choice of vectors m vanishes with u, so that
m / u = (mean of D m over the values between u = 0 and here) / 2. That is a smooth function of the
values, at u = 0 too. Gauss's rule with three points gives the mean to the sixth power of u.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import each
from archimedes.graph.derivatives.forward import push_direction
from archimedes.graph.derivatives.sparsity import nodes_in
from archimedes.graph.dtypes import B8, DTYPES, F32, I64, is_float
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES, CONST
from archimedes.graph.passes import Transformer, inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Scan, Switch

#: Points of (0, 1) and their weights: the mean of a polynomial of degree 5 is exact.
GAUSS = [(0.5 - np.sqrt(0.15), 5 / 18), (0.5, 8 / 18), (0.5 + np.sqrt(0.15), 5 / 18)]
#: |u| up to this part of its own values, or of the largest value, counts as a tie: there m / u
#: loses digits, more in each further derivative, and the mean does not.
_NEAR_OWN = {False: 1e-2, True: 3e-2}
_NEAR = {False: 1e-5, True: 3e-3}
#: |m - u c| up to this part of the sizes that m is a difference of counts as rounding; where u is
#: larger than ``_NEAR`` by less, in proportion.
_ROUNDING = {False: 1e-10, True: 1e-4}
_EPS = {False: 2.0**-52, True: 2.0**-23}


class Turn(NamedTuple):
    """A way to choose other vectors: its gap, and how fast each value moves along D.

    ``angle`` is by how much the vectors may be turned for a trial, 0 for not at all.
    """

    gap: int
    speeds: dict[int, float]
    angle: float


class Limit(NamedTuple):
    """The limit of a quotient, and whether its function was the same for turned vectors."""

    value: int
    free: int


class Quotients:
    """Divides by gaps of the values of one matrix, given as ids of a graph."""

    def __init__(self, g: Graph, values: Sequence[int]) -> None:
        self.g, self.values = g, list(values)
        self.e = e = Emit(g, g.dtype[self.values[0]])
        self._narrow = e.dtype == F32
        self._scale = e("abs", self.values[0])
        for i in self.values[1:]:
            self._scale = e("max", self._scale, e("abs", i))

    def near(self, turn: Turn) -> int:
        """Emit whether the gap is small."""
        e, gap = self.e, self.e("abs", turn.gap)
        own = e.c(0.0)
        for k in turn.speeds:
            own = e.add(own, e("abs", self.values[k]))
        own = e.mul(e.c(_NEAR_OWN[self._narrow] / len(turn.speeds)), own)
        return e("le", gap, e("max", own, e.mul(e.c(_NEAR[self._narrow]), self._scale)))

    def divide(self, m: int, turn: Turn, size: int, limit: Limit | None) -> int:
        """Return m / u, or its limit (None where that is not known) near a tie.

        ``size`` is the size of the terms that m is a difference of. Where m is not small with u,
        or is not for other vectors, the function depends on their choice and has no derivative at
        a tie: nan.
        """
        e, u = self.e, turn.gap
        if self.g.value.get(m) == 0:
            return m
        apart = self._apart(u)
        quotient = e.div(m, e.where(apart, u, e.c(1.0)))
        if limit is None:
            return self._nan_unless(apart, quotient, m)
        small = self._small(m, u, size, limit.value)
        smooth = e("and", self.near(turn), e("and", limit.free, small))
        return self._nan_unless(e("or", smooth, apart), e.where(smooth, limit.value, quotient), m)

    def vanishes(self, e: Emit, m: int, size: int, apart: int) -> int:
        """Emit whether m is no more than rounding errors of terms of that size.

        Those are themselves sums of terms, whose size ``apart`` is (nan where it is not known).
        """
        known = e.where(e("eq", apart, apart), apart, e.c(0.0))
        rounding = e.mul(e.c(512 * _EPS[self._narrow]), known)
        allowed = e.add(e.mul(e.c(_ROUNDING[self._narrow]), size), rounding)
        return e("le", e("abs", m), allowed)

    def reciprocal(self, u: int) -> int:
        """Return 1 / u, nan where u is as small as rounding errors."""
        e = self.e
        apart = self._apart(u)
        inverse = e.div(e.c(1.0), e.where(apart, u, e.c(1.0)))
        return self._nan_unless(apart, inverse, u)

    def _small(self, m: int, u: int, size: int, limit: int) -> int:
        """Emit whether m - u c is no more than rounding errors."""
        e, rounding = self.e, _ROUNDING[self._narrow]
        left = e("abs", e.sub(m, e.mul(u, limit)))
        allowed = e.mul(e.c(rounding), size)
        wide = e.mul(e.c(_NEAR[self._narrow]), e.mul(self._scale, allowed))
        return e("and", e("le", left, allowed), e("le", e.mul(left, e("abs", u)), wide))

    def _apart(self, u: int) -> int:
        """Emit whether u is more than rounding errors."""
        e, eps = self.e, _EPS[self._narrow]
        least = e.mul(e.c(64 * len(self.values) * eps), self._scale)
        return e("lt", least, e("abs", u))

    def _nan_unless(self, test: int, value: int, m: int) -> int:
        """Return the value where it exists, else nan; so do its derivatives.

        The factor is 1 where the value exists: a derivative of zero times nan would be nan.
        """
        e = self.e
        factor = e.where(test, e.c(1.0), e.c(float("nan")))
        return e.where(test, value, e.mul(e.where(test, e.c(0.0), m), factor))


#: (graph, number of a turn, values, vectors) -> how fast the vectors change along it
Rates = Callable[[Graph, int, list[int], list[int]], list[int]]
#: (graph, number of a turn, values, their speeds, what is shared) -> derivatives along the values
Slopes = Callable[[Graph, int, list[int], list[int], list[int]], list[int]]
#: (graph, number of a turn, values, what is shared) -> m of each row, sizes of their terms
Trial = Callable[[Graph, int, list[int], list[int]], tuple[list[int], list[int]]]

#: Longest program for which limits are recorded, its bodies included.
_LONGEST = 100_000


class Part:
    """The program from some nodes of a graph to others.

    ``reads`` are the nodes of the graph that its inputs stand for: the sources first, then the
    vectors.
    """

    def __init__(self, program: Graph, reads: list[int], sources: int, vectors: int) -> None:
        self.program, self.reads, self.sources, self.vectors = program, reads, sources, vectors

    @property
    def shared(self) -> list[int]:
        """The nodes it reads beside the sources."""
        return self.reads[self.sources :]


def between(
    g: Graph, sources: Sequence[int], targets: Sequence[int], vectors: Sequence[int] = ()
) -> Part | None:
    """Return the program from some nodes to others, None if no target depends on the former.

    A target that depends on none of them is zero in it.
    """
    first = [*sources, *vectors]
    moving = g.dependents(first, targets)
    if not any(moving[i] for i in targets):
        return None
    part = Graph()
    copy, reads = Transformer(part, g, ()), list(first)
    for i in first:
        copy.to[i] = part.input(g.dtype[i])
    for i in [i for i in g.live(targets) if moving[i] and copy.to[i] < 0]:
        for j in g.operands(i):
            if copy.to[j] >= 0 or moving[j]:
                continue
            if g.op[j] == CONST:
                copy.to[j] = copy.const(j)
            else:
                copy.to[j] = part.input(g.dtype[j])
                reads.append(j)
        copy.run((i,))
    part.outputs = [copy.to[i] if moving[i] else part.const(0.0, g.dtype[i]) for i in targets]
    return Part(part, reads, len(sources), len(vectors))


class Values:
    """The values of one matrix, and all nodes that are one of them: they move together.

    ``positions`` maps such a node to the position of its value; ``rates(g, number, values,
    vectors)`` emits how fast the vectors change along a turn.
    """

    def __init__(
        self, quotients: Quotients, positions: dict[int, int], vectors: list[int], rates: Rates
    ) -> None:
        self.quotients, self.positions = quotients, positions
        self.vectors, self.rates = vectors, rates

    def limits_of_numerators(
        self, turns: Sequence[Turn], numerators: list[list[tuple[int, int]]]
    ) -> list[list[Limit]] | None:
        """Return the limits of m / u for each turn and row, None where they are too long.

        ``numerators[turn][row]`` are the m and the sizes of their terms.
        """
        g, nodes, rows = self.quotients.g, list(self.positions), len(numerators[0])
        pairs = [pair for row in numerators for pair in row]
        part = between(g, nodes, [m for m, _ in pairs])
        whole = between(g, nodes, [i for pair in zip(*pairs) for i in pair], self.vectors)
        if whole is None or nodes_in(whole.program) > _LONGEST:
            return None
        n, read = len(self.vectors), [] if part is None else part.shared

        def slopes(g: Graph, number: int, moved: list[int], speeds: list[int], shared: list[int]):
            if part is None:
                return [g.const(0.0, self.quotients.e.dtype)] * rows
            tangents = self._tangents(g, part.program, moved, speeds, shared[n : n + len(read)])
            return [_select(g, number, tangents[row::rows]) for row in range(rows)]

        def trial(g: Graph, number: int, values: list[int], shared: list[int]):
            values = [values[k] for k in self.positions.values()]
            outs = inline(g, whole.program, [*values, *shared[:n], *shared[n + len(read) :]])
            columns = [outs[row::rows] for row in range(rows)]
            m = [_select(g, number, column[:half]) for column in columns]
            return m, [_select(g, number, column[half:]) for column in columns]

        half = len(numerators)
        shared = [*self.vectors, *read, *whole.shared[n:]]
        return self._limits(turns, shared, slopes, trial)

    def limits_of_targets(self, turns: Sequence[Turn], part: Part) -> list[list[Limit]] | None:
        """Return the limits for each turn and target of a part, None where they are too long.

        The part is one from the nodes of ``positions`` and the vectors.
        """
        if nodes_in(part.program) > _LONGEST:
            return None
        turned, n = _along_vectors(part, self.quotients.e.dtype), len(self.vectors)

        def slopes(g: Graph, number: int, moved: list[int], speeds: list[int], shared: list[int]):
            more = self.rates(g, number, moved, shared[:n])
            return self._tangents(g, turned, moved, speeds, [*shared, *more])

        def trial(g: Graph, number: int, values: list[int], shared: list[int]):
            more = self.rates(g, number, values, shared[:n])
            inputs = [*(values[k] for k in self.positions.values()), *shared]
            return _sum_over_rates(g, turned, inputs, more)

        return self._limits(turns, part.shared, slopes, trial)

    def _tangents(
        self, g: Graph, program: Graph, moved: list[int], speeds: list[int], rest: list[int]
    ) -> list[int]:
        """Emit the derivatives of a program's outputs along its first inputs, the values."""
        positions = list(self.positions.values())
        inputs = [moved[k] for k in positions] + rest
        tangents = {n: speeds[k] for n, k in enumerate(positions)}
        return push_direction(g, program, inputs, tangents)[1]

    def _limits(
        self, turns: Sequence[Turn], shared: list[int], slopes: Slopes, trial: Trial
    ) -> list[list[Limit]]:
        """Return half the means of slopes between no gap and the gap of each turn.

        One body serves all turns. It runs only for those with a small gap. What is shared begins
        with the vectors.
        """
        quotients, g = self.quotients, self.quotients.g
        rest = [g.dtype[i] for i in [turns[0].gap, *quotients.values, *shared]]
        dtypes = [I64, *rest]
        body = Graph.with_inputs([B8, *dtypes])
        near, *ids = body.inputs
        program = _mean_over_points(self._at_point(turns, dtypes, slopes), dtypes)
        program.outputs += self._trials(turns, program, trial)
        body.outputs = _emit_if(body, near, prune(program), ids)
        rows = [[quotients.near(turn), g.const(k, I64), turn.gap] for k, turn in enumerate(turns)]
        inputs = [*(i for row in rows for i in row), *quotients.values, *shared]
        limits = g.region(Map(inputs, prune(body), len(turns), 3)).reshape(len(turns), 2, -1)
        return [[Limit(*pair) for pair in zip(*of_turn)] for of_turn in limits.tolist()]

    def _at_point(self, turns: Sequence[Turn], dtypes: Sequence[int], slopes: Slopes) -> Graph:
        """Return (point - 1, number, gap, values, shared) -> slopes at a point of the gap."""
        dtype, n = self.quotients.e.dtype, len(self.quotients.values)
        g = Graph.with_inputs([dtype, *dtypes])
        point, number, gap, *rest = g.inputs
        back = Emit(g, dtype).mul(point, gap)
        speeds, moved = self._move_values(g, turns, number, back, rest[:n])
        g.outputs = slopes(g, number, moved, speeds, rest[n:])
        return prune(g)

    def _move_values(
        self, g: Graph, turns: Sequence[Turn], number: int, change: int, values: list[int]
    ) -> tuple[list[int], list[int]]:
        """Emit the speeds of the values along a turn, and the values for a changed gap."""
        e = Emit(g, self.quotients.e.dtype)
        half = e.mul(e.c(0.5), change)
        speeds = [
            _entry(g, number, [turn.speeds.get(k, 0.0) for turn in turns], e.dtype)
            for k in range(len(values))
        ]
        return speeds, [e.add(i, e.mul(speed, half)) for i, speed in zip(values, speeds)]

    def _trials(self, turns: Sequence[Turn], g: Graph, trial: Trial) -> list[int]:
        """Emit whether each m vanishes without the gap, for vectors turned by a finite angle.

        At some vectors m may be zero by chance, as the derivative of a component is where the
        component is 1.
        """
        e, n = Emit(g, self.quotients.e.dtype), len(self.quotients.values)
        number, *rest = g.inputs
        gap, *rest = [each(g, CODES["stop"], i) if is_float(g.dtype[i]) else i for i in rest]
        _, values = self._move_values(g, turns, number, e.neg(gap), rest[:n])
        vectors, others = rest[n : n + len(self.vectors)], rest[n + len(self.vectors) :]
        first = self.rates(g, number, values, vectors)
        second = self.rates(g, number, values, first)
        sine = _entry(g, number, [np.sin(turn.angle) for turn in turns], e.dtype)
        less = _entry(g, number, [1.0 - np.cos(turn.angle) for turn in turns], e.dtype)
        turned = [
            e.add(v, e.add(e.mul(sine, a), e.mul(less, b)))
            for v, a, b in zip(vectors, first, second)
        ]
        # Terms that cancel for vectors do not for these: their sizes are what m is rounded to.
        skewed = [e.mul(e.c(1.0 + 0.5 * np.cos(k)), v) for k, v in enumerate(turned)]
        shared = [number, *values, *others]
        body = Graph.with_inputs(g.dtype[i] for i in (*turned, *shared))
        mine, ids = body.inputs[: len(turned)], body.inputs[len(turned) :]
        m, sizes = trial(body, ids[0], ids[1 : n + 1], [*mine, *ids[n + 1 :]])
        body.outputs = [*m, *sizes]
        outs = g.region(Map([*turned, *skewed, *shared], prune(body), 2, len(turned)))
        outs = outs.reshape(2, 2, -1)
        rows = zip(*outs[0].tolist(), outs[1, 1].tolist())
        return [self.quotients.vanishes(e, *row) for row in rows]


def _entry(g: Graph, number: int, column: Sequence[float], dtype: int) -> int:
    """Emit the entry of a constant column at a computed index."""
    return g.lookup(np.array(column, dtype=DTYPES[dtype]), number)


def _sum_over_rates(
    g: Graph, turned: Graph, inputs: list[int], rates: list[int]
) -> tuple[list[int], list[int]]:
    """Emit the sums of a program's outputs over the vectors' elements, and those of their sizes.

    ``turned`` takes ``inputs`` and the rates; it is run for one rate after the other.
    """
    dtype, count = g.dtype[rates[0]], len(turned.outputs)
    kinds = [g.dtype[i] for i in inputs]
    body = Graph.with_inputs([*[dtype] * (2 * count), I64, dtype, *kinds])
    e = Emit(body, dtype)
    sums, (number, rate, *shared) = body.inputs[: 2 * count], body.inputs[2 * count :]
    zero = e.c(0.0)
    units = [e.where(e("eq", number, body.const(k, I64)), rate, zero) for k in range(len(rates))]
    moves = e("ne", rate, zero)
    terms = _emit_if(body, moves, turned, [*shared, *units])
    both = [*terms, *(e("abs", i) for i in terms)]
    body.outputs = [e.add(total, i) for total, i in zip(sums, both)]
    slices = [i for k, rate in enumerate(rates) for i in (g.const(k, I64), rate)]
    zeros = [g.const(0.0, dtype)] * (2 * count)
    outs = g.region(Scan([*zeros, *slices, *inputs], prune(body), len(rates), 2 * count, 2))
    return outs[:count].tolist(), outs[count:].tolist()


def _along_vectors(part: Part, dtype: int) -> Graph:
    """Return the derivatives of a part's outputs along what it reads after its sources."""
    g = Graph.with_inputs(part.program.input_dtypes)
    inputs = list(g.inputs)
    vectors = range(part.sources, part.sources + part.vectors)
    g.outputs = push_direction(g, part.program, inputs, {k: g.input(dtype) for k in vectors})[1]
    return prune(g)


def _select(g: Graph, number: int, ids: Sequence[int]) -> int:
    """Emit a selection of one of the ids by a computed index."""
    e = Emit(g, g.dtype[ids[0]])
    chosen = ids[0]
    for k in range(1, len(ids)):
        chosen = e.where(e("eq", number, g.const(k, I64)), ids[k], chosen)
    return chosen


def _mean_over_points(at_point: Graph, dtypes: Sequence[int]) -> Graph:
    """Return half the mean of a program whose first input is a point of (0, 1), less one."""
    g = Graph.with_inputs(dtypes)
    ids = list(g.inputs)
    dtype = at_point.input_dtypes[0]
    e = Emit(g, dtype)
    points = [e.c(point - 1.0) for point, _ in GAUSS]
    values = g.region(Map([*points, *ids], at_point, len(GAUSS), 1)).reshape(len(GAUSS), -1)
    for column in values.T.tolist():
        total = e.c(0.0)
        for i, (_, weight) in zip(column, GAUSS):
            total = e.add(total, e.mul(e.c(0.5 * weight), i))
        g.outputs.append(total)
    return g


def _emit_if(g: Graph, test: int, program: Graph, ids: Sequence[int]) -> list[int]:
    """Emit a program that runs if a test holds; otherwise all outputs are zero."""
    nothing = Graph.with_inputs(program.input_dtypes)
    nothing.outputs = [nothing.const(0, dtype) for dtype in program.output_dtypes]
    index = g.emit(CODES["i64"], test)
    return g.region(Switch([index, *ids], (nothing, program))).tolist()
