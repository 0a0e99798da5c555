"""Between the arrays of a batch and tiles of lanes.

Outside, a batched array leaf is C-ordered: ``count`` items per instance, instance after instance.
Inside, a tile holds ``count`` vectors of lanes. Columns are moved four at a time, by 32-byte loads
from each lane and two shuffles per column, the last ones two at a time or one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.lowering.scope import Location

__all__ = [
    "Rows",
    "announce_store",
    "first_row",
    "gather",
    "lines_of",
    "load_tile",
    "places_of",
    "scatter",
    "store_tile",
]

#: Longer leaves are moved by loops.
UNROLL = 200
#: Bytes of a cache line.
LINE = 64


def _lane_starts(f: Function, base: str, count: int, dtype: int) -> list[str]:
    """Return the address of each lane's instance."""
    step = count * ITEM_BYTES[dtype]
    return [
        f.value(f"getelementptr i8, ptr {base}, i64 {lane * step}")
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
    """Move ``width`` (1, 2 or 4) columns of all lanes into the tile."""
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    kind = f.spelling.memory[tile.dtype]
    if lanes == 1:
        at = f.value(f"getelementptr {item}, ptr {starts[0]}, i64 {column}")
        loaded = f.value(f"load {item}, ptr {at}, align {size}")
        _put(f, _tile_at(f, tile, column, 0), loaded)
        return
    if width == 1:
        vector = "poison"
        for lane, start in enumerate(starts):
            at = f.value(f"getelementptr {item}, ptr {start}, i64 {column}")
            value = f.value(f"load {item}, ptr {at}, align {size}")
            vector = f.value(f"insertelement {kind} {vector}, {item} {value}, i64 {lane}")
        _put(f, _tile_at(f, tile, column, 0), vector)
        return
    rows = []
    for start in starts:
        at = f.value(f"getelementptr {item}, ptr {start}, i64 {column}")
        rows.append(f.value(f"load <{width} x {item}>, ptr {at}, align {size}"))
    # Pairs of columns of the even and of the odd lanes, then one shuffle per column.
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
    location = tile.at(column) if isinstance(column, int) else f.moving(tile, column, 1)
    return location.at(k)


def _put(f: Function, location: Location, vector: str) -> None:
    """Store a vector in its memory form."""
    align = f.spelling.sizes[location.dtype]
    kind = f.spelling.memory[location.dtype]
    f.line(f"store {kind} {vector}, ptr {f.address(location)}, align {align}")


def _get(f: Function, location: Location) -> str:
    align = f.spelling.sizes[location.dtype]
    return f.value(
        f"load {f.spelling.memory[location.dtype]}, ptr {f.address(location)}, align {align}"
    )


def _store_block(
    f: Function, starts: list[str], column: int | str, width: int, tile: Location
) -> None:
    """Move ``width`` (1, 2 or 4) columns of the tile to all lanes."""
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    kind = f.spelling.memory[tile.dtype]
    if width == 1:
        vector = _get(f, _tile_at(f, tile, column, 0))
        if lanes == 1:
            at = f.value(f"getelementptr {item}, ptr {starts[0]}, i64 {column}")
            f.line(f"store {item} {vector}, ptr {at}, align {size}")
            return
        for lane, start in enumerate(starts):
            value = f.value(f"extractelement {kind} {vector}, i64 {lane}")
            at = f.value(f"getelementptr {item}, ptr {start}, i64 {column}")
            f.line(f"store {item} {value}, ptr {at}, align {size}")
        return
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
    widths = (4, 2, 1) if f.spelling.lanes > 1 else (1,)
    first = 0
    if count > UNROLL:
        first = count - count % widths[0]
        with f.loop(0, first, step=widths[0]) as loop:
            move(loop.counter, widths[0])
    while first < count:
        width = next(w for w in widths if w <= count - first)
        if columns & set(range(first, first + width)):
            move(first, width)
        first += width


def load_tile(f: Function, base: str, count: int, columns: set[int], tile: Location) -> None:
    """Fill a tile with the used columns of the instances at ``base``."""
    starts = _lane_starts(f, base, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        _put(f, tile, f.value(f"load {kind}, ptr {starts[0]}, align {size}"))
    else:
        _by_blocks(f, count, columns, lambda c, w: _load_block(f, starts, c, w, tile))


def lines_of(f: Function, count: int, dtype: int) -> int:
    """Return how many cache lines a tile of results is."""
    return -(-count * ITEM_BYTES[dtype] * f.spelling.lanes // LINE)


def announce_store(f: Function, base: str, count: int, dtype: int) -> None:
    """Fetch the lines that a tile will be written to, so that they arrive while it is computed."""
    f.module.declare("@llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    for line in range(lines_of(f, count, dtype)):
        at = f.value(f"getelementptr i8, ptr {base}, i64 {line * LINE}")
        f.line(f"call void @llvm.prefetch.p0(ptr {at}, i32 1, i32 3, i32 1)")


def store_tile(f: Function, base: str, count: int, tile: Location) -> None:
    """Write a whole tile to the instances at ``base``."""
    starts = _lane_starts(f, base, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        f.line(f"store {kind} {_get(f, tile)}, ptr {starts[0]}, align {size}")
    else:
        every = set(range(count))
        _by_blocks(f, count, every, lambda c, w: _store_block(f, starts, c, w, tile))


class Rows(NamedTuple):
    """An array of instances: its address, items an instance, dtype, and room for a tile of it."""

    base: str
    items: int
    dtype: int
    room: str


def _copy_rows(
    f: Function, rows: Rows, source: str, to: str, number: int | str, last: str | None = None
) -> None:
    """Copy instances item by item; where ``last`` is given, rows behind that one repeat it."""
    item, size = ITEM_MEMORY[rows.dtype], ITEM_BYTES[rows.dtype]
    with f.loop(0, number) as row:
        given = row.counter
        if last is not None:
            past = f.value(f"icmp sgt i64 {given}, {last}")
            given = f.value(f"select i1 {past}, i64 {last}, i64 {given}")
        there, here = (f.value(f"mul i64 {r}, {rows.items}") for r in (given, row.counter))
        with f.loop(0, rows.items) as column:
            locations = []
            for base, start in ((source, there), (to, here)):
                at = f.value(f"add i64 {start}, {column.counter}")
                locations.append(f.value(f"getelementptr {item}, ptr {base}, i64 {at}"))
            value = f.value(f"load {item}, ptr {locations[0]}, align {size}")
            f.line(f"store {item} {value}, ptr {locations[1]}, align {size}")


@contextmanager
def _only_part(f: Function, whole: str) -> Iterator[None]:
    """Write code that runs for a tile that is not whole."""
    part, after = f.label(), f.label()
    f.fork(whole, after, part)
    f.start(part)
    yield
    f.jump(after)


def first_row(f: Function, rows: Rows, first: str) -> str:
    """Return where the instances from ``first`` on are in an array."""
    offset = f.value(f"mul i64 {first}, {rows.items * ITEM_BYTES[rows.dtype]}")
    return f.value(f"getelementptr i8, ptr {rows.base}, i64 {offset}")


def places_of(f: Function, whole: str, first: str, rows: list[Rows]) -> list[str]:
    """Return where a tile has its instances: in the arrays, or an incomplete one in the room."""
    starts = [first_row(f, r, first) for r in rows]
    return [
        f.value(f"select i1 {whole}, ptr {start}, ptr {r.room}") for r, start in zip(rows, starts)
    ]


def gather(f: Function, whole: str, first: str, end: str, given: list[Rows]) -> list[str]:
    """Return where a tile reads its instances; an incomplete one is copied to the room first.

    Its rows behind the end repeat the last instance.
    """
    with _only_part(f, whole):
        left = f.value(f"sub i64 {end}, {first}")
        last = f.value(f"sub i64 {left}, 1")
        for r in given:
            _copy_rows(f, r, first_row(f, r, first), r.room, f.spelling.lanes, last)
    return places_of(f, whole, first, given)


def scatter(f: Function, whole: str, first: str, end: str, results: list[Rows]) -> None:
    """Copy the results of an incomplete tile from the room to the arrays."""
    with _only_part(f, whole):
        left = f.value(f"sub i64 {end}, {first}")
        for r in results:
            _copy_rows(f, r, r.room, first_row(f, r, first), left)
