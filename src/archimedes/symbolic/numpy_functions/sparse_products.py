"""Products with a matrix most of whose entries are literal zeros, as loops.

The entries that are not zero are written out, once, in the body of a loop over the columns (or
rows) of the other matrix: the code is as long as one of them takes, and no zero is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.graph.blocks.building import loops, pack
from archimedes.graph.blocks.references import literal_zeros, references
from archimedes.graph.dtypes import B8
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Move
from archimedes.graph.regions.nest import Affine
from archimedes.symbolic.core.wide import Reads

__all__ = ["sparse_product"]

_ADD, _MUL, _AND, _OR = (CODES[n] for n in ("add", "mul", "and", "or"))
#: Entries that are written out at most; a matrix with more is multiplied whole.
MOST_ENTRIES = 200


def sparse_product(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray | None:
    """Multiply matrices of ids of which one has mostly literal zeros; None where neither has.

    Terms are added in the same order as one by one, so that bits are the same.
    """
    zeros = literal_zeros(g, left), literal_zeros(g, right)
    entries = [round(x.size - float(x.sum())) for x in zeros]
    sides = [
        (count * loop, side)
        for side, (count, ids, loop) in enumerate(
            zip(entries, (left, right), (right.shape[1], left.shape[0]))
        )
        if 2 * count <= ids.size and count <= MOST_ENTRIES and loop > 1
    ]
    if not sides:
        return None
    _, side = min(sides)
    if side == 0:
        return _rows(g, left, zeros[0], right, code, first=True)
    return _rows(g, right.T, zeros[1].T, left.T, code, first=False).T


def _rows(
    g: Graph, sparse: np.ndarray, zeros: np.ndarray, dense: np.ndarray, code: int, first: bool
) -> np.ndarray:
    """Return ids of ``sparse @ dense``, rows by a loop over the columns of ``dense``."""
    count = dense.shape[1]
    reads = Reads(g, (count,))
    body = reads.body
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    rows: dict[int, int] = {}
    results = []
    for line, skipped in zip(sparse, zeros):
        total = body.const(0, code)
        for k in np.flatnonzero(skipped == 0).tolist():
            if k not in rows:
                rows[k] = reads.operand(dense[k], code)
            entry = reads.scalar(g.node_of(int(line[k])))
            if body.value.get(rows[k]) == 0:
                continue
            factors = (entry, rows[k]) if first else (rows[k], entry)
            total = body.emit(add, total, body.emit(mul, *factors))
        results.append(total)
    return _gathered(g, reads, results, {i: dense[k] for k, i in rows.items()}, count, code)


def _gathered(
    g: Graph,
    reads: Reads,
    results: Sequence[int],
    same: dict[int, np.ndarray],
    count: int,
    code: int,
) -> np.ndarray:
    """Return ids of rows; where all are rows of the other matrix, or constant, there is no loop.

    Columns lie one after the other in memory: two products in turn, of which the second is with
    the transpose (A P A'), are then the same loop.
    """
    body = reads.body
    if all(i in same or i in body.value for i in results):
        constant = {
            i: np.full(count, g.const(body.value[i], code)) for i in results if i in body.value
        }
        return np.stack([constant[i] if i in constant else same[i] for i in results])
    body.outputs = list(results)
    blocks = loops(g, reads.ids, reads.reads, body, (count,))
    rows = len(blocks)
    moves = [Move(k, (count,), Affine(k, (rows,)), Affine(0, (1,))) for k in range(rows)]
    return references(g, pack(g, count * rows, code, blocks, moves)).reshape(count, rows).T
