"""Gramians, and balanced truncation.

Truncation by square roots: M. Safonov, R. Chiang, IEEE Trans. AC 34, 1989.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.interconnection import as_state_space
from archimedes.control.linear.matrix_equations import solve_dlyap, solve_lyap
from archimedes.control.linear.state_space import StateSpace
from archimedes.function.matrix_exponential import diagonal_units, in_units
from archimedes.typing import Array, Scalar

__all__ = ["Reduced", "balanced_truncation", "gramians"]


def gramians(system: StateSpace) -> tuple[Array, Array]:
    """Return the controllability and observability Gramians of a stable system.

    Its states may be stiff and in any units.

    Parameters
    ----------
    system : StateSpace
        The linear system.

    Returns
    -------
    (array (n, n), array (n, n))
        Controllability and observability Gramian.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[2.0]], [[1.0]], [[0.0]])
    >>> gramians(lag)[0].round(12)
    array([[2.]])
    """
    system = as_state_space(system, "system")
    solve = solve_lyap if system.dt is None else solve_dlyap
    return solve(system.A, system.B @ system.B.T), solve(system.A.T, system.C.T @ system.C)


class Reduced(NamedTuple):
    """A reduced system, and how it was made.

    Parameters
    ----------
    system : StateSpace
        The reduced system.
    hankel : array (n,)
        Hankel singular values.
    error_bound : float
        Bound on the largest error of the frequency response: twice the sum of the Hankel singular
        values left out.
    left : array (order, n)
        x_reduced = left @ x.
    right : array (n, order)
        x is close to right @ x_reduced.

    Examples
    --------
    >>> from archimedes.control import StateSpace, balanced_truncation
    >>> two = StateSpace([[-1.0, 0.0], [0.0, -9.0]], [[1.0], [0.1]], [[1.0, 0.1]], [[0.0]])
    >>> small = balanced_truncation(two, 1)
    >>> small.left.shape, small.right.shape, bool(small.hankel[0] > 100 * small.hankel[1])
    ((1, 2), (2, 1), True)
    """

    system: StateSpace
    hankel: Array
    error_bound: Scalar
    left: Array
    right: Array

    def __repr__(self) -> str:
        kept, n = np.shape(self.left)[-2:]
        return f"Reduced: {kept} of {n} states, error of the response at most {self.error_bound}"


def balanced_truncation(system: StateSpace, order: int) -> Reduced:
    """Return a reduced system with the states that are most controllable and observable.

    The system must be stable, and the result is stable too. It works inside compiled functions.

    Parameters
    ----------
    system : StateSpace
        The linear system.
    order : int
        Number of states to keep.

    Examples
    --------
    >>> two = StateSpace([[-1.0, 0.0], [0.0, -9.0]], [[1.0], [0.1]], [[1.0, 0.1]], [[0.0]])
    >>> reduced = balanced_truncation(two, 1)
    >>> bool(reduced.error_bound < 0.002), reduced.system.A.shape
    (True, (1, 1))
    """
    system = as_state_space(system, "system")
    n, k = system.A.shape[0], int(order)
    if not 1 <= k <= n:
        raise ValueError(f"order must be between 1 and the {n} states, got {order}")
    reach, sight = (_root(M) for M in gramians(system))
    U, hankel, Vt = np.linalg.svd(sight.T @ reach)
    if not is_traced(hankel) and not hankel[k - 1] > 1e-14 * hankel[0]:
        able = int(np.sum(hankel > 1e-14 * hankel[0]))
        raise ValueError(
            f"order={order} is more than the {able} states that are both controllable and "
            "observable: "
            f"use order={able} or less"
        )
    scale = 1.0 / np.sqrt(hankel[:k])
    left = scale[:, None] * (U[:, :k].T @ sight.T)
    right = (reach @ Vt[:k].T) * scale
    A, B, C = left @ system.A @ right, left @ system.B, system.C @ right
    reduced = replace(system, A=A, B=B, C=C, states=(), state_units=())
    return Reduced(reduced, hankel, 2.0 * np.sum(hankel[k:]), left, right)


def _root(M: Array) -> Array:
    """Return S with S S' = M, for M that may be singular and whose states may be in any units."""
    units = diagonal_units(M)
    values, vectors = np.linalg.eigh(in_units(M, 1.0 / units, 1.0 / units))
    return units[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
