"""Expressions that variables are calculated by, read from MathML 2 content markup.

An expression is called with the values of the variables it reads, which may be numbers, arrays or
traced: it is plain NumPy. `in_order` sorts variables so that each comes after those it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import switch
from archimedes.xml_elements import Element, number

if TYPE_CHECKING:
    from archimedes.vehicles.dave_ml.elements import Variable


CONSTANTS = {"pi": np.pi, "exponentiale": np.e, "true": 1.0, "false": 0.0, "notanumber": np.nan}
CONSTANTS |= {"infinity": np.inf, "eulergamma": np.euler_gamma}
#: Qualifiers that stand between an operation and its arguments: they come last here.
QUALIFIERS = {"root": "degree", "log": "logbase"}


def parse(math: Element) -> Expression:
    """Return the expression in a <math> element."""
    parts = list(math)
    if math.tag != "math" or len(parts) != 1:
        raise math.error(f"<{math.tag}> must be a <math> with one expression")
    return _parse(parts[0])


def _parse(element: Element) -> Expression:
    if element.tag in CONSTANTS:
        return Number(CONSTANTS[element.tag])
    reader = _READERS.get(element.tag)
    if reader is None:
        raise element.error(
            f"MathML <{element.tag}> is not among the expressions that are read: "
            f"{', '.join([*_READERS, *CONSTANTS])}"
        )
    return reader(element)


def _number(element: Element) -> Number:
    """<cn>: a number, or two with <sep/> between them."""
    form = element.attributes.get("type", "real")
    words = [part.strip() for part in element.content if isinstance(part, str) and part.strip()]
    if form in ("e-notation", "rational") and len(words) == 2:
        if form == "e-notation":
            return Number(number("e".join(words), element, "<cn>"))
        above, below = (number(word, element, "<cn>") for word in words)
        if below == 0.0:
            raise element.error("<cn> of type 'rational' has a denominator of zero")
        return Number(above / below)
    if form not in ("real", "integer", "double") or element.attributes.get("base", "10") != "10":
        raise element.error(f"<cn> of type {form!r} and other bases than 10 are not read")
    return Number(number(element.text, element, "<cn>"))


def _apply(element: Element) -> Expression:
    """<apply>: an operation and its arguments, or one expression in an <apply> of its own.

    NASA's F-16 and two-stage rocket write <apply><piecewise>...</piecewise></apply>.
    """
    parts = list(element)
    if not parts:
        raise element.error("<apply> is empty; it needs an operation and its arguments")
    head, rest = parts[0], parts[1:]
    name = head.tag
    if name in _READERS:
        if rest:
            raise rest[0].error(
                f"<apply> around <{name}> holds this one expression, got <{rest[0].tag}> after it"
            )
        return _parse(head)
    if name == "csymbol":
        address = head.attributes.get("definitionURL", "")
        name = address.rpartition("#")[2] or head.text
    if name not in OPERATIONS:
        raise head.error(
            f"MathML operation {name!r} is not among those that are read: {', '.join(OPERATIONS)}"
        )
    qualifier = QUALIFIERS.get(name)
    last = [part for part in rest if part.tag == qualifier]
    arguments = [_parse(part) for part in rest if part.tag != qualifier]
    arguments += [_parse(inner) for part in last for inner in part]
    _, fewest, most = OPERATIONS[name]
    if not fewest <= len(arguments) <= most:
        allowed = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise element.error(f"{name} takes {allowed} arguments, got {len(arguments)}")
    return Apply(name, tuple(arguments))


def _reference(element: Element) -> Reference:
    if not element.text:
        raise element.error("<ci> is empty; it holds the varID of a variable")
    return Reference(element.text, element.place)


def _semantics(element: Element) -> Expression:
    """The first element is the expression, the others are annotations."""
    parts = list(element)
    if not parts:
        raise element.error("<semantics> is empty")
    return _parse(parts[0])


def _piecewise(element: Element) -> Piecewise:
    pieces, otherwise = [], element.find("otherwise")
    for part in element:
        inside = list(part)
        if part.tag not in ("piece", "otherwise") or len(inside) != 1 + (part.tag == "piece"):
            raise part.error(
                "<piecewise> holds <piece>s of a value and a condition and one <otherwise>, got "
                f"<{part.tag}> with {len(inside)} elements"
            )
        if part.tag == "piece":
            pieces.append((_parse(inside[0]), _parse(inside[1])))
    if not pieces:
        raise element.error("<piecewise> has no <piece>")
    rest = None if otherwise is None else _parse(next(iter(otherwise)))
    return Piecewise(tuple(pieces), rest)


_READERS: dict[str, Callable[[Element], Expression]] = {
    "cn": _number,
    "ci": _reference,
    "apply": _apply,
    "reln": _apply,  # MathML 1 writes relations so
    "piecewise": _piecewise,
    "semantics": _semantics,
}


Values = Mapping[str, Any]


def _chain(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """a < b < c, as MathML reads a relation of several arguments."""
    return lambda *x: reduce(np.logical_and, (compare(a, b) for a, b in pairwise(x)))


def _fold(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *x: reduce(combine, x)


def _minus(a: Any, *b: Any) -> Any:
    return a - b[0] if b else -a


def _is_number(value: object, *numbers: float) -> bool:
    """Return whether a number of the file, which no caller gives, is one of these."""
    return type(value) is float and value in numbers


def _power(a: Any, b: Any) -> Any:
    """Squares and square roots are rounded once, powers are not."""
    if _is_number(b, 2.0):
        return np.square(a)
    return np.sqrt(a) if _is_number(b, 0.5) else np.power(a, b)


def _root(a: Any, degree: Any = 2.0) -> Any:
    if _is_number(degree, 2.0):
        return np.sqrt(a)
    return np.cbrt(a) if _is_number(degree, 3.0) else np.power(a, np.divide(1.0, degree))


def _logarithm(a: Any, base: Any = 10.0) -> Any:
    return np.log10(a) if _is_number(base, 10.0) else np.log(a) / np.log(base)


def _inverse(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the inverse of 1 / f."""
    inverse = getattr(np, f"arc{function.__name__}")
    return lambda a: inverse(1.0 / a)


#: Functions that NumPy has under the same name, and reciprocals of such functions.
NUMPY = "abs sqrt exp sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor"
RECIPROCALS = {"sec": np.cos, "csc": np.sin, "cot": np.tan}
RECIPROCALS |= {"sech": np.cosh, "csch": np.sinh, "coth": np.tanh}
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
    "implies": (lambda a, b: np.logical_or(np.logical_not(a), b), 2, 2),
    "ln": (np.log, 1, 1),
    "ceiling": (np.ceil, 1, 1),
    **{name: (getattr(np, name), 1, 1) for name in NUMPY.split()},
    **{name: (lambda a, f=f: 1.0 / f(a), 1, 1) for name, f in RECIPROCALS.items()},
    **{f"arc{name}": (_inverse(f), 1, 1) for name, f in RECIPROCALS.items()},
}
#: Operations that may fail beside where they are wanted: a piece with them runs only where taken.
DELICATE = {"divide", "power", "root", "log", "ln", "sqrt", "rem", "arcsin", "arccos", "arccosh"}
DELICATE |= {"arctanh", "sec", "csc", "cot", "atan2", "exp", "sinh", "cosh", "quotient"}
DELICATE |= {"csch", "coth", "arcsec", "arccsc", "arccot", "arcsech", "arccsch", "arccoth"}


class Expression:
    """What a variable is calculated by: a tree of expressions."""

    #: The expressions inside.
    parts: tuple[Expression, ...] = ()

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
    parts: tuple[Expression, ...]

    def __call__(self, values: Values) -> Any:
        """Apply the operation to the values of its arguments."""
        function = OPERATIONS[self.operation][0]
        return function(*(argument(values) for argument in self.parts))


@dataclass(frozen=True)
class Piecewise(Expression):
    """The value of the first piece whose condition holds, or `otherwise`, or nan."""

    pieces: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """Values and conditions of the pieces, in order, and `otherwise`."""
        last = () if self.otherwise is None else (self.otherwise,)
        return (*(part for piece in self.pieces for part in piece), *last)

    @cached_property
    def is_delicate(self) -> bool:
        """Whether a value may fail where its condition does not hold."""
        values = (*(value for value, _ in self.pieces), self.otherwise or Number(0.0))
        inside = (part for value in values for part in value.walk())
        return any(isinstance(part, Apply) and part.operation in DELICATE for part in inside)

    def __call__(self, values: Values) -> Any:
        """Choose among the pieces, elementwise."""
        choices = [value for value, _ in self.pieces]
        last = self.otherwise or Number(np.nan)
        with np.errstate(all="ignore"):
            holds = [np.not_equal(condition(values), 0) for _, condition in self.pieces]
        if self.is_delicate and all(np.ndim(hold) == 0 for hold in holds):
            # Division by zero in a piece that is not taken must not reach values or derivatives.
            index: Any = len(choices)
            for k in reversed(range(len(holds))):
                index = np.where(holds[k], k, index)
            branches = (*choices, last)
            return switch(index, [lambda e=e: np.multiply(e(values), 1.0) for e in branches])
        with np.errstate(all="ignore"):
            result = last(values)
            for hold, choice in zip(reversed(holds), reversed(choices)):
                result = np.where(hold, choice(values), result)
        return result


def in_order(
    variables: Mapping[str, Variable], wanted: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Return the wanted variables (all by default) and those they need, needed ones first.

    Raises ValueError for names that are not defined and for variables that depend on themselves.
    """
    reads: dict[str, dict[str, str]] = {}
    waiting = list(variables if wanted is None else wanted)
    for key in waiting:  # which grows
        if key in reads:
            continue
        reads[key] = variables[key].reads
        for name, line in reads[key].items():
            if name not in variables:
                raise ValueError(
                    f"{line}: variable {key!r} reads {name!r}, which no variableDef defines"
                )
        waiting += reads[key]
    try:
        return tuple(TopologicalSorter(reads).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]
        raise ValueError(
            f"{variables[circle[0]].place}: variables depend on themselves: {' <- '.join(circle)}"
        ) from None
