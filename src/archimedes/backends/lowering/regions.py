"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.lowering import nests
from archimedes.backends.lowering.analysis import has_host, safepoint_of
from archimedes.backends.lowering.copies import (
    Column,
    Copy,
    advance_all,
    arrays,
    copy_all,
    output_columns,
    slices_at,
    stack_columns,
)
from archimedes.backends.lowering.dialect import FEW, Branching, Dialect, Loop
from archimedes.backends.lowering.scope import (
    Binding,
    Instances,
    Location,
    Scope,
    Store,
    covers,
    is_scalar,
)
from archimedes.errors import GraphError
from archimedes.graph import regions as r
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.regions.block_regions import Affine

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering


# ---- blocks made by copies, and by sums at indices -------------------------------------------


def _lower_pack(low: Lowering, scope: Scope, region: r.Pack, outs: Sequence[int]) -> None:
    """Copy boxes into a block."""
    d, f = low.dialect, scope.f
    (i,) = outs
    # Nests whose results are part of it may have been written into it already.
    to = scope.block(i) if i in scope.bound else scope.new_block(i)
    if not covers(region):
        d.fill_run(f, to, d.literal(0, region.dtype), region.length)
    single: list[Copy] = []
    ids = region.inputs.tolist()
    for move in region.moves:
        source = ids[move.source]
        if source in scope.sub_blocks or (is_scalar(move) and (i, source) in scope.elided):
            continue
        value = scope.binding(source)
        if math.prod(move.shape) == 1:
            if move.start is not None and value.location is not None:
                value = Binding(location=value.location.at(move.start.offset))
            single.append((to.at(move.to.offset), value))
            continue
        copy_all(d, f, single)
        single = []
        _copy_box(d, f, move, to, value)
    copy_all(d, f, single)


def _copy_box(d: Dialect, f: Any, move: r.Move, to: Location, value: Binding) -> None:
    """Copy a box of elements, or fill it with a scalar."""
    starts = [move.to] if move.start is None else [move.to, move.start]
    shape, strides = nests.merge_axes(move.shape, [x.strides for x in starts])
    walks = [nests.Walk(to.at(move.to.offset), strides[0])]
    if move.start is not None and value.location is not None:
        walks.append(nests.Walk(value.location.at(move.start.offset), strides[1]))
    elif value.location is not None:
        value = Binding(operand=d.operand(f, value))
    with ExitStack() as loops:
        for axis, length in enumerate(shape):
            last = axis == len(shape) - 1 and length >= d.run
            ones = last and all(walk.strides[axis] == 1 for walk in walks)
            if ones and len(walks) == 2:
                d.copy_run(f, walks[0].location, walks[1].location, length)
                return
            if ones and value.constant is not None:
                d.fill_run(f, walks[0].location, d.operand(f, value), length)
                return
            _, walks = loops.enter_context(nests.loop_along(d, f, length, walks, axis))
        source = d.load(f, walks[1].location) if len(walks) == 2 else d.operand(f, value)
        d.store(f, walks[0].location, source)


def _lower_accumulate(
    low: Lowering, scope: Scope, region: r.Accumulate, outs: Sequence[int]
) -> None:
    """Add values to the elements that indices name, one after the other."""
    d, f, g = low.dialect, scope.f, scope.graph
    (i,) = outs
    to = scope.new_block(i)
    values, indices = region.inputs.tolist()
    dtype = item_type(region.dtype)
    d.fill_run(f, to, d.literal(0, dtype), region.length)
    starts = [(scope.block(values), 1), (scope.block(indices), 1)]
    with d.for_loop(f, length_of(g.dtype[values])) as loop:
        value, index = advance_all(d, f, starts, loop.counter)
        at = d.load(f, index)
        old = Binding(operand=d.element(f, to, region.length, at))
        terms = [old, Binding(location=value)]
        (new,) = low.lower(f, nests.combine_graph("add", dtype), terms, [0])
        d.put(f, to, region.length, at, d.operand(f, new))


# ---- calls, branches, linear equations -------------------------------------------------------


def _lower_call(low: Lowering, scope: Scope, region: r.Call | r.Sort, outs: Sequence[int]) -> None:
    arguments = scope.bindings(region.inputs.tolist())
    # Blocks that an array waits for go straight there.
    direct = {i: to for i in outs if (to := scope.destination(i)) is not None}
    others = [i for i in outs if i not in direct]
    stores = list(zip(scope.numbers(list(direct)), direct.values()))
    values = low.block(scope.f, region, region.body, arguments, scope.numbers(others), stores)
    for i, binding in zip(others, values):
        scope.bind(i, binding)
    for i, to in direct.items():
        scope.bound[i] = Binding(location=to)


def _lower_switch(low: Lowering, scope: Scope, region: r.Switch, outs: Sequence[int]) -> None:
    d, f = low.dialect, scope.f
    index, *rest = region.inputs.tolist()
    arguments = scope.bindings(rest)
    blocks = [i for i in outs if length_of(scope.graph.dtype[i])]
    scalars = [i for i in outs if i not in blocks]
    wanted = scope.numbers(scalars)
    dtypes = [region.out_dtypes[k] for k in wanted]
    locations = arrays(d, f, dtypes) if len(wanted) > FEW else []
    costs = [low.sizes.cost(body) for body in region.branches]
    to = [(scope.new_block(i), length_of(scope.graph.dtype[i])) for i in blocks]
    join = d.join(f, Branching(scope.operand(index), costs, dtypes, locations))
    for k in join.order:
        with join.branch(k), _masked_blocks(d, f, to, join.mask) as targets:
            stores = list(zip(scope.numbers(blocks), targets))
            join.give(low.block(f, region, region.branches[k], arguments, wanted, stores))
    results = join.results()
    for k, i in enumerate(scalars):
        scope.bind(i, Binding(location=locations[k]) if locations else Binding(operand=results[k]))


@contextmanager
def _masked_blocks(
    d: Dialect, f: Any, to: Sequence[tuple[Location, int]], mask: str
) -> Iterator[list[Location]]:
    """Yield where a branch puts blocks: where they belong, or aside if not all instances take it.

    What was put aside is then copied for the instances of the mask.
    """
    if not mask:
        yield [location for location, _ in to]
        return
    aside = [d.block(f, location.dtype, length) for location, length in to]
    yield aside
    d.copy_masked(f, mask, [(p, new, length) for (p, length), new in zip(to, aside)])
    for location in aside:
        d.release(f, location)


def _lower_solve(low: Lowering, scope: Scope, region: r.Solve, outs: Sequence[int]) -> None:
    d, f, n, m = low.dialect, scope.f, region.size, region.columns
    if region.blocks:
        _solve_blocks(low, scope, region, outs)
        return
    width = n + m
    few = len(outs) <= FEW and d.reuses_scratch
    if few:
        work = d.scratch(f, f"solve {n} {m}", region.dtype, n * width)
    else:
        work = d.array(f, region.dtype, n * width)
    inputs = scope.bindings(region.inputs.tolist())
    # The matrix, and beside it the right-hand sides.
    for first, count, values in ((0, n, inputs[: n * n]), (n, m, inputs[n * n :])):
        locations = [work.at(i * width + first + j) for i in range(n) for j in range(count)]
        copy_all(d, f, list(zip(locations, values)))
    d.solve(f, region, work)
    for i, number in zip(outs, scope.numbers(outs)):
        row, column = divmod(number, m)
        solution = Binding(location=work.at(row * width + n + column))
        scope.bind(i, d.preserve(f, solution, region.dtype) if few else solution)


def _solve_blocks(low: Lowering, scope: Scope, region: r.Solve, outs: Sequence[int]) -> None:
    d, f, n, m = low.dialect, scope.f, region.size, region.columns
    width, (i,) = n + m, outs
    work = d.block(f, region.dtype, n * width)
    for start, columns, j in zip((0, n), (n, m), region.inputs.tolist()):
        box = r.Move(0, (n, columns), Affine(start, (width, 1)), Affine(0, (columns, 1)))
        _copy_box(d, f, box, work, scope.binding(j))
    d.solve(f, region, work)
    box = r.Move(0, (n, m), Affine(0, (m, 1)), Affine(n, (width, 1)))
    _copy_box(d, f, box, scope.new_block(i), Binding(location=work))
    d.release(f, work)


# ---- loops: carried values are operands while there are few, else they are in memory ----------


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
                self.d.release(self.f, new)


def lower_scan(
    low: Lowering, scope: Scope, region: r.Scan, outs: Sequence[int], before: int = 0
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


def _columns(scope: Scope, region: r.Scan) -> list[Column]:
    """Return what the steps read of the slices."""
    kinds = region.body.input_dtypes[region.carry : region.carry + region.slices]
    rows = region.parts()[1].tolist()
    if not region.stacked:
        return stack_columns(scope.dialect, scope.f, [scope.bindings(row) for row in rows], kinds)
    return [Column(None, scope.block(i), length_of(x) or 1) for i, x in zip(rows[0], kinds)]


def _destinations(
    scope: Scope, region: r.Scan, nodes: dict[int, int], used: Sequence[int]
) -> list[tuple[Location, int]]:
    """Return where the first step puts the outputs that are used, and strides to the next."""
    n, kinds = region.carry, region.body.output_dtypes
    if region.stacked:
        return [(scope.new_block(nodes[n + k]), length_of(kinds[n + k]) or 1) for k in used]
    columns = [[nodes.get(n + t * region.outs + k) for t in range(region.length)] for k in used]
    return output_columns(scope, columns, [kinds[n + k] for k in used])


def lower_map(low: Lowering, scope: Scope, region: r.Map, outs: Sequence[int]) -> None:
    """Compute a map: as the dialect does it, or as scans that carry nothing."""
    if low.dialect.map(low, scope, region, outs):
        return
    _, stacked, shared = region.parts()
    width = len(region.body.outputs)
    breaks = _breaks(scope, region, outs) if low.dialect.splits_maps else []
    for start, end in zip([0, *breaks], [*breaks, region.length]):
        inputs = np.concatenate([stacked[start:end].reshape(-1), shared])
        loop = r.Scan(inputs, region.body, end - start, 0, region.slices)
        own = [i for i in outs if start * width <= scope.graph.b[i] < end * width]
        lower_scan(low, scope, loop, own, start * width)


def _breaks(scope: Scope, region: r.Map, outs: Sequence[int]) -> list[int]:
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


def lower_while(low: Lowering, scope: Scope, region: r.While, outs: Sequence[int]) -> None:
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


#: Lowering of every region.
REGIONS: dict[type[r.Region], Callable[..., None]] = {
    r.Call: _lower_call,
    r.Sort: _lower_call,
    r.Scan: lower_scan,
    r.While: lower_while,
    r.Switch: _lower_switch,
    r.Map: lower_map,
    r.Solve: _lower_solve,
    r.Host: lambda low, *host: low.dialect.host(low, *host),
    r.Nest: nests.lower_nest,
    r.Pack: _lower_pack,
    r.Accumulate: _lower_accumulate,
}


def lower_region(low: Lowering, scope: Scope, region: r.Region, outs: Sequence[int]) -> None:
    """Write a region, and bind the ``out`` nodes that read it."""
    lower = REGIONS.get(type(region))
    if lower is None:
        raise GraphError(
            f"regions of kind {region.kind!r} have no lowering: enter one for "
            f"{type(region).__name__} in REGIONS of backends/lowering/regions.py"
        )
    lower(low, scope, region, outs)
