"""Runs of double arithmetic as tables of steps: a bytecode, which one function carries out.

Where doubles are calculated by software, an addition in the text is some 14 bytes of code: operands
are loaded, a function is called, the result is stored. As a row of a table it is 4: the operation,
and three elements of an array. What is computed, and in which order, is the same. The function is
``arc_steps`` (``text/steps.c``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.nests import Walk, loop_along
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Binding, Location, Scope, stays_in_place
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import BLOCK, CODES, CONST, ELEMENT, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest
from archimedes.graph.regions.block_regions import Affine, Gather, row_major

if TYPE_CHECKING:
    from archimedes.backends.c.c99 import C99
    from archimedes.backends.c.c_functions import Function


_ADD, _SUB, _MUL, _DIV, _NEG = (CODES[name] for name in ("add", "sub", "mul", "div", "neg"))
#: What a step does with its operands: bits that say to multiply them, to change the sign, to add
#: the first one, or what is in the element of the result; or to divide.
_PRODUCT, _MINUS, _SUM, _CHANGE, _QUOTIENT = 1, 2, 4, 8, 16
_NUMBERS = {
    _ADD: _SUM,
    _SUB: _SUM | _MINUS,
    _MUL: _PRODUCT,
    _NEG: _MINUS,
    _DIV: _QUOTIENT,
}
#: Shorter runs are written as statements.
SHORTEST = 8
#: Elements that a byte can number.
ELEMENTS = 256


def is_step(g: Graph, i: int) -> bool:
    """Return whether a node can be a step."""
    return g.op[i] in _NUMBERS and g.dtype[i] == F64


def runs_of(g: Graph, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield the nodes of arithmetic that follow each other, where they are many."""
    computed = (i for i in order if not (g.op[i] == ELEMENT and stays_in_place(g, i)))
    for is_arithmetic, nodes in groupby(computed, lambda i: is_step(g, i)):
        run = list(nodes)
        if is_arithmetic and len(run) >= SHORTEST:
            yield run


def in_long_runs(g: Graph, plan: Schedule) -> Schedule:
    """Return an order in which arithmetic follows arithmetic: behind other scalars, then regions.

    Otherwise it is that of the plan.
    """
    position = {i: k for k, i in enumerate(plan.order)}
    sorter = TopologicalSorter[int]()
    for i in plan.order:
        sources = [g.a[i]] if g.op[i] == OUT else [j for j in g.operands(i) if j in position]
        sorter.add(i, *sources)

    def rank(i: int) -> tuple[int, int, int]:
        if g.op[i] in (OUT, ELEMENT, BLOCK):
            return 0, position[i], i
        return 3 if g.op[i] == REGION else 2 if is_step(g, i) else 1, position[i], i

    sorter.prepare()
    ready: list[tuple[int, int, int]] = []
    order: list[int] = []
    while sorter.is_active():
        for i in sorter.get_ready():
            heappush(ready, rank(i))
        *_, i = heappop(ready)
        order.append(i)
        sorter.done(i)
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


def _fuse_steps(
    g: Graph, run: Sequence[int], results: set[int], inner: Counter[int]
) -> list[_Step]:
    """Return the steps of a run: products go with what alone reads them, a sum or a sign.

    The other operand of the sum is changed by such a step: it must be one that nothing reads later.
    """
    mine = set(run)
    last = {j: i for i in run for j in g.operands(i) if j in mine}

    def once(j: int) -> bool:
        return j in mine and inner[j] == 1 and j not in results

    def ends(j: int, i: int) -> bool:
        return j in mine and j not in results and last[j] == i

    fused: dict[int, _Step] = {}
    products: set[int] = set()
    for i in run:
        x, y = _two(g, i)
        if g.op[i] == _NEG and once(x) and g.op[x] == _MUL:
            a, b = g.operands(x)
            fused[i] = _Step(_PRODUCT | _MINUS, i, -1, (a, b))
            products.add(x)
        orders = {_ADD: [(x, y), (y, x)], _SUB: [(x, y)]}.get(g.op[i], [])
        for base, product in orders:
            if not (once(product) and g.op[product] == _MUL and ends(base, i)):
                continue
            a, b = g.operands(product)
            if base not in (a, b) and base not in products and product not in products:
                number = _PRODUCT | _NUMBERS[g.op[i]] | _CHANGE
                fused[i] = _Step(number, i, base, (a, b))
                products.add(product)
                break
    others = [i for i in run if i not in products]
    return [fused.get(i, _Step(_NUMBERS[g.op[i]], i, -1, _two(g, i))) for i in others]


class Layout:
    """The elements of a run: its inputs, results that are read elsewhere, and all between.

    ``rows`` are its steps: number, element of the result, elements of two operands.
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
        self.outer, self.bindings = outer, [bound[j] for j in outer]
        element = {j: k for k, j in enumerate(outer)}
        results = [i for i in run if uses[i] > inner[i]]
        results.sort(key=lambda i: sort_key(goals.get(i, ())))
        self.results = {i: len(outer) + k for k, i in enumerate(results)}
        self.size = len(outer) + len(results)
        self.rows: list[tuple[int, int, int, int]] = []
        self._assign_elements(_fuse_steps(g, run, set(results), inner), element)

    def call(self, c: C99, f: Function, w: Location) -> None:
        """Write the call that carries out the steps."""
        table = c.tables.bytes_of([x for row in self.rows for x in row])
        f.line(f"arc_steps({w.array.base}, {table}, {len(self.rows)});")

    def _assign_elements(self, steps: Sequence[_Step], element: dict[int, int]) -> None:
        """Assign elements to what only this run reads, and again when they are free."""
        fixed = set(element) | set(self.results)
        left = Counter(j for step in steps for j in {*step.reads, step.base})
        # What is changed step by step begins where it ends.
        goal = {step.node: step.node for step in steps}
        for step in reversed(steps):
            if step.base >= 0:
                goal[step.base] = goal[step.node]
        free: list[int] = []
        for number, i, base, reads in steps:
            a, b = (element[j] for j in reads)
            for j in {*reads, base}:
                left[j] -= 1
                if j >= 0 and j != base and j not in fixed and not left[j]:
                    free.append(element[j])
            if base >= 0:
                element[i] = element[base]
            elif goal[i] in self.results:
                element[i] = self.results[goal[i]]
            else:
                element[i] = free.pop() if free else self.size
                self.size = max(self.size, element[i] + 1)
            self.rows.append((number, element[i], a, b))


def _position(binding: Binding) -> tuple[int, str, int]:
    """Return the key that sorts inputs: constants, neighbours in memory in order, names."""
    if binding.constant is not None:
        return 0, "", 0
    if binding.location is not None:
        return 1, repr(binding.location.array), binding.location.offset
    return 2, "", 0


def sort_key(locations: Sequence[Location]) -> tuple[str, int]:
    """Return a key by which neighbours in memory follow each other."""
    return (repr(locations[0].array), locations[0].offset) if locations else ("", 0)


class Steps:
    """The runs in the nodes of a scope; ``uses`` counts the readers of each node."""

    def __init__(self, c: C99, scope: Scope, order: Sequence[int], uses: Counter[int]) -> None:
        self.c, self.scope, self.uses = c, scope, uses
        self.runs = {run[0]: run for run in runs_of(scope.graph, order)}
        #: Nodes that only the steps of their own run read.
        self.inside: set[int] = set()

    def begin(self, i: int) -> bool:
        """Write the run that begins with a node; return whether there is one."""
        run = self.runs.pop(i, ())
        for part in self._parts(run) if run else ():
            self._write(part)
        return bool(run)

    def _parts(self, run: Sequence[int]) -> Iterator[list[int]]:
        """Cut a run into pieces for which there are enough elements."""
        if self._layout(run).size <= ELEMENTS:
            yield list(run)
            return
        half = len(run) // 2
        yield from self._parts(run[:half])
        yield from self._parts(run[half:])

    def _write(self, run: Sequence[int]) -> None:
        c, scope = self.c, self.scope
        f = scope.f
        layout = self._layout(run)
        w = c.array(f, F64, layout.size)
        _copy(c, f, [(w.at(k), binding) for k, binding in enumerate(layout.bindings)])
        layout.call(c, f, w)
        copies = []
        for i in run:
            if i not in layout.results:
                self.inside.add(i)
                continue
            here = w.at(layout.results[i])
            scope.names[i] = c.load(f, here)
            copies += [(to, Binding(location=here)) for to in scope.waiting.pop(i, ())]
        _copy(c, f, sorted(copies, key=lambda pair: sort_key([pair[0]])))

    def _layout(self, run: Sequence[int]) -> Layout:
        scope = self.scope
        return Layout(scope.graph, run, self.uses, lambda j: _binding(scope, j), scope.waiting)


def _copy(c: C99, f: Function, copies: Sequence[tuple[Location, Binding]]) -> None:
    """Copy values; those that lie so far apart where they are, and where they go to, by a loop."""
    k = 0
    while k < len(copies):
        end, apart = k + 1, (0, 0)
        while end < len(copies):
            distance = _apart(copies[end - 1], copies[end])
            if min(distance) < 1 or (end > k + 1 and distance != apart):
                break
            end, apart = end + 1, distance
        (to, source), count = copies[k], end - k
        if count < c.run or source.location is None or apart == (1, 1):
            end = end if count >= c.run else k + 1
            copy_all(c, f, copies[k:end])
        else:
            with c.for_loop(f, count) as loop:
                start = c.advance(f, source.location, loop.counter, apart[1])
                c.store(f, c.advance(f, to, loop.counter, apart[0]), c.load(f, start))
        k = end


def _apart(copy: tuple[Location, Binding], other: tuple[Location, Binding]) -> tuple[int, int]:
    """Return how far behind one copy another one writes and reads; 0 where that is no number."""
    (to, source), (to2, source2) = copy, other
    if to.array != to2.array:
        return 0, 0
    if source.constant is not None and source2.constant is not None:
        return to2.offset - to.offset, 1
    first, second = source.location, source2.location
    if first is None or second is None or first.array != second.array:
        return 0, 0
    return to2.offset - to.offset, second.offset - first.offset


def nest_in_steps(c: C99, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
    """Write a loop whose body is a table of steps, if it is such a loop."""
    body = region.body
    run = [i for i in body.live() if body.op[i] not in (CONST, INPUT)]
    gathers = any(isinstance(read, Gather) for read in region.reads)
    if region.combine or region.indexed or gathers or len(run) < SHORTEST:
        return False
    if not all(is_step(body, i) for i in run):
        return False
    nest = _Nest(c, scope, region, outs, run)
    if nest.layout({}).size > ELEMENTS:
        return False
    nest.write()
    return True


class _Nest:
    """A loop over a table of steps.

    What is the same at all points is put into the elements of the steps once, in front of it.
    """

    def __init__(
        self, c: C99, scope: Scope, region: Nest, outs: Sequence[int], run: Sequence[int]
    ) -> None:
        self.c, self.scope, self.region, self.outs, self.run = c, scope, region, outs, run
        body = region.body
        self.bindings = dict(zip(body.inputs, scope.bindings(region.inputs.tolist())))
        self.reads = dict(zip(body.inputs, region.reads))
        self.wanted = [body.outputs[k] for k in scope.numbers(outs)]
        self.uses = Counter(self.wanted)
        for i in run:
            self.uses.update(body.operands(i))

    def layout(self, goals: Mapping[int, Sequence[Location]]) -> Layout:
        """Return the elements of the steps."""
        return Layout(self.region.body, self.run, self.uses, self._binding, goals)

    def _binding(self, j: int) -> Binding:
        """Return what a node that is no step is, at the first point."""
        body = self.region.body
        if j not in self.bindings:
            return Binding(constant=(body.value[j], body.dtype[j]))
        walk = self._walk(j)
        return self.bindings[j] if walk is None else Binding(location=walk.location)

    def _walk(self, j: int) -> Walk | None:
        """Return how an input of the body moves along the axes; None if it is always the same."""
        read = self.reads.get(j)
        if not isinstance(read, Affine):
            return None
        return Walk(self.bindings[j].memory.at(read.offset), read.strides)

    def write(self) -> None:
        c, scope, shape = self.c, self.scope, self.region.shape
        f = scope.f
        to = [scope.new_block(i) for i in self.outs]
        layout = self.layout({i: [location] for i, location in zip(self.wanted, to)})
        w = c.array(f, F64, layout.size)
        inputs = {j: walk for j in self.bindings if (walk := self._walk(j)) is not None}
        elements = [(w.at(k), j) for k, j in enumerate(layout.outer)]
        _copy(c, f, [(at, self._binding(j)) for at, j in elements if j not in inputs])
        strides = row_major(shape)
        walks = list(inputs.values())
        for i, location in zip(self.outs, to):
            walks.append(Walk(location, tuple(scope.stride(i) * n for n in strides)))
        with ExitStack() as loops:
            for axis, length in enumerate(shape):
                _, walks = loops.enter_context(loop_along(c, f, length, walks, axis))
            here = {j: Binding(location=walk.location) for j, walk in zip(inputs, walks)}
            _copy(c, f, [(at, here[j]) for at, j in elements if j in inputs])
            layout.call(c, f, w)
            here |= {i: Binding(location=w.at(k)) for i, k in layout.results.items()}
            copies = [
                (walk.location, here.get(i) or self._binding(i))
                for i, walk in zip(self.wanted, walks[len(inputs) :])
            ]
            _copy(c, f, sorted(copies, key=lambda pair: sort_key([pair[0]])))


def _binding(scope: Scope, j: int) -> Binding:
    g = scope.graph
    if g.op[j] == ELEMENT and j not in scope.bound and j not in scope.names:
        return Binding(location=scope.block(g.a[j]).at(g.value[g.b[j]]))
    return scope.binding(j)
