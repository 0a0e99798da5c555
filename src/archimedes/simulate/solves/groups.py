"""Batches in groups, each in a thread.

As many instances go together as the backend wants: enough that the Python between kernel calls,
which holds up other threads, is little; fewer where their steps are kept, which takes memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST
from archimedes.backends.interrupts import stoppable
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import FEW, Result
from archimedes.simulate.solves.device_batches import drive_there
from archimedes.simulate.solves.driver import Task, drive
from archimedes.system.cpus import check_threads, cpu_count

__all__ = ["drive_groups"]


def drive_groups(task: Task, monitor: Monitor | None) -> Result:
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
