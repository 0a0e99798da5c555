"""Outputs of solves on a device: one kernel makes the steps and what is asked for within them."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.simulate.solves.collectors import Collector, Result
from archimedes.simulate.solves.one_or_many import ManyRuns, Runs
from archimedes.simulate.stepping.run_state import Run

__all__ = ["OutputsThere"]


class OutputsThere(Collector):
    """Collects the states at given times, as ``OutputTimes`` does, in arrays of a device.

    A thread has a run for itself and waits for no other, so that it evaluates each step's outputs
    as soon as the step is made. ``x`` (N, m, n) is where they go, made here if it is None.
    """

    def __init__(self, runs: Runs, times: np.ndarray, x: Any = None) -> None:
        super().__init__(runs)
        assert isinstance(runs, ManyRuns)
        xp, setup, x0 = runs.xp, runs.setup, runs.instances.x0
        self.many, self.times, self.total = runs, times, len(times)
        self.x = xp.empty((len(x0), self.total, x0.shape[1])) if x is None else x
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        # Only runs that must find events, or stop for sampled parts, carry interpolants.
        self.dense = not runs.kernels.plain
        # Times at the very start belong to no step.
        along = self.sign * times
        at_start = int(along.searchsorted(self.sign * setup.t_start, side="right"))
        if at_start:
            self.x[:, :at_start] = x0[:, None]
        #: How many outputs each run has behind it.
        self.done = np.full(len(x0), at_start)

    @property
    def waiting(self) -> Any:
        """Which instances (N,) wait for outputs."""
        return self.done != self.total

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
