"""``OptimalControl``: what is to be flown, minimised and respected, whatever the method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.display import Readable
from archimedes.errors import TraceError
from archimedes.function.recording_store import find_or_make, form_of
from archimedes.function.region_bodies import must_record
from archimedes.optimize.optimal_control.equations import Guess
from archimedes.optimize.optimal_control.schemes import find_scheme
from archimedes.optimize.optimal_control.solution import ControlSolution, make_mesh, refine_until
from archimedes.optimize.optimal_control.transcription import Call, Recordings, Transcription
from archimedes.optimize.problems.unknowns import read_limits
from archimedes.optimize.solvers.solver_table import solve_task
from archimedes.typing import Tree

__all__ = ["OptimalControl"]


@dataclass(eq=False, repr=False)
class OptimalControl(Readable):
    """An optimal control problem: find the best controls u(t) and, if there are any, parameters p.

    States, controls and parameters are trees (structs, arrays, numbers). ``rest`` below stands for
    p, if the guess has one, followed by the ``args`` of `solve`.

    Parameters
    ----------
    dynamics : callable
        ``dynamics(t, x, u, *rest)`` returns dx/dt with the structure of x.
    running_cost : callable, optional
        ``running_cost(t, x, u, *rest)``, whose integral is part of the cost.
    terminal_cost : callable, optional
        ``terminal_cost(t0, x0, tf, xf, *rest)``, the other part of the cost.
    initial : tree, optional
        Initial state: a tree like x with None where the state is free.
    final : tree, optional
        Final state, likewise.
    t0 : float or (lower, upper), optional
        Initial time, or its limits if it is free.
    tf : float or (lower, upper), optional
        Final time, or its limits if it is free.
    state_bounds : (lower, upper), optional
        Limits of the states, as in :func:`minimize`.
    control_bounds : (lower, upper), optional
        Limits of the controls.
    parameter_bounds : (lower, upper), optional
        Limits of the parameters.
    path : callable, optional
        Path constraint ``path(t, x, u, *rest)``, which holds at all times.
    path_bounds : (lower, upper), optional
        Its limits. Zero by default.
    boundary : callable, optional
        Boundary constraint ``boundary(t0, x0, tf, xf, *rest)``.
    boundary_bounds : (lower, upper), optional
        Its limits. Zero by default.
    integrals : callable, optional
        ``integrals(t, x, u, *rest)`` returns any tree of rates, whose integrals over the whole time
        are constrained.
    integral_bounds : (lower, upper), optional
        Their limits.

    Examples
    --------
    >>> rest_to_rest = OptimalControl(
    ...     lambda t, x, u: np.array([x[1], u]),
    ...     running_cost=lambda t, x, u: u**2,
    ...     initial=[0.0, 0.0], final=[1.0, 0.0], t0=0.0, tf=1.0)
    >>> round(rest_to_rest.solve({"x": np.zeros(2), "u": 0.0}, intervals=4).fun, 6)
    12.0
    """

    dynamics: Callable[..., Any]
    running_cost: Callable[..., Any] | None = None
    terminal_cost: Callable[..., Any] | None = None
    initial: Tree = None
    final: Tree = None
    t0: Any = 0.0
    tf: Any = 1.0
    state_bounds: Any = None
    control_bounds: Any = None
    parameter_bounds: Any = None
    path: Callable[..., Any] | None = None
    path_bounds: Any = None
    boundary: Callable[..., Any] | None = None
    boundary_bounds: Any = None
    integrals: Callable[..., Any] | None = None
    integral_bounds: Any = None

    def __post_init__(self) -> None:
        if not callable(self.dynamics):
            raise TypeError("OptimalControl: dynamics must be a function (t, x, u) -> dx/dt")
        if self.running_cost is None and self.terminal_cost is None:
            raise ValueError("OptimalControl: give a running_cost, a terminal_cost, or both")
        limited = {"path": "path", "boundary": "boundary", "integral": "integrals"}
        for kind, what in limited.items():
            if getattr(self, f"{kind}_bounds") is not None and getattr(self, what) is None:
                raise ValueError(f"OptimalControl: {kind}_bounds are given, but no {what}")
        for name in ("t0", "tf"):
            _check_time(name, getattr(self, name))

    def solve(
        self,
        guess: Mapping[str, Any] | ControlSolution,
        *,
        intervals: int | np.ndarray = 30,
        scheme: str = "hermite-simpson",
        method: str = "ipm",
        args: tuple[Any, ...] = (),
        options: Mapping[str, Any] | None = None,
        mesh_tol: float | None = None,
        max_refinements: int = 6,
        callback: Callable[..., Any] | None = None,
    ) -> ControlSolution:
        """Solve by collocation or multiple shooting.

        Parameters
        ----------
        guess : dict or ControlSolution
            A dict with ``"x"`` and ``"u"`` (constant trees, or functions of s in [0, 1] along the
            way), ``"p"`` if there are parameters, and ``"t0"`` and ``"tf"`` if they are free; or an
            earlier solution, whose multipliers are used too if the mesh is the same.
        intervals : int or array, optional
            Number of intervals, or a mesh from 0 to 1. 30 by default.
        scheme : str, optional
            How intervals become equations: ``"trapezoidal"``, ``"hermite-simpson"`` (default),
            ``"radau1"`` to ``"radau9"``, or ``"multiple-shooting"``.
        method : str, optional
            The solver, as in :func:`minimize`: ``"ipm"`` (default), ``"ipopt"`` or a method of
            SciPy.
        args : tuple, optional
            Further arguments of the functions.
        options : mapping, optional
            Options of :func:`minimize`.
        mesh_tol : float, optional
            Refine the mesh until the estimated relative error of each interval is below this. A
            solution whose errors are still larger is no success. None by default.
        max_refinements : int, optional
            Largest number of refinements, 6 by default.
        callback : callable, optional
            Function that is called after each iteration.
        """
        if must_record((guess, args)):
            raise TraceError(
                "OptimalControl.solve returns a trajectory with text and times, which cannot be "
                "part of a recorded function: solve outside, and pass what you need of it in"
            )
        call, mesh = Call.read(args, options, method, callback), make_mesh(intervals)
        start = guess if isinstance(guess, ControlSolution) else Guess.read(guess, self)
        solve_on = lambda mesh, start: self._solve_on(mesh, start, scheme, call)  # noqa: E731
        return refine_until(solve_on(mesh, start), mesh_tol, max_refinements, solve_on)

    def _solve_on(
        self, mesh: np.ndarray, start: Guess | ControlSolution, scheme: str, call: Call
    ) -> ControlSolution:
        """Solve on one mesh."""
        began, warm = time.perf_counter(), None
        if isinstance(start, ControlSolution):
            warm, start = (start.program, start.answer), start.as_guess()
        transcription = self.transcription(start, scheme, call.args)
        program = transcription.discretize(mesh, start, call, warm)
        answer = solve_task(program.task, call.solver)
        return ControlSolution(program, answer, time.perf_counter() - began)

    @property
    def functions(self) -> tuple[Callable[..., Any] | None, ...]:
        """The functions of the problem, in the order of ``Equations``."""
        return (
            *(self.dynamics, self.running_cost, self.terminal_cost),
            *(self.path, self.boundary, self.integrals),
        )

    def transcription(self, guess: Guess, scheme: str, args: tuple[Any, ...]) -> Transcription:
        """Return the equations of a scheme. What is recorded of them is kept between calls.

        Parameters
        ----------
        guess : Guess
            The guess.
        scheme : str
            The scheme.
        args : tuple
            Further arguments of the functions.
        """
        rule = find_scheme(scheme)
        low, high = read_limits(self.state_bounds, guess.x_like, "state_bounds")
        limited = tuple(np.flatnonzero(np.isfinite(low) | np.isfinite(high)).tolist())
        recordings = find_or_make(
            "transcription",
            self.functions,
            (scheme, limited, form_of((guess.x_like, guess.u_like, guess.p)), form_of(args)),
            lambda current: Recordings(current, rule, guess, args, limited),
        )
        return Transcription(self, rule, recordings)


def _check_time(name: str, time: object) -> None:
    """Raise where a time is neither a finite number nor a pair (lower, upper)."""
    pair = isinstance(time, (tuple, list))
    values = np.asarray(time if pair else [time])
    good = values.dtype.kind in "fiu" and values.shape == ((2,) if pair else (1,))
    if not good or np.any(np.isnan(values)) or not (pair or np.isfinite(values[0])):
        raise ValueError(
            f"OptimalControl: {name} must be a number, or a pair (lower, upper) where it is free, "
            f"got {time!r}"
        )
    if pair and values[0] > values[1]:
        raise ValueError(f"OptimalControl: {name} = {time}: lower limit above upper limit")
