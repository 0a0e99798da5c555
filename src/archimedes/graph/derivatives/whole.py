"""Outputs of regions that have a derivative only in functions that use them as a whole.

Eigenvectors are such: see ``spectral.py``. A rule that knew a tangent of the matrix alone could not
give theirs; one that knows what follows can. Sweeps therefore ask which outputs of a graph depend
on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import INPUT, OUT
from archimedes.graph.passes import Outputs, Transformer, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Region

__all__ = ["MAX_ROWS", "inline_whole", "whole_outputs", "whole_places", "whole_rule"]

#: Most outputs that are differentiated as functions of the vectors in forward mode. Beyond, the
#: program would be much longer than the ordinary one, which is used, and gives nan at a tie.
MAX_ROWS = 256


def whole_outputs(src: Graph, moving: Sequence[bool]) -> list[int]:
    """Return the positions of outputs whose derivatives need the rule of a whole region.

    They depend on outputs of regions that are ``whole``, and so on inputs that are ``moving``.
    """
    if not any(whole_places(region) for region in src.regions.values()):
        return []
    moved, whole = bytearray(len(src.op)), bytearray(len(src.op))
    for i in src.live():
        if src.op[i] == INPUT:
            moved[i] = moving[src.a[i]]
        elif src.op[i] == OUT:
            node = src.a[i]
            moved[i] = moved[node]
            whole[i] = whole[node] or (moved[i] and src.b[i] in whole_places(src.regions[node]))
        else:
            reads = src.operands(i)
            moved[i] = any(moved[j] for j in reads)
            whole[i] = any(whole[j] for j in reads)
    return [k for k, i in enumerate(src.outputs) if whole[i] and is_float(src.dtype[i])]


def whole_places(region: Region) -> frozenset[int]:
    """Return the outputs of a region that have derivatives only in what uses them as a whole."""
    return getattr(getattr(region, "derivative", None), "whole", frozenset())


def whole_rule(region: Region) -> Any:
    """Return the rule of such a region.

    ``rule.through(g, inputs, outs, given, targets, tangents)`` adds to the tangents of targets
    what passes through the region; ``given`` are the tangents of its inputs.
    """
    return region.derivative  # type: ignore[attr-defined]


def inline_whole(src: Graph) -> Graph:
    """Return the graph with calls inlined that hold such regions: their users must be seen."""
    while any(_hides_whole(region) for region in src.regions.values()):
        dst = Graph.with_inputs(src.input_dtypes)
        src = _InlineWhole(dst, src, dst.inputs).program()
    return src


def _hides_whole(region: Region) -> bool:
    if not isinstance(region, Call) or region.derivative is not None:
        return False
    return any(whole_places(r) or _hides_whole(r) for r in region.body.regions.values())


class _InlineWhole(Transformer):
    def region(self, i: int, region: Region) -> Outputs:
        if isinstance(region, Call) and _hides_whole(region):
            return inline(self.dst, region.body, self.relink(region).inputs)
        return super().region(i, region)
