"""Graph to code: nodes in order, in one function or cut into several.

Bodies of regions stand in the function of their graph, except those that are functions of their
own. A function that is too long is cut into pieces; values that cross a cut live in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.copy_elision import elide_scalar_copies, find_sub_blocks
from archimedes.backends.lowering.dialect import Dialect, Request, Results
from archimedes.backends.lowering.outlining import Sizes, crossing_nodes, inputs_read, shared_slots
from archimedes.backends.lowering.regions import lower_region
from archimedes.backends.lowering.scope import (
    Binding,
    Lifetimes,
    Location,
    Scope,
    Store,
    locations_by_node,
    stays_in_place,
)
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import BLOCK, ELEMENT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

NOTHING: Mapping[int, Any] = MappingProxyType({})


class Lowering:
    """The graphs of one file: what they share, and how they are written in a dialect.

    ``part`` is the number of operations that a function may have.
    """

    def __init__(
        self,
        dialect: Dialect,
        graphs: Sequence[Graph],
        part: int,
        routines: dict[Any, Any] | None = None,
    ) -> None:
        self.dialect = dialect
        self.part = part
        self.sizes = Sizes(graphs, part, dialect.shared)
        self.routines = {} if routines is None else routines

    def is_function(self, region: Region, body: Graph) -> bool:
        """Return whether a body of a region is a function of its own."""
        if self.dialect.large_bodies_are_functions and self.sizes.size(body) > self.part:
            return True
        return self.sizes.is_shared(region, body)

    def block(
        self,
        f: Any,
        region: Region,
        body: Graph,
        arguments: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store] = (),
    ) -> list[Binding]:
        """Compute a body of a region: return ``wanted`` outputs, by number, and store others."""
        if not self.is_function(region, body):
            return self.lower(f, body, arguments, wanted, stores)
        d, key = self.dialect, (body.digest(), self.dialect.form(body, arguments))
        if key not in self.routines:
            self.routines[key] = d.function(self, f, region, body, arguments)
        kinds = body.output_dtypes
        # A function puts all its blocks somewhere, wanted or not.
        blocks = {k: to for k, to in stores if length_of(kinds[k])}
        own = [k for k, kind in enumerate(kinds) if length_of(kind) and k not in blocks]
        blocks |= {k: d.block(f, item_type(kinds[k]), length_of(kinds[k])) for k in own}
        results = Results([*wanted, *(k for k, _ in stores)], blocks)
        values = d.call(f, self.routines[key], arguments, results)
        for k in own:
            if k not in wanted:
                d.release(f, blocks[k])
        self._copy(f, [(to, b, kinds[k]) for (k, to), b in zip(stores, values[len(wanted) :])])
        return values[: len(wanted)]

    def _copy(self, f: Any, copies: Sequence[tuple[Location, Binding, int]]) -> None:
        """Store values of some types at their locations, unless they are there."""
        d = self.dialect
        copies = [(to, b, kind) for to, b, kind in copies if b.location != to]
        copy_all(d, f, [(to, b) for to, b, kind in copies if not length_of(kind)])
        for to, b, kind in copies:
            if length_of(kind):
                d.copy_run(f, to, b.memory, length_of(kind))

    def lower(
        self,
        f: Any,
        g: Graph,
        arguments: Sequence[Binding],
        wanted: Sequence[int] = (),
        stores: Sequence[Store] = (),
        known: Mapping[int, Binding] = NOTHING,
    ) -> list[Binding]:
        """Write a graph into a function: return ``wanted`` outputs, and store others.

        ``known`` binds nodes that have been computed elsewhere, at locations all functions know.
        """
        d = self.dialect
        ids = [g.outputs[k] for k in wanted]
        whole = self.sizes.size(g) <= self.part
        plan = d.order(g, Request([g.outputs[k] for k, _ in stores], ids, known, whole))
        pieces = [plan.order] if whole else self.sizes.cut_schedule(g, plan.order)
        crossing = {} if whole else self._crossing_locations(f, g, pieces, ids)
        inputs, waiting = list(arguments), locations_by_node(g, stores)
        if not whole:
            reach = d.reach(f)
            for k in inputs_read(g, plan.order):
                inputs[k] = reach.binding(arguments[k], g.dtype[g.inputs[k]])
            waiting = locations_by_node(g, [(k, reach.location(to)) for k, to in stores])
        foreign = [b.location for b in inputs if b.location is not None]
        lifetimes = Lifetimes(g, plan.order, [*ids, *waiting], foreign)
        bound = dict(known)
        scope = d.scope(d, f, g, arguments, plan.outs, bound, waiting, lifetimes)
        if whole:
            scope.sub_blocks = find_sub_blocks(g, plan.order, [*ids, *waiting], d.apart)
            if d.apart:
                elide_scalar_copies(scope, plan.order)
            self._write_nodes(scope, plan.order, crossing, ids)
        for number, piece in enumerate(() if whole else pieces):
            with d.part(f, number + 1) as part:
                inner = d.scope(d, part, g, inputs, plan.outs, bound, waiting, lifetimes)
                self._write_nodes(inner, piece, crossing)
        # Locations that nothing has been stored to so far.
        left = [(to, g.outputs[k]) for k, to in stores if g.outputs[k] in waiting]
        left = [(to, i) for to, i in left if not length_of(g.dtype[i]) or to in waiting[i]]
        self._copy(f, [(to, scope.binding(i), g.dtype[i]) for to, i in left])
        return scope.bindings(ids)

    def _crossing_locations(
        self, f: Any, g: Graph, pieces: Sequence[Sequence[int]], wanted: Sequence[int]
    ) -> dict[int, Location]:
        """Reserve memory for the values that cross from one piece to another."""
        crossing = crossing_nodes(g, pieces, wanted)
        slots = shared_slots(g, pieces, crossing, wanted)
        dtypes = dict(sorted((slot, g.dtype[i]) for i, slot in zip(crossing, slots)))
        locations = arrays(self.dialect, f, list(dtypes.values()))
        return {i: locations[slot] for i, slot in zip(crossing, slots)}

    def _write_nodes(
        self,
        scope: Scope,
        order: Sequence[int],
        crossing: Mapping[int, Location],
        wanted: Sequence[int] = (),
    ) -> None:
        """Write nodes in order.

        Values that wait to be stored are stored at once, and leave ``scope.waiting``; those in
        ``crossing`` are stored for other functions.
        """
        d, f, g = self.dialect, scope.f, scope.graph
        op, names, waiting = g.op, scope.names, scope.waiting
        write = d.nodes(self, scope, order, [*wanted, *crossing, *waiting])
        blocks = scope.lifetimes.active
        for i in order:
            code = op[i]
            if code == REGION:
                d.note(f, g, i)
                lower_region(self, scope, g.regions[i], scope.outs.get(i, []))
                name = None
            elif blocks and code in (BLOCK, ELEMENT):
                name = self._write_block_node(scope, i)
            else:
                name = names.get(i) if code == OUT else write(i)
            if blocks:
                for location in scope.lifetimes.end_node(i):
                    d.release(f, location)
            if name is None:
                continue
            names[i] = name
            if i in waiting:
                for to in waiting.pop(i):
                    d.store(f, to, name)
            if i in crossing:
                d.store(f, crossing[i], name)
                scope.bound[i] = Binding(location=crossing[i])

    def _write_block_node(self, scope: Scope, i: int) -> str | None:
        """Bind a block that is a table, or an element of a block; return its operand if it has one.

        An element at a known index stays where it is.
        """
        d, f, g = self.dialect, scope.f, scope.graph
        if g.op[i] == ELEMENT and not stays_in_place(g, i):
            block, length = scope.block(g.a[i]), length_of(g.dtype[g.a[i]])
            return d.element(f, block, length, scope.operand(g.b[i]))
        if g.op[i] == BLOCK:
            location = d.constant_block(f, g.tables[g.b[i]], item_type(g.dtype[i]))
        else:
            location = scope.block(g.a[i]).at(g.value[g.b[i]])
        scope.bound[i] = Binding(location=location)
        return None
