"""Functions of elements: choosing between values, rounding, comparing, and special functions."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, I64
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import as_float, cast_ids, floats, lift, lift_many, wrap
from archimedes.symbolic.core.loop_nests import elementwise
from archimedes.symbolic.core.registry import ADOPTERS, GUFUNCS, implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced, as_constant
from archimedes.symbolic.core.ufuncs import UFUNCS
from archimedes.symbolic.recorded.numpy_source import implement_by_source

_SELECT = CODES["select"]
_MISSING: Any = object()


@implements(np.where)
def where(condition: Operand, x: Operand = _MISSING, y: Operand = _MISSING) -> Traced:
    """Choose elementwise; both sides are computed, the condition decides which value is kept."""
    if x is _MISSING or y is _MISSING:
        raise trace_error(
            "np.where with a condition alone has a shape that depends on values",
            "Give all three arguments: np.where(condition, x, y).",
        )
    trace = current_trace()
    g = trace.graph
    test = lift(condition)
    x, y = lift_many([x, y], weak=True)
    tests = cast_ids(g, trace.elements_of(test), test.code, B8)
    ids = np.where(tests, x.ids, y.ids)  # for its order in memory
    operands, codes = [tests, x.ids, y.ids], [B8, x.code, x.code]
    (ids[...],) = elementwise(g, operands, codes, ids.shape, _SELECT)
    return wrap(ids, x.code, trace)


@implements(np.select)
def _select(condlist: Operand, choicelist: Operand, default: Operand = 0) -> Traced:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    *choices, result = lift_many([*choicelist, default], weak=True)
    for condition, choice in zip(reversed(list(condlist)), reversed(choices)):
        result = where(condition, choice, result)
    shape = np.broadcast_shapes(*(np.shape(c) for c in condlist), result.shape)
    return np.broadcast_to(result, shape).copy()


@implements(np.piecewise)
def _piecewise(x: Operand, condlist: Operand, funclist: Operand, *args: Any, **kw: Any) -> Traced:
    x = lift(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else list(lift(condlist))
    if conditions and np.ndim(conditions[0]) == 0 and x.ndim > 0:
        conditions = [condlist]
    values = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    result = np.zeros_like(x)
    if len(values) == len(conditions) + 1:
        result = np.broadcast_to(lift(values.pop()).astype(x.dtype), x.shape).copy()
    elif len(values) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    for condition, value in zip(conditions, values):
        # A mask selects along the leading axes, as in x[mask].
        missing = x.ndim - np.ndim(condition)
        condition = np.reshape(condition, (*np.shape(condition), *(1,) * missing))
        result = where(condition, lift(value).astype(x.dtype), result)
    return result


@implements(np.clip)
def _clip(a: Operand, a_min: Operand = None, a_max: Operand = None, **kwargs: Any) -> Traced:
    low, high, result = kwargs.get("min", a_min), kwargs.get("max", a_max), lift(a)
    if low is not None:
        result = np.maximum(result, low)
    if high is not None:
        result = np.minimum(result, high)
    return result if result is not a else result.copy()


# The method ``x.clip`` of a plain array calls a ufunc.
GUFUNCS[np._core.umath.clip] = _clip  # type: ignore[attr-defined]


@implements(np.choose)
def _choose(a: Operand, choices: Operand, mode: str = "raise") -> Traced:
    index = as_constant(lift(a))
    options = lift_many(list(choices))
    if not isinstance(index, SymbolicArray):
        spread = np.broadcast_arrays(index, *(o.ids for o in options))
        picked = np.choose(spread[0], spread[1:], mode=mode)  # type: ignore[call-overload]
        return wrap(picked, options[0].code)
    if mode == "wrap":
        index = np.remainder(index, len(options))
    result = options[-1]
    for k in reversed(range(len(options) - 1)):
        result = where(index <= k, options[k], result)
    shape = np.broadcast_shapes(index.shape, *(o.shape for o in options))
    return np.broadcast_to(result, shape).copy()


# ---- rounding, comparison within tolerance, cleaning --------------------------------------------


@implements(np.round, np.around)
def _round(a: Operand, decimals: int = 0) -> Traced:
    """Round half to even after scaling by a power of ten, in NumPy's order of operations."""
    x = lift(a)
    if decimals == 0:
        return x.copy() if x.code == I64 else np.rint(x)
    scale = 10.0 ** abs(decimals)
    if x.code == I64:
        rounded = x.copy() if decimals > 0 else (np.rint(x / scale) * scale).astype(np.int64)
    elif decimals > 0:
        rounded = np.rint(x * scale) / scale
    else:
        rounded = np.rint(x / scale) * scale
    return rounded


if hasattr(np, "fix"):  # deprecated since NumPy 2.5
    implements(np.fix)(lambda x: np.trunc(x))
implements(np.isposinf)(lambda x: np.equal(x, math.inf))
implements(np.isneginf)(lambda x: np.equal(x, -math.inf))
implements(np.isreal)(lambda x: np.full_like(lift(x), True, dtype=bool))
implements(np.iscomplex)(lambda x: np.full_like(lift(x), False, dtype=bool))
implements(np.real_if_close)(lambda a, tol=100: lift(a))


implement_by_source(np.nan_to_num)


@implements(np.angle)
def _angle(z: Operand, deg: bool = False) -> Traced:
    angle = np.arctan2(0, z)
    return angle * (180 / math.pi) if deg else angle


@implements(np.isclose)
def isclose(
    a: Operand, b: Operand, rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False
) -> Traced:
    """Compare elementwise within ``atol + rtol * abs(b)``; infinities only equal themselves."""
    a, b = lift(a), as_float(b)
    near = np.abs(a - b) <= atol + rtol * np.abs(b)
    result = near & np.isfinite(b) | (a == b)
    return result | (np.isnan(a) & np.isnan(b)) if equal_nan else result


implements(np.allclose)(lambda *args, **kwargs: np.all(isclose(*args, **kwargs)))


@implements(np.array_equal)
def _array_equal(a1: Operand, a2: Operand, equal_nan: bool = False) -> Traced:
    a, b = lift(a1), lift(a2)
    if a.shape != b.shape:
        return False
    same = a == b
    return np.all(same | (np.isnan(a) & np.isnan(b)) if equal_nan else same)


@implements(np.array_equiv)
def _array_equiv(a1: Operand, a2: Operand) -> Traced:
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


def _series(x: Operand, coefficients: list[float]) -> Traced:
    """Sum a power series, lowest power first, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


@implements(np.sinc)
def _sinc(x: Operand) -> Traced:
    """Return sin(pi x)/(pi x), by its series near zero, where derivatives of the ratio cancel."""
    y = math.pi * as_float(x)
    small = np.abs(y) < 0.5
    safe = np.where(small, 1.0, y)
    return np.where(small, _series(y * y, _SINC), np.sin(safe) / safe)


@implements(np.i0)
def _i0(x: Operand) -> Traced:
    """Return the modified Bessel function of order zero, by its series near zero and far out."""
    x = np.abs(as_float(x))
    near = x < 30.0
    inside, outside = np.where(near, x, 0.0), np.where(near, 30.0, x)
    far = np.exp(outside) / np.sqrt(2 * math.pi * outside) * _series(1 / outside, _I0_FAR)
    return np.where(near, _series(inside * inside / 4, _I0), far)


# ---- special functions --------------------------------------------------------------------------


def record(name: str, *operands: Operand) -> Traced:
    """Record an op of that name for each element; ints become float64, float32 alone stays."""
    arrays = floats(*operands)
    trace = current_trace()
    dtype = arrays[0].code
    columns = [trace.elements_of(x) for x in arrays]
    shape = np.broadcast_shapes(*(x.shape for x in columns))
    (ids,) = elementwise(trace.graph, columns, [dtype] * len(columns), shape, CODES[name])
    return wrap(ids, dtype, trace)


def _beta_logarithm(e: Emit, a: int, b: int) -> int:
    logs = e("add", e("gammaln", a), e("gammaln", b))
    return e("sub", logs, e("gammaln", e("add", a, b)))


#: Names of ufuncs in scipy.special -> an op, or a formula in ops.
_SCIPY: dict[str, Any] = {
    **{name: CODES[name] for name in ("erf", "erfc", "exp10", "gamma", "gammaln")},
    "psi": CODES["digamma"],
    "betaln": _beta_logarithm,
}


def _adopt(ufunc: np.ufunc) -> bool:
    """Give a ufunc of scipy.special its row in the table, if it is one that can be recorded."""
    scipy = sys.modules.get("scipy.special")  # imported, if the caller holds one of its ufuncs
    what = _SCIPY.get(ufunc.__name__)
    if scipy is None or what is None or getattr(scipy, ufunc.__name__, None) is not ufunc:
        return False
    UFUNCS[ufunc] = (what, what, None, None)
    return True


ADOPTERS.append(_adopt)
