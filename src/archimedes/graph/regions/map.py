"""``Map``: a body run for each of many instances, none of which knows of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from archimedes.graph.program import Graph
from archimedes.graph.regions.base import OneBody, Region, Run, Through
from archimedes.graph.regions.blocks import has_blocks
from archimedes.graph.regions.body_checks import input_faults, slice_faults
from archimedes.graph.regions.cutting import Cut, Cutter
from archimedes.graph.regions.scan import Scan, times
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Map"]


@lazy_dataclass(frozen=True, eq=False)
class Map(OneBody):
    """Run a body for each of ``length`` instances.

    Inputs: ``length * slices`` values (instance after instance), then shared ones. Body:
    (slice, shared) -> out. Outputs: all outs, instance after instance.
    """

    length: int
    slices: int

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes * self.length

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.slices)

    def summary(self) -> str:
        return f"{self.length} instances, {self.slices} each"

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Split the inputs into slices of shape (length, slices) and shared."""
        m = self.length * self.slices
        return self.inputs[:m].reshape(self.length, self.slices), self.inputs[m:]

    def faults(self, g: Graph) -> Iterator[str]:
        yield from slice_faults(len(self.inputs), 0, self.length, self.slices)
        stacked, shared = (part.tolist() for part in self.parts())
        for row in stacked:
            yield from input_faults(g, [*row, *shared], self.body, "body")

    def cut(self, cutter: Cutter, used: list[int]) -> Cut:
        loop = Scan(self.inputs, self.body, self.length, 0, self.slices, line=self.line)
        cut = loop.cut(cutter, used)
        scan = cut.region
        if scan is None:
            return cut

        def make(ids: np.ndarray) -> Region:
            made: Any = scan(ids)
            return Map(ids, made.body, made.length, made.slices, line=self.line)

        return Cut(cut.inputs, make, cut.outputs)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        s, length = self.slices, self.length
        if length == 0:
            return []
        if has_blocks(self.body):
            shared = values[length * s :]
            rows = [values[k * s : (k + 1) * s] for k in range(length)]
            return [x for row in rows for x in run(self.body, [*row, *shared])]
        stacked = [
            np.stack(np.broadcast_arrays(*(values[k * s + j] for k in range(length))), axis=-1)
            for j in range(s)
        ]
        shared = [x[..., None] if np.ndim(x) else x for x in values[length * s :]]
        outs = run(self.body, [*stacked, *shared])
        wide = [out if np.ndim(out) else np.broadcast_to(out, (length,)) for out in outs]
        wide = [np.broadcast_to(o, (*o.shape[:-1], length)) for o in wide]
        return [o[..., k] for k in range(length) for o in wide]

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        return times(operations(self.body), self.length)

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length * body(self.body)

    def dependence(self, given: list[int], through: Through) -> list[int]:
        s, m = self.slices, self.length * self.slices
        shared = given[m:]
        result: list[int] = []
        for k in range(self.length):
            result.extend(through(self.body, [*given[k * s : (k + 1) * s], *shared]))
        return result
