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


def begin_columns(
    w: Any, H: Any, M: Any, diagonal: Any, begin: Any, end: Any, nb: Any, ld: Any
) -> None:
    """Columns of the band of M = H + diagonal; those from nb on, which fill a panel, are 1."""
    with w.loop(begin, end) as j:
        column = M.from_(j * ld)
        w.copy(H.from_(j * ld), column, ld)
        mine = column[0] + diagonal[w.smaller(j, nb - 1)]
        column[0] = w.select(j < nb, mine, 1.0)


def add_rows(
    w: Any,
    M: Any,
    over: Any,
    jac: Any,
    columns: Any,
    starts: Any,
    firsts: Any,
    lengths: Any,
    order: Any,
    span: Any,
    begin: Any,
    end: Any,
    nb: Any,
    nt: Any,
    ld: Any,
    kept: Any,
    nv: Any,
) -> None:
    """Add to M, for some rows of A, their outer products times ``over``, as dense triangles."""
    beside = M.from_(kept * ld)
    corner = beside.from_(nt * nv)
    with w.loop(begin, end) as k:
        i = order[k]
        start, split, stop, weight = starts[i * 2], starts[i * 2 + 1], starts[i * 2 + 2], over[i]
        first, length = firsts[i], lengths[i]
        w.zero(span, length + w.lanes)
        with w.loop(start, split) as p:
            span[columns[p] - first] = jac[p]
        with w.loop(start, split) as p:
            column = columns[p]
            value, shift = weight * jac[p], column - first
            to, mine = M.from_(column * ld), span.from_(shift)
            wide = w.spread(value)
            with w.loop(0, length - shift, w.lanes) as t:
                to.put(t, w.plus(to.vector(t), mine.vector(t), wide))
            with w.loop(split, stop) as q:
                at = (columns[q] - nb) * nv + column
                beside[at] = w.plus(beside[at], value, jac[q])
        with w.loop(split, stop) as q:
            value, row = weight * jac[q], (columns[q] - nb) * nt
            with w.loop(split, stop) as r:
                at = row + columns[r] - nb
                corner[at] = w.plus(corner[at], value, jac[r])


#: Kinds of the parameters (F and I arrays, f and i numbers) and the description.
functions: dict[str, tuple[str, Callable[..., None]]] = {
    "vectors": ("I", vectors),
    "zeros": ("Fi", zeros),
    "add_at": ("FIFi", add_at),
    "scale_rows": ("FIFi", scale_rows),
    "largest_of_rows": ("FIiF", largest_of_rows),
    "begin_columns": ("FFFiiii", begin_columns),
    "add_rows": ("FFFIIIIIFiiiiiii", add_rows),
}
