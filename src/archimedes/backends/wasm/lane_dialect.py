"""WebAssembly for two instances at a time, in SIMD lanes.

Each branch that any lane takes runs for both, and loops go on until no lane is active; what a lane
has that did not take part is blended in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from archimedes.backends.lowering.analysis import Safepoint
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import Branching, Carried, Join, Loop
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.backends.wasm.functions import Block, Function, Jump
from archimedes.backends.wasm.lane_operations import (
    LANE_OPERATIONS,
    any_lane,
    by_lane,
    choose,
    pair,
    splat,
    take,
)
from archimedes.backends.wasm.operations import KINDS
from archimedes.backends.wasm.wasm_dialect import BYTES, LOADS, STORES, Array, Wasm, WhileLoop
from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.regions import Solve
from archimedes.graph.regions.loop_regions import UNBOUNDED

#: Bytes of a value of both lanes, and of one lane of it.
WIDTH = 16
LANE_BYTES = {F64: 8, F32: 4, I64: 8, B8: 8}
#: Branches of up to this many operations run whether or not a lane takes them.
CHEAP = 12


class WasmLanes(Wasm):
    """The functions of a module, for two instances."""

    lanes = 2

    # ---- values --------------------------------------------------------------------------

    def kind(self, dtype: int) -> str:
        """Return the type of values."""
        return "v128"

    def spell(self, f: Function, name: str, dtype: int, operands: Sequence[str]) -> str:
        """Write an op on both lanes."""
        if name in LANE_OPERATIONS:
            return LANE_OPERATIONS[name](f, dtype, *operands)
        return by_lane(f, name, dtype, operands)

    def literal(self, value: Any, dtype: int) -> str:
        """Return a constant, the same in both lanes."""
        return self.module.lanes_constant(value, dtype)

    # ---- memory --------------------------------------------------------------------------

    def stride(self, location: Location) -> int:
        """Return the bytes from an element to the next."""
        return BYTES[location.dtype] if location.array.uniform else WIDTH

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve an array of the function's frame."""
        return Location(Array(f.frame.reserve(WIDTH * count, 16), uniform=False), 0, dtype)

    def block(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve the array of a block, until it is released."""
        return Location(Array(f.frame.borrow(WIDTH * count, 16), uniform=False), 0, dtype)

    def load(self, f: Function, location: Location) -> str:
        """Load a value; one that both lanes share is copied to each."""
        dtype, fixed = location.dtype, location.array.fixed
        if not location.array.uniform:
            return f.load("v128.load", "v128", self.place(location), fixed)
        if dtype == B8:
            return splat(f, B8, super().load(f, location))
        name = "v128.load32_splat" if dtype == F32 else "v128.load64_splat"
        return f.load(name, "v128", self.place(location), fixed)

    def store(self, f: Function, location: Location, operand: str) -> None:
        """Store a value of both lanes."""
        f.store("v128.store", self.place(location), operand)

    def _of_lanes(
        self, f: Function, location: Location, length: int, index: str
    ) -> list[tuple[str, tuple[Any, int, str]]]:
        """Return the load of the element that each lane has its own index of, and its place."""
        found = []
        for lane in range(2):
            at = super().index(f, take(f, I64, index, lane), length)
            segment, offset, pointer = self.place(self.advance(f, location, at, 1))
            if not location.array.uniform:
                offset += lane * LANE_BYTES[location.dtype]
            found.append((LOADS[location.dtype], (segment, offset, pointer)))
        return found

    def element(self, f: Function, location: Location, length: int, index: str) -> str:
        """Load an element, for each lane at its own index."""
        dtype, array = location.dtype, location.array
        values = []
        for name, place in self._of_lanes(f, location, length, index):
            if dtype == B8 and not array.uniform:
                whole = f.load("i64.load", "i64", place, array.fixed)
                one = f.op("i32.wrap_i64", whole)
                values.append(f.op("i32.and", one, f.constant("i32", 1)))
            else:
                values.append(f.load(name, KINDS[dtype], place, array.fixed))
        return pair(f, dtype, *values)

    def put(self, f: Function, location: Location, length: int, index: str, operand: str) -> None:
        """Store an element, for each lane at its own index."""
        dtype = I64 if location.dtype == B8 else location.dtype
        places = self._of_lanes(f, location, length, index)
        for lane, (_, place) in enumerate(places):
            f.store(STORES[dtype], place, take(f, dtype, operand, lane))

    def gather(self, f: Function, block: Location, table: Location) -> Binding:
        """Return the element of a block that a table names, for both lanes."""
        index = f.load("i64.load", "i64", self.place(table), table.array.fixed)
        return Binding(location=self.advance(f, block, f.op("i32.wrap_i64", index), 1))

    def number(self, f: Function, counter: str) -> str:
        """Copy a counter to both lanes."""
        return splat(f, I64, super().number(f, counter))

    # ---- control flow --------------------------------------------------------------------

    @contextmanager
    def while_loop(
        self,
        f: Function,
        limit: int,
        carried: Carried,
        hosted: bool,
        safepoint: Safepoint | None,
    ) -> Iterator[Loop]:
        """Write a loop that goes on while any lane does; the other keeps its values."""
        names = [f.variable("v128") for _ in carried]
        active = f.variable("v128")
        f.assign([*names, active], [*(x for _, x in carried), self.literal(True, B8)])
        steps = ""
        if limit < UNBOUNDED:
            steps = f.variable("i64")
            f.assign([steps], [f.constant("i64", limit)])
        with f.repeat() as (block, whole):
            if steps:
                f.append(Jump(whole, f.op("i64.eqz", steps)))
            loop = WhileLoop("", names, mask=active, whole=whole)
            yield loop
            new = [
                choose(f, d, loop.mask, x, old) for (d, _), x, old in zip(carried, loop.next, names)
            ]
            f.assign([*names, active], [*new, loop.mask])
            if steps:
                f.assign([steps], [f.op("i64.sub", steps, f.constant("i64", 1))])
            f.append(Jump(block))
        loop.mask = ""

    def exit_unless(self, f: Function, loop: Loop, test: str) -> None:
        """Leave if the test holds in no lane that is still active."""
        assert isinstance(loop, WhileLoop) and loop.whole is not None
        loop.mask = f.op("v128.and", loop.mask, test)
        f.append(Jump(loop.whole, f.op("i32.eqz", any_lane(f, loop.mask))))

    def copy_masked(
        self, f: Function, mask: str, copies: Sequence[tuple[Location, Location, int]]
    ) -> bool:
        """Copy in active lanes only."""
        if not mask:
            return False
        for to, new, length in copies:
            if not length:
                value = choose(f, to.dtype, mask, self.load(f, new), self.load(f, to))
                self.store(f, to, value)
                continue
            with self.for_loop(f, length) as run:
                here, there = (self.advance(f, x, run.counter, 1) for x in (to, new))
                value = choose(f, to.dtype, mask, self.load(f, there), self.load(f, here))
                self.store(f, here, value)
        return True

    def join(self, f: Function, branching: Branching) -> Join:
        """Begin branches."""
        return _LaneBranches(self, f, branching)

    # ---- regions -------------------------------------------------------------------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Solve the equations of one lane after the other."""
        size, kind = BYTES[region.dtype], KINDS[region.dtype]
        count = region.size * (region.size + region.columns)
        own = f.frame.borrow(count * size)
        base = self.address(f, work)
        numbers = [f.constant("i32", n) for n in (region.size, region.columns)]
        start, stop = f.constant("i32", 0), f.constant("i32", count * size)
        for lane in range(2):
            for back in (False, True):
                if back:
                    f.call(self.module.solver(region.dtype), [f.address(own, 0), *numbers])
                with f.count(start, stop, size) as c:
                    shift = f.constant("i32", 1 if size == 8 else 2)
                    far = f.op("i32.add", base, f.op("i32.shl", c, shift))
                    places = [(None, lane * size, far), (own, 0, c)]
                    source, target = places[::-1] if back else places
                    value = f.load(f"{kind}.load", kind, source, False)
                    f.store(f"{kind}.store", target, value)
        f.frame.release(own)


class _LaneBranches(Join):
    """Runs the branches that any lane takes (cheap ones always), and blends their values."""

    def __init__(self, d: WasmLanes, f: Function, branching: Branching) -> None:
        self.d, self.f = d, f
        self.index, self.costs, self.dtypes, self.locations = branching
        self.order = sorted(range(len(self.costs)), key=lambda k: self.costs[k] > CHEAP)
        self.values: list[str] = []

    def takes(self, k: int) -> str:
        """Return the lanes that take a branch, for an index that is clamped to the branches."""
        f, last = self.f, len(self.costs) - 1
        condition = f.conditions.get(self.index)
        if last == 1 and condition is not None:
            return condition if k else f.op("v128.not", condition)
        relation = "le_s" if k == 0 else "ge_s" if k == last else "eq"
        return f.op(f"i64x2.{relation}", self.index, self.d.literal(k, I64))

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Run a branch always if it is cheap or the only one, otherwise if any lane takes it."""
        f, cheap = self.f, self.costs[k] <= CHEAP
        if k != self.order[0] or not (cheap or len(self.costs) == 1):
            self.mask = self.takes(k)
        if cheap or not self.mask:
            yield
            return
        names = [f.variable("v128") for _ in self.dtypes] if not self.locations else []
        zeros = [self.d.literal(0, d) for d in self.dtypes]
        f.assign(names, self.values or zeros[: len(names)])
        self.values = names
        block = Block(b"if", any_lane(f, self.mask))
        with f.inside(block.body):
            yield
            f.assign(names, self.values)
        f.append(block)
        self.values = names

    def give(self, values: Sequence[Binding]) -> None:
        """Blend values in where the branch was taken."""
        f, d = self.f, self.d
        if not self.mask and self.locations:
            copy_all(d, f, list(zip(self.locations, values)))
        elif self.locations:
            for to, value in zip(self.locations, values):
                old = d.load(f, to)
                d.store(f, to, choose(f, to.dtype, self.mask, d.operand(f, value), old))
        else:
            new = [d.operand(f, value) for value in values]
            if self.mask:
                rows = zip(self.dtypes, new, self.values)
                new = [choose(f, x, self.mask, a, b) for x, a, b in rows]
            self.values = new

    def results(self) -> list[str]:
        """Return what has been blended."""
        return self.values
