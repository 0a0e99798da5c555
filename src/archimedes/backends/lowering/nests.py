"""Lowering of ``Nest``: loops over an index space, with reductions in their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from archimedes.backends.lowering.analysis import is_in_order
from archimedes.backends.lowering.copies import advance_all
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import B8, I64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Gather, Nest
from archimedes.graph.regions.block_regions import Read, row_major

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering


#: The index along an axis: what the body gets, where it takes it; and its counter ("": it is 0).
Index = tuple[Binding | None, str]


@cache
def combine_graph(name: str, dtype: int) -> Graph:
    """Return the graph of an operation on two values of a dtype."""
    g = Graph()
    a, b = g.input(dtype), g.input(dtype)
    g.outputs = [g.emit(CODES[name], a, b)]
    return g


def identity(name: str, dtype: int) -> Any:
    """Return the identity of an operation: combining with it changes no bit of another number.

    >>> identity("add", 0), identity("min", 0)
    (-0.0, inf)
    """
    if dtype == I64:
        top = 2**63 - 1
        return {"mul": 1, "min": top, "max": -top - 1, "and": -1}.get(name, 0)
    if dtype == B8:
        return name == "and"
    return {"add": -0.0, "mul": 1.0, "min": math.inf, "max": -math.inf}[name]


# ---- locations that move with the axes -----------------------------------------------------


class Walk(NamedTuple):
    """A location, and by how many elements it moves along each axis.

    A dialect that has laid an array out anew says in ``layout`` what else it knows of that.
    """

    location: Location
    strides: tuple[int, ...]
    layout: Any = None

    def at(self, k: int) -> Walk:
        """Return the walk ``k`` elements further."""
        return self._replace(location=self.location.at(k))


@contextmanager
def loop_along(
    d: Dialect, f: Any, length: int, walks: Sequence[Walk], axis: int
) -> Iterator[tuple[str, list[Walk]]]:
    """Write a loop along an axis; yield its counter ("": no loop) and the walks inside it."""
    if length == 1:
        yield "", list(walks)
        return
    with d.for_loop(f, length) as loop:
        yield loop.counter, advance_along(d, f, length, walks, axis, loop.counter)


def advance_along(
    d: Dialect, f: Any, length: int, walks: Sequence[Walk], axis: int, counter: str
) -> list[Walk]:
    """Return walks at a point of an axis."""
    steps: list[tuple[Location, int, str]] = []
    back = ""
    for location, strides, _ in walks:
        stride = strides[axis]
        if stride < 0 and not d.walks_back:
            back = back or d.from_end(f, counter, length)
            steps.append((location.at(stride * (length - 1)), -stride, back))
        else:
            steps.append((location, stride, counter))
    there = list(walks)
    for at in dict.fromkeys(at for *_, at in steps):
        mine = [k for k, (_, stride, c) in enumerate(steps) if c == at and stride]
        for k, location in zip(mine, advance_all(d, f, [steps[k][:2] for k in mine], at)):
            there[k] = walks[k]._replace(location=location)
    return there


def merge_axes(
    shape: Sequence[int], strides: Sequence[Sequence[int]], apart: int = 0
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Merge neighbouring axes that are walked as one, and drop axes of length 1.

    Axes in front of number ``apart`` are not merged with those behind it.

    >>> merge_axes((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
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


def merge_nest_axes(region: Nest) -> Nest:
    """Return the same nest over as few axes as its reads allow, at least one.

    Kept axes and reduced ones stay apart; a body that takes the indices needs all axes.
    """
    if region.indexed:
        return region
    every = row_major(region.shape)
    strides = [r.strides if isinstance(r, Affine) else every for r in region.reads if r is not None]
    # Results lie in C order, and so are the points of a reduction counted.
    strides.append(every)
    shape, [*merged, _] = merge_axes(region.shape, strides, region.kept)
    kept = len(merge_axes(region.shape[: region.kept], [x[: region.kept] for x in strides])[0])
    if region.kept and not kept:
        shape, merged, kept = (1, *shape), [(0, *x) for x in merged], 1
    if len(shape) == kept < len(region.shape) and region.combine:
        shape, merged = (*shape, 1), [(*x, 0) for x in merged]
    following = iter(merged)
    reads: list[Read] = []
    for read in region.reads:
        mine = () if read is None else next(following)
        reads.append(Affine(read.offset, mine) if isinstance(read, Affine) else read)
    return replace(region, shape=shape, reads=tuple(reads), kept=kept)


# ---- loops ---------------------------------------------------------------------------------


@dataclass(eq=False)
class NestWriter:
    """Writes a nest as loops of scalars (of SIMD lanes, where values are vectors).

    ``inputs`` binds the inputs of the region, ``wanted`` are the numbers of the used outputs.
    ``apart`` are the distances of elements in the blocks of results (nothing: they are neighbours).
    """

    low: Lowering
    f: Any
    region: Nest
    inputs: Sequence[Binding]
    wanted: Sequence[int]
    apart: Sequence[int] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        self.d = self.low.dialect
        self.dtypes = [self.region.body.output_dtypes[k] for k in self.wanted]

    @property
    def in_order(self) -> bool:
        """Whether values are combined one after the other, not as partial results."""
        return is_in_order(self.region)

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops: results go to these blocks, or are returned where no axis is kept."""
        walks, count = self.walks(to)
        indices: list[Index] = []
        with ExitStack() as loops:
            for axis in range(self.region.kept):
                walks, index = self.enter_axis(loops, walks, axis)
                indices.append(index)
            return self.point(walks[:count], indices, [walk.location for walk in walks[count:]])

    def walks(self, to: Sequence[Location]) -> tuple[list[Walk], int]:
        """Return the walks of all that is read and of results, and the number of the former."""
        region, reads = self.region, list[Walk]()
        for binding, read in zip(self.inputs, region.reads):
            if isinstance(read, Gather):
                table = self.d.constant_block(self.f, read.table, I64)
                reads.append(Walk(table, row_major(region.shape)))
            elif read is not None:
                reads.append(Walk(binding.memory.at(read.offset), read.strides))
        strides = row_major(region.shape[: region.kept])
        results = [
            Walk(location, tuple(distance * s for s in strides))
            for location, distance in zip(to, self.apart or [1] * len(to))
        ]
        return reads + results, len(reads)

    def enter_axis(
        self, loops: ExitStack, walks: Sequence[Walk], axis: int
    ) -> tuple[list[Walk], Index]:
        """Begin the loop along an axis; return walks and index there."""
        loop = loop_along(self.d, self.f, self.region.shape[axis], walks, axis)
        counter, walks = loops.enter_context(loop)
        return walks, self.index(counter)

    def point(
        self, reads: Sequence[Walk], indices: Sequence[Index], to: Sequence[Location]
    ) -> list[str]:
        """Write what is computed at a point of the kept axes."""
        region = self.region
        if not region.combine:
            arguments, stores = self.arguments(reads, indices), list(zip(self.wanted, to))
            self.low.block(self.f, region, region.body, arguments, (), stores)
            return []
        values = self._reduce(reads, indices)
        for location, value in zip(to, values):
            self.d.store(self.f, location, value)
        return values

    def index(self, counter: str, known: int = 0) -> Index:
        """Return the index of a counter, or a known one."""
        if not self.region.indexed:
            return None, counter
        if not counter:
            return Binding(constant=(known, I64)), counter
        return Binding(operand=self.d.number(self.f, counter)), counter

    def arguments(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[Binding]:
        """Return what the body gets at a point."""
        arguments = []
        walks = iter(reads)
        for binding, read in zip(self.inputs, self.region.reads):
            if read is None:
                arguments.append(binding)
                continue
            location = next(walks).location
            if isinstance(read, Gather):
                arguments.append(self.d.gather(self.f, binding.memory, location))
            else:
                arguments.append(Binding(location=location))
        return arguments + [index for index, _ in indices if index is not None]

    def identities(self, dtypes: Sequence[int]) -> list[str]:
        """Return the values that combining begins with."""
        return [self.d.literal(identity(self.region.combine, x), x) for x in dtypes]

    def combine(self, first: str, second: Binding, dtype: int) -> str:
        """Combine two values."""
        graph = combine_graph(self.region.combine, dtype)
        (value,) = self.low.lower(self.f, graph, [Binding(operand=first), second], [0])
        return self.d.operand(self.f, value)

    def _values(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[Binding]:
        arguments = self.arguments(reads, indices)
        return self.low.block(self.f, self.region, self.region.body, arguments, self.wanted)

    def _reduce(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[str]:
        """Combine the values along the reduced axes."""
        d, f, region = self.d, self.f, self.region
        start = self.identities(self.dtypes)
        if self.in_order:
            return self._chain(reads, indices, start)
        partials = [d.array(f, x, region.partials) for x in self.dtypes]
        for location, value in zip(partials, start):
            d.fill_run(f, location, value, region.partials)
        self._into_partials(reads, indices, partials)
        half = region.partials // 2
        while half > 1:
            with d.for_loop(f, half) as loop:
                for location, dtype in zip(partials, self.dtypes):
                    first = d.advance(f, location, loop.counter, 1)
                    second = Binding(location=first.at(half))
                    d.store(f, first, self.combine(d.load(f, first), second, dtype))
            half //= 2
        return [self.combine(d.load(f, p), Binding(location=p.at(1)), p.dtype) for p in partials]

    def _chain(
        self, reads: Sequence[Walk], indices: Sequence[Index], carried: list[str]
    ) -> list[str]:
        """Combine one value after the other along the axes that are left."""
        d, f, region = self.d, self.f, self.region
        axis = len(indices)
        if axis == len(region.shape):
            values = self._values(reads, indices)
            return [self.combine(*x) for x in zip(carried, values, self.dtypes)]
        length = region.shape[axis]
        if length == 1 or (axis + 1 == len(region.shape) and length <= d.unrolled_terms):
            for k in range(length):
                here = [walk.at(k * walk.strides[axis]) for walk in reads]
                carried = self._chain(here, [*indices, self.index("", k)], carried)
            return carried
        with d.for_loop(f, length, list(zip(self.dtypes, carried))) as loop:
            here = advance_along(d, f, length, reads, axis, loop.counter)
            loop.next = self._chain(here, [*indices, self.index(loop.counter)], loop.carried)
        return loop.carried

    def _into_partials(
        self, reads: Sequence[Walk], indices: Sequence[Index], partials: Sequence[Location]
    ) -> None:
        """Combine each value with the partial result that it belongs to."""
        d, f, region = self.d, self.f, self.region
        axis, rank = len(indices), len(region.shape)
        if axis < rank:
            with ExitStack() as loops:
                here, index = self.enter_axis(loops, reads, axis)
                self._into_partials(here, [*indices, index], partials)
            return
        values = self._values(reads, indices)
        strides = row_major(region.shape)
        reduced = [(counter, s) for (_, counter), s in zip(indices, strides)][region.kept :]
        at = d.modulo(f, [term for term in reduced if term[0]], region.partials)
        for location, value, dtype in zip(partials, values, self.dtypes):
            partial = d.advance(f, location, at, 1)
            d.store(f, partial, self.combine(d.load(f, partial), value, dtype))


def lower_nest(low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> None:
    """Compute a nest and bind its used outputs: as the dialect does it, or as plain loops."""
    region = merge_nest_axes(region)
    if low.dialect.nest(low, scope, region, outs):
        return
    inputs = scope.bindings(region.inputs.tolist())
    to = [scope.new_block(i) for i in outs] if region.kept else []
    apart = [scope.stride(i) for i in outs]
    values = NestWriter(low, scope.f, region, inputs, scope.numbers(outs), apart=apart).write(to)
    for i, value in zip([] if region.kept else outs, values):
        scope.bind(i, Binding(operand=value))
