"""Driving a batch of solves: every instance with its own steps, in lanes and threads.

The kernels are those of a single solve, mapped over the batch, so each instance has the same bits
as alone. Instances that are done or have failed drop out of later calls.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.cpus import check_threads, cpu_count
from archimedes.simulate.problem import argument_checks as checks
from archimedes.simulate.solves.batch_outputs import FEW, Mapped, OutputCollector, StepCollector
from archimedes.simulate.solves.dense_output import BatchDense
from archimedes.simulate.solves.driver import Monitor, Pace
from archimedes.simulate.solves.event_logs import BatchLog, EventRows
from archimedes.simulate.statuses import FINISHED, INTERRUPTED, RUNNING, TOO_MANY_STEPS
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Run, Setup

__all__ = ["Batch", "BatchResult", "batch_of", "solve_batch"]

#: Instances that are solved together: fewer where their steps are kept, which take memory, but
#: enough that the Python between their kernel calls, which holds up other threads, is little; at
#: least SHARES groups for each thread, so that none waits long for the last; and no fewer
#: instances than LEAST, however many threads there are.
GROUP, KEEPING, SHARES, LEAST = 2048, 1024, 2, 16


@dataclass
class BatchResult:
    """What a batch of solves gave: t (N, m), flat x (N, m, n), status (N,) and the runs."""

    t: np.ndarray
    x: np.ndarray
    run: Run
    status: np.ndarray
    dense: BatchDense | None = None
    #: Events as they were logged, a list for each group of instances, and where the groups begin.
    events: Sequence[Sequence[EventRows]] = ()
    starts: Sequence[int] = (0,)


def joined(
    results: Sequence[BatchResult], whole: tuple[np.ndarray, np.ndarray] | None
) -> BatchResult:
    """Put groups together; shorter ones are filled up with nan. ``whole``: t and x of all."""
    most = max(r.t.shape[1] for r in results)

    def filled(array: np.ndarray) -> np.ndarray:
        missing = most - array.shape[1]
        return np.pad(
            array, [(0, 0), (0, missing)] + [(0, 0)] * (array.ndim - 2), constant_values=np.nan
        )

    kept = [r.dense for r in results]
    t, x = whole or (np.concatenate([filled(getattr(r, k)) for r in results]) for k in "tx")
    return BatchResult(
        t,
        x,
        tree.map(lambda *leaves: np.concatenate(leaves), *(r.run for r in results)),
        np.concatenate([r.status for r in results]),
        None if None in kept else BatchDense(one for group in kept for one in group or ()),
        [rows for r in results for rows in r.events],
        np.cumsum([0, *(len(r.status) for r in results[:-1])]).tolist(),
    )


@dataclass(frozen=True)
class Batch:
    """Arguments of many solves: leaves that differ have their instances along axis 0."""

    count: int
    x0: np.ndarray
    leaves: Sequence[Any]
    treedef: Any
    many: Sequence[bool]

    def args(self, chosen: np.ndarray | None) -> tuple[Any, ...]:
        """Return the arguments of the chosen instances (None: all)."""
        if chosen is None:
            return self.treedef.unflatten(self.leaves)
        return self.treedef.unflatten(
            [leaf[chosen] if many else leaf for leaf, many in zip(self.leaves, self.many)]
        )

    def part(self, chosen: slice) -> Batch:
        """Return some of the instances."""
        x0 = self.x0[chosen]
        leaves = [leaf[chosen] if many else leaf for leaf, many in zip(self.leaves, self.many)]
        return Batch(len(x0), x0, leaves, self.treedef, self.many)

    def axes(self) -> Any:
        """Return the axes of the arguments, as ``vmap`` takes them."""
        return self.treedef.unflatten([0 if many else None for many in self.many])


def batch_of(
    x0: Any, args: tuple[Any, ...], in_axes: Any
) -> tuple[int, Any, list[Any], list[bool]]:
    """Bring the batch axis of x0 and args to the front.

    ``in_axes`` has an entry for x0 and one for each argument: an axis, None (shared by all), or a
    tree of these; one number stands for all. Returns the count, x0, and leaves and flags of args.
    """
    given = (in_axes,) * (1 + len(args)) if isinstance(in_axes, int) else tuple(in_axes)
    if len(given) != 1 + len(args):
        raise ValueError(
            f"in_axes has {len(given)} entries, but there are {1 + len(args)} things it speaks of: "
            "x0 and each of args"
        )
    everything = (x0, *args)
    leaves, treedef = tree.flatten(everything)
    axes = [axis for value, axis in zip(everything, given) for axis in _spread(value, axis)]
    sizes: dict[str, int] = {}
    for k, (axis, path) in enumerate(zip(axes, treedef.paths())):
        if axis is None:
            continue
        if not -np.ndim(leaves[k]) <= axis < np.ndim(leaves[k]):
            name = "x0" if path.startswith("[0]") else "args"
            raise ValueError(
                f"in_axes asks for axis {axis} of a leaf of {name} of shape {np.shape(leaves[k])}, "
                "which has no such axis: use None for what all instances share"
            )
        leaves[k] = np.moveaxis(np.asarray(leaves[k]), axis, 0)
        sizes[path] = len(leaves[k])
    if not sizes:
        raise ValueError("in_axes is None for everything: there is nothing to batch over")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the batch axes have different lengths: {sizes}")
    count = next(iter(sizes.values()))
    if not count:
        raise ValueError("the batch is empty: its axes have length 0")
    own = len(tree.leaves(x0))
    states = [
        leaf if axis is not None else np.broadcast_to(leaf, (count, *np.shape(leaf)))
        for leaf, axis in zip(leaves[:own], axes)
    ]
    many = [axis is not None for axis in axes[own:]]
    return count, tree.structure(x0).unflatten(states), leaves[own:], many


def _spread(value: Any, axis: Any) -> list[int | None]:
    """Return the axis of each leaf of a value."""
    if axis is None or isinstance(axis, (int, np.integer)):
        return [None if axis is None else int(axis)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda part: part is not value)
    entries, given = tree.flatten(axis, is_leaf=lambda part: part is not axis)
    difference = shape.difference(given, "", parts, entries)
    if difference is not None:
        raise ValueError(f"in_axes do not match what they are for: {difference}")
    return [found for part, entry in zip(parts, entries) for found in _spread(part, entry)]


def solve_batch(
    kernels: Kernels,
    setup: Setup,
    batch: Batch,
    times: np.ndarray | None,
    dense: bool,
    max_steps: int,
    threads: int | None = None,
    monitor: Monitor | None = None,
) -> BatchResult:
    """Solve all instances for the states at ``times``, or at every step of each.

    Instances go in groups, one thread a group.
    """
    columns = 0 if times is None or dense else len(times)
    t = np.empty((batch.count, columns))
    x = np.empty((batch.count, columns, kernels.plan.layout.size))
    workers = check_threads("solve_ode", threads) or cpu_count()
    size = GROUP if 0 < columns < FEW else KEEPING
    if batch.count > size:
        size = min(size, max(LEAST, -(-batch.count // (SHARES * workers))))
    firsts = range(0, batch.count, size)
    stop = threading.Event()

    def solved(first: int, inner: int | None, monitor: Monitor | None) -> BatchResult:
        mine = slice(first, first + size)
        part = batch if len(firsts) == 1 else batch.part(mine)
        task = _Task(kernels, setup, part, times, dense, max_steps, inner, t[mine], x[mine])
        return _solve_group(task, monitor, stop)

    if len(firsts) == 1:
        return solved(0, threads, monitor)
    # One group makes the kernels; the others, and those of later batches, only run them.
    known = ("groups", tree.structure(batch.axes()), dense, times is None)
    alone = 0 if known in kernels.made else 1
    results = [solved(first, 1, None) for first in firsts[:alone]]
    kernels.keep(known, lambda: True)
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(solved, first, 1, None) for first in firsts[alone:]]
        try:
            for task in waiting:
                results.append(task.result())
                if monitor is not None:
                    reached = float(np.mean(results[-1].run.t))
                    monitor(len(results) / len(firsts), reached)
        except KeyboardInterrupt:
            stop.set()
            results = results[:alone] + [task.result() for task in waiting]
    return joined(results, (t, x) if columns else None)


@dataclass(frozen=True)
class _Task:
    """A group of instances to solve; outputs at ``times`` are written to t and x."""

    kernels: Kernels
    setup: Setup
    batch: Batch
    times: np.ndarray | None
    dense: bool
    max_steps: int
    threads: int | None
    t: np.ndarray
    x: np.ndarray

    def collector(self) -> OutputCollector | StepCollector:
        """Return what calls the kernels and keeps what they put out."""
        call = Mapped(self.kernels, self.batch.axes(), self.threads)
        if self.times is None or self.dense:
            keep = self.dense or self.kernels.plan.events is not None
            return StepCollector(call, self.setup, self.batch, keep, self.times)
        return OutputCollector(call, self.setup, self.batch, self.times, self.t, self.x)


class _Part:
    """Instances of a group that go on together, with what their kernel calls are given.

    It lasts until one of them is done. ``setup.pause`` is written anew for each call.
    """

    def __init__(self, batch: Batch, setup: Setup, places: np.ndarray) -> None:
        self.places = places
        self.whole = len(places) == batch.count
        self.args = batch.args(None if self.whole else places)
        self.setup = tree.replace(setup, pause=np.zeros(len(places), dtype=np.int64))


def _solve_group(task: _Task, monitor: Monitor | None, stop: threading.Event) -> BatchResult:
    """Solve a group; an interrupt ends it, and by ``stop`` the groups of other threads."""
    setup, batch, max_steps = task.setup, task.batch, task.max_steps
    collect = task.collector()
    begin = collect.mapped.begin(collect.dense)
    run = runs = begin(setup, setup.t_start, batch.x0, batch.args(None))
    checks.refuse_traced(runs.status)
    status = np.array(runs.status)
    log = None if task.kernels.plan.events is None else BatchLog(batch.count)
    pace = Pace(max_steps)
    part = _Part(batch, setup, np.arange(batch.count))
    try:
        # Whatever is done here holds up other threads: the less the better.
        while (active := (status == RUNNING) & collect.incomplete).any():
            if stop.is_set():
                raise KeyboardInterrupt
            if np.count_nonzero(active) != len(part.places):
                part = _Part(batch, setup, np.flatnonzero(active))
                run = tree.map(lambda leaf: leaf[part.places], runs)  # noqa: B023
            before = run.accepted + run.rejected
            np.minimum(before + pace.pause(0), max_steps, out=part.setup.pause)
            run = collect.call(part.setup, part.args, run, part.places)
            if log is not None:
                run, fired = log.read(run, part.places)
                collect.cut(part.places[fired], run.signals.x_before[fired])
            made = run.accepted + run.rejected
            pace.took(int((made - before).max()))
            if part.whole:
                runs = run
            else:
                for all_of_it, some in zip(tree.leaves(runs), tree.leaves(run)):
                    all_of_it[part.places] = some
            over = made >= max_steps
            status[part.places] = run.status
            if over.any():
                status[part.places[over & (run.status == RUNNING)]] = TOO_MANY_STEPS
            if monitor is not None:
                gone = (runs.t - setup.t_start) / (setup.t_end - setup.t_start)
                monitor(float(np.mean(gone)), float(np.mean(runs.t)))
    except KeyboardInterrupt:
        stop.set()
        status[(status == RUNNING) & collect.incomplete] = INTERRUPTED
    status[status == RUNNING] = FINISHED
    found = collect.result(runs, status)
    return found if log is None else replace(found, events=[log.rows])
