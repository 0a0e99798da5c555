"""Between the arrays of a batch and tiles of lanes.

Outside, a batched array leaf is C-ordered: ``count`` items per instance, instance after instance.
Inside, a tile holds ``count`` vectors of lanes. Columns are moved four at a time, by 32-byte loads
from each lane and two shuffles per column, the last ones two at a time or one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.lowering.scope import Location

#: Longer leaves are moved by loops.
UNROLL = 200
#: Bytes of a cache line.
LINE = 64


def _concatenate(f: Function, item: str, parts: list[str], size: int) -> str:
    """Join short vectors."""
    while len(parts) > 1:
        kind = f"<{size} x {item}>"
        pairs = zip(parts[::2], parts[1::2])
        parts = [f.shuffle(kind, a, b, range(2 * size)) for a, b in pairs]
        size *= 2
    return parts[0]


def _interleave(lanes: int, k: int) -> list[int]:
    """Return the indices that take item ``k`` of each pair from two vectors in turn."""
    return [x for j in range(0, lanes, 2) for x in (j + k, lanes + j + k)]


class _TileMove:
    """Moves columns between a tile, of vectors of lanes, and the instances at ``base``."""

    def __init__(self, f: Function, base: str, count: int, tile: Location) -> None:
        self.f, self.count, self.tile, self.lanes = f, count, tile, f.spelling.lanes
        self.item, self.size = ITEM_MEMORY[tile.dtype], ITEM_BYTES[tile.dtype]
        self.kind = f.spelling.memory[tile.dtype]
        #: The address of each lane's instance.
        self.starts = [f.offset(base, lane * count * self.size) for lane in range(self.lanes)]

    def by_blocks(self, columns: set[int], move: Callable[[int | str, int], None]) -> None:
        """Call ``move(first column, width)`` for blocks that cover the used columns."""
        first, count = 0, self.count
        if count > UNROLL:
            first = count - count % 4
            with self.f.loop(0, first, step=4) as loop:
                move(loop.counter, 4)
        while first < count:
            width = next(w for w in (4, 2, 1) if w <= count - first)
            if columns & set(range(first, first + width)):
                move(first, width)
            first += width

    def at(self, lane: int, column: int | str) -> str:
        """Return the address of a column of an instance."""
        return self.f.item(self.item, self.starts[lane], column)

    def tile_at(self, column: int | str, k: int = 0) -> Location:
        """Return the vector of a column in the tile."""
        f, tile = self.f, self.tile
        here = tile.at(column) if isinstance(column, int) else f.advance(tile, column, 1)
        return here.at(k)

    def put(self, location: Location, vector: str) -> None:
        """Store a vector in its memory form into the tile."""
        align = self.f.spelling.sizes[location.dtype]
        self.f.line(f"store {self.kind} {vector}, ptr {self.f.address(location)}, align {align}")

    def get(self, location: Location) -> str:
        """Load a vector of the tile."""
        align = self.f.spelling.sizes[location.dtype]
        return self.f.value(f"load {self.kind}, ptr {self.f.address(location)}, align {align}")

    def load(self, column: int | str, width: int) -> None:
        """Move ``width`` (1, 2 or 4) columns of all lanes into the tile."""
        f = self.f
        kind = self.item if width == 1 else f"<{width} x {self.item}>"
        rows = (
            f.value(f"load {kind}, ptr {self.at(lane, column)}, align {self.size}")
            for lane in range(self.lanes)
        )
        if width == 1:
            vector = f.vector(self.kind, self.item, rows)
            self.put(self.tile_at(column), vector)
            return
        # Pairs of columns of the even and of the odd lanes, then one shuffle per column.
        loaded = list(rows)
        even, odd = (self._pairs(loaded[k::2], width) for k in range(2))
        for pair, (a, b) in enumerate(zip(even, odd)):
            for k in range(2):
                vector = f.shuffle(self.kind, a, b, _interleave(self.lanes, k))
                self.put(self.tile_at(column, 2 * pair + k), vector)

    def _pairs(self, rows: list[str], width: int) -> list[str]:
        """From rows of 2 or 4 columns, collect columns 0-1 (and 2-3) of all rows, row by row."""
        f, item, lanes = self.f, self.item, self.lanes
        if width == 2:
            return [_concatenate(f, item, rows, 2)]
        if lanes == 2:
            return [f.shuffle(f"<4 x {item}>", rows[0], "poison", (j, j + 1)) for j in (0, 2)]
        half = len(rows) // 2
        a, b = (_concatenate(f, item, part, 4) for part in (rows[:half], rows[half:]))
        orders = [[j for j in range(2 * lanes) if j % 4 // 2 == k] for k in range(2)]
        return [f.shuffle(f"<{lanes} x {item}>", a, b, order) for order in orders]

    def store(self, column: int | str, width: int) -> None:
        """Move ``width`` (1, 2 or 4) columns of the tile to all lanes."""
        f, kind, item, size, lanes = self.f, self.kind, self.item, self.size, self.lanes
        if width == 1:
            vector = self.get(self.tile_at(column))
            for lane in range(lanes):
                value = f.value(f"extractelement {kind} {vector}, i64 {lane}")
                f.line(f"store {item} {value}, ptr {self.at(lane, column)}, align {size}")
            return
        columns = [self.get(self.tile_at(column, k)) for k in range(width)]
        for k in range(2):
            order = _interleave(lanes, k)
            halves = zip(columns[::2], columns[1::2])
            pairs = [f.shuffle(kind, a, b, order) for a, b in halves]
            for j in range(0, lanes, 2):
                # Two items of each vector of pairs make the row of a lane.
                other = pairs[-1] if width == 4 else "poison"
                picked = [j, j + 1, lanes + j, lanes + j + 1][:width]
                row = f.shuffle(kind, pairs[0], other, picked)
                at = self.at(j + k, column)
                f.line(f"store <{width} x {item}> {row}, ptr {at}, align {size}")


def load_tile(f: Function, base: str, count: int, columns: set[int], tile: Location) -> None:
    """Fill a tile with the used columns of the instances at ``base``."""
    move = _TileMove(f, base, count, tile)
    if count == 1:
        move.put(tile, f.value(f"load {move.kind}, ptr {move.starts[0]}, align {move.size}"))
    else:
        move.by_blocks(columns, move.load)


def store_tile(f: Function, base: str, count: int, tile: Location) -> None:
    """Write a whole tile to the instances at ``base``."""
    move = _TileMove(f, base, count, tile)
    if count == 1:
        f.line(f"store {move.kind} {move.get(tile)}, ptr {move.starts[0]}, align {move.size}")
    else:
        move.by_blocks(set(range(count)), move.store)


class Rows(NamedTuple):
    """An array of instances: address, items per instance, dtype, and room for a tile of it."""

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
        instance = row.counter
        if last is not None:
            past = f.value(f"icmp sgt i64 {instance}, {last}")
            instance = f.value(f"select i1 {past}, i64 {last}, i64 {instance}")
        there, here = (f.mul(r, rows.items) for r in (instance, row.counter))
        with f.loop(0, rows.items) as column:
            pairs = ((source, there), (to, here))
            reads, writes = (f.item(item, x, f.add(start, column.counter)) for x, start in pairs)
            value = f.value(f"load {item}, ptr {reads}, align {size}")
            f.line(f"store {item} {value}, ptr {writes}, align {size}")


def first_row(f: Function, rows: Rows, first: str) -> str:
    """Return where the instances from ``first`` on are in an array."""
    return f.offset(rows.base, f.mul(first, rows.items * ITEM_BYTES[rows.dtype]))


def addresses_of(f: Function, whole: str, first: str, rows: list[Rows]) -> list[str]:
    """Return the addresses of a tile's instances: in the arrays, or in the room if incomplete."""
    starts = [(first_row(f, r, first), r.room) for r in rows]
    return [f.value(f"select i1 {whole}, ptr {start}, ptr {room}") for start, room in starts]


def gather(f: Function, whole: str, first: str, end: str, inputs: list[Rows]) -> list[str]:
    """Return the addresses of a tile's inputs; an incomplete one is copied to the room first.

    Its rows behind the end repeat the last instance.
    """
    with f.when(whole, unless=True):
        last = f.sub(f.sub(end, first), 1)
        for r in inputs:
            _copy_rows(f, r, first_row(f, r, first), r.room, f.spelling.lanes, last)
    return addresses_of(f, whole, first, inputs)


def scatter(f: Function, whole: str, first: str, end: str, results: list[Rows]) -> None:
    """Copy the results of an incomplete tile from the room to the arrays."""
    with f.when(whole, unless=True):
        left = f.sub(end, first)
        for r in results:
            _copy_rows(f, r, r.room, first_row(f, r, first), left)
