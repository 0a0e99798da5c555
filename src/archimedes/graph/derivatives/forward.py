"""The forward sweep of automatic differentiation: a program with its tangents beside it.

A tangent of a node is a dict ``{direction: id}``; a direction that is missing is zero, so that
structural zeros cost nothing. Directions are small ints chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import as_block
from archimedes.graph.derivatives import gauge
from archimedes.graph.derivatives.gauge import gauge_dependent, gauge_dependent_outputs
from archimedes.graph.derivatives.reverse import LINEAR_RULES, PARTIAL_RULES, add_term, partial_of
from archimedes.graph.dtypes import I64, is_float, item_type, length_of
from archimedes.graph.ops import CODES, OUT
from archimedes.graph.passes import Outputs, Transformer, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, Region, Tangents

_MUL = CODES["mul"]


class _Forward(Transformer):
    """Writes a graph together with tangents; ``seeds`` are those of its inputs."""

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
    ) -> None:
        super().__init__(dst, src, inputs)
        self.seeds = seeds
        self.tangents: list[Directions] = [{}] * len(src.op)
        self.of_outputs: dict[int, list[Directions]] = {}

    def sweep(self) -> tuple[list[int], Tangents]:
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
        tangents = [self.tangents[j] for j in region.inputs.tolist()]
        linked = self.relink(region)
        if any(tangents) and i in self.read:
            outs, self.of_outputs[i] = linked.push_forward(self.dst, tangents)
        else:
            outs = self.dst.region(linked)
            self.of_outputs[i] = [{}] * len(outs)
        return [int(k) for k in outs]

    def out(self, i: int) -> int:
        self.tangents[i] = self.of_outputs[self.src.a[i]][self.src.b[i]]
        return super().out(i)


def forward_sweep(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
) -> tuple[list[int], Tangents]:
    """Copy ``src`` into ``dst`` together with its tangents.

    ``inputs`` are ids in ``dst`` in place of ``src.inputs``, ``seeds`` their tangents. Returns
    the ids of the outputs and their tangents.
    """
    src = gauge.inline_gauge_dependent(src)
    rows = gauge_dependent_outputs(src, [bool(seed) for seed in seeds])
    if not 0 < sum(length_of(src.output_dtypes[k]) or 1 for k in rows) <= gauge.MAX_ROWS:
        return _Forward(dst, src, inputs, seeds).sweep()
    rest = sorted(set(range(len(src.outputs))).difference(rows))
    outs = [-1] * len(src.outputs)
    tangents: list[Directions] = [{}] * len(outs)
    part = with_outputs(src, [src.outputs[k] for k in rest])
    for k, out, tangent in zip(rest, *_Forward(dst, part, inputs, seeds).sweep()):
        outs[k], tangents[k] = out, tangent
    part = with_outputs(src, [src.outputs[k] for k in rows])
    for k, (out, tangent) in zip(rows, _with_cuts(dst, part, inputs, seeds)):
        outs[k], tangents[k] = out, tangent
    return outs, tangents


def push_direction(
    dst: Graph, src: Graph, inputs: Sequence[int], tangents: Mapping[int, int]
) -> tuple[list[int], list[int]]:
    """Copy ``src`` into ``dst`` together with its tangents along one direction.

    ``tangents`` are those of inputs, by position; others are zero. Returns the ids of the outputs
    and of their tangents.
    """
    seeds: list[Directions] = [{} for _ in inputs]
    for position, tangent in tangents.items():
        seeds[position] = {0: tangent}
    outs, results = forward_sweep(dst, src, inputs, seeds)
    zeros = [dst.const(0.0, kind) for kind in src.output_dtypes]
    return outs, [result.get(0, zero) for result, zero in zip(results, zeros)]


def _with_cuts(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
) -> Iterator[tuple[int, Directions]]:
    """Sweep with gauge-dependent regions cut out; their rules need blocks element by element."""
    kinds = src.output_dtypes
    src.outputs = [
        src.element(i, src.const(k, I64)) if length else i
        for i, length in zip(src.outputs, map(length_of, kinds))
        for k in range(length or 1)
    ]
    results = zip(*_ForwardWithCuts(dst, src, inputs, seeds).sweep())
    for kind in kinds:
        if not length_of(kind):
            yield next(results)
            continue
        ids, tangents = zip(*islice(results, length_of(kind)))
        zero = dst.const(0.0, item_type(kind))
        whole = {
            d: as_block(dst, np.array([t.get(d, zero) for t in tangents]), item_type(kind))
            for d in dict.fromkeys(d for t in tangents for d in t)
        }
        yield as_block(dst, np.array(ids), item_type(kind)), whole


class _ForwardWithCuts(_Forward):
    """Leaves regions with gauge-dependent outputs out: their rules add what passes through them."""

    def sweep(self) -> tuple[list[int], Tangents]:
        self.cuts: list[tuple[Any, list[int], list[int], list[Directions]]] = []
        outs, tangents = super().sweep()
        tangents = [dict(tangent) for tangent in tangents]
        for rule, region_inputs, region_outs, seeds in self.cuts:
            rule.through(self.dst, region_inputs, region_outs, seeds, outs, tangents)
        return outs, tangents

    def region(self, i: int, region: Region) -> Outputs:
        tangents = [self.tangents[j] for j in region.inputs.tolist()]
        if not (gauge_dependent(region) and any(tangents)):
            return super().region(i, region)
        linked = self.relink(region)
        outs = self.dst.region(linked).tolist()
        self.of_outputs[i] = [{}] * len(outs)
        self.cuts.append((gauge.gauge_rule(region), linked.inputs.tolist(), outs, tangents))
        return outs


def _node_tangent(
    g: Graph, code: int, out: int, ids: tuple[int, ...], tangents: Tangents
) -> Directions:
    result: Directions = {}
    linear = LINEAR_RULES[code]
    if linear is not None:
        zeros = [g.const(0.0, g.dtype[j]) if is_float(g.dtype[j]) else -1 for j in ids]
        for d in dict.fromkeys(d for t in tangents for d in t):
            operands = [t.get(d, zero) for t, zero in zip(tangents, zeros)]
            add_term(g, result, d, linear[0](g, ids, operands))
    elif PARTIAL_RULES[code] is not None:
        for k, mine in enumerate(tangents):
            if mine:
                partial = partial_of(g, code, k, out, ids)
                for d, tangent in mine.items():
                    add_term(g, result, d, g.emit(_MUL, partial, tangent))
    return result
