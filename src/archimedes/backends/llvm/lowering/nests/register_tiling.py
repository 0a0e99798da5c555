"""Register tiling: several rows of a nest at a time.

What rows share is loaded once, and the CPU has enough to do. Rows are points of a kept axis. SIMD
lanes are the instances of a batch, or points of another axis (``loop_vectorize.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from archimedes.backends.llvm.lowering.instructions import LOWERING
from archimedes.backends.llvm.lowering.memory import Spelling
from archimedes.backends.llvm.lowering.nests.vector_plans import Plan
from archimedes.backends.lowering.nests import Index, NestWriter, Walk, advance_along
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import length_of

#: The indices of all rows at a point.
Points = Sequence[Sequence[Index]]


@dataclass(eq=False)
class TiledNest(NestWriter):
    """Writes a nest, some rows at a time."""

    plan: Plan

    # ---- tiles of an axis ----------------------------------------------------------------

    def enter_tiles(
        self,
        loops: ExitStack,
        walks: Sequence[Walk],
        axis: int,
        step: int,
        ends: tuple[str, str] | None = None,
    ) -> tuple[list[Walk], str]:
        """Begin a loop over tiles of an axis; return walks at the start of a tile, and the start.

        ``ends`` are those of a range of the axis, whole tiles from its start.
        """
        length = self.region.shape[axis]
        loop = loops.enter_context(self.f.loop(*(ends or (0, length)), step=step))
        start = self.clamp_tile(loop.counter, length, step)
        return self.advance_to(walks, axis, start), start

    def clamp_tile(self, start: str, length: int, step: int, always: bool = False) -> str:
        """Return the start of a tile that ends with an axis at the latest.

        Tiles begin at multiples of their length, unless they may begin anywhere (``always``).
        """
        if length % step == 0 and not always:
            return start
        past = self.f.value(f"icmp sgt i64 {start}, {length - step}")
        return self.f.value(f"select i1 {past}, i64 {length - step}, i64 {start}")

    def advance_to(self, walks: Sequence[Walk], axis: int, start: str) -> list[Walk]:
        """Return walks at a point of an axis."""
        return advance_along(self.d, self.f, self.region.shape[axis], walks, axis, start)

    # ---- rows ----------------------------------------------------------------------------

    def at_row(self, walks: Sequence[Walk], row: int) -> list[Walk]:
        """Return walks some rows further."""
        across = self.plan.across
        return [w.at(row * w.strides[across] if row else 0) for w in walks]

    def row_indices(self, indices: dict[int, Index], row: int) -> list[Index]:
        """Return the indices of the kept axes in a row."""
        mine = dict(indices)
        if row and self.region.indexed:
            start = indices[self.plan.across][1]
            mine[self.plan.across] = self.index(self.f.add(start, row))
        return [mine[axis] for axis in range(self.region.kept)]

    def write_rows(self, walks: Sequence[Walk], count: int, indices: dict[int, Index]) -> list[str]:
        """Compute all rows at a point of the kept axes; store their results, or return them."""
        rows, outputs = range(self.plan.rows), len(walks) - count
        points = [self.row_indices(indices, row) for row in rows]
        if not self.region.combine:
            values = self.row_values(walks[:count], points)
            totals = [self.d.operand(self.f, value) for value in values]
        else:
            combine = self._chains if self.in_order else self._reduce_partials
            totals = combine(walks[:count], points, self.identities(self.dtypes) * len(points))
        for row in rows if outputs else ():
            for walk, value in zip(self.at_row(walks[count:], row), totals[row * outputs :]):
                self.d.store(self.f, walk.location, value)
        return totals

    def _chains(self, reads: Sequence[Walk], points: Points, carried: list[str]) -> list[str]:
        """Combine along the axes that are left, for all rows."""
        region, axis = self.region, len(points[0])
        if axis == len(region.shape):
            return self._combine_rows(reads, points, carried)
        length = region.shape[axis]
        pairs = list(zip(self.dtypes * self.plan.rows, carried))
        with self.d.for_loop(self.f, length, pairs) as loop:
            here, at = self.advance_to(reads, axis, loop.counter), self.index(loop.counter)
            loop.next = self._chains(here, [[*x, at] for x in points], loop.carried)
        return loop.carried

    def _combine_rows(
        self, reads: Sequence[Walk], points: Points, carried: Sequence[str]
    ) -> list[str]:
        """Combine the values of all rows at a point with what there is."""
        values = self.row_values(reads, points)
        return [self.combine(*x) for x in zip(carried, values, self.dtypes * len(points))]

    def row_values(self, reads: Sequence[Walk], points: Points) -> Iterator[Binding]:
        """Yield the values of all rows at a point; what they read in common is loaded once.

        Whoever takes them combines one before the next is written, so that few are alive.
        """
        loaded: dict[Location, Binding] = {}
        body = self.region.body
        for row, indices in enumerate(points):
            arguments = self.arguments(self.at_row(reads, row), indices)
            for k, (binding, kind) in enumerate(zip(arguments, body.input_dtypes)):
                location = binding.location
                if location is not None and not length_of(kind) and location.array.kind == "local":
                    if location not in loaded:
                        loaded[location] = Binding(operand=self.f.load(location))
                    arguments[k] = loaded[location]
            yield from self.low.lower(self.f, body, arguments, self.wanted)

    # ---- partial results -----------------------------------------------------------------

    def _reduce_partials(
        self, reads: Sequence[Walk], points: Points, first: Sequence[str]
    ) -> list[str]:
        """Combine along the reduced axis, a few partial results of all rows at a time."""
        d, f, region, group = self.d, self.f, self.region, self.plan.group
        axis, partials = region.kept, region.partials
        dtypes = self.dtypes * len(points)
        turns, rest = divmod(region.shape[axis], partials)
        count = len(dtypes)
        locations = [d.array(f, x, partials) for x in dtypes]
        kinds = [f.spelling.types[x] for x in dtypes]
        with d.for_loop(f, partials // group) as outer:
            begin = f.mul(outer.counter, group)
            here = self.advance_to(reads, axis, begin)
            steps = [self.turn_and_step(w) for w in here]
            far = [w._replace(strides=(*w.strides[:axis], x)) for w, (x, _) in zip(here, steps)]

            def combine(k: int, turn: str, old: Sequence[str]) -> list[str]:
                """Combine the values of partial result ``begin + k`` at a turn, of all rows."""
                there = self.advance_to(far, axis, turn)
                point = [w.at(k * x) for w, (_, x) in zip(there, steps)]
                index = self.index("")
                if region.indexed:
                    index = self.index(f.add(f.add(f.mul(turn, partials), begin), k))
                return self._combine_rows(point, [[*x, index] for x in points], old)

            with f.loop(0, turns, list(zip(kinds * group, [*first] * group))) as loop:
                for k in range(group):
                    old = loop.carried[k * count : (k + 1) * count]
                    loop.next = [*loop.next[: k * count], *combine(k, loop.counter, old)]
            totals = loop.carried
            for k in range(group):
                mine = totals[k * count : (k + 1) * count]
                if rest:
                    # What is left behind the last whole turn, if it is of this partial result.
                    left = f.value(f"icmp slt i64 {begin}, {rest - k}")
                    stop = f.value(f"select i1 {left}, i64 {turns + 1}, i64 {turns}")
                    with f.loop(turns, stop, list(zip(kinds, mine))) as last:
                        last.next = combine(k, last.counter, last.carried)
                    mine = last.carried
                at = f.add(begin, k)
                for location, value in zip(locations, mine):
                    d.store(f, d.advance(f, location, at, 1), value)
        return [self._total(location) for location in locations]

    def turn_and_step(self, walk: Walk) -> tuple[int, int]:
        """Return how far a walk goes at a turn of partial results, and from one to the next."""
        stride = walk.strides[self.region.kept]
        return stride * self.region.partials, stride

    def _total(self, location: Location) -> str:
        """Combine partial results in memory, the second half into the first."""
        f, region = self.f, self.region
        values = [f.load(location.at(k)) for k in range(region.partials)]
        while len(values) > 1:
            half = len(values) // 2
            pairs = zip(values[:half], values[half:])
            values = [LOWERING[region.combine](f, location.dtype, a, b) for a, b in pairs]
        return values[0]

    def reduce_vector(self, value: str, dtype: int) -> str:
        """Combine partial results in a vector, the second half into the first; return a scalar."""
        f, own, count = self.f, self.f.spelling, self.region.partials
        while count > 1:
            count //= 2
            f.spelling, halves = Spelling(2 * count), []
            kind = f.spelling.types[dtype]
            for first in (0, count):
                if count == 1:
                    halves.append(f.value(f"extractelement {kind} {value}, i64 {first}"))
                else:
                    halves.append(f.shuffle(kind, value, "poison", range(first, first + count)))
            f.spelling = Spelling(count)
            value = LOWERING[self.region.combine](f, dtype, *halves)
        f.spelling = own
        return value
