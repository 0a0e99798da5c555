"""Eigenvalues of general matrices: the shifted QR algorithm, in complex arithmetic by pairs.

Reduction to Hessenberg form by rotations, then QR steps with Wilkinson's shift in a ``While``
region until every entry below the diagonal is negligible. (Golub, Van Loan, Matrix Computations,
4th ed., 7.4 and 7.5.) Negligible entries are set to zero, which cuts the matrix into blocks; the
shift is that of the lowest block that is left, and a step does nothing to the others but turn
them. Derivatives are in closed form, by the adjugate of z - A (Faddeev and Le Verrier).

Legend: h is a complex matrix, c and s make a rotation, z is an eigenvalue.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from archimedes.symbolic.core.ordering import exchanges
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg import matrix_functions
from archimedes.symbolic.linalg.matrices import over_square, power_of_two
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call
from archimedes.symbolic.numpy_functions.complex_pairs import ComplexPair
from archimedes.symbolic.numpy_functions.structural import full_like

__all__: list[str] = []

#: Largest matrix: a step is unrolled.
MAX_GENERAL = 10
#: Steps for each eigenvalue; two or three are usual.
STEPS = 30


def _where(test: Traced, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    return ComplexPair(np.where(test, x.real, y.real), np.where(test, x.imag, y.imag))


def _size(z: ComplexPair) -> Traced:
    """Return |re z| + |im z|."""
    return np.abs(z.real) + np.abs(z.imag)


def _square(z: ComplexPair) -> Traced:
    """Return |z|^2."""
    return z.real * z.real + z.imag * z.imag


def _root(z: ComplexPair) -> ComplexPair:
    """Return the square root with a real part that is not negative."""
    length = np.sqrt(_square(z))
    real = np.sqrt(np.maximum(0.0, 0.5 * (length + z.real)))
    imag = np.sqrt(np.maximum(0.0, 0.5 * (length - z.real)))
    return ComplexPair(real, np.copysign(imag, z.imag))


def _hessenberg(h: Traced) -> None:
    """Zero what is below the first subdiagonal of a real matrix, by rotations of row pairs."""
    n = len(h)
    for k in range(n - 2):
        for i in range(n - 1, k + 1, -1):
            x, y = h[i - 1, k], h[i, k]
            is_zero = y == 0.0
            length = np.where(is_zero, 1.0, np.sqrt(x * x + y * y))
            c, s = np.where(is_zero, 1.0, x / length), np.where(is_zero, 0.0, y / length)
            h[i - 1], h[i] = c * h[i - 1] + s * h[i], c * h[i] - s * h[i - 1]
            h[i, k] = 0.0
            a, b = h[:, i - 1], h[:, i]
            h[:, i - 1], h[:, i] = c * a + s * b, c * b - s * a


def _drop_negligible(h: ComplexPair, eps: float) -> None:
    """Set entries below the diagonal to zero that are as small as rounding errors beside it."""
    zero = _zero_like(h)
    for k in range(1, len(h)):
        beside = _size(h[k - 1, k - 1]) + _size(h[k, k])
        # Beside a block of zeros it is compared with the whole matrix, whose size is about 1.
        is_small = _size(h[k, k - 1]) <= eps * np.maximum(beside, eps)
        h[k, k - 1] = _where(is_small, zero, h[k, k - 1])


def _zero_like(h: ComplexPair) -> ComplexPair:
    zero = full_like(h.real, 0.0, shape=())
    return ComplexPair(zero, zero)


def _shift(h: ComplexPair, count: Traced) -> ComplexPair:
    """Return Wilkinson's shift of the lowest block; every tenth step another one."""
    a = b = c = d = _zero_like(h)
    for k in range(1, len(h)):
        is_left = _size(h[k, k - 1]) > 0.0
        corner = (h[k - 1, k - 1], h[k - 1, k], h[k, k - 1], h[k, k])
        a, b, c, d = (_where(is_left, new, old) for new, old in zip(corner, (a, b, c, d)))
    half = (a - d) * 0.5
    product = b * c
    root = _root(half * half + product)
    plus, minus = half + root, half - root
    larger = _where(_square(plus) < _square(minus), minus, plus)
    square = _square(larger)
    is_zero = square == 0.0
    quotient = product * larger.conj() / np.where(is_zero, 1.0, square)
    usual = _where(is_zero, d, d - quotient)
    is_tenth = np.fmod(count, 10.0) == 9.0
    return _where(is_tenth, d + ComplexPair(_size(c), _size(c)), usual)


def _qr_step(h: ComplexPair, shift: ComplexPair) -> None:
    """h - shift = Q R; h = R Q + shift."""
    n, zero = len(h), _zero_like(h)
    one = ComplexPair(zero.real + 1.0, zero.imag)
    for k in range(n):
        h[k, k] = h[k, k] - shift
    rotations = []
    for k in range(n - 1):
        x, y = h[k, k], h[k + 1, k]
        is_zero = _size(y) == 0.0
        length = np.where(is_zero, 1.0, np.sqrt(_square(x) + _square(y)))
        c, s = _where(is_zero, one, x / length), _where(is_zero, zero, y / length)
        rotations.append((c, s))
        a, b = h[k, k:], h[k + 1, k:]
        h[k, k:], h[k + 1, k:] = c.conj() * a + s.conj() * b, c * b - s * a
        h[k + 1, k] = zero
    for k, (c, s) in enumerate(rotations):
        a, b = h[: k + 2, k], h[: k + 2, k + 1]
        h[: k + 2, k], h[: k + 2, k + 1] = a * c + b * s, b * c.conj() - a * s.conj()
    for k in range(n):
        h[k, k] = h[k, k] + shift


def _eigenvalues(a: Traced) -> tuple[Traced, Traced]:
    """Return real and imaginary parts, ascending by the real part, then by the imaginary one."""
    n = len(a)
    scaled, scale = power_of_two(a)
    eps = float(np.finfo(a.dtype).eps)
    real = scaled.copy()
    _hessenberg(real)

    def step(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        h, count = ComplexPair(*carry[:2]), carry[2]
        _drop_negligible(h, eps)
        _qr_step(h, _shift(h, count))
        _drop_negligible(h, eps)
        return [h.real, h.imag, count + 1.0]

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        h = ComplexPair(*carry[:2])
        left = (_size(h[k, k - 1]) for k in range(1, n))
        return ~(reduce(np.maximum, left, full_like(a, 0.0, shape=())) <= 0.0)

    h = ComplexPair(real, np.zeros_like(real))
    if n > 1:
        # Carried: real and imaginary parts, and the number of steps.
        carry = [h.real, h.imag, full_like(a, 0.0, shape=())]
        h = ComplexPair(
            *matrix_functions.repeat_while(is_unfinished, step, carry, [], STEPS * n)[:2]
        )
    least = 8 * n * eps
    values = [h[k, k] for k in range(n)]
    values = [ComplexPair(z.real, np.where(np.abs(z.imag) <= least, 0.0, z.imag)) for z in values]
    _sort(values, least)
    real, imag = (np.stack([getattr(z, part) for z in values]) for part in ("real", "imag"))
    return real * scale, imag * scale


def _sort(values: list[ComplexPair], least: float) -> None:
    """Sort in place; real parts as close as ``least``, as those of a pair, count as equal."""
    for i, j in exchanges(len(values)):
        a, b = values[i], values[j]
        is_tie = np.abs(a.real - b.real) <= least
        swap = np.where(is_tie, b.imag < a.imag, b.real < a.real)
        values[i], values[j] = _where(swap, b, a), _where(swap, a, b)


def _eigenvalues_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """dz = tr(N dA) / tr(N) with N = adj(z - A) = sum of z**(n-1-k) B_k.

    B_0 = 1, B_k = A B_(k-1) + c_k with c_k = -tr(A B_(k-1)) / k. At a value that is not simple
    tr(N) is zero: it has no derivative, and gets inf or nan.
    """
    (a,), z = operands, ComplexPair(*results)
    n = len(a)
    eye = np.eye(n, dtype=a.dtype)
    b = [eye + np.zeros_like(a)]
    for k in range(1, n):
        product = a @ b[-1]
        b.append(product - eye * (np.trace(product) / float(k)))

    def polynomial(coefficients: list[Any]) -> ComplexPair:
        total = ComplexPair(coefficients[0] + np.zeros_like(z.real), np.zeros_like(z.real))
        for c in coefficients[1:]:
            total = total * z + c
        return total

    below = polynomial([np.trace(x) for x in b])
    tangents = []
    for (da,) in rows:
        dz = polynomial([np.sum(x.T * da) for x in b]) / below
        tangents.append([dz.real, dz.imag])
    return tangents


_EIGENVALUES = MatrixFunction("eigvals", _eigenvalues, _eigenvalues_push)


@implements(np.linalg.eigvals)
def _eigvals(a: Operand) -> ComplexPair:
    n = np.shape(a)[-1]
    if n > MAX_GENERAL:
        raise trace_error(
            f"np.linalg.eigvals of {n} rows is too large to record (at most {MAX_GENERAL})",
            "Use np.linalg.eigvalsh for a symmetric matrix, or wrap the call in arc.callback.",
        )
    return ComplexPair(*over_square(partial(call, _EIGENVALUES), a))
