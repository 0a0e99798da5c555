"""What a batch of solves puts out: states at given times, or all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled, vmap
from archimedes.simulate.dense import BatchDense, DenseOutput
from archimedes.simulate.driver import OUTPUTS, chunk_of
from archimedes.simulate.kernels import Kernels
from archimedes.simulate.loops import Run, Setup

__all__ = ["MARGIN", "Mapped", "OutputCollector", "StepCollector"]

#: Steps, and outputs, in one kernel call.
STEPS, CHUNK = 16, 64
#: With fewer outputs a step than this, steps are made without keeping their interpolants.
SPARSE = 0.25
#: Outputs of one step that are computed together: few sizes, so few kernels.
WIDTHS = (1, 4, 8, 12, 16)
#: Columns behind the outputs of a lane that may be written to.
MARGIN = WIDTHS[-1]
_SETUP_AXES = Setup(None, None, None, None, None, None, 0)


class Mapped:
    """The kernels mapped over a batch; kept with the kernels, as mapping has a cost too."""

    def __init__(self, kernels: Kernels, axes: Any, threads: int | None) -> None:
        self.kernels = kernels
        self.axes = axes
        self.threads = threads
        self.key = (tree.structure(axes), threads)

    def _vmap(self, kernel: Compiled, in_axes: Any, kind: Any) -> Any:
        return self.kernels.keep(
            (kind, self.key), lambda: vmap(kernel, in_axes=in_axes, threads=self.threads)
        )

    def begin(self, dense: bool) -> Any:
        """``(setup, t, x, args) -> run``."""
        in_axes = (None, None, 0, self.axes)
        return self._vmap(self.kernels.begin(dense), in_axes, ("begin", dense))

    def outputs(self, together: bool) -> Any:
        """``(setup, args, run, times) -> run, states``; each at its own times if not together."""
        in_axes = (_SETUP_AXES, self.axes, 0, None if together else 0)
        return self._vmap(self.kernels.outputs(), in_axes, ("outputs", together))

    def steps(self, count: int) -> Any:
        """``(setup, args, run) -> run, rows``."""
        in_axes = (_SETUP_AXES, self.axes, 0)
        return self._vmap(self.kernels.steps(count), in_axes, ("steps", count))

    def states(self) -> Any:
        """``(rows, times) -> states``, one step an instance."""
        return self._vmap(self.kernels.states(), 0, "states")


class OutputCollector:
    """Collects the states at given times.

    Lanes run in step, so a lane kernel that stopped at each output would wait for the slowest
    lane there. Where outputs are dense, lanes therefore make steps without looking at the outputs,
    and these are computed afterwards, each lane and step an instance of its own. Where outputs are
    rare there is little to wait for. Both ways give the same bits.

    States are written to ``x`` (N, m + MARGIN, n), of which the first m columns are the result.
    """

    dense = True

    def __init__(
        self, call: Mapped, setup: Setup, batch: Any, times: np.ndarray, x: np.ndarray
    ) -> None:
        size = call.kernels.plan.layout.size
        self.mapped = call
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        self.times = times
        self.memory = x
        self.x = x[:, : len(times)]
        self.chunk = chunk_of(len(times), size, CHUNK)
        self.rare = len(times) < 2 * STEPS
        self.width = 0
        # Times at the very start belong to no step.
        at_start = int(np.searchsorted(self.sign * times, self.sign * setup.t_start, side="right"))
        self.x[:, :at_start] = batch.x0[:, None]
        self.done = np.full(batch.count, at_start)

    @property
    def complete(self) -> np.ndarray:
        """Which instances have all their outputs."""
        return self.done == len(self.times)

    def call(self, setup: Setup, args: Any, run: Run, active: np.ndarray) -> Run:
        """Go on with the active instances."""
        return (self._rarely if self.rare else self._densely)(setup, args, run, active)

    def _rarely(self, setup: Setup, args: Any, run: Run, active: np.ndarray) -> Run:
        done = self.done[active]
        together = bool((done == done[0]).all())
        offsets = np.arange(self.chunk)
        places = done[0] + offsets if together else done[:, None] + offsets
        block = self.times[np.minimum(places, len(self.times) - 1)]
        run, rows = self.mapped.outputs(together)(setup, args, run, block)
        good = (places < len(self.times)) & (self.sign * (block - run.t[:, None]) <= 0.0)
        lanes, columns = np.nonzero(good)
        self.x[active[lanes], done[lanes] + columns] = rows[lanes, columns]
        self.done[active] = done + good.sum(axis=1)
        return run

    def _densely(self, setup: Setup, args: Any, run: Run, active: np.ndarray) -> Run:
        before = run.accepted
        run, rows = self.mapped.steps(STEPS)(setup, args, run)
        made = run.accepted - before
        # Rows after the last step repeat it, so that their times stop no more outputs.
        stops = np.searchsorted(self.sign * self.times, self.sign * rows[:, :, 1], side="right")
        firsts = np.concatenate([self.done[active][:, None], stops[:, :-1]], axis=1)
        counts = np.where(np.arange(STEPS) < made[:, None], stops - firsts, 0)
        self.rare = counts.sum() < SPARSE * made.sum()
        self._fill(rows.reshape(-1, rows.shape[2]), firsts.ravel(), counts.ravel(), active)
        self.done[active] += counts.sum(axis=1)
        return run

    def _fill(
        self, rows: np.ndarray, firsts: np.ndarray, counts: np.ndarray, active: np.ndarray
    ) -> None:
        """Compute outputs ``firsts`` to ``firsts + counts`` of each step, ``width`` at a time."""
        used = np.flatnonzero(counts)
        if not used.size:
            return
        if not self.width:
            # The cost of a round is about that of its outputs and of reading a step.
            costs = [(-(-counts[used] // w)).sum() * (w + 4) for w in WIDTHS]
            self.width = WIDTHS[int(np.argmin(costs))]
        width = self.width
        rounds = -(-counts // width)
        if rounds.max() == 1 and used.size > 0.7 * len(counts):
            # Nearly every step has outputs, and all fit: no step need be copied.
            at, first = np.arange(len(rows)), firsts
        else:
            at = np.repeat(np.arange(len(rows)), rounds)
            number = np.arange(len(at)) - np.repeat(np.cumsum(rounds) - rounds, rounds)
            first = firsts[at] + number * width
            rows = np.take(rows, at, axis=0)
        places = np.minimum(first[:, None] + np.arange(width), len(self.times) - 1)
        states = self.mapped.states()(rows, self.times[places])
        # Rounds lie in the order of lanes and times, and each is written as one piece: what is
        # too much in it is overwritten by the next, or falls into the margin behind a lane.
        lanes, columns, size = self.memory.shape
        pieces = np.lib.stride_tricks.as_strided(
            self.memory, (lanes * columns - width + 1, width * size), (8 * size, 8)
        )
        pieces[active[at // STEPS] * columns + first] = states.reshape(len(at), -1)

    def result(self, runs: Run, status: np.ndarray) -> Any:
        """Return what was collected."""
        from archimedes.simulate.batches import BatchResult

        reached = np.arange(len(self.times)) < self.done[:, None]
        if not reached.all():
            self.x[~reached] = np.nan
        return BatchResult(np.where(reached, self.times, np.nan), self.x, runs, status)


class StepCollector:
    """Collects the accepted steps of each instance, with interpolants where wanted."""

    def __init__(
        self, call: Mapped, setup: Setup, batch: Any, dense: bool, times: np.ndarray | None
    ) -> None:
        self.mapped = call
        self.dense = dense
        self.times = times
        self.t_start = setup.t_start
        self.x0 = batch.x0
        self.parts = call.kernels.rows(dense)
        self.count = min(STEPS, max(4, OUTPUTS // self.parts.width))
        self.made = np.zeros(batch.count, dtype=np.int64)
        self.rows = np.full((batch.count, self.count, self.parts.width), np.nan)
        self.complete = np.zeros(batch.count, dtype=bool)

    def call(self, setup: Setup, args: Any, run: Run, active: np.ndarray) -> Run:
        """Go on with the active instances."""
        before = run.accepted
        run, rows = self.mapped.steps(self.count)(setup, args, run)
        new, at = run.accepted - before, self.made[active]
        held = self.rows.shape[1]
        needed = int(np.max(at + new))
        if needed > held:
            more = np.full((len(self.rows), max(needed - held, held), rows.shape[2]), np.nan)
            self.rows = np.concatenate([self.rows, more], axis=1)
        lanes, columns = np.nonzero(np.arange(self.count) < new[:, None])
        self.rows[active[lanes], at[lanes] + columns] = rows[lanes, columns]
        self.made[active] = at + new
        return run

    def result(self, runs: Run, status: np.ndarray) -> Any:
        """Return what was collected."""
        from archimedes.simulate.batches import BatchResult

        rows = self.rows[:, : int(self.made.max(initial=0))]
        t = np.concatenate([np.full((len(rows), 1), self.t_start), rows[:, :, 1]], axis=1)
        x = np.concatenate([self.x0[:, None], self.parts.x(rows)], axis=1)
        if not self.dense:
            return BatchResult(t, x, runs, status)
        kernels = self.mapped.kernels
        dense = BatchDense(
            DenseOutput.of_rows(rows[k, :made], kernels) for k, made in enumerate(self.made)
        )
        if self.times is None:
            return BatchResult(t, x, runs, status, dense)
        t = np.full((len(rows), len(self.times)), np.nan)
        x = np.full((*t.shape, x.shape[2]), np.nan)
        for k, one in enumerate(dense):
            reached = one.reached(self.times)
            t[k, : len(reached)] = reached
            x[k, : len(reached)] = one.rows(reached)
        return BatchResult(t, x, runs, status, dense)
