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
from archimedes.backends.llvm.runtime.block_arithmetic import (
    SIZE,
    add_inverse,
    add_multiply,
    add_update,
    block_writer,
    vector_product,
)
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import data_pointer

__all__ = ["factorise", "function_text", "solve"]

_TABLES = "ptr %blocks, ptr %starts, ptr %later"
_COUNTS = "i64 %count, i64 %pairs"
FACTORISE = f"{_TABLES}, ptr %panels, ptr %targets, {_COUNTS}, i64 %all"
SOLVE = f"{_TABLES}, ptr %x, {_COUNTS}"


def _number(f: Function, table: str, index: str) -> str:
    at = f.value(f"getelementptr i64, ptr {table}, i64 {index}")
    return f.value(f"load i64, ptr {at}, align 8")


def _span(f: Function, table: str, k: str) -> tuple[str, str]:
    return _number(f, table, k), _number(f, table, f.value(f"add i64 {k}, 1"))


def _pair(f: Function, number: str) -> tuple[str, str]:
    """Return the numbers of the blocks of a pair: below the diagonal, and right of it."""
    lower = f.value(f"add i64 {number}, %count")
    return lower, f.value(f"add i64 {lower}, %pairs")


class _Panel:
    """Writes what is done with the diagonal blocks ``first`` to ``end`` of a panel.

    The blocks that one of them touches follow each other: those of the panel, then those behind.
    """

    def __init__(self, f: Function, first: str, end: str) -> None:
        self.f, self.first, self.end = f, first, end
        self.begin, behind = _span(f, "%starts", first)
        self.step = f.value(f"sub i64 {f.value(f'sub i64 {behind}, {self.begin}')}, 1")

    def update(self, to: str, left: str, right: str, many: str) -> None:
        """Write ``to -= left right`` for the first ones of the panel."""
        given = f"ptr %blocks, i64 {to}, i64 {left}, i64 {right}, i64 {many}, i64 {self.step}"
        self.f.line(f"call void @update({given})")

    def column(self, k: str) -> None:
        """Write the elimination of one of them."""
        f = self.f
        begin, end = _span(f, "%starts", k)
        before = f.value(f"sub i64 {k}, {self.first}")
        some, done = f.label(), f.label()
        f.fork(f.value(f"icmp sgt i64 {before}, 0"), some, done)
        f.start(some)
        behind = f.value(f"add i64 {self.begin}, {before}")
        left, right = _pair(f, f.value(f"sub i64 {behind}, 1"))
        self.update(k, left, right, before)
        shift = f.value(f"sub i64 {behind}, {begin}")
        with f.loop(begin, end) as loop:
            lower, upper = _pair(f, loop.counter)
            below, beside = _pair(f, f.value(f"add i64 {loop.counter}, {shift}"))
            self.update(lower, below, right, before)
            self.update(upper, left, beside, before)
        f.jump(done)
        f.line(f"call void @invert(ptr %blocks, i64 {k}, ptr %work)")
        with f.loop(begin, end) as loop:
            lower = f.value(f"add i64 {loop.counter}, %count")
            f.line(f"call void @multiply(ptr %blocks, i64 {lower}, i64 {k})")

    def rest(self, target: str) -> str:
        """Write what it does to blocks behind it; returns where the next panel's targets are."""
        f = self.f
        many = f.value(f"sub i64 {self.end}, {self.first}")
        last = f.value(f"sub i64 {self.end}, 1")
        begin, end = _span(f, "%starts", last)
        shift = f.value(f"sub i64 {f.value(f'add i64 {self.begin}, {many}')}, 1")
        shift = f.value(f"sub i64 {shift}, {begin}")
        with f.loop(begin, end, [("i64", target)]) as one:
            left, right = _pair(f, f.value(f"add i64 {one.counter}, {shift}"))
            self.update(_number(f, "%later", one.counter), left, right, many)
            following = f.value(f"add i64 {one.counter}, 1")
            with f.loop(following, end, [("i64", one.carried[0])]) as other:
                lower, upper = _pair(f, _number(f, "%targets", other.carried[0]))
                below, beside = _pair(f, f.value(f"add i64 {other.counter}, {shift}"))
                self.update(upper, left, beside, many)
                self.update(lower, below, right, many)
                other.next = [f.value(f"add i64 {other.carried[0]}, 1")]
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

    def less(totals: list[str], found: list[str]) -> list[str]:
        return [f.value(f"fsub {w.kind} {a}, {b}") for a, b in zip(totals, found)]

    with f.loop(0, "%count") as loop:
        mine = spread(part(loop.counter))
        with f.loop(*_span(f, "%starts", loop.counter)) as panel:
            found = vector_product(w, item, block(_pair(f, panel.counter)[0]), mine)
            to = part(_number(f, "%later", panel.counter))
            for at, total in zip(w.parts, less([w.load(to, at) for at in w.parts], found)):
                w.store(total, to, at)
    last = f.value("sub i64 %count, 1")
    with f.loop(0, "%count") as loop:
        k = f.value(f"sub i64 {last}, {loop.counter}")
        to = part(k)
        begun = [(w.kind, w.load(to, at)) for at in w.parts]
        with f.loop(*_span(f, "%starts", k), begun) as panel:
            other = spread(part(_number(f, "%later", panel.counter)))
            found = vector_product(w, item, block(_pair(f, panel.counter)[1]), other)
            panel.next = less(panel.carried, found)
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


def _called(
    name: str, blocks: np.ndarray, system: Any, arrays: tuple[Any, ...], *more: int
) -> None:
    function = _native(name, "double" if blocks.dtype == np.float64 else "float")
    tables = (blocks, system.starts, system.later, *arrays)
    function(*[data_pointer(array) for array in tables], system.count, system.pairs, *more)


def factorise(system: Any, blocks: np.ndarray) -> None:
    """Factorise ``blocks`` of a ``SparseSystem`` in place, in their dtype."""
    panels = system.panels
    _called("factorise", blocks, system, (panels, system.targets), len(panels) - 1)


def solve(system: Any, blocks: np.ndarray, x: np.ndarray) -> None:
    """Solve for the right side ``x``, in place; ``blocks`` may be rounded to float32."""
    _called("solve", blocks, system, (x,))
