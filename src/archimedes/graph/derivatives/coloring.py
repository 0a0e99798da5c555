"""Colouring: groups of columns (or rows) that one derivative sweep can compute together.

Two columns of a Jacobian may share a colour if no row has an entry in both (Curtis, Powell,
Reid, J. Inst. Math. Appl. 13, 1974). For a symmetric matrix a star colouring is enough, which may
need far fewer colours (Gebremedhin, Manne, Pothen, SIAM Review 47(4), 2005).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["bits", "column_colors", "star_colors", "transpose"]


def bits(mask: int) -> list[int]:
    """Return the positions of the set bits, ascending."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def transpose(rows: Sequence[int], columns: int) -> list[int]:
    """Turn row bit sets into column bit sets."""
    result = [0] * columns
    for i, row in enumerate(rows):
        for j in bits(row):
            result[j] |= 1 << i
    return result


def column_colors(rows: Sequence[int], columns: int) -> np.ndarray:
    """Colour columns greedily, fullest first; columns without entries get colour -1."""
    by_column = transpose(rows, columns)
    order = sorted(range(columns), key=lambda j: -by_column[j].bit_count())
    colors = np.full(columns, -1, dtype=np.int64)
    taken: list[int] = []  # rows covered by each colour so far
    for j in order:
        if not by_column[j]:
            continue
        free = (color for color, covered in enumerate(taken) if not covered & by_column[j])
        color = next(free, len(taken))
        if color == len(taken):
            taken.append(0)
        taken[color] |= by_column[j]
        colors[j] = color
    return colors


def star_colors(rows: Sequence[int], columns: int) -> np.ndarray:
    """Star-colour a symmetric pattern: neighbours differ, and no path of 4 uses two colours.

    Every off-diagonal entry (i, j) is then alone in its row i among columns of j's colour, or
    alone in row j among columns of i's colour.
    """
    neighbours = [[j for j in bits(rows[i]) if j != i] for i in range(columns)]
    order = sorted(range(columns), key=lambda i: -len(neighbours[i]))
    colors = np.full(columns, -1, dtype=np.int64)
    for v in order:
        if not rows[v]:
            continue
        forbidden = set()
        for w in neighbours[v]:
            if colors[w] >= 0:
                forbidden.add(int(colors[w]))
            for x in neighbours[w]:
                if x == v or colors[x] < 0:
                    continue
                if colors[w] < 0:
                    # w is still open: it must not end up between two equal colours.
                    forbidden.add(int(colors[x]))
                elif any(y != w and colors[y] == colors[w] for y in neighbours[x]):
                    forbidden.add(int(colors[x]))
        color = 0
        while color in forbidden:
            color += 1
        colors[v] = color
    return colors
