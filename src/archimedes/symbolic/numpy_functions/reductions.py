"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.symbolic.core.conversion import as_float, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.traced_value import NO_VALUE
from archimedes.symbolic.core.ufunc_calls import finish, reduce_ufunc

__all__: list[str] = []


def _unless_given(x: Any, default: Any) -> Any:
    return default if x is NO_VALUE or x is None else x


def _reduction(ufunc: np.ufunc) -> Any:
    def run(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Any:
        return finish(out, reduce_ufunc(ufunc, lift(a), axis, dtype, keepdims, initial, where))

    return run


def _extreme(ufunc: np.ufunc) -> Any:
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Any:
        return finish(out, reduce_ufunc(ufunc, lift(a), axis, None, keepdims, initial, where))

    return run


def _logical(ufunc: np.ufunc) -> Any:
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        *,
        where: Any = NO_VALUE,
    ) -> Any:
        return finish(out, reduce_ufunc(ufunc, lift(a), axis, None, keepdims, None, where))

    return run


implements(np.sum)(_reduction(np.add))
implements(np.prod)(_reduction(np.multiply))
implements(np.max, np.amax)(_extreme(np.maximum))
implements(np.min, np.amin)(_extreme(np.minimum))
implements(np.any)(_logical(np.logical_or))
implements(np.all)(_logical(np.logical_and))


def _count(x: Any, axis: Any, where: Any) -> Any:
    """Number of elements each result is made from: an int, or an array where ``where`` is given."""
    if where is True or where is NO_VALUE:
        axes = (
            range(x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
        )
        return int(np.prod([x.shape[k] for k in axes], dtype=int))
    spread = np.broadcast_to(lift(where), x.shape)
    return np.sum(spread, axis=axis, dtype=x.dtype, keepdims=True)


@implements(np.mean)
def _mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Any:
    x = as_float(a) if dtype is None else lift(a).astype(dtype)
    total = reduce_ufunc(np.add, x, axis, None, True, None, where)
    return finish(out, _drop(total / _count(x, axis, where), axis, keepdims, x.ndim))


def _drop(x: Any, axis: Any, keepdims: Any, ndim: int) -> Any:
    """Remove the axes a reduction kept, unless they were asked for."""
    if _unless_given(keepdims, False):
        return x
    return np.squeeze(x, axis=tuple(range(ndim)) if axis is None else axis)


@implements(np.var)
def _var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    x = as_float(a) if dtype is None else lift(a).astype(dtype)
    ddof = _unless_given(correction, ddof)
    centre = _unless_given(mean, None)
    if centre is None:
        centre = _mean(x, axis, keepdims=True, where=where)
    squares = np.square(x - centre)
    total = reduce_ufunc(np.add, squares, axis, None, True, None, where)
    divisor = _count(x, axis, where) - ddof
    divisor = max(divisor, 0) if type(divisor) in (int, float) else np.maximum(divisor, 0)
    return finish(out, _drop(total / divisor, axis, keepdims, x.ndim))


@implements(np.std)
def _std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    variance = _var(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return finish(out, np.sqrt(variance))


@implements(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return finish(out, _cumulative(np.add, a, axis, dtype))


@implements(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return finish(out, _cumulative(np.multiply, a, axis, dtype))


def _cumulative(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any) -> Any:
    x = lift(a)
    if dtype is not None:
        x = x.astype(dtype)
    elif x.code == B8:
        x = x.astype(np.int64)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return ufunc.accumulate(x, axis=axis)


def _array_api(cumulative: Any) -> Any:
    def run(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        x = lift(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError(
                    "For arrays which have more than one dimension ``axis`` argument is required."
                )
            axis = 0
        result = cumulative(x, axis, dtype)
        if include_initial:
            first = cumulative(np.moveaxis(x, axis, 0)[:0], 0, dtype)
            start = reduce_ufunc(_UFUNC[cumulative], first, 0, dtype, True, None, True)
            result = np.concatenate([np.moveaxis(start, 0, axis), result], axis=axis)
        return finish(out, result)

    return run


_UFUNC = {_cumsum: np.add, _cumprod: np.multiply}
if hasattr(np, "cumulative_sum"):
    implements(np.cumulative_sum)(_array_api(_cumsum))
    implements(np.cumulative_prod)(_array_api(_cumprod))
