"""A second provider of the primitives: Python floats and ints, one element at a time.

It knows only what a program may use, computes nothing with NumPy, and simplifies what a graph
simplifies (a literal zero times x is zero, x plus a literal zero is x), so a program that gives
the same bits here and in NumPy depends on neither.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

Number = float | int | bool


def wrap(i: int) -> int:
    return (i + 2**63) % 2**64 - 2**63


def divide(a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


class Scalar:
    """A float, int64 or bool that mixes with literals of its own type only."""

    def __init__(self, value: Number) -> None:
        self.value = value

    def __bool__(self) -> bool:
        raise TypeError("a program must not look at a value")

    __hash__ = None


def is_zero(x: Any) -> bool:
    return not isinstance(x, Scalar) and x == 0


def raw(x: Any, kind: type) -> Any:
    value = x.value if isinstance(x, Scalar) else x
    assert type(value) is kind, f"{value!r} is not {kind.__name__}"
    return value


def arithmetic(name: str, a: Any, b: Any) -> Scalar:
    operands = [x.value if isinstance(x, Scalar) else x for x in (a, b)]
    kind = type(operands[0])
    assert kind in (float, int) and type(operands[1]) is kind, (name, operands)
    if name == "mul" and (is_zero(a) or is_zero(b)):
        return Scalar(kind(0))
    if name == "add" and is_zero(a):
        return b
    if name in ("add", "sub") and is_zero(b):
        return a
    x, y = operands
    if name == "div":
        assert kind is float
        return Scalar(divide(x, y))
    result = {"add": x + y, "sub": x - y, "mul": x * y}[name]
    return Scalar(wrap(result) if kind is int else result)


def integer(function: Callable[[int, int], int]) -> Callable[..., Scalar]:
    return lambda a, b: Scalar(wrap(function(raw(a, int), raw(b, int))))


def logical(function: Callable[[Any, Any], Any]) -> Callable[..., Scalar]:
    def operator(a: Scalar, b: Any) -> Scalar:
        kind = type(a.value)
        assert kind in (int, bool)
        return Scalar(kind(function(raw(a, kind), raw(b, kind))))

    return operator


def comparison(function: Callable[[Any, Any], bool]) -> Callable[..., Scalar]:
    def operator(a: Scalar, b: Any) -> Scalar:
        kind = type(a.value)
        assert kind in (int, float)
        return Scalar(function(raw(a, kind), raw(b, kind)))

    return operator


for _name in ("add", "sub", "mul"):
    setattr(Scalar, f"__{_name}__", lambda a, b, n=_name: arithmetic(n, a, b))
    setattr(Scalar, f"__r{_name}__", lambda a, b, n=_name: arithmetic(n, b, a))
Scalar.__truediv__ = lambda a, b: arithmetic("div", a, b)
Scalar.__rtruediv__ = lambda a, b: arithmetic("div", b, a)
Scalar.__neg__ = lambda a: Scalar(-raw(a, float))
Scalar.__invert__ = lambda a: Scalar(not raw(a, bool))
Scalar.__and__ = Scalar.__rand__ = logical(lambda a, b: a & b)
Scalar.__or__ = Scalar.__ror__ = logical(lambda a, b: a | b)
Scalar.__xor__ = logical(lambda a, b: a ^ b)
Scalar.__lshift__ = integer(lambda a, b: a << b)
Scalar.__rshift__ = integer(lambda a, b: a >> b)
Scalar.__lt__ = comparison(lambda a, b: a < b)
Scalar.__le__ = comparison(lambda a, b: a <= b)
Scalar.__gt__ = comparison(lambda a, b: a > b)
Scalar.__ge__ = comparison(lambda a, b: a >= b)
Scalar.__eq__ = comparison(lambda a, b: a == b)
Scalar.__ne__ = comparison(lambda a, b: a != b)


def convert(x: Any, kind: type, source: str, target: str) -> Scalar:
    return Scalar(struct.unpack(target, struct.pack(source, raw(x, kind)))[0])


class PythonPrimitives:
    """The methods of ``Primitives`` on scalars."""

    def abs(self, x: Any) -> Scalar:
        return Scalar(math.fabs(raw(x, float)))

    def sqrt(self, x: Any) -> Scalar:
        value = raw(x, float)
        return Scalar(math.nan if value < 0 else math.sqrt(value))

    def floor(self, x: Any) -> Scalar:
        value = raw(x, float)
        return Scalar(float(math.floor(value)) if math.isfinite(value) else value)

    def rint(self, x: Any) -> Scalar:
        value = raw(x, float)
        return Scalar(math.copysign(round(value), value) if math.isfinite(value) else value)

    def to_int(self, x: Any) -> Scalar:
        return Scalar(int(raw(x, float)))

    def copysign(self, a: Any, b: Any) -> Scalar:
        return Scalar(math.copysign(raw(a, float), raw(b, float)))

    def where(self, c: Any, a: Any, b: Any) -> Scalar:
        chosen = a if raw(c, bool) else b
        return chosen if isinstance(chosen, Scalar) else Scalar(chosen)

    def shift_right_logical(self, i: Any, n: int) -> Scalar:
        return Scalar(wrap((raw(i, int) % 2**64) >> n))

    def int_rem(self, a: Any, b: Any) -> Scalar:
        x, y = raw(a, int), raw(b, int)
        assert x >= 0 and y > 0
        return Scalar(x % y)

    def bits(self, x: Any) -> Scalar:
        return convert(x, float, "<d", "<q")

    def from_bits(self, i: Any) -> Scalar:
        return convert(i, int, "<q", "<d")

    def to_float(self, i: Any) -> Scalar:
        return Scalar(float(raw(i, int)))

    def lookup(self, table: tuple[Any, ...], i: Any) -> Scalar:
        return Scalar(table[min(max(raw(i, int), 0), len(table) - 1)])

    def branch(self, cond: Any, f_true: Any, f_false: Any, *args: Any) -> tuple[Any, ...]:
        return (f_true if raw(cond, bool) else f_false)(*args)

    def loop(self, cond: Any, body: Any, state: tuple[Any, ...], limit: int) -> tuple[Any, ...]:
        for _ in range(limit):
            if not raw(cond(*state), bool):
                return state
            state = body(*state)
        assert not raw(cond(*state), bool), "the loop's limit is too small"
        return state


PYTHON = PythonPrimitives()
