"""Very long results of short loops pass by the caches, so that memory is written and never read.

An ordinary store first fetches the line it writes to: a third of what x*y + x moves. Such stores
take whole vectors at multiples of their size, so tiles begin where the result has one; what is in
front of the first and behind the last is stored as ever. (On x86 only; see ``batches/streams.py``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archimedes.backends.llvm.lowering.batches.streams import fence
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES
from archimedes.backends.lowering.walks import Walk
from archimedes.graph.regions import Nest

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.nests.lanes import LaneNest

__all__ = ["passes_caches", "write_streamed"]

#: Results of so many bytes leave the caches anyway, whoever reads them next.
LARGE = 1 << 24
#: Vectors of so many bytes are stored at once.
VECTOR = 32


def passes_caches(nest: LaneNest, results: Sequence[Walk]) -> bool:
    """Tell whether the results of a nest are to be streamed."""
    region: Nest = nest.region
    if region.combine or nest.plan.stages or len(region.shape) != 1 or len(results) != 1:
        return False
    (place, (stride,), _) = results[0]
    size = ITEM_BYTES[place.dtype]
    large = region.shape[0] * size >= LARGE and nest.plan.lanes * size >= VECTOR
    return large and size == 8 and stride == 1 and nest.f.module.target.is_x86


def write_streamed(
    nest: LaneNest, walks: Sequence[Walk], count: int, ends: tuple[str, str] | None
) -> None:
    """Write the loop over tiles; the last of the walks takes the results."""
    f, region, lanes = nest.f, nest.region, nest.plan.lanes
    length = region.shape[0]
    begin, end = ends or ("0", str(length))
    address = f.value(f"ptrtoint ptr {f.address(walks[count].place)} to i64")
    ahead = f.value(f"and i64 {f.value(f'sub i64 0, {address}')}, {VECTOR - 1}")
    shift = f.value(f"lshr i64 {ahead}, 3")
    # Who has the first tile also has what is in front of it.
    front = f.value(f"icmp eq i64 {begin}, 0")
    first = f.value(f"select i1 {front}, i64 {-lanes}, i64 {begin}")
    with f.loop(first, end, step=lanes) as loop:
        wanted = f.value(f"add i64 {loop.counter}, {shift}")
        low = f.value(f"icmp slt i64 {wanted}, 0")
        above = f.value(f"select i1 {low}, i64 0, i64 {wanted}")
        start = nest.within(above, length, lanes, always=True)
        here = [nest.lanes_along(w) for w in nest.at(walks, 0, start)]
        given = nest.arguments(here[:count], [nest.lane_index(start)])
        (found,) = nest.low.lower(f, region.body, given, nest.wanted)
        value, to = f.operand(found), here[count].place
        whole, part, after = f.label(), f.label(), f.label()
        f.fork(f.value(f"icmp eq i64 {start}, {wanted}"), whole, part)
        f.start(whole)
        kind = f.spelling.types[to.dtype]
        at = f.address(to)
        f.line(f"store {kind} {value}, ptr {at}, align {VECTOR}, !nontemporal !1")
        f.line(f"br label %{after}")
        f.start(part)
        f.store(to, value)
        f.jump(after)
    fence(f)
