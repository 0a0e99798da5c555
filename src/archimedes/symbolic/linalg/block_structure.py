"""Block triangular form: which unknowns a matrix's literal zeros let one solve for by themselves.

A diagonal, triangular or permuted triangular matrix falls into blocks of one unknown, for which
there is nothing to pivot; a matrix without literal zeros is one block. Perfect matching by
augmenting paths, then strongly connected components (Pothen, Fan, ACM TOMS 16(4), 1990).
"""

from __future__ import annotations

import numpy as np

__all__ = ["block_triangular", "permutation_sign"]

Block = tuple[list[int], list[int]]


def _match(nonzero: np.ndarray) -> list[int] | None:
    """Return for each column a row of its own with a non-zero there, or None if impossible."""
    n = len(nonzero)
    row_of = [-1] * n
    column_of = [-1] * n

    def place(column: int, seen: set[int]) -> bool:
        rows = [column, *range(n)]  # the diagonal first: most matrices have one
        for row in rows:
            if not nonzero[row, column] or row in seen:
                continue
            seen.add(row)
            if column_of[row] < 0 or place(column_of[row], seen):
                row_of[column], column_of[row] = row, column
                return True
        return False

    if all(place(column, set()) for column in range(n)):
        return row_of
    return None


def block_triangular(nonzero: np.ndarray) -> list[Block] | None:
    """Split a square pattern into diagonal blocks, in an order in which they can be solved.

    Each block is (rows, columns), ascending: these equations involve these unknowns and those of
    earlier blocks only. None means that the pattern alone makes the matrix singular.

    >>> block_triangular(np.array([[1, 1], [0, 1]], dtype=bool))
    [([1], [1]), ([0], [0])]
    """
    n = len(nonzero)
    if n and nonzero.all():
        return [(list(range(n)), list(range(n)))]
    row_of = _match(nonzero)
    if row_of is None:
        return None
    needs = [np.flatnonzero(nonzero[row_of[j]]).tolist() for j in range(n)]
    return [(sorted(row_of[j] for j in part), sorted(part)) for part in _strong_components(needs)]


def _strong_components(needs: list[list[int]]) -> list[list[int]]:
    """Tarjan's algorithm (SIAM J. Comput. 1(2), 1972): components, each after those it needs."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    parts: list[list[int]] = []

    def visit(v: int) -> None:
        order[v] = low[v] = len(order)
        stack.append(v)
        for w in needs[v]:
            if w not in order:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], order[w])
        if low[v] == order[v]:
            at = stack.index(v)
            parts.append(stack[at:])
            del stack[at:]

    for v in range(len(needs)):
        if v not in order:
            visit(v)
    return parts


def permutation_sign(blocks: list[Block]) -> int:
    """Return the sign of the permutation that takes the blocks' rows to their columns."""
    to = dict(zip([r for rows, _ in blocks for r in rows], [c for _, cols in blocks for c in cols]))
    sign, seen = 1, set()
    for start in to:
        length, at = 0, start
        while at not in seen:
            seen.add(at)
            at = to[at]
            length += 1
        if length and length % 2 == 0:
            sign = -sign
    return sign
