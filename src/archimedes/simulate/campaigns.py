"""Monte Carlo campaigns: many runs of a model, seeded, spread over workers, kept on disk."""

from __future__ import annotations

import operator
import pickle
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.graph.environment import in_default_environment
from archimedes.simulate.campaign_results import Campaign
from archimedes.simulate.campaign_store import (
    CampaignError,
    Chunk,
    ChunkStore,
    missing_ranges,
    read_chunk,
)
from archimedes.simulate.campaign_tasks import Task, forget, run_chunk, worker_of
from archimedes.simulate.columns import label_leaves

__all__ = ["monte_carlo"]

#: Chunks handed to an executor before the first results are waited for.
IN_FLIGHT = 32

Range = tuple[int, int]
Outcome = tuple[int, int, Any, Any]


def monte_carlo(
    model: Callable[[Any], Any],
    distributions: Any,
    n: int,
    seed: int = 0,
    *,
    folder: Any = None,
    chunk: int = 256,
    executor: Any = None,
    threads: int | None = None,
    vectorize: bool = True,
    progress: bool | Callable[[int, int], None] = False,
) -> Campaign:
    """Run ``model(params) -> results`` for `n` parameter trees drawn from `distributions`.

    `distributions` is a tree like the model's parameters, with a `Normal`, `Uniform`, ... where
    a value varies; everything else passes through. Run i has the same parameters and results for
    any n, chunk, executor and number of threads. The model is recorded once and runs natively for
    a chunk of runs at a time; with ``vectorize=False`` it is called as plain Python instead.

    With a `folder` each chunk is on disk as soon as it is done. The same call on the same folder
    goes on after an interruption, or with a larger n, and refuses to if seed, distributions or
    model have changed. `executor` is any `concurrent.futures.Executor` or a Dask client.
    `progress` shows a bar, or is called with (runs done, n). Ctrl-C returns what is there.

    >>> import numpy as np
    >>> from archimedes.simulate import Normal
    >>> def throw(params):
    ...     return {"range": params["speed"] ** 2 * np.sin(2 * params["angle"]) / 9.81}
    >>> found = monte_carlo(throw, {"speed": Normal(10.0, 0.5), "angle": 0.7}, n=1000, seed=1)
    >>> found.results["range"].shape
    (1000,)
    """
    n = check_count("n", n, 0)
    chunk = check_count("chunk", chunk, 1)
    task = Task(
        uuid.uuid4().hex, model, distributions, check_count("seed", seed, 0), vectorize, threads
    )
    check_portable(task, executor)
    store = nullcontext() if folder is None else ChunkStore(folder, worker_of(task).identity())
    try:
        with store as disk:
            return run_campaign(task, n, chunk, executor, disk, progress)
    finally:
        forget(task)


@in_default_environment
def run_campaign(
    task: Task, n: int, size: int, executor: Any, disk: ChunkStore | None, progress: Any
) -> Campaign:
    """Run what is missing and put everything together."""
    old = [] if disk is None else [c for c in disk.chunks() if c.start < n]
    ranges = missing_ranges(old, n, size)
    done = n - sum(stop - start for start, stop in ranges)
    fresh: list[Outcome] = []
    with monitor(progress, n, done) as tell:
        try:
            for start, stop, params, results in outcomes(task, ranges, executor):
                if disk is not None:
                    disk.write(start, stop, named_arrays(params, results))
                fresh.append((start, stop, params, results))
                done += stop - start
                tell(done, n)
        except KeyboardInterrupt:
            pass  # what is there is the answer; it says that it is not complete
    return collect(task, fresh, old, n)


def outcomes(task: Task, ranges: list[Range], executor: Any) -> Iterator[Outcome]:
    """Yield the parameters and results of ranges of runs as they are done."""
    if executor is None:
        for start, stop in ranges:
            yield start, stop, *run_chunk(task, start, stop)
        return
    pool = as_executor(executor)
    waiting: dict[Future, Range] = {}
    rest = iter(ranges)
    try:
        while True:
            for start, stop in rest:
                waiting[pool.submit(run_chunk, task, start, stop)] = (start, stop)
                if len(waiting) >= IN_FLIGHT:
                    break
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield *waiting.pop(future), *future.result()
    finally:
        for future in waiting:
            future.cancel()


def as_executor(executor: Any) -> Executor:
    """Return a `concurrent.futures.Executor`; a Dask client has one of its own."""
    if hasattr(executor, "get_executor"):
        return executor.get_executor(pure=False)
    if not hasattr(executor, "submit"):
        raise TypeError(
            "monte_carlo: executor must be a concurrent.futures.Executor or a Dask client, got "
            f"{type(executor).__name__}"
        )
    return executor


def check_portable(task: Task, executor: Any) -> None:
    """Raise early where a process pool could not send the model to its workers."""
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CampaignError(
            "monte_carlo: the model and the distributions must travel to other processes, and "
            f"cannot: {error}. Define the model with def at the top of a module"
        ) from error


def check_count(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"monte_carlo: {name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"monte_carlo: {name} must be at least {least}, got {number}")
    return number


@contextmanager
def monitor(progress: Any, n: int, done: int) -> Iterator[Callable[[int, int], Any]]:
    """Return what is called with (runs done, all runs): a user's function, a bar, or nothing."""
    if progress is not True:
        yield progress or (lambda done, n: None)
        return
    from tqdm.auto import tqdm

    with tqdm(total=n, initial=done, unit="run") as bar:
        yield lambda done, n: bar.update(done - bar.n)


def named_arrays(params: Any, results: Any) -> dict[str, np.ndarray]:
    """Return the leaves of both by name; what is not a number is left out of the parameters."""
    arrays = {}
    for root, value in (("params", params), ("result", results)):
        leaves, treedef = tree.flatten(value)
        for leaf, label in zip(leaves, label_leaves(treedef, root)):
            if root == "result" or np.asarray(leaf).dtype.kind in "biufc":
                arrays[label.name] = np.asarray(leaf)
    return arrays


def collect(task: Task, fresh: list[Outcome], old: list[Chunk], n: int) -> Campaign:
    """Put the runs of this call and those on disk together, in order."""
    worker = worker_of(task)
    executed = sum(stop - start for start, stop, _, _ in fresh)
    if not fresh and not old:
        return Campaign(np.arange(0), None, None, n, 0)
    # The files have names and numbers; the structure is the model's.
    treedef = tree.structure(fresh[0][3]) if fresh else worker.structure()
    names = [label.name for label in label_leaves(treedef, "result")]
    parts: list[tuple[int, int, list[np.ndarray]]] = []
    for start, stop, _, results in fresh:
        leaves, structure = tree.flatten(results)
        if structure is not treedef:
            where = treedef.difference(structure, "result")
            raise CampaignError(
                f"monte_carlo: run {start} returned another structure than others, {where}"
            )
        parts.append((start, stop, leaves))
    for one in old:
        arrays = read_chunk(one)
        if not set(names) <= set(arrays):
            raise CampaignError(
                f"monte_carlo: {one.path} has {sorted(arrays)}, and the model returns {names}"
            )
        parts.append((one.start, one.stop, [arrays[name] for name in names]))
    parts.sort(key=lambda part: part[0])
    runs = np.concatenate([np.arange(start, stop) for start, stop, _ in parts])
    inside = runs < n
    leaves = [np.concatenate(rows)[inside] for rows in zip(*(rows for _, _, rows in parts))]
    params = join_params(worker, runs[inside])
    return Campaign(runs[inside], params, treedef.unflatten(leaves), n, executed)


def join_params(worker: Any, runs: np.ndarray) -> Any:
    """Draw the parameters of all runs again: that is quicker than carrying them along."""
    cuts = np.flatnonzero(np.diff(runs) != 1) + 1
    blocks = [worker.sampler(int(b[0]), int(b[-1]) + 1) for b in np.split(runs, cuts) if len(b)]
    drawn = tree.map(lambda *rows: np.concatenate(rows), *blocks) if blocks else []
    return worker.sampler.params(drawn, len(runs))
