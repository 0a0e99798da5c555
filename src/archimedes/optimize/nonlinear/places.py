"""``AtPlaces``: a function of few unknowns, used at many places of a large problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import vmap
from archimedes.function.identity.object_parts import PARTS

__all__ = ["AtPlaces", "check_objective"]


class AtPlaces:
    """A function that is evaluated at many places: many terms or constraints.

    For all k it is ``func(z, *data[k], *args)`` with z = x[index[k]]. As the objective of
    :func:`minimize` it is the sum of the terms, as a constraint their array (places, ...). Only
    `func` is recorded, differentiated and compiled, so that the time to set up does not depend on
    the number of places. They are evaluated together on SIMD lanes. Called with unknowns, it
    evaluates all places as a plain function.

    Parameters
    ----------
    func : callable
        Function ``func(z, *data[k], *args)`` of the unknowns z at one place.
    index : array of int (places, nz)
        Numbers of the ravelled unknowns that each place takes.
    *data
        Arrays with a row for each place.

    Examples
    --------
    >>> pairs = np.stack([np.arange(4), np.arange(1, 5)], axis=1)
    >>> AtPlaces(lambda z: z[1] - z[0], pairs)(np.arange(5.0) ** 2)
    array([1., 3., 5., 7.])
    """

    def __init__(self, func: Callable[..., Any], index: Any, *data: Any) -> None:
        if not callable(func):
            raise TypeError("AtPlaces: func must be a function of z, the unknowns of one place")
        self.func = func
        self.index = np.array(index)
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
        for rows in (self.index, *self.data):
            rows.flags.writeable = False  # so that nobody need compare them
        self.__name__ = getattr(func, "__name__", "places")

    def __call__(self, x: Any, *args: Any) -> Any:
        """Return the values at all places, (places, ...)."""
        flat = tree.ravel(x)[0]
        axes = (0,) * (1 + len(self.data)) + (None,) * len(args)
        return vmap(self.func, in_axes=axes)(flat[self.index], *self.data, *args)

    def check(self, size: int, what: str) -> None:
        """Raise if a place takes an unknown that is not there.

        Parameters
        ----------
        size : int
            Number of unknowns.
        what : str
            Name in the error message.
        """
        if self.index.size and not 0 <= self.index.min() <= self.index.max() < size:
            raise ValueError(
                f"{what}: index goes from {self.index.min()} to {self.index.max()}, but there are "
                f"{size} unknowns"
            )


PARTS[AtPlaces] = lambda places: (places.func, places.index, *places.data)


def check_objective(parts: Sequence[Any]) -> Any:
    """Return the part that names an objective; raise if one is no function."""
    if not parts or not all(callable(part) for part in parts):
        bad = [type(part).__name__ for part in parts if not callable(part)]
        raise TypeError(
            f"obj must be a function (or a list of functions to add), got "
            f"{bad[0] if bad else 'an empty list'}: write minimize(f, x0), not minimize(f(x0), x0)"
        )
    return parts[0]
