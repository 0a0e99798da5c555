"""What happened in solves with events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.solves.kernel_runs import Runs
from archimedes.simulate.statuses import Status


class Events(NamedTuple):
    """Events (k,) that fired: in which instance, which one, when, and the states (k, n) around."""

    instance: np.ndarray
    event: np.ndarray
    t: np.ndarray
    before: np.ndarray
    after: np.ndarray


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
        self.logged[chosen[new]] = total[new]
        index = None if runs.one else xp.asarray(new)  # x[None]: a single run is a batch of one
        fired, t, before, after = (
            to_host(value[index]) for value in (signals.fired, run.t, signals.x_before, run.x)
        )
        self.entries.append((chosen[new], fired, t, before, after))
        return chosen[new], before

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
