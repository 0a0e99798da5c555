"""The same program without blocks: every element a node. An oracle for loops over blocks."""

from __future__ import annotations

import numpy as np

from archimedes.graph.dtypes import I64, item_type, length_of
from archimedes.graph.ops import BLOCK, CODES, ELEMENT, INPUT, OUT, REGION
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Accumulate, Nest, Pack
from archimedes.graph.regions.block_regions import positions


def unrolled(src: Graph) -> Graph:
    """Return the program on scalars: blocks among inputs and outputs are so many scalars."""
    dst = Graph()
    values: dict[int, object] = {}
    given = []
    for kind in src.input_dtypes:
        n = length_of(kind)
        given.append([dst.input(item_type(kind)) for _ in range(n)] if n else dst.input(kind))
    outs: dict[int, list] = {}
    for i in src.live():
        op = src.op[i]
        if op == INPUT:
            values[i] = given[src.a[i]]
        elif op == BLOCK:
            values[i] = dst.constants(src.tables[src.b[i]]).tolist()
        elif op == ELEMENT:
            block, at = values[src.a[i]], dst.value[values[src.b[i]]]
            values[i] = block[min(max(at, 0), len(block) - 1)]
        elif op == REGION:
            region = src.regions[i]
            outs[i] = _region(dst, region, [values[j] for j in region.inputs.tolist()])
        elif op == OUT:
            values[i] = outs[src.a[i]][src.b[i]]
        elif i in src.value:
            values[i] = dst.const(src.value[i], src.dtype[i])
        else:
            values[i] = dst.emit(op, *(values[j] for j in src.operands(i)))
    dst.outputs = [x for i in src.outputs for x in np.atleast_1d(values[i]).tolist()]
    return dst


def _region(dst, region, given):
    if isinstance(region, Pack):
        made = [dst.const(0, region.dtype)] * region.length
        for source, shape, to, start in region.moves:
            places = positions(to, shape).ravel().tolist()
            value = given[source]
            sources = (
                [value] * len(places)
                if start is None
                else [value[k] for k in positions(start, shape).ravel().tolist()]
            )
            for k, x in zip(places, sources):
                made[k] = x
        return [made]
    if isinstance(region, Accumulate):
        made = [dst.const(0, region.dtype)] * region.length
        for x, at in zip(*given):
            made[dst.value[at]] = dst.emit(CODES["add"], made[dst.value[at]], x)
        return [made]
    assert isinstance(region, Nest)
    points = list(np.ndindex(*region.shape))
    at = [None if r is None else positions(r, region.shape) for r in region.reads]
    rows = []
    for point in points:
        inputs = [x if p is None else x[p[point]] for x, p in zip(given, at)]
        if region.indexed:
            inputs += [dst.const(k, I64) for k in point]
        rows.append(_inlined(dst, region.body, inputs))
    results = []
    for k in range(len(region.body.outputs)):
        column = [row[k] for row in rows]
        groups = (
            [column[j * region.reduced : (j + 1) * region.reduced] for j in range(region.length)]
            if region.kept
            else [column]
        )
        made = [_combined(dst, region, group) for group in groups]
        results.append(made if region.kept else made[0])
    return results


def _inlined(dst, body, inputs):
    if not any(length_of(kind) for kind in body.input_dtypes):
        return inline(dst, body, inputs)
    values = {}
    for i in body.live():
        op = body.op[i]
        if op == INPUT:
            values[i] = inputs[body.a[i]]
        elif op == ELEMENT:
            block = values[body.a[i]]
            values[i] = block[min(max(dst.value[values[body.b[i]]], 0), len(block) - 1)]
        elif i in body.value:
            values[i] = dst.const(body.value[i], body.dtype[i])
        else:
            values[i] = dst.emit(op, *(values[j] for j in body.operands(i)))
    return [values[i] for i in body.outputs]


def _combined(dst, region, group):
    def two(a, b):
        return dst.emit(CODES[region.combine], a, b)

    partials = group[: region.partials]
    for k, x in enumerate(group[region.partials :]):
        j = k % region.partials
        partials[j] = two(partials[j], x)
    while len(partials) > 1 and region.partials > 1:
        half = len(partials) // 2 if len(group) > region.partials else 0
        if not half:
            break
        partials = [two(a, b) for a, b in zip(partials[:half], partials[half:])]
    total = partials[0]
    for x in partials[1:]:
        total = two(total, x)
    return total
