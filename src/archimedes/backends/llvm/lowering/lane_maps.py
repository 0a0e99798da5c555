"""Independent instances in a scalar kernel, in SIMD lanes like those of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.function_dialect import FrameReach
from archimedes.backends.llvm.lowering.safepoints import loop_with_safepoints
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

__all__ = ["fixed_bindings", "is_short", "map_in_lanes", "map_in_registers", "rows_in_lanes"]


class _Columns(NamedTuple):
    """An array with ``items`` numbers of a dtype for each instance, in the memory of the kernel.

    ``numbers`` says which inputs, or outputs, of the body are there, and ``offsets`` where.
    """

    location: Location
    items: int
    numbers: Sequence[int]
    offsets: Sequence[int]


def map_in_lanes(
    module: Module, wide: Lowering, scope: Scope, region: Map, outs: Sequence[int]
) -> None:
    """Compute a map tile by tile and bind its used outputs.

    Tiles are functions of ``module``, whose values are vectors; ``wide`` lowers the body in it.
    """
    f, body, width = scope.f, region.body, len(region.body.outputs)
    _, stacked, shared = region.parts()
    kept = sorted({k % width for k in scope.numbers(outs)})
    kinds = [body.output_dtypes[k] for k in kept]
    locations = arrays(scope.dialect, f, kinds, region.length)
    stride = {d: kinds.count(d) for d in set(kinds)}
    results = []
    for d, count in stride.items():
        mine = [(k, location.offset) for k, location in zip(kept, locations) if location.dtype == d]
        start = next(p for p in locations if p.dtype == d)._replace(offset=0)
        results.append(_Columns(start, count, *zip(*mine)))
    sources = _sources(scope, region, stacked.tolist())
    fixed = fixed_bindings(scope, body, shared.tolist(), region.slices)
    _tiles(module, wide, f, body, region.length, sources, fixed, results)
    column = dict(zip(kept, locations))
    for i, number in zip(outs, scope.numbers(outs)):
        t, k = divmod(number, width)
        scope.bind(i, Binding(location=column[k].at(t * stride[column[k].dtype])))


def rows_in_lanes(
    module: Module, wide: Lowering, scope: Scope, given: Instances, outs: Sequence[int]
) -> None:
    """Compute instances that are rows of blocks in the same way."""
    body = given.body
    sources = [
        _Columns(scope.block(i), length_of(kind) or 1, (j,), (0,))
        for j, (i, kind) in enumerate(zip(given.rows, body.input_dtypes))
    ]
    fixed = fixed_bindings(scope, body, given.shared, len(given.rows))
    results = [
        _Columns(scope.new_block(i), length_of(body.output_dtypes[k]) or 1, (k,), (0,))
        for i, k in zip(outs, scope.numbers(outs))
    ]
    _tiles(module, wide, scope.f, body, given.length, sources, fixed, results)


def fixed_bindings(scope: Scope, body: Graph, shared: Sequence[int], slices: int) -> list[Binding]:
    """Return what all lanes share."""
    reach = FrameReach(scope.f)
    pairs = zip(scope.bindings(shared), body.input_dtypes[slices:])
    return [reach.shared(b, item_type(kind)) for b, kind in pairs]


def _tiles(
    module: Module,
    wide: Lowering,
    f: Function,
    body: Graph,
    length: int,
    sources: Sequence[_Columns],
    fixed: Sequence[Binding],
    results: Sequence[_Columns],
) -> None:
    """Write the function of a tile, and the loop that calls it."""
    name = _write_tile(module, wide, body, sources, fixed, results)
    pointers = "".join(f", ptr {f.address(c.location)}" for c in (*sources, *results))
    lanes, safepoint = f.module.target.lanes, safepoint_of(length, body)
    plain = f.loop(0, length, step=lanes)
    with (
        plain
        if safepoint is None
        else loop_with_safepoints(f, 0, length, safepoint, step=lanes) as loop
    ):
        f.line(
            f"call void {name}(ptr %frame, ptr %in, ptr %out, i64 {loop.counter}, "
            f"i64 {length}{pointers})"
        )


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
            start = f.module.frame.array(d, len(bindings))
            copy_all(scope.dialect, f, [(start.at(k), b) for k, b in enumerate(bindings)])
        sources.append(_Columns(start, len(mine), mine, range(len(mine))))
    return sources


def _write_tile(
    module: Module,
    wide: Lowering,
    body: Graph,
    sources: Sequence[_Columns],
    fixed: Sequence[Binding],
    results: Sequence[_Columns],
) -> str:
    """Write the function of one tile: ``(frame, in, out, first, end, slices ..., results ...)``."""
    name = module.fresh("map")
    taken = [f"%from{k}" for k in range(len(sources))]
    given = [f"%to{k}" for k in range(len(results))]
    pointers = "".join(f", ptr {x}" for x in (*taken, *given))
    head = f"define internal void {name}({PARAMETERS}, i64 %first, i64 %end{pointers})"
    f = Function(module, head)
    following = f.value(f"add i64 %first, {f.spelling.lanes}")
    whole = f.value(f"icmp sle i64 {following}, %end")

    def rows(names: Sequence[str], columns: Sequence[_Columns]) -> list[Rows]:
        kinds = [(c.items, c.location.dtype) for c in columns]
        rooms = [f.address(module.frame.array(d, items)) for items, d in kinds]
        return [Rows(base, *kind, room) for base, kind, room in zip(names, kinds, rooms)]

    def tiles(columns: Sequence[_Columns]) -> tuple[list[Location], dict[int, Location]]:
        """Return tiles, and by number of an input or output where it is in them."""
        found = [module.frame.array(c.location.dtype, c.items) for c in columns]
        pairs = [(k, tile.at(at)) for c, tile in zip(columns, found) for k, at in zip(*c[2:])]
        return found, dict(pairs)

    inputs, slices = tiles(sources)
    outputs, stores = tiles(results)
    from_rows, to_rows = rows(taken, sources), rows(given, results)
    reads = gather(f, whole, "%first", "%end", from_rows)
    writes = addresses_of(f, whole, "%first", to_rows)
    for r, base, tile in zip(from_rows, reads, inputs):
        load_tile(f, base, r.items, set(range(r.items)), tile)
    first = [Binding(location=slices[j]) for j in range(len(slices))]
    wide.lower(f, body, [*first, *fixed], stores=sorted(stores.items()))
    for r, base, tile in zip(to_rows, writes, outputs):
        store_tile(f, base, r.items, tile)
    scatter(f, whole, "%first", "%end", to_rows)
    f.finish()
    return name


#: At most so many slices and results of an instance, and so many tiles.
FEW, TILES = 4, 8


def is_short(region: Map, lanes: int) -> bool:
    """Tell whether a map is of few instances, which fill more than half of the lanes of a tile."""
    body = region.body
    few = max(region.slices, len(body.outputs)) <= FEW
    return few and lanes < 2 * region.length and region.length <= TILES * lanes


def map_in_registers(
    module: Module, wide: Lowering, scope: Scope, region: Map, outs: Sequence[int]
) -> None:
    """Compute a map tile by tile and bind its used outputs; ``wide`` lowers its body."""
    f, body, width = scope.f, region.body, len(region.body.outputs)
    lanes, types = module.spelling.lanes, module.spelling.types
    _, stacked, shared = region.parts()
    kept = sorted({k % width for k in scope.numbers(outs)})
    kinds = [types[d] for d in body.input_dtypes[: region.slices]]
    made = [types[body.output_dtypes[k]] for k in kept]
    given = [scope.operand(i) for i in stacked.reshape(-1).tolist()]
    fixed = fixed_bindings(scope, body, shared.tolist(), region.slices)
    name = _write(module, wide, region, kept, kinds, made, fixed)
    results = []
    for first in range(0, region.length, lanes):
        rows = [min(first + lane, region.length - 1) for lane in range(lanes)]
        vectors = [
            f.vector(kind, f.spelling.types[d], [given[row * region.slices + j] for row in rows])
            for j, (kind, d) in enumerate(zip(kinds, body.input_dtypes))
        ]
        arguments = "".join(f", {kind} {x}" for kind, x in zip(kinds, vectors))
        called = f"{name}({PARAMETERS}{arguments})"
        whole = f.value(f"call {_struct(made)} {called}")
        results.append(
            [f.value(f"extractvalue {_struct(made)} {whole}, {k}") for k in range(len(kept))]
        )
    for i, number in zip(outs, scope.numbers(outs)):
        row, k = divmod(number, width)
        at = kept.index(k)
        vector = results[row // lanes][at]
        one = f.value(f"extractelement {made[at]} {vector}, i64 {row % lanes}")
        scope.bind(i, Binding(operand=one))


def _struct(kinds: Sequence[str]) -> str:
    return "{ " + ", ".join(kinds) + " }"


def _write(
    module: Module,
    wide: Lowering,
    region: Map,
    kept: Sequence[int],
    kinds: Sequence[str],
    made: Sequence[str],
    fixed: Sequence[Binding],
) -> str:
    """Write the function of a tile: ``(frame, in, out, slices ...) -> results``."""
    name = module.fresh("few")
    taken = [f"%slice{k}" for k in range(len(kinds))]
    parameters = "".join(f", {kind} {x}" for kind, x in zip(kinds, taken))
    f = Function(module, f"define internal {_struct(made)} {name}({PARAMETERS}{parameters})")
    slices = [Binding(operand=x) for x in taken]
    found = wide.lower(f, region.body, [*slices, *fixed], wanted=kept)
    whole = "poison"
    for k, (kind, b) in enumerate(zip(made, found)):
        whole = f.value(f"insertvalue {_struct(made)} {whole}, {kind} {f.operand(b)}, {k}")
    f.finish(f"ret {_struct(made)} {whole}")
    return name
