"""Eigenvalues of symmetric matrices, singular values, and the formulas of their derivatives.

Values are found by Jacobi's methods: two-sided rotations diagonalize a symmetric matrix; one-sided
rotations (Hestenes) make the columns of a matrix orthogonal. A sweep over all pairs of columns is
unrolled, and sweeps repeat in a ``While`` region until nothing is left above rounding. (Golub, Van
Loan, Matrix Computations, 4th ed., 8.5 and 8.6.3.)

Legend: A = V diag(w) V^T with w ascending; A = U diag(s) V^T with s descending; dX and Xbar are the
tangent and the adjoint of X; c, s, t are cosine, sine and tangent of a rotation.
``graph/derivatives/spectral_derivatives.py`` says what a turn of the vectors is, its gap, its m.

Where two values are equal their vectors are arbitrary and jump with the matrix. A function that
does not depend on their choice (the root of a matrix, a sum over all values) has derivatives there
all the same; one that does gets nan. Each of the equal values by itself has the slope of its own
vector, one of its subgradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from archimedes.graph.derivatives.quotients import Quotients
from archimedes.graph.formulas import Emit
from archimedes.symbolic.core.conversion import floats, lift, wrap
from archimedes.symbolic.core.ordering import exchanges
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg import matrices, matrix_functions
from archimedes.symbolic.linalg.factorizations import householder
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call
from archimedes.symbolic.numpy_functions.structural import full_like

#: Sweeps are quadratically convergent: double precision takes up to ten; more means nan.
MAX_SWEEPS = 30

Rows = list[list[int]]


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(p, q) for p in range(n) for q in range(p + 1, n)]


def _rotation(e: Emit, app: int, aqq: int, apq: int) -> tuple[int, int, int]:
    """Return c, s and t of the smaller rotation that makes [[app, apq], [apq, aqq]] diagonal."""
    one, zero = e.c(1.0), e.c(0.0)
    theta = e.div(e.sub(aqq, app), e.add(apq, apq))
    root = e("sqrt", e.add(e.mul(theta, theta), one))
    tangent = e("copysign", e.div(one, e.add(e("abs", theta), root)), theta)
    t = e.where(e("eq", apq, zero), zero, tangent)
    c = e.div(one, e("sqrt", e.add(e.mul(t, t), one)))
    return c, e.mul(t, c), t


def _rotate(e: Emit, c: int, s: int, x: list[int], y: list[int]) -> tuple[list[int], list[int]]:
    """Return c x - s y and s x + c y."""
    return (
        [e.sub(e.mul(c, i), e.mul(s, j)) for i, j in zip(x, y)],
        [e.add(e.mul(s, i), e.mul(c, j)) for i, j in zip(x, y)],
    )


def _largest(x: Traced) -> Traced:
    """Return the largest of a few numbers, one after the other."""
    e, ids = _emit_of(x), _ids_of(x)
    return wrap(reduce(lambda a, b: e("max", a, b), ids), x.code)


def _sort(e: Emit, keys: list[int], rows: Rows, *, descending: bool) -> None:
    """Sort keys, and rows along with them, in place."""
    for i, j in exchanges(len(keys)):
        first, second = (keys[i], keys[j]) if descending else (keys[j], keys[i])
        swap = e("lt", first, second)
        for row in (keys, *rows):
            row[i], row[j] = e.where(swap, row[j], row[i]), e.where(swap, row[i], row[j])


def _emit_of(x: Traced) -> Emit:
    return Emit(current_trace().graph, x.code)


def _ids_of(x: Traced) -> Any:
    """Return the ids of an array as nested lists."""
    return current_trace().ids_of(x).tolist()


def _array_of(ids: Rows | list[int], code: int, shape: tuple[int, ...]) -> Traced:
    return wrap(np.array(ids, dtype=np.int64).reshape(shape), code)


# ---- symmetric matrices ------------------------------------------------------------------------


def symmetric_eigen(a: Traced, *, vectors: bool) -> tuple[Traced, ...]:
    """Return eigenvalues, ascending, and (where wanted) eigenvectors in columns.

    Vectors are as the rotations leave them: their signs follow no rule.
    """
    n, code = len(a), a.code
    lower = [(i, j) for i in range(n) for j in range(i + 1)]
    index = {(i, j): k for k, pair in enumerate(lower) for i, j in (pair, pair[::-1])}
    ids = current_trace().ids_of(a)
    # Carried: the lower triangle, and the vectors, one in each row.
    carry = [_array_of([int(ids[pair]) for pair in lower], code, (len(lower),))]
    if vectors:
        carry.append(lift(np.eye(n, dtype=a.dtype)))

    def sweep(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        e, m, columns = _emit_of(a), _ids_of(carry[0]), _ids_of(carry[1]) if vectors else []
        for p, q in _pairs(n):
            app, aqq, apq = index[p, p], index[q, q], index[p, q]
            c, s, t = _rotation(e, m[app], m[aqq], m[apq])
            change = e.mul(t, m[apq])
            m[app], m[aqq] = e.sub(m[app], change), e.add(m[aqq], change)
            m[apq] = e.c(0.0)
            for k in range(n):
                if k not in (p, q):
                    akp, akq = index[k, p], index[k, q]
                    (m[akp],), (m[akq],) = _rotate(e, c, s, [m[akp]], [m[akq]])
            if vectors:
                columns[p], columns[q] = _rotate(e, c, s, columns[p], columns[q])
        rotated = [_array_of(m, code, (len(lower),))]
        return [*rotated, _array_of(columns, code, (n, n))] if vectors else rotated

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        beside = [index[p, q] for p, q in _pairs(n)]
        # Not the opposite test: nan keeps the loop running, and so reaches the results.
        return ~(_largest(np.abs(carry[0][beside])) <= shared[0])

    if n > 2:
        enough = float(np.finfo(a.dtype).eps) / 1024 * _largest(np.abs(carry[0]))
        carry = matrix_functions.repeat_while(is_unfinished, sweep, carry, [enough], MAX_SWEEPS)
    elif n == 2:
        carry = sweep(carry, [])
    values = _ids_of(carry[0][[index[k, k] for k in range(n)]])
    rows = _ids_of(carry[1].T) if vectors else []
    _sort(_emit_of(a), values, rows, descending=False)
    result = _array_of(values, code, (n,))
    return (result, _array_of(rows, code, (n, n))) if vectors else (result,)


# ---- singular values ---------------------------------------------------------------------------


def _dot(e: Emit, x: list[int], y: list[int]) -> int:
    return reduce(e.add, map(e.mul, x, y))


def _orthogonal_columns(work: Traced, *, vectors: bool) -> tuple[Traced, Traced, Traced]:
    """Rotate the columns of a square matrix until they are orthogonal, longest first.

    Returns their lengths, the columns, and (where wanted) the product of the rotations.
    """
    n, code = len(work), work.code
    eps = float(np.finfo(work.dtype).eps)
    # Carried: the columns (and those of the rotations), one in each row; the largest cosine left.
    columns = work.T
    if vectors:
        columns = np.concatenate([columns, lift(np.eye(n, dtype=work.dtype))])
    count = len(columns)

    def sweep(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        e, columns, short = _emit_of(work), _ids_of(carry[0]), _ids_of(shared[0])
        left = e.c(0.0)
        for p, q in _pairs(n):
            pp, qq = _dot(e, columns[p], columns[p]), _dot(e, columns[q], columns[q])
            pq = _dot(e, columns[p], columns[q])
            c, s, _ = _rotation(e, pp, qq, pq)
            # A column as short as rounding errors has no direction worth waiting for.
            is_short = e("le", e("min", pp, qq), short)
            cosine = e.div(e("abs", pq), e("sqrt", e.mul(pp, qq)))
            left = e("max", left, e.where(is_short, e.c(0.0), cosine))
            for k in range(0, count, n):
                columns[k + p], columns[k + q] = _rotate(e, c, s, columns[k + p], columns[k + q])
        return [_array_of(columns, code, (count, n)), wrap(left, code)]

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        return ~(carry[1] <= 2 * n * eps)

    e = _emit_of(work)
    if n > 1:
        longest = _largest(_array_of([_dot(e, x, x) for x in _ids_of(work.T)], code, (n,)))
        short = (4 * n * eps) ** 2 * longest
        carry = [columns, full_like(work, 1.0, shape=())]
        columns, _ = matrix_functions.repeat_while(is_unfinished, sweep, carry, [short], MAX_SWEEPS)
    squares = [_dot(e, x, x) for x in _ids_of(columns[:n])]
    rows = _ids_of(np.concatenate([columns[k : k + n].T for k in range(0, count, n)]))
    _sort(e, squares, rows, descending=True)
    sides = _array_of(rows, code, (count, n))
    return np.sqrt(_array_of(squares, code, (n,))), sides[:n], sides[n:]


def singular(a: Traced, *, vectors: bool, full: bool = False) -> tuple[Any, ...]:
    """Return singular values, descending, or U, s and V^T, of a matrix with m >= n.

    U has m columns where ``full``, else n. It comes from the qr factorisation of the rotated
    columns, so that it is orthogonal whatever the rank. Signs follow no rule.
    """
    m, n = a.shape
    work, scale = matrices.power_of_two(a)
    outer = None
    if m > n:
        outer, work = householder(work, m if full else n)
        work = work[:n]
    lengths, columns, turns = _orthogonal_columns(work, vectors=vectors)
    if not vectors:
        return (lengths * scale,)
    u, r = householder(columns, n)
    u = u * np.copysign(1.0, np.diagonal(r)).astype(a.dtype)
    if outer is not None:
        u = np.concatenate([outer[:, :n] @ u, outer[:, n:]], axis=1)
    return u, lengths * scale, turns.T


# ---- derivatives --------------------------------------------------------------------------------


def _sum_of_sizes(x: Traced, y: Traced) -> Traced:
    """|x|^T |y|: the sizes of the terms of x^T y."""
    return np.abs(x).T @ np.abs(y)


def _pair_arrays(x: Traced) -> tuple[Any, Any]:
    """Return x_i and x_j for all pairs i < j."""
    i, j = np.triu_indices(len(x), 1)
    return x[i], x[j]


def _upper(x: Traced) -> Traced:
    """Return x_ij for all pairs i < j."""
    return x[np.triu_indices(len(x), 1)]


def _fill_triangles(n: int, upper: Traced, lower: Traced) -> Traced:
    """Return the (n, n) array with given entries above and below a diagonal of zeros."""
    filled = np.zeros_like(upper, shape=(n, n))
    i, j = np.triu_indices(n, 1)
    filled[i, j], filled[j, i] = upper, lower
    return filled


def _planes(n: int) -> np.ndarray:
    """Return K for each pair i < j: X K is how columns X turn in the plane of x_i and x_j."""
    i, j = np.triu_indices(n, 1)
    planes, k = np.zeros((len(i), n, n)), np.arange(len(i))
    planes[k, i, j], planes[k, j, i] = 1.0, -1.0
    return planes


def _reciprocals(values: Traced, gaps: Traced) -> Traced:
    """Return 1 / gap, nan where it is as small as rounding errors of the values."""
    trace = current_trace()
    quotients = Quotients(trace.graph, trace.ids_of(values).tolist())
    ids = [quotients.reciprocal(i) for i in trace.ids_of(gaps).tolist()]
    return wrap(np.array(ids, dtype=np.int64), values.code)


# ---- symmetric eigenvalues -----------------------------------------------------------------------


def _eigen_gaps(results: Sequence[Any]) -> tuple[Any, list[dict[int, float]]]:
    low, high = _pair_arrays(results[0])
    return high - low, [{i: -1.0, j: 1.0} for i, j in _pairs(len(results[0]))]


def _eigen_rates(results: Sequence[Any], row: Callable[[np.ndarray], Any]) -> list[Any]:
    w, v = results
    return [np.zeros_like(w), v @ row(_planes(len(w)))]


def eigen_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """P = V^T dA V: dw = diag(P), dV = V (F o P), F_ij = 1 / (w_j - w_i); nan at a tie.

    (Magnus, Econometric Theory 1(2), 1985.)
    """
    w, v = results
    upper = _reciprocals(w, _eigen_gaps(results)[0])
    f = _fill_triangles(len(w), upper, -upper)
    tangents = []
    for (da,) in rows:
        p = v.T @ (da @ v)
        tangents.append([np.diagonal(p), v @ (f * p)])
    return tangents


def _eigen_numerators(results: Sequence[Any], bars: Sequence[Any]) -> tuple[Any, Any]:
    """With M = V^T Vbar, m_ij = M_ij - M_ji."""
    v, v_bar = results[1], bars[1]
    m, sizes = v.T @ v_bar, _sum_of_sizes(v, v_bar)
    return _upper(m - m.T), _upper(sizes + sizes.T)


def _eigen_gather(results: Sequence[Any], bars: Sequence[Any], turned: Traced) -> Traced:
    """Pbar_ij = Pbar_ji is half of m_ij / (w_j - w_i)."""
    v, half = results[1], 0.5 * turned
    return (v @ (_fill_triangles(len(v), half, half) + np.diag(bars[0]))) @ v.T


EIGEN_TURNS = matrix_functions.Turns(_eigen_gaps, _eigen_rates, _eigen_numerators, _eigen_gather)


# ---- singular values -----------------------------------------------------------------------------


def _is_tall(results: Sequence[Any]) -> bool:
    return len(results[0]) > len(results[1])


def _singular_gaps(results: Sequence[Any]) -> tuple[Any, list[dict[int, float]]]:
    """The vectors turn together, against each other, and those of U out of their space."""
    s = results[1]
    pairs = _pairs(len(s))
    first, second = _pair_arrays(s)
    gaps = [second - first, second + first]
    speeds = [{i: -1.0, j: 1.0} for i, j in pairs] + [{i: 1.0, j: 1.0} for i, j in pairs]
    if _is_tall(results):
        gaps += [s] * len(results[0])
        speeds += [{i: 2.0} for _ in range(len(results[0])) for i in range(len(s))]
    return np.concatenate(gaps), speeds


def _singular_rates(results: Sequence[Any], row: Callable[[np.ndarray], Any]) -> list[Any]:
    u, s, vt = results
    n = len(s)
    u1, u2, planes = u[:, :n], u[:, n:], _planes(n)
    out = np.zeros((len(u) * n if _is_tall(results) else 0, n, n))
    du = u1 @ row(np.concatenate([planes, planes, out]))
    dv = vt.T @ row(np.concatenate([planes, -planes, out]))
    if _is_tall(results):
        # column i of U moves towards axis k, as far as that is outside
        still = 2 * len(planes)
        axis = row(_units(len(u), still, np.repeat(np.arange(len(u)), n)))
        column = row(_units(n, still, np.tile(np.arange(n), len(u))))
        outward = axis - u1 @ (u1.T @ axis)
        du = du + np.outer(outward, column)
        if u2.shape[1]:
            du = np.concatenate([du, -np.outer(u1 @ column, u2.T @ axis)], axis=1)
    return [du, np.zeros_like(s), dv.T]


def _units(n: int, still: int, indices: np.ndarray) -> np.ndarray:
    """Return ``still`` rows of zeros, and then unit vectors."""
    return np.concatenate([np.zeros((still, n)), np.eye(n)[indices]])


def singular_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """P = U^T dA V = W_U S + dS - S W_V with W_U, W_V antisymmetric; nan at a tie.

    The symmetric part of P turns both sides by 1 / (s_j - s_i), the antisymmetric part against
    each other by 1 / (s_j + s_i). Columns of U beyond those of V (U2) only turn as U1 makes
    them. (Townsend, Differentiating the Singular Value Decomposition, 2016.)
    """
    u, s, vt = results
    n = len(s)
    u1, u2, v = u[:, :n], u[:, n:], vt.T
    first, second = _pair_arrays(s)
    difference, total = _reciprocals(s, second - first), _reciprocals(s, second + first)
    together, against = (
        _fill_triangles(n, difference, -difference),
        _fill_triangles(n, total, total),
    )
    inverse = _reciprocals(s, s)
    tangents = []
    for (da,) in rows:
        dav = da @ v
        p = u1.T @ dav
        even, odd = together * (0.5 * (p + p.T)), against * (0.5 * (p - p.T))
        du = u1 @ (even + odd)
        if len(u) > n:
            out = (dav - u1 @ p) * inverse
            du = du + out
            if u2.shape[1]:
                du = np.concatenate([du, -(u1 @ (out.T @ u2))], axis=1)
        tangents.append([du, np.diagonal(p), (v @ (even - odd)).T])
    return tangents


def _singular_numerators(results: Sequence[Any], bars: Sequence[Any]) -> tuple[Any, Any]:
    """With m_U, m_V the antisymmetric parts of U^T Ubar and V^T Vbar: their sum, their difference.

    What U gains outside of its own columns comes last.
    """
    u, s, vt = results
    n = len(s)
    u1, u2 = u[:, :n], u[:, n:]
    left, right = (u1, bars[0][:, :n]), (vt.T, bars[2].T)
    m_u, m_v = (m - m.T for m in (x.T @ bar for x, bar in (left, right)))
    sizes = sum(_sum_of_sizes(x, bar) for x, bar in (left, right))
    size = _upper(sizes + sizes.T)
    numerators, terms = [_upper(m_u + m_v), _upper(m_u - m_v)], [size, size]
    if _is_tall(results):
        outward = bars[0][:, :n]
        if u2.shape[1]:
            outward = outward - u2 @ (bars[0][:, n:].T @ u1)
        numerators.append((outward - u1 @ (u1.T @ outward)).ravel())
        terms.append((np.abs(outward) + np.abs(u1) @ _sum_of_sizes(u1, outward)).ravel())
    return np.concatenate(numerators), np.concatenate(terms)


def _singular_gather(results: Sequence[Any], bars: Sequence[Any], turned: Traced) -> Traced:
    u, s, vt = results
    n = len(s)
    u1, count = u[:, :n], n * (n - 1) // 2
    plus, minus = turned[:count], turned[count : 2 * count]
    p_bar = _fill_triangles(n, 0.5 * (plus + minus), 0.5 * (plus - minus))
    a_bar = (u1 @ (p_bar + np.diag(bars[1]))) @ vt
    if _is_tall(results):
        a_bar = a_bar + turned[2 * count :].reshape(len(u), n) @ vt
    return a_bar


SINGULAR_TURNS = matrix_functions.Turns(
    _singular_gaps, _singular_rates, _singular_numerators, _singular_gather
)


# ---- NumPy's functions --------------------------------------------------------------------------

EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


def check_size(name: str, n: int) -> None:
    """Raise unless so many columns can be recorded."""
    most = matrices.MAX_SPECTRAL
    if n > most:
        raise trace_error(
            f"np.linalg.{name} of {n} columns is too large to record (at most {most})",
            "Wrap the call in arc.callback, or use np.linalg.solve, qr or cholesky instead.",
        )


# ---- symmetric eigenvalues -----------------------------------------------------------------------


def _eigenvalue_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    v = call(_EIGEN, operands[0])[1]
    return [[np.sum(v * (da @ v), axis=0)] for (da,) in rows]


_EIGEN = MatrixFunction(
    "eigh",
    partial(symmetric_eigen, vectors=True),
    eigen_push,
    spectrum=matrix_functions.Spectrum("eigh", 0, (1,), EIGEN_TURNS),
)
_EIGENVALUES = MatrixFunction(
    "eigvalsh",
    partial(symmetric_eigen, vectors=False),
    _eigenvalue_push,
    spectrum=matrix_functions.Spectrum("eigh", 0),
)


def symmetric(name: str, a: Traced, uplo: str) -> Traced:
    """Fill one triangle from the other, as NumPy, which reads only one."""
    (a,) = floats(a)
    matrices.check_square(a)
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    check_size(name, a.shape[-1])
    lower = np.tri(a.shape[-1], dtype=bool)
    first = a if uplo.upper() == "L" else a.mT
    return np.where(lower, first, first.mT)


@implements(np.linalg.eigh)
def _eigh(a: Operand, UPLO: str = "L") -> Traced:
    a = symmetric("eigh", a, UPLO)
    return EighResult(*matrices.over_stack(partial(call, _EIGEN), (2,), a))


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: Operand, UPLO: str = "L") -> Traced:
    a = symmetric("eigvalsh", a, UPLO)
    return matrices.over_stack(lambda x: call(_EIGENVALUES, x)[0], (2,), a)


# ---- singular values -----------------------------------------------------------------------------


def _singular_value_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    u, _, vt = call(SINGULAR[False], operands[0])
    return [[np.sum(u * (da @ vt.T), axis=0)] for (da,) in rows]


def singular_function(name: str, body: Callable[..., tuple[Any, ...]], family: str) -> Traced:
    """Return the function of a matrix with these factors U, s and V^T."""
    spectrum = matrix_functions.Spectrum(family, 1, (0, 2), SINGULAR_TURNS)
    return MatrixFunction(name, body, singular_push, spectrum=spectrum)


SINGULAR = {
    full: singular_function("svd", partial(singular, vectors=True, full=full), "svd")
    for full in (False, True)
}
_SINGULAR_VALUES = MatrixFunction(
    "svdvals",
    partial(singular, vectors=False),
    _singular_value_push,
    spectrum=matrix_functions.Spectrum("svd", 0),
)


def _svd_matrix(a: Traced, full: bool) -> tuple[Any, Any, Any]:
    if a.shape[0] >= a.shape[1]:
        return call(SINGULAR[full], a)
    u, s, vt = call(SINGULAR[full], a.T)
    return vt.T, s, u.T


@implements(np.linalg.svdvals)
def _svdvals(x: Operand, /) -> Traced:
    (x,) = floats(x)
    matrices.check_stacked(x)
    check_size("svdvals", min(x.shape[-2:]))
    tall = x if x.shape[-2] >= x.shape[-1] else x.mT
    return matrices.over_stack(lambda a: call(_SINGULAR_VALUES, a)[0], (2,), tall)


@implements(np.linalg.svd)
def _svd(
    a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Traced:
    (a,) = floats(a)
    matrices.check_stacked(a)
    if hermitian:
        a = symmetric("svd", a, "L")
    if not compute_uv:
        return _svdvals(a)
    check_size("svd", min(a.shape[-2:]))
    return SVDResult(*matrices.over_stack(partial(_svd_matrix, full=bool(full_matrices)), (2,), a))
