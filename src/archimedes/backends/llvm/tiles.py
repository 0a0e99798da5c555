"""Between the arrays of a batch and tiles of lanes.

Outside, a batched array leaf is C-ordered: ``count`` items an instance, instance after instance.
Inside, a tile holds ``count`` vectors of lanes. Columns are moved two at a time: 16-byte loads
from each lane, one interleaving shuffle a column; arrays with an odd count do the last column
twice rather than alone. The last, incomplete tile goes item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from archimedes.backends.llvm.assembler import Function
from archimedes.backends.llvm.memory import Location
from archimedes.backends.llvm.spelling import ITEM_BYTES, ITEM_MEMORY

__all__ = ["load_tail", "load_tile", "store_tail", "store_tile"]

#: Longer leaves are moved by loops.
UNROLL = 48


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


def _load_pair(f: Function, starts: list[str], column: int | str, tile: Location) -> None:
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    pairs = []
    for start in starts:
        at = f.value(f"getelementptr {item}, ptr {start}, i64 {column}")
        pairs.append(f.value(f"load <2 x {item}>, ptr {at}, align {size}"))
    even, odd = (_joined(f, item, pairs[k::2], 2) for k in range(2))
    kind = f.spelling.memory[tile.dtype]
    for k in range(2):
        order = [x for j in range(0, lanes, 2) for x in (j + k, lanes + j + k)]
        vector = _shuffle(f, kind, even, odd, order)
        _put(f, _tile_at(f, tile, column, k), vector)


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


def _store_pair(f: Function, starts: list[str], column: int | str, tile: Location) -> None:
    item, size, lanes = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype], f.spelling.lanes
    kind = f.spelling.memory[tile.dtype]
    a, b = (_get(f, _tile_at(f, tile, column, k)) for k in range(2))
    for k in range(2):
        order = [x for j in range(0, lanes, 2) for x in (j + k, lanes + j + k)]
        mixed = _shuffle(f, kind, a, b, order)
        for j in range(0, lanes, 2):
            pair = mixed if lanes == 2 else _shuffle(f, kind, mixed, "poison", (j, j + 1))
            at = f.value(f"getelementptr {item}, ptr {starts[j + k]}, i64 {column}")
            f.line(f"store <2 x {item}> {pair}, ptr {at}, align {size}")


def _by_pairs(
    f: Function, count: int, columns: set[int], move: Callable[[int | str], None]
) -> None:
    """Call ``move`` for pairs of columns that cover the used ones."""
    if count <= UNROLL:
        firsts = {min(column - column % 2, count - 2) for column in columns}
        for first in sorted(firsts):
            move(first)
        return
    with f.loop(0, count - 1, step=2) as loop:
        move(loop.counter)
    if count % 2:
        move(count - 2)


def load_tile(
    f: Function, base: str, first: str, count: int, columns: set[int], tile: Location
) -> None:
    """Fill a tile with the used columns of the instances from ``first`` on."""
    starts = _lane_starts(f, base, first, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        _put(f, tile, f.value(f"load {kind}, ptr {starts[0]}, align {size}"))
    else:
        _by_pairs(f, count, columns, lambda column: _load_pair(f, starts, column, tile))


def store_tile(f: Function, base: str, first: str, count: int, tile: Location) -> None:
    """Write a whole tile to the instances from ``first`` on."""
    starts = _lane_starts(f, base, first, count, tile.dtype)
    if count == 1:
        kind, size = f.spelling.memory[tile.dtype], ITEM_BYTES[tile.dtype]
        f.line(f"store {kind} {_get(f, tile)}, ptr {starts[0]}, align {size}")
    else:
        every = set(range(count))
        _by_pairs(f, count, every, lambda column: _store_pair(f, starts, column, tile))


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
