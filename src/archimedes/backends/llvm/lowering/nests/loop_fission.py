"""Long bodies of elementwise loops in stages: each goes over a chunk of points before the next.

A CPU looks ahead by a fixed number of operations that wait for others: 64 on Zen 3, about one
tanh, of which most wait for the one before them. Stages are short enough for several points to be
in sight. What goes from one stage to the next lies in the first cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from archimedes.backends.llvm.lowering.nests.register_tiling import RowNest
from archimedes.backends.lowering.nests import Index, Walk
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import B8, item_type
from archimedes.graph.ops import CONST, OPERANDS
from archimedes.graph.program import Graph

__all__ = ["Stage", "StagedNest", "Staging", "stages_of", "write_stages"]

#: What a stage costs, and a value that it is given by the one before it, where its operations cost
#: the square of their number over ``LENGTH``; the longest there are.
STAGE, CARRY, LENGTH, LONGEST = 8.0, 1.5, 28.0, 40


class Staging(NamedTuple):
    """The axis that is gone along in stages, by so many points at once, in chunks of so many."""

    axis: int
    step: int
    chunk: int


class StagedNest(RowNest):
    """A nest whose body is computed in stages: lanes along an axis, or lanes of instances."""

    @property
    def staged(self) -> Staging:
        """How stages go along an axis."""
        raise NotImplementedError

    def room(self, dtype: int) -> Location:
        """Reserve what a chunk keeps of a value for later stages."""
        raise NotImplementedError

    def staged_points(
        self, walks: Sequence[Walk], start: str
    ) -> Iterator[tuple[list[Walk], Index]]:
        """Yield walks and index at each of the points from ``start`` on."""
        raise NotImplementedError


class Stage(NamedTuple):
    """Operations of a body: ``takes`` are nodes of the body that other stages have computed.

    ``graph`` has the body's inputs, then those; its outputs are ``gives``.
    """

    graph: Graph
    takes: tuple[int, ...]
    gives: tuple[int, ...]


def stages_of(body: Graph, wanted: Sequence[int]) -> list[Stage]:
    """Return the stages of a body of plain operations, some of whose outputs are wanted."""
    outputs = [body.outputs[k] for k in wanted]
    order = [i for i in body.live(outputs) if OPERANDS[body.op[i]]]
    until = _last_uses(body, order, outputs)
    stages: list[Stage] = []
    kept: set[int] = set()
    for end in _bounds(order, until):
        crossing = {i for i in order[:end] if until.get(i, 0) >= end}
        stages.append(_stage(body, kept, sorted(crossing - kept)))
        kept |= crossing
    return [*stages, _stage(body, kept, outputs)]


def _last_uses(body: Graph, order: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
    """Return the place in the order where each node that may be kept is read last.

    Bools are not kept but computed again: what they read is read where they are.
    """
    last = dict.fromkeys(outputs, len(order))
    bools = {i for i in order if item_type(body.dtype[i]) == B8}
    for at in reversed(range(len(order))):
        i = order[at]
        until = max(at, last[i]) if i in bools else at
        for j in body.operands(i):
            last[j] = max(until, last.get(j, 0))
    return {i: at for i, at in last.items() if i not in bools}


def _bounds(order: Sequence[int], until: Mapping[int, int]) -> list[int]:
    """Return where to cut, so that what is carried over and long stages cost least together."""
    count = len(order)
    carried = [0] * (count + 2)
    for at, i in enumerate(order):
        if i in until:
            carried[at + 1] += 1
            carried[until[i] + 1] -= 1
    carried = list(accumulate(carried))
    price = [0.0] + [math.inf] * count
    before = [0] * (count + 1)
    for end in range(1, count + 1):
        for begin in range(max(0, end - LONGEST), end):
            found = price[begin] + STAGE + CARRY * carried[begin] + (end - begin) ** 2 / LENGTH
            if found < price[end]:
                price[end], before[end] = found, begin
    bounds = []
    at = before[count]
    while at:
        bounds.append(at)
        at = before[at]
    return bounds[::-1]


def _stage(body: Graph, kept: set[int], gives: Sequence[int]) -> Stage:
    """Return the stage that computes nodes from inputs and from what has been kept."""
    needed: set[int] = set()
    takes: set[int] = set()
    waiting = list(gives)
    while waiting:
        i = waiting.pop()
        if i in needed or i in takes:
            continue
        if i in kept:
            takes.add(i)
        else:
            needed.add(i)
            waiting += body.operands(i)
    g = Graph()
    to = {i: g.input(kind) for i, kind in zip(body.inputs, body.input_dtypes)}
    taken = sorted(takes)
    to |= {i: g.input(body.dtype[i]) for i in taken}
    for i in sorted(needed):
        if i in to:
            continue
        if body.op[i] == CONST:
            to[i] = g.const(body.value[i], body.dtype[i])
        else:
            to[i] = g.emit(body.op[i], *(to[j] for j in body.operands(i)))
    g.outputs = [to[i] for i in gives]
    return Stage(g, tuple(taken), tuple(gives))


def write_stages(
    nest: StagedNest,
    walks: Sequence[Walk],
    count: int,
    indices: Mapping[int, Index],
    ends: tuple[str, str] | None,
) -> None:
    """Write the loops of all stages over the chunks of an axis.

    The first ``count`` of the walks are read, the others take the results. ``indices`` are those
    of the other axes, ``ends`` those of a part of this one.
    """
    f, d, region = nest.f, nest.d, nest.region
    axis, step, chunk = nest.staged
    length = region.shape[axis]
    stages = stages_of(region.body, nest.wanted)
    kinds = {i: kind for x in stages[:-1] for i, kind in zip(x.gives, x.graph.output_dtypes)}
    rooms = {i: nest.room(kind) for i, kind in kinds.items()}
    first, end = ends or ("0", str(length))
    with f.loop(first, end, step=chunk) as chunks:
        past = f.value(f"add i64 {chunks.counter}, {chunk}")
        whole = f.value(f"icmp slt i64 {past}, {end}")
        stop = f.value(f"select i1 {whole}, i64 {past}, i64 {end}")
        for stage in stages:
            with f.loop(chunks.counter, stop, step=step) as loop:
                slot = f.value(f"sub i64 {loop.counter}, {chunks.counter}")
                start = nest.within(loop.counter, length, step)
                for row, (here, index) in enumerate(nest.staged_points(walks, start)):
                    mine = {**indices, axis: index}
                    found = [mine[k] for k in range(region.kept)]
                    given = nest.arguments(here[:count], found)
                    given += [
                        Binding(location=d.moving(f, rooms[i], slot, 1).at(row))
                        for i in stage.takes
                    ]
                    to = [walk.location for walk in here[count:]]
                    if stage is not stages[-1]:
                        to = [d.moving(f, rooms[i], slot, 1).at(row) for i in stage.gives]
                    nest.low.lower(f, stage.graph, given, (), list(enumerate(to)))
