"""What a batch of solves puts out: states at given times, or all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled, vmap
from archimedes.simulate.solves.dense_output import BatchDense, DenseOutput
from archimedes.simulate.solves.driver import chunk_of, steps_in_call
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Run, Setup

__all__ = ["FEW", "Mapped", "OutputCollector", "StepCollector"]

#: Steps (at most), and outputs, in one kernel call.
STEPS, CHUNK = 16, 64
#: With fewer outputs than this, or fewer a step, steps are made without keeping interpolants.
FEW = 32
SPARSE = 0.25
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

    def tries(self, count: int) -> Any:
        """``(setup, args, run) -> run, rows``."""
        in_axes = (_SETUP_AXES, self.axes, 0)
        return self._vmap(self.kernels.tries(count), in_axes, ("tries", count))


class OutputCollector:
    """Collects the states at given times.

    Lanes run in step, so a lane kernel that stopped at each output would wait for the slowest
    lane there. Where outputs are dense, lanes therefore make steps without looking at the outputs,
    and these are computed afterwards from the rows of the steps. Where outputs are rare there is
    little to wait for. Both ways give the same bits. Times and states are
    written to ``t`` (N, m) and ``x`` (N, m, n), with nan where they were not reached.
    """

    def __init__(
        self,
        call: Mapped,
        setup: Setup,
        batch: Any,
        times: np.ndarray,
        t: np.ndarray,
        x: np.ndarray,
    ) -> None:
        size = call.kernels.plan.layout.size
        self.mapped = call
        self.sign = 1.0 if setup.t_end > setup.t_start else -1.0
        self.times = times
        self.t, self.x = t, x
        self.chunk = chunk_of(len(times), size, CHUNK)
        self.steps = steps_in_call(call.kernels.rows().width, STEPS)
        self.rare = len(times) < FEW
        self.plain = call.kernels.plain
        # Runs that make tries carry no interpolants, so they stay with tries.
        self.dense = self.rare or not self.plain
        self.fill = call.kernels.fill(times, self.sign, x)
        # Times at the very start belong to no step.
        at_start = int(np.searchsorted(self.sign * times, self.sign * setup.t_start, side="right"))
        self.x[:, :at_start] = batch.x0[:, None]
        self.done = np.full(batch.count, at_start)

    @property
    def incomplete(self) -> np.ndarray:
        """Which instances wait for outputs."""
        return self.done != len(self.times)

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
        made, done = run.accepted, self.done[active]
        kernel = self.mapped.steps if self.dense else self.mapped.tries
        run, rows = kernel(self.steps)(setup, args, run)
        # Rows without a step repeat the time of the one before: they have no outputs.
        self.fill(rows, active, done)
        if self.dense:
            outputs = (done - self.done[active]).sum()
            self.rare = outputs < SPARSE * (run.accepted - made).sum()
        self.done[active] = done
        return run

    def cut(self, instances: np.ndarray, before: np.ndarray) -> None:
        """States before events have no place among given times."""

    def result(self, runs: Run, status: np.ndarray) -> Any:
        """Return what was collected."""
        from archimedes.simulate.solves.batch_driver import BatchResult

        self.t[...] = self.times
        for lane in np.flatnonzero(self.incomplete).tolist():
            for array in (self.t, self.x):
                array[lane, self.done[lane] :] = np.nan
        return BatchResult(self.t, self.x, runs, status)


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
        self.count = steps_in_call(self.parts.width, STEPS)
        self.made = np.zeros(batch.count, dtype=np.int64)
        self.rows = np.full((batch.count, self.count, self.parts.width), np.nan)
        self.incomplete = np.ones(batch.count, dtype=bool)
        self.cuts: list[tuple[int, int, np.ndarray]] = []

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

    def cut(self, instances: np.ndarray, before: np.ndarray) -> None:
        """Note the states (k, n) right before events, which get samples of their own."""
        if self.times is None:
            self.cuts.extend(zip(instances.tolist(), self.made[instances].tolist(), before))

    def _with_cuts(self, t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put the states before events in front of those after them: two samples at one time."""
        places: dict[int, list[int]] = {}
        states: dict[int, list[np.ndarray]] = {}
        for lane, place, before in self.cuts:
            places.setdefault(lane, []).append(place)
            states.setdefault(lane, []).append(before)
        most = max(map(len, places.values()), default=0)
        t = np.pad(t, [(0, 0), (0, most)], constant_values=np.nan)
        x = np.pad(x, [(0, 0), (0, most), (0, 0)], constant_values=np.nan)
        for lane, at in places.items():
            count = t.shape[1] - len(at)
            t[lane] = np.insert(t[lane, :count], at, t[lane, at])
            x[lane] = np.insert(x[lane, :count], at, np.array(states[lane]), axis=0)
        used = int(np.max(np.sum(~np.isnan(t), axis=1), initial=0))
        return t[:, :used], x[:, :used]

    def result(self, runs: Run, status: np.ndarray) -> Any:
        """Return what was collected."""
        from archimedes.simulate.solves.batch_driver import BatchResult

        rows = self.rows[:, : int(self.made.max(initial=0))]
        t = np.concatenate([np.full((len(rows), 1), self.t_start), rows[:, :, 1]], axis=1)
        x = np.concatenate([self.x0[:, None], self.parts.x(rows)], axis=1)
        if self.cuts:
            t, x = self._with_cuts(t, x)
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
