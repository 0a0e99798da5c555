"""Driving a solve with events: the collectors of ``driver``, logging what happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.solves.driver import Final, Outputs, Result, Steps
from archimedes.simulate.statuses import RUNNING, SETTLED
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Run, Setup

__all__ = [
    "BatchLog",
    "EventFinal",
    "EventLog",
    "EventOutputs",
    "EventRows",
    "EventSteps",
    "batch_table",
]


class EventLog:
    """What happened: a row for each event that fired."""

    def __init__(self) -> None:
        self.fired = 0
        self.t: list[float] = []
        self.index: list[int] = []
        self.before: list[np.ndarray] = []
        self.after: list[np.ndarray] = []

    def read(self, run: Run) -> Run:
        """Log the events of a run that a kernel returned; return it, ready to go on."""
        count = int(np.sum(run.signals.count))
        if count > self.fired:
            self.fired = count
            for k in np.flatnonzero(run.signals.fired).tolist():
                self.t.append(float(run.t))
                self.index.append(k)
                self.before.append(run.signals.x_before)
                self.after.append(run.x)
        if int(run.status) == SETTLED:
            return replace(run, status=np.int64(RUNNING))
        return run

    def table(self, layout: Layout) -> dict[str, Any]:
        """Return times (k,), numbers of the events (k,) and the states before and after them."""
        count = len(self.t)

        def states(rows: list[np.ndarray]) -> Any:
            return layout.unpack(np.array(rows).reshape(count, layout.size), (count,))

        return {
            "t": np.array(self.t, dtype=np.float64),
            "event": np.array(self.index, dtype=np.int64),
            "x_before": states(self.before),
            "x_after": states(self.after),
        }


class BatchLog:
    """What happened in a batch: rows of the events that fired, as kernels returned them."""

    def __init__(self, count: int) -> None:
        self.fired = np.zeros(count, dtype=np.int64)
        self.rows: list[EventRows] = []

    def read(self, run: Run, active: np.ndarray) -> tuple[Run, np.ndarray]:
        """Log the events of the active instances; return them, ready to go on, and who had one."""
        total = np.sum(run.signals.count, axis=1)
        new = np.flatnonzero(total > self.fired[active])
        if new.size:
            self.fired[active[new]] = total[new]
            lanes, which = np.nonzero(run.signals.fired[new])
            at = new[lanes]
            before, after = run.signals.x_before[at], run.x[at]
            self.rows.append(EventRows(active[at], which, run.t[at], before, after))
        settled = run.status == SETTLED
        if settled.any():
            run = replace(run, status=np.where(settled, RUNNING, run.status))
        return run, new


class EventRows(NamedTuple):
    """Events (k,): of which instance, which event, when, and the states (k, n) around it."""

    instance: np.ndarray
    event: np.ndarray
    t: np.ndarray
    before: np.ndarray
    after: np.ndarray


def batch_table(
    groups: Sequence[Sequence[EventRows]], starts: Any, layout: Layout, count: int
) -> Any:
    """Return the events of ``count`` instances, (N, k): k of the one with the most.

    ``groups`` are the rows of groups that begin at instance ``starts``. Shorter ones are filled up
    with nan, and -1 for the number of the event.
    """
    empty = np.zeros((0, layout.size))
    none = EventRows(np.zeros(0, int), np.zeros(0, int), np.zeros(0), empty, empty)
    moved = [
        rows._replace(instance=rows.instance + start)
        for start, group in zip(starts, groups)
        for rows in group
    ]
    rows = EventRows(*map(np.concatenate, zip(none, *moved)))
    order = np.argsort(rows.instance, kind="stable")
    instance = rows.instance[order]
    each = np.bincount(instance, minlength=count)
    column = np.arange(len(order)) - (np.cumsum(each) - each)[instance]
    most = int(each.max(initial=0))

    def table(values: np.ndarray, fill: Any) -> np.ndarray:
        whole = np.full((count, most, *values.shape[1:]), fill, dtype=values.dtype)
        whole[instance, column] = values[order]
        return whole

    return {
        "t": table(rows.t, np.nan),
        "event": table(rows.event, -1),
        "x_before": layout.unpack(table(rows.before, np.nan), (count, most)),
        "x_after": layout.unpack(table(rows.after, np.nan), (count, most)),
    }


class EventFinal(Final):
    """Keeps the last state only, and the events."""

    dense = True

    def __init__(self, kernels: Kernels) -> None:
        super().__init__(kernels)
        self.log = EventLog()

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        return self.log.read(super().call(setup, args, run))


class EventOutputs(Outputs):
    """Collects the states at given times, and the events."""

    def __init__(self, kernels: Kernels, setup: Setup, times: np.ndarray) -> None:
        super().__init__(kernels, setup, times)
        self.log = EventLog()

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        return self.log.read(super().call(setup, args, run))


class EventSteps(Steps):
    """Collects every step; an event gives two samples, the states before and after it."""

    def __init__(
        self, kernels: Kernels, setup: Setup, x0: np.ndarray, times: np.ndarray | None
    ) -> None:
        super().__init__(kernels, setup, x0, times)
        self.log = EventLog()
        self.cuts: list[tuple[int, np.ndarray]] = []

    def call(self, setup: Setup, args: tuple[Any, ...], run: Run) -> Run:
        """Go on until the kernel returns."""
        seen = self.log.fired
        run = self.log.read(super().call(setup, args, run))
        if self.log.fired > seen:
            # Sample k + 1 is the end of step k: the one before goes in front of it.
            self.cuts.append((sum(map(len, self.blocks)), run.signals.x_before))
        return run

    def result(self, run: Run, status: int) -> Result:
        """Return what was collected."""
        found = super().result(run, status)
        if self.times is not None or not self.cuts:
            return found
        places = [place for place, _ in self.cuts]
        t = np.insert(found.t, places, found.t[places])
        x = np.insert(found.x, places, np.array([x for _, x in self.cuts]), axis=0)
        return replace(found, t=t, x=x)
