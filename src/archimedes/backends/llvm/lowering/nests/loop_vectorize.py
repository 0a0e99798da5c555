"""Vectorization of ``Nest`` in a scalar kernel: its points are SIMD lanes, in one function.

Tiles of lanes cover an axis; the last one ends where the axis ends, so that it overlaps the one
before it: what both compute is the same, and there is no second loop for the rest. Along a
reduced axis lanes are partial results, and what the last tile has computed already is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from archimedes.backends.llvm.calling_convention import LOOP_THREADS
from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, Pointer, Spelling, round_up
from archimedes.backends.llvm.lowering.memory_dialect import FrameReach
from archimedes.backends.llvm.lowering.nests.loop_fission import Staging, write_stages
from archimedes.backends.llvm.lowering.nests.register_tiling import Points, TiledNest
from archimedes.backends.llvm.lowering.nests.vector_plans import CHUNK, Plan, in_any_order, plan_of
from archimedes.backends.llvm.lowering.nontemporal_stores import passes_caches, write_streamed
from archimedes.backends.llvm.lowering.prologue import add_guarded
from archimedes.backends.llvm.runtime.loop_threads import OWN
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index, NestWriter, Walk
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import B8, I64, is_float, item_type, length_of
from archimedes.graph.regions import Affine, Nest

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.llvm_dialect import Llvm


#: What is read so many times is copied to where it lies in order, unless it is very large.
WORTH, LARGEST = 3, 1 << 19


# ---- very long loops run over threads: ranges of an axis, each a call of the same function -------


#: What a function of a range of an axis takes; ``own`` is memory of the thread, where it is not the
#: one that the frame belongs to.
RANGE = f"{PARAMETERS}, i64 %begin, i64 %end, ptr %own"
#: Loops of so many operations in all, of which loads and stores at a point are some (fewer where
#: values are combined), are worth threads: they take about 70 microseconds. A piece has so many.
OPERATIONS, PIECE = 1 << 21, 1 << 18
MOVES, LOADS = 8, 2
_THREADS = f"@{LOOP_THREADS}"


class Ranges(NamedTuple):
    """The axis that is cut, and the number of points that pieces are multiples of."""

    axis: int
    grain: int


def ranges_of(region: Nest, plan: Plan, cost: int) -> Ranges | None:
    """Return how a loop is cut, or None where it is not.

    A kept axis is cut: its points have nothing to do with each other.
    """
    each = cost + (LOADS if region.combine else MOVES)
    work = math.prod(region.shape) * each
    if plan.axis < 0 or not region.kept or work < OPERATIONS:
        return None
    others = [axis for axis in range(region.kept) if axis not in (plan.axis, plan.across)]
    if others:
        axis, grain = others[0], 1
    elif plan.axis < region.kept:
        axis, grain = plan.axis, plan.lanes
    else:
        axis, grain = plan.across, plan.rows
    if axis < 0:
        return None
    pieces = -(-PIECE * region.shape[axis] // (work * grain))
    return Ranges(axis, grain * max(1, pieces))


def call_ranges(f: Function, module: Module, inner: str, count: int, grain: int) -> None:
    """Call a function for all of an axis, in ranges over threads, or at once without threads.

    ``inner`` is the function ``i32 (RANGE)``; threads call it in the default environment. Without
    a ``grain`` it is not cut.
    """
    if not grain:
        f.value(f"call i32 {inner}({PARAMETERS}, i64 0, i64 {count}, ptr null)")
        return
    guarded = module.fresh("arc_range")
    add_guarded(module, guarded.removeprefix("@"), RANGE, inner.removeprefix("@"))
    line = f"{_THREADS} = external global ptr, align 8"
    if line not in module.global_lines:
        module.global_lines.append(line)
    done = f.memory("i32")
    f.line(f"store i32 0, ptr {done}, align 4")
    threads = f.value(f"load ptr, ptr {_THREADS}, align 8")
    f.line(
        f"call void {threads}(ptr {guarded}, {PARAMETERS}, i64 {count}, i64 {grain}, ptr {done})"
    )
    status = f.value(f"load i32, ptr {done}, align 4")
    with f.when(f.value(f"icmp eq i32 {status}, 0")):
        f.value(f"call i32 {inner}({PARAMETERS}, i64 0, i64 {count}, ptr null)")


# ---- the function of a nest ----------------------------------------------------------------------


def lower_vector_nest(
    d: Llvm, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int], cost: int
) -> bool:
    """Compute points of a nest in SIMD lanes and bind its outputs, if that pays.

    ``cost`` are the operations of its body.
    """
    f, target = scope.f, d.module.target
    loose = in_any_order(region)
    plan = plan_of(loose or region, cost, target)
    if loose is not None and (plan is None or plan.axis < region.kept):
        loose, plan = None, plan_of(region, cost, target)
    if plan is None:
        return False
    wide = d.in_lanes(low, region.body, plan.lanes)
    floats = any(is_float(region.body.output_dtypes[k]) for k in scope.numbers(outs))
    if loose is None or not floats:
        ranges = ranges_of(region, plan, cost)
        locations = _call_nest(wide, scope, loose or region, outs, plan, ranges)
        values = [] if region.kept else [f.load(location) for location in locations]
    else:
        zeros = d.module.frame.array(B8)
        f.store(zeros, "false")
        locations = _call_nest(wide, scope, loose, outs, plan, zeros=zeros)
        values = _repeat_in_order(low, scope, region, outs, locations, zeros)
    for i, value in zip(outs, values):
        scope.bind(i, Binding(operand=value))
    return True


def _repeat_in_order(
    low: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    locations: Sequence[Location],
    zeros: Location,
) -> list[str]:
    """Compute a nest again, in its order, if a result is zero; return results that are scalars."""
    f = scope.f
    first = [] if region.kept else [f.load(location) for location in locations]
    before, again, after = f.block, f.label(), f.label()
    f.fork(f.load(zeros), again, after, rare=True)
    f.start(again)
    inputs = scope.bindings(region.inputs.tolist())
    to = [scope.block(i) for i in outs] if region.kept else []
    values = NestWriter(low, f, region, inputs, scope.numbers(outs)).write(to)
    last = f.block
    f.jump(after)
    types = [f.spelling.types[location.dtype] for location in locations]
    return [f.phi(t, (x, before), (y, last)) for t, x, y in zip(types, first, values)]


def _call_nest(
    wide: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    plan: Plan,
    ranges: Ranges | None = None,
    zeros: Location | None = None,
) -> list[Location]:
    """Write a nest as a function of vectors, and its call; return its results.

    ``wide`` lowers the body in the module of that function. ``ranges`` says how it is cut for
    threads, if it is. ``zeros`` is where to note whether one of the results is zero. Results that
    are blocks are bound.
    """
    f, module = scope.f, scope.f.module.in_lanes(plan.lanes)
    reach, dtypes = FrameReach(f), [scope.graph.dtype[i] for i in region.inputs.tolist()]
    bindings = zip(scope.bindings(region.inputs.tolist()), dtypes)
    shared = [reach.shared(b, item_type(kind)) for b, kind in bindings]
    wanted = scope.numbers(outs)
    if region.kept:
        locations = [reach.location(scope.new_block(i)) for i in outs]
    else:
        locations = [f.frame.array(region.body.output_dtypes[k]) for k in wanted]
    name = module.fresh("nest")
    head = f"void {name}({PARAMETERS})" if ranges is None else f"i32 {name}({RANGE}) noinline"
    inner = Function(module, f"define internal {head}")
    # Scalars are the same throughout: they are loaded once.
    pairs = zip(shared, dtypes)
    inputs = [b if length_of(kind) else Binding(operand=inner.operand(b)) for b, kind in pairs]
    noted = zeros and reach.shared_location(zeros)
    writer = VectorNest(wide, inner, region, inputs, wanted, plan, ranges, noted)
    to = [reach.shared_location(location) for location in locations]
    if ranges is None:
        writer.write(to)
        inner.finish()
        f.line(f"call void {name}({PARAMETERS})")
        return locations
    frame = f.frame.whole or f.frame
    size = frame.size
    with frame.separate():
        writer.write(to)
    # Threads share the frame: what keeps anything there is not cut.
    calls = any("call void @" in line and "%frame" in line for line in inner.lines)
    is_cut = frame.size == size + writer.owned and not calls
    inner.finish("ret i32 0")
    call_ranges(f, module, name, region.shape[ranges.axis], ranges.grain if is_cut else 0)
    return locations


@dataclass(eq=False)
class VectorNest(TiledNest):
    """Writes a nest as loops of vectors, whose lanes go along an axis.

    ``ranges`` says which axis goes from ``%begin`` to ``%end``, if one does, and ``zeros`` where to
    note that a result is zero, if anybody asks. ``owned`` are the bytes of the frame for which
    helper threads have memory of their own.
    """

    ranges: Ranges | None = None
    zeros: Location | None = None
    owned: int = 0

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these locations."""
        walks, count = self.walks(to)
        if self.plan.axis >= self.region.kept:
            self._along_reduced(walks, count)
        else:
            self._along_kept(walks, count)
        return []

    def lanes_along(self, walks: Sequence[Walk], axis: int) -> list[Walk]:
        """Return walks whose lanes go along an axis."""
        there = []
        for walk in walks:
            array = walk.location.array._replace(lane=walk.strides[axis])
            there.append(walk._replace(location=walk.location._replace(array=array)))
        return there

    def lane_index(self, start: str) -> Index:
        """Return the indices of lanes from ``start`` on."""
        if not self.region.indexed:
            return None, start
        f = self.f
        kind = f.spelling.types[I64]
        steps = ", ".join(f"i64 {k}" for k in range(f.spelling.lanes))
        first = self.d.number(f, start)
        return Binding(operand=f.value(f"add {kind} {first}, <{steps}>")), start

    def _ends(self, axis: int) -> tuple[str, str] | None:
        """Return the ends of the range of an axis that the function computes, if it is cut."""
        is_cut = self.ranges is not None and self.ranges.axis == axis
        return ("%begin", "%end") if is_cut else None

    def _enter(
        self, loops: ExitStack, walks: Sequence[Walk], axis: int, step: int = 1
    ) -> tuple[list[Walk], Index]:
        """Begin the loop along an axis, over tiles or over all points."""
        ends = self._ends(axis)
        if not ends and step == 1:
            return self.enter_axis(loops, walks, axis)
        walks, start = self.enter_tiles(loops, walks, axis, step, ends)
        return walks, self.index(start)

    # ---- along a kept axis ---------------------------------------------------------------

    def _along_kept(self, walks: list[Walk], count: int) -> None:
        region, plan = self.region, self.plan
        indices: dict[int, Index] = {}
        walks = self._pack_rows(walks, count) if plan.rows > 1 else walks
        with ExitStack() as loops:
            for axis in range(region.kept):
                if axis not in (plan.axis, plan.across):
                    walks, indices[axis] = self._enter(loops, walks, axis)
            ends = self._ends(plan.axis)
            if plan.stages:
                staging = Staging(plan.axis, plan.lanes, CHUNK, self._room, self._points)
                lanes = self.lanes_along(walks, plan.axis)
                write_stages(self, staging, lanes, count, indices, ends)
                return
            if passes_caches(self, walks[count:]):
                write_streamed(self, walks, count, ends)
                return
            walks, start = self.enter_tiles(loops, walks, plan.axis, plan.lanes, ends)
            walks = self.lanes_along(walks, plan.axis)
            indices[plan.axis] = self.lane_index(start)
            if plan.rows > 1:
                walks = self._pack_vectors(walks, count)
                walks, first = self.enter_tiles(loops, walks, plan.across, plan.rows)
                indices[plan.across] = self.index(first)
            if plan.rows > 1 or plan.group:
                self.write_rows(walks, count, indices)
                return
            point = [indices[axis] for axis in range(region.kept)]
            self.point(walks[:count], point, [walk.location for walk in walks[count:]])

    def _room(self, dtype: int) -> Location:
        """Reserve an array that lanes go along."""
        return Location(self.f.room(dtype, CHUNK), 0, dtype)

    def _points(self, walks: Sequence[Walk], start: str) -> Iterator[tuple[list[Walk], Index]]:
        """Yield walks and index at the lanes from ``start`` on."""
        yield self.advance_to(walks, self.plan.axis, start), self.lane_index(start)

    # ---- packing: what is read again and again is copied to where it lies in order ---------

    def _pack_vectors(self, walks: list[Walk], count: int) -> list[Walk]:
        """Copy the vectors that all rows read to where they lie in the order they are read in.

        Vectors far from each other take up more of the caches than they need, and may be in each
        other's way there.
        """
        region, plan, d, f = self.region, self.plan, self.d, self.f
        axis, length = region.kept, region.shape[-1]
        if not self._copies(length * plan.lanes, region.shape[plan.across] // plan.rows):
            return walks
        packed = list(walks)
        for k, (location, strides, _) in enumerate(walks[:count]):
            lane = location.array.lane
            far = abs(lane) > 1 or (lane != 0 and abs(strides[axis]) > plan.lanes)
            if not far or strides[plan.across] or not self._affine[k]:
                continue
            room = self._own_room(location.dtype, length)
            with d.for_loop(f, length) as loop:
                (source,) = self.advance_to([walks[k]], axis, loop.counter)
                d.store(f, d.advance(f, room, loop.counter, 1), d.load(f, source.location))
            packed[k] = Walk(room, (*strides[:axis], 1))
        return packed

    def _own_room(self, dtype: int, length: int) -> Location:
        """Reserve an array of vectors in the frame; a helper has it in memory of its own."""
        f, frame = self.f, self.f.frame
        room = frame.array(dtype, length)
        size = ITEM_BYTES[dtype] * self.plan.lanes * length
        if self.ranges is None or self.owned + size > OWN:
            return room
        at = f.offset("%own", self.owned)
        self.owned += round_up(size)
        mine = f.value("icmp eq ptr %own, null")
        address = f.value(f"select i1 {mine}, ptr {f.address(room)}, ptr {at}")
        return room._replace(array=room.array._replace(kind="local", value=address))

    def _pack_rows(self, walks: list[Walk], count: int) -> list[Walk]:
        """Copy what all tiles read of rows that do not lie in the order they are read in.

        Not where registers hold eight numbers: tiles are so wide there that copies cost more than
        they save (products of 600 x 600: 12.9 ms without, 16.1 ms with them).
        """
        region, plan, d, f = self.region, self.plan, self.d, self.f
        rows, length, axis = region.shape[plan.across], region.shape[-1], region.kept
        short = length < plan.lanes or region.kept != 2 or f.module.target.lanes == 8
        if short or not self._copies(rows * length, region.shape[plan.axis] // plan.lanes):
            return walks
        packed = list(walks)
        for k, (location, strides, _) in enumerate(walks[:count]):
            apart = abs(strides[axis]) > 1 and strides[plan.across] and not strides[plan.axis]
            if not apart or not self._affine[k]:
                continue
            offset = f.frame.bytes(rows * length * ITEM_BYTES[location.dtype])
            room = Location(Pointer("frame", offset, uniform=True), 0, location.dtype)
            own = [0] * len(strides)
            own[plan.across], own[axis] = length, 1
            packed[k] = Walk(room, tuple(own))
            with ExitStack() as loops:
                row = loops.enter_context(d.for_loop(f, rows)).counter
                pair = self.advance_to([walks[k], packed[k]], plan.across, row)
                pair, _ = self.enter_tiles(loops, pair, axis, plan.lanes)
                source, to = self.lanes_along(pair, axis)
                d.store(f, to.location, d.load(f, source.location))
        return packed

    @property
    def _affine(self) -> list[bool]:
        """Whether each walk is that of an affine read, not of a gather."""
        return [isinstance(read, Affine) for read in self.region.reads if read is not None]

    def _copies(self, items: int, times: int) -> bool:
        """Return whether it pays to copy so many items that are read so many times."""
        one = len(self.region.shape) == self.region.kept + 1
        return one and times >= WORTH and items <= LARGEST

    # ---- along a reduced axis ------------------------------------------------------------

    def _along_reduced(self, walks: list[Walk], count: int) -> None:
        plan = self.plan
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(self.region.kept):
                step = plan.rows if axis == plan.across else 1
                walks, indices[axis] = self._enter(loops, walks, axis, step)
            points = [self.row_indices(indices, row) for row in range(plan.rows)]
            partials = self._partials(self.lanes_along(walks[:count], plan.axis), points)
            for row in range(plan.rows):
                to = self.at_row(walks[count:], row)
                for walk, value in zip(to, partials[row * len(to) :]):
                    self._store_total(walk.location, value)

    def _partials(self, reads: Sequence[Walk], points: Points) -> list[str]:
        """Return the partial results of all rows, a vector each."""
        region, lanes, f = self.region, self.plan.lanes, self.f
        dtypes = self.dtypes * len(points)
        first = self.identities(dtypes)
        if lanes == region.partials:
            return self._into_registers(reads, points, first)
        locations = []
        for dtype, value in zip(dtypes, first):
            offset = f.frame.bytes(region.partials * ITEM_BYTES[dtype])
            location = Location(Pointer("frame", offset, uniform=True, lane=1), 0, dtype)
            locations.append(location)
            for k in range(0, region.partials, lanes):
                f.store(location.at(k), value)
        self._into_memory(reads, points, locations)
        f.spelling = Spelling(region.partials)
        partials = [f.load(location) for location in locations]
        f.spelling = Spelling(lanes)
        return partials

    def _into_registers(
        self, reads: Sequence[Walk], points: Points, carried: list[str]
    ) -> list[str]:
        """Combine along the reduced axes; partial results stay in registers."""
        f, region, axis = self.f, self.region, len(points[0])
        dtypes = self.dtypes * len(points)
        pairs = [(f.spelling.types[x], value) for x, value in zip(dtypes, carried)]
        if axis < self.plan.axis:
            with f.loop(0, region.shape[axis], pairs) as loop:
                here, at = self.advance_to(reads, axis, loop.counter), self.index(loop.counter)
                below = [[*x, at] for x in points]
                loop.next = self._into_registers(here, below, loop.carried)
            return loop.carried
        with f.loop(0, region.shape[axis], pairs, step=self.plan.lanes) as loop:
            values = self._tile_values(reads, points, loop.counter)
            triples = zip(dtypes, loop.carried, values)
            loop.next = [LOWERING[region.combine](f, x, old, new) for x, old, new in triples]
        return loop.carried

    def _into_memory(
        self, reads: Sequence[Walk], points: Points, locations: Sequence[Location]
    ) -> None:
        """Combine along the reduced axes; partial results stay in memory."""
        f, region, axis = self.f, self.region, len(points[0])
        if axis < self.plan.axis:
            with ExitStack() as loops:
                here, at = self.enter_axis(loops, reads, axis)
                self._into_memory(here, [[*x, at] for x in points], locations)
            return
        with f.loop(0, region.shape[axis], step=self.plan.lanes) as loop:
            values = self._tile_values(reads, points, loop.counter)
            at_partial = f.value(f"urem i64 {loop.counter}, {region.partials}")
            for location, value in zip(locations, values):
                to = f.advance(location, at_partial, 1)
                f.store(to, LOWERING[region.combine](f, location.dtype, f.load(to), value))

    def _tile_values(self, reads: Sequence[Walk], points: Points, counter: str) -> Iterator[str]:
        """Yield the values of a tile; those that the tile before it has are left out."""
        f, axis, lanes = self.f, self.plan.axis, self.plan.lanes
        length = self.region.shape[axis]
        rest, start = length % lanes, counter
        if rest:
            last = f.value(f"icmp sgt i64 {counter}, {length - lanes}")
            start = f.value(f"select i1 {last}, i64 {length - lanes}, i64 {counter}")
        here, at = self.advance_to(reads, axis, start), self.lane_index(start)
        values = (f.operand(b) for b in self.row_values(here, [[*x, at] for x in points]))
        if not rest:
            yield from values
            return
        whole = list(values)
        before, part, after = f.block, f.label(), f.label()
        f.fork(last, part, after, rare=True)
        f.start(part)
        dtypes = self.dtypes * len(points)
        kinds = [f.spelling.types[dtype] for dtype in dtypes]
        # The last items move to the front; behind them is what changes nothing.
        order = [*range(lanes - rest, lanes), *[lanes] * (lanes - rest)]
        operands = zip(kinds, whole, self.identities(dtypes))
        parts = [f.shuffle(kind, value, nothing, order) for kind, value, nothing in operands]
        f.jump(after)
        pairs = zip(kinds, whole, parts)
        yield from [f.phi(kind, (old, before), (new, part)) for kind, old, new in pairs]

    def _store_total(self, location: Location, value: str) -> None:
        """Combine partial results, and store what is left."""
        f, own = self.f, self.f.spelling
        value = self.reduce_vector(value, location.dtype)
        f.spelling = Spelling(1)
        f.store(location, value)
        if self.zeros is not None:
            is_zero = f.value(f"fcmp oeq {f.spelling.types[location.dtype]} {value}, 0.0")
            f.store(self.zeros, f.value(f"or i1 {f.load(self.zeros)}, {is_zero}"))
        f.spelling = own
