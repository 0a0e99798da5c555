"""Driving solves: call the kernels until all instances are done, and stay interruptible.

A single solve is a batch of one. The kernels of a batch are those of a single solve, mapped, so
each instance has the bits that it has alone. Instances that are done or have failed drop out of
later calls.

A batch is solved in groups, each in a thread of its own, here or on a device. As many instances go
together as the backend wants: enough that the Python between kernel calls, which holds up other
threads, is little; fewer where their steps are kept, which takes memory. A group that is moved to a
device has a stream of its own: while one group is computed, the results of another are copied.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.interrupts import Stopped, stoppable
from archimedes.graph.dtypes import F64
from archimedes.simulate.solves import collectors
from archimedes.simulate.solves.collectors import FEW, Collector, Result
from archimedes.simulate.solves.kernel_runs import Instances, ManyRuns, OneRun, Runs
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Setup
from archimedes.system.cpus import check_threads, cpu_count

#: Called with the part of the span that is done, and the time.
Monitor = Callable[[float, float], None]
#: Trial steps in the first call of a kernel, and the seconds that later calls should take; on a
#: device a call is one of very many runs.
FIRST_CALL, SECONDS = 10_000, 0.1
FIRST_THERE = 512
#: Groups that are moved to a device and computed there at the same time.
AT_ONCE = 4
#: Instances that go together where they lie on the device.
TOGETHER = 2**22


@dataclass(eq=False, repr=False)
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


@dataclass(eq=False, repr=False)
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
            return collectors.FinalStates(runs)
        if self.times is None or self.dense:
            keep = self.dense or self.kernels.plan.events is not None
            return collectors.EveryStep(runs, keep, self.times)
        if runs.arrays is not HOST:
            x = None if self.outputs is None else self.outputs[1]
            return collectors.OutputsThere(runs, self.times, x)
        return collectors.OutputTimes(runs, self.times, *(self.outputs or self.make_outputs()))


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
    log = None if task.kernels.plan.events is None else collectors.EventLog(runs)
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


def drive_batch(task: Task, monitor: Monitor | None) -> Result:
    """Solve all instances of a batch, in groups."""
    from concurrent.futures import ThreadPoolExecutor  # single solves need none

    kernels, instances, arrays = task.kernels, task.instances, task.kernels.backend.arrays
    only_times = task.times is not None and not task.dense and not task.final
    whole = task.make_outputs() if only_times else None
    on_device = arrays is not HOST and arrays.module() is not None
    stays = not isinstance(instances.x0, np.ndarray)
    workers, sizes = check_threads("solve_ode", task.threads) or cpu_count(), kernels.backend.sizes
    size = sizes.group if whole is not None and whole[1].shape[1] < FEW else sizes.keeping
    if instances.count > size:
        size = min(size, max(sizes.least, -(-instances.count // (sizes.shares * workers))))
    if on_device:
        size, workers = TOGETHER if stays else size, AT_ONCE
        xp, setup = arrays.module(), task.setup
        setup = tree.replace(setup, rtol=xp.asarray(setup.rtol), atol=xp.asarray(setup.atol))
        task = replace(task, setup=setup, threads=None)
    groups = [slice(first, first + size) for first in range(0, instances.count, size)]
    stop = threading.Event() if len(groups) > 1 else None

    def solve(group: slice, tell: Monitor | None = None) -> Result:
        part, outputs = instances if stop is None else instances.part(group), None
        if whole is not None:
            t, x = whole
            outputs = (None if t is None else t[group], x[group])
        own = replace(task, instances=part, outputs=outputs)
        if on_device:
            return _drive_on_device(own, tell, stop, stays)
        if stop is None:
            return drive(own, tell)
        with stoppable(stop):
            return drive(replace(own, threads=1), None, stop)

    if stop is None:
        return solve(groups[0], monitor)
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        if monitor is not None:
            monitor(len(results) / len(groups), float(result.run.t.mean()))

    # One group makes the kernels; the others, and those of later batches, only run them.
    known = ("groups", tree.structure(instances.axes()), task.dense, task.times is None)
    first = len(groups) if stays else int(on_device or known not in kernels.made)
    for group in groups[:first]:
        report(solve(group))
    kernels.keep(known, lambda: True)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(solve, group) for group in groups[first:]]
        try:
            for future in futures:
                report(future.result())
        except KeyboardInterrupt:
            stop.set()
            results[first:] = [future.result() for future in futures]
    return _join(results, whole)


def _drive_on_device(
    task: Task, monitor: Monitor | None, stop: threading.Event | None, stays: bool
) -> Result:
    """Solve on the device of the kernels; ``stays``: the instances and results lie there."""
    arrays = task.kernels.backend.arrays
    xp = arrays.module()

    def move(leaf: object) -> Any:
        return xp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    with arrays.working(apart=not stays):
        # Numbers and what is static go with any arrays.
        x0, args = move(task.instances.x0), tree.map(move, task.instances.args)
        outputs, moved = task.outputs, replace(task.instances, x0=x0, args=args)
        task = replace(task, instances=moved, outputs=outputs if stays else None)
        result = drive(task, monitor, stop)
        if stays:
            return replace(result, t=xp.asarray(result.t), x=xp.asarray(result.x))
        return _fetch(result, arrays, outputs)


def _fetch(result: Result, arrays: Arrays, outputs: tuple[Any, Any] | None) -> Result:
    """Return a result with NumPy's arrays: ``outputs``, where these exist already."""

    def to_host(array: Any) -> np.ndarray:
        return array if isinstance(array, np.ndarray) else arrays.to_host(array)

    # Nobody reads most of the numbers of a run that has ended.
    run = result.run
    run = tree.map(to_host, replace(run, x=run.t, x_old=run.t, dense=None))
    if isinstance(result.t, np.ndarray):  # every step: kept here from the start
        return replace(result, run=run)
    t, x = outputs or (np.empty(result.t.shape), np.empty(result.x.shape))
    # Times that all share need not travel more than once.
    t[...] = to_host(result.t[:1] if result.t.strides[0] == 0 else result.t)
    arrays.fetch(result.x, x)
    return replace(result, t=t, x=x, run=run)


def _join(results: Sequence[Result], whole: tuple[Any, Any] | None) -> Result:
    """Join groups; shorter ones are filled up with nan. ``whole``: t and x of all, where known."""
    longest = max(r.t.shape[1] for r in results)

    def join(arrays: Sequence[np.ndarray]) -> np.ndarray:
        widths = [[(0, 0), (0, longest - a.shape[1]), (0, 0)][: a.ndim] for a in arrays]
        padded = (np.pad(a, w, constant_values=np.nan) for a, w in zip(arrays, widths))
        return np.concatenate([*padded])

    t, x = whole or (None, None)
    dense = [r.dense for r in results]
    return Result(
        join([r.t for r in results]) if t is None else t,
        join([r.x for r in results]) if x is None else x,
        [length for r in results for length in r.lengths],
        tree.map(lambda *leaves: np.concatenate(leaves), *(r.run for r in results)),
        np.concatenate([r.status for r in results]),
        None if None in dense else [one for group in dense for one in group or ()],
        [rows for r in results for rows in r.events],
        np.cumsum([0, *(len(r.status) for r in results[:-1])]).tolist(),
    )


def monitor_of(progress: bool | Monitor | None) -> AbstractContextManager[Monitor | None]:
    """Return what a driver calls with (part done, time): a user's function, or a tqdm bar.

    >>> with monitor_of(None) as monitor:
    ...     print(monitor)
    None
    """
    if progress is None or progress is False:
        return nullcontext()
    return _bar() if progress is True else nullcontext(progress)


@contextmanager
def _bar() -> Iterator[Monitor]:
    from tqdm.auto import tqdm

    with tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed}<{remaining}, {postfix}") as bar:

        def show(part: float, t: float) -> None:
            bar.set_postfix_str(f"t = {t:.6g}", refresh=False)
            bar.update(min(part, 1.0) - bar.n)

        yield show
