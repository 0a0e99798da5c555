"""Batches of solves on a device: where their arrays lie already, or moved there and back in groups.

A group that is moved has a thread with a stream of its own: while one group is computed, the
results of another are copied.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import Arrays
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import Result
from archimedes.simulate.solves.driver import Task, drive
from archimedes.simulate.solves.instances import Instances
from archimedes.simulate.stepping.run_state import Run, Setup

__all__ = ["drive_there", "lies_there"]

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
