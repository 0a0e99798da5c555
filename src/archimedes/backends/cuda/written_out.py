"""Calls of long programs written out, so that programs without loops can be cut anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from archimedes.graph.passes import copy_into, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Region

__all__ = ["with_calls_written_out"]


def with_calls_written_out(graph: Graph, least: int) -> Graph:
    """Return a program of at least so many nodes without calls of functions that are called once.

    A program with other regions, or with functions that are called more than once, stays as it is.
    """
    uses: Counter[str] = Counter()
    size = _count(graph, uses)
    if size < least or not graph.regions or any(n != 1 for n in uses.values()):
        return graph
    return _flat(graph)


def _count(graph: Graph, uses: Counter[str]) -> int:
    """Count nodes and calls; what is no call counts as called twice."""
    size = len(graph.op)
    for i in graph.live():
        region = graph.regions.get(i)
        if region is None:
            continue
        if not isinstance(region, Call):
            uses[region.kind] += 2
            continue
        (body,) = region.bodies
        uses[body.digest()] += 1
        size += _count(body, uses)
    return size


def _flat(graph: Graph) -> Graph:
    made = Graph()

    def place(i: int, region: Region) -> Sequence[int]:
        (body,) = region.bodies
        return inline(made, _flat(body), region.inputs)

    ids = [made.input(dtype) for dtype in graph.input_dtypes]
    to = copy_into(made, graph, ids, graph.live(), place)
    made.outputs = [to[i] for i in graph.outputs]
    return made
