"""Lowering of ``Nest``, ``Pack`` and ``Accumulate``: loops over the elements of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.backends.lowering.copies import copy_all, moved_together
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.graph.dtypes import B8, I64, item_type, length_of
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Accumulate, Gather, Nest, Pack
from archimedes.graph.regions.pack import Move
from archimedes.graph.regions.reads import positions, row_major

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering

__all__ = ["combining", "identity", "lower_accumulate", "lower_nest", "lower_pack"]


@cache
def combining(name: str, dtype: int) -> Graph:
    """Return the graph of an operation on two values of a dtype."""
    g = Graph()
    a, b = g.input(dtype), g.input(dtype)
    g.outputs = [g.emit(CODES[name], a, b)]
    return g


def identity(name: str, dtype: int) -> Any:
    """Return the number that leaves every other as it is, to the bit, where they are combined.

    >>> identity("add", 0), identity("min", 0)
    (-0.0, inf)
    """
    if dtype == I64:
        top = 2**63 - 1
        return {"mul": 1, "min": top, "max": -top - 1, "and": -1}.get(name, 0)
    if dtype == B8:
        return name == "and"
    return {"add": -0.0, "mul": 1.0, "min": math.inf, "max": -math.inf}[name]


class _Walk(NamedTuple):
    """A place that moves with the axes of an index space."""

    place: Place
    strides: tuple[int, ...]


@contextmanager
def _axis(
    d: Dialect, f: Any, length: int, walks: Sequence[_Walk], axis: int
) -> Iterator[tuple[str, list[_Walk]]]:
    """Write a loop along an axis; places move with it. The counter is empty where there is none."""
    if length == 1:
        yield "", list(walks)
        return
    with d.counted(f, length, ()) as loop:
        yield loop.counter, moved_along(d, f, length, walks, axis, loop.counter)


def moved_along(
    d: Dialect, f: Any, length: int, walks: Sequence[_Walk], axis: int, counter: str
) -> list[_Walk]:
    """Return walks at a point of an axis."""
    steps = []
    back = ""
    for place, strides in walks:
        stride = strides[axis]
        if stride < 0 and not d.walks_back:
            back = back or d.from_end(f, counter, length)
            steps.append((place.at(stride * (length - 1)), -stride, back))
        else:
            steps.append((place, stride, counter))
    moved = {}
    for at in dict.fromkeys(at for *_, at in steps):
        mine = [k for k, (_, stride, c) in enumerate(steps) if c == at and stride]
        found = moved_together(d, f, [steps[k][:2] for k in mine], at)
        moved |= dict(zip(mine, found))
    return [
        _Walk(moved.get(k, place), strides)
        for k, ((place, _, _), (_, strides)) in enumerate(zip(steps, walks))
    ]


class NestWriter:
    """Writes a nest as loops of scalars (of lanes, where values are vectors)."""

    def __init__(self, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> None:
        self.low, self.scope, self.region = low, scope, region
        self.d, self.f = low.dialect, scope.f
        self.wanted = scope.numbers(outs)
        self.outs = outs
        self.dtypes = [region.body.output_dtypes[k] for k in self.wanted]

    def write(self) -> None:
        """Write the loops and bind the used outputs."""
        region, d, f, scope = self.region, self.d, self.f, self.scope
        walks = self._reads()
        count, kept = len(walks), region.kept
        if kept:
            strides = row_major(region.shape[:kept])
            walks += [_Walk(scope.new_block(i), strides) for i in self.outs]
        counters: list[str] = []
        with ExitStack() as loops:
            for axis in range(kept):
                loop = _axis(d, f, region.shape[axis], walks, axis)
                counter, walks = loops.enter_context(loop)
                counters.append(counter)
            reads, to = walks[:count], [walk.place for walk in walks[count:]]
            if not region.combine:
                given = self._given(reads, counters)
                self.low.block(f, region, region.body, given, (), list(zip(self.wanted, to)))
                return
            values = self._reduced(reads, counters)
            for place, value in zip(to, values):
                d.store(f, place, value)
        if not kept:
            for i, value in zip(self.outs, values):
                scope.bind(i, Binding(operand=value))

    def _reads(self) -> list[_Walk]:
        """Return where affine reads begin, and tables of positions."""
        scope, region = self.scope, self.region
        walks = []
        for i, read in zip(region.inputs.tolist(), region.reads):
            if isinstance(read, Gather):
                table = self.d.constant_block(self.f, read.table, I64)
                walks.append(_Walk(table, row_major(region.shape)))
            elif read is not None:
                walks.append(_Walk(scope.block(i).at(read.offset), read.strides))
        return walks

    def _given(self, reads: Sequence[_Walk], counters: Sequence[str]) -> list[Binding]:
        """Return what the body gets at a point."""
        d, f, region = self.d, self.f, self.region
        given = []
        places = iter(reads)
        for i, read in zip(region.inputs.tolist(), region.reads):
            if read is None:
                given.append(self.scope.binding(i))
            elif isinstance(read, Gather):
                at = d.position(f, next(places).place)
                given.append(Binding(place=d.moving(f, self.scope.block(i), at, 1)))
            else:
                given.append(Binding(place=next(places).place))
        if region.indexed:
            given += [
                Binding(operand=d.number(f, c)) if c else Binding(constant=(0, I64))
                for c in counters
            ]
        return given

    def _combined(self, first: str, second: Binding, dtype: int) -> str:
        graph = combining(self.region.combine, dtype)
        (value,) = self.low.lower(self.f, graph, [Binding(operand=first), second], [0])
        return self.d.operand(self.f, value)

    def _reduced(self, reads: Sequence[_Walk], counters: Sequence[str]) -> list[str]:
        """Combine the values along the reduced axes."""
        d, f, region = self.d, self.f, self.region
        start = [identity(region.combine, x) for x in self.dtypes]
        if region.partials == 1 or region.reduced <= region.partials:
            return self._chain(
                reads, counters, [d.literal(v, x) for v, x in zip(start, self.dtypes)]
            )
        partials = [d.array(f, x, region.partials) for x in self.dtypes]
        for place, value, dtype in zip(partials, start, self.dtypes):
            d.fill_run(f, place, d.literal(value, dtype), region.partials)
        self._into_partials(reads, counters, partials)
        half = region.partials // 2
        while half:
            with d.counted(f, half, ()) as loop:
                for place, dtype in zip(partials, self.dtypes):
                    first = d.moving(f, place, loop.counter, 1)
                    second = Binding(place=first.at(half))
                    d.store(f, first, self._combined(d.load(f, first), second, dtype))
            half //= 2
        return [d.operand(f, d.taken(f, Binding(place=p), p.dtype)) for p in partials]

    def _values(self, reads: Sequence[_Walk], counters: Sequence[str]) -> list[Binding]:
        body = self.region.body
        return self.low.block(self.f, self.region, body, self._given(reads, counters), self.wanted)

    def _chain(
        self, reads: Sequence[_Walk], counters: Sequence[str], carried: list[str]
    ) -> list[str]:
        """Combine one value after the other along the axes that are left."""
        d, f, region = self.d, self.f, self.region
        axis = len(counters)
        if axis == len(region.shape):
            values = self._values(reads, counters)
            return [self._combined(*x) for x in zip(carried, values, self.dtypes)]
        length = region.shape[axis]
        if length == 1:
            return self._chain(reads, [*counters, ""], carried)
        with d.counted(f, length, list(zip(self.dtypes, carried))) as loop:
            moved = moved_along(d, f, length, reads, axis, loop.counter)
            loop.next = self._chain(moved, [*counters, loop.counter], loop.carried)
        return loop.carried

    def _into_partials(
        self, reads: Sequence[_Walk], counters: Sequence[str], partials: Sequence[Place]
    ) -> None:
        """Combine each value with the partial result that it belongs to."""
        d, f, region = self.d, self.f, self.region
        axis, rank = len(counters), len(region.shape)
        if axis < rank:
            with _axis(d, f, region.shape[axis], reads, axis) as (counter, moved):
                self._into_partials(moved, [*counters, counter], partials)
            return
        values = self._values(reads, counters)
        strides = row_major(region.shape)
        terms = [(counters[k], strides[k]) for k in range(region.kept, rank) if counters[k]]
        at = d.modulo(f, terms, region.partials)
        for place, value, dtype in zip(partials, values, self.dtypes):
            here = d.moving(f, place, at, 1)
            d.store(f, here, self._combined(d.load(f, here), value, dtype))


def lower_nest(low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> None:
    """Compute a nest and bind its used outputs: as the dialect does it, or as plain loops."""
    if not low.dialect.nest(low, scope, region, outs):
        NestWriter(low, scope, region, outs).write()


# ---- copies --------------------------------------------------------------------------------------


def lower_pack(low: Lowering, scope: Scope, region: Pack, outs: Sequence[int]) -> None:
    """Copy boxes into a block."""
    d, f = low.dialect, scope.f
    (i,) = outs
    to = scope.new_block(i)
    if not _covers(region):
        d.fill_run(f, to, d.literal(0, region.dtype), region.length)
    single: list[tuple[Place, Binding]] = []
    ids = region.inputs.tolist()
    for move in region.moves:
        value = scope.binding(ids[move.source])
        if math.prod(move.shape) == 1:
            if move.start is not None and value.place is not None:
                value = Binding(place=value.place.at(move.start.offset))
            single.append((to.at(move.to.offset), value))
            continue
        copy_all(d, f, single)
        single = []
        _copy_box(d, f, move, to, value)
    copy_all(d, f, single)


def _covers(region: Pack) -> bool:
    """Tell whether boxes cover the whole block."""
    if sum(math.prod(move.shape) for move in region.moves) < region.length:
        return False
    covered = np.zeros(region.length, dtype=bool)
    for move in region.moves:
        covered[positions(move.to, move.shape)] = True
    return bool(covered.all())


def _copy_box(d: Dialect, f: Any, move: Move, to: Place, value: Binding) -> None:
    shape, strides = merged(
        move.shape, [move.to.strides, *([move.start.strides] if move.start else [])]
    )
    walks = [_Walk(to.at(move.to.offset), strides[0])]
    if move.start is not None and value.place is not None:
        walks.append(_Walk(value.place.at(move.start.offset), strides[1]))
    elif value.place is not None:
        value = Binding(operand=d.operand(f, value))
    axis = 0
    with ExitStack() as loops:
        while axis < len(shape):
            last = axis == len(shape) - 1 and shape[axis] >= d.run
            ones = last and all(walk.strides[axis] == 1 for walk in walks)
            if ones and len(walks) == 2:
                d.copy_run(f, walks[0].place, walks[1].place, shape[axis])
                return
            if ones and value.constant is not None:
                d.fill_run(f, walks[0].place, d.operand(f, value), shape[axis])
                return
            _, walks = loops.enter_context(_axis(d, f, shape[axis], walks, axis))
            axis += 1
        source = d.load(f, walks[1].place) if len(walks) == 2 else d.operand(f, value)
        d.store(f, walks[0].place, source)


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]], apart: int = 0
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Make one axis of neighbours that are walked as one; leave out axes of length 1.

    Axes in front of number ``apart`` are not merged with those behind it.

    >>> merged((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
    ((6, 4), [(4, 1), (0, 1)])
    """
    axes: list[tuple[int, tuple[int, ...], bool]] = []
    for k, n in enumerate(shape):
        mine = tuple(s[k] for s in strides)
        if n == 1:
            continue
        if axes:
            m, before, front = axes[-1]
            if front == (k < apart) and all(b == s * n for b, s in zip(before, mine)):
                axes[-1] = (m * n, mine, front)
                continue
        axes.append((n, mine, k < apart))
    return tuple(n for n, *_ in axes), [tuple(x[1][j] for x in axes) for j in range(len(strides))]


def lower_accumulate(low: Lowering, scope: Scope, region: Accumulate, outs: Sequence[int]) -> None:
    """Add values to the elements that indices name, one after the other."""
    d, f, g = low.dialect, scope.f, scope.graph
    (i,) = outs
    to = scope.new_block(i)
    values, indices = region.inputs.tolist()
    dtype = item_type(region.dtype)
    d.fill_run(f, to, d.literal(0, dtype), region.length)
    starts = [(scope.block(values), 1), (scope.block(indices), 1)]
    with d.counted(f, length_of(g.dtype[values]), ()) as loop:
        value, index = moved_together(d, f, starts, loop.counter)
        at = d.load(f, index)
        held = d.element(f, to, region.length, at)
        given = [Binding(operand=held), Binding(place=value)]
        (new,) = low.lower(f, combining("add", dtype), given, [0])
        d.put(f, to, region.length, at, d.operand(f, new))
