"""Products of arrays: matmul and its family, outer, cross."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import constant_values, literal_zeros, scalar_ids
from archimedes.graph.dtypes import B8, DTYPES
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.dispatch import lift, lift_many, wrap
from archimedes.symbolic.core.registry import GUFUNCS, implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.ufunc_methods import finish
from archimedes.symbolic.core.wide import (
    in_loops,
    loop_rules,
    reduction,
    threshold,
)
from archimedes.symbolic.numpy_functions.sparse_products import sparse_product

__all__ = ["SHORTEST", "fewest_products", "matmul"]

_ADD, _MUL, _AND, _OR = (CODES[n] for n in ("add", "mul", "and", "or"))


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = lift_many([a, b])
    return a, b


def _inner_products(g: Graph, code: int, rows: list[list[int]], columns: list[list[int]]):
    """Emit every row-by-column product, skipping literal zeros."""
    emit, value = g.emit, g.value
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    zero = g.const(0, code)
    out = []
    for row in rows:
        # Literal zeros of the row drop out of all its products.
        terms = [(k, i) for k, i in enumerate(row) if value.get(i) != 0]
        for column in columns:
            total = zero
            for k, i in terms:
                j = column[k]
                if value.get(j) != 0:
                    total = emit(add, total, emit(mul, i, j))
            out.append(total)
    return out


#: Products of matrices with so many multiplications (times the elements from which arrays are
#: loops) are loops, unless most are by literal zeros.
PRODUCTS = 16
#: Who wants loops for so few elements wants short code: sparse products are loops too, and
#: products from this many multiplications (times that number of elements) on.
SHORTEST = 16
SHORT_PRODUCTS = 2
#: In C code, so many multiplications by a matrix of constants are a loop: a line each is long.
CONSTANT_PRODUCTS = 96
#: From here on, also then: the code would be too long.
MANY_PRODUCTS = 20_000
#: What ``x @= y`` of a NumPy array says: the axes that would be used anyway.
_OWN_AXES = ([(-2, -1)] * 3, [(-1,), (-2, -1), (-1,)])


def fewest_products() -> int:
    """Return the number of multiplications from which a product with several results is a loop."""
    return threshold() * (PRODUCTS if threshold() > SHORTEST else SHORT_PRODUCTS)


def matmul(a: Any, b: Any, **kwargs: Any) -> Any:
    """Multiply matrices as ``np.matmul``: 1-D operands are vectors, leading axes broadcast."""
    dtype = kwargs.pop("dtype", None)
    if kwargs.get("axes") in _OWN_AXES:
        del kwargs["axes"]
    if kwargs.pop("axes", None) is not None or kwargs.pop("axis", None) is not None:
        raise trace_error("np.matmul with axes= cannot be traced", "Use np.moveaxis first.")
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    trace = current_trace()
    left, right = trace.elements_of(a), trace.elements_of(b)
    left = left[None, :] if a.ndim == 1 else left
    right = right[:, None] if b.ndim == 1 else right
    n, k, m = left.shape[-2], left.shape[-1], right.shape[-1]
    if right.shape[-2] != k:
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, shapes {a.shape} "
            f"and {b.shape} (size {right.shape[-2]} is different from {k})"
        )
    batch: tuple[int, ...] = ()
    if left.ndim > 2 or right.ndim > 2:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left = np.broadcast_to(left, (*batch, n, k))
        right = np.broadcast_to(right, (*batch, k, m))
    ids = _in_loops(trace.graph, left, right, a.code)
    if ids is None:
        ids = _in_nodes(trace.graph, left, right, a.code)
    if a.ndim == 1:
        ids = ids[..., 0, :]
    if b.ndim == 1:
        ids = ids[..., 0]
    result = wrap(ids, a.code, trace)
    return result if dtype is None else result.astype(dtype)


def _in_loops(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray | None:
    """Multiply matrices in loops; None where the product is too small for that, or too sparse."""
    *batch, n, k = left.shape
    m, count = right.shape[-1], math.prod(batch)
    dense = count * n * k * m
    # One sum of products is a reduction like others.
    least = threshold() if n * m == 1 else fewest_products()
    short = threshold() <= SHORTEST
    if loop_rules().sparse and not short and _by_constants(g, left, right, dense, code):
        short, least = True, CONSTANT_PRODUCTS
    if dense < least:
        return None
    used = float(_nonzero(g, left, -2) @ _nonzero(g, right, -1)) * count
    # Where short code is wanted, nodes are put together to blocks: that takes a store for each.
    wide = in_loops(g, max(left.size, right.size, dense // 16), left, right)
    if not wide and not (short and used == dense):
        return None
    if loop_rules().sparse or short:
        made = sparse_product(g, left, right, code) if left.ndim == right.ndim == 2 else None
        if made is not None:
            return made
    if short:
        used = dense
    if used < least or (2 * used <= dense and used < MANY_PRODUCTS):
        return None
    axes = len(batch)
    rows, columns, inner = axes, axes + 1, axes + 2
    shape = (*batch, n, m, k)
    # Axes of length 1 are left out: a matrix times a vector has one.
    kept = [axis for axis in range(axes + 2) if shape[axis] > 1]
    place = {axis: at for at, axis in enumerate([*kept, inner])}
    operands = []
    for ids, last in ((left, (rows, inner)), (right, (inner, columns))):
        named = [(axis, size) for axis, size in zip((*range(axes), *last), ids.shape)]
        stays = [(axis, size) for axis, size in named if axis in place]
        part = ids.reshape([size for _, size in stays])
        operands.append((part, code, [place[axis] for axis, _ in stays]))
    space = tuple(shape[axis] for axis in (*kept, inner))
    add, mul = ("or", _AND) if code == B8 else ("add", _MUL)
    made = reduction(g, operands, space, len(kept), lambda body, x, y: body.emit(mul, x, y), add)
    return made.reshape((*batch, n, m))


def _by_constants(g: Graph, left: np.ndarray, right: np.ndarray, dense: int, code: int) -> bool:
    """Return whether one operand is a matrix of known numbers, and the other much smaller.

    The other one is put into memory first, which takes a store for each of its elements.
    """
    for known, other in ((left, right), (right, left)):
        if dense >= CONSTANT_PRODUCTS and 4 * other.size <= dense:
            ids = known.reshape(-1)
            if constant_values(g, ids, DTYPES[code]) is not None:
                return True
    return False


def _nonzero(g: Graph, ids: np.ndarray, axis: int) -> np.ndarray:
    """Count along an axis what is not a literal zero, in the first matrix of a stack."""
    return (1.0 - literal_zeros(g, ids.reshape(-1, *ids.shape[-2:])[0])).sum(axis=axis)


def _in_nodes(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray:
    """Multiply matrices element by element, without literal zeros."""
    left, right = scalar_ids(g, left), scalar_ids(g, right)
    *batch, n, k = left.shape
    m = right.shape[-1]
    count = math.prod(batch)  # not -1: empty arrays have no size to infer it from
    flat: list[int] = []
    for x, y in zip(left.reshape(count, n, k), right.reshape(count, k, m)):
        flat += _inner_products(g, code, x.tolist(), y.T.tolist())
    return np.array(flat, dtype=np.int64).reshape(*batch, n, m)


def _vecdot(a: Any, b: Any, axis: int = -1, **kwargs: Any) -> Any:
    a, b = _pair(a, b)
    if axis != -1:
        a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    return matmul(a[..., None, :], b[..., :, None])[..., 0, 0]


def _matvec(a: Any, b: Any, **kwargs: Any) -> Any:
    return matmul(a, lift(b)[..., :, None])[..., 0]


def _vecmat(a: Any, b: Any, **kwargs: Any) -> Any:
    return matmul(lift(a)[..., None, :], b)[..., 0, :]


GUFUNCS[np.matmul] = matmul
for _name, _function in (("vecdot", _vecdot), ("matvec", _matvec), ("vecmat", _vecmat)):
    if hasattr(np, _name):  # newer releases have them
        GUFUNCS[getattr(np, _name)] = _function


@implements(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return finish(out, a * b)
    if b.ndim <= 2:
        return finish(out, matmul(a, b))
    return finish(out, np.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 2])))


@implements(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return matmul(lift(a).reshape(-1), lift(b).reshape(-1))


@implements(np.inner)
def _inner(a: Any, b: Any) -> Any:
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return np.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


@implements(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    return finish(out, lift(a).reshape(-1, 1) * lift(b).reshape(1, -1))


@implements(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any) -> Any:
    return _outer(x1, x2)


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = _pair(a, b)
    axes_a: list[Any]
    axes_b: list[Any]
    if isinstance(axes, (int, np.integer)):
        axes_a = list(range(a.ndim - int(axes), a.ndim))
        axes_b = list(range(int(axes)))
    else:
        axes_a, axes_b = ([x] if isinstance(x, (int, np.integer)) else list(x) for x in axes)
    axes_a = [x % a.ndim for x in axes_a]
    axes_b = [x % b.ndim for x in axes_b]
    if [a.shape[x] for x in axes_a] != [b.shape[x] for x in axes_b]:
        raise ValueError("shape-mismatch for sum")
    free_a = [x for x in range(a.ndim) if x not in axes_a]
    free_b = [x for x in range(b.ndim) if x not in axes_b]
    size = math.prod(a.shape[x] for x in axes_a)
    shape_a, shape_b = [a.shape[x] for x in free_a], [b.shape[x] for x in free_b]
    rows = a.transpose(free_a + axes_a).reshape(math.prod(shape_a), size)
    columns = b.transpose(axes_b + free_b).reshape(size, math.prod(shape_b))
    return matmul(rows, columns).reshape(shape_a + shape_b)


@implements(np.cross)
def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _pair(a, b)
    a, b = _moved(a, axisa, -1), _moved(b, axisb, -1)
    if {a.shape[-1], b.shape[-1]} - {2, 3}:
        raise ValueError(
            f"np.cross needs vectors of length 3 along the axis, got {a.shape} and {b.shape}"
        )
    if a.shape[-1] == b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    # A plane vector beside one of length 3 has the third component zero.
    a0, a1, a2 = (a[..., k] if k < a.shape[-1] else np.zeros_like(a[..., 0]) for k in range(3))
    b0, b1, b2 = (b[..., k] if k < b.shape[-1] else np.zeros_like(b[..., 0]) for k in range(3))
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return _moved(np.stack(parts, axis=-1), -1, axisc)


def _moved(x: Any, source: int, to: int) -> Any:
    return x if source == to else np.moveaxis(x, source, to)


@implements(np.linalg.cross)
def _linalg_cross(x1: Any, x2: Any, axis: int = -1) -> Any:
    return _cross(x1, x2, axis=axis)


@implements(np.kron)
def _kron(a: Any, b: Any) -> Any:
    a, b = _pair(a, b)
    n = max(a.ndim, b.ndim)
    a = a.reshape((1,) * (n - a.ndim) + a.shape)
    b = b.reshape((1,) * (n - b.ndim) + b.shape)
    wide_a = np.expand_dims(a, tuple(range(1, 2 * n, 2)))
    wide_b = np.expand_dims(b, tuple(range(0, 2 * n, 2)))
    return (wide_a * wide_b).reshape([i * j for i, j in zip(a.shape, b.shape)])


@implements(np.trace)
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@implements(np.linalg.matmul)
def _linalg_matmul(x1: Any, x2: Any) -> Any:
    return matmul(x1, x2)
