"""Loops: ``Scan`` (a fixed number of steps), ``Map`` (independent instances) and ``While``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.graph.dtypes import block_type, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import base, interval_sets
from archimedes.graph.regions.base import OneBody, Region, Run, Through
from archimedes.graph.regions.interval_sets import Rows, Sets, join, union, unit_sets, widen
from archimedes.records import record

#: A loop with so many carried values in all keeps them in blocks: they would be so many nodes.
MANY = 1 << 13
#: The limit of loops without one: more steps than any machine makes.
UNBOUNDED = 1 << 62


class CountedLoop(OneBody):
    """A body that runs ``length`` times, on a slice each time: what scans and maps have in common.

    Inputs: ``carry`` values, ``rows * slices`` values, then shared ones. Body: (carry, slice,
    shared) -> (carry, out). Outputs: the last carry, then the outs of all rows.
    """

    length: int
    carry: int
    slices: int
    stacked: bool

    @property
    def rows(self) -> int:
        """Number of values that stand for each slice, and each out, of all steps."""
        return 1 if self.stacked else self.length

    @property
    def runs(self) -> int:
        return self.length

    @property
    def outs(self) -> int:
        """Number of values each step puts out besides the carry."""
        return len(self.body.outputs) - self.carry

    @property
    def out_dtypes(self) -> list[int]:
        dtypes = self.body.output_dtypes
        return dtypes[: self.carry] + list(map(self.of_steps, dtypes[self.carry :])) * self.rows

    def of_steps(self, kind: int) -> int:
        """Return the type of the slice or out that holds a value of each step."""
        if not self.stacked:
            return kind
        return block_type(item_type(kind), (length_of(kind) or 1) * self.length)

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split the inputs into carry, slices of shape (rows, slices) and shared."""
        n, m = self.carry, self.rows * self.slices
        slices = self.inputs[n : n + m].reshape(self.rows, self.slices)
        return self.inputs[:n], slices, self.inputs[n + m :]

    def like(self, inputs: Sequence[int] | np.ndarray, body: Graph, carry: int, slices: int) -> Any:
        """Return a loop over the same steps with another body."""
        sizes: dict[str, Any] = {"carry": carry, "slices": slices}
        return replace(self, inputs=inputs, body=body, **sizes)

    def prune(self, pruner: base.Pruner, used: list[int]) -> base.Pruning:
        n, body = self.carry, self.body
        if self.length == 0:
            return base.Pruning(tuple(used), None, base.same_number)
        columns = sorted({(k - n) % self.outs for k in used if k >= n})
        outs = tuple(n + k for k in columns)
        alive, reads = base.close_carry(pruner, body, n, {k for k in used if k < n}, outs)
        slices = [j for j in range(self.slices) if n + j in reads]
        shared = [k for k in range(n + self.slices, len(body.inputs)) if k in reads]
        part = pruner.part(body, (*alive, *(n + j for j in slices), *shared), (*alive, *outs))
        first_shared = n + self.rows * self.slices
        inputs = (
            *alive,
            *(n + t * self.slices + j for t in range(self.rows) for j in slices),
            *(first_shared + k - n - self.slices for k in shared),
        )
        new_carry, new_column = base.new_numbers(alive), base.new_numbers(columns)

        def make(ids: np.ndarray) -> Region:
            return self.like(ids, part, len(alive), len(slices))

        def number(old: int) -> int:
            if old < n:
                return new_carry(old)
            step, k = divmod(old - n, self.outs)
            return len(alive) + step * len(columns) + new_column(k)

        return base.Pruning(inputs, make, number)

    @property
    def steps(self) -> range:
        """The steps in the order they are taken."""
        return range(self.length)

    def _slices(self, values: list[Any], step: int) -> list[Any]:
        """Return what a step gets of the slices, of values or of sets."""
        n, s = self.carry, self.slices
        if not self.stacked:
            return values[n + step * s : n + (step + 1) * s]
        kinds = self.body.input_dtypes[n : n + s]
        return [_part(value, kind, step) for value, kind in zip(values[n : n + s], kinds)]

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        n = self.carry
        outputs = self._in_all_steps(sets, through) if self.stacked else None
        if outputs is not None:
            return outputs
        carry, shared = sets[:n], sets[n + self.rows * self.slices :]
        rows: dict[int, list[Sets]] = {}
        moving = any(sets[n : n + self.rows * self.slices])
        for count, step in enumerate(self.steps):
            if count == interval_sets.GROWING:
                # A band that grows from step to step is all of its block in the end.
                carry = [widen(mine) for mine in carry]
            out = through(self.body, [*carry, *self._slices(sets, step), *shared])
            stable = not moving and out[:n] == carry
            carry, rows[step] = out[:n], out[n:]
            if stable:
                # Nothing new can enter: all later steps look the same.
                rows = {k: rows.get(k, out[n:]) for k in range(self.length)}
                break
        if not self.outs:
            return carry
        steps = [rows[step] for step in range(self.length)]
        if self.stacked:
            widths = [length_of(kind) or 1 for kind in self.body.output_dtypes[n:]]
            return carry + [
                join((mine, width) for mine in column) for width, column in zip(widths, zip(*steps))
            ]
        return carry + [x for row in steps for x in row]

    def _in_all_steps(self, sets: list[Sets], through: Through) -> list[Sets] | None:
        """Return what outputs depend on if the carry adds nothing from step to step, else None."""
        n, s, steps = self.carry, self.slices, self.length
        carry, slices, shared = sets[:n], sets[n : n + s], sets[n + s :]
        kinds = self.body.input_dtypes[n : n + s]
        widths = [length_of(kind) or 1 for kind in kinds]
        any_step = [_over_steps(mine, length_of(kind), steps) for mine, kind in zip(slices, kinds)]
        if through(self.body, [*carry, *any_step, *shared])[:n] != carry:
            return None
        # Elements of the slices of all steps are numbered one behind the other.
        own: list[Sets] = [0] * len(self.body.inputs)
        starts = np.cumsum([0, *(width * steps for width in widths)])
        for k, start in enumerate(starts[:-1].tolist()):
            own[n + k] = unit_sets(start, widths[k]) if length_of(kinds[k]) else 1 << start
        of_slices = join((mine, width * steps) for mine, width in zip(slices, widths))
        strides = np.array(widths, dtype=np.int64)
        local = through(self.body, own)[n:]
        fixed = through(self.body, [*carry, *[0] * s, *shared])[n:]
        results = []
        for mine, rest, kind in zip(local, fixed, self.body.output_dtypes[n:]):
            # ``mine`` are the elements of ``of_slices`` that an out reads in the first step, which
            # are ``strides`` further on in every other, by slice; ``rest`` is all besides.
            width = length_of(kind) or 1
            parts = [join([(rest, width)] * steps)]
            if mine and of_slices:
                first = join([(mine, width)])
                move = strides[np.searchsorted(starts, first.low, side="right") - 1]
                later = np.arange(steps)[:, None]
                low, high = ((x + later * move).ravel() for x in (first.low, first.high))
                begin = np.concatenate([[0], np.tile(np.diff(first.first), steps).cumsum()])
                parts.append(interval_sets.compose(Rows(begin, low, high), of_slices))
            results.append(interval_sets.unite(parts, width * steps))
        return carry + results


def _part(whole: Any, kind: int, step: int) -> Any:
    """Return what belongs to one step of values, or of sets, that hold all steps."""
    if isinstance(whole, int):
        return whole
    width = length_of(kind)
    return whole[step * width : (step + 1) * width] if width else whole[step]


def _over_steps(sets: Sets, width: int, steps: int) -> Sets:
    """Return what a slice depends on in any step."""
    if not sets or not width:
        return interval_sets.union_of(sets)
    rows = np.tile(np.arange(width), steps).repeat(np.diff(sets.first))
    return interval_sets.merge([(rows, sets.low, sets.high)], width)


@record
class Scan(CountedLoop):
    """Run a body a fixed number of times, each step going on from the one before.

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
    def steps(self) -> range:
        return range(self.length)[:: -1 if self.reverse else 1]

    def summary(self) -> str:
        way = (" backwards" if self.reverse else "") + (" in blocks" if self.stacked else "")
        return f"{self.length} steps{way}, {self.carry} carried, {self.slices} a step"

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        n = self.carry
        if self._is_one_batch:
            outs = run(self.body, values)
            return [np.broadcast_to(out, (self.length,)).copy() for out in outs]
        carry, shared = values[:n], values[n + self.rows * self.slices :]
        rows: list[list[Any]] = [[]] * self.length
        for step in self.steps:
            out = run(self.body, [*carry, *self._slices(values, step), *shared])
            carry, rows[step] = out[:n], out[n:]
        if self.stacked:
            columns = zip(*rows)
            return carry + [np.concatenate([np.atleast_1d(x) for x in c]) for c in columns]
        return carry + [x for row in rows for x in row]

    @cached_property
    def _is_one_batch(self) -> bool:
        """Whether all steps can be computed at once: numbers, of which none is carried."""
        apart = self.stacked and not self.carry and not self.has_effects
        return apart and not base.has_blocks(self.body)


@record
class Map(CountedLoop):
    """Run a body for each of ``length`` instances, none of which knows of the others.

    Inputs: ``length * slices`` values (instance after instance), then shared ones. Body:
    (slice, shared) -> out. Outputs: all outs, instance after instance.
    """

    length: int
    slices: int

    carry = 0
    stacked = False

    def summary(self) -> str:
        return f"{self.length} instances, {self.slices} each"

    def like(self, inputs: Sequence[int] | np.ndarray, body: Graph, carry: int, slices: int) -> Any:
        return replace(self, inputs=inputs, body=body, slices=slices)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        s, length = self.slices, self.length
        if length == 0:
            return []
        shared = values[length * s :]
        if base.has_blocks(self.body):
            rows = [self._slices(values, k) for k in range(length)]
            return [x for row in rows for x in run(self.body, [*row, *shared])]
        columns = [
            np.stack(np.broadcast_arrays(*(values[k * s + j] for k in range(length))), axis=-1)
            for j in range(s)
        ]
        shared = [x[..., None] if np.ndim(x) else x for x in shared]
        outs = [np.atleast_1d(out) for out in run(self.body, [*columns, *shared])]
        outs = [np.broadcast_to(out, (*out.shape[:-1], length)) for out in outs]
        return [out[..., k] for k in range(length) for out in outs]


@record
class While(Region):
    """Repeat a body while a condition holds, at most ``limit`` times.

    With ``limit`` UNBOUNDED, there is no such bound. Inputs: ``carry`` values, then shared ones.
    Condition: (carry, shared) -> bool; body: (carry, shared) -> carry. Outputs: the last carry.
    ``adaptive`` marks the loop of a solver that chooses its own steps, which does not belong on a
    target with a clock.
    """

    condition: Graph = field(compare=False)
    body: Graph = field(compare=False)
    carry: int
    limit: int
    adaptive: bool = field(default=False, kw_only=True, compare=False)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.condition, self.body)

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    @property
    def runs(self) -> int:
        # Of a loop without a bound, one round is all that is known.
        return 1 if self.limit == UNBOUNDED else self.limit

    def summary(self) -> str:
        bound = "any number of" if self.limit == UNBOUNDED else f"at most {self.limit}"
        return f"{bound} steps, {self.carry} carried"

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        condition, body = bodies
        return replace(self, condition=condition, body=body)

    def prune(self, pruner: base.Pruner, used: list[int]) -> base.Pruning:
        n = self.carry
        if self.limit == 0:
            return base.Pruning(tuple(used), None, base.same_number)
        tested = pruner.reads(self.condition, [0])
        wanted = set(used) | {k for k in tested if k < n}
        alive, reads = base.close_carry(pruner, self.body, n, wanted, ())
        shared = [k for k in range(n, len(self.inputs)) if k in reads | tested]
        inputs = (*alive, *shared)
        condition = pruner.part(self.condition, inputs, (0,))
        body = pruner.part(self.body, inputs, alive)

        def make(ids: np.ndarray) -> Region:
            return replace(self, inputs=ids, condition=condition, body=body, carry=len(alive))

        return base.Pruning(inputs, make, base.new_numbers(alive))

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

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return min(self.limit, rounds) * sum(map(body, self.bodies))

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        # A loop that may stop at any step passes the union of what each step gives.
        n, rounds = self.carry, 0
        carry, shared = sets[:n], sets[n:]
        while True:
            out = through(self.body, [*carry, *shared])
            grown = [union(a, b) for a, b in zip(carry, out)]
            if grown == carry:
                return carry
            rounds += 1
            # A band that grows from step to step is all of its block in the end.
            carry = grown if rounds < interval_sets.GROWING else [widen(mine) for mine in grown]
