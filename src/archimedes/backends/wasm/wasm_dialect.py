"""WebAssembly as a dialect of the lowering: values are locals, arrays lie at fixed addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.backends.lowering.analysis import Safepoint
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import (
    Branching,
    Carried,
    Dialect,
    Join,
    Loop,
    Request,
    Results,
)
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.schedule import Schedule, register_pressure_schedule
from archimedes.backends.lowering.scope import Binding, Location, Scope, Store
from archimedes.backends.wasm.binary import MEMORY_COPY, MEMORY_FILL
from archimedes.backends.wasm.functions import Block, Frame, Function, Jump, Segment
from archimedes.backends.wasm.operations import KINDS, OPERATIONS
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F32, F64, I64, item_type, length_of
from archimedes.graph.ops import ARITY, LOOKUP, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host, Region, Solve
from archimedes.graph.regions.loop_regions import UNBOUNDED

if TYPE_CHECKING:
    from archimedes.backends.wasm.module import Module

#: Bytes of an element in memory, by dtype.
BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}
LOADS = {F64: "f64.load", F32: "f32.load", I64: "i64.load", B8: "i32.load8_u"}
STORES = {F64: "f64.store", F32: "f32.store", I64: "i64.store", B8: "i32.store8"}
#: Scalars that a function takes as parameters, and returns on the stack; more go through memory.
BY_VALUE = 32
#: Longer runs are copied by one instruction.
LONG_RUN = 64


class Array(NamedTuple):
    """An array, or one seen from a step of a loop: ``pointer`` is added to its address.

    Without a segment the pointer is the whole address. ``fixed``: while the function runs, nothing
    writes to it. ``uniform``: one element for all SIMD lanes.
    """

    segment: Segment | None
    pointer: str = ""
    fixed: bool = False
    uniform: bool = True


@dataclass(eq=False, repr=False)
class Routine:
    """A function for a body: how it takes inputs and gives outputs, by number.

    ``values`` are inputs that are parameters, ``arrays`` groups of inputs (with their dtype) that
    pointers lead to, ``blocks`` inputs that are blocks. ``returned`` are outputs on the stack,
    ``stored`` groups of outputs in arrays of the caller, ``made`` outputs that are blocks.
    """

    function: Function
    values: list[int]
    arrays: list[tuple[int, list[int]]]
    blocks: list[int]
    returned: list[int]
    stored: list[tuple[int, list[int]]]
    made: list[int]


def _by_dtype(numbers: Sequence[int], kinds: Sequence[int]) -> list[tuple[int, list[int]]]:
    found = sorted({kinds[k] for k in numbers})
    return [(d, [k for k in numbers if kinds[k] == d]) for d in found]


class Wasm(Dialect):
    """The functions of a module, for one instance."""

    lanes = 1
    reuses_scratch = True
    boxes = True
    apart = True
    unrolled_terms = 8
    #: Offsets of addresses are not negative.
    walks_back = False

    def __init__(self, module: Module) -> None:
        self.module = module

    # ---- nodes ---------------------------------------------------------------------------

    def order(self, g: Graph, request: Request) -> Schedule:
        """Return the order that keeps few values alive at a time."""
        return register_pressure_schedule(g, request.stored, request.wanted)

    def nodes(
        self, low: Lowering, scope: Scope, order: Sequence[int], last: Sequence[int]
    ) -> Callable[[int], str | None]:
        """Return what writes a node as instructions."""
        f, g = scope.f, scope.graph

        def write(i: int) -> str:
            operands = [scope.operand(j) for j in g.operands(i)]
            code = g.op[i]
            if code == LOOKUP:
                table = g.tables[g.b[i]]
                return self.element(f, self.table(f, table, g.dtype[i]), len(table), operands[0])
            last = (g.a[i], g.b[i], g.c[i])[ARITY[code] - 1]
            return self.spell(f, TABLE[code].name, g.dtype[last], operands)

        return write

    def spell(self, f: Function, name: str, dtype: int, operands: Sequence[str]) -> str:
        """Write an op on operands whose last one has this dtype."""
        return OPERATIONS[name](f, dtype, *operands)

    def literal(self, value: Any, dtype: int) -> str:
        """Return a constant."""
        return self.module.constant(KINDS[dtype], value)

    # ---- memory --------------------------------------------------------------------------

    def kind(self, dtype: int) -> str:
        """Return the type of values of a dtype."""
        return KINDS[dtype]

    def stride(self, location: Location) -> int:
        """Return the bytes from an element to the next."""
        return BYTES[location.dtype]

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve an array of the function's frame."""
        return Location(Array(f.frame.reserve(BYTES[dtype] * count, BYTES[dtype])), 0, dtype)

    def block(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve the array of a block, until it is released."""
        return Location(Array(f.frame.borrow(BYTES[dtype] * count)), 0, dtype)

    def release(self, f: Function, location: Location) -> None:
        """Let other blocks use an array."""
        array = location.array
        if array.segment is not None and not array.pointer:
            f.frame.release(array.segment)

    def scratch(self, f: Function, owner: str, dtype: int, count: int) -> Location:
        """Return the scratch array of an owner, one per dtype."""
        buffers = f.frame.buffers
        if (owner, dtype) not in buffers:
            buffers[owner, dtype] = self.array(f, dtype, count)
        location: Location = buffers[owner, dtype]
        return location

    def table(self, f: Function, values: Sequence[Any] | np.ndarray, dtype: int) -> Location:
        """Return a constant array of the module."""
        return Location(Array(self.module.table(values, dtype), fixed=True), 0, dtype)

    def place(self, location: Location) -> tuple[Segment | None, int, str]:
        """Return where an element lies: a segment, bytes from its start, and a pointer."""
        array = location.array
        return array.segment, location.offset * self.stride(location), array.pointer

    def load(self, f: Function, location: Location) -> str:
        """Load a value."""
        dtype = location.dtype
        return f.load(LOADS[dtype], KINDS[dtype], self.place(location), location.array.fixed)

    def store(self, f: Function, location: Location, operand: str) -> None:
        """Store a value."""
        f.store(STORES[location.dtype], self.place(location), operand)

    def address(self, f: Function, location: Location) -> str:
        """Return the address of an element."""
        segment, offset, pointer = self.place(location)
        if not pointer:
            assert segment is not None
            return f.address(segment, offset)
        if segment is None and not offset:
            return pointer
        first = f.constant("i32", offset) if segment is None else f.address(segment, offset)
        return f.op("i32.add", pointer, first)

    def advance(self, f: Function, location: Location, counter: str, stride: int) -> Location:
        """Return an element that follows a counter."""
        step, scale = counter, stride * self.stride(location)
        if scale & (scale - 1):
            step = f.op("i32.mul", counter, f.constant("i32", scale))
        elif scale != 1:
            step = f.op("i32.shl", counter, f.constant("i32", scale.bit_length() - 1))
        pointer = location.array.pointer
        if pointer:
            step = f.op("i32.add", pointer, step)
        return location._replace(array=location.array._replace(pointer=step))

    def index(self, f: Function, operand: str, length: int) -> str:
        """Return an int64 as a counter, clamped."""
        if not length:
            return f.op("i32.wrap_i64", operand)
        zero, last = f.constant("i64", 0), f.constant("i64", length - 1)
        least = f.select(f.op("i64.gt_s", operand, zero), operand, zero)
        return f.op("i32.wrap_i64", f.select(f.op("i64.lt_s", least, last), least, last))

    def number(self, f: Function, counter: str) -> str:
        """Return a counter as an int64."""
        return f.op("i64.extend_i32_u", counter)

    def modulo(self, f: Function, terms: Sequence[tuple[str, int]], divisor: int) -> str:
        """Return the remainder of a sum of counters."""
        total = ""
        for counter, stride in terms:
            step = counter if stride == 1 else f.op("i32.mul", counter, f.constant("i32", stride))
            total = f.op("i32.add", total, step) if total else step
        return f.op("i32.rem_u", total, f.constant("i32", divisor))

    def copy_run(self, f: Function, to: Location, start: Location, count: int) -> None:
        """Copy a run of values: in a loop, or at once if there are many."""
        if count >= LONG_RUN and to.array.uniform == start.array.uniform:
            size = f.constant("i32", count * self.stride(to))
            f.act(MEMORY_COPY, self.address(f, to), self.address(f, start), size)
            return
        with self.for_loop(f, count) as loop:
            target, source = (self.advance(f, x, loop.counter, 1) for x in (to, start))
            self.store(f, target, self.load(f, source))

    def fill_run(self, f: Function, to: Location, operand: str, count: int) -> None:
        """Store one value many times."""
        value = f.value_of(operand)
        if count >= LONG_RUN and value == 0 and not str(value).startswith("-"):
            size, zero = f.constant("i32", count * self.stride(to)), f.constant("i32", 0)
            f.act(MEMORY_FILL, self.address(f, to), zero, size)
            return
        with self.for_loop(f, count) as loop:
            self.store(f, self.advance(f, to, loop.counter, 1), operand)

    # ---- control flow --------------------------------------------------------------------

    @contextmanager
    def for_loop(
        self, f: Function, length: int, carried: Carried = (), safepoint: Safepoint | None = None
    ) -> Iterator[Loop]:
        """Write a loop that tests its counter at the end of a step."""
        names = [f.variable(self.kind(d)) for d, _ in carried]
        counter, block = f.variable("i32"), Block(b"loop")
        f.assign([*names, counter], [*(x for _, x in carried), f.constant("i32", 0)])
        loop = Loop(counter, names)
        with f.inside(block.body, repeated=True):
            yield loop
            following = f.op("i32.add", counter, f.constant("i32", 1))
            f.assign([*names, counter], [*loop.next, following])
            f.append(Jump(block, f.op("i32.ne", following, f.constant("i32", length))))
        if length:
            f.append(block)

    @contextmanager
    def while_loop(
        self,
        f: Function,
        limit: int,
        carried: Carried,
        hosted: bool,
        safepoint: Safepoint | None,
    ) -> Iterator[Loop]:
        """Write a loop that is left on a condition, or after so many steps."""
        names = [f.variable(self.kind(d)) for d, _ in carried]
        f.assign(names, [x for _, x in carried])
        steps = ""
        if limit < UNBOUNDED:
            steps = f.variable("i64")
            f.assign([steps], [f.constant("i64", limit)])
        with f.repeat() as (block, whole):
            if steps:
                f.append(Jump(whole, f.op("i64.eqz", steps)))
            loop = WhileLoop("", names, whole=whole)
            yield loop
            f.assign(names, loop.next)
            if steps:
                f.assign([steps], [f.op("i64.sub", steps, f.constant("i64", 1))])
            f.append(Jump(block))

    def exit_unless(self, f: Function, loop: Loop, test: str) -> None:
        """Leave the loop unless a test holds."""
        assert isinstance(loop, WhileLoop) and loop.whole is not None
        f.append(Jump(loop.whole, f.op("i32.eqz", test)))

    def swap_by_parity(
        self, f: Function, counter: str, first: Location, second: Location
    ) -> tuple[Location, Location]:
        """Choose addresses by the last bit of the counter."""
        odd = f.op("i32.and", counter, f.constant("i32", 1))
        a, b = (self.address(f, x) for x in (first, second))
        pointers = f.select(odd, b, a), f.select(odd, a, b)
        one, other = (
            Location(first.array._replace(segment=None, pointer=x), 0, first.dtype)
            for x in pointers
        )
        return one, other

    def from_end(self, f: Function, counter: str, length: int) -> str:
        """Count backwards."""
        return f.op("i32.sub", f.constant("i32", length - 1), counter)

    def join(self, f: Function, branching: Branching) -> Join:
        """Begin branches."""
        return _Branches(self, f, branching)

    # ---- functions -----------------------------------------------------------------------

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a piece of a function, with the parameters that it uses."""
        part = Function(self.module, f.frame, f)
        yield part
        used = self.module.finish(part)
        part.parameters = [x for x in part.parameters if x in used]
        f.call(part, part.parameters)

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, bindings: Sequence[Binding]
    ) -> Routine:
        """Write a body as a function."""
        live = set(body.live())
        kinds, results = body.input_dtypes, body.output_dtypes
        used = [k for k, i in enumerate(body.inputs) if i in live and not length_of(kinds[k])]
        scalars = [k for k, kind in enumerate(results) if not length_of(kind)]
        many, returns = len(used) > BY_VALUE, len(scalars) <= BY_VALUE
        inner = Function(self.module, Frame())
        routine = Routine(
            function=inner,
            values=[] if many else used,
            arrays=_by_dtype(used, kinds) if many else [],
            blocks=[k for k, i in enumerate(body.inputs) if i in live and length_of(kinds[k])],
            returned=scalars if returns else [],
            stored=[] if returns else _by_dtype(scalars, results),
            made=[k for k, kind in enumerate(results) if length_of(kind)],
        )
        inside = [Binding()] * len(body.inputs)
        for k in routine.values:
            inside[k] = Binding(operand=inner.parameter(self.kind(kinds[k])))
        for d, numbers in routine.arrays:
            start = self.pointer(inner, d, fixed=True)
            for at, k in enumerate(numbers):
                inside[k] = Binding(location=start.at(at))
        for k in routine.blocks:
            uniform = bindings[k].memory.array.uniform
            inside[k] = Binding(location=self.pointer(inner, item_type(kinds[k]), True, uniform))
        stores: list[Store] = []
        for d, numbers in routine.stored:
            start = self.pointer(inner, d)
            stores += [(k, start.at(at)) for at, k in enumerate(numbers)]
        stores += [(k, self.pointer(inner, item_type(results[k]))) for k in routine.made]
        values = low.lower(inner, body, inside, routine.returned, stores)
        inner.give([self.operand(inner, x) for x in values])
        self.module.finish(inner)
        return routine

    def pointer(
        self, f: Function, dtype: int, fixed: bool = False, uniform: bool | None = None
    ) -> Location:
        """Return the array that a new parameter points to."""
        same = self.lanes == 1 if uniform is None else uniform
        return Location(Array(None, f.parameter("i32"), fixed, same), 0, dtype)

    def form(self, body: Graph, arguments: Sequence[Binding]) -> Any:
        """Return which blocks all SIMD lanes share."""
        if self.lanes == 1:
            return "scalar"
        kinds = zip(body.input_dtypes, arguments)
        return tuple(length_of(d) > 0 and b.memory.array.uniform for d, b in kinds)

    def call(
        self, f: Function, routine: Routine, arguments: Sequence[Binding], results: Results
    ) -> list[Binding]:
        """Call a function; blocks are written to where they are wanted."""
        wanted, to = results
        args = [self.operand(f, arguments[k]) for k in routine.values]
        for d, numbers in routine.arrays:
            args.append(self._as_array(f, d, [arguments[k] for k in numbers]))
        args += [self.address(f, arguments[k].memory) for k in routine.blocks]
        outputs: dict[int, Binding] = {}
        for d, numbers in routine.stored:
            start = self.array(f, d, len(numbers))
            args.append(self.address(f, start))
            outputs |= {k: Binding(location=start.at(at)) for at, k in enumerate(numbers)}
        args += [self.address(f, to[k]) for k in routine.made]
        values = f.call(routine.function, args)
        outputs |= {k: Binding(operand=x) for k, x in zip(routine.returned, values)}
        outputs |= {k: Binding(location=location) for k, location in to.items()}
        return [outputs[k] for k in wanted]

    def _as_array(self, f: Function, dtype: int, values: Sequence[Binding]) -> str:
        """Return the address of values that lie one after the other: as they are, or copied."""
        first = values[0].location
        same = first is not None and first.array.uniform == (self.lanes == 1)
        if (
            first is None
            or not same
            or any(b.location != first.at(k) for k, b in enumerate(values))
        ):
            first = self.array(f, dtype, len(values))
            copy_all(self, f, [(first.at(k), b) for k, b in enumerate(values)])
        return self.address(f, first)

    # ---- regions -------------------------------------------------------------------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Call the function that solves linear equations."""
        sizes = (f.constant("i32", n) for n in (region.size, region.columns))
        f.call(self.module.solver(region.dtype), [self.address(f, work), *sizes])

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Refuse: a browser has no Python."""
        where = f" ({region.line})" if region.line else ""
        raise CodegenError(
            f"the function calls back into Python: {region.label}{where}. A WebAssembly module has "
            "no Python: write the callback in NumPy, or pass its result as an argument."
        )


@dataclass(eq=False, repr=False)
class WhileLoop(Loop):
    """A loop that is left by a jump to the end of ``whole``."""

    whole: Block | None = None


class _Branches(Join):
    """Branches as an if; their values are assigned to variables, or copied to locations."""

    def __init__(self, d: Wasm, f: Function, branching: Branching) -> None:
        self.d, self.f = d, f
        self.index, costs, dtypes, self.locations = branching
        self.count = len(costs)
        # An index that was made of a bool need not be compared.
        self.test = f.conditions.get(self.index, "") if self.count == 2 else ""
        self.order = (1, 0) if self.test else range(self.count)
        self.names = [] if self.locations else [f.variable(d.kind(x)) for x in dtypes]
        self._open: list[AbstractContextManager[None]] = []

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Write a branch, and the others behind it in its else."""
        f = self.f
        if k == self.order[-1]:
            yield
            return
        test = self.test
        if not test:
            relation = "i64.le_s" if k == 0 else "i64.eq"
            test = f.op(relation, self.index, f.constant("i64", k))
        block = Block(b"if", test)
        f.append(block)
        with f.inside(block.body):
            yield
        others = f.inside(block.other)
        others.__enter__()
        self._open.append(others)

    def give(self, values: Sequence[Binding]) -> None:
        """Assign the values."""
        copy_all(self.d, self.f, list(zip(self.locations, values)))
        self.f.assign(self.names, [self.d.operand(self.f, x) for x in values[: len(self.names)]])

    def results(self) -> list[str]:
        """Return the variables."""
        while self._open:
            self._open.pop().__exit__(None, None, None)
        return self.names
