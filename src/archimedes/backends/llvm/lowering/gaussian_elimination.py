"""Dense linear solves: elimination with partial pivoting as loops over a matrix in memory.

The order of operations is that of ``eliminate`` in the interpreter. The matrix is ``n`` rows of
``n + m`` values, right-hand sides last; solutions replace them. In lanes each lane has its
own pivot, so rows are swapped lane by lane.
"""

from __future__ import annotations

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.instructions import choose, intrinsic
from archimedes.backends.llvm.lowering.memory import ITEM_BYTES, ITEM_MEMORY, Pointer
from archimedes.backends.lowering.scope import Location
from archimedes.graph.dtypes import I64


def elimination_function(module: Module, n: int, m: int, dtype: int) -> str:
    """Return the name of the function ``void solve(ptr matrix)``, written at first use."""
    key = (n, m, dtype)
    name = module.solvers.get(key)
    if name is None:
        name = module.solvers[key] = module.fresh("solve")
        f = Function(module, f"define internal void {name}(ptr %matrix)")
        _Matrix(f, n, m, dtype).solve()
        f.finish()
    return name


class _Matrix:
    def __init__(self, f: Function, n: int, m: int, dtype: int) -> None:
        self.f, self.n, self.m, self.dtype = f, n, m, dtype
        self.width = n + m
        self.kind = f.spelling.types[dtype]
        self.start = Location(Pointer("local", "%matrix", uniform=False), 0, dtype)

    def at(self, row: str, column: str) -> Location:
        """Return the location of an entry at computed indices."""
        return self.f.advance(self.start, self.f.add(self.f.mul(row, self.width), column), 1)

    def get(self, row: str, column: str) -> str:
        return self.f.load(self.at(row, column))

    def solve(self) -> None:
        f, n = self.f, self.n
        with f.loop(0, n) as outer:
            k = outer.counter
            below = f.add(k, 1)
            self._swap(k, self._pivot(k, below))
            diagonal = self.get(k, k)
            with f.loop(below, n) as rows:
                row = rows.counter
                factor = f.value(f"fdiv {self.kind} {self.get(row, k)}, {diagonal}")
                self._subtract_row(row, below, factor, k)
        with f.loop(0, n) as outer:
            k = f.sub(n - 1, outer.counter)
            with f.loop(f.add(k, 1), n) as known:
                self._subtract_row(k, str(n), self.get(k, known.counter), known.counter)
            diagonal = self.get(k, k)
            with f.loop(n, self.width) as columns:
                location = self.at(k, columns.counter)
                f.store(location, f.value(f"fdiv {self.kind} {f.load(location)}, {diagonal}"))

    def _subtract_row(self, row: str, start: str, factor: str, source: str) -> None:
        """Subtract factor * (source, column) from (row, column) for all columns from a start."""
        f = self.f
        if f.spelling.lanes == 1:
            start = self._subtract_vectors(row, start, factor, source)
        with f.loop(start, self.width) as columns:
            location = self.at(row, columns.counter)
            product = f.value(f"fmul {self.kind} {factor}, {self.get(source, columns.counter)}")
            f.store(location, f.value(f"fsub {self.kind} {f.load(location)}, {product}"))

    def _subtract_vectors(self, row: str, start: str, factor: str, source: str) -> str:
        """Subtract several columns at once in a scalar kernel; return the first column left."""
        f, size = self.f, ITEM_BYTES[self.dtype]
        count = f.module.target.lanes
        kind = f"<{count} x {self.kind}>"
        factors = f.splat(factor, self.kind, count)
        span = f.sub(self.width, start)
        end = f.value(f"add i64 {start}, {f.value(f'and i64 {span}, {-count}')}")
        with f.loop(start, end, step=count) as columns:
            to, other = (f.address(self.at(r, columns.counter)) for r in (row, source))
            old, values = (f.value(f"load {kind}, ptr {p}, align {size}") for p in (to, other))
            product = f.value(f"fmul {kind} {factors}, {values}")
            new = f.value(f"fsub {kind} {old}, {product}")
            f.line(f"store {kind} {new}, ptr {to}, align {size}")
        return end

    def _pivot(self, k: str, below: str) -> str:
        """Return, in each lane, the first row with the largest magnitude in column k."""
        f, integer = self.f, self.f.spelling.types[I64]
        own = k if f.spelling.lanes == 1 else f.spread(k, I64)
        size = intrinsic(f, "fabs", self.dtype, self.get(k, k))
        with f.loop(below, self.n, [(integer, own), (self.kind, size)]) as rows:
            pivot, best = rows.carried
            size = intrinsic(f, "fabs", self.dtype, self.get(rows.counter, k))
            better = f.value(f"fcmp ogt {self.kind} {size}, {best}")
            row = rows.counter if f.spelling.lanes == 1 else f.spread(rows.counter, I64)
            rows.next = [
                choose(f, I64, better, row, pivot),
                choose(f, self.dtype, better, size, best),
            ]
        return rows.carried[0]

    def _swap(self, k: str, pivot: str) -> None:
        f, item = self.f, ITEM_MEMORY[self.dtype]
        size, lanes = ITEM_BYTES[self.dtype], f.spelling.lanes
        for lane in range(lanes):
            other = pivot
            if lanes > 1:
                other = f.value(f"extractelement {f.spelling.types[I64]} {pivot}, i64 {lane}")
            with f.loop(0, self.width) as columns:
                locations = [f.address(self.at(row, columns.counter)) for row in (k, other)]
                if lane:
                    locations = [f.offset(p, lane * size) for p in locations]
                values = [f.value(f"load {item}, ptr {p}, align {size}") for p in locations]
                for p, x in zip(locations, reversed(values)):
                    f.line(f"store {item} {x}, ptr {p}, align {size}")
