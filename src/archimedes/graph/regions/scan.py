"""``Scan``: a body run a fixed number of times, each step going on from the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph.program import Graph
from archimedes.graph.regions.base import OneBody, Region, Run, Through
from archimedes.graph.regions.body_checks import carry_faults, input_faults, slice_faults
from archimedes.graph.regions.cutting import Cut, Cutter, carried, new_numbers, same_number

__all__ = ["Scan", "times"]


def times(counts: Counter[str], factor: int) -> Counter[str]:
    """Return counts of what is done many times."""
    return Counter({name: factor * count for name, count in counts.items()})


@dataclass(frozen=True, eq=False)
class Scan(OneBody):
    """Run a body a fixed number of times.

    Inputs: ``carry`` values, then ``length * slices`` values (step after step), then shared ones.
    Body: (carry, slice, shared) -> (carry, out). Outputs: the last carry, then all outs, step
    after step. ``reverse`` takes the steps from last to first; positions stay as they are.
    """

    length: int
    carry: int
    slices: int
    reverse: bool = False

    @property
    def outs(self) -> int:
        """Number of values each step puts out besides the carry."""
        return len(self.body.outputs) - self.carry

    @property
    def out_dtypes(self) -> list[int]:
        dtypes = self.body.output_dtypes
        return dtypes[: self.carry] + dtypes[self.carry :] * self.length

    @property
    def steps(self) -> range:
        """The steps in the order they are taken."""
        return range(self.length)[:: -1 if self.reverse else 1]

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.carry, self.slices, self.reverse)

    def summary(self) -> str:
        backwards = " backwards" if self.reverse else ""
        return f"{self.length} steps{backwards}, {self.carry} carried, {self.slices} a step"

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split the inputs into carry, slices of shape (length, slices) and shared."""
        n, m = self.carry, self.length * self.slices
        stacked = self.inputs[n : n + m].reshape(self.length, self.slices)
        return self.inputs[:n], stacked, self.inputs[n + m :]

    def faults(self, g: Graph) -> Iterator[str]:
        yield from slice_faults(len(self.inputs), self.carry, self.length, self.slices)
        carry, stacked, shared = (part.tolist() for part in self.parts())
        for row in stacked:
            yield from input_faults(g, [*carry, *row, *shared], self.body, "body")
        yield from carry_faults(self.body, self.carry)

    def cut(self, cutter: Cutter, used: list[int]) -> Cut:
        n, body = self.carry, self.body
        if self.length == 0:
            return Cut(tuple(used), None, same_number)
        kept = sorted({(k - n) % self.outs for k in used if k >= n})
        outs = tuple(n + k for k in kept)
        alive, reads = carried(cutter, body, n, {k for k in used if k < n}, outs)
        slices = [j for j in range(self.slices) if n + j in reads]
        shared = [k for k in range(n + self.slices, len(body.inputs)) if k in reads]
        part = cutter.part(body, (*alive, *(n + j for j in slices), *shared), (*alive, *outs))
        first_shared = n + self.length * self.slices
        inputs = (
            *alive,
            *(n + t * self.slices + j for t in range(self.length) for j in slices),
            *(first_shared + k - n - self.slices for k in shared),
        )

        def make(ids: np.ndarray) -> Region:
            shape = self.length, len(alive), len(slices)
            return Scan(ids, part, *shape, self.reverse, line=self.line)

        return Cut(inputs, make, self._numbers(alive, kept))

    def _numbers(self, alive: tuple[int, ...], kept: list[int]) -> Callable[[int], int]:
        """Return what gives the new number of an output where some are left out."""
        carry, columns = new_numbers(alive), new_numbers(kept)

        def number(old: int) -> int:
            if old < self.carry:
                return carry(old)
            step, k = divmod(old - self.carry, self.outs)
            return len(alive) + step * len(kept) + columns(k)

        return number

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        n, s = self.carry, self.slices
        carry, shared = values[:n], values[n + self.length * s :]
        rows: list[list[Any]] = [[]] * self.length
        for step in self.steps:
            slices = values[n + step * s : n + (step + 1) * s]
            out = run(self.body, [*carry, *slices, *shared])
            carry, rows[step] = out[:n], out[n:]
        return carry + [x for row in rows for x in row]

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        return times(operations(self.body), self.length)

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length * body(self.body)

    def dependence(self, given: list[int], through: Through) -> list[int]:
        n, m, s = self.carry, self.length * self.slices, self.slices
        carry, shared = given[:n], given[n + m :]
        rows: dict[int, list[int]] = {}
        for step in self.steps:
            slices = given[n + step * s : n + (step + 1) * s]
            out = through(self.body, [*carry, *slices, *shared])
            stable = out[:n] == carry and not s
            carry, rows[step] = out[:n], out[n:]
            if stable:
                # Nothing new can enter: all later steps look the same.
                return carry + [x for k in range(self.length) for x in rows.get(k, out[n:])]
        return carry + [x for step in range(self.length) for x in rows[step]]
