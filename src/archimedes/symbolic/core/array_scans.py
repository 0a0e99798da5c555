"""Arrays read row by row: a scan, each of whose steps reads rows of blocks and returns rows.

A step is NumPy on traced arrays, all of which are recorded as loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.dtypes import DTYPES, block_type
from archimedes.graph.passes import prune
from archimedes.graph.regions import Scan
from archimedes.symbolic.core.conversion import cast_ids, lift, wrap
from archimedes.symbolic.core.loop_nests import loops_from, uses_loops
from archimedes.symbolic.core.trace import Trace, current_trace
from archimedes.symbolic.core.traced_value import Traced

#: (carried arrays, rows of this step) -> (carried arrays, rows to keep)
Step = Callable[[list[Traced], list[Traced]], tuple[Sequence[Traced], Sequence[Traced]]]


def array_input(trace: Trace, shape: tuple[int, ...], code: int) -> Traced:
    """Append an input to a trace and return the array it stands for: a block, unless a scalar."""
    kind = block_type(code, math.prod(shape)) if shape else code
    return array_of(trace, trace.graph.input(kind), shape, code)


def array_value(trace: Trace, array: Traced, code: int | None = None) -> int:
    """Return the node of an array of a trace, as a dtype: of a block, or of a scalar."""
    array = lift(array)
    ids, code = trace.elements_of(array), array.code if code is None else code
    if code != array.code:
        ids = cast_ids(trace.graph, ids, array.code, code)
    return as_block(trace.graph, ids, code) if ids.ndim else trace.graph.node_of(int(ids[()]))


def array_of(trace: Trace, node: int, shape: tuple[int, ...], code: int) -> Traced:
    """Return the array that a node stands for, as ``array_value`` gives it."""
    ids = references(trace.graph, node).reshape(shape) if shape else np.array(node)
    return wrap(ids, code, trace)


def scan_rows(
    step: Step, carry: Sequence[Traced], rows: Sequence[Traced]
) -> tuple[list[Traced], list[Traced]]:
    """Take ``carry, out = step(carry, row)`` along the first axis of rows, as one loop.

    All are traced arrays; steps may use others. In a step every array is computed by loops.
    Returns the last carry, and what steps gave, stacked along a new first axis.
    """
    trace, count = current_trace(), len(rows[0])
    codes = [a.code for a in carry]
    with Trace() as inner, loops_from(2, 1):
        start = [array_input(inner, a.shape, a.code) for a in carry]
        row = [array_input(inner, a.shape[1:], a.code) for a in rows]
        new, outs = step(start, row)
        outs = [lift(x) for x in outs]
        outputs = [array_value(inner, x, code) for x, code in zip(new, codes)]
        inner.graph.outputs = outputs + [array_value(inner, x) for x in outs]
    inputs = [*(array_value(trace, a) for a in (*carry, *rows)), *inner.captured]
    region = Scan(inputs, prune(inner.graph), count, len(carry), len(rows), stacked=True)
    nodes = trace.graph.region(region).tolist()
    last = [array_of(trace, i, a.shape, a.code) for i, a in zip(nodes, carry)]
    stacked = zip(nodes[len(carry) :], outs)
    return last, [array_of(trace, i, (count, *x.shape), x.code) for i, x in stacked]


def unroll_rows(
    step: Step, carry: Sequence[Traced], rows: Sequence[Traced]
) -> tuple[Sequence[Traced], list[Traced]]:
    """Return the same as ``scan_rows``, with the nodes of every step written out."""
    outs = []
    for row in zip(*rows):
        carry, out = step(list(carry), list(row))
        outs.append(out)
    return carry, [np.stack(x) for x in zip(*outs)]


def fold_steps(step: Step, carry: Sequence[Traced], rows: Sequence[Traced]) -> Sequence[Traced]:
    """Return the last carry of ``scan_rows``: by a scan over long rows, else step after step."""
    trace = current_trace()
    if uses_loops(trace.graph, rows[0].size, trace.elements_of(rows[0])):
        return scan_rows(step, carry, rows)[0]
    return unroll_rows(step, carry, rows)[0]


def uses_scan(ufunc: Callable[..., Any], x: Traced) -> bool:
    """Return whether a ufunc combines the rows of an array in a scan."""
    trace, kind = current_trace(), DTYPES[x.code]
    if len(x) < 2 or not x.size or not uses_loops(trace.graph, x.size, trace.elements_of(x)):
        return False
    if not isinstance(ufunc, np.ufunc) or (ufunc.nin, ufunc.nout) != (2, 1):
        return False
    return ufunc.resolve_dtypes((kind, kind, None))[-1] == kind


def accumulate_rows(ufunc: np.ufunc, x: Traced) -> Traced:
    """Combine each row of an array with all before, in order, in a scan."""

    def step(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        total = ufunc(*carry, *row)
        return [total], [total]

    return np.concatenate([x[:1], scan_rows(step, [x[0]], [x[1:]])[1][0]])


def fold_rows(ufunc: np.ufunc, x: Traced) -> Traced:
    """Combine all rows of an array, in order, in a scan."""
    return scan_rows(lambda carry, row: ([ufunc(*carry, *row)], []), [x[0]], [x[1:]])[0][0]
