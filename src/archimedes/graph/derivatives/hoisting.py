"""What the steps of a loop have in common is computed once, before it."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.graph.ops import BLOCK, CONST, INPUT
from archimedes.graph.passes import copy_into
from archimedes.graph.program import Graph
from archimedes.graph.walk import Walk

__all__ = ["hoisted"]

#: What every body has for itself.
_THERE = (INPUT, CONST, BLOCK)


def hoisted(g: Graph, body: Graph, own: int, shared: Sequence[int]) -> tuple[Graph, list[int]]:
    """Append to ``g`` what a body computes of its shared inputs alone.

    The first ``own`` inputs of the body differ from step to step, ``shared`` are ids in ``g`` for
    the others. Returns the body without that, and the ids of what it shares now.

    >>> from archimedes.graph.ops import CODES
    >>> g, body = Graph(), Graph()
    >>> x, k, y = g.input(0), body.input(0), body.input(0)
    >>> body.outputs = [body.emit(CODES["add"], k, body.emit(CODES["sin"], y))]
    >>> made, ids = hoisted(g, body, 1, [x])
    >>> g.op[ids[-1]] == CODES["sin"], len(made)
    (True, 4)
    """
    live, effects = body.live(), set(body.effects())
    moving = bytearray(len(body.op))
    for i in live:
        if body.op[i] == INPUT:
            moving[i] = body.a[i] < own
        else:
            moving[i] = i in effects or any(moving[j] for j in body.operands(i))
    fixed = [i for i in live if not moving[i]]
    # What stays in the body reads these; inputs and constants are there anyway.
    read = {j for i in live if moving[i] for j in body.operands(i)}.union(body.outputs)
    border = [i for i in fixed if i in read and body.op[i] not in _THERE]
    if not border:
        return body, list(shared)
    before = copy_into(g, body, [*[-1] * own, *shared], fixed)
    made = Graph()
    walk = Walk(made, body, [made.input(kind) for kind in body.input_dtypes])
    for i in border:
        walk.to[i] = made.input(body.dtype[i])
    walk.run([i for i in live if moving[i] or body.op[i] in _THERE])
    made.outputs = walk.outputs()
    return made, [*shared, *(before[i] for i in border)]
