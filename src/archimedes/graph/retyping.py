"""The same program in float32: what a target without double arithmetic computes.

Every float64 becomes float32: inputs, outputs, tables and constants (rounded; what float32 cannot
hold becomes inf, as when an array is cast). Elementary functions are those of float32, that is,
computed in float64 and rounded once. Bit moves of float64 keep their meaning: ``bits`` widens its
operand and ``from_bits`` rounds its result. The interpreter on the new graph is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While
from archimedes.graph.trimming import Origin

__all__ = ["retype"]

_ARITY = tuple(op.arity for op in TABLE)


def retype(graph: Graph, origin: dict[int, Origin] | None = None) -> Graph:
    """Return the program with float32 in place of float64.

    ``origin`` gets an entry for the new graph and each new body: where its nodes come from.

    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["mul"], x, g.const(0.1))]
    >>> retype(g).output_dtypes == [F32]
    True
    """
    return _copy(graph, {}, {} if origin is None else origin)


_REBUILD: dict[type[Region], Callable[[Any, Callable[[Graph], Graph]], Region]] = {
    Call: lambda r, to: replace(r, body=to(r.body), derivative=None),
    Scan: lambda r, to: replace(r, body=to(r.body)),
    Map: lambda r, to: replace(r, body=to(r.body)),
    While: lambda r, to: replace(r, condition=to(r.condition), body=to(r.body)),
    Switch: lambda r, to: replace(r, branches=tuple(to(b) for b in r.branches)),
    Solve: lambda r, to: replace(r, dtype=F32),
    Host: lambda r, to: replace(r, dtypes=tuple(_dtype(d) for d in r.dtypes)),
}


def _dtype(dtype: int) -> int:
    return F32 if dtype == F64 else dtype


def _copy(src: Graph, known: dict[int, Graph], origin: dict[int, Origin]) -> Graph:
    found = known.get(id(src))
    if found is not None:
        return found
    dst = Graph()
    op, a, b, c = src.op, src.a, src.b, src.c
    inputs = [dst.input(_dtype(src.dtype[i])) for i in src.inputs]
    to = [-1] * len(op)
    outs: dict[int, list[int]] = {}
    source: dict[int, int] = {}

    def body(g: Graph) -> Graph:
        return _copy(g, known, origin)

    for i in src.live():
        code, before = op[i], len(dst.op)
        if code == OUT:
            to[i] = outs[a[i]][b[i]]
        elif code == LOOKUP:
            to[i] = dst.lookup(_table(src.tables[b[i]]), to[a[i]])
        elif code == CONST:
            to[i] = dst.const(src.value[i], _dtype(src.dtype[i]))
        elif code == INPUT:
            to[i] = inputs[a[i]]
        elif code == REGION:
            region = src.regions[i].with_inputs([to[j] for j in src.regions[i].inputs.tolist()])
            outs[i] = dst.region(_REBUILD[type(region)](region, body)).tolist()
        else:
            to[i] = _emit(dst, code, [to[j] for j in (a[i], b[i], c[i])[: _ARITY[code]]])
        source.update((new, i) for new in range(before, len(dst.op)))
    dst.outputs = [to[i] for i in src.outputs]
    dst.input_names, dst.output_names = src.input_names, src.output_names
    origin[id(dst)] = (src, source)
    known[id(src)] = dst
    return dst


def _table(table: np.ndarray) -> np.ndarray:
    if table.dtype != np.float64:
        return table
    with np.errstate(over="ignore"):
        return table.astype(np.float32)


def _emit(dst: Graph, code: int, operands: list[int]) -> int:
    """Append an op whose float64 operands have become float32."""
    if code == CODES["bits"]:
        return dst.emit(code, dst.emit(CODES["f64"], *operands))
    if code == CODES["from_bits"]:
        return dst.emit(CODES["f32"], dst.emit(code, *operands))
    if code in (CODES["f64"], CODES["f32"]):
        return operands[0] if dst.dtype[operands[0]] == F32 else dst.emit(CODES["f32"], *operands)
    return dst.emit(code, *operands)
