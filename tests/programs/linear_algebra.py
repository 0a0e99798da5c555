"""Linear equations, quotients, and tables that are read at computed indices."""

from __future__ import annotations

import numpy as np

from archimedes.graph import CODES, DTYPES, F32, F64, I64, Graph, Solve

from .program import Program, program
from .values import SPECIAL_FLOATS, normal

SIZES = [(1, 1, F64), (2, 1, F32), (3, 1, F64), (3, 2, F64), (4, 2, F32), (6, 6, F64), (9, 4, F64)]


def solve(n: int, m: int, dtype: int) -> Program:
    """Ties, zeros, nans and infinities among the pivots, different from instance to instance."""
    g = Graph()
    ids = g.add_inputs(dtype, n * (n + m)).tolist()
    g.outputs = g.region(Solve(ids, n, m, dtype)).tolist()
    if m == 1 and n > 1:
        singular = [*ids[:n], *ids[: n * n - n], *ids[n * n :]]
        g.outputs += g.region(Solve(singular, n, m, dtype)).tolist()
    rng = np.random.default_rng(n)
    columns = [normal(rng, 45).astype(DTYPES[dtype]) for _ in g.inputs]
    for k, value in enumerate((0.0, 1.0, -1.0, np.nan, np.inf)):
        for column in columns:
            column[rng.integers(0, 45, 6)] = value
        columns[k % len(columns)][:20] = value
    return program(f"solve_{n}_{m}", g, None, columns)


def lookups() -> Program:
    g = Graph()
    k = g.input(I64)
    tables = [
        np.array([0.1, -0.0, np.inf, np.nan, 5e-324, 1e308]),
        np.array([0.1, -2.5, 1e-45], np.float32),
        np.array([-(2**63), 2**63 - 1, 0, -1]),
        np.array([True, False, True]),
        np.linspace(0.0, 1.0, 100),
    ]
    g.outputs = [g.lookup(table, k) for table in tables]
    indices = [-(2**63), -1, 0, 1, 2, 3, 4, 5, 99, 100, 2**63 - 1] * 3

    def plain(k):
        return [table[min(max(int(k), 0), len(table) - 1)] for table in tables]

    return program("lookups", g, plain, [np.array(indices)])


def quotients() -> Program:
    """Numerators of all sizes by constants, which backends may take as products."""
    g, rng = Graph(), np.random.default_rng(5)
    x = g.input(F64)
    divisors = [10.0, -7.158800752782445, 3.25, 1e-3, 4.0, -0.5, 1e300, 1e-300, 5e-324, np.inf]
    g.outputs = [g.emit(CODES["div"], x, g.const(c, F64)) for c in divisors]
    tiny = [s * 2.0**k for k in range(-1074, -960, 5) for s in (1.0, -1.0)]
    usual = np.ldexp(normal(rng, 40), rng.integers(-1030, 1000, 40))
    columns = np.concatenate([SPECIAL_FLOATS, tiny, usual, normal(rng, 200)])
    return program("quotients", g, lambda v: [_quotient(v, c) for c in divisors], [columns])


def _quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def linear_algebra() -> list[Program]:
    return [*(solve(*size) for size in SIZES), lookups(), quotients()]
