"""What all instances of a batch read of one array, in the order in which they read it.

A product reads some rows of a matrix at a time, and of these every sixteenth column: the matrix
takes up more of the first cache than it has numbers there, and is not read ahead. Where many
instances are computed, it is copied once before the first of them, one number behind the other as
a nest takes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY, Pointer
from archimedes.backends.lowering.nests import Walk
from archimedes.backends.lowering.scope import Location
from archimedes.graph.regions import Nest

#: Arrays of so many items are packed: fewer stay in the first cache as they are.
LEAST = 8_192
#: For so many instances at least it is worth it.
INSTANCES = 64


class Layout(NamedTuple):
    """How a copy lies: the distances between points of a tile along axes.

    Where terms are combined into partial results: how far apart are turns, and terms of a group.
    """

    rows: Mapping[int, int]
    turn: int = 0
    each: int = 0


class _Part(NamedTuple):
    """A loop of a copy: it adds ``step`` times its counter to index ``number``."""

    length: int
    number: int
    step: int


class Packing(NamedTuple):
    """A copy: its loops, the last one innermost, and the strides and ends of the indices.

    An index beyond its end is taken for the end.
    """

    source: Location
    parts: tuple[_Part, ...]
    indices: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes of the copy."""
        items = math.prod(part.length for part in self.parts)
        return items * ITEM_BYTES[self.source.dtype]


class Copies:
    """The copies that a batch kernel makes: arrays of the call, behind ``arrays`` others."""

    def __init__(self, arrays: int) -> None:
        self.arrays = arrays
        self.packings: list[Packing] = []

    def location(self, packing: Packing) -> Location:
        """Return where a copy is."""
        if packing not in self.packings:
            self.packings.append(packing)
        number = self.arrays + self.packings.index(packing)
        return Location(Pointer("in", number, uniform=True), 0, packing.source.dtype)


def pack_read(
    region: Nest, walk: Walk, tile: Mapping[int, int], group: int
) -> tuple[Packing, Walk]:
    """Return the copy of what a nest reads, and the walk through it but for its location.

    ``tile`` has the points of kept axes that are computed together, of which the walk has some.
    ``group`` is the number of partial results that are (0: terms are combined in their order).
    """
    indices: list[tuple[int, int]] = []
    parts: dict[object, _Part] = {}
    rows: dict[object, _Part] = {}

    def index(axis: int, end: int) -> int:
        indices.append((walk.strides[axis], end))
        return len(indices) - 1

    for axis, length in enumerate(region.shape):
        if not walk.strides[axis]:
            continue
        number = tile.get(axis, 1)
        if axis >= region.kept and group:
            # Terms of one partial result follow each other, those of a group together.
            count, mine = region.partials, index(axis, length - 1)
            parts["begin"] = _Part(count // group, mine, group)
            parts["turn"] = _Part(-(-length // count), mine, count)
            parts["each"] = _Part(group, mine, 1)
        else:
            # The last tile ends where the axis does.
            parts[axis] = _Part(-(-length // number), index(axis, length - number), number)
        if number > 1:
            rows["row", axis] = _Part(number, index(axis, number - 1), 1)
    parts |= rows
    sizes = [part.length for part in parts.values()]
    far = {key: math.prod(sizes[k + 1 :]) for k, key in enumerate(parts)}
    strides = [far[k] // parts[k].step if k in parts else 0 for k in range(len(region.shape))]
    near = {axis: far["row", axis] for axis in tile if ("row", axis) in parts}
    layout = Layout(near)
    if "begin" in parts:
        strides[region.kept] = far["begin"] // group
        layout = Layout(near, far["turn"], far["each"])
    packing = Packing(walk.location, tuple(parts.values()), tuple(indices))
    return packing, Walk(walk.location, tuple(strides), layout)


def write_copies(f: Function, copies: Copies, offsets: Sequence[int]) -> str:
    """Write the copies, made where instances are many; return the table of arrays and copies.

    The table holds null where there is no copy. ``offsets`` are those of copies in the frame.
    """
    arrays, packings = copies.arrays, copies.packings
    f.line(f"%all.in = alloca [{arrays + len(packings)} x ptr], align 8")
    for k in range(arrays + len(packings)):
        value = f.load_item("ptr", "%in", k) if k < arrays else "null"
        f.line(f"store ptr {value}, ptr {f.item('ptr', '%all.in', k)}, align 8")
    with f.when(f.value(f"icmp sge i64 {f.sub('%end', '%begin')}, {INSTANCES}")):
        for k, (packing, offset) in enumerate(zip(packings, offsets), arrays):
            name = f.module.fresh("pack")
            parameters = "ptr %frame, ptr %in, ptr %to"
            inner = Function(f.module, f"define internal void {name}({parameters}) noinline")
            _write_copy(inner, packing, 0, "0", {})
            inner.finish()
            copy = f.offset("%frame", offset)
            f.line(f"call void {name}(ptr %frame, ptr %in, ptr {copy})")
            f.line(f"store ptr {copy}, ptr {f.item('ptr', '%all.in', k)}, align 8")
    return "%all.in"


def _write_copy(
    f: Function, packing: Packing, depth: int, item: str, indices: Mapping[int, str]
) -> None:
    """Write the loops from number ``depth`` on, which begin with ``item`` of the copy."""
    part = packing.parts[depth]
    if depth + 1 == len(packing.parts):
        _write_row(f, packing, item, indices)
        return
    with f.loop(0, part.length) as loop:
        index = f.mul(loop.counter, part.step)
        if part.number in indices:
            index = f.add(indices[part.number], index)
        below = f.mul(f.add(item, loop.counter), packing.parts[depth + 1].length)
        _write_copy(f, packing, depth + 1, below, {**indices, part.number: index})


def _write_row(f: Function, packing: Packing, item: str, indices: Mapping[int, str]) -> None:
    """Unroll the innermost loop, whose index is its own."""
    row, dtype = packing.parts[-1], packing.source.dtype
    kind, size = ITEM_MEMORY[dtype], ITEM_BYTES[dtype]
    offset = "0"
    for number, index in indices.items():
        stride, end = packing.indices[number]
        if sum((p.length - 1) * p.step for p in packing.parts if p.number == number) > end:
            past = f.value(f"icmp sgt i64 {index}, {end}")
            index = f.value(f"select i1 {past}, i64 {end}, i64 {index}")
        offset = f.add(offset, f.mul(index, stride * size))
    source = f.offset(f.address(packing.source), offset)
    to = f.item(kind, "%to", item)
    stride, _ = packing.indices[row.number]
    for k in range(row.length):
        one = f.value(f"load {kind}, ptr {f.offset(source, k * stride * size)}, align {size}")
        f.line(f"store {kind} {one}, ptr {f.offset(to, k * size)}, align {size}")
