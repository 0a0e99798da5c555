"""Lowering of ``Scan``, ``Map`` and ``While``.

Carried values are operands while there are few, and in memory where there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.copies import (
    arrays,
    copy_all,
    moved_together,
    slices_at,
    stack_columns,
    stacked_outputs,
)
from archimedes.backends.lowering.dialect import FEW, Dialect, Loop
from archimedes.backends.lowering.schedule import has_host
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Store
from archimedes.graph.regions import Map, Scan, While

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering

__all__ = ["lower_map", "lower_scan", "lower_while"]


class _Carry:
    """The carried values of a loop: operands that the loop holds, or two sets of places.

    Of a body whose first outputs are the next values, ``wanted`` are to be returned, and
    ``stores`` to be put into places.
    """

    def __init__(self, d: Dialect, f: Any, start: Sequence[Binding], dtypes: Sequence[int]) -> None:
        self.d, self.f = d, f
        self.operands: list[tuple[int, str]] = []
        self.wanted: Sequence[int] = range(len(dtypes))
        self.stores: list[Store] = []
        self.places: list[Binding] = []
        if len(dtypes) <= FEW:
            self.operands = [(x, d.operand(f, b)) for x, b in zip(dtypes, start)]
        else:
            old, new = arrays(d, f, dtypes), arrays(d, f, dtypes)
            copy_all(d, f, list(zip(old, start)))
            self.places = [Binding(place=place) for place in old]
            self.wanted, self.stores = (), list(enumerate(new))

    def values(self, loop: Loop) -> list[Binding]:
        """Return the values of this step; behind the loop, the last ones."""
        return self.places or [Binding(operand=x) for x in loop.carried]

    def update(self, loop: Loop, values: Sequence[Binding]) -> None:
        """Put new values in the place of the old ones, all at once."""
        d, f = self.d, self.f
        loop.next = [d.operand(f, b) for b in values]
        copies = [(b.place, new) for b, (_, new) in zip(self.places, self.stores) if b.place]
        if not d.renew(f, loop, copies):
            copy_all(d, f, [(to, Binding(place=new)) for to, new in copies])


def lower_scan(low: Lowering, scope: Scope, region: Scan, outs: Sequence[int]) -> None:
    """Compute a scan and bind its used outputs; stacked operands are read where they are."""
    d, f, body, n = low.dialect, scope.f, region.body, region.carry
    first, stacked, shared = (part.tolist() for part in region.parts())
    start = scope.bindings(first)
    if region.length == 0:
        for i, number in zip(outs, scope.numbers(outs)):
            scope.bind(i, start[number])
        return
    rows = [scope.bindings(row) for row in stacked]
    columns = stack_columns(d, f, rows, body.input_dtypes[n : n + region.slices])
    fixed = scope.bindings(shared)
    nodes = {scope.graph.b[i]: i for i in outs}
    # Only the columns of outputs that somebody reads are kept.
    kept = sorted({(k - n) % region.outs for k in nodes if k >= n})
    wanted = [[nodes.get(n + t * region.outs + k) for t in range(region.length)] for k in kept]
    to = stacked_outputs(scope, wanted, [body.output_dtypes[n + k] for k in kept])
    carry = _Carry(d, f, start, body.input_dtypes[:n])
    with d.counted(f, region.length, carry.operands) as loop:
        at = d.from_end(f, loop.counter, region.length) if region.reverse else loop.counter
        given = [*carry.values(loop), *slices_at(d, f, columns, at), *fixed]
        here = moved_together(d, f, to, at)
        stores = [*carry.stores, *((n + k, place) for k, place in zip(kept, here))]
        carry.update(loop, low.block(f, region, body, given, carry.wanted, stores))
    last, column = carry.values(loop), dict(zip(kept, to))
    for i, number in zip(outs, scope.numbers(outs)):
        if number < n:
            scope.bind(i, last[number])
        else:
            t, k = divmod(number - n, region.outs)
            place, stride = column[k]
            scope.bind(i, Binding(place=place.at(t * stride)))


def lower_map(low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Compute a map: as the dialect does it, or as a scan that carries nothing."""
    if not low.dialect.map(low, scope, region, outs):
        loop = Scan(region.inputs, region.body, region.length, 0, region.slices)
        lower_scan(low, scope, loop, outs)


def lower_while(low: Lowering, scope: Scope, region: While, outs: Sequence[int]) -> None:
    """Compute a bounded loop and bind its used outputs."""
    d, f, n = low.dialect, scope.f, region.carry
    start = scope.bindings(region.inputs[:n].tolist())
    fixed = scope.bindings(region.inputs[n:].tolist())
    carry = _Carry(d, f, start, region.body.output_dtypes)
    hosted = has_host(region.condition) or has_host(region.body)
    with d.repeated(f, region.limit, carry.operands, hosted) as loop:
        given = [*carry.values(loop), *fixed]
        (test,) = low.block(f, region, region.condition, given, [0])
        d.go_on(f, loop, d.operand(f, test))
        carry.update(loop, low.block(f, region, region.body, given, carry.wanted, carry.stores))
    last = carry.values(loop)
    for i, number in zip(outs, scope.numbers(outs)):
        scope.bind(i, last[number])
