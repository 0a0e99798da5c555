"""Values that programs run on, and comparison bit by bit with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.graph import B8, DTYPES, I64, Graph
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.regions.base import has_blocks

SPECIAL_FLOATS = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-310, -1e-310, 5e-324),
        *(np.inf, -np.inf, np.nan, 1e308, -1e308, 2.0**52, 2.0**53 + 2, -(2.0**63), 2.0**63),
        *(4503599627370495.5, 0.49999999999999994, 1e5, -1e22, 1e-8, 8388607.5, 2.0**31),
    ]
)
SPECIAL_INTS = np.array(
    [0, 1, -1, 2, -2, 3, 63, 64, 65, -63, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1, 7, 52, 2**53]
)


def normal(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw numbers that are nearly normal, with the same bits on every processor.

    NumPy's own are not: they take logarithms of the C library.
    """
    return rng.random((12, size)).sum(axis=0) - 6.0


def samples(dtype: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw values of a type: special ones, ordinary ones, and all magnitudes."""
    if length_of(dtype):
        return samples(item_type(dtype), n * length_of(dtype), rng).reshape(n, -1)
    if dtype == B8:
        return rng.integers(0, 2, n).astype(bool)
    kind = rng.integers(0, 3, n)
    if dtype == I64:
        wide = rng.integers(-(2**63), 2**63 - 1, n)
        return np.choose(kind, [rng.choice(SPECIAL_INTS, n), rng.integers(-9, 70, n), wide])
    with np.errstate(all="ignore"):
        scaled = np.ldexp(normal(rng, n), rng.integers(-133, 133, n))
        values = np.choose(kind, [rng.choice(SPECIAL_FLOATS, n), normal(rng, n), scaled])
        return values.astype(DTYPES[dtype])


def bits_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell where two arrays have equal bits, any nan equal to any nan."""
    if a.dtype.kind != "f":
        return a == b
    kind = f"i{a.dtype.itemsize}"
    return (a.view(kind) == b.view(kind)) | (np.isnan(a) & np.isnan(b))


def assert_bits(a: np.ndarray, b: np.ndarray, note: str = "") -> None:
    assert a.dtype == b.dtype, note
    same = bits_equal(a, b)
    where = np.argwhere(~same)[:3].tolist()
    assert same.all(), f"{note} differ at {where}: {a[~same][:3]} and {b[~same][:3]}"


def reference(g: Graph, columns: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
    """Run the interpreter over a batch; one array of shape (n,), or (n, length), an output."""
    if has_blocks(g):
        rows = [run(g, [x[k] for x in columns]) for k in range(n)]
        kinds = [DTYPES[item_type(d)] for d in g.output_dtypes]
        return [np.array([row[k] for row in rows], dtype) for k, dtype in enumerate(kinds)]
    values = run(g, list(columns))
    return [
        np.ascontiguousarray(np.broadcast_to(np.asarray(v, DTYPES[d]), (n,)))
        for v, d in zip(values, g.output_dtypes)
    ]


def leaves_of(dtypes: Sequence[int]) -> list[tuple[int, int]]:
    """Group neighbours of one dtype into leaves; blocks are leaves of their own."""
    leaves: list[tuple[int, int]] = []
    joins = False
    for d in dtypes:
        if length_of(d):
            leaves.append((length_of(d), item_type(d)))
        elif joins and leaves[-1][1] == d:
            leaves[-1] = (leaves[-1][0] + 1, d)
        else:
            leaves.append((1, d))
        joins = not length_of(d)
    return leaves


def packed(columns: Sequence[np.ndarray], leaves: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Put columns side by side into arrays of shape (n, count); those of blocks are such."""
    arrays, at = [], 0
    for count, d in leaves:
        if np.ndim(columns[at]) == 2:
            block, at = columns[at], at + 1
        else:
            block, at = np.stack(columns[at : at + count], -1), at + count
        arrays.append(np.ascontiguousarray(block, DTYPES[d]))
    return arrays
