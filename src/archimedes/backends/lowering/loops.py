"""Lowering of ``Scan``, ``Map`` and ``While``.

Carried values are operands while there are few, and in memory where there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.lowering.analysis import has_host, safepoint_of
from archimedes.backends.lowering.copies import (
    Column,
    advance_all,
    arrays,
    copy_all,
    output_columns,
    slices_at,
    stack_columns,
)
from archimedes.backends.lowering.dialect import FEW, Dialect, Loop
from archimedes.backends.lowering.scope import Binding, Instances, Location, Scope, Store
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.regions import Map, Scan, While

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering


class _Carry:
    """The carried values of a loop: operands that the loop holds, or two sets of locations.

    Of a body whose first outputs are the next values, ``wanted`` are to be returned, and
    ``stores`` to be put into memory. Blocks are in memory, however few there are.
    """

    def __init__(self, d: Dialect, f: Any, start: Sequence[Binding], kinds: Sequence[int]) -> None:
        self.d, self.f = d, f
        self.lengths = [length_of(kind) for kind in kinds]
        scalars = [k for k, length in enumerate(self.lengths) if not length]
        few = len(scalars) <= FEW
        self.wanted: Sequence[int] = scalars if few else ()
        self.operands = [(kinds[k], d.operand(f, start[k])) for k in self.wanted]
        stored = [] if few else scalars
        dtypes = [kinds[k] for k in stored]
        old, new = (dict(zip(stored, arrays(d, f, dtypes))) for _ in range(2))
        copy_all(d, f, [(old[k], start[k]) for k in stored])
        for k, length in enumerate(self.lengths):
            if length:
                old[k], new[k] = (d.block(f, item_type(kinds[k]), length) for _ in range(2))
                d.copy_run(f, old[k], start[k].memory, length)
        self.old, self.new = old, new
        #: Blocks whose two arrays swap at each step: where this step has and puts them.
        self.swapped: dict[int, tuple[Location, Location]] = {}

    @property
    def stores(self) -> list[Store]:
        """Where the next values go that are not operands."""
        return list((self.new | {k: to for k, (_, to) in self.swapped.items()}).items())

    def swap(self, counter: str) -> None:
        """Begin a step, in which blocks go from one array to the other; the next step goes back."""
        for k, new in self.new.items():
            if self.lengths[k]:
                pair = self.d.swap_by_parity(self.f, counter, self.old[k], new)
                if pair:
                    self.swapped[k] = pair

    def values(self, loop: Loop) -> list[Binding]:
        """Return the values of this step, or the last ones behind the loop."""
        values = {k: Binding(operand=x) for k, x in zip(self.wanted, loop.carried)}
        values |= {k: Binding(location=location) for k, location in self.old.items()}
        values |= {k: Binding(location=location) for k, (location, _) in self.swapped.items()}
        return [values[k] for k in range(len(self.lengths))]

    def update(self, loop: Loop, values: Sequence[Binding]) -> None:
        """Replace the old values by the new ones, all at once."""
        d, f = self.d, self.f
        loop.next = [d.operand(f, b) for b in values]
        copies = [
            (self.old[k], new, self.lengths[k])
            for k, new in self.new.items()
            if k not in self.swapped
        ]
        if d.copy_masked(f, loop.mask, copies):
            return
        copy_all(d, f, [(to, Binding(location=new)) for to, new, length in copies if not length])
        for to, new, length in copies:
            if length:
                d.copy_run(f, to, new, length)

    def finish(self, steps: int = 0) -> None:
        """Say where blocks are after so many steps, and release the memory of the others."""
        for k in self.swapped if steps % 2 else ():
            self.old[k], self.new[k] = self.new[k], self.old[k]
        self.swapped = {}
        for k, new in self.new.items():
            if self.lengths[k]:
                self.d.release(self.f, new, self.lengths[k])


def lower_scan(
    low: Lowering, scope: Scope, region: Scan, outs: Sequence[int], before: int = 0
) -> None:
    """Compute a scan and bind its used outputs; stacked operands are read where they are.

    Outputs count from ``before`` on.
    """
    d, f, body, n = low.dialect, scope.f, region.body, region.carry
    first, _, shared = (part.tolist() for part in region.parts())
    start = scope.bindings(first)
    nodes = {number - before: i for i, number in zip(outs, scope.numbers(outs))}
    if region.length == 0:
        for number, i in nodes.items():
            scope.bind(i, start[number])
        return
    if region.stacked and not n:
        rows = region.parts()[1][0].tolist()
        if d.rows(low, scope, Instances(body, region.length, rows, shared), outs):
            return
    columns = _columns(scope, region)
    fixed = scope.bindings(shared)
    # Only the columns of outputs that somebody reads are stored.
    used = sorted({(k - n) % region.outs for k in nodes if k >= n})
    to = _destinations(scope, region, nodes, used)
    carry = _Carry(d, f, start, body.input_dtypes[:n])
    safepoint = safepoint_of(region.length, body)
    with d.for_loop(f, region.length, carry.operands, safepoint) as loop:
        # Nothing may depend on the step: all slices the same, only the last values wanted.
        walks = bool(to) or any(column.shared is None for column in columns)
        backwards = region.reverse and walks
        at = d.from_end(f, loop.counter, region.length) if backwards else loop.counter
        carry.swap(loop.counter)
        arguments = [*carry.values(loop), *slices_at(d, f, columns, at), *fixed]
        here = advance_all(d, f, to, at)
        stores = [*carry.stores, *((n + k, location) for k, location in zip(used, here))]
        carry.update(loop, low.block(f, region, body, arguments, carry.wanted, stores))
    carry.finish(region.length)
    last, column = carry.values(loop), dict(zip(used, to))
    for number, i in nodes.items():
        if number < n:
            scope.bind(i, last[number])
        elif not region.stacked:
            t, k = divmod(number - n, region.outs)
            location, stride = column[k]
            scope.bind(i, Binding(location=location.at(t * stride)))


def _columns(scope: Scope, region: Scan) -> list[Column]:
    """Return what the steps read of the slices."""
    kinds = region.body.input_dtypes[region.carry : region.carry + region.slices]
    rows = region.parts()[1].tolist()
    if not region.stacked:
        return stack_columns(scope.dialect, scope.f, [scope.bindings(row) for row in rows], kinds)
    return [Column(None, scope.block(i), length_of(x) or 1) for i, x in zip(rows[0], kinds)]


def _destinations(
    scope: Scope, region: Scan, nodes: dict[int, int], used: Sequence[int]
) -> list[tuple[Location, int]]:
    """Return where the first step puts the outputs that are used, and strides to the next."""
    n, kinds = region.carry, region.body.output_dtypes
    if region.stacked:
        return [(scope.new_block(nodes[n + k]), length_of(kinds[n + k]) or 1) for k in used]
    columns = [[nodes.get(n + t * region.outs + k) for t in range(region.length)] for k in used]
    return output_columns(scope, columns, [kinds[n + k] for k in used])


def lower_map(low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Compute a map: as the dialect does it, or as scans that carry nothing."""
    if low.dialect.map(low, scope, region, outs):
        return
    _, stacked, shared = region.parts()
    width = len(region.body.outputs)
    breaks = _breaks(scope, region, outs) if low.dialect.splits_maps else []
    for start, end in zip([0, *breaks], [*breaks, region.length]):
        inputs = np.concatenate([stacked[start:end].reshape(-1), shared])
        loop = Scan(inputs, region.body, end - start, 0, region.slices)
        own = [i for i in outs if start * width <= scope.graph.b[i] < end * width]
        lower_scan(low, scope, loop, own, start * width)


def _breaks(scope: Scope, region: Map, outs: Sequence[int]) -> list[int]:
    """Return the instances at which outputs begin to go to another array.

    A loop for each of these writes its outputs straight there.
    """
    width, breaks = len(region.body.outputs), set()
    to = {scope.graph.b[i]: scope.waiting.get(i, []) for i in outs}
    for number, locations in to.items():
        after = to.get(number + width, [])
        if len(locations) == len(after) == 1 and locations[0].array != after[0].array:
            breaks.add(number // width + 1)
    return sorted(breaks)


def lower_while(low: Lowering, scope: Scope, region: While, outs: Sequence[int]) -> None:
    """Compute a bounded loop and bind its used outputs."""
    d, f, n = low.dialect, scope.f, region.carry
    inputs = scope.bindings(region.inputs.tolist())
    carry = _Carry(d, f, inputs[:n], region.body.output_dtypes)
    hosted = has_host(region.condition) or has_host(region.body)
    safepoint = safepoint_of(region.limit, region.condition, region.body)
    with d.while_loop(f, region.limit, carry.operands, hosted, safepoint) as loop:
        arguments = [*carry.values(loop), *inputs[n:]]
        (test,) = low.block(f, region, region.condition, arguments, [0])
        d.exit_unless(f, loop, d.operand(f, test))
        values = low.block(f, region, region.body, arguments, carry.wanted, carry.stores)
        carry.update(loop, values)
    carry.finish()
    last = carry.values(loop)
    for i, number in zip(outs, scope.numbers(outs)):
        scope.bind(i, last[number])
