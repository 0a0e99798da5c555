"""Bodies run once: ``Call``, ``Switch`` (one of several), and ``Host`` (a call into Python)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES
from archimedes.graph.ops import CODES, INPUT
from archimedes.graph.program import Graph
from archimedes.graph.regions import base
from archimedes.graph.regions.base import OneBody, Region, Run, Through
from archimedes.graph.regions.interval_sets import Sets, union
from archimedes.records import record


@record
class Call(OneBody):
    """Run a body once: reuse without inlining, optionally with a derivative of its own.

    The last ``closure`` inputs are values the body closes over, of which that derivative knows
    nothing. One that is ``copied`` is a call for its derivative's sake alone: in programs that are
    run its body stands where it was called.
    """

    derivative: base.DerivativeRule | None = None
    closure: int = 0
    copied: bool = False

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    def settings(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        return () if lasting else (self.derivative and id(self.derivative), self.copied)

    def summary(self) -> str:
        return "" if self.derivative is None else f"with the derivative of {self.derivative.name}"

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        (body,) = bodies
        return replace(self, body=body, derivative=None)

    def prune(self, pruner: base.Pruner, used: list[int]) -> base.Pruning:
        """Keep all outputs, so that calls of one function stay calls of one function.

        Of a body that is called once, those that nobody reads are left out.
        """
        body = self.body
        if all(body.op[i] == INPUT for i in body.outputs) and not body.effects():
            passed = [body.a[i] for i in body.outputs]
            return base.Pruning(tuple(sorted({passed[k] for k in used})), None, passed.__getitem__)
        once = pruner.is_called_once(body)
        outs = tuple(used) if once else tuple(range(len(body.outputs)))
        inputs = tuple(sorted(pruner.reads(body, outs)))
        part = pruner.part(body, inputs, outs)

        def make(ids: np.ndarray) -> Region:
            return Call(ids, part, copied=self.copied, line=self.line)

        return base.Pruning(inputs, make, base.new_numbers(outs) if once else base.same_number)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        return run(self.body, values)

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        if self.derivative is None:
            return through(self.body, sets)
        own = self.derivative.pattern
        return super().dependence(sets, through) if own is None else own(sets)


@record
class Switch(Region):
    """Run one of several bodies, chosen by the first input (int64, clamped to the range)."""

    branches: tuple[Graph, ...] = field(compare=False)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.branches

    @property
    def out_dtypes(self) -> list[int]:
        return self.branches[0].output_dtypes

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        return replace(self, branches=tuple(bodies))

    def within(self, g: Graph) -> Region:
        """Leave out the branches that a condition, which is 0 or 1, cannot take."""
        index = int(self.inputs[0])
        chosen_by_bool = g.op[index] == CODES["i64"] and g.dtype[g.a[index]] == B8
        return replace(self, branches=self.branches[:2]) if chosen_by_bool else self

    def prune(self, pruner: base.Pruner, used: list[int]) -> base.Pruning:
        outs = tuple(used)
        reads = tuple(sorted(set().union(*(pruner.reads(b, outs) for b in self.branches))))
        bodies = tuple(pruner.part(b, reads, outs) for b in self.branches)
        numbers, line = base.new_numbers(outs), self.line
        inputs = tuple(k + 1 for k in reads)
        if len(bodies) == 1:  # nothing to choose
            return base.Pruning(inputs, lambda ids: Call(ids, bodies[0], line=line), numbers)
        return base.Pruning((0, *inputs), lambda ids: Switch(ids, bodies, line=line), numbers)

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

    def count(self, operations: base.CountOperations, weight: base.Weight) -> Counter[str]:
        """Count the longest branch."""
        return max((operations(b) for b in self.branches), key=weight)

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        rows = [through(body, sets[1:]) for body in self.branches]
        return [reduce(union, column) for column in zip(*rows)]


@record
class Host(Region):
    """Call back into Python with the input values (as one flat list), get a flat list of values.

    ``derivative`` is as in ``Call``. ``label`` names the function in text and errors.
    """

    function: Callable[[list[Any]], list[Any]]
    dtypes: tuple[int, ...]
    label: str
    derivative: base.DerivativeRule | None = None
    #: Calls are kept apart even when equal: a host function may have effects.
    serial: object = field(default_factory=object)

    has_effects = True

    @property
    def out_dtypes(self) -> list[int]:
        return list(self.dtypes)

    def settings(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        return (id(self.function), id(self.serial))

    def summary(self) -> str:
        return self.label

    def retype(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtypes=tuple(dtype(d) for d in self.dtypes))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        shape = np.broadcast_shapes(*(np.shape(x) for x in values)) if values else ()
        if shape == ():
            return self.function(values)
        arrays = [np.broadcast_to(x, shape) for x in values]
        results = [np.empty(shape, dtype=DTYPES[d]) for d in self.dtypes]
        for at in np.ndindex(*shape):
            for result, out in zip(results, self.function([x[at] for x in arrays])):
                result[at] = out
        return results
