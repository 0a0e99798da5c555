"""Arithmetic on dense blocks of a sparse matrix, in registers: products, and inverses.

``simulate/sparse/block_factors.py`` says what is computed, in which order. Functions take numbers
of blocks: addresses in the loops that call them would cost LLVM more time than all of those loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function, Module

__all__ = [
    "SIZE",
    "BlockWriter",
    "add_inverse",
    "add_multiply",
    "add_update",
    "block_writer",
    "vector_product",
]

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
        return self.f.value(f"getelementptr {kind}, ptr %blocks, i64 {number}")

    def at(self, base: str, item: int) -> str:
        """Return the address of a number."""
        return self.f.value(f"getelementptr {self.item}, ptr {base}, i64 {item}") if item else base

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
        first = self.f.value(f"insertelement {self.kind} poison, {self.item} {one}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.f.value(f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros}")

    def combined(self, op: str, total: str | None, a: str, b: str) -> str:
        """Return total plus or minus a times b, each rounded; without a total the product."""
        product = self.f.value(f"fmul {self.kind} {a}, {b}")
        return self.f.value(f"{op} {self.kind} {total}, {product}") if total else product


def block_writer(f: Function, item: str) -> BlockWriter:
    """Return what writes arithmetic on blocks of double or float."""
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
            w.combined(op, total, column, w.spread(right, SIZE * j + k))
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
    moved = [*(("ptr", base) for base in first), ("i64", f.value(f"mul i64 %step, {w.bytes}"))]
    columns = [SIZE * j for j in range(SIZE)]
    for part in w.parts:
        begun = [(w.kind, w.load(to, j + part)) for j in columns]
        with f.loop(0, "%many", [*begun, *moved]) as loop:
            *totals, left, right, step = loop.carried
            loop.next = [
                *_products(w, "fsub", totals, left, right, part),
                f.value(f"getelementptr i8, ptr {left}, i64 {step}"),
                f.value(f"getelementptr i8, ptr {right}, i64 {step}"),
                f.value(f"sub i64 {step}, {w.bytes}"),
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
        place = f.value(f"getelementptr float, ptr {block}, i64 {at}")
        one = f.value(f"load <{w.width} x float>, ptr {place}, align 4")
        return f.value(f"fpext <{w.width} x float> {one} to {w.kind}")

    found: list[str] = []
    for part in w.parts:
        total = None
        for k in range(SIZE):
            total = w.combined("fadd", total, load(SIZE * k + part), x[k])
        assert total is not None
        found.append(total)
    return found


def _element(f: Function, base: str, row: str, column: str) -> str:
    """Return the address of an element of the working rows (SIZE, 2 SIZE)."""
    start = f.value(f"mul i64 {row}, {2 * SIZE}")
    return f.value(f"getelementptr double, ptr {base}, i64 {f.value(f'add i64 {start}, {column}')}")


def _load(f: Function, address: str) -> str:
    return f.value(f"load double, ptr {address}, align 8")


def add_inverse(module: Module, item: str) -> None:
    """Write the inverse of a block, in its place, by Gauss-Jordan elimination with pivots."""
    f, w = _function(module, "invert", "ptr %blocks, i64 %number, ptr %work")
    its = block_writer(f, item)
    block = its.block("%number")
    f.module.declare("@llvm.fabs.f64", "double", "double")
    with f.loop(0, SIZE) as i, f.loop(0, SIZE) as j:
        at = f.value(f"add i64 {f.value(f'mul i64 {j.counter}, {SIZE}')}, {i.counter}")
        given = its.one(f.value(f"getelementptr {item}, ptr {block}, i64 {at}"))
        if item != "double":
            given = f.value(f"fpext {item} {given} to double")
        f.line(f"store double {given}, ptr {_element(f, '%work', i.counter, j.counter)}, align 8")
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
        to = f.value(f"getelementptr {item}, ptr {block}, i64 {at}")
        if item != "double":
            found = f.value(f"fptrunc double {found} to {item}")
        f.line(f"store {item} {found}, ptr {to}, align {its.align}")
    f.finish()


def _eliminate(f: Function, w: BlockWriter, c: str) -> None:
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
