"""Eigenvalues of symmetric matrices, singular values, and what is made from them.

Legend: A = V diag(w) V^T with w ascending; A = U diag(s) V^T with s descending. Derivatives are
in closed form. Where two values are equal their vectors are arbitrary and jump with the matrix.
A function that does not depend on their choice (the root of a matrix, a sum over all values) has
derivatives there all the same, which ``linalg_ties.py`` finds; one that does gets nan. Each of
the equal values by itself has the slope of its own vector, one of its subgradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import floats, wrap
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.linalg.checks import (
    MAX_SPECTRAL,
    check_square,
    check_stacked,
    over_stack,
)
from archimedes.symbolic.linalg.jacobi import singular, symmetric_eigen
from archimedes.symbolic.linalg.matrix_calls import MatrixFunction, call
from archimedes.symbolic.linalg.ties import Quotients
from archimedes.symbolic.numpy_functions.structural import full_like

__all__ = ["singular_pull", "singular_push"]

EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


def _check_size(name: str, n: int) -> None:
    if n > MAX_SPECTRAL:
        raise trace_error(
            f"np.linalg.{name} of {n} columns is too large to record (at most {MAX_SPECTRAL})",
            "Wrap the call in arc.callback, or use np.linalg.solve, qr or cholesky where they do.",
        )


def _sum_of_sizes(x: Any, y: Any) -> Any:
    """|x|^T |y|: the sizes of the terms of x^T y."""
    return np.abs(x).T @ np.abs(y)


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def _laid_out(n: int, entries: dict[tuple[int, int], int], like: Any) -> Any:
    """Return the (n, n) array of nodes given by place, zero elsewhere."""
    zero = current_trace().graph.const(0.0, like.code)
    ids = [[entries.get((i, j), zero) for j in range(n)] for i in range(n)]
    return wrap(np.array(ids, dtype=np.int64).reshape(n, n), like.code)


# ---- symmetric eigenvalues -----------------------------------------------------------------------


def _reciprocals(quotients: Quotients, *, sums: bool = False) -> Any:
    """Return F_ij = 1 / (x_j - x_i), or 1 / (x_j + x_i); zero on the diagonal."""
    e, x = quotients.e, quotients.ids
    entries = {}
    for i, j in _pairs(len(x)):
        inverse = quotients.reciprocal(e.add(x[j], x[i]) if sums else e.sub(x[j], x[i]))
        entries[i, j], entries[j, i] = inverse, inverse if sums else e.neg(inverse)
    return _laid_out(len(x), entries, quotients.values)


def _eigen_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    """P = V^T dA V: dw = diag(P), dV = V (F o P), F_ij = 1 / (w_j - w_i); nan at a tie.

    (Magnus, Econometric Theory 1(2), 1985.)
    """
    w, v = results
    f = _reciprocals(Quotients(w, ("eigh", "eigvalsh")))
    found = []
    for (da,) in rows:
        p = v.T @ (da @ v)
        found.append([np.diagonal(p), v @ (f * p)])
    return found


def _eigen_pull(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    """The transpose of ``push``, also at ties.

    With M = V^T Vbar, Pbar_ij = (M_ij - M_ji) / (w_j - w_i) for i < j.
    """
    w, v = results
    quotients, ids = Quotients(w, ("eigh", "eigvalsh")), current_trace().ids_of
    e = quotients.e
    found = []
    for w_bar, v_bar in rows:
        m, sizes = v.T @ v_bar, _sum_of_sizes(v, v_bar)
        turns, sizes = ids(m - m.T), ids(sizes + sizes.T)
        p_bar = {}
        for i, j in _pairs(len(w)):
            gap = e.sub(quotients.ids[j], quotients.ids[i])
            turn, size = int(turns[i, j]), int(sizes[i, j])
            half = e.mul(e.c(0.5), quotients.divide(turn, gap, size, {i: -1.0, j: 1.0}))
            p_bar[i, j] = p_bar[j, i] = half
        found.append([(v @ (_laid_out(len(w), p_bar, w) + np.diag(w_bar))) @ v.T])
    return found


def _eigenvalue_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    v = call(_EIGEN, operands[0])[1]
    return [[np.sum(v * (da @ v), axis=0)] for (da,) in rows]


_EIGEN = MatrixFunction(
    "eigh", partial(symmetric_eigen, vectors=True), _eigen_push, _eigen_pull, values=0, vectors=(1,)
)
_EIGENVALUES = MatrixFunction(
    "eigvalsh", partial(symmetric_eigen, vectors=False), _eigenvalue_push, values=0
)


def _symmetric(name: str, a: Any, uplo: str) -> Any:
    """Fill one triangle from the other, as NumPy, which reads only one."""
    (a,) = floats(a)
    check_square(a)
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    _check_size(name, a.shape[-1])
    lower = np.tri(a.shape[-1], dtype=bool)
    first = a if uplo.upper() == "L" else a.mT
    return np.where(lower, first, first.mT)


@implements(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:
    a = _symmetric("eigh", a, UPLO)
    return EighResult(*over_stack(partial(call, _EIGEN), (2,), a))


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    a = _symmetric("eigvalsh", a, UPLO)
    return over_stack(lambda x: call(_EIGENVALUES, x)[0], (2,), a)


def _untraceable(name: str, what: str, remedy: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise trace_error(f"np.linalg.{name} cannot be traced: {what}", remedy)

    return refuse


implements(np.linalg.eig)(
    _untraceable(
        "eig",
        "vectors of a general matrix may be complex",
        "Use np.linalg.eigh for a symmetric matrix, np.linalg.eigvals(a).real and .imag for the "
        "values alone, or wrap the call in arc.callback.",
    )
)
implements(np.linalg.matrix_rank)(
    _untraceable(
        "matrix_rank",
        "it is a whole number that jumps, meant for decisions while recording",
        "Count what is large enough: np.sum(np.linalg.svdvals(a) > tol).",
    )
)


# ---- singular values -----------------------------------------------------------------------------


def singular_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    """P = U^T dA V = W_U S + dS - S W_V with W_U, W_V antisymmetric; nan at a tie.

    The symmetric part of P turns both sides by 1 / (s_j - s_i), the antisymmetric part against
    each other by 1 / (s_j + s_i). Columns of U beyond those of V (U2) only turn as U1 makes
    them. (Townsend, Differentiating the Singular Value Decomposition, 2016.)
    """
    u, s, vt = results
    n = len(s)
    u1, u2, v = u[:, :n], u[:, n:], vt.T
    quotients = Quotients(s, ("svd", "svdvals"))
    together, against = _reciprocals(quotients), _reciprocals(quotients, sums=True)
    inverse = [quotients.reciprocal(i) for i in quotients.ids]
    inverse = wrap(np.array(inverse, dtype=np.int64), s.code)
    found = []
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
        found.append([du, np.diagonal(p), (v @ (even - odd)).T])
    return found


def singular_pull(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    """The transpose of ``push``, also at ties.

    With m_U, m_V the antisymmetric parts of U^T Ubar and V^T Vbar, the sum of both turns the
    vectors together, and is divided by s_j - s_i; their difference by s_j + s_i. What U gains
    outside of its own columns is divided by s.
    """
    u, s, vt = results
    n = len(s)
    u1, u2, v = u[:, :n], u[:, n:], vt.T
    quotients = Quotients(s, ("svd", "svdvals"))
    found = []
    for u_bar, s_bar, vt_bar in rows:
        outward = u_bar[:, :n]
        if u2.shape[1]:
            outward = outward - u2 @ (u_bar[:, n:].T @ u1)
        p_bar = _turn_adjoints(quotients, (u1, u_bar[:, :n]), (v, vt_bar.T))
        a_bar = (u1 @ (p_bar + np.diag(s_bar))) @ vt
        if len(u) > n:
            a_bar = a_bar + _outward_adjoint(quotients, u1, outward) @ vt
        found.append([a_bar])
    return found


def _turn_adjoints(quotients: Quotients, left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Return the off-diagonal part of Pbar, from (U, Ubar) and (V, Vbar)."""
    ids, e, s = current_trace().ids_of, quotients.e, quotients.ids
    turns = [x.T @ bar for x, bar in (left, right)]
    m_u, m_v = (m - m.T for m in turns)
    sizes = sum(_sum_of_sizes(x, bar) for x, bar in (left, right))
    together, against, size = ids(m_u + m_v), ids(m_u - m_v), ids(sizes + sizes.T)
    p_bar = {}
    for i, j in _pairs(len(s)):
        terms = int(size[i, j])
        plus = quotients.divide(int(together[i, j]), e.sub(s[j], s[i]), terms, {i: -1.0, j: 1.0})
        minus = quotients.divide(int(against[i, j]), e.add(s[j], s[i]), terms, {i: 1.0, j: 1.0})
        p_bar[i, j] = e.mul(e.c(0.5), e.add(plus, minus))
        p_bar[j, i] = e.mul(e.c(0.5), e.sub(plus, minus))
    return _laid_out(len(s), p_bar, quotients.values)


def _outward_adjoint(quotients: Quotients, u1: Any, bar: Any) -> Any:
    """Return (1 - U1 U1^T) Ubar diag(1 / s)."""
    ids = current_trace().ids_of
    out = ids(bar - u1 @ (u1.T @ bar))
    size = ids(np.abs(bar) + np.abs(u1) @ _sum_of_sizes(u1, bar))
    made = np.empty_like(out)
    for k, i in np.ndindex(*out.shape):
        made[k, i] = quotients.divide(int(out[k, i]), quotients.ids[i], int(size[k, i]), {i: 2.0})
    return wrap(made, bar.code)


def _singular_value_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    u, _, vt = call(_SINGULAR[False], operands[0])
    return [[np.sum(u * (da @ vt.T), axis=0)] for (da,) in rows]


_SINGULAR = {
    full: MatrixFunction(
        "svd",
        partial(singular, vectors=True, full=full),
        singular_push,
        singular_pull,
        values=1,
        vectors=(0, 2),
    )
    for full in (False, True)
}
_SINGULAR_VALUES = MatrixFunction(
    "svdvals", partial(singular, vectors=False), _singular_value_push, values=0
)


def _svd_matrix(a: Any, full: bool) -> tuple[Any, Any, Any]:
    if a.shape[0] >= a.shape[1]:
        return call(_SINGULAR[full], a)
    u, s, vt = call(_SINGULAR[full], a.T)
    return vt.T, s, u.T


@implements(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    (x,) = floats(x)
    check_stacked(x)
    _check_size("svdvals", min(x.shape[-2:]))
    tall = x if x.shape[-2] >= x.shape[-1] else x.mT
    return over_stack(lambda a: call(_SINGULAR_VALUES, a)[0], (2,), tall)


@implements(np.linalg.svd)
def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    (a,) = floats(a)
    check_stacked(a)
    if hermitian:
        a = _symmetric("svd", a, "L")
    if not compute_uv:
        return _svdvals(a)
    _check_size("svd", min(a.shape[-2:]))
    return SVDResult(*over_stack(partial(_svd_matrix, full=bool(full_matrices)), (2,), a))


# ---- pseudo-inverse ------------------------------------------------------------------------------


def _pseudo_inverse_body(a: Any, rtol: Any) -> tuple[Any]:
    u, s, vt = singular(a, vectors=True)
    keep = s > rtol * s[0]
    inverse = np.where(keep, 1.0 / np.where(keep, s, 1.0), 0.0).astype(a.dtype)
    return ((vt.T * inverse) @ u.T,)


def _pseudo_inverse_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    """The derivative at constant rank (Golub, Pereyra, SIAM J. Numer. Anal. 10(2), 1973)."""
    a, x = operands[0], results[0]
    eye = np.eye(len(a), dtype=a.dtype)
    outside, gram = eye - a @ x, x @ x.T
    inside = np.eye(len(x), dtype=a.dtype) - x @ a
    found = []
    for da, _ in rows:
        dx = gram @ (da.T @ outside) + inside @ (da.T @ (x.T @ x)) - x @ (da @ x)
        found.append([dx])
    return found


_PSEUDO_INVERSE = MatrixFunction("pinv", _pseudo_inverse_body, _pseudo_inverse_push)


@implements(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Pseudo-inverse by singular values, those below ``rtol`` times the largest left out."""
    (a,) = floats(a)
    check_stacked(a)
    if hermitian:
        a = _symmetric("pinv", a, "L")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    elif rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    _check_size("pinv", min(a.shape[-2:]))
    wide = a.shape[-2] < a.shape[-1]
    cut = full_like(a, rcond, shape=np.shape(rcond))
    tall = a.mT if wide else a
    x = over_stack(lambda m, r: call(_PSEUDO_INVERSE, m, r)[0], (2, 0), tall, cut)
    return x.mT if wide else x
