"""What a nest in lanes reads again and again is copied to where it lies in the order it is read."""

from __future__ import annotations

from archimedes.backends.llvm.lowering.memory import ALIGNMENT, Pointer
from archimedes.backends.llvm.lowering.nests.ranges import Ranges
from archimedes.backends.llvm.lowering.nests.stages import StagedNest
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES
from archimedes.backends.llvm.runtime.loop_threads_text import OWN
from archimedes.backends.lowering.values import Place
from archimedes.backends.lowering.walks import Walk, moved_along
from archimedes.graph.regions import Gather, Nest
from archimedes.graph.regions.nest import Read

__all__ = ["RepeatedReads", "in_lanes"]

#: What is read so many times is copied to where it lies in order, unless it is very large.
WORTH, LARGEST = 3, 1 << 19


def in_lanes(walk: Walk, axis: int) -> Walk:
    """Return a walk whose lanes go along an axis."""
    place, stride = walk.place, walk.strides[axis]
    return walk._replace(place=place._replace(array=place.array._replace(lane=stride)))


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
        for k, (place, strides, _) in enumerate(walks[:count]):
            lane = place.array.lane
            far = abs(lane) > 1 or (lane != 0 and abs(strides[axis]) > plan.lanes)
            if not far or strides[plan.across] or isinstance(walking(region)[k], Gather):
                continue
            room = self._room_of(place.dtype, length)
            with d.counted(f, length, ()) as loop:
                (source,) = moved_along(d, f, length, [walks[k]], axis, loop.counter)
                d.store(f, d.moving(f, room, loop.counter, 1), d.load(f, source.place))
            found[k] = Walk(room, (*strides[:axis], 1))
        return found

    def _room_of(self, dtype: int, length: int) -> Place:
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
        for k, (place, strides, _) in enumerate(walks[:count]):
            apart = abs(strides[axis]) > 1 and strides[plan.across] and not strides[plan.axis]
            if not apart or isinstance(walking(region)[k], Gather):
                continue
            offset = f.module.frame.bytes(rows * length * ITEM_BYTES[place.dtype])
            room = Place(Pointer("frame", offset, uniform=True), 0, place.dtype)
            own = [0] * len(strides)
            own[plan.across], own[axis] = length, 1
            pair = [walks[k], Walk(room, tuple(own))]
            with d.counted(f, rows, ()) as row:
                mine = moved_along(d, f, rows, pair, plan.across, row.counter)
                with self.tiles(length, plan.lanes) as start:
                    lanes = [in_lanes(w, axis) for w in self.at(mine, axis, start)]
                    d.store(f, lanes[1].place, d.load(f, lanes[0].place))
            found[k] = pair[1]
        return found

    def _copies(self, items: int, times: int) -> bool:
        """Tell whether it pays to copy so many items that are read so many times."""
        one = len(self.region.shape) == self.region.kept + 1
        return one and times >= WORTH and items <= LARGEST
