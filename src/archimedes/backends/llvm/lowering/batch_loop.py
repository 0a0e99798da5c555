"""The loop of a batch kernel: tiles of instances in, through the steps of the computation, out.

A computation that is short is one step, inlined into the loop. A long one is cut into parts, and
its code is larger than what a CPU keeps decoded: several tiles then go through each part before
the next one, each with a frame of its own, and the CPU reads the code once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from archimedes.backends.llvm.calling_convention import BATCH, Leaf
from archimedes.backends.llvm.lowering import nontemporal_stores, prologue
from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.memory import ALIGNMENT, ITEM_BYTES, Pointer, round_up
from archimedes.backends.llvm.lowering.nests.packing import write_copies
from archimedes.backends.llvm.lowering.tiles import (
    Rows,
    addresses_of,
    gather,
    load_tile,
    scatter,
    store_tile,
)
from archimedes.backends.lowering.analysis import safepoint_of
from archimedes.backends.lowering.scope import Location
from archimedes.backends.protocol import EVERYTHING
from archimedes.graph.dtypes import F64
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.entries import Source


BATCH_PARAMETERS = "ptr %in, ptr %out, i64 %begin, i64 %end"
#: So many tiles go through a part together, as long as their frames are that many bytes at most.
TOGETHER, NEAR = 8, 131072


#: Where a tile of an input is in the frame, and the columns of it that are used.
InputTile = tuple[Location, set[int]]


def _write_tile_moves(
    module: Module,
    source: Source,
    tiles_in: Mapping[int, InputTile],
    tiles_out: Mapping[int, Location],
) -> None:
    """Write the moves between tiles and instances, whose addresses are in tables."""

    def base(f: Function, array: str, k: int, tile: Location) -> str:
        return f.address(Location(Pointer(array, k, uniform=True), 0, tile.dtype))

    f = Function(module, f"define internal void @load_tile({PARAMETERS})")
    for k, (tile, columns) in tiles_in.items():
        load_tile(f, base(f, "in", k, tile), source.inputs[k].size, columns, tile)
    f.finish()
    f = Function(module, f"define internal void @store_tile({PARAMETERS})")
    for k, tile in tiles_out.items():
        store_tile(f, base(f, "out", k, tile), source.outputs[k].size, tile)
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
        self.tiles = tiles
        self.inline = " alwaysinline" if fused else ""
        self.own = module.frame.size
        module.frame.bytes((tiles - 1) * self.own)
        copies = module.copies.packings if module.copies else []
        copy_offsets = [module.frame.bytes(packing.size) for packing in copies]
        leaves = [*inputs.values(), *outputs.values()]
        sizes = [round_up(x.size * self.lanes * ITEM_BYTES[x.dtype]) for x in leaves]
        offsets = [0] * len(sizes) if fused else [module.frame.bytes(size) for size in sizes]
        self.f = f = Function(module, f"define internal i32 @run({BATCH_PARAMETERS}) noinline")
        prologue.declare_safepoints(f)
        prologue.open_frame(f, module.frame.size, tiles, self.own)
        for table in ("in", "out"):
            f.line(f"%tile.{table} = alloca [{max(arrays, 1)} x ptr], align 8")
        # Room for an incomplete tile, in the frame, or beside one to be scalarized.
        for k, (size, offset) in enumerate(zip(sizes, offsets)):
            room = f"alloca [{size} x i8], align {ALIGNMENT}"
            f.line(f"%room{k} = {room if fused else f'getelementptr i8, ptr %frame, i64 {offset}'}")
        rooms = [f"%room{k}" for k in range(len(sizes))]
        self.arguments = self._rows("in", inputs, rooms[: len(inputs)])
        self.results = self._rows("out", outputs, rooms[len(inputs) :])
        #: The arrays of the call, with what is copied for all instances.
        self.arrays = "%in"
        if module.copies and copies:
            self.arrays = write_copies(f, module.copies, copy_offsets)
        #: Whether so much is put out that it should pass by the caches.
        self.streams = [nontemporal_stores.passes_by(f, r) for r in self.results]

    def _rows(self, array: str, leaves: dict[int, Leaf], rooms: list[str]) -> list[Rows]:
        bases = [self.f.address(Location(Pointer(array, k, uniform=True), 0, F64)) for k in leaves]
        return [Rows(b, x.size, x.dtype, r) for b, x, r in zip(bases, leaves.values(), rooms)]

    def _whole(self, first: str) -> str:
        """Return the bool "the tile is complete"."""
        return self.f.value(f"icmp sle i64 {self.f.add(first, self.lanes)}, %end")

    def _fill(self, table: str, numbers: Iterable[int], addresses: list[str]) -> None:
        for k, address in zip(numbers, addresses):
            at = self.f.item("ptr", f"%tile.{table}", k)
            self.f.line(f"store ptr {address}, ptr {at}, align 8")

    def load(self, first: str, at: str) -> None:
        """Fill the tile of the instances from ``first`` on, in the frame ``at``."""
        f, whole = self.f, self._whole(first)
        self._fill("in", self.inputs, gather(f, whole, first, "%end", self.arguments))
        self._fill("out", self.outputs, self._targets(whole, first))
        f.line(f"call void @load_tile(ptr {at}, ptr %tile.in, ptr %tile.out){self.inline}")

    def _targets(self, whole: str, first: str) -> list[str]:
        """Return where a tile stores its results: in the room, where they bypass the caches."""
        f, direct = self.f, []
        for streams in self.streams:
            stays = f.value(f"xor i1 {streams}, true") if streams else ""
            direct.append(f.value(f"and i1 {whole}, {stays}") if streams else whole)
        pairs = zip(direct, self.results)
        return [at for flag, r in pairs for at in addresses_of(f, flag, first, [r])]

    def compute(self, first: str, at: str, step: str) -> None:
        """Run a step of the computation on a tile."""
        self.f.line(f"call void {step}(ptr {at}, ptr {self.arrays}, ptr %out){self.inline}")

    def store(self, first: str, at: str) -> None:
        """Write the results of a tile to the arrays."""
        f, whole = self.f, self._whole(first)
        self._fill("out", self.outputs, self._targets(whole, first))
        f.line(f"call void @store_tile(ptr {at}, ptr %tile.in, ptr %tile.out){self.inline}")
        for streams, r in zip(self.streams, self.results):
            if streams:
                nontemporal_stores.stream(f, f.value(f"and i1 {whole}, {streams}"), first, r)
        scatter(f, whole, first, "%end", self.results)

    def write(self, steps: Sequence[str], body: Graph) -> None:
        """Write the loop over blocks of tiles; each move is made for all of a block."""
        f, step = self.f, self.tiles * self.lanes
        computing = [partial(self.compute, step=name) for name in steps]
        moves: list[Callable[[str, str], None]] = [self.load, *computing, self.store]
        safepoint = safepoint_of(EVERYTHING, body)
        with prologue.loop_with_safepoints(f, "%begin", "%end", safepoint, step=step) as block:
            first = block.counter
            if self.tiles == 1:
                for move in moves:
                    move(first, "%frame")
            else:
                stop = f.minimum(f.add(first, step), "%end")
                for move in moves:
                    with f.loop(first, stop, [("ptr", "%frame")], step=self.lanes) as tile:
                        (at,) = tile.carried
                        move(tile.counter, at)
                        tile.next = [f.offset(at, self.own)]
        if any(self.streams):
            nontemporal_stores.fence(f)
        prologue.close_frame(f, f.frame.size)


def write_batch_loop(
    module: Module,
    source: Source,
    tiles_in: Mapping[int, InputTile],
    tiles_out: Mapping[int, Location],
    steps: Sequence[str],
    many: bool,
    fused: bool,
) -> None:
    """Write the entry of a batch kernel around the steps of its computation.

    ``many`` tells that several tiles go through a step before the next one.
    """
    _write_tile_moves(module, source, tiles_in, tiles_out)
    inputs = {k: source.inputs[k] for k in tiles_in}
    outputs = {k: source.outputs[k] for k in tiles_out}
    arrays = max(len(source.inputs), len(source.outputs))
    tiles = max(1, min(TOGETHER if many else 1, NEAR // module.frame.size))
    _Loop(module, inputs, outputs, arrays, tiles, fused).write(steps, source.graph)
    prologue.add_guarded(module, BATCH, BATCH_PARAMETERS, "run")


def write_instance_loop(
    module: Module, source: Source, batched: Sequence[bool], shared: int, steps: Sequence[str]
) -> None:
    """Write the entry of a kernel that computes one instance at a time, where its arrays are.

    ``shared`` is the number of further arrays behind the inputs.
    """
    size = module.frame.size
    f = Function(module, f"define internal i32 @run({BATCH_PARAMETERS}) noinline")
    prologue.declare_safepoints(f)
    prologue.open_frame(f, size)
    inputs = [x.size * ITEM_BYTES[x.dtype] * many for x, many in zip(source.inputs, batched)]
    outputs = [x.size * ITEM_BYTES[x.dtype] for x in source.outputs]
    row_bytes = {"in": inputs + [0] * shared, "out": outputs}
    for table, sizes in row_bytes.items():
        f.line(f"%row.{table} = alloca [{max(len(sizes), 1)} x ptr], align 8")
    safepoint = safepoint_of(EVERYTHING, source.graph)
    with prologue.loop_with_safepoints(f, "%begin", "%end", safepoint) as loop:
        for table, sizes in row_bytes.items():
            for k, row in enumerate(sizes):
                at = f.address(Location(Pointer(table, k, uniform=True), 0, F64))
                if row:
                    at = f.offset(at, f.mul(loop.counter, row))
                f.line(f"store ptr {at}, ptr {f.item('ptr', f'%row.{table}', k)}, align 8")
        for step in steps:
            f.line(f"call void {step}(ptr %frame, ptr %row.in, ptr %row.out)")
    prologue.close_frame(f, size)
    prologue.add_guarded(module, BATCH, BATCH_PARAMETERS, "run")
