"""Directions swept through a program: a few at once, many as the steps of one loop.

Unrolled, a program that carries a tangent along each of n directions is n times as long. As a loop
its code does not depend on their number; what the steps have in common is computed once, before
it, and backends run the steps in SIMD lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import concatenate, scalar_loop
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.dtypes import DTYPES, I64, item_type, length_of
from archimedes.graph.ops import BLOCK, CODES, CONST, INPUT
from archimedes.graph.passes import Transformer, copy_into, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Scan
from archimedes.graph.regions.base import Directions

#: What every body has for itself.
_THERE = (INPUT, CONST, BLOCK)


def hoist(g: Graph, body: Graph, own: int, shared: Sequence[int]) -> tuple[Graph, list[int]]:
    """Append to ``g`` what a body computes of its shared inputs alone.

    The first ``own`` inputs of the body differ from step to step, ``shared`` are ids in ``g`` for
    the others. Returns the body without that, and the ids of what it shares now.

    >>> from archimedes.graph.ops import CODES
    >>> g, body = Graph(), Graph()
    >>> x, k, y = g.input(0), body.input(0), body.input(0)
    >>> body.outputs = [body.emit(CODES["add"], k, body.emit(CODES["sin"], y))]
    >>> rest, ids = hoist(g, body, 1, [x])
    >>> g.op[ids[-1]] == CODES["sin"], len(rest)
    (True, 4)
    """
    live, moving = body.live(), body.dependents([*body.inputs[:own], *body.effects()])
    fixed = [i for i in live if not moving[i]]
    # What stays in the body reads these; inputs and constants are there anyway.
    read = {j for i in live if moving[i] for j in body.operands(i)}.union(body.outputs)
    border = [i for i in fixed if i in read and body.op[i] not in _THERE]
    if not border:
        return body, list(shared)
    before = copy_into(g, body, [*[-1] * own, *shared], fixed)
    rest = Graph.with_inputs(body.input_dtypes)
    copy = Transformer(rest, body, rest.inputs)
    for i in border:
        copy.to[i] = rest.input(body.dtype[i])
    copy.run([i for i in live if moving[i] or body.op[i] in _THERE])
    rest.outputs = copy.outputs()
    return rest, [*shared, *(before[i] for i in border)]


_EQ, _SELECT = CODES["eq"], CODES["select"]
_LINE = Affine(0, (1,))
#: More results of a step are one block: less code.
COLUMNS = 128


class Side:
    """The elements of some values (scalars and blocks), numbered consecutively."""

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds = kinds
        self.lengths = [length_of(kind) for kind in kinds]
        ends = np.cumsum([length or 1 for length in self.lengths], dtype=np.int64)
        self.starts = np.concatenate([[0], ends])[:-1]

    def parts(self, colors: np.ndarray) -> list[np.ndarray]:
        """Return the colours of each value."""
        return np.split(colors, self.starts[1:])

    def values(self, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which value each element belongs to, and its offset there."""
        value = np.searchsorted(self.starts, elements, side="right") - 1
        return value, elements - self.starts[value]


#: A derivative sweep in a graph with the inputs there: directions on one side give the other's.
Sweep = Callable[[Graph, Sequence[int], Sequence[Directions]], list[Directions]]


def forward(src: Graph, wrt: Sequence[int]) -> Sweep:
    """Return the sweep from tangents of the inputs at ``wrt`` to those of outputs."""

    def sweep(g: Graph, inputs: Sequence[int], seeds: Sequence[Directions]) -> list[Directions]:
        every: list[Directions] = [{} for _ in inputs]
        for position, mine in zip(wrt, seeds):
            every[position] = {**every[position], **mine}
        return forward_sweep(g, src, list(inputs), every)[1]

    return sweep


def reverse(src: Graph, wrt: Sequence[int]) -> Sweep:
    """Return the sweep from adjoints of outputs to those of the inputs at ``wrt``."""

    def sweep(g: Graph, inputs: Sequence[int], seeds: Sequence[Directions]) -> list[Directions]:
        chosen = set(wrt)
        wanted = [position in chosen for position in range(len(inputs))]
        back = reverse_sweep(g, src, list(inputs), list(seeds), wanted)[1]
        return [back[position] for position in wrt]

    return sweep


class Swept(NamedTuple):
    """The result of a sweep: scalars and blocks.

    ``where(colours, elements)`` says which value has the derivative of an element of the far side
    along a direction (-1: none, it is zero), and at which offset.
    """

    ids: list[int]
    where: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def at_once(
    g: Graph, inputs: Sequence[int], sweep: Sweep, near: Side, far: Side, colors: np.ndarray
) -> Swept:
    """Sweep all directions at once; ``colors`` gives the direction of each element of ``near``."""
    seeds: list[Directions] = []
    for own, kind in zip(near.parts(colors), near.kinds):
        if length_of(kind):
            dtype = DTYPES[item_type(kind)]
            masks = {int(c): (own == c).astype(dtype) for c in np.unique(own) if c >= 0}
            seeds.append({c: g.block(mask) for c, mask in masks.items()})
        else:
            seeds.append({int(c): g.const(1.0, kind) for c in own if c >= 0})
    numbers = np.full((int(colors.max(initial=-1)) + 1, len(far.kinds)), -1, dtype=np.int64)
    ids: list[int] = []
    for value, mine in enumerate(sweep(g, inputs, seeds)):
        for color, i in mine.items():
            numbers[color, value] = len(ids)
            ids.append(i)

    def where(color: np.ndarray, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, offset = far.values(element)
        return numbers[color, value], offset

    return Swept(ids, where)


def in_loop(
    g: Graph, inputs: Sequence[int], sweep: Sweep, near: Side, far: Side, colors: np.ndarray
) -> Swept:
    """Sweep one direction in each step of a loop."""
    body = Graph.with_inputs([I64, *(g.dtype[i] for i in inputs)])
    step, *own = body.inputs
    seeds = [_seed(body, step, mine, kind) for mine, kind in zip(near.parts(colors), near.kinds)]
    results = sweep(body, own, seeds)
    # What a step gives is a column of its own for each value; many are one block.
    there = [value for value, mine in enumerate(results) if mine]
    groups = [[value] for value in there]
    if len(there) > COLUMNS:
        kinds = {value: item_type(far.kinds[value]) for value in there}
        groups = [[v for v in there if kinds[v] == kind] for kind in sorted(set(kinds.values()))]
    group, begin = np.full((2, len(results)), -1, dtype=np.int64)
    widths = np.zeros(len(groups), dtype=np.int64)
    for number, mine in enumerate(groups):
        counts = [far.lengths[value] or 1 for value in mine]
        group[mine], begin[mine] = number, np.cumsum([0, *counts[:-1]])
        widths[number] = sum(counts)
        ids = [results[value][0] for value in mine]
        body.outputs.append(ids[0] if len(ids) == 1 else concatenate(body, ids))
    outs: list[int] = []
    if groups:
        steps = int(colors.max()) + 1
        rest, shared = hoist(g, prune(body), 1, inputs)
        operands = [g.block(np.arange(steps)), *shared]
        outs = g.region(Scan(operands, rest, steps, 0, 1, stacked=True)).tolist()

    def where(color: np.ndarray, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, offset = far.values(element)
        number = group[value]
        return number, color * widths[number] + begin[value] + offset if groups else number

    return Swept(outs, where)


def _seed(body: Graph, step: int, colors: np.ndarray, kind: int) -> Directions:
    """Append the tangent of a value in a step: 1 where its elements have the step's colour."""
    dtype = item_type(kind)

    def unit(e: Graph, color: int, direction: int) -> int:
        here = e.emit(_EQ, color, direction)
        return e.emit(_SELECT, here, e.const(1.0, dtype), e.const(0.0, dtype))

    if length_of(kind):
        table = body.block(colors.astype(np.int64))
        return {0: scalar_loop(body, [table, step], unit, colors.shape, (_LINE, None))}
    return {0: unit(body, body.const(int(colors[0]), I64), step)} if colors[0] >= 0 else {}


def pick_entries(
    g: Graph, swept: Swept, number: np.ndarray, offset: np.ndarray, block: bool
) -> tuple[list[int], np.ndarray | None]:
    """Return values that a sweep gave, by number and offset.

    ``block``: as elements of one, where they have one dtype, with their offsets in it;
    otherwise as scalars, with None.
    """
    kinds = [g.dtype[i] for i in swept.ids]
    if block and number.size and len(set(map(item_type, kinds))) == 1:
        starts = np.cumsum([0, *(length_of(kind) or 1 for kind in kinds[:-1])])
        whole = swept.ids[0]
        if len(kinds) > 1 or not length_of(kinds[0]):
            whole = concatenate(g, swept.ids)
        return [whole], starts[number] + offset
    ids = [
        g.element(swept.ids[k], g.const(at, I64)) if length_of(kinds[k]) else swept.ids[k]
        for k, at in zip(number.tolist(), offset.tolist())
    ]
    return ids, None
