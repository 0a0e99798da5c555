"""Every op of the table on values of a sweep: an interval, and an affine form where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from archimedes.analysis.ranges import forms, functions, rounding
from archimedes.analysis.ranges.forms import Form
from archimedes.analysis.ranges.functions import FUNCTIONS
from archimedes.analysis.ranges.rounding import INF, INT_MAX, Ends
from archimedes.analysis.ranges.values import Value, choose, either, flag, whole_range
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64
from archimedes.graph.ops import BY_NAME

Array = np.ndarray

#: Roundoff of each type, twice over.
UNITS = {F64: 2.0**-52, F32: 2.0**-23}
#: Integers up to here are numbers of float64.
_EXACT_INT = 2.0**53


class Context(Protocol):
    """What an operation may ask of the sweep it is part of."""

    #: Type of the result, and of the first operand.
    kind: int
    operand_kind: int
    #: Twice the roundoff of the result; how much more a division may be off.
    unit: float
    division_error: float

    def note(self, problem: str, where: Array, text: str, ends: Ends | None = None) -> None:
        """Note what could not be excluded, and in which boxes."""
        ...


Operation = Callable[..., Value]
OPERATIONS: dict[str, Operation] = {}


def operation(*names: str) -> Callable[[Operation], Operation]:
    """Register a function as what some ops do."""

    def register(function: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


def _has_form(*values: Value) -> bool:
    return any(v.form is not None for v in values)


def _size(ends: Ends) -> Array:
    return np.maximum(np.abs(ends[0]), np.abs(ends[1]))


def _rounding(s: Context, ends: Ends) -> Array:
    """Return a bound for the rounding error of results in an interval."""
    return s.unit * _size(ends) + (1e-45 if s.kind == F32 else 1e-323)


def _may_be_infinite(x: Value) -> Array:
    return np.isinf(x.ends).any(axis=0)


def _finish_int(s: Context, ends: Ends) -> Value:
    ends, wraps = rounding.to_int64(ends)
    s.note("integer", wraps, "an int64 may overflow here")
    return Value(ends)


# ---- sums and products --------------------------------------------------------------------------


@operation("add")
def _add(s: Context, x: Value, y: Value) -> Value:
    ends = rounding.add(x.ends, y.ends)
    if s.kind == I64:
        return _finish_int(s, ends)
    opposite = (np.isinf(x.high) & (y.low == -INF)) | ((x.low == -INF) & np.isinf(y.high))
    form = None
    if _has_form(x, y):
        form = forms.combine(x.as_form(), 1.0, y.as_form(), 1.0, 0.0, _rounding(s, ends))
    return Value(ends, either(x.nan, y.nan, flag(opposite)), form)


@operation("sub")
def _sub(s: Context, x: Value, y: Value) -> Value:
    if x is y:
        infinite = _may_be_infinite(x)
        return Value(np.zeros_like(x.ends), either(x.nan, flag(infinite)))
    return _add(s, x, _neg(s, y))


@operation("neg")
def _neg(s: Context, x: Value) -> Value:
    form = x.form
    if form is not None:
        form = Form(form.symbols, -form.a, -form.c, form.r, form.mag)
    return Value(rounding.negate(x.ends), x.nan, form)


@operation("mul")
def _mul(s: Context, x: Value, y: Value) -> Value:
    ends = rounding.square(x.ends) if x is y else rounding.multiply(x.ends, y.ends)
    if s.kind == I64:
        return _finish_int(s, ends)
    undefined = (_may_be_infinite(x) & rounding.contains_zero(y.ends)) | (
        _may_be_infinite(y) & rounding.contains_zero(x.ends)
    )
    nan = either(x.nan, y.nan, flag(undefined))
    if not _has_form(x, y):
        return Value(ends, nan)
    error = _rounding(s, ends)
    if x.is_point:
        form = forms.scale(y.as_form(), x.low, 0.0, error)
    elif y.is_point:
        form = forms.scale(x.as_form(), y.low, 0.0, error)
    else:
        of_x = x.as_form()
        form = forms.multiply(of_x, of_x if x is y else y.as_form(), error)
    return Value(ends, nan, form)


@operation("div")
def _div(s: Context, x: Value, y: Value) -> Value:
    zero = rounding.contains_zero(y.ends)
    s.note("division", zero, "the divisor may be zero: it lies between {} and {}", y.ends)
    ends = rounding.divide(x.ends, y.ends)
    if s.division_error:
        ends = rounding.widen(ends, s.division_error * s.unit)
    undefined = (zero & rounding.contains_zero(x.ends)) | (
        _may_be_infinite(x) & _may_be_infinite(y)
    )
    nan = either(x.nan, y.nan, flag(undefined))
    if not _has_form(x, y):
        return Value(ends, nan)
    error = _rounding(s, ends) * (1.0 + s.division_error)
    if y.is_point and not zero.any():
        inverse = 1.0 / y.low
        form = forms.scale(x.as_form(), inverse, 0.0, error + 2.0**-52 * _size(ends))
        return Value(ends, nan, form)
    inverse_form = _invert(y, zero)
    if x.is_point:
        form = forms.scale(inverse_form, x.low, 0.0, error)
    else:
        form = forms.divide(x.as_form(), y.as_form(), inverse_form, error)
    return Value(ends, nan, form)


def _invert(y: Value, zero: Array) -> Form:
    """Return the form of 1/y."""
    sign = np.where(y.low > 0.0, 1.0, -1.0)
    alpha, beta, delta = functions.linearize(
        np.reciprocal, lambda t: -1.0 / (t * t), y.ends, INF, (sign, sign)
    )
    return forms.scale(y.as_form(), alpha, beta, np.where(zero, np.nan, delta))


@operation("fma")
def _fma(s: Context, x: Value, y: Value, z: Value) -> Value:
    return _add(s, _mul(s, x, y), z)


# ---- exact functions ----------------------------------------------------------------------------


@operation("abs")
def _abs(s: Context, x: Value) -> Value:
    ends = rounding.magnitude(x.ends)
    if s.kind == I64:
        return _finish_int(s, ends)
    form = None
    if x.form is not None:
        low, high = x.low, x.high
        mixed = (low < 0.0) & (high > 0.0)
        width = np.where(mixed, high - low, 1.0)
        alpha = np.where(mixed, (high + low) / width, np.where(low >= 0.0, 1.0, -1.0))
        gap = np.where(mixed, -low * (high / width), 0.0) * (1.0 + forms.SLOP)
        form = forms.scale(x.form, alpha, gap, gap + forms.SLOP * _size(x.ends))
    return Value(ends, x.nan, form)


@operation("sqrt")
def _sqrt(s: Context, x: Value) -> Value:
    negative = x.low < 0.0
    s.note(
        "domain",
        negative,
        "the root of a number that may be negative: it lies between {} and {}",
        x.ends,
    )
    ends = rounding.root(x.ends)
    form = _function_form(s, "sqrt", x, ends)
    return Value(ends, either(x.nan, flag(negative)), form)


_STEPS = {"floor": (-1.0, 0.0), "ceil": (0.0, 1.0), "trunc": (-1.0, 1.0), "rint": (-0.5, 0.5)}


def _step_function(name: str) -> Operation:
    function: Any = BY_NAME[name].numpy
    low, high = _STEPS[name]

    def evaluate(s: Context, x: Value) -> Value:
        ends = function(x.ends)
        form = None
        if x.form is not None:
            form = forms.scale(x.form, 1.0, 0.5 * (low + high), 0.5 * (high - low))
        return Value(ends, x.nan, form)

    return evaluate


OPERATIONS.update({name: _step_function(name) for name in _STEPS})


@operation("copysign")
def _copysign(s: Context, x: Value, y: Value) -> Value:
    size = _abs(s, x)
    known = y.nan is None
    plus = known & ((y.low > 0.0) | ((y.low == 0.0) & ~np.signbit(y.low)))
    minus = known & (y.high < 0.0)
    return choose(plus, minus, size, _neg(s, size))


def _extreme(sign: float) -> Operation:
    """Return the operation max (sign 1) or min (sign -1)."""

    def evaluate(s: Context, x: Value, y: Value) -> Value:
        if sign > 0.0:
            low, high = np.maximum(x.low, y.low), np.maximum(x.high, y.high)
        else:
            low, high = np.minimum(x.low, y.low), np.minimum(x.high, y.high)
        # Of two zeros it takes the second.
        positive = (y.low == 0.0) & ~np.signbit(y.low) if sign > 0.0 else ~np.signbit(x.low)
        low = np.where((low == 0.0) & ~(positive & ~np.signbit(y.low)), -0.0, low)
        ends = np.stack(np.broadcast_arrays(low, high))
        nan = either(x.nan, y.nan)
        if not _has_form(x, y):
            return Value(ends, nan)
        first = x.low >= y.high if sign > 0.0 else x.high <= y.low
        second = x.high <= y.low if sign > 0.0 else x.low >= y.high
        of_x, of_y = x.as_form(), y.as_form()
        if (first | second).all():
            return Value(ends, nan, forms.choose(first, second, of_x, of_y))
        # max(x, y) = y + max(d, 0) with d = x - y, and a line above the latter: alpha (d - low).
        difference = forms.combine(of_x, 1.0, of_y, -1.0, 0.0, 0.0).ends()
        d = rounding.intersect(rounding.subtract(x.ends, y.ends), difference)
        lower, upper = np.minimum(d[0], 0.0), np.maximum(d[1], 0.0)
        mixed = (lower < 0.0) & (upper > 0.0)
        width = np.where(mixed, upper - lower, 1.0)
        alpha = np.where(mixed, upper / width, np.where(lower >= 0.0, 1.0, 0.0))
        gap = np.where(mixed, -0.5 * alpha * lower, 0.0) * (1.0 + forms.SLOP)
        slack = gap + forms.SLOP * np.where(mixed, _size(d), 0.0)
        share = alpha if sign > 0.0 else 1.0 - alpha
        slack = slack + forms.SLOP * (of_x.mag + of_y.mag)
        form = forms.combine(of_x, share, of_y, 1.0 - share, sign * gap, slack)
        return Value(ends, nan, form)

    return evaluate


OPERATIONS["max"], OPERATIONS["min"] = _extreme(1.0), _extreme(-1.0)


@operation("stop")
def _stop(s: Context, x: Value) -> Value:
    return Value(x.ends, x.nan, x.form)


@operation("f64", "f32", "i64")
def _cast(s: Context, x: Value) -> Value:
    form = x.form
    if form is not None and s.kind == F32 and s.operand_kind == F64:
        form = forms.scale(form, 1.0, 0.0, _rounding(s, x.ends))
    return Value(x.ends, x.nan, form)


# ---- elementary functions -----------------------------------------------------------------------


def _function_form(s: Context, name: str, x: Value, ends: Ends) -> Form | None:
    if x.form is None:
        return None
    f = FUNCTIONS[name]
    inside = functions.clip_to_domain(f, x.ends)
    error = max(f.error, s.unit)
    line = functions.linearize(f.value, f.slope, inside, f.knot, f.curved, error)
    alpha, beta, delta = line
    if f.absolute:
        delta = delta + f.absolute
    outside = (x.low < f.low) | (x.high > f.high)
    return forms.scale(x.form, alpha, beta, np.where(outside, np.nan, delta) + 1e-323)


_DOMAIN = "{} of a number outside its domain: the argument lies between {{}} and {{}}"


def _univariate(name: str) -> Operation:
    f = FUNCTIONS[name]

    def evaluate(s: Context, x: Value) -> Value:
        outside = (x.low < f.low) | (x.high > f.high)
        # At the edge the logarithm, arctanh and gamma are infinite.
        pole = np.zeros_like(outside)
        if name in _POLES:
            pole = (x.low <= f.low) | (x.high >= f.high)
        s.note("domain", outside | pole, _DOMAIN.format(name), x.ends)
        ends = functions.function_range(name, x.ends)
        if name in _ANYWHERE:
            outside = outside | pole
            ends = np.where(outside, functions.outward_infinite(ends), ends)
        form = _function_form(s, name, x, ends)
        return Value(ends, either(x.nan, flag(outside)), form)

    return evaluate


_POLES = ("log", "log2", "log10", "log1p", "arctanh", "gamma", "gammaln", "digamma")
#: Functions that are also defined where the table does not describe them.
_ANYWHERE = ("gamma", "gammaln", "digamma")
OPERATIONS.update({name: _univariate(name) for name in FUNCTIONS if name != "sqrt"})


def _periodic(name: str) -> Operation:
    def evaluate(s: Context, x: Value) -> Value:
        infinite = _may_be_infinite(x)
        s.note("domain", infinite, f"{name} of an infinite number")
        tangent = name == "tan"
        ends = functions.tangent_range(x.ends) if tangent else functions.sine_range(name, x.ends)
        form = None
        if x.form is not None:
            alpha, beta, delta = functions.linearize_periodic(name, x.ends, s.unit)
            form = forms.scale(x.form, alpha, beta, delta)
        return Value(ends, either(x.nan, flag(infinite)), form)

    return evaluate


OPERATIONS.update({name: _periodic(name) for name in ("sin", "cos", "tan")})


def _mean_value_form(
    s: Context, name: str, x: Value, y: Value, ends: Ends, slopes: tuple[Ends, Ends], known: Array
) -> Form | None:
    """Return the form of a function of two numbers from the intervals of its derivatives.

    ``f(x, y)`` is ``f(cx, cy) + fx (x - cx) + fy (y - cy)`` with derivatives from the intervals.
    """
    if not _has_form(x, y):
        return None
    of_x, of_y = x.as_form(), y.as_form()
    cx, cy = np.clip(of_x.c, x.low, x.high), np.clip(of_y.c, y.low, y.high)
    centre = functions.evaluate(name, *np.broadcast_arrays(cx, cy))
    delta = (2.0**-50 + s.unit) * _size(ends) + (1e-45 if s.kind == F32 else 1e-323)
    weights = []
    for value, c, slope in ((x, cx, slopes[0]), (y, cy, slopes[1])):
        middle = 0.5 * slope[0] + 0.5 * slope[1]
        half = (0.5 * (slope[1] - slope[0]) + 2.0**-48 * _size(slope)) * (1.0 + forms.SLOP)
        reach = np.maximum(value.high - c, c - value.low) * (1.0 + forms.SLOP)
        delta = delta + half * reach
        weights.append(middle)
    alpha, gamma = weights
    beta = centre - alpha * cx - gamma * cy
    delta = delta + 2.0**-49 * (np.abs(alpha * cx) + np.abs(gamma * cy) + np.abs(centre))
    return forms.combine(of_x, alpha, of_y, gamma, beta, np.where(known, delta, np.nan))


@operation("arctan2")
def _arctan2(s: Context, y: Value, x: Value) -> Value:
    ends = functions.arctan2_range(y.ends, x.ends)
    square = rounding.add(rounding.square(x.ends), rounding.square(y.ends))
    by_y = rounding.divide(x.ends, square)
    by_x = rounding.divide(rounding.negate(y.ends), square)
    known = (square[0] > 0.0) & ((x.low > 0.0) | (y.low > 0.0) | (y.high < 0.0))
    form = _mean_value_form(s, "arctan2", y, x, ends, (by_y, by_x), known)
    return Value(ends, either(x.nan, y.nan), form)


@operation("hypot")
def _hypot(s: Context, x: Value, y: Value) -> Value:
    ends = functions.hypot_range(x.ends, y.ends)
    slopes = [np.clip(rounding.divide(v.ends, ends), -1.0, 1.0) for v in (x, y)]
    known = np.isfinite(ends).all(axis=0)
    form = _mean_value_form(s, "hypot", x, y, ends, (slopes[0], slopes[1]), known)
    return Value(ends, either(x.nan, y.nan), form)


@operation("pow")
def _pow(s: Context, x: Value, y: Value) -> Value:
    ends, broken = functions.power_range(x.ends, y.ends)
    s.note("domain", broken, "a negative number may be raised to a broken power: {} to {}", x.ends)
    zero = rounding.contains_zero(x.ends) & (y.low < 0.0)
    s.note("division", zero, "zero may be raised to a negative power: base {} to {}", x.ends)
    nan = either(x.nan, y.nan, flag(broken))
    # Anything, also nan, to the power of zero is one.
    ends = np.where(rounding.contains_zero(y.ends), rounding.hull(ends, np.ones_like(ends)), ends)
    known = ~broken & ~zero & np.isfinite(ends).all(axis=0)
    form = None
    if x.form is not None and y.is_point:
        exponent = y.low
        value, slope, curved = functions.power_function(exponent)
        alpha, beta, delta = functions.linearize(value, slope, x.ends, 0.0, curved, s.unit)
        form = forms.scale(x.form, alpha, beta, np.where(known, delta, np.nan) + 1e-323)
    elif _has_form(x, y):
        base = np.maximum(x.ends, 0.0)
        by_y = rounding.multiply(ends, functions.function_range("log", base))
        by_x = rounding.multiply(y.ends, rounding.divide(ends, base))
        form = _mean_value_form(s, "pow", x, y, ends, (by_x, by_y), known & (x.low > 0.0))
    return Value(ends, nan, form)


@operation("fmod")
def _fmod(s: Context, x: Value, y: Value) -> Value:
    zero = rounding.contains_zero(y.ends)
    s.note("division", zero, "the divisor of a remainder may be zero: {} to {}", y.ends)
    ends, same = functions.fmod_range(x.ends, y.ends)
    nan = either(x.nan, y.nan, flag(zero | _may_be_infinite(x)))
    form = None
    if x.form is not None and same.any():
        shift = np.where(same, ends[0] - x.low, np.nan)
        error = forms.SLOP * (_size(x.ends) + _size(ends))
        form = forms.scale(x.form, 1.0, shift, error)
    return Value(ends, nan, form)


@operation("polygamma")
def _polygamma(s: Context, n: Value, x: Value) -> Value:
    shape = np.broadcast_shapes(n.low.shape, x.low.shape)
    known = (n.low == n.high) & (n.low >= 1.0) & (n.low == np.floor(n.low)) & (x.low > 0.0)
    s.note(
        "domain", ~known & (x.low <= 0.0), "polygamma where it may have a pole: {} to {}", x.ends
    )
    point = np.broadcast_to(np.where(known, x.ends, 1.0), (2, *shape))
    order = np.broadcast_to(np.where(known, n.ends, 1.0), (2, *shape))
    y = np.sort(np.asarray(functions.evaluate("polygamma", order, point)), axis=0)
    whole = whole_range(F64, shape)
    ends = np.where(known, rounding.widen(y, 2.0**-47, 1e-300), whole.ends)
    return Value(ends, either(x.nan, n.nan, flag(np.broadcast_to(~known, shape))))


# ---- comparisons --------------------------------------------------------------------------------


def compare(name: str, x: Value, y: Value) -> tuple[Array, Array]:
    """Return where a comparison holds, and where it does not, for certain."""
    if x is y and name in ("le", "eq", "ne"):
        true, false = np.ones(x.low.shape, dtype=bool), np.zeros(x.low.shape, dtype=bool)
        if name == "ne":
            true, false = false, true
    elif name == "lt":
        true, false = x.high < y.low, x.low >= y.high
    elif name == "le":
        true, false = x.high <= y.low, x.low > y.high
    else:
        true = (x.low == x.high) & (y.low == y.high) & (x.low == y.low)
        false = (x.high < y.low) | (y.high < x.low)
        if name == "ne":
            true, false = false, true
    nan = either(x.nan, y.nan)
    if nan is not None:  # compares as false, and as not equal
        if name == "ne":
            false = false & ~nan
        else:
            true = true & ~nan
    return true, false


def as_bool(true: Array, false: Array) -> Value:
    """Return a bool that is known where one of two masks is set."""
    return Value(np.stack([np.where(true, 1.0, 0.0), np.where(false, 0.0, 1.0)]))


def _comparison(name: str) -> Operation:
    return lambda s, x, y: as_bool(*compare(name, x, y))


OPERATIONS.update({name: _comparison(name) for name in ("lt", "le", "eq", "ne")})


@operation("select")
def _select(s: Context, condition: Value, x: Value, y: Value) -> Value:
    return choose(condition.low == 1.0, condition.high == 0.0, x, y)


# ---- integers and bits --------------------------------------------------------------------------


def _on_points(name: str, s: Context, *operands: Value) -> Value | None:
    """Return the exact result where all operands are known numbers, else None."""
    small = all(
        np.array_equal(v.ends[0], v.ends[1]) and (np.abs(v.ends) <= _EXACT_INT).all()
        for v in operands
    )
    if not small or any(v.nan is not None for v in operands):
        return None
    if s.operand_kind <= F32 and any((v.ends == 0.0).any() for v in operands):
        return None  # of either sign
    function: Any = BY_NAME[name].numpy
    arrays = [v.low.astype(DTYPES[s.operand_kind]) for v in operands]
    result = np.asarray(function(*arrays))
    y = result.astype(np.float64)
    ends = np.stack([y, y])
    if result.dtype.kind == "i" and (np.abs(y) > _EXACT_INT).any():
        ends = np.stack([np.nextafter(y, -INF), np.nextafter(y, INF)])
    return Value(np.where(np.isnan(ends), rounding.outward_signs(ends) * INF, ends), flag(y != y))


def _integer(name: str, bound: Callable[..., Ends | None]) -> Operation:
    """Return an operation on integers: exact on numbers, else an interval, else anything."""

    def evaluate(s: Context, *operands: Value) -> Value:
        exact = _on_points(name, s, *operands)
        if exact is not None:
            return exact
        ends = bound(s, *(v.ends for v in operands))
        shape = np.broadcast_shapes(*(v.low.shape for v in operands))
        if ends is None:
            return whole_range(s.kind, shape)
        return Value(rounding.to_int64(ends)[0])

    return evaluate


def _unknown(s: Context, *ends: Ends) -> Ends | None:
    return None


def _bits_above(x: Array) -> Array:
    """Return the largest number with as many bits as x."""
    return np.exp2(np.ceil(np.log2(np.maximum(x, 0.0) + 1.0))) - 1.0


def _whole_ends(shape: Any) -> Ends:
    return np.stack([np.full(shape, -INT_MAX), np.full(shape, INT_MAX)])


def _logic(name: str) -> Callable[..., Ends | None]:
    def bound(s: Context, x: Ends, y: Ends) -> Ends | None:
        if s.kind == B8:
            if name == "and":
                return np.minimum(x, y)
            if name == "or":
                return np.maximum(x, y)
            known = (x[0] == x[1]) & (y[0] == y[1])
            odd = np.where(x[0] != y[0], 1.0, 0.0)
            return np.stack([np.where(known, odd, 0.0), np.where(known, odd, 1.0)])
        above_x, above_y = x[0] >= 0.0, y[0] >= 0.0
        zero = np.zeros(np.broadcast_shapes(x[0].shape, y[0].shape))
        if name == "and":
            # A mask that is not negative keeps no more bits than it has.
            most = np.minimum(np.where(above_x, x[1], INT_MAX), np.where(above_y, y[1], INT_MAX))
            known = above_x | above_y
        else:
            most = _bits_above(np.maximum(x[1], y[1]))
            known = above_x & above_y
        return np.where(known, np.stack([zero, zero + most]), _whole_ends(zero.shape))

    return bound


def _not(s: Context, x: Ends) -> Ends:
    return 1.0 - x[::-1] if s.kind == B8 else rounding.add(-x[::-1], np.full_like(x, -1.0))


def _shift(name: str) -> Callable[..., Ends | None]:
    def bound(s: Context, x: Ends, n: Ends) -> Ends | None:
        if not (np.array_equal(n[0], n[1]) and ((n >= 0.0) & (n < 63.0)).all()):
            return None
        factor = np.exp2(n)
        if name == "shl":
            return x * factor
        ends = np.floor(x / factor)
        if name == "shr":
            return ends
        wraps = x[0] < 0.0
        most = np.where(n[0] == 0.0, INT_MAX, np.exp2(64.0 - n[0]))
        low = np.where(n[0] == 0.0, -INT_MAX, 0.0)
        return np.where(wraps, np.stack(np.broadcast_arrays(low, most)), ends)

    return bound


def _quotient(s: Context, x: Ends, y: Ends) -> Ends:
    zero = rounding.contains_zero(y)
    s.note("division", zero, "an integer divisor may be zero: it lies between {} and {}", y)
    most = _size(x)
    ends = np.trunc(rounding.divide(x, y))
    return np.where(zero, np.stack([-most, most]), ends)


def _modulo(s: Context, x: Ends, y: Ends) -> Ends:
    zero = rounding.contains_zero(y)
    s.note("division", zero, "an integer divisor may be zero: it lies between {} and {}", y)
    most = np.minimum(np.maximum(_size(y) - 1.0, 0.0), _size(x))
    ends = np.stack([np.where(x[0] < 0.0, -most, 0.0), np.where(x[1] > 0.0, most, 0.0)])
    same = ~zero & (_size(x) < rounding.magnitude(y)[0])
    return np.where(same, x, ends)


OPERATIONS.update({name: _integer(name, _logic(name)) for name in ("and", "or", "xor")})
OPERATIONS.update({name: _integer(name, _shift(name)) for name in ("shl", "shr", "lshr")})
OPERATIONS["not"] = _integer("not", _not)
OPERATIONS["quotient"] = _integer("quotient", _quotient)
OPERATIONS["modulo"] = _integer("modulo", _modulo)
for _name in ("bits", "from_bits", "bits32", "from_bits32"):
    OPERATIONS[_name] = _integer(_name, _unknown)


@operation("truncate")
def _truncate(s: Context, x: Value) -> Value:
    outside = ~((x.low > -INT_MAX) & (x.high < INT_MAX))
    if x.nan is not None:
        outside = outside | x.nan
    s.note("integer", outside, "a number too large for an int64 may be converted: {} to {}", x.ends)
    return Value(np.where(outside, _whole_ends(x.low.shape), np.trunc(x.ends)))
