"""Findings in words: where they are, what does not fit, and what would be right."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from archimedes.analysis.findings import Finding
from archimedes.analysis.units.propagation import Mismatch, ScaleFactor
from archimedes.analysis.units.recording import Origin
from archimedes.analysis.units.source import (
    HERE,
    Place,
    Text,
    argument_of,
    locate,
    named_argument,
    sides_of,
)
from archimedes.analysis.units.unification import Expr, Unknowns
from archimedes.physical_units import Unit, parse_unit

KIND = "units"

_WORDS = {
    "add": "adds {0} and {1}",
    "sub": "subtracts {1} from {0}",
    "min": "takes the smaller of {0} and {1}",
    "max": "takes the larger of {0} and {1}",
    "fmod": "takes {0} modulo {1}",
    "modulo": "takes {0} modulo {1}",
    "hypot": "combines {0} and {1} to a length",
    "arctan2": "takes the angle of {0} and {1}",
    "select": "chooses between {0} and {1}",
    "branches": "the branches give {0} and {1}",
    "carry": "the loop begins with {0} and goes on with {1}",
    "element": "an index chooses between {0} and {1}",
    "solve": "the linear system has {0} on the left and {1} on the right",
    "deg2rad": "np.deg2rad takes degrees, but its argument is {0}: are these radians already?",
    "rad2deg": "np.rad2deg takes radians, but its argument is {0}: are these degrees already?",
    "rate": "the derivative of the state is {0}, it must be {1}",
    "exponent": "the exponent is {0}, it must be a plain number",
    "pow": "raises {0} to a power that is not constant, which only a plain number can be",
}
_COMPARED = {"lt", "le", "eq", "ne"}
#: Rules about which nothing can be said but that they are not kept.
_OPEN = {"branches", "carry", "element", "solve", "deg2rad", "rad2deg"}
#: Rules between two operands, of which either may be the wrong one.
_BETWEEN = {"add", "sub", "min", "max", "select", "hypot", "arctan2", "fmod", *_COMPARED}


def shorten(expression: str, length: int = 44) -> str:
    """Return an expression, or its two ends if it is long.

    >>> shorten("np.linalg.solve(np.array([[a, b], [c, d]]), x)", 20)
    'np.linalg...d]]), x)'
    """
    if len(expression) <= length:
        return expression
    half = (length - 3) // 2
    return f"{expression[: half + (length - 3) % 2]}...{expression[-half:]}"


def _home(place: Place) -> str:
    """Return the package of ours that a place is in, "" for the user's code."""
    if not place.is_ours:
        return ""
    return place.code.co_filename[len(HERE) :].split(os.sep)[0]


def choose(origin: Origin) -> Place:
    """Return the place to show: the innermost in the package of the function that is checked."""
    root = _home(origin.places[-1])
    return next(place for place in origin.places if _home(place) == root)


class Narrator:
    """Puts what a propagation has found into words.

    ``reach`` has the names of values whose unit is known, for suggestions; ``spellings`` how the
    user writes units.
    """

    def __init__(
        self, unknowns: Unknowns, reach: Mapping[str, Unit], spellings: Mapping[Unit, str]
    ) -> None:
        self.unknowns, self.reach, self.spellings = unknowns, reach, spellings

    def name(self, x: Expr) -> str:
        """Return the name of a unit."""
        known = self.unknowns.resolve(x)
        text = self.spell(known.unit)
        if not known.unknowns:
            return text
        return "an unknown unit" if known.unit.is_plain else f"{text} times an unknown unit"

    def spell(self, unit: Unit) -> str:
        """Return the name of a known unit."""
        if unit.is_plain:
            return "a plain number"
        return self.spellings.get(unit) or str(unit)

    def tell(self, found: Mismatch, default: Text) -> Finding:
        """Return the finding of a rule that is not kept."""
        a, b = found.units
        text, place, inner = default, None, ""
        if found.origin is not None and found.origin.places:
            place = choose(found.origin)
            text = locate(place)
            innermost = found.origin.places[0]
            if place != innermost:
                deep = locate(innermost)
                file = deep.file[len(HERE) :] if deep.file.startswith(HERE) else deep.file
                inner = f" (in {file}:{deep.line}, {deep.expression})"
        sides = sides_of(place) if place is not None and not inner else None
        message = self._message(found, sides)
        hint = self._hint(found.what, a, b, sides or ("", ""), text.expression)
        if found.what == "rate" and found.detail is not None:
            text = locate(choose(found.detail))
        if found.what == "field" and place is not None:
            text = self._field_text(found, place, bool(inner)) or text
        return Finding(text.file, text.line, f"{message}{hint}{inner}", text.expression, KIND)

    def _field_text(self, found: Mismatch, place: Place, inner: bool) -> Text | None:
        """Return the expression that a field of a struct is given.

        For a variable that is where its value was computed.
        """
        declared, source = found.detail
        if inner:
            given = named_argument(place, declared.field)
        else:
            given = argument_of(place, declared.field, declared.fields)
        if given is not None or source is None or not source.places:
            return given
        return locate(choose(source)) if _home(choose(source)) == _home(place) else None

    def _message(self, found: Mismatch, sides: tuple[str, str] | None) -> str:
        a, b = found.units
        if found.what == "field":
            declared = found.detail[0]
            name = f"{declared.struct}.{declared.field}"
            return f"{name} is given {self.name(a)}, it must be {self.name(b)}"
        if found.what == "return":
            return f"{found.detail} is {self.name(a)}, it must be {self.name(b)}"
        if found.what in _COMPARED:
            words = "compares {0} with {1}"
        else:
            words = _WORDS.get(
                found.what, f"np.{found.what} takes a plain number, but its argument is {{0}}"
            )
        message = words.format(self.name(a), self.name(b))
        if sides is not None and found.what in ("add", "sub", *_COMPARED):
            sides = (shorten(sides[0]), shorten(sides[1]))
            message += f" (`{sides[0]}` is {self.name(a)}, `{sides[1]}` is {self.name(b)})"
        return message

    # ---- what would be right -----------------------------------------------------------

    def _hint(self, what: str, a: Expr, b: Expr, sides: tuple[str, str], expression: str) -> str:
        left, right = self.unknowns.resolve(a), self.unknowns.resolve(b)
        if left.unknowns or right.unknowns or what in _OPEN:
            return ""
        # Not a value of the expression itself, which would cancel.
        words = set(re.findall(r"[\w.]+", expression))
        reach = {name: unit for name, unit in self.reach.items() if name not in words}
        if what not in _BETWEEN:
            return suggest(left.unit, right.unit, reach)
        return suggest(left.unit, right.unit, reach, sides)

    def tell_factor(self, factor: ScaleFactor) -> Finding | None:
        """Return the finding about a constant that would have to be another scale factor."""
        unit = self.unknowns.resolve(factor.unit)
        partner = self.unknowns.resolve(factor.partner)
        if unit.unknowns or partner.unknowns or not unit.unit.is_ratio or unit.unit.is_plain:
            return None
        if partner.unit.is_ratio or factor.origin is None or not factor.origin.places:
            return None
        needed = 1.0 / unit.unit.scale
        if _is_multiple(factor.value / needed):
            return None
        text = locate(choose(factor.origin))
        before, after = self.spell(partner.unit), self.spell(partner.unit * unit.unit)
        message = (
            f"{factor.value:.6g} would turn {before} into {after}, but that factor is {needed:.6g}"
        )
        return Finding(text.file, text.line, message, text.expression, KIND)


def _is_multiple(ratio: float) -> bool:
    """Return whether a number is 1, roughly, or a simple fraction, maybe of pi, accurately."""
    if abs(ratio - 1.0) < 5e-3:
        return True
    for factor in (1.0, 3.141592653589793, 1 / 3.141592653589793):
        for below in range(1, 17):
            above = ratio * factor * below
            if 0.5 < above < 16.5 and abs(above / round(above) - 1.0) < 1e-4:
                return True
    return False


def suggest(
    got: Unit, wanted: Unit, reach: Mapping[str, Unit], sides: tuple[str, str] | None = None
) -> str:
    """Return what may be meant where a value has one unit and should have another.

    With ``sides``, two operands as they are written, it may as well be the other way round.
    """
    quotient = wanted / got
    if quotient.dims[-1]:
        return ": degrees Celsius are no multiples of kelvin, add 273.15 first"
    if quotient.is_ratio:
        return _suggest_scale(got, wanted)
    ways = [(quotient, "multiply", 0), (quotient**-1, "divide", 0)]
    if sides is not None:
        ways = [ways[0], (quotient**-1, "multiply", 1), ways[1], (quotient, "divide", 1)]
    written = [f" `{shorten(side)}`" if side else "" for side in sides or ("", "")]
    for unit, how, side in ways:
        names = [name for name, known in reach.items() if known == unit and _may_be(name, unit)]
        if names:
            # The one that is nearest to the function: x.mass before x.parts[0].body.mass.
            name = min(names, key=lambda n: (n.count(".") + n.count("["), len(n)))
            return f": {how}{written[side]} by `{name}`?"
    if wanted == got**2 or (sides is not None and got == wanted**2):
        return f": square{written[int(wanted != got**2)] or ' it'}?"
    if got == wanted**2:
        return ": take the square root?"
    for unit, how, side in ways:
        for text, word in _KINDS.items():
            if unit == parse_unit(text):
                return f": {how}{written[side]} by {word}?"
    return ""


def _may_be(name: str, unit: Unit) -> bool:
    """Return whether a value is a likely factor: not every time is the step that is missing."""
    last = name.rpartition(".")[2].lower()
    return unit not in (_SECOND, _SECOND**-1) or last in _TIMES


_SECOND = parse_unit("s")
_TIMES = {
    "t",
    "dt",
    "h",
    "step",
    "time",
    "time_step",
    "timestep",
    "period",
    "duration",
    "ts",
    "tau",
}
_KINDS = {"s": "a time", "kg": "a mass", "m": "a length", "m^2": "an area"}


def _suggest_scale(got: Unit, wanted: Unit) -> str:
    degree = parse_unit("deg")
    if got / wanted == degree:
        return ": this is degrees, np.deg2rad makes radians of it"
    if wanted / got == degree:
        return ": this is radians, np.rad2deg makes degrees of it"
    if abs(got.log_scale) < abs(wanted.log_scale):
        got, wanted = wanted, got
    ratio = got.scale / wanted.scale
    if wanted.is_plain:
        return f": 1 {got} is {got.scale:.6g}"
    return f": 1 {got} is {ratio:.6g} {wanted}"
