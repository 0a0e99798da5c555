"""What solves return: the last states, states at given times, or all steps.

A collector calls the kernels for the runs that go on, and keeps what they return for each instance.
A single solve is a batch of one. On a device (``OutputsThere``) one kernel makes the steps and the
outputs within them. ``Samples`` is what methods with loops of their own, which call no kernels,
return. An ``EventLog`` logs the events of runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.solves.kernel_runs import ManyRuns, Runs
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.dense_output import END, START, DenseOutput
from archimedes.simulate.stepping.trial_step import Run, Setup

if TYPE_CHECKING:
    from archimedes.simulate.solves.driver import Monitor
    from archimedes.typing import Array


#: Numbers that a kernel returns at most in one call.
OUTPUTS = 16_384
#: With fewer outputs than this, or fewer per step, steps are made without keeping interpolants.
FEW = 32
SPARSE = 0.25


class Events(NamedTuple):
    """Events (k,) that fired: in which instance, which one, when, and the states (k, n) around."""

    instance: np.ndarray
    event: np.ndarray
    t: np.ndarray
    before: np.ndarray
    after: np.ndarray


@dataclass(eq=False, repr=False)
class Result:
    """What the solves gave: t (N, m) and flat x (N, m, n), of which each has ``lengths`` samples.

    What lies behind them is nan. ``run``: where the runs ended, ``status`` (N,): how.
    """

    t: np.ndarray
    x: np.ndarray
    lengths: Any
    run: Run
    status: Any
    dense: list[DenseOutput] | None = None
    #: The events of each group of instances, and where the groups begin.
    events: Sequence[Events] = ()
    starts: Sequence[int] = (0,)
    stats: dict[str, Any] | None = None


@dataclass(eq=False, repr=False)
class Samples:
    """What a method with a loop of its own is asked for, and the samples that it has returned.

    It starts with the state ``x0`` (n,), and returns the states at ``times`` (m,), or after every
    step where these are None.
    """

    setup: Setup
    x0: np.ndarray
    times: np.ndarray | None
    max_steps: int
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        self.sign = 1.0 if self.setup.t_end >= self.setup.t_start else -1.0
        self.along = None if self.times is None else self.sign * self.times
        self.t: list[float] = []
        self.x: list[np.ndarray] = []

    def add(self, t: float, x: np.ndarray, at: Callable[[np.ndarray], Iterable[Any]]) -> None:
        """Add a step that ended at time t with state x; ``at`` returns the states within it."""
        if self.times is None or self.along is None:
            self.append(t, x)
            return
        last = np.searchsorted(self.along, self.sign * t, side="right")
        wanted = self.times[len(self.t) : last]
        for time, state in zip(wanted.tolist(), at(wanted)):
            self.append(time, state)

    def append(self, t: float, x: np.ndarray) -> None:
        """Add a sample."""
        self.t.append(float(t))
        self.x.append(np.array(x))

    def report(self, t: float) -> None:
        """Report that the solver has reached time t."""
        if self.monitor is not None:
            start, end = self.setup.t_start, self.setup.t_end
            self.monitor(float((t - start) / (end - start)), float(t))

    def result(self, status: int, t: float, rejected: int, stats: dict[str, Any]) -> Result:
        """Return the samples of a solver that stopped at time t."""
        run: Any = SimpleNamespace(t=float(t), accepted=stats["steps"], rejected=rejected)
        x = np.array(self.x).reshape(1, len(self.t), self.x0.size)
        return Result(np.array([self.t]), x, [len(self.t)], run, [status], stats=stats)


def chunk_of(count: int, size: int, most: int) -> int:
    """Return how many outputs a kernel gives in one call: few sizes, so few kernels.

    >>> chunk_of(10, 13, 1024), chunk_of(1000, 13, 1024), chunk_of(1000, 100, 1024)
    (64, 1024, 128)
    """
    power = 1 << (max(OUTPUTS // size, 1).bit_length() - 1)
    limit = min(most, max(8, power))
    return min(64, limit) if count <= 64 else limit


def steps_in_call(width: int, runs: Runs | type[Runs]) -> int:
    """Return how many steps, of rows of this width, are made in one call."""
    return min(runs.most_steps, max(8, runs.most_numbers // width))


class Collector(ABC):
    """Calls kernels and keeps what they return; ``dense``: runs carry interpolants."""

    dense: bool

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    @property
    def waiting(self) -> Any:
        """Which instances (N,) wait for something before the end of the span."""
        return True

    @abstractmethod
    def call(self) -> None:
        """Go on until the kernel returns."""

    def mark_events(self, instances: np.ndarray, before: np.ndarray) -> None:
        """Take note of the states (k, n) right before events, where samples show them."""
        return

    @abstractmethod
    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""


class FinalStates(Collector):
    """Keeps the last states only."""

    def __init__(self, runs: Runs) -> None:
        super().__init__(runs)
        # Events are searched on the interpolant.
        self.dense = runs.kernels.plan.events is not None

    def call(self) -> None:
        """Go on until the kernel returns."""
        self.runs.to_end()

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        t = np.reshape(run.t, (-1, 1))
        return Result(t, np.reshape(run.x, (len(t), 1, -1)), [1] * len(t), run, status)


class TimedOutputs(Collector):
    """Collects the states at given times, into ``x`` (N, m, n)."""

    def __init__(self, runs: Runs, times: np.ndarray, x: Array, starts: bool = True) -> None:
        super().__init__(runs)
        setup, x0 = runs.setup, runs.instances.x0
        self.times, self.total, self.x = times, len(times), x
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        #: The times in ascending order.
        self.along = times if self.sign > 0.0 else -times
        at_start = 0
        if starts:
            # Times at the start belong to no step.
            at_start = int(self.along.searchsorted(self.sign * setup.t_start, side="right"))
            if at_start:
                x[:, :at_start] = x0[:, None]
        #: How many outputs each run has behind it.
        self.done = np.full(runs.instances.count, at_start)

    @property
    def waiting(self) -> Any:
        """Which instances (N,) wait for outputs."""
        return self.done != self.total


class OutputTimes(TimedOutputs):
    """Collects the states at given times.

    SIMD lanes run in step, so a kernel that stopped at each output would wait for the slowest lane
    there. Where outputs are dense, lanes therefore make steps without looking at the outputs, and
    these are computed afterwards from the rows of the steps. Where outputs are rare there is little
    to wait for. Both ways give the same bits. Times and states are written to ``t`` (N, m) and
    ``x`` (N, m, n), with nan where they were not reached.
    """

    def __init__(self, runs: Runs, times: np.ndarray, t: np.ndarray, x: np.ndarray) -> None:
        kernels, plain = runs.kernels, runs.kernels.plain
        # A single run waits for no other; with events it returns at each of them anyway.
        self.rare = len(times) < FEW or (runs.one and not plain)
        # Runs that make single trials carry no interpolants, so they go on with trials.
        self.dense = self.rare or not plain
        # Where a run goes from output to output it finds those at the start itself.
        super().__init__(runs, times, x, starts=not (self.rare and runs.one))
        self.t = t
        if not self.rare:
            self.count = steps_in_call(kernels.rows().width, runs)
            self.fill = (kernels.single if runs.one else kernels).fill(times, self.sign, x)

    def call(self) -> None:
        """Go on until the kernel returns."""
        self._next_outputs() if self.rare else self._next_steps()

    def _next_outputs(self) -> None:
        """Go on to the next outputs of each run."""
        runs, chosen, done = self.runs, self.runs.chosen, self.done[self.runs.chosen]
        chunk = chunk_of(self.total, self.x.shape[2], runs.most_outputs)
        offsets = np.arange(chunk)
        together = (done == done[0]).all()
        # After the end of all times, the last one is repeated.
        block = np.minimum((done[0] if together else done[:, None]) + offsets, self.total - 1)
        states = runs.to_times(self.times[block])
        reached = self.along.searchsorted(self.sign * np.atleast_1d(runs.run.t), side="right")
        count = np.minimum(reached - done, chunk)
        rows, columns = np.nonzero(offsets < count[:, None])
        self.x[chosen[rows], done[rows] + columns] = states[rows, columns]
        self.done[chosen] = done + count

    def _next_steps(self) -> None:
        """Make steps, and compute the outputs within them."""
        runs, chosen, accepted = self.runs, self.runs.chosen, self.runs.run.accepted
        before, done = self.done[chosen], self.done[chosen]
        rows = runs.make_steps(self.count, self.dense)
        # Rows without a step repeat the time of the one before: they have no outputs.
        self.fill(rows, chosen, done)
        if self.dense:
            self.rare = (done - before).sum() < SPARSE * (runs.run.accepted - accepted).sum()
        self.done[chosen] = done

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        if not self.runs.one:
            self.t[...] = self.times
            for lane in np.flatnonzero(self.waiting).tolist():
                self.t[lane, self.done[lane] :] = self.x[lane, self.done[lane] :] = np.nan
        return Result(self.t, self.x, self.done.tolist(), run, status)


class EveryStep(Collector):
    """Collects the accepted steps of each instance, with interpolants to ``keep`` them.

    Returns the states after all steps (an event gives two: before and after it), or those at
    ``times``.
    """

    def __init__(self, runs: Runs, keep: bool, times: np.ndarray | None) -> None:
        super().__init__(runs)
        kernels = runs.kernels
        self.keep, self.times = keep, times
        self.parts = kernels.rows(keep)
        self.count = steps_in_call(self.parts.width, runs)
        # Trials return interpolants without carrying them.
        self.tries = keep and kernels.plain
        self.dense = keep and not self.tries
        self.steps = np.zeros(runs.instances.count, dtype=np.int64)
        #: Rows of steps, of which instances, and how many of each.
        self.blocks: list[tuple[np.ndarray, np.ndarray, Any]] = []
        self.marks: list[tuple[int, int, np.ndarray]] = []

    def call(self) -> None:
        """Go on until the kernel returns."""
        runs, before = self.runs, self.runs.run.accepted
        rows = runs.make_steps(self.count, not self.tries)
        steps = runs.run.accepted - before
        if runs.one:
            accepted_rows = rows[0]
            self.steps[0] += steps
        elif self.tries:
            accepted_rows = rows[rows[..., START] != rows[..., END]]
        else:
            accepted_rows = rows[runs.xp.arange(self.count) < steps[:, None]]
        chosen = runs.chosen
        if not runs.one:
            accepted_rows, steps = map(runs.arrays.to_host, (accepted_rows, steps))
            self.steps[chosen] += steps
        self.blocks.append((accepted_rows, chosen, steps))

    def mark_events(self, instances: np.ndarray, before: np.ndarray) -> None:
        """Take note of the states (k, n) right before events, which get samples of their own."""
        if self.times is None:
            self.marks.extend(zip(instances.tolist(), self.steps[instances].tolist(), before))

    def _rows(self) -> np.ndarray:
        """Return the rows of the steps of each instance, (N, s, width), filled up with nan."""
        if self.runs.one:
            parts = [rows for rows, _, _ in self.blocks]
            if len(parts) == 1:
                return parts[0][None]
            return np.concatenate(parts or [np.zeros((0, self.parts.width))])[None]
        whole = np.full((len(self.steps), int(self.steps.max()), self.parts.width), np.nan)
        at = np.zeros(len(self.steps), dtype=np.int64)
        for rows, chosen, counts in self.blocks:
            first = np.cumsum(counts) - counts
            column = np.arange(len(rows)) - np.repeat(first - at[chosen], counts)
            whole[np.repeat(chosen, counts), column] = rows
            at[chosen] += counts
        return whole

    def _insert_marks(self, t: np.ndarray, x: np.ndarray, lengths: list[int]) -> Any:
        """Put the states before events in front of those after them: two samples at one time.

        Returns t and x; what was put in is added to ``lengths``.
        """
        marks: dict[int, list[tuple[int, np.ndarray]]] = {}
        for lane, index, before in self.marks:
            marks.setdefault(lane, []).append((index, before))
            lengths[lane] += 1
        count, held, size = x.shape
        most = max(held, *lengths)
        longer = np.full((count, most), np.nan), np.full((count, most, size), np.nan)
        for whole, samples in zip(longer, (t, x)):
            whole[:, :held] = samples
        for lane, own in marks.items():
            at, states = map(np.array, zip(*own))
            new = np.zeros(lengths[lane], dtype=bool)
            new[at + np.arange(len(at))] = True
            for whole, samples, put in zip(longer, (t[lane], x[lane]), (t[lane, at], states)):
                part = whole[lane, : len(new)]
                part[new], part[~new] = put, samples[: len(new) - len(at)]
        return longer

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        rows, steps, dense = self._rows(), self.steps.tolist(), None
        if self.keep:
            layout, project = self.runs.kernels.plan.layout, self.runs.kernels.project()
            dense = [
                DenseOutput.of_rows(own[:n], self.parts, layout, project)
                for own, n in zip(rows, steps)
            ]
            if self.times is not None:
                return self._at_times(self.times, dense, run, status)
        t = np.empty((len(rows), rows.shape[1] + 1))
        t[:, 0], t[:, 1:] = self.runs.setup.t_start, rows[:, :, END]
        x0 = self.runs.arrays.to_host(self.runs.instances.x0)
        x = np.concatenate([x0[:, None], self.parts.x(rows)], axis=1)
        lengths = [n + 1 for n in steps]
        if self.marks:
            t, x = self._insert_marks(t, x, lengths)
        return Result(t, x, lengths, run, status, dense)

    def _at_times(
        self, times: np.ndarray, dense: list[DenseOutput], run: Run, status: Any
    ) -> Result:
        """Return the states at the times that each instance reached."""
        t = np.full((len(dense), len(times)), np.nan)
        x = np.full((*t.shape, self.parts.size), np.nan)
        lengths = []
        for k, one in enumerate(dense):
            reached = one.times_reached(times)
            lengths.append(len(reached))
            t[k, : len(reached)] = reached
            x[k, : len(reached)] = one.rows(reached)
        return Result(t, x, lengths, run, status, dense)


class OutputsThere(TimedOutputs):
    """Collects the states at given times, as ``OutputTimes`` does, in arrays of a device.

    A thread has a run for itself and waits for no other, so that it evaluates each step's outputs
    as soon as the step is made. ``x`` (N, m, n) is where they go, made here if it is None.
    """

    def __init__(self, runs: Runs, times: np.ndarray, x: Array | None = None) -> None:
        assert isinstance(runs, ManyRuns)
        x0 = runs.instances.x0
        x = runs.xp.empty((len(x0), len(times), x0.shape[1])) if x is None else x
        super().__init__(runs, times, x)
        self.many = runs
        # Only runs that must find events, or stop for sampled parts, carry interpolants.
        self.dense = not runs.kernels.plain

    def call(self) -> None:
        """Go on until the kernel returns."""
        runs, at = self.many, self.many.at
        done = runs.to_outputs(self.times, self.sign, runs.xp.asarray(self.done[at]), self.x)
        self.done[at] = runs.arrays.glance(done)

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected; times that were not reached are nan."""
        xp = self.many.xp
        t = xp.broadcast_to(xp.asarray(self.times), self.x.shape[:2])
        if self.waiting.any():
            missing = xp.asarray(np.arange(self.total) >= self.done[:, None])
            t = xp.where(missing, np.nan, t)
            self.x[missing] = np.nan
        return Result(t, self.x, self.done, run, status)


class EventLog:
    """Logs the events of runs: kernels return at each time at which some fired."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        #: How many events of each instance are logged.
        self.logged = np.zeros(runs.instances.count, dtype=np.int64)
        #: For each time: the instances, which events fired, the times, the states around them.
        self.entries: list[tuple[np.ndarray, ...]] = []

    def read(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Log the events of runs that a kernel returned, and make the runs ready to go on.

        Returns the instances (k,) that had events, and their states (k, n) right before; or None.
        """
        runs, run, chosen, xp = self.runs, self.runs.run, self.runs.chosen, self.runs.xp
        signals, to_host = run.signals, runs.arrays.to_host
        count, status = to_host(signals.count), to_host(run.status)
        settled = status == Status.SETTLED
        if runs.one and settled:
            runs.run = tree.replace(run, status=np.int64(Status.RUNNING))
        elif settled.any():
            runs.run = tree.replace(
                run, status=xp.asarray(np.where(settled, Status.RUNNING, status))
            )
        total = count.sum(axis=-1).reshape(-1)
        new = (total > self.logged[chosen]).nonzero()[0]
        if not len(new):
            return None
        instances = chosen[new]
        self.logged[instances] = total[new]
        index = None if runs.one else xp.asarray(new)  # x[None]: a single run is a batch of one
        values = signals.fired, run.t, signals.x_before, run.x
        fired, t, before, after = [to_host(value[index]) for value in values]
        self.entries.append((instances, fired, t, before, after))
        return instances, before

    def events(self) -> Events:
        """Return all events, in the order in which they were logged."""
        if not self.entries:
            none, states = np.zeros(0, np.int64), np.zeros((0, self.runs.kernels.plan.layout.size))
            return Events(none, none, np.zeros(0), states, states)
        instance, fired, t, before, after = map(np.concatenate, zip(*self.entries))
        entry, event = np.nonzero(fired)
        return Events(instance[entry], event, t[entry], before[entry], after[entry])


def one_table(events: Events, layout: Layout) -> dict[str, Any]:
    """Return the events (k,) of a single solve as users see them."""
    axes = events.t.shape
    return {
        "t": events.t,
        "event": events.event,
        "x_before": layout.unpack(events.before, axes),
        "x_after": layout.unpack(events.after, axes),
    }


def batch_table(
    groups: Sequence[Events], starts: Sequence[int], layout: Layout, count: int
) -> dict[str, Any]:
    """Return the events of ``count`` instances, (N, k): k of the one with the most.

    ``groups`` begin at instance ``starts``. Shorter ones are filled up with nan, and -1 for the
    number of the event.
    """
    moved = [e._replace(instance=e.instance + start) for start, e in zip(starts, groups)]
    every = Events(*map(np.concatenate, zip(*moved)))
    order = np.argsort(every.instance, kind="stable")
    instance = every.instance[order]
    each = np.bincount(instance, minlength=count)
    column = np.arange(len(order)) - (np.cumsum(each) - each)[instance]
    most = int(each.max(initial=0))

    def table(values: np.ndarray, fill: float) -> np.ndarray:
        whole = np.full((count, most, *values.shape[1:]), fill, dtype=values.dtype)
        whole[instance, column] = values[order]
        return whole

    return {
        "t": table(every.t, np.nan),
        "event": table(every.event, -1),
        "x_before": layout.unpack(table(every.before, np.nan), (count, most)),
        "x_after": layout.unpack(table(every.after, np.nan), (count, most)),
    }
