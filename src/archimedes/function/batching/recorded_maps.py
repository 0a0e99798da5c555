"""Maps over instances as part of a recording.

Few instances are unrolled, or become a Map region. Many become loops over blocks, however many
there are: a body of scalar operations is that of an elementwise loop; one with regions, or with
arrays of its own, is that of a scan that carries nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import (
    OutLeaf,
    Recording,
    leaf_elements,
    leaf_ids,
    read_array,
)
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.derivatives.bodies import permute_body
from archimedes.graph.passes import inline
from archimedes.graph.regions import Affine, Map, Scan
from archimedes.graph.regions.block_regions import Read
from archimedes.symbolic import current_trace, wrap
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, loop_threshold


def map_of_blocks(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    """Record a map over so many instances that it is a loop over blocks; None if they are fewer.

    A body with arrays of its own is never unrolled: not even for one instance.
    """
    inputs = sum(spec.size for spec, many in zip(recording.leaves, batched) if spec.traced and many)
    outputs = sum(out.spec.size for out in recording.outs if out.spec.traced)
    few = count * max(inputs, outputs) < loop_threshold() * ALWAYS_FACTOR
    has_arrays = recording.blocks is not recording.graph
    if not inputs or not count or (few and not has_arrays):
        return None
    if not has_arrays and not recording.graph.regions:
        return _as_loop(recording, leaves, batched, count)
    return _as_scan(recording, leaves, batched, count)


def _stack(leaf: Any, spec: LeafSpec, count: int) -> int:
    """Return the block of all instances of a leaf."""
    whole = LeafSpec(spec.code, (count, *spec.shape))
    return as_block(current_trace().graph, leaf_elements(leaf, whole), spec.code)


def _as_loop(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    g = current_trace().graph
    ids: list[int] = []
    reads: list[Read] = []
    for leaf, spec, many in zip(leaves, recording.leaves, batched):
        if not spec.traced or not spec.size:
            continue
        if many:
            ids += [_stack(leaf, spec, count)] * spec.size
            reads += [Affine(k, (spec.size,)) for k in range(spec.size)]
        else:
            ids += [g.node_of(i) for i in leaf_elements(leaf, spec).ravel().tolist()]
            reads += [None] * spec.size
    ids += recording.captured
    reads += [None] * len(recording.captured)
    results = [references(g, i) for i in loops(g, ids, reads, recording.graph, (count,))]

    def take(out: OutLeaf) -> Any:
        columns = results[out.start : out.stop]
        table = np.stack(columns, axis=1) if columns else np.zeros((count, 0), dtype=np.int64)
        return wrap(table.reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)


def _as_scan(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    g = current_trace().graph
    forms = zip(recording.leaves, batched, recording.forms())
    blocks = [
        spec.traced and spec.size > 0 and (bool(spec.shape) if many else form.block)
        for spec, many, form in forms
    ]
    out_blocks = [
        out.spec.traced and out.spec.size > 0 and bool(out.spec.shape) for out in recording.outs
    ]
    body = recording.in_forms(blocks, out_blocks)
    rows: list[int] = []
    shared: list[int] = []
    order: list[int] = []
    later: list[int] = []
    at = 0
    for leaf, spec, many, block in zip(leaves, recording.leaves, batched, blocks):
        if not spec.traced or not spec.size:
            continue
        if many:
            rows.append(_stack(leaf, spec, count))
            order.append(at)
            at += 1
            continue
        elements = leaf_elements(leaf, spec)
        mine = [as_block(g, elements, spec.code)] if block else elements.ravel().tolist()
        shared += [g.node_of(i) for i in mine]
        later += range(at, at + len(mine))
        at += len(mine)
    last = range(at, at + len(recording.captured))
    body = permute_body(body, [*order, *later, *last], range(len(body.outputs)))
    inputs = np.array([*rows, *shared, *recording.captured], dtype=np.int64)
    ids = iter(g.region(Scan(inputs, body, count, 0, len(rows), stacked=True)).tolist())
    return recording.rebuild(
        lambda out: read_array(
            ids, (count, *out.spec.shape), out.spec.code, block=out.spec.size > 0
        )
    )


#: Maps of at most this many operations in all are unrolled.
UNROLL_LIMIT = 256


def recorded_map(recording: Recording, leaves: list[Any], batched: list[bool], count: int) -> Any:
    """Record a map over instances in the current trace."""
    trace = current_trace()
    result = map_of_blocks(recording, leaves, batched, count)
    if result is not None:
        return result
    rows, shared = [], []
    order: list[int] = []
    later: list[int] = []
    offsets = recording.offsets()
    for leaf, spec, many, start in zip(leaves, recording.leaves, batched, offsets):
        if not spec.traced:
            continue
        positions = range(start, start + spec.size)
        if many:
            ids = leaf_ids(leaf, LeafSpec(spec.code, (count, *spec.shape)))
            rows.append(np.array(ids, dtype=np.int64).reshape(count, spec.size))
            order.extend(positions)
        else:
            shared.extend(leaf_ids(leaf, spec))
            later.extend(positions)
    own = len(order) + len(later)
    block = np.concatenate(rows, axis=1)
    shared += recording.captured
    captured = range(own, own + len(recording.captured))
    body, inputs = recording.graph, [*order, *later, *captured]
    if inputs != sorted(inputs):
        body = permute_body(body, inputs, range(len(body.outputs)))
    if count * len(body) <= UNROLL_LIMIT:
        outs = [inline(trace.graph, body, [*row, *shared]) for row in block.tolist()]
        table = np.array(outs, dtype=np.int64).reshape(count, len(body.outputs))
    else:
        region = Map(np.array([*block.reshape(-1), *shared]), body, count, block.shape[1])
        table = trace.graph.region(region).reshape(count, len(body.outputs))

    def take(out: OutLeaf) -> Any:
        return wrap(table[:, out.start : out.stop].reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)
