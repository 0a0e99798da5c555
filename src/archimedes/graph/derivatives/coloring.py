"""Colouring: groups of columns (or rows) that one derivative sweep can compute together.

Two columns of a Jacobian may share a colour if no row has an entry in both (Curtis, Powell,
Reid, J. Inst. Math. Appl. 13, 1974). For a symmetric matrix a star colouring is enough, which may
need far fewer colours (Gebremedhin, Manne, Pothen, SIAM Review 47(4), 2005).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["bits", "column_colors", "entries", "star_colors", "transpose"]


def bits(mask: int) -> list[int]:
    """Return the positions of the set bits, ascending."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def entries(rows: Sequence[int], columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of all set bits, by rows.

    >>> [found.tolist() for found in entries([0b101, 0, 0b10], 3)]
    [[0, 0, 2], [0, 2, 1]]
    """
    width = max(1, -(-columns // 64))  # words of a row
    packed = b"".join([row.to_bytes(8 * width, "little") for row in rows])
    # Few of the words have any.
    places = np.flatnonzero(np.frombuffer(packed, dtype=np.uint64))
    each = np.frombuffer(packed, dtype=np.uint8).reshape(-1, 8)[places]
    word, bit = np.nonzero(np.unpackbits(each, axis=1, bitorder="little"))
    row, start = np.divmod(places[word], width)
    return row, 64 * start + bit


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
    around = [rows[i] & ~(1 << i) for i in range(columns)]
    neighbours = [bits(mask) for mask in around]
    order = sorted(range(columns), key=lambda i: -len(neighbours[i]))
    colors = [-1] * columns
    members: list[int] = []  # columns of each colour so far
    for v in order:
        if not rows[v]:
            continue
        forbidden = 0
        for w in neighbours[v]:
            between = colors[w]
            if between >= 0:
                forbidden |= 1 << between
            for x in neighbours[w]:
                color = colors[x]
                if x == v or color < 0 or forbidden >> color & 1:
                    continue
                # If w is still open, it must not end up between two equal colours.
                if between < 0 or around[x] & members[between] & ~(1 << w):
                    forbidden |= 1 << color
        color = (~forbidden & (forbidden + 1)).bit_length() - 1
        if color == len(members):
            members.append(0)
        members[color] |= 1 << v
        colors[v] = color
    return np.array(colors, dtype=np.int64)
