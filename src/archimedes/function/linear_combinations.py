"""Linear combinations of vectors with known weights, recorded in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import is_traced
from archimedes.graph import CODES, F64, Graph, Scan
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.symbolic.core.loop_nests import elementwise, uses_loops

_ADD, _MUL = CODES["add"], CODES["mul"]
#: From so many rows, and so many products in all, on these are recorded as a loop over rows.
ROWS, PRODUCTS = 4, 128


def combine(
    weights: Sequence[float],
    vectors: Sequence[Any],
    start: Any = None,
    scale: Any = None,
    base: Any = None,
) -> Any:
    """Return ``base + scale * (start + sum of weights * vectors)``, in order, without zero weights.

    Vectors are float64, of one shape; ``scale`` is a number; what is None is left out. A step of a
    Runge-Kutta method is made of dozens of these: recorded, one is a loop of its own, or so many
    nodes, at once and not ufunc by ufunc. The operations and their order are the same.

    >>> combine((2.0, 0.0, 1.0), [np.array([1.0]), np.array([5.0]), np.array([3.0])])
    array([5.])
    """
    terms = [(float(w), v) for w, v in zip(weights, vectors) if w]
    combination = _Combination(
        [w for w, _ in terms], *(v is not None for v in (start, scale, base))
    )
    operands = [v for v in (*(v for _, v in terms), start, scale, base) if v is not None]
    if is_traced(*operands):
        arrays = [lift(v) for v in operands]
        if all(a.code == F64 for a in arrays):
            return wrap(_record(arrays, combination), F64)
    return combination.of(operands, lambda a, b: a * b, lambda a, b: a + b, lambda w: w)


def combine_rows(rows: Sequence[Sequence[float]], vectors: Sequence[Any], scale: Any) -> Any:
    """Return ``scale * (sum of weights * vectors)`` for each row of weights, none of them zero.

    As :func:`combine` for one row after the other, with the same operations. Recorded, many rows
    are a loop: its code is that of one row.

    >>> combine_rows(((1.0, 2.0), (3.0, 1.0)), [np.array([1.0]), np.array([5.0])], 2.0)
    array([[22.],
           [16.]])
    """
    arrays = [lift(v) for v in (*vectors, scale)] if is_traced(*vectors, scale) else []
    products = len(rows) * sum(a.size for a in arrays[:-1])
    if len(rows) >= ROWS and products >= PRODUCTS and all(a.code == F64 for a in arrays):
        trace = current_trace()
        if not uses_loops(trace.graph, arrays[0].size, *map(trace.elements_of, arrays)):
            return wrap(_record_loop(rows, arrays), F64)
    return np.stack([combine(row, vectors, None, scale) for row in rows])


def _record_loop(rows: Sequence[Sequence[float]], arrays: Sequence[SymbolicArray]) -> np.ndarray:
    """Return the ids (rows, n) of combinations, made by a loop over rows."""
    trace = current_trace()
    g, body = trace.graph, Graph()
    weights = [body.input(F64) for _ in rows[0]]
    shared: list[int] = []

    def inside(i: int) -> int:
        """Return what stands for a node inside: literals stay what they are."""
        if i in g.value:
            return body.const(g.value[i], F64)
        shared.append(i)
        return body.input(F64)

    *vectors, (scale,) = ([inside(i) for i in trace.ids_of(a).ravel().tolist()] for a in arrays)
    for column in zip(*vectors):
        total = None
        for w, v in zip(weights, column):
            term = body.emit(_MUL, w, v)
            total = term if total is None else body.emit(_ADD, total, term)
        assert total is not None
        body.outputs.append(body.emit(_MUL, scale, total))
    constants = [g.const(w, F64) for row in rows for w in row]
    region = Scan(np.array([*constants, *shared]), body, len(rows), 0, len(weights))
    return g.region(region).reshape(len(rows), len(body.outputs))


class _Combination(NamedTuple):
    """A linear combination, by the weights of its terms and which of the others there are."""

    factors: Sequence[float]
    start: bool
    scale: bool
    base: bool

    def of(self, values: Sequence[Any], mul: Any, add: Any, number: Any) -> Any:
        """Return it for values in order: the terms, start, scale, base; None of nothing."""
        rest = iter(values[len(self.factors) :])
        total = next(rest) if self.start else None
        for factor, value in zip(self.factors, values):
            term = value if factor == 1.0 else mul(number(factor), value)
            total = term if total is None else add(total, term)
        scale = next(rest) if self.scale else None
        if scale is not None and total is not None:
            total = mul(scale, total)
        base = next(rest) if self.base else None
        return total if base is None else base if total is None else add(base, total)

    def append(self, g: Graph, elements: Iterable[Sequence[int]]) -> list[int]:
        """Append it for each element, given by the ids of its values; returns their ids."""
        numbers = {w: g.const(w, F64) for w in self.factors if w != 1.0}
        mul, add = partial(g.emit, _MUL), partial(g.emit, _ADD)
        return [self.of(ids, mul, add, numbers.__getitem__) for ids in elements]


def _record(arrays: Sequence[SymbolicArray], combination: _Combination) -> np.ndarray:
    """Return the ids of a combination for every element of arrays."""
    trace = current_trace()
    g, operands = trace.graph, [trace.elements_of(a) for a in arrays]
    shape = np.broadcast(*operands).shape
    if uses_loops(g, int(np.prod(shape)), *operands):
        dtypes = [F64] * len(operands)
        one = elementwise(
            g, operands, dtypes, shape, lambda body, *ids: combination.append(body, [ids])[0]
        )
        return one[0]
    columns = [np.broadcast_to(trace.ids_of(a), shape).ravel().tolist() for a in arrays]
    return np.array(combination.append(g, zip(*columns)), dtype=np.int64).reshape(shape)
