"""What the variables of a DAVE-ML model are made of: expressions in MathML 2, and tables.

Both are called with the values of the variables they read, which may be numbers, arrays or traced:
they are plain NumPy. Scattered data are linear on the simplices of their Delaunay triangulation.
Legend: x are the coordinates scaled to 0..1 over the data, b the barycentric coordinates in a
simplex, affine in x: b = A (x, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from archimedes.function import interpolant, switch
from archimedes.function.interpolation import read_at
from archimedes.typing import Scalar
from archimedes.xml_elements import Element, number

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
            f"MathML <{element.tag}> is not one of {', '.join([*_READERS, *CONSTANTS])}"
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
            raise rest[0].error(f"<apply> around <{name}> holds it alone, got <{rest[0].tag}> too")
        return _parse(head)
    if name == "csymbol":
        address = head.attributes.get("definitionURL", "")
        name = address.rpartition("#")[2] or head.text
    if name not in OPERATIONS:
        raise head.error(f"MathML operation {name!r} is not one of {', '.join(OPERATIONS)}")
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


#: All simplices are looked at for each value: more than these make the program too large.
MOST = 1000


class Scattered:
    """A function through scattered points (k, n) with values (k,).

    Within the hull of the points it is what SciPy's LinearNDInterpolator gives for scaled
    coordinates; beyond, the nearest simplex goes on (`outside="extrapolate"`) or the weights of its
    corners are held at zero (`outside="hold"`).
    """

    def __init__(self, points: np.ndarray, values: np.ndarray, outside: str) -> None:
        from scipy.spatial import Delaunay, QhullError

        self.outside = outside
        self.low, self.size = points.min(axis=0), np.ptp(points, axis=0)
        if not np.all(self.size > 0.0) or len(points) <= points.shape[1]:
            raise ValueError("its points do not span the space of its variables")
        unit = (points - self.low) / self.size
        try:
            corners = Delaunay(unit).simplices
        except QhullError:
            raise ValueError("its points do not span the space of its variables") from None
        sides = np.concatenate([unit[corners], np.ones((*corners.shape, 1))], axis=-1)
        # Slivers of no volume on the hull hold no point.
        solid = np.abs(np.linalg.det(sides)) > 1e-12
        if not 0 < solid.sum() <= MOST:
            raise ValueError(f"it has {solid.sum()} simplices; at most {MOST} can be searched")
        #: A (n + 1, n + 1, simplices) and the values at the corners (n + 1, simplices).
        self.A = np.moveaxis(np.linalg.inv(sides[solid]), (2, 1), (0, 1)).copy()
        self.corner_values = values[corners[solid]].T.copy()

    def __call__(self, *coordinates: Any) -> Any:
        """Evaluate at one coordinate per variable; arrays elementwise."""
        x = [(c - low) / size for c, low, size in zip(coordinates, self.low, self.size)]
        x = [*np.broadcast_arrays(*x), 1.0] if len(x) > 1 else [*x, 1.0]
        every = [sum(a * np.asarray(c)[..., None] for a, c in zip(row, x)) for row in self.A]
        least = every[0]
        for b in every[1:]:
            least = np.minimum(least, b)
        k = np.argmax(least, axis=-1)
        weights = [sum(read_at(a, k) * c for a, c in zip(row, x)) for row in self.A]
        if self.outside == "hold":
            weights = [np.maximum(w, 0.0) for w in weights]
            total = sum(weights)
            weights = [w / total for w in weights]
        return sum(w * read_at(value, k) for w, value in zip(weights, self.corner_values))


#: `extrapolate`: where the table goes on, below its first and above its last breakpoint.
EXTRAPOLATE = ("neither", "min", "max", "both")
#: `interpolate`: how the table is read along that variable, and those that read it in steps.
INTERPOLATE = ("linear", "discrete", "floor", "ceiling", "cubicSpline")
STEPS = ("discrete", "floor", "ceiling")
#: Points of a table that may enter one value.
MOST_CORNERS = 4096


def limit(x: Scalar, least: float, most: float) -> Any:
    """Hold a value between two bounds, of which either may be infinite."""
    x = x if least == -np.inf else np.maximum(x, least)
    return x if most == np.inf else np.minimum(x, most)


@dataclass(frozen=True)
class Axis:
    """How one independent variable enters a table."""

    variable: str
    points: tuple[float, ...]
    least: float = -np.inf
    most: float = np.inf
    extrapolate: str = "neither"
    interpolate: str = "linear"

    def enter(self, x: Scalar) -> Any:
        """Return where a value of the variable enters the table."""
        step = self.interpolate in STEPS
        # One bound on each side: the narrower of the variable's range and the table's end.
        lower, upper = max(self.least, self.points[0]), min(self.most, self.points[-1])
        if self.extrapolate in ("min", "both") and not step:
            lower = self.least
        if self.extrapolate in ("max", "both") and not step:
            upper = self.most
        x = limit(x, lower, upper)
        return self.step(x) if step else x

    def step(self, x: Scalar) -> Any:
        """Return the breakpoint that holds at x."""
        points = np.array(self.points)
        if self.interpolate == "ceiling":
            k = np.searchsorted(points[:-1], x, side="left")
        else:
            ends = points[1:] if self.interpolate == "floor" else (points[1:] + points[:-1]) / 2.0
            k = np.searchsorted(ends, x, side="right")
        return np.where(np.isnan(x), np.nan, read_at(points, k))


class Lookup:
    """A table read at the values of its independent variables.

    `data` are the values at the breakpoints, the last axis fastest, or rows (points, n + 1) of
    coordinates and value.
    """

    def __init__(self, name: str, axes: tuple[Axis, ...], data: np.ndarray) -> None:
        self.name = name
        self.axes = axes
        # A variable with one breakpoint does not matter to the table.
        self.moving = tuple(axis for axis in axes if len(axis.points) > 1)
        self.table: Any = float(data.ravel()[0])
        if data.ndim == 2:
            self.moving = axes
            on = all(axis.extrapolate == "both" for axis in axes)
            self.table = Scattered(data[:, :-1], data[:, -1], "extrapolate" if on else "hold")
        elif self.moving:
            self.table = _interpolate_grid(name, self.moving, data)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables it is a function of."""
        return tuple(axis.variable for axis in self.axes)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Read the table, given the values of variables by varID."""
        if not self.moving:
            return self.table
        return self.table(*(axis.enter(values[axis.variable]) for axis in self.moving))


def _interpolate_grid(name: str, axes: tuple[Axis, ...], data: np.ndarray) -> Any:
    kinds = {axis.interpolate for axis in axes} - {*STEPS}
    method = "cubic" if kinds == {"cubicSpline"} else "linear"
    corners = (4 if method == "cubic" else 2) ** len(axes)
    if corners > MOST_CORNERS:
        raise ValueError(f"a value needs {corners} points of its table; at most {MOST_CORNERS}")
    return interpolant(
        [np.array(axis.points) for axis in axes],
        data.reshape([len(axis.points) for axis in axes]),
        method=method,
        name=name,
        outside="extrapolate",
    )
