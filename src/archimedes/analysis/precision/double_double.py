"""Double-double arithmetic: numbers of 32 digits as unevaluated sums of two float64.

Sums and products are exact pairs (Dekker, Numer. Math. 18, 1971; Knuth, TAOCP 2, 4.2.2), and the
functions follow Hida, Li and Bailey, "Library for double-double and quad-double arithmetic", 2007:
series after a reduction of the argument, and one step of Newton from the float64 value where the
inverse function is easier. What has neither (gamma and its relatives) is the float64 value moved
along its derivative: the digits behind the 16th are then those of the argument only.

Nothing here has more than float64's range. Where a float64 result is infinite or nan, so is the
double-double one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from archimedes.analysis.precision.arithmetics import DOUBLE, Arithmetic
from archimedes.analysis.precision.conditions import slopes
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.ops import BY_NAME, TABLE
from archimedes.graph.regions import Accumulate, Host, Pack, Region, Sort, Switch
from archimedes.graph.regions.base import Run

#: Numbers below this have no second part.
_TINY = 1e-290
#: Splits 53 bits into 26 and 27 (Dekker 1971).
_SPLITTER = 2.0**27 + 1.0


class DoubleDouble:
    """Scalars or arrays of ``high + low``, with as much of an array's interface as regions use.

    >>> third = DoubleDouble(1.0) / DoubleDouble(3.0)
    >>> float(third.low)
    1.850371707708594e-17
    """

    __slots__ = ("high", "low")

    def __init__(self, high: Any, low: Any = None) -> None:
        self.high = np.asarray(high, dtype=np.float64)[()]
        self.low = np.zeros_like(self.high)[()] if low is None else low

    # ---- as an array ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of both parts."""
        return np.shape(self.high)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return np.ndim(self.high)

    @property
    def dtype(self) -> np.dtype:
        """Type of both parts."""
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, at: Any) -> DoubleDouble:
        return DoubleDouble(self.high[at], self.low[at])

    def __setitem__(self, at: Any, value: Any) -> None:
        value = lift(value)
        self.high[at], self.low[at] = value.high, value.low

    def reshape(self, *shape: Any) -> DoubleDouble:
        """Return the same numbers in another shape."""
        high, low = np.asarray(self.high), np.asarray(self.low)
        return DoubleDouble(high.reshape(*shape), low.reshape(*shape))

    def copy(self) -> DoubleDouble:
        """Return a copy."""
        return DoubleDouble(np.copy(self.high), np.copy(self.low))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.high, dtype=dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Move both parts alike; choose by the high one."""
        if func in (np.argmax, np.argmin, np.ndim, np.shape):
            return func(*_parts(args, 0), **kwargs)
        if func in (np.min, np.max):
            find = np.argmin if func is np.min else np.argmax
            axis = kwargs["axis"]
            at = np.expand_dims(find(self.high, axis=axis), axis)
            return DoubleDouble(*(np.take_along_axis(x, at, axis) for x in (self.high, self.low)))[
                ..., 0
            ]
        high, low = (func(*_parts(args, k), **kwargs) for k in range(2))
        if isinstance(high, (list, tuple)):
            return [DoubleDouble(a, b) for a, b in zip(high, low)]
        return None if high is None else DoubleDouble(high, low)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "accumulate":
            rows = [self[..., k] for k in range(self.shape[-1])]
            for k in range(1, len(rows)):
                rows[k] = ufunc(rows[k - 1], rows[k])
            return np.stack(rows, axis=-1)
        if method != "__call__" or kwargs or ufunc not in _UFUNCS:
            return NotImplemented
        return _UFUNCS[ufunc](*inputs)

    # ---- as a number ---------------------------------------------------------------------

    def __add__(self, other: Any) -> DoubleDouble:
        return _add(self, lift(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> DoubleDouble:
        return _add(self, -lift(other))

    def __rsub__(self, other: Any) -> DoubleDouble:
        return _add(lift(other), -self)

    def __mul__(self, other: Any) -> DoubleDouble:
        return _mul(self, lift(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> DoubleDouble:
        return _div(self, lift(other))

    def __rtruediv__(self, other: Any) -> DoubleDouble:
        return _div(lift(other), self)

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __abs__(self) -> DoubleDouble:
        return select(np.signbit(self.high), -self, self)

    def __lt__(self, other: Any) -> Any:
        other = lift(other)
        return (self.high < other.high) | ((self.high == other.high) & (self.low < other.low))

    def __le__(self, other: Any) -> Any:
        other = lift(other)
        return (self.high < other.high) | ((self.high == other.high) & (self.low <= other.low))

    def __gt__(self, other: Any) -> Any:
        return lift(other) < self

    def __ge__(self, other: Any) -> Any:
        return lift(other) <= self

    def __eq__(self, other: Any) -> Any:
        other = lift(other)
        return (self.high == other.high) & (self.low == other.low)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]


def lift(x: Any) -> DoubleDouble:
    """Return float64 numbers as double-double ones."""
    return x if isinstance(x, DoubleDouble) else DoubleDouble(x)


def _parts(x: Any, k: int) -> Any:
    """Return arguments with the high parts (0) or the low ones (1) in place of pairs."""
    if isinstance(x, DoubleDouble):
        return (x.high, x.low)[k]
    if isinstance(x, (list, tuple)):
        return type(x)(_parts(item, k) for item in x)
    if k and isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind == "f":
        return np.zeros_like(x)
    return x


def select(condition: Any, a: Any, b: Any) -> DoubleDouble:
    """Return ``a`` where a condition holds, else ``b``."""
    a, b = lift(a), lift(b)
    high = np.where(condition, a.high, b.high)[()]
    return DoubleDouble(high, np.where(condition, a.low, b.low)[()])


# ---- sums and products ---------------------------------------------------------------------------


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    p = a * b
    t, u = _SPLITTER * a, _SPLITTER * b
    a1, b1 = t - (t - a), u - (u - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _pair(plain: Any, high: Any, low: Any) -> DoubleDouble:
    """Return ``high + low`` as a pair; where that is no number, the float64 result."""
    s = high + low
    rest = low - (s - high)
    fine = np.isfinite(s) & np.isfinite(rest)
    return DoubleDouble(np.where(fine, s, plain)[()], np.where(fine, rest, 0.0)[()])


def _add(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    s, e = _two_sum(x.high, y.high)
    t, f = _two_sum(x.low, y.low)
    high = s + (e + t)
    low = (e + t) - (high - s) + f
    return _pair(s, high, low)


def _mul(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    p, e = _two_product(x.high, y.high)
    return _pair(x.high * y.high, p, e + (x.high * y.low + x.low * y.high))


def _div(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    plain = x.high / y.high
    first = DoubleDouble(plain)
    rest = x - first * y
    second = DoubleDouble(rest.high / y.high)
    third = (rest - second * y).high / y.high
    total = _add(first, second)
    return _pair(plain, total.high, total.low + third)


def _sqrt(x: DoubleDouble) -> DoubleDouble:
    root = DoubleDouble(np.sqrt(x.high))
    rest = (x - root * root).high / (2.0 * root.high)
    return _pair(root.high, root.high, rest)


def _scale(x: DoubleDouble, exponent: Any) -> DoubleDouble:
    return DoubleDouble(np.ldexp(x.high, exponent), np.ldexp(x.low, exponent))


# ---- whole numbers -------------------------------------------------------------------------------


def _floor(x: DoubleDouble) -> DoubleDouble:
    whole = np.floor(x.high)
    return _pair(whole, whole, np.where(whole == x.high, np.floor(x.low), 0.0))


def _ceil(x: DoubleDouble) -> DoubleDouble:
    return -_floor(-x)


def _trunc(x: DoubleDouble) -> DoubleDouble:
    return select(x.high < 0.0, _ceil(x), _floor(x))


def _rint(x: DoubleDouble) -> DoubleDouble:
    whole = np.rint(x.high)
    over = x.high - whole
    # A half that is not quite one is rounded by what is behind it.
    whole = whole + ((over == 0.5) & (x.low > 0.0)) - ((over == -0.5) & (x.low < 0.0))
    return _pair(whole, whole, np.where(over == 0.0, np.rint(x.low), 0.0))


def _truncate(x: DoubleDouble) -> Any:
    whole = _trunc(x)
    plain: Any = BY_NAME["truncate"].numpy
    return plain(whole.high) + np.where(np.abs(whole.high) < 2.0**63, whole.low, 0.0).astype(int)


def _from_int(i: Any) -> DoubleDouble:
    high = np.asarray(i).astype(np.float64)[()]
    inside = np.abs(high) < 2.0**62
    return DoubleDouble(high, np.where(inside, i - np.where(inside, high, 0).astype(int), 0.0)[()])


# ---- constants -----------------------------------------------------------------------------------


def _words(value: Fraction, count: int = 2) -> list[float]:
    """Return a number as a sum of float64, the largest first."""
    words = []
    for _ in range(count):
        words.append(float(value))
        value -= Fraction(words[-1])
    return words


def _constant(value: Fraction) -> DoubleDouble:
    return DoubleDouble(*_words(value))


_HALF_PI = Fraction("1.57079632679489661923132169163975144209858469968755291048747229615390820")
_LN2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068000949339362")
_LN10 = Fraction("2.30258509299404568401799145468436420760110148862877297603332790096757261")
_HALF_PI_WORDS = _words(_HALF_PI, 4)
_TWO_OVER_PI = float(1 / _HALF_PI)


def _inverse_factorials(first: int, count: int, step: int) -> list[DoubleDouble]:
    found, value = [], Fraction(1)
    for k in range(1, first + count * step):
        value /= k
        if k >= first and (k - first) % step == 0:
            found.append(_constant(value))
    return found


_EXP_TERMS = _inverse_factorials(1, 10, 1)
_SIN_TERMS = _inverse_factorials(3, 14, 2)
_COS_TERMS = _inverse_factorials(2, 15, 2)


def _horner(x: DoubleDouble, terms: Sequence[DoubleDouble]) -> DoubleDouble:
    total = terms[-1]
    for term in terms[-2::-1]:
        total = total * x + term
    return total


# ---- exponentials and logarithms -----------------------------------------------------------------


def _reduced_expm1(x: DoubleDouble) -> tuple[DoubleDouble, Any]:
    """Return ``exp(x - k ln 2) - 1`` and ``k``."""
    k = np.rint(np.clip(np.nan_to_num(x.high), -2000.0, 2000.0) / float(_LN2))
    r = _scale(x - DoubleDouble(k) * _constant(_LN2), -9)
    s = r * _horner(r, _EXP_TERMS)
    for _ in range(9):  # exp(2 x) - 1 = 2 s + s**2
        s = s + s + s * s
    return s, k.astype(int)


def _exp(x: DoubleDouble) -> DoubleDouble:
    s, k = _reduced_expm1(x)
    result = _scale(s + 1.0, k)
    return _like("exp", result, x)


def _expm1(x: DoubleDouble) -> DoubleDouble:
    s, k = _reduced_expm1(x)
    return _like("expm1", select(k == 0, s, _scale(s + 1.0, k) - 1.0), x)


def _log(x: DoubleDouble) -> DoubleDouble:
    y = DoubleDouble(np.log(x.high))
    return _like("log", y + (x * _exp(-y) - 1.0), x)


def _log1p(x: DoubleDouble) -> DoubleDouble:
    y = DoubleDouble(np.log1p(x.high))
    e = _expm1(y)
    return _like("log1p", y + (x - e) / (e + 1.0), x)


def _like(name: str, value: DoubleDouble, *operands: DoubleDouble) -> DoubleDouble:
    """Return a value; where there is none, or hardly any digits, the function's in float64."""
    plain = DOUBLE.functions[BY_NAME[name].code](*(x.high for x in operands))
    fine = np.isfinite(plain) & np.isfinite(value.high) & np.isfinite(value.low)
    fine &= np.abs(plain) > _TINY
    return select(fine, value, DoubleDouble(plain))


# ---- trigonometry --------------------------------------------------------------------------------


def _sin_cos(x: DoubleDouble) -> tuple[DoubleDouble, DoubleDouble]:
    far = np.abs(x.high) >= 2.0**51
    near = select(far | ~np.isfinite(x.high), DoubleDouble(np.zeros_like(x.high)), x)
    k = np.rint(near.high * _TWO_OVER_PI)
    r = near
    for word in _HALF_PI_WORDS:
        r = r - DoubleDouble(*_two_product(k, word))
    square = -(r * r)  # terms of the series have alternating signs
    sine = r + r * (square * _horner(square, _SIN_TERMS))
    cosine = 1.0 + square * _horner(square, _COS_TERMS)
    quarter = np.mod(k, 4.0)
    swap = (quarter == 1.0) | (quarter == 3.0)
    s, c = select(swap, cosine, sine), select(swap, sine, cosine)
    s = select(quarter >= 2.0, -s, s)
    c = select((quarter == 1.0) | (quarter == 2.0), -c, c)
    # Of many turns float64 knows the angle as well as anybody; what is behind it moves it along.
    plain_s, plain_c = (DOUBLE.functions[BY_NAME[n].code](x.high) for n in ("sin", "cos"))
    return (
        select(far, DoubleDouble(plain_s) + plain_c * x.low, s),
        select(far, DoubleDouble(plain_c) - plain_s * x.low, c),
    )


def _sin(x: DoubleDouble) -> DoubleDouble:
    return _like("sin", _sin_cos(x)[0], x)


def _cos(x: DoubleDouble) -> DoubleDouble:
    return _like("cos", _sin_cos(x)[1], x)


def _tan(x: DoubleDouble) -> DoubleDouble:
    s, c = _sin_cos(x)
    return _like("tan", s / c, x)


def _hypot(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    _, exponent = np.frexp(np.maximum(np.abs(x.high), np.abs(y.high)))
    a, b = _scale(x, -exponent), _scale(y, -exponent)
    return _like("hypot", _scale(_sqrt(a * a + b * b), exponent), x, y)


def _arctan2(y: DoubleDouble, x: DoubleDouble) -> DoubleDouble:
    # With z near the angle: sin(angle - z) = (y cos z - x sin z) / r.
    _, exponent = np.frexp(np.maximum(np.abs(x.high), np.abs(y.high)))
    a, b = _scale(x, -exponent), _scale(y, -exponent)
    z = DoubleDouble(np.arctan2(y.high, x.high))
    s, c = _sin_cos(z)
    return _like("arctan2", z + (b * c - a * s) / _sqrt(a * a + b * b), y, x)


def _arctan(x: DoubleDouble) -> DoubleDouble:
    return _like("arctan", _arctan2(x, DoubleDouble(np.ones_like(x.high))), x)


def _complement(x: DoubleDouble) -> DoubleDouble:
    return _sqrt((1.0 - x) * (1.0 + x))


def _arcsin(x: DoubleDouble) -> DoubleDouble:
    return _like("arcsin", _arctan2(x, _complement(x)), x)


def _arccos(x: DoubleDouble) -> DoubleDouble:
    return _like("arccos", _arctan2(_complement(x), x), x)


# ---- hyperbolic functions and powers -------------------------------------------------------------


def _sinh(x: DoubleDouble) -> DoubleDouble:
    e = _expm1(abs(x))
    value = (e + e / (e + 1.0)) * 0.5
    return _like("sinh", select(x.high < 0.0, -value, value), x)


def _cosh(x: DoubleDouble) -> DoubleDouble:
    e = _exp(abs(x))
    return _like("cosh", (e + 1.0 / e) * 0.5, x)


def _tanh(x: DoubleDouble) -> DoubleDouble:
    e = _expm1(-2.0 * abs(x))
    value = -e / (e + 2.0)
    return _like("tanh", select(x.high < 0.0, -value, value), x)


def _arcsinh(x: DoubleDouble) -> DoubleDouble:
    a = abs(x)
    value = _log1p(a + a * a / (1.0 + _sqrt(1.0 + a * a)))
    return _like("arcsinh", select(x.high < 0.0, -value, value), x)


def _arccosh(x: DoubleDouble) -> DoubleDouble:
    t = x - 1.0
    return _like("arccosh", _log1p(t + _sqrt(t * (t + 2.0))), x)


def _arctanh(x: DoubleDouble) -> DoubleDouble:
    a = abs(x)
    value = 0.5 * _log1p((a + a) / (1.0 - a))
    return _like("arctanh", select(x.high < 0.0, -value, value), x)


def _cbrt(x: DoubleDouble) -> DoubleDouble:
    y = DoubleDouble(np.cbrt(x.high))
    return _like("cbrt", y + (x - y * y * y) / (3.0 * y.high * y.high), x)


def _pow(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    size = _exp(y * _log(abs(x)))
    odd = (np.mod(y.high, 2.0) == 1.0) & (x.high < 0.0)
    return _like("pow", select(odd, -size, size), x, y)


def _fmod(x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    rest = np.fmod(x.high, y.high)
    turns = np.rint((x.high - rest) / y.high)
    value = DoubleDouble(rest) + DoubleDouble(x.low) - turns * DoubleDouble(y.low)
    size, limit = abs(value), abs(y)
    value = select(size >= limit, value - select(value.high < 0.0, -limit, limit), value)
    return _like("fmod", value, x, y)


# ---- the arithmetic ------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": lambda a, b: a - b,
    "mul": _mul,
    "div": _div,
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": _sqrt,
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "rint": _rint,
    "copysign": lambda a, b: select(np.signbit(a.high) != np.signbit(b.high), -a, a),
    "min": lambda a, b: select((a < b) | np.isnan(a.high), a, b),
    "max": lambda a, b: select((a > b) | np.isnan(a.high), a, b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "fma": lambda a, b, c: a * b + c,
    "f64": lambda a: a,
    "f32": lambda a: np.float32(a.high),
    "truncate": _truncate,
    "bits": lambda a: DOUBLE.functions[BY_NAME["bits"].code](a.high),
    "stop": lambda a: a,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arctan": _arctan,
    "arctan2": _arctan2,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "arcsinh": _arcsinh,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "exp": _exp,
    "exp2": lambda a: _like("exp2", _exp(a * _constant(_LN2)), a),
    "exp10": lambda a: _like("exp10", _exp(a * _constant(_LN10)), a),
    "expm1": _expm1,
    "log": _log,
    "log2": lambda a: _like("log2", _log(a) / _constant(_LN2), a),
    "log10": lambda a: _like("log10", _log(a) / _constant(_LN10), a),
    "log1p": _log1p,
    "cbrt": _cbrt,
    "hypot": _hypot,
    "pow": _pow,
    "fmod": _fmod,
}
_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: lambda a, b: lift(a) + b,
    np.subtract: lambda a, b: lift(a) - b,
    np.multiply: lambda a, b: lift(a) * b,
    np.true_divide: lambda a, b: lift(a) / b,
    np.less: lambda a, b: lift(a) < b,
    np.greater: lambda a, b: lift(a) > b,
    np.equal: lambda a, b: lift(a) == b,
    np.not_equal: lambda a, b: lift(a) != b,
    np.absolute: abs,
    np.isnan: lambda a: np.isnan(a.high),
    np.isfinite: lambda a: np.isfinite(a.high),
}


def _along_slope(name: str) -> Callable[..., DoubleDouble]:
    """Return a function as its float64 value moved along its derivative."""
    plain: Any = BY_NAME[name].numpy

    def function(*operands: DoubleDouble) -> DoubleDouble:
        high = [x.high for x in operands]
        moved = DoubleDouble(plain(*high))
        for x, slope in zip(operands, slopes(name, *high)):
            moved = moved + np.where(x.low == 0.0, 0.0, slope * x.low)
        return _like(name, moved, *operands)

    return function


def _function(name: str, plain: Any) -> Callable[..., Any]:
    """Return what an op does to pairs; to anything else it does what it always does."""
    own = _FUNCTIONS.get(name) or (_along_slope(name) if name in PROGRAMS else None)

    def function(*operands: Any) -> Any:
        if own is None or not any(isinstance(x, DoubleDouble) for x in operands):
            return plain(*operands)
        return own(*map(lift, operands))

    return function


def _select_op(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(a, DoubleDouble) or isinstance(b, DoubleDouble):
        return select(condition, a, b)
    plain: Any = BY_NAME["select"].numpy
    return plain(condition, a, b)


def _to_double(x: Any) -> DoubleDouble:
    if isinstance(x, DoubleDouble):
        return x
    return _from_int(x) if np.asarray(x).dtype.kind == "i" else DoubleDouble(x)


def _evaluate(region: Region, values: list[Any], run: Run) -> list[Any]:
    """Run a region whose own way would lose the low parts."""
    if isinstance(region, (Pack, Accumulate)):
        parts = [region.evaluate([_parts(x, k) for x in values], run) for k in range(2)]
        if any(isinstance(x, DoubleDouble) for x in values):
            return [_pair(a, a, b) for a, b in zip(*parts)]
        return parts[0]
    if isinstance(region, (Sort, Host)):
        outs = region.evaluate([_parts(x, 0) for x in values], run)
        return [_to_double(x) if np.asarray(x).dtype.kind == "f" else x for x in outs]
    if isinstance(region, Switch) and np.ndim(values[0]):
        index = np.clip(values[0], 0, len(region.branches) - 1)
        rows = [run(body, values[1:]) for body in region.branches]
        return [_choose(index, [row[k] for row in rows]) for k in range(len(region.out_dtypes))]
    return region.evaluate(values, run)


def _choose(index: Any, outs: list[Any]) -> Any:
    chosen = outs[0]
    for k, out in enumerate(outs[1:], 1):
        chosen = _select_op(index == k, out, chosen)
    return chosen


_OWN: dict[str, Callable[..., Any]] = {
    "select": _select_op,
    "f64": _to_double,
    "from_bits": lambda i: DoubleDouble(DOUBLE.functions[BY_NAME["from_bits"].code](i)),
}

DOUBLE_DOUBLE = Arithmetic(
    name="double-double",
    eps=2.0**-104,
    functions=tuple(_OWN.get(op.name) or _function(op.name, op.numpy) for op in TABLE),
    array=lift,
    region=lambda region: region,
    evaluate=_evaluate,
)
