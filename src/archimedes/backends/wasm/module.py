"""A module: functions, tables, memory, and the functions that are called from outside.

Arguments and results of an exported function lie at fixed addresses, so that a call copies nothing.
Its batch takes the address of a table with three numbers for each argument and result: where the
array of the first instance is, how many bytes it is to the next instance (0: all share one), and
to the next element.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from archimedes.backends.leaves import leaf_values
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Store
from archimedes.backends.protocol import ArrayType, Program
from archimedes.backends.wasm import binary
from archimedes.backends.wasm.batches import Lanes, Leaf, write_batch
from archimedes.backends.wasm.binary import CONST, END, OPERATIONS, TYPES, signed, unsigned, vector
from archimedes.backends.wasm.functions import (
    PURE,
    READS,
    Access,
    Block,
    Code,
    Frame,
    Function,
    Instruction,
    Segment,
)
from archimedes.backends.wasm.lane_dialect import WIDTH, WasmLanes
from archimedes.backends.wasm.lane_operations import SHAPES
from archimedes.backends.wasm.linear_solve import write_solver
from archimedes.backends.wasm.operations import KINDS
from archimedes.backends.wasm.programs import with_calls
from archimedes.backends.wasm.stack_code import function_body
from archimedes.backends.wasm.wasm_dialect import BYTES, Array, Wasm
from archimedes.errors import CodegenError
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.dtypes import B8, DTYPES
from archimedes.graph.program import Graph

#: Operations per function, more or less.
PART = 4000
#: Where memory in use begins: no address is 0.
START = 16
#: The most bytes of memory: addresses and offsets stay positive.
MOST = 2**31 - binary.PAGE


@dataclass(frozen=True)
class Export:
    """An exported function: its name, its inputs and its outputs; ``batch`` names that of many."""

    name: str
    batch: str
    inputs: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...]


def _in_lanes(leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Return arrays for both SIMD lanes of what the leaves hold."""
    return tuple(Leaf(x.array, Segment(WIDTH * x.array.size, 16)) for x in leaves)


class Module:
    """A module being written."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.exports: list[tuple[str, Function]] = []
        #: Types of values, and code and numbers of constants, by name.
        self.kinds: dict[str, str] = {}
        self.constants: dict[str, bytes | Code] = {}
        self.numbers: dict[str, Any] = {}
        self.pages = 0
        self._constants: dict[tuple[str, bytes], str] = {}
        self._tables: dict[bytes, Segment] = {}
        self._interface: list[Segment] = []
        self._helpers: dict[str, Function] = {}

    # ---- what functions share --------------------------------------------------------------

    def constant(self, kind: str, value: Any) -> str:
        """Return a constant of a type."""
        if kind in ("i32", "i64"):
            value = int(value)
            code = signed(value)
        else:
            code = struct.pack("<d" if kind == "f64" else "<f", value)
        name = self._constants.get((kind, code))
        if name is None:
            name = self._constants[kind, code] = f"v{len(self.kinds)}"
            self.kinds[name] = kind
            self.constants[name] = CONST[kind] + code
            self.numbers[name] = value
        return name

    def lanes_constant(self, value: Any, dtype: int) -> str:
        """Return a constant that is the same in both SIMD lanes."""
        one = (
            self.constant("i64", -int(value)) if dtype == B8 else self.constant(KINDS[dtype], value)
        )
        # The bits of a bool are those of an integer, but not its number.
        key = (f"v128 {dtype}", one.encode())
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f"v{len(self.kinds)}"
            self.kinds[name] = "v128"
            code = self.constants[one]
            assert isinstance(code, bytes)
            self.constants[name] = code + OPERATIONS[f"{SHAPES[dtype]}.splat"][0]
            self.numbers[name] = value
        return name

    def table(self, values: Sequence[Any] | np.ndarray, dtype: int) -> Segment:
        """Return a constant array, shared with an equal one."""
        data = np.ascontiguousarray(values, DTYPES[dtype].newbyteorder("<")).tobytes()
        if data not in self._tables:
            self._tables[data] = Segment(len(data), BYTES[dtype], data)
        segment = self._tables[data]
        segment.align = max(segment.align, BYTES[dtype])
        return segment

    def solver(self, dtype: int) -> Function:
        """Return the function that solves linear equations in a dtype."""
        return self.helper(f"solve {dtype}", partial(write_solver, dtype))

    def helper(self, name: str, write: Callable[[Function], None]) -> Function:
        """Return a small function that is written once."""
        if name not in self._helpers:
            f = self._helpers[name] = Function(self, Frame())
            write(f)
            self.finish(f)
        return self._helpers[name]

    def finish(self, f: Function) -> set[str]:
        """Add a function that is written; return what it reads."""
        effect, used = _survey(f.body)
        f.effect = effect
        self.functions.append(f)
        return used

    # ---- exported functions ------------------------------------------------------------------

    def add(
        self,
        name: str,
        program: Program,
        values: Sequence[Any] = (),
        batch: str | bool = "scalar",
    ) -> Export:
        """Add a program as the functions ``name`` and ``name_batch``, or others if they are taken.

        ``values`` are what its inputs are at first (nothing: zeros). ``batch``: "scalar", or "simd"
        to compute instances in pairs, or False for none.
        """
        graph = remove_dead_code(with_calls(program.graph)).graph
        inputs = self._leaves(program.inputs, values)
        outputs = self._leaves(program.outputs, ())
        f = self._write(Wasm(self), graph, inputs, outputs)
        taken = {"memory", *(x for x, _ in self.exports)}
        if not name.isidentifier() or {name, f"{name}_batch"} & taken:
            name = f"function_{len(taken)}"
        self.exports.append((name, f))
        export = Export(name, f"{name}_batch" if batch else "", inputs, outputs)
        if batch:
            lanes = None
            if batch == "simd":
                given, made = (_in_lanes(side) for side in (inputs, outputs))
                wide = self._write(WasmLanes(self), graph, given, made)
                lanes = Lanes(wide, given, made)
            many = write_batch(self, f, inputs, outputs, lanes)
            self.exports.append((export.batch, many))
        return export

    def _leaves(self, arrays: Sequence[ArrayType], values: Sequence[Any]) -> tuple[Leaf, ...]:
        leaves = []
        for k, array in enumerate(arrays):
            data = b""
            if values:
                value = np.asarray(values[k], DTYPES[array.code].newbyteorder("<"))
                data = value.tobytes() if value.any() or np.signbit(value).any() else b""
            segment = Segment(array.size * BYTES[array.code], 8, data)
            self._interface.append(segment)
            leaves.append(Leaf(array, segment))
        return tuple(leaves)

    def _write(
        self, d: Wasm, graph: Graph, inputs: Sequence[Leaf], outputs: Sequence[Leaf]
    ) -> Function:
        """Write a graph as a function of arrays at fixed addresses."""
        low, f = Lowering(d, [graph], PART), Function(self, Frame())
        uniform = d.lanes == 1
        bindings: list[Binding] = []
        counts = leaf_values(graph.input_dtypes, [leaf.array.size for leaf in inputs])
        for leaf, count in zip(inputs, counts):
            array = Array(leaf.segment, fixed=True, uniform=uniform)
            start = Location(array, 0, leaf.array.code)
            bindings += [Binding(location=start.at(k)) for k in range(count)]
        stores: list[Store] = []
        counts = leaf_values(graph.output_dtypes, [leaf.array.size for leaf in outputs])
        for leaf, count in zip(outputs, counts):
            start = Location(Array(leaf.segment, uniform=uniform), 0, leaf.array.code)
            stores += [(len(stores) + k, start.at(k)) for k in range(count)]
        low.lower(f, graph, bindings, stores=stores)
        self.finish(f)
        return f

    # ---- the binary --------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Place everything in memory and return the module."""
        end = self._place()
        self.pages = max(1, -(-end // binary.PAGE))
        if end > MOST:
            raise CodegenError(
                f"codegen: the arrays of the function take {end:,} bytes; a WebAssembly module has "
                f"room for {MOST:,}: use shorter arrays, or loops that keep less"
            )
        types: dict[bytes, int] = {}
        declared = []
        for number, f in enumerate(self.functions):
            f.number = number
            kinds = [self.kinds[x] for x in f.parameters], f.results
            text = b"\x60" + b"".join(vector([TYPES[x] for x in side]) for side in kinds)
            declared.append(unsigned(types.setdefault(text, len(types))))
        exports = [binary.name("memory") + b"\x02\0"]
        exports += [binary.name(name) + b"\0" + unsigned(f.number) for name, f in self.exports]
        return b"".join(
            [
                binary.HEADER,
                binary.section(binary.TYPE, vector(list(types))),
                binary.section(binary.FUNCTION, vector(declared)),
                binary.section(binary.MEMORY, vector([b"\0" + unsigned(self.pages)])),
                binary.section(binary.EXPORT, vector(exports)),
                binary.section(binary.CODE, vector([function_body(f) for f in self.functions])),
                binary.section(binary.DATA, self._data()),
            ]
        )

    def _place(self) -> int:
        """Give everything its address; return the end."""
        tables = Frame()
        tables.segments = [*self._tables.values(), *self._interface]
        start = tables.place(START)
        # A frame lies behind those of all callers, so that callers come first.
        sorter = TopologicalSorter[Frame]()
        for f in self.functions:
            sorter.add(f.frame)
            for callee in f.frame.callees:
                sorter.add(callee, f.frame)
        starts: dict[Frame, int] = {}
        end = start
        for frame in sorter.static_order():
            after = frame.place(-(-starts.get(frame, start) // 16) * 16)
            end = max(end, after)
            for callee in frame.callees:
                starts[callee] = max(starts.get(callee, start), after)
        return end

    def _data(self) -> bytes:
        """Return the tables and first values, neighbours together."""
        pieces: list[tuple[int, bytes]] = []
        segments = [s for s in (*self._tables.values(), *self._interface) if s.data]
        for segment in sorted(segments, key=lambda s: s.address):
            if pieces and segment.address - pieces[-1][0] - len(pieces[-1][1]) <= 8:
                at, before = pieces[-1]
                pieces[-1] = at, before.ljust(segment.address - at, b"\0") + segment.data
            else:
                pieces.append((segment.address, segment.data))
        items = [
            b"\0" + CONST["i32"] + signed(at) + END + unsigned(len(data)) + data
            for at, data in pieces
        ]
        return vector(items) if items else b""


def _survey(body: list[Any]) -> tuple[int, set[str]]:
    """Return what a body does to memory, and all that it reads."""
    effect, used = PURE, set[str]()
    for x in body:
        if isinstance(x, Block):
            used.add(x.test)
            for inner, names in (_survey(x.body), _survey(x.other)):
                effect, used = max(effect, inner), used | names
        elif isinstance(x, Instruction):
            effect = max(effect, x.effect)
            if isinstance(x.code, Access) and x.code.segment is None:
                effect = max(effect, READS)
            used.update(x.args)
        else:
            used.update(getattr(x, "args", ()))
            used.add(getattr(x, "test", ""))
    return effect, used


def write_module(
    functions: Mapping[str, Program],
    values: Mapping[str, Sequence[Any]] | None = None,
    batch: str | bool = "scalar",
) -> tuple[bytes, Module, dict[str, Export]]:
    """Write programs as one module: its bytes, and what it exports by name."""
    module = Module()
    exports = {
        name: module.add(name, program, (values or {}).get(name, ()), batch)
        for name, program in functions.items()
    }
    return module.encode(), module, exports
