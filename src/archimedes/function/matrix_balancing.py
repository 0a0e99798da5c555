"""Units in which a matrix is balanced: its rows and columns are of like size.

With x = s z, s a vector of units, the matrix A of dx/dt = A x becomes A_ij s_j / s_i. Algorithms
whose rounding errors are relative to the largest entry need units in which no entry is large
without reason. The units are powers of two: to change to them, and back, is exact.

Source: E. Osborne, "On pre-conditioning of matrices", J. ACM 7 (1960) 338, one state at a time, the
worst first. The diagonal counts in both sums, as in LAPACK since 3.5: where nothing but itself
drives a state, or it drives nothing else, there is no end otherwise (R. James, J. Langou,
B. Lowery, "On matrix balancing and eigenvector computation", 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function.control_flow.loops import while_loop
from archimedes.function.derivatives.custom_rules import stop_gradient

__all__ = ["balancing_units", "diagonal_units", "in_units", "repeat_while"]

#: Most changes of a unit for each state.
CHANGES = 20
#: No unit is changed by more than 2 to this power at once.
LARGEST = 100


def balancing_units(a: Any) -> Any:
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

    def powers(units: Any) -> Any:
        """Return the powers of two by which the units of the states should change."""
        rows = np.sum(sizes * units[..., None, :], axis=-1) / units
        columns = np.sum(sizes / units[..., :, None], axis=-2) * units
        # Where one of its sums is zero, a state has no better unit.
        settled = (rows == 0.0) | (columns == 0.0)
        ratio = np.where(settled, 1.0, rows) / np.where(settled, 1.0, columns)
        power = np.rint(0.5 * np.log2(ratio))
        return np.where(np.abs(power) <= LARGEST, power, LARGEST * np.sign(power))

    def unbalanced(carry: tuple[Any, Any]) -> Any:
        return np.any(carry[1] != 0.0)

    def change(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        units, power = carry
        worst = np.argmax(np.abs(power), axis=-1)
        chosen = np.where(numbers == worst[..., None], power, 0.0).astype(np.int64)
        units = np.ldexp(units, chosen)
        return units, powers(units)

    with np.errstate(all="ignore"):
        units, _ = repeat_while(unbalanced, change, (start, powers(start)), CHANGES * n)
    return units


def diagonal_units(m: Any) -> Any:
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


def in_units(m: Any, rows: Any, columns: Any) -> Any:
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
