"""LU factorization of sparse matrices of dense blocks, as native loops over tables."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.memory import Spelling
from archimedes.backends.llvm.lowering.prologue import add_guarded
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import data_pointer

#: Rows and columns of a block.
SIZE = 8


class BlockWriter:
    """Writes arithmetic on the columns of blocks, in vectors of the CPU's width.

    ``item``: what blocks consist of, double or float.
    """

    def __init__(self, f: Function, item: str, width: int) -> None:
        self.f, self.item, self.width = f, item, width
        self.kind = f"<{width} x {item}>"
        self.parts = range(0, SIZE, width)
        self.align = 8 if item == "double" else 4
        self.bytes = self.align * SIZE * SIZE

    def block(self, number: str) -> str:
        """Return the address of a block."""
        kind = f"[{SIZE * SIZE} x {self.item}]"
        return self.f.item(kind, "%blocks", number)

    def at(self, base: str, item: int) -> str:
        """Return the address of a number."""
        return self.f.item(self.item, base, item) if item else base

    def load(self, base: str, item: int) -> str:
        """Load a vector."""
        return self.f.value(f"load {self.kind}, ptr {self.at(base, item)}, align {self.align}")

    def store(self, value: str, base: str, item: int) -> None:
        """Store a vector."""
        self.f.line(f"store {self.kind} {value}, ptr {self.at(base, item)}, align {self.align}")

    def one(self, address: str) -> str:
        """Load a number."""
        return self.f.value(f"load {self.item}, ptr {address}, align {self.align}")

    def spread(self, base: str, item: int) -> str:
        """Load a number into all lanes."""
        return self.spread_value(self.one(self.at(base, item)))

    def spread_value(self, one: str) -> str:
        """Copy a number to all lanes."""
        return self.f.splat(one, self.item, self.width)

    def multiply_add(self, op: str, total: str | None, a: str, b: str) -> str:
        """Return total plus or minus a times b, each rounded; without a total the product."""
        product = self.f.value(f"fmul {self.kind} {a}, {b}")
        return self.f.value(f"{op} {self.kind} {total}, {product}") if total else product


def block_writer(f: Function, item: str) -> BlockWriter:
    """Return a writer of arithmetic on blocks of double or float."""
    lanes = f.module.target.lanes
    return BlockWriter(f, item, min(SIZE, lanes if item == "double" else 2 * lanes))


def _function(
    module: Module, name: str, parameters: str, item: str = "double"
) -> tuple[Function, BlockWriter]:
    f = Function(module, f"define internal void @{name}({parameters}) noinline")
    return f, block_writer(f, item)


def _products(
    w: BlockWriter, op: str, totals: Sequence[str | None], left: str, right: str, part: int
) -> list[str]:
    """Return the columns of totals plus or minus ``left`` times ``right``, of some rows."""
    for k in range(SIZE):
        column = w.load(left, SIZE * k + part)
        totals = [
            w.multiply_add(op, total, column, w.spread(right, SIZE * j + k))
            for j, total in enumerate(totals)
        ]
    return [total for total in totals if total is not None]


def add_update(module: Module, item: str) -> None:
    """Write ``to -= left right``, for some left and right blocks.

    The next ones are ``step`` blocks further, and ``step`` is then less by one.
    """
    counts = "i64 %to, i64 %left, i64 %right, i64 %many, i64 %step"
    f, w = _function(module, "update", f"ptr %blocks, {counts}", item)
    to, *first = (w.block(number) for number in ("%to", "%left", "%right"))
    moved = [*(("ptr", base) for base in first), ("i64", f.mul("%step", w.bytes))]
    columns = [SIZE * j for j in range(SIZE)]
    for part in w.parts:
        begun = [(w.kind, w.load(to, j + part)) for j in columns]
        with f.loop(0, "%many", [*begun, *moved]) as loop:
            *totals, left, right, step = loop.carried
            loop.next = [
                *_products(w, "fsub", totals, left, right, part),
                f.offset(left, step),
                f.offset(right, step),
                f.sub(step, w.bytes),
            ]
        for j, total in zip(columns, loop.carried):
            w.store(total, to, j + part)
    f.finish()


def add_multiply(module: Module, item: str) -> None:
    """Write ``to = to right``."""
    f, w = _function(module, "multiply", "ptr %blocks, i64 %to, i64 %right", item)
    to, right = w.block("%to"), w.block("%right")
    for part in w.parts:
        totals = _products(w, "fadd", [None] * SIZE, to, right, part)
        for j, total in enumerate(totals):
            w.store(total, to, SIZE * j + part)
    f.finish()


def vector_product(w: BlockWriter, item: str, block: str, x: list[str]) -> list[str]:
    """Return ``block x``, of doubles, in parts; ``x``: each number in all lanes."""
    f = w.f

    def load(at: int) -> str:
        if item == "double":
            return w.load(block, at)
        location = f.item("float", block, at)
        one = f.value(f"load <{w.width} x float>, ptr {location}, align 4")
        return f.value(f"fpext <{w.width} x float> {one} to {w.kind}")

    totals: list[str] = []
    for part in w.parts:
        total = None
        for k in range(SIZE):
            total = w.multiply_add("fadd", total, load(SIZE * k + part), x[k])
        assert total is not None
        totals.append(total)
    return totals


def _element(f: Function, row: str, column: str) -> str:
    """Return the address of an element of the working rows (SIZE, 2 SIZE)."""
    return f.item("double", "%work", f.add(f.mul(row, 2 * SIZE), column))


def _load(f: Function, row: str, column: str) -> str:
    return f.value(f"load double, ptr {_element(f, row, column)}, align 8")


def add_inverse(module: Module, item: str) -> None:
    """Write the inversion of a block in place, by Gauss-Jordan elimination with pivots."""
    f, w = _function(module, "invert", "ptr %blocks, i64 %number, ptr %work")
    its = block_writer(f, item)
    block = its.block("%number")
    f.module.declare("@llvm.fabs.f64", "double", "double")
    with f.loop(0, SIZE) as i, f.loop(0, SIZE) as j:
        at = f.add(f.mul(j.counter, SIZE), i.counter)
        value = its.one(f.item(item, block, at))
        if item != "double":
            value = f.value(f"fpext {item} {value} to double")
        f.line(f"store double {value}, ptr {_element(f, i.counter, j.counter)}, align 8")
        same = f.value(f"icmp eq i64 {i.counter}, {j.counter}")
        one = f.value(f"select i1 {same}, double 1.0, double 0.0")
        right = f.add(j.counter, SIZE)
        f.line(f"store double {one}, ptr {_element(f, i.counter, right)}, align 8")
    with f.loop(0, SIZE) as column:
        _eliminate(f, w, column.counter)
    with f.loop(0, SIZE) as i, f.loop(0, SIZE) as j:
        right = f.add(j.counter, SIZE)
        value = _load(f, i.counter, right)
        at = f.add(f.mul(j.counter, SIZE), i.counter)
        to = f.item(item, block, at)
        if item != "double":
            value = f.value(f"fptrunc double {value} to {item}")
        f.line(f"store {item} {value}, ptr {to}, align {its.align}")
    f.finish()


def _eliminate(f: Function, w: BlockWriter, c: str) -> None:
    """Bring column c of the working rows to that of the identity."""
    wide = range(0, 2 * SIZE, w.width)
    below = f.add(c, 1)

    def size(row: str) -> str:
        return f.value(f"call double @llvm.fabs.f64(double {_load(f, row, c)})")

    with f.loop(below, SIZE, [("i64", c), ("double", size(c))]) as search:
        best, most = search.carried
        mine = size(search.counter)
        larger = f.value(f"fcmp ogt double {mine}, {most}")
        search.next = [
            f.value(f"select i1 {larger}, i64 {search.counter}, i64 {best}"),
            f.value(f"select i1 {larger}, double {mine}, double {most}"),
        ]
    first, pivot = (_element(f, row, "0") for row in (c, search.carried[0]))
    here, there = ([w.load(base, k) for k in wide] for base in (first, pivot))
    for k, a, b in zip(wide, here, there):
        w.store(a, pivot, k)
        w.store(b, first, k)
    head = _load(f, c, c)
    scale = w.spread_value(f.value(f"fdiv double 1.0, {head}"))
    scaled = [f.value(f"fmul {w.kind} {w.load(first, k)}, {scale}") for k in wide]
    for k, value in zip(wide, scaled):
        w.store(value, first, k)
    with (
        f.loop(0, SIZE) as row,
        f.when(f.value(f"icmp eq i64 {row.counter}, {c}"), unless=True),
    ):
        base = _element(f, row.counter, "0")
        factor = w.spread_value(_load(f, row.counter, c))
        for k, value in zip(wide, scaled):
            w.store(w.multiply_add("fsub", w.load(base, k), factor, value), base, k)


_TABLES = "ptr %blocks, ptr %starts, ptr %later"
_COUNTS = "i64 %count, i64 %pairs"
FACTORISE = f"{_TABLES}, ptr %panels, ptr %targets, {_COUNTS}, i64 %all"
SOLVE = f"{_TABLES}, ptr %x, {_COUNTS}"


def _span(f: Function, table: str, k: str) -> tuple[str, str]:
    return f.load_item("i64", table, k), f.load_item("i64", table, f.add(k, 1))


def _pair(f: Function, number: str) -> tuple[str, str]:
    """Return the numbers of the blocks of a pair: below the diagonal, and right of it."""
    lower = f.add(number, "%count")
    return lower, f.add(lower, "%pairs")


class _Panel:
    """Writes what is done with the diagonal blocks ``first`` to ``end`` of a panel.

    The blocks that one of them touches follow each other: those of the panel, then those behind.
    """

    def __init__(self, f: Function, first: str, end: str) -> None:
        self.f, self.first, self.end = f, first, end
        self.begin, behind = _span(f, "%starts", first)
        self.step = f.sub(f.sub(behind, self.begin), 1)

    def update(self, to: str, left: str, right: str, many: str) -> None:
        """Write ``to -= left right`` for the first ones of the panel."""
        numbers = f"i64 {to}, i64 {left}, i64 {right}, i64 {many}, i64 {self.step}"
        self.f.line(f"call void @update(ptr %blocks, {numbers})")

    def column(self, k: str) -> None:
        """Write the elimination of one diagonal block."""
        f = self.f
        begin, end = _span(f, "%starts", k)
        before = f.sub(k, self.first)
        with f.when(f.value(f"icmp sgt i64 {before}, 0")):
            behind = f.add(self.begin, before)
            left, right = _pair(f, f.sub(behind, 1))
            self.update(k, left, right, before)
            shift = f.sub(behind, begin)
            with f.loop(begin, end) as loop:
                lower, upper = _pair(f, loop.counter)
                below, beside = _pair(f, f.add(loop.counter, shift))
                self.update(lower, below, right, before)
                self.update(upper, left, beside, before)
        f.line(f"call void @invert(ptr %blocks, i64 {k}, ptr %work)")
        with f.loop(begin, end) as loop:
            lower = f.add(loop.counter, "%count")
            f.line(f"call void @multiply(ptr %blocks, i64 {lower}, i64 {k})")

    def rest(self, target: str) -> str:
        """Write the update of the blocks behind the panel; return where the next targets are."""
        f = self.f
        many = f.sub(self.end, self.first)
        last = f.sub(self.end, 1)
        begin, end = _span(f, "%starts", last)
        shift = f.sub(f.add(self.begin, many), 1)
        shift = f.sub(shift, begin)
        with f.loop(begin, end, [("i64", target)]) as one:
            left, right = _pair(f, f.add(one.counter, shift))
            self.update(f.load_item("i64", "%later", one.counter), left, right, many)
            following = f.add(one.counter, 1)
            with f.loop(following, end, [("i64", one.carried[0])]) as other:
                lower, upper = _pair(f, f.load_item("i64", "%targets", other.carried[0]))
                below, beside = _pair(f, f.add(other.counter, shift))
                self.update(upper, left, beside, many)
                self.update(lower, below, right, many)
                other.next = [f.add(other.carried[0], 1)]
            one.next = other.carried
        return one.carried[0]


def _add_factorise(module: Module) -> None:
    f = Function(module, f"define internal i32 @factorise({FACTORISE}) noinline")
    f.line(f"%work = alloca [{2 * SIZE * SIZE} x double], align 64")
    with f.loop(0, "%all", [("i64", "0")]) as loop:
        panel = _Panel(f, *_span(f, "%panels", loop.counter))
        with f.loop(panel.first, panel.end) as pivot:
            panel.column(pivot.counter)
        loop.next = [panel.rest(loop.carried[0])]
    f.finish("ret i32 0")


def _add_solve(module: Module, item: str) -> None:
    f = Function(module, f"define internal i32 @solve({SOLVE}) noinline")
    w, block = block_writer(f, "double"), block_writer(f, item).block

    def part(number: str) -> str:
        return f.value(f"getelementptr [{SIZE} x double], ptr %x, i64 {number}")

    def spread(base: str) -> list[str]:
        return [w.spread(base, k) for k in range(SIZE)]

    def subtract(totals: list[str], terms: list[str]) -> list[str]:
        return [f.value(f"fsub {w.kind} {a}, {b}") for a, b in zip(totals, terms)]

    with f.loop(0, "%count") as loop:
        mine = spread(part(loop.counter))
        with f.loop(*_span(f, "%starts", loop.counter)) as panel:
            terms = vector_product(w, item, block(_pair(f, panel.counter)[0]), mine)
            to = part(f.load_item("i64", "%later", panel.counter))
            for at, total in zip(w.parts, subtract([w.load(to, at) for at in w.parts], terms)):
                w.store(total, to, at)
    last = f.sub("%count", 1)
    with f.loop(0, "%count") as loop:
        k = f.sub(last, loop.counter)
        to = part(k)
        begun = [(w.kind, w.load(to, at)) for at in w.parts]
        with f.loop(*_span(f, "%starts", k), begun) as panel:
            other = spread(part(f.load_item("i64", "%later", panel.counter)))
            terms = vector_product(w, item, block(_pair(f, panel.counter)[1]), other)
            panel.next = subtract(panel.carried, terms)
        for at, total in zip(w.parts, panel.carried):
            w.store(total, to, at)
        for at, total in zip(w.parts, vector_product(w, item, block(k), spread(to))):
            w.store(total, to, at)
    f.finish("ret i32 0")


def function_text(name: str, item: str, target: Target) -> str:
    """Write one of the functions, for blocks of double or float."""
    module = Module(Spelling(1), target)
    if name == "factorise":
        add_update(module, item)
        add_multiply(module, item)
        add_inverse(module, item)
        _add_factorise(module)
        add_guarded(module, "arc_factorise", FACTORISE, name, flushes=item == "float")
    else:
        _add_solve(module, item)
        add_guarded(module, "arc_solve", SOLVE, name)
    return module.text()


@lru_cache(maxsize=4)
def _native(name: str, item: str) -> Callable[..., int]:
    target = host_target(None)
    code = NativeCode(target.compile(function_text(name, item, target)), f"arc_{name}")
    pointers, counts = (5, 3) if name == "factorise" else (4, 2)
    function: Callable[..., int] = code.function(
        *[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * counts
    )
    return function


def _call(name: str, blocks: np.ndarray, system: Any, arrays: tuple[Any, ...], *more: int) -> None:
    function = _native(name, "double" if blocks.dtype == np.float64 else "float")
    tables = (blocks, system.starts, system.later, *arrays)
    function(*[data_pointer(array) for array in tables], system.count, system.pairs, *more)


def factorise(system: Any, blocks: np.ndarray) -> None:
    """Factorise ``blocks`` of a ``SparseSystem`` in place, in their dtype."""
    panels = system.panels
    _call("factorise", blocks, system, (panels, system.targets), len(panels) - 1)


def solve(system: Any, blocks: np.ndarray, x: np.ndarray) -> None:
    """Solve for the right side ``x``, in place; ``blocks`` may be rounded to float32."""
    _call("solve", blocks, system, (x,))
