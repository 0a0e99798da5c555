"""``Nest`` in a scalar kernel: its points are computed in lanes, in one function with its loops.

Tiles of lanes cover an axis; the last one ends where the axis ends, so that it overlaps the one
before it: what both compute is the same, and there is no second loop for the rest. Along a
reduced axis lanes are partial results, and what the last tile has computed already is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.nests.plans import CHUNK, Plan
from archimedes.backends.llvm.lowering.nests.ranges import (
    RANGE,
    Ranges,
    call_ranges,
    frame_untouched,
)
from archimedes.backends.llvm.lowering.nests.repeated_reads import RepeatedReads, in_lanes
from archimedes.backends.llvm.lowering.nests.stages import Staging, write_stages
from archimedes.backends.llvm.lowering.nests.streaming import passes_caches, write_streamed
from archimedes.backends.llvm.lowering.scope import FrameReach
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, Spelling
from archimedes.backends.lowering.combining import identity
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.backends.lowering.walks import Walk, along, moved_along
from archimedes.graph.dtypes import I64, item_type, length_of
from archimedes.graph.regions import Nest
from archimedes.graph.regions.nest import row_major

__all__ = ["nest_in_lanes"]


def nest_in_lanes(
    module: Module,
    wide: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    plan: Plan,
    ranges: Ranges | None = None,
    zeros: Place | None = None,
) -> list[Place]:
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
        places = [reach.place(scope.new_block(i)) for i in outs]
    else:
        places = [f.module.frame.array(region.body.output_dtypes[k]) for k in wanted]
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
    to = [_shared_place(place) for place in places]
    if ranges is None:
        writer.write(to)
        inner.finish()
        f.line(f"call void {name}({PARAMETERS})")
        return places
    with frame_untouched(module, inner) as free:
        writer.write(to)
        free.owned = writer.owned
    inner.finish("ret i32 0")
    call_ranges(f, module, name, region.shape[ranges.axis], ranges.grain if free else 0)
    return places


def _shared_place(place: Place) -> Place:
    return place._replace(array=place.array._replace(uniform=True))


def _shared(binding: Binding) -> Binding:
    """Return a value in the memory of a scalar kernel as one that lanes share."""
    place = binding.place
    return binding if place is None else Binding(place=_shared_place(place))


class LaneNest(RepeatedReads):
    """Writes a nest as loops of vectors."""

    #: Where to note that a result is zero, if anybody asks.
    zeros: Place | None = None

    def write(self, to: Sequence[Place]) -> list[str]:
        """Write the loops; results go to these places."""
        region = self.region
        walks = self.reads()
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        walks += [Walk(place, strides) for place in to]
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

    def room(self, dtype: int) -> Place:
        """Reserve an array that lanes go along."""
        return Place(self.f.room(dtype, CHUNK), 0, dtype)

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
            self.point(walks[:count], found, [walk.place for walk in walks[count:]])

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
                    self._store_total(walk.place, value)

    def _partials(self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]]) -> list[str]:
        """Return the partial results of all rows, a vector each."""
        region, lanes, f = self.region, self.plan.lanes, self.f
        dtypes = self.dtypes * len(indices)
        first = [self.d.literal(identity(region.combine, x), x) for x in dtypes]
        if lanes == region.partials:
            return self._into_registers(reads, indices, first)
        places = []
        for dtype, value in zip(dtypes, first):
            offset = f.module.frame.bytes(region.partials * ITEM_BYTES[dtype])
            place = Place(Pointer("frame", offset, uniform=True, lane=1), 0, dtype)
            places.append(place)
            for k in range(0, region.partials, lanes):
                f.store(place.at(k), value)
        self._into_memory(reads, indices, places)
        f.spelling = Spelling(region.partials)
        found = [f.load(place) for place in places]
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
        places: Sequence[Place],
    ) -> None:
        """Combine along the reduced axes; partial results stay in memory."""
        d, f, region, axis = self.d, self.f, self.region, len(indices[0])
        length = region.shape[axis]
        if axis < self.plan.axis:
            with along(d, f, length, reads, axis) as (counter, moved):
                at = self.index(counter)
                self._into_memory(moved, [[*x, at] for x in indices], places)
            return
        with f.loop(0, length, step=self.plan.lanes) as loop:
            values = self._tile(reads, indices, loop.counter)
            at = f.value(f"urem i64 {loop.counter}, {region.partials}")
            for place, value in zip(places, values):
                here = f.moving(place, at, 1)
                f.store(here, LOWERING[region.combine](f, place.dtype, f.load(here), value))

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

    def _store_total(self, place: Place, value: str) -> None:
        """Combine partial results, and store what is left."""
        f, own = self.f, self.f.spelling
        value = self.halved(value, place.dtype)
        f.spelling = Spelling(1)
        f.store(place, value)
        if self.zeros is not None:
            found = f.value(f"fcmp oeq {f.spelling.types[place.dtype]} {value}, 0.0")
            f.store(self.zeros, f.value(f"or i1 {f.load(self.zeros)}, {found}"))
        f.spelling = own
