"""``Switch``: one of several bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES, I64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run, Through
from archimedes.graph.regions.body_checks import input_faults
from archimedes.graph.regions.call import Call
from archimedes.graph.regions.cutting import Cut, Cutter, new_numbers
from archimedes.graph.regions.interval_sets import either
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Switch"]


@lazy_dataclass(frozen=True, eq=False)
class Switch(Region):
    """Run one of several bodies, chosen by the first input (int64, clamped to the range)."""

    branches: tuple[Graph, ...]

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.branches

    @property
    def out_dtypes(self) -> list[int]:
        return self.branches[0].output_dtypes

    def faults(self, g: Graph) -> Iterator[str]:
        if not self.branches:
            yield "has no branches"
        if not len(self.inputs) or g.dtype[self.inputs[0]] != I64:
            yield "has an index that is not int64"
        for k, body in enumerate(self.branches):
            yield from input_faults(g, self.inputs[1:].tolist(), body, f"branch {k}")
            if body.output_dtypes != self.out_dtypes:
                yield f"has a branch {k} that returns other dtypes than the first"

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        return replace(self, branches=tuple(bodies))

    def within(self, g: Graph) -> Region:
        """Leave out the branches that a condition, which is 0 or 1, cannot take."""
        if len(self.branches) < 3:
            return self
        index = int(self.inputs[0])
        chosen_by_bool = g.op[index] == CODES["i64"] and g.dtype[g.a[index]] == B8
        return replace(self, branches=self.branches[:2]) if chosen_by_bool else self

    def cut(self, cutter: Cutter, used: list[int]) -> Cut:
        outs = tuple(used)
        keep = tuple(sorted(set().union(*(cutter.reads(b, outs) for b in self.branches))))
        bodies = tuple(cutter.part(b, keep, outs) for b in self.branches)
        numbers, line = new_numbers(outs), self.line
        inputs = tuple(k + 1 for k in keep)
        if len(bodies) == 1:  # nothing to choose
            return Cut(inputs, lambda ids: Call(ids, bodies[0], line=line), numbers)
        return Cut((0, *inputs), lambda ids: Switch(ids, bodies, line=line), numbers)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        index = np.clip(values[0], 0, len(self.branches) - 1)
        if np.ndim(index) == 0:
            return run(self.branches[int(index)], values[1:])
        shape = np.broadcast_shapes(*(np.shape(x) for x in values))
        index = np.broadcast_to(index, shape)
        results = [np.zeros(shape, dtype=DTYPES[d]) for d in self.out_dtypes]
        for k, body in enumerate(self.branches):
            mine = index == k
            if mine.any():
                chosen = [
                    x if np.ndim(x) == 0 else np.broadcast_to(x, shape)[mine] for x in values[1:]
                ]
                for result, out in zip(results, run(body, chosen)):
                    result[mine] = out
        return results

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        """Count the longest branch."""
        return max((operations(b) for b in self.branches), key=weight)

    def dependence(self, given: list[int], through: Through) -> list[int]:
        rows = [through(body, given[1:]) for body in self.branches]
        merged = rows[0]
        for row in rows[1:]:
            merged = [either(a, b) for a, b in zip(merged, row)]
        return merged
