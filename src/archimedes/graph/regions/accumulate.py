"""``Accumulate``: values added to the elements of a block that indices name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run, Through
from archimedes.graph.regions.interval_sets import filled, union_of
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Accumulate"]


@lazy_dataclass(frozen=True, eq=False)
class Accumulate(Region):
    """Add values to the elements of a block of ``length`` zeros, in order.

    Inputs: a block of values, a block of as many int64 indices (clamped to the block).
    Output: the block.
    """

    length: int
    dtype: int

    @property
    def out_dtypes(self) -> list[int]:
        return [block_type(self.dtype, self.length)]

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.dtype)

    def faults(self, g: Graph) -> Iterator[str]:
        kinds = [g.dtype[i] for i in self.inputs.tolist()]
        count = length_of(kinds[0]) if kinds else 0
        if self.length < 1 or kinds != [block_type(self.dtype, count), block_type(I64, count)]:
            yield "does not take a block of values and one of as many indices"

    def retyped(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtype=dtype(self.dtype))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        made = np.zeros(self.length, dtype=DTYPES[item_type(self.dtype)])
        np.add.at(made, np.clip(values[1], 0, self.length - 1), values[0])
        return [made]

    def count(self, operations: Any, weight: Any) -> Counter[str]:
        return Counter()

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length

    def dependence(self, given: list[Any], through: Through) -> list[Any]:
        return [filled(union_of(given[0]), self.length)]
