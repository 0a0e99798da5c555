"""The catalogue of programs, every op, and every elementary function on many numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import B8, CODES, DTYPES, F32, F64, I64, Graph
from archimedes.graph.dtypes import item_type

from ..programs.catalogue import programs
from ..programs.ops import OPS, READS_SIGN, ROWS
from ..programs.values import leaves_of, packed, reference, samples
from .result import Result

__all__ = ["catalogue", "operations"]

#: Instances that are computed one at a time, too.
SINGLE = 6
#: Numbers that ops and elementary functions are applied to.
MANY = 1500


def catalogue() -> Iterator[Result]:
    """Every program of the catalogue, on the values that it brings."""
    for made in programs():
        yield from _results(made.graph, made.columns, made.count, [made.name])


def operations() -> Iterator[Result]:
    """Every op and elementary function, on special, ordinary and random numbers of all sizes."""
    for dtype in (F64, F32, I64, B8):
        for elementary in (False, True):
            rows = [
                op
                for op in ROWS
                if bool(op.elementary) == elementary and (op.name, dtype) in OPS
                if op.name not in READS_SIGN
            ]
            if rows:
                yield from _operations(rows, dtype)


def _operations(rows: Sequence[Any], dtype: int) -> Iterator[Result]:
    g = Graph()
    choice, *ids = [g.input(d) for d in (B8, dtype, dtype, dtype)]
    g.outputs = [
        g.emit(CODES[op.name], *([choice, *ids[1:]] if op.name == "select" else ids[: op.arity]))
        for op in rows
    ]
    rng = np.random.default_rng(dtype)
    columns = [samples(d, MANY, rng) for d in g.input_dtypes]
    kind = np.dtype(DTYPES[dtype]).name
    yield from _results(g, columns, MANY, [f"{op.name} {kind}" for op in rows])


def _results(
    g: Graph, columns: Sequence[np.ndarray], count: int, names: Sequence[str]
) -> Iterator[Result]:
    """One result for all outputs of a program, or one for each where there are as many names."""
    ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)

    @cache
    def kernel() -> Any:
        return build(g, ins, outs)

    @cache
    def interpreted() -> list[np.ndarray]:
        return reference(g, columns, count)

    @cache
    def native() -> list[np.ndarray]:
        arrays = [np.zeros((count, n), DTYPES[d]) for n, d in outs]
        kernel().call_batch(packed(columns, ins), [True] * len(ins), arrays, count)
        return _unpack(arrays, interpreted())

    @cache
    def interpreted_alone() -> list[np.ndarray]:
        rows = [run(g, [x[k] for x in columns]) for k in range(min(SINGLE, count))]
        kinds = [DTYPES[item_type(d)] for d in g.output_dtypes]
        alone = [np.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds)]
        return _joined(alone, interpreted())

    @cache
    def native_alone() -> list[np.ndarray]:
        arrays = [np.zeros((min(SINGLE, count), n), DTYPES[d]) for n, d in outs]
        given = packed(columns, ins)
        for k in range(len(arrays[0])):
            kernel().call([x[k] for x in given], [out[k] for out in arrays])
        return _joined(_unpack(arrays, interpreted()), native())

    ways: dict[str, Callable[[], list[np.ndarray]]] = {
        "interpreted": interpreted_alone,
        "interpreted batch": interpreted,
        "native": native_alone,
        "native batch": native,
    }
    if len(names) == 1:
        yield Result(names[0], ways)
        return
    for k, name in enumerate(names):
        yield Result(name, {way: lambda f=f, k=k: f()[k] for way, f in ways.items()})


def _unpack(arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Take packed outputs apart as those of the interpreter are."""
    columns: list[np.ndarray] = []
    for a in arrays:
        columns += [a] if like[len(columns)].ndim == 2 else list(a.T)
    return columns


def _joined(alone: Sequence[np.ndarray], rest: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate([a, b[len(a) :]]) for a, b in zip(alone, rest)]
