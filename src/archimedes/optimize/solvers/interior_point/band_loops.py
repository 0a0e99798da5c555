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


def band_factor(w: Any, K: Any, inverse: Any, kept: Any, width: Any, ld: Any) -> None:
    """Cholesky factors in place, ``inverse`` of the diagonal; returns 0, or where it failed."""
    with w.loop(0, kept, PANEL) as p:
        panel = [K.from_((p + k) * ld) for k in range(PANEL)]
        for k, mine in enumerate(panel):
            before = [(panel[c].from_(k - c), panel[c][k - c]) for c in range(k)]
            if before:
                with w.loop(0, width + 1, w.lanes) as t:
                    value = mine.vector(t)
                    for column, factor in before:
                        value = w.minus(value, column.vector(t), factor)
                    mine.put(t, value)
            pivot = mine[0]
            w.leave_unless(pivot > 0.0, p + (k + 1))
            root = w.sqrt(pivot)
            over = 1.0 / root
            inverse[p + k] = over
            with w.loop(0, width + 1, w.lanes) as t:
                mine.put(t, mine.vector(t) * over)
            mine[0] = root
        last = w.smaller(p + (PANEL + width), kept)
        with w.loop(p + PANEL, last) as j:
            ahead = j - p
            rows = [panel[c].from_(ahead - c) for c in range(PANEL)]
            factors = [w.spread(row[0]) for row in rows]
            to = K.from_(j * ld)
            with w.loop(0, width + PANEL - ahead, w.lanes) as t:
                # Added up first: one rounding against what is large in the band.
                total = rows[0].vector(t) * factors[0]
                for row, factor in zip(rows[1:], factors[1:]):
                    total = w.plus(total, row.vector(t), factor)
                to.put(t, to.vector(t) - total)


def band_solve(w: Any, K: Any, inverse: Any, x: Any, kept: Any, width: Any, ld: Any) -> None:
    """Solve with the factors, in place; x has ``ld`` zeros behind its numbers."""
    with w.loop(0, kept) as j:
        value = x[j] * inverse[j]
        x[j] = value
        column, behind = K.from_(j * ld + 1), x.from_(j + 1)
        with w.loop(0, width, w.lanes) as t:
            behind.put(t, w.minus(behind.vector(t), column.vector(t), value))
    with w.down(0, kept) as j:
        column, behind = K.from_(j * ld + 1), x.from_(j + 1)
        total = w.vector_variable()
        with w.loop(0, width, w.lanes) as t:
            total.add_product(column.vector(t), behind.vector(t))
        x[j] = (x[j] - w.total(total.get())) * inverse[j]


def small_factor(w: Any, S: Any, n: Any) -> None:
    """Cholesky factors of a dense matrix (n, n), lower, in place; returns 0, or where it failed."""
    with w.loop(0, n) as j:
        pivot = w.variable(S[j * n + j])
        with w.loop(0, j) as k:
            pivot.add_product(-S[j * n + k], S[j * n + k])
        w.leave_unless(pivot.get() > 0.0, j + 1)
        root = w.sqrt(pivot.get())
        S[j * n + j] = root
        with w.loop(j + 1, n) as i:
            value = w.variable(S[i * n + j])
            with w.loop(0, j) as k:
                value.add_product(-S[i * n + k], S[j * n + k])
            S[i * n + j] = value.get() / root


def small_solve(w: Any, S: Any, x: Any, n: Any) -> None:
    """Solve with these factors, in place."""
    with w.loop(0, n) as i:
        value = w.variable(x[i])
        with w.loop(0, i) as k:
            value.add_product(-S[i * n + k], x[k])
        x[i] = value.get() / S[i * n + i]
    with w.down(0, n) as i:
        value = w.variable(x[i])
        with w.loop(i + 1, n) as k:
            value.add_product(-S[k * n + i], x[k])
        x[i] = value.get() / S[i * n + i]


def factor(
    w: Any,
    M: Any,
    inverse: Any,
    X: Any,
    S: Any,
    diagonal: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    width: Any,
    ld: Any,
    nv: Any,
) -> None:
    """Factors of M with a diagonal added, of the band (in its place) and of what is left by it."""
    with w.loop(0, nb) as j:
        M[j * ld] = M[j * ld] + diagonal[j]
    with w.loop(nb, kept) as j:
        M[j * ld] = 1.0
    w.check("band_factor", M, inverse, kept, width, ld)
    beside = M.from_(kept * ld)
    corner = beside.from_(nt * nv)
    with w.loop(0, nt) as a:
        mine = X.from_(a * nv)
        w.copy(beside.from_(a * nv), mine, nv)
        w.call("band_solve", M, inverse, mine, kept, width, ld)
    with w.loop(0, nt) as a, w.loop(0, a + 1) as b:
        total = w.vector_variable()
        left, right = X.from_(a * nv), beside.from_(b * nv)
        with w.loop(0, kept, w.lanes) as j:
            total.add_product(left.vector(j), right.vector(j))
        value = corner[a * nt + b] - w.total(total.get())
        S[a * nt + b] = value + w.select(a.equals(b), diagonal[nb + a], 0.0)
    w.check("small_factor", S, nt)


def mirror(w: Any, parts: Any, nt: Any, kept: Any, ld: Any, nv: Any) -> None:
    """Fill the corner's upper triangle from the lower one."""
    corner = parts.from_(kept * ld + nt * nv)
    with w.loop(0, nt) as a, w.loop(0, a) as b:
        corner[b * nt + a] = corner[a * nt + b]


def by_factors(
    w: Any,
    M: Any,
    inverse: Any,
    X: Any,
    S: Any,
    over: Any,
    jac: Any,
    columns: Any,
    starts: Any,
    y: Any,
    m: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    width: Any,
    ld: Any,
    nv: Any,
    r: Any,
    rc: Any,
    x: Any,
    lam: Any,
) -> None:
    """x and lam for right sides r and rc; y (nv,) is room, x (n,) and lam (m,) the result."""
    w.zero(y, nv)
    with w.loop(0, nb) as j:
        y[j] = r[j]
    border = x.from_(nb)
    with w.loop(0, nt) as a:
        border[a] = r[nb + a]
    with w.loop(0, m) as i:
        split, value = starts[i * 2 + 1], over[i] * rc[i]
        with w.loop(starts[i * 2], split) as p:
            at = columns[p]
            y[at] = w.plus(y[at], jac[p], value)
        with w.loop(split, starts[i * 2 + 2]) as p:
            at = columns[p] - nb
            border[at] = w.plus(border[at], jac[p], value)
    w.call("band_solve", M, inverse, y, kept, width, ld)
    beside = M.from_(kept * ld)
    with w.loop(0, nt) as a:
        total, mine = w.vector_variable(), beside.from_(a * nv)
        with w.loop(0, kept, w.lanes) as j:
            total.add_product(mine.vector(j), y.vector(j))
        border[a] = border[a] - w.total(total.get())
    w.call("small_solve", S, border, nt)
    with w.loop(0, nt) as a:
        value, mine = border[a], X.from_(a * nv)
        with w.loop(0, kept, w.lanes) as j:
            y.put(j, w.minus(y.vector(j), mine.vector(j), value))
    with w.loop(0, nb) as j:
        x[j] = y[j]
    with w.loop(0, m) as i:
        total = w.variable(-rc[i])
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            total.add_product(jac[p], x[columns[p]])
        lam[i] = over[i] * total.get()


def times(
    w: Any,
    H: Any,
    diagonal: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    width: Any,
    ld: Any,
    nv: Any,
    x: Any,
    y: Any,
) -> None:
    """y = (H + diagonal) x."""
    n = nb + nt
    with w.loop(0, n) as j:
        y[j] = diagonal[j] * x[j]
    with w.loop(0, nb) as j:
        column, value = H.from_(j * ld), x[j]
        total = w.variable(column[0] * value)
        with w.loop(1, w.smaller(width + 1, nb - j)) as t:
            total.add_product(column[t], x[j + t])
            y[j + t] = w.plus(y[j + t], column[t], value)
        y[j] = y[j] + total.get()
    beside = H.from_(kept * ld)
    corner = beside.from_(nt * nv)
    with w.loop(0, nt) as a:
        value, total = x[nb + a], w.variable(y[nb + a])
        mine = beside.from_(a * nv)
        with w.loop(0, nb) as j:
            total.add_product(mine[j], x[j])
            y[j] = w.plus(y[j], mine[j], value)
        with w.loop(0, nt) as b:
            total.add_product(corner[a * nt + b], x[nb + b])
        y[nb + a] = total.get()


def transposed(
    w: Any, jac: Any, columns: Any, starts: Any, m: Any, lam: Any, start: Any, y: Any, n: Any
) -> None:
    """y = start + A^T lam."""
    with w.loop(0, n) as j:
        y[j] = start[j]
    with w.loop(0, m) as i:
        value = lam[i]
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            at = columns[p]
            y[at] = w.plus(y[at], jac[p], value)


def product(w: Any, jac: Any, columns: Any, starts: Any, m: Any, x: Any, y: Any) -> None:
    """y = A x."""
    with w.loop(0, m) as i:
        total = w.variable(0.0)
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            total.add_product(jac[p], x[columns[p]])
        y[i] = total.get()


def refined(
    w: Any,
    M: Any,
    inverse: Any,
    X: Any,
    S: Any,
    over: Any,
    jac: Any,
    columns: Any,
    starts: Any,
    y: Any,
    m: Any,
    nb: Any,
    nt: Any,
    kept: Any,
    width: Any,
    ld: Any,
    nv: Any,
    H: Any,
    diagonal: Any,
    given: Any,
    D: Any,
    room: Any,
    r: Any,
    rc: Any,
    x: Any,
    lam: Any,
    out: Any,
) -> None:
    """x and lam by two sweeps; ``room`` has 2 (n + m) numbers.

    ``out``: largest of what the first one leaves, of the right sides, and of x.
    """
    sizes = (nb, nt, kept, width, ld, nv)
    system = (M, inverse, X, S, over, jac, columns, starts, y, m, *sizes)
    n = nb + nt
    rest, more = room, room.from_(n)
    rest_c, more_lam = room.from_(n * 2), room.from_(n * 2 + m)
    w.call("by_factors", *system, r, rc, x, lam)
    w.call("times", H, diagonal, *sizes, x, rest)
    with w.loop(0, n) as j:
        rest[j] = r[j] - rest[j]
    # The equations are met up to delta by construction.
    with w.loop(0, m) as i:
        value = lam[i]
        rest_c[i] = (given[i] - D[i]) * value
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            at = columns[p]
            rest[at] = w.minus(rest[at], jac[p], value)
    left, right, size = w.variable(0.0), w.variable(0.0), w.variable(0.0)
    strange = w.variable(0.0)
    with w.loop(0, n) as j:
        left.most(abs(rest[j]))
        # Zero, but for numbers that are not finite, which comparisons do not see.
        strange.add(rest[j] * 0.0)
        right.most(abs(r[j]))
        size.most(abs(x[j]))
    with w.loop(0, m) as i:
        right.most(abs(rc[i]))
    out[0], out[1], out[2] = left.get() + strange.get(), right.get(), size.get()
    w.call("by_factors", *system, rest, rest_c, more, more_lam)
    with w.loop(0, n) as j:
        x[j] = x[j] + more[j]
    with w.loop(0, m) as i:
        lam[i] = lam[i] + more_lam[i]


#: Kinds of the parameters (F and I arrays, f and i numbers) and the description.
functions: dict[str, tuple[str, Callable[..., None]]] = {
    "vectors": ("I", vectors),
    "scatter": ("FIFii", scatter),
    "scatter_scaled": ("FFIFii", scatter_scaled),
    "mirror": ("Fiiii", mirror),
    "sorted_rows": ("IIiiiIII", sorted_rows),
    "spans": ("IIiIIII", spans),
    "apart": ("IIIiiIII", apart),
    "hessian_places": ("IIiiiiiiI", hessian_places),
    "largest_of_rows": ("FIIiiF", largest_of_rows),
    "gram": ("FFiFFIIIIFiiiiii", gram),
    "band_factor": ("FFiii", band_factor),
    "band_solve": ("FFFiii", band_solve),
    "small_factor": ("Fi", small_factor),
    "small_solve": ("FFi", small_solve),
    "factor": ("FFFFFiiiiii", factor),
    "by_factors": ("FFFFFFIIFiiiiiiiFFFF", by_factors),
    "times": ("FFiiiiiiFF", times),
    "refined": ("FFFFFFIIFiiiiiiiFFFFFFFFFF", refined),
    "transposed": ("FIIiFFFi", transposed),
    "product": ("FIIiFF", product),
}
