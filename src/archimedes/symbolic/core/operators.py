"""Operators and methods of traced arrays, each the NumPy function of the same meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import apply_ufunc
from archimedes.symbolic.core.ufuncs import UFUNCS

__all__ = ["DIRECT", "OPERATORS", "Operators"]

#: Types whose operators end here without a way through NumPy: Python's numbers, and traced ones.
DIRECT: set[type] = {float, int}


class Operators:
    """What traced arrays inherit: ``x + y``, ``x @ y``, ``x += y``, ``x.sin()``, ``x.sum(...)``."""

    __slots__ = ()


def _operator(ufunc: np.ufunc, *, swap: bool = False) -> Any:
    elementwise = ufunc in UFUNCS

    def method(self: Any, other: Any) -> Any:
        if elementwise and type(other) in DIRECT:
            # No other class has a say: the way through NumPy would end here.
            return apply_ufunc(ufunc, (other, self) if swap else (self, other))
        if getattr(other, "__array_ufunc__", False) is None or isinstance(other, str):
            return NotImplemented
        return ufunc(other, self) if swap else ufunc(self, other)

    return method


def _inplace(ufunc: np.ufunc) -> Any:
    def method(self: Any, other: Any) -> Any:
        result = ufunc(self, other)
        if self.ids.ndim == 0 and self.form() is not self.array:
            return result  # a scalar is a value: it is replaced, not written to
        if not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' output from {result.dtype!r} to "
                f"{self.dtype!r} with casting rule 'same_kind'"
            )
        if result.shape != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the "
                f"broadcast shape {result.shape}"
            )
        self[...] = result
        return self

    return method


def _unary(ufunc: np.ufunc) -> Any:
    def method(self: Any) -> Any:
        return apply_ufunc(ufunc, (self,))

    return method


def _power(self: Any, exponent: Any) -> Any:
    # NumPy's operator, unlike np.power, takes the square root for an exponent of 0.5.
    if type(exponent) is float and exponent == 0.5:
        return np.sqrt(self)
    return np.power(self, exponent)


_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "divmod": np.divmod,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}
#: Python's operators, by the names of their methods.
OPERATORS = {**_BINARY, **_COMPARISONS, **_UNARY}
for _name, _ufunc in _BINARY.items():
    setattr(Operators, f"__{_name}__", _operator(_ufunc))
    setattr(Operators, f"__r{_name}__", _operator(_ufunc, swap=True))
    setattr(Operators, f"__i{_name}__", _inplace(_ufunc))
Operators.__pow__ = _power  # type: ignore[attr-defined, operator, unused-ignore]
Operators.__rpow__ = _operator(np.power, swap=True)  # type: ignore[attr-defined]
Operators.__ipow__ = _inplace(np.power)  # type: ignore[attr-defined]
for _name, _ufunc in _COMPARISONS.items():
    setattr(Operators, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in _UNARY.items():
    setattr(Operators, f"__{_name}__", _unary(_ufunc))

# Object arrays of traced scalars call methods named like ufuncs: np.sin(a) calls a[i].sin().
_UFUNCS = (
    "sqrt sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh exp exp2 "
    "expm1 log log2 log10 log1p cbrt hypot floor ceil trunc rint sign square degrees radians "
    "deg2rad rad2deg isnan isfinite isinf fabs"
)
for _name in _UFUNCS.split():
    _ufunc = getattr(np, _name)
    setattr(Operators, _name, (_operator if _ufunc.nin == 2 else _unary)(_ufunc))


def _function_method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Return ``np.{name}(self, ...)``."
    return method


_FUNCTIONS = (
    "sum prod mean std var max min argmax argmin any all cumsum cumprod dot ravel squeeze swapaxes "
    "repeat take diagonal trace clip round argsort argpartition nonzero searchsorted choose put"
)
for _name in _FUNCTIONS.split():
    setattr(Operators, _name, _function_method(_name))
