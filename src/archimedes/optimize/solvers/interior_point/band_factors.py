"""Factors of banded systems, solutions and products, as native functions; see ``band_loops.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.optimize.solvers.interior_point.band_loops import PANEL

__all__ = ["functions"]


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
    "mirror": ("Fiiii", mirror),
    "band_factor": ("FFiii", band_factor),
    "band_solve": ("FFFiii", band_solve),
    "small_factor": ("Fi", small_factor),
    "small_solve": ("FFi", small_solve),
    "factor": ("FFFFFiiiiii", factor),
    "by_factors": ("FFFFFFIIFiiiiiiiFFFF", by_factors),
    "times": ("FFiiiiiiFF", times),
    "refined": ("FFFFFFIIFiiiiiiiFFFFFFFFFF", refined),
    "transposed": ("FIIiFFFi", transposed),
}
