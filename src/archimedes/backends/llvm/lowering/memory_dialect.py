"""The dialect's part about memory: arrays of the frame, loads and stores, copies.

In SIMD lanes every lane may have its own index: its element is loaded or stored by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.instructions import intrinsic
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import B8, I64

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


class MemoryDialect(Dialect):
    """What the dialect says of memory."""

    run = 16
    # LLVM takes longer than linear in the length of a basic block.
    longest_block = 256
    scope = LoadingScope

    def __init__(self, module: Module) -> None:
        self.module = module

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve an array in the frame, which is laid out as it is written."""
        return self.module.frame.array(dtype, count)

    def block(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve an array in the frame that others may have had before."""
        return self.module.frame.block(dtype, count)

    def release(self, f: Function, location: Location, count: int) -> None:
        """Take back memory of the frame."""
        self.module.frame.release(location)

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
