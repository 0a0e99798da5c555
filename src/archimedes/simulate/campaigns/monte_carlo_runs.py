"""Checks of what users give to a campaign, before anything runs.

Putting the runs of a campaign together: those just made and those on disk.

Monte Carlo campaigns: many runs of a model, seeded, spread over workers, kept on disk.
"""

from __future__ import annotations

import inspect
import operator
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.registry import check_backend, get_backend
from archimedes.errors import explained
from archimedes.simulate.campaigns.campaign import Campaign, fill_in, statuses_of
from archimedes.simulate.campaigns.chunk_store import (
    MESSAGES,
    RAISED,
    STATUS,
    CampaignError,
    Chunk,
    ChunkStore,
    missing_ranges,
    read_chunk,
)
from archimedes.simulate.campaigns.distributions import Distribution
from archimedes.simulate.campaigns.workers import (
    Outcome,
    Task,
    Worker,
    forget,
    run_chunk,
    worker_of,
)
from archimedes.simulate.trajectory.columns import label_leaves
from archimedes.system.cpus import check_threads
from archimedes.system.floating_point import in_default_environment

__all__ = ["monte_carlo"]


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number, which must be at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"monte_carlo: {name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"monte_carlo: {name} must be a whole number, got {value!r}")
    if number < least:
        raise ValueError(f"monte_carlo: {name} must be at least {least}, got {number}")
    return number


def check_model(model: Any, distributions: Any) -> None:
    """Raise if the model is not a function of one parameter tree, or a class was given."""
    if not callable(model):
        words = f"model must be a function model(params) -> results, got {type(model).__name__}"
        swapped = callable(distributions) and not isinstance(distributions, Distribution)
        remedy = "the model comes first, then the distributions" if swapped else "write f, not f(x)"
        raise TypeError(f"monte_carlo: {words}: {remedy}")
    try:
        inspect.signature(model).bind(None)
    except TypeError as error:
        raise TypeError(
            f"monte_carlo: model is called with one argument, the tree of parameters: {error}. "
            "Put them into a dict or a struct"
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    leaves, treedef = tree.flatten(distributions)
    for leaf, path in zip(leaves, treedef.paths("distributions")):
        if isinstance(leaf, type) and issubclass(leaf, Distribution):
            name = leaf.__name__
            raise TypeError(
                explained(
                    "distribution", f"monte_carlo: {path} is the class {name}: write {name}(...)"
                )
            )


def check_folder(folder: Any) -> None:
    """Raise if a folder is not a path."""
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"monte_carlo: folder must be a path, got {type(folder).__name__}")


def check_progress(progress: Any) -> None:
    """Raise if progress is neither True or False nor a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            "monte_carlo: progress must be True, False or a function of (runs done, n), got "
            f"{progress!r}"
        )


def check_portable(task: Any, executor: Any) -> None:
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


def explain_broken_pool(model: Any) -> str:
    """Return why a pool may have lost its workers, and what to do."""
    main = sys.modules["__main__"]
    if getattr(model, "__module__", None) == "__main__" and not hasattr(main, "__file__"):
        advice = (
            "they cannot import the model, which was typed into a notebook, a prompt or python -c: "
            "write it into a file, and import it from there"
        )
    else:
        advice = (
            "each of them imports your program again, so put what starts the campaign under "
            'if __name__ == "__main__":'
        )
    return (
        "monte_carlo: the executor lost its worker processes. Where these are not forked (Windows, "
        f"macOS, Linux since Python 3.14) {advice}. If that is so already, a worker was killed, "
        "for example for lack of memory: use fewer workers or a smaller chunk. With a folder, the "
        "same call goes on with the runs that are missing"
    )


def named_arrays(outcome: Outcome) -> dict[str, np.ndarray]:
    """Return what a chunk keeps, by name; parameters that are not numbers are left out."""
    arrays = {STATUS: outcome.status, MESSAGES: np.array(list(outcome.messages.values()), "U")}
    for root, value in (("params", outcome.params), ("result", outcome.results)):
        if value is None:
            continue
        leaves, treedef = tree.flatten(value)
        for leaf, label in zip(leaves, label_leaves(treedef, root)):
            if root == "result" or np.asarray(leaf).dtype.kind in "biufc":
                arrays[label.name] = np.asarray(leaf)
    return arrays


class Part(NamedTuple):
    """Runs to be joined with others: leaves of their results (None: all failed) and status."""

    start: int
    stop: int
    leaves: list[np.ndarray] | None
    status: np.ndarray
    messages: dict[int, str]


def collect(task: Task, fresh: list[Outcome], old: list[Chunk], n: int) -> Campaign:
    """Put the runs of this call and those on disk together, in order."""
    worker = worker_of(task)
    executed = sum(one.stop - one.start for one in fresh)
    if not fresh and not old:
        return Campaign(np.arange(0), None, None, n, 0, np.arange(0), {})
    arrays = [(one, read_chunk(one)) for one in old]
    for one, found in arrays:
        check_params(worker, one, found)
    treedef = result_structure(worker, fresh, arrays)
    parts = [fresh_part(one, treedef) for one in fresh]
    parts += [disk_part(one, found, treedef) for one, found in arrays]
    parts.sort(key=lambda part: part.start)
    runs = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    inside = runs < n
    results = None if treedef is None else treedef.unflatten(joined_leaves(parts, inside))
    return Campaign(
        runs[inside],
        join_params(worker, runs[inside]),
        results,
        n,
        executed,
        np.concatenate([part.status for part in parts])[inside],
        {run: words for part in parts for run, words in part.messages.items() if run < n},
    )


def check_params(worker: Worker, one: Chunk, arrays: dict[str, np.ndarray]) -> None:
    """Refuse a chunk whose parameters are not those of its runs."""
    drawn = worker.draw(one.start, one.stop)
    leaves, treedef = tree.flatten(worker.sampler.params(drawn, one.stop - one.start))
    for leaf, label in zip(leaves, label_leaves(treedef, "params")):
        wanted = np.asarray(leaf)
        if wanted.dtype.kind not in "biufc":
            continue
        found = arrays.get(label.name)
        if found is None:
            raise CampaignError(
                f"monte_carlo: {one.path} has {sorted(arrays)}, without the parameter {label.name}"
            )
        same = found.dtype == wanted.dtype and found.shape == wanted.shape
        if not same or found.tobytes() != wanted.tobytes():
            raise CampaignError(
                f"monte_carlo: {one.path} holds other parameters ({label.name}) than those of the "
                f"runs {one.start} to {one.stop - 1} it is named for: delete it, and its runs are "
                "done again"
            )


def result_structure(
    worker: Worker, fresh: list[Outcome], old: list[tuple[Chunk, dict[str, np.ndarray]]]
) -> Any:
    """Return the structure of results; the files have names and numbers only. None: all failed."""
    for one in fresh:
        if one.results is not None:
            return tree.structure(one.results)
    for chunk, arrays in old:
        good = np.flatnonzero(chunk_status(arrays, chunk) != RAISED)
        if good.size:
            return worker.structure(chunk.start + int(good[0]))
    return None


def fresh_part(one: Outcome, treedef: Any) -> Part:
    leaves = None
    if one.results is not None:
        leaves, structure = tree.flatten(one.results)
        if structure is not treedef:
            where = treedef.difference(structure, "result")
            raise CampaignError(
                f"monte_carlo: run {one.start} returned another structure than others, {where}"
            )
    return Part(one.start, one.stop, leaves, one.status, one.messages)


def disk_part(one: Chunk, arrays: dict[str, np.ndarray], treedef: Any) -> Part:
    status = chunk_status(arrays, one)
    raised = one.start + np.flatnonzero(status == RAISED)
    messages = dict(zip(raised.tolist(), arrays.get(MESSAGES, np.array([])).tolist()))
    names = [] if treedef is None else [x.name for x in label_leaves(treedef, "result")]
    leaves = None
    if (status != RAISED).any():
        if not set(names) <= set(arrays):
            raise CampaignError(
                f"monte_carlo: {one.path} has {sorted(arrays)}, and the model returns {names}"
            )
        leaves = [arrays[name] for name in names]
    return Part(one.start, one.stop, leaves, status, messages)


def chunk_status(arrays: dict[str, np.ndarray], chunk: Chunk) -> np.ndarray:
    """Return the status of the runs of a chunk, also of one that was written without it."""
    if STATUS in arrays:
        return arrays[STATUS]
    results = [leaf for name, leaf in arrays.items() if not name.startswith("params")]
    return statuses_of(results, chunk.stop - chunk.start)


def joined_leaves(parts: list[Part], inside: np.ndarray) -> list[np.ndarray]:
    """Join the leaves of parts; runs of a part without results have nan."""
    known = next(part.leaves for part in parts if part.leaves is not None)
    rows = []
    for part in parts:
        none = np.zeros(part.stop - part.start, dtype=bool)
        rows.append(part.leaves or [fill_in(leaf[:0], none) for leaf in known])
    return [np.concatenate(columns)[inside] for columns in zip(*rows)]


def join_params(worker: Any, runs: np.ndarray) -> Any:
    """Draw the parameters of all runs again: that is quicker than carrying them along."""
    cuts = np.flatnonzero(np.diff(runs) != 1) + 1
    blocks = [worker.draw(int(b[0]), int(b[-1]) + 1) for b in np.split(runs, cuts) if len(b)]
    drawn = tree.map(lambda *rows: np.concatenate(rows), *blocks) if blocks else []
    return worker.sampler.params(drawn, len(runs))


#: Chunks handed to an executor before the first results are waited for.
IN_FLIGHT = 32

Range = tuple[int, int]


def monte_carlo(
    model: Callable[[Any], Any],
    distributions: Any,
    n: int,
    seed: int = 0,
    *,
    folder: Any = None,
    chunk: int | None = None,
    executor: Any = None,
    threads: int | None = None,
    vectorize: bool = True,
    progress: bool | Callable[[int, int], None] = False,
    backend: str | None = None,
) -> Campaign:
    """Run ``model(params)`` for parameters that are drawn from distributions.

    Run number i has the same parameters and the same results for any `n`, `chunk`, `executor` and
    number of threads. Runs that fail are kept, with nan as results: runs with nan in a result, and
    runs in which a plain Python model raises ArithmeticError, LinAlgError or SimulationError.
    Ctrl-C returns the runs completed up to then.

    Parameters
    ----------
    model : callable
        Function of one tree of parameters, which returns a tree of results. Plain NumPy.
    distributions : tree
        A tree like the parameters of the model, with a `Normal`, `Uniform`, ... where a value
        varies. Everything else is passed on as it is.
    n : int
        Number of runs.
    seed : int, optional
        Seed of the random numbers, 0 by default.
    folder : path, optional
        Folder in which each chunk is stored as soon as it is done. The same call with the same
        folder continues after an interruption, or with a larger `n`. It raises an error if the
        seed, the distributions or the model have changed.
    chunk : int, optional
        Number of runs that are computed together. By default as many as suit the backend.
    executor : Executor, optional
        A `concurrent.futures.Executor` or a Dask client that runs the chunks. Each worker may have
        a device of its own.
    threads : int, optional
        Number of threads. By default one for each available CPU.
    vectorize : bool, optional
        Compile the model and run it natively over a chunk at a time. True by default. With False
        the model is called as plain Python, run by run.
    progress : bool or callable, optional
        True shows a progress bar. A function is called with the number of runs done and `n`.
    backend : str, optional
        What runs the model, as in :func:`compile`. On a device such as ``"cuda"`` the parameters
        are drawn there too, with the same values.

    Returns
    -------
    Campaign
        Parameters, results and status of the runs.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.simulate import Normal
    >>> def throw(params):
    ...     return {"range": params["speed"] ** 2 * np.sin(2 * params["angle"]) / 9.81}
    >>> found = monte_carlo(throw, {"speed": Normal(10.0, 0.5), "angle": 0.7}, n=1000, seed=1)
    >>> found.results["range"].shape
    (1000,)
    """
    n = check_count("n", n, 0)
    backend = check_backend("monte_carlo", backend)
    if chunk is None:
        chunk = get_backend(backend).sizes.chunk
    chunk = check_count("chunk", chunk, 1)
    check_model(model, distributions)
    check_folder(folder)
    check_progress(progress)
    threads = check_threads("monte_carlo", threads)
    seed = check_count("seed", seed, 0)
    task = Task(uuid.uuid4().hex, model, distributions, seed, vectorize, threads, backend)
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
            for outcome in outcomes(task, ranges, executor):
                if disk is not None:
                    disk.write(outcome.start, outcome.stop, named_arrays(outcome))
                fresh.append(outcome)
                done += outcome.stop - outcome.start
                tell(done, n)
        except KeyboardInterrupt:
            pass  # what is there is the answer; it says that it is not complete
    return collect(task, fresh, old, n)


def outcomes(task: Task, ranges: list[Range], executor: Any) -> Iterator[Outcome]:
    """Yield what ranges of runs gave, as they are done."""
    if executor is None:
        for start, stop in ranges:
            yield run_chunk(task, start, stop)
        return
    pool = as_executor(executor)
    waiting: set[Future] = set()
    rest = iter(ranges)
    try:
        while True:
            for start, stop in rest:
                waiting.add(pool.submit(run_chunk, task, start, stop))
                if len(waiting) >= IN_FLIGHT:
                    break
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                waiting.remove(future)
                yield future.result()
    except BrokenExecutor as error:
        raise CampaignError(explain_broken_pool(task.model)) from error
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


@contextmanager
def monitor(progress: Any, n: int, done: int) -> Iterator[Callable[[int, int], Any]]:
    """Return what is called with (runs done, all runs): a user's function, a bar, or nothing."""
    if progress is not True:
        yield progress or (lambda done, n: None)
        return
    from tqdm.auto import tqdm

    with tqdm(total=n, initial=done, unit="run") as bar:
        yield lambda done, n: bar.update(done - bar.n)
