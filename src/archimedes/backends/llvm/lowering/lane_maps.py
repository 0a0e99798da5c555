"""Independent instances in a scalar kernel, in SIMD lanes like those of a batch.

``Map`` has its instances in numbers. Those of loops that carry nothing may be rows of blocks, which
are read and written where they are. Few short instances do without a detour through memory: the
arguments and results of a tile are vectors that a function takes and returns; the lanes of an
incomplete one repeat the last instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function
from archimedes.backends.llvm.lowering.memory_dialect import FrameReach
from archimedes.backends.llvm.lowering.prologue import loop_with_safepoints
from archimedes.backends.llvm.lowering.tiles import (
    Rows,
    addresses_of,
    gather,
    load_tile,
    scatter,
    store_tile,
)
from archimedes.backends.lowering.analysis import safepoint_of
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Instances, Location, Scope
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map

#: At most so many slices and results of an instance, and so many tiles, make a short map.
FEW, TILES = 4, 8


class _Columns(NamedTuple):
    """An array with ``items`` numbers of a dtype for each instance, in the memory of the kernel.

    ``numbers`` says which inputs, or outputs, of the body are there, and ``offsets`` where.
    """

    location: Location
    items: int
    numbers: Sequence[int]
    offsets: Sequence[int]


def _used_outputs(scope: Scope, region: Map, outs: Sequence[int]) -> list[int]:
    return sorted({k % len(region.body.outputs) for k in scope.numbers(outs)})


def _shared_bindings(
    scope: Scope, body: Graph, shared: Sequence[int], slices: int
) -> list[Binding]:
    """Return what all lanes share."""
    reach = FrameReach(scope.f)
    pairs = zip(scope.bindings(shared), body.input_dtypes[slices:])
    return [reach.shared(b, item_type(kind)) for b, kind in pairs]


# ---- through memory ------------------------------------------------------------------------


def map_in_lanes(wide: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Compute a map tile by tile and bind its used outputs; ``wide`` lowers its body."""
    body, width = region.body, len(region.body.outputs)
    _, stacked, shared = region.parts()
    used = _used_outputs(scope, region, outs)
    kinds = [body.output_dtypes[k] for k in used]
    column = dict(zip(used, arrays(scope.dialect, scope.f, kinds, region.length)))
    stride = {d: kinds.count(d) for d in set(kinds)}
    results = []
    for d, count in stride.items():
        mine = {k: location for k, location in column.items() if location.dtype == d}
        start = next(iter(mine.values()))._replace(offset=0)
        results.append(_Columns(start, count, [*mine], [x.offset for x in mine.values()]))
    sources = _sources(scope, region, stacked.tolist())
    fixed = _shared_bindings(scope, body, shared.tolist(), region.slices)
    _lower_tiles(wide, scope, Instances(body, region.length, (), ()), sources, fixed, results)
    for i, number in zip(outs, scope.numbers(outs)):
        t, k = divmod(number, width)
        scope.bind(i, Binding(location=column[k].at(t * stride[column[k].dtype])))


def rows_in_lanes(wide: Lowering, scope: Scope, instances: Instances, outs: Sequence[int]) -> None:
    """Compute instances that are rows of blocks in the same way."""
    body = instances.body
    sources = [
        _Columns(scope.block(i), length_of(kind) or 1, (j,), (0,))
        for j, (i, kind) in enumerate(zip(instances.rows, body.input_dtypes))
    ]
    fixed = _shared_bindings(scope, body, instances.shared, len(instances.rows))
    results = [
        _Columns(scope.new_block(i), length_of(body.output_dtypes[k]) or 1, (k,), (0,))
        for i, k in zip(outs, scope.numbers(outs))
    ]
    _lower_tiles(wide, scope, instances, sources, fixed, results)


def _sources(scope: Scope, region: Map, stacked: Sequence[Sequence[int]]) -> list[_Columns]:
    """Return, by dtype, the array of all instances' slices.

    Slices that lie in this order in memory already are read where they are.
    """
    f = scope.f
    dtypes = region.body.input_dtypes[: region.slices]
    sources = []
    for d in sorted(set(dtypes)):
        mine = [j for j, x in enumerate(dtypes) if x == d]
        bindings = scope.bindings([row[j] for row in stacked for j in mine])
        start = bindings[0].location
        if start is None or any(b.location != start.at(k) for k, b in enumerate(bindings)):
            start = f.frame.array(d, len(bindings))
            copy_all(scope.dialect, f, [(start.at(k), b) for k, b in enumerate(bindings)])
        sources.append(_Columns(start, len(mine), mine, range(len(mine))))
    return sources


def _lower_tiles(
    wide: Lowering,
    scope: Scope,
    instances: Instances,
    sources: Sequence[_Columns],
    fixed: Sequence[Binding],
    results: Sequence[_Columns],
) -> None:
    """Write the function of a tile, and the loop that calls it.

    It is ``void (frame, in, out, first, end, slices ..., results ...)``, of vectors.
    """
    outer, body, length = scope.f, instances.body, instances.length
    module = outer.module.wide
    name = module.fresh("map")
    bases = [f"%from{k}" for k in range(len(sources))], [f"%to{k}" for k in range(len(results))]
    pointers = "".join(f", ptr {x}" for x in (*bases[0], *bases[1]))
    f = Function(
        module, f"define internal void {name}({PARAMETERS}, i64 %first, i64 %end{pointers})"
    )
    whole = f.value(f"icmp sle i64 {f.add('%first', f.spelling.lanes)}, %end")

    def rows(names: Sequence[str], columns: Sequence[_Columns]) -> list[Rows]:
        kinds = [(c.items, c.location.dtype) for c in columns]
        rooms = [f.address(module.frame.array(d, items)) for items, d in kinds]
        return [Rows(base, *kind, room) for base, kind, room in zip(names, kinds, rooms)]

    def tiles(columns: Sequence[_Columns]) -> tuple[list[Location], dict[int, Location]]:
        """Return tiles, and by number of an input or output where it is in them."""
        starts = [module.frame.array(c.location.dtype, c.items) for c in columns]
        pairs = [(k, tile.at(at)) for c, tile in zip(columns, starts) for k, at in zip(*c[2:])]
        return starts, dict(pairs)

    inputs, slices = tiles(sources)
    outputs, stores = tiles(results)
    from_rows, to_rows = rows(bases[0], sources), rows(bases[1], results)
    reads = gather(f, whole, "%first", "%end", from_rows)
    writes = addresses_of(f, whole, "%first", to_rows)
    for r, base, tile in zip(from_rows, reads, inputs):
        load_tile(f, base, r.items, set(range(r.items)), tile)
    arguments = [Binding(location=slices[j]) for j in range(len(slices))]
    wide.lower(f, body, [*arguments, *fixed], stores=sorted(stores.items()))
    for r, base, tile in zip(to_rows, writes, outputs):
        store_tile(f, base, r.items, tile)
    scatter(f, whole, "%first", "%end", to_rows)
    f.finish()
    pointers = "".join(f", ptr {outer.address(c.location)}" for c in (*sources, *results))
    lanes, safepoint = f.spelling.lanes, safepoint_of(length, body)
    with loop_with_safepoints(outer, 0, length, safepoint, step=lanes) as loop:
        ends = f"i64 {loop.counter}, i64 {length}"
        outer.line(f"call void {name}({PARAMETERS}, {ends}{pointers})")


# ---- in registers --------------------------------------------------------------------------


def is_short(region: Map, lanes: int) -> bool:
    """Return whether a map has few instances, which fill more than half of the lanes of a tile."""
    few = max(region.slices, len(region.body.outputs)) <= FEW
    return few and lanes < 2 * region.length and region.length <= TILES * lanes


def map_in_registers(wide: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Compute a map tile by tile and bind its used outputs; ``wide`` lowers its body."""
    f, body, length = scope.f, region.body, region.length
    module = f.module.wide
    lanes, types = module.spelling.lanes, module.spelling.types
    _, stacked, shared = region.parts()
    used = _used_outputs(scope, region, outs)
    dtypes = body.input_dtypes[: region.slices]
    kinds, result_kinds = [types[d] for d in dtypes], [types[body.output_dtypes[k]] for k in used]
    struct = "{ " + ", ".join(result_kinds) + " }"
    operands = [[scope.operand(i) for i in row] for row in stacked.tolist()]
    fixed = _shared_bindings(scope, body, shared.tolist(), region.slices)
    # The function of a tile: (frame, in, out, slices ...) -> results.
    name = module.fresh("few")
    slices = "".join(f", {kind} %slice{k}" for k, kind in enumerate(kinds))
    inner = Function(module, f"define internal {struct} {name}({PARAMETERS}{slices})")
    arguments = [Binding(operand=f"%slice{k}") for k in range(len(kinds))]
    values = wide.lower(inner, body, [*arguments, *fixed], wanted=used)
    whole = "poison"
    for k, (kind, b) in enumerate(zip(result_kinds, values)):
        whole = inner.value(f"insertvalue {struct} {whole}, {kind} {inner.operand(b)}, {k}")
    inner.finish(f"ret {struct} {whole}")
    tiles = []
    for first in range(0, length, lanes):
        rows = [operands[min(first + lane, length - 1)] for lane in range(lanes)]
        vectors = [
            f.vector(kind, f.spelling.types[d], [row[j] for row in rows])
            for j, (kind, d) in enumerate(zip(kinds, dtypes))
        ]
        passed = "".join(f", {kind} {x}" for kind, x in zip(kinds, vectors))
        tile = f.value(f"call {struct} {name}({PARAMETERS}{passed})")
        tiles.append([f.value(f"extractvalue {struct} {tile}, {k}") for k in range(len(used))])
    for i, number in zip(outs, scope.numbers(outs)):
        row, k = divmod(number, len(body.outputs))
        vector = f"{types[body.output_dtypes[k]]} {tiles[row // lanes][used.index(k)]}"
        scope.bind(i, Binding(operand=f.value(f"extractelement {vector}, i64 {row % lanes}")))
