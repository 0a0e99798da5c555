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


def scatter(w: Any, entries: Any, places: Any, to: Any, count: Any, size: Any) -> None:
    """Add each entry to its place, in an array of zeros."""
    with w.loop(0, size) as k:
        to[k] = 0.0
    with w.loop(0, count) as k:
        at = places[k]
        to[at] = to[at] + entries[k]


def scatter_scaled(
    w: Any, entries: Any, scale: Any, places: Any, to: Any, count: Any, size: Any
) -> None:
    """Add each entry, times its scale, to its place, in an array of zeros."""
    with w.loop(0, size) as k:
        to[k] = 0.0
    with w.loop(0, count) as k:
        at = places[k]
        to[at] = to[at] + entries[k] * scale[k]


def sorted_rows(
    w: Any,
    rows: Any,
    columns: Any,
    count: Any,
    m: Any,
    nb: Any,
    starts: Any,
    slots: Any,
    sorted_columns: Any,
) -> None:
    """Sort entries by rows, those of the border (columns from nb on) last in each.

    ``starts`` (2 m + 1,), zeros at first, is where rows and the borders' parts in them begin;
    ``slots`` where each entry is, the last one of all for those without a column (-1).
    """
    with w.loop(0, count) as k, w.when(columns[k] > -1):
        at = rows[k] * 2 + w.select(columns[k] < nb, 0, 1) + 1
        starts[at] = starts[at] + 1
    with w.loop(0, m * 2) as i:
        starts[i + 1] = starts[i + 1] + starts[i]
    total = starts[m * 2]
    with w.loop(0, count) as k:
        slots[k] = total
        with w.when(columns[k] > -1):
            at = rows[k] * 2 + w.select(columns[k] < nb, 0, 1)
            slots[k] = starts[at]
            sorted_columns[starts[at]] = columns[k]
            starts[at] = starts[at] + 1
    # Each begins where the one before it ends.
    with w.down(0, m * 2) as i:
        starts[i + 1] = starts[i]
    starts[0] = 0


def spans(
    w: Any, columns: Any, starts: Any, m: Any, firsts: Any, lengths: Any, seen: Any, out: Any
) -> None:
    """First column and length of each row in the band.

    ``out``: the longest, and whether a place is listed twice; ``seen`` (n,) is -1 at first.
    """
    longest, twice = w.variable(0, "i64"), w.variable(0, "i64")
    with w.loop(0, m) as i:
        first, last = w.variable(1 << 60, "i64"), w.variable(-1, "i64")
        with w.loop(starts[i * 2], starts[i * 2 + 1]) as p:
            first.least(columns[p])
            last.most(columns[p])
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            at = columns[p]
            twice.set(w.select(seen[at].equals(i), 1, twice.get()))
            seen[at] = i
        length = w.larger(last.get() - first.get() + 1, 0)
        firsts[i], lengths[i] = first.get(), length
        longest.most(length)
    out[0], out[1] = longest.get(), twice.get()


def apart(
    w: Any, rows: Any, columns: Any, place: Any, count: Any, nb: Any, i: Any, j: Any, out: Any
) -> None:
    """Places i >= j of the Hessian's entries; ``out``: how far apart they are in the band."""
    most = w.variable(0, "i64")
    with w.loop(0, count) as k:
        one, other = place[rows[k]], place[columns[k]]
        low, high = w.smaller(one, other), w.larger(one, other)
        i[k], j[k] = high, low
        with w.when(low > -1), w.when(high < nb):
            most.most(high - low)
    out[0] = most.get()


def hessian_places(
    w: Any,
    i: Any,
    j: Any,
    count: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    ld: Any,
    nv: Any,
    at: Any,
) -> None:
    """Where the entries (i, j) are: in the band, beside it, in the corner, or behind all that."""
    band = kept * ld
    corner = band + nt * nv
    with w.loop(0, count) as k:
        high, low = i[k], j[k]
        within = low * ld + high - low
        beside = band + (high - nb) * nv + low
        inside = corner + (high - nb) * nt + low - nb
        border = w.select(low < nb, beside, inside)
        used = w.select(high < nb, within, border)
        at[k] = w.select(low < 0, corner + nt * nt, used)


def largest_of_rows(
    w: Any, entries: Any, rows: Any, slots: Any, dropped: Any, count: Any, largest: Any
) -> None:
    """The largest entry of each row; those with the slot ``dropped`` do not count."""
    with w.loop(0, count) as k, w.when(slots[k] < dropped):
        row, size = rows[k], abs(entries[k])
        now = largest[row]
        largest[row] = w.select(size > now, size, now)


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
    "scatter": ("FIFii", scatter),
    "scatter_scaled": ("FFIFii", scatter_scaled),
    "sorted_rows": ("IIiiiIII", sorted_rows),
    "spans": ("IIiIIII", spans),
    "apart": ("IIIiiIII", apart),
    "hessian_places": ("IIiiiiiiI", hessian_places),
    "largest_of_rows": ("FIIiiF", largest_of_rows),
    "gram": ("FFiFFIIIIFiiiiii", gram),
}
