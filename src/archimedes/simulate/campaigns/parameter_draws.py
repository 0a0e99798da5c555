"""Random parameters by run number: run i is the same in every campaign of the same seed.

Every distribution in the tree has a key of its own (`arc.random`), made of the seed and the name of
its place, and every run a key below that. So a run depends neither on how many there are, nor on
who computes it, nor on the other parameters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.errors import StructError
from archimedes.function import vmap
from archimedes.random import fold_in
from archimedes.simulate.campaigns.distributions import GENERATOR, Distribution, place_key, run_keys
from archimedes.simulate.trajectory.columns import label_leaves

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["disperse"]


class Sampler:
    """Draws parameter trees: the tree given, with a value for each distribution in it.

    ``sampler(start, stop)`` returns what is drawn for these runs, a list of trees with a leading
    axis; ``sampler.params(drawn)`` puts one run's part, or all of them, into the parameter tree.
    """

    def __init__(self, distributions: Tree, seed: int) -> None:
        self.leaves, self.treedef = tree.flatten(distributions)
        self.seed = seed
        self.names = [label.name for label in label_leaves(self.treedef, "params")]
        self.places = [k for k, d in enumerate(self.leaves) if isinstance(d, Distribution)]
        self._draw = vmap(self._draw_one, name="draw")

    def _draw_one(self, *uniforms: Any) -> list[Any]:
        return [self.leaves[k].draw(u) for k, u in zip(self.places, uniforms)]

    def __call__(self, start: int, stop: int) -> list[Any]:
        """Draw runs `start` to `stop` (not included)."""
        blocks = self._source(start, stop)
        return self._draw(*blocks) if blocks else []

    def one(self, run: Any) -> list[Any]:
        """Draw the run of a number, which may be traced: what a call gives it, bit for bit."""
        keys = [fold_in(place_key(self.seed, self.names[k]), run) for k in self.places]
        return self._draw_one(
            *(self.leaves[k].source(key[None])[0] for k, key in zip(self.places, keys))
        )

    def _source(self, start: int, stop: int) -> list[np.ndarray]:
        """Return what the distributions make their values of."""
        return [
            self.leaves[k].source(run_keys(self.seed, self.names[k], start, stop))
            for k in self.places
        ]

    def params(self, drawn: list[Any], count: int | None = None) -> Any:
        """Return the parameter tree with the drawn values in place of the distributions.

        With `count`, for as many runs, fixed numbers are repeated for each.
        """
        values = list(self.leaves)
        if count is not None:
            values = [repeat_leaf(leaf, count) for leaf in values]
        for k, value in zip(self.places, drawn):
            values[k] = value
        return self.treedef.unflatten(values)

    def digest(self) -> str:
        """Return a hash of what is drawn: the program that draws, and the fixed values."""
        h = hashlib.blake2b(GENERATOR.encode(), digest_size=16)
        sample = [block[0] for block in self._source(0, 1)]
        h.update(self._draw.compiled.graph(*sample).digest(lasting=True).encode())
        for k, leaf in enumerate(self.leaves):
            h.update(self.names[k].encode() + (b"" if k in self.places else fixed_bytes(leaf)))
        h.update(repr(self.treedef).encode())
        return h.hexdigest()


def is_numeric(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "biufc"


def repeat_leaf(leaf: Any, count: int) -> Any:
    return np.broadcast_to(leaf, (count, *np.shape(leaf))) if is_numeric(leaf) else leaf


def fixed_bytes(leaf: Any) -> bytes:
    array = np.asarray(leaf)
    text = f"{array.dtype}{array.shape}" if is_numeric(leaf) else repr(leaf)
    return text.encode() + (array.tobytes() if is_numeric(leaf) else b"")


def disperse(nominal: Tree, distributions: Mapping[str, Any]) -> Any:
    """Return nominal parameters with distributions in place of some of them.

    Unlike the constructor of a struct, this does not run the checks of the struct, which know only
    numbers.

    Parameters
    ----------
    nominal : tree
        Parameters of the model.
    distributions : mapping
        Distributions by the name of the leaf, as in `tree.paths`: ``"m"``, ``"wing.area"``.

    Returns
    -------
    tree
        The tree for `monte_carlo`.

    Examples
    --------
    >>> from archimedes.simulate.campaigns.distributions import Normal
    >>> disperse({"mass": 2.0, "drag": 0.1}, {"mass": Normal(2.0, 0.1)})["drag"]
    0.1
    """
    leaves, treedef = tree.flatten(nominal)
    names = [label.name for label in label_leaves(treedef, "", prefix=False)]
    for name, distribution in distributions.items():
        if name not in names:
            raise StructError(f"disperse: no leaf {name!r}; there are {names}")
        leaves[names.index(name)] = distribution
    return treedef.unflatten(leaves)
