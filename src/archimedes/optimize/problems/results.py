"""What a solver returns and how it ended, in the same words whatever the solver."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from archimedes.display import COLUMNS, Readable, brief, wrap

__all__ = ["Iteration", "Multipliers", "OptimizeResult", "Status"]


class Outcome(enum.IntEnum):
    """Why a solver stopped: a number, and a message that says what to do about it."""

    message: str

    def __new__(cls, value: int, message: str = "") -> Self:
        """Return a member with its message."""
        member = int.__new__(cls, value)
        member._value_, member.message = value, message
        return member


class Status(Outcome):
    """Why a solver stopped; below 10 it found what was asked for.

    >>> from archimedes.optimize import Status, minimize
    >>> minimize(lambda x: (x - 1.0) ** 2, 0.0).status.name, Status.SOLVED < 10
    ('SOLVED', True)
    """

    SOLVED = 0, "solved: the conditions of a minimum hold within the tolerance"
    ACCEPTABLE = (
        1,
        "solved to a looser tolerance than asked for: no step improves the point any more; "
        "look at the residuals, and scale unknowns and constraints to sizes near 1",
    )
    INFEASIBLE = (
        10,
        "no point near here satisfies the constraints: the residuals name those that cannot "
        "be met; relax them, or start elsewhere",
    )
    UNBOUNDED = (
        11,
        "the objective falls without end (or the unknowns run away): bound the unknowns, or "
        "look at the sign of the objective",
    )
    ITERATION_LIMIT = 12, "stopped at the iteration limit: raise options['maxiter'] or start closer"
    TIME_LIMIT = 13, "stopped at the limit of time: raise options['maxtime'], or start closer"
    NOT_FINITE = (
        14,
        "the objective, a constraint or a derivative is nan or infinite: start elsewhere, or "
        "keep the unknowns with bounds= where the functions are defined",
    )
    STALLED = (
        15,
        "no step makes progress, though the point is no minimum: are the functions smooth, "
        "and are unknowns and constraints of sizes near 1?",
    )
    OVERDETERMINED = 16, "more equations than free unknowns: drop constraints or free unknowns"
    INTERRUPTED = 17, "interrupted: x is the best point that was reached"
    FAILED = 18, "the solver failed"
    COARSE_MESH = (
        19,
        "solved on its mesh, whose errors are above mesh_tol: raise max_refinements or "
        "intervals, or put nodes where a control switches",
    )
    NOT_CONVEX = (
        20,
        "P is not symmetric or not positive semidefinite, so that the point need not be a "
        "minimum: give (P + P.T) / 2, which is the same cost, or use minimize",
    )

    @property
    def success(self) -> bool:
        """Whether the point is a solution."""
        return self < 10


class Ended(Readable):
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

    def _outcome(self, effort: str, x: Any) -> str:
        """Return how it ended, what it took, and the solution."""
        outcome = f"{'success' if self.success else 'FAILED'}: {self.message}"
        return "\n".join([wrap(outcome), effort, f"x = {brief(x, COLUMNS - 4)}"])


@dataclass(frozen=True, repr=False)
class Multipliers(Readable):
    """Lagrange multipliers, in the signs of IPOPT, CasADi and SciPy.

    At the solution ``grad f + A^T constr + bounds = 0``, with the Jacobian A of the constraints.
    They are positive where an upper limit is active, negative where a lower one is. A limit that
    moves up by d changes the minimum by -multiplier * d.

    Parameters
    ----------
    constr : tree
        Multipliers of the constraints, with their structure.
    bounds : tree
        Multipliers of the bounds, with the structure of the unknowns.

    Examples
    --------
    >>> from archimedes.optimize import minimize
    >>> found = minimize(lambda x: (x - 3.0) ** 2, 0.0, bounds=(None, 1.0))
    >>> round(float(found.multipliers.bounds), 4)
    4.0
    """

    constr: Any
    bounds: Any


@dataclass(frozen=True, repr=False)
class Iteration(Readable):
    """What a callback is told after each iteration.

    Parameters
    ----------
    number : int
        Number of the iteration.
    x : tree
        Unknowns, with the structure of x0.
    fun : float
        Objective.
    violation : float
        Largest violation of constraints and bounds.

    Examples
    --------
    >>> from archimedes.optimize import minimize
    >>> seen = []
    >>> _ = minimize(lambda x: (x - 1.0) ** 2, 0.0, callback=seen.append)
    >>> seen[-1].number > 0, round(float(seen[-1].x), 6)
    (True, 1.0)
    """

    number: int
    x: Any
    fun: float
    violation: float


@dataclass(frozen=True, repr=False)
class OptimizeResult(Ended):
    """The outcome of a minimization.

    Parameters
    ----------
    x : tree
        Solution, with the structure of x0.
    fun : float
        Objective at x.
    status : Status
        Why the solver stopped.
    multipliers : Multipliers
        Multipliers of constraints and bounds.
    iterations : int
        Number of iterations.
    constr : tree, optional
        Values of the constraints.
    residuals : dict, optional
        Largest violation of each constraint, by name.
    violation : float, optional
        Largest violation of constraints and bounds.
    evaluations : dict, optional
        Numbers of evaluations: ``"values"``, ``"slopes"`` (gradient and Jacobian), ``"curvature"``
        (Hessian).
    times : dict, optional
        Times in s that these took, and ``"solve"``.
    solver : str, optional
        Name of the solver.
    details : str, optional
        What the solver says.

    Examples
    --------
    >>> import archimedes as arc
    >>> result = arc.minimize(lambda x: (x - 2.0) ** 2, 0.0)
    >>> result.success, round(float(result.x), 6)
    (True, 2.0)
    """

    x: Any
    fun: float
    status: Status
    multipliers: Multipliers
    iterations: int
    constr: Any = None
    residuals: dict[str, float] = field(default_factory=dict)
    violation: float = 0.0
    evaluations: dict[str, int] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    solver: str = ""
    details: str = ""

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        text = self.status.message
        if self.status is Status.INFEASIBLE and self.residuals:
            name = max(self.residuals, key=self.residuals.__getitem__)
            text += f"; farthest off is {name}, by {self.residuals[name]:.3g}"
        return f"{text} ({self.solver}: {self.details})" if self.details else text

    @property
    def nit(self) -> int:
        """SciPy's name of ``iterations``."""
        return self.iterations

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this is the result of a minimisation; the unknowns are its .x")

    # Otherwise NumPy would make an array of one object of it, silently.
    __array__ = __getitem__ = __iter__ = __len__ = __float__ = _refuse

    def __repr__(self) -> str:
        effort = (
            f"fun = {self.fun:.10g} after {self.iterations} iterations, "
            f"{self.times.get('solve', 0.0):.3g} s; violation {self.violation:.3g}"
        )
        return self._outcome(effort, self.x)
