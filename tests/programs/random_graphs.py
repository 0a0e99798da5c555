"""Random programs over all ops, dtypes and regions, built directly on ``Graph``."""

from __future__ import annotations

import numpy as np

from archimedes.graph import (
    B8,
    CODES,
    DTYPES,
    F32,
    F64,
    I64,
    TABLE,
    Call,
    Graph,
    Map,
    Scan,
    Solve,
    Switch,
    While,
)

PLAIN = [op for op in TABLE if op.numpy is not None and not op.elementary]
ELEMENTARY = [op for op in TABLE if op.elementary]
#: The sign and the payload of a nan are outside the contract: these ops never see one.
READS_SIGN = ("copysign", "bits", "bits32")
LITERALS = {
    F64: [0.5, -2.0, 3.25, 1e-3, np.inf],
    F32: [0.5, -2.0, 3.25, 1e-3],
    I64: [1, -1, 3, 7, 63, 64],
    B8: [True, False],
}


class Builder:
    """Grows one graph from inputs of the given dtypes."""

    def __init__(self, rng: np.random.Generator, dtypes: list[int], depth: int) -> None:
        self.rng, self.depth = rng, depth
        self.g = Graph()
        self.pool: dict[int, list[int]] = {d: [] for d in (F64, F32, I64, B8)}
        for d in dtypes:
            self.add(self.g.input(d))

    def add(self, i: int) -> None:
        self.pool[self.g.dtype[i]].append(i)

    def pick(self, dtype: int) -> int:
        pool = self.pool[dtype]
        if not pool or self.rng.random() < 0.1:
            values = LITERALS[dtype]
            return self.g.const(values[self.rng.integers(len(values))], dtype)
        # Recent values more often, so that programs get deep.
        back = int(self.rng.integers(1, 1 + min(len(pool), int(self.rng.choice([4, 1000])))))
        return pool[-back]

    def picks(self, dtypes: list[int]) -> list[int]:
        return [self.pick(d) for d in dtypes]

    def operation(self) -> None:
        rows = ELEMENTARY if self.rng.random() < 0.08 else PLAIN
        op = rows[self.rng.integers(len(rows))]
        dtype = int(self.rng.choice(op.takes))
        operands = [dtype] * op.arity
        if op.name == "select":
            operands[0] = B8
        ids = self.picks(operands)
        if op.name in READS_SIGN:
            ids[-1] = self.without_nan(ids[-1])
        self.add(self.g.emit(op.code, *ids))

    def without_nan(self, i: int) -> int:
        one = self.g.const(1, self.g.dtype[i])
        return self.g.emit(CODES["select"], self.g.emit(CODES["eq"], i, i), i, one)

    def lookup(self) -> None:
        dtype = int(self.rng.integers(4))
        table = self.rng.normal(size=int(self.rng.integers(1, 9))) * 5
        table = table > 0 if dtype == B8 else table.astype(DTYPES[dtype])
        self.add(self.g.lookup(table, self.pick(I64)))

    def some(self, low: int, high: int) -> list[int]:
        return [int(d) for d in self.rng.integers(0, 4, int(self.rng.integers(low, high)))]

    def body(self, inputs: list[int], outputs: list[int], ops: int = 8) -> Graph:
        inner = Builder(self.rng, inputs, self.depth - 1)
        inner.grow(ops)
        inner.g.outputs = inner.picks(outputs)
        return inner.g

    def region(self) -> None:
        kind = self.rng.choice(["call", "scan", "while", "switch", "map", "solve"])
        for i in getattr(self, kind)():
            self.add(int(i))

    def call(self) -> np.ndarray:
        dtypes, outs = self.some(1, 4), self.some(1, 4)
        body = self.body(dtypes, outs, 30)
        first = self.g.region(Call(self.picks(dtypes), body))
        second = self.g.region(Call(self.picks(dtypes), body))
        return np.concatenate([first, second])

    def scan(self) -> np.ndarray:
        carry, slices, shared, outs = (self.some(0, 4) for _ in range(4))
        length = int(self.rng.integers(0, 5))
        body = self.body(carry + slices + shared, carry + outs)
        ids = self.picks(carry) + self.picks(slices * length) + self.picks(shared)
        region = Scan(ids, body, length, len(carry), len(slices), bool(self.rng.integers(2)))
        return self.g.region(region)

    def map(self) -> np.ndarray:
        slices, shared, outs = self.some(1, 4), self.some(0, 3), self.some(1, 4)
        length = int(self.rng.choice([1, 3, 8, 17]))
        body = self.body(slices + shared, outs)
        ids = self.picks(slices * length) + self.picks(shared)
        return self.g.region(Map(ids, body, length, len(slices)))

    def __getattr__(self, name: str) -> object:
        if name == "while":
            return self.repeat
        raise AttributeError(name)

    def repeat(self) -> np.ndarray:
        carry, shared = self.some(1, 4), self.some(0, 3)
        body = self.body(carry + shared, carry)
        condition = self.body(carry + shared, [B8], 4)
        ids = self.picks(carry) + self.picks(shared)
        limit = int(self.rng.integers(0, 6))
        return self.g.region(While(ids, condition, body, len(carry), limit))

    def switch(self) -> np.ndarray:
        dtypes, outs = self.some(1, 4), self.some(1, 4)
        count = int(self.rng.integers(1, 4))
        sizes = [int(self.rng.choice([0, 3, 30])) for _ in range(count)]
        branches = tuple(self.body(dtypes, outs, size) for size in sizes)
        return self.g.region(Switch([self.pick(I64), *self.picks(dtypes)], branches))

    def solve(self) -> np.ndarray:
        n, m = int(self.rng.integers(1, 5)), int(self.rng.integers(1, 3))
        dtype = int(self.rng.choice([F64, F32]))
        ids = self.picks([dtype] * (n * n + n * m))
        return self.g.region(Solve(ids, n, m, dtype))

    def grow(self, ops: int) -> None:
        for _ in range(ops):
            chance = self.rng.random()
            if chance < 0.06 and self.depth > 0:
                self.region()
            elif chance < 0.1:
                self.lookup()
            else:
                self.operation()


def random_graph(seed: int, ops: int = 40, depth: int = 2) -> Graph:
    """Return a random program; the same for the same seed."""
    rng = np.random.default_rng(seed)
    dtypes = [int(d) for d in rng.integers(0, 4, int(rng.integers(1, 9)))]
    builder = Builder(rng, dtypes, depth)
    builder.grow(ops)
    count = int(rng.integers(1, 12))
    builder.g.outputs = builder.picks([int(d) for d in rng.integers(0, 4, count)])
    return builder.g


__all__ = ["CODES", "random_graph"]
