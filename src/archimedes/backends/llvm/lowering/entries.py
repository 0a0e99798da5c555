"""The functions of a module that are called from outside.

Scalar: ``i32 arc_scalar(ptr in, ptr out)``; ``in`` and ``out`` are arrays of pointers, one per
array leaf, each to C-contiguous items of the leaf's dtype (bools are bytes).
Batch: ``i32 arc_batch(ptr in, ptr out, i64 begin, i64 end)`` computes the instances begin..end-1 of
batched leaves of shape (N, leaf); leaves that are not batched are shared by all instances.

Outputs may not overlap inputs. The result is 0, ``NO_MEMORY``, or what a host callback returned.
Functions keep no state: any number of threads may call them at once. They compute in the default
floating-point environment, whatever that of the caller is (``guards.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.guards import add_guarded
from archimedes.backends.llvm.lowering.llvm_dialect import PART, Llvm
from archimedes.backends.llvm.lowering.memory import ALIGNMENT, Pointer
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, Spelling
from archimedes.backends.llvm.lowering.tiles import (
    Rows,
    announce_store,
    gather,
    load_tile,
    scatter,
    store_tile,
)
from archimedes.backends.llvm.runtime.hosting import HostCall
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering import Binding, Lowering, Place
from archimedes.backends.lowering.schedule import cost
from archimedes.graph.dtypes import F64
from archimedes.graph.program import Graph

__all__ = [
    "BATCH",
    "NO_MEMORY",
    "SCALAR",
    "Leaf",
    "Program",
    "batch_program",
    "fixed_leaves",
    "scalar_program",
]

SCALAR, BATCH = "arc_scalar", "arc_batch"
SCALAR_PARAMETERS = "ptr %in, ptr %out"
BATCH_PARAMETERS = f"{SCALAR_PARAMETERS}, i64 %begin, i64 %end"
NO_MEMORY = 1
#: Larger frames come from the heap.
STACK = 32768
#: Up to this many operations a batch kernel keeps its tiles in registers.
FUSED = 1500


class Leaf(NamedTuple):
    """An array of a call: number of items (of one instance) and dtype code."""

    size: int
    dtype: int


class Program(NamedTuple):
    """The text of a module, the callbacks it needs, and whether to inline what is marked so."""

    text: str
    hosts: list[HostCall]
    frame: int
    fused: bool = False


def fixed_leaves(g: Graph, fixed: Sequence[int]) -> list[Leaf]:
    """Return the arrays that hold the values of nodes sorted by dtype."""
    counts = Counter(g.dtype[i] for i in fixed)
    return [Leaf(counts[d], d) for d in sorted(counts)]


def _leaf_locations(kind: str, leaves: Sequence[Leaf], first: int = 0) -> list[list[Place]]:
    pointers = [Pointer(kind, first + k, uniform=True) for k in range(len(leaves))]
    return [
        [Place(p, k, leaf.dtype) for k in range(leaf.size)] for p, leaf in zip(pointers, leaves)
    ]


def _flat(nested: Sequence[Sequence[Place]]) -> list[Place]:
    return [x for row in nested for x in row]


def _write_body(
    module: Module,
    g: Graph,
    given: Sequence[Place],
    to: Sequence[Place],
    part: int,
    known: dict[int, Place],
) -> list[HostCall]:
    """Write ``void body(frame, in, out)``, the computation itself."""
    llvm = Llvm(module)
    f = Function(module, f"define internal void @body({PARAMETERS})")
    bound = {i: Binding(place=x) for i, x in known.items()}
    given_bound = [Binding(place=x) for x in given]
    low = Lowering(llvm, [g], part)
    low.lower(f, g, given_bound, stores=list(enumerate(to)), known=bound)
    f.finish()
    return llvm.hosts


def _open_frame(f: Function, size: int) -> None:
    """Get the frame and clear its status word."""
    if size <= STACK:
        f.line(f"%frame = alloca [{size} x i8], align {ALIGNMENT}")
    else:
        f.module.declare("@arc_malloc", "ptr", "i64")
        f.line(f"%raw = call ptr @arc_malloc(i64 {size + ALIGNMENT})")
        missing = f.value("icmp eq ptr %raw, null")
        fail, go = f.label(), f.label()
        f.fork(missing, fail, go, rare=True)
        f.start(fail)
        f.line(f"ret i32 {NO_MEMORY}")
        f.start(go)
        f.line("%raw.int = ptrtoint ptr %raw to i64")
        above = f.value(f"add i64 %raw.int, {ALIGNMENT - 1}")
        aligned = f.value(f"and i64 {above}, {-ALIGNMENT}")
        f.line(f"%frame = inttoptr i64 {aligned} to ptr")
    f.line("store i32 0, ptr %frame, align 4")


def _close_frame(f: Function, size: int) -> None:
    """Give the frame back and return the status."""
    status = f.value("load i32, ptr %frame, align 4")
    if size > STACK:
        f.module.declare("@arc_free", "void", "ptr")
        f.line("call void @arc_free(ptr %raw)")
    f.finish(f"ret i32 {status}")


def scalar_program(
    g: Graph,
    inputs: Sequence[Leaf],
    outputs: Sequence[Leaf],
    target: Target,
    part: int = PART,
    data: Mapping[tuple[str, bytes], str] | None = None,
) -> Program:
    """Write the module of the scalar kernel; ``data`` names the tables that lie outside."""
    module = Module(Spelling(1), target, data)
    given, to = (_flat(_leaf_locations(k, x)) for k, x in (("in", inputs), ("out", outputs)))
    hosts = _write_body(module, g, given, to, part, {})
    size = module.frame.size
    f = Function(module, f"define internal i32 @run({SCALAR_PARAMETERS}) noinline")
    _open_frame(f, size)
    f.line("call void @body(ptr %frame, ptr %in, ptr %out)")
    _close_frame(f, size)
    add_guarded(module, SCALAR, SCALAR_PARAMETERS, "run")
    return Program(module.text(), hosts, size)


def batch_program(
    g: Graph,
    inputs: Sequence[Leaf],
    batched: Sequence[bool],
    outputs: Sequence[Leaf],
    lanes: int,
    fixed: Sequence[int],
    target: Target,
    part: int = PART,
    data: Mapping[tuple[str, bytes], str] | None = None,
) -> Program:
    """Write the module of the batch kernel for one choice of batched inputs.

    ``fixed`` are nodes that do not depend on batched inputs, by dtype: the caller computes them
    once and gives their values as further arrays, one per dtype, behind the inputs. With ``lanes``
    1 the scalar computation runs for one instance after the other.
    """
    module = Module(Spelling(lanes), target, data)
    frame = module.frame
    live = set(g.live())
    used = [i in live for i in g.inputs]
    tiles_in: dict[int, tuple[Place, set[int]]] = {}
    given = _leaf_locations("in", inputs)
    position = 0
    for k, leaf in enumerate(inputs):
        columns = {c for c in range(leaf.size) if used[position + c]}
        position += leaf.size
        if batched[k] and columns:
            tile = frame.array(leaf.dtype, leaf.size)
            tiles_in[k] = tile, columns
            given[k] = [tile.at(c) for c in range(leaf.size)]
    tiles_out = {
        k: frame.array(leaf.dtype, leaf.size) for k, leaf in enumerate(outputs) if leaf.size
    }
    to = [tiles_out[k].at(c) for k, leaf in enumerate(outputs) for c in range(leaf.size)]
    values = _leaf_locations("in", fixed_leaves(g, fixed), len(inputs))
    known = dict(zip(fixed, _flat(values)))
    hosts = _write_body(module, g, _flat(given), to, part, known)
    _write_tile_moves(module, inputs, tiles_in, outputs, tiles_out)
    whole = frame.size <= STACK and cost(g, {}) <= FUSED
    _write_batch_loop(
        module,
        {k: inputs[k] for k in tiles_in},
        {k: outputs[k] for k in tiles_out},
        max(len(inputs), len(outputs)),
        whole,
    )
    return Program(module.text(), hosts, frame.size, whole)


def _write_tile_moves(
    module: Module,
    inputs: Sequence[Leaf],
    tiles_in: dict[int, tuple[Place, set[int]]],
    outputs: Sequence[Leaf],
    tiles_out: dict[int, Place],
) -> None:
    """Write the moves between tiles and instances, whose addresses are in tables."""

    def begin(name: str) -> Function:
        return Function(module, f"define internal void @{name}({PARAMETERS})")

    def base(kind: str, k: int, tile: Place) -> str:
        return f.address(Place(Pointer(kind, k, uniform=True), 0, tile.dtype))

    f = begin("load_tile")
    if module.spelling.lanes > 1:
        for k, tile in tiles_out.items():
            announce_store(f, base("out", k, tile), outputs[k].size, tile.dtype)
    for k, (tile, columns) in tiles_in.items():
        load_tile(f, base("in", k, tile), inputs[k].size, columns, tile)
    f.finish()
    f = begin("store_tile")
    for k, tile in tiles_out.items():
        store_tile(f, base("out", k, tile), outputs[k].size, tile)
    f.finish()


def _write_batch_loop(
    module: Module,
    inputs: dict[int, Leaf],
    outputs: dict[int, Leaf],
    arrays: int,
    fused: bool,
) -> None:
    """Write the loop over tiles.

    Where it is ``fused``, tiles are to be kept in registers: everything is inlined, and tables
    and frame are touched at constant offsets only.
    """
    lanes = module.spelling.lanes
    frame = module.frame
    # Room for an incomplete tile, in the frame or (where that is to be taken apart) beside it.
    leaves = [*inputs.values(), *outputs.values()] if lanes > 1 else []
    sizes = [
        -(-leaf.size * lanes * ITEM_BYTES[leaf.dtype] // ALIGNMENT) * ALIGNMENT for leaf in leaves
    ]
    offsets = [0] * len(sizes) if fused else [frame.bytes(size) for size in sizes]
    f = Function(module, f"define internal i32 @run({BATCH_PARAMETERS}) noinline")
    _open_frame(f, frame.size)
    for table in ("in", "out"):
        f.line(f"%tile.{table} = alloca [{max(arrays, 1)} x ptr], align 8")
    rooms = []
    for k, (size, offset) in enumerate(zip(sizes, offsets)):
        if fused:
            f.line(f"%room{k} = alloca [{size} x i8], align {ALIGNMENT}")
        else:
            f.line(f"%room{k} = getelementptr i8, ptr %frame, i64 {offset}")
        rooms.append(f"%room{k}")
    rooms = rooms or ["null"] * (len(inputs) + len(outputs))

    def rows(kind: str, leaves: dict[int, Leaf], mine: list[str]) -> list[Rows]:
        bases = [f.address(Place(Pointer(kind, k, uniform=True), 0, F64)) for k in leaves]
        return [Rows(b, x.size, x.dtype, r) for b, x, r in zip(bases, leaves.values(), mine)]

    given = rows("in", inputs, rooms[: len(inputs)])
    results = rows("out", outputs, rooms[len(inputs) :])
    inline = " alwaysinline" if fused else ""
    with f.loop("%begin", "%end", step=lanes) as loop:
        first = loop.counter
        whole = "true"
        if lanes > 1:
            following = f.value(f"add i64 {first}, {lanes}")
            whole = f.value(f"icmp sle i64 {following}, %end")
        reads, writes = gather(f, whole, first, "%end", given, results)
        for table, numbers, places in (("in", inputs, reads), ("out", outputs, writes)):
            for k, place in zip(numbers, places):
                at = f.value(f"getelementptr ptr, ptr %tile.{table}, i64 {k}")
                f.line(f"store ptr {place}, ptr {at}, align 8")
        tables = "ptr %frame, ptr %tile.in, ptr %tile.out"
        f.line(f"call void @load_tile({tables}){inline}")
        f.line(f"call void @body(ptr %frame, ptr %in, ptr %out){inline}")
        f.line(f"call void @store_tile({tables}){inline}")
        if lanes > 1:
            scatter(f, whole, first, "%end", results)
    _close_frame(f, frame.size)
    add_guarded(module, BATCH, BATCH_PARAMETERS, "run")
