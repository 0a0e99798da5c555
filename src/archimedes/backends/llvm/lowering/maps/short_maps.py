"""Maps over few short instances in a scalar kernel: in lanes, without a detour through memory.

Arguments and results of a tile are vectors that a function takes and returns; the lanes of an
incomplete one repeat the last instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.maps.mapping import fixed_bindings
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding
from archimedes.graph.regions import Map

__all__ = ["is_short", "map_in_registers"]

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
    stacked, shared = region.parts()
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
            _joined(f, kind, f.spelling.types[d], [given[row * region.slices + j] for row in rows])
            for j, (kind, d) in enumerate(zip(kinds, body.input_dtypes))
        ]
        arguments = "".join(f", {kind} {x}" for kind, x in zip(kinds, vectors))
        called = f"{name}(ptr %frame, ptr %in, ptr %out{arguments})"
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


def _joined(f: Function, kind: str, item: str, values: Sequence[str]) -> str:
    """Return a vector of values."""
    vector = "poison"
    for lane, x in enumerate(values):
        vector = f.value(f"insertelement {kind} {vector}, {item} {x}, i64 {lane}")
    return vector


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
