"""The dialect's part about memory and functions: arrays of the frame, loads, stores, copies, calls.

In SIMD lanes every lane may have its own index: its element is loaded or stored by itself.
Functions are pieces of long ones, and bodies called from several regions. All take the same
parameters, the frame and the arrays of the call. Arguments and results lie in the frame; blocks are
passed by address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.instructions import intrinsic
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY, Pointer
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import FEW, Dialect, Reach, Results
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import B8, I64, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

#: A value in memory is loaded again rather than kept for longer than this many lines.
STALE = 64
#: Items of scalar code that are copied at once.
TOGETHER = 8


class LoadingScope(Scope):
    """A graph being lowered in a function; ``loaded`` are values read from memory, and where.

    In the unoptimized tier, all of whose values lie in memory, none is loaded again in its block.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.loaded: dict[int, tuple[int, str, str]] = {}
        self.unoptimized = not self.f.module.target.effort

    def operand(self, i: int) -> str:
        """Return a register or literal with the value of a node."""
        name = self.names.get(i)
        if name is not None:
            return name
        f = self.f
        at, block, name = self.loaded.get(i, (-STALE - 1, "", ""))
        if f.count - at <= STALE or (self.unoptimized and block == f.block):
            return name
        binding = self.binding(i)
        name = f.operand(binding)
        if binding.operand is None and binding.location is not None:
            self.loaded[i] = f.count, f.block, name
        else:
            self.names[i] = name
        return name


class FrameReach(Reach):
    """Makes what only the current function can name known to others, through the frame."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.slots: dict[Pointer, Pointer] = {}

    def location(self, location: Location) -> Location:
        """Return the location by a pointer that any function can get."""
        pointer, f = location.array, self.f
        if pointer.kind != "local":
            return location
        if pointer not in self.slots:
            offset = f.frame.bytes(8)
            self.slots[pointer] = pointer._replace(kind="slot", value=offset)
            f.line(f"store ptr {pointer.value}, ptr {f.offset('%frame', offset)}, align 8")
        return location._replace(array=self.slots[pointer])

    def binding(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a value that any function can get."""
        if binding.constant is not None:
            return binding
        location = binding.location
        if location is None:
            location = self.f.frame.array(dtype)
            self.f.store(location, self.f.operand(binding))
        return Binding(location=self.location(location))

    def shared(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a scalar kernel's value as one that all SIMD lanes share."""
        binding = self.binding(binding, dtype)
        return binding if binding.location is None else Binding(location=_share(binding.memory))

    def shared_location(self, location: Location) -> Location:
        """Return a location in the memory of a scalar kernel as one that all SIMD lanes share."""
        return _share(self.location(location))


def _share(location: Location) -> Location:
    return location._replace(array=location.array._replace(uniform=True))


class Routine(NamedTuple):
    """A function of a body: where it finds the arguments it uses, by number, and puts results."""

    name: str
    arguments: dict[int, Location]
    results: list[Location]


class MemoryDialect(Dialect):
    """What the dialect says of memory and functions."""

    run = 16
    # LLVM takes longer than linear in the length of a basic block.
    longest_block = 256
    scope = LoadingScope

    def __init__(self, module: Module) -> None:
        self.module = module
        #: The function whose pieces are called from outside, one after the other, and their names.
        self.outermost: Function | None = None
        self.steps: list[str] = []

    def constant_block(self, f: Function, table: np.ndarray, dtype: int) -> Location:
        """Return a table outside the module, or a constant of its own."""
        return self.module.lookup_table(table, dtype)

    def table(self, f: Function, values: Sequence[Any] | np.ndarray, dtype: int) -> Location:
        """Return a constant array of the module."""
        return self.module.table(values, dtype)

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant, the same in all lanes."""
        return self.module.spelling.literal(value, dtype)

    def load(self, f: Function, location: Location) -> str:
        """Load a value."""
        return f.load(location)

    def store(self, f: Function, location: Location, operand: str) -> None:
        """Store a value."""
        f.store(location, operand)

    def advance(self, f: Function, location: Location, counter: str, stride: int) -> Location:
        """Compute an address."""
        return f.advance(location, counter, stride)

    # ---- elements at computed indices ----------------------------------------------------

    def number(self, f: Function, counter: str) -> str:
        """Copy a counter to all lanes."""
        return counter if f.spelling.lanes == 1 else f.spread(counter, I64)

    def index(self, f: Function, operand: str, length: int) -> str:
        """Clamp an index to a length, in all lanes (0: as it is)."""
        if not length:
            return operand
        literal = f.spelling.literal
        low = intrinsic(f, "smax", I64, operand, literal(0, I64))
        return intrinsic(f, "smin", I64, low, literal(length - 1, I64))

    def modulo(self, f: Function, terms: Sequence[tuple[str, int]], divisor: int) -> str:
        """Return the remainder of a sum of counters times strides."""
        total = "0"
        for counter, stride in terms:
            step = counter if stride == 1 else f.mul(counter, stride)
            total = step if total == "0" else f.add(total, step)
        return f.value(f"urem i64 {total}, {divisor}")

    def gather(self, f: Function, block: Location, table: Location) -> Binding:
        """Load an index, which lanes share or have each for itself, and return its element."""
        if table.array.lane:
            return Binding(operand=self.element(f, block, 0, f.load(table)))
        index = f.value(f"load i64, ptr {f.address(table)}, align {ITEM_BYTES[I64]}")
        return Binding(location=f.advance(block, index, 1))

    def _addresses(self, f: Function, location: Location, length: int, index: str) -> list[str]:
        """Return where each lane finds its element."""
        at, item = self.index(f, index, length), ITEM_BYTES[location.dtype]
        base, lanes = f.address(location), f.spelling.lanes
        step = f.element_bytes(location)
        addresses = []
        for lane in range(lanes):
            one = at
            if lanes > 1:
                one = f.value(f"extractelement {f.spelling.types[I64]} {at}, i64 {lane}")
            offset = f.mul(one, step)
            if lane and not location.array.uniform:
                offset = f.add(offset, lane * item)
            addresses.append(f.offset(base, offset))
        return addresses

    def element(self, f: Function, location: Location, length: int, index: str) -> str:
        """Load an element at an index clamped to the block."""
        dtype = location.dtype
        item, kind = ITEM_MEMORY[dtype], f.spelling.memory[dtype]
        addresses = self._addresses(f, location, length, index)
        items = (f.value(f"load {item}, ptr {at}, align {ITEM_BYTES[dtype]}") for at in addresses)
        value = f.vector(kind, item, items) if f.spelling.lanes > 1 else next(items)
        return f.to_bool(value) if dtype == B8 else value

    def put(self, f: Function, location: Location, length: int, index: str, operand: str) -> None:
        """Store an element at an index clamped to the block."""
        dtype = location.dtype
        item, kind = ITEM_MEMORY[dtype], f.spelling.memory[dtype]
        if dtype == B8:
            operand = f.value(f"zext {f.spelling.types[B8]} {operand} to {kind}")
        for lane, at in enumerate(self._addresses(f, location, length, index)):
            one = operand
            if f.spelling.lanes > 1:
                one = f.value(f"extractelement {kind} {operand}, i64 {lane}")
            f.line(f"store {item} {one}, ptr {at}, align {ITEM_BYTES[dtype]}")

    # ---- runs of values ------------------------------------------------------------------

    def copy_run(self, f: Function, to: Location, start: Location, count: int) -> None:
        """Copy values from array to array; scalar code copies several at once."""
        done = 0
        if f.spelling.lanes == 1:
            done = count - count % TOGETHER
            kind, align = f"<{TOGETHER} x {ITEM_MEMORY[to.dtype]}>", ITEM_BYTES[to.dtype]
            with f.loop(0, done, step=TOGETHER) as loop:
                here, there = (f.address(f.advance(x, loop.counter, 1)) for x in (start, to))
                value = f.value(f"load {kind}, ptr {here}, align {align}")
                f.line(f"store {kind} {value}, ptr {there}, align {align}")
        if done < count:
            with f.loop(done, count) as loop:
                value = f.load(f.advance(start, loop.counter, 1))
                f.store(f.advance(to, loop.counter, 1), value)

    def fill_run(self, f: Function, to: Location, operand: str, count: int) -> None:
        """Store one constant many times; scalar code stores several at once."""
        done, item = 0, ITEM_MEMORY[to.dtype]
        if f.spelling.lanes == 1:
            done = count - count % TOGETHER
            kind, align = f"<{TOGETHER} x {item}>", ITEM_BYTES[to.dtype]
            # Bools are bytes in memory.
            stored = {"true": "1", "false": "0"}.get(operand, operand)
            with f.loop(0, done, step=TOGETHER) as loop:
                there = f.address(f.advance(to, loop.counter, 1))
                f.line(f"store {kind} splat ({item} {stored}), ptr {there}, align {align}")
        if done < count:
            with f.loop(done, count) as loop:
                f.store(f.advance(to, loop.counter, 1), operand)

    def interrupt(self, f: Function) -> None:
        """Begin a basic block."""
        f.jump(f.label())

    # ---- functions -----------------------------------------------------------------------

    @contextmanager
    def _function(self, stem: str) -> Iterator[Function]:
        """Write a function of the frame and the arrays of the call."""
        name = self.module.fresh(stem)
        f = Function(self.module, f"define internal void {name}({PARAMETERS})")
        f.name = name
        yield f
        f.finish()

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a function with the same parameters."""
        with self._function("part") as part:
            yield part
        # Pieces of a body inside it come behind lines, at least those of its loop.
        if f is self.outermost and not f.lines:
            self.steps.append(part.name)
        else:
            f.line(f"call void {part.name}({PARAMETERS})")

    def reach(self, f: Function) -> Reach:
        """Return what puts values and addresses into the frame."""
        return FrameReach(f)

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, arguments: Sequence[Binding]
    ) -> Routine:
        """Write a function whose arguments and results are in the frame."""
        uniform = self.form(body, arguments)
        parameters = self._parameters(f, body.input_dtypes, uniform)
        results = self._parameters(f, body.output_dtypes, [False] * len(body.outputs))
        with self._function("shared") as part, self.module.frame.separate():
            inside = [Binding(location=location) for location in parameters]
            low.lower(part, body, inside, stores=list(enumerate(results)))
        live = set(body.live())
        used = {k: parameters[k] for k, i in enumerate(body.inputs) if i in live}
        return Routine(part.name, used, results)

    def _parameters(
        self, f: Function, kinds: Sequence[int], uniform: Sequence[bool]
    ) -> list[Location]:
        """Return where a function reads or writes: scalars in the frame, blocks by address."""
        scalars = iter(arrays(self, f, [kind for kind in kinds if not length_of(kind)]))
        return [
            Location(Pointer("slot", self.module.frame.bytes(8), same), 0, item_type(kind))
            if length_of(kind)
            else next(scalars)
            for kind, same in zip(kinds, uniform)
        ]

    def form(self, body: Graph, arguments: Sequence[Binding]) -> tuple[bool, ...]:
        """Return which blocks are the same in all lanes (of one lane, it does not matter)."""
        lanes = self.module.spelling.lanes
        return tuple(
            lanes > 1 and length_of(kind) > 0 and b.memory.array.uniform
            for kind, b in zip(body.input_dtypes, arguments)
        )

    def call(
        self, f: Function, routine: Routine, arguments: Sequence[Binding], results: Results
    ) -> list[Binding]:
        """Call a function; the next call overwrites its results, so they are loaded or copied."""
        wanted, blocks = results
        slots = {k: to for k, to in routine.arguments.items() if to.array.kind == "slot"}
        copies = [(to, arguments[k]) for k, to in routine.arguments.items() if k not in slots]
        copy_all(self, f, copies)
        addresses = [(slot, arguments[k].memory) for k, slot in slots.items()]
        outputs = enumerate(routine.results)
        addresses += [(slot, blocks[k]) for k, slot in outputs if slot.array.kind == "slot"]
        for slot, location in addresses:
            at = f.offset("%frame", slot.array.value)
            f.line(f"store ptr {f.address(location)}, ptr {at}, align 8")
        f.line(f"call void {routine.name}({PARAMETERS})")
        values = {k: Binding(location=location) for k, location in blocks.items()}
        scalars = {k: routine.results[k] for k in wanted if k not in blocks}
        if len(scalars) <= FEW:
            values |= {k: Binding(operand=f.load(location)) for k, location in scalars.items()}
        else:
            own = arrays(self, f, [location.dtype for location in scalars.values()])
            sources = [Binding(location=location) for location in scalars.values()]
            copy_all(self, f, list(zip(own, sources)))
            values |= {k: Binding(location=location) for k, location in zip(scalars, own)}
        return [values[k] for k in wanted]
