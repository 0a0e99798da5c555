"""What a worker does: draw the parameters of some runs, run the model on them, stack the results.

A task travels to workers of any kind; each keeps the programs it has recorded for it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function import vmap
from archimedes.graph.environment import in_default_environment
from archimedes.simulate.campaign_store import CampaignError
from archimedes.simulate.sampling import Sampler

__all__ = ["Task", "run_chunk"]

#: Campaigns whose programs a worker keeps.
KEPT = 8


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that decides the results, and a name that is new for each call."""

    name: str
    model: Callable[[Any], Any]
    distributions: Any
    seed: int
    vectorize: bool
    threads: int | None


class Worker:
    """A task made ready in this process."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sampler = Sampler(task.distributions, task.seed)
        self.many = vmap(self.one, threads=task.threads)

    def one(self, drawn: list[Any]) -> Any:
        """Run the model for what was drawn for one run."""
        return self.task.model(self.sampler.params(drawn))

    def identity(self) -> dict[str, Any]:
        """Return what the manifest of the campaign says."""
        native = self.task.vectorize
        model = (
            self.recording().graph.lasting_digest() if native else source_digest(self.task.model)
        )
        return {
            "seed": self.task.seed,
            "distributions": self.sampler.digest(),
            "model": model,
            "vectorize": native,
        }

    def recording(self) -> Any:
        """Return the program that the model is, all it reads included."""
        sample = tree.map(lambda leaf: leaf[0], self.sampler(0, 1))
        return recorded(lambda: self.many.compiled.recording(sample))

    def structure(self) -> Any:
        """Return the structure of the results; a model that is plain Python is called for it."""
        if self.task.vectorize:
            return self.recording().out_tree
        return tree.structure(self.run(0, 1)[1])

    def run(self, start: int, stop: int) -> tuple[Any, Any]:
        """Return the parameters and the results of some runs, stacked."""
        drawn = self.sampler(start, stop)
        if not self.task.vectorize:
            results = self.in_turn(drawn, start, stop)
        elif drawn:
            results = recorded(lambda: self.many(drawn))
        else:  # every run is the same
            results = repeat(recorded(lambda: self.many.compiled(drawn)), stop - start)
        return self.sampler.params(drawn, stop - start), results

    def in_turn(self, drawn: list[Any], start: int, stop: int) -> Any:
        """Call the model as plain Python for one run after the other."""
        rows = []
        for k in range(stop - start):
            mine = tree.map(lambda leaf, k=k: leaf[k], drawn)
            try:
                rows.append(self.one(mine))
            except Exception as error:
                raise CampaignError(
                    f"monte_carlo: run {start + k} failed, {type(error).__name__}: {error}"
                ) from error
        return stack(rows, start)


def recorded(work: Callable[[], Any]) -> Any:
    """Do work that records the model; where that cannot be, say how to run it all the same."""
    try:
        return work()
    except TraceError as error:
        error.add_note(
            "monte_carlo records the model to run many at once. To call it as plain Python, one "
            "run after the other, write vectorize=False."
        )
        raise


def repeat(result: Any, count: int) -> Any:
    return tree.map(lambda leaf: np.stack([np.asarray(leaf)] * count), result)


def stack(rows: list[Any], start: int) -> Any:
    """Stack the results of runs, which must have one structure and one shape per leaf."""
    columns, treedef = [], tree.structure(rows[0])
    for k, row in enumerate(rows):
        leaves, structure = tree.flatten(row)
        if structure is not treedef:
            where = treedef.difference(structure, "result")
            raise CampaignError(
                f"monte_carlo: run {start + k} returned another structure than run {start}, {where}"
            )
        columns.append([np.asarray(leaf) for leaf in leaves])
    for path, *arrays in zip(treedef.paths("result"), *columns):
        shapes = [a.shape for a in arrays]
        if len(set(shapes)) > 1:
            k = next(k for k, shape in enumerate(shapes) if shape != shapes[0])
            raise CampaignError(
                f"monte_carlo: {path} has shape {shapes[k]} in run {start + k} and {shapes[0]} in "
                f"run {start}: return the same shapes in every run (for trajectories give t_eval)"
            )
    return treedef.unflatten([np.stack(arrays) for arrays in zip(*columns)])


def source_digest(model: Callable[[Any], Any]) -> str:
    """Return a hash of the text of a model that runs as plain Python."""
    function = inspect.unwrap(model)
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        function = type(function)
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = f"{function.__module__}.{function.__qualname__}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


_WORKERS: dict[str, Worker] = {}
_LOCK = threading.Lock()


def worker_of(task: Task) -> Worker:
    """Return this process's worker for a task."""
    with _LOCK:
        worker = _WORKERS.get(task.name)
        if worker is None:
            while len(_WORKERS) >= KEPT:
                del _WORKERS[next(iter(_WORKERS))]
            worker = _WORKERS[task.name] = Worker(task)
        return worker


def forget(task: Task) -> None:
    """Let go of the worker for a task that is done."""
    with _LOCK:
        _WORKERS.pop(task.name, None)


@in_default_environment
def run_chunk(task: Task, start: int, stop: int) -> tuple[Any, Any]:
    """Return parameters and results of the runs `start` to `stop` (not included)."""
    return worker_of(task).run(start, stop)
