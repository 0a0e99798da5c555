"""``Phases``: optimal control problems one after the other, linked, solved as one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled
from archimedes.optimize.optimal_control.equations import Guess
from archimedes.optimize.optimal_control.problem import OptimalControl, mesh_of, trajectory_solver
from archimedes.optimize.optimal_control.solution import Answered, ControlSolution
from archimedes.optimize.optimal_control.transcription import Layout, Transcription
from archimedes.optimize.problems.blocks import Block
from archimedes.optimize.problems.evaluation import Evaluator, Structure
from archimedes.optimize.problems.tasks import Answer, Monitor, Settings, Task
from archimedes.optimize.problems.unknowns import find_number_shapes, read_limits
from archimedes.optimize.solvers.solve_task import solve_task

__all__ = ["Phases", "PhasesSolution"]


@dataclass
class _Part:
    """One phase on its mesh: where its unknowns and rows begin in the whole."""

    made: Transcription
    mesh: np.ndarray
    layout: Layout
    scale: np.ndarray
    task: Task
    begin: int
    row: int

    def end_of(self, first: bool) -> np.ndarray:
        """Return where time and state of its beginning or end are, among all unknowns."""
        X = self.layout.state_index()
        state = X[0, 0] if first else X[-1, -1]
        own = self.made.equations.own
        return self.begin + np.append(0 if first else 1, state[:own])

    def sizes_of(self, index: np.ndarray) -> np.ndarray:
        """Return the sizes of unknowns."""
        return self.scale[index - self.begin]


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
        for name, given in (("links", links), ("link_bounds", link_bounds)):
            if given is not None and len(given) != pairs:
                raise ValueError(
                    f"Phases: {name} has {len(given)} entries for {pairs} pairs of neighbours"
                )
        self.links = list(links) if links is not None else [None] * pairs
        self.link_bounds = list(link_bounds) if link_bounds is not None else [None] * pairs
        self._kernels: list[dict[str, Any]] = [{} for _ in range(pairs)]
        self._functions: list[Any] = [None] * pairs

    def solve(
        self,
        guesses: Any,
        *,
        intervals: Any = 30,
        scheme: str | Sequence[str] = "hermite-simpson",
        method: str = "ipm",
        args: Any = (),
        options: Mapping[str, Any] | None = None,
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
        callback : callable, optional
            Function that is called after each iteration.
        """
        began = time.perf_counter()
        solver = trajectory_solver(method)
        settings = Settings.of(options, solver.name)
        monitor = Monitor(callback, lambda x: x, settings.maxtime, settings.tol)
        args = args if isinstance(args, tuple) else (args,)
        parts = self._parts(guesses, intervals, scheme, args, settings, monitor)
        task = self._joined(parts, args, settings, monitor)
        answer = solve_task(task, solver)
        seconds = time.perf_counter() - began
        return PhasesSolution(
            [_solution(part, answer, args, seconds) for part in parts], task, answer
        )

    def _parts(
        self, guesses: Any, intervals: Any, scheme: Any, args: Any, settings: Any, monitor: Any
    ) -> list[_Part]:
        count = len(self.phases)
        guesses = guesses.phases if isinstance(guesses, PhasesSolution) else guesses
        if not isinstance(guesses, (list, tuple)):
            raise ValueError(
                f"guesses must be a list, with a guess for each of {count} phases, or an earlier "
                "solution"
            )
        if len(guesses) != count:
            raise ValueError(f"guesses has {len(guesses)} entries for {count} phases")
        meshes = intervals if isinstance(intervals, (list, tuple)) else [intervals] * count
        schemes = [scheme] * count if isinstance(scheme, str) else scheme
        for name, given in (("intervals", meshes), ("scheme", schemes)):
            if len(given) != count:
                raise ValueError(f"{name} has {len(given)} entries for {count} phases")
        parts: list[_Part] = []
        begin = row = 0
        for phase, given, cells, scheme in zip(self.phases, guesses, meshes, schemes):
            earlier = isinstance(given, ControlSolution)
            guess = given.as_guess() if earlier else Guess.of(given, phase)
            made = phase.transcription(guess, scheme, args)
            mesh = mesh_of(cells)
            layout, scale, task = made.task(mesh, guess, args, settings, monitor, None)
            parts.append(_Part(made, mesh, layout, scale, task, begin, row))
            begin, row = begin + layout.size, row + task.low.size
        return parts

    def _joined(self, parts: list[_Part], args: Any, settings: Settings, monitor: Monitor) -> Task:
        blocks = [
            replace(
                block,
                index=block.index + part.begin,
                rows=np.where(block.rows < 0, -1, block.rows + part.row),
                _patterns=None,
            )
            for part in parts
            for block in part.task.evaluator.blocks
        ]
        low = [part.task.low for part in parts]
        high = [part.task.high for part in parts]
        row = parts[-1].row + parts[-1].task.low.size
        for k, (one, other) in enumerate(pairwise(parts)):
            block, edges = self._link(k, one, other, row)
            blocks.append(block)
            low.append(edges[0])
            high.append(edges[1])
            row += edges[0].size
        size = parts[-1].begin + parts[-1].layout.size
        structure = Structure([block.patterns(args) for block in blocks], size, row)
        tasks = [part.task for part in parts]
        task = Task(
            Evaluator(blocks, structure, args),
            np.concatenate([t.start for t in tasks]),
            np.concatenate([t.lower for t in tasks]),
            np.concatenate([t.upper for t in tasks]),
            np.concatenate(low),
            np.concatenate(high),
            settings,
            monitor,
        )
        # Each phase takes one unit of the way, ends apart.
        task.order = np.concatenate(
            [
                k + 0.5 * part.task.order
                for k, part in enumerate(parts)
                if part.task.order is not None
            ]
        )
        return task

    def _link(self, k: int, one: _Part, other: _Part, row: int) -> Any:
        """Return the block of a pair of neighbours and the limits of its rows."""
        ends = (one.end_of(first=False), other.end_of(first=True))
        index = np.concatenate(ends)[None]
        scale = np.concatenate([one.sizes_of(ends[0]), other.sizes_of(ends[1])])[None]
        if self._functions[k] is None:
            self._functions[k] = self._function(k, one, other)
        function, like = self._functions[k]
        given = self.link_bounds[k]
        edges = read_limits(given, like, f"link_bounds[{k}]", (0.0, 0.0))
        rows = (row + np.arange(edges[0].size))[None]
        return Block(function, index, rows, (scale,), f"link{k}", self._kernels[k]), edges

    def _function(self, k: int, one: _Part, other: _Part) -> Any:
        """Return the function of a pair's scaled unknowns, and zeros like its result."""
        link, before, after = self.links[k], one.made.equations, other.made.equations
        n = before.own
        if link is None:
            if n != after.own:
                raise ValueError(
                    f"links[{k}]: phase {k} has {n} states and phase {k + 1} {after.own}: say with "
                    "a function how they are linked"
                )

            def plain(z: Any, scale: Any, *args: Any) -> Any:
                end, beginning = z[: n + 1], z[n + 1 :]
                # Both in the sizes of the first.
                return end - beginning * (scale[n + 1 :] / scale[: n + 1])

            return plain, np.zeros(n + 1)
        made = Compiled(lambda tf, *more: link(tf, *more), name=f"links[{k}]")
        given = (before.x_like, 0.0, after.x_like)
        like = find_number_shapes(made, 0.0, given, f"links[{k}]")

        def linked(z: Any, scale: Any, *args: Any) -> Any:
            z = z * scale
            ends = (z[0], before.unravel_x(z[1 : n + 1]), z[n + 1], after.unravel_x(z[n + 2 :]))
            return tree.ravel(link(*ends))[0] * 1.0

        return linked, like


def _solution(part: _Part, answer: Answer, args: Any, seconds: float) -> ControlSolution:
    own = slice(part.begin, part.begin + part.layout.size)
    rows = slice(part.row, part.row + part.task.low.size)
    mine = replace(answer, x=answer.x[own], lam_x=answer.lam_x[own], lam_g=answer.lam_g[rows])
    return ControlSolution(
        part.made, part.layout, part.mesh, part.scale, args, part.task, mine, seconds
    )


class PhasesSolution(Answered):
    """The solution of linked phases, a sequence of :class:`ControlSolution`.

    ``fun``, ``mesh_error``, ``success``, ``status``, ``message``, ``iterations`` and ``violation``
    are those of the whole.

    Parameters
    ----------
    phases : list of ControlSolution
        Solutions of the phases.
    task : Task
        The nonlinear program.
    answer : Answer
        What the solver returned.

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

    def __init__(self, phases: list[ControlSolution], task: Task, answer: Answer) -> None:
        self.phases, self.answer = phases, answer
        self.fun, g = task.evaluator.values(answer.x)
        self.violation = task.violation(answer.x, g)

    def __repr__(self) -> str:
        what = "solved" if self.success else "FAILED"
        return f"<PhasesSolution {what}: cost {self.fun:.8g}, {len(self.phases)} phases>"

    def __len__(self) -> int:
        return len(self.phases)

    @property
    def errors(self) -> np.ndarray:
        """Estimated errors of the states in all intervals of all phases."""
        return np.concatenate([phase.errors for phase in self.phases])

    def __getitem__(self, k: int) -> ControlSolution:
        return self.phases[k]
