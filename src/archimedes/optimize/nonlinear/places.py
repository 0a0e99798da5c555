"""``AtPlaces``: a function of few unknowns, used at many places of a large problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import vmap

__all__ = ["AtPlaces", "joined_objective"]


class AtPlaces:
    """``func(z, *data[k], *args)`` with z = x[index[k]], for all k: many terms or constraints.

    As the objective of :func:`minimize` it is the sum of the terms, as a constraint their array,
    (places, ...). ``index`` (places, nz) says which of the ravelled unknowns each place takes;
    ``data`` are arrays with a row for each place. Only ``func`` is recorded, differentiated and
    compiled: setting up does not depend on the number of places, which are evaluated together on
    SIMD lanes. Called with unknowns it evaluates all places, as a plain function.

    >>> pairs = np.stack([np.arange(4), np.arange(1, 5)], axis=1)
    >>> AtPlaces(lambda z: z[1] - z[0], pairs)(np.arange(5.0) ** 2)
    array([1., 3., 5., 7.])
    """

    def __init__(self, func: Callable[..., Any], index: Any, *data: Any) -> None:
        if not callable(func):
            raise TypeError("AtPlaces: func must be a function of z, the unknowns of one place")
        self.func = func
        self.index = np.asarray(index)
        if self.index.ndim != 2 or not np.issubdtype(self.index.dtype, np.integer):
            raise ValueError(
                f"AtPlaces: index must be an array of integers (places, unknowns of each), it is "
                f"{self.index.dtype} of shape {self.index.shape}"
            )
        self.data = tuple(np.asarray(rows) * 1.0 for rows in data)
        for k, rows in enumerate(self.data):
            if len(rows) != len(self.index):
                raise ValueError(
                    f"AtPlaces: data {k} has {len(rows)} rows for {len(self.index)} places"
                )
        self.__name__ = getattr(func, "__name__", "places")

    def __call__(self, x: Any, *args: Any) -> Any:
        """Return the values at all places, (places, ...)."""
        flat = tree.ravel(x)[0]
        axes = (0,) * (1 + len(self.data)) + (None,) * len(args)
        return vmap(self.func, in_axes=axes)(flat[self.index], *self.data, *args)

    def check(self, size: int, what: str) -> None:
        """Raise if a place takes an unknown that is not there."""
        if self.index.size and not 0 <= self.index.min() <= self.index.max() < size:
            raise ValueError(
                f"{what}: index goes from {self.index.min()} to {self.index.max()}, but there are "
                f"{size} unknowns"
            )


def joined_objective(obj: Any) -> Callable[..., Any]:
    """Return the objective as one function: parts are added, places summed up."""
    parts: Sequence[Any] = obj if isinstance(obj, (list, tuple)) else (obj,)
    if not parts or not all(callable(part) for part in parts):
        kind = type(obj).__name__
        raise TypeError(
            f"obj must be a function (or a list of functions to add), got {kind}: write "
            "minimize(f, x0), not minimize(f(x0), x0)"
        )
    if len(parts) == 1 and not isinstance(parts[0], AtPlaces):
        return parts[0]

    def objective(x: Any, *args: Any) -> Any:
        return sum(np.sum(part(x, *args)) for part in parts)

    objective.__name__ = getattr(parts[0], "__name__", "objective")
    return objective
