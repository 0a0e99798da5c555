"""Determinants, with derivatives that hold at singular matrices too.

Legend: cof(A) is the matrix of cofactors, d(det)/dA; A = U diag(s) V^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F32, F64
from archimedes.symbolic.core.array_scans import scan_rows
from archimedes.symbolic.core.conversion import lift, wrap
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg.elimination import INVERSE, UNROLLED, eliminate, rows_of
from archimedes.symbolic.linalg.factorizations import loop_triangle
from archimedes.symbolic.linalg.jacobi import singular
from archimedes.symbolic.linalg.matrices import (
    MAX_SPECTRAL,
    is_large,
    multiply_scaled,
    split_exponent,
)
from archimedes.symbolic.linalg.matrix_functions import MatrixFunction, branch, call
from archimedes.symbolic.linalg.spectral import singular_function

__all__ = ["DETERMINANT", "LOG_DETERMINANT"]

#: Largest max|A| max|A^-1| for which cofactors are taken from the inverse, by dtype code: it is
#: then good for about ten digits (float32: four).
_WELL_CONDITIONED = {F64: 1e5, F32: 1e2}


def _triangle(a: Traced) -> tuple[list[Any], Any]:
    """Return the pivots of a matrix and the traced bool that says whether they change sign."""
    trace = current_trace()
    e, work = rows_of(a)
    odd = eliminate(e, work, guard=True)
    return [wrap(work[k][k], a.code, trace) for k in range(len(a))], wrap(odd, B8, trace)


def _determinant_body(a: Traced) -> tuple[Any]:
    pivots, odd = _triangle(a)
    product = multiply_scaled(pivots)
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
    product = s[0] * 0.0 + 1.0
    for k in range(len(s)):
        if k not in left_out:
            product = product * s[k]
    return product


def _factors(a: Traced) -> tuple[Any, Any, Any]:
    """Return U, s and V^T with det(U V^T) = 1, for which the last of s may be negative."""
    u, s, vt = singular(a, vectors=True)
    pivots, odd = _triangle(u @ vt)
    sign = np.where(odd, -1.0, 1.0).astype(a.dtype)
    for pivot in pivots:
        sign = sign * np.sign(pivot)
    last = np.concatenate([np.ones(len(s) - 1, dtype=a.dtype), sign.reshape(1)])
    return u * last, s * last, vt


def _cofactors_body(a: Traced, det: Traced) -> tuple[Any]:
    """det A^-T where the inverse is good; else U diag(products of the other s) V^T."""
    inverse = call(INVERSE, a)[0]
    is_good = np.max(np.abs(a)) * np.max(np.abs(inverse)) <= _WELL_CONDITIONED[a.code]

    def by_inverse(a: Traced, inverse: Traced, det: Traced) -> list[Traced]:
        return [det[0] * inverse.T]

    def by_values(a: Traced, inverse: Traced, det: Traced) -> list[Traced]:
        u, s, vt = _factors(a)
        others = np.stack([_products_without(s, k) for k in range(len(a))])
        return [(u * others) @ vt]

    (cofactors,) = branch(is_good, [a, inverse, det], by_inverse, by_values)
    return (cofactors,)


def _cofactors_push(
    operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]
) -> Traced:
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
    if len(a) <= UNROLLED:
        return _minor_cofactors(a)
    if len(a) > MAX_SPECTRAL or is_large(a):
        return det * call(INVERSE, a)[0].T
    return call(_COFACTORS, a, det.reshape(1))[0]


def _determinant_push(
    operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]
) -> Traced:
    gradient = _cofactors(operands[0], results[0])
    return [[np.sum(gradient * da)] for (da,) in rows]


def _log_determinant_body(a: Traced) -> tuple[Any, Any]:
    pivots, odd = _triangle(a)
    sign = np.where(odd, -1.0, 1.0).astype(a.dtype)
    for pivot in pivots:
        sign = sign * np.sign(pivot)
    return sign, np.sum(np.stack([np.log(np.abs(pivot)) for pivot in pivots]))


def _log_determinant_push(
    operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]
) -> Traced:
    """d log|det A| = tr(A^-1 dA); the sign is locally constant."""
    inverse = call(INVERSE, operands[0])[0].T
    return [[np.zeros_like(results[0]), np.sum(inverse * da)] for (da,) in rows]


def _loop_determinant(a: Traced) -> tuple[Any]:
    pivots, odd = loop_triangle(a)

    def step(carry: list[Any], row: list[Any]) -> Traced:
        (mantissa, exponent), (pivot,) = carry, row
        m, e = split_exponent(pivot.astype(float))
        mantissa, shift = split_exponent(mantissa * m)
        return [mantissa, exponent + e + shift], []

    start = [lift(np.float64(1.0)), lift(np.int64(0))]
    mantissa, exponent = scan_rows(step, start, [pivots])[0]
    product = np.ldexp(mantissa, exponent).astype(a.dtype)
    return (np.where(odd, -product, product),)


def _loop_log_determinant(a: Traced) -> tuple[Any, Any]:
    pivots, odd = loop_triangle(a)
    sign = np.prod(np.sign(pivots))
    return np.where(odd, -sign, sign), np.sum(np.log(np.abs(pivots)))


DETERMINANT = MatrixFunction(
    "det", _determinant_body, _determinant_push, loop_body=_loop_determinant
)
LOG_DETERMINANT = MatrixFunction(
    "slogdet", _log_determinant_body, _log_determinant_push, loop_body=_loop_log_determinant
)
