"""Solving, inverting, determinants, products and norms of matrices.

Unlike NumPy's, the functions do not raise for a matrix that turns out to be singular when the
program runs: its results are inf or nan. One that its literal zeros make singular raises while it
is being recorded.

A matrix with literal zeros is solved block by block (``block_triangular``).

Derivatives of determinants hold at singular matrices too. Legend: cof(A) is the matrix of
cofactors, d(det)/dA; A = U diag(s) V^T.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import mul
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from archimedes.graph.dtypes import B8, F32, F64
from archimedes.symbolic.core.array_scans import scan_rows
from archimedes.symbolic.core.conversion import floats, lift, wrap
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg import factorizations, matrices, matrix_functions
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call
from archimedes.symbolic.linalg.spectral import singular, singular_function
from archimedes.symbolic.numpy_functions.structural import full_like
from archimedes.symbolic.recorded.numpy_source import implement_by_source

__all__: list[str] = []  # it fills the table

SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


def _blocks(a: Traced) -> Traced:
    if matrices.is_large(a):
        return [(list(range(len(a))), list(range(len(a))))]
    zeros = [value == 0 for value in matrices.values_of(a)]
    return matrices.block_triangular(~np.array(zeros, dtype=bool).reshape(a.shape))


def _part(a: Traced, rows: list[int], columns: list[int]) -> Traced:
    """Return some rows and columns of a matrix; itself, where they are all."""
    return a if rows == columns == list(range(len(a))) else a[rows][:, columns]


def _solve_matrix(a: Traced, b: Traced, dense: Traced = factorizations.solve_dense) -> Traced:
    """Solve block after block; ``dense`` solves one diagonal block."""
    blocks = _blocks(a)
    if blocks is None:
        raise LinAlgError("Singular matrix: a pattern of literal zeros leaves no pivot")
    if len(blocks) == 1:
        return dense(a, b)
    x = np.zeros_like(b)
    solved: list[int] = []
    for rows, columns in blocks:
        rest = b[rows]
        for j in sorted(solved):
            rest = rest - a[rows, j][:, None] * x[j]
        x[columns] = dense(a[rows][:, columns], rest)
        solved += columns
    return x


@implements(np.linalg.solve)
def _solve(a: Operand, b: Operand) -> Traced:
    a, b = floats(a, b)
    matrices.check_square(a)
    n = a.shape[-1]
    vector = b.ndim == 1
    if b.ndim == 0 or b.shape[-1 if vector else -2] != n:
        signature = "(m,m),(m)->(m)" if vector else "(m,m),(m,n)->(m,n)"
        raise ValueError(
            f"solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"{signature}: a has shape {a.shape}, b has shape {b.shape}"
        )
    x = matrices.over_stack(_solve_matrix, (2, 2), a, b[:, None] if vector else b)
    return x[..., 0] if vector else x


def _inverse_times(a: Traced, b: Traced) -> Traced:
    return factorizations.divide(b, a[0, 0]) if len(a) == 1 else factorizations.invert(a) @ b


def _inv_matrix(a: Traced) -> Traced:
    if matrices.is_large(a):
        return factorizations.invert(a)
    return _solve_matrix(a, floats(np.eye(len(a), dtype=a.dtype))[0], _inverse_times)


implements(np.linalg.inv)(partial(matrices.over_square, _inv_matrix))


# ---- determinants ----------------------------------------------------------------------------

#: Largest max|A| max|A^-1| for which cofactors are taken from the inverse, by dtype code: it is
#: then good for about ten digits (float32: four).
_WELL_CONDITIONED = {F64: 1e5, F32: 1e2}


def _triangle(a: Traced) -> tuple[Traced, Traced]:
    """Return the pivots of a matrix, and whether an odd number of rows moved.

    A zero pivot eliminates nothing.
    """
    if not matrices.is_large(a):
        e, work = factorizations.rows_of(a)
        odd = factorizations.eliminate(e, work, guard=True)
        return wrap([work[k][k] for k in range(len(a))], a.code), wrap(odd, B8)
    i = np.arange(len(a))

    def step(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        (work, odd), (k,) = carry, row
        column = work[:, k]
        p = np.argmax(np.where(i >= k, np.abs(column), -1.0))
        source = np.where(i == k, p, np.where(i == p, k, i))
        pivots, pivot = work[p], column[p]
        moved = column[source]
        divisor = np.where(pivot == 0.0, 1.0, pivot).astype(a.dtype)
        factor = np.where((i > k) & (pivot != 0.0), moved / divisor, 0.0).astype(a.dtype)
        return [work[source] - factor[:, None] * pivots, odd ^ (p != k)], [pivot]

    (_, odd), (pivots,) = scan_rows(step, [a, lift(np.bool_(False))], [lift(i)])
    return pivots, odd


def _determinant_body(a: Traced) -> tuple[Any]:
    pivots, odd = _triangle(a)
    product = matrices.multiply_scaled(pivots)
    return (np.where(odd, -product, product),)


def _minor_cofactors(a: Traced) -> Traced:
    """Return cof(A) by expansion into minors, each computed once."""
    n = len(a)
    minors: dict[tuple[tuple[int, ...], tuple[int, ...]], Traced] = {}

    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Traced:
        if len(rows) == 1:
            return a[rows[0], columns[0]]
        if (rows, columns) not in minors:
            total: Any = None
            for k, column in enumerate(columns):
                rest = columns[:k] + columns[k + 1 :]
                term = a[rows[0], column] * minor(rows[1:], rest)
                total = term if total is None else total - term if k % 2 else total + term
            minors[rows, columns] = total
        return minors[rows, columns]

    def without(k: int) -> tuple[int, ...]:
        return tuple(i for i in range(n) if i != k)

    signed = [
        [minor(without(i), without(j)) * (-1.0) ** (i + j) for j in range(n)] for i in range(n)
    ]
    return np.stack([np.stack(row) for row in signed])


def _products_without(s: Traced, *left_out: int) -> Traced:
    """Return the product of all values but some."""
    factors = [s[k] for k in range(len(s)) if k not in left_out]
    return reduce(mul, factors, s[0] * 0.0 + 1.0)


def _factors(a: Traced) -> tuple[Any, Any, Any]:
    """Return U, s and V^T with det(U V^T) = 1, for which the last of s may be negative."""
    u, s, vt = singular(a, vectors=True)
    pivots, odd = _triangle(u @ vt)
    sign: Traced = np.prod(np.sign(pivots))
    sign = np.where(odd, -sign, sign)
    last = np.concatenate([np.ones(len(s) - 1, dtype=a.dtype), sign.reshape(1)])
    return u * last, s * last, vt


def _cofactors_body(a: Traced, det: Traced) -> tuple[Any]:
    """det A^-T where the inverse is good; else U diag(products of the other s) V^T."""
    inverse = factorizations.invert(a)
    is_good = np.max(np.abs(a)) * np.max(np.abs(inverse)) <= _WELL_CONDITIONED[a.code]

    def by_inverse(a: Traced, inverse: Traced, det: Traced) -> list[Traced]:
        return [det[0] * inverse.T]

    def by_values(a: Traced, inverse: Traced, det: Traced) -> list[Traced]:
        u, s, vt = _factors(a)
        others = np.stack([_products_without(s, k) for k in range(len(a))])
        return [(u * others) @ vt]

    (cofactors,) = matrix_functions.branch(is_good, [a, inverse, det], by_inverse, by_values)
    return (cofactors,)


def _cofactors_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """P = U^T dA V: d cof = U C V^T without any division.

    C_ij = -P_ji times the other s, and C_ii is the sum over k of P_kk times the others: the
    cofactors of diag(s) + P to first order.
    """
    u, s, vt = call(_FACTORS, operands[0])
    n = len(s)
    others = np.stack(
        [
            np.stack([_products_without(s, i, j) * (0.0 if i == j else 1.0) for j in range(n)])
            for i in range(n)
        ]
    )
    tangents = []
    for da, _ in rows:
        p = (u.T @ da) @ vt.T
        diagonal = others @ np.diagonal(p)
        tangents.append([(u @ (np.diag(diagonal) - others * p.T)) @ vt])
    return tangents


_FACTORS = singular_function("factors of det", _factors, "factors of det")
_COFACTORS = MatrixFunction("cofactors", _cofactors_body, _cofactors_push)


def _cofactors(a: Traced, det: Traced) -> Traced:
    if len(a) <= factorizations.UNROLLED:
        return _minor_cofactors(a)
    if len(a) > matrices.MAX_SPECTRAL or matrices.is_large(a):
        return det * factorizations.invert(a).T
    return call(_COFACTORS, a, det.reshape(1))[0]


def _determinant_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    gradient = _cofactors(operands[0], results[0])
    return [[np.sum(gradient * da)] for (da,) in rows]


def _log_determinant_body(a: Traced) -> tuple[Traced, Traced]:
    pivots, odd = _triangle(a)
    sign = np.prod(np.sign(pivots))
    return np.where(odd, -sign, sign), np.sum(np.log(np.abs(pivots)))


def _log_determinant_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """d log|det A| = tr(A^-1 dA); the sign is locally constant."""
    inverse = factorizations.invert(operands[0]).T
    return [[np.zeros_like(results[0]), np.sum(inverse * da)] for (da,) in rows]


def _loop_determinant(a: Traced) -> tuple[Any]:
    pivots, odd = _triangle(a)

    def step(carry: list[Any], row: list[Any]) -> Traced:
        (mantissa, exponent), (pivot,) = carry, row
        m, e = matrices.split_exponent(pivot.astype(float))
        mantissa, shift = matrices.split_exponent(mantissa * m)
        return [mantissa, exponent + e + shift], []

    start = [lift(np.float64(1.0)), lift(np.int64(0))]
    mantissa, exponent = scan_rows(step, start, [pivots])[0]
    product = np.ldexp(mantissa, exponent).astype(a.dtype)
    return (np.where(odd, -product, product),)


DETERMINANT = MatrixFunction(
    "det", _determinant_body, _determinant_push, loop_body=_loop_determinant
)
LOG_DETERMINANT = MatrixFunction(
    "slogdet", _log_determinant_body, _log_determinant_push, loop_body=_log_determinant_body
)


def _block_determinant(a: Traced) -> Traced:
    if len(a) == 1:
        return a[0, 0]
    if len(a) == 2:
        # As accurate as elimination for two rows, and smooth at singular matrices.
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return call(DETERMINANT, a)[0]


def _det_matrix(a: Traced) -> Traced:
    blocks = _blocks(a)
    one = full_like(a, 1.0, shape=())
    if blocks is None:
        return one * 0.0
    if len(blocks) == 1:
        return _block_determinant(a)
    factors: list[Any] = []
    for rows, columns in blocks:
        block = a[rows][:, columns]
        if len(rows) > 1:  # its determinant alone might overflow
            scaled, scales = zip(*(matrices.power_of_two(row) for row in block))
            block = np.stack(scaled)
            factors += scales
        factors.append(_block_determinant(block))
    if not factors:
        return one
    return matrices.multiply_scaled(factors) * float(matrices.permutation_sign(blocks))


implements(np.linalg.det)(partial(matrices.over_square, _det_matrix))


def _slogdet_matrix(a: Traced) -> tuple[Any, Any]:
    blocks = _blocks(a)
    one = full_like(a, 1.0, shape=())
    if blocks is None:
        return one * 0.0, one * -np.inf
    sign, log = one * float(matrices.permutation_sign(blocks)), one * 0.0
    for rows, columns in blocks:
        block = _part(a, rows, columns)
        if len(rows) == 1:
            more = np.sign(block[0, 0]), np.log(np.abs(block[0, 0]))
        else:
            more = call(LOG_DETERMINANT, block)
        sign, log = sign * more[0], log + more[1]
    return sign, log


@implements(np.linalg.slogdet)
def _slogdet(a: Operand) -> Traced:
    return SlogdetResult(*matrices.over_square(_slogdet_matrix, a))


# ---- products ---------------------------------------------------------------------------------


implement_by_source(
    np.linalg.matrix_power, np.linalg.multi_dot, np.linalg.tensorsolve, np.linalg.tensorinv
)


# ---- norms, and the condition number -----------------------------------------------------------
# Derivatives at the origin, where a norm has a corner, are zero: the least subgradient.

Axes = tuple[int, ...]


def _away_from_zero(function: Callable[[Any], Any], x: Traced) -> Traced:
    """f(x) for an f with f(0) = 0 whose derivative is infinite there: made zero."""
    at_zero = x == 0
    safe = np.where(at_zero, 1.0, x).astype(x.dtype)
    return np.where(at_zero, 0.0, function(safe)).astype(x.dtype)


def _euclidean(x: Traced, axes: Axes) -> Traced:
    return _away_from_zero(np.sqrt, np.sum(x * x, axis=axes))


def _power_sum(x: Traced, axes: Axes, order: float) -> Traced:
    total = np.sum(np.abs(x) ** order, axis=axes)
    if order < 0:
        return total ** (1.0 / order)
    return _away_from_zero(lambda t: t ** (1.0 / order), total)


_VECTOR: dict[float | None, Callable[[Any, Axes], Any]] = {
    np.inf: lambda x, axes: np.max(np.abs(x), axis=axes),
    -np.inf: lambda x, axes: np.min(np.abs(x), axis=axes),
    0: lambda x, axes: np.sum((x != 0).astype(x.dtype), axis=axes),
    1: lambda x, axes: np.sum(np.abs(x), axis=axes),
    2: _euclidean,
    None: _euclidean,
}


def _sums(across: int, choose: Callable[..., Any]) -> Callable[[Any], Any]:
    """Largest or smallest of the sums of magnitudes along rows (-1) or columns (-2)."""
    return lambda x: choose(np.sum(np.abs(x), axis=across), axis=-1)


_MATRIX: dict[Any, Callable[[Any], Any]] = {
    1: _sums(-2, np.max),
    -1: _sums(-2, np.min),
    np.inf: _sums(-1, np.max),
    -np.inf: _sums(-1, np.min),
    2: lambda x: np.linalg.svdvals(x)[..., 0],
    -2: lambda x: np.linalg.svdvals(x)[..., -1],
    "nuc": lambda x: np.sum(np.linalg.svdvals(x), axis=-1),
    "fro": lambda x: _euclidean(x, (-2, -1)),
    "f": lambda x: _euclidean(x, (-2, -1)),
    None: lambda x: _euclidean(x, (-2, -1)),
}


@implements(np.linalg.norm)
def _norm(x: Operand, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Traced:
    (x,) = floats(x)
    if axis is None and ord is None:
        axes: Axes = tuple(range(x.ndim))
        result = _euclidean(x, axes)
    else:
        np.linalg.norm(np.ones((1,) * x.ndim), ord, axis)  # raises NumPy's errors
        every = range(x.ndim) if axis is None else axis
        axes = np.lib.array_utils.normalize_axis_tuple(every, x.ndim)
        if len(axes) == 2:
            result = _MATRIX[ord](np.moveaxis(x, axes, (-2, -1)))
        else:
            result = _VECTOR[ord](x, axes) if ord in _VECTOR else _power_sum(x, axes, ord)
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result


implement_by_source(np.linalg.vector_norm, np.linalg.matrix_norm)


@implements(np.linalg.cond)
def _cond(x: Operand, p: Operand = None) -> Traced:
    """Condition number; inf for a singular matrix."""
    (x,) = floats(x)
    if x.size == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    matrices.check_stacked(x)
    if p in (None, 2, -2):
        values = np.linalg.svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        result = smallest / largest if p == -2 else largest / smallest
    else:
        result = _norm(x, p, (-2, -1)) * _norm(np.linalg.inv(x), p, (-2, -1))
    healthy = np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    infinite = full_like(x, np.inf, shape=())
    return np.where(np.isnan(result) & healthy, infinite, result)
