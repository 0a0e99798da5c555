"""``Phases``: optimal control problems one after the other, linked, solved as one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import StructError
from archimedes.function import Compiled
from archimedes.optimize.optimal_control.equations import Guess
from archimedes.optimize.optimal_control.problem import OptimalControl
from archimedes.optimize.optimal_control.reports import Row, name_states
from archimedes.optimize.optimal_control.solution import (
    ControlSolution,
    MeshSolution,
    make_mesh,
    refine_mesh,
    refine_until,
)
from archimedes.optimize.optimal_control.transcription import Call, Discretization
from archimedes.optimize.problems.blocks import Block, Evaluator, Structure
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.problems.unknowns import find_result_shapes, read_limits
from archimedes.optimize.solvers.solver_table import solve_task
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.typing import Array, ArrayLike, Tree

__all__ = ["Phases", "PhasesSolution"]


@dataclass(eq=False, repr=False)
class _Part:
    """One phase on its mesh, and where its unknowns and rows begin in the whole."""

    program: Discretization
    begin: int
    row: int

    def __post_init__(self) -> None:
        #: Where unknowns and rows of the next phase begin.
        self.end = self.begin + self.program.layout.size
        self.next_row = self.row + self.program.task.low.size

    def select(self, answer: Answer) -> Answer:
        """Return this phase's part of an answer."""
        own, rows = slice(self.begin, self.end), slice(self.row, self.next_row)
        return replace(answer, x=answer.x[own], lam_x=answer.lam_x[own], lam_g=answer.lam_g[rows])

    def shift_blocks(self) -> Iterator[Block]:
        """Return this phase's blocks, with their unknowns and rows in the whole."""
        for block in self.program.task.evaluator.blocks:
            rows = np.where(block.rows < 0, -1, block.rows + self.row)
            yield replace(block, index=block.index + self.begin, rows=rows, known_patterns=None)

    def find_end(self, first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return where time and state of its beginning or end are, and their sizes."""
        X = self.program.layout.X
        state = X[0, 0] if first else X[-1, -1]
        local = np.append(0 if first else 1, state[: self.program.transcription.equations.own])
        return self.begin + local, self.program.scale[local]


class Phases:
    """An optimal control problem of several phases, whose costs are added.

    Parameters
    ----------
    *phases
        The problems, :class:`OptimalControl`, in order.
    links : sequence of callable, optional
        For each pair of neighbours a function ``link(tf, xf, t0, x0)`` of the end of one and the
        beginning of the next, which returns any tree of numbers that are zero or within
        `link_bounds`. None, for all or for one pair, makes time and states continuous. With a link,
        the states of neighbours may have different structures.
    link_bounds : sequence, optional
        Limits of each link.

    Examples
    --------
    >>> half = dict(running_cost=lambda t, x, u: u**2)
    >>> up = OptimalControl(lambda t, x, u: u, initial=0.0, tf=0.5, **half)
    >>> on = OptimalControl(lambda t, x, u: u, final=1.0, t0=0.5, tf=1.0, **half)
    >>> jump = lambda tf, xf, t0, x0: x0 - xf - 0.5
    >>> found = Phases(up, on, links=[jump]).solve([{"x": 0.0, "u": 0.0}] * 2, intervals=4)
    >>> round(found.fun, 6)
    0.25
    """

    def __init__(
        self,
        *phases: OptimalControl,
        links: Sequence[Callable[..., Any] | None] | None = None,
        link_bounds: Sequence[Any] | None = None,
    ) -> None:
        if len(phases) < 2 or not all(isinstance(p, OptimalControl) for p in phases):
            raise TypeError("Phases: give two or more OptimalControl problems")
        self.phases = phases
        pairs = len(phases) - 1
        self.links = [None] * pairs if links is None else list(links)
        self.link_bounds = [None] * pairs if link_bounds is None else list(link_bounds)
        for name in ("links", "link_bounds"):
            _check_count(getattr(self, name), f"Phases: {name}", pairs, "pairs of neighbours")
        self._kernels: list[dict[str, Any]] = [{} for _ in range(pairs)]
        self._functions: list[tuple[Callable[..., Any], Tree] | None] = [None] * pairs

    def solve(
        self,
        guesses: Sequence[Any] | PhasesSolution,
        *,
        intervals: Any = 30,
        scheme: str | Sequence[str] = "hermite-simpson",
        method: str = "ipm",
        args: Any = (),
        options: Mapping[str, Any] | None = None,
        mesh_tol: float | None = None,
        max_refinements: int = 6,
        callback: Callable[..., Any] | None = None,
    ) -> PhasesSolution:
        """Solve all phases together.

        Parameters
        ----------
        guesses : sequence or PhasesSolution
            A guess for each phase, or an earlier solution.
        intervals : int, array or list, optional
            Number of intervals, or a mesh, for all phases or for each.
        scheme : str or list of str, optional
            Scheme for all phases, or for each.
        method : str, optional
            The solver, as in :meth:`OptimalControl.solve`.
        args : tuple, optional
            Further arguments of the functions.
        options : mapping, optional
            Options of :func:`minimize`.
        mesh_tol : float, optional
            Refine the meshes of all phases until the estimated relative error of each interval is
            below this. A solution whose errors are still larger is no success. None by default.
        max_refinements : int, optional
            Largest number of refinements, 6 by default.
        callback : callable, optional
            Function that is called after each iteration.
        """
        call = Call.read(args, options, method, callback)
        solve_on = lambda meshes, start: self._solve_on(meshes, start, scheme, call)  # noqa: E731
        return refine_until(solve_on(intervals, guesses), mesh_tol, max_refinements, solve_on)

    def _solve_on(
        self,
        intervals: Any,
        guesses: Sequence[Any] | PhasesSolution,
        scheme: str | Sequence[str],
        call: Call,
    ) -> PhasesSolution:
        """Solve on one mesh for each phase."""
        began = time.perf_counter()
        parts = self._discretize(guesses, intervals, scheme, call)
        task, links = self._join(parts, call)
        answer = solve_task(task, call.solver)
        seconds = time.perf_counter() - began
        phases = [ControlSolution(p.program, p.select(answer), seconds) for p in parts]
        return PhasesSolution(phases, task, answer, seconds, links)

    def _discretize(
        self,
        guesses: Sequence[Any] | PhasesSolution,
        intervals: Any,
        scheme: str | Sequence[str],
        call: Call,
    ) -> list[_Part]:
        """Return the phases on their meshes."""
        count = len(self.phases)
        guesses = guesses.phases if isinstance(guesses, PhasesSolution) else guesses
        if not isinstance(guesses, (list, tuple)):
            raise ValueError(f"guesses must be a list of {count} guesses, or an earlier solution")
        meshes = intervals if isinstance(intervals, (list, tuple)) else [intervals] * count
        schemes = [scheme] * count if isinstance(scheme, str) else scheme
        for name, values in (("guesses", guesses), ("intervals", meshes), ("scheme", schemes)):
            _check_count(values, name, count, "phases")
        parts: list[_Part] = []
        begin = row = 0
        for phase, start, cells, rule in zip(self.phases, guesses, meshes, schemes):
            earlier = isinstance(start, ControlSolution)
            guess = start.as_guess() if earlier else Guess.read(start, phase)
            transcription = phase.transcription(guess, rule, call.args)
            program = transcription.discretize(make_mesh(cells), guess, call)
            parts.append(_Part(program, begin, row))
            begin, row = parts[-1].end, parts[-1].next_row
        return parts

    def _join(self, parts: list[_Part], call: Call) -> tuple[Task, list[Row]]:
        """Return all phases and their links as one program, and what the rows of links are."""
        tasks = [part.program.task for part in parts]
        blocks = [block for part in parts for block in part.shift_blocks()]
        low, high = [task.low for task in tasks], [task.high for task in tasks]
        row, links = parts[-1].next_row, list[Row]()
        for k, (one, other) in enumerate(pairwise(parts)):
            block, (link_low, link_high) = self._link(k, one, other, row)
            blocks.append(block)
            low, high = [*low, link_low], [*high, link_high]
            row += link_low.size
            links += self._name_rows(k, one, link_low.size)
        patterns = [block.patterns(call.args) for block in blocks]
        structure = Structure(patterns, parts[-1].end, row)
        # Each phase takes one unit of the way, ends apart.
        order = [k + 0.5 * task.order for k, task in enumerate(tasks) if task.order is not None]
        points = zip(*((task.start, task.lower, task.upper) for task in tasks))
        start, lower, upper = map(np.concatenate, points)
        rest = np.concatenate(low), np.concatenate(high), call.settings, tasks[0].monitor
        evaluator = Evaluator(blocks, structure, call.args)
        task = Task(evaluator, start, lower, upper, *rest, order=np.concatenate(order))
        return task, links

    def _name_rows(self, k: int, one: _Part, count: int) -> list[Row]:
        """Return the names, units and sizes of the equations of a link."""
        if self.links[k] is not None:
            return [Row(f"links[{k}]", "", 1.0)] * count
        sizes = one.find_end(first=False)[1]
        columns = name_states(one.program.transcription.equations)
        names = [("time", "s"), *((c.name, c.units) for c in columns)]
        return [Row(f"links[{k}] of {n}", units, s) for (n, units), s in zip(names, sizes)]

    def _link(
        self, k: int, one: _Part, other: _Part, row: int
    ) -> tuple[Block, tuple[np.ndarray, np.ndarray]]:
        """Return the block of a pair of neighbours and the limits of its rows."""
        ends = zip(one.find_end(first=False), other.find_end(first=True))
        index, scale = (np.concatenate(pair)[None] for pair in ends)
        link = self._functions[k] = self._functions[k] or self._make_link(k, one, other)
        limits = read_limits(self.link_bounds[k], link[1], f"link_bounds[{k}]", (0.0, 0.0))
        rows = (row + np.arange(limits[0].size))[None]
        return Block(link[0], index, rows, (scale,), f"link{k}", self._kernels[k]), limits

    def _make_link(self, k: int, one: _Part, other: _Part) -> tuple[Callable[..., Any], Tree]:
        """Return the function of a pair's scaled unknowns, and zeros like its result."""
        link = self.links[k]
        before, after = (part.program.transcription.equations for part in (one, other))
        n = before.own
        if link is None:
            if n != after.own:
                raise ValueError(
                    f"links[{k}]: phase {k} has {n} states and phase {k + 1} {after.own}: say with "
                    "a function how they are linked"
                )

            def continuity(z: Array, scale: Array, *args: Any) -> Array:
                end, beginning = z[: n + 1], z[n + 1 :]
                # Both in the sizes of the first.
                return end - beginning * (scale[n + 1 :] / scale[: n + 1])

            return continuity, np.zeros(n + 1)
        recorded = Compiled(lambda tf, *more: link(tf, *more), name=f"links[{k}]")
        states = (before.x_like, 0.0, after.x_like)
        like = find_result_shapes(recorded, 0.0, states, f"links[{k}]", some=True)

        def evaluate(z: Array, scale: Array, *args: Any) -> Array:
            z = z * scale
            ends = (z[0], before.unravel_x(z[1 : n + 1]), z[n + 1], after.unravel_x(z[n + 2 :]))
            return tree.ravel(link(*ends))[0] * 1.0

        return evaluate, like


def _check_count(values: Sequence[Any], name: str, count: int, what: str) -> None:
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} entries for {count} {what}")


class PhasesSolution(MeshSolution):
    """The solution of linked phases, a sequence of :class:`ControlSolution`.

    ``fun``, ``mesh_error``, ``success``, ``status``, ``message``, ``iterations`` and ``violation``
    are those of the whole. ``trajectory`` joins the phases, ``arc.plot(solution)`` draws them one
    after the other, and ``solution.report()`` sums them up.

    Parameters
    ----------
    phases : list of ControlSolution
        Solutions of the phases.
    task : Task
        The nonlinear program.
    answer : Answer
        What the solver returned.
    seconds : float
        Time that it took in s.
    links : list of Row
        What the equations between phases are.

    Examples
    --------
    >>> from archimedes.optimize import OptimalControl, Phases
    >>> half = dict(running_cost=lambda t, x, u: u**2)
    >>> up = OptimalControl(lambda t, x, u: u, initial=0.0, tf=0.5, **half)
    >>> on = OptimalControl(lambda t, x, u: u, final=1.0, t0=0.5, tf=1.0, **half)
    >>> jump = lambda tf, xf, t0, x0: x0 - xf - 0.5
    >>> found = Phases(up, on, links=[jump]).solve([{"x": 0.0, "u": 0.0}] * 2, intervals=4)
    >>> len(found), found[1].t.tolist()[0], found.success
    (2, 0.5, True)
    """

    def __init__(
        self,
        phases: list[ControlSolution],
        task: Task,
        answer: Answer,
        seconds: float,
        links: list[Row],
    ) -> None:
        super().__init__(task, answer, seconds)
        self.phases, self.links = phases, links

    def __repr__(self) -> str:
        return self._summarize(f"{len(self.phases)} phases")

    def __len__(self) -> int:
        return len(self.phases)

    def __getitem__(self, k: int) -> ControlSolution:
        return self.phases[k]

    @property
    def errors(self) -> np.ndarray:
        """Estimated errors of the states in all intervals of all phases."""
        return np.concatenate([phase.errors for phase in self.phases])

    @property
    def parts(self) -> list[ControlSolution]:
        """The phases."""
        return self.phases

    @property
    def t0(self) -> float:
        """Initial time of the first phase."""
        return self.phases[0].t0

    @property
    def tf(self) -> float:
        """Final time of the last phase."""
        return self.phases[-1].tf

    @cached_property
    def trajectory(self) -> Trajectory:
        """The phases as one `Trajectory`, with two samples and an event at each junction.

        Inputs ``u`` and values ``y`` of path constraints are there if all phases have the same.
        Phases whose states differ have no common trajectory: each has its own.
        """
        parts = [phase.trajectory for phase in self.phases]
        if _join_trees([part.x for part in parts]) is None:
            raise StructError(
                "the states of the phases differ, so that they have no common trajectory: take "
                "those of the phases, [phase.trajectory for phase in solution]"
            )
        joined = {name: _join_trees([getattr(p, name) for p in parts]) for name in "xuy"}
        pairs = list(pairwise(parts))
        stack = lambda *leaves: np.stack(leaves)  # noqa: E731
        events = {
            "t": np.array([after.t[0] for _, after in pairs]),
            "event": np.zeros(len(pairs), dtype=int),
            "x_before": tree.map(stack, *(before[-1] for before, _ in pairs)),
            "x_after": tree.map(stack, *(after[0] for _, after in pairs)),
        }
        return Trajectory(
            np.concatenate([part.t for part in parts]),
            **joined,
            status=0 if self.success else -1,
            message=self.message,
            stats={"iterations": self.iterations, "intervals": len(self.errors)},
            dense=self._find_states,
            events=events,
            hold=parts[0].hold if len({part.hold for part in parts}) == 1 else None,
        )

    def at(self, t: ArrayLike) -> tuple[Tree, Tree]:
        """Return states and controls at any times, as trees with time as the leading axis.

        A time at which one phase ends and the next begins belongs to the next.

        Parameters
        ----------
        t : array (n,)
            Times.
        """
        times = np.atleast_1d(np.asarray(t, dtype=float))
        starts = np.array([phase.t0 for phase in self.phases])
        if not np.all(np.diff(starts) >= 0.0):
            raise ValueError(
                "the phases do not follow each other in time: ask one of them, solution[k].at(t)"
            )
        k = np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(starts) - 1)
        order = np.argsort(k, kind="stable")
        pieces = [phase.at(times[k == i]) for i, phase in enumerate(self.phases) if np.any(k == i)]
        values = [_join_trees(list(part)) for part in zip(*pieces)]
        if any(value is None for value in values):
            raise StructError(
                "the phases differ in their states or controls: ask solution[k].at(t)"
            )
        back = np.argsort(order) if np.ndim(t) else 0
        x, u = (tree.map(lambda leaf: leaf[back], value) for value in values)
        return x, u

    def _find_states(self, t: ArrayLike) -> Tree:
        return self.at(t)[0]

    def finer_mesh(self, tol: float) -> list[np.ndarray] | None:
        """Return meshes on which errors should be below a tolerance, or None if they are.

        Parameters
        ----------
        tol : float
            The tolerance.
        """
        finer = [refine_mesh(phase, tol) for phase in self.phases]
        if all(mesh is None for mesh in finer):
            return None
        return [phase.mesh if mesh is None else mesh for phase, mesh in zip(self.phases, finer)]


def _join_trees(values: list[Tree]) -> Tree:
    """Return trees joined along their first axis; None where they differ or one is missing."""
    forms = {
        (repr(tree.structure(value)), *(np.shape(leaf)[1:] for leaf in tree.leaves(value)))
        for value in values
    }
    if len(forms) > 1 or values[0] is None:
        return None
    return tree.map(lambda *leaves: np.concatenate(leaves), *values)
