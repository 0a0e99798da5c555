"""Pseudo-inverses and least squares, for matrices of any rank.

Legend: A = U diag(s) V^T; X = V diag(f) U^T with f = 1 / s where s is kept and 0 where it is cut,
that is, where s <= rcond max(s). x = X b is the shortest of all solutions of least squares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from archimedes.checks import is_traced
from archimedes.symbolic.core.array_scans import scan_rows
from archimedes.symbolic.core.conversion import floats, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.traced_value import Operand, Traced, as_constant
from archimedes.symbolic.linalg import matrices, matrix_functions
from archimedes.symbolic.linalg.factorizations import factorize_scaled
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call
from archimedes.symbolic.linalg.spectral import SINGULAR, singular, symmetric
from archimedes.symbolic.numpy_functions.structural import full_like

__all__: list[str] = []  # it fills the table


#: Gives dX b as a function of dA and b, for a matrix A, its pseudo-inverse X, and rcond.
Derivative = Callable[[Traced, Traced, Operand], Callable[[Traced, Traced], Traced]]
#: Singular values cut at so many times the rounding errors of a matrix are rounding errors.
_NOISE = 4.0
#: Sweeps of Jacobi's method over a large matrix: see ``spectral.py``.
_MAX_SWEEPS = 30


def _round_robin(n: int) -> np.ndarray:
    """Return, for each round in which all pairs of n meet once, the partner of each."""
    even = n + n % 2
    order = list(range(even))
    rounds = []
    for _ in range(even - 1):
        partner = np.arange(n)
        for i, j in zip(order[: even // 2], reversed(order[even // 2 :])):
            if max(i, j) < n:  # the one who meets nobody keeps itself
                partner[i], partner[j] = j, i
        rounds.append(partner)
        order = [order[0], order[-1], *order[1:-1]]
    return np.array(rounds).reshape(-1, n)


def _orthogonalize_in_loops(a: Traced) -> tuple[Any, Any]:
    """Return W and V with W = A V, the columns of W orthogonal, by one-sided Jacobi rotations.

    Each round rotates disjoint pairs of columns, all at once. (Golub, Van Loan, Matrix
    Computations, 4th ed., 8.6.3 and 8.5.6.)
    """
    n = a.shape[1]
    eps = float(np.finfo(a.dtype).eps)
    rounds = _round_robin(n)
    first = np.arange(n) < rounds

    def turn(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        (w, v, left, short), (partner, is_first) = carry, row
        other = w[partner]
        pp, pq = np.sum(w * w, axis=1), np.sum(w * other, axis=1)
        qq = pp[partner]
        side = np.where(is_first, 1.0, -1.0).astype(a.dtype)
        idle = (pq == 0.0) | (partner == np.arange(n))
        theta = side * (qq - pp) / np.where(idle, 1.0, pq + pq).astype(a.dtype)
        tangent = np.copysign(1.0 / (np.abs(theta) + np.sqrt(theta * theta + 1.0)), theta)
        t = np.where(idle, 0.0, tangent).astype(a.dtype)
        c = 1.0 / np.sqrt(t * t + 1.0)
        s = side * t * c
        cosine = np.abs(pq) / np.sqrt(pp * qq)
        counts = ~idle & ~(np.minimum(pp, qq) <= short)
        left = np.maximum(left, np.max(np.where(counts, cosine, 0.0).astype(a.dtype)))
        w, v = (c[:, None] * x - s[:, None] * x[partner] for x in (w, v))
        return [w, v, left, short], []

    def sweep(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        zero = full_like(a, 0.0, shape=())
        start = [*carry[:2], zero, *shared]
        return scan_rows(turn, start, [lift(rounds), lift(first)])[0][:3]

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        return ~(carry[2] <= 2 * n * eps)

    w, v = a.T, lift(np.eye(n, dtype=a.dtype))
    short = (4 * n * eps) ** 2 * np.max(np.sum(w * w, axis=1))
    start = [w, v, full_like(a, 1.0, shape=())]
    w, v, _ = matrix_functions.repeat_while(
        is_unfinished, sweep, start, [short], _MAX_SWEEPS, blocks=True
    )
    return w.T, v.T


def _singular(a: Traced) -> tuple[Any, Any, Any]:
    """Return U, s and V^T of a matrix with m >= n; s in no order where it is large."""
    if not matrices.is_large(a):
        return singular(a, vectors=True)
    scaled, scale = matrices.power_of_two(a)
    w, v = _orthogonalize_in_loops(scaled)
    s = np.sqrt(np.sum(w * w, axis=0))
    return w / np.where(s == 0.0, 1.0, s).astype(a.dtype), s * scale, v.T


def _reciprocals(s: Traced, rcond: Operand) -> tuple[Any, Any]:
    """Return which singular values are kept, and f."""
    keep = s > rcond * np.max(s)
    return keep, np.where(keep, 1.0 / np.where(keep, s, 1.0), 0.0).astype(s.dtype)


def _solve_triangle(t: Traced, c: Traced, rcond: Operand) -> tuple[Any, Any]:
    """Return T^+ c for a square matrix, and how many singular values are kept.

    Where T^-1 shows that all are kept, which is the usual case, none of them is computed:
    s_1 <= n max|T| and 1 / s_n <= n max|T^-1|.
    """
    n = len(t)
    inverse = np.linalg.inv(t)
    full = n * n * np.max(np.abs(t)) * np.max(np.abs(inverse)) * rcond < 1.0

    def regular(t: Traced, c: Traced, rcond: Operand) -> list[Any]:
        return [np.linalg.solve(t, c), full_like(t, float(n), shape=())]

    def deficient(t: Traced, c: Traced, rcond: Operand) -> list[Any]:
        u, s, vt = _singular(t)
        keep, f = _reciprocals(s, rcond)
        return [vt.T @ (f[:, None] * (u.T @ c)), np.sum(keep.astype(t.dtype))]

    solution, rank = matrix_functions.branch(full, [t, c, rcond], regular, deficient)
    return solution, rank


def _least_squares(a: Traced, b: Traced, rcond: Operand) -> tuple[Any, Any]:
    """Return x and the rank; b is None for the pseudo-inverse."""
    m, n = a.shape
    if m >= n:
        q, r = factorize_scaled(a, n)
        return _solve_triangle(r, q.T if b is None else q.T @ b, rcond)
    q, r = factorize_scaled(a.T, m)
    c = lift(np.eye(m, dtype=a.dtype)) if b is None else b
    y, rank = _solve_triangle(r.T, c, rcond)
    return q @ y, rank


# ---- derivatives ---------------------------------------------------------------------------------


def _constant_rank(a: Traced, x: Traced, rcond: Operand) -> Callable[[Traced, Traced], Traced]:
    """Return dX b as a function of dA and b, where all that is cut is zero.

    (Golub, Pereyra, SIAM J. Numer. Anal. 10(2), 1973.)
    """

    def change(da: Traced, b: Traced) -> Traced:
        y = x @ b
        outside, back = da.T @ (b - a @ y), da.T @ (x.T @ y)
        return x @ (x.T @ outside) + (back - x @ (a @ back)) - x @ (da @ y)

    return change


def _truncated(a: Traced, x: Traced, rcond: Operand) -> Callable[[Traced, Traced], Traced]:
    """Return dX b as a function of dA and b, where what is cut may be large.

    With P = U^T dA V, dX^T = U C V^T + (dA V - U P) diag(f^2) V^T, where C_ij is -f_i f_j P_ji if
    both values are kept, f_i^2 (P_ij + r P_ji) / (1 - r^2) with r = s_j / s_i if only s_i is, and
    0 if both are cut: the derivative of a function f of singular values.
    (Noferini, SIAM J. Matrix Anal. Appl. 38(2), 2017.)
    """
    tall = a.shape[0] >= a.shape[1]
    matrix = a if tall else a.T
    u, s, vt = _singular(matrix) if matrices.is_large(a) else call(SINGULAR[False], matrix)
    keep, f = _reciprocals(s, rcond)
    mixed = keep[:, None] ^ keep
    larger = f[:, None] + f
    ratio = np.where(mixed, np.where(keep[:, None], s, s[:, None]) * larger, 0.0).astype(a.dtype)
    weight = np.where(mixed, larger * larger / ((1.0 - ratio) * (1.0 + ratio)), 0.0).astype(a.dtype)
    both = f[:, None] * f

    def change(da: Traced, b: Traced) -> Traced:
        d = da if tall else da.T
        dv = d @ vt.T
        p = u.T @ dv
        c = weight * (p + ratio * p.T) - both * p.T
        out = (dv - u @ p) * (f * f)
        if tall:
            return vt.T @ (c.T @ (u.T @ b) + out.T @ b)
        return (u @ c + out) @ (vt @ b)

    return change


def _functions(change: Derivative) -> tuple[MatrixFunction, MatrixFunction]:
    """Return pinv and lstsq as recorded functions that have this derivative."""

    def invert(a: Traced, rcond: Operand) -> tuple[Any]:
        return (_least_squares(a, None, rcond)[0],)

    def push_inverse(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
        a, rcond = operands
        push = change(a, results[0], rcond)
        eye = lift(np.eye(len(a), dtype=a.dtype))
        return [[push(da, eye)] for da, _ in rows]

    def push_solution(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
        a, b, rcond = operands
        (x,) = call(inverse, a, rcond)
        push = change(a, x, rcond)
        zero = np.zeros_like(results[1])
        return [[push(da, b) + x @ db, zero] for da, db, _ in rows]

    inverse = MatrixFunction("pinv", invert, push_inverse, loop_body=invert)
    solution = MatrixFunction("lstsq", _least_squares, push_solution, loop_body=_least_squares)
    return inverse, solution


_AT_CONSTANT_RANK = _functions(_constant_rank)
_TRUNCATED = _functions(_truncated)


def _functions_for(a: Traced, rcond: Operand) -> tuple[MatrixFunction, MatrixFunction]:
    """Return those whose derivative is right for what ``rcond`` cuts."""
    value = as_constant(rcond)
    noise = _NOISE * max(a.shape[-2:]) * np.finfo(a.dtype).eps
    is_noise = not is_traced(value) and bool(np.all(value <= noise))
    return _AT_CONSTANT_RANK if is_noise else _TRUNCATED


# ---- NumPy's names -------------------------------------------------------------------------------


@implements(np.linalg.pinv)
def _pinv(
    a: Operand, rcond: Operand = None, hermitian: bool = False, *, rtol: Operand = np._NoValue
) -> Traced:
    """Pseudo-inverse; singular values up to ``rtol`` times the largest count as zero."""
    (a,) = floats(a)
    matrices.check_stacked(a)
    if hermitian:
        a = symmetric("pinv", a, "L")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    elif rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    if 0 in a.shape[-2:]:
        return a.mT.copy()
    cut = full_like(a, rcond, shape=np.shape(rcond))
    function = _functions_for(a, cut)[0]
    return matrices.over_stack(lambda m, r: call(function, m, r)[0], (2, 0), a, cut)


def _cutoff(rcond: Operand, a: Traced) -> Traced:
    """Return what lstsq means by ``rcond``: outside of (0, 1) LAPACK takes the precision."""
    eps = np.finfo(a.dtype).eps
    if rcond is None:
        rcond = eps * max(a.shape)
    cut = full_like(a, rcond, shape=())
    chosen: Any = np.where((cut <= 0) | (cut >= 1), eps, cut)
    return chosen.astype(a.dtype)


def _solve_constant(a: np.ndarray, b: Traced, rcond: float) -> tuple[Any, int, np.ndarray]:
    """Solve for a matrix that is known while recording."""
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    keep = s > rcond * np.max(s, initial=0.0)
    f = np.divide(1.0, s, where=keep, out=np.zeros_like(s))
    return vt.T @ (f[:, None] * (u.T @ b)), int(np.sum(keep)), s


@implements(np.linalg.lstsq)
def _lstsq(a: Operand, b: Operand, rcond: Operand = None) -> Traced:
    """Solve in the least squares sense; of several solutions the shortest.

    Two things differ from NumPy's, where the matrix is not known while recording: the residuals
    are given for every rank if m > n (NumPy's shape depends on the rank), and of matrices too
    large for ``np.linalg.svdvals`` the singular values, last in the result, are None.
    """
    a, b = floats(a, b)
    for x in (a, b if b.ndim != 1 else b[:, None]):
        if x.ndim != 2:
            raise LinAlgError(f"{x.ndim}-dimensional array given. Array must be two-dimensional")
    if len(a) != len(b):
        raise LinAlgError("Incompatible dimensions")
    right = b[:, None] if b.ndim == 1 else b
    m, n = a.shape
    rank: Any
    values: Any
    if right.shape[1] == 0:  # NumPy tells the rank all the same
        x, _, rank, values = _lstsq(a, np.zeros_like(a, shape=(m, 1)), rcond)
        return x[:, :0], full_like(a, 0.0, shape=(0,)), rank, values
    if 0 in (m, n):
        x, rank = np.zeros_like(a, shape=(n, right.shape[1])), 0
        values = full_like(a, 0.0, shape=(0,))
    elif not is_traced(matrix := as_constant(a)) and not is_traced(
        cut := as_constant(_cutoff(rcond, a))
    ):
        x, rank, values = _solve_constant(matrix, right, float(cut))
    else:
        cut = _cutoff(rcond, a)
        x, count = call(_functions_for(a, cut)[1], a, right, cut)
        rank = count.astype(int)
        values = np.linalg.svdvals(a) if min(m, n) <= matrices.MAX_SPECTRAL else None
    if m > n and (not isinstance(rank, int) or rank == n):
        residuals = np.sum(np.square(right - a @ x), axis=0)
    else:
        residuals = full_like(a, 0.0, shape=(0,))
    return x[:, 0] if b.ndim == 1 else x, residuals, rank, values
