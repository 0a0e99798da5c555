"""What a valid graph is.

1. Ids only point back: operands of a node come before it; a region's node is read only by the
   ``out`` nodes that pick its results.
2. Operands have the dtypes the op's row takes, and agree with each other (a select's test is
   bool, a lookup's index int64); the stored dtype is what the row's result rule gives.
3. Constants hold a Python number of their dtype; inputs are numbered in order. Operations take
   scalars; blocks are read by regions and by ``element`` nodes, whose index is int64.
4. Regions read existing ids, in number and dtypes as their bodies take them; loop bodies return
   a carry of the dtypes they take; branches agree; every body is itself valid.
5. Outputs exist.

Passes and derivative rules must keep these: the tests run ``validate`` on every graph they make.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch

from archimedes.errors import GraphError
from archimedes.graph import dtypes, regions
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, block_type, item_type, length_of
from archimedes.graph.ops import BLOCK, CONST, ELEMENT, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Gather
from archimedes.graph.regions.block_regions import Read
from archimedes.graph.regions.loop_regions import CountedLoop

#: Operations that may combine the values along reduced axes.
COMBINE = ("add", "mul", "min", "max", "and", "or", "xor")
_PYTHON_TYPE = {F64: float, F32: float, I64: int, B8: bool}


def validate(g: Graph) -> None:
    """Raise GraphError, naming the node, if the graph breaks a rule above."""
    count = len(g.op)
    for i in range(count):
        for fault in _node_faults(g, i):
            raise GraphError(f"node %{i} ({TABLE[g.op[i]].name}): {fault}")
    for k, i in enumerate(g.inputs):
        if not 0 <= i < count or g.op[i] != INPUT or g.a[i] != k:
            raise GraphError(f"input {k} is %{i}, which is not an input node of that number")
    for k, i in enumerate(g.outputs):
        if not 0 <= i < count or g.op[i] == REGION:
            raise GraphError(f"output {k} is %{i}, which is not a value of the graph")


def _node_faults(g: Graph, i: int) -> Iterator[str]:
    """Say what is wrong with a node, as ends of a sentence that begins with its name."""
    if g.op[i] == REGION and i not in g.regions:
        yield "has no region"
    for j in g.operands(i):
        if not 0 <= j < i:
            yield f"reads %{j}, which does not come before it"
        if g.op[j] == REGION and g.op[i] != OUT:
            yield f"reads %{j}, which is a region and not one of its outputs"
    yield from _FAULTS.get(g.op[i], _operation_faults)(g, i)


def _const_faults(g: Graph, i: int) -> Iterator[str]:
    value = g.value.get(i)
    if type(value) is not _PYTHON_TYPE[g.dtype[i]]:
        yield f"holds {value!r}, which is not a {dtypes.DTYPE_NAMES[g.dtype[i]]}"


def _input_faults(g: Graph, i: int) -> Iterator[str]:
    if not 0 <= g.a[i] < len(g.inputs) or g.inputs[g.a[i]] != i:
        yield "is not listed among the inputs of the graph"


def _out_faults(g: Graph, i: int) -> Iterator[str]:
    region = g.regions.get(g.a[i])
    if region is None:
        yield f"reads %{g.a[i]}, which is not a region"
    elif not 0 <= g.b[i] < len(region.out_dtypes) or region.out_dtypes[g.b[i]] != g.dtype[i]:
        yield f"is not an output of %{g.a[i]}"


def _lookup_faults(g: Graph, i: int) -> Iterator[str]:
    if not 0 <= g.b[i] < len(g.tables) or g.tables[g.b[i]].size == 0:
        yield f"reads table {g.b[i]}, which does not exist or is empty"
    if g.dtype[g.a[i]] != I64:
        yield "has an index that is not int64"
    if g.tables[g.b[i]].dtype != DTYPES[g.dtype[i]]:
        yield f"reads a table of {g.tables[g.b[i]].dtype}"


def _block_faults(g: Graph, i: int) -> Iterator[str]:
    if not 0 <= g.b[i] < len(g.tables):
        yield f"is table {g.b[i]}, which does not exist"
    table, kind = g.tables[g.b[i]], g.dtype[i]
    if table.dtype != DTYPES[item_type(kind)] or len(table) != length_of(kind):
        yield f"is a table of {len(table)} {table.dtype}"


def _element_faults(g: Graph, i: int) -> Iterator[str]:
    kind = g.dtype[g.a[i]]
    if not length_of(kind) or item_type(kind) != g.dtype[i]:
        yield f"is no element of %{g.a[i]}, which is {dtypes.type_name(kind)}"
    if g.dtype[g.b[i]] != I64:
        yield "has an index that is not int64"


def _region_faults(g: Graph, i: int) -> Iterator[str]:
    for k, body in enumerate(g.regions[i].bodies):
        try:
            validate(body)
        except GraphError as error:
            yield f"has an invalid body {k}: {error}"
    yield from region_faults(g.regions[i], g)


def _operation_faults(g: Graph, i: int) -> Iterator[str]:
    row, dtype = TABLE[g.op[i]], g.dtype[i]
    kinds = [g.dtype[j] for j in g.operands(i)]
    if row.name == "select" and kinds.pop(0) != B8:
        yield "has a test that is not bool"
    if len(set(kinds)) != 1 or kinds[0] not in row.takes:
        yield f"does not take operands of {[dtypes.type_name(k) for k in kinds]}"
    if dtype != (kinds[-1] if row.result == "same" else row.result):
        yield f"is stored as {dtypes.DTYPE_NAMES[dtype]}, its rule gives another dtype"


#: What is wrong with structural nodes, by op; all others are operations.
_FAULTS = {
    CONST: _const_faults,
    INPUT: _input_faults,
    OUT: _out_faults,
    LOOKUP: _lookup_faults,
    BLOCK: _block_faults,
    ELEMENT: _element_faults,
    REGION: _region_faults,
}


# ---- regions ------------------------------------------------------------------------------


@singledispatch
def region_faults(region: regions.Region, g: Graph) -> Iterator[str]:
    """Say what makes a region invalid in a graph; classes register their own rules."""
    yield from ()


def input_faults(g: Graph, ids: Sequence[int], body: Graph, what: str) -> Iterator[str]:
    """Say whether a body gets other inputs, in number or dtypes, than it takes."""
    if [g.dtype[j] for j in ids] != body.input_dtypes:
        yield f"gives its {what} other inputs than it takes"


def _carry_faults(body: Graph, carry: int) -> Iterator[str]:
    """Say whether the body of a loop returns a carry of other dtypes than it takes."""
    if len(body.outputs) < carry or body.output_dtypes[:carry] != body.input_dtypes[:carry]:
        yield "has a body that changes the dtypes of the carry"


def find_ends(read: Affine, shape: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest position."""
    steps = [s * (n - 1) for s, n in zip(read.strides, shape)]
    low, high = sum(min(e, 0) for e in steps), sum(max(e, 0) for e in steps)
    return read.offset + low, read.offset + high


def _is_within(read: Affine, shape: Sequence[int], length: int) -> bool:
    """Return whether all positions are those of a block of a length."""
    low, high = find_ends(read, shape)
    return low >= 0 and high < length


def _read_faults(read: Read, shape: Sequence[int], length: int) -> Iterator[str]:
    if read is None:
        return
    if isinstance(read, Gather):
        ends = (int(read.table.min()), int(read.table.max())) if read.table.size else (0, -1)
        if read.table.size != math.prod(shape):
            yield f"gathers {read.table.size} elements at {math.prod(shape)} points"
    else:
        if len(read.strides) != len(shape):
            yield f"reads along {len(read.strides)} of {len(shape)} axes"
        ends = find_ends(read, shape)
    if ends[0] < 0 or ends[1] >= length:
        yield f"reads elements {ends[0]} to {ends[1]} of a block of {length}"


@region_faults.register
def _(region: regions.Call, g: Graph) -> Iterator[str]:
    yield from input_faults(g, region.inputs.tolist(), region.body, "body")


@region_faults.register
def _(region: regions.Switch, g: Graph) -> Iterator[str]:
    if not region.branches:
        yield "has no branches"
    if not len(region.inputs) or g.dtype[region.inputs[0]] != I64:
        yield "has an index that is not int64"
    for k, body in enumerate(region.branches):
        yield from input_faults(g, region.inputs[1:].tolist(), body, f"branch {k}")
        if body.output_dtypes != region.out_dtypes:
            yield f"has a branch {k} that returns other dtypes than the first"


@region_faults.register
def _(region: regions.Host, g: Graph) -> Iterator[str]:
    if not callable(region.function):
        yield "has no function to call"


@region_faults.register
def _(region: CountedLoop, g: Graph) -> Iterator[str]:
    if region.rows < 0 or region.slices < 0 or region.carry < 0:
        yield "has a negative count"
    if len(region.inputs) < region.carry + region.rows * region.slices:
        yield f"has too few operands for {region.rows} x {region.slices} slices"
    if region.stacked and region.length < 1:
        yield "has blocks of no steps"
    carry, slices, shared = (part.tolist() for part in region.parts())
    n, kinds = region.carry, region.body.input_dtypes
    kinds[n : n + region.slices] = map(region.of_steps, kinds[n : n + region.slices])
    for row in slices:
        if [g.dtype[j] for j in (*carry, *row, *shared)] != kinds:
            yield "gives its body other inputs than it takes"
    yield from _carry_faults(region.body, region.carry)


@region_faults.register
def _(region: regions.While, g: Graph) -> Iterator[str]:
    for body, what in ((region.condition, "condition"), (region.body, "body")):
        yield from input_faults(g, region.inputs.tolist(), body, what)
    yield from _carry_faults(region.body, region.carry)
    if len(region.body.outputs) != region.carry:
        yield "has a body that returns more than the carry"
    if region.condition.output_dtypes != [B8]:
        yield "has a condition that does not return one bool"
    if region.limit < 0:
        yield "has a negative limit"


@region_faults.register
def _(region: regions.Nest, g: Graph) -> Iterator[str]:
    if min(region.shape, default=0) < 1 or not 0 <= region.kept <= len(region.shape):
        yield f"has no index space: {region.shape}, {region.kept} kept"
    if (region.kept < len(region.shape)) != (region.combine in COMBINE):
        yield f"combines {len(region.shape) - region.kept} axes by {region.combine!r}"
    if len(region.reads) != len(region.inputs):
        yield f"has {len(region.reads)} reads of {len(region.inputs)} inputs"
    kinds = []
    for i, read in zip(region.inputs.tolist(), region.reads):
        kind = g.dtype[i]
        kinds.append(kind if read is None else item_type(kind))
        yield from _read_faults(read, region.shape, length_of(kind))
    axes = [I64] * len(region.shape)
    if region.body.input_dtypes not in (kinds, kinds + axes):
        yield "gives its body other inputs than it takes"
    if any(length_of(kind) for kind in region.body.output_dtypes):
        yield "has a body that returns a block"


@region_faults.register
def _(region: regions.Pack, g: Graph) -> Iterator[str]:
    for source, shape, to, start in region.moves:
        kind = g.dtype[int(region.inputs[source])]
        if item_type(kind) != region.dtype:
            yield "copies elements of another dtype"
        if (start is None) != (not length_of(kind)):
            yield "reads a block as a scalar, or a scalar as a block"
        if min(shape, default=1) < 1:
            yield "has an empty box"
        elif not _is_within(to, shape, region.length):
            yield "writes outside its block"
        elif start is not None and not _is_within(start, shape, length_of(kind)):
            yield "reads outside a block"


@region_faults.register
def _(region: regions.Accumulate, g: Graph) -> Iterator[str]:
    kinds = [g.dtype[i] for i in region.inputs.tolist()]
    count = length_of(kinds[0]) if kinds else 0
    if region.length < 1 or kinds != [block_type(region.dtype, count), block_type(I64, count)]:
        yield "does not take a block of values and one of as many indices"


@region_faults.register
def _(region: regions.Sort, g: Graph) -> Iterator[str]:
    yield from input_faults(g, region.inputs.tolist(), region.body, "body")
    if region.body.output_dtypes != region.out_dtypes:
        yield "has a body that does not return the positions"


@region_faults.register
def _(region: regions.Solve, g: Graph) -> Iterator[str]:
    sizes = region.size**2, region.size * region.columns
    kinds = [g.dtype[j] for j in region.inputs.tolist()]
    if region.blocks:
        if kinds != [block_type(region.dtype, n) for n in sizes]:
            yield f"needs blocks of {sizes[0]} and {sizes[1]} floating-point operands"
        return
    expected = sum(sizes)
    if len(region.inputs) != expected or region.dtype not in (F64, F32):
        yield f"needs {expected} floating-point operands"
    if any(kind != region.dtype for kind in kinds):
        yield "has operands of mixed dtypes"
