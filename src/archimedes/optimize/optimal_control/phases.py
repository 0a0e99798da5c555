"""``Phases``: optimal control problems one after the other, linked, solved as one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled
from archimedes.optimize.optimal_control.equations import Guess
from archimedes.optimize.optimal_control.problem import OptimalControl
from archimedes.optimize.optimal_control.solution import ControlSolution, MeshSolution, make_mesh
from archimedes.optimize.optimal_control.transcription import Call, Discretization
from archimedes.optimize.problems.blocks import Block, Evaluator, Structure
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.problems.unknowns import find_result_shapes, read_limits
from archimedes.optimize.solvers.solver_table import solve_task
from archimedes.typing import Array, Tree

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
        began, call = time.perf_counter(), Call.read(args, options, method, callback)
        parts = self._discretize(guesses, intervals, scheme, call)
        task = self._join(parts, call)
        answer = solve_task(task, call.solver)
        seconds = time.perf_counter() - began
        phases = [ControlSolution(p.program, p.select(answer), seconds) for p in parts]
        return PhasesSolution(phases, task, answer)

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

    def _join(self, parts: list[_Part], call: Call) -> Task:
        """Return all phases and their links as one program."""
        tasks = [part.program.task for part in parts]
        blocks = [block for part in parts for block in part.shift_blocks()]
        low, high = [task.low for task in tasks], [task.high for task in tasks]
        row = parts[-1].next_row
        for k, (one, other) in enumerate(pairwise(parts)):
            block, (link_low, link_high) = self._link(k, one, other, row)
            blocks.append(block)
            low, high = [*low, link_low], [*high, link_high]
            row += link_low.size
        patterns = [block.patterns(call.args) for block in blocks]
        structure = Structure(patterns, parts[-1].end, row)
        # Each phase takes one unit of the way, ends apart.
        order = [k + 0.5 * task.order for k, task in enumerate(tasks) if task.order is not None]
        points = zip(*((task.start, task.lower, task.upper) for task in tasks))
        start, lower, upper = map(np.concatenate, points)
        rest = np.concatenate(low), np.concatenate(high), call.settings, tasks[0].monitor
        evaluator = Evaluator(blocks, structure, call.args)
        return Task(evaluator, start, lower, upper, *rest, order=np.concatenate(order))

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
        super().__init__(task, answer)
        self.phases = phases

    def __repr__(self) -> str:
        return self._describe(f"{len(self.phases)} phases")

    def __len__(self) -> int:
        return len(self.phases)

    def __getitem__(self, k: int) -> ControlSolution:
        return self.phases[k]

    @property
    def errors(self) -> np.ndarray:
        """Estimated errors of the states in all intervals of all phases."""
        return np.concatenate([phase.errors for phase in self.phases])
