"""Loops of banded systems: what ``banded_system.py`` has as native functions.

Each function describes one (see ``Backend.array_functions``): ``w`` writes it down. Bands are
kept by columns, the diagonal first: the element (j + t, j) is ``band[j * ld + t]``. Behind the
``width`` of a column there are zeros, at least as many as a vector has numbers and three, so that
vectors may reach beyond the end; ``ld`` is a multiple of a vector's length, the number of columns
one of four.

Symbols as in ``banded_system.py``. ``A`` is kept by rows: the entries of row i are those of
``columns`` and ``jac`` from ``starts[2 i]`` on, those of the border from ``starts[2 i + 1]`` on.
H and M are one array each: the band of ``kept`` columns, the columns beside it (``nt`` of ``nv``
numbers), the corner (``nt``, ``nt``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PANEL", "functions"]

#: Columns that are eliminated together.
PANEL = 4


def vectors(w: Any, out: Any) -> None:
    """``out``: how many numbers a vector has."""
    out[0] = w.like(w.lanes, "i64")


def zeros(w: Any, to: Any, size: Any) -> None:
    """Set numbers to zero, and up to a vector behind them."""
    w.zero(to, size)


def add_at(w: Any, entries: Any, places: Any, to: Any, count: Any) -> None:
    """Add each entry to its place."""
    with w.loop(0, count) as k:
        at = places[k]
        to[at] = to[at] + entries[k]


def scale_rows(w: Any, jac: Any, starts: Any, scale: Any, m: Any) -> None:
    """Multiply each row of A by its scale."""
    with w.loop(0, m) as i:
        factor = scale[i]
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            jac[p] = jac[p] * factor


def largest_of_rows(w: Any, jac: Any, starts: Any, m: Any, largest: Any) -> None:
    """The largest entry of each row of A."""
    with w.loop(0, m) as i:
        most = w.variable(0.0)
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            most.most(abs(jac[p]))
        largest[i] = most.get()


def gram(
    w: Any,
    H: Any,
    M: Any,
    size: Any,
    over: Any,
    jac: Any,
    columns: Any,
    starts: Any,
    firsts: Any,
    lengths: Any,
    span: Any,
    m: Any,
    nb: Any,
    nt: Any,
    ld: Any,
    kept: Any,
    nv: Any,
) -> None:
    """M = H + A^T diag(over) A: for each row of A its outer product, as a dense triangle.

    Columns of H are copied as rows reach them, so that they are near when they are added to.
    """
    band, copied = kept * ld, w.variable(0, "i64")
    beside = M.from_(band)
    corner = beside.from_(nt * nv)

    def copy_until(column: Any) -> None:
        begin = copied.get()
        with w.when(column > begin):
            w.copy(H.from_(begin * ld), M.from_(begin * ld), (column - begin) * ld)
            copied.set(column)

    w.copy(H.from_(band), beside, size - band)
    with w.loop(0, m) as i:
        begin, split, end, weight = starts[i * 2], starts[i * 2 + 1], starts[i * 2 + 2], over[i]
        first, length = firsts[i], lengths[i]
        with w.when(length > 0):
            copy_until(first + length)
        w.zero(span, length + w.lanes)
        with w.loop(begin, split) as p:
            span[columns[p] - first] = jac[p]
        with w.loop(begin, split) as p:
            column = columns[p]
            value, shift = weight * jac[p], column - first
            to, mine = M.from_(column * ld), span.from_(shift)
            wide = w.spread(value)
            with w.loop(0, length - shift, w.lanes) as t:
                to.put(t, w.plus(to.vector(t), mine.vector(t), wide))
            with w.loop(split, end) as q:
                at = (columns[q] - nb) * nv + column
                beside[at] = w.plus(beside[at], value, jac[q])
        with w.loop(split, end) as q:
            value, row = weight * jac[q], (columns[q] - nb) * nt
            with w.loop(split, end) as r:
                at = row + columns[r] - nb
                corner[at] = w.plus(corner[at], value, jac[r])
    copy_until(kept)


#: Kinds of the parameters (F and I arrays, f and i numbers) and the description.
functions: dict[str, tuple[str, Callable[..., None]]] = {
    "vectors": ("I", vectors),
    "zeros": ("Fi", zeros),
    "add_at": ("FIFi", add_at),
    "scale_rows": ("FIFi", scale_rows),
    "largest_of_rows": ("FIiF", largest_of_rows),
    "gram": ("FFiFFIIIIFiiiiii", gram),
}
