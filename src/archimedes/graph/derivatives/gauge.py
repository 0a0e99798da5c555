"""Gauge-dependent outputs: those that are determined up to a choice, as eigenvectors are.

They have derivatives only in functions that do not depend on the choice. A rule that knew a
tangent of the matrix alone could not give theirs; one that knows all that follows can
(``spectral_derivatives.py``). Sweeps therefore ask which outputs of a graph depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import OUT
from archimedes.graph.passes import Outputs, Transformer, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Region

#: Most outputs that are differentiated as functions of the vectors in forward mode. Beyond, the
#: program would be much longer than the ordinary one, which is used, and gives nan at a tie.
MAX_ROWS = 256


def gauge_dependent_outputs(src: Graph, moving: Sequence[bool]) -> list[int]:
    """Return the positions of outputs that depend on gauge-dependent outputs of regions.

    Those count that depend on inputs that are ``moving``.
    """
    if not any(gauge_dependent(region) for region in src.regions.values()):
        return []
    moved = src.dependents(i for i, moves in zip(src.inputs, moving) if moves)
    outs = [i for i in src.live() if src.op[i] == OUT and moved[i]]
    own = [i for i in outs if src.b[i] in gauge_dependent(src.regions[src.a[i]])]
    dependent = src.dependents(own)
    return [k for k, i in enumerate(src.outputs) if dependent[i] and is_float(src.dtype[i])]


def gauge_dependent(region: Region) -> frozenset[int]:
    """Return the positions of the gauge-dependent outputs of a region."""
    return getattr(getattr(region, "derivative", None), "gauge_dependent", frozenset())


def gauge_rule(region: Region) -> Any:
    """Return the rule of such a region.

    ``rule.through(g, inputs, outs, seeds, targets, tangents)`` adds to the tangents of targets
    what passes through the region; ``seeds`` are the tangents of its inputs.
    """
    return region.derivative  # type: ignore[attr-defined]


def inline_gauge_dependent(src: Graph) -> Graph:
    """Return the graph with calls inlined that hold such regions: their users must be seen."""
    while any(_hides_gauge_dependent(region) for region in src.regions.values()):
        dst = Graph.with_inputs(src.input_dtypes)
        src = _InlineGaugeDependent(dst, src, dst.inputs).program()
    return src


def _hides_gauge_dependent(region: Region) -> bool:
    if not isinstance(region, Call) or region.derivative is not None:
        return False
    return any(
        gauge_dependent(r) or _hides_gauge_dependent(r) for r in region.body.regions.values()
    )


class _InlineGaugeDependent(Transformer):
    def region(self, i: int, region: Region) -> Outputs:
        if isinstance(region, Call) and _hides_gauge_dependent(region):
            return inline(self.dst, region.body, self.relink(region).inputs)
        return super().region(i, region)
