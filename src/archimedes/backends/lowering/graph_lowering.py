"""Graph to code: nodes in order, in one function or cut into several.

Bodies of regions stand in the function of their graph, except those that are functions of their
own: those of calls and branches that occur more than once. Compilers take longer than linear in the
length of a function, so one that is too long is cut into pieces; values that cross a cut live in
memory.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

from archimedes.backends.lowering.analysis import cost
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import Dialect, Request, Results
from archimedes.backends.lowering.regions import lower_region
from archimedes.backends.lowering.schedule import count_live
from archimedes.backends.lowering.scope import (
    Binding,
    Lifetimes,
    Location,
    Scope,
    Store,
    elide_scalar_copies,
    find_sub_blocks,
    locations_by_node,
    stays_in_place,
)
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import BLOCK, CONST, ELEMENT, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Region, Scan

NOTHING: Mapping[int, Any] = MappingProxyType({})


# ---- outlining: which bodies become functions, and where a long function is cut ------------------


_NO_CODE = (CONST, INPUT, OUT)
#: How far from where pieces would be equal a cut may be, in pieces.
AROUND = 0.15


class Sizes:
    """What is known of the lengths of graphs, for functions of about ``part`` operations."""

    def __init__(
        self, graphs: Sequence[Graph], part: int, shared: Mapping[type[Region], int]
    ) -> None:
        self.part = part
        self.shared = shared
        self._costs: dict[int, int] = {}
        self._sizes: dict[Graph, int] = {}
        self._uses: Counter[str] = Counter()
        for g in graphs:
            self._count_uses(g)

    def _count_uses(self, g: Graph) -> None:
        regions = (g.regions[i] for i in g.live() if i in g.regions)
        for region, body in ((r, body) for r in regions for body in r.bodies):
            self._uses[body.digest()] += 1
            count, least = self._uses[body.digest()], self.shared.get(type(region))
            is_function = least is not None and self.cost(body) >= least
            # What is in a function is written once; what is in other bodies, where they are.
            if count == 1 or (count == 2 and not is_function):
                self._count_uses(body)

    def cost(self, g: Graph) -> int:
        """Return the operations in a graph, all bodies included."""
        return cost(g, self._costs)

    def size(self, g: Graph) -> int:
        """Return the operations of a graph without those that are in other functions."""
        if g not in self._sizes:
            op, live = g.op, g.live()
            own = sum(op[i] not in _NO_CODE for i in live)
            inner = sum(self._blocks(g.regions[i]) for i in live if i in g.regions)
            self._sizes[g] = own + inner
        return self._sizes[g]

    def _blocks(self, region: Region) -> int:
        """Return the operations of the bodies that are inlined where their region is."""
        blocks = (b for b in region.bodies if not self.is_shared(region, b))
        return sum(size for size in map(self.size, blocks) if size <= self.part)

    def is_shared(self, region: Region, body: Graph) -> bool:
        """Return whether a body occurs more than once and is worth a function."""
        least = self.shared.get(type(region))
        return least is not None and self._uses[body.digest()] > 1 and self.size(body) >= least

    def cut_schedule(self, g: Graph, order: Sequence[int]) -> list[list[int]]:
        """Cut a schedule into pieces of about equal size, where few values cross.

        Outputs stay with their region.
        """
        done = [0, *accumulate(self._price(g, i) for i in order)]
        count = max(1, -(-done[-1] // self.part))
        size, crossing = done[-1] / count, count_live(g, order) if count > 1 else []
        cuts = [0]
        for k in range(1, count):
            first, equal, last = (
                bisect_left(done, size * (k + side * AROUND)) for side in (-1, 0, 1)
            )
            near = [at for at in range(first, last) if done[at] < done[at + 1]]
            ranked = ((crossing[at - 1], abs(done[at] - size * k), at) for at in near)
            cuts.append(min(ranked, default=(bisect_right(done, done[equal]) - 1,))[-1])
        return [list(order[a:b]) for a, b in pairwise([*cuts, len(order)]) if a < b]

    def _price(self, g: Graph, i: int) -> int:
        """Return the operations that stand where a node is written."""
        if g.op[i] == OUT:
            return 0
        return 1 + self._blocks(g.regions[i]) if g.op[i] == REGION else 1


def crossing_nodes(
    g: Graph, chunks: Sequence[Sequence[int]], wanted: Sequence[int] = ()
) -> list[int]:
    """Return the nodes that are read in another chunk than their own, or after all of them.

    Those that are read where their block is need not be kept anywhere.
    """
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    crossing = dict.fromkeys(i for i in wanted if i in home)
    for k, _, operands in _reads(g, chunks):
        for j in operands:
            if home.get(j, k) != k:
                crossing[j] = None
    return [i for i in crossing if not stays_in_place(g, i)]


def _reads(g: Graph, chunks: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, Iterable[int]]]:
    """Yield the number of a chunk, a node in it, and the nodes that it reads."""
    for k, chunk in enumerate(chunks):
        for i in chunk:
            if g.op[i] != OUT:
                yield k, i, g.operands(i)


def shared_slots(
    g: Graph, chunks: Sequence[Sequence[int]], crossing: Sequence[int], wanted: Sequence[int] = ()
) -> list[int]:
    """Return the number of a slot for each crossing node, of one dtype each.

    A slot is used again in the chunks behind the last one that reads it; what is wanted after all
    chunks keeps its own.
    """
    last: dict[int, int] = {}
    for k, i, operands in _reads(g, chunks):
        # What hands values on may give them out where they lie.
        end = len(chunks) if i in g.regions and _hands_on(g.regions[i]) else k
        for j in operands:
            if last.get(j, -1) < end:
                last[j] = end
    last.update((i, len(chunks)) for i in wanted)
    asked, count = set(crossing), itertools.count()
    free: defaultdict[int, list[int]] = defaultdict(list)
    ending: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    slots: dict[int, int] = {}
    for k, chunk in enumerate(chunks):
        for dtype, slot in ending[k - 1]:
            free[dtype].append(slot)
        for i in chunk:
            if i in asked:
                room = free[g.dtype[i]]
                slots[i] = room.pop() if room else next(count)
                ending[last[i]].append((g.dtype[i], slots[i]))
    return [slots[i] for i in crossing]


def _hands_on(region: Region) -> bool:
    """Return whether a region may return its inputs, as calls and loops without steps do."""
    return isinstance(region, Call) or (isinstance(region, Scan) and not region.length)


def inputs_read(g: Graph, order: Sequence[int]) -> list[int]:
    """Return the numbers of the inputs that the nodes read."""
    reads = (operands for *_, operands in _reads(g, [order]))
    return sorted({g.a[j] for operands in reads for j in operands if g.op[j] == INPUT})


# ---- nodes in order ------------------------------------------------------------------------------


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
