"""Functions repeated for many instances at once, with sorted items evaluated on the way.

What ``repeats.py`` is for one instance and ``sorted_runs.py`` for items, in one kernel: for
backends whose threads have an instance each and need not wait for one another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.protocol import Backend
from archimedes.function.batching.batch_axes import instance
from archimedes.function.compiled import Compiled
from archimedes.tree.treedef import TreeDef

__all__ = ["Items", "RepeatedBatch"]


class Items(NamedTuple):
    """Sorted ``values`` (m,), which ascend, or descend where ``sign`` is -1, and their results.

    ``done`` (N,) is how many of them each instance has behind it, ``results`` (N', m, n) are those
    of all instances, and ``places`` (N,) where each is among them. Arrays of the backend's, but for
    the values, which are NumPy's.
    """

    values: np.ndarray
    sign: float
    places: Any
    done: Any
    results: Any


class _OneKind(NamedTuple):
    """A kernel for one kind of arguments: what to call, and what it takes of the leaves."""

    run: Callable[..., None]
    state: list[tuple[int, tuple[int, ...]]]
    #: For each leaf given: its dtype and shape, and whether it has a row per instance.
    given: list[tuple[int, tuple[int, ...], bool]]
    traced: list[bool]


class RepeatedBatch:
    """``step(state, *given, item) -> (state, row, made, going)``, repeated for each of a batch.

    ``item`` is the next one to come. After each round, items that are not behind column ``key`` of
    the row are evaluated by ``at(row, item)``. An instance goes on until ``going`` is false or it
    has all items behind it. Rows have ``width`` float64 numbers.
    """

    def __init__(
        self, step: Compiled, at: Compiled, width: int, key: int, backend: Backend
    ) -> None:
        self.step, self.at, self.width, self.key = step, at, width, key
        self.backend = backend
        self._known: dict[Any, _OneKind] = {}

    def __call__(
        self, state: Any, given: tuple[Any, ...], many: Sequence[bool], items: Items
    ) -> Any:
        """Go on from a state, and return the new one, in the same arrays where they can be kept.

        Arrays are the backend's. Leaves of ``state`` have the instances in front, and so have
        those of ``given`` that are marked in ``many``. ``items.done`` is moved on.
        """
        leaves, treedef = tree.flatten(state)
        others, given_tree = tree.flatten(given)
        key = (treedef, given_tree, tuple(many), tuple(map(_kind, others, many)))
        found = self._known.get(key)
        if found is None:
            found = self._made(leaves, treedef, others, given_tree, many)
            self._known[key] = found
        take, count = self.backend.arrays.take, len(items.places)
        arrays = [take(x, code, (count, *shape)) for x, (code, shape) in zip(leaves, found.state)]
        numbers = itertools.compress(others, found.traced)
        kept = [
            take(x, code, (count, *shape) if own else shape)
            for x, (code, shape, own) in zip(numbers, found.given)
        ]
        found.run(arrays, kept, *items)
        return treedef.unflatten(arrays)

    def _made(
        self,
        leaves: Sequence[Any],
        treedef: TreeDef,
        others: Sequence[Any],
        given_tree: TreeDef,
        many: Sequence[bool],
    ) -> _OneKind:
        sample = treedef.unflatten([instance(leaf) for leaf in leaves])
        shared = [instance(x) if own else x for x, own in zip(others, many, strict=True)]
        one = (sample, *given_tree.unflatten(shared), np.float64(0.0))
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
        given = [(*kind, mine) for kind, mine in zip(kinds[carry:], own)]
        return _OneKind(run, kinds[:carry], given, traced)


def _kind(leaf: Any, many: bool) -> Any:
    """Return what tells kinds of leaves apart."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None:
        return tuple(leaf.shape)[many:], dtype
    return type(leaf) if isinstance(leaf, (int, float)) else (type(leaf), leaf)
