"""Order statistics: median, quantiles and percentiles, with and without nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.graph.dtypes import is_float
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.dispatch import as_float, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_content import known
from archimedes.symbolic.core.ufunc_methods import finish
from archimedes.symbolic.numpy_functions.sorting import sort

__all__: list[str] = []


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
        keep = keepdims is not np._NoValue and keepdims
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
        q = known(q)
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
        keep = keepdims is not np._NoValue and keepdims
        return finish(out, result.reshape(np.shape(q) + kept) if keep else result)

    return run


for _function, _scale, _nanless in (
    (np.quantile, 1, False),
    (np.percentile, 100, False),
    (np.nanquantile, 1, True),
    (np.nanpercentile, 100, True),
):
    implements(_function)(_quantile(_scale, _nanless))
