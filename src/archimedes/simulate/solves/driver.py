"""Driving solves: call the kernels until all instances are done, and stay interruptible.

A single solve is a batch of one. The kernels of a batch are those of a single solve, mapped, so
each instance has the bits that it has alone. Instances that are done or have failed drop out of
later calls.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.backends.array_kinds import HOST
from archimedes.backends.interrupts import Stopped
from archimedes.graph.dtypes import F64
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import (
    Collector,
    EveryStep,
    FinalStates,
    OutputsThere,
    OutputTimes,
    Result,
)
from archimedes.simulate.solves.kernel_runs import Instances, ManyRuns, OneRun, Runs
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Setup

#: Trial steps in the first call of a kernel, and the seconds that later calls should take; on a
#: device a call is one of very many runs.
FIRST_CALL, SECONDS = 10_000, 0.1
FIRST_THERE = 512


@dataclass
class Pace:
    """How many trial steps the next kernel call may take: enough for about ``SECONDS``."""

    budget: int = FIRST_CALL
    began: float = field(default_factory=time.perf_counter)

    def start(self) -> int:
        """Return the trial steps of a call that begins now."""
        self.began = time.perf_counter()
        return self.budget

    def took(self, steps: int) -> None:
        """Take note of how many steps the call made."""
        seconds = time.perf_counter() - self.began
        if seconds > 0.0 and steps > 0:
            self.budget = max(100, int(steps * min(10.0, SECONDS / seconds)))


@dataclass
class Task:
    """Instances to solve, and what is wanted of them.

    The states at ``times``; without times, or with ``dense``, all steps; or the ``final`` states
    only. ``outputs``: the arrays (N, m) and (N, m, n) for the former, where they exist already.
    """

    kernels: Kernels
    setup: Setup
    instances: Instances
    max_steps: int
    times: np.ndarray | None = None
    dense: bool = False
    final: bool = False
    threads: int | None = None
    outputs: tuple[Any, Any] | None = None

    def runs(self) -> Runs:
        """Return the runs, before they begin."""
        if self.instances.alone:
            return OneRun(self.kernels, self.setup, self.instances, self.max_steps)
        return ManyRuns(self.kernels, self.setup, self.instances, self.max_steps, self.threads)

    def make_outputs(self) -> tuple[Any, Any]:
        """Return arrays for the times (N, m) and states (N, m, n) of the outputs."""
        assert self.times is not None
        shape = (self.instances.count, len(self.times))
        # The times of a single solve are those that were given.
        size = self.kernels.plan.layout.size
        if not isinstance(self.instances.x0, np.ndarray):
            # Times that all instances share are no array of their own there.
            return None, self.kernels.backend.arrays.empty(F64, (*shape, size))
        t = self.times[None] if self.instances.alone else np.empty(shape)
        return t, np.empty((*shape, size))

    def collector(self, runs: Runs) -> Collector:
        """Return what calls the kernels and keeps what they return."""
        if self.final:
            return FinalStates(runs)
        if self.times is None or self.dense:
            keep = self.dense or self.kernels.plan.events is not None
            return EveryStep(runs, keep, self.times)
        if runs.arrays is not HOST:
            return OutputsThere(runs, self.times, None if self.outputs is None else self.outputs[1])
        return OutputTimes(runs, self.times, *(self.outputs or self.make_outputs()))


def drive(
    task: Task, monitor: Monitor | None = None, stop: threading.Event | None = None
) -> Result:
    """Solve all instances.

    Ctrl-C ends it with status INTERRUPTED and what was computed until then, and by ``stop`` the
    solves of other threads.
    """
    runs = task.runs()
    collect = task.collector(runs)
    runs.begin(collect.dense)
    log = None
    if task.kernels.plan.events is not None:
        from archimedes.simulate.solves.event_logs import EventLog

        log = EventLog(runs)
    pace = Pace(FIRST_CALL if runs.arrays is HOST else FIRST_THERE)
    try:
        # Whatever is done here holds up other threads: the less the better.
        while runs.going(collect.waiting):
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            runs.pause_after(pace.start())
            collect.call()
            if log is not None and (fired := log.read()) is not None:
                collect.mark_events(*fired)
            pace.took(runs.count_steps())
            if monitor is not None:
                monitor(*runs.progress())
    except (KeyboardInterrupt, Stopped):
        if stop is not None:
            stop.set()
        runs.interrupt(collect.waiting)
    result = collect.result(*runs.end())
    if log is not None:
        result.events = [log.events()]
    return result
