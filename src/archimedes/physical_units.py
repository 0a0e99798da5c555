"""Units of measurement: the text that a person writes, as dimensions and a factor to SI.

Factors are exact where they are defined so: BIPM, The International System of Units (9th edition,
2019); NIST Special Publication 811 (2008), appendix B; IAU resolutions 2012 B2 and 2015 B2.

An angle is a plain number: rad is 1, deg is pi/180. That is the SI's choice, and it makes
``v = w * r`` come out in m/s.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from archimedes.errors import UnitError

__all__ = ["PLAIN", "Unit", "from_si", "parse_quantity", "parse_unit", "to_si"]

#: The base units of SI, in the order of `Unit.dimension`.
BASE = ("m", "kg", "s", "A", "K", "mol", "cd")
_NONE = (Fraction(0),) * len(BASE)


@dataclass(frozen=True)
class Unit:
    """A unit: exponents of the base units of SI, and how many of those one of it is.

    Parameters
    ----------
    dimension : tuple of Fraction
        Exponents of m, kg, s, A, K, mol, cd.
    factor : float
        The unit in SI: 0.3048 for ft.
    offset : float
        What is added in SI, for temperatures that do not count from absolute zero: 273.15 for
        degC.
    text : str
        How the user wrote it; "" where it was computed. It plays no part in comparisons.

    Examples
    --------
    >>> from archimedes.physical_units import parse_unit
    >>> force = parse_unit("lbf")
    >>> force.same_dimension(parse_unit("kg m/s^2")), round(force.factor, 6), str(force)
    (True, 4.448222, 'lbf')
    >>> str(force * parse_unit("ft")), str(parse_unit("N m") / parse_unit("kg"))
    ('ft lbf', 'm^2/s^2')
    """

    dimension: tuple[Fraction, ...] = _NONE
    factor: float = 1.0
    offset: float = 0.0
    text: str = field(default="", compare=False)

    def __mul__(self, other: Unit) -> Unit:
        dimension = tuple(a + b for a, b in zip(self.dimension, other.dimension))
        return Unit(dimension, self.factor * other.factor)

    def __truediv__(self, other: Unit) -> Unit:
        dimension = tuple(a - b for a, b in zip(self.dimension, other.dimension))
        return Unit(dimension, self.factor / other.factor)

    def __pow__(self, exponent: Fraction | float) -> Unit:
        exponent = Fraction(exponent).limit_denominator(1000)
        dimension = tuple(a * exponent for a in self.dimension)
        return Unit(dimension, self.factor ** float(exponent))

    def same_dimension(self, other: Unit) -> bool:
        """Return whether the two measure the same kind of quantity."""
        return self.dimension == other.dimension

    def same(self, other: Unit) -> bool:
        """Return whether a number means the same in either unit, up to rounding."""
        close = math.isclose(self.factor, other.factor, rel_tol=1e-9)
        return close and self.dimension == other.dimension and self.offset == other.offset

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = _names().get(self.dimension, {}).get(f"{self.factor:.10g}")
        if name is not None and not self.offset:
            return name
        unit = _spell(self.dimension)
        if self.factor == 1.0:
            return unit
        return f"{self.factor:.10g}" + ("" if unit == "1" else f" {unit}")


#: A plain number.
PLAIN = Unit()


# ---- tables ------------------------------------------------------------------------------------

#: Prefixes and their powers of ten.
_PREFIXES = dict(zip("QRYZEPTGMkh", (30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 2)))
_PREFIXES |= {"da": 1}
_PREFIXES |= dict(
    zip("dcmuµμnpfazyrq", (-1, -2, -3, -6, -6, -6, -9, -12, -15, -18, -21, -24, -27, -30))
)

#: Units that take the prefixes of SI, in units that stand above them.
_WITH_PREFIX = {
    **{name: name for name in ("m", "s", "A", "K", "mol", "cd")},
    "g": "1e-3 kg",
    "rad": "1",
    "sr": "1",
    "Hz": "1/s",
    "N": "kg m/s^2",
    "Pa": "N/m^2",
    "J": "N m",
    "W": "J/s",
    "C": "A s",
    "V": "W/A",
    "F": "C/V",
    "ohm": "V/A",
    "Ω": "V/A",
    "S": "A/V",
    "Wb": "V s",
    "T": "Wb/m^2",
    "H": "Wb/A",
    "lm": "cd",
    "lx": "cd/m^2",
    "Bq": "1/s",
    "Gy": "J/kg",
    "Sv": "J/kg",
    "kat": "mol/s",
    "eV": "1.602176634e-19 J",
    "bar": "1e5 Pa",
    "L": "1e-3 m^3",
    "l": "1e-3 m^3",
    "t": "1e3 kg",
    "G": "1e-4 T",
    "cal": "4.184 J",
    "Wh": "3600 J",
    "Ah": "3600 C",
    "as": "4.84813681109536e-6",
    "pc": "3.0856775814913673e16 m",
}

_EXACT = {
    "kg": "kg",
    "%": "0.01",
    "ppm": "1e-6",
    "min": "60 s",
    "h": "3600 s",
    "hr": "3600 s",
    "d": "86400 s",
    "day": "86400 s",
    "yr": "31557600 s",
    "deg": f"{math.pi / 180.0!r}",
    "arcmin": f"{math.pi / 10800.0!r}",
    "arcsec": f"{math.pi / 648000.0!r}",
    "rev": f"{2.0 * math.pi!r}",
    "rpm": f"{math.pi / 30.0!r} 1/s",
    "g0": "9.80665 m/s^2",
    "gee": "9.80665 m/s^2",
    "in": "0.0254 m",
    "ft": "0.3048 m",
    "yd": "0.9144 m",
    "mi": "1609.344 m",
    "nmi": "1852 m",
    "NM": "1852 m",
    "au": "149597870700 m",
    "ly": "9460730472580800 m",
    "kn": "1852/3600 m/s",
    "mph": "0.44704 m/s",
    "kph": "1/3.6 m/s",
    "fpm": "0.00508 m/s",
    "lbm": "0.45359237 kg",
    "oz": "0.028349523125 kg",
    "lbf": "4.4482216152605 N",
    "slug": "14.593902937206364 kg",
    "kgf": "9.80665 N",
    "ozf": "0.27801385095378125 N",
    "dyn": "1e-5 N",
    "erg": "1e-7 J",
    "psi": "6894.757293168361 Pa",
    "psf": "47.88025898033584 Pa",
    "atm": "101325 Pa",
    "Torr": "101325/760 Pa",
    "mmHg": "133.322387415 Pa",
    "inHg": "3386.388640341 Pa",
    "hp": "745.6998715822702 W",
    "BTU": "1055.05585262 J",
    "gal": "3.785411784e-3 m^3",
    "cc": "1e-6 m^3",
    "acre": "4046.8564224 m^2",
    "ha": "1e4 m^2",
    "degR": "5/9 K",
    "delta_degC": "K",
    "delta_degF": "5/9 K",
}

#: Temperatures that do not count from absolute zero: kelvin in one degree, and their zero in K.
_WITH_OFFSET = {"degC": (1.0, 273.15), "degF": (5.0 / 9.0, 459.67 * 5.0 / 9.0)}

#: Other names of units, each of which may also have an s at the end.
_ALIASES = {
    alias: name
    for name, aliases in {
        "deg": "° degree",
        "degC": "°C celsius Celsius",
        "degF": "°F fahrenheit Fahrenheit",
        "degR": "°R rankine",
        "arcmin": "′ amin",
        "arcsec": "″ asec",
        "rev": "turn cycle",
        "lbm": "lb pound",
        "oz": "ounce",
        "in": "inch",
        "ft": "foot feet",
        "yd": "yard",
        "mi": "mile",
        "kn": "kt kts knot",
        "au": "AU",
        "yr": "year",
        "h": "hour",
        "min": "minute",
        "s": "sec second",
        "m": "meter metre",
        "km": "kilometer kilometre",
        "g": "gram",
        "mm": "millimeter millimetre",
        "cm": "centimeter centimetre",
        "kg": "kilogram",
        "t": "tonne",
        "N": "newton",
        "Pa": "pascal",
        "J": "joule",
        "W": "watt",
        "V": "volt",
        "A": "ampere amp",
        "C": "coulomb",
        "T": "tesla",
        "G": "gauss",
        "Hz": "hertz",
        "K": "kelvin",
        "rad": "radian",
        "mol": "mole",
        "BTU": "Btu",
        "Torr": "torr",
        "L": "liter litre",
        "%": "percent",
        "N*m": "Nm",
    }.items()
    for alias in aliases.split()
}

#: Names that results are shown with, one for each dimension that has a usual one.
_SHOWN = ("N", "Pa", "W", "C", "V", "ohm", "F", "Wb", "T", "H")
_SHOWN_FACTORS = (
    *("deg", "rpm", "ft", "in", "mi", "nmi", "km", "mm", "cm", "au", "kn", "mph", "lbf", "lbm"),
    *("slug", "g", "t", "min", "h", "d", "yr", "psi", "psf", "bar", "hPa", "kPa", "kN", "nT", "%"),
    *("ft/s", "ft/s^2", "deg/s", "km/s", "km/h", "slug ft^2", "ft lbf", "hp", "kW", "g0", "L"),
    *("g cm^2", "cm^2", "mm^2", "ft^2", "arcsec", "ms", "N mm", "lbf in", "kg mm^2", "g/cm^3"),
)


@functools.cache
def _names() -> dict[tuple[Fraction, ...], dict[str, str]]:
    """Return the names of units that have one of their own, by dimension and factor."""
    names: dict[tuple[Fraction, ...], dict[str, str]] = {}
    for name in (*_SHOWN, *_SHOWN_FACTORS):
        unit = parse_unit(name)
        names.setdefault(unit.dimension, {}).setdefault(f"{unit.factor:.10g}", name)
    return names


def _spell(dimension: tuple[Fraction, ...]) -> str:
    """Return the usual text of a product of base units: N m and N/m where force is in it."""
    powers = dict(zip(BASE, dimension))
    if powers["kg"] == 1 and powers["s"] == -2:
        powers = {"N": Fraction(1), **powers, "kg": Fraction(0), "s": Fraction(0)}
        powers["m"] -= 1
    shown = [(n, p) for n, p in sorted(powers.items(), key=lambda item: _ORDER.index(item[0])) if p]
    above = " ".join(_power(n, p) for n, p in shown if p > 0)
    below = [_power(n, -p) for n, p in shown if p < 0]
    if not below:
        return above or "1"
    under = below[0] if len(below) == 1 else f"({' '.join(below)})"
    return f"{above or '1'}/{under}"


_ORDER = ("N", "kg", "mol", "A", "K", "cd", "m", "s")


def _power(name: str, exponent: Fraction) -> str:
    if exponent == 1:
        return name
    whole = exponent.denominator == 1
    short = exponent.denominator in (2, 4, 5, 10)
    text = str(exponent) if whole else f"{float(exponent):g}" if short else f"({exponent})"
    return f"{name}^{text}"


# ---- text --------------------------------------------------------------------------------------

_TOKENS = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<power>\*\*|\^)"
    r"|(?P<raised>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<times>[*·⋅×])|(?P<over>/)"
    r"|(?P<sign>[-+−])|(?P<open>\()|(?P<close>\))|(?P<name>[^\W\d]\w*|[%°′″]\w*))"
)
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")


@functools.cache
def parse_unit(text: str) -> Unit:
    """Return the unit that a text names.

    Factors are separated by spaces, ``*`` or ``·`` and divided by ``/``; exponents follow ``^`` or
    ``**``. After a ``/`` that is followed by several factors, parentheses are needed: ``J/(kg K)``.

    Parameters
    ----------
    text : str
        Such as ``"m/s^2"``, ``"kg*m**2"``, ``"lbf ft"``, ``"deg"``, ``"%"``; ``""`` and ``"1"`` are
        plain numbers.

    Raises
    ------
    UnitError
        If a name is not known, with the nearest one, or if the text can be read in two ways.

    Examples
    --------
    >>> from archimedes.physical_units import parse_unit
    >>> parse_unit("km/h").factor * 3.6
    1.0
    >>> parse_unit("meterz")
    Traceback (most recent call last):
    archimedes.errors.UnitError: 'meterz': unknown unit; did you mean 'meter'?
    """
    if not isinstance(text, str):
        raise UnitError(f"a unit is text such as 'm/s', got {text!r}")
    alone = _ALIASES.get(text.strip(), text.strip())
    if alone in _WITH_OFFSET:
        factor, offset = _WITH_OFFSET[alone]
        return Unit(parse_unit("K").dimension, factor, offset, text.strip())
    unit = _Parser(text).whole()
    return Unit(unit.dimension, unit.factor, 0.0, text.strip())


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while text[end:].strip():
            match = _TOKENS.match(text, end)
            if match is None:
                raise UnitError(f"{text!r}: {text[end:].strip()[0]!r} has no meaning in a unit")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            end = match.end()
        self.position = 0

    def look(self) -> str:
        """Return the kind of the next token, "" at the end."""
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        """Return the text of the next token and step over it."""
        self.position += 1
        return self.tokens[self.position - 1][1]

    def whole(self) -> Unit:
        """Return the unit of the whole text."""
        unit = self.product() if self.tokens else PLAIN
        if self.look():
            raise UnitError(f"{self.text!r}: {self.take()!r} is out of place")
        return unit

    def product(self) -> Unit:
        """Return factors, divided and multiplied from left to right."""
        unit = self.factor()
        divided = False
        while kind := self.look():
            if kind in ("times", "over"):
                self.take()
            elif kind not in ("number", "name", "open"):
                break
            elif divided:
                raise UnitError(
                    f"{self.text!r} can be read in two ways: write parentheses, a/(b c) or (a/b) c"
                )
            divided = kind == "over" and not self.is_number()
            unit = unit / self.factor() if kind == "over" else unit * self.factor()
        return unit

    def is_number(self) -> bool:
        """Return whether a number comes next: ``1/3.6 m`` is a fraction of a metre."""
        return self.look() == "number"

    def factor(self) -> Unit:
        """Return a number, a name or a group, with its exponent."""
        kind = self.look()
        if kind not in ("number", "name", "open"):
            missing = self.take() if kind else "the end"
            raise UnitError(f"{self.text!r}: expected a unit before {missing!r}")
        word = self.take()
        if kind == "open":
            unit = self.product()
            if self.look() != "close":
                raise UnitError(f"{self.text!r}: the parenthesis is not closed")
            self.take()
        elif kind == "number":
            unit = Unit(factor=float(word))
            if not (math.isfinite(unit.factor) and unit.factor > 0.0):
                raise UnitError(f"{self.text!r}: {word} is not a factor of a unit")
        else:
            unit = _look_up(word, self.text)
        if self.look() == "raised":
            return unit ** Fraction(self.take().translate(_RAISED))
        if self.look() == "power":
            self.take()
            return unit ** self.exponent()
        return unit

    def exponent(self) -> Fraction:
        """Return the number after ``^``, which may be a fraction in parentheses."""
        if self.look() == "open":
            self.take()
            value = self.exponent()
            if self.look() == "over":
                self.take()
                value /= self.exponent()
            if self.look() == "close":
                self.take()
                return value
        sign = -1 if self.look() == "sign" and self.take() in "-−" else 1
        if self.look() != "number":
            raise UnitError(f"{self.text!r}: expected a number as exponent")
        value = sign * Fraction(self.take())
        if abs(value) > 100:
            raise UnitError(f"{self.text!r}: the exponent {value} is too large")
        return value


@functools.cache
def _look_up(name: str, text: str) -> Unit:
    """Return the unit of one name, with a prefix or without."""
    name = _ALIASES.get(name, name)
    if "*" in name:
        return parse_unit(name)
    if name in _WITH_OFFSET:
        raise UnitError(
            f"{text!r}: {name} counts from another zero and cannot be part of a product; write K, "
            f"or delta_{name} for a difference"
        )
    if name in BASE:
        return Unit(tuple(Fraction(int(name == base)) for base in BASE))
    for table in (_EXACT, _WITH_PREFIX):
        if name in table:
            return parse_unit(table[name])
    for prefix, exponent in _PREFIXES.items():
        if name.startswith(prefix) and (rest := name[len(prefix) :]) in _WITH_PREFIX:
            unit = _look_up(rest, text)
            return Unit(unit.dimension, unit.factor * 10.0**exponent)
    if name.endswith("s") and len(name) > 3:
        single = _ALIASES.get(name[:-1], name[:-1])
        if single != name[:-1] or single in _EXACT or single in _WITH_PREFIX:
            return _look_up(single, text)
    import difflib

    close = difflib.get_close_matches(name, [*_EXACT, *_WITH_PREFIX, *_WITH_OFFSET, *_ALIASES], n=1)
    remedy = f"did you mean {close[0]!r}?" if close else "units are such as m, kg, N, ft, lbf, deg"
    where = f"{text!r}: unknown unit" + (f" {name!r}" if name != text.strip() else "")
    raise UnitError(f"{where}; {remedy}")


_QUANTITY = re.compile(
    r"\s*([-+−]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\.?(?:inf|nan))(.*)$"
)


def parse_quantity(text: str) -> tuple[float, Unit]:
    """Return the number and the unit of a text such as ``"5 lbm"``.

    Parameters
    ----------
    text : str
        A number, and after it a unit or nothing, which means a plain number.

    Examples
    --------
    >>> from archimedes.physical_units import parse_quantity, to_si
    >>> to_si(*parse_quantity("10 ft"))
    3.048
    """
    match = _QUANTITY.match(text)
    if match is None:
        raise UnitError(f"{text!r} does not begin with a number")
    number = match[1].replace("−", "-").replace(".inf", "inf").replace(".nan", "nan")
    return float(number), parse_unit(match[2].strip())


def to_si(value: Any, unit: Unit) -> Any:
    """Return a number or an array of numbers in SI.

    Parameters
    ----------
    value : float or array
        In `unit`.
    unit : Unit
        From :func:`parse_unit`.

    Examples
    --------
    >>> from archimedes.physical_units import parse_unit, to_si
    >>> to_si(15.0, parse_unit("degC"))
    288.15
    """
    if unit.factor != 1.0:
        value = value * unit.factor
    return value + unit.offset if unit.offset else value


def from_si(value: Any, unit: Unit) -> Any:
    """Return a number or an array that is in SI in another unit: the inverse of :func:`to_si`.

    Parameters
    ----------
    value : float or array
        In SI.
    unit : Unit
        From :func:`parse_unit`.

    Examples
    --------
    >>> from archimedes.physical_units import from_si, parse_unit
    >>> round(from_si(1.0, parse_unit("ft")), 6)
    3.28084
    """
    value = value - unit.offset if unit.offset else value
    return value if unit.factor == 1.0 else value / unit.factor
