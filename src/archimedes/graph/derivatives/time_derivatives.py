"""States moved along a flow, and times of events: derivatives in time, of any order.

A solve is recorded on a grid of constant times. What depends on a time that is differentiated is
attached to it by two functions, called only where their values are known beforehand:

    move(a, b, x, p)   the state at time b on the solution of x' = f(t, x, p) through x at time a;
                       called where b equals a, its value is x
    cross(a, x, p, q)  the time t at which g(t, x(t), q) = 0 on that solution;
                       called where g is zero at a, its value is a

Their derivatives are those of the functions, not of the values, and again made of ``move`` and
``cross``, so that they can be differentiated as often as one likes.

Along tangents (da, db, dx, dp) the solution moves by

    d move = f(b, move) db + v(b),   v(a) = dx - f(a, x) da,   v' = f_x v + f_p dp

and v(b) is a part of ``move`` for the larger system (x, v) with parameters (p, dp). Backwards,
for an adjoint w of the result,

    b- = w . f(b, move),   x- = u(a),   p- = s(a),   a- = - x- . f(a, x)
    u(b) = w,   u' = - f_x^T u,   s(b) = 0,   s' = - f_p^T u

and (u, s)(a) is a part of ``move`` from b to a. The time of an event moves by the implicit
function theorem: d cross = - (g_x v + g_q dq) / (g_t + g_x f) with v as above.

Legend. ``field`` is the graph of f: (t, x (n), p) -> x' (n). ``guard`` is that of g:
(t, x (n), q) -> one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np

from archimedes.graph.blocks.building import add_values
from archimedes.graph.derivatives import bodies
from archimedes.graph.derivatives.bodies import Row, by_value
from archimedes.graph.derivatives.forward import forward_sweep, push_direction
from archimedes.graph.derivatives.sparsity import through
from archimedes.graph.dtypes import is_float
from archimedes.graph.formulas import Emit
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Directions, Tangents


def move(g: Graph, field: Graph, a: int, b: int, x: Sequence[int], p: Sequence[int]) -> list[int]:
    """Return the ids of the state x at time a, moved along the flow to time b, equal to a."""
    rule = _Move(field)
    body = Graph.with_inputs(g.dtype[i] for i in (a, b, *x, *p))
    body.outputs = body.inputs[2 : 2 + rule.size]
    return g.region(Call([a, b, *x, *p], body, rule)).tolist()


def cross(
    g: Graph,
    field: Graph,
    guard: Graph,
    a: int,
    x: Sequence[int],
    p: Sequence[int],
    q: Sequence[int],
) -> int:
    """Return the id of the time of an event on the solution through x at time a, equal to a."""
    body = Graph.with_inputs(g.dtype[i] for i in (a, *x, *p, *q))
    body.outputs = body.inputs[:1]
    return int(g.region(Call([a, *x, *p, *q], body, _Cross(field, guard)))[0])


def _sum_of_products(g: Graph, left: Sequence[int], right: Sequence[int | None]) -> int | None:
    total = None
    for i, j in zip(left, right):
        if j is not None:
            e = Emit(g, g.dtype[j])
            term = e.mul(i, j)
            total = term if total is None else e.add(total, term)
    return total


class _Move:
    """The derivative of ``move``. Inputs: a, b, x (n), p."""

    name = "a solution moved in time"

    def __init__(self, field: Graph) -> None:
        self.field = field
        self.size = len(field.outputs)

    def pattern(self, sets: list[int]) -> list[int]:
        """Return what each output depends on: all that the solution does, were b not a."""
        n = self.size
        time, state, p = sets[0] | sets[1], sets[2 : 2 + n], sets[2 + n :]
        while True:
            slopes = through(self.field, [time, *state, *p])
            grown = [mine | time | slope for mine, slope in zip(state, slopes)]
            if grown == state:
                return state
            state = grown

    def _slope(self, g: Graph, t: int, x: Sequence[int], p: Sequence[int]) -> list[int]:
        return inline(g, self.field, [t, *x, *p])

    def forward(self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[Row]) -> list[Row]:
        n = self.size
        a, b, *rest = inputs.tolist()
        x, p = rest[:n], rest[n:]
        results: list[Row] = [[None] * n for _ in rows]
        starts = {}
        for d, row in enumerate(rows):
            if any(i is not None for i in (row[0], *row[2:])):
                starts[d] = self._start(g, a, x, p, row)
        if starts:
            tangents = by_value([(d, rows[d][2 + n :]) for d in starts], len(p))
            for d, v in self._variation(g, a, b, x, p, starts, tangents).items():
                results[d] = list(v)
        for d, row in enumerate(rows):
            if row[1] is not None:
                e = Emit(g, g.dtype[row[1]])
                terms = [e.mul(s, row[1]) for s in self._slope(g, b, outs.tolist(), p)]
                pairs = zip(results[d], terms)
                results[d] = [term if i is None else e.add(i, term) for i, term in pairs]
        return results

    def _start(self, g: Graph, a: int, x: list[int], p: list[int], row: Row) -> list[int]:
        """Return v(a) = dx - f(a, x) da."""
        da, dx = row[0], row[2 : 2 + self.size]
        start = [g.const(0.0, g.dtype[i]) if v is None else v for i, v in zip(x, dx)]
        if da is None:
            return start
        e = Emit(g, g.dtype[da])
        return [e.sub(v, e.mul(s, da)) for v, s in zip(start, self._slope(g, a, x, p))]

    def _variation(
        self,
        g: Graph,
        a: int,
        b: int,
        x: list[int],
        p: list[int],
        starts: dict[int, list[int]],
        tangents: Tangents,
    ) -> dict[int, list[int]]:
        """Return v(b) for each direction, from the larger system (x, v)."""
        n, m = self.size, len(p)
        states = [(k, d) for d in starts for k in range(n)]
        others = bodies.pairs_of(tangents)
        pairs = [*((1 + k, d) for k, d in states), *((1 + n + k, d) for k, d in others)]
        body = bodies.tangent_body(self.field, pairs).with_pairs(states)
        order = bodies.interleave([1 + n, m], [len(states), len(others)])
        larger = bodies.permute_body(body, order, range(n + len(states)))
        v = [i for start in starts.values() for i in start]
        moved = move(g, larger, a, b, [*x, *v], [*p, *bodies.ids_of(tangents, others)])
        return {d: moved[n * (1 + k) : n * (2 + k)] for k, d in enumerate(starts)}

    def reverse(self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[Row]) -> list[Row]:
        n = self.size
        a, b, *rest = inputs.tolist()
        x, p = rest[:n], rest[n:]
        floats = [k for k, i in enumerate(p) if is_float(g.dtype[i])]
        back = self._backwards(floats)
        at_a, at_b = self._slope(g, a, x, p), self._slope(g, b, outs.tolist(), p)
        sums = [g.const(0.0, g.dtype[p[k]]) for k in floats]
        results: list[Row] = []
        for row in rows:
            w = [g.const(0.0, g.dtype[i]) if j is None else j for i, j in zip(x, row)]
            moved = move(g, back, b, a, [*outs.tolist(), *w, *sums], p)
            dx, dp = moved[n : 2 * n], dict(zip(floats, moved[2 * n :]))
            da = _sum_of_products(g, at_a, dx)
            assert da is not None
            from_a = Emit(g, g.dtype[da]).neg(da)
            from_b = _sum_of_products(g, at_b, row)
            results.append([from_a, from_b, *dx, *(dp.get(k) for k in range(len(p)))])
        return results

    def _backwards(self, floats: list[int]) -> Graph:
        """Return the field of (x, u, s): the adjoints u of x, the sums s for parameters."""
        n, dtypes = self.size, self.field.input_dtypes
        wanted = [False, *[True] * n, *(is_float(dtype) for dtype in dtypes[1 + n :])]
        pairs = [*((1 + k, 0) for k in range(n)), *((1 + n + k, 0) for k in floats)]
        swept = bodies.adjoint_body(self.field, [(k, 0) for k in range(n)], wanted)
        sums = [dtypes[1 + n + k] for k in floats]
        states = [*dtypes[: 1 + n], *self.field.output_dtypes, *sums]
        g = Graph.with_inputs([*states, *dtypes[1 + n :]])
        own, u = [*g.inputs[: 1 + n], *g.inputs[len(states) :]], g.inputs[1 + n : 1 + 2 * n]
        bars = inline(g, swept.with_pairs(pairs), [*own, *u])
        slopes = inline(g, self.field, own)
        g.outputs = [*slopes, *(Emit(g, g.dtype[i]).neg(i) for i in bars)]
        return prune(g)


class _Cross:
    """The derivative of ``cross``. Inputs: a, x (n), p, q."""

    name = "the time of an event"
    reverse = None

    def __init__(self, field: Graph, guard: Graph) -> None:
        self.field, self.guard = field, guard
        self.size = len(field.outputs)
        self.params = len(field.inputs) - 1 - self.size
        used = set(guard.live())
        self.reads = [k for k, i in enumerate(guard.inputs) if i in used]

    def pattern(self, sets: list[int]) -> list[int]:
        """Return what the time depends on: all that the guard reads, smoothly or not."""
        cut = 1 + self.size + self.params
        state = _Move(self.field).pattern([sets[0], 0, *sets[1:cut]])
        of_guard = [sets[0], *state, *sets[cut:]]
        return [reduce(or_, (of_guard[k] for k in self.reads), 0)]

    def forward(self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: list[Row]) -> list[Row]:
        n, cut = self.size, 1 + self.size + self.params
        a, *rest = inputs.tolist()
        x, p, q = rest[:n], rest[n : cut - 1], rest[cut - 1 :]
        t = int(outs[0])
        y = move(g, self.field, a, t, x, p)
        along = [[row[0], None, *row[1:cut]] for row in rows]
        moved = _Move(self.field).forward(g, np.array([a, t, *x, *p]), np.array(y), along)
        of_q = enumerate(row[cut:] for row in rows)
        seeds = [{}, *by_value(enumerate(moved), n), *by_value(of_q, len(q))]
        _, (changes,) = forward_sweep(g, self.guard, [t, *y, *q], seeds)
        sums: Directions = {}
        for k in self.reads:
            for d, i in seeds[k].items():
                sums[d] = add_values(g, sums[d], i) if d in sums else i
        e = Emit(g, g.dtype[t])
        rate = self._rate(g, t, y, p, q)
        # Where g only touches zero, or is a comparison made a number, all that moves what it
        # reads moves the time by an unknown amount.
        unknown = e.where(e("eq", rate, e.c(0.0)), e.c(np.nan), e.c(0.0))
        results: list[Row] = [[None] for _ in rows]
        for d, total in sums.items():
            step = e.mul(unknown, total)
            change = changes.get(d)
            results[d] = [step if change is None else e.sub(step, e.div(change, rate))]
        return results

    def _rate(self, g: Graph, t: int, y: list[int], p: list[int], q: list[int]) -> int:
        """Return dg/dt along the solution."""
        slope = inline(g, self.field, [t, *y, *p])
        tangents = dict(enumerate([g.const(1.0, g.dtype[t]), *slope]))
        return push_direction(g, self.guard, [t, *y, *q], tangents)[1][0]
