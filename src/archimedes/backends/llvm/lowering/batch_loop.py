"""The loop of a batch kernel: tiles of instances in, through the steps of the computation, out.

A computation that is short is one step, inlined into the loop. A long one is cut into parts, and
its code is larger than what a CPU keeps decoded: several tiles then go through each part before
the next one, each with a frame of its own, and the CPU reads the code once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from archimedes.backends.llvm.calling_convention import BATCH, Leaf
from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.memory import ALIGNMENT, ITEM_BYTES, Pointer
from archimedes.backends.llvm.lowering.nests.packing import write_copies
from archimedes.backends.llvm.lowering.nontemporal_stores import (
    fence,
    may_stream,
    passes_by,
    stream,
)
from archimedes.backends.llvm.lowering.prologue import add_guarded, close_frame, open_frame
from archimedes.backends.llvm.lowering.safepoints import declare_safepoints, loop_with_safepoints
from archimedes.backends.llvm.lowering.tiles import (
    Rows,
    addresses_of,
    announce_store,
    first_row,
    gather,
    lines_of,
    load_tile,
    scatter,
    store_tile,
)
from archimedes.backends.lowering.analysis import Safepoint, safepoint_of
from archimedes.backends.lowering.scope import Location
from archimedes.backends.protocol import EVERYTHING
from archimedes.graph.dtypes import F64
from archimedes.graph.program import Graph

__all__ = ["TOGETHER", "TileIn", "write_batch_loop", "write_instance_loop"]

BATCH_PARAMETERS = "ptr %in, ptr %out, i64 %begin, i64 %end"
#: So many tiles go through a part together, as long as their frames are that many bytes at most.
TOGETHER, NEAR = 8, 131072
#: Lines of results of a tile that are worth fetching ahead, in batches whose results are more bytes
#: than the second cache holds: fewer find their way, more are gone again before they are used.
AHEAD, FAR = range(24, 97), 1 << 20


#: Where a tile of an input is in the frame, and the columns of it that are used.
TileIn = tuple[Location, set[int]]


def _write_tile_moves(
    module: Module,
    inputs: Sequence[Leaf],
    tiles_in: dict[int, tuple[Location, set[int]]],
    outputs: Sequence[Leaf],
    tiles_out: dict[int, Location],
) -> None:
    """Write the moves between tiles and instances, whose addresses are in tables."""

    def begin(name: str) -> Function:
        return Function(module, f"define internal void @{name}({PARAMETERS})")

    def base(kind: str, k: int, tile: Location) -> str:
        return f.address(Location(Pointer(kind, k, uniform=True), 0, tile.dtype))

    f = begin("load_tile")
    for k, (tile, columns) in tiles_in.items():
        load_tile(f, base("in", k, tile), inputs[k].size, columns, tile)
    f.finish()
    f = begin("store_tile")
    for k, tile in tiles_out.items():
        store_tile(f, base("out", k, tile), outputs[k].size, tile)
    f.finish()


class _Loop:
    """The function ``run`` being written, with what it knows of the arrays of the call.

    Where it is ``fused``, tiles are to be kept in registers: everything is inlined, and tables
    and frame are touched at constant offsets only.
    """

    def __init__(
        self,
        module: Module,
        inputs: dict[int, Leaf],
        outputs: dict[int, Leaf],
        arrays: int,
        tiles: int,
        fused: bool,
    ) -> None:
        self.lanes = module.spelling.lanes
        self.inputs, self.outputs = inputs, outputs
        self.tiles, self.fused = tiles, fused
        self.inline = " alwaysinline" if fused else ""
        self.own = module.frame.size
        module.frame.bytes((tiles - 1) * self.own)
        copies = module.copies.made if module.copies else []
        rooms_of_copies = [module.frame.bytes(packing.size) for packing in copies]
        leaves = [*inputs.values(), *outputs.values()]
        sizes = [
            -(-x.size * self.lanes * ITEM_BYTES[x.dtype] // ALIGNMENT) * ALIGNMENT for x in leaves
        ]
        offsets = [0] * len(sizes) if fused else [module.frame.bytes(size) for size in sizes]
        self.f = f = Function(module, f"define internal i32 @run({BATCH_PARAMETERS}) noinline")
        declare_safepoints(f)
        open_frame(f, module.frame.size, tiles, self.own)
        for table in ("in", "out"):
            f.line(f"%tile.{table} = alloca [{max(arrays, 1)} x ptr], align 8")
        rooms = [self._room(k, *x) for k, x in enumerate(zip(sizes, offsets))]
        self.arguments = self._rows("in", inputs, rooms[: len(inputs)])
        self.results = self._rows("out", outputs, rooms[len(inputs) :])
        #: The arrays of the call, with what is copied for all instances.
        self.arrays = "%in"
        if module.copies and copies:
            self.arrays = write_copies(f, module.copies, rooms_of_copies)
        #: Whether so much is put out that it should pass by the caches.
        self.streams = [passes_by(f, r) if may_stream(f, r) else "" for r in self.results]
        #: The results that are fetched ahead, and whether to.
        lines = sum(lines_of(f, r.items, r.dtype) for r in self.results)
        self.far = [(self._is_far(k), k) for k in range(len(self.results)) if lines in AHEAD]

    def _is_far(self, k: int) -> str:
        """Return the bool "fetch these results ahead": not what passes by the caches anyway."""
        f, streamed = self.f, self.streams[k]
        far = passes_by(f, self.results[k], FAR)
        return f.value(f"select i1 {streamed}, i1 false, i1 {far}") if streamed else far

    def _room(self, k: int, size: int, offset: int) -> str:
        """Reserve room for an incomplete tile, in the frame, or beside one to be taken apart."""
        if self.fused:
            self.f.line(f"%room{k} = alloca [{size} x i8], align {ALIGNMENT}")
        else:
            self.f.line(f"%room{k} = getelementptr i8, ptr %frame, i64 {offset}")
        return f"%room{k}"

    def _rows(self, kind: str, leaves: dict[int, Leaf], rooms: list[str]) -> list[Rows]:
        bases = [self.f.address(Location(Pointer(kind, k, uniform=True), 0, F64)) for k in leaves]
        return [Rows(b, x.size, x.dtype, r) for b, x, r in zip(bases, leaves.values(), rooms)]

    def _whole(self, first: str) -> str:
        """Return the bool "the tile is complete"."""
        following = self.f.value(f"add i64 {first}, {self.lanes}")
        return self.f.value(f"icmp sle i64 {following}, %end")

    def _fill(self, table: str, numbers: Iterable[int], locations: list[str]) -> None:
        f = self.f
        for k, location in zip(numbers, locations):
            at = f.value(f"getelementptr ptr, ptr %tile.{table}, i64 {k}")
            f.line(f"store ptr {location}, ptr {at}, align 8")

    def load(self, first: str, at: str) -> None:
        """Fill the tile of the instances from ``first`` on, in the frame ``at``."""
        f, whole = self.f, self._whole(first)
        self._fill("in", self.inputs, gather(f, whole, first, "%end", self.arguments))
        self._fill("out", self.outputs, self._places(whole, first))
        for far, k in self.far:
            rows = self.results[k]
            with f.when(far):
                announce_store(f, first_row(f, rows, first), rows.items, rows.dtype)
        f.line(f"call void @load_tile(ptr {at}, ptr %tile.in, ptr %tile.out){self.inline}")

    def _places(self, whole: str, first: str) -> list[str]:
        """Return where a tile puts its results: what passes by the caches goes to the room."""
        direct = [
            self.f.value(f"and i1 {whole}, {self.f.value(f'xor i1 {streams}, true')}")
            if streams
            else whole
            for streams in self.streams
        ]
        pairs = zip(direct, self.results)
        return [
            location for flag, r in pairs for location in addresses_of(self.f, flag, first, [r])
        ]

    def compute(self, first: str, at: str, step: str) -> None:
        """Run a step of the computation on a tile."""
        self.f.line(f"call void {step}(ptr {at}, ptr {self.arrays}, ptr %out){self.inline}")

    def store(self, first: str, at: str) -> None:
        """Write the results of a tile to the arrays."""
        f, whole = self.f, self._whole(first)
        self._fill("out", self.outputs, self._places(whole, first))
        f.line(f"call void @store_tile(ptr {at}, ptr %tile.in, ptr %tile.out){self.inline}")
        for streams, r in zip(self.streams, self.results):
            if streams:
                stream(f, f.value(f"and i1 {whole}, {streams}"), first, r)
        scatter(f, whole, first, "%end", self.results)

    def write(self, moves: Sequence[Callable[[str, str], None]], safepoint: Safepoint) -> None:
        """Write the loop over blocks of tiles; each move is made for all of a block."""
        f, step = self.f, self.tiles * self.lanes
        with loop_with_safepoints(f, "%begin", "%end", safepoint, step=step) as block:
            first = block.counter
            if self.tiles == 1:
                for move in moves:
                    move(first, "%frame")
            else:
                stop = f.minimum(f.value(f"add i64 {first}, {step}"), "%end")
                for move in moves:
                    with f.loop(first, stop, [("ptr", "%frame")], step=self.lanes) as tile:
                        (at,) = tile.carried
                        move(tile.counter, at)
                        tile.next = [f.offset(at, self.own)]
        if any(self.streams):
            fence(f)
        close_frame(f, f.module.frame.size)


def write_batch_loop(
    module: Module,
    inputs: Sequence[Leaf],
    tiles_in: dict[int, TileIn],
    outputs: Sequence[Leaf],
    tiles_out: dict[int, Location],
    steps: Sequence[str],
    alone: bool,
    fused: bool,
    body: Graph,
) -> None:
    """Write the entry of a batch kernel around the steps of its computation.

    ``alone`` tells that one tile is finished before the next begins; ``body`` is what is computed.
    """
    _write_tile_moves(module, inputs, tiles_in, outputs, tiles_out)
    most = 1 if alone or len(steps) == 1 else TOGETHER
    loop = _Loop(
        module,
        {k: inputs[k] for k in tiles_in},
        {k: outputs[k] for k in tiles_out},
        max(len(inputs), len(outputs)),
        max(1, min(most, NEAR // module.frame.size)),
        fused,
    )
    computing = [partial(loop.compute, step=step) for step in steps]
    safepoint = safepoint_of(EVERYTHING, body)
    assert safepoint is not None
    loop.write([loop.load, *computing, loop.store], safepoint)
    add_guarded(module, BATCH, BATCH_PARAMETERS, "run")


def write_instance_loop(
    module: Module,
    inputs: Sequence[Leaf],
    batched: Sequence[bool],
    outputs: Sequence[Leaf],
    shared: int,
    steps: Sequence[str],
    body: Graph,
) -> None:
    """Write the entry of a kernel that computes one instance at a time, where its arrays are.

    ``shared`` is the number of further arrays behind the inputs; ``body`` is what is computed.
    """
    size = module.frame.size
    f = Function(module, f"define internal i32 @run({BATCH_PARAMETERS}) noinline")
    declare_safepoints(f)
    open_frame(f, size)
    rows = {
        "in": [x.size * ITEM_BYTES[x.dtype] * many for x, many in zip(inputs, batched)]
        + [0] * shared,
        "out": [x.size * ITEM_BYTES[x.dtype] for x in outputs],
    }
    for table, mine in rows.items():
        f.line(f"%row.{table} = alloca [{max(len(mine), 1)} x ptr], align 8")
    safepoint = safepoint_of(EVERYTHING, body)
    assert safepoint is not None
    with loop_with_safepoints(f, "%begin", "%end", safepoint) as loop:
        for table, mine in rows.items():
            for k, row in enumerate(mine):
                at = f.address(Location(Pointer(table, k, uniform=True), 0, F64))
                if row:
                    offset = f.value(f"mul i64 {loop.counter}, {row}")
                    at = f.offset(at, offset)
                where = f.value(f"getelementptr ptr, ptr %row.{table}, i64 {k}")
                f.line(f"store ptr {at}, ptr {where}, align 8")
        for step in steps:
            f.line(f"call void {step}(ptr %frame, ptr %row.in, ptr %row.out)")
    close_frame(f, size)
    add_guarded(module, BATCH, BATCH_PARAMETERS, "run")
