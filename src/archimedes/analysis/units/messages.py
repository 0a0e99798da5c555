"""Findings in words: where they are, what does not fit, and what would be right."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import NamedTuple

from archimedes.analysis.findings import Finding
from archimedes.analysis.units.propagation import Mismatch, ScaleFactor
from archimedes.analysis.units.recording import _HERE, Origin, Place
from archimedes.analysis.units.unification import Expr, Unknowns
from archimedes.analysis.units.unit import Unit, parse_unit

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
    "exponent": "the exponent is {0}, it must be a plain number",
    "pow": "raises {0} to a power that is not constant, which only a plain number can be",
}
_COMPARED = {"lt", "le", "eq", "ne"}


class Text(NamedTuple):
    """An expression in a source file."""

    file: str
    line: int
    expression: str


@functools.lru_cache(maxsize=1024)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def locate(place: Place) -> Text:
    """Return file, line and text of the expression that an instruction evaluates."""
    code, at = place
    first, last, start, end = _positions(code)[at // 2]
    line = first or code.co_firstlineno
    lines = [linecache.getline(code.co_filename, n) for n in range(line, (last or line) + 1)]
    if start is None or end is None or not any(lines):
        return Text(code.co_filename, line, "".join(lines).strip())
    encoded = [text.encode() for text in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    expression = re.sub(r"\s+", " ", b"".join(encoded).decode(errors="replace")).strip()
    return Text(code.co_filename, line, expression)


def _home(place: Place) -> str:
    """Return the package of ours that a place is in, "" for the user's code."""
    if not place.is_ours:
        return ""
    return place.code.co_filename[len(_HERE) :].split(os.sep)[0]


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
                file = deep.file[len(_HERE) :] if deep.file.startswith(_HERE) else deep.file
                inner = f" (in {file}:{deep.line}, {deep.expression})"
        message = self._message(found, text.expression if not inner else "")
        hint = self._hint(found.what, a, b)
        return Finding(text.file, text.line, f"{message}{hint}{inner}", text.expression, KIND)

    def _message(self, found: Mismatch, expression: str) -> str:
        a, b = found.units
        if found.what == "return":
            return f"{found.detail} is {self.name(a)}, it must be {self.name(b)}"
        if found.what in _COMPARED:
            words = "compares {0} with {1}"
        else:
            words = _WORDS.get(
                found.what, f"np.{found.what} takes a plain number, but its argument is {{0}}"
            )
        message = words.format(self.name(a), self.name(b))
        sides = _sides(expression)
        if sides is not None and found.what in ("add", "sub", *_COMPARED):
            message += f" (`{sides[0]}` is {self.name(a)}, `{sides[1]}` is {self.name(b)})"
        return message

    # ---- what would be right -----------------------------------------------------------

    def _hint(self, what: str, a: Expr, b: Expr) -> str:
        left, right = self.unknowns.resolve(a), self.unknowns.resolve(b)
        if left.unknowns or right.unknowns:
            return ""
        return suggest(left.unit, right.unit, self.reach, both=what not in ("return",))

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


def suggest(got: Unit, wanted: Unit, reach: Mapping[str, Unit], both: bool = False) -> str:
    """Return what may be meant where a value has one unit and should have another.

    ``both``: it may as well be the other way round, as in a sum.
    """
    quotient = wanted / got
    if quotient.is_ratio:
        return _suggest_scale(got, wanted)
    for names in (_near(reach, quotient, "multiply"), _near(reach, quotient**-1, "divide")):
        if names:
            return f": {names}"
    if wanted == got**2:
        return ": square it?"
    if got == wanted**2:
        return ": take the square root?"
    for text, word in _KINDS.items():
        if quotient == parse_unit(text):
            return f": multiply by {word}?"
        if quotient**-1 == parse_unit(text):
            return f": divide by {word}?"
    return ""


_KINDS = {"s": "a time", "kg": "a mass", "m": "a length", "m/s": "a speed", "m^2": "an area"}
_KINDS |= {"kg/m^3": "a density", "m/s^2": "an acceleration", "K": "a temperature"}


def _near(reach: Mapping[str, Unit], unit: Unit, how: str) -> str:
    names = [name for name, mine in reach.items() if mine == unit]
    return f"{how} by `{names[0]}`?" if names else ""


def _suggest_scale(got: Unit, wanted: Unit) -> str:
    degree = parse_unit("deg")
    if got / wanted == degree:
        return ": this is degrees, np.deg2rad makes radians of it"
    if wanted / got == degree:
        return ": this is radians, np.rad2deg makes degrees of it"
    ratio = got.scale / wanted.scale
    return f": 1 {got} is {ratio:.6g} {wanted}" if not wanted.is_plain else (
        f": it is {got.scale:.6g} times a plain number"
    )


def _sides(expression: str) -> tuple[str, str] | None:
    """Return the two sides of a sum, a difference or a comparison, as they are written."""
    try:
        node = ast.parse(f"({expression})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.BinOp):
        parts: Sequence[ast.expr] = (node.left, node.right)
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        parts = (node.left, node.comparators[0])
    else:
        return None
    left, right = (ast.unparse(part) for part in parts)
    return (left, right) if len(left) + len(right) < 120 else None
