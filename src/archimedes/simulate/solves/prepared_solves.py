"""Solves that are made again and again: from the arguments to the kernel, with little between.

A first solve checks, flattens and looks up what it is given; that is a thousand Python calls,
several times as long as many a solve takes. From the third solve on with the same function and
options, and a state and arguments of the same structure, all that does not depend on their numbers
is kept: the kernels, and memory that their inputs and outputs lie in. Where a solve stands (its
run) never leaves that memory, and a kernel is called with nothing but the addresses in it.

There is a class for each kind of outputs: the last state, states at few times, and steps in rows,
which give the states at many times or after all steps. They call the same kernels in the same order
as ``driver.py``, so the bits are the same. Whatever is not quite usual (events, inputs, batches,
values that are refused, functions that read something else than before) goes the ordinary way, with
the same bits.

Symbols: n numbers in a state, m output times.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from operator import is_not
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.registry import default_backend
from archimedes.function.batching.repeated_calls import LeafBuffers, LoopBuffers, UnoptimizedCalls
from archimedes.function.dependencies.states import State, changing_statics, state_of
from archimedes.simulate.methods.method_table import HITS
from archimedes.simulate.problem.argument_checks import check_times
from archimedes.simulate.solves.collectors import FEW, chunk_of, steps_in_call
from archimedes.simulate.solves.driver import FIRST_CALL, Pace
from archimedes.simulate.solves.initial_value_problem import Problem
from archimedes.simulate.solves.kernel_runs import FIRST_ROWS, OneRun
from archimedes.simulate.statuses import MANY_STEPS, Status, message_of
from archimedes.simulate.stepping.dense_output import END, DenseOutput
from archimedes.simulate.stepping.solve_loops import go_to_end, go_to_times
from archimedes.simulate.stepping.trial_step import Run, Setup
from archimedes.simulate.trajectory.trajectory import Trajectory, assemble_trajectory
from archimedes.symbolic import is_tracing
from archimedes.tree import is_struct
from archimedes.tree.operations import flatten  # inside the boundary of tracebacks
from archimedes.tree.treedef import LEAF

if TYPE_CHECKING:
    from archimedes.function import Compiled
    from archimedes.function.execution.tiers import Tiers
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import ArrayLike, Tree

#: How many prepared solves are kept (the oldest is forgotten), and after how many ordinary solves
#: a request is prepared. NEVER stands for one that cannot be.
KEPT, ORDINARY, NEVER = 64, 2, -1
#: Leaves of :class:`Setup`, and where those are that differ from solve to solve.
SETUP, T_START, T_END, PAUSE = 7, 0, 1, 6
#: Solves after which the kernel that begins them is optimized: it is short, and runs once in each.
OFTEN = 200

_is_struct: Callable[[type], bool] = functools.lru_cache(maxsize=256)(is_struct)
_NUMBERS, _SERIES = (float, int, np.float64), (np.ndarray, list, tuple)
#: Arrays that kernels take as they are: of float64, int64 and bool.
_KINDS = "".join(np.dtype(kind).char for kind in (np.float64, np.int64, np.bool_))

#: Functions by their code, of each the last one that read other objects than those before it.
_functions: OrderedDict[CodeType, FunctionType] = OrderedDict()
_solves: OrderedDict[Hashable, Prepared | int] = OrderedDict()


# ---- requests --------------------------------------------------------------------------------


class Outputs(NamedTuple):
    """What is known of output times (m,) in a span.

    ``sign``: 1 where time goes forward, -1 where it goes back; ``first``: how many are at the
    start; ``whole``: the last one is at the end of the span.
    """

    sign: float
    first: int
    whole: bool


def _outputs_at(content: bytes, t_start: float, t_end: float) -> Outputs | None:
    """Return what is known of the times with this content; None where they are refused."""
    try:
        times = check_times(np.frombuffer(content), t_start, t_end)
    except ValueError:
        return None
    if not len(times):
        return None
    sign = 1.0 if t_end > t_start else -1.0
    first = int((sign * times).searchsorted(sign * t_start, side="right"))
    return Outputs(sign, first, times.item(-1) == t_end)


class Request:
    """What a user asks for, if it is of the kind that can be kept ready.

    The span, the leaves of the state, the numbers of the arguments, and ``outputs`` at ``times``
    (m,), None where these are not asked for. ``prepared`` is what solves it, None where it is
    solved the ordinary way.
    """

    t_start: float
    t_end: float
    state: Sequence[Any]
    numbers: Sequence[Any]
    times: np.ndarray
    outputs: Outputs | None = None
    prepared: Prepared | None = None
    #: What the function reads, where that is to be compared after an ordinary solve's.
    reads: State | None = None

    def __init__(self, func: Any, kind: type[Prepared], key: Hashable) -> None:
        self.func, self.kind, self.key = func, kind, key
        stored = _solves.get(key)
        if isinstance(stored, Prepared):
            if stored.reads.is_unchanged():
                self.prepared = stored
            else:
                _solves.pop(key, None)
        elif stored == ORDINARY - 1:
            self.reads = state_of(func)

    def solve(self, t_eval: ArrayLike | None) -> Solution | None:
        """Solve for the states at ``t_eval``; without it, the last one or those after all steps.

        None where nothing is prepared, or something is to be refused: the ordinary way says what.
        """
        if self.prepared is None:
            return None
        if t_eval is not None:
            try:
                self.times = times = np.ascontiguousarray(t_eval, np.float64)
            except (TypeError, ValueError):
                return None
            asked = (times.tobytes(), self.t_start, self.t_end)
            if asked != self.prepared.asked:
                self.prepared.asked, self.prepared.outputs = asked, _outputs_at(*asked)
            self.outputs = self.prepared.outputs
            if self.outputs is None or times.ndim != 1:
                return None
        return self.prepared.solve(self)

    def remember(self, problem: Problem) -> None:
        """Count an ordinary solve of this request; after some, prepare the problem."""
        count = _solves.get(self.key, 0)
        if isinstance(count, Prepared) or count == NEVER:
            return
        count += 1
        _solves[self.key] = count if count < ORDINARY else self._prepare(problem)
        while len(_solves) > KEPT:
            _solves.popitem(last=False)

    def _prepare(self, problem: Problem) -> Prepared | int:
        """Return the prepared problem, NEVER if there is none, or the count to go on with."""
        kernels = problem.kernels
        native, method = kernels.backend is default_backend(), kernels.plan.method
        usual = native and kernels.single is kernels and kernels.plain and method.drive is None
        structure = tree.structure(problem.instances.args)
        # Another thread may have changed what the function reads while the problem was made.
        if self.reads is None or state_of(self.func) is not self.reads:
            return ORDINARY - 1
        if not usual or changing_statics({}, set(), (), structure):
            return NEVER
        return self.kind(problem, self.reads)


def request_of(
    func: Any,
    t_span: Any,
    x0: Tree,
    args: Any,
    t_eval: Any,
    final: bool,
    settings: tuple[Any, ...],
) -> Request | None:
    """Return the request for a solve with these settings, None for those that are not kept.

    ``final``: without ``t_eval`` the last state is wanted, not those after all steps.
    """
    if is_tracing() or type(t_span) is not tuple or len(t_span) != 2:
        return None
    outputs: type[Prepared] = LastState if final else InRows
    if t_eval is not None:
        if type(t_eval) not in _SERIES or (type(t_eval) is np.ndarray and t_eval.ndim != 1):
            return None
        outputs = AtTimes if len(t_eval) < FEW else InRows
    own_args = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
    kind = type(func)
    if kind is MethodType and _is_struct(type(func.__self__)):
        # The struct of a bound method is an argument like others.
        func, own_args = func.__func__, (func.__self__, *own_args)
    elif kind is FunctionType:
        func = _first_of_its_kind(func)
    elif kind is not MethodType:
        return None
    if type(x0) is np.ndarray:
        leaves, structure = [x0], LEAF
    elif type(x0) in _SERIES:
        # Numbers make an array; lists of other things are rarely states.
        if set(map(type, x0)) != {float}:
            return None
        leaves, structure = [np.array(x0)], LEAF
    else:
        leaves, structure = flatten(x0)
    numbers, of_numbers = flatten(own_args) if own_args else ((), None)
    forms = _forms_of([*leaves, *numbers])
    begin, end = t_span
    if forms is None or type(begin) not in _NUMBERS or type(end) not in _NUMBERS:
        return None
    if not (math.isfinite(begin) and math.isfinite(end)) or begin == end:
        return None
    # Functions and methods are found by identity.
    key = (func, kind, settings, outputs, structure, of_numbers, forms)
    try:
        request = Request(func, outputs, key)
    except TypeError:
        return None  # a setting that is no number or name, such as an array of tolerances
    request.t_start, request.t_end = float(begin), float(end)
    request.state, request.numbers = leaves, numbers
    return request


def _first_of_its_kind(func: FunctionType) -> FunctionType:
    """Return a function met before that reads the same objects, or this one.

    A lambda is a new function each time its line is run.
    """
    known = _functions.get(func.__code__)
    if known is func:
        return func
    if known is not None and _reads_the_same(known, func):
        return known
    _functions[func.__code__] = func
    while len(_functions) > KEPT:
        _functions.popitem(last=False)
    return func


def _reads_the_same(one: FunctionType, other: FunctionType) -> bool:
    """Return whether functions of the same code have the same globals, variables and defaults."""
    if one.__globals__ is not other.__globals__ or one.__dict__ or other.__dict__:
        return False
    if one.__kwdefaults__ is not other.__kwdefaults__:
        return False
    mine, theirs = one.__defaults__ or (), other.__defaults__ or ()
    if len(mine) != len(theirs) or any(map(is_not, mine, theirs)):
        return False
    try:
        for a, b in zip(one.__closure__ or (), other.__closure__ or ()):
            if a is not b and a.cell_contents is not b.cell_contents:
                return False
    except ValueError:
        return False  # a variable that has no value yet
    return True


def _forms_of(leaves: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return what kernels know of numbers; None where something else is among them."""
    forms: list[Any] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray:
            dtype = leaf.dtype
            if dtype.char not in _KINDS or not dtype.isnative:
                return None
            forms.append((dtype.char, leaf.shape))
        elif type(leaf) in _NUMBERS:
            forms.append(type(leaf))
        else:
            return None
    return tuple(forms)


# ---- memory that stays ------------------------------------------------------------------------


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

    prepared: Prepared
    end: End
    t: np.ndarray
    x: np.ndarray
    dense: DenseOutput | None = None

    def states(self) -> Any:
        """Return the tree of states, with leaves (m, ...)."""
        layout, x = self.prepared.plan.layout, self.x
        is_vector = layout.is_array and len(layout.shapes[0]) == 1
        return x if is_vector else layout.unpack(x, (len(x),))

    def trajectory(self) -> Trajectory:
        """Return the trajectory."""
        end, method, most = self.end, self.prepared.plan.method, self.prepared.max_steps
        looks = end.hits >= HITS and end.accepted >= MANY_STEPS
        stats = {"method": method.name, "steps": end.accepted, "rejected": end.rejected}
        return assemble_trajectory(
            t=self.t,
            x=self.states(),
            status=end.status,
            message=message_of(end.status, end.reached, most, method.stiff, looks),
            stats=stats | end.counts,
            dense=self.dense,
            events=None,
        )


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
        self, solver: Prepared, here: LeafBuffers, there: LeafBuffers, inputs: LeafBuffers
    ) -> None:
        self.here, self.there, self.inputs = here, there, inputs
        self.setup, self.numbers = inputs.parts[:SETUP], inputs.parts[SETUP:]
        for part, value in zip(self.setup, tree.leaves(solver.problem.setup)):
            part[:] = value
        self.x = np.empty(solver.size)
        starts = [*self.setup, self.setup[T_START], self.x, *self.numbers]
        self.begin = solver.begin.kernel().bind(starts, here.parts)


class Prepared(ABC):
    """A problem with all but its numbers made ready, for one kind of outputs.

    It holds for as long as what its function ``reads`` does not change. ``dense``: runs carry
    interpolants.
    """

    dense = False
    #: The output times and the span of the last solve, and what is known of these times.
    asked: tuple[bytes, float, float] | None = None
    outputs: Outputs | None = None

    def __init__(self, problem: Problem, reads: State) -> None:
        self.problem, self.reads, self.kernels = problem, reads, problem.kernels
        self.plan, self.max_steps = problem.kernels.plan, problem.max_steps
        self.layout, self.size = self.plan.layout, self.plan.layout.size
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
    def go(self, memory: Memory, start: Request, end: End, pace: Pace) -> Solution:
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

    def solve(self, start: Request) -> Solution | None:
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
        for span, leaf in zip(self.layout.spans, start.state):
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


class LastState(Prepared):
    """The last state."""

    def find_kernels(self, run: Run, setup: Setup, args: Args) -> None:
        """Find the kernels that go on from a run."""
        self.use_loop(go_to_end, setup, args, run)

    def memory(self) -> Memory:
        """Return memory for one solve."""
        return self.bind()

    def go(self, memory: Memory, start: Request, end: End, pace: Pace) -> Solution:
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
        return Solution(
            self, end, np.array([end.reached]), room.parts[self.at.x].reshape(1, -1).copy()
        )


class AtTimes(Prepared):
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

    def go(self, memory: Memory, start: Request, end: End, pace: Pace) -> Solution:
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
        return Solution(self, end, times[:done], x[:done])


class InRows(Prepared):
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

    def go(self, memory: Memory, start: Request, end: End, pace: Pace) -> Solution:
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
        return Solution(self, end, times[:count], x[:count])

    def _every_step(self, memory: Memory, start: Request, end: End, pace: Pace) -> Solution:
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
        return Solution(self, end, t, x, dense)
