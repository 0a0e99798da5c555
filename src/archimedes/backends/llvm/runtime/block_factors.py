"""Factorisations of sparse matrices of dense blocks, as native loops over tables.

``simulate/sparse/block_factors.py`` says what is computed, in which order. Nothing here depends on
a matrix: one function factorises, one solves, for all patterns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.guards import add_guarded
from archimedes.backends.llvm.lowering.spelling import Spelling
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.backends.llvm.runtime.pointers import data_pointer

__all__ = ["factorise", "solve"]

#: Rows and columns of a block.
SIZE = 8
_BYTES = 8 * SIZE * SIZE
_TABLES = "ptr %blocks, ptr %starts, ptr %later, ptr %lower, ptr %upper"
FACTORISE = f"{_TABLES}, ptr %products, ptr %begins, i64 %count"
SOLVE = f"{_TABLES}, ptr %x, i64 %count"


class _Writer:
    """Writes arithmetic on the columns of blocks, in vectors of the CPU's width."""

    def __init__(self, f: Function, width: int) -> None:
        self.f, self.width = f, width
        self.kind = f"<{width} x double>"
        self.parts = range(0, SIZE, width)

    def at(self, base: str, item: int) -> str:
        """Return the address of a number."""
        return self.f.value(f"getelementptr double, ptr {base}, i64 {item}") if item else base

    def load(self, base: str, item: int) -> str:
        """Load a vector."""
        return self.f.value(f"load {self.kind}, ptr {self.at(base, item)}, align 8")

    def load_rounded(self, base: str, item: int) -> str:
        """Load a vector of float32, as float64."""
        at = f"getelementptr float, ptr {base}, i64 {item}"
        place = self.f.value(at) if item else base
        one = self.f.value(f"load <{self.width} x float>, ptr {place}, align 4")
        return self.f.value(f"fpext <{self.width} x float> {one} to {self.kind}")

    def store(self, value: str, base: str, item: int) -> None:
        """Store a vector."""
        self.f.line(f"store {self.kind} {value}, ptr {self.at(base, item)}, align 8")

    def spread(self, base: str, item: int) -> str:
        """Load a number into all lanes."""
        one = self.f.value(f"load double, ptr {self.at(base, item)}, align 8")
        return self.spread_value(one)

    def spread_value(self, one: str) -> str:
        """Copy a number to all lanes."""
        first = self.f.value(f"insertelement {self.kind} poison, double {one}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.f.value(f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros}")

    def combined(self, op: str, total: str | None, a: str, b: str) -> str:
        """Return total plus or minus a times b, each rounded; without a total the product."""
        product = self.f.value(f"fmul {self.kind} {a}, {b}")
        return self.f.value(f"{op} {self.kind} {total}, {product}") if total else product


def _function(module: Module, name: str, parameters: str) -> tuple[Function, _Writer]:
    f = Function(module, f"define internal void @{name}({parameters})")
    return f, _Writer(f, min(SIZE, module.target.lanes))


def _add_product(module: Module, name: str, op: str | None) -> None:
    """Write ``to (op)= left times right``, with ``op`` fadd or fsub; None: ``to = left right``."""
    f, w = _function(module, name, "ptr %to, ptr %left, ptr %right")
    for part in w.parts:
        columns = [w.load("%left", SIZE * k + part) for k in range(SIZE)]
        with f.loop(0, SIZE) as loop:
            offset = f.value(f"mul i64 {loop.counter}, {SIZE}")
            to = f.value(f"getelementptr double, ptr %to, i64 {offset}")
            right = f.value(f"getelementptr double, ptr %right, i64 {offset}")
            total = None if op is None else w.load(to, part)
            for k, column in enumerate(columns):
                total = w.combined(op or "fadd", total, column, w.spread(right, k))
            assert total is not None
            w.store(total, to, part)
    f.finish()


def _add_vector_product(module: Module, name: str, op: str | None, rounded: bool) -> None:
    """Write ``to (op)= block times x`` for vectors of a block's length."""
    f, w = _function(module, name, "ptr %to, ptr %block, ptr %x")
    load = w.load_rounded if rounded else w.load
    totals = [None if op is None else w.load("%to", part) for part in w.parts]
    spread = [w.spread("%x", k) for k in range(SIZE)]
    found: list[str] = []
    for part, start in zip(w.parts, totals):
        total = start
        for k in range(SIZE):
            total = w.combined(op or "fadd", total, load("%block", SIZE * k + part), spread[k])
        assert total is not None
        found.append(total)
    # All is read before anything is written: x may be ``to``.
    for part, total in zip(w.parts, found):
        w.store(total, "%to", part)
    f.finish()


def _element(f: Function, base: str, row: str, column: str) -> str:
    """Return the address of an element of the working rows (SIZE, 2 SIZE)."""
    start = f.value(f"mul i64 {row}, {2 * SIZE}")
    return f.value(f"getelementptr double, ptr {base}, i64 {f.value(f'add i64 {start}, {column}')}")


def _load(f: Function, address: str) -> str:
    return f.value(f"load double, ptr {address}, align 8")


def _add_inverse(module: Module) -> None:
    """Write the inverse of a block, in its place, by Gauss-Jordan elimination with pivots."""
    f, w = _function(module, "invert", "ptr %block, ptr %work")
    f.module.declare("@llvm.fabs.f64", "double", "double")
    with f.loop(0, SIZE) as i, f.loop(0, SIZE) as j:
        at = f.value(f"add i64 {f.value(f'mul i64 {j.counter}, {SIZE}')}, {i.counter}")
        source = f.value(f"getelementptr double, ptr %block, i64 {at}")
        f.line(
            f"store double {_load(f, source)}, "
            f"ptr {_element(f, '%work', i.counter, j.counter)}, align 8"
        )
        same = f.value(f"icmp eq i64 {i.counter}, {j.counter}")
        one = f.value(f"select i1 {same}, double 1.0, double 0.0")
        right = f.value(f"add i64 {j.counter}, {SIZE}")
        f.line(f"store double {one}, ptr {_element(f, '%work', i.counter, right)}, align 8")
    with f.loop(0, SIZE) as column:
        _eliminate(f, w, column.counter)
    with f.loop(0, SIZE) as i, f.loop(0, SIZE) as j:
        right = f.value(f"add i64 {j.counter}, {SIZE}")
        found = _load(f, _element(f, "%work", i.counter, right))
        at = f.value(f"add i64 {f.value(f'mul i64 {j.counter}, {SIZE}')}, {i.counter}")
        to = f.value(f"getelementptr double, ptr %block, i64 {at}")
        f.line(f"store double {found}, ptr {to}, align 8")
    f.finish()


def _eliminate(f: Function, w: _Writer, c: str) -> None:
    """Bring column c of the working rows to that of the identity."""
    wide = range(0, 2 * SIZE, w.width)
    below = f.value(f"add i64 {c}, 1")

    def size(row: str) -> str:
        return f.value(
            f"call double @llvm.fabs.f64(double {_load(f, _element(f, '%work', row, c))})"
        )

    with f.loop(below, SIZE, [("i64", c), ("double", size(c))]) as search:
        best, most = search.carried
        mine = size(search.counter)
        larger = f.value(f"fcmp ogt double {mine}, {most}")
        search.next = [
            f.value(f"select i1 {larger}, i64 {search.counter}, i64 {best}"),
            f.value(f"select i1 {larger}, double {mine}, double {most}"),
        ]
    first, pivot = (_element(f, "%work", row, "0") for row in (c, search.carried[0]))
    here, there = ([w.load(base, k) for k in wide] for base in (first, pivot))
    for k, a, b in zip(wide, here, there):
        w.store(a, pivot, k)
        w.store(b, first, k)
    head = _load(f, _element(f, "%work", c, c))
    scale = w.spread_value(f.value(f"fdiv double 1.0, {head}"))
    scaled = [f.value(f"fmul {w.kind} {w.load(first, k)}, {scale}") for k in wide]
    for k, value in zip(wide, scaled):
        w.store(value, first, k)
    with f.loop(0, SIZE) as row:
        other, after = f.label(), f.label()
        f.fork(f.value(f"icmp eq i64 {row.counter}, {c}"), after, other)
        f.start(other)
        base = _element(f, "%work", row.counter, "0")
        factor = w.spread_value(_load(f, _element(f, "%work", row.counter, c)))
        for k, value in zip(wide, scaled):
            w.store(w.combined("fsub", w.load(base, k), factor, value), base, k)
        f.jump(after)


def _number(f: Function, table: str, index: str) -> str:
    at = f.value(f"getelementptr i64, ptr {table}, i64 {index}")
    return f.value(f"load i64, ptr {at}, align 8")


def _block(f: Function, number: str, base: str = "%blocks", size: int = _BYTES) -> str:
    offset = f.value(f"mul i64 {number}, {size}")
    return f.value(f"getelementptr i8, ptr {base}, i64 {offset}")


def _span(f: Function, table: str, k: str) -> tuple[str, str]:
    return _number(f, table, k), _number(f, table, f.value(f"add i64 {k}, 1"))


def _add_factorise(module: Module) -> None:
    f = Function(module, f"define internal i32 @factorise({FACTORISE}) noinline")
    f.line(f"%work = alloca [{2 * SIZE * SIZE} x double], align 64")
    f.line(f"%copy = alloca [{SIZE * SIZE} x double], align 64")
    f.module.declare("@llvm.memcpy.p0.p0.i64", "void", "ptr, ptr, i64, i1")
    with f.loop(0, "%count") as loop:
        k = loop.counter
        diagonal = _block(f, k)
        f.line(f"call void @invert(ptr {diagonal}, ptr %work)")
        with f.loop(*_span(f, "%starts", k)) as panel:
            block = _block(f, _number(f, "%lower", panel.counter))
            f.line(
                f"call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr {block}, i64 {_BYTES}, i1 false)"
            )
            f.line(f"call void @multiply(ptr {block}, ptr %copy, ptr {diagonal})")
        with f.loop(*_span(f, "%begins", k)) as update:
            row = _block(f, update.counter, "%products", 24)
            to, left, right = (_block(f, _number(f, row, str(j))) for j in range(3))
            f.line(f"call void @reduce(ptr {to}, ptr {left}, ptr {right})")
    f.finish("ret i32 0")


def _add_solve(module: Module, size: int) -> None:
    """Write the solution; ``size``: bytes of a block."""
    f = Function(module, f"define internal i32 @solve({SOLVE}) noinline")

    def at(number: str) -> str:
        return _block(f, number, size=size)

    def part(number: str) -> str:
        return _block(f, number, "%x", 8 * SIZE)

    with f.loop(0, "%count") as loop:
        mine = part(loop.counter)
        with f.loop(*_span(f, "%starts", loop.counter)) as panel:
            block = at(_number(f, "%lower", panel.counter))
            to = part(_number(f, "%later", panel.counter))
            f.line(f"call void @reduce_vector(ptr {to}, ptr {block}, ptr {mine})")
    last = f.value("sub i64 %count, 1")
    with f.loop(0, "%count") as loop:
        k = f.value(f"sub i64 {last}, {loop.counter}")
        mine = part(k)
        with f.loop(*_span(f, "%starts", k)) as panel:
            block = at(_number(f, "%upper", panel.counter))
            other = part(_number(f, "%later", panel.counter))
            f.line(f"call void @reduce_vector(ptr {mine}, ptr {block}, ptr {other})")
        f.line(f"call void @multiply_vector(ptr {mine}, ptr {at(k)}, ptr {mine})")
    f.finish("ret i32 0")


@lru_cache(maxsize=3)
def _native(name: str) -> Callable[..., int]:
    """Return one of the three functions."""
    target = host_target(None)
    module = Module(Spelling(1), target)
    if name == "factorise":
        _add_product(module, "multiply", None)
        _add_product(module, "reduce", "fsub")
        _add_inverse(module)
        _add_factorise(module)
        parameters, pointers = FACTORISE, 7
    else:
        rounded = name == "solve_rounded"
        _add_vector_product(module, "multiply_vector", None, rounded)
        _add_vector_product(module, "reduce_vector", "fsub", rounded)
        _add_solve(module, _BYTES // 2 if rounded else _BYTES)
        parameters, pointers = SOLVE, 6
    add_guarded(module, f"arc_{name}", parameters, name.split("_")[0])
    code = NativeCode(target.compile(module.text()), f"arc_{name}")
    kinds = [*[ctypes.c_void_p] * pointers, ctypes.c_int64]
    function: Callable[..., int] = code.function(*kinds)
    return function


def _pointers(system: Any, *arrays: np.ndarray) -> list[int]:
    tables = (system.starts, system.later, system.lower, system.upper)
    return [data_pointer(array) for array in (arrays[0], *tables, *arrays[1:])]


def factorise(system: Any, blocks: np.ndarray) -> None:
    """Factorise ``blocks`` of a ``SparseSystem`` in place."""
    _native("factorise")(*_pointers(system, blocks, *system.products), system.count)


def solve(system: Any, blocks: np.ndarray, x: np.ndarray) -> None:
    """Solve for the right side ``x``, in place; ``blocks`` may be rounded to float32."""
    name = "solve" if blocks.dtype == np.float64 else "solve_rounded"
    _native(name)(*_pointers(system, blocks, x), system.count)
