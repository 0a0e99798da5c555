"""Graph to code: nodes in order, in one function or cut into several.

Bodies of regions are blocks in the function of their graph, except those that are functions of
their own. A function that is too long is cut into parts; values that cross a cut live in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.copy_elision import await_numbers, homes
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.outlining import Sizes, crossing_nodes, inputs_read, shared_slots
from archimedes.backends.lowering.regions import lower_region
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import (
    Binding,
    Lifetimes,
    Location,
    Scope,
    Store,
    places_by_id,
    stays_in_place,
)
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import BLOCK, ELEMENT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

__all__ = ["Lowering"]

NOTHING: Mapping[int, Binding] = MappingProxyType({})


class Lowering:
    """The graphs of one file: what they share, and how they are written in a dialect."""

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
        """Tell whether a body of a region is a function of its own."""
        if self.dialect.large_bodies_are_functions and self.sizes.size(body) > self.part:
            return True
        return self.sizes.is_shared(region, body)

    def block(
        self,
        f: Any,
        region: Region,
        body: Graph,
        given: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store] = (),
    ) -> list[Binding]:
        """Compute a body of a region: return outputs (by number) and put some into places."""
        if not self.is_function(region, body):
            return self.lower(f, body, given, wanted, stores)
        d, key = self.dialect, (body.digest(), self.dialect.form(body, given))
        if key not in self.routines:
            self.routines[key] = d.function(self, f, region, body, given)
        kinds = body.output_dtypes
        # A function puts all its blocks somewhere, wanted or not.
        blocks = {k: to for k, to in stores if length_of(kinds[k])}
        own = [k for k, kind in enumerate(kinds) if length_of(kind) and k not in blocks]
        blocks |= {k: d.block(f, item_type(kinds[k]), length_of(kinds[k])) for k in own}
        numbers = [*wanted, *(k for k, _ in stores)]
        values = d.call(self, f, self.routines[key], given, numbers, blocks)
        for k in own:
            if k not in wanted:
                d.release(f, blocks[k], length_of(kinds[k]))
        pairs = [(k, to, b) for (k, to), b in zip(stores, values[len(wanted) :])]
        self._copy(f, [(to, b, kinds[k]) for k, to, b in pairs if b.location != to])
        return values[: len(wanted)]

    def _copy(self, f: Any, copies: Sequence[tuple[Location, Binding, int]]) -> None:
        """Store values of some types at their places."""
        d = self.dialect
        copy_all(d, f, [(to, b) for to, b, kind in copies if not length_of(kind)])
        for to, b, kind in copies:
            if length_of(kind) and b.location is not None and b.location != to:
                d.copy_run(f, to, b.location, length_of(kind))

    def lower(
        self,
        f: Any,
        g: Graph,
        given: Sequence[Binding],
        wanted: Sequence[int] = (),
        stores: Sequence[Store] = (),
        known: Mapping[int, Binding] = NOTHING,
    ) -> list[Binding]:
        """Write a graph where the function is, with outputs by number as ``block`` has them.

        ``known`` binds nodes that have been computed elsewhere, at places all functions know.
        """
        d = self.dialect
        ids = [g.outputs[k] for k in wanted]
        whole = self.sizes.size(g) <= self.part
        plan = d.order(g, [g.outputs[k] for k, _ in stores], ids, known, whole)
        if whole:
            waiting = places_by_id(g, stores)
            lifetimes = _lifetimes(g, plan, [*ids, *waiting], given)
            inside = homes(g, plan.order, [*ids, *waiting], d.apart)
            scope = d.scope(d, f, g, given, plan.outs, dict(known), waiting, lifetimes, inside)
            if d.apart:
                await_numbers(scope, plan.order)
            self._spine(scope, plan.order, {}, ids)
        else:
            scope = self._in_parts(f, g, plan, given, ids, stores, known)
        # Places that nothing has been written to so far.
        left = [(to, g.outputs[k]) for k, to in stores if g.outputs[k] in scope.waiting]
        left = [(to, i) for to, i in left if not length_of(g.dtype[i]) or to in scope.waiting[i]]
        self._copy(f, [(to, scope.binding(i), g.dtype[i]) for to, i in left])
        return scope.bindings(ids)

    def _in_parts(
        self,
        f: Any,
        g: Graph,
        plan: Schedule,
        given: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store],
        known: Mapping[int, Binding],
    ) -> Scope:
        d = self.dialect
        chunks = self.sizes.cut(g, plan.order)
        crossing = crossing_nodes(g, chunks, wanted)
        slots = shared_slots(g, chunks, crossing, wanted)
        dtypes = dict(sorted((slot, g.dtype[i]) for i, slot in zip(crossing, slots)))
        locations = arrays(d, f, list(dtypes.values()))
        keep = {i: locations[slot] for i, slot in zip(crossing, slots)}
        reach = d.reach(f)
        inputs = list(given)
        for k in inputs_read(g, plan.order):
            inputs[k] = reach.binding(given[k], g.dtype[g.inputs[k]])
        waiting = places_by_id(g, [(k, reach.location(to)) for k, to in stores])
        bound, lifetimes = dict(known), _lifetimes(g, plan, [*wanted, *waiting], inputs)
        for number, chunk in enumerate(chunks):
            with d.part(f, number + 1) as part:
                inner = d.scope(d, part, g, inputs, plan.outs, bound, waiting, lifetimes)
                self._spine(inner, chunk, keep)
        return d.scope(d, f, g, given, plan.outs, bound, waiting, lifetimes)

    def _spine(
        self,
        scope: Scope,
        order: Sequence[int],
        keep: Mapping[int, Location],
        wanted: Sequence[int] = (),
    ) -> None:
        """Write nodes in order.

        Values that wait to be stored are stored at once, and leave ``scope.waiting``; those in
        ``keep`` are put there for other functions.
        """
        d, f, g = self.dialect, scope.f, scope.graph
        op, names, waiting = g.op, scope.names, scope.waiting
        write = d.nodes(self, scope, order, [*wanted, *keep, *waiting])
        blocks = scope.lifetimes.active
        for i in order:
            code = op[i]
            if code == REGION:
                region = g.regions[i]
                d.note(f, g, i)
                lower_region(self, scope, region, scope.outs.get(i, []))
                self._pass(scope, i)
                continue
            if blocks and code in (BLOCK, ELEMENT):
                name = self._block_node(scope, i)
            else:
                name = names.get(i) if code == OUT else write(i)
            if blocks:
                self._pass(scope, i)
            if name is None:
                continue
            names[i] = name
            if i in waiting:
                for to in waiting.pop(i):
                    d.store(f, to, name)
            if i in keep:
                d.store(f, keep[i], name)
                scope.bound[i] = Binding(location=keep[i])

    def _pass(self, scope: Scope, i: int) -> None:
        """Take back the arrays of blocks that a node was the last to read."""
        for location, length in scope.lifetimes.passed(i):
            self.dialect.release(scope.f, location, length)

    def _block_node(self, scope: Scope, i: int) -> str | None:
        """Bind a block that is a table, or an element of a block; return its operand if it has one.

        An element at a known index stays where it is.
        """
        d, f, g = self.dialect, scope.f, scope.graph
        name = None
        if g.op[i] == BLOCK:
            location = d.constant_block(f, g.tables[g.b[i]], item_type(g.dtype[i]))
            scope.bound[i] = Binding(location=location)
        elif stays_in_place(g, i):
            scope.bound[i] = Binding(location=scope.block(g.a[i]).at(g.value[g.b[i]]))
        else:
            block, length = scope.block(g.a[i]), length_of(g.dtype[g.a[i]])
            name = d.element(f, block, length, scope.operand(g.b[i]))
        return name


def _lifetimes(
    g: Graph, plan: Schedule, kept: Sequence[int], given: Sequence[Binding]
) -> Lifetimes:
    return Lifetimes(g, plan.order, kept, [b.location for b in given if b.location is not None])
