"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes). In lanes, a branch runs if any lane takes it and is blended in; a loop runs until
no lane is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.backends.llvm.assembler import Function
from archimedes.backends.llvm.copies import arrays, copy_all, slices_at, stack_columns
from archimedes.backends.llvm.hosting import HostCall
from archimedes.backends.llvm.instructions import any_lane, choose
from archimedes.backends.llvm.lowering import IN_REGISTERS, Lowering, Scope
from archimedes.backends.llvm.memory import Binding, Location, Pointer
from archimedes.backends.llvm.solving import solver
from archimedes.graph.dtypes import B8, I64
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While

__all__ = ["REGIONS"]

#: Branches of up to this many operations run in lanes whether or not a lane takes them.
CHEAP = 12


def _bindings(scope: Scope, ids: Sequence[int]) -> list[Binding]:
    return [scope.binding(i) for i in ids]


def _numbers(scope: Scope, outs: Sequence[int]) -> list[int]:
    return [scope.graph.b[i] for i in outs]


def _call(low: Lowering, scope: Scope, region: Call, outs: Sequence[int]) -> None:
    given = _bindings(scope, region.inputs.tolist())
    for i, binding in zip(outs, low.call(scope.f, region.body, given, _numbers(scope, outs))):
        scope.bind(i, binding)


# ---- loops -------------------------------------------------------------------------------------


def _scan(low: Lowering, scope: Scope, region: Scan, outs: Sequence[int]) -> None:
    f, body, n = scope.f, region.body, region.carry
    first, stacked, shared = (part.tolist() for part in region.parts())
    start = _bindings(scope, first)
    if region.length == 0:
        for i in outs:
            scope.bind(i, start[scope.graph.b[i]])
        return
    rows = [_bindings(scope, row) for row in stacked]
    columns = stack_columns(f, rows, body.input_dtypes[n : n + region.slices])
    fixed = _bindings(scope, shared)
    # Only the columns of outputs that somebody reads are kept.
    kept = sorted({(k - n) % region.outs for k in _numbers(scope, outs) if k >= n})
    places, stride = _stacked_outputs(f, [body.output_dtypes[n + k] for k in kept], region.length)

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


def _stacked_outputs(
    f: Function, dtypes: Sequence[int], length: int
) -> tuple[list[Location], dict[int, int]]:
    """Reserve one array a dtype for all steps; return the first step's places and the strides."""
    stride = {d: dtypes.count(d) for d in set(dtypes)}
    bases = {d: f.module.frame.array(d, stride[d] * length) for d in sorted(stride)}
    taken = dict.fromkeys(stride, 0)
    places = []
    for d in dtypes:
        places.append(bases[d].at(taken[d]))
        taken[d] += 1
    return places, stride


def _map(low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> None:
    loop = Scan(region.inputs, region.body, region.length, 0, region.slices)
    _scan(low, scope, loop, outs)


def _while(low: Lowering, scope: Scope, region: While, outs: Sequence[int]) -> None:
    f, n, body = scope.f, region.carry, region.body
    start = _bindings(scope, region.inputs[:n].tolist())
    fixed = _bindings(scope, region.inputs[n:].tolist())
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
            loop.next = [running, *_blend(f, running, dtypes, fresh, values)]
    f.jump(done)
    last = [Binding(location=x) for x in old] or [Binding(operand=x) for x in loop.carried[1:]]
    for i in outs:
        scope.bind(i, last[scope.graph.b[i]])


def _blend(
    f: Function, mask: str, dtypes: Sequence[int], new: Sequence[str], old: Sequence[str]
) -> list[str]:
    """Take new values in the lanes of the mask. A scalar kernel gets here only if it holds."""
    if f.spelling.lanes == 1:
        return list(new)
    return [choose(f, d, mask, x, y) for d, x, y in zip(dtypes, new, old)]


def _move_active(f: Function, mask: str, source: list[Location], to: list[Location]) -> None:
    if f.spelling.lanes == 1:
        copy_all(f, [(x, Binding(location=y)) for x, y in zip(to, source)])
        return
    for x, y in zip(to, source):
        f.store(x, choose(f, x.dtype, mask, f.load(y), f.load(x)))


# ---- branches ----------------------------------------------------------------------------------


def _switch(low: Lowering, scope: Scope, region: Switch, outs: Sequence[int]) -> None:
    f = scope.f
    index, *rest = region.inputs.tolist()
    wanted = _numbers(scope, outs)
    dtypes = [region.out_dtypes[k] for k in wanted]
    places = arrays(f, dtypes) if len(wanted) > IN_REGISTERS else []
    join = _Join(low, f, scope.operand(index), region, _bindings(scope, rest), wanted, dtypes)
    results = join.in_lanes(places) if f.spelling.lanes > 1 else join.in_scalar(places)
    for k, i in enumerate(outs):
        found = Binding(location=places[k]) if places else Binding(operand=results[k])
        scope.bind(i, found)


class _Join:
    """A switch being written: its branches, and how their results come together.

    Results too many for registers are put in ``places``; otherwise they are returned.
    """

    def __init__(
        self,
        low: Lowering,
        f: Function,
        index: str,
        region: Switch,
        given: Sequence[Binding],
        wanted: Sequence[int],
        dtypes: Sequence[int],
    ) -> None:
        self.low, self.f, self.index = low, f, index
        self.branches, self.given = region.branches, given
        self.wanted, self.dtypes = wanted, dtypes
        self.costs = [low.cost(body) for body in region.branches]

    def takes(self, k: int) -> str:
        """Return the bool "branch k runs", for an index that is clamped to the branches."""
        last = len(self.branches) - 1
        relation = "sle" if k == 0 else "sge" if k == last else "eq"
        spelling = self.f.spelling
        limit = spelling.literal(k, I64)
        return self.f.value(f"icmp {relation} {spelling.types[I64]} {self.index}, {limit}")

    def is_rare(self, k: int) -> bool:
        """Guess that a long branch beside trivial ones is the exception."""
        return self.costs[k] > CHEAP and sum(self.costs) == self.costs[k]

    def values(self, k: int) -> list[Binding]:
        """Lower a branch in the current block."""
        return self.low.call(self.f, self.branches[k], self.given, self.wanted)

    def in_scalar(self, places: Sequence[Location]) -> list[str]:
        """Run the branch that is taken."""
        f, last = self.f, len(self.branches) - 1
        end = f.label()
        ways: list[tuple[list[str], str]] = []
        # The last branch is tested first, so that a rare one stays out of the ordinary way.
        for k in range(last, -1, -1):
            following = ""
            if k:
                this, following = f.label(), f.label()
                f.fork(self.takes(k), this, following, rare=self.is_rare(k))
                f.start(this)
            values = self.values(k)
            if places:
                copy_all(f, list(zip(places, values)))
                ways.append(([], f.block))
            else:
                ways.append(([f.operand(b) for b in values], f.block))
            f.line(f"br label %{end}")
            if following:
                f.start(following)
        f.start(end)
        if places:
            return []
        return [
            f.phi(f.spelling.types[d], *((values[j], block) for values, block in ways))
            for j, d in enumerate(self.dtypes)
        ]

    def in_lanes(self, places: Sequence[Location]) -> list[str]:
        """Run the branches that any lane takes, cheap ones without asking, and blend."""
        f, result = self.f, list[str]()
        count = len(self.branches)
        order = sorted(range(count), key=lambda k: self.costs[k] > CHEAP)
        for turn, k in enumerate(order):
            first = turn == 0 and (self.costs[k] <= CHEAP or count == 1)
            if first:
                values = self.values(k)
                if places:
                    copy_all(f, list(zip(places, values)))
                else:
                    result = [f.operand(b) for b in values]
                continue
            mask = self.takes(k)
            if self.costs[k] <= CHEAP:
                result = self._blended(mask, k, places, result)
                continue
            before, old = f.block, result or [f.spelling.literal(0, d) for d in self.dtypes]
            this, end = f.label(), f.label()
            f.fork(any_lane(f, mask), this, end, rare=self.is_rare(k))
            f.start(this)
            new = self._blended(mask, k, places, old)
            after = f.block
            f.jump(end)
            if not places:
                types = [f.spelling.types[d] for d in self.dtypes]
                result = [f.phi(t, (x, before), (y, after)) for t, x, y in zip(types, old, new)]
        return result

    def _blended(
        self, mask: str, k: int, places: Sequence[Location], old: Sequence[str]
    ) -> list[str]:
        f = self.f
        values = self.values(k)
        if not places:
            return _blend(f, mask, self.dtypes, [f.operand(b) for b in values], old)
        for place, value in zip(places, values):
            f.store(place, choose(f, place.dtype, mask, f.operand(value), f.load(place)))
        return []


# ---- the rest ----------------------------------------------------------------------------------


def _solve(low: Lowering, scope: Scope, region: Solve, outs: Sequence[int]) -> None:
    f, n, m = scope.f, region.size, region.columns
    width = n + m
    work = f.module.frame.array(region.dtype, n * width)
    given = _bindings(scope, region.inputs.tolist())
    rows = [
        given[r * n : (r + 1) * n] + given[n * n + r * m : n * n + (r + 1) * m] for r in range(n)
    ]
    copy_all(
        f, [(work.at(r * width + c), b) for r, row in enumerate(rows) for c, b in enumerate(row)]
    )
    f.line(f"call void {solver(f.module, n, m, region.dtype)}(ptr {f.address(work)})")
    for i in outs:
        r, c = divmod(scope.graph.b[i], m)
        scope.bind(i, Binding(location=work.at(r * width + n + c)))


def _host(low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
    """Call Python: ``i32 callback(number, arguments, results)``, one slot of 8 bytes a value.

    Once a callback has failed (the status word is not zero) no other is called.
    """
    f = scope.f
    number = len(low.hosts)
    dtypes = [scope.graph.dtype[i] for i in region.inputs.tolist()]
    low.hosts.append(HostCall(region, dtypes))
    frame = f.module.frame
    arguments = frame.bytes(8 * len(region.inputs) + 8)
    results = frame.bytes(8 * len(region.dtypes) + 8)

    def slot(base: int, k: int, dtype: int) -> Location:
        return Location(Pointer("frame", base + 8 * k, uniform=True), 0, dtype)

    for k, i in enumerate(region.inputs.tolist()):
        f.store(slot(arguments, k, scope.graph.dtype[i]), scope.operand(i))
    failed = f.value("load i32, ptr %frame, align 4")
    fine = f.value(f"icmp eq i32 {failed}, 0")
    this, end = f.label(), f.label()
    f.fork(fine, this, end)
    f.start(this)
    f.module.declare("@arc_host", "i32", "i64, ptr, ptr")
    at = f.value(f"getelementptr i8, ptr %frame, i64 {arguments}")
    to = f.value(f"getelementptr i8, ptr %frame, i64 {results}")
    status = f.value(f"call i32 @arc_host(i64 {number}, ptr {at}, ptr {to})")
    f.line(f"store i32 {status}, ptr %frame, align 4")
    f.jump(end)
    for i in outs:
        k = scope.graph.b[i]
        scope.bind(i, Binding(operand=f.load(slot(results, k, region.dtypes[k]))))


#: Lowering of every region.
REGIONS: dict[type[Region], Callable[..., None]] = {
    Call: _call,
    Scan: _scan,
    While: _while,
    Switch: _switch,
    Map: _map,
    Solve: _solve,
    Host: _host,
}
