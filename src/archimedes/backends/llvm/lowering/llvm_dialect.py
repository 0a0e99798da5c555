"""LLVM IR as a dialect of the lowering: values are registers, for one instance or for lanes.

Scalar code runs the branch that is taken. In SIMD lanes each branch that any lane takes runs for
all, and loops go on until no lane is active; what lanes have that did not take part is blended in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.instructions import LOWERING, any_lane, blend, choose
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.memory_dialect import MemoryDialect
from archimedes.backends.llvm.lowering.prologue import Run, loop_with_safepoints
from archimedes.backends.llvm.runtime.calls_to_python import HostCall
from archimedes.backends.lowering import schedule
from archimedes.backends.lowering.analysis import Safepoint, has_host
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import (
    Branching,
    Carried,
    Dialect,
    Join,
    Loop,
    Request,
)
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Instances, Location, Scope
from archimedes.graph.dtypes import B8, I64, length_of
from archimedes.graph.ops import ARITY, LOOKUP, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host, Map, Nest, Solve
from archimedes.graph.regions.base import longest_block

#: Instances with longer blocks have enough to do for lanes by themselves, one after the other.
LONGEST_ROW = 1024

_LOWER = tuple(LOWERING.get(op.name) for op in TABLE)


# ---- branches that come together again ---------------------------------------------------------


#: Branches of up to this many operations run in lanes whether or not a lane takes them.
CHEAP = 12


class _Branches(Join):
    """Branches being written: results too many for registers go to ``locations``."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        self.dialect, self.f = dialect, f
        self.index, self.costs, self.dtypes, self.locations = branching

    def takes(self, k: int) -> str:
        """Return the bool "branch k runs", for an index that is clamped to the branches."""
        last = len(self.costs) - 1
        relation = "sle" if k == 0 else "sge" if k == last else "eq"
        spelling = self.f.spelling
        limit = spelling.literal(k, I64)
        return self.f.value(f"icmp {relation} {spelling.types[I64]} {self.index}, {limit}")

    def is_rare(self, k: int) -> bool:
        """Assume that a long branch beside trivial ones is rarely taken."""
        return self.costs[k] > CHEAP and sum(self.costs) == self.costs[k]

    def put(self, values: Sequence[Binding]) -> list[str]:
        """Put values into their locations, or return their registers."""
        if self.locations:
            copy_all(self.dialect, self.f, list(zip(self.locations, values)))
            return []
        return [self.f.operand(b) for b in values]


class ScalarJoin(_Branches):
    """Runs the branch that is taken."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        super().__init__(dialect, f, branching)
        self.end = f.label()
        #: The values of each branch, and the basic block they come from.
        self.incoming: list[tuple[list[str], str]] = []
        # The last branch is tested first, so that a rare one stays out of the ordinary way.
        self.order = range(len(self.costs) - 1, -1, -1)

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Surround a branch by tests and jumps."""
        f, following = self.f, ""
        if k:
            this, following = f.label(), f.label()
            f.fork(self.takes(k), this, following, rare=self.is_rare(k))
            f.start(this)
        yield
        f.line(f"br label %{self.end}")
        if following:
            f.start(following)

    def give(self, values: Sequence[Binding]) -> None:
        """Remember values and the basic block they come from."""
        operands = self.put(values)
        self.incoming.append((operands, self.f.block))

    def results(self) -> list[str]:
        """Choose by the branch that was taken."""
        f = self.f
        f.start(self.end)
        return [
            f.phi(f.spelling.types[d], *((values[j], block) for values, block in self.incoming))
            for j, d in enumerate(self.dtypes if not self.locations else ())
        ]


class LaneJoin(_Branches):
    """Runs the branches that any lane takes (cheap ones always), and blends their values."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        super().__init__(dialect, f, branching)
        self.order = sorted(range(len(self.costs)), key=lambda k: self.costs[k] > CHEAP)
        self.values: list[str] = []

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Run a branch always if it is cheap or the only one, otherwise if any lane takes it."""
        f, cheap = self.f, self.costs[k] <= CHEAP
        if k != self.order[0] or not (cheap or len(self.costs) == 1):
            self.mask = self.takes(k)
        if cheap or not self.mask:
            yield
            return
        before, old = f.block, self.values or [f.spelling.literal(0, d) for d in self.dtypes]
        this, end = f.label(), f.label()
        f.fork(any_lane(f, self.mask), this, end, rare=self.is_rare(k))
        f.start(this)
        self.values = old
        yield
        new, after = self.values, f.block
        f.jump(end)
        if not self.locations:
            types = [f.spelling.types[d] for d in self.dtypes]
            self.values = [f.phi(t, (x, before), (y, after)) for t, x, y in zip(types, old, new)]

    def give(self, values: Sequence[Binding]) -> None:
        """Blend values in where the branch was taken."""
        f = self.f
        if not self.mask:
            self.values = self.put(values)
        elif not self.locations:
            new = [f.operand(b) for b in values]
            self.values = blend(f, self.mask, self.dtypes, new, self.values)
        else:
            for to, value in zip(self.locations, values):
                f.store(to, choose(f, to.dtype, self.mask, f.operand(value), f.load(to)))

    def results(self) -> list[str]:
        """Return what has been blended."""
        return self.values


# ---- the dialect -------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class _WhileLoop(Loop):
    """A loop that is left on a condition; ``mask`` are the lanes that are still in it.

    ``run`` is its loop between safepoints, ``done`` the label behind it.
    """

    run: Run | None = None
    done: str = ""
    hosted: bool = False


class Llvm(MemoryDialect):
    """The functions of a module."""

    large_bodies_are_functions = False
    splits_maps = True

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.hosts: list[HostCall] = []
        self._vectorized: dict[tuple[str, int], Lowering] = {}

    # ---- nodes ---------------------------------------------------------------------------

    def order(self, g: Graph, request: Request) -> schedule.Schedule:
        """Return the order for machine code.

        In pieces, values that live longer would go through the frame. In the unoptimized tier,
        where all of them lie in memory, any order will do.
        """
        asked, target = [*request.stored, *request.wanted], self.module.target
        if not target.effort and not request.known:
            return schedule.program_order(g, asked)
        improve = schedule.latency_schedule if request.whole else schedule.locality_schedule
        start = schedule.depth_first_schedule(g, asked, request.known)
        return improve(g, start, asked, target.registers)

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

    def for_loop(
        self, f: Function, length: int, carried: Carried = (), safepoint: Safepoint | None = None
    ) -> AbstractContextManager[Loop]:
        """Write a loop that carries registers."""
        pairs = [(f.spelling.types[d], x) for d, x in carried]
        if safepoint is None:
            return f.loop(0, length, pairs)
        return loop_with_safepoints(f, 0, length, safepoint, pairs)

    @contextmanager
    def while_loop(
        self, f: Function, limit: int, carried: Carried, hosted: bool, safepoint: Safepoint | None
    ) -> Iterator[Loop]:
        """Write a loop that goes on while any lane does; the others keep their values."""
        types, done = f.spelling.types, f.label()
        pairs = [(types[B8], f.spelling.literal(True, B8)), *((types[d], x) for d, x in carried)]
        with loop_with_safepoints(f, 0, limit, safepoint, pairs, done=done) as run:
            active, *values = run.carried
            loop = _WhileLoop(run.counter, values, values, active, run, done, hosted)
            yield loop
            new = blend(f, loop.mask, [d for d, _ in carried], loop.next, values)
            run.next = [loop.mask, *new]
        loop.carried = run.carried[1:]

    def exit_unless(self, f: Function, loop: Loop, test: str) -> None:
        """Leave if the test holds in no lane that is still active."""
        assert isinstance(loop, _WhileLoop) and loop.run is not None
        running = f.value(f"and {f.spelling.types[B8]} {loop.mask}, {test}")
        if loop.hosted:
            # After a failed callback its results mean nothing: leave.
            running = f.value(f"and i1 {running}, {self._no_failure(f)}")
        going, leaving = f.label(), f.label()
        f.fork(any_lane(f, running), going, leaving)
        # Values are those of the loop's head on both ways out.
        f.start(leaving)
        loop.run.leave(f, loop.done)
        f.start(going)
        loop.mask = running

    def copy_masked(
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
                here, there = (f.advance(x, run.counter, 1) for x in (to, new))
                f.store(here, choose(f, to.dtype, mask, f.load(there), f.load(here)))
        return True

    def swap_by_parity(
        self, f: Function, counter: str, first: Location, second: Location
    ) -> tuple[Location, Location]:
        """Choose addresses by the last bit of the counter."""
        odd = f.value(f"trunc i64 {counter} to i1")
        at = [f.address(location) for location in (first, second)]
        names = [f.value(f"select i1 {odd}, ptr {b}, ptr {a}") for a, b in (at, at[::-1])]
        arrays = (first.array._replace(kind="local", value=name) for name in names)
        old, new = (Location(array, 0, first.dtype) for array in arrays)
        return old, new

    def from_end(self, f: Function, counter: str, length: int) -> str:
        """Count backwards."""
        return f.sub(length - 1, counter)

    def join(self, f: Function, branching: Branching) -> Join:
        """Begin branches."""
        return (LaneJoin if f.spelling.lanes > 1 else ScalarJoin)(self, f, branching)

    # ---- regions: each imports what writes it, of which most programs have few --------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Call the elimination for this size."""
        from archimedes.backends.llvm.lowering.gaussian_elimination import elimination_function

        name = elimination_function(f.module, region.size, region.columns, region.dtype)
        f.line(f"call void {name}(ptr {f.address(work)})")

    def map(self, low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> bool:
        """Compute instances in SIMD lanes if the kernel is scalar."""
        from archimedes.backends.llvm.lowering import lane_maps

        body, lanes = region.body, self.module.target.lanes
        blocks = any(map(length_of, [*body.input_dtypes[: region.slices], *body.output_dtypes]))
        short = lane_maps.is_short(region, lanes)
        if blocks or not self._has_free_lanes(body, lanes if short else region.length):
            return False
        write = lane_maps.map_in_registers if short else lane_maps.map_in_lanes
        write(self.in_lanes(low, body, lanes), scope, region, outs)
        return True

    def rows(self, low: Lowering, scope: Scope, instances: Instances, outs: Sequence[int]) -> bool:
        """Compute rows of blocks in SIMD lanes, where they are short."""
        from archimedes.backends.llvm.lowering.lane_maps import rows_in_lanes

        body = instances.body
        if longest_block(body) > LONGEST_ROW or not self._has_free_lanes(body, instances.length):
            return False
        wide = self.in_lanes(low, body, self.module.target.lanes)
        rows_in_lanes(wide, scope, instances, outs)
        return True

    def _has_free_lanes(self, body: Graph, length: int) -> bool:
        """Return whether so many instances of a body may be put into SIMD lanes."""
        here = self.module.spelling.lanes == 1 and length >= self.module.target.lanes
        return here and not has_host(body)

    def nest(self, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
        """Compute points in SIMD lanes if the kernel is scalar, else some at a time."""
        if has_host(region.body):
            return False
        cost = low.sizes.cost(region.body)
        if self.module.spelling.lanes > 1:
            from archimedes.backends.llvm.lowering.nests.batch_nests import lower_batch_nest

            return lower_batch_nest(low, scope, region, outs, cost)
        from archimedes.backends.llvm.lowering.nests.loop_vectorize import lower_vector_nest

        return lower_vector_nest(self, low, scope, region, outs, cost)

    def in_lanes(self, low: Lowering, body: Graph, lanes: int) -> Lowering:
        """Return the lowering of a body in functions of vectors."""
        key = body.digest(), lanes
        if key not in self._vectorized:
            wide = Llvm(self.module.in_lanes(lanes))
            self._vectorized[key] = Lowering(wide, [body], low.part)
        return self._vectorized[key]

    def _no_failure(self, f: Function) -> str:
        """Return the bool "no callback has failed so far"."""
        return f.value(f"icmp eq i32 {f.value('load i32, ptr %frame, align 4')}, 0")

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Call a function of Python, with one slot of 8 bytes per value, and bind its used outputs.

        Once a callback has failed (the status word is not zero) no other is called.
        """
        f: Function = scope.f
        dtypes = [scope.graph.dtype[i] for i in region.inputs.tolist()]
        frame = f.frame
        arguments = frame.bytes(8 * len(region.inputs) + 8)
        results = frame.bytes(8 * len(region.dtypes) + 8)

        def slot(base: int, k: int, dtype: int) -> Location:
            return Location(Pointer("frame", base + 8 * k, uniform=True), 0, dtype)

        for k, i in enumerate(region.inputs.tolist()):
            f.store(slot(arguments, k, dtypes[k]), scope.operand(i))
        f.module.declare("@arc_host", "void", "i64, ptr, ptr")
        with f.when(self._no_failure(f)):
            at, to = (f.offset("%frame", base) for base in (arguments, results))
            done = f.offset(to, 8 * len(region.dtypes))
            f.line(f"store i64 0, ptr {done}, align 8")
            f.line(f"call void @arc_host(i64 {len(self.hosts)}, ptr {at}, ptr {to})")
            raised = f.value(f"icmp eq i64 {f.value(f'load i64, ptr {done}, align 8')}, 0")
            status = f.value(f"select i1 {raised}, i32 {RAISED}, i32 0")
            f.line(f"store i32 {status}, ptr %frame, align 4")
        for i in outs:
            k = scope.graph.b[i]
            scope.bind(i, Binding(operand=f.load(slot(results, k, region.dtypes[k]))))
        self.hosts.append(HostCall(region, dtypes))
