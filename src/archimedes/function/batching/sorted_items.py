"""Sorted items evaluated along rows, natively: for one sequence, or for many instances at once.

:func:`over_runs` maps over sorted items, each with the row it belongs to. :class:`RepeatedBatch`
repeats a function for many instances (see ``repeated_calls.py``) and evaluates items on the way, in
one kernel: for backends whose threads have an instance each and need not wait for one another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.protocol import Backend
from archimedes.function.batching.batch_axes import instance
from archimedes.function.batching.vmap import vmap
from archimedes.function.compiled import Compiled
from archimedes.tree.treedef import TreeDef


def over_runs(function: Compiled, width: int) -> RunByRun:
    """Map ``function(row, item) -> result`` (of float64) over sequences of rows and items.

    ``over_runs(...).bound(key, items, sign, results)`` returns ``f(rows, indices, done)``. Of each
    sequence of ``rows`` (N, s, width), an item of ``items`` (m,) belongs to the first row whose
    column ``key`` is not before it; both ascend (descend where ``sign`` is -1). ``done`` (N,) is
    how many items each sequence has behind it, and is moved on. Results go to
    ``results[indices[k]]``, (N', m, n), in sequence k; behind the items done they are undefined.
    ``along`` is the same for one sequence whose rows lie in the same memory at each call.

    >>> from archimedes.function import compile
    >>> rows, items = np.array([[[1.0, 10.0], [2.0, 20.0]]]), np.array([0.5, 1.0, 1.5, 3.0])
    >>> done, results = np.array([0]), np.zeros((1, 4, 1))
    >>> over = over_runs(compile(lambda row, item: (row[1] + item)[None]), 2)
    >>> over.bound(0, items, 1.0, results)(rows, np.array([0]), done)
    >>> done, results[0, :3, 0]
    (array([3]), array([10.5, 11. , 21.5]))
    """
    _, _, tiers = function.lookup((np.zeros(width), np.float64(0.0)), {})
    runs = None if tiers is None else tiers.kernel().sorted_runs()
    return RunByRun(vmap(function, in_axes=(None, 0))) if runs is None else runs


class RunByRun:
    """The same in Python, where a backend does not offer it: what one offers has these methods."""

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.function = function

    def along(
        self, key: int, rows: np.ndarray, done: np.ndarray
    ) -> Callable[[int, np.ndarray, float, np.ndarray], None]:
        """Return ``f(steps, items, sign, results)``."""
        here = np.zeros(1, np.int64)

        def run(steps: int, items: np.ndarray, sign: float, results: np.ndarray) -> None:
            self.bound(key, items, sign, results[None])(rows[None, :steps], here, done)

        return run

    def bound(
        self, key: int, items: np.ndarray, sign: float, results: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
        """Return ``f(rows, indices, done)``."""

        def run(rows: np.ndarray, indices: np.ndarray, done: np.ndarray) -> None:
            for k, (sequence, index) in enumerate(zip(rows, indices)):
                stops = np.searchsorted(sign * items, sign * sequence[:, key], side="right")
                for row, stop in zip(sequence, stops.tolist()):
                    if stop > done[k]:
                        part = slice(int(done[k]), stop)
                        results[index, part] = self.function(row, items[part])
                        done[k] = stop

        return run


class Items(NamedTuple):
    """Sorted ``values`` (m,), which ascend, or descend where ``sign`` is -1, and their results.

    ``done`` (N,) is how many of them each instance has behind it, ``results`` (N', m, n) are those
    of all instances, and ``indices`` (N,) where each is among them. Arrays are the backend's, but
    for the values, which are NumPy's.
    """

    values: np.ndarray
    sign: float
    indices: Any
    done: Any
    results: Any


class _BatchKernel(NamedTuple):
    """A kernel for one kind of arguments: what to call, and what it takes of the leaves."""

    run: Callable[..., None]
    state: list[tuple[int, tuple[int, ...]]]
    #: For each leaf that stays: its dtype and shape, and whether it has a row per instance.
    fixed: list[tuple[int, tuple[int, ...], bool]]
    traced: list[bool]


class RepeatedBatch:
    """``step(state, *fixed, item) -> (state, row, made, going)``, repeated for each of a batch.

    ``item`` is the next one to come. After each round, items that are not behind column ``key`` of
    the row are evaluated by ``at(row, item)``. An instance goes on until ``going`` is false or it
    has all items behind it. Rows have ``width`` float64 numbers.
    """

    def __init__(
        self, step: Compiled, at: Compiled, width: int, key: int, backend: Backend
    ) -> None:
        self.step, self.at, self.width, self.key = step, at, width, key
        self.backend = backend
        self._known: dict[Any, _BatchKernel] = {}

    def __call__(
        self, state: Any, fixed: tuple[Any, ...], many: Sequence[bool], items: Items
    ) -> Any:
        """Go on from a state, and return the new one, in the same arrays where they can be kept.

        Arrays are the backend's. Leaves of ``state`` have the instances in front, and so have
        those of ``fixed`` that are marked in ``many``. ``items.done`` is moved on.
        """
        leaves, treedef = tree.flatten(state)
        others, fixed_tree = tree.flatten(fixed)
        key = (treedef, fixed_tree, tuple(many), tuple(map(_kind, others, many)))
        kernel = self._known.get(key)
        if kernel is None:
            kernel = self._make_kernel(leaves, treedef, others, fixed_tree, many)
            self._known[key] = kernel
        take, count = self.backend.arrays.take, len(items.indices)
        arrays = [take(x, code, (count, *shape)) for x, (code, shape) in zip(leaves, kernel.state)]
        numbers = itertools.compress(others, kernel.traced)
        constants = [
            take(x, code, (count, *shape) if own else shape)
            for x, (code, shape, own) in zip(numbers, kernel.fixed)
        ]
        kernel.run(arrays, constants, *items)
        return treedef.unflatten(arrays)

    def _make_kernel(
        self,
        leaves: Sequence[Any],
        treedef: TreeDef,
        others: Sequence[Any],
        fixed_tree: TreeDef,
        many: Sequence[bool],
    ) -> _BatchKernel:
        sample = treedef.unflatten([instance(leaf) for leaf in leaves])
        shared = [instance(x) if own else x for x, own in zip(others, many, strict=True)]
        one = (sample, *fixed_tree.unflatten(shared), np.float64(0.0))
        _, recording, tiers = self.step.lookup(one, {})
        _, _, at = self.at.lookup((np.zeros(self.width), np.float64(0.0)), {})
        if tiers is None or at is None:
            raise TypeError(f"{self.step.name}: repeated calls are for numbers")
        carry, name = len(leaves), self.backend.name
        traced = [spec.traced for spec in recording.leaves[carry:-1]]
        own = list(itertools.compress(many, traced))
        kinds = [(spec.code, spec.shape) for spec in recording.leaves[:-1] if spec.traced]
        run = tiers.on(name).kernel().repeating_batch(at.on(name).kernel(), carry, own, self.key)
        if run is None:
            raise TypeError(f"backend {name!r} does not repeat programs for many instances")
        fixed = [(*kind, mine) for kind, mine in zip(kinds[carry:], own)]
        return _BatchKernel(run, kinds[:carry], fixed, traced)


def _kind(leaf: Any, many: bool) -> Any:
    """Return what tells kinds of leaves apart."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None:
        return tuple(leaf.shape)[many:], dtype
    return type(leaf) if isinstance(leaf, (int, float)) else (type(leaf), leaf)
