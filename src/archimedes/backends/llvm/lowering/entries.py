"""The functions of a module that are called from outside.

Scalar: ``i32 arc_scalar(ptr in, ptr out)``; ``in`` and ``out`` are arrays of pointers, one per
array leaf, each to C-contiguous items of the leaf's dtype (bools are bytes).
Batch: ``i32 arc_batch(ptr in, ptr out, i64 begin, i64 end)`` computes the instances begin..end-1 of
batched leaves of shape (N, leaf); leaves that are not batched are shared by all instances.

Outputs may not overlap inputs. The result is 0, ``NO_MEMORY``, or what a host callback returned.
Functions keep no state: any number of threads may call them at once. They compute in the default
floating-point environment, whatever that of the caller is (``prologue.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from archimedes.backends.leaves import leaf_values
from archimedes.backends.llvm.calling_convention import PART, SCALAR, Leaf, fixed_leaves
from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.llvm_dialect import Llvm
from archimedes.backends.llvm.lowering.memory import Pointer, Spelling
from archimedes.backends.llvm.lowering.prologue import STACK, add_guarded, close_frame, open_frame
from archimedes.backends.llvm.runtime.calls_to_python import HostCall
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.analysis import cost
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.batch_loop import InputTile


SCALAR_PARAMETERS = "ptr %in, ptr %out"
#: Up to this many operations a batch kernel keeps its tiles in registers.
FUSED = 2500


class Source(NamedTuple):
    """What a kernel is written from: a graph, and the arrays of its inputs and outputs.

    ``part`` is the number of operations a function may have; ``data`` names the tables that lie
    outside the module.
    """

    graph: Graph
    inputs: Sequence[Leaf]
    outputs: Sequence[Leaf]
    target: Target
    part: int = PART
    data: Mapping[str, str] | None = None

    def locations(self) -> tuple[list[Location], list[Location]]:
        """Return where inputs and outputs are in the arrays of a call."""
        g = self.graph
        inputs = _leaf_locations("in", g.input_dtypes, self.inputs)
        return [*chain(*inputs)], [*chain(*_leaf_locations("out", g.output_dtypes, self.outputs))]


class Program(NamedTuple):
    """The text of a module, the callbacks it needs, and whether to inline what is marked so."""

    text: str
    hosts: list[HostCall]
    frame: int
    fused: bool = False


def _leaf_locations(
    array: str, kinds: Sequence[int], leaves: Sequence[Leaf], first: int = 0
) -> list[list[Location]]:
    """Return the locations of values of these types in the arrays of a call."""
    counts = leaf_values(kinds, [leaf.size for leaf in leaves])
    return [
        [Location(Pointer(array, first + k, uniform=True), c, leaf.dtype) for c in range(count)]
        for k, (leaf, count) in enumerate(zip(leaves, counts))
    ]


def _write_body(
    module: Module,
    source: Source,
    inputs: Sequence[Location],
    outputs: Sequence[Location],
    known: Mapping[int, Location],
) -> tuple[list[HostCall], list[str]]:
    """Write the computation itself: return the functions of (frame, in, out) that make it up."""
    llvm, g = Llvm(module), source.graph
    f = llvm.outermost = Function(module, f"define internal void @body({PARAMETERS})")
    bound = {i: Binding(location=x) for i, x in known.items()}
    arguments = [Binding(location=x) for x in inputs]
    low = Lowering(llvm, [g], source.part)
    low.lower(f, g, arguments, stores=list(enumerate(outputs)), known=bound)
    rest = ["@body"] if f.lines or not llvm.steps else []
    f.finish()
    return llvm.hosts, [*llvm.steps, *rest]


def scalar_program(source: Source) -> Program:
    """Write the module of the scalar kernel."""
    module = Module(Spelling(1), source.target, source.data)
    hosts, steps = _write_body(module, source, *source.locations(), {})
    size = module.frame.size
    f = Function(module, f"define internal i32 @run({SCALAR_PARAMETERS}) noinline")
    open_frame(f, size)
    f.lines += [f"  call void {step}({PARAMETERS})" for step in steps]
    close_frame(f, size)
    add_guarded(module, SCALAR, SCALAR_PARAMETERS, "run")
    return Program(module.text(), hosts, size)


def _input_tiles(
    module: Module, source: Source, batched: Sequence[bool]
) -> tuple[dict[int, InputTile], list[list[Location]]]:
    """Return the tiles of batched arrays that are used, and where all inputs are."""
    g = source.graph
    live = set(g.live())
    used = iter([i in live for i in g.inputs])
    tiles: dict[int, InputTile] = {}
    locations = _leaf_locations("in", g.input_dtypes, source.inputs)
    for k, leaf in enumerate(source.inputs):
        count = len(locations[k])
        columns = {c for c in range(count) if next(used)}
        if batched[k] and columns:
            tile = module.frame.array(leaf.dtype, leaf.size)
            # Of a block all columns are used.
            tiles[k] = tile, columns if count == leaf.size else set(range(leaf.size))
            locations[k] = [tile.at(c) for c in range(count)]
    return tiles, locations


def batch_program(
    source: Source, batched: Sequence[bool], lanes: int, fixed: Sequence[int]
) -> Program:
    """Write the module of the batch kernel for one choice of batched inputs.

    ``fixed`` are nodes that do not depend on batched inputs, by dtype: the caller computes them
    once and passes their values as further arrays, one per dtype, behind the inputs. With ``lanes``
    1 the scalar computation runs for one instance after the other, where their arrays are.
    """
    # What single calls do without.
    from archimedes.backends.llvm.lowering.batch_loop import write_batch_loop, write_instance_loop
    from archimedes.backends.llvm.lowering.nests.packing import Copies

    g = source.graph
    module = Module(Spelling(lanes), source.target, source.data)
    kinds, arrays = [g.dtype[i] for i in fixed], len(source.inputs)
    values = _leaf_locations("in", kinds, fixed_leaves(g, fixed), arrays)
    known = dict(zip(fixed, [*chain(*values)]))
    if lanes == 1:
        hosts, steps = _write_body(module, source, *source.locations(), known)
        write_instance_loop(module, source, batched, len(values), steps)
        return Program(module.text(), hosts, module.frame.size)
    frame = module.frame
    tiles_in, inputs = _input_tiles(module, source, batched)
    outputs = [(k, leaf) for k, leaf in enumerate(source.outputs) if leaf.size]
    tiles_out = {k: frame.array(leaf.dtype, leaf.size) for k, leaf in outputs}
    counts = leaf_values(g.output_dtypes, [leaf.size for leaf in source.outputs])
    to = [tiles_out[k].at(c) for k, count in enumerate(counts) for c in range(count)]
    module.copies = Copies(arrays + len(values))
    hosts, steps = _write_body(module, source, [*chain(*inputs)], to, known)
    fused = frame.size <= STACK and cost(g, {}) <= FUSED and not module.copies.packings
    # Callbacks take one tile at a time.
    many = not hosts and len(steps) > 1
    write_batch_loop(module, source, tiles_in, tiles_out, steps, many, fused)
    return Program(module.text(), hosts, frame.size, fused)
