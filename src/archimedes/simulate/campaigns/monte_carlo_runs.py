"""Monte Carlo campaigns: many runs of a model, seeded, spread over workers, kept on disk."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from typing import Any

from archimedes.backends.registry import check_backend, get_backend
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.simulate.campaigns.campaign_checks import (
    check_count,
    check_folder,
    check_model,
    check_portable,
    check_progress,
    explain_broken_pool,
)
from archimedes.simulate.campaigns.chunk_store import (
    CampaignError,
    ChunkStore,
    missing_ranges,
)
from archimedes.simulate.campaigns.joining import collect, named_arrays
from archimedes.simulate.campaigns.workers import (
    Outcome,
    Task,
    forget,
    run_chunk,
    worker_of,
)
from archimedes.system.cpus import check_threads
from archimedes.system.floating_point import in_default_environment

__all__ = ["monte_carlo"]

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
