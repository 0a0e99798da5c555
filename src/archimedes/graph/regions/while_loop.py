"""``While``: a body repeated while a condition holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run, Through
from archimedes.graph.regions.body_checks import carry_faults, input_faults
from archimedes.graph.regions.cutting import Cut, Cutter, carried, new_numbers, same_number
from archimedes.graph.regions.interval_sets import GROWING, either, whole
from archimedes.graph.regions.scan import times
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["UNBOUNDED", "While"]

#: The limit of loops without one: more steps than any machine makes.
UNBOUNDED = 1 << 62


@lazy_dataclass(frozen=True, eq=False)
class While(Region):
    """Repeat a body while a condition holds, at most ``limit`` times.

    With ``limit`` UNBOUNDED, there is no such bound. Inputs: ``carry`` values, then shared ones.
    Condition: (carry, shared) -> bool; body: (carry, shared) -> carry. Outputs: the last carry.
    ``adaptive`` marks the loop of a solver that chooses its own steps, which has no place on a
    target with a clock.
    """

    condition: Graph
    body: Graph
    carry: int
    limit: int
    adaptive: bool = field(default=False, kw_only=True)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.condition, self.body)

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    def settings(self) -> tuple[Any, ...]:
        return (self.carry, self.limit)

    def summary(self) -> str:
        bound = "any number of" if self.limit == UNBOUNDED else f"at most {self.limit}"
        return f"{bound} steps, {self.carry} carried"

    def faults(self, g: Graph) -> Iterator[str]:
        for body, what in ((self.condition, "condition"), (self.body, "body")):
            yield from input_faults(g, self.inputs.tolist(), body, what)
        yield from carry_faults(self.body, self.carry)
        if len(self.body.outputs) != self.carry:
            yield "has a body that returns more than the carry"
        if self.condition.output_dtypes != [B8]:
            yield "has a condition that does not return one bool"
        if self.limit < 0:
            yield "has a negative limit"

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        condition, body = bodies
        return replace(self, condition=condition, body=body)

    def cut(self, cutter: Cutter, used: list[int]) -> Cut:
        n = self.carry
        if self.limit == 0:
            return Cut(tuple(used), None, same_number)
        tested = cutter.reads(self.condition, [0])
        wanted = set(used) | {k for k in tested if k < n}
        alive, reads = carried(cutter, self.body, n, wanted, ())
        shared = [k for k in range(n, len(self.inputs)) if k in reads | tested]
        inputs = (*alive, *shared)
        condition = cutter.part(self.condition, inputs, (0,))
        body = cutter.part(self.body, inputs, alive)

        def make(ids: np.ndarray) -> Region:
            return While(
                ids,
                condition,
                body,
                len(alive),
                self.limit,
                adaptive=self.adaptive,
                line=self.line,
            )

        return Cut(inputs, make, new_numbers(alive))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        n = self.carry
        carry, shared = values[:n], values[n:]
        running: Any = True
        for _ in range(self.limit):
            (test,) = run(self.condition, [*carry, *shared])
            running = running & test
            if not np.any(running):
                break
            new = run(self.body, [*carry, *shared])
            if np.all(running):
                carry = new
            else:
                carry = [np.where(running, y, x) for x, y in zip(carry, new)]
        return carry

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        # Of a loop without a bound, one round is all that is known.
        rounds = 1 if self.limit == UNBOUNDED else self.limit
        return times(operations(self.condition) + operations(self.body), rounds)

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return min(self.limit, rounds) * (body(self.condition) + body(self.body))

    def dependence(self, given: list[int], through: Through) -> list[int]:
        # A loop that may stop at any step passes the union of what each step gives.
        n, rounds = self.carry, 0
        carry, shared = given[:n], given[n:]
        while True:
            out = through(self.body, [*carry, *shared])
            grown = [either(a, b) for a, b in zip(carry, out)]
            if grown == carry:
                return carry
            rounds += 1
            # A band that grows from step to step is all of its block in the end.
            carry = grown if rounds < GROWING else [whole(sets) for sets in grown]
