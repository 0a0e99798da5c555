"""Differences, integrals, interpolation, convolution, and polynomials by their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.array_scans import fold_steps
from archimedes.symbolic.core.contraction import slide_products
from archimedes.symbolic.core.conversion import as_float, copy_layout, lift, lift_many
from archimedes.symbolic.core.indexing import read_table
from archimedes.symbolic.core.ordering import count_below, segment_ends
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Axis, Operand, Traced, as_constant
from archimedes.symbolic.recorded.numpy_source import implement_by_source, numpy_source

__all__: list[str] = []

implement_by_source(np.diff, np.ediff1d, np.trapezoid, np.unwrap)


def _spacing(spacing: Operand, length: int) -> Traced:
    """Turn coordinates into steps; equal static steps become one number, as in NumPy."""
    if np.ndim(spacing) == 0:
        return spacing
    if np.ndim(spacing) != 1:
        raise ValueError("distances must be either scalars or 1d")
    if len(spacing) != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = np.diff(as_float(spacing))
    static = as_constant(steps)
    if not isinstance(static, SymbolicArray) and np.all(static == static[0]):
        return static[0]
    return steps


def _gradient_along(f: Operand, h: Operand, edge_order: int) -> Traced:
    """Second-order central differences along the first axis, one-sided at its ends."""
    if np.ndim(h) == 0:
        inner = (f[2:] - f[:-2]) / (2.0 * h)
        first, last = (f[1] - f[0]) / h, (f[-1] - f[-2]) / h
        if edge_order == 2:
            first = -1.5 / h * f[0] + 2.0 / h * f[1] + -0.5 / h * f[2]
            last = 0.5 / h * f[-3] + -2.0 / h * f[-2] + 1.5 / h * f[-1]
    else:
        a, b = (s.reshape((-1,) + (1,) * (f.ndim - 1)) for s in (h[:-1], h[1:]))
        inner = -b / (a * (a + b)) * f[:-2] + (b - a) / (a * b) * f[1:-1]
        inner = inner + a / (b * (a + b)) * f[2:]
        first, last = (f[1] - f[0]) / h[0], (f[-1] - f[-2]) / h[-1]
        if edge_order == 2:
            a, b = h[0], h[1]
            first = -(2.0 * a + b) / (a * (a + b)) * f[0] + (a + b) / (a * b) * f[1]
            first = first + -a / (b * (a + b)) * f[2]
            a, b = h[-2], h[-1]
            last = b / (a * (a + b)) * f[-3] + -(b + a) / (a * b) * f[-2]
            last = last + (2.0 * b + a) / (b * (a + b)) * f[-1]
    return np.concatenate([first[None], inner, last[None]])


@implements(np.gradient)
def _gradient(f: Operand, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Traced:
    f = as_float(f)
    axes = np.lib.array_utils.normalize_axis_tuple(range(f.ndim) if axis is None else axis, f.ndim)
    if len(varargs) not in (0, 1, len(axes)) or (
        len(varargs) == 1 != len(axes) and np.ndim(varargs[0]) != 0
    ):
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = varargs or (1.0,)
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    results = []
    for k, spacing in zip(axes, spacings):
        if f.shape[k] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least "
                "(edge_order + 1) elements are required."
            )
        moved = np.moveaxis(f, k, 0)
        slope = _gradient_along(moved, _spacing(spacing, f.shape[k]), edge_order)
        results.append(copy_layout(np.moveaxis(slope.astype(f.dtype), 0, k), f))
    return results[0] if len(axes) == 1 else tuple(results)


# ---- interpolation -----------------------------------------------------------------------------


@implements(np.interp)
def _interp(
    x: Operand,
    xp: Operand,
    fp: Operand,
    left: Operand = None,
    right: Operand = None,
    period: Operand = None,
) -> Traced:
    """Interpolate linearly, exact at the points; derivatives are those of the segment to the right.

    Cost: log2 of the number of points a value where both ``xp`` and ``fp`` are static, else
    proportional to the number of points.
    """
    x, xp, fp = (lift(v).astype(np.float64) for v in (x, xp, fp))
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if xp.size != fp.size:
        raise ValueError("fp and xp are not of the same length")
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if period is not None:
        xp, fp, x = _periodic(xp, fp, x, period)
        left = right = None
    for name, value in (("left", left), ("right", right)):
        if value is not None and lift(value).ndim:
            raise TypeError(f"np.interp: {name} must be a number, got shape {lift(value).shape}")
    below = fp[0] if left is None else lift(left).astype(np.float64)
    above = fp[-1] if right is None else lift(right).astype(np.float64)
    if xp.size == 1:
        inside = np.broadcast_to(fp[0], x.shape)
    else:
        inside = _segment(x, xp, fp)
    result = np.where(x < xp[0], below, np.where(x > xp[-1], above, inside))
    result = np.where(x == xp[-1], fp[-1], result)
    return np.where(np.isnan(x), x, result)


def _periodic(xp: Operand, fp: Operand, x: Operand, period: Operand) -> tuple[Any, Any, Any]:
    static = as_constant(period)
    if not isinstance(static, SymbolicArray) and np.all(np.equal(static, 0)):
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    xp = xp % period
    order = np.argsort(lift(xp))
    xp, fp = xp[order], fp[order]
    xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return xp, np.concatenate([fp[-1:], fp, fp[:1]]), x % period


def _segment(x: Operand, xp: Operand, fp: Operand) -> Traced:
    points, values = as_constant(xp), as_constant(fp)
    if not isinstance(points, SymbolicArray) and not isinstance(values, SymbolicArray):
        with np.errstate(all="ignore"):
            slopes = np.diff(values) / np.diff(points)
        if np.all(np.isfinite(slopes)):
            # Every comparison is with a static table: search it, then read three more.
            at = count_below(points[1:-1], x, "right")
            slope, start, value = (read_table(t, at) for t in (slopes, points[:-1], values[:-1]))
            return slope * (x - start) + value
    x0, x1, f0, f1 = segment_ends(x, xp, fp)
    slope = (f1 - f0) / (x1 - x0)
    result = slope * (x - x0) + f0
    # With infinite values NumPy tries the other end, then a level segment, before it gives nan.
    other = slope * (x - x1) + f1
    other = np.where(np.isnan(other) & (f0 == f1), f0, other)
    return np.where(np.isnan(result), np.where(x == x0, f0, other), result)


# ---- convolution -------------------------------------------------------------------------------


def _slide(a: Traced, v: Traced, mode: str | int) -> Traced:
    """Return the dot products of the shorter array v with the stretches of a that overlap it."""
    n, m = a.size, v.size
    starts: dict[str | int, tuple[int, int]] = {
        "full": (1 - m, n),
        "same": (-(m // 2), n - m // 2),
        "valid": (0, n - m + 1),
    }
    starts |= dict(zip((2, 1, 0), starts.values()))
    if mode not in starts:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return slide_products(a, v, *starts[mode])


def _vectors(a: Operand, v: Operand) -> tuple[Any, Any]:
    a, v = lift_many([np.atleast_1d(a), np.atleast_1d(v)])
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("object too deep for desired array")
    if a.size == 0 or v.size == 0:
        raise ValueError("a and v cannot be empty")
    return a, v


@implements(np.convolve)
def _convolve(a: Operand, v: Operand, mode: str = "full") -> Traced:
    a, v = _vectors(a, v)
    if v.size > a.size:
        a, v = v, a
    return _slide(a, v[::-1], mode)


@implements(np.correlate)
def _correlate(a: Operand, v: Operand, mode: str = "valid") -> Traced:
    a, v = _vectors(a, v)
    if v.size > a.size:
        return _slide(v, a, mode)[::-1]
    return _slide(a, v, mode)


# ---- polynomials --------------------------------------------------------------------------------


@implements(np.polyval)
def _polyval(p: Operand, x: Operand) -> Traced:
    """Evaluate by Horner's rule."""
    p, x = lift(p), lift(x)
    y = np.zeros_like(x, dtype=np.result_type(p.dtype, x.dtype))
    return fold_steps(lambda y, c: ([y[0] * x + c[0]], []), [y], [p])[0]


implement_by_source(np.polyadd, np.polysub, np.polyder, np.polyint)
implements(np.polymul)(lambda a1, a2: np.convolve(lift(a1), lift(a2)))


@implements(np.poly)
def _poly(seq_of_zeros: Operand) -> Traced:
    zeros = lift(seq_of_zeros)
    if zeros.ndim != 1:
        raise trace_error(
            "np.poly of a matrix cannot be traced: it needs its eigenvalues",
            "Give the roots as a 1-D array.",
        )
    return numpy_source(np.poly)(zeros)


@implements(np.polyfit)
def _polyfit(
    x: Operand,
    y: Operand,
    deg: int,
    rcond: Operand = None,
    full: bool = False,
    w: Operand = None,
    cov: Operand = False,
) -> Traced:
    """Fit by least squares with scaled columns, as NumPy does; only the coefficients."""
    if full or cov:
        raise trace_error(
            "np.polyfit with full= or cov= cannot be traced", "Ask for the coefficients only."
        )
    x, y = as_float(x), as_float(y)
    if rcond is None:
        rcond = len(x) * np.finfo(x.dtype).eps
    columns = np.vander(x, deg + 1)
    if w is not None:
        weights = lift(w)
        columns = columns * weights[:, None]
        y = y * (weights if y.ndim == 1 else weights[:, None])
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    solution = np.linalg.lstsq(columns / scale, y, rcond)[0]
    return (solution.T / scale).T
