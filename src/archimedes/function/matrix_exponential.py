"""The matrix exponential by scaling and squaring, in balanced units; the balancing of matrices.

Balancing. With x = s z, s a vector of units, the matrix A of dx/dt = A x becomes A_ij s_j / s_i.
Algorithms whose rounding errors are relative to the largest entry need units in which no entry is
large without reason. The units are powers of two: to change to them, and back, is exact. Source:
E. Osborne, "On pre-conditioning of matrices", J. ACM 7 (1960) 338, one state at a time, the worst
first. The diagonal counts in both sums, as in LAPACK since 3.5: where nothing but itself drives a
state, or it drives nothing else, there is no end otherwise (R. James, J. Langou, B. Lowery, "On
matrix balancing and eigenvector computation", 2014).

Exponential. m = 13 is the degree of the Pade approximant, s the number of squarings. Source:
A. Al-Mohy, N. Higham, "A new scaling and squaring algorithm for the matrix exponential", SIAM J.
Matrix Anal. Appl. 31 (2009) 970; the approximant is that of N. Higham, SIAM J. Matrix Anal. Appl.
26 (2005). Scaling follows the powers of the matrix rather than its norm: a matrix that is large
only because it is far from normal is not scaled down until nothing is left of its small entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError
from archimedes.function.arrays import array
from archimedes.function.batching.vmap import vmap
from archimedes.function.control_flow.loops_and_branches import fori_loop, while_loop
from archimedes.function.derivatives.custom_rules import stop_gradient
from archimedes.graph.elementary import evaluate

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["expm"]

#: Most changes of a unit for each state.
CHANGES = 20
#: No unit is changed by more than 2 to this power at once.
LARGEST = 100


def balancing_units(a: Array) -> Array:
    """Return units s (..., n), powers of two, in which matrices a (..., n, n) are balanced.

    The balanced matrix is ``a * s[..., None, :] / s[..., :, None]``. Units are constants to
    derivatives.

    >>> balancing_units(np.array([[0.0, 4e6], [1.0, 0.0]]))
    array([2.048e+03, 1.000e+00])
    """
    sizes = np.abs(stop_gradient(a))
    n = sizes.shape[-1]
    start = np.ones(sizes.shape[:-1], dtype=sizes.dtype)
    numbers = np.arange(n)

    def powers(units: Array) -> Array:
        """Return the powers of two by which the units of the states should change."""
        rows = np.sum(sizes * units[..., None, :], axis=-1) / units
        columns = np.sum(sizes / units[..., :, None], axis=-2) * units
        # Where one of its sums is zero, a state has no better unit.
        settled = (rows == 0.0) | (columns == 0.0)
        ratio = np.where(settled, 1.0, rows) / np.where(settled, 1.0, columns)
        power = np.rint(0.5 * np.log2(ratio))
        return np.where(np.abs(power) <= LARGEST, power, LARGEST * np.sign(power))

    def is_unbalanced(carry: tuple[Any, Any]) -> Any:
        return np.any(carry[1] != 0.0)

    def change(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        units, power = carry
        worst = np.argmax(np.abs(power), axis=-1)
        chosen = np.where(numbers == worst[..., None], power, 0.0).astype(np.int64)
        units = np.ldexp(units, chosen)
        return units, powers(units)

    with np.errstate(all="ignore"):
        units, _ = repeat_while(is_unbalanced, change, (start, powers(start)), CHANGES * n)
    return units


def diagonal_units(m: Array) -> Array:
    """Return units s (n,), powers of two, in which the diagonal of m_ij / (s_i s_j) is near one.

    It is between 1/2 and 2 then; where it is not above zero the unit is 1. Units are constants to
    derivatives.

    >>> diagonal_units(np.diag([4e6, 0.0, 1e-6]))
    array([2.048000e+03, 1.000000e+00, 9.765625e-04])
    """
    diagonal = np.diagonal(stop_gradient(m))
    above = diagonal > 0.0
    power = np.rint(0.5 * np.log2(np.where(above, diagonal, 1.0)))
    return np.ldexp(np.ones_like(diagonal), power.astype(np.int64))


def in_units(m: Array, rows: Array, columns: Array) -> Array:
    """Return m_ij rows_i columns_j: a matrix whose rows and columns are multiplied by units.

    >>> in_units(np.ones((2, 2)), np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    array([[1., 3.],
           [2., 6.]])
    """
    return m * rows[:, None] * columns


def repeat_while(
    test: Callable[[Any], Any], step: Callable[[Any], Any], carry: tuple[Any, ...], limit: int
) -> Any:
    """Repeat ``carry = step(carry)`` while ``test(carry)``: a `while_loop`, if anything is traced.

    Known numbers are computed, also while a function is being recorded: they leave no loop.
    """
    if is_traced(carry):
        return while_loop(test, step, carry, limit)
    for _ in range(limit):
        if not test(carry):
            break
        carry = step(carry)
    return carry


#: The approximant is exact to double precision up to this size of the powers (table 3.1).
THETA = 5.371920351148152
#: Coefficients of its numerator, (26 - j)! / (j! (13 - j)!) (Higham 2005, eq. 10.33).
PADE = [
    float(math.factorial(26 - j) // (math.factorial(j) * math.factorial(13 - j))) for j in range(14)
]
#: First term of the backward error, of power 2 m + 1 = 27.
ERROR = math.factorial(13) ** 2 / (math.factorial(26) * math.factorial(27))
#: Most squarings: sizes up to 1e20, where every digit of a rotation is long lost.
MAX_SQUARINGS = 64


def expm(a: ArrayLike) -> Array:
    """Return the matrix exponential.

    The method is scaling and squaring with a Pade approximant of degree 13. The matrix is balanced
    first, so that states in different units do not cost each other digits. Inside a compiled
    function the number of squarings is decided as the program runs.

    Parameters
    ----------
    a : array_like (..., n, n)
        Square matrix, or a stack of them.

    Returns
    -------
    array (..., n, n)
        float32 for float32, else float64. A matrix that is not finite, or larger than 1e20 after
        balancing, gives nan.

    Examples
    --------
    >>> expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    a = array(a) if is_traced(a) else np.asarray(a)
    if a.dtype not in (np.float64, np.float32):
        if a.dtype.kind not in "biu":
            raise ShapeDtypeError(f"expm takes real numbers, got an array of {a.dtype}")
        a = a.astype(np.float64)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(
            f"Last 2 dimensions of the array must be square, got an array of shape {a.shape}"
        )
    n = a.shape[-1]
    if n == 0:
        return a.copy()
    if n == 1:
        return np.exp(a)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if a.ndim == 2 or not is_traced(a):
            return _exponential(a)
        return vmap(_exponential)(a.reshape(-1, n, n)).reshape(a.shape)


def _exponential(a: Array) -> Array:
    """Return the exponential of one matrix, or of a stack of matrices whose values are known."""
    # Nothing of what is not finite may look like a result.
    usable = np.all(np.isfinite(a), axis=(-2, -1))
    units = balancing_units(np.where(usable[..., None, None], a, 0.0))
    a = a * units[..., None, :] / units[..., :, None]
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    squarings = _squarings(*(stop_gradient(x) for x in (a, a4, a6)))
    usable = usable & (squarings <= MAX_SQUARINGS)  # false for nan
    squarings = np.where(usable, squarings, 0.0).astype(np.int64)
    scale = np.ldexp(np.ones_like(units[..., 0]), -squarings)
    scale = np.where(usable, scale, np.nan)[..., None, None].astype(a.dtype)
    square = scale * scale
    x = _approximant(a * scale, a2 * square, a4 * square**2, a6 * square**3)

    def is_unfinished(carry: tuple[Any, Any]) -> Any:
        return np.any(carry[1] > 0)

    def double(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        x, left = carry
        return np.where((left > 0)[..., None, None], x @ x, x), left - 1

    x, _ = repeat_while(is_unfinished, double, (x, squarings), MAX_SQUARINGS)
    return x * units[..., :, None] / units[..., None, :]


def _size(a: Array) -> Scalar:
    """Return the 1-norm."""
    return np.max(np.sum(np.abs(a), axis=-2), axis=-1)


def _squarings(a: Array, a4: Array, a6: Array) -> Scalar:
    """Return the number of squarings (Al-Mohy, Higham, algorithm 5.1), as a float."""
    # Theorem 4.2 with p = 2: powers of a^2 from the second on are bounded by this size.
    size = np.maximum(_size(a4) ** 0.25, _size(a6) ** (1.0 / 6.0))
    least = np.ceil(np.log2(np.maximum(size / THETA, 1.0)))
    # Rounding errors in powers are relative to those of |a|: the first term of the backward error,
    # made of |a|, must be below the rounding unit too.
    norm = _size(a)
    if not is_traced(a) and np.all(norm <= THETA * 2.0**least):
        return least  # which it is, by the definition of THETA
    norm = np.where(norm > 0.0, norm, 1.0)
    sizes = np.abs(a) / norm[..., None, None]
    ones = np.ones_like(sizes[..., :1, :])
    sums = fori_loop(0, 27, lambda _, sums: sums @ sizes, ones)
    unit = 0.5 * np.finfo(a.dtype).eps
    # In logarithms: ERROR |a|^27 / |a| / unit, scaled by 2^-26 s.
    largest = np.maximum(np.max(sums, axis=(-2, -1)), np.finfo(a.dtype).tiny)
    excess = np.log2(largest) + 26.0 * (np.log2(norm) - least) + evaluate("log2", ERROR / unit)
    return least + np.maximum(np.ceil(excess / 26.0), 0.0)


def _approximant(a: Array, a2: Array, a4: Array, a6: Array) -> Array:
    """Return r_13(a) = (V - U)^-1 (V + U) (Higham 2005, eq. 2.13 to 2.15)."""
    b = PADE
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    u = a @ (odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    v = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    return np.linalg.solve(v - u, v + u)
