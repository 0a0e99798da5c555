"""How a solve ended, in the same words whatever the solver."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

__all__ = ["Ended", "Status"]


class Status(enum.IntEnum):
    """Why a solver stopped; below 10 it found what was asked for.

    >>> from archimedes.optimize import Status, minimize
    >>> minimize(lambda x: (x - 1.0) ** 2, 0.0).status.name, Status.SOLVED < 10
    ('SOLVED', True)
    """

    SOLVED = 0
    ACCEPTABLE = 1
    INFEASIBLE = 10
    UNBOUNDED = 11
    ITERATION_LIMIT = 12
    TIME_LIMIT = 13
    NOT_FINITE = 14
    STALLED = 15
    OVERDETERMINED = 16
    INTERRUPTED = 17
    FAILED = 18
    COARSE_MESH = 19
    NOT_CONVEX = 20

    @property
    def success(self) -> bool:
        """Whether the point is a solution."""
        return self < 10

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        return _MESSAGES[self]


class Ended:
    """What results say of their ``status``, whatever solver it is of."""

    if TYPE_CHECKING:

        @property
        def status(self) -> Any:
            """How the solver ended."""

    @property
    def success(self) -> bool:
        """Whether it was solved."""
        return bool(self.status.success)

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        return str(self.status.message)


_MESSAGES = {
    Status.SOLVED: "solved: the conditions of a minimum hold within the tolerance",
    Status.ACCEPTABLE: (
        "solved to a looser tolerance than asked for: no step improves the point any more; "
        "look at the residuals, and scale unknowns and constraints to sizes near 1"
    ),
    Status.INFEASIBLE: (
        "no point near here satisfies the constraints: the residuals name those that cannot be "
        "met; relax them, or start elsewhere"
    ),
    Status.UNBOUNDED: (
        "the objective falls without end (or the unknowns run away): bound the unknowns, or look "
        "at the sign of the objective"
    ),
    Status.ITERATION_LIMIT: (
        "stopped at the limit of iterations: raise options['maxiter'], or start closer"
    ),
    Status.TIME_LIMIT: "stopped at the limit of time: raise options['maxtime'], or start closer",
    Status.NOT_FINITE: (
        "the objective, a constraint or a derivative is nan or infinite: start elsewhere, or keep "
        "the unknowns with bounds= where the functions are defined"
    ),
    Status.STALLED: (
        "no step makes progress, though the point is no minimum: are the functions smooth, and "
        "are unknowns and constraints of sizes near 1?"
    ),
    Status.OVERDETERMINED: (
        "there are more equations than free unknowns: leave out constraints, or free unknowns"
    ),
    Status.INTERRUPTED: "interrupted: x is the best point that was reached",
    Status.FAILED: "the solver failed",
    Status.COARSE_MESH: (
        "solved on its mesh, whose errors are above mesh_tol: raise max_refinements or intervals, "
        "or put nodes where a control switches"
    ),
    Status.NOT_CONVEX: (
        "P is not symmetric or not positive semidefinite, so that the point need not be a minimum: "
        "give (P + P.T) / 2, which is the same cost, or use minimize"
    ),
}
