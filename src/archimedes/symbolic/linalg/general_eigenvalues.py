"""Eigenvalues of general matrices: the shifted QR algorithm, in complex arithmetic by pairs.

Reduction to Hessenberg form by rotations, then QR steps with Wilkinson's shift in a ``While``
region until every entry below the diagonal is negligible. (Golub, Van Loan, Matrix Computations,
4th ed., 7.4 and 7.5.) Negligible entries are set to zero, which cuts the matrix into blocks; the
shift is that of the lowest block that is left, and a step does nothing to the others but turn
them. Derivatives are in closed form, by the adjugate of z - A (Faddeev and Le Verrier).

Legend: h is a matrix of complex ids, c and s make a rotation, z is an eigenvalue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.symbolic.core.conversion import floats, wrap
from archimedes.symbolic.core.ordering import exchanges
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg.matrices import check_square, over_stack, power_of_two
from archimedes.symbolic.linalg.matrix_functions import MatrixFunction, call, repeat_while
from archimedes.symbolic.numpy_functions.complex_pairs import ComplexPair

__all__: list[str] = []

#: Largest matrix: a step is unrolled.
MAX_GENERAL = 10
#: Steps for each eigenvalue; two or three are usual.
STEPS = 30


@dataclass(frozen=True)
class Complex:
    """A complex number of ids."""

    re: int
    im: int


class Arithmetic:
    """Complex operations on ids."""

    def __init__(self, e: Emit) -> None:
        self.e = e

    def add(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.e.add(x.re, y.re), self.e.add(x.im, y.im))

    def sub(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.e.sub(x.re, y.re), self.e.sub(x.im, y.im))

    def mul(self, x: Complex, y: Complex) -> Complex:
        e = self.e
        real = e.sub(e.mul(x.re, y.re), e.mul(x.im, y.im))
        return Complex(real, e.add(e.mul(x.re, y.im), e.mul(x.im, y.re)))

    def conj(self, x: Complex) -> Complex:
        return Complex(x.re, self.e.neg(x.im))

    def scaled(self, x: Complex, factor: int) -> Complex:
        return Complex(self.e.mul(x.re, factor), self.e.mul(x.im, factor))

    def over(self, x: Complex, divisor: int) -> Complex:
        return Complex(self.e.div(x.re, divisor), self.e.div(x.im, divisor))

    def where(self, test: int, x: Complex, y: Complex) -> Complex:
        return Complex(self.e.where(test, x.re, y.re), self.e.where(test, x.im, y.im))

    def square(self, x: Complex) -> int:
        return self.e.add(self.e.mul(x.re, x.re), self.e.mul(x.im, x.im))

    def size(self, x: Complex) -> int:
        return self.e.add(self.e("abs", x.re), self.e("abs", x.im))

    def root(self, x: Complex) -> Complex:
        """Return the square root with a real part that is not negative."""
        e = self.e
        length = e("sqrt", self.square(x))
        half, zero = e.c(0.5), e.c(0.0)
        real = e("sqrt", e("max", zero, e.mul(half, e.add(length, x.re))))
        imag = e("sqrt", e("max", zero, e.mul(half, e.sub(length, x.re))))
        return Complex(real, e("copysign", imag, x.im))


Matrix = list[list[Complex]]


def _hessenberg(e: Emit, h: list[list[int]]) -> None:
    """Zero what is below the first subdiagonal of a real matrix, by rotations of row pairs."""
    n = len(h)
    for k in range(n - 2):
        for i in range(n - 1, k + 1, -1):
            x, y = h[i - 1][k], h[i][k]
            nothing = e("eq", y, e.c(0.0))
            length = e("sqrt", e.add(e.mul(x, x), e.mul(y, y)))
            length = e.where(nothing, e.c(1.0), length)
            c = e.where(nothing, e.c(1.0), e.div(x, length))
            s = e.where(nothing, e.c(0.0), e.div(y, length))
            rows = [(h[i - 1][j], h[i][j]) for j in range(n)]
            h[i - 1] = [e.add(e.mul(c, a), e.mul(s, b)) for a, b in rows]
            h[i] = [e.sub(e.mul(c, b), e.mul(s, a)) for a, b in rows]
            h[i][k] = e.c(0.0)
            for row in h:
                a, b = row[i - 1], row[i]
                row[i - 1] = e.add(e.mul(c, a), e.mul(s, b))
                row[i] = e.sub(e.mul(c, b), e.mul(s, a))


def _without_negligible(f: Arithmetic, h: Matrix, eps: float) -> None:
    """Set entries below the diagonal to zero that are as small as rounding errors beside it."""
    e = f.e
    zero = Complex(e.c(0.0), e.c(0.0))
    for k in range(1, len(h)):
        beside = e.add(f.size(h[k - 1][k - 1]), f.size(h[k][k]))
        # Beside a block of zeros it is compared with the whole matrix, whose size is about 1.
        beside = e("max", beside, e.c(eps))
        small = e("le", f.size(h[k][k - 1]), e.mul(e.c(eps), beside))
        h[k][k - 1] = f.where(small, zero, h[k][k - 1])


def _shift(f: Arithmetic, h: Matrix, count: int) -> Complex:
    """Return Wilkinson's shift of the lowest block; every tenth step another one."""
    e = f.e
    zero = Complex(e.c(0.0), e.c(0.0))
    a = b = c = d = zero
    for k in range(1, len(h)):
        left = e("lt", e.c(0.0), f.size(h[k][k - 1]))
        corner = (h[k - 1][k - 1], h[k - 1][k], h[k][k - 1], h[k][k])
        a, b, c, d = (f.where(left, new, old) for new, old in zip(corner, (a, b, c, d)))
    half = f.scaled(f.sub(a, d), e.c(0.5))
    product = f.mul(b, c)
    root = f.root(f.add(f.mul(half, half), product))
    plus, minus = f.add(half, root), f.sub(half, root)
    larger = f.where(e("lt", f.square(plus), f.square(minus)), minus, plus)
    square = f.square(larger)
    nothing = e("eq", square, e.c(0.0))
    quotient = f.over(f.mul(product, f.conj(larger)), e.where(nothing, e.c(1.0), square))
    usual = f.where(nothing, d, f.sub(d, quotient))
    tenth = e("eq", e("fmod", count, e.c(10.0)), e.c(9.0))
    return f.where(tenth, f.add(d, Complex(f.size(c), f.size(c))), usual)


def _qr_step(f: Arithmetic, h: Matrix, shift: Complex) -> None:
    """h - shift = Q R; h = R Q + shift."""
    e, n = f.e, len(h)
    one, zero = Complex(e.c(1.0), e.c(0.0)), Complex(e.c(0.0), e.c(0.0))
    for k in range(n):
        h[k][k] = f.sub(h[k][k], shift)
    turns = []
    for k in range(n - 1):
        x, y = h[k][k], h[k + 1][k]
        nothing = e("eq", f.size(y), e.c(0.0))
        length = e("sqrt", e.add(f.square(x), f.square(y)))
        length = e.where(nothing, e.c(1.0), length)
        c = f.where(nothing, one, f.over(x, length))
        s = f.where(nothing, zero, f.over(y, length))
        turns.append((c, s))
        for j in range(k, n):
            a, b = h[k][j], h[k + 1][j]
            h[k][j] = f.add(f.mul(f.conj(c), a), f.mul(f.conj(s), b))
            h[k + 1][j] = f.sub(f.mul(c, b), f.mul(s, a))
        h[k + 1][k] = zero
    for k, (c, s) in enumerate(turns):
        for row in h[: k + 2]:
            a, b = row[k], row[k + 1]
            row[k] = f.add(f.mul(a, c), f.mul(b, s))
            row[k + 1] = f.sub(f.mul(b, f.conj(c)), f.mul(a, f.conj(s)))
    for k in range(n):
        h[k][k] = f.add(h[k][k], shift)


def _eigenvalues(a: Traced) -> tuple[Any, Any]:
    """Return real and imaginary parts, ascending by the real part, then by the imaginary one."""
    n, code = len(a), a.code
    a, scale = power_of_two(a)
    trace = current_trace()
    g, e = trace.graph, Emit(trace.graph, code)
    eps = float(np.finfo(a.dtype).eps)
    real = trace.ids_of(a).tolist()
    _hessenberg(e, real)
    zero = e.c(0.0)
    # Carried: real and imaginary parts row by row, and the number of steps.
    start = [i for row in real for i in row] + [zero] * (n * n) + [zero]

    def unpack(carry: list[int]) -> Matrix:
        re, im = carry[: n * n], carry[n * n : 2 * n * n]
        return [[Complex(re[i * n + j], im[i * n + j]) for j in range(n)] for i in range(n)]

    def step(g: Graph, carry: list[int], shared: list[int]) -> list[int]:
        f = Arithmetic(Emit(g, code))
        h, count = unpack(carry), carry[-1]
        _without_negligible(f, h, eps)
        _qr_step(f, h, _shift(f, h, count))
        _without_negligible(f, h, eps)
        flat = [x for row in h for x in row]
        return [*(x.re for x in flat), *(x.im for x in flat), f.e.add(count, f.e.c(1.0))]

    def unfinished(g: Graph, carry: list[int], shared: list[int]) -> int:
        f = Arithmetic(Emit(g, code))
        h = unpack(carry)
        left = f.e.c(0.0)
        for k in range(1, n):
            left = f.e("max", left, f.size(h[k][k - 1]))
        return f.e("not", f.e("le", left, f.e.c(0.0)))

    if n > 1:
        start = repeat_while(g, start, [], unfinished, step, STEPS * n)
    values = [unpack(start)[k][k] for k in range(n)]
    least = e.c(8 * n * eps)
    values = [Complex(x.re, e.where(e("le", e("abs", x.im), least), zero, x.im)) for x in values]
    _sort(e, values, least)
    parts = ([x.re for x in values], [x.im for x in values])
    re, im = (wrap(np.array(part, dtype=np.int64), code, trace) * scale for part in parts)
    return re, im


def _sort(e: Emit, values: list[Complex], least: int) -> None:
    """Sort in place; real parts as close as ``least``, as those of a pair, count as equal."""
    f = Arithmetic(e)
    for i, j in exchanges(len(values)):
        a, b = values[i], values[j]
        tie = e("le", e("abs", e.sub(a.re, b.re)), least)
        swap = e.where(tie, e("lt", b.im, a.im), e("lt", b.re, a.re))
        values[i], values[j] = f.where(swap, b, a), f.where(swap, a, b)


def _eigenvalues_push(
    operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]
) -> Traced:
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
    found = []
    for (da,) in rows:
        dz = polynomial([np.sum(x.T * da) for x in b]) / below
        found.append([dz.real, dz.imag])
    return found


_EIGENVALUES = MatrixFunction("eigvals", _eigenvalues, _eigenvalues_push)


@implements(np.linalg.eigvals)
def _eigvals(a: Operand) -> ComplexPair:
    (a,) = floats(a)
    check_square(a)
    if a.shape[-1] > MAX_GENERAL:
        raise trace_error(
            f"np.linalg.eigvals of {a.shape[-1]} rows is too large to record "
            f"(at most {MAX_GENERAL})",
            "Use np.linalg.eigvalsh for a symmetric matrix, or wrap the call in arc.callback.",
        )
    return ComplexPair(*over_stack(lambda x: call(_EIGENVALUES, x), (2,), a))
