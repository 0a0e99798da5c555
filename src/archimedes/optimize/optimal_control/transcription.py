"""Where the unknowns of a mesh are.

They are [t0, tf, p, states in order of time, controls in order of time], each divided by its size.

From a problem and a scheme to blocks of equations: nodes are a map, not an unrolled list.

The unknowns are [t0, tf, p, states in order of time, controls in order of time], each divided by
its size (``scale``). Blocks: one for all intervals (running cost, defects, path constraints), one
for the ends (terminal cost, the last node's path constraints, boundary). Another mesh changes
index tables and data, not code.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.function import vmap
from archimedes.function.identity.store import Current
from archimedes.function.prepared_functions import prepared_function
from archimedes.optimize.optimal_control.equations import Equations, Guess
from archimedes.optimize.optimal_control.schemes import Scheme
from archimedes.optimize.optimal_control.solution import ControlSolution
from archimedes.optimize.problems.blocks import Block, with_arguments
from archimedes.optimize.problems.evaluation import Evaluator, Structure
from archimedes.optimize.problems.tasks import Monitor, Settings, Task
from archimedes.optimize.problems.unknowns import as_vector, find_number_shapes, read_limits
from archimedes.optimize.solvers.solve_task import solve_task
from archimedes.optimize.solvers.solver_table import Solver

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.problem import OptimalControl

__all__ = ["Layout", "Recordings", "Transcription"]


@dataclass(frozen=True)
class Layout:
    """Where the unknowns of a mesh are; see the module's text."""

    scheme: Scheme
    count: int  # intervals
    np_: int
    nx: int
    nu: int

    @property
    def head(self) -> int:
        """Numbers before the states."""
        return 2 + self.np_

    @property
    def state_count(self) -> int:
        """Points with states."""
        return self.count * (len(self.scheme.state_points) - 1) + 1

    @property
    def control_count(self) -> int:
        """Points with controls."""
        b = len(self.scheme.control_points)
        return self.count * (b - 1) + 1 if self.scheme.shares_controls else self.count * b

    @property
    def size(self) -> int:
        """All unknowns."""
        return self.head + self.state_count * self.nx + self.control_count * self.nu

    def state_index(self) -> np.ndarray:
        """Where the states of each interval are, (count, points, nx)."""
        a = len(self.scheme.state_points)
        points = np.arange(self.count)[:, None] * (a - 1) + np.arange(a)
        return self.head + points[:, :, None] * self.nx + np.arange(self.nx)

    def control_index(self) -> np.ndarray:
        """Where the controls of each interval are, (count, points, nu)."""
        b = len(self.scheme.control_points)
        stride = b - 1 if self.scheme.shares_controls else b
        points = np.arange(self.count)[:, None] * stride + np.arange(b)
        start = self.head + self.state_count * self.nx
        return start + points[:, :, None] * self.nu + np.arange(self.nu)

    def state_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all states."""
        return self._times(mesh, self.scheme.state_points[:-1], [1.0])

    def control_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all controls."""
        points = self.scheme.control_points
        return self._times(
            mesh,
            points[:-1] if self.scheme.shares_controls else points,
            [1.0] if self.scheme.shares_controls else [],
        )

    def order(self, mesh: np.ndarray) -> np.ndarray:
        """Return the time of each unknown, nan for those that touch every interval."""
        states = np.repeat(self.state_times(mesh), self.nx)
        controls = np.repeat(self.control_times(mesh), self.nu)
        return np.concatenate([np.full(self.head, np.nan), states, controls])

    def _times(self, mesh: np.ndarray, points: Any, last: list[float]) -> np.ndarray:
        h = np.diff(mesh)
        return np.append((mesh[:-1, None] + h[:, None] * np.array(points)).ravel(), last)


#: With this many intervals solving takes longer than compiling.
OFTEN = 20
#: Numbers of intervals whose sparsity is kept.
KEPT = 8


class Recordings:
    """What is recorded of a problem by one scheme, for trees like those of a guess.

    It is kept in the store of recordings: problems with the same functions share it, whatever
    their bounds and ends are.
    """

    def __init__(
        self, current: Current, scheme: Scheme, guess: Guess, args: tuple[Any, ...]
    ) -> None:
        rest = args if guess.p is None else (guess.p, *args)
        along, ends = (guess.x_like, guess.u_like), (guess.x_like, 0.0, guess.x_like)
        integrals = _likes(current, 5, "integrals", (*along, *rest))
        self.equations = Equations(current, scheme, guess, integrals)
        #: What path and boundary constraints look like.
        self.path_like = _likes(current, 3, "path", (*along, *rest))
        self.boundary_like = _likes(current, 4, "boundary", (*ends, *rest))
        self.kernels: dict[str, dict[str, Any]] = {"intervals": {}, "ends": {}}
        self.structures: dict[int, Structure] = {}


def _likes(current: Current, k: int, name: str, given: tuple[Any, ...]) -> Any:
    """Return zeros like what a function of the problem returns, None if there is none."""
    if current.functions[k] is None:
        return None
    made = prepared_function(lambda t, *more: current.functions[k](t, *more), (current,), name)
    return find_number_shapes(made, 0.0, given, name)


class Transcription:
    """The equations of one problem by one scheme, for trees like those of a guess."""

    def __init__(self, problem: OptimalControl, scheme: Scheme, recorded: Recordings) -> None:
        self.problem, self.scheme, self.equations = problem, scheme, recorded.equations
        self._kernels, self._structures = recorded.kernels, recorded.structures
        self._path_like, self._boundary_like = recorded.path_like, recorded.boundary_like
        self._watch = (recorded.equations.current,)

    def interpolant(self, count: int) -> Any:
        """Return ``between`` for many points at once, with this many arguments of the user."""
        return self._mapped("between", (0,) * 5, count)

    def flights(self, count: int) -> Any:
        """Return ``flown`` for all intervals at once, with this many arguments of the user."""
        return self._mapped("flown", (0,) * 7 + (None,) * 3, count)

    def _mapped(self, name: str, axes: tuple[int | None, ...], count: int) -> Any:
        key, kernels = f"mapped {name} {count}", self._kernels["intervals"]
        if key not in kernels:
            function = with_arguments(getattr(self.equations, name), len(axes) + count)
            made = prepared_function(function, self._watch, name)
            kernels[key] = vmap(made, in_axes=axes + (None,) * count)
        return kernels[key]

    def _blocks(self, mesh: np.ndarray, layout: Layout, scale: np.ndarray) -> tuple[Any, Any]:
        """Return the blocks and the limits (low, high) of their rows."""
        problem, n, head = self.problem, layout.count, np.arange(layout.head)
        X, U = layout.state_index(), layout.control_index()
        none = (np.zeros(0), np.zeros(0))
        path = edges = none
        if problem.path is not None:
            path = read_limits(problem.path_bounds, self._path_like, "path_bounds", (0.0, 0.0))
        if problem.boundary is not None:
            edges = read_limits(
                problem.boundary_bounds, self._boundary_like, "boundary_bounds", (0.0, 0.0)
            )
        visited = self.equations.visited_count()
        # Multipliers are found again by this order: see ``ControlSolution.costates``.
        defects = np.zeros(self.equations.nx * self.scheme.equations)
        each = defects.size + visited * path[0].size
        rows = np.arange(n)[:, None] * each + np.arange(each)
        blocks = [
            Block(
                self.equations.interval,
                np.concatenate([np.tile(head, (n, 1)), X.reshape(n, -1), U.reshape(n, -1)], axis=1),
                np.concatenate([np.full((n, 1), -1), rows], axis=1),
                (),
                "interval",
                self._kernels["intervals"],
                n >= OFTEN,
                self._watch,
            )
        ]
        blocks[0].data = (scale[blocks[0].index], mesh[:-1], mesh[1:])
        last = path if self.equations.path_at_last else none
        more = last[0].size + edges[0].size
        if more or problem.terminal_cost is not None:
            index = np.concatenate([head, X[0, 0], X[-1, -1], U[-1, -1]])[None]
            rows = np.append(-1, n * each + np.arange(more))[None]
            kernels = self._kernels["ends"]
            data = (scale[index],)
            blocks.append(
                Block(
                    *(self.equations.ends, index, rows, data, "ends", kernels, n >= OFTEN),
                    self._watch,
                )
            )
        low, high = (
            np.concatenate(
                [np.tile(np.append(defects, np.tile(path[k], visited)), n), last[k], edges[k]]
            )
            for k in (0, 1)
        )
        return blocks, (low, high)

    def _structure(self, blocks: Any, args: Any, layout: Layout, rows: int) -> Structure:
        """Return the sparsity, which is the same for all meshes with as many intervals."""
        known = self._structures.get(layout.count)
        if known is not None:
            for block, old in zip(blocks, known.patterns):
                block.keep(old)
        patterns = [block.patterns(args) for block in blocks]
        if known is None or any(a is not b for a, b in zip(patterns, known.patterns)):
            known = Structure(patterns, layout.size, rows)
            self._structures[layout.count] = known
            while len(self._structures) > KEPT:
                del self._structures[next(iter(self._structures))]
        return known

    def _bounds(self, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
        problem = self.problem
        ends = []
        for given in (problem.t0, problem.tf):
            pair = isinstance(given, (tuple, list))
            ends.append([float(v) for v in given] if pair else [float(given)] * 2)
        x = read_limits(problem.state_bounds, self.equations.x_like, "state_bounds")
        u = read_limits(problem.control_bounds, self.equations.u_like, "control_bounds")
        p = (np.zeros(0), np.zeros(0))
        if self.equations.p_like is None and problem.parameter_bounds is not None:
            raise ValueError("parameter_bounds are given, but the guess has no parameters 'p'")
        if self.equations.p_like is not None:
            p = read_limits(problem.parameter_bounds, self.equations.p_like, "parameter_bounds")
        whole, own = [], self.equations.own
        totals = (np.zeros(0), np.zeros(0))
        if self.equations.integrals is not None:
            totals = read_limits(
                problem.integral_bounds, self.equations.integrals_like, "integral_bounds"
            )
        for k, pick in ((0, np.maximum), (1, np.minimum)):
            missing = (-np.inf, np.inf)[k]
            states = np.full((layout.state_count, self.equations.nx), missing)
            states[:, :own] = x[k]
            for row, given, name in ((0, problem.initial, "initial"), (-1, problem.final, "final")):
                edge = as_vector(given, self.equations.x_like, missing, name)
                states[row, :own] = pick(states[row, :own], edge)
            states[0, own:], states[-1, own:] = 0.0, totals[k]
            controls = np.tile(u[k], layout.control_count)
            times = [ends[0][k], ends[1][k]]
            whole.append(np.concatenate([times, p[k], states.ravel(), controls]))
        crossed = np.flatnonzero(whole[0] > whole[1])
        if crossed.size:
            raise ValueError("initial or final lies outside state_bounds: no state can meet both")
        return whole[0], whole[1]

    def _start(self, mesh: np.ndarray, layout: Layout, guess: Guess) -> np.ndarray:
        p = np.zeros(0) if guess.p is None else tree.ravel(guess.p)[0] * 1.0
        X = np.zeros((layout.state_count, self.equations.nx))
        states = guess.x(layout.state_times(mesh))
        X[:, : states.shape[1]] = states
        U = guess.u(layout.control_times(mesh))
        return np.concatenate([[guess.t0, guess.tf], p, X.ravel(), U.ravel()])

    def _scale(self, layout: Layout, start: np.ndarray, lower: Any, upper: Any) -> np.ndarray:
        """Return a power of two near the size of each unknown, the same all along."""
        size = np.maximum(np.abs(start), np.where(np.isfinite(lower), np.abs(lower), 0.0))
        size = np.maximum(size, np.where(np.isfinite(upper), np.abs(upper), 0.0))
        head, states = layout.head, layout.state_count * layout.nx
        x = size[head : head + states].reshape(-1, layout.nx).max(axis=0)
        u = size[head + states :].reshape(-1, layout.nu).max(axis=0, initial=0.0)
        whole = np.concatenate(
            [size[:head], np.tile(x, layout.state_count), np.tile(u, layout.control_count)]
        )
        whole[:2] = max(size[0], size[1])
        whole = np.where(whole > 0, whole, 1.0)
        return np.ldexp(1.0, np.round(np.log2(whole)).clip(-40, 40).astype(int))

    def task(
        self,
        mesh: np.ndarray,
        guess: Guess,
        args: tuple[Any, ...],
        settings: Settings,
        monitor: Monitor,
        warm: ControlSolution | None,
    ) -> tuple[Layout, np.ndarray, Task]:
        """Return the program on a mesh: where its unknowns are, their sizes, and what to solve."""
        equations = self.equations
        layout = Layout(self.scheme, len(mesh) - 1, equations.np_, equations.nx, equations.nu)
        lower, upper = self._bounds(layout)
        start = np.clip(self._start(mesh, layout, guess), lower, upper)
        same = warm is not None and warm.vector.size == start.size and warm.mesh.size == mesh.size
        # Multipliers belong to scaled equations.
        scale = warm.scale if same and warm else self._scale(layout, start, lower, upper)
        blocks, (low, high) = self._blocks(mesh, layout, scale)
        evaluator = Evaluator(blocks, self._structure(blocks, args, layout, low.size), args)
        edges = (lower / scale, upper / scale, low, high)
        task = Task(evaluator, start / scale, *edges, settings, monitor)
        if same and warm:
            task.lam_g, task.lam_x = warm.answer.lam_g, warm.answer.lam_x
        task.order = layout.order(mesh)
        return layout, scale, task

    def solve(
        self,
        mesh: np.ndarray,
        guess: Guess,
        args: tuple[Any, ...],
        options: Any,
        callback: Any,
        warm: ControlSolution | None,
        solver: Solver,
    ) -> ControlSolution:
        """Solve on one mesh."""
        began = time.perf_counter()
        settings = Settings.of(options, solver.name)
        monitor = Monitor(callback, lambda x: x, settings.maxtime, settings.tol)
        layout, scale, task = self.task(mesh, guess, args, settings, monitor, warm)
        answer = solve_task(task, solver)
        seconds = time.perf_counter() - began
        return ControlSolution(self, layout, mesh, scale, args, task, answer, seconds)
