"""Products of arrays: matmul and its family, outer, cross, Einstein's summation convention."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.contraction import contract, multiply_matrices
from archimedes.symbolic.core.conversion import lift, lift_many, wrap
from archimedes.symbolic.core.registry import GUFUNCS, implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import DType, Operand, Traced
from archimedes.symbolic.recorded.numpy_source import implement_by_source


def _pair(a: Operand, b: Operand) -> tuple[Any, Any]:
    a, b = lift_many([a, b])
    return a, b


#: What ``x @= y`` of a NumPy array says: the axes that would be used anyway.
_OWN_AXES = ([(-2, -1)] * 3, [(-1,), (-2, -1), (-1,)])


def matmul(a: Operand, b: Operand, **kwargs: Any) -> Traced:
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
    ids = multiply_matrices(trace.graph, left, right, a.code)
    if a.ndim == 1:
        ids = ids[..., 0, :]
    if b.ndim == 1:
        ids = ids[..., 0]
    result = wrap(ids, a.code, trace)
    return result if dtype is None else result.astype(dtype)


def _vecdot(a: Operand, b: Operand, axis: int = -1, **kwargs: Any) -> Traced:
    a, b = _pair(a, b)
    if axis != -1:
        a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    return matmul(a[..., None, :], b[..., :, None])[..., 0, 0]


GUFUNCS[np.matmul], GUFUNCS[np.vecdot] = matmul, _vecdot
if hasattr(np, "matvec"):  # since NumPy 2.2
    GUFUNCS[np.matvec] = lambda a, b, **kwargs: matmul(a, lift(b)[..., :, None])[..., 0]
    GUFUNCS[np.vecmat] = lambda a, b, **kwargs: matmul(lift(a)[..., None, :], b)[..., 0, :]


@implements(np.dot)
def _dot(a: Operand, b: Operand) -> Traced:
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return matmul(a, b)
    return np.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 2]))


@implements(np.vdot)
def _vdot(a: Operand, b: Operand) -> Traced:
    return matmul(lift(a).reshape(-1), lift(b).reshape(-1))


@implements(np.inner)
def _inner(a: Operand, b: Operand) -> Traced:
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return np.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


@implements(np.outer)
def _outer(a: Operand, b: Operand) -> Traced:
    return lift(a).reshape(-1, 1) * lift(b).reshape(1, -1)


@implements(np.cross)
def _cross(
    a: Operand,
    b: Operand,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Traced:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _pair(a, b)
    a, b = _move_axis(a, axisa, -1), _move_axis(b, axisb, -1)
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
    return _move_axis(np.stack(parts, axis=-1), -1, axisc)


def _move_axis(x: Operand, source: int, to: int) -> Traced:
    return x if source == to else np.moveaxis(x, source, to)


@implements(np.trace)
def _trace(
    a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DType = None
) -> Traced:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


implement_by_source(np.tensordot, np.kron, np.linalg.cross, np.linalg.diagonal, np.linalg.matmul)
implement_by_source(np.linalg.matrix_transpose, np.linalg.outer, np.linalg.tensordot)
implement_by_source(np.linalg.trace, np.linalg.vecdot)


# ---- Einstein's summation convention ------------------------------------------------------------

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parse(subscripts: str, shapes: list[tuple[int, ...]]) -> tuple[list[list[Any]], list[Any]]:
    """Split einsum subscripts into labels; axes under an ellipsis get numbered labels."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum: {subscripts!r} names {len(terms)} operands, {len(shapes)} were given"
        )
    labels: list[list[Any]] = []
    most = 0
    for term, shape in zip(terms, shapes):
        named = len(term.replace("...", ""))
        extra = len(shape) - named
        if extra < 0 or (extra > 0 and "..." not in term):
            raise ValueError(f"einsum: operand of shape {shape} does not fit {term!r}")
        most = max(most, extra)
        before, _, after = term.partition("...")
        hidden = list(range(-extra, 0)) if "..." in term else []
        labels.append([*before, *hidden, *after])
    if arrow:
        before, dots, after = right.partition("...")
        output: list[Any] = [*before, *(range(-most, 0) if dots else []), *after]
    else:
        flat = [x for row in labels for x in row]
        once = sorted(x for x in set(flat) if isinstance(x, str) and flat.count(x) == 1)
        output = [*range(-most, 0), *once]
    return labels, output


@implements(np.einsum)
def einsum(
    subscripts: Operand, *operands: Any, dtype: DType = None, casting: str = "safe", **kwargs: Any
) -> Traced:
    """Evaluate the Einstein summation convention, any number of operands, with ellipsis.

    Of booleans the products are "and" and the sums "or", as NumPy's are, unless ``dtype`` is that
    of numbers.
    """
    if not isinstance(subscripts, str):
        return einsum(*_from_lists(subscripts, *operands), dtype=dtype, casting=casting)
    arrays = lift_many(list(operands))
    if dtype is not None:
        arrays = [a.astype(dtype, casting=casting) for a in arrays]
    labels, output = _parse(subscripts, [a.shape for a in arrays])
    sizes: dict[Any, int] = {}
    for row, array in zip(labels, arrays):
        for label, size in zip(row, array.shape):
            if sizes.get(label, 1) not in (1, size) and size != 1:
                raise ValueError(f"einsum: axes labelled {label!r} have sizes that differ")
            sizes[label] = max(size, sizes.get(label, size)) if size != 1 else sizes.get(label, 1)
    if len(arrays) == 1 and {*labels[0]} == {*output}:
        # NumPy gives a view: of the diagonal, or with the axes in another order.
        return arrays[0]._like(np.einsum(subscripts, arrays[0].ids))
    return contract(arrays, labels, output, sizes)


def _from_lists(*arguments: Any) -> tuple[Any, ...]:
    """Turn NumPy's other form, einsum(a, [0, 1], b, [1], [0]), into subscripts and operands."""

    def text(labels: Operand) -> str:
        return "".join("..." if k is Ellipsis else _LETTERS[k] for k in labels)

    pairs = len(arguments) // 2 * 2
    terms = ",".join(text(labels) for labels in arguments[1:pairs:2])
    output = f"->{text(arguments[-1])}" if len(arguments) > pairs else ""
    return terms + output, *arguments[:pairs:2]
