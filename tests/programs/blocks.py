"""Programs with blocks: values of many elements, in loops, copies and sums at indices."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.graph import B8, F32, F64, I64, Call, Graph, Scan
from archimedes.graph.dtypes import block_type
from archimedes.graph.regions import Accumulate, Affine, Gather, Move, Nest, Pack

from .program import Program, emit, graph_of, program
from .values import normal, samples

#: Instances of these programs: each has many elements.
FEW = 3


def made(name: str, g: Graph, plain=None) -> Program:
    rng = np.random.default_rng(1)
    columns = [samples(d, FEW, rng) for d in g.input_dtypes]
    return program(name, g, plain, columns)


def elementwise() -> Program:
    """sin(x) * y + s over 37 elements, and whether it is small."""
    n = 37
    body = graph_of(
        [F64, F64, F64],
        lambda g, x, y, s: [
            (v := emit(g, "add", emit(g, "mul", emit(g, "sin", x), y), s)),
            emit(g, "lt", v, g.const(0.5)),
        ],
    )
    one = Affine(0, (1,))
    g = graph_of(
        [block_type(F64, n), F64, block_type(F64, n)],
        lambda g, x, s, y: g.region(Nest([x, y, s], body, (n,), (one, one, None), 1)).tolist(),
    )
    return made("blocks_elementwise", g)


def reduction(n: int, partials: int, combine: str, dtype: int) -> Program:
    body = graph_of([dtype], lambda g, x: x)
    read = Affine(n - 1, (-1,))
    g = graph_of(
        [block_type(dtype, n)],
        lambda g, x: g.region(Nest([x], body, (n,), (read,), 0, combine, partials)).tolist(),
    )
    return made(f"blocks_{combine}_{n}_{partials}_{dtype}", g)


def zeros(combine: str) -> Program:
    """The least or the greatest is a zero: of several the last one counts, with its sign."""
    made = reduction(70, 1, combine, F64)
    rng = np.random.default_rng(5)
    values = rng.choice([0.0, -0.0, 1.0, 2.0], (8, 70), p=[0.02, 0.02, 0.5, 0.46])
    made.name, made.columns = f"blocks_zeros_{combine}", [values if combine == "min" else -values]
    return made


def product(rows: int, inner: int, columns: int, partials: int) -> Program:
    """A matrix product, the first factor a constant."""
    body = graph_of([F64, F64], lambda g, a, b: emit(g, "mul", a, b))
    a = normal(np.random.default_rng(2), rows * inner)
    g = Graph()
    b = g.input(block_type(F64, inner * columns))
    reads = (Affine(0, (inner, 0, 1)), Affine(0, (0, 1, columns)))
    shape = (rows, columns, inner)
    region = Nest([g.block(a), b], body, shape, reads, 2, "add", partials)
    g.outputs = g.region(region).tolist()

    def plain(b):
        rows_of, other = a.reshape(rows, inner), np.reshape(b, (inner, columns))
        total = rows_of[:, :1] * other[:1]
        for k in range(1, inner):
            total = total + rows_of[:, k : k + 1] * other[k : k + 1]
        return [total.ravel()]

    return made(f"blocks_product_{rows}_{inner}_{partials}", g, plain if partials == 1 else None)


def gathered() -> Program:
    """A stencil of one-sided differences, elements at listed places, and the index itself."""
    n = 21
    body = graph_of(
        [F32, F32, F32, I64],
        lambda g, x, y, z, k: emit(
            g, "add", emit(g, "sub", x, y), emit(g, "mul", z, emit(g, "f32", k))
        ),
    )
    table = np.random.default_rng(3).integers(0, n, n - 1)
    reads = (Affine(1, (1,)), Affine(0, (1,)), Gather(table))
    g = graph_of(
        [block_type(F32, n)],
        lambda g, x: g.region(Nest([x] * 3, body, (n - 1,), reads, 1)).tolist(),
    )
    return made("blocks_gathered", g)


def packed_and_summed() -> Program:
    """A block of parts of others, of scalars and zeros; sums at indices of it; elements."""
    g = Graph()
    x, s, n = g.input(block_type(F64, 12)), g.input(F64), g.input(I64)
    moves = (
        Move(0, (3, 4), Affine(2, (8, 2)), Affine(11, (-4, -1))),
        Move(1, (2,), Affine(0, (1,)), None),
        Move(1, (), Affine(30, ()), None),
    )
    (block,) = g.region(Pack([x, s], 31, F64, moves)).tolist()
    indices = g.block(np.random.default_rng(4).integers(-1, 6, 31))
    (sums,) = g.region(Accumulate([block, indices], 5, F64)).tolist()
    g.outputs = [block, sums, g.element(block, n), g.element(sums, g.const(3, I64)), block]
    return made("blocks_packed", g)


def called() -> Program:
    """Blocks that calls take and return, loops that read them, and memory that is used again."""
    n = 40
    kind = block_type(F64, n)
    step = graph_of([F64, F64], lambda g, x, s: emit(g, "add", emit(g, "mul", x, s), s))
    one = Affine(0, (1,))

    def twice(g, x, s):
        for _ in range(2):
            (x,) = g.region(Nest([x, s], step, (n,), (one, None), 1)).tolist()
        return [x, g.element(x, g.const(7, I64)), s]

    body = graph_of([kind, F64], twice)
    look = graph_of(
        [F64, I64, kind],
        lambda g, c, k, x: [
            emit(g, "add", c, g.element(x, emit(g, "add", k, k))),
            emit(g, "lt", c, g.const(0.0)),
        ],
    )
    g = Graph()
    x, s = g.input(kind), g.input(F64)
    total = s
    for _ in range(3):
        x, part, _ = g.region(Call([x, s], body)).tolist()
        total = emit(g, "add", total, part)
    counts = [g.const(k, I64) for k in range(5)]
    found = g.region(Scan([total, *counts, x], look, 5, 1, 1)).tolist()
    g.outputs = [x, *found]
    return made("blocks_called", g)


def sorted_rows() -> Program:
    """Positions that sort three rows: its body has passes that exchange neighbours."""

    def order(x):
        return np.argsort(x.reshape(3, 30), axis=1, stable=True).ravel()

    g = arc.compile(order).recording(np.zeros(90)).blocks
    return made("blocks_sorted", g, lambda x: [order(x)])


def blocks() -> list[Program]:
    return [
        elementwise(),
        *(reduction(n, p, "add", F64) for n in (5, 16, 17, 67) for p in (1, 16)),
        *(reduction(50, 16, c, F64) for c in ("mul", "min", "max")),
        *(reduction(50, 1, c, F64) for c in ("mul", "min", "max")),
        *(reduction(35, 1, "xor", I64), zeros("min"), zeros("max")),
        *(reduction(35, 16, c, I64) for c in ("add", "min", "xor")),
        *(reduction(35, 16, "and", B8), reduction(33, 16, "add", F32)),
        *(product(5, 7, 9, 1), product(3, 40, 1, 16)),
        *(gathered(), packed_and_summed(), called(), sorted_rows()),
    ]
