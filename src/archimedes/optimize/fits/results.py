"""How a least-squares solve ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.optimize.problems.results import Ended, Multipliers

__all__ = ["LMResult", "LMStatus"]


class LMStatus(enum.IntEnum):
    """Why the iteration ended; 1 to 4 are minima, as in MINPACK, and so is 7.

    >>> from archimedes.optimize import LMStatus, lm_solve
    >>> found = lm_solve(lambda x: x - 1.0, [0.0])
    >>> found.status is LMStatus(found.status.value), found.status.value in (1, 2, 3, 4)
    (True, True)
    """

    NON_FINITE = -1
    FTOL_REACHED = 1
    XTOL_REACHED = 2
    BOTH_TOL_REACHED = 3
    GTOL_REACHED = 4
    MAX_FEVAL = 5
    STALLED = 6
    ROUNDING_REACHED = 7
    MAX_ITERATIONS = 8
    TIME_LIMIT = 9
    INTERRUPTED = 10
    FLAT = 11

    @property
    def success(self) -> bool:
        """Whether a minimum was found."""
        return 1 <= self <= 4 or self is LMStatus.ROUNDING_REACHED

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        return _MESSAGES[self]


_MESSAGES = {
    LMStatus.NON_FINITE: (
        "the residuals or their Jacobian are nan or infinite at x: start elsewhere, or keep x "
        "where the function is defined with bounds="
    ),
    LMStatus.FTOL_REACHED: "converged: the cost changes by less than ftol",
    LMStatus.XTOL_REACHED: "converged: x changes by less than xtol",
    LMStatus.BOTH_TOL_REACHED: "converged: cost and x change by less than ftol and xtol",
    LMStatus.GTOL_REACHED: "converged: the residuals are orthogonal to their slopes, to gtol",
    LMStatus.MAX_FEVAL: (
        "stopped after max_nfev evaluations: raise max_nfev, or start closer to the solution"
    ),
    LMStatus.STALLED: (
        "no step lowers the cost, though the gradient says that one should: is the function "
        "smooth, and are its residuals of similar size?"
    ),
    LMStatus.ROUNDING_REACHED: "converged: what is left of the residuals is rounding",
    LMStatus.MAX_ITERATIONS: (
        "stopped at the limit of iterations: raise maxiter, or start closer to the solution"
    ),
    LMStatus.TIME_LIMIT: (
        "stopped at the limit of time: raise maxtime, or start closer to the solution"
    ),
    LMStatus.FLAT: (
        "no residual changes with x near x0, so that nothing says where to go: start where the "
        "model responds to x"
    ),
    LMStatus.INTERRUPTED: "interrupted: x is the best point that was reached",
}


@dataclass(frozen=True)
class LMResult(Ended):
    """The solution of a least-squares problem, with the names of SciPy's result.

    Parameters
    ----------
    x : tree
        Solution, with the structure of x0.
    cost : float
        Half the sum of squares.
    fun : array (m,)
        Residuals.
    jac : array (m, n)
        Jacobian at x, in the order of ``tree.ravel``.
    grad : array (n,)
        Gradient at x.
    status : LMStatus
        Why the iteration ended.
    nfev : int
        Number of evaluations.
    njev : int
        Number of Jacobians.
    nit : int
        Number of iterations.
    active_mask : array (n,)
        -1 where x is at its lower bound, 1 at its upper bound, else 0.
    history : tuple of float, optional
        Cost after each accepted step.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.optimize import lm_solve
    >>> found = lm_solve(lambda x: np.stack([x[0] - 1.0, 2.0 * x[0] - 2.0]), [0.0])
    >>> found.success, found.x, round(found.cost, 12), found.jac.tolist()
    (True, array([1.]), 0.0, [[1.0], [2.0]])
    """

    x: Any
    cost: float
    fun: np.ndarray
    jac: np.ndarray
    grad: np.ndarray
    status: LMStatus
    nfev: int
    njev: int
    nit: int
    active_mask: np.ndarray
    history: tuple[float, ...] = ()

    @property
    def iterations(self) -> int:
        """What results of other solvers call ``nit``."""
        return self.nit

    @property
    def multipliers(self) -> Multipliers:
        """Those of the bounds, as a tree like x: positive at upper ones, negative at lower ones."""
        return Multipliers(None, tree.ravel(self.x)[1](np.where(self.active_mask, -self.grad, 0.0)))

    def covariance(self) -> np.ndarray:
        """Return the covariance (n, n) of x: s^2 (J^T J)^-1, s^2 = sum of squares / (m - n).

        It is that of a fit to data whose errors are independent and of equal size. A direction
        that no residual depends on has an infinite variance: that raises ValueError.
        """
        m, n = self.jac.shape
        if m <= n:
            raise ValueError(f"covariance: {m} residuals for {n} unknowns leave none for the noise")
        if np.linalg.matrix_rank(self.jac) < n:
            raise ValueError(
                "covariance: the residuals do not determine all unknowns (the Jacobian's rank is "
                f"{np.linalg.matrix_rank(self.jac)} of {n}); fix some, or add data"
            )
        r = np.linalg.qr(self.jac, mode="r")
        inverse = np.linalg.inv(r)
        return np.asarray(2.0 * self.cost / (m - n) * inverse @ inverse.T)
