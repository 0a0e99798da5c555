"""A map over instances as part of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function.batching.maps_of_blocks import map_of_blocks
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import OutLeaf, Recording, leaf_ids
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map
from archimedes.symbolic import current_trace, wrap

__all__ = ["recorded_map"]

#: Maps of at most this many operations in all are written out.
UNROLL_LIMIT = 256


def recorded_map(recording: Recording, leaves: list[Any], batched: list[bool], count: int) -> Any:
    """Record a map over instances in the current trace."""
    trace = current_trace()
    wide = map_of_blocks(recording, leaves, batched, count)
    if wide is not None:
        return wide
    rows, shared = [], []
    order: list[int] = []
    later: list[int] = []
    offsets = recording.offsets()
    for leaf, spec, many, start in zip(leaves, recording.leaves, batched, offsets):
        if not spec.traced:
            continue
        place = range(start, start + spec.size)
        if many:
            ids = leaf_ids(leaf, LeafSpec(spec.code, (count, *spec.shape)))
            rows.append(np.array(ids, dtype=np.int64).reshape(count, spec.size))
            order.extend(place)
        else:
            shared.extend(leaf_ids(leaf, spec))
            later.extend(place)
    own = len(order) + len(later)
    block = np.concatenate(rows, axis=1)
    shared += recording.captured
    places = [*order, *later, *range(own, own + len(recording.captured))]
    body = _permuted(recording, places)
    if count * len(body) <= UNROLL_LIMIT:
        outs = [inline(trace.graph, body, [*row, *shared]) for row in block.tolist()]
        table = np.array(outs, dtype=np.int64).reshape(count, len(body.outputs))
    else:
        region = Map(np.array([*block.reshape(-1), *shared]), body, count, block.shape[1])
        table = trace.graph.region(region).reshape(count, len(body.outputs))

    def take(out: OutLeaf) -> Any:
        return wrap(table[:, out.start : out.stop].reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)


def _permuted(recording: Recording, places: list[int]) -> Graph:
    """Return the graph with inputs in another order: new input k is old input places[k]."""
    if places == sorted(places):
        return recording.graph
    g = Graph()
    dtypes = recording.graph.input_dtypes
    old = {place: g.input(dtypes[place]) for place in places}
    g.outputs = inline(g, recording.graph, [old[k] for k in range(len(dtypes))])
    return g
