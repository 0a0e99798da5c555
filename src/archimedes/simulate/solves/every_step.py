"""What solves put out where every step is wanted: its states, and its interpolant if kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.simulate.solves.collectors import Collector, Result, steps_in_call
from archimedes.simulate.solves.dense_output import DenseOutput
from archimedes.simulate.solves.one_or_many import Runs
from archimedes.simulate.stepping.run_state import Run
from archimedes.simulate.stepping.step_rows import END, START

__all__ = ["EveryStep"]


class EveryStep(Collector):
    """Collects the accepted steps of each instance, with interpolants to ``keep`` them.

    Puts out the states after all steps (an event gives two: before and after it), or those at
    ``times``.
    """

    def __init__(self, runs: Runs, keep: bool, times: np.ndarray | None) -> None:
        super().__init__(runs)
        kernels = runs.kernels
        self.keep, self.times = keep, times
        self.parts = kernels.rows(keep)
        self.count = steps_in_call(self.parts.width, runs)
        # Tries put out interpolants without carrying them.
        self.tries = keep and kernels.plain
        self.dense = keep and not self.tries
        self.made = np.zeros(runs.instances.count, dtype=np.int64)
        #: Rows of steps, of which instances, and how many of each.
        self.blocks: list[tuple[np.ndarray, np.ndarray, Any]] = []
        self.cuts: list[tuple[int, int, np.ndarray]] = []

    def call(self) -> None:
        """Go on until the kernel returns."""
        runs, before = self.runs, self.runs.run.accepted
        rows = runs.tries(self.count) if self.tries else runs.steps(self.count)
        made = runs.run.accepted - before
        if runs.one:
            kept = rows[0]
            self.made[0] += made
        elif self.tries:
            kept = rows[rows[..., START] != rows[..., END]]
        else:
            kept = rows[runs.xp.arange(self.count) < made[:, None]]
        places = runs.places
        if not runs.one:
            kept, made = map(runs.arrays.to_host, (kept, made))
            self.made[places] += made
        self.blocks.append((kept, places, made))

    def cut(self, instances: np.ndarray, before: np.ndarray) -> None:
        """Take note of the states (k, n) right before events, which get samples of their own."""
        if self.times is None:
            self.cuts.extend(zip(instances.tolist(), self.made[instances].tolist(), before))

    def _rows(self) -> np.ndarray:
        """Return the rows of the steps of each instance, (N, s, width), filled up with nan."""
        if self.runs.one:
            parts = [rows for rows, _, _ in self.blocks]
            if len(parts) == 1:
                return parts[0][None]
            return np.concatenate(parts or [np.zeros((0, self.parts.width))])[None]
        whole = np.full((len(self.made), int(self.made.max()), self.parts.width), np.nan)
        at = np.zeros(len(self.made), dtype=np.int64)
        for rows, places, counts in self.blocks:
            first = np.cumsum(counts) - counts
            column = np.arange(len(rows)) - np.repeat(first - at[places], counts)
            whole[np.repeat(places, counts), column] = rows
            at[places] += counts
        return whole

    def _with_cuts(self, t: np.ndarray, x: np.ndarray, lengths: list[int]) -> Any:
        """Put the states before events in front of those after them: two samples at one time.

        Returns t and x; what was put in is added to ``lengths``.
        """
        cuts: dict[int, list[tuple[int, np.ndarray]]] = {}
        for lane, place, before in self.cuts:
            cuts.setdefault(lane, []).append((place, before))
            lengths[lane] += 1
        count, held, size = x.shape
        most = max(held, *lengths)
        longer = np.full((count, most), np.nan), np.full((count, most, size), np.nan)
        for whole, given in zip(longer, (t, x)):
            whole[:, :held] = given
        for lane, own in cuts.items():
            at = np.array([place for place, _ in own])
            new = np.zeros(lengths[lane], dtype=bool)
            new[at + np.arange(len(at))] = True
            states = np.array([before for _, before in own])
            for whole, given, put in zip(longer, (t[lane], x[lane]), (t[lane, at], states)):
                part = whole[lane, : len(new)]
                part[new], part[~new] = put, given[: len(new) - len(at)]
        return longer

    def result(self, run: Run, status: Any) -> Result:
        """Return what was collected."""
        rows, made, dense = self._rows(), self.made.tolist(), None
        if self.keep:
            layout, project = self.runs.kernels.plan.layout, self.runs.kernels.project()
            dense = [
                DenseOutput.of_rows(own[:n], self.parts, layout, project)
                for own, n in zip(rows, made)
            ]
            if self.times is not None:
                return self._at_times(self.times, dense, run, status)
        t = np.empty((len(rows), rows.shape[1] + 1))
        t[:, 0], t[:, 1:] = self.runs.setup.t_start, rows[:, :, END]
        x0 = self.runs.arrays.to_host(self.runs.instances.x0)
        x = np.concatenate([x0[:, None], self.parts.x(rows)], axis=1)
        lengths = [n + 1 for n in made]
        if self.cuts:
            t, x = self._with_cuts(t, x, lengths)
        return Result(t, x, lengths, run, status, dense)

    def _at_times(
        self, times: np.ndarray, dense: list[DenseOutput], run: Run, status: Any
    ) -> Result:
        """Return the states at the times that each instance reached."""
        t = np.full((len(dense), len(times)), np.nan)
        x = np.full((*t.shape, self.parts.size), np.nan)
        lengths = []
        for k, one in enumerate(dense):
            reached = one.reached(times)
            lengths.append(len(reached))
            t[k, : len(reached)] = reached
            x[k, : len(reached)] = one.rows(reached)
        return Result(t, x, lengths, run, status, dense)
