"""Native loops of the banded systems of ``banded_system.py``, whose symbols they share.

Bands are stored by columns, the diagonal first: the element (j + t, j) is ``band[j * ld + t]``.
Behind the ``width`` of a column there are zeros, at least as many as a vector has numbers and
three, so that vectors may reach beyond its end.
"""

from __future__ import annotations

from typing import NamedTuple

from archimedes.optimize.solvers.interior_point.loop_descriptions import (
    Floats,
    Int,
    Ints,
    Writer,
    flatten,
    native,
)

#: Columns that are eliminated together.
PANEL = 4


class Sizes(NamedTuple):
    """Sizes of a banded matrix with a border.

    The matrix is one array: the band of ``nc`` columns of ``ld`` numbers, the ``nt`` columns beside
    it of ``nv`` numbers, the corner (nt, nt).
    """

    #: Unknowns in the band and in the border.
    nb: Int
    nt: Int
    #: Columns of the band, a multiple of PANEL.
    nc: Int
    width: Int
    #: Numbers of a column, a multiple of a vector's.
    ld: Int
    nv: Int


class Rows(NamedTuple):
    """The Jacobian A (m, n) by rows.

    The entries of row i begin at ``starts[2 i]``, those of the border at ``starts[2 i + 1]``.
    """

    entries: Floats
    columns: Ints
    starts: Ints
    m: Int


class Spans(NamedTuple):
    """The first column of each row of A in the band and its length there; room for one row."""

    firsts: Ints
    lengths: Ints
    room: Floats


class Factors(NamedTuple):
    """Factors of M: the band in its place, its inverse diagonal, the border's columns solved, S."""

    M: Floats
    inverse: Floats
    X: Floats
    S: Floats
    sizes: Sizes


class System(NamedTuple):
    """Factors, 1 / D, A, and room (nv,)."""

    factors: Factors
    over: Floats
    A: Rows
    y: Floats


class Pair(NamedTuple):
    """Numbers of the unknowns (n,) and of the constraints (m,)."""

    x: Floats
    lam: Floats


class Correction(NamedTuple):
    """What a step of refinement reads: H and its diagonal, D as it is and raised, room."""

    H: Floats
    diagonal: Floats
    D: Floats
    raised_D: Floats
    room: Floats


@native
def count_lanes(w: Writer, out: Ints) -> None:
    """``out``: how many numbers a vector has."""
    out[0] = w.like(w.lanes, "i64")


@native
def set_zero(w: Writer, to: Floats, size: Int) -> None:
    """Set numbers to zero, and up to a vector behind them."""
    w.zero(to, size)


@native
def scatter_add(w: Writer, entries: Floats, slots: Ints, to: Floats, count: Int) -> None:
    """Add each entry to its slot."""
    with w.loop(0, count) as k:
        at = slots[k]
        to[at] = to[at] + entries[k]


@native
def scale_rows(w: Writer, A: Rows, scale: Floats) -> None:
    """Multiply each row of A by its scale."""
    with w.loop(0, A.m) as i:
        factor = scale[i]
        with w.loop(A.starts[i * 2], A.starts[i * 2 + 2]) as p:
            A.entries[p] = A.entries[p] * factor


@native
def gram(
    w: Writer, H: Floats, M: Floats, over: Floats, A: Rows, spans: Spans, sizes: Sizes
) -> None:
    """M = H + A^T diag(over) A: for each row of A its outer product, as a dense triangle.

    Columns of H are copied as rows reach them, so that they are near when they are added to.
    """
    nb, nt, nc, _, ld, nv = sizes
    copied = w.variable(0, "i64")
    beside = M.from_(nc * ld)
    corner = beside.from_(nt * nv)

    def copy_until(column: Int) -> None:
        begin = copied.get()
        with w.when(column > begin):
            w.copy(H.from_(begin * ld), M.from_(begin * ld), (column - begin) * ld)
            copied.set(column)

    w.copy(H.from_(nc * ld), beside, nt * nv + nt * nt)
    with w.loop(0, A.m) as i:
        begin, split, end = (A.starts[i * 2 + k] for k in range(3))
        weight, first, length = over[i], spans.firsts[i], spans.lengths[i]
        with w.when(length > 0):
            copy_until(first + length)
        w.zero(spans.room, length + w.lanes)
        with w.loop(begin, split) as p:
            spans.room[A.columns[p] - first] = A.entries[p]
        with w.loop(begin, split) as p:
            column = A.columns[p]
            value, shift = weight * A.entries[p], column - first
            to, row = M.from_(column * ld), spans.room.from_(shift)
            factor = w.spread(value)
            with w.loop(0, length - shift, w.lanes) as t:
                to.put(t, w.plus(to.vector(t), row.vector(t), factor))
            with w.loop(split, end) as q:
                at = (A.columns[q] - nb) * nv + column
                beside[at] = w.plus(beside[at], value, A.entries[q])
        with w.loop(split, end) as q:
            value, row = weight * A.entries[q], (A.columns[q] - nb) * nt
            with w.loop(split, end) as r:
                at = row + A.columns[r] - nb
                corner[at] = w.plus(corner[at], value, A.entries[r])
    copy_until(nc)


@native
def factor_band(w: Writer, K: Floats, inverse: Floats, sizes: Sizes) -> None:
    """Cholesky factors in place, ``inverse`` of the diagonal; returns 0, or where it failed."""
    nc, width, ld = sizes.nc, sizes.width, sizes.ld
    with w.loop(0, nc, PANEL) as p:
        panel = [K.from_((p + k) * ld) for k in range(PANEL)]
        for k, mine in enumerate(panel):
            before = [(panel[c].from_(k - c), panel[c][k - c]) for c in range(k)]
            if before:
                with w.loop(0, width + 1, w.lanes) as t:
                    value = mine.vector(t)
                    for column, multiple in before:
                        value = w.minus(value, column.vector(t), multiple)
                    mine.put(t, value)
            pivot = mine[0]
            w.leave_unless(pivot > 0.0, p + (k + 1))
            root = w.sqrt(pivot)
            over = 1.0 / root
            inverse[p + k] = over
            with w.loop(0, width + 1, w.lanes) as t:
                mine.put(t, mine.vector(t) * over)
            mine[0] = root
        last = w.smaller(p + (PANEL + width), nc)
        with w.loop(p + PANEL, last) as j:
            ahead = j - p
            rows = [panel[c].from_(ahead - c) for c in range(PANEL)]
            multiples = [w.spread(row[0]) for row in rows]
            to = K.from_(j * ld)
            with w.loop(0, width + PANEL - ahead, w.lanes) as t:
                # Added up first: one rounding against what is large in the band.
                total = rows[0].vector(t) * multiples[0]
                for row, multiple in zip(rows[1:], multiples[1:]):
                    total = w.plus(total, row.vector(t), multiple)
                to.put(t, to.vector(t) - total)


@native
def solve_band(w: Writer, K: Floats, inverse: Floats, sizes: Sizes, x: Floats) -> None:
    """Solve with the factors, in place; x has ``ld`` zeros behind its numbers."""
    nc, width, ld = sizes.nc, sizes.width, sizes.ld
    with w.loop(0, nc) as j:
        value = x[j] * inverse[j]
        x[j] = value
        column, behind = K.from_(j * ld + 1), x.from_(j + 1)
        with w.loop(0, width, w.lanes) as t:
            behind.put(t, w.minus(behind.vector(t), column.vector(t), value))
    with w.down(0, nc) as j:
        column, behind = K.from_(j * ld + 1), x.from_(j + 1)
        total = w.vector_variable()
        with w.loop(0, width, w.lanes) as t:
            total.add_product(column.vector(t), behind.vector(t))
        x[j] = (x[j] - w.total(total.get())) * inverse[j]


@native
def factor_dense(w: Writer, S: Floats, n: Int) -> None:
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


@native
def solve_dense(w: Writer, S: Floats, x: Floats, n: Int) -> None:
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


@native
def factor(w: Writer, factors: Factors, diagonal: Floats) -> None:
    """Factors of M with a diagonal added, of the band (in its place) and of what is left by it."""
    M, inverse, X, S, sizes = factors
    nb, nt, nc, _, ld, nv = sizes
    with w.loop(0, nb) as j:
        M[j * ld] = M[j * ld] + diagonal[j]
    with w.loop(nb, nc) as j:
        M[j * ld] = 1.0
    w.check("factor_band", *flatten(M, inverse, sizes))
    beside = M.from_(nc * ld)
    corner = beside.from_(nt * nv)
    with w.loop(0, nt) as a:
        mine = X.from_(a * nv)
        w.copy(beside.from_(a * nv), mine, nv)
        w.call("solve_band", *flatten(M, inverse, sizes, mine))
    with w.loop(0, nt) as a, w.loop(0, a + 1) as b:
        total = w.vector_variable()
        left, right = X.from_(a * nv), beside.from_(b * nv)
        with w.loop(0, nc, w.lanes) as j:
            total.add_product(left.vector(j), right.vector(j))
        value = corner[a * nt + b] - w.total(total.get())
        S[a * nt + b] = value + w.select(a.equals(b), diagonal[nb + a], 0.0)
    w.check("factor_dense", S, nt)


@native
def solve_factored(w: Writer, system: System, rhs: Pair, to: Pair) -> None:
    """x (n,) and lam (m,) for right sides r and rc."""
    (M, inverse, X, S, sizes), over, A, y = system
    (r, rc), (x, lam) = rhs, to
    nb, nt, nc, _, ld, nv = sizes
    w.zero(y, nv)
    with w.loop(0, nb) as j:
        y[j] = r[j]
    border = x.from_(nb)
    with w.loop(0, nt) as a:
        border[a] = r[nb + a]
    with w.loop(0, A.m) as i:
        split, value = A.starts[i * 2 + 1], over[i] * rc[i]
        with w.loop(A.starts[i * 2], split) as p:
            at = A.columns[p]
            y[at] = w.plus(y[at], A.entries[p], value)
        with w.loop(split, A.starts[i * 2 + 2]) as p:
            at = A.columns[p] - nb
            border[at] = w.plus(border[at], A.entries[p], value)
    w.call("solve_band", *flatten(M, inverse, sizes, y))
    beside = M.from_(nc * ld)
    with w.loop(0, nt) as a:
        total, mine = w.vector_variable(), beside.from_(a * nv)
        with w.loop(0, nc, w.lanes) as j:
            total.add_product(mine.vector(j), y.vector(j))
        border[a] = border[a] - w.total(total.get())
    w.call("solve_dense", S, border, nt)
    with w.loop(0, nt) as a:
        value, mine = border[a], X.from_(a * nv)
        with w.loop(0, nc, w.lanes) as j:
            y.put(j, w.minus(y.vector(j), mine.vector(j), value))
    with w.loop(0, nb) as j:
        x[j] = y[j]
    with w.loop(0, A.m) as i:
        total = w.variable(-rc[i])
        with w.loop(A.starts[i * 2], A.starts[i * 2 + 2]) as p:
            total.add_product(A.entries[p], x[A.columns[p]])
        lam[i] = over[i] * total.get()


@native
def multiply_hessian(
    w: Writer, H: Floats, diagonal: Floats, sizes: Sizes, x: Floats, y: Floats
) -> None:
    """y = (H + diagonal) x."""
    nb, nt, nc, width, ld, nv = sizes
    with w.loop(0, nb + nt) as j:
        y[j] = diagonal[j] * x[j]
    with w.loop(0, nb) as j:
        column, value = H.from_(j * ld), x[j]
        total = w.variable(column[0] * value)
        with w.loop(1, w.smaller(width + 1, nb - j)) as t:
            total.add_product(column[t], x[j + t])
            y[j + t] = w.plus(y[j + t], column[t], value)
        y[j] = y[j] + total.get()
    beside = H.from_(nc * ld)
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


@native
def multiply_transpose(w: Writer, A: Rows, lam: Floats, y: Floats, n: Int) -> None:
    """y = A^T lam."""
    with w.loop(0, n) as j:
        y[j] = 0.0
    with w.loop(0, A.m) as i:
        value = lam[i]
        with w.loop(A.starts[i * 2], A.starts[i * 2 + 2]) as p:
            at = A.columns[p]
            y[at] = w.plus(y[at], A.entries[p], value)


@native
def solve_refined(
    w: Writer, system: System, c: Correction, rhs: Pair, to: Pair, out: Floats
) -> None:
    """x and lam by two sweeps; the room of ``c`` has 2 (n + m) numbers.

    ``out``: largest of what the first one leaves, of the right sides, and of x.
    """
    A, sizes, (r, rc), (x, lam) = system.A, system.factors.sizes, rhs, to
    n, m = sizes.nb + sizes.nt, A.m
    rest, more = c.room, c.room.from_(n)
    rest_c, more_lam = c.room.from_(n * 2), c.room.from_(n * 2 + m)
    w.call("solve_factored", *flatten(system, rhs, to))
    w.call("multiply_hessian", *flatten(c.H, c.diagonal, sizes, x, rest))
    with w.loop(0, n) as j:
        rest[j] = r[j] - rest[j]
    # The equations are met up to delta by construction.
    with w.loop(0, m) as i:
        value = lam[i]
        rest_c[i] = (c.D[i] - c.raised_D[i]) * value
        with w.loop(A.starts[i * 2], A.starts[i * 2 + 2]) as p:
            at = A.columns[p]
            rest[at] = w.minus(rest[at], A.entries[p], value)
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
    w.call("solve_factored", *flatten(system, rest, rest_c, more, more_lam))
    with w.loop(0, n) as j:
        x[j] = x[j] + more[j]
    with w.loop(0, m) as i:
        lam[i] = lam[i] + more_lam[i]
