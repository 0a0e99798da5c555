"""What all instances of a batch share is computed once, not in every lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.lowering.schedule import cost, has_host
from archimedes.graph.ops import ARITY, BLOCK, CONST, INPUT, OUT, REGION
from archimedes.graph.passes import with_outputs
from archimedes.graph.program import Graph

__all__ = ["fixed_nodes"]

#: Fewer shared operations than this are not worth a call of their own.
WORTH = 4


def fixed_nodes(g: Graph, varies: Sequence[bool]) -> list[int]:
    """Return the nodes on the border between what varies and what does not, by dtype.

    ``varies`` tells which inputs differ from instance to instance. Empty where next to nothing
    is shared, and for graphs with callbacks, which are called once per instance.
    """
    if has_host(g) or (all(varies) and not g.regions and not _of_constants(g)):
        return []
    live = g.live()
    moving = bytearray(len(g.op))
    border: set[int] = set()
    for i in live:
        code = g.op[i]
        if code == INPUT:
            moving[i] = varies[g.a[i]]
        elif code not in (CONST, BLOCK):
            operands = list(g.operands(i))
            if any(moving[j] for j in operands):
                moving[i] = 1
                border.update(j for j in operands if not moving[j])
    border.update(i for i in g.outputs if not moving[i])
    fixed = [i for i in border if g.op[i] not in (BLOCK, CONST, INPUT, REGION)]
    if cost(with_outputs(g, fixed), {}) < WORTH and not _has_region(g, fixed):
        return []
    return sorted(fixed, key=lambda i: (g.dtype[i], i))


def _of_constants(g: Graph) -> bool:
    """Tell whether some node reads nothing but constants, of a graph without regions."""
    op = np.array(g.op)
    arity, fixed = np.array(ARITY)[op], (op == CONST) | (op == BLOCK)
    still = arity > 0
    for k, operands in enumerate((g.a, g.b, g.c)):
        reads = arity > k
        still[reads] &= fixed[np.array(operands)[reads]]
    return bool(still.any())


def _has_region(g: Graph, ids: Sequence[int]) -> bool:
    return any(g.op[i] == OUT for i in ids)
