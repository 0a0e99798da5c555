"""What implicit methods need of a right-hand side: its Jacobian, and systems with that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import jac
from archimedes.simulate.methods.combinations import product
from archimedes.simulate.methods.method_table import Derivative

__all__ = ["DenseJacobian", "linearised", "solver_of"]


class DenseJacobian:
    """A Jacobian (n, n) with all its elements."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def solver(self, diagonal: Any, factor: Any) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (diagonal + factor J) x = r; diagonal may be a matrix."""
        if np.ndim(diagonal) == 0:
            diagonal = np.eye(len(self.matrix)) * diagonal
        return solver_of(diagonal + factor * self.matrix)

    def stage_solver(self, coefficients: np.ndarray, h: Any) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (I - h coefficients kron J) x = r: all stages at once."""
        size = len(coefficients) * len(self.matrix)
        return solver_of(np.eye(size) - h * np.kron(coefficients, self.matrix))

    def norm(self) -> Any:
        """Return the largest sum of sizes in a row."""
        return np.max(np.sum(np.abs(self.matrix), axis=1))


def solver_of(matrix: Any) -> Callable[[Any], Any]:
    """Return r -> x, the solution of matrix x = r.

    A step has many right sides: one inverse and a product for each take a third of the time of as
    many eliminations, and are as accurate for matrices that are not nearly singular.
    """
    inverse = np.linalg.inv(matrix)
    return lambda right: product(inverse, right)


def linearised(f: Derivative, t: Any, x: Any) -> tuple[Any, Any]:
    """Return df/dt (n,) and the Jacobian df/dx, as an object with ``solver`` and ``norm``.

    A right-hand side that knows better says so itself (see ``solves/single_steps.py``).
    """
    own = getattr(f, "linearised", None)
    if own is not None:
        return own(t, x)
    f_t, matrix = jac(f, argnums=(0, 1))(t, x)
    return f_t, DenseJacobian(matrix)
