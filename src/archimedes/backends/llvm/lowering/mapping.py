"""``Map`` in a scalar kernel: its instances are computed in lanes, like those of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.batches.tiles import (
    Rows,
    gather,
    load_tile,
    places_of,
    scatter,
    store_tile,
)
from archimedes.backends.llvm.lowering.scope import FrameReach
from archimedes.backends.lowering import Binding, Lowering, Place, Scope
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.graph.regions import Map

__all__ = ["map_in_lanes"]


def map_in_lanes(
    module: Module, wide: Lowering, scope: Scope, region: Map, outs: Sequence[int]
) -> None:
    """Compute a map tile by tile and bind its used outputs.

    Tiles are functions of ``module``, whose values are vectors; ``wide`` lowers the body in it.
    """
    f, body, width = scope.f, region.body, len(region.body.outputs)
    stacked, shared = region.parts()
    sources, columns = _sources(scope, region, stacked.tolist())
    kept = sorted({k % width for k in scope.numbers(outs)})
    kinds = [body.output_dtypes[k] for k in kept]
    stride = {d: kinds.count(d) for d in set(kinds)}
    places = arrays(scope.dialect, f, kinds, region.length)
    reach = FrameReach(f)
    dtypes = body.input_dtypes[region.slices :]
    pairs = zip(scope.bindings(shared.tolist()), dtypes)
    fixed = [_uniform(reach.binding(b, d)) for b, d in pairs]
    results = {d: next(p for p in places if p.dtype == d)._replace(offset=0) for d in stride}
    name = _write_tile(module, wide, region, columns, fixed, kept, places, stride)
    moved = [*sources.values(), *results.values()]
    pointers = "".join(f", ptr {f.address(place)}" for place in moved)
    with f.loop(0, region.length, step=f.module.target.lanes) as loop:
        f.line(
            f"call void {name}(ptr %frame, ptr %in, ptr %out, i64 {loop.counter}, "
            f"i64 {region.length}{pointers})"
        )
    column = dict(zip(kept, places))
    for i, number in zip(outs, scope.numbers(outs)):
        t, k = divmod(number, width)
        scope.bind(i, Binding(place=column[k].at(t * stride[column[k].dtype])))


def _uniform(binding: Binding) -> Binding:
    """Return a scalar value in memory as one that lanes share."""
    place = binding.place
    if place is None:
        return binding
    return Binding(place=place._replace(array=place.array._replace(uniform=True)))


def _sources(
    scope: Scope, region: Map, stacked: Sequence[Sequence[int]]
) -> tuple[dict[int, Place], dict[int, list[int]]]:
    """Return, by dtype, the array of all instances' slices and the columns it holds.

    Slices that lie in this order in memory already are read where they are.
    """
    f = scope.f
    dtypes = region.body.input_dtypes[: region.slices]
    columns = {d: [j for j, x in enumerate(dtypes) if x == d] for d in sorted(set(dtypes))}
    sources = {}
    for d, mine in columns.items():
        bindings = scope.bindings([row[j] for row in stacked for j in mine])
        start = bindings[0].place
        if start is None or any(b.place != start.at(k) for k, b in enumerate(bindings)):
            start = f.module.frame.array(d, len(bindings))
            copy_all(scope.dialect, f, [(start.at(k), b) for k, b in enumerate(bindings)])
        sources[d] = start
    return sources, columns


def _write_tile(
    module: Module,
    wide: Lowering,
    region: Map,
    columns: dict[int, list[int]],
    fixed: Sequence[Binding],
    kept: Sequence[int],
    places: Sequence[Place],
    stride: dict[int, int],
) -> str:
    """Write the function of one tile: ``(frame, in, out, first, end, slices ..., results ...)``."""
    body = region.body
    name = module.fresh("map")
    arguments = [f"%from{d}" for d in columns] + [f"%to{d}" for d in stride]
    pointers = "".join(f", ptr {x}" for x in arguments)
    head = f"define internal void {name}({PARAMETERS}, i64 %first, i64 %end{pointers})"
    f = Function(module, head)
    following = f.value(f"add i64 %first, {f.spelling.lanes}")
    whole = f.value(f"icmp sle i64 {following}, %end")
    tiles = {d: module.frame.array(d, len(mine)) for d, mine in columns.items()}
    given = [Binding()] * region.slices
    for d, mine in columns.items():
        for k, j in enumerate(mine):
            given[j] = Binding(place=tiles[d].at(k))

    results = {d: module.frame.array(d, count) for d, count in stride.items()}

    def rows(stem: str, d: int, count: int) -> Rows:
        room = f.address(module.frame.array(d, count))
        return Rows(f"%{stem}{d}", count, d, room)

    sources = [rows("from", d, len(mine)) for d, mine in columns.items()]
    targets = [rows("to", d, count) for d, count in stride.items()]
    reads = gather(f, whole, "%first", "%end", sources)
    writes = places_of(f, whole, "%first", targets)
    for r, base in zip(sources, reads):
        load_tile(f, base, r.items, set(range(r.items)), tiles[r.dtype])
    stores = [(k, results[place.dtype].at(place.offset)) for k, place in zip(kept, places)]
    wide.lower(f, body, [*given, *fixed], stores=stores)
    for r, base in zip(targets, writes):
        store_tile(f, base, r.items, results[r.dtype])
    scatter(f, whole, "%first", "%end", targets)
    f.finish()
    return name
