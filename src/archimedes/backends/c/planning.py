"""What is known of a schedule before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archimedes.backends.c.memory import Place
from archimedes.graph.ops import CODES
from archimedes.graph.program import OUT, REGION, Graph
from archimedes.graph.regions import Region

__all__ = ["Store", "crossing_nodes", "places_by_id", "regions_in", "twins_in"]

#: An output by number, and where it goes.
Store = tuple[int, Place]

_SIN, _COS = CODES["sin"], CODES["cos"]


def regions_in(g: Graph, order: Sequence[int]) -> Iterator[Region]:
    """Return the regions among some nodes."""
    return (g.regions[i] for i in order if g.op[i] == REGION)


def twins_in(g: Graph, order: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return, for each sine and cosine of one angle, the pair of them."""
    sines = {g.a[i]: i for i in order if g.op[i] == _SIN}
    pairs = [(sines[g.a[i]], i) for i in order if g.op[i] == _COS and g.a[i] in sines]
    return {i: pair for pair in pairs for i in pair}


def places_by_id(g: Graph, stores: Sequence[Store]) -> dict[int, list[Place]]:
    """Return the places that want the value of each node."""
    waiting: dict[int, list[Place]] = {}
    for k, to in stores:
        waiting.setdefault(g.outputs[k], []).append(to)
    return waiting


def crossing_nodes(g: Graph, chunks: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes that are read in another chunk than their own."""
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    crossing: dict[int, None] = {}
    for k, chunk in enumerate(chunks):
        for i in chunk:
            if g.op[i] != OUT:
                crossing.update((j, None) for j in g.operands(i) if home.get(j, k) != k)
    return list(crossing)
