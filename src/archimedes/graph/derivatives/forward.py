"""The forward sweep of automatic differentiation: a program with its tangents beside it.

A tangent of a node is a dict ``{direction: id}``; a direction that is missing is zero, so that
structural zeros cost nothing. Directions are small ints chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import as_block
from archimedes.graph.derivatives.reverse import LINEAR_RULES, PARTIAL_RULES, add_term
from archimedes.graph.derivatives.whole import (
    MAX_ROWS,
    opened,
    whole_outputs,
    whole_places,
    whole_rule,
)
from archimedes.graph.dtypes import I64, is_float, item_type, length_of
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import OUT
from archimedes.graph.passes import Outputs, Walk, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, Region

__all__ = ["forward_sweep"]


class _Forward(Walk):
    """Writes a graph together with tangents; ``seeds`` are those of its inputs."""

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
    ) -> None:
        super().__init__(dst, src, inputs)
        self.seeds = seeds
        self.tangents: list[Directions] = [{}] * len(src.op)
        self.of_outputs: dict[int, list[Directions]] = {}

    def sweep(self) -> tuple[list[int], list[Directions]]:
        """Return the ids of the outputs and their tangents."""
        src = self.src
        live = src.live()
        self.read = {src.a[i] for i in live if src.op[i] == OUT} if src.regions else set()
        self.run(live)
        return self.outputs(), [self.tangents[i] for i in src.outputs]

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        src, tangents = self.src, self.tangents
        code = src.op[i]
        out = self.dst.emit(code, *operands)
        active = [tangents[j] for j in (src.a[i], src.b[i], src.c[i])[: len(operands)]]
        if any(active) and is_float(src.dtype[i]) and out not in self.dst.value:
            tangents[i] = _node_tangent(self.dst, code, out, operands, active)
        return out

    def element(self, i: int) -> int:
        index = self.to[self.src.b[i]]
        blocks = self.tangents[self.src.a[i]]
        self.tangents[i] = {d: self.dst.element(block, index) for d, block in blocks.items()}
        return super().element(i)

    def input(self, i: int) -> int:
        self.tangents[i] = self.seeds[self.src.a[i]]
        return super().input(i)

    def region(self, i: int, region: Region) -> Outputs:
        given = [self.tangents[j] for j in region.inputs.tolist()]
        moved = self.moved(region)
        if any(given) and i in self.read:
            placed, self.of_outputs[i] = moved.push_forward(self.dst, given)
        else:
            placed = self.dst.region(moved)
            self.of_outputs[i] = [{}] * len(placed)
        return [int(k) for k in placed]

    def out(self, i: int) -> int:
        self.tangents[i] = self.of_outputs[self.src.a[i]][self.src.b[i]]
        return super().out(i)


def forward_sweep(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
) -> tuple[list[int], list[Directions]]:
    """Copy ``src`` into ``dst`` together with its tangents.

    ``inputs`` are ids in ``dst`` in place of ``src.inputs``, ``seeds`` their tangents. Returns
    the ids of the outputs and their tangents.
    """
    src = opened(src)
    rows = whole_outputs(src, [bool(seed) for seed in seeds])
    if not 0 < sum(length_of(src.output_dtypes[k]) or 1 for k in rows) <= MAX_ROWS:
        return _Forward(dst, src, inputs, seeds).sweep()
    rest = sorted(set(range(len(src.outputs))).difference(rows))
    outs = [-1] * len(src.outputs)
    tangents: list[Directions] = [{}] * len(outs)
    part = with_outputs(src, [src.outputs[k] for k in rest])
    for k, out, found in zip(rest, *_Forward(dst, part, inputs, seeds).sweep()):
        outs[k], tangents[k] = out, found
    part = with_outputs(src, [src.outputs[k] for k in rows])
    for k, (out, found) in zip(rows, _with_cuts(dst, part, inputs, seeds)):
        outs[k], tangents[k] = out, found
    return outs, tangents


def _with_cuts(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
) -> Iterator[tuple[int, Directions]]:
    """Do the sweep with regions cut out, whose rules want numbers: blocks element by element."""
    kinds = src.output_dtypes
    src.outputs = [
        src.element(i, src.const(k, I64)) if length else i
        for i, length in zip(src.outputs, map(length_of, kinds))
        for k in range(length or 1)
    ]
    found = zip(*_ForwardWithCuts(dst, src, inputs, seeds).sweep())
    for kind in kinds:
        if not length_of(kind):
            yield next(found)
            continue
        ids, tangents = zip(*islice(found, length_of(kind)))
        zero = dst.const(0.0, item_type(kind))
        whole = {
            d: as_block(dst, np.array([t.get(d, zero) for t in tangents]), item_type(kind))
            for d in dict.fromkeys(d for t in tangents for d in t)
        }
        yield as_block(dst, np.array(ids), item_type(kind)), whole


class _ForwardWithCuts(_Forward):
    """Leaves regions that are whole out: their rules add what passes through these at the end."""

    def sweep(self) -> tuple[list[int], list[Directions]]:
        self.cuts: list[tuple[Any, list[int], list[int], list[Directions]]] = []
        outs, found = super().sweep()
        tangents = [dict(tangent) for tangent in found]
        for rule, inputs, made, given in self.cuts:
            rule.through(self.dst, inputs, made, given, outs, tangents)
        return outs, tangents

    def region(self, i: int, region: Region) -> Outputs:
        given = [self.tangents[j] for j in region.inputs.tolist()]
        if not (whole_places(region) and any(given)):
            return super().region(i, region)
        moved = self.moved(region)
        placed = self.dst.region(moved).tolist()
        self.of_outputs[i] = [{}] * len(placed)
        self.cuts.append((whole_rule(region), moved.inputs.tolist(), placed, given))
        return placed


def _node_tangent(
    g: Graph, code: int, out: int, ids: tuple[int, ...], active: list[Directions]
) -> Directions:
    e = Emit(g, g.dtype[out])
    result: Directions = {}
    linear = LINEAR_RULES[code]
    if linear is not None:
        for d in dict.fromkeys(d for t in active for d in t):
            given = [t[d] if d in t else _zero_like(g, j) for t, j in zip(active, ids)]
            add_term(g, e, result, d, linear[0](g, ids, given))
        return result
    partials = PARTIAL_RULES[code]
    if partials is None:
        return result
    first, second = ids[0], ids[1] if len(ids) > 1 else -1
    for k, t in enumerate(active):
        if not t:
            continue
        p = partials[k](e, out, first, second)
        for d, tangent in t.items():
            add_term(g, e, result, d, e.mul(p, tangent))
    return result


def _zero_like(g: Graph, i: int) -> int:
    return g.const(0.0, g.dtype[i]) if is_float(g.dtype[i]) else -1
