"""Maps over many instances as part of a recording: loops over blocks, however many there are.

A body of scalar operations is that of an elementwise loop. One with regions, or with wide arrays
of its own, is that of a scan that carries nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import OutLeaf, Recording, leaf_elements
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.derivatives.bodies import reordered
from archimedes.graph.regions import Affine, Scan
from archimedes.graph.regions.nest import Read
from archimedes.symbolic import current_trace, wrap
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, loop_threshold

__all__ = ["map_of_blocks"]


def map_of_blocks(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    """Record a map over so many instances that it is a loop over blocks; None if they are fewer.

    A body with wide arrays of its own is never written out: not even for one instance.
    """
    taken = sum(spec.size for spec, many in zip(recording.leaves, batched) if spec.traced and many)
    given = sum(out.spec.size for out in recording.outs if out.spec.traced)
    few = count * max(taken, given) < loop_threshold() * ALWAYS_FACTOR
    wide = recording.blocks is not recording.graph
    if not taken or not count or (few and not wide):
        return None
    if not wide and not recording.graph.regions:
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
    made = [references(g, i) for i in loops(g, ids, reads, recording.graph, (count,))]

    def take(out: OutLeaf) -> Any:
        columns = made[out.start : out.stop]
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
    kept = [
        out.spec.traced and out.spec.size > 0 and bool(out.spec.shape) for out in recording.outs
    ]
    body = recording.in_forms(blocks, kept)
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
    body = reordered(body, [*order, *later, *last], range(len(body.outputs)))
    inputs = np.array([*rows, *shared, *recording.captured], dtype=np.int64)
    made = iter(g.region(Scan(inputs, body, count, 0, len(rows), stacked=True)).tolist())

    def take(out: OutLeaf) -> Any:
        ids = references(g, next(made)) if out.spec.size else np.zeros(0, dtype=np.int64)
        return wrap(ids.reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)
