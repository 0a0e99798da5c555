"""What an optimal control problem gives: trajectories, costates, errors, and finer meshes.

An interval is flown again from its first node, by many small steps of the Runge-Kutta method of
order 4, with the control of the solution as far as its bounds allow it. What differs from the
solution, in the middle and at the end of the interval, is its error.

A control that switches within an interval (bang-bang) is something that no polynomial shows: the
equations hold, and still the states are off, because the switch is somewhere else. There the
interval is flown a second time, with a step that has the same mean.

Between its points a control is a polynomial, which may leave the limits that hold at the points.
Controls are cut off there: the states were found with the whole polynomial, and what that changes
is part of the errors.

Symbols: s in [0, 1] along an interval, m mean controls of intervals.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from archimedes import tree
from archimedes.checks import check_positive, check_whole
from archimedes.function import vmap
from archimedes.optimize.optimal_control.equations import Guess
from archimedes.optimize.optimal_control.reports import write_report
from archimedes.optimize.optimal_control.transcription import Discretization
from archimedes.optimize.problems.blocks import select_columns
from archimedes.optimize.problems.results import Ended, Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.problems.unknowns import read_limits
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.typing import ArrayLike, Tree

__all__ = ["ControlSolution"]

#: Errors of a mesh that its message tells of.
LARGE = 1e-2
#: States count as at least this part of the size that guess and bounds give them.
LEAST_SIZE = 1e-5
#: A control switches to or from a bound (as nearly as this part of its range) where it changes
#: this many times faster than in the intervals beside, by at least this part of its range.
AT_BOUND, FASTER, PART = 0.02, 4.0, 0.05
#: Steps that differ from twice as many by more than this part of the error are too long for it.
TRUSTED = 0.2
#: An interval is cut into at most this many at a time; around a switch, this part is cut out.
MOST, SWITCH = 4, (1.0 / 16.0, 1.0 / 3.0)


class MeshSolution(Ended):
    """A solution on a mesh, with the answer of a solver."""

    #: What the errors of the mesh should be below, where that was asked for.
    mesh_tol: float | None = None
    #: Entries of ``meshes`` before the last.
    earlier_meshes: tuple[dict[str, Any], ...] = ()

    if TYPE_CHECKING:

        @property
        def errors(self) -> np.ndarray:
            """Estimated errors of the intervals."""

        @property
        def parts(self) -> list[ControlSolution]:
            """The phases, or the solution itself."""

        def finer_mesh(self, tol: float) -> Any:
            """Return a mesh on which errors should be below ``tol``, or None if they are."""

    def __init__(self, task: Task, answer: Answer, seconds: float) -> None:
        self.task, self.answer = task, answer
        self.fun, g = task.evaluator.values(answer.x)
        self.violation = task.violation(answer.x, g)
        self.evaluations, self.times = task.evaluator.summarize(seconds)

    @property
    def meshes(self) -> tuple[dict[str, Any], ...]:
        """The meshes that were solved on: intervals, largest error, iterations, time in s.

        Each is a dict with ``"intervals"``, ``"error"``, ``"iterations"`` and ``"seconds"``; with
        ``mesh_tol`` there may be several.
        """
        own = {
            "intervals": len(self.errors),
            "error": self.mesh_error,
            "iterations": self.iterations,
            "seconds": self.times["solve"],
        }
        return (*self.earlier_meshes, own)

    def report(self) -> str:
        """Return a short text: how it ended, cost, effort, mesh, errors, and what is active.

        The largest violation of an equation or limit is in your units, that of the states, controls
        or constraints that it is of. A limit is active where it is reached.
        """
        return write_report(self)

    @property
    def mesh_error(self) -> float:
        """The largest of ``errors``."""
        return float(np.max(self.errors))

    @property
    def status(self) -> Status:
        """How it ended: the solver, and the search for a mesh if ``mesh_tol`` was given."""
        status = self.answer.status
        if not status.success or self.mesh_tol is None or self.mesh_error <= self.mesh_tol:
            return status
        return Status.COARSE_MESH

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        status = self.status
        if not self.answer.status.success:
            return status.message
        error, count = self.mesh_error, len(self.errors)
        text = status.message
        if status is Status.COARSE_MESH:
            text += f": the largest error of {count} intervals is {error:.2g}"
            if len(self.parts) > 1:
                text += f" (phase {int(np.argmax([part.mesh_error for part in self.parts]))})"
            text += f", mesh_tol = {self.mesh_tol:g}"
        elif not error <= LARGE:
            text += f"; but the mesh is coarse: in one of {count} intervals states are off by "
            text += f"{error:.2g} of their size (mesh_error): raise intervals, or give mesh_tol"
        return text

    @property
    def iterations(self) -> int:
        """Iterations of the solver."""
        return self.answer.iterations

    def _summarize(self, what: str) -> str:
        name, state = type(self).__name__, "solved" if self.success else "FAILED"
        return f"<{name} {state}: cost {self.fun:.8g}, {what}>"


class ControlSolution(MeshSolution):
    """The solution of an optimal control problem.

    ``t0`` and ``tf`` are the first and the last time, ``t`` (n,) the times of the nodes; ``x`` and
    ``u`` the states and controls there, trees with time as the leading axis; ``p`` the parameters.
    ``trajectory`` is all of this as a `Trajectory`, which is also known between the nodes.
    ``errors`` are the estimated errors of the intervals, and ``mesh_error`` the largest of them.
    ``arc.plot(solution)`` draws it, and ``solution.report()`` sums it up.

    Controls are never beyond their limits, neither here nor in plots. The polynomials between the
    points of a scheme are cut off there, where a control switches (bang-bang) above all.

    ``success``, ``status``, ``message``, ``fun``, ``iterations``, ``violation``, ``evaluations``
    and ``times`` are those of `OptimizeResult`.

    Parameters
    ----------
    program : Discretization
        The problem on its mesh.
    answer : Answer
        What the solver returned.
    seconds : float
        Time that it took in s.

    Examples
    --------
    >>> from archimedes.optimize import OptimalControl
    >>> found = OptimalControl(lambda t, x, u: u, running_cost=lambda t, x, u: u**2,
    ...                        initial=0.0, final=1.0).solve({"x": 0.0, "u": 0.0}, intervals=2)
    >>> x, u = found.at(0.25)
    >>> round(float(x), 6), round(float(u), 6), round(found.fun, 6)
    (0.25, 1.0, 1.0)
    """

    def __init__(self, program: Discretization, answer: Answer, seconds: float) -> None:
        super().__init__(program.task, answer, seconds)
        self.program, self.mesh, self.scale = program, program.mesh, program.scale
        self.vector = answer.x * program.scale
        #: Initial and final time.
        self.t0, self.tf = self.vector[:2].tolist()
        #: Times of the nodes.
        self.t = self.t0 + (self.tf - self.t0) * self.mesh
        self.transcription = program.transcription
        self._layout, self._equations = program.layout, program.transcription.equations

    def __repr__(self) -> str:
        mesh = f"{self._layout.count} intervals by {self._layout.scheme.name}"
        return self._summarize(f"{mesh}, {self.iterations} iterations")

    @property
    def p(self) -> Tree:
        """Parameters, or None."""
        return self._equations.unravel_p(self.vector[2 : self._layout.head])

    @property
    def integrals(self) -> Tree:
        """Integrals over the whole time, as the tree that ``integrals`` returns, or None."""
        equations = self._equations
        if equations.integrals is None:
            return None
        unravel = tree.ravel(equations.integrals_like)[1]
        return unravel(self.vector[self._layout.X[-1, -1, equations.own :]])

    @cached_property
    def _nodes(self) -> tuple[Tree, Tree]:
        return self.at(self.t)

    @property
    def x(self) -> Tree:
        """States at the nodes, with a leading axis for time."""
        return self._nodes[0]

    @property
    def u(self) -> Tree:
        """Controls at the nodes, with a leading axis for time."""
        return self._nodes[1]

    def at(self, t: ArrayLike) -> tuple[Tree, Tree]:
        """Return states and controls at any times, as trees with time as the leading axis.

        Parameters
        ----------
        t : array (n,)
            Times.
        """
        s = (np.atleast_1d(np.asarray(t, dtype=float)) - self.t0) / ((self.tf - self.t0) or 1.0)
        if not np.all((s >= -1e-9) & (s <= 1 + 1e-9)):
            raise ValueError(f"t must lie between t0 = {self.t0:.6g} and tf = {self.tf:.6g}")
        X, _, U = self.along(s)
        x, u = self._equations.unravel_x, self._equations.unravel_u
        return (x(X[0]), u(U[0])) if np.ndim(t) == 0 else (vmap(x)(X), vmap(u)(U))

    def along(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return states, the residual of dx/dt = f, and controls, as vectors.

        Parameters
        ----------
        s : array (n,)
            Fractions of the duration, 0 to 1.
        """
        k = np.clip(np.searchsorted(self.mesh, s, side="right") - 1, 0, self._layout.count - 1)
        return self._within(k, (s - self.mesh[k]) / (self.mesh[k + 1] - self.mesh[k]))

    def _within(
        self, k: np.ndarray, where: np.ndarray, clip: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return states, residuals and controls at positions, 0 to 1, within intervals k."""
        X, rest, U = self.map_equations("between", k, (self.mesh[k], self.mesh[k + 1], where))
        return X, rest, np.clip(U, *self.control_bounds()) if clip else U

    @cached_property
    def trajectory(self) -> Trajectory:
        """The solution at the nodes as a `Trajectory`, which also knows the states between them.

        ``y`` are the values of the path constraints, if there are any. At a node where the control
        jumps, ``u`` is that of the interval that begins there.
        """
        return self._make_trajectory(self.t, *self.along(self.mesh)[::2], dense=self._find_states)

    def sample(self, count: int = 10) -> Trajectory:
        """Return a trajectory with so many points in each interval, both of its ends included.

        At inner nodes there are two samples, so that a control that jumps there has both values.

        Parameters
        ----------
        count : int, optional
            Points in each interval, at least 2. 10 by default.
        """
        check_whole(count, "sample: count", 2)
        k = np.repeat(np.arange(self._layout.count), count)
        where = np.tile(np.linspace(0.0, 1.0, count), self._layout.count)
        s = self.mesh[k] + where * (self.mesh[k + 1] - self.mesh[k])
        return self._make_trajectory(
            self.t0 + (self.tf - self.t0) * s, *self._within(k, where)[::2]
        )

    def _find_states(self, t: ArrayLike) -> Tree:
        return self.at(t)[0]

    def _make_trajectory(
        self, t: np.ndarray, X: np.ndarray, U: np.ndarray, dense: Any = None
    ) -> Trajectory:
        equations, path = self._equations, self._equations.path
        x, u, y = vmap(equations.unravel_x)(X), vmap(equations.unravel_u)(U), None
        if path is not None:
            rest = equations.rest(self.vector[2 : self._layout.head], self.program.args)
            y = vmap(lambda t, x, u: path(t, x, u, *rest))(t, x, u)
        return Trajectory(
            *(t, x),
            u=u,
            y=y,
            status=0 if self.success else -1,
            message=self.message,
            stats={"iterations": self.iterations, "intervals": self._layout.count},
            dense=dense,
            hold=self.transcription.scheme.hold,
        )

    @property
    def parts(self) -> list[ControlSolution]:
        """The solution itself: its only phase."""
        return [self]

    def finer_mesh(self, tol: float) -> np.ndarray | None:
        """Return a mesh on which errors should be below a tolerance, or None if they are.

        Parameters
        ----------
        tol : float
            The tolerance.
        """
        return refine_mesh(self, tol)

    def limits(self) -> dict[str, tuple[Tree, Tree]]:
        """Return lower and upper limits by name: ``"x"``, ``"u"``, and ``"y"`` of path constraints.

        They are trees like what they limit, infinite where there is no limit.
        """
        problem, equations = self.transcription.problem, self._equations
        low, high = read_limits(problem.state_bounds, equations.x_like, "state_bounds")
        limits = {"x": (equations.unravel_x(low), equations.unravel_x(high))}
        low, high = self.control_bounds()
        limits["u"] = (equations.unravel_u(low), equations.unravel_u(high))
        like = self.transcription.recordings.path_like
        if like is not None:
            unravel = tree.ravel(like)[1]
            low, high = read_limits(problem.path_bounds, like, "path_bounds", (0.0, 0.0))
            limits["y"] = (unravel(low), unravel(high))
        return limits

    def map_equations(
        self, name: str, k: np.ndarray | slice, mapped: tuple[Any, ...], *shared: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Call a function of ``Equations`` for some intervals.

        Parameters
        ----------
        name : str
            Name of the function.
        k : array of int or slice
            The intervals.
        mapped : tuple of arrays
            Arguments with an entry for each interval.
        *shared
            Arguments that all intervals share.
        """
        shared = (*shared, *self.program.args)
        call = self.transcription.map_intervals(name, 2 + len(mapped), len(shared))
        index = self.program.task.evaluator.blocks[0].index[k]
        return call(self.answer.x[index], self.scale[index], *mapped, *shared)

    @property
    def errors(self) -> np.ndarray:
        """Estimated error of the states in each interval, relative to their size: (intervals,).

        Each interval is flown again, by small steps and with the control within its bounds.
        """
        return self._estimates[0]

    @property
    def switches(self) -> np.ndarray:
        """Where a control switches to or from a limit, 0 to 1 along each interval; else nan."""
        return self._estimates[1]

    @cached_property
    def _estimates(self) -> tuple[np.ndarray, np.ndarray]:
        return estimate_errors(self)

    @property
    def state_scale(self) -> np.ndarray:
        """Sizes of the states by guess and bounds."""
        return self.scale[self._layout.X[0, 0]]

    def control_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the controls as vectors."""
        bounds = self.transcription.problem.control_bounds
        return read_limits(bounds, self._equations.u_like, "control_bounds")

    @cached_property
    def costates(self) -> Tree:
        """Costates at the nodes, as trees of states with a leading axis for time.

        They say by how much the cost from a node on changes with the state there: derivatives of
        that part of the Lagrangian, which have the scheme's quadrature in them whatever it is.
        """
        layout, evaluator = self._layout, self.program.task.evaluator
        block, pattern = evaluator.blocks[0], evaluator.structure.patterns[0]
        entries = block.slopes(self.answer.x, self.program.args)
        prices = np.append(self.answer.lam_g, 1.0)[block.rows[:, pattern.first.rows]]
        local = np.zeros((block.index.shape[1], layout.count))
        np.add.at(local, pattern.first.columns, (entries * prices).T)
        states = slice(layout.head, layout.head + layout.X[0].size)
        each = (local.T / self.scale[block.index])[:, states].reshape(layout.X.shape)
        nodes = np.concatenate([each[:, 0], -each[-1:, -1]])
        return vmap(self._equations.unravel_x)(nodes)

    def as_guess(self) -> Guess:
        """Return the trajectory as a start for another mesh."""
        likes = self._equations.x_like, self._equations.u_like
        x, u = (lambda s: self.along(s)[0]), (lambda s: self.along(s)[2])
        return Guess(x, u, *likes, self.p, self.t0, self.tf)

    def residuals(self) -> dict[str, float]:
        """Return the largest violation of each kind of equation."""
        task = self.program.task
        _, g = task.evaluator.values(self.answer.x)
        off = np.maximum(np.maximum(task.low - g, g - task.high), 0.0)
        rows = {b.name: select_columns(b.rows, b.constraints) for b in task.evaluator.blocks}
        return {name: float(np.max(off[rows[name]], initial=0.0)) for name in rows}


def make_mesh(intervals: ArrayLike) -> np.ndarray:
    """Return a mesh from 0 to 1, given as it is or as a number of intervals."""
    try:
        mesh = np.asarray(intervals, dtype=float)
    except (TypeError, ValueError):
        mesh = np.asarray(np.nan)
    if mesh.ndim == 0 and 1 <= mesh < np.inf and mesh == np.round(mesh):
        return np.linspace(0.0, 1.0, int(mesh) + 1)
    is_line = mesh.ndim == 1 and mesh.size >= 2
    if not (is_line and mesh[0] == 0.0 and mesh[-1] == 1.0 and np.all(np.diff(mesh) > 0)):
        raise ValueError(
            f"intervals = {reprlib.repr(intervals)} must be a whole number, at least 1, or a mesh "
            "that rises from 0 to 1"
        )
    return mesh


Solution = TypeVar("Solution", bound=MeshSolution)


def refine_until(
    solution: Solution,
    tol: float | None,
    most: int,
    solve_on: Callable[[Any, Solution], Solution],
) -> Solution:
    """Solve on finer meshes, ``most`` times at most, until all errors are below ``tol``."""
    if tol is not None:
        check_positive(tol, "mesh_tol")
    for _ in range(check_whole(most, "max_refinements", 0)):
        finer = None if tol is None or not solution.success else solution.finer_mesh(tol)
        if finer is None:
            break
        meshes = solution.meshes
        solution = solve_on(finer, solution)
        solution.earlier_meshes = meshes
    solution.mesh_tol = tol
    for part in solution.parts:
        part.mesh_tol = tol
    return solution


def refine_mesh(solution: ControlSolution, tol: float) -> np.ndarray | None:
    """Return a mesh on which errors should be below ``tol``, or None if they are.

    An interval whose error is e is cut into (e / tol)^(1/(order + 1)) parts, at most ``MOST``.
    Where a control switches, the error only falls as the interval gets shorter: a short one is cut
    out around the switch.
    """
    errors, mesh = np.nan_to_num(solution.errors, nan=np.inf), solution.mesh
    order = solution.transcription.scheme.order
    if np.all(errors <= tol):
        return None
    wanted = np.ceil((np.maximum(errors, 1e-300) / tol) ** (1.0 / (order + 1)))
    parts = np.clip(wanted, np.where(errors > tol, 2, 1), MOST).astype(int)
    pieces = [np.arange(n) / n for n in parts]
    for k in np.flatnonzero((errors > tol) & np.isfinite(solution.switches)):
        half = 0.5 * np.clip(0.3 * tol / errors[k], *SWITCH)
        cuts = solution.switches[k] + np.array([-half, half])
        pieces[k] = np.append(0.0, cuts[(cuts > half / 2) & (cuts < 1.0 - half / 2)])
    begins, lengths = mesh[:-1], np.diff(mesh)
    return np.append(np.concatenate([a + h * p for a, h, p in zip(begins, lengths, pieces)]), 1.0)


def estimate_errors(solution: ControlSolution) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest error of a state in each interval, relative to the state's size.

    Also returns where controls switch along the intervals, nan where none does.
    """
    mesh, duration = solution.mesh, solution.tf - solution.t0
    points, weights = np.polynomial.legendre.leggauss(5)
    points, weights = (points + 1) / 2, weights / 2
    h = np.diff(mesh)
    intervals, where = np.repeat(np.arange(len(h)), len(points)), np.tile(points, len(h))
    # The control as the equations have it: its means are those of the switches.
    X, rest, U = solution._within(intervals, where, clip=False)
    size = np.maximum(np.abs(X).max(axis=0), LEAST_SIZE * solution.state_scale)
    # What is left of dx/dt = f along the interpolants (Betts 2010, section 4.7.4): all that is
    # known of intervals that are too stiff to be flown by such steps.
    rest = np.abs(rest).reshape(len(h), len(points), -1)
    integrals = np.einsum("kpi,p->ki", rest, weights) * (h * duration)[:, None]
    means = np.einsum("kpi,p->ki", U.reshape(len(h), len(points), -1), weights)
    flown = _measure_flight(solution, size, (np.full(len(h), 0.5), means, means))
    errors = np.where(np.isnan(flown), (integrals / size).max(axis=1), flown)
    # A control that is linear between nodes takes two intervals to switch.
    reach = 2 if solution.transcription.scheme.control_points == (0.0, 1.0) else 1
    switches = np.full(len(h), np.nan)
    for k, (low, high) in enumerate(zip(*solution.control_bounds())):
        extent = float(np.ptp(U[:, k]))
        where, at, before, after = _find_switches(mesh, means[:, k], extent, reach, (low, high))
        if np.any(where):
            first, second = means.copy(), means.copy()
            first[:, k], second[:, k] = before, after
            flown = _measure_flight(solution, size, (at, first, second), k)
            errors = np.where(where, np.fmax(errors, flown), errors)
            switches = np.where(where, at, switches)
    return errors, switches


def _find_switches(
    mesh: np.ndarray, m: np.ndarray, extent: float, reach: int, bounds: tuple[float, float]
) -> tuple[np.ndarray, ...]:
    """Return in which intervals a control switches, where along them, from and to which values.

    The intervals that it is compared with are ``reach`` intervals away, on both sides.
    """
    n = len(m)
    where, at = np.zeros(n, dtype=bool), np.full(n, 0.5)
    before, after = np.roll(m, 1), np.roll(m, -1)
    k = np.arange(reach + 1, n - reach - 1)
    if k.size == 0 or extent == 0.0:
        return where, at, before, after
    centers = (mesh[1:] + mesh[:-1]) / 2
    slopes = np.abs(np.diff(m) / np.diff(centers))
    change = m[k + 1] - m[k - 1]
    slope = np.abs(change) / (centers[k + 1] - centers[k - 1])
    beside = np.maximum(slopes[k - reach - 1], slopes[k + reach])
    at_bound = np.minimum(np.abs(m - bounds[0]), np.abs(m - bounds[1])) <= AT_BOUND * extent
    sudden = (slope > FASTER * beside) & (np.abs(change) > PART * extent)
    where[k] = sudden & (at_bound[k - 1] | at_bound[k + 1])
    at[k] = np.where(where[k], (m[k + 1] - m[k]) / np.where(change == 0.0, 1.0, change), 0.5)
    return where, at.clip(0.0, 1.0), before, after


def _measure_flight(
    solution: ControlSolution, size: np.ndarray, switch: tuple[np.ndarray, ...], k: int = -1
) -> np.ndarray:
    """Return by how much intervals differ from what is flown; nan where that cannot be told.

    ``switch`` = (at, first, second): control k is ``first`` up to ``at`` and ``second`` from there
    on; others, or all if k is -1, are those of the solution within their bounds.
    """
    bounds = solution.control_bounds()
    step = (np.arange(len(bounds[0])) == k) * 1.0
    mapped = (solution.mesh[:-1], solution.mesh[1:], switch)
    fine, coarse, shown = solution.map_equations("fly", slice(None), mapped, (step, *bounds))
    with np.errstate(invalid="ignore", over="ignore"):
        off = (np.abs(fine - shown) / size).max(axis=(1, 2))
        doubt = (np.abs(fine - coarse) / size).max(axis=(1, 2))
        known = np.isfinite(off) & (doubt <= TRUSTED * off + 1e-12)
    return np.where(known, off, np.nan)
