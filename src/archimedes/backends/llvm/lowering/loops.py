"""Lowering of ``Scan``, ``Map`` and ``While``.

Carried values are in registers while there are few, and in memory where there are many. In lanes
a ``While`` runs until no lane is active, and lanes that are done keep their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.copies import (
    arrays,
    copy_all,
    slices_at,
    stack_columns,
    stacked_outputs,
)
from archimedes.backends.llvm.lowering.graph_lowering import IN_REGISTERS, Lowering
from archimedes.backends.llvm.lowering.mapping import map_in_lanes
from archimedes.backends.llvm.lowering.memory import Binding, Location, Pointer
from archimedes.backends.llvm.lowering.scope import Scope
from archimedes.backends.llvm.lowering.vectors import any_lane, blend, choose
from archimedes.backends.schedule import has_host
from archimedes.graph.dtypes import B8
from archimedes.graph.regions import Map, Scan, While

__all__ = ["lower_map", "lower_scan", "lower_while"]


def lower_scan(low: Lowering, scope: Scope, region: Scan, outs: Sequence[int]) -> None:
    """Compute a scan and bind its used outputs; stacked operands are walked by pointers."""
    f, body, n = scope.f, region.body, region.carry
    first, stacked, shared = (part.tolist() for part in region.parts())
    start = scope.bindings(first)
    if region.length == 0:
        for i in outs:
            scope.bind(i, start[scope.graph.b[i]])
        return
    rows = [scope.bindings(row) for row in stacked]
    columns = stack_columns(f, rows, body.input_dtypes[n : n + region.slices])
    fixed = scope.bindings(shared)
    # Only the columns of outputs that somebody reads are kept.
    kept = sorted({(k - n) % region.outs for k in scope.numbers(outs) if k >= n})
    places, stride = stacked_outputs(f, [body.output_dtypes[n + k] for k in kept], region.length)

    def step(index: str, carry: list[Binding], more: list[tuple[int, Location]]) -> list[Binding]:
        at = index
        if region.reverse:
            at = f.value(f"sub i64 {region.length - 1}, {index}")
        given = [*carry, *slices_at(f, columns, at), *fixed]
        moved: dict[Pointer, Location] = {}
        stores = list(more)
        for k, place in zip(kept, places):
            if place.pointer not in moved:
                base = place._replace(offset=0)
                moved[place.pointer] = f.moving(base, at, stride[place.dtype])
            stores.append((body.outputs[n + k], moved[place.pointer].at(place.offset)))
        wanted = [] if more else body.outputs[:n]
        return low.lower(f, body, given, wanted, stores)

    types = f.spelling.types
    if n <= IN_REGISTERS:
        kinds = [types[d] for d in body.input_dtypes[:n]]
        pairs = [(kind, f.operand(b)) for kind, b in zip(kinds, start)]
        with f.loop(0, region.length, pairs) as loop:
            carry = [Binding(operand=x) for x in loop.carried]
            loop.next = [f.operand(b) for b in step(loop.counter, carry, [])]
        last = [Binding(operand=x) for x in loop.carried]
    else:
        old, new = (arrays(f, body.input_dtypes[:n]) for _ in range(2))
        copy_all(f, list(zip(old, start)))
        last = [Binding(location=place) for place in old]
        with f.loop(0, region.length) as loop:
            step(loop.counter, last, list(zip(body.outputs[:n], new)))
            copy_all(f, [(to, Binding(location=place)) for to, place in zip(old, new)])
    column = dict(zip(kept, places))
    for i in outs:
        number = scope.graph.b[i]
        if number < n:
            scope.bind(i, last[number])
        else:
            t, k = divmod(number - n, region.outs)
            place = column[k]
            scope.bind(i, Binding(location=place.at(t * stride[place.dtype])))


def lower_map(low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    """Compute a map: in lanes if the kernel is scalar, else as a scan that carries nothing."""
    lanes = scope.f.module.target.lanes
    if scope.f.spelling.lanes == 1 and region.length >= lanes and not has_host(region.body):
        map_in_lanes(low, scope, region, outs)
        return
    loop = Scan(region.inputs, region.body, region.length, 0, region.slices)
    lower_scan(low, scope, loop, outs)


def lower_while(low: Lowering, scope: Scope, region: While, outs: Sequence[int]) -> None:
    """Compute a bounded loop and bind its used outputs."""
    f, n, body = scope.f, region.carry, region.body
    start = scope.bindings(region.inputs[:n].tolist())
    fixed = scope.bindings(region.inputs[n:].tolist())
    dtypes = body.output_dtypes
    in_memory = n > IN_REGISTERS
    old: list[Location] = []
    new: list[Location] = []
    carried: list[tuple[str, str]] = [(f.spelling.types[B8], f.spelling.literal(True, B8))]
    if in_memory:
        old, new = (arrays(f, dtypes) for _ in range(2))
        copy_all(f, list(zip(old, start)))
    else:
        carried += [(f.spelling.types[d], f.operand(b)) for d, b in zip(dtypes, start)]
    done = f.label()
    with f.loop(0, region.limit, carried) as loop:
        active, *values = loop.carried
        carry = [Binding(location=x) for x in old] or [Binding(operand=x) for x in values]
        given = [*carry, *fixed]
        (test,) = low.lower(f, region.condition, given, region.condition.outputs)
        running = f.value(f"and {f.spelling.types[B8]} {active}, {f.operand(test)}")
        if has_host(region.condition) or has_host(region.body):
            # After a failed callback its results mean nothing: leave.
            failed = f.value("load i32, ptr %frame, align 4")
            fine = f.value(f"icmp eq i32 {failed}, 0")
            running = f.value(f"and i1 {running}, {fine}")
        going, leaving = f.label(), f.label()
        f.fork(any_lane(f, running), going, leaving)
        # Values are those of the loop's head on both ways out.
        f.start(leaving)
        f.line(f"br label %{done}")
        f.start(going)
        stores = list(zip(body.outputs, new))
        result = low.lower(f, body, given, [] if in_memory else body.outputs, stores)
        if in_memory:
            _move_active(f, running, new, old)
            loop.next = [running]
        else:
            fresh = [f.operand(b) for b in result]
            loop.next = [running, *blend(f, running, dtypes, fresh, values)]
    f.jump(done)
    last = [Binding(location=x) for x in old] or [Binding(operand=x) for x in loop.carried[1:]]
    for i in outs:
        scope.bind(i, last[scope.graph.b[i]])


def _move_active(f: Function, mask: str, source: list[Location], to: list[Location]) -> None:
    if f.spelling.lanes == 1:
        copy_all(f, [(x, Binding(location=y)) for x, y in zip(to, source)])
        return
    for x, y in zip(to, source):
        f.store(x, choose(f, x.dtype, mask, f.load(y), f.load(x)))
