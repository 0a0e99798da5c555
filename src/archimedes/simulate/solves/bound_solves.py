"""Single solves in memory that stays: kernels that know where their inputs and outputs are.

Where a solve stands (its run) never leaves that memory, and a kernel is called with nothing but the
addresses in it. A class for each kind of outputs: the last state, states at few times, and steps in
rows, which give the states at many times or after all steps. The same kernels in the same order as
``driver.py`` calls them, so the bits are the same.

Symbols: n numbers in a state, m output times.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function.batching.native_loops import LeafBuffers, LoopBuffers, UnoptimizedCalls
from archimedes.function.execution.tiers import Tiers
from archimedes.simulate.problem.argument_checks import check_times
from archimedes.simulate.solves.collectors import chunk_of, steps_in_call
from archimedes.simulate.solves.driver import FIRST_CALL, Pace
from archimedes.simulate.solves.initial_value_problem import Problem
from archimedes.simulate.solves.kernel_runs import FIRST_ROWS, OneRun
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.dense_output import END, DenseOutput
from archimedes.simulate.stepping.solve_loops import go_to_end, go_to_times
from archimedes.simulate.stepping.trial_step import Run, Setup

if TYPE_CHECKING:
    from archimedes.function import Compiled
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import ArrayLike

#: Leaves of :class:`Setup`, and where those are that differ from solve to solve.
SETUP, T_START, T_END, PAUSE = 7, 0, 1, 6
#: Solves after which the kernel that begins them is optimized: it is short, and runs once in each.
OFTEN = 200
#: Bytes of output times up to which they are compared with those of the solve before.
SMALL = 65_536


class Outputs:
    """What is known of output times (m,) in a span.

    ``sign``: 1 where time goes forward, -1 where it goes back; ``first``: how many are at the
    start; ``whole``: the last one is at the end of the span.
    """

    __slots__ = ("content", "first", "sign", "t_end", "t_start", "whole")

    def __init__(self, times: np.ndarray, t_start: float, t_end: float) -> None:
        self.content = times.tobytes() if times.nbytes <= SMALL else None
        self.t_start, self.t_end = t_start, t_end
        self.sign = 1.0 if t_end > t_start else -1.0
        along = times if self.sign > 0.0 else -times
        self.first = int(along.searchsorted(self.sign * t_start, side="right"))
        self.whole = times.item(-1) == t_end

    def are_at(self, t_eval: ArrayLike, t_start: float, t_end: float) -> bool:
        """Return whether they are these, in the same span."""
        return (
            type(t_eval) is np.ndarray
            and (t_start, t_end) == (self.t_start, self.t_end)
            and t_eval.dtype.char == "d"
            and t_eval.nbytes <= SMALL
            and t_eval.tobytes() == self.content
        )


def outputs_at(t_eval: ArrayLike, t_start: float, t_end: float) -> Outputs | None:
    """Return what is known of times in a span, in its direction; None for others."""
    try:
        times = check_times(t_eval, t_start, t_end)
    except (TypeError, ValueError):
        return None
    return Outputs(times, t_start, t_end) if len(times) else None


class Start:
    """What differs from solve to solve: the span, leaves of the state, numbers of the arguments.

    ``outputs`` at ``times`` (m,), None where these are not asked for.
    """

    __slots__ = ("numbers", "outputs", "state", "t_end", "t_start", "times")
    t_start: float
    t_end: float
    state: Sequence[Any]
    numbers: Sequence[Any]
    times: np.ndarray
    outputs: Outputs | None


class End(NamedTuple):
    """How a solve ended: at the time ``reached``; ``hits``: what speaks for a stiff system.

    ``counts`` are further statistics of the method.
    """

    status: int
    reached: float
    accepted: int
    rejected: int
    hits: int
    counts: dict[str, Any]


class Solution(NamedTuple):
    """The states x (m, n) that a solve reached at times t (m,), and how it ended."""

    end: End
    t: np.ndarray
    x: np.ndarray
    dense: DenseOutput | None = None


class Memory:
    """Where the numbers of one solve are.

    ``here`` is the run as it stands, ``there`` the room in which the next call puts it, ``inputs``
    what stays the same, ``x`` (n,) the state at the start. ``call`` goes on, with the times
    ``block`` and the ``states`` there where outputs are asked for one by one. Where steps come in
    ``rows``, ``buffers`` is what makes them, ``fill`` computes the outputs in them, and ``done``
    (1,) is how many of these there are.
    """

    call: Callable[[], None]
    block: np.ndarray
    states: np.ndarray
    buffers: LoopBuffers
    rows: np.ndarray
    done: np.ndarray
    fill: Callable[[int, np.ndarray, float, np.ndarray], None]

    def __init__(
        self, solver: BoundSolver, here: LeafBuffers, there: LeafBuffers, inputs: LeafBuffers
    ) -> None:
        self.here, self.there, self.inputs = here, there, inputs
        self.setup, self.numbers = inputs.parts[:SETUP], inputs.parts[SETUP:]
        for part, value in zip(self.setup, tree.leaves(solver.problem.setup)):
            part[:] = value
        self.x = np.empty(solver.size)
        starts = [*self.setup, self.setup[T_START], self.x, *self.numbers]
        self.begin = solver.begin.kernel().bind(starts, here.parts)


class BoundSolver(ABC):
    """Solves of one problem for one kind of outputs; ``dense``: runs carry interpolants."""

    dense = False

    def __init__(self, problem: Problem) -> None:
        self.problem, self.kernels, self.max_steps = problem, problem.kernels, problem.max_steps
        self.plan = plan = problem.kernels.plan
        self.size, self.shapes = plan.layout.size, plan.layout.shapes
        ends = itertools.accumulate((math.prod(shape) for shape in self.shapes), initial=0)
        #: Where the leaves of a state are in a flat vector.
        self.spans = list(itertools.starmap(slice, itertools.pairwise(ends)))
        setup, x, args = problem.setup, problem.instances.x0[0], problem.instances.args
        begin = self.kernels.begin(self.dense)
        self.begin = self.tiers(begin, setup, setup.t_start, x, args)
        run = begin(setup, setup.t_start, x, args)
        self.tree = tree.structure(run)
        #: Which leaf of a run each of its numbers is.
        self.at = at = self.tree.unflatten(range(self.tree.num_leaves))
        hits = None if at.suspicion is None else at.suspicion.hits
        self.numbers = (at.status, at.t, at.accepted, at.rejected, hits)
        inputs, self.run_types = self.begin.program.inputs, self.begin.program.outputs
        self.input_types = (*inputs[:SETUP], *inputs[SETUP + 2 :])
        self.find_kernels(run, setup, args)
        self.count = 0
        #: Memory that no thread is using.
        self.free: list[Memory] = [self.memory()]

    @staticmethod
    def tiers(function: Compiled, *args: Any) -> Tiers:
        """Return what runs a function for arguments like these."""
        tiers = function.lookup(args, {})[2]
        assert tiers is not None
        return tiers

    @abstractmethod
    def find_kernels(self, run: Run, setup: Setup, args: Args) -> None:
        """Find the kernels that go on from a run."""

    @abstractmethod
    def memory(self) -> Memory:
        """Return memory for one solve."""

    @abstractmethod
    def go(self, memory: Memory, start: Start, end: End, pace: Pace) -> Solution:
        """Go on from the beginning, where the run stands as ``end`` says."""

    def bind(self, inputs: Sequence[np.ndarray] = (), outputs: Sequence[np.ndarray] = ()) -> Memory:
        """Return memory for a loop that takes and returns more than the run."""
        here, there = LeafBuffers(self.run_types), LeafBuffers(self.run_types)
        memory = Memory(self, here, there, LeafBuffers(self.input_types))
        arrays = [*memory.inputs.parts, *here.parts, *inputs]
        memory.call = self.kernel.kernel().bind(arrays, [*there.parts, *outputs])
        return memory

    def use_loop(self, loop: Callable[..., Any], *args: Any) -> None:
        """Go on by a loop of ``solve_loops.py``."""
        self.kernel = self.tiers(self.kernels.loop(loop), *args)
        self.unoptimized = UnoptimizedCalls(self.kernel)

    def solve(self, start: Start) -> Solution | None:
        """Solve; return None where the state is nan or infinite."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = self.memory()  # all of it is in use by other threads
        setup = memory.setup
        setup[T_START][0], setup[T_END][0] = start.t_start, start.t_end
        setup[PAUSE][0] = min(FIRST_CALL, self.max_steps)
        for part, number in zip(memory.numbers, start.numbers):
            part[:] = number.reshape(-1) if type(number) is np.ndarray else number
        for span, leaf in zip(self.spans, start.state):
            memory.x[span] = leaf.reshape(-1) if type(leaf) is np.ndarray else leaf
        self.count += 1
        if self.count == OFTEN:
            self.begin.complete()
        memory.begin()
        end, solution = self.look(memory.here), None
        if end.status != Status.NON_FINITE or np.isfinite(memory.x).all():
            solution = self.go(memory, start, end, Pace())
        self.free.append(memory)
        return solution

    def after(self, memory: Memory, before: End, pace: Pace, last: LeafBuffers) -> End:
        """Return how a run stands after a call, in the room ``last``; make it ready to go on."""
        end = self.look(last)
        if end.status == Status.RUNNING:
            steps = end.accepted + end.rejected
            if steps >= self.max_steps:
                return end._replace(status=Status.TOO_MANY_STEPS)
            pace.took(steps - before.accepted - before.rejected)
            memory.setup[PAUSE][0] = min(steps + pace.start(), self.max_steps)
            if last is not memory.here:
                for mine, new in zip(memory.here.arrays, last.arrays):
                    mine[:] = new
        return end

    def look(self, room: LeafBuffers) -> End:
        """Return where a run stands."""
        counts, more, parts = self.plan.method.counts, {}, room.parts
        if counts is not None:
            carried = self.tree.unflatten(room.leaves()).memory
            more = {name: int(n) for name, n in counts(carried).items()}
        status, t, accepted, rejected, hits = self.numbers
        return End(
            *(parts[status].item(), parts[t].item(), parts[accepted].item()),
            *(parts[rejected].item(), 0 if hits is None else parts[hits].item(), more),
        )


class LastState(BoundSolver):
    """The last state."""

    def find_kernels(self, run: Run, setup: Setup, args: Args) -> None:
        """Find the kernels that go on from a run."""
        self.use_loop(go_to_end, setup, args, run)

    def memory(self) -> Memory:
        """Return memory for one solve."""
        return self.bind()

    def go(self, memory: Memory, start: Start, end: End, pace: Pace) -> Solution:
        """Go to the end of the span."""
        room = memory.here
        try:
            while end.status == Status.RUNNING:
                memory.call() if self.unoptimized.complete else self.unoptimized.run(memory.call)
                end = self.after(memory, end, pace, memory.there)
                room = memory.there
        except KeyboardInterrupt:
            # What the kernel had put there is not finished.
            end, room = end._replace(status=Status.INTERRUPTED), memory.here
        return Solution(end, np.array([end.reached]), room.parts[self.at.x].reshape(1, -1).copy())


class AtTimes(BoundSolver):
    """States at few times, from one to the next."""

    dense = True

    def find_kernels(self, run: Run, setup: Setup, args: Args) -> None:
        """Find the kernels that go on from a run."""
        self.chunk = chunk_of(1, self.size, OneRun.most_outputs)
        self.use_loop(go_to_times, setup, args, run, np.zeros(self.chunk))

    def memory(self) -> Memory:
        """Return memory for one solve."""
        block, states = np.empty(self.chunk), np.empty((self.chunk, self.size))
        memory = self.bind([block], [states])
        memory.block, memory.states = block, states
        return memory

    def go(self, memory: Memory, start: Start, end: End, pace: Pace) -> Solution:
        """Go on to each of the times."""
        assert start.outputs is not None
        times, sign, done = start.times, start.outputs.sign, 0
        block, chunk = memory.block, self.chunk
        along, x = times if sign > 0.0 else -times, np.empty((len(times), self.size))
        try:
            while end.status == Status.RUNNING and done < len(times):
                # Behind the last time of all it is repeated.
                here = times[done : done + chunk]
                block[: len(here)], block[len(here) :] = here, times[-1]
                memory.call() if self.unoptimized.complete else self.unoptimized.run(memory.call)
                end = self.after(memory, end, pace, memory.there)
                reached = int(along.searchsorted(sign * end.reached, side="right"))
                last = min(reached, done + chunk)
                x[done:last] = memory.states[: last - done]
                done = last
        except KeyboardInterrupt:
            end = end._replace(status=Status.INTERRUPTED)
        if end.status == Status.RUNNING:
            end = end._replace(status=Status.FINISHED)
        return Solution(end, times[:done], x[:done])


class InRows(BoundSolver):
    """Steps, one after the other into rows: states at many times in them, or after each."""

    def find_kernels(self, run: Run, setup: Setup, args: Args) -> None:
        """Find the kernels that go on from a run."""
        repeated = self.kernels.step_repeater(False)
        assert repeated is not None
        self.kind = repeated.kind((run, setup, args))
        self.rows, self.over = self.kernels.rows(), self.kernels.over()
        self.most_rows = steps_in_call(self.rows.width, OneRun)
        #: Rows that the next solve may need.
        self.expected = FIRST_ROWS

    def memory(self) -> Memory:
        """Return memory for one solve."""
        buffers = self.kind.buffers()
        memory = Memory(self, buffers.here, buffers.there, buffers.fixed)
        memory.buffers, memory.done = buffers, np.zeros(1, dtype=np.int64)
        self._make_rows(memory, FIRST_ROWS)
        return memory

    def _make_rows(self, memory: Memory, count: int) -> None:
        """Make room for the rows of ``count`` steps."""
        memory.rows = np.empty((count, self.rows.width))
        memory.fill = self.over.along(END, memory.rows, memory.done)

    def go(self, memory: Memory, start: Start, end: End, pace: Pace) -> Solution:
        """Make all steps, or those with the times in them."""
        if start.outputs is None:
            return self._every_step(memory, start, end, pace)
        times, outputs, done = start.times, start.outputs, memory.done
        x = np.empty((len(times), self.size))
        # Times at the start belong to no step.
        x[: outputs.first], done[0] = memory.x, outputs.first
        # Where outputs end before the span does, steps come in such portions as in other solves.
        limit = len(memory.rows) if outputs.whole else FIRST_ROWS
        try:
            while end.status == Status.RUNNING and done[0] < len(times):
                if limit > len(memory.rows):
                    self._make_rows(memory, limit)
                rows = memory.rows if limit == len(memory.rows) else memory.rows[:limit]
                last, filled = self.kind.repeat(memory.buffers, rows)
                memory.fill(filled, times, outputs.sign, x)
                end = self.after(memory, end, pace, last)
                limit = min(4 * limit, self.most_rows)
        except KeyboardInterrupt:
            end = end._replace(status=Status.INTERRUPTED)
        if end.status == Status.RUNNING:
            end = end._replace(status=Status.FINISHED)
        count = int(done[0])
        return Solution(end, times[:count], x[:count])

    def _every_step(self, memory: Memory, start: Start, end: End, pace: Pace) -> Solution:
        """Return the states after all steps, with the interpolants between them."""
        parts, limit, width = [], self.expected, self.rows.width
        try:
            while end.status == Status.RUNNING:
                rows = np.empty((limit, width))
                last, filled = self.kind.repeat(memory.buffers, rows)
                parts.append(rows[:filled])
                end = self.after(memory, end, pace, last)
                limit = min(4 * limit, self.most_rows)
        except KeyboardInterrupt:
            end = end._replace(status=Status.INTERRUPTED)
        rows = parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width)), *parts])
        self.expected = min(self.most_rows, max(FIRST_ROWS, len(rows) + len(rows) // 8 + 1))
        t = np.empty(len(rows) + 1)
        t[0], t[1:] = start.t_start, rows[:, END]
        x = np.concatenate([memory.x[None], self.rows.x(rows)])
        dense = DenseOutput.of_rows(rows, self.rows, self.plan.layout, self.kernels.project())
        return Solution(end, t, x, dense)
