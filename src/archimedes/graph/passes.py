"""Graph to Graph: copying a program into another, and dropping what nothing reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.ops import ARITY
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region
from archimedes.graph.walk import Outputs, Walk

__all__ = ["copy_into", "inline", "prune", "with_outputs"]

#: Puts something of its own making in the place of a region, which reads ids of the new graph
#: already; returns the outputs' ids.
Place = Callable[[int, Region], Sequence[int]]


class _Copy(Walk):
    place: Place | None = None

    def region(self, i: int, region: Region) -> Outputs:
        if self.place is None:
            return super().region(i, region)
        return list(self.place(i, self.moved(region)))


def copy_into(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int] | np.ndarray,
    nodes: Sequence[int],
    place: Place | None = None,
) -> list[int]:
    """Re-emit the given nodes of ``src`` (ascending, closed under operands) into ``dst``.

    ``inputs`` are the ids in ``dst`` that take the place of ``src.inputs``. ``place`` may put
    something else in the place of a region of ``src``. Returns a list that maps ids of ``src`` to
    ids of ``dst`` (-1 where not copied).
    """
    first = len(dst.op)
    walk = _Copy(dst, src, inputs)
    walk.place = place
    walk.run(nodes)
    to = walk.to
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
    arity = [ARITY[code] for code in dst.op]
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
