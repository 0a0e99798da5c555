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

from collections.abc import Mapping, Sequence
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
    from archimedes.backends.llvm.lowering.batch_loop import TileIn

__all__ = ["Program", "batch_program", "scalar_program"]

SCALAR_PARAMETERS = "ptr %in, ptr %out"
#: Up to this many operations a batch kernel keeps its tiles in registers.
FUSED = 2500


class Program(NamedTuple):
    """The text of a module, the callbacks it needs, and whether to inline what is marked so."""

    text: str
    hosts: list[HostCall]
    frame: int
    fused: bool = False


def _leaf_locations(
    kind: str, kinds: Sequence[int], leaves: Sequence[Leaf], first: int = 0
) -> list[list[Location]]:
    """Return the places of values of these types in the arrays of a call."""
    pointers = [Pointer(kind, first + k, uniform=True) for k in range(len(leaves))]
    counts = leaf_values(kinds, [leaf.size for leaf in leaves])
    return [
        [Location(p, k, leaf.dtype) for k in range(count)]
        for p, leaf, count in zip(pointers, leaves, counts)
    ]


def _interface(
    g: Graph, inputs: Sequence[Leaf], outputs: Sequence[Leaf]
) -> tuple[list[Location], list[Location]]:
    """Return the places of a graph's inputs and outputs in the arrays of a call."""
    given = _leaf_locations("in", g.input_dtypes, inputs)
    return _flat(given), _flat(_leaf_locations("out", g.output_dtypes, outputs))


def _flat(nested: Sequence[Sequence[Location]]) -> list[Location]:
    return [x for row in nested for x in row]


def _write_body(
    module: Module,
    g: Graph,
    given: Sequence[Location],
    to: Sequence[Location],
    part: int,
    known: dict[int, Location],
) -> tuple[list[HostCall], list[str]]:
    """Write the computation itself: return the functions of (frame, in, out) that make it up."""
    llvm = Llvm(module)
    f = Function(module, f"define internal void @body({PARAMETERS})")
    llvm.outermost = f
    bound = {i: Binding(location=x) for i, x in known.items()}
    given_bound = [Binding(location=x) for x in given]
    low = Lowering(llvm, [g], part)
    low.lower(f, g, given_bound, stores=list(enumerate(to)), known=bound)
    rest = ["@body"] if f.lines or not llvm.steps else []
    f.finish()
    return llvm.hosts, [*llvm.steps, *rest]


def scalar_program(
    g: Graph,
    inputs: Sequence[Leaf],
    outputs: Sequence[Leaf],
    target: Target,
    part: int = PART,
    data: Mapping[str, str] | None = None,
) -> Program:
    """Write the module of the scalar kernel; ``data`` names the tables that lie outside."""
    module = Module(Spelling(1), target, data)
    given, to = _interface(g, inputs, outputs)
    hosts, steps = _write_body(module, g, given, to, part, {})
    size = module.frame.size
    f = Function(module, f"define internal i32 @run({SCALAR_PARAMETERS}) noinline")
    open_frame(f, size)
    for step in steps:
        f.line(f"call void {step}({PARAMETERS})")
    close_frame(f, size)
    add_guarded(module, SCALAR, SCALAR_PARAMETERS, "run")
    return Program(module.text(), hosts, size)


def _tiles_in(
    module: Module, g: Graph, inputs: Sequence[Leaf], batched: Sequence[bool]
) -> tuple[dict[int, TileIn], list[list[Location]]]:
    """Return the tiles of batched arrays that are used, and where all inputs are."""
    live = set(g.live())
    used = [i in live for i in g.inputs]
    tiles: dict[int, TileIn] = {}
    given = _leaf_locations("in", g.input_dtypes, inputs)
    position = 0
    for k, leaf in enumerate(inputs):
        count = len(given[k])
        columns = {c for c in range(count) if used[position + c]}
        position += count
        if batched[k] and columns:
            tile = module.frame.array(leaf.dtype, leaf.size)
            # Of a block all columns are used.
            tiles[k] = tile, columns if count == leaf.size else set(range(leaf.size))
            given[k] = [tile.at(c) for c in range(count)]
    return tiles, given


def batch_program(
    g: Graph,
    inputs: Sequence[Leaf],
    batched: Sequence[bool],
    outputs: Sequence[Leaf],
    lanes: int,
    fixed: Sequence[int],
    target: Target,
    part: int = PART,
    data: Mapping[str, str] | None = None,
) -> Program:
    """Write the module of the batch kernel for one choice of batched inputs.

    ``fixed`` are nodes that do not depend on batched inputs, by dtype: the caller computes them
    once and gives their values as further arrays, one per dtype, behind the inputs. With ``lanes``
    1 the scalar computation runs for one instance after the other, where their arrays are.
    """
    # What single calls do without.
    from archimedes.backends.llvm.lowering.batch_loop import (
        write_batch_loop,
        write_instance_loop,
    )
    from archimedes.backends.llvm.lowering.nests.packing import Copies

    module = Module(Spelling(lanes), target, data)
    kinds = [g.dtype[i] for i in fixed]
    values = _leaf_locations("in", kinds, fixed_leaves(g, fixed), len(inputs))
    known = dict(zip(fixed, _flat(values)))
    if lanes == 1:
        hosts, steps = _write_body(module, g, *_interface(g, inputs, outputs), part, known)
        write_instance_loop(module, inputs, batched, outputs, len(values), steps, g)
        return Program(module.text(), hosts, module.frame.size)
    frame = module.frame
    tiles_in, given = _tiles_in(module, g, inputs, batched)
    tiles_out = {
        k: frame.array(leaf.dtype, leaf.size) for k, leaf in enumerate(outputs) if leaf.size
    }
    counts = leaf_values(g.output_dtypes, [leaf.size for leaf in outputs])
    to = [tiles_out[k].at(c) for k, count in enumerate(counts) for c in range(count)]
    module.copies = Copies(len(inputs) + len(values))
    hosts, steps = _write_body(module, g, _flat(given), to, part, known)
    fused = frame.size <= STACK and cost(g, {}) <= FUSED and not module.copies.made
    write_batch_loop(module, inputs, tiles_in, outputs, tiles_out, steps, bool(hosts), fused, g)
    return Program(module.text(), hosts, frame.size, fused)
