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

__all__ = ["validate"]

_PYTHON_TYPE = {F64: float, F32: float, I64: int, B8: bool}


def _fail(i: int, g: Graph, text: str) -> GraphError:
    return GraphError(f"node %{i} ({TABLE[g.op[i]].name}): {text}")


def validate(g: Graph) -> None:
    """Raise GraphError, naming the node, if the graph breaks a rule above."""
    count = len(g.op)
    for i in range(count):
        if g.op[i] == REGION and i not in g.regions:
            raise _fail(i, g, "has no region")
        for j in g.operands(i):
            if not 0 <= j < i:
                raise _fail(i, g, f"reads %{j}, which does not come before it")
            if g.op[j] == REGION and g.op[i] != OUT:
                raise _fail(i, g, f"reads %{j}, which is a region and not one of its outputs")
        _check_node(g, i)
    for k, i in enumerate(g.inputs):
        if not 0 <= i < count or g.op[i] != INPUT or g.a[i] != k:
            raise GraphError(f"input {k} is %{i}, which is not an input node of that number")
    for k, i in enumerate(g.outputs):
        if not 0 <= i < count or g.op[i] == REGION:
            raise GraphError(f"output {k} is %{i}, which is not a value of the graph")


def _check_node(g: Graph, i: int) -> None:
    op = g.op[i]
    row = TABLE[op]
    dtype = g.dtype[i]
    if op == CONST:
        value = g.value.get(i)
        if type(value) is not _PYTHON_TYPE[dtype]:
            raise _fail(i, g, f"holds {value!r}, which is not a {DTYPE_NAMES[dtype]}")
    elif op == INPUT:
        if not 0 <= g.a[i] < len(g.inputs) or g.inputs[g.a[i]] != i:
            raise _fail(i, g, "is not listed among the inputs of the graph")
    elif op == OUT:
        region = g.regions.get(g.a[i])
        if region is None:
            raise _fail(i, g, f"reads %{g.a[i]}, which is not a region")
        if not 0 <= g.b[i] < len(region.out_dtypes) or region.out_dtypes[g.b[i]] != dtype:
            raise _fail(i, g, f"is not an output of %{g.a[i]}")
    elif op == LOOKUP:
        if not 0 <= g.b[i] < len(g.tables) or g.tables[g.b[i]].size == 0:
            raise _fail(i, g, f"reads table {g.b[i]}, which does not exist or is empty")
        if g.dtype[g.a[i]] != I64:
            raise _fail(i, g, "has an index that is not int64")
        if g.tables[g.b[i]].dtype != DTYPES[dtype]:
            raise _fail(i, g, f"reads a table of {g.tables[g.b[i]].dtype}")
    elif op == BLOCK:
        if not 0 <= g.b[i] < len(g.tables):
            raise _fail(i, g, f"is table {g.b[i]}, which does not exist")
        table = g.tables[g.b[i]]
        if table.dtype != DTYPES[item_type(dtype)] or len(table) != length_of(dtype):
            raise _fail(i, g, f"is a table of {len(table)} {table.dtype}")
    elif op == ELEMENT:
        kind = g.dtype[g.a[i]]
        if not length_of(kind) or item_type(kind) != dtype:
            raise _fail(i, g, f"is no element of %{g.a[i]}, which is {type_name(kind)}")
        if g.dtype[g.b[i]] != I64:
            raise _fail(i, g, "has an index that is not int64")
    elif op == REGION:
        region = g.regions[i]
        for k, body in enumerate(region.bodies):
            try:
                validate(body)
            except GraphError as error:
                raise _fail(i, g, f"has an invalid body {k}: {error}") from None
        for fault in region.faults(g):
            raise _fail(i, g, fault)
    elif row.arity:
        _check_types(g, i)


def _check_types(g: Graph, i: int) -> None:
    row, dtype = TABLE[g.op[i]], g.dtype[i]
    kinds = [g.dtype[j] for j in g.operands(i)]
    if row.name == "select" and kinds.pop(0) != B8:
        raise _fail(i, g, "has a test that is not bool")
    if len(set(kinds)) != 1 or kinds[0] not in row.takes:
        names = [type_name(k) for k in kinds]
        raise _fail(i, g, f"does not take operands of {names}")
    wanted = kinds[-1] if row.result == "same" else row.result
    if dtype != wanted:
        raise _fail(i, g, f"is stored as {DTYPE_NAMES[dtype]}, its rule gives another dtype")
