"""Large results of a batch that pass by the caches, so that memory is written and never read.

An ordinary store first fetches the line it writes to. Where a batch puts out more than the caches
hold, a tile is put together in its room and copied to the array by stores that write whole lines
(on x86 only, whose stores of this kind are the same as others for the thread that made them; the
fence makes them so for other threads).
"""

from __future__ import annotations

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.batches.tiles import LINE, Rows
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES

__all__ = ["fence", "may_stream", "passes_by", "stream"]

#: Tiles of fewer bytes are not worth a copy, batches of fewer stay in the caches.
TILE, BATCH = 2048, 32 << 20
NAME = "@stream"
_KIND = "<4 x double>"


def may_stream(f: Function, rows: Rows) -> bool:
    """Tell whether results of these rows could pass by the caches."""
    item, lanes = ITEM_BYTES[rows.dtype], f.spelling.lanes
    return f.module.target.is_x86 and item == 8 and lanes > 1 and rows.items * lanes * 8 >= TILE


def passes_by(f: Function, rows: Rows, limit: int | None = None) -> str:
    """Return the bool "this batch is large": its results are more bytes than the caches hold."""
    count = f.value("sub i64 %end, %begin")
    size = f.value(f"mul i64 {count}, {rows.items * ITEM_BYTES[rows.dtype]}")
    return f.value(f"icmp sgt i64 {size}, {BATCH if limit is None else limit}")


def stream(f: Function, condition: str, first: str, rows: Rows) -> None:
    """Copy a tile from its room to the array if the condition holds."""
    _add_copy(f)
    copy, after = f.label(), f.label()
    f.fork(condition, copy, after)
    f.start(copy)
    offset = f.value(f"mul i64 {first}, {rows.items * 8}")
    to = f.value(f"getelementptr i8, ptr {rows.base}, i64 {offset}")
    f.line(f"call void {NAME}(ptr {to}, ptr {rows.room}, i64 {rows.items * f.spelling.lanes})")
    f.jump(after)


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
    ahead = g.value(f"and i64 {g.value(f'sub i64 0, {address}')}, {LINE - 1}")
    head = g.value(f"lshr i64 {ahead}, 3")
    rest = g.value(f"sub i64 %count, {head}")
    whole = g.value(f"and i64 {rest}, {-(LINE // 8)}")
    stop = g.value(f"add i64 {head}, {whole}")
    _numbers(g, "0", head)
    with g.loop(head, stop, step=LINE // 8) as loop:
        for part in range(0, LINE // 8, 4):
            at = g.value(f"add i64 {loop.counter}, {part}")
            source, to = (
                g.value(f"getelementptr double, ptr {p}, i64 {at}") for p in ("%from", "%to")
            )
            value = g.value(f"load {_KIND}, ptr {source}, align 8")
            g.line(f"store {_KIND} {value}, ptr {to}, align 32, !nontemporal !1")
    _numbers(g, stop, "%count")
    g.finish()


def _numbers(g: Function, start: str, stop: str) -> None:
    with g.loop(start, stop) as loop:
        source, to = (
            g.value(f"getelementptr double, ptr {p}, i64 {loop.counter}") for p in ("%from", "%to")
        )
        g.line(f"store double {g.value(f'load double, ptr {source}, align 8')}, ptr {to}, align 8")
