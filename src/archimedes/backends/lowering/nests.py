"""Lowering of ``Nest``: loops over an index space, with reductions in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.combining import combining, identity
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.backends.lowering.walks import Walk, along, merged_nest, moved_along
from archimedes.graph.dtypes import I64
from archimedes.graph.regions import Gather, Nest
from archimedes.graph.regions.nest import row_major

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering

__all__ = ["NestWriter", "lower_nest"]

#: The index along an axis: what the body gets, where it takes it; and its counter ("": it is 0).
Index = tuple[Binding | None, str]


class NestWriter:
    """Writes a nest as loops of scalars (of lanes, where values are vectors).

    ``given`` binds the inputs of the region, ``wanted`` are the numbers of the used outputs.
    """

    def __init__(
        self, low: Lowering, f: Any, region: Nest, given: Sequence[Binding], wanted: Sequence[int]
    ) -> None:
        self.low, self.d, self.f, self.region = low, low.dialect, f, region
        self.given, self.wanted = given, wanted
        self.dtypes = [region.body.output_dtypes[k] for k in wanted]
        #: Distances of elements in the blocks of results (nothing: they are neighbours).
        self.apart: Sequence[int] = ()

    @property
    def in_order(self) -> bool:
        """Whether values are combined one after the other, not as partial results."""
        return self.region.partials == 1 or self.region.reduced <= self.region.partials

    def write(self, to: Sequence[Place]) -> list[str]:
        """Write the loops: results go to these blocks, or are returned where no axis is kept."""
        region, d, f = self.region, self.d, self.f
        walks = self.reads()
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        for place, distance in zip(to, self.apart or [1] * len(to)):
            walks.append(Walk(place, tuple(distance * s for s in strides)))
        indices: list[Index] = []
        with ExitStack() as loops:
            for axis in range(region.kept):
                loop = along(d, f, region.shape[axis], walks, axis)
                counter, walks = loops.enter_context(loop)
                indices.append(self.index(counter))
            return self.point(walks[:count], indices, [walk.place for walk in walks[count:]])

    def point(
        self, reads: Sequence[Walk], indices: Sequence[Index], to: Sequence[Place]
    ) -> list[str]:
        """Write what is computed at a point of the kept axes."""
        region, d, f = self.region, self.d, self.f
        if not region.combine:
            given, stores = self.arguments(reads, indices), list(zip(self.wanted, to))
            self.low.block(f, region, region.body, given, (), stores)
            return []
        values = self._reduced(reads, indices)
        for place, value in zip(to, values):
            d.store(f, place, value)
        return values

    def index(self, counter: str, known: int = 0) -> Index:
        """Return the index of a counter, or a known one."""
        if not self.region.indexed:
            return None, counter
        if not counter:
            return Binding(constant=(known, I64)), counter
        return Binding(operand=self.d.number(self.f, counter)), counter

    def reads(self) -> list[Walk]:
        """Return where affine reads begin, and tables of positions."""
        region = self.region
        walks = []
        for binding, read in zip(self.given, region.reads):
            if isinstance(read, Gather):
                table = self.d.constant_block(self.f, read.table, I64)
                walks.append(Walk(table, row_major(region.shape)))
            elif read is not None:
                assert binding.place is not None
                walks.append(Walk(binding.place.at(read.offset), read.strides))
        return walks

    def arguments(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[Binding]:
        """Return what the body gets at a point."""
        found = []
        places = iter(reads)
        for binding, read in zip(self.given, self.region.reads):
            if read is None:
                found.append(binding)
                continue
            place = next(places).place
            if isinstance(read, Gather):
                assert binding.place is not None
                found.append(self.d.gathered(self.f, binding.place, place))
            else:
                found.append(Binding(place=place))
        return found + [index for index, _ in indices if index is not None]

    def _combined(self, first: str, second: Binding, dtype: int) -> str:
        graph = combining(self.region.combine, dtype)
        (value,) = self.low.lower(self.f, graph, [Binding(operand=first), second], [0])
        return self.d.operand(self.f, value)

    def _values(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[Binding]:
        given = self.arguments(reads, indices)
        return self.low.block(self.f, self.region, self.region.body, given, self.wanted)

    def _reduced(self, reads: Sequence[Walk], indices: Sequence[Index]) -> list[str]:
        """Combine the values along the reduced axes."""
        d, f, region = self.d, self.f, self.region
        start = [d.literal(identity(region.combine, x), x) for x in self.dtypes]
        if self.in_order:
            return self._chain(reads, indices, start)
        partials = [d.array(f, x, region.partials) for x in self.dtypes]
        for place, value in zip(partials, start):
            d.fill_run(f, place, value, region.partials)
        self._into_partials(reads, indices, partials)
        half = region.partials // 2
        while half > 1:
            with d.counted(f, half, ()) as loop:
                for place, dtype in zip(partials, self.dtypes):
                    first = d.moving(f, place, loop.counter, 1)
                    second = Binding(place=first.at(half))
                    d.store(f, first, self._combined(d.load(f, first), second, dtype))
            half //= 2
        return [self._combined(d.load(f, p), Binding(place=p.at(1)), p.dtype) for p in partials]

    def _chain(
        self, reads: Sequence[Walk], indices: Sequence[Index], carried: list[str]
    ) -> list[str]:
        """Combine one value after the other along the axes that are left."""
        d, f, region = self.d, self.f, self.region
        axis = len(indices)
        if axis == len(region.shape):
            values = self._values(reads, indices)
            return [self._combined(*x) for x in zip(carried, values, self.dtypes)]
        length = region.shape[axis]
        if length == 1 or (axis + 1 == len(region.shape) and length <= d.written_out):
            for k in range(length):
                here = [
                    walk._replace(place=walk.place.at(k * walk.strides[axis])) for walk in reads
                ]
                carried = self._chain(here, [*indices, self.index("", k)], carried)
            return carried
        with d.counted(f, length, list(zip(self.dtypes, carried))) as loop:
            moved = moved_along(d, f, length, reads, axis, loop.counter)
            loop.next = self._chain(moved, [*indices, self.index(loop.counter)], loop.carried)
        return loop.carried

    def _into_partials(
        self, reads: Sequence[Walk], indices: Sequence[Index], partials: Sequence[Place]
    ) -> None:
        """Combine each value with the partial result that it belongs to."""
        d, f, region = self.d, self.f, self.region
        axis, rank = len(indices), len(region.shape)
        if axis < rank:
            with along(d, f, region.shape[axis], reads, axis) as (counter, moved):
                self._into_partials(moved, [*indices, self.index(counter)], partials)
            return
        values = self._values(reads, indices)
        counters = [counter for _, counter in indices]
        strides = row_major(region.shape)
        terms = [(counters[k], strides[k]) for k in range(region.kept, rank) if counters[k]]
        at = d.modulo(f, terms, region.partials)
        for place, value, dtype in zip(partials, values, self.dtypes):
            here = d.moving(f, place, at, 1)
            d.store(f, here, self._combined(d.load(f, here), value, dtype))


def lower_nest(low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> None:
    """Compute a nest and bind its used outputs: as the dialect does it, or as plain loops."""
    region = merged_nest(region)
    if low.dialect.nest(low, scope, region, outs):
        return
    given = scope.bindings(region.inputs.tolist())
    to = [scope.new_block(i) for i in outs] if region.kept else []
    writer = NestWriter(low, scope.f, region, given, scope.numbers(outs))
    writer.apart = [scope.stride(i) for i in outs]
    values = writer.write(to)
    if not region.kept:
        for i, value in zip(outs, values):
            scope.bind(i, Binding(operand=value))
