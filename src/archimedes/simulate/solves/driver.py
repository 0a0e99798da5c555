"""Driving one solve: call the kernels until it is done, and stay interruptible in between."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.simulate.problem import argument_checks as checks
from archimedes.simulate.solves.dense_output import DenseOutput
from archimedes.simulate.statuses import FINISHED, INTERRUPTED, RUNNING, TOO_MANY_STEPS
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Run, Setup
from archimedes.tree import replace

__all__ = [
    "Collector",
    "Final",
    "ManyOutputs",
    "Outputs",
    "Pace",
    "Result",
    "Steps",
    "chunk_of",
    "solve",
]

#: Trial steps in the first call of a kernel, and the seconds that later calls should take.
FIRST_CALL, SECONDS = 10_000, 0.1
#: Numbers that a kernel puts out at most in one call.
OUTPUTS = 16_384
#: The place of an instance that is alone.
HERE = np.zeros(1, dtype=np.int64)

Monitor = Callable[[float, float], None]


@dataclass
class Pace:
    """How many trial steps the next kernel call may take: enough for about ``SECONDS``."""

    max_steps: int
    budget: int = FIRST_CALL
    began: float = field(default_factory=time.perf_counter)

    def pause(self, done: int) -> int:
        """Return the count of trial steps at which the next call returns."""
        self.began = time.perf_counter()
        return min(done + self.budget, self.max_steps)

    def took(self, steps: int) -> None:
        """Tell how many steps the call made."""
        seconds = time.perf_counter() - self.began
        if seconds > 0.0 and steps > 0:
            self.budget = max(100, int(steps * min(10.0, SECONDS / seconds)))


@dataclass
class Result:
    """What a solve gave: times (m,), flat states (m, n), how it ended, and its steps."""

    t: np.ndarray
    x: np.ndarray
    run: Run
    status: int
    dense: DenseOutput | None = None
    stats: dict[str, Any] | None = None


def chunk_of(count: int, size: int, most: int = 1024) -> int:
    """Return how many outputs a kernel gives in one call: few sizes, so few kernels.

    >>> chunk_of(10, 13), chunk_of(1000, 13), chunk_of(1000, 100)
    (64, 1024, 128)
    """
    limit = min(most, max(8, 1 << int(np.log2(max(OUTPUTS // size, 1)))))
    return min(64, limit) if count <= 64 else limit


def steps_in_call(width: int, most: int = 128) -> int:
    """Return how many steps, of rows of this width, a kernel gives in one call."""
    return min(most, max(8, OUTPUTS // width))


def solve(
    kernels: Kernels,
    setup: Setup,
    x0: np.ndarray,
    args: tuple[Any, ...],
    collect: Collector,
    max_steps: int,
    monitor: Monitor | None = None,
) -> Result:
    """Solve and collect outputs, steps or the final state.

    Ctrl-C ends it with status INTERRUPTED and what was computed until then.
    """
    run = kernels.begin(collect.dense)(setup, setup.t_start, x0, args)
    checks.refuse_traced(run.status)
    pace = Pace(max_steps)
    status, done = int(run.status), 0
    try:
        while status == RUNNING and not collect.complete:
            pause = pace.pause(done)
            if setup.pause != pause:
                setup = replace(setup, pause=pause)
            run = collect.call(setup, args, run)
            status, before = int(run.status), done
            done = int(run.accepted) + int(run.rejected)
            pace.took(done - before)
            if monitor is not None:
                monitor(float((run.t - setup.t_start) / (setup.t_end - setup.t_start)), run.t)
            if status == RUNNING and done >= max_steps:
                status = TOO_MANY_STEPS
    except KeyboardInterrupt:
        status = INTERRUPTED
    return collect.result(run, FINISHED if status == RUNNING else status)


class Collector(ABC):
    """Calls a kernel and keeps what it puts out; ``dense``: the run carries interpolants."""

    dense = True

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is there, before the end of the span."""
        return False

    @abstractmethod
    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""

    @abstractmethod
    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""


class Final(Collector):
    """Keeps the last state only."""

    dense = False

    def __init__(self, kernels: Kernels) -> None:
        self.kernel = kernels.final()

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        return self.kernel(setup, args, run)

    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""
        return Result(np.array([run.t]), run.x[None], run, status)


class Outputs(Collector):
    """Collects the states at given times, a chunk in each call."""

    def __init__(self, kernels: Kernels, setup: Setup, times: np.ndarray) -> None:
        self.kernel = kernels.outputs()
        self.times = times
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        self.size = kernels.plan.layout.size
        self.chunk = chunk_of(len(times), self.size)
        self.blocks: list[np.ndarray] = []
        self.done = 0

    @property
    def complete(self) -> bool:
        """Whether all times have been reached."""
        return self.done == len(self.times)

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        block = self.times[self.done : self.done + self.chunk]
        count = len(block)
        if count < self.chunk:
            block = np.concatenate([block, np.full(self.chunk - count, block[-1])])
        run, rows = self.kernel(setup, args, run, block)
        reached = int(np.searchsorted(self.sign * block[:count], self.sign * run.t, side="right"))
        self.blocks.append(rows[:reached])
        self.done += reached
        return run

    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""
        rows = _joined(self.blocks, (self.size,))
        return Result(self.times[: self.done], rows, run, status)


class ManyOutputs(Collector):
    """Collects the states at many given times: steps first, then the outputs within them.

    Gives the bits of ``Outputs``; for runs without events and sampled parts.
    """

    dense = False

    def __init__(self, kernels: Kernels, setup: Setup, x0: np.ndarray, times: np.ndarray) -> None:
        self.kernel = kernels.tries(
            kernels.keep("count", lambda: steps_in_call(kernels.rows().width))
        )
        self.times = times
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        self.x = np.empty((1, len(times), x0.size))
        self.fill = kernels.fill(times, self.sign, self.x)
        # Times at the very start belong to no step.
        along = times if self.sign > 0.0 else -times
        at_start = along.searchsorted(self.sign * setup.t_start, side="right")
        self.x[:, :at_start] = x0
        self.done = np.array([at_start])

    @property
    def complete(self) -> bool:
        """Whether all times have been reached."""
        return bool(self.done[0] == len(self.times))

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        run, rows = self.kernel(setup, args, run)
        # Rows of refused steps and after the end repeat the time before: they have no outputs.
        self.fill(rows[None], HERE, self.done)
        return run

    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""
        done = int(self.done[0])
        return Result(self.times[:done], self.x[0, :done], run, status)


def _joined(blocks: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks) if blocks else np.zeros((0, *shape))


class Steps(Collector):
    """Collects every accepted step with its interpolant; puts out these or states at ``times``."""

    def __init__(
        self, kernels: Kernels, setup: Setup, x0: np.ndarray, times: np.ndarray | None
    ) -> None:
        self.kernels = kernels
        self.t_start = setup.t_start
        self.x0 = x0
        self.times = times
        self.parts = kernels.rows()
        self.count = steps_in_call(kernels.rows().width)
        self.blocks: list[np.ndarray] = []
        self.dense = not kernels.plain

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        if not self.dense:
            run, rows = self.kernels.tries(self.count)(setup, args, run)
            self.blocks.append(rows[rows[:, 0] != rows[:, 1]])
            return run
        before = int(run.accepted)
        run, rows = self.kernels.steps(self.count)(setup, args, run)
        self.blocks.append(rows[: int(run.accepted) - before])
        return run

    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""
        rows = _joined(self.blocks, (self.parts.width,))
        dense = DenseOutput.of_rows(rows, self.kernels)
        if self.times is not None:
            reached = dense.reached(self.times)
            return Result(reached, dense.rows(reached), run, status, dense)
        t = np.concatenate([[self.t_start], rows[:, 1]])
        x = np.concatenate([self.x0[None], self.parts.x(rows)])
        return Result(t, x, run, status, dense)
