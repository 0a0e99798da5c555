"""Writing of ``Scan``, ``Map`` and ``While`` as loops.

Carried values are variables while there are few, and arrays where there are many. Regions have been
trimmed (``graph/trimming.py``), so that everything in them is used and loops have a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.c.copies import arrays, copy_all, slices_at, stack_column
from archimedes.backends.c.lowering import Lowering
from archimedes.backends.c.memory import Binding, Place
from archimedes.backends.c.routines import FEW
from archimedes.backends.c.scope import Scope
from archimedes.backends.c.writer import Function, names_in
from archimedes.graph.regions import Map, Scan, While

__all__ = ["write_map", "write_scan", "write_while"]


class _Carry:
    """The carried values of a loop: the variables or arrays that hold them."""

    def __init__(
        self, low: Lowering, f: Function, start: Sequence[Binding], dtypes: Sequence[int]
    ) -> None:
        self.low, self.f, self.dtypes = low, f, dtypes
        self.names: list[str] = []
        self.old: list[Place] = []
        self.new: list[Place] = []
        if len(dtypes) <= FEW:
            self.names = [f.variable(d, b.text()) for d, b in zip(dtypes, start)]
            self.values = [Binding(operand=name) for name in self.names]
        else:
            self.old, self.new = arrays(f, dtypes), arrays(f, dtypes)
            copy_all(f, low.tables, list(zip(self.old, start)))
            self.values = [Binding(place=place) for place in self.old]

    def update(self, values: Sequence[Binding]) -> None:
        """Put new values in the place of the old ones, all at once."""
        if self.old:
            copy_all(self.f, self.low.tables, list(zip(self.new, values)))
            old_values = [Binding(place=place) for place in self.new]
            copy_all(self.f, self.low.tables, list(zip(self.old, old_values)))
            return
        texts = [b.text() for b in values]
        for k, text in enumerate(texts):
            if text != self.names[k] and not names_in([text]).isdisjoint(self.names):
                texts[k] = self.f.value(self.dtypes[k], text)
        for name, text in zip(self.names, texts):
            if name != text:
                self.f.line(f"{name} = {text};")


def write_scan(low: Lowering, scope: Scope, region: Scan, outs: Sequence[int]) -> None:
    """Write a scan and bind its used outputs; stacked operands are read where they are."""
    f, body, n = scope.f, region.body, region.carry
    first, stacked, shared = (part.tolist() for part in region.parts())
    dtypes = body.input_dtypes
    columns = [
        stack_column(f, low.tables, [scope.binding(row[j]) for row in stacked], dtypes[n + j])
        for j in range(region.slices)
    ]
    fixed = scope.bindings(shared)
    places, strides = _outputs(scope, region, outs)
    carry = _Carry(low, f, scope.bindings(first), dtypes[:n])
    with f.loop(region.length) as counter:
        at = counter
        if region.reverse:
            at = f.fresh("i")
            f.line(f"const size_t {at} = {region.length - 1} - {counter};")
        stores = [(n + k, to.moving(at, strides[k])) for k, to in enumerate(places)]
        given = [*carry.values, *slices_at(columns, at), *fixed]
        carry.update(low.block(f, region, body, given, range(n), stores))
    for i, number in zip(outs, scope.numbers(outs)):
        if number < n:
            scope.bind(i, carry.values[number])
        else:
            step, k = divmod(number - n, region.outs)
            scope.bind(i, Binding(place=places[k].at(step * strides[k])))


def _outputs(scope: Scope, region: Scan, outs: Sequence[int]) -> tuple[list[Place], list[int]]:
    """Return where the first step's outputs go, and the strides.

    A column that is wanted as it is in an array goes straight there.
    """
    f, n, kept = scope.f, region.carry, range(region.outs)
    nodes = {scope.graph.b[i]: i for i in outs}
    wanted = [[nodes.get(n + t * region.outs + k) for t in range(region.length)] for k in kept]
    direct = [_direct(scope, column) for column in wanted]
    dtypes = region.body.output_dtypes[n:]
    own = [d for d, found in zip(dtypes, direct) if found is None]
    counts = {d: own.count(d) for d in sorted(set(own))}
    bases = {d: f.frame.array(d, count * region.length) for d, count in counts.items()}
    taken = dict.fromkeys(counts, 0)
    places, strides = [], []
    for d, found in zip(dtypes, direct):
        if found is None:
            found = bases[d].at(taken[d]), counts[d]
            taken[d] += 1
        places.append(found[0])
        strides.append(found[1])
    return places, strides


def _direct(scope: Scope, column: Sequence[int | None]) -> tuple[Place, int] | None:
    """Return start and stride of the array that wants a column, and note that it has it."""
    first = [scope.waiting.get(i, []) if i is not None else [] for i in column]
    if any(len(places) != 1 or places[0].narrow for places in first):
        return None
    places = [wanted[0] for wanted in first]
    stride = places[1].offset - places[0].offset if len(places) > 1 else 1
    if stride <= 0 or any(p != places[0].at(k * stride) for k, p in enumerate(places)):
        return None
    for i in column:
        if i is not None:
            del scope.waiting[i]
    return places[0], stride


def write_map(low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Write a map: a scan that carries nothing."""
    loop = Scan(region.inputs, region.body, region.length, 0, region.slices)
    write_scan(low, scope, loop, outs)


def write_while(low: Lowering, scope: Scope, region: While, outs: Sequence[int]) -> None:
    """Write a bounded loop and bind its used outputs."""
    f, n = scope.f, region.carry
    first, fixed = region.inputs[:n].tolist(), scope.bindings(region.inputs[n:].tolist())
    carry = _Carry(low, f, scope.bindings(first), region.body.output_dtypes)
    with f.loop(region.limit):
        given = [*carry.values, *fixed]
        (test,) = low.block(f, region, region.condition, given, [0])
        with f.block(f"if (!{test.text()})"):
            f.line("break;")
        carry.update(low.block(f, region, region.body, given, range(n)))
    for i, number in zip(outs, scope.numbers(outs)):
        scope.bind(i, carry.values[number])
