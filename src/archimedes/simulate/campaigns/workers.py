"""What a worker does: draw the parameters of some runs, run the model on them, stack the results.

A task travels to workers of any kind; each keeps the programs it has recorded for it.
"""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST
from archimedes.backends.registry import AUTO, get_backend
from archimedes.errors import TraceError, refer_to
from archimedes.function import Compiled, vmap
from archimedes.function.dependencies.stable_digest import stable_digest
from archimedes.function.dependencies.states import whole_fingerprint
from archimedes.simulate.campaigns.campaign import NUMERICAL, fill_in, statuses_of
from archimedes.simulate.campaigns.chunk_store import RAISED, CampaignError
from archimedes.simulate.campaigns.distributions import Sampler
from archimedes.system.floating_point import in_default_environment

if TYPE_CHECKING:
    from archimedes.typing import Tree

#: Campaigns whose programs a worker keeps.
CAPACITY = 8


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that decides the results, and a name that is new for each call."""

    name: str
    model: Callable[[Any], Any]
    distributions: Any
    seed: int
    vectorize: bool
    threads: int | None
    backend: str = AUTO


class Outcome(NamedTuple):
    """What the runs `start` to `stop` gave, stacked; `results` is None where all have failed.

    `messages` has the words of runs that raised an error.
    """

    start: int
    stop: int
    params: Any
    results: Any
    status: np.ndarray
    messages: dict[int, str]


class Worker:
    """A task made ready in this process."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sampler = Sampler(task.distributions, task.seed)
        compiled = Compiled(self.one, watch=(task.model,), backend=task.backend)
        self.many = vmap(compiled, threads=task.threads)
        # On a device all that goes there are the numbers of the runs.
        there = get_backend(task.backend).arrays is not HOST
        drawing = Compiled(self.draw_and_run, watch=(task.model,), backend=task.backend)
        self.drawn = vmap(drawing) if there and self.sampler.places else None
        self.draws = vmap(Compiled(self.sampler.one, backend=task.backend))
        self._state = whole_fingerprint(task.model)

    def one(self, drawn: list[Any]) -> Any:
        """Run the model for what was drawn for one run."""
        return self.task.model(self.sampler.params(drawn))

    def draw_and_run(self, run: Any) -> tuple[list[Any], Any]:
        """Draw for the run of a number, and run the model."""
        drawn = self.sampler.one(run)
        return drawn, self.one(drawn)

    def draw(self, start: int, stop: int) -> list[Any]:
        """Draw runs `start` to `stop` (not included), where the model runs."""
        there = self.drawn is not None
        return self.draws(np.arange(start, stop)) if there else self.sampler(start, stop)

    def identity(self) -> dict[str, Any]:
        """Return what the manifest of the campaign says."""
        return {
            "seed": self.task.seed,
            "distributions": self.sampler.digest(),
            "model": self.model_digest(),
            "vectorize": self.task.vectorize,
        }

    def model_digest(self) -> str:
        """Return a hash of the model and all it reads: of the program it is, where it has one."""
        h = hashlib.blake2b(digest_size=16)
        plain = not self.task.vectorize
        if self.task.vectorize:
            recording = self.recording()
            h.update(recording.graph.digest(lasting=True).encode())
            fixed = [out.spec.value for out in recording.outs if not out.spec.traced]
            h.update(stable_digest(fixed).encode())
            plain = bool(recording.graph.effects())
        if plain:  # of plain Python, only its text and what it reads are known
            try:
                h.update(stable_digest(self.task.model).encode())
            except TypeError as error:
                raise CampaignError(
                    f"monte_carlo: the model cannot be kept in a folder, {error}. Make it in the "
                    "model instead of reading it from outside"
                ) from error
        return h.hexdigest()

    def check_model(self) -> None:
        """Refuse to go on if the model has changed since the start."""
        if self.task.vectorize and whole_fingerprint(self.task.model) != self._state:
            raise CampaignError(
                "monte_carlo: something the model reads was changed while the campaign ran: its "
                "runs would be those of two models. Pass what varies as a parameter"
            )

    def recording(self) -> Any:
        """Return the program that the model is, all it reads included."""
        sample = tree.map(lambda leaf: leaf[0], self.sampler(0, 1))
        return explain_tracing(lambda: self.many.compiled.recording(sample))

    def structure(self, run: int) -> Any:
        """Return the structure of results; a model that is plain Python makes a `run` for it."""
        if self.task.vectorize:
            return self.recording().out_tree
        return tree.structure(self.run(run, run + 1).results)

    def run(self, start: int, stop: int) -> Outcome:
        """Make some runs."""
        self.check_model()
        count, messages, many = stop - start, dict[int, str](), self.drawn
        if many is not None and self.task.vectorize:
            drawn, results = explain_tracing(lambda: many(np.arange(start, stop)))
        else:
            drawn = self.sampler(start, stop)
            if not self.task.vectorize:
                results, messages = self.in_turn(drawn, start, stop)
            elif drawn:
                results = explain_tracing(lambda: self.many(drawn))
            else:  # every run is the same
                same = explain_tracing(lambda: self.many.compiled(drawn))
                results = tree.map(lambda leaf: np.stack([np.asarray(leaf)] * count), same)
        if results is not None or not messages:
            check_result(self.task.model, results)
        status = statuses_of(results, count)
        status[[run - start for run in messages]] = RAISED
        params = self.sampler.params(drawn, count)
        return Outcome(start, stop, params, results, status, messages)

    def in_turn(self, drawn: list[Any], start: int, stop: int) -> tuple[Any, dict[int, str]]:
        """Call the model as plain Python for one run after the other."""
        rows, messages = {}, {}
        for run in range(start, stop):
            mine = tree.map(lambda leaf, k=run - start: leaf[k], drawn)
            try:
                rows[run] = self.one(mine)
            except NUMERICAL as error:
                messages[run] = f"{type(error).__name__}: {error}"
            except Exception as error:
                raise CampaignError(
                    f"monte_carlo: run {run} failed, {type(error).__name__}: {error}"
                ) from error
        if not messages:
            return stack(rows), messages
        good = np.array([run in rows for run in range(start, stop)])
        return tree.map(lambda leaf: fill_in(leaf, good), stack(rows)) if rows else None, messages


def check_result(model: Callable[[Any], Any], results: Tree) -> None:
    """Raise where the model returned nothing."""
    if not tree.leaves(results):
        code = getattr(inspect.unwrap(model), "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        message = f"monte_carlo: the model{where} returned nothing ({results!r}): is a return "
        raise CampaignError(message + "missing?" + refer_to("campaign"))


def explain_tracing(work: Callable[[], Any]) -> Any:
    """Do work that records the model; where that cannot be, say how to run it all the same."""
    try:
        return work()
    except TraceError as error:
        error.add_note(
            "monte_carlo records the model to run many at once. To call it as plain Python, one "
            "run after the other, write vectorize=False."
        )
        raise


def stack(rows: dict[int, Any]) -> Any:
    """Stack the results of runs, which must have one structure and one shape per leaf."""
    runs, columns = list(rows), []
    treedef = tree.structure(rows[runs[0]])
    for run, row in rows.items():
        leaves, structure = tree.flatten(row)
        if structure is not treedef:
            where = treedef.difference(structure, "result")
            raise CampaignError(
                f"monte_carlo: run {run} returned another structure than run {runs[0]}, {where}"
            )
        columns.append([np.asarray(leaf) for leaf in leaves])
    for path, *arrays in zip(treedef.paths("result"), *columns):
        shapes = [a.shape for a in arrays]
        if len(set(shapes)) > 1:
            k = next(k for k, shape in enumerate(shapes) if shape != shapes[0])
            raise CampaignError(
                f"monte_carlo: {path} has shape {shapes[k]} in run {runs[k]} and {shapes[0]} in "
                f"run {runs[0]}: return the same shapes in every run (for trajectories give t_eval)"
            )
    return treedef.unflatten([np.stack(arrays) for arrays in zip(*columns)])


_WORKERS: dict[str, Worker] = {}
_LOCK = threading.Lock()


def worker_of(task: Task) -> Worker:
    """Return this process's worker for a task."""
    with _LOCK:
        worker = _WORKERS.get(task.name)
        if worker is None:
            while len(_WORKERS) >= CAPACITY:
                del _WORKERS[next(iter(_WORKERS))]
            worker = _WORKERS[task.name] = Worker(task)
        return worker


def forget(task: Task) -> None:
    """Forget the worker of a task that is done."""
    with _LOCK:
        _WORKERS.pop(task.name, None)


@in_default_environment
def run_chunk(task: Task, start: int, stop: int) -> Outcome:
    """Make the runs `start` to `stop` (not included)."""
    return worker_of(task).run(start, stop)
