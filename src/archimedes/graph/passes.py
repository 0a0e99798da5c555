"""Graph to Graph: copying a program into another, and dropping what nothing reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.ops import TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Region

__all__ = ["copy_into", "inline", "prune", "with_outputs"]

_ARITY = tuple(op.arity for op in TABLE)


def copy_into(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int] | np.ndarray,
    nodes: Sequence[int],
    place: Callable[[int, Region], Sequence[int]] | None = None,
) -> list[int]:
    """Re-emit the given nodes of ``src`` (ascending, closed under operands) into ``dst``.

    ``inputs`` are the ids in ``dst`` that take the place of ``src.inputs``. ``place`` may put a
    region of its own making in the place of one of ``src`` (given with its inputs already moved);
    it returns the outputs' ids. Returns a list that maps ids of ``src`` to ids of ``dst`` (-1
    where not copied).
    """
    to = [-1] * len(src.op)
    first = len(dst.op)
    op, a, b, c, dtype = src.op, src.a, src.b, src.c, src.dtype
    emit = dst.emit
    given = [int(i) for i in inputs]
    outs: dict[int, list[int]] = {}
    for i in nodes:
        code = op[i]
        arity = _ARITY[code]
        if code == OUT:
            to[i] = outs[a[i]][b[i]]
        elif code == LOOKUP:
            to[i] = dst.lookup(src.tables[b[i]], to[a[i]])
        elif arity == 2:
            to[i] = emit(code, to[a[i]], to[b[i]])
        elif arity == 1:
            to[i] = emit(code, to[a[i]])
        elif arity == 3:
            to[i] = emit(code, to[a[i]], to[b[i]], to[c[i]])
        elif code == CONST:
            to[i] = dst.const(src.value[i], dtype[i])
        elif code == INPUT:
            to[i] = given[a[i]]
        elif code == REGION:
            region = src.regions[i]
            ids = [to[j] for j in region.inputs.tolist()]
            moved = region.with_inputs(ids)
            outs[i] = list(place(i, moved)) if place else dst.region(moved).tolist()
    if src.lines is not None and dst.lines is not None:
        for i in nodes:
            if to[i] >= first:
                dst.lines[to[i]] = src.lines[i]
    return to


def inline(dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray) -> list[int]:
    """Copy a program into ``dst`` on the given input ids and return the ids of its outputs."""
    to = copy_into(dst, src, inputs, src.live())
    return [to[i] for i in src.outputs]


def with_outputs(src: Graph, outputs: Sequence[int]) -> Graph:
    """Return a pruned graph with the same inputs and other outputs.

    Nodes keep their order, so nothing is simplified or shared anew: this is a renumbering.
    """
    live = src.live([*src.inputs, *outputs])
    to = dict(zip(live, range(len(live))))
    dst = Graph()
    dst.op = [src.op[i] for i in live]
    arity = [_ARITY[code] for code in dst.op]
    # Operands move; what is stored in their place (an input's position) does not.
    dst.a = [to[src.a[i]] if n > 0 else src.a[i] for i, n in zip(live, arity)]
    dst.b = [to[src.b[i]] if n > 1 else src.b[i] for i, n in zip(live, arity)]
    dst.c = [to[src.c[i]] if n > 2 else src.c[i] for i, n in zip(live, arity)]
    dst.dtype = [src.dtype[i] for i in live]
    dst.value = {to[i]: value for i, value in src.value.items() if i in to}
    dst.tables = list(src.tables)
    for i, region in src.regions.items():
        if i in to:
            dst.regions[to[i]] = region.with_inputs([to[j] for j in region.inputs.tolist()])
    dst.inputs = [to[i] for i in src.inputs]
    dst.outputs = [to[i] for i in outputs]
    dst.input_names = src.input_names
    dst.lines = None if src.lines is None else [src.lines[i] for i in live]
    return dst


def prune(src: Graph) -> Graph:
    """Return the graph without the nodes its outputs do not need (all inputs stay)."""
    dst = with_outputs(src, src.outputs)
    dst.output_names = src.output_names
    return dst
