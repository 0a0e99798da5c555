"""Run a graph with NumPy: the oracle of every other backend and the first debugging tool.

A value is a NumPy scalar or an array over a batch; values of one graph broadcast against each
other, so that a value shared by all instances stays a scalar.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES
from archimedes.graph.environment import in_default_environment
from archimedes.graph.ops import TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While

__all__ = ["evaluate", "run"]

# Operators on NumPy scalars are several times quicker than the ufuncs, with the same results.
_QUICK = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
_FUNCTIONS: tuple[Any, ...] = tuple(_QUICK.get(op.name, op.numpy) for op in TABLE)
_ARITY = tuple(op.arity for op in TABLE)
_MAKE = tuple(dtype.type for dtype in DTYPES)

Instruction = tuple[int, int, int, int, int]


@in_default_environment
def run(g: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate a graph on NumPy scalars or arrays of one batch shape; floating errors are silent.

    Returns one value an output, as it falls out: a scalar where nothing depended on the batch.
    """
    with np.errstate(all="ignore"):
        return evaluate(g, inputs)


def evaluate(g: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate as ``run`` does, under the caller's ``errstate``."""
    v: list[Any] = [None] * len(g.op)
    op, a, b, c = g.op, g.a, g.b, g.c
    for i in g.live():
        code = op[i]
        arity = _ARITY[code]
        if arity == 2:
            v[i] = _FUNCTIONS[code](v[a[i]], v[b[i]])
        elif code == OUT:
            v[i] = v[a[i]][b[i]]
        elif code == LOOKUP:
            table = g.tables[b[i]]
            v[i] = table[np.clip(v[a[i]], 0, len(table) - 1)]
        elif arity == 1:
            v[i] = _FUNCTIONS[code](v[a[i]])
        elif arity == 3:
            v[i] = _FUNCTIONS[code](v[a[i]], v[b[i]], v[c[i]])
        elif code == INPUT:
            v[i] = inputs[a[i]]
        elif code == CONST:
            v[i] = _MAKE[g.dtype[i]](g.value[i])
        elif code == REGION:
            region = g.regions[i]
            v[i] = _REGIONS[type(region)](region, [v[j] for j in region.inputs.tolist()])
    return [v[i] for i in g.outputs]


# ---- regions -----------------------------------------------------------------------------------


def _call(region: Call, values: list[Any]) -> list[Any]:
    return evaluate(region.body, values)


def _scan(region: Scan, values: list[Any]) -> list[Any]:
    n, s, length = region.carry, region.slices, region.length
    carry, shared = values[:n], values[n + length * s :]
    rows: list[list[Any]] = [[]] * length
    for step in reversed(range(length)) if region.reverse else range(length):
        slices = values[n + step * s : n + (step + 1) * s]
        out = evaluate(region.body, [*carry, *slices, *shared])
        carry, rows[step] = out[:n], out[n:]
    return carry + [x for row in rows for x in row]


def _while(region: While, values: list[Any]) -> list[Any]:
    n = region.carry
    carry, shared = values[:n], values[n:]
    running: Any = True
    for _ in range(region.limit):
        (test,) = evaluate(region.condition, [*carry, *shared])
        running = running & test
        if not np.any(running):
            break
        new = evaluate(region.body, [*carry, *shared])
        if np.all(running):
            carry = new
        else:
            carry = [np.where(running, y, x) for x, y in zip(carry, new)]
    return carry


def _switch(region: Switch, values: list[Any]) -> list[Any]:
    index = np.clip(values[0], 0, len(region.branches) - 1)
    if np.ndim(index) == 0:
        return evaluate(region.branches[int(index)], values[1:])
    shape = np.broadcast_shapes(*(np.shape(x) for x in values))
    index = np.broadcast_to(index, shape)
    results = [np.zeros(shape, dtype=DTYPES[d]) for d in region.out_dtypes]
    for k, body in enumerate(region.branches):
        mine = index == k
        if mine.any():
            chosen = [x if np.ndim(x) == 0 else np.broadcast_to(x, shape)[mine] for x in values[1:]]
            for result, out in zip(results, evaluate(body, chosen)):
                result[mine] = out
    return results


def _map(region: Map, values: list[Any]) -> list[Any]:
    s, length = region.slices, region.length
    if length == 0:
        return []
    stacked = [
        np.stack(np.broadcast_arrays(*(values[k * s + j] for k in range(length))), axis=-1)
        for j in range(s)
    ]
    shared = [x[..., None] if np.ndim(x) else x for x in values[length * s :]]
    outs = evaluate(region.body, [*stacked, *shared])
    wide = [out if np.ndim(out) else np.broadcast_to(out, (length,)) for out in outs]
    wide = [np.broadcast_to(o, (*o.shape[:-1], length)) for o in wide]
    return [o[..., k] for k in range(length) for o in wide]


def _solve(region: Solve, values: list[Any]) -> list[Any]:
    n, m = region.size, region.columns
    shape = np.broadcast_shapes(*(np.shape(x) for x in values))
    wide = np.stack([np.broadcast_to(x, shape) for x in values], axis=-1)
    a = wide[..., : n * n].reshape(*shape, n, n)
    b = wide[..., n * n :].reshape(*shape, n, m)
    x = eliminate(a, b)
    flat = x.reshape(*shape, n * m)
    return [flat[..., k] for k in range(n * m)]


def eliminate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve by Gaussian elimination with partial pivoting, in the order all backends keep.

    For each column: the first row with the largest magnitude becomes the pivot row; each row
    below subtracts factor * pivot row, left to right, the right-hand sides after. Then back
    substitution from the last row: subtract the known unknowns in ascending order, divide.
    """
    n = a.shape[-1]
    work = np.concatenate([a, b], axis=-1).copy()
    for k in range(n):
        size = np.abs(work[..., k:, k])
        pivot = np.zeros(size.shape[:-1], dtype=np.int64)
        best = size[..., 0]
        for row in range(1, n - k):
            better = size[..., row] > best
            pivot, best = np.where(better, row, pivot), np.where(better, size[..., row], best)
        chosen = np.take_along_axis(work, (pivot + k)[..., None, None], axis=-2)
        np.put_along_axis(work, (pivot + k)[..., None, None], work[..., k : k + 1, :], axis=-2)
        work[..., k : k + 1, :] = chosen
        for row in range(k + 1, n):
            factor = work[..., row, k] / work[..., k, k]
            work[..., row, k + 1 :] -= factor[..., None] * work[..., k, k + 1 :]
    x = work[..., n:]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[..., k, :] -= work[..., k, j, None] * x[..., j, :]
        x[..., k, :] /= work[..., k, k, None]
    return x


def _host(region: Host, values: list[Any]) -> list[Any]:
    shape = np.broadcast_shapes(*(np.shape(x) for x in values)) if values else ()
    if shape == ():
        return region.function(values)
    wide = [np.broadcast_to(x, shape) for x in values]
    results = [np.empty(shape, dtype=DTYPES[d]) for d in region.dtypes]
    for at in np.ndindex(*shape):
        for result, out in zip(results, region.function([x[at] for x in wide])):
            result[at] = out
    return results


_REGIONS: dict[type[Region], Callable[[Any, list[Any]], list[Any]]] = {
    Call: _call,
    Scan: _scan,
    While: _while,
    Switch: _switch,
    Map: _map,
    Solve: _solve,
    Host: _host,
}
