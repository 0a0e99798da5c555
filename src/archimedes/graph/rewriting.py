"""Graph to Graph: a program written anew node by node, in the bodies of its regions too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from archimedes.graph.ops import TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Map, Region, Scan, Switch, While

__all__ = ["Emit", "rewrite"]

#: ``emit(dst, i, operands)`` returns what takes the place of node i on operands in ``dst``.
Emit = Callable[[Graph, int, tuple[int, ...]], int]

_ARITY = tuple(op.arity for op in TABLE)
_REBUILD: dict[type[Region], Callable[[Any, Callable[[Graph], Graph]], Region]] = {
    # A derivative rule has done its work by now, and is no part of the kernel.
    Call: lambda r, to: replace(r, body=to(r.body), derivative=None),
    Scan: lambda r, to: replace(r, body=to(r.body)),
    Map: lambda r, to: replace(r, body=to(r.body)),
    While: lambda r, to: replace(r, condition=to(r.condition), body=to(r.body)),
    Switch: lambda r, to: replace(r, branches=tuple(to(body) for body in r.branches)),
}


def rewrite(
    src: Graph, emitter: Callable[[Graph], Emit], known: dict[str, Graph] | None = None
) -> Graph:
    """Return the live part of a program with its operations put down by another hand.

    ``emitter(graph)`` is asked for each graph (``src`` and every body in it) and returns the
    function that writes its operations. All inputs stay. ``known`` holds bodies done already.
    """
    known = {} if known is None else known
    found = known.get(src.digest())
    if found is not None:
        return found
    emit, dst = emitter(src), Graph()
    inputs = [dst.input(src.dtype[i]) for i in src.inputs]
    to = [-1] * len(src.op)
    outs: dict[int, list[int]] = {}
    op, a, b, c = src.op, src.a, src.b, src.c
    for i in src.live():
        code = op[i]
        arity = _ARITY[code]
        if code == OUT:
            to[i] = outs[a[i]][b[i]]
        elif code == LOOKUP:
            to[i] = dst.lookup(src.tables[b[i]], to[a[i]])
        elif arity == 2:
            to[i] = emit(dst, i, (to[a[i]], to[b[i]]))
        elif arity == 1:
            to[i] = emit(dst, i, (to[a[i]],))
        elif arity == 3:
            to[i] = emit(dst, i, (to[a[i]], to[b[i]], to[c[i]]))
        elif code == CONST:
            to[i] = dst.const(src.value[i], src.dtype[i])
        elif code == INPUT:
            to[i] = inputs[a[i]]
        elif code == REGION:
            region = src.regions[i].with_inputs([to[j] for j in src.regions[i].inputs.tolist()])
            rebuild = _REBUILD.get(type(region))
            if rebuild is not None:
                region = rebuild(region, lambda body: rewrite(body, emitter, known))
            outs[i] = dst.region(region).tolist()
    dst.outputs = [to[i] for i in src.outputs]
    dst.input_names, dst.output_names = src.input_names, src.output_names
    known[src.digest()] = dst
    return dst
