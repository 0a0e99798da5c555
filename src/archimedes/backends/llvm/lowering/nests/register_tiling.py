"""Several rows of a nest together: what they share is loaded once, and the CPU has enough to do.

Rows are points of a kept axis. Lanes are the instances of a batch, or points of another axis
(``lanes.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.memory import Spelling
from archimedes.backends.llvm.lowering.nests.vector_plans import Plan
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index, NestWriter, Walk, along, identity, moved_along
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import length_of
from archimedes.graph.regions import Nest
from archimedes.graph.regions.nest import row_major

__all__ = ["RowNest"]


class RowNest(NestWriter):
    """Writes a nest with a reduction, some rows at a time."""

    def __init__(
        self,
        low: Lowering,
        f: Any,
        region: Nest,
        given: Sequence[Binding],
        wanted: Sequence[int],
        plan: Plan,
    ) -> None:
        super().__init__(low, f, region, given, wanted)
        self.plan = plan

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these places."""
        region, d, f = self.region, self.d, self.f
        walks = self.reads()
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        walks += [Walk(location, strides) for location in to]
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                if axis != self.plan.across:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                    indices[axis] = self.index(counter)
            self.rows(loops, walks, count, indices)
        return []

    # ---- rows ----------------------------------------------------------------------------

    @contextmanager
    def tiles(self, length: int, step: int, ends: tuple[str, str] | None = None) -> Iterator[str]:
        """Write a loop over tiles of an axis and yield their starts; the last ends with it.

        ``ends`` are those of a part of it, whole tiles from its start.
        """
        f = self.f
        with f.loop(*(ends or (0, length)), step=step) as loop:
            yield self.within(loop.counter, length, step)

    def within(self, start: str, length: int, step: int, always: bool = False) -> str:
        """Return the start of a tile that ends with an axis at the latest.

        Tiles begin at multiples of their length, unless they may begin anywhere (``always``).
        """
        if length % step == 0 and not always:
            return start
        past = self.f.value(f"icmp sgt i64 {start}, {length - step}")
        return self.f.value(f"select i1 {past}, i64 {length - step}, i64 {start}")

    def at(self, walks: Sequence[Walk], axis: int, start: str) -> list[Walk]:
        """Return walks at a place of an axis."""
        return moved_along(self.d, self.f, self.region.shape[axis], walks, axis, start)

    def across(self, walks: Sequence[Walk], row: int) -> list[Walk]:
        """Return walks some rows further."""
        across = self.plan.across
        return [
            w._replace(location=w.location.at(row * w.strides[across] if row else 0)) for w in walks
        ]

    def row_indices(self, indices: dict[int, Index], row: int) -> list[Index]:
        """Return the indices of the kept axes in a row."""
        found = dict(indices)
        if row and self.region.indexed:
            start = indices[self.plan.across][1]
            found[self.plan.across] = self.index(self.f.value(f"add i64 {start}, {row}"))
        return [found[axis] for axis in range(self.region.kept)]

    def rows(
        self, loops: ExitStack, walks: Sequence[Walk], count: int, indices: dict[int, Index]
    ) -> None:
        """Write the loop over tiles of rows, and what is computed in one."""
        across, number = self.plan.across, self.plan.rows
        if across >= 0:
            start = loops.enter_context(self.tiles(self.region.shape[across], number))
            walks = self.at(walks, across, start)
            indices = {**indices, across: self.index(start)}
        kept = [self.row_indices(indices, row) for row in range(number)]
        start_values = [self.d.literal(identity(self.region.combine, x), x) for x in self.dtypes]
        reads, first = walks[:count], start_values * number
        if self.in_order:
            totals = self._chains(reads, kept, first)
        else:
            totals = self._by_partials(reads, kept, first)
        for row in range(number):
            to = [walk.location for walk in self.across(walks[count:], row)]
            for location, value in zip(to, totals[row * len(to) :]):
                self.d.store(self.f, location, value)

    def _chains(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]], carried: list[str]
    ) -> list[str]:
        """Combine along the axes that are left, for all rows."""
        d, f, region = self.d, self.f, self.region
        axis = len(indices[0])
        if axis == len(region.shape):
            return self.step(reads, indices, carried)
        length = region.shape[axis]
        dtypes = self.dtypes * self.plan.rows
        with d.counted(f, length, list(zip(dtypes, carried))) as loop:
            moved = moved_along(d, f, length, reads, axis, loop.counter)
            at = self.index(loop.counter)
            loop.next = self._chains(moved, [[*x, at] for x in indices], loop.carried)
        return loop.carried

    def step(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]], carried: Sequence[str]
    ) -> list[str]:
        """Combine the values of all rows at a point with what there is."""
        values = self.of_rows(reads, indices)
        pairs = zip(carried, values, self.dtypes * len(indices))
        return [self._combined(*x) for x in pairs]

    def _by_partials(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]], first: Sequence[str]
    ) -> list[str]:
        """Combine along the reduced axis, a few partial results of all rows at a time."""
        d, f, region, group = self.d, self.f, self.region, self.plan.group
        axis, partials = region.kept, region.partials
        dtypes = self.dtypes * len(indices)
        length, count = region.shape[axis], len(dtypes)
        locations = [d.array(f, x, partials) for x in dtypes]
        kinds = [f.spelling.types[x] for x in dtypes]
        with d.counted(f, partials // group, ()) as outer:
            begin = f.value(f"mul i64 {outer.counter}, {group}")
            here = moved_along(d, f, length, reads, axis, begin)
            with f.loop(0, length // partials, list(zip(kinds * group, [*first] * group))) as loop:
                for k in range(group):
                    old = loop.carried[k * count : (k + 1) * count]
                    new = self._at_partial(here, indices, begin, k, loop.counter, old)
                    loop.next = [*loop.next[: k * count], *new]
            totals = loop.carried
            for k in range(group):
                mine = totals[k * count : (k + 1) * count]
                if length % partials:
                    mine = self._last(here, indices, begin, k, mine)
                at = f.value(f"add i64 {begin}, {k}")
                for location, value in zip(locations, mine):
                    d.store(f, d.moving(f, location, at, 1), value)
        return [self._total(location) for location in locations]

    def turn_and_step(self, walk: Walk) -> tuple[int, int]:
        """Return how far a walk goes at a turn of partial results, and from one to the next."""
        stride = walk.strides[self.region.kept]
        return stride * self.region.partials, stride

    def _at_partial(
        self,
        reads: Sequence[Walk],
        indices: Sequence[Sequence[Index]],
        begin: str,
        k: int,
        turn: str,
        old: Sequence[str],
    ) -> list[str]:
        """Combine the values of partial result ``begin + k`` at a turn, of all rows."""
        d, f, region = self.d, self.f, self.region
        axis, partials = region.kept, region.partials
        steps = [self.turn_and_step(w) for w in reads]
        far = [w._replace(strides=(*w.strides[:axis], x)) for w, (x, _) in zip(reads, steps)]
        moved = moved_along(d, f, region.shape[axis], far, axis, turn)
        point = [w._replace(location=w.location.at(k * x)) for w, (_, x) in zip(moved, steps)]
        index = self.index("")
        if region.indexed:
            before = f.value(f"mul i64 {turn}, {partials}")
            number = f.value(f"add i64 {f.value(f'add i64 {before}, {begin}')}, {k}")
            index = self.index(number)
        return self.step(point, [[*x, index] for x in indices], old)

    def _last(
        self,
        reads: Sequence[Walk],
        indices: Sequence[Sequence[Index]],
        begin: str,
        k: int,
        old: Sequence[str],
    ) -> list[str]:
        """Combine what is left behind the last whole turn, if it is of this partial result."""
        f, region = self.f, self.region
        turns, rest = divmod(region.shape[region.kept], region.partials)
        kinds = [f.spelling.types[x] for x in self.dtypes * len(indices)]
        left = f.value(f"icmp slt i64 {begin}, {rest - k}")
        stop = f.value(f"select i1 {left}, i64 {turns + 1}, i64 {turns}")
        with f.loop(turns, stop, list(zip(kinds, old))) as loop:
            loop.next = self._at_partial(reads, indices, begin, k, loop.counter, loop.carried)
        return loop.carried

    def _total(self, location: Location) -> str:
        """Combine partial results in memory, the second half into the first."""
        f, region = self.f, self.region
        values = [f.load(location.at(k)) for k in range(region.partials)]
        while len(values) > 1:
            half = len(values) // 2
            pairs = zip(values[:half], values[half:])
            values = [LOWERING[region.combine](f, location.dtype, a, b) for a, b in pairs]
        return values[0]

    def halved(self, value: str, dtype: int) -> str:
        """Combine partial results in a vector, the second half into the first; return a scalar."""
        f, own, count = self.f, self.f.spelling, self.region.partials
        while count > 1:
            count //= 2
            f.spelling, halves = Spelling(2 * count), []
            kind = f.spelling.types[dtype]
            for first in (0, count):
                if count == 1:
                    halves.append(f.value(f"extractelement {kind} {value}, i64 {first}"))
                    continue
                order = ", ".join(f"i32 {first + k}" for k in range(count))
                mask = f"<{count} x i32> <{order}>"
                halves.append(f.value(f"shufflevector {kind} {value}, {kind} poison, {mask}"))
            f.spelling = Spelling(count)
            value = LOWERING[self.region.combine](f, dtype, *halves)
        f.spelling = own
        return value

    def of_rows(
        self, reads: Sequence[Walk], indices: Sequence[Sequence[Index]]
    ) -> Iterator[Binding]:
        """Yield the values of all rows at a point; what they read in common is loaded once.

        Whoever takes them combines one before the next is written, so that few are alive.
        """
        loaded: dict[Location, Binding] = {}
        body = self.region.body
        for row, mine in enumerate(indices):
            here = self.across(reads, row)
            given = []
            for binding, kind in zip(self.arguments(here, mine), body.input_dtypes):
                location = binding.location
                if location is not None and not length_of(kind) and location.array.kind == "local":
                    if location not in loaded:
                        loaded[location] = Binding(operand=self.f.load(location))
                    binding = loaded[location]
                given.append(binding)
            yield from self.low.lower(self.f, body, given, self.wanted)
