"""``OptimalControl``: what is to be flown, minimised and respected, whatever the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.identity.store import form_of, prepared
from archimedes.function.region_bodies import any_traced
from archimedes.optimize.optimal_control.guesses import Guess
from archimedes.optimize.optimal_control.refinement import refined
from archimedes.optimize.optimal_control.schemes import scheme_of
from archimedes.optimize.optimal_control.solution import ControlSolution
from archimedes.optimize.optimal_control.transcription import Recordings, Transcription

__all__ = ["OptimalControl", "mesh_of"]


@dataclass(eq=False)
class OptimalControl:
    """An optimal control problem: the best controls u(t) and, if there are any, parameters p.

    States, controls and parameters are trees (structs, arrays, numbers). ``rest`` below is p, if
    the guess has one, followed by the ``args`` of ``solve``.

    - ``dynamics(t, x, u, *rest)`` returns dx/dt with the structure of x.
    - The cost is ``terminal_cost(t0, x0, tf, xf, *rest)`` plus the integral of
      ``running_cost(t, x, u, *rest)``.
    - ``initial`` and ``final`` are trees like x with numbers where the state is given and None
      where it is free; ``t0`` and ``tf`` are numbers, or pairs (lower, upper) where free.
    - ``state_bounds``, ``control_bounds``, ``parameter_bounds``: pairs (lower, upper) as in
      :func:`minimize`.
    - ``integrals(t, x, u, *rest)`` returns any tree of rates, whose integrals over the whole time
      lie within ``integral_bounds``.
    - ``path(t, x, u, *rest)`` lies within ``path_bounds`` all along,
      ``boundary(t0, x0, tf, xf, *rest)`` within ``boundary_bounds``; without them they are zero.

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
    initial: Any = None
    final: Any = None
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
        for name, function in (
            ("path_bounds", self.path),
            ("boundary_bounds", self.boundary),
            ("integral_bounds", self.integrals),
        ):
            if getattr(self, name) is not None and function is None:
                what = "integrals" if name == "integral_bounds" else name.removesuffix("_bounds")
                raise ValueError(f"OptimalControl: {name} are given, but no {what} they are for")
        for name in ("t0", "tf"):
            _check_time(name, getattr(self, name))

    def solve(
        self,
        guess: Mapping[str, Any] | ControlSolution,
        *,
        intervals: int | np.ndarray = 30,
        method: str = "hermite-simpson",
        args: tuple[Any, ...] = (),
        options: Mapping[str, Any] | None = None,
        mesh_tol: float | None = None,
        max_refinements: int = 6,
        callback: Callable[..., Any] | None = None,
        solver: str = "ipm",
    ) -> ControlSolution:
        """Solve from a guess, by collocation or multiple shooting.

        ``guess`` is a dict with "x" and "u" (constant trees, or functions of s in [0, 1] along
        the way), "p" where there are parameters, "t0" and "tf" where they are free; or an earlier
        solution, whose multipliers are used too where the mesh is the same. ``intervals`` is
        their number, or a mesh from 0 to 1. ``method`` is "trapezoidal", "hermite-simpson",
        "radau1" to "radau9" or "multiple-shooting". With ``mesh_tol`` the mesh is refined until
        the estimated relative error of each interval is below it, ``max_refinements`` times at
        most; a solution whose errors are still larger is no success. ``solver`` is "ipm" (the
        interior-point method of this package, on banded systems) or "ipopt"; ``options`` are
        those of :func:`minimize`.
        """
        if any_traced((guess, args)):
            raise TraceError(
                "OptimalControl.solve returns a trajectory with text and times, which cannot be "
                "part of a recorded function: solve outside, and pass what you need of it in"
            )
        mesh = mesh_of(intervals)
        args = args if isinstance(args, tuple) else (args,)
        start = guess if isinstance(guess, ControlSolution) else Guess.of(guess, self)
        found = self._solve_on(mesh, start, method, args, options, callback, solver)
        for _ in range(max_refinements):
            finer = None if mesh_tol is None else refined(found, mesh_tol, scheme_of(method).order)
            if finer is None or not found.success:
                break
            found = self._solve_on(finer, found, method, args, options, callback, solver)
        found.mesh_tol = mesh_tol
        return found

    def _solve_on(
        self,
        mesh: np.ndarray,
        start: Any,
        method: str,
        args: Any,
        options: Any,
        callback: Any,
        solver: str,
    ) -> ControlSolution:
        guess = start.as_guess() if isinstance(start, ControlSolution) else start
        made = self.transcription(guess, method, tuple(args))
        warm = start if isinstance(start, ControlSolution) else None
        return made.solve(mesh, guess, tuple(args), options, callback, warm, solver)

    @property
    def functions(self) -> tuple[Callable[..., Any] | None, ...]:
        """The functions of the problem, in the order of ``Equations``."""
        return (
            *(self.dynamics, self.running_cost, self.terminal_cost),
            *(self.path, self.boundary, self.integrals),
        )

    def transcription(self, guess: Guess, method: str, args: tuple[Any, ...]) -> Transcription:
        """Return the equations of a method; what is recorded of them is kept between calls."""
        scheme = scheme_of(method)
        recorded = prepared(
            "transcription",
            self.functions,
            (method, guess.form(), form_of(args)),
            lambda current: Recordings(current, scheme, guess, args),
        )
        return Transcription(self, scheme, recorded)


def _check_time(name: str, given: Any) -> None:
    pair = isinstance(given, (tuple, list))
    values = np.asarray(given if pair else [given])
    good = values.dtype.kind in "fiu" and values.shape == ((2,) if pair else (1,))
    if not good or np.any(np.isnan(values)) or not (pair or np.isfinite(values[0])):
        raise ValueError(
            f"OptimalControl: {name} must be a number, or a pair (lower, upper) where it is free, "
            f"got {given!r}"
        )
    if pair and values[0] > values[1]:
        raise ValueError(f"OptimalControl: {name} = {given} is crossed: lower above upper")


def mesh_of(intervals: Any) -> np.ndarray:
    """Return a mesh from 0 to 1, given as it is or as a number of intervals."""
    try:
        mesh = np.asarray(intervals, dtype=float)
    except (TypeError, ValueError):
        mesh = np.asarray(np.nan)
    if mesh.ndim == 0:
        if not (mesh >= 1 and mesh == np.round(mesh) and np.isfinite(mesh)):
            raise ValueError(
                f"intervals = {intervals!r} must be a whole number, at least 1, or a mesh from 0 "
                "to 1"
            )
        return np.linspace(0.0, 1.0, int(mesh) + 1)
    if (
        mesh.ndim != 1
        or mesh.size < 2
        or mesh[0] != 0.0
        or mesh[-1] != 1.0
        or not np.all(np.diff(mesh) > 0)
    ):
        raise ValueError("intervals: a mesh must rise from 0 to 1")
    return mesh
