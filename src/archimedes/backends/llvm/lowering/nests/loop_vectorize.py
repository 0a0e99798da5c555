"""``Nest`` in a scalar kernel: its points are computed in lanes, in one function with its loops.

Tiles of lanes cover an axis; the last one ends where the axis ends, so that it overlaps the one
before it: what both compute is the same, and there is no second loop for the rest. Along a
reduced axis lanes are partial results, and what the last tile has computed already is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.function_dialect import FrameReach
from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.memory import ALIGNMENT, ITEM_BYTES, Pointer, Spelling
from archimedes.backends.llvm.lowering.nests.loop_fission import StagedNest, Staging, write_stages
from archimedes.backends.llvm.lowering.nests.threaded_loops import (
    RANGE,
    Ranges,
    call_ranges,
    frame_untouched,
    ranges_of,
)
from archimedes.backends.llvm.lowering.nests.vector_plans import CHUNK, Plan, in_any_order, plan_of
from archimedes.backends.llvm.lowering.nontemporal_stores import passes_caches, write_streamed
from archimedes.backends.llvm.runtime.loop_threads import OWN
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index, NestWriter, Walk, along, identity, moved_along
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import B8, I64, is_float, item_type, length_of
from archimedes.graph.regions import Gather, Nest
from archimedes.graph.regions.nest import Read, row_major

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.llvm_dialect import Llvm

__all__ = ["RepeatedReads", "in_lanes", "nest_in_lanes", "vector_nest"]

#: What is read so many times is copied to where it lies in order, unless it is very large.
WORTH, LARGEST = 3, 1 << 19


def in_lanes(walk: Walk, axis: int) -> Walk:
    """Return a walk whose lanes go along an axis."""
    location, stride = walk.location, walk.strides[axis]
    return walk._replace(location=location._replace(array=location.array._replace(lane=stride)))


def walking(region: Nest) -> list[Read]:
    """Return those of the reads that walk."""
    return [read for read in region.reads if read is not None]


class RepeatedReads(StagedNest):
    """A nest whose lanes go along an axis, and what it copies."""

    #: Which axis goes from ``%begin`` to ``%end``, if one does.
    ranges: Ranges | None = None
    #: Bytes of the frame for which helpers have memory of their own.
    owned: int = 0

    def packed_reads(self, walks: list[Walk], count: int) -> list[Walk]:
        """Copy what all rows read to where it lies in the order it is read in.

        Vectors far from each other take up more of the caches than they need, and may be in each
        other's way there.
        """
        region, plan, d, f = self.region, self.plan, self.d, self.f
        axis, found = region.kept, list(walks)
        length = region.shape[-1]
        if not self._copies(length * plan.lanes, region.shape[plan.across] // plan.rows):
            return found
        for k, (location, strides, _) in enumerate(walks[:count]):
            lane = location.array.lane
            far = abs(lane) > 1 or (lane != 0 and abs(strides[axis]) > plan.lanes)
            if not far or strides[plan.across] or isinstance(walking(region)[k], Gather):
                continue
            room = self._room_of(location.dtype, length)
            with d.counted(f, length, ()) as loop:
                (source,) = moved_along(d, f, length, [walks[k]], axis, loop.counter)
                d.store(f, d.moving(f, room, loop.counter, 1), d.load(f, source.location))
            found[k] = Walk(room, (*strides[:axis], 1))
        return found

    def _room_of(self, dtype: int, length: int) -> Location:
        """Reserve an array of vectors in the frame; a helper has it in memory of its own."""
        f, frame = self.f, self.f.module.frame
        room = frame.array(dtype, length)
        size = ITEM_BYTES[dtype] * self.plan.lanes * length
        if self.ranges is None or self.owned + size > OWN:
            return room
        at = f.value(f"getelementptr i8, ptr %own, i64 {self.owned}")
        self.owned += -(-size // ALIGNMENT) * ALIGNMENT
        mine = f.value("icmp eq ptr %own, null")
        found = f.value(f"select i1 {mine}, ptr {f.address(room)}, ptr {at}")
        return room._replace(array=room.array._replace(kind="local", value=found))

    def reads_in_rows(self, walks: list[Walk], count: int) -> list[Walk]:
        """Copy what all tiles read of rows that do not lie in the order they are read in."""
        region, plan, d, f = self.region, self.plan, self.d, self.f
        rows, length, axis = region.shape[plan.across], region.shape[-1], region.kept
        tiles, found = region.shape[plan.axis] // plan.lanes, list(walks)
        short = length < plan.lanes or region.kept != 2
        if short or not self._copies(rows * length, tiles):
            return found
        for k, (location, strides, _) in enumerate(walks[:count]):
            apart = abs(strides[axis]) > 1 and strides[plan.across] and not strides[plan.axis]
            if not apart or isinstance(walking(region)[k], Gather):
                continue
            offset = f.module.frame.bytes(rows * length * ITEM_BYTES[location.dtype])
            room = Location(Pointer("frame", offset, uniform=True), 0, location.dtype)
            own = [0] * len(strides)
            own[plan.across], own[axis] = length, 1
            pair = [walks[k], Walk(room, tuple(own))]
            with d.counted(f, rows, ()) as row:
                mine = moved_along(d, f, rows, pair, plan.across, row.counter)
                with self.tiles(length, plan.lanes) as start:
                    lanes = [in_lanes(w, axis) for w in self.at(mine, axis, start)]
                    d.store(f, lanes[1].location, d.load(f, lanes[0].location))
            found[k] = pair[1]
        return found

    def _copies(self, items: int, times: int) -> bool:
        """Tell whether it pays to copy so many items that are read so many times."""
        one = len(self.region.shape) == self.region.kept + 1
        return one and times >= WORTH and items <= LARGEST


def nest_in_lanes(
    module: Module,
    wide: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    plan: Plan,
    ranges: Ranges | None = None,
    zeros: Location | None = None,
) -> list[Location]:
    """Compute a nest by a function of ``module``, whose values are vectors; return its results.

    ``wide`` lowers the body in that module. ``ranges`` says how it is cut for threads, if it is.
    ``zeros`` is a place to note whether one of the
    results is zero. Results that are blocks are bound.
    """
    f = scope.f
    reach = FrameReach(f)
    given = []
    for i in region.inputs.tolist():
        kind = scope.graph.dtype[i]
        given.append(_shared(reach.binding(scope.binding(i), item_type(kind))))
    wanted = scope.numbers(outs)
    if region.kept:
        locations = [reach.location(scope.new_block(i)) for i in outs]
    else:
        locations = [f.module.frame.array(region.body.output_dtypes[k]) for k in wanted]
    name = module.fresh("nest")
    head = f"void {name}({PARAMETERS})" if ranges is None else f"i32 {name}({RANGE}) noinline"
    inner = Function(module, f"define internal {head}")
    # Scalars are the same throughout: they are loaded once.
    inside = [
        Binding(operand=inner.operand(b)) if not length_of(scope.graph.dtype[i]) else b
        for i, b in zip(region.inputs.tolist(), given)
    ]
    writer = LaneNest(wide, inner, region, inside, wanted, plan)
    writer.zeros, writer.ranges = zeros, ranges
    to = [_shared_place(location) for location in locations]
    if ranges is None:
        writer.write(to)
        inner.finish()
        f.line(f"call void {name}({PARAMETERS})")
        return locations
    with frame_untouched(module, inner) as free:
        writer.write(to)
        free.owned = writer.owned
    inner.finish("ret i32 0")
    call_ranges(f, module, name, region.shape[ranges.axis], ranges.grain if free else 0)
    return locations


def _shared_place(location: Location) -> Location:
    return location._replace(array=location.array._replace(uniform=True))


def _shared(binding: Binding) -> Binding:
    """Return a value in the memory of a scalar kernel as one that lanes share."""
    location = binding.location
    return binding if location is None else Binding(location=_shared_place(location))


class LaneNest(RepeatedReads):
    """Writes a nest as loops of vectors."""

    #: Where to note that a result is zero, if anybody asks.
    zeros: Location | None = None

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these places."""
        region = self.region
        walks = self.reads()
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        walks += [Walk(location, strides) for location in to]
        if self.plan.axis >= region.kept:
            self._along_reduced(walks, count)
        else:
            self._along_kept(walks, count)
        return []

    def lanes_along(self, walk: Walk) -> Walk:
        """Return a walk whose lanes go along the axis of the plan."""
        return in_lanes(walk, self.plan.axis)

    def lane_index(self, start: str) -> Index:
        """Return the indices of lanes from ``start`` on."""
        if not self.region.indexed:
            return None, start
        f = self.f
        kind = f.spelling.types[I64]
        steps = ", ".join(f"i64 {k}" for k in range(f.spelling.lanes))
        first = self.d.number(f, start)
        return Binding(operand=f.value(f"add {kind} {first}, <{steps}>")), start

    @property
    def staged(self) -> Staging:
        """Lanes at once."""
        return Staging(self.plan.axis, self.plan.lanes, CHUNK)

    def room(self, dtype: int) -> Location:
        """Reserve an array that lanes go along."""
        return Location(self.f.room(dtype, CHUNK), 0, dtype)

    def staged_points(
        self, walks: Sequence[Walk], start: str
    ) -> Iterator[tuple[list[Walk], Index]]:
        """Yield what is at the lanes from ``start`` on."""
        yield self.at(walks, self.plan.axis, start), self.lane_index(start)

    def _is_cut(self, axis: int) -> bool:
        return self.ranges is not None and self.ranges.axis == axis

    # ---- along a kept axis ---------------------------------------------------------------

    def _along_kept(self, walks: list[Walk], count: int) -> None:
        region, plan, d, f = self.region, self.plan, self.d, self.f
        indices: dict[int, Index] = {}
        walks = self.reads_in_rows(walks, count) if plan.rows > 1 else walks
        with ExitStack() as loops:
            for axis in range(region.kept):
                if axis in (plan.axis, plan.across):
                    continue
                if self._is_cut(axis):
                    counter = loops.enter_context(f.loop("%begin", "%end")).counter
                    walks = self.at(walks, axis, counter)
                else:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                indices[axis] = self.index(counter)
            ends = ("%begin", "%end") if self._is_cut(plan.axis) else None
            if plan.stages:
                lanes = [in_lanes(w, plan.axis) for w in walks]
                write_stages(self, lanes, count, indices, ends)
                return
            if passes_caches(self, walks[count:]):
                write_streamed(self, walks, count, ends)
                return
            start = loops.enter_context(self.tiles(region.shape[plan.axis], plan.lanes, ends))
            walks = [in_lanes(w, plan.axis) for w in self.at(walks, plan.axis, start)]
            indices[plan.axis] = self.lane_index(start)
            if plan.rows > 1:
                walks = self.packed_reads(walks, count)
            if plan.rows > 1 or plan.group:
                self.rows(loops, walks, count, indices)
                return
            found = [indices[axis] for axis in range(region.kept)]
            self.point(walks[:count], found, [walk.location for walk in walks[count:]])

    # ---- along a reduced axis ------------------------------------------------------------

    def _along_reduced(self, walks: list[Walk], count: int) -> None:
        region, plan, d, f = self.region, self.plan, self.d, self.f
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                ends = ("%begin", "%end") if self._is_cut(axis) else None
                if axis == plan.across or ends:
                    step = plan.rows if axis == plan.across else 1
                    tiles = self.tiles(region.shape[axis], step, ends)
                    counter = loops.enter_context(tiles)
                    walks = self.at(walks, axis, counter)
                else:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                indices[axis] = self.index(counter)
            rows = range(plan.rows)
            kept = [self.row_indices(indices, r) for r in rows]
            lanes = [in_lanes(walk, plan.axis) for walk in walks[:count]]
            partials = self._partials(lanes, kept)
            for row in rows:
                to = self.across(walks[count:], row)
                for walk, value in zip(to, partials[row * len(to) :]):
                    self._store_total(walk.location, value)

    def _partials(self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]]) -> list[str]:
        """Return the partial results of all rows, a vector each."""
        region, lanes, f = self.region, self.plan.lanes, self.f
        dtypes = self.dtypes * len(indices)
        first = [self.d.literal(identity(region.combine, x), x) for x in dtypes]
        if lanes == region.partials:
            return self._into_registers(reads, indices, first)
        locations = []
        for dtype, value in zip(dtypes, first):
            offset = f.module.frame.bytes(region.partials * ITEM_BYTES[dtype])
            location = Location(Pointer("frame", offset, uniform=True, lane=1), 0, dtype)
            locations.append(location)
            for k in range(0, region.partials, lanes):
                f.store(location.at(k), value)
        self._into_memory(reads, indices, locations)
        f.spelling = Spelling(region.partials)
        found = [f.load(location) for location in locations]
        f.spelling = Spelling(lanes)
        return found

    def _into_registers(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]], carried: list[str]
    ) -> list[str]:
        """Combine along the reduced axes; partial results stay in registers."""
        d, f, region, axis = self.d, self.f, self.region, len(indices[0])
        types = [f.spelling.types[x] for x in self.dtypes * len(indices)]
        length = region.shape[axis]
        if axis < self.plan.axis:
            with f.loop(0, length, list(zip(types, carried))) as loop:
                moved = moved_along(d, f, length, reads, axis, loop.counter)
                at = self.index(loop.counter)
                below = [[*x, at] for x in indices]
                loop.next = self._into_registers(moved, below, loop.carried)
            return loop.carried
        with f.loop(0, length, list(zip(types, carried)), step=self.plan.lanes) as loop:
            values = self._tile(reads, indices, loop.counter)
            loop.next = [
                LOWERING[region.combine](f, x, old, new)
                for x, old, new in zip(self.dtypes * len(indices), loop.carried, values)
            ]
        return loop.carried

    def _into_memory(
        self,
        reads: Sequence[Walk],
        indices: Sequence[Sequence[Index]],
        locations: Sequence[Location],
    ) -> None:
        """Combine along the reduced axes; partial results stay in memory."""
        d, f, region, axis = self.d, self.f, self.region, len(indices[0])
        length = region.shape[axis]
        if axis < self.plan.axis:
            with along(d, f, length, reads, axis) as (counter, moved):
                at = self.index(counter)
                self._into_memory(moved, [[*x, at] for x in indices], locations)
            return
        with f.loop(0, length, step=self.plan.lanes) as loop:
            values = self._tile(reads, indices, loop.counter)
            at = f.value(f"urem i64 {loop.counter}, {region.partials}")
            for location, value in zip(locations, values):
                here = f.moving(location, at, 1)
                f.store(here, LOWERING[region.combine](f, location.dtype, f.load(here), value))

    def _tile(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]], counter: str
    ) -> Iterator[str]:
        """Yield the values of a tile; those that the tile before it has are left out."""
        f, region, axis = self.f, self.region, self.plan.axis
        lanes, length = self.plan.lanes, region.shape[axis]
        rest = length % lanes
        start = counter
        if rest:
            last = f.value(f"icmp sgt i64 {counter}, {length - lanes}")
            start = f.value(f"select i1 {last}, i64 {length - lanes}, i64 {counter}")
        moved = moved_along(self.d, f, length, reads, axis, start)
        at = self.lane_index(start)
        values = (f.operand(b) for b in self.of_rows(moved, [[*x, at] for x in indices]))
        if not rest:
            yield from values
            return
        found = list(values)
        before, part, after = f.block, f.label(), f.label()
        f.fork(last, part, after, rare=True)
        f.start(part)
        mask = [lanes - rest + k if k < rest else lanes for k in range(lanes)]
        order = f"<{lanes} x i32> <{', '.join(f'i32 {k}' for k in mask)}>"
        dtypes = self.dtypes * len(indices)
        turned = []
        for dtype, value in zip(dtypes, found):
            kind = f.spelling.types[dtype]
            nothing = self.d.literal(identity(region.combine, dtype), dtype)
            turned.append(f.value(f"shufflevector {kind} {value}, {kind} {nothing}, {order}"))
        f.jump(after)
        yield from [
            f.phi(f.spelling.types[dtype], (old, before), (new, part))
            for dtype, old, new in zip(dtypes, found, turned)
        ]

    def _store_total(self, location: Location, value: str) -> None:
        """Combine partial results, and store what is left."""
        f, own = self.f, self.f.spelling
        value = self.halved(value, location.dtype)
        f.spelling = Spelling(1)
        f.store(location, value)
        if self.zeros is not None:
            found = f.value(f"fcmp oeq {f.spelling.types[location.dtype]} {value}, 0.0")
            f.store(self.zeros, f.value(f"or i1 {f.load(self.zeros)}, {found}"))
        f.spelling = own


def vector_nest(
    d: Llvm, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int], cost: int
) -> bool:
    """Compute points of a nest in lanes and bind its outputs, if that pays.

    ``cost`` are the operations of its body.
    """
    module = d.module
    loose = in_any_order(region)
    plan = plan_of(loose or region, cost, module.target)
    if loose is not None and (plan is None or plan.axis < region.kept):
        loose, plan = None, plan_of(region, cost, module.target)
    if plan is None:
        return False
    wide, lanes = d.in_lanes(low, region.body, plan.lanes), module.in_lanes(plan.lanes)
    floats = any(is_float(region.body.output_dtypes[k]) for k in scope.numbers(outs))
    if loose is None or not floats:
        ranges = ranges_of(region, plan, cost)
        locations = nest_in_lanes(lanes, wide, scope, loose or region, outs, plan, ranges)
        values = [] if region.kept else [scope.f.load(location) for location in locations]
    else:
        zeros = module.frame.array(B8)
        scope.f.store(zeros, "false")
        shared = zeros._replace(array=zeros.array._replace(uniform=True))
        locations = nest_in_lanes(lanes, wide, scope, loose, outs, plan, zeros=shared)
        values = _in_order(low, scope, region, outs, locations, zeros)
    for i, value in zip(outs, values):
        scope.bind(i, Binding(operand=value))
    return True


def _in_order(
    low: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    locations: Sequence[Location],
    zeros: Location,
) -> list[str]:
    """Compute a nest again, in its order, if a result is zero; return results that are scalars."""
    f = scope.f
    made = [] if region.kept else [f.load(location) for location in locations]
    before, again, after = f.block, f.label(), f.label()
    f.fork(f.load(zeros), again, after, rare=True)
    f.start(again)
    given = scope.bindings(region.inputs.tolist())
    to = [scope.block(i) for i in outs] if region.kept else []
    values = NestWriter(low, f, region, given, scope.numbers(outs)).write(to)
    last = f.block
    f.jump(after)
    if region.kept:
        return []
    types = [f.spelling.types[location.dtype] for location in locations]
    return [f.phi(t, (x, before), (y, last)) for t, x, y in zip(types, made, values)]
