"""Compare kernels with the interpreter, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.backends.llvm.runtime.kernel import Kernel, build
from archimedes.graph import B8, DTYPES, F32, F64, I64, Graph

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


def samples(dtype: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw values of a dtype: special ones, ordinary ones, and all magnitudes."""
    if dtype == B8:
        return rng.integers(0, 2, n).astype(bool)
    kind = rng.integers(0, 3, n)
    if dtype == I64:
        wide = rng.integers(-(2**63), 2**63 - 1, n)
        return np.choose(kind, [rng.choice(SPECIAL_INTS, n), rng.integers(-9, 70, n), wide])
    with np.errstate(all="ignore"):
        scaled = rng.normal(size=n) * 10.0 ** rng.integers(-40, 40, n)
        values = np.choose(kind, [rng.choice(SPECIAL_FLOATS, n), rng.normal(size=n), scaled])
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
    """Run the interpreter over a batch; one array of shape (n,) an output."""
    values = run(g, list(columns))
    return [
        np.ascontiguousarray(np.broadcast_to(np.asarray(v, DTYPES[d]), (n,)))
        for v, d in zip(values, g.output_dtypes)
    ]


def leaves_of(dtypes: Sequence[int]) -> list[tuple[int, int]]:
    """Group neighbours of one dtype into leaves."""
    leaves: list[tuple[int, int]] = []
    for d in dtypes:
        if leaves and leaves[-1][1] == d:
            leaves[-1] = (leaves[-1][0] + 1, d)
        else:
            leaves.append((1, d))
    return leaves


def packed(columns: Sequence[np.ndarray], leaves: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Put columns side by side into arrays of shape (n, count)."""
    arrays, at = [], 0
    for count, d in leaves:
        arrays.append(np.ascontiguousarray(np.stack(columns[at : at + count], -1), DTYPES[d]))
        at += count
    return arrays


def empty(leaves: Sequence[tuple[int, int]], n: int) -> list[np.ndarray]:
    return [np.zeros((n, count), DTYPES[d]) for count, d in leaves]


def check(
    g: Graph,
    columns: Sequence[np.ndarray],
    *,
    lanes: Sequence[int | None] = (None,),
    scalars: int = 12,
    note: str = "",
    **options: object,
) -> Kernel:
    """Assert that interpreter, scalar kernel, lane kernels and threads agree on a batch."""
    n = len(columns[0]) if columns else 5
    expected = reference(g, columns, n)
    ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)
    arrays, wanted = packed(columns, ins), packed(expected, outs)
    kernel = None
    for width in lanes:
        kernel = build(g, ins, outs, lanes=width, **options)  # type: ignore[arg-type]
        for threads in (1, 2):
            results = empty(outs, n)
            kernel.call_batch(arrays, [True] * len(ins), results, n, threads=threads)
            for k, (got, want) in enumerate(zip(results, wanted)):
                assert_bits(got, want, f"{note} lanes {width} threads {threads} leaf {k}")
    assert kernel is not None
    one = empty(outs, 1)
    for i in range(min(n, scalars)):
        kernel.call([a[i] for a in arrays], [o[0] for o in one])
        for k, (got, want) in enumerate(zip(one, wanted)):
            assert_bits(got[0], want[i], f"{note} scalar leaf {k}")
    return kernel


def check_shared(kernel: Kernel, g: Graph, columns: Sequence[np.ndarray], seed: int) -> None:
    """Assert that a batch with some inputs shared by all instances gives the same bits."""
    rng = np.random.default_rng(seed)
    n = len(columns[0])
    ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)
    flags = [bool(flag) for flag in rng.integers(0, 2, len(ins))]
    arrays = packed(columns, ins)
    given = [a if flag else np.ascontiguousarray(a[0]) for a, flag in zip(arrays, flags)]
    wide = [a if flag else np.repeat(a[:1], n, axis=0) for a, flag in zip(arrays, flags)]
    expected = reference(g, [column for a in wide for column in a.T], n)
    results = empty(outs, n)
    kernel.call_batch(given, flags, results, n, threads=2)
    for k, (got, want) in enumerate(zip(results, packed(expected, outs))):
        assert_bits(got, want, f"batched {flags} seed {seed} leaf {k}")


__all__ = [
    "F32",
    "F64",
    "I64",
    "assert_bits",
    "check",
    "check_shared",
    "leaves_of",
    "reference",
    "samples",
]
