"""Tables of steps: which nodes they take, in which order, and where each value is meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Binding, Location, stays_in_place
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import BLOCK, CODES, ELEMENT, OUT, REGION
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.c.c99 import C99

__all__ = ["PLACES", "SHORTEST", "Layout", "in_long_runs", "is_step", "place_order", "runs_of"]

_ADD, _SUB, _MUL, _DIV, _NEG = (CODES[name] for name in ("add", "sub", "mul", "div", "neg"))
#: What a step does with its operands: bits that say to multiply them, to change the sign, to add
#: what is there, namely in the place of the result; or to divide.
_PRODUCT, _MINUS, _SUM, _CHANGE, _QUOTIENT = 1, 2, 4, 8, 16
_NUMBERS = {
    _ADD: _SUM,
    _SUB: _SUM | _MINUS,
    _MUL: _PRODUCT,
    _NEG: _MINUS,
    _DIV: _QUOTIENT,
}
#: Shorter runs are written out.
SHORTEST = 8
#: Places that a byte can name.
PLACES = 256


def is_step(g: Graph, i: int) -> bool:
    """Tell whether a node can be a step."""
    return g.op[i] in _NUMBERS and g.dtype[i] == F64


def runs_of(g: Graph, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield the nodes of arithmetic that follow each other, where they are many."""
    run: list[int] = []
    for i in order:
        if is_step(g, i):
            run.append(i)
        elif not (g.op[i] == ELEMENT and stays_in_place(g, i)):
            if len(run) >= SHORTEST:
                yield run
            run = []
    if len(run) >= SHORTEST:
        yield run


def in_long_runs(g: Graph, plan: Schedule) -> Schedule:
    """Return an order in which arithmetic follows arithmetic: behind other scalars, then regions.

    Otherwise it is that of the plan.
    """
    place = {i: k for k, i in enumerate(plan.order)}
    readers: dict[int, list[int]] = {i: [] for i in plan.order}
    missing: dict[int, int] = {}
    for i in plan.order:
        sources = [j for j in set(g.operands(i)) if j in place] if g.op[i] != OUT else [g.a[i]]
        missing[i] = len(sources)
        for j in sources:
            readers[j].append(i)

    def entry(i: int) -> tuple[int, int]:
        if g.op[i] in (OUT, ELEMENT, BLOCK):
            return 0, place[i]
        return 3 if g.op[i] == REGION else 2 if is_step(g, i) else 1, place[i]

    ready = [(*entry(i), i) for i in plan.order if not missing[i]]
    heapify(ready)
    order: list[int] = []
    while ready:
        *_, i = heappop(ready)
        order.append(i)
        for k in readers[i]:
            missing[k] -= 1
            if not missing[k]:
                heappush(ready, (*entry(k), k))
    return Schedule(order, plan.outs)


def _two(g: Graph, i: int) -> tuple[int, int]:
    """Return the operands of a step; one that has one reads it twice."""
    first, *rest = g.operands(i)
    return first, rest[0] if rest else first


class _Step(NamedTuple):
    """A step that makes a node: its number, the node that it changes (or -1), what it reads."""

    number: int
    node: int
    base: int
    reads: tuple[int, int]


def _fused(g: Graph, run: Sequence[int], kept: set[int], inner: Counter[int]) -> list[_Step]:
    """Return the steps of a run: products go with what alone reads them, a sum or a sign.

    The other operand of the sum is changed by such a step: it must be one that nothing reads later.
    """
    mine = set(run)
    last = {j: i for i in run for j in g.operands(i) if j in mine}

    def once(j: int) -> bool:
        return j in mine and inner[j] == 1 and j not in kept

    def ends(j: int, i: int) -> bool:
        return j in mine and j not in kept and last[j] == i

    found: dict[int, _Step] = {}
    products: set[int] = set()
    for i in run:
        x, y = _two(g, i)
        if g.op[i] == _NEG and once(x) and g.op[x] == _MUL:
            a, b = g.operands(x)
            found[i] = _Step(_PRODUCT | _MINUS, i, -1, (a, b))
            products.add(x)
        orders = {_ADD: [(x, y), (y, x)], _SUB: [(x, y)]}.get(g.op[i], [])
        for base, product in orders:
            if not (once(product) and g.op[product] == _MUL and ends(base, i)):
                continue
            a, b = g.operands(product)
            if base not in (a, b) and base not in products and product not in products:
                number = _PRODUCT | _NUMBERS[g.op[i]] | _CHANGE
                found[i] = _Step(number, i, base, (a, b))
                products.add(product)
                break
    steps = []
    for i in run:
        a, b = _two(g, i)
        if i not in products:
            steps.append(found.get(i, _Step(_NUMBERS[g.op[i]], i, -1, (a, b))))
    return steps


class Layout:
    """Places of a run: what it is given, results that are read elsewhere, and all between.

    ``rows`` are its steps: number, place of the result, places of two operands.
    """

    def __init__(
        self,
        g: Graph,
        run: Sequence[int],
        uses: Counter[int],
        binding: Callable[[int], Binding],
        goals: Mapping[int, Sequence[Location]],
    ) -> None:
        mine = set(run)
        inner = Counter(j for i in run for j in g.operands(i) if j in mine)
        outer = list(dict.fromkeys(j for i in run for j in g.operands(i) if j not in mine))
        bound = {j: binding(j) for j in outer}
        outer.sort(key=lambda j: _position(bound[j]))
        self.outer, self.given = outer, [bound[j] for j in outer]
        held = {j: k for k, j in enumerate(outer)}
        kept = [i for i in run if uses[i] > inner[i]]
        kept.sort(key=lambda i: place_order(goals.get(i, ())))
        self.results = {i: len(outer) + k for k, i in enumerate(kept)}
        self.size = len(outer) + len(kept)
        self.rows: list[tuple[int, int, int, int]] = []
        self._place(_fused(g, run, set(kept), inner), held)

    def call(self, c: C99, f: Any, w: Location) -> None:
        """Write the call that carries out the steps."""
        table = c.tables.bytes_of([x for row in self.rows for x in row])
        f.line(f"arc_steps({w.array.base}, {table}, {len(self.rows)});")

    def _place(self, steps: Sequence[_Step], held: dict[int, int]) -> None:
        """Give places to what only this run reads, again when they are free."""
        fixed = set(held) | set(self.results)
        left = Counter(j for step in steps for j in {*step.reads, step.base})
        # What is changed step by step begins where it ends.
        goal = {step.node: step.node for step in steps}
        for step in reversed(steps):
            if step.base >= 0:
                goal[step.base] = goal[step.node]
        free: list[int] = []
        for number, i, base, reads in steps:
            a, b = (held[j] for j in reads)
            for j in {*reads, base}:
                left[j] -= 1
                if j >= 0 and j != base and j not in fixed and not left[j]:
                    free.append(held[j])
            if base >= 0:
                held[i] = held[base]
            elif goal[i] in self.results:
                held[i] = self.results[goal[i]]
            else:
                held[i] = free.pop() if free else self.size
                self.size = max(self.size, held[i] + 1)
            self.rows.append((number, held[i], a, b))


def _position(binding: Binding) -> tuple[int, str, int]:
    """Order what is given: numbers, neighbours in memory one after the other, names."""
    if binding.constant is not None:
        return 0, "", 0
    if binding.location is not None:
        return 1, repr(binding.location.array), binding.location.offset
    return 2, "", 0


def place_order(places: Sequence[Location]) -> tuple[str, int]:
    """Return a key by which neighbours in memory follow each other."""
    return (repr(places[0].array), places[0].offset) if places else ("", 0)
