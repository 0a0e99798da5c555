"""Rounding, comparison within tolerance, and cleaning of values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.graph.dtypes import I64, is_float
from archimedes.symbolic.core.dispatch import as_float, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.ufunc_methods import finish

__all__: list[str] = []


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round half to even after scaling by a power of ten, in NumPy's order of operations."""
    x = lift(a)
    if decimals == 0:
        return finish(out, x.copy() if x.code == I64 else np.rint(x))
    scale = 10.0 ** abs(decimals)
    if x.code == I64:
        rounded = x.copy() if decimals > 0 else (np.rint(x / scale) * scale).astype(np.int64)
    elif decimals > 0:
        rounded = np.rint(x * scale) / scale
    else:
        rounded = np.rint(x / scale) * scale
    return finish(out, rounded)


# Deprecated since NumPy 2.5.
@implements(*(getattr(np, name) for name in ("fix",) if hasattr(np, name)))
def _fix(x: Any, out: Any = None) -> Any:
    return finish(out, np.trunc(x))


@implements(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    given = lift(x)
    result = given
    if is_float(given.code):
        limits = np.finfo(given.dtype)
        high = limits.max if posinf is None else posinf
        low = limits.min if neginf is None else neginf
        for test, value in ((np.isnan, nan), (np.isposinf, high), (np.isneginf, low)):
            result = np.where(test(given), lift(value).astype(given.dtype), result)
    if not copy and given is x:
        given[...] = result
        return given
    return result if result is not x else result.copy()


@implements(np.isposinf)
def _isposinf(x: Any, out: Any = None) -> Any:
    return finish(out, np.equal(x, math.inf))


@implements(np.isneginf)
def _isneginf(x: Any, out: Any = None) -> Any:
    return finish(out, np.equal(x, -math.inf))


@implements(np.isreal)
def _isreal(x: Any) -> Any:
    return np.full_like(lift(x), True, dtype=bool)


@implements(np.iscomplex)
def _iscomplex(x: Any) -> Any:
    return np.full_like(lift(x), False, dtype=bool)


@implements(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    return lift(a)


@implements(np.angle)
def _angle(z: Any, deg: bool = False) -> Any:
    angle = np.arctan2(0, z)
    return angle * (180 / math.pi) if deg else angle


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Compare elementwise within ``atol + rtol * abs(b)``; infinities only equal themselves."""
    a, b = lift(a), as_float(b)
    near = np.abs(a - b) <= atol + rtol * np.abs(b)
    result = near & np.isfinite(b) | (a == b)
    return result | (np.isnan(a) & np.isnan(b)) if equal_nan else result


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a, b = lift(a1), lift(a2)
    if a.shape != b.shape:
        return False
    same = a == b
    return np.all(same | (np.isnan(a) & np.isnan(b)) if equal_nan else same)


@implements(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    a, b = lift(a1), lift(a2)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return np.all(a == b)


#: sin(y)/y = sum over k of (-1)^k y^(2k) / (2k + 1)!; nine terms are exact to rounding below 1/2.
_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]

#: I0(x) = sum over k of (x^2/4)^k / (k!)^2 (Abramowitz & Stegun 9.6.12), enough terms for x = 30.
_I0 = [1 / math.factorial(k) ** 2 for k in range(60)]

#: I0(x) ~ exp(x) / sqrt(2 pi x) sum over k of ((2k - 1)!!)^2 / (k! (8 x)^k) (same, 9.7.1).
_I0_FAR = [math.prod(range(1, 2 * k, 2)) ** 2 / (math.factorial(k) * 8**k) for k in range(24)]


def _series(x: Any, coefficients: list[float]) -> Any:
    """Sum a power series, lowest power first, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


@implements(np.sinc)
def _sinc(x: Any) -> Any:
    """Return sin(pi x)/(pi x), by its series near zero, where derivatives of the ratio cancel."""
    y = math.pi * as_float(x)
    small = np.abs(y) < 0.5
    safe = np.where(small, 1.0, y)
    return np.where(small, _series(y * y, _SINC), np.sin(safe) / safe)


@implements(np.i0)
def _i0(x: Any) -> Any:
    """Return the modified Bessel function of order zero, by its series near zero and far out."""
    x = np.abs(as_float(x))
    near = x < 30.0
    inside, outside = np.where(near, x, 0.0), np.where(near, 30.0, x)
    far = np.exp(outside) / np.sqrt(2 * math.pi * outside) * _series(1 / outside, _I0_FAR)
    return np.where(near, _series(inside * inside / 4, _I0), far)
