"""Linear algebra in recorded code: straight lines for small matrices, loops for larger ones.

Symmetric systems that are solved more than once have factors L D L^T, without pivoting: of larger
matrices by panels of a few rows (Golub, Van Loan, "Matrix computations", 4th ed., algorithm 4.1.1).
Where nothing but rounding is left of a pivot its unknown is left as it is (Y. Zhang, "Solving
large-scale linear programs by interior-point methods under the MATLAB environment", Optim. Methods
Softw. 10, 1998, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import Compiled, scan, vmap
from archimedes.typing import Array

#: Products of up to this many factors are unrolled.
UNROLLED_PRODUCT = 200
#: Programs of more unknowns, or more rows, than this are loops over whole arrays, whose code does
#: not grow with their number.
UNROLLED, LONG = 16, 32
#: Rows of a panel.
WIDTH = 4
#: What takes the place of a pivot that is rounding; also a float can hold it.
_HELD = 1e30


def records_loops(unknowns: int, rows: int) -> bool:
    """Return whether a program of so many unknowns and rows, bounds included, becomes loops."""
    return unknowns > UNROLLED or rows > LONG


def in_loops(function: Callable[..., Any]) -> Compiled:
    """Return the function recorded as loops over arrays, whoever calls it."""
    return Compiled(function, freeze=True, loops_from=UNROLLED)


def by_size(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the function of a matrix, unrolled if that is small, else recorded as loops."""
    looped = in_loops(function)

    @wraps(function)
    def call(C: Array, *arguments: Array) -> Array:
        return (function if C.size <= UNROLLED_PRODUCT else looped)(C, *arguments)

    return call


@by_size
def scale(C: Array, rows: Array, columns: Array) -> Array:
    """Return diag(rows) C diag(columns) for C (m, n)."""
    return C * rows[:, None] * columns


@by_size
def row_maxima(C: Array, x: Array) -> Array:
    """Return the largest size of a term in each row of C x, for C (m, n) and x >= 0.

    >>> row_maxima(np.array([[1.0, -3.0], [0.0, 0.0]]), np.array([1.0, 2.0]))
    array([6., 0.])
    """
    return np.max(np.abs(C) * x, axis=1)


@by_size
def column_maxima(C: Array, y: Array) -> Array:
    """Return the largest size of a term in each row of C^T y, for C (m, n) and y >= 0.

    >>> column_maxima(np.array([[1.0, -3.0], [2.0, 0.0]]), np.array([1.0, 2.0]))
    array([4., 3.])
    """
    return np.max(np.abs(C) * y[:, None], axis=0)


@by_size
def times(C: Array, x: Array) -> Array:
    """Return C x for C (m, n).

    >>> times(np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return C @ x


@by_size
def transposed_times(C: Array, y: Array) -> Array:
    """Return C^T y for C (m, n)."""
    return C.T @ y


def largest(*vectors: Array) -> Any:
    """Return the largest size of any number, 0 for none."""
    sizes = [np.max(np.abs(v)) for v in vectors if v.size]
    return np.max(np.stack(sizes)) if sizes else np.float64(0.0)


@in_loops
def _gram(P: Array, C: Array, d: Array, shift: Array) -> Array:
    return P + np.eye(P.shape[0]) * shift + C.T @ (d[:, None] * C)


def gram(P: Array, C: Array, d: Array, shift: float = 0.0) -> Array:
    """Return P + shift I + C^T diag(d) C for C (m, n) and a symmetric P (n, n)."""
    m, n = C.shape
    if m * n * n <= 8 * UNROLLED_PRODUCT:
        return (P + np.eye(n) * shift if shift else P) + C.T @ (d[:, None] * C)
    if n > UNROLLED or C.size > UNROLLED_PRODUCT:
        return _gram(P, C, d, np.float64(shift))
    # One row is unrolled; the rows are a loop.
    return vmap(lambda row, unit, column: row + unit + C.T @ (d * column))(
        P, np.eye(n) * shift, C.T
    )


@in_loops
def _add_diagonal(M: Array, d: Array) -> Array:
    return np.where(np.eye(M.shape[0], dtype=bool), M + d[:, None], M)


class LimitedRows:
    """C = [A; I] where there are bounds, else A (m, n): products that know of the identity.

    >>> rows = LimitedRows(np.array([[1.0, 2.0]]), True)
    >>> rows.times(np.array([3.0, 4.0]))
    array([11.,  3.,  4.])
    """

    def __init__(self, A: Array, bounded: bool) -> None:
        self.A, self.bounded = A, bounded
        self.own = A.shape[0]
        self.count = self.own + (A.shape[1] if bounded else 0)
        #: The most terms that a row of C, of C^T or of P has.
        self.width = float(max(1, A.shape[1], self.count))

    def scale(self, rows: Array, columns: Array) -> LimitedRows:
        """Return diag(rows) A diag(columns) and its bounds, whose rows are those of I again."""
        return LimitedRows(scale(self.A, rows, columns), self.bounded)

    def magnitudes(self) -> LimitedRows:
        """Return the sizes of all numbers."""
        return LimitedRows(np.abs(self.A), self.bounded)

    def times(self, x: Array) -> Array:
        """Return C x."""
        if not self.own:
            return x if self.bounded else np.zeros(0)
        own = times(self.A, x)
        return np.concatenate([own, x]) if self.bounded else own

    def transposed_times(self, y: Array) -> Array:
        """Return C^T y."""
        if not self.own:
            return y if self.bounded else np.zeros(self.A.shape[1])
        own = transposed_times(self.A, y[: self.own])
        return own + y[self.own :] if self.bounded else own

    def gram(self, P: Array, d: Array, shift: float) -> Array:
        """Return P + shift I + C^T diag(d) C for a symmetric P (n, n)."""
        n = P.shape[0]
        M = gram(P, self.A, d[: self.own], shift) if self.own else P
        if self.own and not self.bounded:
            return M
        more = d[self.own :] if self.bounded else np.zeros(n)
        more = more if self.own else more + shift
        return _add_diagonal(M, more) if n > UNROLLED else M + np.eye(n) * more


def _check_pivot(pivot: Array, diagonal: Array) -> Array:
    """Return a pivot, or one so large that its unknown does not move where it is rounding.

    It is where a part of it does not change the diagonal it is left of, in double and in float;
    beside a nan any pivot is kept.
    """
    return np.where(diagonal + pivot * (1.0 / 64.0) <= diagonal, _HELD, pivot)


def _factor(M: Any, diagonal: Array | None = None) -> tuple[list[list[Array]], list[Array]]:
    """Return L, rows of a unit lower triangle without its diagonal, and D, for rows of M.

    Pivots that are rounding of a ``diagonal`` (n,), where it is given, are not used.
    """
    n = len(M)
    L: list[list[Array]] = [[] for _ in range(n)]
    D: list[Array] = []
    for j in range(n):
        scaled = [L[j][k] * D[k] for k in range(j)]
        pivot = M[j][j]
        for k in range(j):
            pivot = pivot - L[j][k] * scaled[k]
        pivot = pivot if diagonal is None else _check_pivot(pivot, diagonal[j])
        D.append(pivot)
        inverse = 1.0 / np.where(pivot == 0.0, 1.0, pivot)
        for i in range(j + 1, n):
            entry = M[i][j]
            for k in range(j):
                entry = entry - L[i][k] * scaled[k]
            L[i].append(entry * inverse)
    return L, D


class _Panels(NamedTuple):
    """The factors, a panel of ``WIDTH`` rows after the other.

    ``lower`` has rows of L within a panel, one behind the other; ``beside`` those of L^T right of
    it (WIDTH, n), zeros elsewhere; ``inverse`` is 1/D.
    """

    lower: Array
    inverse: Array
    beside: Array


@in_loops
def _factor_panels(M: Array, diagonal: Array) -> tuple[_Panels, Array]:
    """Return the factors and D (n,), with pivots beside a ``diagonal`` (n,) as in `_factor`.

    Rows of a panel are eliminated together; then all rows lose a product of WIDTH terms.
    (Golub, Van Loan, section 4.2.9.)
    """
    n = M.shape[0]
    M, diagonal = _pad(M, np.eye(_round_up(n))), _pad(diagonal, np.full(_round_up(n), np.nan))
    columns = np.arange(_round_up(n))

    def eliminate(rest: Array, panel: Array) -> Any:
        rows = rest.reshape(-1, WIDTH, len(columns))[panel]
        before = diagonal.reshape(-1, WIDTH)[panel]
        first = WIDTH * panel
        own = [[rows[i, first + j] for j in range(i + 1)] for i in range(WIDTH)]
        L, D = _factor(own, before)
        inverse = np.stack([1.0 / np.where(pivot == 0.0, 1.0, pivot) for pivot in D])
        rows = np.stack(_substitute(L, rows))
        beside = np.where(columns >= first + WIDTH, rows * inverse[:, None], 0.0)
        for k in range(WIDTH):
            rest = rest - beside[k][:, None] * rows[k]
        flat = np.stack([x for row in L for x in row])
        return rest, (_Panels(flat, inverse, beside), np.stack(D))

    _, (panels, D) = scan(eliminate, M, np.arange(len(columns) // WIDTH))
    return panels, D.reshape(-1)[:n]


def _round_up(n: int) -> int:
    """Return the number of rows of whole panels."""
    return -(-n // WIDTH) * WIDTH


def _pad(array: Array, rest: Array) -> Array:
    """Return an array continued by what is behind it in another."""
    n = array.shape[0]
    if n == rest.shape[0]:
        return array
    if array.ndim == 1:
        return np.concatenate([array, rest[n:]])
    return np.concatenate([np.concatenate([array, rest[:n, n:]], axis=1), rest[n:]])


def _substitute(L: list[list[Array]], rows: Array) -> list[Array]:
    """Return L^-1 rows, for rows of L, unit lower triangular, without its diagonal."""
    y: list[Array] = []
    for i in range(len(L)):
        row = rows[i]
        for k in range(i):
            row = row - L[i][k] * y[k]
        y.append(row)
    return y


@in_loops
def _solve_panels(panels: _Panels, b: Array) -> Array:
    """Return x with L D L^T x = b."""
    n, numbers = b.shape[0], np.arange(panels.inverse.shape[0])
    b = _pad(b, np.zeros(_round_up(n)))
    ends = [i * (i - 1) // 2 for i in range(WIDTH + 1)]

    def rows(flat: Array) -> list[list[Array]]:
        return [[flat[k] for k in range(*pair)] for pair in pairwise(ends)]

    def down(rest: Array, item: Any) -> Any:
        panel, number = item
        y = np.stack(_substitute(rows(panel.lower), rest.reshape(-1, WIDTH)[number]))
        for k in range(WIDTH):
            rest = rest - panel.beside[k] * y[k]
        return rest, y * panel.inverse

    def up(x: Array, item: Any) -> Any:
        panel, number, y = item
        L, flat = rows(panel.lower), x.reshape(-1)
        own = [y[i] - np.sum(panel.beside[i] * flat) for i in range(WIDTH)]
        for i in reversed(range(WIDTH)):
            for k in range(i + 1, WIDTH):
                own[i] = own[i] - L[k][i] * own[k]
        return np.where((numbers == number)[:, None], np.stack(own), x), np.float64(0.0)

    _, y = scan(down, b, (panels, numbers))
    back = tree.map(lambda a: a[::-1], (panels, numbers, y))
    return scan(up, np.zeros(y.shape), back)[0].reshape(-1)[:n]


# Functions of their own: systems are solved several times in a step.
_factor_panels.inline_limit = _solve_panels.inline_limit = 0


def find_pivots(M: Array) -> Array:
    """Return numbers (n,) that are all positive only if the symmetric M is positive definite.

    >>> find_pivots(np.array([[4.0, 2.0], [2.0, 3.0]]))
    array([4., 2.])
    """
    n = M.shape[0]
    if n > UNROLLED:
        return _factor_panels(M, np.full(n, np.nan))[1]
    return np.stack(_factor(M)[1])


def make_solver(M: Array) -> Callable[[Array], Array]:
    """Return the function b (n,) -> M^-1 b, for a symmetric positive definite M (n, n).

    Of an M that is singular to rounding, unknowns that cannot be told are zero.

    >>> make_solver(np.array([[4.0, 2.0], [2.0, 3.0]]))(np.array([8.0, 8.0]))
    array([1., 2.])
    """
    n = M.shape[0]
    if n > UNROLLED:
        panels, _ = _factor_panels(M, np.diagonal(M))
        return lambda b: _solve_panels(panels, b)
    L, D = _factor(M, np.diagonal(M))
    inverse = [1.0 / pivot for pivot in D]

    def solve(b: Array) -> Array:
        y = [value * factor for value, factor in zip(_substitute(L, b), inverse)]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                y[i] = y[i] - L[k][i] * y[k]
        return np.stack(y)

    return solve
