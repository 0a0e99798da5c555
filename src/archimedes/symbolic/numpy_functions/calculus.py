"""Differences, integrals, interpolation, convolution, and polynomials by their coefficients."""

from __future__ import annotations

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.array_scans import fold_steps
from archimedes.symbolic.core.contraction import slide_products
from archimedes.symbolic.core.conversion import lift, lift_many
from archimedes.symbolic.core.indexing import read_table
from archimedes.symbolic.core.ordering import count_below, segment_ends
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced, as_constant
from archimedes.symbolic.recorded.numpy_source import HELPERS, implement_by_source, numpy_source

__all__: list[str] = []

implement_by_source(np.diff, np.ediff1d, np.trapezoid, np.unwrap)
# Equal steps are a simpler case; a polynomial of lower degree gets a warning.
implement_by_source(np.gradient, np.polyfit, unknown_is_false=True)


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
    if period is not None:
        return numpy_source(np.interp, unknown_is_false=True)(x, xp, fp, left, right, period)
    x, xp, fp = (lift(v).astype(np.float64) for v in (x, xp, fp))
    np.interp(0.0, np.zeros(xp.shape), np.zeros(fp.shape))  # raises NumPy's errors about shapes
    for name, value in (("left", left), ("right", right)):
        if value is not None and lift(value).ndim:
            raise TypeError(f"np.interp: {name} must be a number, got shape {lift(value).shape}")
    below = fp[0] if left is None else lift(left).astype(np.float64)
    above = fp[-1] if right is None else lift(right).astype(np.float64)
    inside = np.broadcast_to(fp[0], x.shape) if xp.size == 1 else _segment(x, xp, fp)
    result = np.where(x < xp[0], below, np.where(x > xp[-1], above, inside))
    result = np.where(x == xp[-1], fp[-1], result)
    return np.where(np.isnan(x), x, result)


#: What ``np.interp`` calls after it has made a periodic table of it.
HELPERS["compiled_interp"] = _interp


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
    valid, same, full = (0, n - m + 1), (-(m // 2), n - m // 2), (1 - m, n)
    ends = dict(zip(("valid", "same", "full", 0, 1, 2), (valid, same, full) * 2))
    if mode not in ends:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return slide_products(a, v, *ends[mode])


@implements(np.correlate)
def _correlate(a: Operand, v: Operand, mode: str = "valid") -> Traced:
    a, v = lift_many([np.atleast_1d(a), np.atleast_1d(v)])
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("object too deep for desired array")
    if a.size == 0 or v.size == 0:
        raise ValueError("a and v cannot be empty")
    return _slide(v, a, mode)[::-1] if v.size > a.size else _slide(a, v, mode)


implement_by_source(np.convolve)


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
