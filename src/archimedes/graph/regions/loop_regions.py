"""Loops: ``Scan`` (a fixed number of steps), ``Map`` (independent instances) and ``While``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, block_type, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import (
    Cut,
    Cutter,
    OneBody,
    Region,
    Run,
    Through,
    carried,
    carry_faults,
    has_blocks,
    input_faults,
    new_numbers,
    same_number,
    slice_faults,
)
from archimedes.graph.regions.interval_sets import (
    GROWING,
    Rows,
    composed,
    each_bit,
    either,
    joined,
    merged,
    union_of,
    united,
    whole,
)

__all__ = [
    "UNBOUNDED",
    "Map",
    "Scan",
    "While",
    "times",
]

#: A loop with so many carried values in all keeps them in blocks: they would be so many nodes.
MANY = 1 << 13


def times(counts: Counter[str], factor: int) -> Counter[str]:
    """Return counts of what is done many times."""
    return Counter({name: factor * count for name, count in counts.items()})


@dataclass(frozen=True, eq=False)
class Scan(OneBody):
    """Run a body a fixed number of times.

    Inputs: ``carry`` values, then ``length * slices`` values (step after step), then shared ones.
    Body: (carry, slice, shared) -> (carry, out). Outputs: the last carry, then all outs, step
    after step. ``reverse`` takes the steps from last to first; positions stay as they are.

    ``stacked``: slices and outs are blocks that hold all steps one behind the other, so that
    there are as many as the body has, whatever the length. A step has a scalar of each, or as
    long a block as the body takes and gives.
    """

    length: int
    carry: int
    slices: int
    reverse: bool = False
    stacked: bool = field(default=False, kw_only=True)

    def in_blocks(self) -> Scan:
        """Return the same scan, stacked where only a carry goes through many steps.

        What costs something for each step, a row of nothing or values that a derivative keeps, is
        then there once.
        """
        alone = not self.slices and not self.outs and not self.stacked
        if alone and self.length * max(self.carry, 1) >= MANY:
            return replace(self, stacked=True)
        return self

    @property
    def rows(self) -> int:
        """Number of values that stand for each slice, and each out, of all steps."""
        return 1 if self.stacked else self.length

    @property
    def outs(self) -> int:
        """Number of values each step puts out besides the carry."""
        return len(self.body.outputs) - self.carry

    @property
    def out_dtypes(self) -> list[int]:
        dtypes = self.body.output_dtypes
        return dtypes[: self.carry] + list(map(self.of_steps, dtypes[self.carry :])) * self.rows

    def of_steps(self, kind: int) -> int:
        """Return the type of what holds values of a type: one of a step, or those of all."""
        if not self.stacked:
            return kind
        return block_type(item_type(kind), (length_of(kind) or 1) * self.length)

    @property
    def steps(self) -> range:
        """The steps in the order they are taken."""
        return range(self.length)[:: -1 if self.reverse else 1]

    def settings(self) -> tuple[Any, ...]:
        way = (self.reverse, "stacked") if self.stacked else (self.reverse,)
        return (self.length, self.carry, self.slices, *way)

    def summary(self) -> str:
        backwards = (" backwards" if self.reverse else "") + (" in blocks" if self.stacked else "")
        return f"{self.length} steps{backwards}, {self.carry} carried, {self.slices} a step"

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split the inputs into carry, slices of shape (rows, slices) and shared."""
        n, m = self.carry, self.rows * self.slices
        stacked = self.inputs[n : n + m].reshape(self.rows, self.slices)
        return self.inputs[:n], stacked, self.inputs[n + m :]

    def faults(self, g: Graph) -> Iterator[str]:
        yield from slice_faults(len(self.inputs), self.carry, self.rows, self.slices)
        if self.stacked and self.length < 1:
            yield "has blocks of no steps"
        carry, stacked, shared = (part.tolist() for part in self.parts())
        n, kinds = self.carry, self.body.input_dtypes
        kinds[n : n + self.slices] = map(self.of_steps, kinds[n : n + self.slices])
        for row in stacked:
            if [g.dtype[j] for j in (*carry, *row, *shared)] != kinds:
                yield "gives its body other inputs than it takes"
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
        first_shared = n + self.rows * self.slices
        inputs = (
            *alive,
            *(n + t * self.slices + j for t in range(self.rows) for j in slices),
            *(first_shared + k - n - self.slices for k in shared),
        )

        def make(ids: np.ndarray) -> Region:
            shape = self.length, len(alive), len(slices)
            return Scan(ids, part, *shape, self.reverse, line=self.line, stacked=self.stacked)

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
        n = self.carry
        if self._side_by_side:
            outs = run(self.body, values)
            return [np.array(np.broadcast_to(out, (self.length,))) for out in outs]
        carry, shared = values[:n], values[n + self.rows * self.slices :]
        if not self.outs:
            for step in self.steps:
                carry = run(self.body, [*carry, *self._slices(values, step), *shared])
            return carry
        rows: list[list[Any]] = [[]] * self.length
        for step in self.steps:
            out = run(self.body, [*carry, *self._slices(values, step), *shared])
            carry, rows[step] = out[:n], out[n:]
        if self.stacked:
            return carry + [_joined(column) for column in zip(*rows)]
        return carry + [x for row in rows for x in row]

    @cached_property
    def _side_by_side(self) -> bool:
        """Whether all steps can be computed at once: numbers, of which none is carried."""
        return (
            self.stacked and not self.carry and not self.has_effects and not has_blocks(self.body)
        )

    def _slices(self, values: list[Any], step: int) -> list[Any]:
        """Return what a step gets of the slices."""
        n, s = self.carry, self.slices
        if not self.stacked:
            return values[n + step * s : n + (step + 1) * s]
        return [
            self._part(values[n + k], kind, step)
            for k, kind in enumerate(self.body.input_dtypes[n : n + s])
        ]

    @staticmethod
    def _part(whole: Any, kind: int, step: int) -> Any:
        """Return the part of a step of what holds all steps."""
        width = length_of(kind)
        return whole[step * width : (step + 1) * width] if width else whole[step]

    def count(
        self, operations: Callable[[Graph], Counter[str]], weight: Callable[[Counter[str]], int]
    ) -> Counter[str]:
        return times(operations(self.body), self.length)

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length * body(self.body)

    def dependence(self, given: list[Any], through: Through) -> list[Any]:
        n = self.carry
        found = self._in_all_steps(given, through) if self.stacked else None
        if found is not None:
            return found
        carry, shared = given[:n], given[n + self.rows * self.slices :]
        rows: dict[int, list[Any]] = {}
        moving = any(given[n : n + self.rows * self.slices])
        for count, step in enumerate(self.steps):
            if count == GROWING:
                # A band that grows from step to step is all of its block in the end.
                carry = [whole(sets) for sets in carry]
            out = through(self.body, [*carry, *self._slice_sets(given, step), *shared])
            stable = not moving and out[:n] == carry
            carry = out[:n]
            if self.outs:
                rows[step] = out[n:]
            if stable:
                # Nothing new can enter: all later steps look the same.
                if self.outs:
                    rows = {k: rows.get(k, out[n:]) for k in range(self.length)}
                break
        if not self.outs:
            return carry
        steps = [rows[step] for step in range(self.length)]
        if self.stacked:
            widths = [length_of(kind) or 1 for kind in self.body.output_dtypes[n:]]
            return carry + [
                joined((sets, width) for sets in column)
                for width, column in zip(widths, zip(*steps))
            ]
        return carry + [x for row in steps for x in row]

    def _in_all_steps(self, given: list[Any], through: Through) -> list[Any] | None:
        """Return what outputs depend on where the carry brings nothing from step to step."""
        n, s, steps = self.carry, self.slices, self.length
        carry, slices, shared = given[:n], given[n : n + s], given[n + s :]
        kinds = self.body.input_dtypes[n : n + s]
        widths = [length_of(kind) or 1 for kind in kinds]
        any_step = [_over_steps(sets, length_of(kind), steps) for sets, kind in zip(slices, kinds)]
        if through(self.body, [*carry, *any_step, *shared])[:n] != carry:
            return None
        # Elements of the slices of all steps are numbered one behind the other.
        own: list[Any] = [0] * len(self.body.inputs)
        at = 0
        for k, width in enumerate(widths, n):
            own[k] = each_bit(at, width) if length_of(kinds[k - n]) else 1 << at
            at += width * steps
        of_slices = joined((sets, width * steps) for sets, width in zip(slices, widths))
        ends = np.cumsum([0, *(width * steps for width in widths)])
        strides = np.array(widths, dtype=np.int64)
        local = through(self.body, own)[n:]
        fixed = through(self.body, [*carry, *[0] * s, *shared])[n:]
        return carry + [
            self._of_steps(mine, rest, kind, of_slices, ends, strides)
            for mine, rest, kind in zip(local, fixed, self.body.output_dtypes[n:])
        ]

    def _of_steps(
        self,
        mine: Any,
        fixed: Any,
        kind: int,
        of_slices: Any,
        ends: np.ndarray,
        strides: np.ndarray,
    ) -> Any:
        """Return the sets of an out in all steps.

        ``mine``: the elements of ``of_slices`` that it reads in the first step, which are
        ``strides`` further on in every other, by slice; ``fixed``: what it depends on besides.
        """
        width, steps = length_of(kind) or 1, self.length
        parts = []
        if mine and of_slices:
            first = joined([(mine, width)])
            move = strides[np.searchsorted(ends, first.low, side="right") - 1]
            later = np.arange(steps)[:, None]
            low, high = ((x + later * move).ravel() for x in (first.low, first.high))
            starts = np.concatenate([[0], np.tile(np.diff(first.first), steps).cumsum()])
            parts.append(composed(Rows(starts, low, high), of_slices))
        parts.append(joined([(fixed, width)] * steps))
        return united(parts, width * steps)

    def _slice_sets(self, given: list[Any], step: int) -> list[Any]:
        """Return what the slices of a step depend on."""
        if not self.stacked:
            return self._slices(given, step)
        kinds = self.body.input_dtypes[self.carry :]
        slices = given[self.carry : self.carry + self.slices]
        return [sets and self._part(sets, kind, step) for sets, kind in zip(slices, kinds)]


def _over_steps(sets: Any, width: int, steps: int) -> Any:
    """Return what a slice depends on in any step."""
    if not sets or not width:
        return union_of(sets)
    rows = np.tile(np.arange(width), steps).repeat(np.diff(sets.first))
    return merged([(rows, sets.low, sets.high)], width)


def _joined(column: tuple[Any, ...]) -> np.ndarray:
    """Return the values of all steps in one."""
    return np.concatenate([np.atleast_1d(x) for x in column])


@dataclass(frozen=True, eq=False)
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


#: The limit of loops without one: more steps than any machine makes.
UNBOUNDED = 1 << 62


@dataclass(frozen=True, eq=False)
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
