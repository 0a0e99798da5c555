"""Random programs with blocks: nests, packs, sums at indices, elements, and regions around them."""

from __future__ import annotations

import math

import numpy as np

from archimedes.graph import B8, CODES, DTYPES, F32, F64, I64, Call, Graph, Map, Scan, Switch, While
from archimedes.graph.dtypes import block_type, item_type, length_of
from archimedes.graph.regions import Accumulate, Affine, Gather, Move, Nest, Pack, Solve
from archimedes.graph.regions.block_regions import Read, row_major

from ..graph.spec import COMBINE, find_ends
from .random_graphs import Builder

__all__ = ["random_blocks"]

#: Lengths around those of vectors and of partial results.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 48, 64, 65, 100)
#: What may combine values of each dtype.
BY_DTYPE = {F64: COMBINE[:4], F32: COMBINE[:4], I64: COMBINE, B8: COMBINE[4:]}


class BlockBuilder(Builder):
    """Grows a graph with blocks; ``blocks`` are those it has."""

    def __init__(self, rng: np.random.Generator, kinds: list[int], depth: int) -> None:
        self.blocks: list[int] = []
        super().__init__(rng, kinds, depth)

    def add(self, i: int) -> None:
        if length_of(self.g.dtype[i]):
            self.blocks.append(i)
        else:
            super().add(i)

    def choice(self, *values):
        return values[int(self.rng.integers(len(values)))]

    def block(self) -> int:
        """A block there is, or a constant one."""
        if self.blocks and self.rng.random() < 0.9:
            return self.blocks[int(self.rng.integers(len(self.blocks)))]
        dtype = int(self.rng.integers(4))
        table = self.rng.normal(size=self.choice(*LENGTHS)) * 5
        return self.g.block(table > 0 if dtype == B8 else table.astype(DTYPES[dtype]))

    def block_of(self, dtype: int) -> int:
        found = [i for i in self.blocks if item_type(self.g.dtype[i]) == dtype]
        if found:
            return self.choice(*found)
        table = (self.rng.normal(size=self.choice(*LENGTHS)) * 5).astype(DTYPES[dtype])
        return self.g.block(table)

    # ---- regions over blocks ---------------------------------------------------------------

    def affine(self, shape: tuple[int, ...], length: int) -> Affine:
        """An affine read (or write) that fits a length."""
        if math.prod(shape) == length and self.rng.random() < 0.5:
            return Affine(0, row_major(shape))
        for _ in range(8):
            strides = tuple(int(self.choice(0, 1, 1, -1, 2, -3, shape[-1])) for _ in shape)
            low, high = find_ends(Affine(0, strides), shape)
            if high - low < length:
                return Affine(int(self.rng.integers(-low, length - high)), strides)
        return Affine(int(self.rng.integers(length)), (0,) * len(shape))

    def read(self, shape: tuple[int, ...], i: int) -> Read:
        length = length_of(self.g.dtype[i])
        if self.rng.random() < 0.2:
            return Gather(self.rng.integers(0, length, math.prod(shape)))
        return self.affine(shape, length)

    def shape(self) -> tuple[int, ...]:
        rank = int(self.rng.integers(1, 4))
        if rank == 1:
            return (int(self.choice(*LENGTHS, 200)),)
        return tuple(int(self.choice(1, 2, 3, 5, 8, 17, 20)) for _ in range(rank))

    def nest(self) -> np.ndarray:
        shape = self.shape()
        kept = int(self.rng.integers(0, len(shape) + 1))
        ids = [self.block() for _ in range(int(self.rng.integers(1, 4)))]
        reads: list[Read] = [self.read(shape, i) for i in ids]
        scalars = self.some(0, 3)
        ids, reads = ids + self.picks(scalars), reads + [None] * len(scalars)
        if self.rng.random() < 0.3:
            ids, reads = [*ids, self.block()], [*reads, None]
        kinds = [self.g.dtype[i] for i in ids]
        kinds = [k if r is None else item_type(k) for k, r in zip(kinds, reads)]
        if self.rng.random() < 0.3:
            kinds += [I64] * len(shape)
        combine = ""
        outs = self.some(1, 4)
        if kept < len(shape):
            dtype = int(self.rng.integers(4))
            outs, combine = [dtype] * len(outs), str(self.choice(*BY_DTYPE[dtype]))
        body = self.inner(kinds, outs, int(self.choice(1, 3, 8)), 0)
        partials = int(self.choice(1, 16)) if combine else 1
        return self.g.region(Nest(ids, body, shape, tuple(reads), kept, combine, partials))

    def contraction(self) -> np.ndarray:
        """A product of matrices or of a matrix and a vector, in any layout."""
        dtype = int(self.choice(F64, F64, F32, I64))
        n, m, p = (int(self.choice(1, 3, 5, 8, 9, 13, 17, 33)) for _ in range(3))
        inner = int(self.choice(m, 16, 17, 70))
        matrix = bool(self.rng.integers(2))
        a, b = (
            self.g.block((self.rng.normal(size=size) * 9).astype(DTYPES[dtype]))
            for size in (n * inner, inner * (p if matrix else 1))
        )
        left = self.choice((inner, 1), (1, n))
        right = self.choice((1, p), (inner, 1))
        body = self.inner([dtype, dtype, dtype], [dtype], int(self.choice(0, 1)), 0)
        x, y, s = body.inputs
        body.outputs = [body.emit(CODES[self.choice("mul", "sub")], x, y), *body.outputs]
        if not self.rng.integers(3):
            body.outputs = [body.emit(CODES["add"], body.outputs[0], s)]
        partials, scalar = int(self.choice(1, 16)), self.pick(dtype)
        if matrix:
            reads = (Affine(0, (left[0], 0, left[1])), Affine(0, (0, *right)), None)
            nest = Nest([a, b, scalar], body, (n, p, inner), reads, 2, "add", partials)
        else:
            reads = (Affine(0, left), Affine(0, (0, 1)), None)
            nest = Nest([a, b, scalar], body, (n, inner), reads, 1, "add", partials)
        return self.g.region(nest)

    def pack(self) -> np.ndarray:
        dtype, length = int(self.rng.integers(4)), self.choice(*LENGTHS)
        ids: list[int] = []
        moves = []
        for _ in range(int(self.rng.integers(0, 5))):
            shape = self.shape()
            if self.rng.random() < 0.5:
                shape = (int(self.choice(1, length)),)
            to = self.disjoint(shape, length)
            if to is None:
                continue
            if self.rng.random() < 0.4:
                ids.append(self.pick(dtype))
                start = None
            else:
                ids.append(self.block_of(dtype))
                start = self.affine(shape, length_of(self.g.dtype[ids[-1]]))
            moves.append(Move(len(ids) - 1, shape, to, start))
        return self.g.region(Pack(ids, length, dtype, tuple(moves)))

    def disjoint(self, shape: tuple[int, ...], length: int) -> Affine | None:
        """Where a box may go without overlapping itself."""
        strides = [s * int(self.choice(1, 1, 2)) for s in row_major(shape)]
        strides = [s * int(self.choice(1, 1, -1)) for s in strides]
        low, high = find_ends(Affine(0, tuple(strides)), shape)
        if high - low >= length or _overlaps(strides, shape):
            return None
        return Affine(int(self.rng.integers(-low, length - high)), tuple(strides))

    def accumulate(self) -> np.ndarray:
        values = self.block_of(int(self.choice(F64, F32, I64)))
        kind = self.g.dtype[values]
        count, length = length_of(kind), int(self.choice(*LENGTHS))
        like = [i for i in self.blocks if self.g.dtype[i] == block_type(I64, count)]
        indices = like[0] if like else self.g.block(self.rng.integers(-2, length + 2, count))
        return self.g.region(Accumulate([values, indices], length, item_type(kind)))

    # ---- regions that read blocks ----------------------------------------------------------

    def inner(self, kinds: list[int], outs: list[int], ops: int, depth: int) -> Graph:
        made = BlockBuilder(self.rng, kinds, depth)
        made.grow(ops)
        made.g.outputs = made.picks(outs)
        return made.g

    def around(self) -> np.ndarray:
        """A region of another kind with blocks among its operands."""
        blocks = [self.block() for _ in range(int(self.rng.integers(1, 3)))]
        kinds = [self.g.dtype[i] for i in blocks]
        scalars, outs = self.some(1, 3), self.some(1, 4)
        ids, depth = self.picks(scalars), self.depth - 1
        kind = self.choice("call", "scan", "while", "switch", "map", "carried", "rows", "solve")
        if kind == "call":
            body = self.inner(scalars + kinds, outs, int(self.choice(4, 30)), depth)
            body.outputs += [i for i, d in enumerate(body.dtype) if length_of(d)][:3]
            found = self.g.region(Call(ids + blocks, body))
            again = self.g.region(Call(self.picks(scalars) + blocks, body))
            return np.concatenate([found, again])
        if kind == "scan":
            body = self.inner(scalars + scalars + kinds, scalars + outs, 8, depth)
            length = int(self.rng.integers(0, 4))
            ids = ids + self.picks(scalars * length) + blocks
            return self.g.region(Scan(ids, body, length, len(scalars), len(scalars)))
        if kind == "while":
            body = self.inner(scalars + kinds, scalars, 6, depth)
            condition = self.inner(scalars + kinds, [B8], 3, depth)
            return self.g.region(While(ids + blocks, condition, body, len(scalars), 3))
        if kind == "switch":
            branches = tuple(
                self.inner(scalars + kinds, outs, int(self.choice(0, 5, 25)), depth)
                for _ in range(3)
            )
            if self.rng.integers(2):
                for body in branches:
                    body.outputs.append(self.choice(*_like(body, kinds[0])))
            return self.g.region(Switch([self.pick(I64), *ids, *blocks], branches))
        if kind == "carried":
            return self.carried(ids, blocks)
        if kind == "rows":
            return self.rows(ids, scalars, blocks)
        if kind == "solve":
            return self.solve()
        if not self.rng.integers(3):
            return self.sliced(scalars, kinds)
        length = int(self.choice(1, 3, 9))
        body = self.inner(scalars + kinds, outs, 6, depth)
        return self.g.region(Map(self.picks(scalars * length) + blocks, body, length, len(scalars)))

    def rows(self, ids: list[int], scalars: list[int], blocks: list[int]) -> np.ndarray:
        """A scan over the rows of blocks, which gives rows: scalars of each step, or blocks."""
        length = int(self.choice(1, 2, 5, 17))
        dtype, width = int(self.rng.integers(4)), int(self.choice(1, 3, 9))
        tables = [
            self.g.block((self.rng.normal(size=size) * 5).astype(DTYPES[dtype]))
            for size in (length, length * width)
        ]
        kinds = [self.g.dtype[i] for i in blocks]
        row = block_type(dtype, width)
        body = self.inner([*scalars, dtype, row, *kinds], [*scalars, dtype], 8, self.depth - 1)
        body.outputs += [i for i, d in enumerate(body.dtype) if length_of(d)][:3]
        way = bool(self.rng.integers(2))
        inputs = [*ids, *tables, *blocks]
        return self.g.region(Scan(inputs, body, length, len(ids), 2, way, stacked=True))

    def solve(self) -> np.ndarray:
        """A system of linear equations in blocks."""
        n, m = int(self.choice(1, 2, 5, 9)), int(self.choice(1, 2, 4))
        dtype = int(self.choice(F64, F32))
        matrix, right = (
            self.g.block(self.rng.normal(size=n * k).astype(DTYPES[dtype])) for k in (n, m)
        )
        return self.g.region(Solve([matrix, right], n, m, dtype, blocks=True))

    def carried(self, ids: list[int], blocks: list[int]) -> np.ndarray:
        """A loop that carries blocks."""
        ids = [*blocks[:1], *ids, *blocks]
        kinds = [self.g.dtype[i] for i in ids]
        body = self.inner(kinds, [kinds[1]], 8, self.depth - 1)
        wide = _like(body, kinds[0])
        count = 2 + len(blocks) if self.rng.integers(2) else 2
        more = body.inputs[2:count]
        body.outputs = [self.choice(*wide), *body.outputs, *more]
        if self.rng.integers(2):
            return self.g.region(Scan(ids, body, 3, count, 0))
        condition = self.inner(kinds, [B8], 3, 0)
        return self.g.region(While(ids, condition, body, count, 3))

    def sliced(self, scalars: list[int], kinds: list[int]) -> np.ndarray:
        """A loop or a map over blocks, with a block for each step among its results."""
        length = int(self.choice(1, 2, 5))
        slices = [*kinds[:1], *scalars]
        like = [i for i in self.blocks if self.g.dtype[i] == kinds[0]] or [self.of_kind(kinds[0])]
        rows = [x for _ in range(length) for x in (self.choice(*like), *self.picks(scalars))]
        if self.rng.integers(2):
            body = self.inner(slices, scalars, 6, self.depth - 1)
            body.outputs.append(self.choice(*_like(body, kinds[0])))
            return self.g.region(Map(rows, body, length, len(slices)))
        body = self.inner([F64, *slices], [F64, *scalars], 6, self.depth - 1)
        body.outputs.append(self.choice(*_like(body, kinds[0])))
        return self.g.region(Scan([self.pick(F64), *rows], body, length, 1, len(slices)))

    def of_kind(self, kind: int) -> int:
        table = self.rng.normal(size=length_of(kind)) * 5
        dtype = item_type(kind)
        return self.g.block(table > 0 if dtype == B8 else table.astype(DTYPES[dtype]))

    def element(self) -> None:
        i = self.block()
        known = self.rng.random() < 0.5
        at = self.g.const(int(self.rng.integers(-2, 70)), I64) if known else self.pick(I64)
        self.add(self.g.element(i, at))

    def grow(self, ops: int) -> None:
        for _ in range(ops):
            chance = self.rng.random()
            if chance < 0.15 and (self.blocks or self.depth):
                self.element()
            elif chance < 0.5 and self.depth:
                kinds = (self.nest, self.nest, self.contraction, self.pack, self.accumulate)
                for i in self.choice(*kinds, self.around)():
                    self.add(int(i))
            elif chance < 0.55:
                self.lookup()
            else:
                self.operation()


def _like(g: Graph, kind: int) -> list[int]:
    return [i for i, d in enumerate(g.dtype) if d == kind]


def _overlaps(strides: list[int], shape: tuple[int, ...]) -> bool:
    places = np.zeros(shape, dtype=np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides)):
        places += (np.arange(n) * s).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return len(np.unique(places)) < places.size


def random_blocks(seed: int, ops: int = 14, depth: int = 2, whole: bool = True) -> Graph:
    """Return a random program; with ``whole`` its inputs and outputs may be blocks too."""
    rng = np.random.default_rng(seed)
    kinds = [int(d) for d in rng.integers(0, 4, int(rng.integers(1, 6)))]
    if whole:
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, len(kinds) + 1))
            kinds.insert(at, block_type(int(rng.integers(4)), int(rng.choice(LENGTHS))))
    builder = BlockBuilder(rng, kinds, depth)
    builder.grow(ops)
    g = builder.g
    g.outputs = builder.picks(builder.some(1, 4))
    if builder.blocks and whole:
        for _ in range(int(rng.integers(0, 4))):
            at = int(rng.integers(0, len(g.outputs) + 1))
            g.outputs.insert(at, builder.block())
    return g
