"""Between the arrays of a batch and tiles of lanes.

Outside, a batched array leaf is C-ordered: ``count`` items an instance, instance after instance.
Inside, a tile holds ``count`` vectors of lanes. Columns are moved four at a time, by 32-byte loads
from each lane and two shuffles a column; where the count is no multiple of four, the last block
overlaps the one before. The last, incomplete tile goes item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from archimedes.backends.llvm.assembler import Function
from archimedes.backends.llvm.memory import Location
from archimedes.backends.llvm.spelling import ITEM_BYTES, ITEM_MEMORY

__all__ = ["announce_store", "load_tail", "load_tile", "store_tail", "store_tile"]

#: Longer leaves are moved by loops.
UNROLL = 48
#: Bytes of a cache line, and how many lines of results are worth fetching ahead.
LINE = 64
ANNOUNCED = (24, 384)


def _lane_starts(f: Function, base: str, first: str, count: int, dtype: int) -> list[str]:
    """Return the address of each lane's instance, from the number of the first instance."""
    step = count * ITEM_BYTES[dtype]
    offset = f.value(f"mul i64 {first}, {step}")
    start = f.value(f"getelementptr i8, ptr {base}, i64 {offset}")
    return [
        f.value(f"getelementptr i8, ptr {start}, i64 {lane * step}")
        for lane in range(f.spelling.lanes)
    ]


def _shuffle(f: Function, kind: str, a: str, b: str, order: Iterable[int]) -> str:
    order = list(order)
    mask = f"<{len(order)} x i32> <" + ", ".join(f"i32 {k}" for k in order) + ">"
    return f.value(f"shufflevector {kind} {a}, {kind} {b}, {mask}")


def _joined(f: Function, item: str, parts: list[str], size: int) -> str:
    """Concatenate short vectors."""
    while len(parts) > 1:
        kind = f"<{size} x {item}>"
        pairs = zip(parts[::2], parts[1::2])
        parts = [_shuffle(f, kind, a, b, range(2 * size)) for a, b in pairs]
        size *= 2
    return parts[0]


def _interleaved(lanes: int, k: int) -> list[int]:
    """Indices that take item ``k`` of each pair from two vectors in turn."""
    return [x for j in range(0, lanes, 2) for x in (j + k, lanes + j + k)]


def _load_block(
    f: Function, starts: list[str], column: int | str, width: int, tile: Location
) -> None:
    """Move ``width`` (2 or 4) columns of all lanes into the tile."""
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    kind = f.spelling.memory[tile.dtype]
    rows = []
    for start in starts:
        at = f.value(f"getelementptr {item}, ptr {start}, i64 {column}")
        rows.append(f.value(f"load <{width} x {item}>, ptr {at}, align {size}"))
    # Pairs of columns of the even and of the odd lanes, then one shuffle a column.
    even, odd = (_pairs_of(f, item, rows[k::2], width) for k in range(2))
    for pair, (a, b) in enumerate(zip(even, odd)):
        for k in range(2):
            vector = _shuffle(f, kind, a, b, _interleaved(lanes, k))
            _put(f, _tile_at(f, tile, column, 2 * pair + k), vector)


def _pairs_of(f: Function, item: str, rows: list[str], width: int) -> list[str]:
    """From rows of 2 or 4 columns, collect columns 0-1 (and 2-3) of all rows, row by row."""
    lanes = f.spelling.lanes
    if width == 2:
        return [_joined(f, item, rows, 2)]
    if lanes == 2:
        return [_shuffle(f, f"<4 x {item}>", rows[0], "poison", (j, j + 1)) for j in (0, 2)]
    half = len(rows) // 2
    a, b = (_joined(f, item, part, 4) for part in (rows[:half], rows[half:]))
    chosen = [[j for j in range(2 * lanes) if j % 4 // 2 == k] for k in range(2)]
    return [_shuffle(f, f.spelling.vector(item), a, b, order) for order in chosen]


def _tile_at(f: Function, tile: Location, column: int | str, k: int) -> Location:
    place = tile.at(column) if isinstance(column, int) else f.moving(tile, column, 1)
    return place.at(k)


def _put(f: Function, place: Location, vector: str) -> None:
    """Store a vector in its memory form."""
    align = f.spelling.sizes[place.dtype]
    kind = f.spelling.memory[place.dtype]
    f.line(f"store {kind} {vector}, ptr {f.address(place)}, align {align}")


def _get(f: Function, place: Location) -> str:
    align = f.spelling.sizes[place.dtype]
    return f.value(f"load {f.spelling.memory[place.dtype]}, ptr {f.address(place)}, align {align}")


def _store_block(
    f: Function, starts: list[str], column: int | str, width: int, tile: Location
) -> None:
    """Move ``width`` (2 or 4) columns of the tile to all lanes."""
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    kind = f.spelling.memory[tile.dtype]
    columns = [_get(f, _tile_at(f, tile, column, k)) for k in range(width)]
    for k in range(2):
        order = _interleaved(lanes, k)
        halves = zip(columns[::2], columns[1::2])
        pairs = [_shuffle(f, kind, a, b, order) for a, b in halves]
        for j in range(0, lanes, 2):
            # Two items of each vector of pairs make the row of a lane.
            other = pairs[-1] if width == 4 else "poison"
            picked = [j, j + 1, lanes + j, lanes + j + 1][:width]
            row = _shuffle(f, kind, pairs[0], other, picked)
            at = f.value(f"getelementptr {item}, ptr {starts[j + k]}, i64 {column}")
            f.line(f"store <{width} x {item}> {row}, ptr {at}, align {size}")


def _by_blocks(
    f: Function, count: int, columns: set[int], move: Callable[[int | str, int], None]
) -> None:
    """Call ``move(first column, width)`` for blocks that cover the used columns."""
    width = 4 if count >= 4 else 2
    last = count - width
    if count <= UNROLL:
        for first in sorted({min(column - column % width, last) for column in columns}):
            move(first, width)
        return
    with f.loop(0, last + 1, step=width) as loop:
        move(loop.counter, width)
    if count % width:
        move(last, width)


def load_tile(
    f: Function, base: str, first: str, count: int, columns: set[int], tile: Location
) -> None:
    """Fill a tile with the used columns of the instances from ``first`` on."""
    starts = _lane_starts(f, base, first, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        _put(f, tile, f.value(f"load {kind}, ptr {starts[0]}, align {size}"))
    else:
        _by_blocks(f, count, columns, lambda c, w: _load_block(f, starts, c, w, tile))


def announce_store(f: Function, base: str, first: str, count: int, dtype: int) -> None:
    """Fetch the lines that a tile will be written to, so that they arrive while it is computed.

    Worth it for large results, as long as they stay in the first cache until then.
    """
    step = count * ITEM_BYTES[dtype]
    lines = -(-step * f.spelling.lanes // LINE)
    if not ANNOUNCED[0] <= lines <= ANNOUNCED[1]:
        return
    f.module.declare("@llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    offset = f.value(f"mul i64 {first}, {step}")
    start = f.value(f"getelementptr i8, ptr {base}, i64 {offset}")
    with f.loop(0, lines) as loop:
        further = f.value(f"mul i64 {loop.counter}, {LINE}")
        at = f.value(f"getelementptr i8, ptr {start}, i64 {further}")
        f.line(f"call void @llvm.prefetch.p0(ptr {at}, i32 1, i32 3, i32 1)")


def store_tile(f: Function, base: str, first: str, count: int, tile: Location) -> None:
    """Write a whole tile to the instances from ``first`` on."""
    starts = _lane_starts(f, base, first, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        f.line(f"store {kind} {_get(f, tile)}, ptr {starts[0]}, align {size}")
    else:
        every = set(range(count))
        _by_blocks(f, count, every, lambda c, w: _store_block(f, starts, c, w, tile))


def _items(
    f: Function, base: str, instance: str, lane: str, count: int, tile: Location
) -> Iterable[tuple[str, str]]:
    """Yield, in a loop over columns, the addresses of an item in the array and in the tile."""
    item, lanes = ITEM_MEMORY[tile.dtype], f.spelling.lanes
    row = f.value(f"mul i64 {instance}, {count}")
    with f.loop(0, count) as columns:
        outside = f.value(f"add i64 {row}, {columns.counter}")
        above = f.value(f"mul i64 {columns.counter}, {lanes}")
        inside = f.value(f"add i64 {above}, {lane}")
        yield (
            f.value(f"getelementptr {item}, ptr {base}, i64 {outside}"),
            f.value(f"getelementptr {item}, ptr {f.address(tile)}, i64 {inside}"),
        )


def _move_item(f: Function, source: str, to: str, dtype: int) -> None:
    item, size = ITEM_MEMORY[dtype], ITEM_BYTES[dtype]
    value = f.value(f"load {item}, ptr {source}, align {size}")
    f.line(f"store {item} {value}, ptr {to}, align {size}")


def load_tail(f: Function, base: str, first: str, end: str, count: int, tile: Location) -> None:
    """Fill a tile from fewer instances than lanes: lanes past the end repeat the last instance."""
    last = f.value(f"sub i64 {end}, 1")
    with f.loop(0, f.spelling.lanes) as lanes:
        wished = f.value(f"add i64 {first}, {lanes.counter}")
        past = f.value(f"icmp sgt i64 {wished}, {last}")
        instance = f.value(f"select i1 {past}, i64 {last}, i64 {wished}")
        for outside, inside in _items(f, base, instance, lanes.counter, count, tile):
            _move_item(f, outside, inside, tile.dtype)


def store_tail(f: Function, base: str, first: str, end: str, count: int, tile: Location) -> None:
    """Write the lanes of a tile that stand for instances before ``end``."""
    number = f.value(f"sub i64 {end}, {first}")
    with f.loop(0, number) as lanes:
        instance = f.value(f"add i64 {first}, {lanes.counter}")
        for outside, inside in _items(f, base, instance, lanes.counter, count, tile):
            _move_item(f, inside, outside, tile.dtype)
