"""Loops that find where the entries of derivatives belong, as native functions.

Entries are not listed one by one: a problem's patterns are tables. Symbols as in
``problems/blocks.py``: a block is used at so many ``places``; there ``index`` (places, nz) are its
unknowns and ``rows`` (places, ny) its rows; its derivative has ``count`` entries, number e at the
local row ``above[e]`` and column ``left[e]``. ``place`` is that of ``chains.py``, the rest as in
``band_loops.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["functions"]


def count_rows(
    w: Any,
    rows: Any,
    index: Any,
    above: Any,
    left: Any,
    place: Any,
    places: Any,
    ny: Any,
    nz: Any,
    count: Any,
    nb: Any,
    starts: Any,
) -> None:
    """Count the entries of each row, those of the band and those of the border.

    The number of part p is added to ``starts[p + 1]``; part 2 i is row i in the band.
    """
    with w.loop(0, places) as k:
        mine, known = rows.from_(k * ny), index.from_(k * nz)
        with w.loop(0, count) as e:
            row, column = mine[above[e]], place[known[left[e]]]
            with w.when(row > -1), w.when(column > -1):
                at = row * 2 + w.select(column < nb, 1, 2)
                starts[at] = starts[at] + 1


def fill_rows(
    w: Any,
    rows: Any,
    index: Any,
    above: Any,
    left: Any,
    place: Any,
    places: Any,
    ny: Any,
    nz: Any,
    count: Any,
    nb: Any,
    nexts: Any,
    dropped: Any,
    slots: Any,
    columns: Any,
) -> None:
    """Give each entry the next slot of its part of a row; ``nexts`` is where these are.

    Entries of the objective or of an unknown that is held get the slot ``dropped``.
    """
    with w.loop(0, places) as k:
        mine, known, to = rows.from_(k * ny), index.from_(k * nz), slots.from_(k * count)
        with w.loop(0, count) as e:
            row, column = mine[above[e]], place[known[left[e]]]
            to[e] = dropped
            with w.when(row > -1), w.when(column > -1):
                at = row * 2 + w.select(column < nb, 0, 1)
                slot = nexts[at]
                to[e] = slot
                columns[slot] = column
                nexts[at] = slot + 1


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


def reach(
    w: Any,
    index: Any,
    above: Any,
    left: Any,
    place: Any,
    places: Any,
    nz: Any,
    count: Any,
    nb: Any,
    out: Any,
) -> None:
    """Raise ``out`` to how far apart in the band the unknowns of a Hessian's entries are."""
    most = w.variable(out[0], "i64")
    with w.loop(0, places) as k:
        known = index.from_(k * nz)
        with w.loop(0, count) as e:
            one, other = place[known[above[e]]], place[known[left[e]]]
            low, high = w.smaller(one, other), w.larger(one, other)
            with w.when(low > -1), w.when(high < nb):
                most.most(high - low)
    out[0] = most.get()


def hessian_places(
    w: Any,
    index: Any,
    above: Any,
    left: Any,
    place: Any,
    places: Any,
    nz: Any,
    count: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    ld: Any,
    nv: Any,
    to: Any,
) -> None:
    """Where the Hessian's entries are: in the band, beside it, in the corner, or behind it all."""
    band = kept * ld
    corner = band + nt * nv
    with w.loop(0, places) as k:
        known, at = index.from_(k * nz), to.from_(k * count)
        with w.loop(0, count) as e:
            one, other = place[known[above[e]]], place[known[left[e]]]
            low, high = w.smaller(one, other), w.larger(one, other)
            within = low * ld + high - low
            beside = band + (high - nb) * nv + low
            inside = corner + (high - nb) * nt + low - nb
            border = w.select(low < nb, beside, inside)
            used = w.select(high < nb, within, border)
            at[e] = w.select(low < 0, corner + nt * nt, used)


#: Kinds of the parameters (F and I arrays, f and i numbers) and the description.
functions: dict[str, tuple[str, Callable[..., None]]] = {
    "count_rows": ("IIIIIiiiiiI", count_rows),
    "fill_rows": ("IIIIIiiiiiIiII", fill_rows),
    "spans": ("IIiIIII", spans),
    "reach": ("IIIIiiiiI", reach),
    "hessian_places": ("IIIIiiiiiiiiI", hessian_places),
}
