"""Writing LLVM IR as text: modules, functions, blocks, loops, loads and stores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from archimedes.backends.llvm.lowering.memory import (
    ALIGNMENT,
    ITEM_BYTES,
    ITEM_MEMORY,
    Frame,
    Pointer,
    Spelling,
)
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.dialect import Loop
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.digests import table_digest
from archimedes.graph.dtypes import B8

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.nests.packing import Copies


#: What functions inside a module take and pass on: scratch memory and the arrays of the call.
PARAMETERS = "ptr %frame, ptr %in, ptr %out"


class Module:
    """The text of a module: functions, tables, declarations, and the frame they share.

    ``target`` is the CPU it is for. ``wide`` is the same module for functions that compute as
    many values at once as the CPU's registers hold. ``data`` names the tables that lie outside.
    """

    def __init__(
        self, spelling: Spelling, target: Target, data: Mapping[str, str] | None = None
    ) -> None:
        self.data = data or {}
        self.spelling = spelling
        self.target = target
        self.frame = Frame(spelling.lanes)
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self.globals: dict[tuple[int, bytes], str] = {}
        self.global_lines: list[str] = []
        self.solvers: dict[tuple[int, int, int], str] = {}
        self.serial = itertools.count(1)
        self._wider: dict[int, Module] = {}
        #: What a batch kernel copies before its first instance (``nests/packing.py``), if it may.
        self.copies: Copies | None = None

    @property
    def wide(self) -> Module:
        """The module as functions of vectors of the CPU's registers see it."""
        return self.in_lanes(self.target.lanes)

    def in_lanes(self, lanes: int) -> Module:
        """Return the module as functions of vectors see it: same text and memory, other types."""
        module = self._wider.get(lanes)
        if module is None:
            module = self._wider[lanes] = Module(Spelling(lanes), self.target)
            module.frame = Frame(lanes, self.frame)
            shared = ("functions", "declarations", "globals", "global_lines", "serial", "data")
            for name in shared:
                setattr(module, name, getattr(self, name))
        return module

    def fresh(self, stem: str) -> str:
        """Return a new global name."""
        return f"@{stem}{next(self.serial)}"

    def table(self, values: Sequence[object] | np.ndarray, dtype: int) -> Location:
        """Return the location of a constant array, shared with an equal one."""
        array = np.asarray(values)
        key = (dtype, array.tobytes())
        name = self.globals.get(key)
        if name is None:
            name = self.globals[key] = self.fresh("table")
            item, kind = self.spelling.item, ITEM_MEMORY[dtype]
            text = ", ".join(f"{kind} {item(v, dtype)}" for v in array.tolist())
            self.global_lines.append(
                f"{name} = private unnamed_addr constant [{array.size} x {kind}] [{text}], align 64"
            )
        return Location(Pointer("global", name, uniform=True), 0, dtype)

    def lookup_table(self, table: np.ndarray, dtype: int) -> Location:
        """Return the location of a table that a lookup reads: outside, or a constant of its own."""
        name = self.data.get(table_digest(table))
        if name is None:
            return self.table(table, dtype)
        line = f"@{name} = external constant [{table.size} x {ITEM_MEMORY[dtype]}], align 8"
        if line not in self.global_lines:
            self.global_lines.append(line)
        return Location(Pointer("global", f"@{name}", uniform=True), 0, dtype)

    def declare(self, name: str, result: str, parameters: str, attributes: str = "") -> None:
        """Declare an intrinsic or an imported function."""
        self.declarations[name] = f"declare {result} {name}({parameters}) {attributes}".rstrip()

    def text(self) -> str:
        """Return the whole module."""
        head = [f'target triple = "{self.target.triple}"', *self.global_lines]
        tail = ['!0 = !{!"branch_weights", i32 1, i32 1000}', "!1 = !{i32 1}"]
        return "\n".join([*head, *self.declarations.values(), *self.functions, *tail, ""])


class Function:
    """A function being written.

    ``define`` is its head without the brace. Lines go to the current block; addresses that are
    the same throughout the function are computed in the entry block, once.
    """

    def __init__(self, module: Module, define: str) -> None:
        self.module = module
        self.spelling, self.frame = module.spelling, module.frame
        self.define = define
        self.name = ""
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.block = "entry"
        #: The address of the budget of its call (``prologue.py``), once it is known.
        self.budget = ""
        self._bases: dict[Pointer, str] = {}

    # ---- text --------------------------------------------------------------------------

    def value(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def memory(self, kind: str, align: int = 8) -> str:
        """Reserve memory of the function and return its address."""
        self.count += 1
        self.entry.append(f"  %v{self.count} = alloca {kind}, align {align}")
        return f"%v{self.count}"

    def room(self, dtype: int, count: int) -> Pointer:
        """Reserve an array of the function that lanes go along, one item after the other."""
        name = self.memory(f"[{count} x {ITEM_MEMORY[dtype]}]", ALIGNMENT)
        return Pointer("local", name, uniform=True, lane=1)

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self.lines.append("  " + text)

    def label(self) -> str:
        """Return a new label."""
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block by going to a label and begin that block."""
        self.line(f"br label %{label}")
        self.start(label)

    def fork(self, condition: str, then: str, other: str, rare: bool = False) -> None:
        """End the block with a conditional branch; ``rare``: ``then`` seldom runs."""
        weights = ", !prof !0" if rare else ""
        self.line(f"br i1 {condition}, label %{then}, label %{other}{weights}")

    @contextmanager
    def when(self, condition: str, unless: bool = False) -> Iterator[None]:
        """Write code that runs only where a condition holds, or only where it does not."""
        this, after = self.label(), self.label()
        self.fork(condition, *((after, this) if unless else (this, after)))
        self.start(this)
        yield
        self.jump(after)

    def phi(self, kind: str, *sources: tuple[str, str]) -> str:
        """Append a phi of (operand, label) pairs."""
        return self.value(f"phi {kind} " + ", ".join(f"[{x}, %{b}]" for x, b in sources))

    def finish(self, result: str = "ret void") -> None:
        """Append the return and hand the function to the module."""
        self.line(result)
        # Without it LLVM spills vectors to addresses that straddle cache lines.
        aligned = ' "stackrealign"' if self.spelling.lanes > 2 else ""
        body = [f"{self.define} nounwind{aligned} {{", "entry:", *self.entry, *self.lines, "}"]
        self.module.functions.append("\n".join(body))

    @contextmanager
    def loop(
        self,
        start: int | str,
        stop: int | str,
        carried: Sequence[tuple[str, str]] = (),
        step: int = 1,
    ) -> Iterator[Loop]:
        """Write a loop ``for t in range(start, stop, step)`` with carried (type, operand) pairs.

        Set ``loop.next`` in the body; after it ``loop.carried`` holds the last values.
        """
        before = self.block
        head, body, end = self.label(), self.label(), self.label()
        self.jump(head)
        at = len(self.lines)
        counter = self.value("")
        names = [self.value("") for _ in carried]
        self.fork(self.value(f"icmp slt i64 {counter}, {stop}"), body, end)
        self.start(body)
        loop = Loop(counter, names, names)
        yield loop
        kinds = [("i64", str(start)), *carried]
        following = [self.add(counter, step), *loop.next]
        for k, ((kind, first), new) in enumerate(zip(kinds, following), at):
            name = self.lines[k].partition(" = ")[0]
            self.lines[k] = f"{name} = phi {kind} [{first}, %{before}], [{new}, %{self.block}]"
        self.line(f"br label %{head}")
        self.start(end)

    # ---- values ------------------------------------------------------------------------

    def offset(self, base: str, count: int | str) -> str:
        """Return the address that is so many bytes behind another."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {count}")

    def item(self, kind: str, base: str, index: int | str) -> str:
        """Return the address of an item of an array."""
        return self.value(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def load_item(self, kind: str, base: str, index: int | str) -> str:
        """Load an item of 8 bytes of an array."""
        return self.value(f"load {kind}, ptr {self.item(kind, base, index)}, align 8")

    def add(self, a: int | str, b: int | str) -> str:
        """Return the sum of two counters."""
        return self.value(f"add i64 {a}, {b}")

    def sub(self, a: int | str, b: int | str) -> str:
        """Return the difference of two counters."""
        return self.value(f"sub i64 {a}, {b}")

    def mul(self, a: int | str, b: int | str) -> str:
        """Return the product of two counters."""
        return self.value(f"mul i64 {a}, {b}")

    def minimum(self, a: str, b: int | str) -> str:
        """Return the smaller of two counters."""
        return self.value(f"select i1 {self.value(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def splat(self, one: str, item: str, count: int) -> str:
        """Return a vector with one value in all lanes."""
        kind, zeros = f"<{count} x {item}>", f"<{count} x i32> zeroinitializer"
        first = self.value(f"insertelement {kind} poison, {item} {one}, i64 0")
        return self.value(f"shufflevector {kind} {first}, {kind} poison, {zeros}")

    def vector(self, kind: str, item: str, values: Iterable[str]) -> str:
        """Return a vector of values, which are written one by one."""
        vector = "poison"
        for lane, one in enumerate(values):
            vector = self.value(f"insertelement {kind} {vector}, {item} {one}, i64 {lane}")
        return vector

    def shuffle(self, kind: str, a: str, b: str, order: Iterable[int]) -> str:
        """Return the items of two vectors in an order."""
        lanes = [f"i32 {k}" for k in order]
        mask = f"<{len(lanes)} x i32> <{', '.join(lanes)}>"
        return self.value(f"shufflevector {kind} {a}, {kind} {b}, {mask}")

    # ---- memory ------------------------------------------------------------------------

    def _base(self, pointer: Pointer) -> tuple[str, int]:
        """Return a pointer name and a byte offset to add to it."""
        kind, value = pointer.kind, pointer.value
        if kind == "frame":
            return "%frame", value
        if kind in ("local", "global"):
            return value, 0
        name = self._bases.get(pointer)
        if name is None:
            root = {"in": "%in", "out": "%out", "slot": "%frame"}[kind]
            offset = value if kind == "slot" else 8 * value
            self.count += 1
            name = self._bases[pointer] = f"%p{self.count}"
            self.entry.append(f"  {name}.at = getelementptr i8, ptr {root}, i64 {offset}")
            self.entry.append(f"  {name} = load ptr, ptr {name}.at, align 8")
        return name, 0

    def element_bytes(self, location: Location) -> int:
        """Return the distance in bytes between neighbours in the location's array."""
        item = ITEM_BYTES[location.dtype]
        return item if location.array.uniform else item * self.spelling.lanes

    def address(self, location: Location) -> str:
        """Return the address of a value in memory."""
        base, offset = self._base(location.array)
        offset += location.offset * self.element_bytes(location)
        return self.offset(base, offset) if offset else base

    def advance(self, location: Location, index: str, stride: int) -> Location:
        """Return the location ``index * stride`` elements further, for a computed index."""
        step = self.mul(index, stride * self.element_bytes(location))
        base, offset = self._base(location.array)
        name = self.offset(self.offset(base, offset) if offset else base, step)
        return location._replace(array=location.array._replace(kind="local", value=name))

    def load(self, location: Location) -> str:
        """Load a value; one that all lanes share is copied to each."""
        dtype, array, lanes = location.dtype, location.array, self.spelling.lanes
        item, align = ITEM_MEMORY[dtype], ITEM_BYTES[dtype]
        if array.lane and lanes > 1:
            value = self._load_lanes(location)
        elif lanes > 1 and array.uniform:
            one = self.value(f"load {item}, ptr {self.address(location)}, align {align}")
            value = self.spread(one, dtype)
        else:
            align = align if array.uniform else self.spelling.sizes[dtype]
            kind, at = self.spelling.memory[dtype], self.address(location)
            value = self.value(f"load {kind}, ptr {at}, align {align}")
        return self.to_bool(value) if dtype == B8 else value

    def store(self, location: Location, operand: str) -> None:
        """Store a value."""
        dtype, array, spelling = location.dtype, location.array, self.spelling
        if dtype == B8:
            operand = self.value(f"zext {spelling.types[B8]} {operand} to {spelling.memory[B8]}")
        if array.lane and spelling.lanes > 1:
            self._store_lanes(location, operand)
            return
        align = ITEM_BYTES[dtype] if array.uniform else spelling.sizes[dtype]
        at = self.address(location)
        self.line(f"store {spelling.memory[dtype]} {operand}, ptr {at}, align {align}")

    def _lane_addresses(self, location: Location) -> Iterator[str]:
        """Yield where each lane has its value; neighbours have one address, of the lowest."""
        lanes, step = self.spelling.lanes, location.array.lane
        starts = {1: [0], -1: [1 - lanes]}.get(step, [lane * step for lane in range(lanes)])
        return (self.address(location.at(start)) for start in starts)

    def _load_lanes(self, location: Location) -> str:
        """Load a value that each lane has at its own location."""
        dtype, step = location.dtype, location.array.lane
        kind, item, align = self.spelling.memory[dtype], ITEM_MEMORY[dtype], ITEM_BYTES[dtype]
        loaded = kind if abs(step) == 1 else item
        values = (
            self.value(f"load {loaded}, ptr {at}, align {align}")
            for at in self._lane_addresses(location)
        )
        if abs(step) != 1:
            return self.vector(kind, item, values)
        (value,) = values
        return value if step == 1 else self._reverse(kind, value)

    def _store_lanes(self, location: Location, operand: str) -> None:
        """Store a value, in its memory form, that each lane has at its own location."""
        dtype, step = location.dtype, location.array.lane
        kind, item, align = self.spelling.memory[dtype], ITEM_MEMORY[dtype], ITEM_BYTES[dtype]
        if abs(step) == 1:
            (at,) = self._lane_addresses(location)
            operand = operand if step == 1 else self._reverse(kind, operand)
            self.line(f"store {kind} {operand}, ptr {at}, align {align}")
            return
        for lane, at in enumerate(self._lane_addresses(location)):
            one = self.value(f"extractelement {kind} {operand}, i64 {lane}")
            self.line(f"store {item} {one}, ptr {at}, align {align}")

    def _reverse(self, kind: str, vector: str) -> str:
        return self.shuffle(kind, vector, "poison", reversed(range(self.spelling.lanes)))

    def to_bool(self, stored: str) -> str:
        """Turn a bool from its bytes in memory into its register form."""
        zero = "0" if self.spelling.lanes == 1 else "zeroinitializer"
        return self.value(f"icmp ne {self.spelling.memory[B8]} {stored}, {zero}")

    def spread(self, one: str, dtype: int) -> str:
        """Copy an item (in its memory form) to all lanes."""
        return self.splat(one, ITEM_MEMORY[dtype], self.spelling.lanes)

    def operand(self, binding: Binding) -> str:
        """Return a register or literal with the value of a binding."""
        if binding.operand is not None:
            return binding.operand
        if binding.constant is not None:
            return self.spelling.literal(*binding.constant)
        return self.load(binding.memory)
