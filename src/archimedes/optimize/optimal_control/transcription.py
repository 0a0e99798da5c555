"""From a problem and a scheme to blocks of equations: nodes are a map, not an unrolled list.

The unknowns are [t0, tf, p, states in order of time, controls in order of time], each divided by
its size (``scale``). Blocks: one for all intervals (running cost, defects, limits of states at
points that are no unknowns, path constraints), one for the ends (terminal cost, the last node's
path constraints, boundary), and one for tf >= t0 where free times would let time run backwards.
Another mesh changes index tables and data, not code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import vmap
from archimedes.function.recording_store import Current, compile_frozen
from archimedes.optimize.optimal_control.equations import Equations, Guess
from archimedes.optimize.optimal_control.schemes import NAMES, Scheme
from archimedes.optimize.problems.blocks import Block, Evaluator, Structure, with_arguments
from archimedes.optimize.problems.tasks import Answer, Monitor, Settings, Task
from archimedes.optimize.problems.unknowns import as_vector, find_result_shapes, read_limits
from archimedes.optimize.solvers.solver_table import Solver, find_solver
from archimedes.typing import Array, Tree

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.problem import OptimalControl


#: With this many intervals solving takes longer than compiling.
OFTEN = 20
#: Numbers of intervals whose sparsity is kept.
KEPT = 8


class Call(NamedTuple):
    """What a solve is given besides guesses, meshes and schemes."""

    args: tuple[Any, ...]
    settings: Settings
    solver: Solver
    callback: Callable[..., Any] | None

    @classmethod
    def read(
        cls,
        args: Any,
        options: Mapping[str, Any] | None,
        method: str,
        callback: Callable[..., Any] | None,
    ) -> Call:
        """Read the arguments of ``solve``."""
        if method in NAMES:
            raise ValueError(f"{method!r} is a scheme, not a solver: write scheme={method!r}")
        solver = find_solver(method, trajectory=True)
        args = args if isinstance(args, tuple) else (args,)
        return cls(args, Settings.read(options, solver.name), solver, callback)

    def monitor(self) -> Monitor:
        """Return what follows the iterations, from now on."""
        return Monitor(self.callback, lambda x: x, self.settings.maxtime, self.settings.tol)


class MeshLayout:
    """Where the unknowns of a mesh of ``count`` intervals are; see the module's text."""

    def __init__(self, equations: Equations, count: int) -> None:
        self.scheme, self.count = equations.scheme, count
        self.head, self.nx, self.nu = equations.head, equations.nx, equations.nu
        states, controls = len(self.scheme.state_points), len(self.scheme.control_points)
        shared = self.scheme.shares_controls
        #: Points with controls from one interval to the next.
        self.control_stride = controls - shared
        self.state_count = count * (states - 1) + 1
        self.control_count = count * self.control_stride + shared
        first_control = self.head + self.state_count * self.nx
        self.size = first_control + self.control_count * self.nu
        #: Where states and controls of each interval are, (count, points, nx) and (..., nu).
        self.X = self._index(self.head, states, states - 1, self.nx)
        self.U = self._index(first_control, controls, self.control_stride, self.nu)

    def _index(self, start: int, points: int, stride: int, size: int) -> np.ndarray:
        numbers = np.arange(self.count)[:, None] * stride + np.arange(points)
        return start + numbers[:, :, None] * size + np.arange(size)

    def state_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all states."""
        return self._times(mesh, self.scheme.state_points[:-1], True)

    def control_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all controls."""
        points = self.scheme.control_points[: self.control_stride]
        return self._times(mesh, points, self.scheme.shares_controls)

    def _times(self, mesh: np.ndarray, points: Sequence[float], with_last: bool) -> np.ndarray:
        times = mesh[:-1, None] + np.diff(mesh)[:, None] * np.array(points)
        return np.append(times.ravel(), [1.0] if with_last else [])

    def order(self, mesh: np.ndarray) -> np.ndarray:
        """Return the time of each unknown, nan for those that touch every interval."""
        states = np.repeat(self.state_times(mesh), self.nx)
        controls = np.repeat(self.control_times(mesh), self.nu)
        return np.concatenate([np.full(self.head, np.nan), states, controls])


class Recordings:
    """What is recorded of a problem by one scheme, for trees like those of a guess.

    It is kept in the store of recordings: problems with the same functions share it, whatever
    their bounds and ends are.
    """

    def __init__(
        self,
        current: Current,
        scheme: Scheme,
        guess: Guess,
        args: tuple[Any, ...],
        limited: Sequence[int] = (),
    ) -> None:
        rest = args if guess.p is None else (guess.p, *args)
        along, ends = (guess.x_like, guess.u_like), (guess.x_like, 0.0, guess.x_like)

        def find_shapes(k: int, name: str, more: tuple[Any, ...]) -> Tree:
            """Return zeros like what a function of the problem returns, None if there is none."""
            if current.functions[k] is None:
                return None
            call = lambda t, *more: current.functions[k](t, *more)  # noqa: E731
            recorded = compile_frozen(call, (current,), name)
            return find_result_shapes(recorded, 0.0, (*more, *rest), name, some=True)

        integrals = find_shapes(5, "integrals", along)
        self.equations = Equations(current, scheme, guess, integrals, limited)
        #: What path and boundary constraints look like.
        self.path_like = find_shapes(3, "path", along)
        self.boundary_like = find_shapes(4, "boundary", ends)
        self.kernels: dict[str, dict[str, Any]] = {"intervals": {}, "ends": {}, "duration": {}}
        #: By the numbers of intervals and blocks.
        self.structures: dict[tuple[int, int], Structure] = {}


@dataclass(eq=False, repr=False)
class Discretization:
    """A problem on a mesh: where its unknowns are, their sizes, and the program to solve."""

    transcription: Transcription
    mesh: np.ndarray
    layout: MeshLayout
    scale: np.ndarray
    args: tuple[Any, ...]
    task: Task


#: The program of an earlier solution, and its answer.
Earlier = tuple[Discretization, Answer]


class Transcription:
    """The equations of one problem by one scheme, for trees like those of a guess."""

    def __init__(self, problem: OptimalControl, scheme: Scheme, recordings: Recordings) -> None:
        self.problem, self.scheme, self.equations = problem, scheme, recordings.equations
        self.recordings = recordings
        self._watch = (recordings.equations.current,)

    @property
    def may_reverse(self) -> bool:
        """Whether the limits of free times let time run backwards, which a constraint forbids."""
        t0, tf = (np.broadcast_to(t, (2,)) for t in (self.problem.t0, self.problem.tf))
        return bool(t0[1] > tf[0])

    def map_intervals(self, name: str, mapped: int, shared: int) -> Callable[..., Any]:
        """Return a function of ``equations`` for many intervals at once.

        So many of its arguments are mapped, and so many, those of the user included, are shared.
        """
        key, kernels = f"mapped {name} {shared}", self.recordings.kernels["intervals"]
        if key not in kernels:
            function = with_arguments(getattr(self.equations, name), mapped + shared)
            recorded = compile_frozen(function, self._watch, name)
            kernels[key] = vmap(recorded, in_axes=(0,) * mapped + (None,) * shared)
        return kernels[key]

    def _blocks(
        self, mesh: np.ndarray, layout: MeshLayout, scale: np.ndarray
    ) -> tuple[list[Block], np.ndarray, np.ndarray]:
        """Return the blocks and the limits of their rows."""
        n, head, X, U = layout.count, np.arange(layout.head), layout.X, layout.U
        recordings, equations = self.recordings, self.equations
        path = self._limits("path_bounds", recordings.path_like, (0.0, 0.0))
        edges = self._limits("boundary_bounds", recordings.boundary_like, (0.0, 0.0))
        inner, visits = equations.count_visits()
        # Multipliers are found again by this order: see ``ControlSolution.costates``.
        defects = np.zeros(equations.nx * self.scheme.equations)
        sizes, numbers = scale[X[0, 0, : equations.own]], equations.limited
        bounds = self._limits("state_bounds", equations.x_like)
        limited = [(edge / sizes)[numbers] for edge in bounds]
        each = defects.size + inner * limited[0].size + visits * path[0].size
        rows = np.arange(n)[:, None] * each + np.arange(each)
        rows = np.concatenate([np.full((n, 1), -1), rows], axis=1)
        index = np.concatenate([np.tile(head, (n, 1)), X.reshape(n, -1), U.reshape(n, -1)], axis=1)
        data, rest = (scale[index], mesh[:-1], mesh[1:]), (n >= OFTEN, self._watch)
        kernels = recordings.kernels["intervals"]
        blocks = [Block(equations.interval, index, rows, data, "interval", kernels, *rest)]
        last = path if equations.path_at_last else _NO_LIMITS
        more = last[0].size + edges[0].size
        if more or equations.terminal_cost is not None:
            index = np.concatenate([head, X[0, 0], X[-1, -1], U[-1, -1]])[None]
            rows = np.append(-1, n * each + np.arange(more))[None]
            ends = (scale[index],), "ends", recordings.kernels["ends"]
            blocks.append(Block(equations.ends, index, rows, *ends, *rest))
        forward = _NO_LIMITS
        if self.may_reverse:
            index, rows = np.array([[0, 1]]), np.array([[n * each + more]])
            forward = np.zeros(1), np.full(1, np.inf)
            kernels = recordings.kernels["duration"]
            blocks.append(Block(_find_duration, index, rows, (), "duration", kernels, *rest))
        along = [
            np.tile(np.concatenate([defects, np.tile(edge, inner), np.tile(at, visits)]), n)
            for edge, at in zip(limited, path)
        ]
        low, high = (np.concatenate(parts) for parts in zip(along, last, edges, forward))
        return blocks, low, high

    def _structure(
        self, blocks: list[Block], args: tuple[Any, ...], layout: MeshLayout, rows: int
    ) -> Structure:
        """Return the sparsity, which is the same for all meshes with as many intervals."""
        structures, key = self.recordings.structures, (layout.count, len(blocks))
        known = structures.get(key)
        if known is not None:
            for block, old in zip(blocks, known.patterns):
                block.known_patterns = old
        patterns = [block.patterns(args) for block in blocks]
        if known is None or any(a is not b for a, b in zip(patterns, known.patterns)):
            known = structures[key] = Structure(patterns, layout.size, rows)
            while len(structures) > KEPT:
                del structures[next(iter(structures))]
        return known

    def _limits(
        self, name: str, like: Tree, default: tuple[float, float] = (-np.inf, np.inf)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return limits of the problem as vectors, none where there is nothing they are for."""
        if like is None:
            return _NO_LIMITS
        return read_limits(getattr(self.problem, name), like, name, default)

    def _bounds(self, layout: MeshLayout) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of all unknowns."""
        problem, equations = self.problem, self.equations
        if equations.p_like is None and problem.parameter_bounds is not None:
            raise ValueError("parameter_bounds are given, but the guess has no parameters 'p'")
        x = self._limits("state_bounds", equations.x_like)
        u = self._limits("control_bounds", equations.u_like)
        p = self._limits("parameter_bounds", equations.p_like)
        totals = self._limits("integral_bounds", equations.integrals_like)
        bounds, own = [], equations.own
        for k, (missing, pick) in enumerate(((-np.inf, np.maximum), (np.inf, np.minimum))):
            times = [np.broadcast_to(time, (2,))[k] for time in (problem.t0, problem.tf)]
            states = np.full((layout.state_count, equations.nx), missing)
            states[:, :own] = x[k]
            for row, state, name in ((0, problem.initial, "initial"), (-1, problem.final, "final")):
                edge = as_vector(state, equations.x_like, missing, name)
                states[row, :own] = pick(states[row, :own], edge)
            states[0, own:], states[-1, own:] = 0.0, totals[k]
            controls = np.tile(u[k], layout.control_count)
            bounds.append(np.concatenate([times, p[k], states.ravel(), controls]))
        if np.any(bounds[0] > bounds[1]):
            raise ValueError("initial or final lies outside state_bounds: no state can meet both")
        return bounds[0], bounds[1]

    def _start(self, mesh: np.ndarray, layout: MeshLayout, guess: Guess) -> np.ndarray:
        p = np.zeros(0) if guess.p is None else tree.ravel(guess.p)[0] * 1.0
        X = np.zeros((layout.state_count, self.equations.nx))
        X[:, : self.equations.own] = guess.x(layout.state_times(mesh))
        U = guess.u(layout.control_times(mesh))
        return np.concatenate([[guess.t0, guess.tf], p, X.ravel(), U.ravel()])

    def discretize(
        self, mesh: np.ndarray, guess: Guess, call: Call, warm: Earlier | None = None
    ) -> Discretization:
        """Return the problem on a mesh, from a guess; ``warm`` is an earlier solution."""
        layout = MeshLayout(self.equations, len(mesh) - 1)
        lower, upper = self._bounds(layout)
        start = np.clip(self._start(mesh, layout, guess), lower, upper)
        if warm and (warm[0].scale.size != start.size or warm[0].mesh.size != mesh.size):
            warm = None
        # Multipliers belong to scaled equations.
        scale = warm[0].scale if warm else _find_scale(layout, start, lower, upper)
        blocks, low, high = self._blocks(mesh, layout, scale)
        structure = self._structure(blocks, call.args, layout, low.size)
        rest = low, high, call.settings, call.monitor()
        task = Task(
            Evaluator(blocks, structure, call.args),
            *(start / scale, lower / scale, upper / scale, *rest),
            order=layout.order(mesh),
        )
        if warm and warm[1].lam_g.size == low.size:
            task.lam_g, task.lam_x = warm[1].lam_g, warm[1].lam_x
        return Discretization(self, mesh, layout, scale, call.args, task)


_NO_LIMITS = (np.zeros(0), np.zeros(0))


def _find_duration(z: Array, *args: Any) -> Array:
    """Return tf - t0 of (t0, tf), which have the same size."""
    return z[1:] - z[:1]


def _find_scale(
    layout: MeshLayout, start: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return a power of two near the size of each unknown, the same all along."""
    every = np.abs([start, lower, upper])
    size = np.where(np.isfinite(every), every, 0.0).max(axis=0)
    size[:2] = size[:2].max()
    states, controls = np.split(size[layout.head :], [layout.state_count * layout.nx])
    for part, width in ((states, layout.nx), (controls, layout.nu)):
        rows = part.reshape(-1, width)
        rows[:] = rows.max(axis=0, initial=0.0)
    return np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0))).clip(-40, 40))
