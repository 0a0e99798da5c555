"""Expressions that variables are calculated by: called with the values of the variables they read.

The values may be numbers, arrays or traced: an expression is plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes.function import switch

__all__ = ["OPERATIONS", "Apply", "Expression", "Number", "Piecewise", "Reference"]

Values = Mapping[str, Any]


def _chain(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """a < b < c, as MathML reads a relation of several arguments."""
    return lambda *x: reduce(np.logical_and, (compare(a, b) for a, b in pairwise(x)))


def _fold(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *x: reduce(combine, x)


def _minus(a: Any, *b: Any) -> Any:
    return a - b[0] if b else -a


def _known(value: Any, *numbers: float) -> bool:
    """Whether a number of the file, which no caller gives, is one of these."""
    return type(value) is float and value in numbers


def _power(a: Any, b: Any) -> Any:
    """Squares and square roots are rounded once, powers are not."""
    if _known(b, 2.0):
        return np.square(a)
    return np.sqrt(a) if _known(b, 0.5) else np.power(a, b)


def _root(a: Any, degree: Any = 2.0) -> Any:
    if _known(degree, 2.0):
        return np.sqrt(a)
    return np.cbrt(a) if _known(degree, 3.0) else np.power(a, np.divide(1.0, degree))


def _logarithm(a: Any, base: Any = 10.0) -> Any:
    return np.log10(a) if _known(base, 10.0) else np.log(a) / np.log(base)


#: Operation -> what it does, and the fewest and most arguments it takes.
OPERATIONS: dict[str, tuple[Callable[..., Any], int, float]] = {
    "plus": (_fold(lambda a, b: a + b), 1, np.inf),
    "times": (_fold(lambda a, b: a * b), 1, np.inf),
    "minus": (_minus, 1, 2),
    "divide": (np.divide, 2, 2),
    "power": (_power, 2, 2),
    "root": (_root, 1, 2),
    "log": (_logarithm, 1, 2),
    "rem": (np.fmod, 2, 2),
    "quotient": (lambda a, b: np.trunc(np.divide(a, b)), 2, 2),
    "min": (_fold(np.minimum), 1, np.inf),
    "max": (_fold(np.maximum), 1, np.inf),
    "atan2": (np.arctan2, 2, 2),
    "lt": (_chain(np.less), 2, np.inf),
    "gt": (_chain(np.greater), 2, np.inf),
    "leq": (_chain(np.less_equal), 2, np.inf),
    "geq": (_chain(np.greater_equal), 2, np.inf),
    "eq": (_chain(np.equal), 2, np.inf),
    "neq": (np.not_equal, 2, 2),
    "and": (_fold(np.logical_and), 1, np.inf),
    "or": (_fold(np.logical_or), 1, np.inf),
    "xor": (_fold(np.logical_xor), 1, np.inf),
    "not": (np.logical_not, 1, 1),
    "sec": (lambda a: 1.0 / np.cos(a), 1, 1),
    "csc": (lambda a: 1.0 / np.sin(a), 1, 1),
    "cot": (lambda a: 1.0 / np.tan(a), 1, 1),
    "sech": (lambda a: 1.0 / np.cosh(a), 1, 1),
    "csch": (lambda a: 1.0 / np.sinh(a), 1, 1),
    "coth": (lambda a: 1.0 / np.tanh(a), 1, 1),
    "arcsec": (lambda a: np.arccos(1.0 / a), 1, 1),
    "arccsc": (lambda a: np.arcsin(1.0 / a), 1, 1),
    "arccot": (lambda a: np.arctan(1.0 / a), 1, 1),
    "arcsech": (lambda a: np.arccosh(1.0 / a), 1, 1),
    "arccsch": (lambda a: np.arcsinh(1.0 / a), 1, 1),
    "arccoth": (lambda a: np.arctanh(1.0 / a), 1, 1),
    "implies": (lambda a, b: np.logical_or(np.logical_not(a), b), 2, 2),
    **{
        name: (function, 1, 1)
        for name, function in {
            "abs": np.abs,
            "sqrt": np.sqrt,
            "exp": np.exp,
            "ln": np.log,
            "sin": np.sin,
            "cos": np.cos,
            "tan": np.tan,
            "arcsin": np.arcsin,
            "arccos": np.arccos,
            "arctan": np.arctan,
            "sinh": np.sinh,
            "cosh": np.cosh,
            "tanh": np.tanh,
            "arcsinh": np.arcsinh,
            "arccosh": np.arccosh,
            "arctanh": np.arctanh,
            "floor": np.floor,
            "ceiling": np.ceil,
        }.items()
    },
}
#: Operations that may fail beside where they are wanted: a piece with them runs only where taken.
DELICATE = {"divide", "power", "root", "log", "ln", "sqrt", "rem", "arcsin", "arccos", "arccosh"}
DELICATE |= {"arctanh", "sec", "csc", "cot", "atan2", "exp", "sinh", "cosh", "quotient"}
DELICATE |= {"csch", "coth", "arcsec", "arccsc", "arccot", "arcsech", "arccsch", "arccoth"}


class Expression:
    """What a variable is calculated by: a tree of expressions."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions inside."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """Go through this expression and all inside."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __call__(self, values: Values) -> Any:
        """Evaluate, given the values of variables by varID."""
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Expression):
    """A number."""

    value: float

    def __call__(self, values: Values) -> Any:
        """Return it."""
        return self.value


@dataclass(frozen=True)
class Reference(Expression):
    """The value of a variable, by its varID."""

    name: str
    place: str

    def __call__(self, values: Values) -> Any:
        """Look it up."""
        return values[self.name]


@dataclass(frozen=True)
class Apply(Expression):
    """An operation and its arguments."""

    operation: str
    arguments: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def __call__(self, values: Values) -> Any:
        """Apply the operation to the values of its arguments."""
        function = OPERATIONS[self.operation][0]
        return function(*(argument(values) for argument in self.arguments))


@dataclass(frozen=True)
class Piecewise(Expression):
    """The value of the first piece whose condition holds, or `otherwise`, or nan."""

    pieces: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    delicate: bool = field(init=False)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Values and conditions of the pieces, in order, and `otherwise`."""
        last = () if self.otherwise is None else (self.otherwise,)
        return (*(part for piece in self.pieces for part in piece), *last)

    def __post_init__(self) -> None:
        """Note whether a value may fail where its condition does not hold."""
        values = (*(value for value, _ in self.pieces), self.otherwise or Number(0.0))
        inside = (part for value in values for part in value.walk())
        delicate = any(isinstance(part, Apply) and part.operation in DELICATE for part in inside)
        object.__setattr__(self, "delicate", delicate)

    def __call__(self, values: Values) -> Any:
        """Choose among the pieces, elementwise."""
        choices = [value for value, _ in self.pieces]
        last = self.otherwise or Number(np.nan)
        with np.errstate(all="ignore"):
            holds = [np.not_equal(condition(values), 0) for _, condition in self.pieces]
        if self.delicate and all(np.ndim(hold) == 0 for hold in holds):
            # Division by zero in a piece that is not taken must not reach values or derivatives.
            index: Any = len(choices)
            for k in reversed(range(len(holds))):
                index = np.where(holds[k], k, index)
            return switch(index, [_evaluation(e, values) for e in (*choices, last)])
        with np.errstate(all="ignore"):
            result = last(values)
            for hold, choice in zip(reversed(holds), reversed(choices)):
                result = np.where(hold, choice(values), result)
        return result


def _evaluation(expression: Expression, values: Values) -> Callable[[], Any]:
    return lambda: np.multiply(expression(values), 1.0)
