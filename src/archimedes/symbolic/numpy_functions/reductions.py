"""Reductions along axes: sums, means, extremes and their positions, covariance, histograms.

Arguments are those of NumPy's functions, without ``out``: ``core/registry.py`` writes to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, is_float
from archimedes.symbolic.core.conversion import as_float, lift
from archimedes.symbolic.core.ordering import first_extreme
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Axis, DType, Operand, Traced, as_constant
from archimedes.symbolic.core.ufunc_calls import reduce_ufunc
from archimedes.symbolic.recorded.numpy_source import implement_by_source

__all__: list[str] = []


def _with_dtype(ufunc: np.ufunc) -> Callable[..., Traced]:
    return lambda a, axis=None, *args, **kw: reduce_ufunc(ufunc, a, axis, *args, **kw)


def _without_dtype(ufunc: np.ufunc) -> Callable[..., Traced]:
    return lambda a, axis=None, *args, **kw: reduce_ufunc(ufunc, a, axis, None, *args, **kw)


implements(np.sum)(_with_dtype(np.add))
implements(np.prod)(_with_dtype(np.multiply))
implements(np.max, np.amax)(_without_dtype(np.maximum))
implements(np.min, np.amin)(_without_dtype(np.minimum))
implements(np.nanmax)(_without_dtype(np.fmax))
implements(np.nanmin)(_without_dtype(np.fmin))
implements(np.any)(_without_dtype(np.logical_or))
implements(np.all)(_without_dtype(np.logical_and))


def _count(x: Traced, axis: Axis, where: Operand) -> int | Traced:
    """Return the number of elements each result is made from: an array if ``where`` is given."""
    if where is True:
        axes = range(x.ndim) if axis is None else axis
        axes = np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)
        return int(np.prod([x.shape[k] for k in axes], dtype=int))
    spread = np.broadcast_to(lift(where), x.shape)
    return np.sum(spread, axis=axis, dtype=x.dtype, keepdims=True)


def _drop_axes(x: Traced, axis: Axis, keepdims: bool) -> Traced:
    """Remove the axes a reduction kept, unless they were asked for."""
    if keepdims:
        return x
    return np.squeeze(x, axis=tuple(range(x.ndim)) if axis is None else axis)


def _mask_nan(x: Traced, where: Operand) -> Traced:
    """Return which elements count: those that are not nan, and are chosen by ``where``."""
    mask = ~np.isnan(x)
    return mask if where is True else mask & np.broadcast_to(where, x.shape)


def _mean_of(skip_nan: bool) -> Callable[..., Traced]:
    def mean(
        a: Operand,
        axis: Axis = None,
        dtype: DType = None,
        keepdims: bool = False,
        *,
        where: Operand = True,
    ) -> Traced:
        x = as_float(a) if dtype is None else lift(a).astype(dtype)
        where = _mask_nan(x, where) if skip_nan else where
        total = reduce_ufunc(np.add, x, axis, None, True, None, where)
        return _drop_axes(total / _count(x, axis, where), axis, keepdims)

    return mean


_mean = implements(np.mean)(_mean_of(skip_nan=False))
implements(np.nanmean)(_mean_of(skip_nan=True))


def _variance_of(skip_nan: bool, root: bool) -> Callable[..., Traced]:
    def variance(
        a: Operand,
        axis: Axis = None,
        dtype: DType = None,
        ddof: Operand = 0,
        keepdims: bool = False,
        *,
        where: Operand = True,
        mean: Operand = None,
        correction: Operand = None,
    ) -> Traced:
        x = as_float(a) if dtype is None else lift(a).astype(dtype)
        where = _mask_nan(x, where) if skip_nan else where
        centre = _mean(x, axis, keepdims=True, where=where) if mean is None else mean
        total = reduce_ufunc(np.add, np.square(x - centre), axis, None, True, None, where)
        freedom = _count(x, axis, where) - (ddof if correction is None else correction)
        if skip_nan:
            result = np.where(freedom > 0, total / freedom, np.nan)
        elif type(freedom) in (int, float):
            result = total / max(freedom, 0)
        else:
            result = total / np.maximum(freedom, 0)
        result = _drop_axes(result, axis, keepdims)
        return np.sqrt(result) if root else result

    return variance


implements(np.var)(_variance_of(skip_nan=False, root=False))
implements(np.std)(_variance_of(skip_nan=False, root=True))
implements(np.nanvar)(_variance_of(skip_nan=True, root=False))
implements(np.nanstd)(_variance_of(skip_nan=True, root=True))


# ---- positions ---------------------------------------------------------------------------------


def _position(largest: bool, without_nan: bool) -> Callable[..., Traced]:
    replacement = -np.inf if largest else np.inf

    def run(a: Operand, axis: int | None = None, *, keepdims: bool = False) -> Traced:
        x = lift(a)
        if without_nan and is_float(x.code):
            x = np.where(np.isnan(x), replacement, x)
        result = first_extreme(x, axis, largest)
        if not keepdims:
            return result
        return result.reshape((1,) * x.ndim) if axis is None else np.expand_dims(result, axis)

    return run


implements(np.argmax)(_position(largest=True, without_nan=False))
implements(np.argmin)(_position(largest=False, without_nan=False))
implements(np.nanargmax)(_position(largest=True, without_nan=True))
implements(np.nanargmin)(_position(largest=False, without_nan=True))


# ---- cumulative --------------------------------------------------------------------------------


def _cumulative(ufunc: np.ufunc) -> Callable[..., Traced]:
    def run(a: Operand, axis: int | None = None, dtype: DType = None) -> Traced:
        x = lift(a) if dtype is None else lift(a).astype(dtype)
        if dtype is None and x.code == B8:
            x = x.astype(np.int64)
        return ufunc.accumulate(x.reshape(-1) if axis is None else x, axis=axis or 0)

    return run


implements(np.cumsum)(_cumulative(np.add))
implements(np.cumprod)(_cumulative(np.multiply))
if hasattr(np, "cumulative_sum"):
    implement_by_source(np.cumulative_sum, np.cumulative_prod)


# ---- without nan -------------------------------------------------------------------------------


def _without_nan(function: Callable[..., Traced], neutral: float) -> Callable[..., Traced]:
    def run(a: Operand, *args: Any, **kwargs: Any) -> Traced:
        x = lift(a)
        x = np.where(np.isnan(x), neutral, x) if is_float(x.code) else x
        return function(x, *args, **kwargs)

    return run


implements(np.nansum)(_without_nan(_with_dtype(np.add), 0.0))
implements(np.nanprod)(_without_nan(_with_dtype(np.multiply), 1.0))
implements(np.nancumsum)(_without_nan(_cumulative(np.add), 0.0))
implements(np.nancumprod)(_without_nan(_cumulative(np.multiply), 1.0))


# ---- averages, covariance, counts --------------------------------------------------------------


@implements(np.ptp)
def _ptp(a: Operand, axis: Axis = None, keepdims: bool = False) -> Traced:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


@implements(np.count_nonzero)
def _count_nonzero(a: Operand, axis: Axis = None, *, keepdims: bool = False) -> Traced:
    return np.sum(lift(a).astype(bool), axis=axis, keepdims=keepdims)


@implements(np.cov)
def cov(
    m: Operand,
    y: Operand = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Operand = None,
    aweights: Operand = None,
    *,
    dtype: DType = None,
) -> Traced:
    """Estimate a covariance matrix from observations, one variable per row."""
    parts = []
    for k, part in enumerate(p for p in (m, y) if p is not None):
        x = lift(part).astype(np.float64 if dtype is None else dtype)
        rows = np.atleast_2d(x)
        by_columns = not rowvar and (x.ndim != 1 if k == 0 else rows.shape[0] != 1)
        parts.append(rows.T if by_columns else rows)
    x = np.concatenate(parts, axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    factors = [lift(w).astype(np.float64) for w in (fweights, aweights) if w is not None]
    weights = reduce(mul, factors) if factors else None
    centred = x - np.average(x, axis=1, weights=weights)[:, None]
    freedom: Traced = max(x.shape[1] - ddof, 0)
    scaled = centred
    if weights is not None:
        total = np.sum(weights)
        if ddof == 0:
            freedom = total
        elif aweights is None:
            freedom = total - ddof
        else:
            freedom = total - ddof * np.sum(weights * factors[-1]) / total
        scaled = centred * weights
    return np.squeeze(np.dot(centred, scaled.T) * np.true_divide(1, lift(freedom)))


implement_by_source(np.corrcoef)
implement_by_source(np.average, unknown_is_false=True)  # weights must not sum to zero


def _edges(bins: Operand, given_range: Operand) -> np.ndarray:
    bins, given_range = as_constant(bins), as_constant(given_range)
    if isinstance(bins, str) or (np.ndim(bins) == 0 and given_range is None):
        raise trace_error(
            "np.histogram chooses its bins from the values",
            "Give the edges, np.histogram(x, np.linspace(low, high, n + 1)), or range=(low, high).",
        )
    if np.ndim(bins) == 0:
        return np.histogram_bin_edges(np.zeros(0), bins, given_range)
    return np.asarray(bins)


@implements(np.histogram)
def _histogram(
    a: Operand,
    bins: Operand = 10,
    range: Operand = None,
    density: Operand = None,
    weights: Operand = None,
) -> Traced:
    """Count values between static edges; the last bin includes its upper edge."""
    x = lift(a).reshape(-1)
    edges = _edges(bins, range)
    amounts = 1 if weights is None else lift(weights).reshape(-1)
    counts = []
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        upper = x <= high if k == len(edges) - 2 else x < high
        counts.append(np.sum(np.where((x >= low) & upper, amounts, 0)))
    result = np.stack(counts)
    if density:
        result = result / np.diff(edges) / np.sum(result)
    return result, lift(edges)
