"""Averages, covariance, counts, and order statistics: median, quantiles, percentiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from archimedes.graph.dtypes import is_float
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import as_float, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Axis, DType, Operand, Traced, as_constant
from archimedes.symbolic.numpy_functions.sorting import sort
from archimedes.symbolic.recorded.numpy_source import implement_by_source

__all__: list[str] = []


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
    if not factors:
        freedom: Traced = max(x.shape[1] - ddof, 0)
        centred = x - np.mean(x, axis=1, keepdims=True)
        scaled = centred
    else:
        weights = factors[0] if len(factors) == 1 else factors[0] * factors[1]
        total = np.sum(weights)
        if ddof == 0:
            freedom = total
        elif aweights is None:
            freedom = total - ddof
        else:
            freedom = total - ddof * np.sum(weights * factors[-1]) / total
        centred = x - np.average(x, axis=1, weights=weights)[:, None]
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


# ---- order statistics ---------------------------------------------------------------------------


def _lines(a: Operand, axis: Axis) -> tuple[Traced, tuple[int, ...]]:
    """Bring the axes to reduce to the front, as one; return it and the shape with ones in it."""
    x = lift(a)
    axes = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    count = int(np.prod([x.shape[k] for k in axes], dtype=int))
    return x.transpose(axes + rest).reshape((count, *(x.shape[k] for k in rest))), shape


def _count(lines: Operand) -> Traced:
    """Number of elements along the first axis that are not nan."""
    return np.sum(~np.isnan(lines), axis=0)


def _pick(ordered: Operand, index: Operand) -> Traced:
    """Take one element per column, at traced positions."""
    return np.take_along_axis(ordered, index[None], axis=0)[0]


def _median_of(lines: Operand, skip_nan: bool) -> Traced:
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


def _median(skip_nan: bool) -> Callable[..., Traced]:
    def run(
        a: Operand, axis: Axis = None, overwrite_input: bool = False, keepdims: bool = False
    ) -> Traced:
        lines, shape = _lines(a, axis)
        result = _median_of(lines, skip_nan)
        return result.reshape(shape) if keepdims else result

    return run


implements(np.median)(_median(skip_nan=False))
implements(np.nanmedian)(_median(skip_nan=True))


def _between(low: Operand, high: Operand, t: Operand) -> Traced:
    """Interpolate from the nearer end, as NumPy does, so that both ends are met exactly."""
    step = high - low
    return np.where(t >= 0.5, high - step * (1 - t), low + step * t)


#: Methods that return an element of the data, in its dtype.
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _at_position(ordered: Operand, position: Operand, weak: bool) -> Traced:
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


def _read_at_static(lines: Operand, q: np.ndarray, method: str, weak: bool) -> Traced:
    ordered = sort(lines, axis=0)
    positions = _positions(len(lines), q, method)
    if method in _DISCRETE:
        result = ordered[positions.astype(np.int64)]
    else:
        flat = [_at_position(ordered, p, weak) for p in positions.ravel()]
        result = np.stack(flat).reshape(q.shape + lines.shape[1:])
    return np.where(np.isnan(ordered[-1]), np.nan, result) if is_float(lines.code) else result


def _read_at_traced(lines: Operand, q: Operand, method: str, weak: bool, skip_nan: bool) -> Traced:
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


def _quantile(scale: float, skip_nan: bool) -> Callable[..., Traced]:
    def run(
        a: Operand,
        q: Operand,
        axis: Axis = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Operand = None,
    ) -> Traced:
        if weights is not None:
            raise trace_error(
                "quantiles with weights cannot be traced", "Leave weights out, or use arc.callback."
            )
        lines, shape = _lines(a, axis)
        if len(lines) == 0:
            raise IndexError("cannot take a quantile of an empty axis")
        weak = type(q) in (int, float) or getattr(q, "weak", False)
        q = as_constant(q)
        skips = skip_nan and is_float(lines.code)
        if isinstance(q, SymbolicArray):
            q = q if scale == 1 else np.true_divide(q, scale)
        else:
            q = np.asanyarray(q)
            if scale != 1:
                q = np.true_divide(q, lines.dtype.type(scale) if is_float(lines.code) else scale)
            if not np.all((q >= 0) & (q <= 1)):
                name = "Percentiles" if scale == 100 else "Quantiles"
                raise ValueError(f"{name} must be in the range [0, {scale}]")
        if skips or isinstance(q, SymbolicArray):
            result = _read_at_traced(lines, q, method, weak, skips)
        else:
            result = _read_at_static(lines, q, method, weak)
        return result.reshape(np.shape(q) + shape) if keepdims else result

    return run


implements(np.quantile)(_quantile(1, skip_nan=False))
implements(np.percentile)(_quantile(100, skip_nan=False))
implements(np.nanquantile)(_quantile(1, skip_nan=True))
implements(np.nanpercentile)(_quantile(100, skip_nan=True))
