"""Reductions beyond sum and mean: argmax, nan-versions, average, covariance, counting."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.graph.dtypes import is_float
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import as_float, lift, lift_many
from archimedes.symbolic.core.ordering import first_extreme
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import NO_VALUE, as_constant
from archimedes.symbolic.core.ufunc_calls import finish
from archimedes.symbolic.numpy_functions.sorting import sort

__all__ = ["first_extreme"]


def _position(largest: bool, without_nan: bool) -> Callable[..., Any]:
    replacement = -np.inf if largest else np.inf

    def run(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
        x = lift(a)
        if without_nan and is_float(x.code):
            x = np.where(np.isnan(x), replacement, x)
        result = first_extreme(x, axis, largest)
        if keepdims is NO_VALUE or not keepdims:
            return finish(out, result)
        every = result.reshape((1,) * x.ndim) if axis is None else np.expand_dims(result, axis)
        return finish(out, every)

    return run


for _function, _largest, _nanless in (
    (np.argmax, True, False),
    (np.argmin, False, False),
    (np.nanargmax, True, True),
    (np.nanargmin, False, True),
):
    implements(_function)(_position(_largest, _nanless))


# ---- without nan -------------------------------------------------------------------------------


def _replaced(a: Any, value: float) -> Any:
    x = lift(a)
    return np.where(np.isnan(x), value, x) if is_float(x.code) else x


def _without_nan(function: Any, neutral: float) -> Callable[..., Any]:
    def run(a: Any, *args: Any, **kwargs: Any) -> Any:
        return function(_replaced(a, neutral), *args, **kwargs)

    return run


for _name, _neutral in (("sum", 0.0), ("prod", 1.0), ("cumsum", 0.0), ("cumprod", 1.0)):
    implements(getattr(np, f"nan{_name}"))(_without_nan(getattr(np, _name), _neutral))


def _nan_extreme(ufunc: np.ufunc) -> Callable[..., Any]:
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Any:
        given = {"keepdims": keepdims, "initial": initial, "where": where}
        kwargs = {k: v for k, v in given.items() if v is not NO_VALUE}
        return finish(out, ufunc.reduce(lift(a), axis=axis, **kwargs))

    return run


implements(np.nanmax)(_nan_extreme(np.fmax))
implements(np.nanmin)(_nan_extreme(np.fmin))


def _present(x: Any, where: Any) -> Any:
    """Mask of the elements that count: not nan, and chosen by ``where``."""
    mask = ~np.isnan(x)
    return mask if where is NO_VALUE or where is True else mask & np.broadcast_to(where, x.shape)


@implements(np.nanmean)
def _nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Any:
    x = as_float(a) if dtype is None else lift(a).astype(dtype)
    return finish(out, np.mean(x, axis=axis, keepdims=keepdims, where=_present(x, where)))


@implements(np.nanvar)
def _nanvar(
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
    ddof = ddof if correction is NO_VALUE else correction
    mask = _present(x, where)
    count = np.sum(mask, axis=axis, keepdims=True) - ddof
    centre = np.mean(x, axis=axis, keepdims=True, where=mask) if mean is NO_VALUE else mean
    total = np.sum(np.where(mask, np.square(x - centre), 0.0), axis=axis, keepdims=True)
    result = np.where(count > 0, total / count.astype(x.dtype), np.nan)
    if keepdims is NO_VALUE or not keepdims:
        result = np.squeeze(result, axis=tuple(range(x.ndim)) if axis is None else axis)
    return finish(out, result)


@implements(np.nanstd)
def _nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NO_VALUE,
    **kwargs: Any,
) -> Any:
    return finish(out, np.sqrt(_nanvar(a, axis, dtype, None, ddof, keepdims, **kwargs)))


# ---- averages and counts -----------------------------------------------------------------------


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    high, low = (f(a, axis=axis, keepdims=keepdims) for f in (np.max, np.min))
    return finish(out, high - low)


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(lift(a).astype(bool), axis=axis, keepdims=keepdims)


def _weights_like(weights: Any, a: Any, axis: Any) -> Any:
    """Spread weights given along one or some axes over the whole array's dimensions."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis")
    weights = np.transpose(weights, np.argsort(axes))
    return weights.reshape(tuple(n if k in axes else 1 for k, n in enumerate(a.shape)))


@implements(np.average)
def _average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = NO_VALUE,
) -> Any:
    a = lift(a)
    if weights is None:
        average = np.mean(a, axis=axis, keepdims=keepdims)
        total = lift(np.asarray(a.size / average.size)).astype(average.dtype)
    else:
        a, weights = lift_many([a, lift(weights)])
        if not is_float(a.code):
            a, weights = as_float(a), as_float(weights)
        weights = np.broadcast_to(_weights_like(weights, a, axis), a.shape)
        total = np.sum(weights, axis=axis, keepdims=keepdims)
        average = np.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (average, np.broadcast_to(total, average.shape).copy()) if returned else average


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Estimate a covariance matrix from observations, one variable per row."""
    parts = []
    for k, given in enumerate((m, y)):
        if given is None:
            continue
        x = lift(given).astype(np.float64 if dtype is None else dtype)
        turn = not rowvar and (x.ndim != 1 if k == 0 else np.atleast_2d(x).shape[0] != 1)
        parts.append(np.atleast_2d(x).T if turn else np.atleast_2d(x))
    x = np.concatenate(parts, axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    given = [lift(w).astype(np.float64) for w in (fweights, aweights) if w is not None]
    if not given:
        freedom: Any = max(x.shape[1] - ddof, 0)
        centred = x - np.mean(x, axis=1, keepdims=True)
        scaled = centred
    else:
        weights = given[0] if len(given) == 1 else given[0] * given[1]
        total = np.sum(weights)
        if ddof == 0:
            freedom = total
        elif aweights is None:
            freedom = total - ddof
        else:
            freedom = total - ddof * np.sum(weights * given[-1]) / total
        centred = x - np.average(x, axis=1, weights=weights)[:, None]
        scaled = centred * weights
    return np.squeeze(np.dot(centred, scaled.T) * np.true_divide(1, lift(freedom)))


@implements(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = np.sqrt(np.diag(c))
    return np.clip(c / deviations[:, None] / deviations, -1, 1)


def _edges(bins: Any, given_range: Any) -> np.ndarray:
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
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
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


# ---- order statistics ---------------------------------------------------------------------------


def _lines(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """Bring the axes to reduce to the front, as one; returns it and the shape with ones kept."""
    x = lift(a)
    axes = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    count = int(np.prod([x.shape[k] for k in axes], dtype=int))
    return x.transpose(axes + rest).reshape((count, *(x.shape[k] for k in rest))), kept


def _count(lines: Any) -> Any:
    """Number of elements along the first axis that are not nan."""
    return np.sum(~np.isnan(lines), axis=0)


def _pick(ordered: Any, index: Any) -> Any:
    """Take one element per column, at traced positions."""
    return np.take_along_axis(ordered, index[None], axis=0)[0]


def _median_of(lines: Any, skip_nan: bool) -> Any:
    ordered = sort(lines, axis=0)
    if skip_nan and is_float(lines.code):
        count = _count(lines)
        # With nothing left both positions name the last element, which then is nan.
        low, high = _pick(ordered, (count - 1) // 2), _pick(ordered, count // 2)
        return np.where(count % 2 == 1, low, (low + high) / 2)
    n = len(lines)
    if n == 0:
        return np.mean(as_float(lines), axis=0)
    middle = np.mean(ordered[(n - 1) // 2 : n // 2 + 1], axis=0)
    return np.where(np.isnan(ordered[-1]), ordered[-1], middle) if is_float(lines.code) else middle


def _median(skip_nan: bool) -> Callable[..., Any]:
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:
        lines, kept = _lines(a, axis)
        result = _median_of(lines, skip_nan)
        keep = keepdims is not NO_VALUE and keepdims
        return finish(out, result.reshape(kept) if keep else result)

    return run


implements(np.median)(_median(False))
implements(np.nanmedian)(_median(True))


def _between(low: Any, high: Any, t: Any) -> Any:
    """Interpolate from the nearer end, as NumPy does, so that both ends are met exactly."""
    step = high - low
    return np.where(t >= 0.5, high - step * (1 - t), low + step * t)


#: Methods that return an element of the data, in its dtype.
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _at_position(ordered: Any, position: Any, weak: bool) -> Any:
    """Read sorted lines at one fractional static position."""
    last = len(ordered) - 1
    low, high = int(np.floor(position)), int(np.floor(position)) + 1
    if position >= last:
        low = high = -1
    elif position < 0:
        low = high = 0
    t = position - low
    return _between(ordered[low], ordered[high], float(t) if weak else t)


def _positions(n: int, q: np.ndarray, method: str) -> np.ndarray:
    """Fractional positions of quantiles in a sorted line of n elements."""
    if method == "linear":
        return (n - 1) * q
    # In the line 0, 1, 2 ... each value is its own position: any method shows where it reads.
    return np.quantile(np.arange(float(n)), q, method=method)  # type: ignore[call-overload]


def _static(lines: Any, q: np.ndarray, method: str, weak: bool) -> Any:
    ordered = sort(lines, axis=0)
    positions = _positions(len(lines), q, method)
    if method in _DISCRETE:
        result = ordered[positions.astype(np.int64)]
    else:
        flat = [_at_position(ordered, p, weak) for p in positions.ravel()]
        result = np.stack(flat).reshape(q.shape + lines.shape[1:])
    return np.where(np.isnan(ordered[-1]), np.nan, result) if is_float(lines.code) else result


def _traced(lines: Any, q: Any, method: str, weak: bool, skip_nan: bool) -> Any:
    """Where the quantile, or the number of elements, is known only when the program runs."""
    if method != "linear":
        raise trace_error(
            f"quantiles with method={method!r} need static positions",
            "Use method='linear', or make q static and the data free of nan.",
        )
    ordered = sort(lines, axis=0)
    rest = lines.shape[1:]
    last = np.broadcast_to(lift(_count(lines) if skip_nan else len(lines)) - 1, rest)
    results = []
    for one in lift(q).reshape(-1):
        position = last * one
        low = np.clip(np.floor(position).astype(np.int64), 0, np.maximum(last, 0))
        t = position - low
        ends = _pick(ordered, low), _pick(ordered, np.minimum(low + 1, np.maximum(last, 0)))
        results.append(_between(*ends, t.astype(as_float(lines).dtype) if weak else t))
    result = np.stack(results).reshape(np.shape(q) + rest)
    if skip_nan or not is_float(lines.code):
        return result
    return np.where(np.isnan(ordered[-1]), np.nan, result)


def _quantile(scale: float, skip_nan: bool) -> Callable[..., Any]:
    def run(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        if weights is not None:
            raise trace_error(
                "quantiles with weights cannot be traced", "Leave weights out, or use arc.callback."
            )
        lines, kept = _lines(a, axis)
        if len(lines) == 0:
            raise IndexError("cannot take a quantile of an empty axis")
        weak = type(q) in (int, float) or getattr(q, "weak", False)
        q = as_constant(q)
        skips = skip_nan and is_float(lines.code)
        if isinstance(q, SymbolicArray):
            q = q if scale == 1 else np.true_divide(q, scale)
            result = _traced(lines, q, method, weak, skips)
        else:
            q = np.asanyarray(q)
            if scale != 1:
                q = np.true_divide(q, lines.dtype.type(scale) if is_float(lines.code) else scale)
            if not np.all((q >= 0) & (q <= 1)):
                raise ValueError(
                    "Percentiles must be in the range [0, 100]"
                    if scale == 100
                    else "Quantiles must be in the range [0, 1]"
                )
            if skips:
                result = _traced(lines, q, method, weak, True)
            else:
                result = _static(lines, q, method, weak)
        keep = keepdims is not NO_VALUE and keepdims
        return finish(out, result.reshape(np.shape(q) + kept) if keep else result)

    return run


for _function, _scale, _nanless in (
    (np.quantile, 1, False),
    (np.percentile, 100, False),
    (np.nanquantile, 1, True),
    (np.nanpercentile, 100, True),
):
    implements(_function)(_quantile(_scale, _nanless))
