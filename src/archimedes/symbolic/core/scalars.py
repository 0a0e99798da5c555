"""Traced scalars: NumPy's, and Python's numbers with Python's rules.

Both answer type tests as the values they stand for do, since ``isinstance`` asks an object for
its ``__class__``: a traced Python float is an instance of ``float`` and ``numbers.Real``, a traced
element of a float32 array one of ``np.float32``. ``type(x)`` is what it is, so that C code which
would read a float's memory (``math.sin``) asks ``__float__`` instead, which explains itself.

A *number* stands for a Python int, float or bool: what a caller passed as one, and what Python's
operators make of those. Operators between two of them follow Python (``True + True`` is 2,
``7 / 2`` a float, ``2**-1`` one half); between one and an array NumPy's rules hold, where it does
not widen the array. What NumPy's functions return is never a number. See docs/decisions/018.

Python's ``round(x, n)`` gives the nearest decimal to the exact value of a float, ties to even.
NumPy rounds ``x * 10**n``, whose own rounding makes spurious ties: 2.675 is below the tie, so that
Python gives 2.67 and NumPy 2.68. Here the rounding error of the product decides (Dekker, "A
floating-point technique for extending the available precision", Numer. Math. 18, 1971).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES, F64, I64
from archimedes.symbolic.core.array import DIRECT, OPERATORS, Operators, SymbolicArray
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import TracedValue
from archimedes.symbolic.core.ufunc_calls import apply_ufunc
from archimedes.symbolic.core.user_frames import is_user_code

__all__ = ["SymbolicNumber", "SymbolicScalar"]

_SPLIT = 2.0**27 + 1
#: From here on floats are whole numbers.
_WHOLE = 2.0**52
#: Powers of ten up to this one are exact.
_EXACT_DIGITS = 22


def round_to_digits(x: Any, digits: int) -> Any:
    """Return a traced float64 scalar rounded to ``digits`` decimal places."""
    if abs(digits) > _EXACT_DIGITS:
        raise trace_error(
            f"round(x, {digits}) of a Python float cannot be recorded",
            f"Use at most {_EXACT_DIGITS} digits; np.round(x, {digits}) takes any number.",
        )
    scale = 10.0 ** abs(digits)
    if digits < 0:
        scaled = np.divide(x, scale)
        error = np.subtract(x, (np.floor(scaled) + 0.5) * scale)
        return np.where(np.abs(scaled) < _WHOLE, _nearest(scaled, error) * scale, x)
    scaled = np.multiply(x, scale)
    rounded = _nearest(scaled, _product_error(x, scale, scaled)) / scale
    return np.where(np.abs(scaled) < _WHOLE, rounded, x)


def _nearest(value: Any, error: Any) -> Any:
    """Round ``value + error`` to a whole number; the error counts where the value is a tie."""
    near = np.rint(value)
    rest = value - near
    up = np.logical_and(rest == 0.5, error > 0)
    down = np.logical_and(rest == -0.5, error < 0)
    return np.where(up, near + 1.0, np.where(down, near - 1.0, near))


def _halves(x: Any) -> tuple[Any, Any]:
    cut = np.multiply(x, _SPLIT)
    high = cut - (cut - x)
    return high, x - high


def _product_error(a: Any, b: float, product: Any) -> Any:
    """What ``a * b`` lost by rounding to ``product``."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl


# ---- scalars ------------------------------------------------------------------------------------


class SymbolicScalar(SymbolicArray):
    """A traced NumPy scalar: an element of an array, or the result of a function."""

    __slots__ = ()

    # ``isinstance`` looks here when ``type(x)`` does not answer.
    __class__ = property(lambda self: DTYPES[self.code].type)

    def __hash__(self) -> int:  # type: ignore[override]
        if not is_user_code(sys._getframe(1)):
            raise TypeError("traced values cannot be compared by content")
        raise trace_error(
            "hash(x) needs the value of a traced scalar (to look it up in a dict or set, or in a "
            "cache such as functools.lru_cache)",
            "Choose with np.where or arc.switch, index a table (T[i]), or declare the argument "
            "static (static_argnames).",
        )

    def form(self) -> type[SymbolicArray]:
        """Return the class of what NumPy's methods make of it: of a scalar, a scalar."""
        return SymbolicScalar

    def __getitem__(self, key: Any) -> SymbolicArray:
        # Not an IndexError: for Python's iteration that would be the end of a sequence.
        if type(key) is int or isinstance(key, slice):
            name = self.__class__.__name__
            raise TypeError(f"a {name} is a scalar: it is not iterable and has no element {key!r}")
        return SymbolicArray.__getitem__(self, key)

    def __round__(self, ndigits: int | None = None) -> Any:
        rounded: Any = np.round(self, 0 if ndigits is None else ndigits)
        return _whole(rounded) if ndigits is None else rounded

    def __floor__(self) -> SymbolicArray:
        return _whole(np.floor(self))

    def __ceil__(self) -> SymbolicArray:
        return _whole(np.ceil(self))

    def __trunc__(self) -> SymbolicArray:
        return _whole(np.trunc(self))

    def is_integer(self) -> Any:
        """Return whether the value is a whole number."""
        return np.equal(np.trunc(self), self)


def _whole(x: Any) -> SymbolicArray:
    """Return a rounded value as the Python int that it is."""
    return x.astype(np.int64).as_number()


_PYTHON_TYPES = {F64: float, I64: int, B8: bool}


class SymbolicNumber(SymbolicScalar):
    """A traced Python number: float, int, or the bool of a comparison between them."""

    __slots__ = ()
    __hash__ = SymbolicScalar.__hash__
    weak = True
    __class__ = property(lambda self: _PYTHON_TYPES[self.code])

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is None or self.code != F64:
            return _number(SymbolicScalar.__round__(_as_integer(self), ndigits))
        return _number(round_to_digits(self, int(ndigits)))

    def __bool__(self) -> bool:
        return SymbolicScalar.__bool__(self)

    real = property(lambda self: _as_integer(self), doc="The number; for a bool the integer.")
    imag = property(lambda self: _as_integer(self) * 0, doc="Zero, of the same type.")

    def conjugate(self) -> SymbolicArray:
        """Return the number: it is real."""
        return _as_integer(self)

    def is_integer(self) -> Any:
        """Return whether the value is a whole number."""
        return _number(SymbolicScalar.is_integer(self))


def _hidden(name: str) -> property:
    """What arrays have and Python's numbers do not: ``hasattr(x, "shape")`` is a type test too."""
    inherited = getattr(SymbolicArray, name)

    def read(self: Any) -> Any:
        if is_user_code(sys._getframe(1)):
            kind = self.__class__.__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        return inherited.fget(self)

    return property(read)


for _name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "T", "mT", "flat"):
    setattr(SymbolicNumber, _name, _hidden(_name))

TracedValue.scalar = SymbolicScalar
TracedValue.number = SymbolicNumber
DIRECT.update((SymbolicScalar, SymbolicNumber))


# ---- Python's operators --------------------------------------------------------------------

_NUMBERS = frozenset({float, int, bool, SymbolicNumber})


def _number(x: Any) -> Any:
    """Return a traced scalar as a Python number."""
    return SymbolicNumber(x.ids, x.code, x.owner)


def _as_integer(x: Any) -> Any:
    """Return an operand of arithmetic: a bool is the integer 0 or 1."""
    if type(x) is bool:
        return int(x)
    if isinstance(x, SymbolicArray) and x.code == B8:
        return _number(x.astype(np.int64))
    return x


def _same(x: Any) -> Any:
    return x


def _binary(name: str, ufunc: Any, prepare: Any, swap: bool) -> Any:
    with_arrays = getattr(Operators, name)

    def method(self: Any, other: Any) -> Any:
        if type(other) in _NUMBERS:
            a, b = prepare(self), prepare(other)
            return apply_ufunc(ufunc, (b, a) if swap else (a, b), number=True)
        if hasattr(type(other), "__array_ufunc__"):
            return with_arrays(self, other)
        return NotImplemented  # as Python's numbers answer: a list, a string, None

    return method


def _unary(ufunc: Any) -> Any:
    def method(self: Any) -> Any:
        return apply_ufunc(ufunc, (_as_integer(self),), number=True)

    return method


def _invert(self: Any) -> Any:
    if self.code == B8:
        raise trace_error(
            "~x of a Python bool is -1 or -2, which are both true", "Write np.logical_not(x)."
        )
    return apply_ufunc(np.invert, (self,), number=True)


def _power(base: Any, exponent: Any) -> Any:
    """Python's power: the type of ``int**int`` depends on the exponent's sign."""
    base, exponent = _as_integer(base), _as_integer(exponent)
    if _is_int(base) and _is_int(exponent):
        known = exponent if type(exponent) is int else _value(exponent)
        if known is None and _value(base) in (1, -1):
            return _number(np.where(exponent & 1, _value(base), 1))
        if known is None:
            raise trace_error(
                "a Python int to the power of a traced Python int is an int or a float, "
                "depending on the exponent's sign",
                "Write a float as the base (2.0**n), 1 << n for powers of two, or declare the "
                "exponent static (static_argnames).",
            )
        if known is not None and known < 0:
            return apply_ufunc(np.power, (base, float(known)), number=True)
    if type(exponent) is float and exponent == 0.5:
        return apply_ufunc(np.sqrt, (base,), number=True)
    return apply_ufunc(np.power, (base, exponent), number=True)


def _is_int(x: Any) -> bool:
    return type(x) is int or (isinstance(x, SymbolicArray) and x.code == I64)


def _value(x: Any) -> Any:
    """The value of an operand where it is known."""
    if type(x) is int:
        return x
    return current_trace().graph.value.get(int(current_trace().ids_of(x)))


def _power_method(name: str, swap: bool) -> Any:
    with_arrays = getattr(Operators, name)

    def method(self: Any, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise trace_error("pow(x, y, z) cannot be recorded", "Write x**y % z.")
        if type(other) in _NUMBERS:
            return _power(other, self) if swap else _power(self, other)
        if hasattr(type(other), "__array_ufunc__"):
            return with_arrays(self, other)
        return NotImplemented

    return method


_ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "lshift", "rshift"]
for _name in (*_ARITHMETIC, "and", "or", "xor"):
    _prepare = _as_integer if _name in _ARITHMETIC else _same
    for _prefix, _swap in (("", False), ("r", True), ("i", False)):
        # A number cannot be written to: x += 1 is x = x + 1.
        _dunder = f"__{'' if _prefix == 'i' else _prefix}{_name}__"
        _method = _binary(_dunder, OPERATORS[_name], _prepare, _swap)
        setattr(SymbolicNumber, f"__{_prefix}{_name}__", _method)
for _name in ["lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(SymbolicNumber, f"__{_name}__", _binary(f"__{_name}__", OPERATORS[_name], _same, False))
for _name in ["neg", "pos", "abs"]:
    setattr(SymbolicNumber, f"__{_name}__", _unary(OPERATORS[_name]))
for _name, _method in {
    "invert": _invert,
    "pow": _power_method("__pow__", swap=False),
    "rpow": _power_method("__rpow__", swap=True),
    "ipow": _power_method("__pow__", swap=False),
}.items():
    setattr(SymbolicNumber, f"__{_name}__", _method)
