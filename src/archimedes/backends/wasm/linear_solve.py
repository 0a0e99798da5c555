"""Linear equations: elimination with partial pivoting, in the order of the reference."""

from __future__ import annotations

from archimedes.backends.wasm.functions import Function
from archimedes.backends.wasm.operations import KINDS
from archimedes.graph.dtypes import F64


def write_solver(dtype: int, f: Function) -> None:
    """Write the function of a matrix, its size n and the number m of right-hand sides.

    The matrix has n rows of n + m numbers, right-hand sides last, which solutions replace.
    """
    start, n, m = (f.parameter("i32") for _ in range(3))
    kind, size = KINDS[dtype], 8 if dtype == F64 else 4
    item = f.constant("i32", size)

    def load(address: str) -> str:
        return f.load(f"{kind}.load", kind, (None, 0, address), False)

    def store(address: str, value: str) -> None:
        f.store(f"{kind}.store", (None, 0, address), value)

    def add(a: str, b: str) -> str:
        return f.op("i32.add", a, b)

    def subtract(row: str, source: str, factor: str, first: str, stop: str) -> None:
        """Subtract a multiple of a row from another, from a column to the end."""
        with f.count(first, stop, size) as c:
            product = f.op(f"{kind}.mul", factor, load(add(source, c)))
            to = add(row, c)
            store(to, f.op(f"{kind}.sub", load(to), product))

    # Columns and rows are counted in bytes.
    square = f.op("i32.mul", n, item)
    width = f.op("i32.mul", add(n, m), item)
    end = add(start, f.op("i32.mul", width, n))
    row, column = f.variable("i32"), f.variable("i32")
    f.assign([row, column], [start, f.constant("i32", 0)])
    with f.count(f.constant("i32", 0), n) as _:
        pivot, best = f.variable("i32"), f.variable(kind)
        f.assign([pivot, best], [row, f.op(f"{kind}.abs", load(add(row, column)))])
        other = f.variable("i32")
        f.assign([other], [add(row, width)])
        with f.below(other, end, width):
            magnitude = f.op(f"{kind}.abs", load(add(other, column)))
            with f.when(f.op(f"{kind}.gt", magnitude, best)):
                f.assign([pivot, best], [other, magnitude])
        with f.when(f.op("i32.ne", pivot, row)), f.count(f.constant("i32", 0), width, size) as c:
            here, there = add(row, c), add(pivot, c)
            a, b = load(here), load(there)
            store(here, b)
            store(there, a)
        diagonal = load(add(row, column))
        following = add(column, item)
        other = f.variable("i32")
        f.assign([other], [add(row, width)])
        with f.below(other, end, width):
            factor = f.op(f"{kind}.div", load(add(other, column)), diagonal)
            subtract(other, row, factor, following, width)
        f.assign([row, column], [add(row, width), following])
    with f.count(f.constant("i32", 0), n) as _:
        f.assign([row, column], [f.op("i32.sub", row, width), f.op("i32.sub", column, item)])
        known, at = f.variable("i32"), f.variable("i32")
        f.assign([known, at], [add(row, width), add(column, item)])
        with f.below(known, end, width):
            subtract(row, known, load(add(row, at)), square, width)
            f.assign([at], [add(at, item)])
        diagonal = load(add(row, column))
        with f.count(square, width, size) as c:
            to = add(row, c)
            store(to, f.op(f"{kind}.div", load(to), diagonal))
