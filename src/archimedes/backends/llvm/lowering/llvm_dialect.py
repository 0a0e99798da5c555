"""LLVM IR as a dialect of the lowering: values are registers, for one instance or for lanes.

In lanes every branch that any lane takes runs for all, and loops go on until no lane is active;
what lanes have that did not take part is blended in (``joins.py``, ``go_on``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.branches import LaneJoin, ScalarJoin
from archimedes.backends.llvm.lowering.function_dialect import FunctionDialect
from archimedes.backends.llvm.lowering.instructions import LOWERING, any_lane, blend, choose
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.safepoints import Run, with_safepoints
from archimedes.backends.llvm.runtime.calls_to_python import HostCall
from archimedes.backends.lowering.analysis import Safepoint, has_host
from archimedes.backends.lowering.dialect import Join, Loop
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.schedule import (
    Schedule,
    as_written,
    in_one_piece,
    nearer,
    schedule,
)
from archimedes.backends.lowering.scope import Binding, Instances, Location, Scope
from archimedes.graph.dtypes import B8, length_of
from archimedes.graph.ops import ARITY, LOOKUP, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host, Map, Nest, Solve
from archimedes.graph.regions.base import longest_block

__all__ = ["Llvm"]

#: Instances with longer blocks have enough to do for lanes by themselves, one after the other.
LONGEST_ROW = 1024

_LOWER = tuple(LOWERING.get(op.name) for op in TABLE)


def still_fine(f: Function) -> str:
    """Return an i1 that tells whether no callback has failed so far."""
    failed = f.value("load i32, ptr %frame, align 4")
    return f.value(f"icmp eq i32 {failed}, 0")


@dataclass
class _Repeat(Loop):
    """A loop that is left on a condition; ``mask`` are the lanes that are still in it."""

    done: str = ""
    hosted: bool = False
    #: Where it has safepoints: its run between two of them.
    run: Run | None = None


class Llvm(FunctionDialect):
    """The functions of a module."""

    large_bodies_are_functions = False
    splits_maps = True

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.hosts: list[HostCall] = []
        self._wide: dict[tuple[str, int], Lowering] = {}

    # ---- nodes ---------------------------------------------------------------------------

    def order(
        self,
        g: Graph,
        stored: Sequence[int],
        wanted: Sequence[int],
        known: Mapping[int, Binding],
        whole: bool,
    ) -> Schedule:
        """Return the order for machine code.

        In parts, values that live longer would go through the frame. In a draft, where all of
        them lie in memory, any order will do.
        """
        asked = [*stored, *wanted]
        if not self.module.target.effort and not known:
            return as_written(g, asked)
        found, registers = schedule(g, asked, known), self.module.target.registers
        better = in_one_piece if whole else nearer
        return better(g, found, asked, registers)

    def nodes(
        self, low: Lowering, scope: Scope, order: Sequence[int], last: Sequence[int]
    ) -> Callable[[int], str | None]:
        """Return what writes a node as instructions."""
        f, g, operand = scope.f, scope.graph, scope.operand
        op, a, b, c, dtype = g.op, g.a, g.b, g.c, g.dtype

        def write(i: int) -> str:
            code = op[i]
            if code == LOOKUP:
                table = g.tables[b[i]]
                at = f.module.lookup_table(table, dtype[i])
                return self.element(f, at, len(table), operand(a[i]))
            lower, arity = _LOWER[code], ARITY[code]
            assert lower is not None
            if arity == 2:
                return lower(f, dtype[b[i]], operand(a[i]), operand(b[i]))
            if arity == 1:
                return lower(f, dtype[a[i]], operand(a[i]))
            return lower(f, dtype[c[i]], operand(a[i]), operand(b[i]), operand(c[i]))

        return write

    # ---- control flow --------------------------------------------------------------------

    def counted(
        self,
        f: Function,
        length: int,
        carried: Sequence[tuple[int, str]],
        safepoint: Safepoint | None = None,
    ) -> AbstractContextManager[Loop]:
        """Write a loop that carries registers."""
        pairs = [(f.spelling.types[d], x) for d, x in carried]
        if safepoint is None:
            return f.loop(0, length, pairs)
        return with_safepoints(f, 0, length, safepoint, pairs)

    @contextmanager
    def repeated(
        self,
        f: Function,
        limit: int,
        carried: Sequence[tuple[int, str]],
        hosted: bool,
        safepoint: Safepoint | None = None,
    ) -> Iterator[Loop]:
        """Write a loop that goes on while any lane does; the others keep their values."""
        types, done = f.spelling.types, f.label()
        pairs = [(types[B8], f.spelling.literal(True, B8)), *((types[d], x) for d, x in carried)]
        if safepoint is None:
            writing: AbstractContextManager[Loop] = f.loop(0, limit, pairs)
        else:
            writing = with_safepoints(f, 0, limit, safepoint, pairs, done=done)
        with writing as inner:
            active, *values = inner.carried
            loop = _Repeat(inner.counter, values, values, active, done, hosted)
            if safepoint is not None:
                assert isinstance(inner, Run)
                loop.run = inner
            yield loop
            fresh = blend(f, loop.mask, [d for d, _ in carried], loop.next, values)
            inner.next = [loop.mask, *fresh]
        if safepoint is None:
            f.jump(done)
        loop.carried = inner.carried[1:]

    def go_on(self, f: Function, loop: Loop, test: str) -> None:
        """Leave if the test holds in no lane that is still active."""
        assert isinstance(loop, _Repeat)
        running = f.value(f"and {f.spelling.types[B8]} {loop.mask}, {test}")
        if loop.hosted:
            # After a failed callback its results mean nothing: leave.
            running = f.value(f"and i1 {running}, {still_fine(f)}")
        going, leaving = f.label(), f.label()
        f.fork(any_lane(f, running), going, leaving)
        # Values are those of the loop's head on both ways out.
        f.start(leaving)
        if loop.run is None:
            f.line(f"br label %{loop.done}")
        else:
            loop.run.leave(f, loop.done)
        f.start(going)
        loop.mask = running

    def renew(
        self, f: Function, mask: str, copies: Sequence[tuple[Location, Location, int]]
    ) -> bool:
        """Copy in active lanes only."""
        if not mask or f.spelling.lanes == 1:
            return False
        for to, new, length in copies:
            if not length:
                f.store(to, choose(f, to.dtype, mask, f.load(new), f.load(to)))
                continue
            with f.loop(0, length) as run:
                here, there = (f.moving(x, run.counter, 1) for x in (to, new))
                f.store(here, choose(f, to.dtype, mask, f.load(there), f.load(here)))
        return True

    def in_turn(
        self, f: Function, counter: str, first: Location, second: Location
    ) -> tuple[Location, Location]:
        """Choose addresses by the last bit of the counter."""
        odd = f.value(f"trunc i64 {counter} to i1")
        at = [f.address(location) for location in (first, second)]
        names = [f.value(f"select i1 {odd}, ptr {b}, ptr {a}") for a, b in (at, at[::-1])]
        old, new = (
            Location(first.array._replace(kind="local", value=name), 0, first.dtype)
            for name in names
        )
        return old, new

    def from_end(self, f: Function, counter: str, length: int) -> str:
        """Count backwards."""
        return f.value(f"sub i64 {length - 1}, {counter}")

    def join(
        self,
        f: Function,
        index: str,
        costs: Sequence[int],
        dtypes: Sequence[int],
        locations: Sequence[Location],
    ) -> Join:
        """Begin branches."""
        kind = LaneJoin if f.spelling.lanes > 1 else ScalarJoin
        return kind(self, f, index, costs, dtypes, locations)

    # ---- regions: each imports what writes it, of which most programs have few --------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Call the elimination for this size."""
        from archimedes.backends.llvm.lowering.solving import solver

        name = solver(f.module, region.size, region.columns, region.dtype)
        f.line(f"call void {name}(ptr {f.address(work)})")

    def map(self, low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> bool:
        """Compute instances in lanes if the kernel is scalar."""
        from archimedes.backends.llvm.lowering.lane_maps import (
            is_short,
            map_in_lanes,
            map_in_registers,
        )

        mapped = [*region.body.input_dtypes[: region.slices], *region.body.output_dtypes]
        lanes = self.module.target.lanes
        short = is_short(region, lanes)
        if any(map(length_of, mapped)) or not self._lanes_free(
            region.body, lanes if short else region.length
        ):
            return False
        wide = self.in_lanes(low, region.body, lanes)
        write = map_in_registers if short else map_in_lanes
        write(self.module.wide, wide, scope, region, outs)
        return True

    def rows(self, low: Lowering, scope: Scope, given: Instances, outs: Sequence[int]) -> bool:
        """Compute rows of blocks in lanes, where they are short."""
        from archimedes.backends.llvm.lowering.lane_maps import rows_in_lanes

        long = longest_block(given.body) > LONGEST_ROW
        if long or not self._lanes_free(given.body, given.length):
            return False
        wide = self.in_lanes(low, given.body, self.module.target.lanes)
        rows_in_lanes(self.module.wide, wide, scope, given, outs)
        return True

    def _lanes_free(self, body: Graph, length: int) -> bool:
        """Tell whether so many instances of a body may be put into lanes."""
        here = self.module.spelling.lanes == 1 and length >= self.module.target.lanes
        return here and not has_host(body)

    def nest(self, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
        """Compute points in lanes if the kernel is scalar, else some at a time."""
        module, cost = self.module, low.sizes.cost(region.body)
        lanes = module.spelling.lanes
        if has_host(region.body):
            return False
        if lanes > 1:
            from archimedes.backends.llvm.lowering.nests.batch_nests import instance_nest

            given, wanted = scope.bindings(region.inputs.tolist()), scope.numbers(outs)
            writer = instance_nest(low, scope.f, region, given, wanted, cost)
            if writer is None:
                return False
            to = [scope.new_block(i) for i in outs] if region.kept else []
            for i, value in zip([] if region.kept else outs, writer.write(to)):
                scope.bind(i, Binding(operand=value))
            return True
        from archimedes.backends.llvm.lowering.nests.loop_vectorize import vector_nest

        return vector_nest(self, low, scope, region, outs, cost)

    def in_lanes(self, low: Lowering, body: Graph, lanes: int) -> Lowering:
        """Return the lowering of a body in functions of vectors."""
        found = self._wide.get((body.digest(), lanes))
        if found is None:
            found = Lowering(Llvm(self.module.in_lanes(lanes)), [body], low.part)
            self._wide[body.digest(), lanes] = found
        return found

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Call a function of Python, with one slot of 8 bytes per value, and bind its used outputs.

        Once a callback has failed (the status word is not zero) no other is called.
        """
        f: Function = scope.f
        dtypes = [scope.graph.dtype[i] for i in region.inputs.tolist()]
        frame = f.module.frame
        arguments = frame.bytes(8 * len(region.inputs) + 8)
        results = frame.bytes(8 * len(region.dtypes) + 8)

        def slot(base: int, k: int, dtype: int) -> Location:
            return Location(Pointer("frame", base + 8 * k, uniform=True), 0, dtype)

        for k, i in enumerate(region.inputs.tolist()):
            f.store(slot(arguments, k, dtypes[k]), scope.operand(i))
        fine = still_fine(f)
        this, end = f.label(), f.label()
        f.fork(fine, this, end)
        f.start(this)
        f.module.declare("@arc_host", "void", "i64, ptr, ptr")
        at = f.value(f"getelementptr i8, ptr %frame, i64 {arguments}")
        to = f.value(f"getelementptr i8, ptr %frame, i64 {results}")
        done = f.value(f"getelementptr i8, ptr {to}, i64 {8 * len(region.dtypes)}")
        f.line(f"store i64 0, ptr {done}, align 8")
        f.line(f"call void @arc_host(i64 {len(self.hosts)}, ptr {at}, ptr {to})")
        raised = f.value(f"icmp eq i64 {f.value(f'load i64, ptr {done}, align 8')}, 0")
        status = f.value(f"select i1 {raised}, i32 {RAISED}, i32 0")
        f.line(f"store i32 {status}, ptr %frame, align 4")
        f.jump(end)
        for i in outs:
            k = scope.graph.b[i]
            scope.bind(i, Binding(operand=f.load(slot(results, k, region.dtypes[k]))))
        self.hosts.append(HostCall(region, dtypes))
