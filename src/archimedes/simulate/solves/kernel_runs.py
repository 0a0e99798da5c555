"""The runs of one instance or of many: where they stand, and how kernels are called for them.

``OneRun`` calls the kernels as they are, ``ManyRuns`` mapped over the instances. Both return rows
and states with an instance axis in front, so that one driver and one family of collectors serve
single solves and batches. The run of a single solve has no such axis, and its counts are plain
numbers: what is done between kernel calls costs as much as a short solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.dense_output import END, START
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.solve_loops import go_to_end, go_to_times, make_steps, try_steps
from archimedes.simulate.stepping.trial_step import Run, Setup

if TYPE_CHECKING:
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import Array

#: Rows in the first call of a kernel, and trial steps in a call where they are made in Python.
FIRST_ROWS, FEW_STEPS = 32, 16
HERE = np.zeros(1, dtype=np.int64)
_SETUP_AXES = Setup(None, None, None, None, None, None, 0)
_SETUP_MANY = [False] * 6 + [True]


@dataclass(eq=False, repr=False)
class Instances:
    """Initial states x0 (N, n) and arguments: leaves that differ have instances along axis 0.

    ``alone``: a single solve, whose arguments have no batch axis.
    """

    count: int
    x0: np.ndarray
    args: Args
    many: Sequence[bool] = ()
    alone: bool = False

    def args_of(self, chosen: Any) -> tuple[Any, ...]:
        """Return the arguments of the chosen instances."""
        leaves, treedef = tree.flatten(self.args)
        return treedef.unflatten(
            [leaf[chosen] if many else leaf for leaf, many in zip(leaves, self.many)]
        )

    def part(self, chosen: slice) -> Instances:
        """Return some of the instances."""
        x0 = self.x0[chosen]
        return Instances(len(x0), x0, self.args_of(chosen), self.many)

    def axes(self) -> Any:
        """Return the axes of the arguments, as ``vmap`` takes them."""
        return tree.structure(self.args).unflatten([0 if many else None for many in self.many])


class OneRun:
    """A single run; ``run`` is where it stands, ``most`` how many trial steps it may make."""

    one = True
    #: Where its arrays lie, and NumPy's functions for them.
    arrays, xp = HOST, np
    #: Steps and outputs in one kernel call, at most, and numbers in the rows of steps, which are
    #: no part of a kernel here.
    most_steps, most_outputs, most_numbers = 512, 1024, 65_536
    #: Which instances the next kernel call is for.
    chosen = HERE

    def __init__(self, kernels: Kernels, setup: Setup, instances: Instances, most: int) -> None:
        self.kernels, self.setup, self.instances, self.most = kernels, setup, instances, most
        #: Rows in the next kernel call.
        self.room = FIRST_ROWS

    def begin(self, dense: bool) -> None:
        """Stand at the start; ``dense``: the run carries interpolants."""
        setup, instances = self.setup, self.instances
        kernel = self.kernels.single.begin(dense)
        self.run = kernel(setup, setup.t_start, instances.x0[0], instances.args)
        argument_checks.refuse_traced(self.run.status)
        self.status, self.made = int(self.run.status), 0

    def going(self, waiting: Any) -> bool:
        """Return whether there is something to do for an instance that is ``waiting``."""
        return self.status == Status.RUNNING and bool(waiting)

    def pause_after(self, budget: int) -> None:
        """Let kernels return after ``budget`` more trial steps."""
        # Steps in Python are long, and an interrupt loses those since the last call.
        budget = budget if self.kernels.single is self.kernels else min(budget, FEW_STEPS)
        pause = min(self.made + budget, self.most)
        if self.setup.pause != pause:
            self.setup = tree.replace(self.setup, pause=pause)

    def _call(self, loop: Callable[..., Any], *inputs: Any) -> Any:
        return self.kernels.single.loop(loop)(self.setup, self.instances.args, self.run, *inputs)

    def to_times(self, times: np.ndarray) -> np.ndarray:
        """Go on to each of the times (m,); return the states there, (1, m, n)."""
        self.run, states = self._call(go_to_times, times)
        return states[None]

    def to_end(self) -> None:
        """Go on to the end of the span."""
        self.run = self._call(go_to_end)

    def make_steps(self, count: int, carried: bool) -> np.ndarray:
        """Make at most ``count`` steps; return their rows (1, steps, width).

        ``carried``: the run carries interpolants. Otherwise the steps are single trials.
        """
        setup, args, before = self.setup, self.instances.args, self.run.accepted
        repeat = self.kernels.single.step_repeater(carried)
        if repeat is None:
            kernel = self.kernels.loop(make_steps if carried else try_steps, count)
            self.run, rows = kernel(setup, args, self.run)
            rows = rows if carried else rows[rows[:, START] != rows[:, END]]
            return rows[None, : self.run.accepted - before]
        layout = self.kernels.rows(not carried or self.run.dense is not None)
        # Short solves need few rows, and memory for many takes longer to get.
        rows = np.empty((min(count, self.room), layout.width))
        self.room *= 4
        self.run, steps = repeat(self.run, (setup, args), rows)
        return rows[None, :steps]

    def count_steps(self) -> int:
        """Look at where the run stands now; return how many trial steps it made."""
        run, before = self.run, self.made
        self.status, self.made = int(run.status), int(run.accepted) + int(run.rejected)
        if self.status == Status.RUNNING and self.made >= self.most:
            self.status = Status.TOO_MANY_STEPS
        return self.made - before

    def progress(self) -> tuple[float, float]:
        """Return the part of the span that is done, and the time."""
        t, setup = self.run.t, self.setup
        return float((t - setup.t_start) / (setup.t_end - setup.t_start)), float(t)

    def interrupt(self, waiting: Any) -> None:
        """End here."""
        self.status = Status.INTERRUPTED

    def end(self) -> tuple[Run, Any]:
        """Return the run, and how it ended."""
        return self.run, [Status.FINISHED if self.status == Status.RUNNING else self.status]


class ManyRuns:
    """The runs of a batch: ``run`` has those that still go on, those ``chosen`` among all.

    Mapped kernels are kept with the kernels, as mapping has a cost too. Runs may lie on a device;
    NumPy decides here which of them go on: a device compiles each small operation when it first
    meets it, which takes longer than to copy a few numbers of each run.
    """

    one = False
    most_steps, most_outputs, most_numbers = 16, 64, 16_384

    def __init__(
        self, kernels: Kernels, setup: Setup, instances: Instances, most: int, threads: int | None
    ) -> None:
        self.kernels, self.instances, self.most = kernels, instances, most
        self.threads, self.axes = threads, instances.axes()
        self.key = (tree.structure(self.axes), threads)
        self.given = setup
        device = kernels.backend.arrays
        #: Where their arrays lie, and NumPy's functions for them.
        self.arrays = HOST if isinstance(instances.x0, np.ndarray) else device
        self.xp = self.arrays.module()
        #: Steps that each of all runs has made, and trials that were refused.
        self.accepted, self.rejected = np.zeros((2, instances.count), dtype=np.int64)
        self._choose(np.arange(instances.count))

    def _choose(self, chosen: np.ndarray) -> None:
        """Call kernels for these instances, until one of them is done."""
        #: Which they are; ``there``: the same beside the runs.
        self.chosen, self.there = chosen, self.xp.asarray(chosen)
        #: The same as an index: all of them by a slice, which moves nothing.
        every = len(chosen) == self.instances.count
        self.at: Any = slice(None) if every else chosen
        self.args = self.instances.args if every else self.instances.args_of(self.there)
        self.setup = self.given

    def begin(self, dense: bool) -> None:
        """Stand at the start; ``dense``: runs carry interpolants."""
        from archimedes.function import vmap

        def build() -> Callable[..., Any]:
            in_axes = (None, None, 0, self.axes)
            return vmap(self.kernels.begin(dense), in_axes=in_axes, threads=self.threads)

        setup, mapped = self.given, self.kernels.keep(("begin", dense, self.key), build)
        self.run = self.all = mapped(setup, setup.t_start, self.instances.x0, self.args)
        argument_checks.refuse_traced(self.run.status)
        self.status = np.array(self.arrays.glance(self.run.status))

    def going(self, waiting: Any) -> bool:
        """Return whether there is something to do for instances that are ``waiting`` (N,)."""
        going = np.flatnonzero((self.status == Status.RUNNING) & waiting)
        if len(going) not in (0, len(self.chosen)):
            self._choose(going)
            self.run = tree.map(lambda leaf: leaf[self.there], self.all)
        return len(going) > 0

    def pause_after(self, budget: int) -> None:
        """Let kernels return after ``budget`` more trial steps."""
        steps = self.accepted[self.at] + self.rejected[self.at]
        pause = self.xp.asarray(np.minimum(steps + budget, self.most))
        self.setup = tree.replace(self.given, pause=pause)

    def _call(
        self, loop: Callable[..., Any], *inputs: Any, axes: tuple[Any, ...] = (), fixed: Any = ()
    ) -> Any:
        from archimedes.function import vmap

        def build() -> Callable[..., Any]:
            in_axes = (_SETUP_AXES, self.axes, 0, *axes)
            return vmap(self.kernels.loop(loop, *fixed), in_axes=in_axes, threads=self.threads)

        mapped = self.kernels.keep((loop, fixed, axes, self.key), build)
        return mapped(self.setup, self.args, self.run, *inputs)

    def to_times(self, times: np.ndarray) -> np.ndarray:
        """Go on to each of the times (m,), or (N, m): those of each; return the states there."""
        self.run, states = self._call(go_to_times, times, axes=(None if times.ndim == 1 else 0,))
        return states

    def to_end(self) -> None:
        """Go on to the end of the span."""
        self.run = self._call(go_to_end)

    def make_steps(self, count: int, carried: bool) -> np.ndarray:
        """Make ``count`` steps, or single trials; return their rows (N, count, width)."""
        self.run, rows = self._call(make_steps if carried else try_steps, fixed=(count,))
        return rows

    def to_outputs(self, times: np.ndarray, sign: float, done: Any, x: Array) -> Any:
        """Go on, each run for itself, and put the states at times (m,) into ``x`` (N, m, n).

        ``done``: how many of them each run has behind it. Returns how many there are then.
        """
        from archimedes.function.batching.sorted_items import Items

        items = Items(times, sign, self.there, done, x)
        inputs, many = (self.setup, self.args), [*_SETUP_MANY, *self.instances.many]
        kernel = self.kernels.to_outputs(self.run.dense is not None)
        self.run = kernel(self.run, inputs, many, items)
        return done

    def count_steps(self) -> int:
        """Look at where the runs stand now; return how many trial steps they made at most."""
        run, chosen, at = self.run, self.chosen, self.at
        if at is not chosen:
            self.all = run
        else:
            for every, some in zip(tree.leaves(self.all), tree.leaves(run)):
                every[self.there] = some
        numbers = (run.status, run.accepted, run.rejected)
        status, accepted, rejected = map(self.arrays.glance, numbers)
        before = self.accepted[at] + self.rejected[at]
        self.status[at], self.accepted[at], self.rejected[at] = status, accepted, rejected
        steps = accepted + rejected
        over = steps >= self.most
        if over.any():
            self.status[chosen[over & (status == Status.RUNNING)]] = Status.TOO_MANY_STEPS
        return int((steps - before).max())

    def progress(self) -> tuple[float, float]:
        """Return the part of the span that is done, and the time, on average."""
        t, setup = self.all.t, self.setup
        gone = (t - setup.t_start) / (setup.t_end - setup.t_start)
        return float(gone.mean()), float(t.mean())

    def interrupt(self, waiting: Any) -> None:
        """End those that still go on."""
        self.status[(self.status == Status.RUNNING) & waiting] = Status.INTERRUPTED

    def end(self) -> tuple[Run, Any]:
        """Return all runs, and how each of them ended."""
        self.status[self.status == Status.RUNNING] = Status.FINISHED
        counted = tree.replace(self.all, accepted=self.accepted, rejected=self.rejected)
        return counted, self.status


Runs = OneRun | ManyRuns
