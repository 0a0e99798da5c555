"""Many programs as one kernel, compared with the interpreter bit for bit.

Compiling a program by itself takes LLVM about a tenth of a second, most of it for elementary
functions. A bundle joins the graphs of many programs, side by side, in one kernel in which each
elementary function is written once; that makes ten thousand programs affordable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from archimedes.backends.llvm.runtime.kernel import NativeKernel, build
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.graph import DTYPES, Graph, inline
from archimedes.graph.expand import expand

from ..programs.ops import OPS, op_program
from ..programs.program import Program
from ..programs.values import bits_equal, reference

__all__ = ["Case", "case_of", "every_op", "instances", "run_bundle"]

#: Width of the lane kernel, by turns; None is that of this CPU.
LANES = (None, 4, 2)
#: Instances that the scalar kernel computes too.
SCALARS = 3


@dataclass
class Case:
    """A program, its inputs over a batch, and what the interpreter makes of them."""

    graph: Graph
    columns: list[np.ndarray]
    expected: list[np.ndarray]


def case_of(graph: Graph, columns: list[np.ndarray], count: int) -> Case:
    """Run the interpreter over a batch of ``count`` instances."""
    return Case(graph, columns, reference(graph, columns, count))


def instances(turn: int) -> int:
    """How many instances to run at this turn: some whole tiles and an incomplete one."""
    return 2 * (LANES[turn % len(LANES)] or host_target().lanes) + 3


def joined(graphs: Sequence[Graph]) -> Graph:
    """Put graphs side by side: inputs and outputs by dtype, within one in order of the graphs."""
    big = Graph()
    inputs = {
        dtype: iter([big.input(dtype) for g in graphs for d in g.input_dtypes if d == dtype])
        for dtype in range(len(DTYPES))
    }
    outputs: list[int] = []
    for g in graphs:
        outputs += inline(big, g, [next(inputs[d]) for d in g.input_dtypes])
    big.outputs = sorted(outputs, key=big.dtype.__getitem__)
    return big


def every_op(count: int = 61) -> Program:
    """One program of all ops on all dtypes they take, on some of the values of each."""
    rng = np.random.default_rng(0)
    cases = [op_program(name, dtype) for name, dtype in OPS]
    chosen = [rng.choice(case.count, count) for case in cases]
    inputs = [
        (dtype, column[rows])
        for case, rows in zip(cases, chosen)
        for dtype, column in zip(case.graph.input_dtypes, case.columns)
    ]
    columns = [x for dtype in range(len(DTYPES)) for d, x in inputs if d == dtype]
    return Program("every_op", joined([case.graph for case in cases]), columns)


def columns_of(
    groups: Sequence[tuple[Sequence[np.ndarray], Sequence[int]]], dtype: int, count: int
) -> tuple[list[int], np.ndarray]:
    """The columns of one dtype side by side, and which group each belongs to."""
    homes, columns = [], []
    for position, (group, dtypes) in enumerate(groups):
        for column, d in zip(group, dtypes, strict=True):
            if d == dtype:
                homes.append(position)
                columns.append(column)
    return homes, np.stack(columns, -1) if columns else np.empty((count, 0), DTYPES[dtype])


def run_bundle(cases: Sequence[Case], turn: int) -> dict[int, str]:
    """Run all cases as one kernel; what differs from the interpreter, by the case's position."""
    count = instances(turn)
    dtypes = range(len(DTYPES))
    ins = [(case.columns, case.graph.input_dtypes) for case in cases]
    outs = [(case.expected, case.graph.output_dtypes) for case in cases]
    given = [columns_of(ins, d, count)[1] for d in dtypes]
    wanted = [columns_of(outs, d, count) for d in dtypes]
    kernel = build(
        expand(joined([case.graph for case in cases]), calls=True),
        [(array.shape[1], d) for d, array in enumerate(given)],
        [(array.shape[1], d) for d, (_, array) in enumerate(wanted)],
        lanes=LANES[turn % len(LANES)] or host_target().lanes,
    )
    differences: dict[int, str] = {}
    for how, results, rows in runs(kernel, given, count):
        for (homes, want), got in zip(wanted, results):
            wrong = ~bits_equal(got, want[rows]).all(axis=0)
            for k in np.flatnonzero(wrong).tolist():
                text = f"{how}: native {got[:, k]} differs from interpreted {want[rows, k]}"
                differences.setdefault(homes[k], text)
    return differences


def runs(
    kernel: NativeKernel, arrays: Sequence[np.ndarray], count: int
) -> Iterator[tuple[str, list[np.ndarray], slice]]:
    """Run as scalars, lanes and threads; yields what was run, its results, and which rows."""
    for threads in (1, 2):
        results = [np.empty((count, leaf.size), DTYPES[leaf.dtype]) for leaf in kernel.outputs]
        flags = [True] * len(arrays)
        kernel.call_batch(arrays, flags, results, count, threads=threads)
        yield f"{kernel.lanes} lanes, {threads} threads", results, slice(None)
    results = [np.empty((SCALARS, leaf.size), DTYPES[leaf.dtype]) for leaf in kernel.outputs]
    for i in range(SCALARS):
        kernel.call([x[i] for x in arrays], [out[i] for out in results])
    yield "scalar", results, slice(SCALARS)
