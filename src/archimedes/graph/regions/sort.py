"""``Sort``: the positions that sort the rows of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import I64, block_type
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, OneBody, Run, Through
from archimedes.graph.regions.body_checks import input_faults
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Sort"]


@lazy_dataclass(frozen=True, eq=False)
class Sort(OneBody):
    """Find the positions that sort each of ``rows`` rows of ``length`` records, ascending.

    Inputs: the keys of all records, a block for each, the first one foremost; nan is greater than
    all numbers. Output: a block of positions in the row; equal records keep their order.

    The body says how it is done by code. NumPy's own sort gives the same positions: there is only
    one answer.
    """

    rows: int
    length: int

    @property
    def out_dtypes(self) -> list[int]:
        return [block_type(I64, self.rows * self.length)]

    def settings(self) -> tuple[Any, ...]:
        return (self.rows, self.length)

    def summary(self) -> str:
        return f"{self.rows} rows of {self.length}"

    def faults(self, g: Graph) -> Iterator[str]:
        yield from input_faults(g, self.inputs.tolist(), self.body, "body")
        if self.body.output_dtypes != self.out_dtypes:
            yield "has a body that does not return the positions"

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        keys = [np.asarray(value).reshape(self.rows, self.length) for value in values]
        found = np.lexsort(keys[::-1], axis=-1)
        return [found.astype(np.int64, copy=False).reshape(-1)]

    def dependence(self, given: list[Any], through: Through) -> list[Any]:
        return [0]

    # Positions have no derivatives.

    def push_forward(self, dst: Graph, given: list[Directions]) -> tuple[Any, list[Directions]]:
        return dst.region(self), [{}]

    def record(self, dst: Graph) -> tuple[np.ndarray, Any]:
        outs = dst.region(self)
        return outs, outs

    def pull_back(
        self, dst: Graph, adjoints: list[Directions], saved: Any, wanted: Sequence[bool]
    ) -> list[Directions]:
        return [{} for _ in self.inputs]
