"""The solvers of nonlinear programs: a row says all that is asked of one.

`minimize`, `nlp_solver`, `OptimalControl` and `Phases` take the names of the rows as ``method=``.
A solver gets a :class:`Task` and returns an :class:`Answer`; ``solve_task.py`` calls it, checks
what it calls solved, and has it go on where that does not hold. To add one, write a function
``solve(task, solver)`` and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from archimedes.optimize.problems.tasks import Answer, Task


@dataclass(frozen=True)
class Solver:
    """A row of the table.

    Parameters
    ----------
    name : str
        Name, as users write it after ``method=``; upper and lower case are the same.
    solve : callable
        ``solve(task, solver)`` minimizes, where `solver` is this row.
    bounds : bool, optional
        Whether it takes bounds of the unknowns.
    constraints : bool, optional
        Whether it takes constraints.
    derivatives : int, optional
        The highest derivatives that it asks for: 0, 1 (gradients) or 2 (Hessians).
    options : tuple of str, optional
        Names of its own options, besides ``maxiter``, ``maxtime`` and ``tol``. None: it takes any,
        and raises ValueError for those that it does not know.
    record : callable, optional
        ``record(program, settings)`` returns the solver as recorded code: a function ``(x0, limits,
        *args)`` of vectors. Such a solver becomes part of compiled functions. It needs the whole
        problem as one function, which trajectories are too large for.
    proves_infeasible : bool, optional
        Whether INFEASIBLE is proven. Otherwise the constraints are looked at once more.
    tolerances : mapping, optional
        Names of its tolerances, and the power of ``tol`` that each of them is.
    maxiter : str, optional
        Its name of the largest number of iterations.
    most_slope : float, optional
        The objective is scaled such that no slope at the start is larger than this.
    """

    name: str
    solve: Callable[[Task, Solver], Answer]
    bounds: bool = False
    constraints: bool = False
    derivatives: int = 1
    options: tuple[str, ...] | None = None
    record: Callable[..., Callable[..., Any]] | None = None
    proves_infeasible: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)
    maxiter: str = "maxiter"
    most_slope: float = np.inf

    def check(self, task: Task) -> None:
        """Raise where a task has something that this solver does not take."""
        free = task.lower < task.upper
        limits = {
            "constraints": np.concatenate([task.low, task.high]),
            "bounds": np.concatenate([task.lower[free], task.upper[free]]),
        }
        for what, values in limits.items():
            if not getattr(self, what) and np.any(np.isfinite(values)):
                able = [s.name for s in SOLVERS.values() if getattr(s, what)]
                raise ValueError(f"method={self.name!r} takes no {what}: use one of {able}")
        unknown = [] if self.options is None else sorted({*task.settings.more} - {*self.options})
        if unknown:
            raise ValueError(
                f"options: method={self.name!r} takes no option {unknown[0]!r}; it takes "
                f"{('maxiter', 'maxtime', 'tol', *(self.options or ()))}"
            )


def _import(module: str, function: str = "solve") -> Callable[..., Any]:
    """Return a function of a module of this folder, which is imported when it is called."""

    def call(*arguments: object) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), function)(*arguments)

    return call


def _scipy(
    name: str,
    takes: str,
    derivatives: int,
    maxiter: str = "maxiter",
    most_slope: float = np.inf,
    **tolerances: float,
) -> Solver:
    """Return the row of a method of SciPy."""
    return Solver(
        *(name, _import("scipy_methods"), "bounds" in takes, "constraints" in takes, derivatives),
        tolerances=tolerances,
        maxiter=maxiter,
        most_slope=most_slope,
    )


# An error e of x changes f by its square: what f may change by is smaller than tol. SLSQP calls
# constraints incompatible where slopes of the objective are large. trust-constr would take the
# minimum of a barrier problem for its own.
_ANY: dict[str, Any] = {"bounds": True, "constraints": True, "derivatives": 2}
_ROWS = (
    Solver(
        *("ipm", _import("interior_point.method")),
        **_ANY,
        options=("mu_init",),
        proves_infeasible=True,
    ),
    Solver("ipopt", _import("ipopt"), **_ANY),
    Solver("sqp", _import("sqp"), **_ANY, options=(), record=_import("sqp", "record")),
    _scipy("SLSQP", "bounds, constraints", 1, most_slope=100.0, ftol=1.5),
    _scipy("trust-constr", "bounds, constraints", 2, gtol=2.0, xtol=1.0, barrier_tol=1.0),
    _scipy("L-BFGS-B", "bounds", 1, gtol=1.0, ftol=1.5),
    _scipy("TNC", "bounds", 1, "maxfun", gtol=1.0, ftol=1.5),
    _scipy("BFGS", "", 1, gtol=1.0),
    _scipy("CG", "", 1, gtol=1.0),
    _scipy("Newton-CG", "", 2, xtol=1.0),
    _scipy("trust-exact", "", 2, gtol=1.0),
    _scipy("trust-ncg", "", 2, gtol=1.0),
    _scipy("trust-krylov", "", 2, gtol=1.0),
    _scipy("Nelder-Mead", "bounds", 0, xatol=1.0, fatol=1.0),
    _scipy("Powell", "bounds", 0, xtol=1.0, ftol=1.5),
    _scipy("COBYQA", "bounds, constraints", 0, final_tr_radius=1.0),
)
#: All solvers by name, in lower case.
SOLVERS: dict[str, Solver] = {row.name.lower(): row for row in _ROWS}
#: What users of other packages call a solver.
_ALIASES = {"sqpmethod": "sqp"}


def find_solver(method: str, trajectory: bool = False) -> Solver:
    """Return a solver by name; only those that take a ``trajectory`` where that is asked for."""
    name = method.lower() if isinstance(method, str) else ""
    solver = SOLVERS.get(_ALIASES.get(name, name))
    if solver is None or (trajectory and solver.record is not None):
        names = tuple(s.name for s in SOLVERS.values() if not (trajectory and s.record))
        raise ValueError(f"method={method!r} is not one of {names}")
    return solver
