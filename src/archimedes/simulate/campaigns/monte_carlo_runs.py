"""Monte Carlo campaigns: many runs of a model, seeded, spread over workers, kept on disk."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import check_backend, get_backend
from archimedes.checks import check_callable, check_whole
from archimedes.errors import refer_to
from archimedes.simulate.campaigns import chunk_store, workers
from archimedes.simulate.campaigns.campaign import Campaign, fill_in, statuses_of
from archimedes.simulate.campaigns.chunk_store import CampaignError, Chunk, ChunkStore
from archimedes.simulate.campaigns.distributions import Distribution, is_numeric
from archimedes.simulate.campaigns.workers import Outcome, Task, Worker
from archimedes.simulate.trajectory.columns import label_leaves
from archimedes.system.cpus import check_threads
from archimedes.system.floating_point import in_default_environment
from archimedes.tree import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["monte_carlo"]

#: Chunks handed to an executor before the first results are waited for.
IN_FLIGHT = 32

#: The arrays of a chunk by name.
Arrays = dict[str, np.ndarray]


def monte_carlo(
    model: Callable[[Any], Any],
    distributions: Tree,
    n: int,
    seed: int = 0,
    *,
    folder: str | os.PathLike[str] | None = None,
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
    n = check_whole(n, "monte_carlo: n", 0)
    backend = check_backend("monte_carlo", backend)
    size = get_backend(backend).sizes.chunk if chunk is None else chunk
    size = check_whole(size, "monte_carlo: chunk", 1)
    _check_model(model, distributions)
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"monte_carlo: folder must be a path, got {type(folder).__name__}")
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            "monte_carlo: progress must be True, False or a function of (runs done, n), got "
            f"{progress!r}"
        )
    threads = check_threads("monte_carlo", threads)
    seed = check_whole(seed, "monte_carlo: seed", 0)
    task = Task(uuid.uuid4().hex, model, distributions, seed, vectorize, threads, backend)
    _check_portable(task, executor)
    worker = workers.worker_of(task)
    store = nullcontext() if folder is None else ChunkStore(folder, worker.identity())
    try:
        with store as disk:
            return _run_campaign(task, n, size, executor, disk, progress)
    finally:
        workers.forget(task)


def _check_model(model: Callable[[Any], Any], distributions: Tree) -> None:
    """Raise if the model is not a function of one parameter tree, or a class was given."""
    swapped = callable(distributions) and not isinstance(distributions, Distribution)
    remedy = "the model comes first, then the distributions" if swapped else "write f, not f(x)"
    check_callable(model, "monte_carlo: model", "model(params) -> results", remedy)
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
            message = f"monte_carlo: {path} is the class {name}: write {name}(...)"
            raise TypeError(message + refer_to("distribution"))


def _check_portable(task: Task, executor: object) -> None:
    """Raise early where a process pool could not send the model to its workers."""
    if not isinstance(executor, futures.ProcessPoolExecutor):
        return
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CampaignError(
            "monte_carlo: the model and the distributions must travel to other processes, and "
            f"cannot: {error}. Define the model with def at the top of a module"
        ) from error


def _explain_broken_pool(model: object) -> str:
    """Return why a pool may have lost its workers, and what to do."""
    advice = (
        "each of them imports your program again, so put what starts the campaign under "
        'if __name__ == "__main__":'
    )
    in_main = getattr(model, "__module__", None) == "__main__"
    if in_main and not hasattr(sys.modules["__main__"], "__file__"):
        advice = (
            "they cannot import the model, which was typed into a notebook, a prompt or python -c: "
            "write it into a file, and import it from there"
        )
    return (
        "monte_carlo: the executor lost its worker processes. Where these are not forked (Windows, "
        f"macOS, Linux since Python 3.14) {advice}. If that is so already, a worker was killed, "
        "for example for lack of memory: use fewer workers or a smaller chunk. With a folder, the "
        "same call goes on with the runs that are missing"
    )


@in_default_environment
def _run_campaign(
    task: Task,
    n: int,
    size: int,
    executor: object,
    disk: ChunkStore | None,
    progress: bool | Callable[[int, int], None],
) -> Campaign:
    """Run what is missing and put everything together."""
    old = [] if disk is None else [chunk for chunk in disk.chunks() if chunk.start < n]
    ranges = chunk_store.missing_ranges(old, n, size)
    done = n - sum(stop - start for start, stop in ranges)
    fresh: list[Outcome] = []
    with _monitor(progress, n, done) as report:
        try:
            for outcome in _run_ranges(task, ranges, executor):
                if disk is not None:
                    disk.write(outcome.start, outcome.stop, _name_arrays(outcome))
                fresh.append(outcome)
                done += outcome.stop - outcome.start
                report(done, n)
        except KeyboardInterrupt:
            pass  # what is there is the answer; it says that it is not complete
    return _collect(workers.worker_of(task), fresh, old, n)


def _run_ranges(
    task: Task, ranges: Sequence[tuple[int, int]], executor: object
) -> Iterator[Outcome]:
    """Yield the outcomes of ranges of runs, as they are done."""
    if executor is None:
        for start, stop in ranges:
            yield workers.run_chunk(task, start, stop)
        return
    pool = _as_executor(executor)
    waiting: set[futures.Future] = set()
    rest = iter(ranges)
    try:
        while True:
            for start, stop in rest:
                waiting.add(pool.submit(workers.run_chunk, task, start, stop))
                if len(waiting) >= IN_FLIGHT:
                    break
            if not waiting:
                return
            for future in futures.wait(waiting, return_when=futures.FIRST_COMPLETED).done:
                waiting.remove(future)
                yield future.result()
    except futures.BrokenExecutor as error:
        raise CampaignError(_explain_broken_pool(task.model)) from error
    finally:
        for future in waiting:
            future.cancel()


def _as_executor(executor: Any) -> futures.Executor:
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
def _monitor(
    progress: bool | Callable[[int, int], None], n: int, done: int
) -> Iterator[Callable[[int, int], Any]]:
    """Yield what is called with (runs done, all runs): a user's function, a bar, or nothing."""
    if progress is not True:
        yield progress or (lambda done, n: None)
        return
    from tqdm.auto import tqdm

    with tqdm(total=n, initial=done, unit="run") as bar:
        yield lambda done, n: bar.update(done - bar.n)


# ---- putting runs together, those just made and those on disk --------------------------------


def _name_arrays(outcome: Outcome) -> Arrays:
    """Return what a chunk keeps, by name; parameters that are not numbers are left out."""
    messages = np.array(list(outcome.messages.values()), "U")
    arrays = {chunk_store.STATUS: outcome.status, chunk_store.MESSAGES: messages}
    for root, value in (("params", outcome.params), ("result", outcome.results)):
        leaves, treedef = tree.flatten(value)
        for leaf, label in zip(leaves, label_leaves(treedef, root)):
            if root == "result" or is_numeric(leaf):
                arrays[label.name] = np.asarray(leaf)
    return arrays


def _collect(worker: Worker, fresh: list[Outcome], old: list[Chunk], n: int) -> Campaign:
    """Put the runs of this call and those on disk together, in order."""
    executed = sum(outcome.stop - outcome.start for outcome in fresh)
    if not fresh and not old:
        return Campaign(np.arange(0), None, None, n, 0, np.arange(0), {})
    stored = [(chunk, chunk_store.read_chunk(chunk)) for chunk in old]
    for chunk, arrays in stored:
        _check_params(worker, chunk, arrays)
    treedef = _result_structure(worker, fresh, stored)
    outcomes = [*fresh, *(_read_outcome(chunk, arrays, treedef) for chunk, arrays in stored)]
    outcomes.sort(key=lambda outcome: outcome.start)
    runs = np.concatenate([np.arange(outcome.start, outcome.stop) for outcome in outcomes])
    inside = runs < n
    return Campaign(
        runs[inside],
        _draw_params(worker, runs[inside]),
        None if treedef is None else _join_results(outcomes, treedef, inside),
        n,
        executed,
        np.concatenate([outcome.status for outcome in outcomes])[inside],
        {run: words for one in outcomes for run, words in one.messages.items() if run < n},
        worker.sampler.keys,
    )


def _check_params(worker: Worker, chunk: Chunk, arrays: Arrays) -> None:
    """Refuse a chunk whose parameters are not those of its runs."""
    count = chunk.stop - chunk.start
    params = worker.sampler.params(worker.draw(chunk.start, chunk.stop), count)
    leaves, treedef = tree.flatten(params)
    for leaf, label in zip(leaves, label_leaves(treedef, "params")):
        if not is_numeric(leaf):
            continue
        expected, array = np.asarray(leaf), arrays.get(label.name)
        if array is None:
            raise CampaignError(
                f"monte_carlo: {chunk.path} has {sorted(arrays)}, without the parameter "
                f"{label.name}"
            )
        same = array.dtype == expected.dtype and array.shape == expected.shape
        if not same or array.tobytes() != expected.tobytes():
            raise CampaignError(
                f"monte_carlo: {chunk.path} holds other parameters ({label.name}) than those of "
                f"the runs {chunk.start} to {chunk.stop - 1} it is named for: delete it, and its "
                "runs are done again"
            )


def _result_structure(
    worker: Worker, fresh: list[Outcome], stored: list[tuple[Chunk, Arrays]]
) -> TreeDef | None:
    """Return the structure of results; the files have names and numbers only. None: all failed."""
    for outcome in fresh:
        if outcome.results is not None:
            return tree.structure(outcome.results)
    for chunk, arrays in stored:
        good = np.flatnonzero(_chunk_status(arrays, chunk) != chunk_store.RAISED)
        if good.size:
            return worker.structure(chunk.start + int(good[0]))
    return None


def _read_outcome(chunk: Chunk, arrays: Arrays, treedef: TreeDef | None) -> Outcome:
    """Return what a chunk on disk holds, without the parameters, which are drawn again."""
    status = _chunk_status(arrays, chunk)
    raised = chunk.start + np.flatnonzero(status == chunk_store.RAISED)
    messages = dict(zip(raised.tolist(), arrays.get(chunk_store.MESSAGES, np.array([])).tolist()))
    results = None
    if treedef is not None and (status != chunk_store.RAISED).any():
        names = [label.name for label in label_leaves(treedef, "result")]
        if not set(names) <= set(arrays):
            raise CampaignError(
                f"monte_carlo: {chunk.path} has {sorted(arrays)}, and the model returns {names}"
            )
        results = treedef.unflatten([arrays[name] for name in names])
    return Outcome(chunk.start, chunk.stop, None, results, status, messages)


def _chunk_status(arrays: Arrays, chunk: Chunk) -> np.ndarray:
    """Return the status of the runs of a chunk, also of one that was written without it."""
    if chunk_store.STATUS in arrays:
        return arrays[chunk_store.STATUS]
    results = [leaf for name, leaf in arrays.items() if not name.startswith("params")]
    return statuses_of(results, chunk.stop - chunk.start)


def _join_results(outcomes: list[Outcome], treedef: TreeDef, inside: np.ndarray) -> Tree:
    """Join the results of all runs; where all runs of a chunk failed, they are nan."""
    rows = [tree.leaves(outcome.results) for outcome in outcomes]
    examples = next(leaves for leaves in rows if leaves)
    for k, outcome in enumerate(outcomes):
        structure = tree.structure(outcome.results)
        if outcome.results is None:
            rows[k] = [fill_in(leaf[:0], np.zeros(len(outcome.status), bool)) for leaf in examples]
        elif structure is not treedef:
            raise CampaignError(
                f"monte_carlo: run {outcome.start} returned another structure than others, "
                f"{treedef.difference(structure, 'result')}"
            )
    return treedef.unflatten([np.concatenate(column)[inside] for column in zip(*rows)])


def _draw_params(worker: Worker, runs: np.ndarray) -> Tree:
    """Draw the parameters of all runs again: that is quicker than carrying them along."""
    cuts = np.flatnonzero(np.diff(runs) != 1) + 1
    blocks = [worker.draw(int(b[0]), int(b[-1]) + 1) for b in np.split(runs, cuts) if len(b)]
    drawn = tree.map(lambda *rows: np.concatenate(rows), *blocks) if blocks else []
    return worker.sampler.params(drawn, len(runs))
