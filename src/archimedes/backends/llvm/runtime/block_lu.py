"""LU factorization of sparse matrices of dense blocks, as native loops over tables.

Blocks are stored by columns. First come those on the diagonal, then those below it and those right
of it, in pairs. Diagonal blocks that touch the same later blocks are a panel: the blocks that one
of them touches follow each other, those of the panel first, then those behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends.llvm.runtime.array_functions import (
    Array,
    ArrayFunction,
    Descriptions,
    Value,
    Variable,
    Writer,
    array_functions,
)

#: Rows and columns of a block, and columns of the working rows of an inversion.
SIZE, WIDE = 8, 16


def _block(blocks: Array, number: Any) -> Array:
    return blocks.from_(number * SIZE**2)


def _lanes(w: Writer, blocks: Array) -> int:
    """Return how many numbers of a column go into a register."""
    return min(SIZE, w.f.module.target.lanes * (1 if blocks.kind == "double" else 2))


def _columns(block: Array, first: int, lanes: int) -> Iterator[Value]:
    """Yield ``lanes`` numbers of each column from row ``first`` on."""
    return (block.vector(SIZE * k + first, lanes) for k in range(SIZE))


def update(
    w: Writer, blocks: Array, to: Value, left: Value, right: Value, many: Value, step: Value
) -> None:
    """Write ``to -= left right``, for some left and right blocks.

    The next ones are ``step`` blocks further, and ``step`` is then less by one.
    """
    lanes, target = _lanes(w, blocks), _block(blocks, to)
    for first in range(0, SIZE, lanes):
        totals = [Variable(w, column) for column in _columns(target, first, lanes)]
        further, next_step = w.variable(0, "i64"), w.variable(step, "i64")
        with w.loop(0, many):
            a, b = (_block(blocks, further.get() + x) for x in (left, right))
            for k, column in enumerate(_columns(a, first, lanes)):
                for j, total in enumerate(totals):
                    total.set(total.get() - column * b[SIZE * j + k])
            further.add(next_step.get())
            next_step.add(-1)
        for j, total in enumerate(totals):
            target.put(SIZE * j + first, total.get())


def multiply(w: Writer, blocks: Array, to: Value, right: Value) -> None:
    """Write ``to = to right``."""
    lanes, target, other = _lanes(w, blocks), _block(blocks, to), _block(blocks, right)
    for first in range(0, SIZE, lanes):
        totals: list[Value] = []
        for k, column in enumerate(_columns(target, first, lanes)):
            products = [column * other[SIZE * j + k] for j in range(SIZE)]
            totals = [a + b for a, b in zip(totals, products)] or products
        for j, total in enumerate(totals):
            target.put(SIZE * j + first, total)


def invert(w: Writer, blocks: Array, number: Value) -> None:
    """Invert a block in place, in doubles, by Gauss-Jordan elimination with pivots."""
    block, work = _block(blocks, number), w.room("double", SIZE * WIDE)
    lanes = min(SIZE, w.f.module.target.lanes)
    parts = range(0, WIDE, lanes)
    with w.loop(0, SIZE) as i, w.loop(0, SIZE) as j:
        work[i * WIDE + j] = block[j * SIZE + i]
        work[i * WIDE + j + SIZE] = w.select(i.equals(j), 1.0, 0.0)
    with w.loop(0, SIZE) as c:
        best, most = w.variable(c, "i64"), w.variable(abs(work[c * WIDE + c]))
        with w.loop(c + 1, SIZE) as row:
            size = abs(work[row * WIDE + c])
            larger = size > most.get()
            best.set(w.select(larger, row, best.get()))
            most.set(w.select(larger, size, most.get()))
        first, pivot = (work.from_(x * WIDE) for x in (c, best.get()))
        here, there = ([x.vector(k, lanes) for k in parts] for x in (first, pivot))
        for k, a, b in zip(parts, here, there):
            pivot.put(k, a)
            first.put(k, b)
        scale = 1.0 / first[c]
        scaled = [first.vector(k, lanes) * scale for k in parts]
        for k, value in zip(parts, scaled):
            first.put(k, value)
        with w.loop(0, SIZE) as row, w.when(row.equals(c), unless=True):
            mine = work.from_(row * WIDE)
            factor = mine[c]
            for k, value in zip(parts, scaled):
                mine.put(k, mine.vector(k, lanes) - factor * value)
    with w.loop(0, SIZE) as i, w.loop(0, SIZE) as j:
        block[j * SIZE + i] = work[i * WIDE + j + SIZE]


def factorise_blocks(w: Writer, blocks: Array, *tables: Any) -> None:
    """Write the elimination of all diagonal blocks, panel by panel."""
    starts, later, panels, targets, count, pairs, number = tables
    target = w.variable(0, "i64")

    def pair(k: Any) -> tuple[Value, Value]:
        """Return the numbers of the blocks of a pair: below the diagonal, and right of it."""
        return k + count, k + count + pairs

    with w.loop(0, number) as panel:
        head, tail = panels[panel], panels[panel + 1]
        touched = starts[head]
        step = starts[head + 1] - touched - 1
        with w.loop(head, tail) as k:
            begin, end, before = starts[k], starts[k + 1], k - head
            with w.when(before > 0):
                left, right = pair(touched + before - 1)
                w.call("update", blocks, k, left, right, before, step)
                with w.loop(begin, end) as n:
                    lower, upper = pair(n)
                    below, beside = pair(n + touched + before - begin)
                    w.call("update", blocks, lower, below, right, before, step)
                    w.call("update", blocks, upper, left, beside, before, step)
            w.call("invert", blocks, k)
            with w.loop(begin, end) as n:
                w.call("multiply", blocks, n + count, k)
        many = tail - head
        begin, end = starts[tail - 1], starts[tail]
        shift = touched + many - 1 - begin
        with w.loop(begin, end) as one:
            left, right = pair(one + shift)
            w.call("update", blocks, later[one], left, right, many, step)
            with w.loop(one + 1, end) as other:
                lower, upper = pair(targets[target.get()])
                below, beside = pair(other + shift)
                w.call("update", blocks, upper, left, beside, many, step)
                w.call("update", blocks, lower, below, right, many, step)
                target.add(1)


def solve_blocks(w: Writer, blocks: Array, *tables: Any) -> None:
    """Write forward and backward substitution, in doubles."""
    starts, later, x, count, pairs = tables
    lanes = min(SIZE, w.f.module.target.lanes)
    kind, parts = f"<{lanes} x double>", range(0, SIZE, lanes)

    def spread(part: Array) -> list[Value]:
        return [w.spread(part[k], kind) for k in range(SIZE)]

    def product(number: Any, factors: list[Value]) -> Iterator[Value]:
        """Yield a block times a vector, in parts."""
        block = _block(blocks, number)
        for first in parts:
            columns = _columns(block, first, lanes)
            doubles = (c if c.kind == kind else w.convert(c, kind) for c in columns)
            total, *rest = (c * factor for c, factor in zip(doubles, factors))
            for term in rest:
                total = total + term
            yield total

    with w.loop(0, count) as k:
        mine = spread(x.from_(k * SIZE))
        with w.loop(starts[k], starts[k + 1]) as n:
            terms, to = list(product(n + count, mine)), x.from_(later[n] * SIZE)
            for at, term in zip(parts, terms):
                to.put(at, to.vector(at, lanes) - term)
    with w.down(0, count) as k:
        to = x.from_(k * SIZE)
        totals = [Variable(w, to.vector(at, lanes)) for at in parts]
        with w.loop(starts[k], starts[k + 1]) as n:
            other = spread(x.from_(later[n] * SIZE))
            for total, term in zip(totals, product(n + count + pairs, other)):
                total.set(total.get() - term)
        for at, total in zip(parts, totals):
            to.put(at, total.get())
        for at, value in zip(parts, list(product(k, spread(to)))):
            to.put(at, value)


def functions(letter: str) -> Descriptions:
    """Return the functions of blocks of float64 (F) or float32 (S)."""
    return {
        "update": (letter + "i" * 5, update),
        "multiply": (letter + "ii", multiply),
        "invert": (letter + "i", invert),
        "factorise": (letter + "IIII" + "iii", factorise_blocks),
        "solve": (letter + "IIF" + "ii", solve_blocks),
    }


@lru_cache(maxsize=2)
def _native(dtype: np.dtype) -> dict[str, ArrayFunction]:
    letter, flushing = ("F", ()) if dtype == np.float64 else ("S", ("factorise",))
    return array_functions(functions(letter), Path(__file__).parent, flushing)


def factorise(system: Any, blocks: np.ndarray) -> None:
    """Factorise ``blocks`` of a ``SparseSystem`` in place, in their dtype."""
    tables = (system.starts, system.later, system.panels, system.targets)
    counts = (system.count, system.pairs, len(system.panels) - 1)
    _native(blocks.dtype)["factorise"](blocks, *tables, *counts)


def solve(system: Any, blocks: np.ndarray, x: np.ndarray) -> None:
    """Solve for the right side ``x``, in place; ``blocks`` may be rounded to float32."""
    native = _native(blocks.dtype)["solve"]
    native(blocks, system.starts, system.later, x, system.count, system.pairs)
