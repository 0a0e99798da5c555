"""``Host``: a call back into Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import DerivativeRule, Region, Run
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Host"]


@lazy_dataclass(frozen=True, eq=False)
class Host(Region):
    """Call back into Python with the input values (as one flat list), get a flat list of values.

    ``derivative`` is as in ``Call``. ``label`` names the function in text and errors.
    """

    function: Callable[[list[Any]], list[Any]]
    dtypes: tuple[int, ...]
    label: str
    derivative: DerivativeRule | None = None
    #: Calls are kept apart even when equal: a host function may have effects.
    serial: object = field(default_factory=object)

    has_effects = True

    @property
    def out_dtypes(self) -> list[int]:
        return list(self.dtypes)

    def settings(self) -> tuple[Any, ...]:
        return (id(self.function), id(self.serial))

    def summary(self) -> str:
        return self.label

    def faults(self, g: Graph) -> Iterator[str]:
        if not callable(self.function):
            yield "has no function to call"

    def retyped(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtypes=tuple(dtype(d) for d in self.dtypes))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        shape = np.broadcast_shapes(*(np.shape(x) for x in values)) if values else ()
        if shape == ():
            return self.function(values)
        wide = [np.broadcast_to(x, shape) for x in values]
        results = [np.empty(shape, dtype=DTYPES[d]) for d in self.dtypes]
        for at in np.ndindex(*shape):
            for result, out in zip(results, self.function([x[at] for x in wide])):
                result[at] = out
        return results
