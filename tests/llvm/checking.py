"""Compare kernels with the interpreter, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.llvm.runtime.kernel import NativeKernel, build
from archimedes.graph import DTYPES, Graph
from archimedes.graph.dtypes import length_of

from ..programs.values import assert_bits, leaves_of, packed, reference

__all__ = ["check", "check_shared"]


def empty(leaves: Sequence[tuple[int, int]], n: int) -> list[np.ndarray]:
    return [np.zeros((n, count), DTYPES[d]) for count, d in leaves]


def unpacked(arrays: Sequence[np.ndarray], kinds: Sequence[int]) -> list[np.ndarray]:
    """Undo ``packed``."""
    columns: list[np.ndarray] = []
    for a in arrays:
        columns += [a] if length_of(kinds[len(columns)]) else list(a.T)
    return columns


def check(
    g: Graph,
    columns: Sequence[np.ndarray],
    *,
    lanes: Sequence[int | None] = (None,),
    scalars: int = 12,
    note: str = "",
    **options: object,
) -> NativeKernel:
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


def check_shared(kernel: NativeKernel, g: Graph, columns: Sequence[np.ndarray], seed: int) -> None:
    """Assert that a batch with some inputs shared by all instances gives the same bits."""
    rng = np.random.default_rng(seed)
    n = len(columns[0])
    ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)
    flags = [bool(flag) for flag in rng.integers(0, 2, len(ins))]
    arrays = packed(columns, ins)
    given = [a if flag else np.ascontiguousarray(a[0]) for a, flag in zip(arrays, flags)]
    wide = [a if flag else np.repeat(a[:1], n, axis=0) for a, flag in zip(arrays, flags)]
    expected = reference(g, unpacked(wide, g.input_dtypes), n)
    results = empty(outs, n)
    kernel.call_batch(given, flags, results, n, threads=2)
    for k, (got, want) in enumerate(zip(results, packed(expected, outs))):
        assert_bits(got, want, f"batched {flags} seed {seed} leaf {k}")
