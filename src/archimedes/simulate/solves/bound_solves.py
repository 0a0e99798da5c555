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
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from archimedes import tree
from archimedes.function.batching.repeats import Draft, Room, Rooms
from archimedes.function.execution.tiers import Tiers
from archimedes.simulate.solves.collectors import chunk_of, steps_in_call
from archimedes.simulate.solves.driver import FIRST_CALL, SECONDS
from archimedes.simulate.solves.initial_value_problem import Problem
from archimedes.simulate.solves.kernel_runs import FIRST_ROWS, OneRun
from archimedes.simulate.statuses import (
    FINISHED,
    INTERRUPTED,
    NON_FINITE,
    RUNNING,
    TOO_MANY_STEPS,
)
from archimedes.simulate.stepping.dense_output import END, DenseOutput
from archimedes.simulate.stepping.solve_loops import go_to_end, go_to_times
from archimedes.simulate.stepping.trial_step import Setup

#: Leaves of :class:`Setup`, and where those are that differ from solve to solve.
SETUP, T_START, T_END, PAUSE = 7, 0, 1, 6
#: Bytes of output times up to which they are compared with those of the solve before.
SMALL = 65_536


class Outputs:
    """What is known of output times (m,) in a span.

    ``sign``: 1 where time goes forward, -1 where it goes back; ``first``: how many are at the very
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

    def are_at(self, t_eval: Any, t_start: float, t_end: float) -> bool:
        """Return whether they are these, in the same span."""
        return (
            type(t_eval) is np.ndarray
            and t_start == self.t_start
            and t_end == self.t_end
            and t_eval.dtype.char == "d"
            and t_eval.nbytes <= SMALL
            and t_eval.tobytes() == self.content
        )


def outputs_at(t_eval: Any, t_start: float, t_end: float) -> Outputs | None:
    """Return what is known of times in a span, in its direction; None for others."""
    try:
        times = np.ascontiguousarray(t_eval, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if times.ndim != 1 or not len(times):
        return None
    forward = t_end > t_start
    along, low, high = (times, t_start, t_end) if forward else (times[::-1], t_end, t_start)
    # Sorted times lie in the span if the first and the last do; nan is never sorted.
    if not (low <= along.item(0) and along.item(-1) <= high):
        return None
    sorted_ = np.logical_and.reduce(along[:-1] <= along[1:])
    return Outputs(times, t_start, t_end) if sorted_ else None


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


class Pace:
    """How many trial steps a kernel may make before it returns, so that Python hears Ctrl-C."""

    def __init__(self, most: int) -> None:
        self.most, self.made, self.before = most, 0, 0
        self.pause = min(FIRST_CALL, most)
        self.began = time.perf_counter()

    def go_on(self) -> int:
        """Return at which number of steps the next call is to return."""
        seconds, steps = time.perf_counter() - self.began, self.made - self.before
        budget = FIRST_CALL
        if seconds > 0.0 and steps > 0:
            budget = max(100, int(steps * min(10.0, SECONDS / seconds)))
        self.before, self.began = self.made, time.perf_counter()
        return min(self.made + budget, self.most)


class Memory:
    """Where the numbers of one solve are.

    ``here`` is where it stands, ``there`` where the next call puts that, ``given`` what stays the
    same; ``x`` (n,) is where it starts.
    """

    def __init__(self, way: Way[Any], here: Room, there: Room, given: Room) -> None:
        self.here, self.there, self.given = here, there, given
        self.setup, self.numbers = given.parts[:SETUP], given.parts[SETUP:]
        for part, value in zip(self.setup, tree.leaves(way.problem.setup)):
            part[:] = value
        self.x = np.empty(way.size)
        inputs = [*self.setup, self.setup[T_START], self.x, *self.numbers]
        self.begin = way.begin.kernel().bound(inputs, here.parts)


#: Solves after which the kernel that begins them is made well: it is short, and runs once in each.
OFTEN = 200

M = TypeVar("M", bound=Memory)


class Way(ABC, Generic[M]):
    """Solves of one problem for one kind of outputs; ``dense``: runs carry interpolants."""

    dense = False

    def __init__(self, problem: Problem) -> None:
        self.problem, self.kernels, self.most = problem, problem.kernels, problem.max_steps
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
        #: Where numbers are among those of a run.
        self.at = at = self.tree.unflatten(range(self.tree.num_leaves))
        hits = None if at.suspicion is None else at.suspicion.hits
        self.numbers = (at.status, at.t, at.accepted, at.rejected, hits)
        self.counts = plan.method.counts
        inputs = self.begin.program.inputs
        self.run_types = self.begin.program.outputs
        self.given_types = (*inputs[:SETUP], *inputs[SETUP + 2 :])
        self.prepare(run, setup, args)
        self.count = 0
        #: Memory that no thread is using.
        self.free: list[M] = [self.memory()]

    @staticmethod
    def tiers(function: Any, *args: Any) -> Tiers:
        """Return what runs a function for arguments like these."""
        _, _, found = function.lookup(args, {})
        assert found is not None
        return found

    @abstractmethod
    def prepare(self, run: Any, setup: Setup, args: Any) -> None:
        """Find the kernels that go on from a run."""

    @abstractmethod
    def memory(self) -> M:
        """Return memory for one solve."""

    @abstractmethod
    def go(self, memory: M, start: Start, end: End, pace: Pace) -> Solution:
        """Go on from the beginning, where the run stands as ``end`` says."""

    def solve(self, start: Start) -> Solution | None:
        """Solve; None where the state is nan or infinite."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = self.memory()  # all of it is in use by other threads
        pace, setup = Pace(self.most), memory.setup
        setup[T_START][0], setup[T_END][0], setup[PAUSE][0] = start.t_start, start.t_end, pace.pause
        for part, number in zip(memory.numbers, start.numbers):
            part[:] = number.reshape(-1) if type(number) is np.ndarray else number
        for span, leaf in zip(self.spans, start.state):
            memory.x[span] = leaf.reshape(-1) if type(leaf) is np.ndarray else leaf
        self.count += 1
        if self.count == OFTEN:
            self.begin.complete()
        memory.begin()
        end, found = self.look(memory.here), None
        if end.status != NON_FINITE or np.isfinite(memory.x).all():
            found = self.go(memory, start, end, pace)
        self.free.append(memory)
        return found

    def after(self, memory: M, pace: Pace, last: Room) -> End:
        """Return how a run stands after a call, in the room ``last``; make it ready to go on."""
        end = self.look(last)
        pace.made = end.accepted + end.rejected
        if end.status == RUNNING:
            if pace.made >= self.most:
                return end._replace(status=TOO_MANY_STEPS)
            memory.setup[PAUSE][0] = pace.go_on()
            if last is not memory.here:
                for mine, new in zip(memory.here.arrays, last.arrays):
                    mine[:] = new
        return end

    def look(self, room: Room) -> End:
        """Return where a run stands."""
        counts, more = self.counts, {}
        if counts is not None:
            carried = self.tree.unflatten(room.leaves()).memory
            more = {name: int(n) for name, n in counts(carried).items()}
        parts = room.parts
        status, t, accepted, rejected, hits = self.numbers
        return End(
            *(parts[status].item(), parts[t].item(), parts[accepted].item()),
            *(parts[rejected].item(), 0 if hits is None else parts[hits].item(), more),
        )


class LastMemory(Memory):
    """... and the call that goes to the end."""

    run: Callable[[], None]


class LastState(Way[LastMemory]):
    """The last state."""

    def prepare(self, run: Any, setup: Setup, args: Any) -> None:
        """Find the kernels that go on from a run."""
        self.kernel = self.tiers(self.kernels.loop(go_to_end), setup, args, run)
        self.draft = Draft(self.kernel)

    def memory(self) -> LastMemory:
        """Return memory for one solve."""
        here, there = Room(self.run_types), Room(self.run_types)
        made = LastMemory(self, here, there, Room(self.given_types))
        inputs = [*made.given.parts, *here.parts]
        made.run = self.kernel.kernel().bound(inputs, there.parts)
        return made

    def go(self, memory: LastMemory, start: Start, end: End, pace: Pace) -> Solution:
        """Go to the end of the span."""
        room = memory.here
        try:
            while end.status == RUNNING:
                memory.run() if self.draft.complete else self.draft.run(memory.run)
                end = self.after(memory, pace, memory.there)
                room = memory.there
        except KeyboardInterrupt:
            # What the kernel had put there is not finished.
            end, room = end._replace(status=INTERRUPTED), memory.here
        return Solution(end, np.array([end.reached]), room.parts[self.at.x].reshape(1, -1).copy())


class OutputMemory(Memory):
    """... and the call that goes from output to output, with their times and states."""

    run: Callable[[], None]
    block: np.ndarray
    states: np.ndarray


class AtTimes(Way[OutputMemory]):
    """States at few times, from one to the next."""

    dense = True

    def prepare(self, run: Any, setup: Setup, args: Any) -> None:
        """Find the kernels that go on from a run."""
        self.chunk = chunk_of(1, self.size, OneRun.most_outputs)
        block = np.zeros(self.chunk)
        self.kernel = self.tiers(self.kernels.loop(go_to_times), setup, args, run, block)
        self.draft = Draft(self.kernel)

    def memory(self) -> OutputMemory:
        """Return memory for one solve."""
        here, there = Room(self.run_types), Room(self.run_types)
        made = OutputMemory(self, here, there, Room(self.given_types))
        made.block, made.states = np.empty(self.chunk), np.empty((self.chunk, self.size))
        inputs = [*made.given.parts, *here.parts, made.block]
        made.run = self.kernel.kernel().bound(inputs, [*there.parts, made.states])
        return made

    def go(self, memory: OutputMemory, start: Start, end: End, pace: Pace) -> Solution:
        """Go on to each of the times."""
        assert start.outputs is not None
        times, sign = start.times, start.outputs.sign
        total, done, block, chunk = len(times), 0, memory.block, self.chunk
        along, x = times if sign > 0.0 else -times, np.empty((total, self.size))
        try:
            while end.status == RUNNING and done < total:
                # Behind the last time of all it is repeated.
                here = times[done : done + chunk]
                block[: len(here)], block[len(here) :] = here, times[-1]
                memory.run() if self.draft.complete else self.draft.run(memory.run)
                end = self.after(memory, pace, memory.there)
                reached = int(along.searchsorted(sign * end.reached, side="right"))
                last = min(reached, done + chunk)
                x[done:last] = memory.states[: last - done]
                done = last
        except KeyboardInterrupt:
            end = end._replace(status=INTERRUPTED)
        if end.status == RUNNING:
            end = end._replace(status=FINISHED)
        return Solution(end, times[:done], x[:done])


class RowMemory(Memory):
    """... with ``rooms`` for the steps, and rows for those whose outputs are computed.

    ``fill`` computes them; ``done`` (1,): how many there are.
    """

    rooms: Rooms
    rows: np.ndarray
    done: np.ndarray
    fill: Callable[[int, np.ndarray, float, np.ndarray], None]


class InRows(Way[RowMemory]):
    """Steps, one after the other into rows: states at many times in them, or after each."""

    def prepare(self, run: Any, setup: Setup, args: Any) -> None:
        """Find the kernels that go on from a run."""
        repeated = self.kernels.repeated_step(False)
        assert repeated is not None
        self.kind = repeated.kind((run, setup, args))
        self.rows, self.over = self.kernels.rows(), self.kernels.over()
        self.most_rows = steps_in_call(self.rows.width, OneRun)
        #: Rows that the next solve may need.
        self.expected = FIRST_ROWS

    def memory(self) -> RowMemory:
        """Return memory for one solve."""
        rooms = self.kind.rooms()
        made = RowMemory(self, rooms.here, rooms.there, rooms.given)
        made.rooms, made.done = rooms, np.zeros(1, dtype=np.int64)
        self._make_room(made, FIRST_ROWS)
        return made

    def _make_room(self, memory: RowMemory, count: int) -> None:
        """Have room for the rows of so many steps."""
        memory.rows = np.empty((count, self.rows.width))
        memory.fill = self.over.along(END, memory.rows, memory.done)

    def go(self, memory: RowMemory, start: Start, end: End, pace: Pace) -> Solution:
        """Make all steps, or those with the times in them."""
        if start.outputs is None:
            return self._every_step(memory, start, end, pace)
        times, outputs, done = start.times, start.outputs, memory.done
        total, x = len(times), np.empty((len(times), self.size))
        # Times at the very start belong to no step.
        x[: outputs.first], done[0] = memory.x, outputs.first
        # Where outputs end before the span does, steps come in such portions as in other solves.
        limit = len(memory.rows) if outputs.whole else FIRST_ROWS
        try:
            while end.status == RUNNING and done[0] < total:
                if limit > len(memory.rows):
                    self._make_room(memory, limit)
                rows = memory.rows if limit == len(memory.rows) else memory.rows[:limit]
                last, filled = self.kind.repeat(memory.rooms, rows)
                memory.fill(filled, times, outputs.sign, x)
                end = self.after(memory, pace, last)
                limit = min(4 * limit, self.most_rows)
        except KeyboardInterrupt:
            end = end._replace(status=INTERRUPTED)
        if end.status == RUNNING:
            end = end._replace(status=FINISHED)
        count = int(done[0])
        return Solution(end, times[:count], x[:count])

    def _every_step(self, memory: RowMemory, start: Start, end: End, pace: Pace) -> Solution:
        """Return the states after all steps, with the interpolants between them."""
        parts, limit, width = [], self.expected, self.rows.width
        try:
            while end.status == RUNNING:
                rows = np.empty((limit, width))
                last, filled = self.kind.repeat(memory.rooms, rows)
                parts.append(rows[:filled])
                end = self.after(memory, pace, last)
                limit = min(4 * limit, self.most_rows)
        except KeyboardInterrupt:
            end = end._replace(status=INTERRUPTED)
        rows = parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width)), *parts])
        self.expected = min(self.most_rows, max(FIRST_ROWS, len(rows) + len(rows) // 8 + 1))
        t = np.empty(len(rows) + 1)
        t[0], t[1:] = start.t_start, rows[:, END]
        x = np.concatenate([memory.x[None], self.rows.x(rows)])
        dense = DenseOutput.of_rows(rows, self.rows, self.plan.layout, self.kernels.project())
        return Solution(end, t, x, dense)
