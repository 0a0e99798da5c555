"""Putting the runs of a campaign together: those just made and those on disk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.simulate.campaigns.chunk_store import (
    MESSAGES,
    STATUS,
    CampaignError,
    Chunk,
    read_chunk,
)
from archimedes.simulate.campaigns.failed_runs import RAISED, fill_in, statuses_of
from archimedes.simulate.campaigns.workers import Outcome, Task, Worker, worker_of
from archimedes.simulate.trajectory.columns import label_leaves

__all__ = ["collect", "named_arrays"]


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
