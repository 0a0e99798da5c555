"""Copies of single values that together are rows of equal length at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.lowering.values import Binding, Place

__all__ = ["Box", "box_at"]

Copy = tuple[Place, Binding]


class Box(NamedTuple):
    """Rows of copies: elements, and rows, are so far apart where they go to, and where they are."""

    rows: int
    columns: int
    steps: tuple[int, int]
    apart: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of copies; none where it is no box, or a single row of neighbours."""
        return self.rows * self.columns


NONE = Box(0, 0, (0, 0), (0, 0))


def box_at(copies: Sequence[Copy], start: int) -> Box:
    """Return the largest box that copies from number ``start`` on are, of two rows at least.

    >>> def copy(to, source):
    ...     return Place("s1", to, 0), Binding(place=Place("s2", source, 0))
    >>> box_at([copy(3 * r + c, 2 * c + r) for r in range(2) for c in range(3)], 0)
    Box(rows=2, columns=3, steps=(1, 2), apart=(3, 1))
    """
    step = _distance(copies, start, start + 1)
    if step is None:
        return NONE
    end = start + 2
    while _distance(copies, end - 1, end) == step:
        end += 1
    columns = end - start
    apart = _distance(copies, start, end)
    if apart is None:
        return NONE
    rows = 1
    while _is_row(copies, start + rows * columns, columns, step) and (
        _distance(copies, start + (rows - 1) * columns, start + rows * columns) == apart
    ):
        rows += 1
    return Box(rows, columns, step, apart) if rows > 1 else NONE


def _is_row(copies: Sequence[Copy], start: int, columns: int, step: tuple[int, int]) -> bool:
    return all(_distance(copies, k, k + 1) == step for k in range(start, start + columns - 1))


def _distance(copies: Sequence[Copy], a: int, b: int) -> tuple[int, int] | None:
    """Return how far apart two copies are, to and from; None where not in the same arrays."""
    if b >= len(copies):
        return None
    (to, source), (to2, source2) = copies[a], copies[b]
    first, second = source.place, source2.place
    if first is None or second is None or to.array != to2.array or first.array != second.array:
        return None
    found = to2.offset - to.offset, second.offset - first.offset
    return found if min(found) > 0 else None
