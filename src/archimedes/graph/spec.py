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

Passes and derivative rules must keep these; ``validate`` is run on every graph in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator

from archimedes.errors import GraphError
from archimedes.graph.dtypes import (
    B8,
    DTYPE_NAMES,
    DTYPES,
    F32,
    F64,
    I64,
    item_type,
    length_of,
    type_name,
)
from archimedes.graph.ops import BLOCK, CONST, ELEMENT, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.program import Graph

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
        yield f"holds {value!r}, which is not a {DTYPE_NAMES[g.dtype[i]]}"


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
        yield f"is no element of %{g.a[i]}, which is {type_name(kind)}"
    if g.dtype[g.b[i]] != I64:
        yield "has an index that is not int64"


def _region_faults(g: Graph, i: int) -> Iterator[str]:
    for k, body in enumerate(g.regions[i].bodies):
        try:
            validate(body)
        except GraphError as error:
            yield f"has an invalid body {k}: {error}"
    yield from g.regions[i].faults(g)


def _operation_faults(g: Graph, i: int) -> Iterator[str]:
    row, dtype = TABLE[g.op[i]], g.dtype[i]
    kinds = [g.dtype[j] for j in g.operands(i)]
    if row.name == "select" and kinds.pop(0) != B8:
        yield "has a test that is not bool"
    if len(set(kinds)) != 1 or kinds[0] not in row.takes:
        yield f"does not take operands of {[type_name(k) for k in kinds]}"
    if dtype != (kinds[-1] if row.result == "same" else row.result):
        yield f"is stored as {DTYPE_NAMES[dtype]}, its rule gives another dtype"


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
