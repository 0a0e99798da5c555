"""Nontemporal stores: large results go to memory past the caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES
from archimedes.backends.llvm.lowering.tiles import LINE, Rows, first_row
from archimedes.backends.lowering.nests import Walk
from archimedes.graph.regions import Nest

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.nests.loop_vectorize import VectorNest


#: Tiles of fewer bytes are not worth a copy, batches of fewer stay in the caches.
TILE, BATCH = 2048, 32 << 20
NAME = "@stream"
_KIND = "<4 x double>"


def passes_by(f: Function, rows: Rows) -> str:
    """Return the bool "this batch is large": its results are more bytes than the caches hold.

    It is empty where results of these rows never pass by the caches.
    """
    item, lanes = ITEM_BYTES[rows.dtype], f.spelling.lanes
    if not f.module.target.is_x86 or item != 8 or lanes == 1 or rows.items * lanes * 8 < TILE:
        return ""
    size = f.mul(f.sub("%end", "%begin"), rows.items * item)
    return f.value(f"icmp sgt i64 {size}, {BATCH}")


def stream(f: Function, condition: str, first: str, rows: Rows) -> None:
    """Copy a tile from its room to the array if the condition holds."""
    _add_copy(f)
    with f.when(condition):
        to, count = first_row(f, rows, first), rows.items * f.spelling.lanes
        f.line(f"call void {NAME}(ptr {to}, ptr {rows.room}, i64 {count})")


def fence(f: Function) -> None:
    """Let all threads see what was written."""
    f.module.declare("@llvm.x86.sse.sfence", "void", "")
    f.line("call void @llvm.x86.sse.sfence()")


def _add_copy(f: Function) -> None:
    """Write the copy of ``count`` numbers of 8 bytes, unless it is there already."""
    define = f"define internal void {NAME}(ptr %to, ptr %from, i64 %count) noinline"
    if any(text.startswith(define) for text in f.module.functions):
        return
    g = Function(f.module, define)
    address = g.value("ptrtoint ptr %to to i64")
    # Numbers up to the first whole line.
    ahead = g.value(f"and i64 {g.sub(0, address)}, {LINE - 1}")
    head = g.value(f"lshr i64 {ahead}, 3")
    rest = g.sub("%count", head)
    whole = g.value(f"and i64 {rest}, {-(LINE // 8)}")
    stop = g.add(head, whole)
    _numbers(g, "0", head)
    with g.loop(head, stop, step=LINE // 8) as loop:
        for part in range(0, LINE // 8, 4):
            at = g.add(loop.counter, part)
            source, to = (g.item("double", p, at) for p in ("%from", "%to"))
            value = g.value(f"load {_KIND}, ptr {source}, align 8")
            g.line(f"store {_KIND} {value}, ptr {to}, align 32, !nontemporal !1")
    _numbers(g, stop, "%count")
    g.finish()


def _numbers(g: Function, start: str, stop: str) -> None:
    with g.loop(start, stop) as loop:
        source, to = (g.item("double", p, loop.counter) for p in ("%from", "%to"))
        g.line(f"store double {g.value(f'load double, ptr {source}, align 8')}, ptr {to}, align 8")


#: Results of so many bytes leave the caches anyway, whoever reads them next.
LARGE = 1 << 24
#: Vectors of so many bytes are stored at once.
VECTOR = 32


def passes_caches(nest: VectorNest, results: Sequence[Walk]) -> bool:
    """Return whether the results of a nest are to be streamed."""
    region: Nest = nest.region
    if region.combine or nest.plan.stages or len(region.shape) != 1 or len(results) != 1:
        return False
    (location, (stride,), _) = results[0]
    size = ITEM_BYTES[location.dtype]
    large = region.shape[0] * size >= LARGE and nest.plan.lanes * size >= VECTOR
    return large and size == 8 and stride == 1 and nest.f.module.target.is_x86


def write_streamed(
    nest: VectorNest, walks: Sequence[Walk], count: int, ends: tuple[str, str] | None
) -> None:
    """Write the loop over tiles; the last of the walks takes the results."""
    f, region, lanes = nest.f, nest.region, nest.plan.lanes
    length = region.shape[0]
    begin, end = ends or ("0", str(length))
    address = f.value(f"ptrtoint ptr {f.address(walks[count].location)} to i64")
    ahead = f.value(f"and i64 {f.sub(0, address)}, {VECTOR - 1}")
    shift = f.value(f"lshr i64 {ahead}, 3")
    # Who has the first tile also has what is in front of it.
    front = f.value(f"icmp eq i64 {begin}, 0")
    first = f.value(f"select i1 {front}, i64 {-lanes}, i64 {begin}")
    with f.loop(first, end, step=lanes) as loop:
        wanted = f.add(loop.counter, shift)
        low = f.value(f"icmp slt i64 {wanted}, 0")
        above = f.value(f"select i1 {low}, i64 0, i64 {wanted}")
        start = nest.clamp_tile(above, length, lanes, always=True)
        here = nest.lanes_along(nest.advance_to(walks, 0, start), 0)
        arguments = nest.arguments(here[:count], [nest.lane_index(start)])
        (result,) = nest.low.lower(f, region.body, arguments, nest.wanted)
        value, to = f.operand(result), here[count].location
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
