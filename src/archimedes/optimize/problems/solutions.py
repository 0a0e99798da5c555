"""What a solver returns, whichever it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from archimedes.optimize.problems.statuses import Ended, Status

__all__ = ["Iteration", "Multipliers", "OptimizeResult"]


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of the constraints and bounds, in the signs of IPOPT, CasADi and SciPy.

    ``constr`` has the structure of the constraints, ``bounds`` that of the unknowns. At the
    solution grad f + A^T constr + bounds = 0, where A is the Jacobian of the constraints:
    positive where an upper limit holds, negative where a lower one does. A limit that moves up
    by d changes the minimum by -multiplier * d.

    >>> from archimedes.optimize import minimize
    >>> found = minimize(lambda x: (x - 3.0) ** 2, 0.0, bounds=(None, 1.0))
    >>> round(float(found.multipliers.bounds), 4)
    4.0
    """

    constr: Any
    bounds: Any


@dataclass(frozen=True)
class Iteration:
    """What a callback is told after each iteration; ``x`` has the structure of x0.

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


@dataclass(frozen=True)
class OptimizeResult(Ended):
    """The outcome of a minimisation.

    ``x`` has the structure of x0, ``constr`` that of the constraints' values. ``residuals`` names
    each constraint and says by how much it is violated at most; ``violation`` is the largest of
    those and of the bounds. ``evaluations`` and ``times`` (s) count the work: "values",
    "slopes" (gradient and Jacobian), "curvature" (Hessian), in times also "solve".

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

    def __str__(self) -> str:
        lines = [
            f"{'success' if self.success else 'FAILED'}: {self.message}",
            f"fun = {self.fun:.10g} after {self.iterations} iterations, "
            f"{self.times.get('solve', 0.0):.3g} s; violation {self.violation:.3g}",
            f"x = {self.x}",
        ]
        return "\n".join(lines)
