"""Loop fission: long bodies of elementwise loops run in stages, each over a chunk of points.

A CPU looks ahead by a fixed number of operations that wait for others: 64 on Zen 3, about one
tanh, of which most wait for the one before them. Stages are short enough for several points to be
in sight. What goes from one stage to the next lies in the first cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from archimedes.backends.llvm.lowering.nests.register_tiling import TiledNest
from archimedes.backends.lowering.nests import Index, Walk
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import B8, item_type
from archimedes.graph.ops import CONST, OPERANDS
from archimedes.graph.program import Graph

#: What a stage costs, and a value that it is given by the one before it, where its operations cost
#: the square of their number over ``LENGTH``; the longest there are.
STAGE, CARRY, LENGTH, LONGEST = 8.0, 1.5, 28.0, 40


class Staging(NamedTuple):
    """How stages go along an axis: by ``step`` points at once, in chunks of ``chunk`` points.

    ``room(dtype)`` reserves the memory in which a chunk keeps a value for later stages.
    ``points(walks, start)`` yields walks and index at each of the points from ``start`` on.
    """

    axis: int
    step: int
    chunk: int
    room: Callable[[int], Location]
    points: Callable[[Sequence[Walk], str], Iterable[tuple[list[Walk], Index]]]


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
    known: set[int] = set()
    for end in _bounds(order, until):
        crossing = {i for i in order[:end] if until.get(i, 0) >= end}
        stages.append(_stage(body, known, sorted(crossing - known)))
        known |= crossing
    return [*stages, _stage(body, known, outputs)]


def _last_uses(body: Graph, order: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
    """Return the position in the order where each node that may be stored is read last.

    Bools are not stored but computed again: what they read is read where they are.
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
            total = price[begin] + STAGE + CARRY * carried[begin] + (end - begin) ** 2 / LENGTH
            if total < price[end]:
                price[end], before[end] = total, begin
    bounds = []
    at = before[count]
    while at:
        bounds.append(at)
        at = before[at]
    return bounds[::-1]


def _stage(body: Graph, known: set[int], gives: Sequence[int]) -> Stage:
    """Return the stage that computes nodes from inputs and from what is known."""
    needed: set[int] = set()
    waiting = list(gives)
    while waiting:
        i = waiting.pop()
        if i not in needed:
            needed.add(i)
            waiting += () if i in known else body.operands(i)
    takes = sorted(needed & known)
    g = Graph()
    to = {i: g.input(kind) for i, kind in zip(body.inputs, body.input_dtypes)}
    to |= {i: g.input(body.dtype[i]) for i in takes}
    for i in sorted(needed - to.keys()):
        if body.op[i] == CONST:
            to[i] = g.const(body.value[i], body.dtype[i])
        else:
            to[i] = g.emit(body.op[i], *(to[j] for j in body.operands(i)))
    g.outputs = [to[i] for i in gives]
    return Stage(g, tuple(takes), tuple(gives))


def write_stages(
    nest: TiledNest,
    staging: Staging,
    walks: Sequence[Walk],
    count: int,
    indices: Mapping[int, Index],
    ends: tuple[str, str] | None = None,
) -> None:
    """Write the loops of all stages over the chunks of an axis.

    The first ``count`` of the walks are read, the others take the results. ``indices`` are those
    of the other axes, ``ends`` those of a range of this one.
    """
    f, d, region = nest.f, nest.d, nest.region
    axis, step, chunk, room, points = staging
    length = region.shape[axis]
    stages = stages_of(region.body, nest.wanted)
    kinds = {i: kind for x in stages[:-1] for i, kind in zip(x.gives, x.graph.output_dtypes)}
    rooms = {i: room(kind) for i, kind in kinds.items()}
    first, end = ends or ("0", str(length))
    with f.loop(first, end, step=chunk) as chunks:
        stop = f.minimum(f.add(chunks.counter, chunk), end)
        for stage in stages:
            with f.loop(chunks.counter, stop, step=step) as loop:
                slot = f.sub(loop.counter, chunks.counter)
                start = nest.clamp_tile(loop.counter, length, step)
                for row, (here, index) in enumerate(points(walks, start)):
                    mine = {**indices, axis: index}
                    arguments = nest.arguments(here[:count], [mine[k] for k in range(region.kept)])
                    for i in stage.takes:
                        location = d.advance(f, rooms[i], slot, 1).at(row)
                        arguments.append(Binding(location=location))
                    to = [walk.location for walk in here[count:]]
                    if stage is not stages[-1]:
                        to = [d.advance(f, rooms[i], slot, 1).at(row) for i in stage.gives]
                    nest.low.lower(f, stage.graph, arguments, (), list(enumerate(to)))
