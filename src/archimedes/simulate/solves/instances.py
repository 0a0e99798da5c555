"""The instances of a solve: initial states and arguments of one, or of many along a batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import backend_of
from archimedes.function.batching.batch_axes import to_front
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Instances", "instances_of", "one_instance"]


@lazy_dataclass
class Instances:
    """Initial states x0 (N, n) and arguments: leaves that differ have instances along axis 0.

    ``alone``: a single solve, whose arguments have no batch axis.
    """

    count: int
    x0: np.ndarray
    args: tuple[Any, ...]
    many: Sequence[bool] = ()
    alone: bool = False

    def _taken(self, chosen: Any) -> tuple[Any, ...]:
        leaves, treedef = tree.flatten(self.args)
        return treedef.unflatten(
            [leaf[chosen] if many else leaf for leaf, many in zip(leaves, self.many)]
        )

    def args_of(self, chosen: np.ndarray) -> tuple[Any, ...]:
        """Return the arguments of the chosen instances."""
        return self.args if len(chosen) == self.count else self._taken(chosen)

    def part(self, chosen: slice) -> Instances:
        """Return some of the instances."""
        x0 = self.x0[chosen]
        return Instances(len(x0), x0, self._taken(chosen), self.many)

    def axes(self) -> Any:
        """Return the axes of the arguments, as ``vmap`` takes them."""
        return tree.structure(self.args).unflatten([0 if many else None for many in self.many])


def one_instance(x0: np.ndarray, args: tuple[Any, ...]) -> Instances:
    """Return a single solve from x0 (n,)."""
    return Instances(1, x0[None], args, alone=True)


def instances_of(
    x0: Any, args: tuple[Any, ...], in_axes: Any
) -> tuple[int, Any, list[Any], list[bool]]:
    """Bring the batch axis of x0 and args to the front.

    ``in_axes`` has an entry for x0 and one for each argument: an axis, None (shared by all), or a
    tree of these; one number stands for all. Returns the count, x0, and leaves and flags of args.
    """
    given = (in_axes,) * (1 + len(args)) if isinstance(in_axes, int) else tuple(in_axes)
    if len(given) != 1 + len(args):
        raise ValueError(
            f"in_axes has {len(given)} entries, but there are {1 + len(args)} things to describe: "
            "x0 and each of args"
        )
    everything = (x0, *args)
    leaves, treedef = tree.flatten(everything)
    axes = [axis for value, axis in zip(everything, given) for axis in _spread(value, axis)]
    count = _fronted(leaves, axes, treedef)
    own = len(tree.leaves(x0))
    # Where nothing of x0 is mapped, what is shared goes to where the other arrays lie.
    homes = [home for leaf in leaves if (home := backend_of(leaf)) is not None]
    xp = homes[0].arrays.module() if homes else np
    states = [
        leaf if axis is not None else xp.broadcast_to(xp.asarray(leaf), (count, *np.shape(leaf)))
        for leaf, axis in zip(leaves[:own], axes)
    ]
    many = [axis is not None for axis in axes[own:]]
    return count, tree.structure(x0).unflatten(states), leaves[own:], many


def _fronted(leaves: list[Any], axes: Sequence[int | None], treedef: Any) -> int:
    """Move the batch axis of each leaf to the front, in place; return its length."""
    sizes: dict[str, int] = {}
    for k, (axis, path) in enumerate(zip(axes, treedef.paths())):
        if axis is None:
            continue
        if not -np.ndim(leaves[k]) <= axis < np.ndim(leaves[k]):
            name = "x0" if path.startswith("[0]") else "args"
            raise ValueError(
                f"in_axes asks for axis {axis} of a leaf of {name} of shape {np.shape(leaves[k])}, "
                "which has no such axis: use None for what all instances share"
            )
        leaves[k] = to_front(leaves[k], axis)
        sizes[path] = len(leaves[k])
    if not sizes:
        raise ValueError("in_axes is None for everything: there is nothing to batch over")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the batch axes have different lengths: {sizes}")
    count = next(iter(sizes.values()))
    if not count:
        raise ValueError("the batch is empty: its axes have length 0")
    return count


def _spread(value: Any, axis: Any) -> list[int | None]:
    """Return the axis of each leaf of a value."""
    if axis is None or isinstance(axis, (int, np.integer)):
        return [None if axis is None else int(axis)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda part: part is not value)
    entries, given = tree.flatten(axis, is_leaf=lambda part: part is not axis)
    difference = shape.difference(given, "", parts, entries)
    if difference is not None:
        raise ValueError(f"in_axes do not match what they are for: {difference}")
    return [found for part, entry in zip(parts, entries) for found in _spread(part, entry)]
