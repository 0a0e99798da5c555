"""Units: products of powers of the SI base units, with a scale; how they are read and written.

A unit is a vector: seven rational exponents of the base units, and the logarithm of its scale. A
foot is the metre with the scale 0.3048, a degree a plain number with the scale pi/180, a radian a
plain number. Products of units add these vectors, roots divide them.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from fractions import Fraction
from typing import Any

from archimedes.errors import ArchimedesError

__all__ = ["PLAIN", "Unit", "UnitsError", "parse_unit"]

BASE = ("kg", "m", "s", "A", "K", "mol", "cd")
#: Scales that differ by less are the same: the logarithm of a scale is known to rounding.
_SAME_SCALE = 1e-9
_LARGE = 690.0
_NONE = (0,) * len(BASE)
#: A rational number: an int where it is whole, which is quicker.
Rational = Fraction | int


class UnitsError(ArchimedesError, ValueError):
    """Units do not fit, or a unit is not known.

    ``report`` holds the findings where a model was checked, else None.

    >>> import archimedes as arc
    >>> try:
    ...     arc.quantity(1.0, "foot")
    ... except arc.UnitsError as error:
    ...     print(error)
    unknown unit 'foot' in 'foot': did you mean 'ft'?
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


def whole(x: Rational) -> Rational:
    """Return a rational number as an int where it is one."""
    return x.numerator if x.denominator == 1 else x


class Unit:
    """A unit; equal ones may be different objects.

    >>> parse_unit("N s") / parse_unit("kg") == parse_unit("m/s")
    True
    """

    __slots__ = ("dims", "log_scale", "scale")
    dims: tuple[Rational, ...]
    #: How many of the SI unit one of this unit is, and the logarithm, which never overflows.
    scale: float
    log_scale: float

    def __init__(
        self, dims: tuple[Rational, ...], scale: float = 1.0, log_scale: float | None = None
    ) -> None:
        self.dims, self.scale = dims, scale
        self.log_scale = math.log(scale) if log_scale is None else log_scale

    @property
    def is_plain(self) -> bool:
        """Whether it is that of a plain number (a radian is one, a degree is not)."""
        return self.is_ratio and abs(self.log_scale) < _SAME_SCALE

    @property
    def is_ratio(self) -> bool:
        """Whether it is a number times that of a plain one: a degree, a percent."""
        return self.dims == _NONE

    @property
    def si(self) -> Unit:
        """The SI unit of the same quantity."""
        return Unit(self.dims)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unit):
            return NotImplemented
        return self.dims == other.dims and abs(self.log_scale - other.log_scale) < _SAME_SCALE

    def __hash__(self) -> int:
        return hash(self.dims)

    def __mul__(self, other: Unit) -> Unit:
        dims = tuple(a + b for a, b in zip(self.dims, other.dims))
        return Unit(dims, self.scale * other.scale, self.log_scale + other.log_scale)

    def __truediv__(self, other: Unit) -> Unit:
        dims = tuple(a - b for a, b in zip(self.dims, other.dims))
        scale = self.scale / other.scale if other.scale else math.inf
        return Unit(dims, scale, self.log_scale - other.log_scale)

    def __pow__(self, power: Rational) -> Unit:
        dims = tuple(whole(d * power) if d else 0 for d in self.dims)
        log_scale = self.log_scale * float(power)
        if abs(log_scale) > _LARGE:
            return Unit(dims, math.inf if log_scale > 0 else 0.0, log_scale)
        return Unit(dims, self.scale ** (power if power == int(power) else float(power)), log_scale)

    def __str__(self) -> str:
        return _spell(self)

    def __repr__(self) -> str:
        return f"Unit({str(self)!r})"


PLAIN = Unit(_NONE)


# ---- the units that are known ------------------------------------------------------------------


def _base(name: str) -> Unit:
    return Unit(tuple(int(name == b) for b in BASE))


def _number(scale: float) -> Unit:
    return Unit(_NONE, scale)


#: Names that take prefixes; the gram is the one with a scale of its own.
_PREFIXED: dict[str, Unit] = {name: _base(name) for name in BASE[1:]}
_PREFIXED["g"] = _base("kg") * _number(1e-3)
#: Names that take none.
_NAMED: dict[str, Unit] = {
    **dict.fromkeys(("", "-", "1", "rad", "sr", "count", "counts"), PLAIN),
    "%": _number(0.01),
    "ppm": _number(1e-6),
}
_PREFIXES = {
    "Y": 1e24,
    "Z": 1e21,
    "E": 1e18,
    "P": 1e15,
    "T": 1e12,
    "G": 1e9,
    "M": 1e6,
    "k": 1e3,
    "h": 1e2,
    "da": 1e1,
    "d": 1e-1,
    "c": 1e-2,
    "m": 1e-3,
    "u": 1e-6,
    "µ": 1e-6,
    "μ": 1e-6,
    "n": 1e-9,
    "p": 1e-12,
    "f": 1e-15,
}
#: Definition of each further unit: names, factor, and the unit it is a multiple of. The factors are
#: those of NIST SP 811 (2008), appendix B, and exact where a definition is.
_DERIVED: tuple[tuple[str, float, str], ...] = (
    ("N", 1.0, "kg m/s^2"),
    ("Pa", 1.0, "N/m^2"),
    ("J", 1.0, "N m"),
    ("W", 1.0, "J/s"),
    ("Hz", 1.0, "1/s"),
    ("C", 1.0, "A s"),
    ("V", 1.0, "W/A"),
    ("F", 1.0, "C/V"),
    ("ohm", 1.0, "V/A"),
    ("S", 1.0, "A/V"),
    ("Wb", 1.0, "V s"),
    ("T", 1.0, "Wb/m^2"),
    ("H", 1.0, "Wb/A"),
    ("lm", 1.0, "cd"),
    ("lx", 1.0, "lm/m^2"),
    ("Bq", 1.0, "1/s"),
    ("Gy", 1.0, "J/kg"),
    ("L l", 1e-3, "m^3"),
    ("bar", 1e5, "Pa"),
    ("eV", 1.602176634e-19, "J"),
    ("cal", 4.184, "J"),
    ("Wh", 3600.0, "J"),
    ("Ah", 3600.0, "C"),
)
_FURTHER: tuple[tuple[str, float, str], ...] = (
    ("t", 1e3, "kg"),
    ("deg °", math.pi / 180, ""),
    ("arcmin", math.pi / 10800, ""),
    ("arcsec", math.pi / 648000, ""),
    ("mas", math.pi / 648000e3, ""),
    ("rev turn", 2 * math.pi, ""),
    ("min", 60.0, "s"),
    ("h hr", 3600.0, "s"),
    ("d day", 86400.0, "s"),
    ("yr", 365.25 * 86400.0, "s"),
    ("rpm", 2 * math.pi / 60, "1/s"),
    ("degC", 1.0, "K"),
    ("degF degR", 5 / 9, "K"),
    ("in inch", 0.0254, "m"),
    ("ft", 0.3048, "m"),
    ("yd", 0.9144, "m"),
    ("mi", 1609.344, "m"),
    ("nmi NM", 1852.0, "m"),
    ("au AU", 149597870700.0, "m"),
    ("acre", 4046.8726098742523, "m^2"),
    ("gal", 231 * 0.0254**3, "m^3"),
    ("kn kt knot knots", 1852.0 / 3600.0, "m/s"),
    ("kph kmh", 1 / 3.6, "m/s"),
    ("mph", 0.44704, "m/s"),
    ("fps", 0.3048, "m/s"),
    ("g0 gn", 9.80665, "m/s^2"),
    ("lb lbm", 0.45359237, "kg"),
    ("oz", 0.028349523125, "kg"),
    ("slug", 0.45359237 * 9.80665 / 0.3048, "kg"),
    ("lbf", 0.45359237 * 9.80665, "N"),
    ("ozf", 0.028349523125 * 9.80665, "N"),
    ("kgf kp", 9.80665, "N"),
    ("psi", 0.45359237 * 9.80665 / 0.0254**2, "Pa"),
    ("psf", 0.45359237 * 9.80665 / 0.3048**2, "Pa"),
    ("atm", 101325.0, "Pa"),
    ("mmHg", 133.322387415, "Pa"),
    ("inHg", 133.322387415 * 25.4, "Pa"),
    ("hp", 550 * 0.3048 * 0.45359237 * 9.80665, "W"),
    ("BTU Btu", 1055.05585262, "J"),
    ("G gauss", 1e-4, "T"),
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[^\W\d_]+\d?|[%°])|(?P<sign>\*\*|[*·×/^()-]))"
)


def _define() -> None:
    for table, home in ((_DERIVED, _PREFIXED), (_FURTHER, _NAMED)):
        for names, factor, of in table:
            home.update(dict.fromkeys(names.split(), _number(factor) * parse_unit(of)))
    _PREFIXED["Ω"] = _PREFIXED["ohm"]


def _find(name: str, text: str) -> Unit:
    for table in (_NAMED, _PREFIXED):
        if name in table:
            return table[name]
    for length in (1, 2):
        prefix, rest = name[:length], name[length:]
        if prefix in _PREFIXES and rest in _PREFIXED:
            return _number(_PREFIXES[prefix]) * _PREFIXED[rest]
    if name[-1:].isdigit():  # m2, s3: as "m^2"
        return _find(name[:-1], text) ** int(name[-1])
    words = {n.lower(): n for n in (*_NAMED, *_PREFIXED, "kg", "km", "mm", "kN", "kPa") if n}
    words |= {word: unit for unit, group in _WORDS.items() for word in group.split()}
    near = difflib.get_close_matches(name.lower(), list(words), 1, 0.4)
    hint = f": did you mean {words[near[0]]!r}?" if near else ""
    raise UnitsError(f"unknown unit {name!r} in {text!r}{hint}")


#: Words that are not read, and what to write instead.
_WORDS = {
    "m": "meter meters metre metres",
    "ft": "foot feet",
    "s": "sec second seconds",
    "kg": "kilogram kilograms",
    "N": "newton newtons",
    "deg": "degree degrees",
    "rad": "radian radians",
    "N m": "nm",
    "lbf": "pound pounds",
    "min": "minute minutes",
    "h": "hour hours",
    "K": "kelvin",
    "Pa": "pascal",
    "W": "watt watts",
    "J": "joule joules",
    "mi": "mile miles",
    "in": "inches",
    "Hz": "hertz",
    "V": "volt volts",
    "A": "amp amps",
    "km/h": "kmph",
    "T": "tesla",
    "yr": "year years",
    "%": "percent",
    "g0": "gee gees",
}


class _Reader:
    """Reads a unit from text: products by blanks or ``*``, quotients, powers, parentheses."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, list[tuple[str, str]]()
        clean, at = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", r"^\1", text).translate(_SUPERSCRIPTS).rstrip(), 0
        while at < len(clean):
            match = _TOKEN.match(clean, at)
            if match is None:
                raise UnitsError(
                    f"cannot read the unit {text!r} at {clean[at:]!r}: write 'm/s^2', 'kg m^2', "
                    "'J/(kg K)'"
                )
            self.tokens.append((str(match.lastgroup), match.group(match.lastgroup or 0)))
            at = match.end()

    def _next(self) -> tuple[str, str]:
        return self.tokens[0] if self.tokens else ("end", "")

    def product(self) -> Unit:
        unit = self.factor()
        while self._next()[0] != "end" and self._next()[1] != ")":
            sign = self._next()[1]
            if sign in ("*", "·", "×", "/"):
                self.tokens.pop(0)
            other = self.factor()
            unit = unit / other if sign == "/" else unit * other
        return unit

    def factor(self) -> Unit:
        kind, word = self._next()
        if kind == "end" or word in (")", "*", "/", "^", "**", "-"):
            raise UnitsError(f"cannot read the unit {self.text!r}: a factor is missing")
        self.tokens.pop(0)
        if word == "(":
            unit = self.product()
            if self._next()[1] != ")":
                raise UnitsError(f"cannot read the unit {self.text!r}: a parenthesis is open")
            self.tokens.pop(0)
        elif kind == "number":
            if float(word) <= 0.0:
                raise UnitsError(f"cannot read the unit {self.text!r}: {word} is not positive")
            unit = _number(float(word))
        else:
            unit = _find(word, self.text)
        if self._next()[1] in ("^", "**"):
            self.tokens.pop(0)
            unit = unit ** self.power()
        elif kind == "name" and self._next()[1] == "-" and len(self.tokens) > 1:
            unit = unit ** self.power()  # s-1
        return unit

    def power(self) -> Fraction:
        opened = self._next()[1] == "("
        sign = 1
        text = ""
        while self.tokens and (self._next()[0] == "number" or self._next()[1] in "(-/)"):
            word = self.tokens.pop(0)[1]
            if word == "-" and not text:
                sign = -1
            elif word == ")" or (word == "/" and not opened):
                if word == "/":
                    self.tokens.insert(0, ("sign", "/"))
                break
            elif word != "(":
                text += word
                if not opened:
                    break
        try:
            return sign * Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise UnitsError(f"cannot read the unit {self.text!r}: a power is missing") from None


@functools.lru_cache(maxsize=4096)
def parse_unit(text: str) -> Unit:
    """Return the unit that a text means.

    Products are written with a blank or ``*``, quotients with ``/`` (from left to right), powers
    with ``^`` or ``**``. ``""``, ``"-"`` and ``"1"`` are plain numbers, as is ``"rad"``.

    >>> parse_unit("ft/s^2").scale, str(parse_unit("kg m/s^2"))
    (0.3048, 'N')
    """
    if not isinstance(text, str):
        raise UnitsError(f"a unit is a text such as 'm/s', got {text!r}")
    if text.strip() in _NAMED:
        return _NAMED[text.strip()]
    reader = _Reader(text)
    unit = reader.product()
    if reader.tokens:
        raise UnitsError(f"cannot read the unit {text!r} at {reader.tokens[0][1]!r}")
    return unit


#: What is added to a number in such a unit, in kelvin, to make it an absolute temperature.
OFFSETS = {"degC": 273.15, "degF": 459.67 * 5 / 9, "°C": 273.15, "°F": 459.67 * 5 / 9}


# ---- spelling ----------------------------------------------------------------------------------

#: How SI units are usually written.
_USUAL = (
    "m/s^2 N Pa W V T C ohm kg|m^2 kg|m^2/s N|m N|m|s N|s N/m N|s/m N|s^2/m N|s^2/m^2 kg/s kg/m "
    "kg/m^2 kg/m^3 N|m/s Pa|s m^3/s^2 m^3/s m^2/s m^2/s^2 m^2/s^3 m/s^3 J/(kg|K) W/(m|K) W/m^2 "
    "W/(m^2|K) N/kg A|m^2 N/m^1.5 N/m^2 N|m/rad V/m A/m J/K"
)
#: Those with a scale of their own, to be looked for in others.
_SCALED = ("deg", "ft", "lbf", "lbm", "slug", "in", "kn", "nmi", "h", "min", "km", "rev", "%")
#: Names of units that are not used for results, because another spelling is more usual.
_UNUSUAL = {"Hz", "Bq", "Gy", "J", "S", "lm", "lx", "l", "F", "H", "degC", "fps"}


@functools.cache
def _usual() -> dict[Unit, str]:
    named = {u: n for n, u in reversed((*_NAMED.items(), *_PREFIXED.items())) if n not in _UNUSUAL}
    texts = [text.replace("|", " ") for text in reversed(_USUAL.split())]
    return {**named, **{parse_unit(text): text for text in texts}, **{_base(n): n for n in BASE}}


def _power(name: str, power: Rational) -> str:
    if power == 1:
        return name
    exact = power.denominator in (1, 2, 4, 5, 8, 10)
    return f"{name}^{float(power):g}" if exact else f"{name}^({power})"


def _factors(dims: tuple[Rational, ...], extra: list[tuple[str, Rational]]) -> str:
    parts = [*extra, *((n, d) for n, d in zip(BASE, dims) if d)]
    text = " ".join(_power(n, d) for n, d in parts if d > 0) or "1"
    below = [_power(n, -d) for n, d in parts if d < 0]
    if len(below) > 1:
        return f"{text}/({' '.join(below)})"
    return f"{text}/{below[0]}" if below else text


def _cost(dims: tuple[Rational, ...]) -> float:
    return sum(1 + abs(float(d)) for d in dims if d)


@functools.lru_cache(maxsize=4096)
def _spell(unit: Unit) -> str:
    """Return the usual text for a unit; a scale that has no name is written as a number."""
    if unit.is_plain:
        return "1"
    if unit in _usual():
        return _usual()[unit]
    if abs(unit.log_scale) >= _SAME_SCALE:
        for name in _SCALED:
            for power in (1, -1, 2, -2):
                rest = unit / parse_unit(name) ** power
                if abs(rest.log_scale) < _SAME_SCALE:
                    return _factors(rest.dims, [(name, power)])
        return f"{unit.scale:.6g} {_spell(unit.si)}".removesuffix(" 1")
    best, text = _cost(unit.dims), _factors(unit.dims, [])
    for name in ("N", "Pa", "W", "V", "T"):
        for power in (1, -1):
            dims = (unit / _PREFIXED[name] ** power).dims
            if _cost(dims) + 3 < best:
                best, text = _cost(dims) + 3, _factors(dims, [(name, power)])
    return text


_define()
