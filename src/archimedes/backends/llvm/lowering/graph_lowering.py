"""Graph to instructions: nodes in order, in one function or cut into several.

A graph is lowered in a scope: a function being written, the bindings of the graph's inputs, and
what is known of each node so far. Large graphs are cut into functions of a bounded number of
operations, because LLVM takes longer than linear in the length of a function; values that cross
a cut live in the frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from types import MappingProxyType

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.copies import arrays, copy_all
from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.lookups import lookup
from archimedes.backends.llvm.lowering.memory import Binding, Location
from archimedes.backends.llvm.lowering.scope import Reach, Scope
from archimedes.backends.llvm.runtime.hosting import HostCall
from archimedes.backends.schedule import Schedule, cost, schedule
from archimedes.graph.ops import TABLE
from archimedes.graph.program import INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Switch

__all__ = ["IN_REGISTERS", "PARAMETERS", "PART", "Lowering"]

#: Operations a function, unless a caller says otherwise.
PART = 1500
#: Bodies of at least this cost that occur more than once become functions.
SHARED = 24
#: More results than this of a region stay in memory.
IN_REGISTERS = 64

PARAMETERS = "ptr %frame, ptr %in, ptr %out"

_ARITY = tuple(op.arity for op in TABLE)
_LOWER = tuple(LOWERING.get(op.name) for op in TABLE)

Store = tuple[int, Location]
NOTHING: Mapping[int, Binding] = MappingProxyType({})


class Lowering:
    """The state shared by all graphs of a module."""

    def __init__(self, module: Module, graph: Graph, part: int = PART) -> None:
        self.module = module
        self.part = part
        self.costs: dict[int, int] = {}
        self.hosts: list[HostCall] = []
        self._shared: dict[str, tuple[str, list[Location], list[Location]]] = {}
        self._uses: Counter[str] = Counter()
        self._count_uses(graph)
        self._wide: dict[str, Lowering] = {}

    def wide(self, body: Graph) -> Lowering:
        """Return the lowering of a body in functions of vectors."""
        found = self._wide.get(body.digest())
        if found is None:
            found = self._wide[body.digest()] = Lowering(self.module.wide, body, self.part)
        return found

    def _count_uses(self, g: Graph) -> None:
        for i in g.live():
            region = g.regions.get(i)
            if region is None:
                continue
            for body in region.bodies:
                if isinstance(region, (Call, Switch)):
                    self._uses[body.digest()] += 1
                    if self._uses[body.digest()] > 1:
                        continue
                self._count_uses(body)

    def cost(self, g: Graph) -> int:
        """Return the operations in a graph, bodies included."""
        return cost(g, self.costs)

    def lower(
        self,
        f: Function,
        g: Graph,
        given: Sequence[Binding],
        wanted: Sequence[int] = (),
        stores: Sequence[Store] = (),
        known: Mapping[int, Binding] = NOTHING,
    ) -> list[Binding]:
        """Compute a graph: put values where ``stores`` says and return those ``wanted``.

        ``known`` binds nodes that have been computed elsewhere, at places all functions know.
        """
        whole = self.cost(g) <= self.part
        # In parts, values that live longer would go through the frame.
        plan = schedule(g, [*(i for i, _ in stores), *wanted], known, spread=whole)
        if not whole:
            return self._in_parts(f, g, plan, given, wanted, stores, known)
        scope = Scope(f, g, given, plan.outs, dict(known))
        waiting = _by_id(stores)
        self._spine(scope, plan.order, waiting, frozenset())
        copy_all(f, [(to, scope.binding(i)) for i, to in stores if i in waiting])
        return [scope.binding(i) for i in wanted]

    def _spine(
        self,
        scope: Scope,
        order: Sequence[int],
        waiting: dict[int, list[Location]],
        keep: Set[int],
    ) -> None:
        """Lower nodes in order.

        Values in registers that wait to be stored are stored at once, and leave ``waiting``;
        those to keep for other functions get a place in the frame.
        """
        from archimedes.backends.llvm.lowering.regions import REGIONS

        f, g = scope.f, scope.graph
        op, a, b, c, dtype = g.op, g.a, g.b, g.c, g.dtype
        operand, names = scope.operand, scope.names
        for i in order:
            code = op[i]
            arity = _ARITY[code]
            lower = _LOWER[code]
            if lower is not None:
                if arity == 2:
                    names[i] = lower(f, dtype[b[i]], operand(a[i]), operand(b[i]))
                elif arity == 1:
                    names[i] = lower(f, dtype[a[i]], operand(a[i]))
                else:
                    x, y, z = operand(a[i]), operand(b[i]), operand(c[i])
                    names[i] = lower(f, dtype[c[i]], x, y, z)
            elif code == REGION:
                region = g.regions[i]
                REGIONS[type(region)](self, scope, region, scope.outs.get(i, []))
            elif code == LOOKUP:
                names[i] = lookup(f, g.tables[b[i]], dtype[i], operand(a[i]))
            if i in names:
                if i in waiting:
                    for to in waiting.pop(i):
                        f.store(to, names[i])
                if i in keep:
                    place = self.module.frame.array(dtype[i])
                    f.store(place, names[i])
                    scope.bound[i] = Binding(location=place)

    def _in_parts(
        self,
        f: Function,
        g: Graph,
        plan: Schedule,
        given: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store],
        known: Mapping[int, Binding],
    ) -> list[Binding]:
        chunks = self._cut(g, plan.order)
        keep = _crossing(g, chunks, wanted)
        reach = Reach(f)
        inputs = list(given)
        for k in _inputs_read(g, plan.order):
            inputs[k] = reach.binding(given[k], g.dtype[g.inputs[k]])
        waiting = _by_id([(i, reach.location(to)) for i, to in stores])
        bound = dict(known)
        for chunk in chunks:
            with self.function("part") as part:
                self._spine(Scope(part, g, inputs, plan.outs, bound), chunk, waiting, keep)
            f.line(f"call void {part.name}(ptr %frame, ptr %in, ptr %out)")
        scope = Scope(f, g, given, plan.outs, bound)
        copy_all(f, [(to, scope.binding(i)) for i, to in stores if i in waiting])
        return [scope.binding(i) for i in wanted]

    def _cut(self, g: Graph, order: Sequence[int]) -> list[list[int]]:
        """Cut a schedule into pieces of about equal cost; outputs stay with their region."""
        chunks: list[list[int]] = []
        room = 0
        for i in order:
            price = 1
            if g.op[i] == OUT:
                price = 0
            elif g.op[i] == REGION:
                bodies = (b for b in g.regions[i].bodies if not self.is_shared(b))
                price += sum(c for c in map(self.cost, bodies) if c <= self.part)
            if price > 0 and price > room:
                chunks.append([])
                room = self.part
            chunks[-1].append(i)
            room -= price
        return chunks

    @contextmanager
    def function(self, stem: str) -> Iterator[Function]:
        """Write a function of the frame and the arrays of the call."""
        name = self.module.fresh(stem)
        f = Function(self.module, f"define internal void {name}({PARAMETERS})")
        f.name = name
        yield f
        f.finish()

    # ---- bodies used more than once ----------------------------------------------------

    def is_shared(self, body: Graph) -> bool:
        """Tell whether a body of a ``Call`` or ``Switch`` is a function of its own."""
        return self._uses[body.digest()] > 1 and self.cost(body) >= SHARED

    def call(
        self, f: Function, body: Graph, given: Sequence[Binding], wanted: Sequence[int]
    ) -> list[Binding]:
        """Compute outputs (by number) of a body, through its function if it is a shared one."""
        if not self.is_shared(body):
            return self.lower(f, body, given, [body.outputs[k] for k in wanted])
        known = self._shared.get(body.digest())
        if known is None:
            known = self._shared[body.digest()] = self._write_shared(f, body)
        name, arguments, results = known
        live = set(body.live())
        used = [k for k, i in enumerate(body.inputs) if i in live]
        copy_all(f, [(arguments[k], given[k]) for k in used])
        f.line(f"call void {name}(ptr %frame, ptr %in, ptr %out)")
        # The next call overwrites the results: take them along.
        if len(wanted) <= IN_REGISTERS:
            return [Binding(operand=f.load(results[k])) for k in wanted]
        own = arrays(f, [results[k].dtype for k in wanted])
        copy_all(f, [(to, Binding(location=results[k])) for to, k in zip(own, wanted)])
        return [Binding(location=to) for to in own]

    def _write_shared(self, f: Function, body: Graph) -> tuple[str, list[Location], list[Location]]:
        arguments = arrays(f, body.input_dtypes)
        results = arrays(f, body.output_dtypes)
        with self.function("shared") as part:
            given = [Binding(location=place) for place in arguments]
            self.lower(part, body, given, stores=list(zip(body.outputs, results)))
        return part.name, arguments, results


def _by_id(stores: Sequence[Store]) -> dict[int, list[Location]]:
    waiting: dict[int, list[Location]] = {}
    for i, to in stores:
        waiting.setdefault(i, []).append(to)
    return waiting


def _crossing(g: Graph, chunks: Sequence[Sequence[int]], wanted: Sequence[int]) -> set[int]:
    """Return the nodes that are read in another chunk than their own, or after all of them."""
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    crossing = {i for i in wanted if i in home}
    for k, chunk in enumerate(chunks):
        for i in chunk:
            if g.op[i] != OUT:
                crossing.update(j for j in g.operands(i) if home.get(j, k) != k)
    return crossing


def _inputs_read(g: Graph, order: Sequence[int]) -> list[int]:
    """Return the numbers of the inputs that the nodes read."""
    read = {j for i in order if g.op[i] != OUT for j in g.operands(i)}
    return sorted(g.a[j] for j in read if g.op[j] == INPUT)
