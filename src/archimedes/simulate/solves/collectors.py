"""What solves put out: the last states, or states at given times; ``every_step.py``: all steps.

A collector calls the kernels for the runs that go on, and keeps what they put out for each
instance. A single solve is a batch of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.simulate.solves.dense_output import DenseOutput
from archimedes.simulate.solves.one_or_many import Runs
from archimedes.simulate.stepping.run_state import Run

if TYPE_CHECKING:
    from archimedes.simulate.solves.event_logs import Events

__all__ = ["FEW", "Collector", "FinalStates", "OutputTimes", "Result", "steps_in_call"]

#: Numbers that a kernel puts out at most in one call.
OUTPUTS = 16_384
#: With fewer outputs than this, or fewer per step, steps are made without keeping interpolants.
FEW = 32
SPARSE = 0.25


@lazy_dataclass
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
    """Calls kernels and keeps what they put out; ``dense``: runs carry interpolants."""

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

    def cut(self, instances: np.ndarray, before: np.ndarray) -> None:
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
        self.runs.final()

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        if self.runs.one:
            return Result(np.array([[run.t]]), run.x[None, None], [1], run, status)
        return Result(run.t[:, None], run.x[:, None], [1] * len(status), run, status)


class OutputTimes(Collector):
    """Collects the states at given times.

    Lanes run in step, so a lane kernel that stopped at each output would wait for the slowest
    lane there. Where outputs are dense, lanes therefore make steps without looking at the outputs,
    and these are computed afterwards from the rows of the steps. Where outputs are rare there is
    little to wait for. Both ways give the same bits. Times and states are written to ``t`` (N, m)
    and ``x`` (N, m, n), with nan where they were not reached.
    """

    def __init__(self, runs: Runs, times: np.ndarray, t: np.ndarray, x: np.ndarray) -> None:
        super().__init__(runs)
        kernels, setup, x0 = runs.kernels, runs.setup, runs.instances.x0
        self.times, self.t, self.x = times, t, x
        self.total = len(times)
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        #: The times in ascending order.
        self.along = times if self.sign > 0.0 else -times
        plain = kernels.plain
        # A single run waits for no other; with events it returns at each of them anyway.
        self.rare = self.total < FEW or (runs.one and not plain)
        # Runs that make tries carry no interpolants, so they stay with tries.
        self.dense = self.rare or not plain
        # Times at the very start belong to no step; where a run goes from output to output it
        # finds them itself.
        at_start = 0
        if not (self.rare and runs.one):
            at_start = self.along.searchsorted(self.sign * setup.t_start, side="right")
            if at_start:
                x[:, :at_start] = x0[:, None]
        self.done = np.array([at_start]) if runs.one else np.full(len(x0), at_start)
        if not self.rare:
            self.count = steps_in_call(kernels.rows().width, runs)
            self.fill = (kernels.single if runs.one else kernels).fill(times, self.sign, x)

    @property
    def waiting(self) -> Any:
        """Which instances (N,) wait for outputs."""
        return (self.done[0] if self.runs.one else self.done) != self.total

    def call(self) -> None:
        """Go on until the kernel returns."""
        if not self.rare:
            self._densely()
        elif self.runs.one:
            self._next_outputs()
        else:
            self._rarely()

    def _block(self, first: int, chunk: int) -> np.ndarray:
        """Return a chunk of times; after the end of all, the last one is repeated."""
        block = self.times[first : first + chunk]
        if len(block) == chunk:
            return block
        return np.concatenate([block, np.full(chunk - len(block), self.times[-1])])

    def _next_outputs(self) -> None:
        """Collect the next outputs of a single run."""
        runs, first = self.runs, int(self.done[0])
        chunk = chunk_of(self.total, self.x.shape[2], runs.most_outputs)
        states = runs.outputs(self._block(first, chunk))
        reached = int(self.along.searchsorted(self.sign * runs.run.t, side="right"))
        last = self.done[0] = min(reached, first + chunk)
        self.x[0, first:last] = states[0, : last - first]

    def _rarely(self) -> None:
        """Collect the next outputs of each run."""
        runs, places, done = self.runs, self.runs.places, self.done[self.runs.places]
        chunk = chunk_of(self.total, self.x.shape[2], runs.most_outputs)
        offsets = np.arange(chunk)
        if (done == done[0]).all():
            block = self._block(int(done[0]), chunk)
        else:
            block = self.times[np.minimum(done[:, None] + offsets, self.total - 1)]
        states = runs.outputs(block)
        reached = self.along.searchsorted(self.sign * runs.run.t, side="right")
        count = np.minimum(reached - done, chunk)
        lanes, columns = np.nonzero(offsets < count[:, None])
        self.x[places[lanes], done[lanes] + columns] = states[lanes, columns]
        self.done[places] = done + count

    def _densely(self) -> None:
        """Make steps, and compute the outputs within them."""
        runs, places = self.runs, self.runs.places
        done = self.done if runs.one else self.done[places]
        before, made = done, runs.run.accepted
        if self.dense:
            rows, before = runs.steps(self.count), done.copy()
        else:
            rows = runs.tries(self.count)
        # Rows without a step repeat the time of the one before: they have no outputs.
        self.fill(rows, places, done)
        if self.dense:
            self.rare = (done - before).sum() < SPARSE * (runs.run.accepted - made).sum()
        if not runs.one:
            self.done[places] = done

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        lengths = self.done.tolist()
        if self.runs.one:
            return Result(self.t, self.x, lengths, run, status)
        self.t[...] = self.times
        for lane in np.flatnonzero(self.waiting).tolist():
            for array in (self.t, self.x):
                array[lane, lengths[lane] :] = np.nan
        return Result(self.t, self.x, lengths, run, status)
