"""The functions of a module that are called from outside.

Scalar: ``i32 arc_scalar(ptr in, ptr out)``; ``in`` and ``out`` are arrays of pointers, one an array
leaf, each to C-contiguous items of the leaf's dtype (bools are bytes).
Batch: ``i32 arc_batch(ptr in, ptr out, i64 begin, i64 end)`` computes the instances begin..end-1 of
batched leaves of shape (N, leaf); leaves that are not batched are shared by all instances.

Outputs may not overlap inputs. The result is 0, ``NO_MEMORY``, or what a host callback returned.
Functions keep no state: any number of threads may call them at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.llvm.assembler import Function, Module
from archimedes.backends.llvm.hosting import HostCall
from archimedes.backends.llvm.lowering import PARAMETERS, PART, Lowering
from archimedes.backends.llvm.machine import Target
from archimedes.backends.llvm.memory import ALIGNMENT, Binding, Location, Pointer
from archimedes.backends.llvm.spelling import Spelling
from archimedes.backends.llvm.tiles import (
    announce_store,
    load_tail,
    load_tile,
    store_tail,
    store_tile,
)
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
NO_MEMORY = 1
#: Larger frames come from the heap.
STACK = 32768


class Leaf(NamedTuple):
    """An array of a call: number of items (an instance) and dtype code."""

    size: int
    dtype: int


class Program(NamedTuple):
    """The text of a module and the callbacks it needs."""

    text: str
    hosts: list[HostCall]
    frame: int


def fixed_leaves(g: Graph, fixed: Sequence[int]) -> list[Leaf]:
    """Return the arrays that hold the values of nodes sorted by dtype."""
    counts = Counter(g.dtype[i] for i in fixed)
    return [Leaf(counts[d], d) for d in sorted(counts)]


def _leaf_locations(kind: str, leaves: Sequence[Leaf], first: int = 0) -> list[list[Location]]:
    pointers = [Pointer(kind, first + k, uniform=True) for k in range(len(leaves))]
    return [
        [Location(p, k, leaf.dtype) for k in range(leaf.size)] for p, leaf in zip(pointers, leaves)
    ]


def _flat(nested: Sequence[Sequence[Location]]) -> list[Location]:
    return [x for row in nested for x in row]


def _write_body(
    module: Module,
    g: Graph,
    given: Sequence[Location],
    to: Sequence[Location],
    part: int,
    known: dict[int, Location],
) -> list[HostCall]:
    """Write ``void body(frame, in, out)``, the computation itself."""
    low = Lowering(module, g, part)
    f = Function(module, f"define internal void @body({PARAMETERS})")
    bound = {i: Binding(location=x) for i, x in known.items()}
    given_bound = [Binding(location=x) for x in given]
    low.lower(f, g, given_bound, stores=list(zip(g.outputs, to)), known=bound)
    f.finish()
    return low.hosts


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
) -> Program:
    """Write the module of the scalar kernel."""
    module = Module(Spelling(1), target)
    given, to = (_flat(_leaf_locations(k, x)) for k, x in (("in", inputs), ("out", outputs)))
    hosts = _write_body(module, g, given, to, part, {})
    size = module.frame.size
    f = Function(module, f"define i32 @{SCALAR}(ptr %in, ptr %out)")
    _open_frame(f, size)
    f.line("call void @body(ptr %frame, ptr %in, ptr %out)")
    _close_frame(f, size)
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
) -> Program:
    """Write the module of the batch kernel for one choice of batched inputs.

    ``fixed`` are nodes that do not depend on batched inputs, by dtype: the caller computes them
    once and gives their values as further arrays, one a dtype, behind the inputs. With ``lanes``
    1 the scalar computation runs for one instance after the other.
    """
    module = Module(Spelling(lanes), target)
    frame = module.frame
    live = set(g.live())
    used = [i in live for i in g.inputs]
    tiles_in: dict[int, tuple[Location, set[int]]] = {}
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
    _write_batch_loop(module)
    return Program(module.text(), hosts, frame.size)


def _write_tile_moves(
    module: Module,
    inputs: Sequence[Leaf],
    tiles_in: dict[int, tuple[Location, set[int]]],
    outputs: Sequence[Leaf],
    tiles_out: dict[int, Location],
) -> None:
    """Write the moves of whole tiles (``_tile``) and of the last, incomplete one (``_tail``)."""

    def begin(name: str) -> Function:
        head = f"define internal void @{name}({PARAMETERS}, i64 %first, i64 %end)"
        return Function(module, head)

    f, tail = begin("load_tile"), begin("load_tail")
    if module.spelling.lanes > 1:
        for k, tile in tiles_out.items():
            base = f.address(Location(Pointer("out", k, uniform=True), 0, tile.dtype))
            announce_store(f, base, "%first", outputs[k].size, tile.dtype)
    for k, (tile, columns) in tiles_in.items():
        count = inputs[k].size
        for g in (f, tail):
            pointer = Location(Pointer("in", k, uniform=True), 0, tile.dtype)
            base = g.address(pointer)
            if g is f and module.spelling.lanes > 1:
                load_tile(g, base, "%first", count, columns, tile)
            else:
                load_tail(g, base, "%first", "%end", count, tile)
    f.finish()
    tail.finish()
    f, tail = begin("store_tile"), begin("store_tail")
    for k, tile in tiles_out.items():
        count = outputs[k].size
        for g in (f, tail):
            base = g.address(Location(Pointer("out", k, uniform=True), 0, tile.dtype))
            if g is f and module.spelling.lanes > 1:
                store_tile(g, base, "%first", count, tile)
            else:
                end = g.value("add i64 %first, 1") if g is f else "%end"
                store_tail(g, base, "%first", end, count, tile)
    f.finish()
    tail.finish()


def _write_batch_loop(module: Module) -> None:
    lanes, size = module.spelling.lanes, module.frame.size
    f = Function(module, f"define i32 @{BATCH}(ptr %in, ptr %out, i64 %begin, i64 %end)")
    _open_frame(f, size)
    arguments = "ptr %frame, ptr %in, ptr %out"
    with f.loop("%begin", "%end", step=lanes) as loop:
        first = loop.counter
        following = f.value(f"add i64 {first}, {lanes}")
        whole = f.value(f"icmp sle i64 {following}, %end")
        for kind in ("load", "store"):
            full, part, after = f.label(), f.label(), f.label()
            f.fork(whole, full, part)
            for label, name in ((full, "tile"), (part, "tail")):
                f.start(label)
                f.line(f"call void @{kind}_{name}({arguments}, i64 {first}, i64 %end)")
                f.line(f"br label %{after}")
            f.start(after)
            if kind == "load":
                f.line(f"call void @body({arguments})")
    _close_frame(f, size)
