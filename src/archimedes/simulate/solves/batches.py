"""Batches of solves in groups: each in a thread, or on a device.

As many instances go together as the backend wants: enough that the Python between kernel calls,
which holds up other threads, is little; fewer where their steps are kept, which takes memory. A
group that is moved to a device has a thread with a stream of its own: while one group is computed,
the results of another are copied.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.interrupts import stoppable
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import FEW, Result
from archimedes.simulate.solves.driver import Task, drive
from archimedes.simulate.solves.kernel_runs import Instances
from archimedes.simulate.stepping.trial_step import Run, Setup
from archimedes.system.cpus import check_threads, cpu_count

#: Groups that are moved and computed at the same time.
AT_ONCE = 4
#: Instances that go together where they lie on the device.
TOGETHER = 2**22


def lies_there(instances: Instances) -> bool:
    """Tell whether the instances lie on a device."""
    return not isinstance(instances.x0, np.ndarray)


def moved_setup(setup: Setup, arrays: Arrays) -> Setup:
    """Return the numbers of a solve with its vectors on the device."""
    xp = arrays.module()
    return tree.replace(setup, rtol=xp.asarray(setup.rtol), atol=xp.asarray(setup.atol))


def moved_instances(instances: Instances, arrays: Arrays) -> Instances:
    """Return instances on the device; numbers and what is static go with any arrays."""
    xp = arrays.module()

    def there(leaf: Any) -> Any:
        return xp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    return replace(instances, x0=there(instances.x0), args=tree.map(there, instances.args))


def drive_there(task: Task, monitor: Monitor | None, size: int) -> list[Result]:
    """Solve all instances on the device of the kernels, ``size`` at a time if they are moved.

    Returns a result for each group, with arrays of the kind that the instances are.
    """
    arrays, stays = task.kernels.backend.arrays, lies_there(task.instances)
    size = TOGETHER if stays else size
    task = replace(task, setup=moved_setup(task.setup, arrays), threads=None)
    count, whole = task.instances.count, task.place
    firsts = range(0, count, size)
    stop = threading.Event() if len(firsts) > 1 else None

    def solved(first: int, tell: Monitor | None = None) -> Result:
        mine = slice(first, first + size)
        part = task.instances.part(mine) if len(firsts) > 1 else task.instances
        place = None
        if whole is not None:
            place = whole[0] if stays else whole[0][mine], whole[1][mine]
        with arrays.working(apart=not stays):
            part = moved_instances(part, arrays)
            there = replace(task, instances=part, place=place if stays else None)
            found = drive(there, tell, stop)
            return kept_there(found, arrays) if stays else fetched(found, arrays, place)

    if stays or len(firsts) == 1:
        results = []
        for first in firsts:
            results.append(solved(first, monitor if len(firsts) == 1 else None))
            _tell(monitor, results, firsts)
        return results
    # One group makes the kernels.
    results = [solved(0)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(solved, first) for first in firsts[1:]]
        try:
            for one in waiting:
                results.append(one.result())
                _tell(monitor, results, firsts)
        except KeyboardInterrupt:
            assert stop is not None
            stop.set()
            results = results[:1] + [one.result() for one in waiting]
    return results


def _tell(monitor: Monitor | None, results: list[Result], firsts: range) -> None:
    if monitor is not None and len(firsts) > 1:
        monitor(len(results) / len(firsts), float(results[-1].run.t.mean()))


def kept_there(found: Result, arrays: Arrays) -> Result:
    """Return a result with times and states on the device."""
    xp = arrays.module()
    return replace(found, t=xp.asarray(found.t), x=xp.asarray(found.x))


def fetched(found: Result, arrays: Arrays, place: tuple[Any, Any] | None) -> Result:
    """Return a result with NumPy's arrays, its times and states in ``place`` where given."""

    def here(array: Any) -> np.ndarray:
        return array if isinstance(array, np.ndarray) else arrays.to_host(array)

    run = tree.map(here, _counted(found.run))
    if isinstance(found.t, np.ndarray):  # every step: kept here from the start
        return replace(found, run=run)
    if place is None:
        place = np.empty(found.t.shape), np.empty(found.x.shape)
    # Times that all share need not travel more than once.
    place[0][...] = here(found.t[:1] if found.t.strides[0] == 0 else found.t)
    arrays.fetch(found.x, place[1])
    return replace(found, t=place[0], x=place[1], run=run)


def _counted(run: Run) -> Run:
    """Return a run without what nobody reads of one that has ended: most of its numbers."""
    return replace(run, x=run.t, x_old=run.t, dense=None)


def drive_batch(task: Task, monitor: Monitor | None) -> Result:
    """Solve all instances of a batch, in groups that go to threads of their own."""
    count = task.instances.count
    whole = None
    if task.times is not None and not task.dense and not task.final:
        whole = task.outputs()
    arrays = task.kernels.backend.arrays
    there = arrays is not HOST and arrays.module() is not None
    workers = check_threads("solve_ode", task.threads) or cpu_count()
    sizes = task.kernels.backend.sizes
    size = sizes.group if whole is not None and whole[1].shape[1] < FEW else sizes.keeping
    if count > size:
        size = min(size, max(sizes.least, -(-count // (sizes.shares * workers))))
    if there:
        return _joined(drive_there(replace(task, place=whole), monitor, size), whole)
    firsts = range(0, count, size)
    if len(firsts) == 1:
        return drive(replace(task, place=whole), monitor)
    stop = threading.Event()

    def solved(first: int) -> Result:
        mine = slice(first, first + size)
        part = task.instances.part(mine)
        place = None if whole is None else (whole[0][mine], whole[1][mine])
        with stoppable(stop):
            return drive(replace(task, instances=part, threads=1, place=place), None, stop)

    # One group makes the kernels; the others, and those of later batches, only run them.
    known = ("groups", tree.structure(task.instances.axes()), task.dense, task.times is None)
    alone = 0 if known in task.kernels.made else 1
    results = [solved(first) for first in firsts[:alone]]
    task.kernels.keep(known, lambda: True)
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(solved, first) for first in firsts[alone:]]
        try:
            for one in waiting:
                results.append(one.result())
                if monitor is not None:
                    reached = float(np.mean(results[-1].run.t))
                    monitor(len(results) / len(firsts), reached)
        except KeyboardInterrupt:
            stop.set()
            results = results[:alone] + [one.result() for one in waiting]
    return _joined(results, whole)


def _joined(results: Sequence[Result], whole: tuple[np.ndarray, np.ndarray] | None) -> Result:
    """Put groups together; shorter ones are filled up with nan. ``whole``: t and x of all."""
    if len(results) == 1:
        return results[0]
    most = max(r.t.shape[1] for r in results)

    def filled(array: np.ndarray) -> np.ndarray:
        missing = most - array.shape[1]
        return np.pad(
            array, [(0, 0), (0, missing)] + [(0, 0)] * (array.ndim - 2), constant_values=np.nan
        )

    kept = [r.dense for r in results]
    t, x = whole or (None, None)
    t = np.concatenate([filled(r.t) for r in results]) if t is None else t
    x = np.concatenate([filled(r.x) for r in results]) if x is None else x
    return Result(
        t,
        x,
        [length for r in results for length in r.lengths],
        tree.map(lambda *leaves: np.concatenate(leaves), *(r.run for r in results)),
        np.concatenate([r.status for r in results]),
        None if None in kept else [one for group in kept for one in group or ()],
        [rows for r in results for rows in r.events],
        np.cumsum([0, *(len(r.status) for r in results[:-1])]).tolist(),
    )
