"""Units of measurement: the text that a person writes, as powers of the SI base units and a scale.

Factors are exact where they are defined so: BIPM, The International System of Units (9th edition,
2019); NIST Special Publication 811 (2008), appendix B; IAU resolutions 2012 B2 and 2015 B2.

A unit is a vector: rational exponents of the base units, and the logarithm of its scale. A foot is
the metre with the scale 0.3048, a degree a plain number with the scale pi/180, a radian a plain
number: that is the SI's choice, and it makes ``v = w * r`` come out in m/s. Products of units add
these vectors, roots divide them. degC and degF have one more exponent, that of a zero which is not
absolute: a temperature in them fits no product.
"""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction
from typing import Any

from archimedes.errors import UnitsError

__all__ = ["PLAIN", "Unit", "from_si", "parse_quantity", "parse_unit", "to_si"]

#: The base units of SI, and the zero of a temperature scale that is not absolute.
BASE = ("kg", "m", "s", "A", "K", "mol", "cd", "zero")
#: Scales that differ by less are the same: the logarithm of a scale is known to rounding.
_SAME_SCALE = 1e-9
_LARGE = 690.0
_NONE = (0,) * len(BASE)
#: A rational number: an int where it is whole, which is quicker.
Rational = Fraction | int


def whole(x: Rational) -> Rational:
    """Return a rational number as an int where it is one."""
    return x.numerator if x.denominator == 1 else x


class Unit:
    """A unit; equal ones may be different objects.

    >>> from archimedes.physical_units import parse_unit
    >>> parse_unit("N s") / parse_unit("kg") == parse_unit("m/s")
    True
    >>> force = parse_unit("lbf")
    >>> force.same_dimension(parse_unit("kg m/s^2")), round(force.scale, 6), str(force)
    (True, 4.448222, 'lbf')
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
        return Unit((*self.dims[:-1], 0))

    @property
    def offset(self) -> float:
        """What is added in SI, for a temperature in degC or degF, else 0."""
        return 0.0 if not self.dims[-1] else 273.15 if self.scale == 1.0 else 459.67 * 5 / 9

    def same_dimension(self, other: Unit) -> bool:
        """Return whether the two measure the same kind of quantity."""
        return self.dims[:-1] == other.dims[:-1]

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


def _number(scale: float) -> Unit:
    return Unit(_NONE, scale)


# ---- tables ------------------------------------------------------------------------------------

#: Prefixes and their powers of ten.
_PREFIXES = dict(zip("QRYZEPTGMkh", (30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 2)))
_PREFIXES |= {"da": 1}
_PREFIXES |= dict(
    zip("dcmuµμnpfazyrq", (-1, -2, -3, -6, -6, -6, -9, -12, -15, -18, -21, -24, -27, -30))
)

#: Units that take the prefixes of SI, in units that stand above them.
_WITH_PREFIX = {
    **{name: name for name in BASE[1:-1]},
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
    "count": "1",
    "fps": "0.3048 m/s",
    "delta_degC": "K",
    "delta_degF": "5/9 K",
}

#: Temperatures that do not count from absolute zero: kelvin in one degree.
_WITH_OFFSET = {"degC": 1.0, "degF": 5.0 / 9.0}

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
        "lbm": "lb",
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
        "g0": "gn gee",
        "kph": "kmh kmph",
        "kgf": "kp",
        "gal": "gallon",
    }.items()
    for alias in aliases.split()
}

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
    UnitsError
        If a name is not known, with the nearest one, or if the text can be read in two ways.

    Examples
    --------
    >>> from archimedes.physical_units import parse_unit
    >>> parse_unit("km/h").scale * 3.6, str(parse_unit("kg m/s^2"))
    (1.0, 'N')
    >>> parse_unit("meterz")
    Traceback (most recent call last):
    archimedes.errors.UnitsError: 'meterz': unknown unit; did you mean 'meter'?
    """
    if not isinstance(text, str):
        raise UnitsError(f"a unit is text such as 'm/s', got {text!r}")
    alone = _ALIASES.get(text.strip(), text.strip())
    if alone in _WITH_OFFSET:
        return Unit(tuple(int(name in ("K", "zero")) for name in BASE), _WITH_OFFSET[alone])
    return PLAIN if alone == "-" else _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while text[end:].strip():
            match = _TOKENS.match(text, end)
            if match is None:
                raise UnitsError(f"{text!r}: {text[end:].strip()[0]!r} has no meaning in a unit")
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
            raise UnitsError(f"{self.text!r}: {self.take()!r} is out of place")
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
                raise UnitsError(
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
            raise UnitsError(f"{self.text!r}: expected a unit before {missing!r}")
        word = self.take()
        if kind == "open":
            unit = self.product()
            if self.look() != "close":
                raise UnitsError(f"{self.text!r}: the parenthesis is not closed")
            self.take()
        elif kind == "number":
            if not 0.0 < float(word) < math.inf:
                raise UnitsError(f"{self.text!r}: {word} is not a factor of a unit")
            unit = _number(float(word))
        else:
            unit = _look_up(word, self.text)
        if self.look() == "raised":
            return unit ** whole(Fraction(self.take().translate(_RAISED)))
        if self.look() == "power":
            self.take()
            return unit ** whole(self.exponent())
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
            raise UnitsError(f"{self.text!r}: expected a number as exponent")
        value = sign * Fraction(self.take())
        if abs(value) > 100:
            raise UnitsError(f"{self.text!r}: the exponent {value} is too large")
        return value


@functools.cache
def _look_up(name: str, text: str) -> Unit:
    """Return the unit of one name, with a prefix or without."""
    name = _ALIASES.get(name, name)
    if "*" in name:
        return parse_unit(name)
    if name in _WITH_OFFSET:
        raise UnitsError(
            f"{text!r}: {name} counts from another zero and cannot be part of a product; write K, "
            f"or delta_{name} for a difference"
        )
    if name in BASE:
        return Unit(tuple(int(name == base) for base in BASE))
    for table in (_EXACT, _WITH_PREFIX):
        if name in table:
            return parse_unit(table[name])
    for prefix, exponent in _PREFIXES.items():
        if name.startswith(prefix) and (rest := name[len(prefix) :]) in _WITH_PREFIX:
            unit = _look_up(rest, text)
            return Unit(unit.dims, unit.scale * 10.0**exponent)
    if name.endswith("s") and len(name) > 3:
        single = _ALIASES.get(name[:-1], name[:-1])
        if single != name[:-1] or single in _EXACT or single in _WITH_PREFIX:
            return _look_up(single, text)
    if name[-1:] in "23" and name[:-1] in {
        **_EXACT,
        **_WITH_PREFIX,
        "kg": 1,
        "km": 1,
        "mm": 1,
        "cm": 1,
    }:
        return _look_up(name[:-1], text) ** int(name[-1])  # m2: as m^2
    import difflib

    close = difflib.get_close_matches(name, [*_EXACT, *_WITH_PREFIX, *_WITH_OFFSET, *_ALIASES], n=1)
    if name in ("pound", "pounds"):
        close = ["lbm' (mass) or 'lbf' (force)"]
    remedy = f"did you mean {close[0]!r}?" if close else "units are such as m, kg, N, ft, lbf, deg"
    where = f"{text!r}: unknown unit" + (f" {name!r}" if name != text.strip() else "")
    raise UnitsError(f"{where}; {remedy}")


_QUANTITY = re.compile(
    r"\s*([-+−]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\.?(?:inf|nan))(.*)$"
)


def parse_quantity(text: str) -> tuple[float, str]:
    """Return the number and the text of the unit in a text such as ``"5 lbm"``.

    Parameters
    ----------
    text : str
        A number, and after it a unit or nothing, which means a plain number.

    Examples
    --------
    >>> from archimedes.physical_units import parse_quantity
    >>> parse_quantity("5 lbm"), parse_quantity("1e-3")
    ((5.0, 'lbm'), (0.001, ''))
    """
    match = _QUANTITY.match(text)
    if match is None:
        raise UnitsError(f"{text!r} does not begin with a number")
    number = match[1].replace("−", "-").replace(".inf", "inf").replace(".nan", "nan")
    parse_unit(match[2].strip())
    return float(number), match[2].strip()


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
    if unit.scale != 1.0:
        value = value * unit.scale
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
    return value if unit.scale == 1.0 else value / unit.scale


# ---- spelling ----------------------------------------------------------------------------------

#: How SI units are usually written.
_USUAL = (
    "m/s^2 N Pa W V T C ohm kg|m^2 kg|m^2/s N|m N|m|s N|s N/m N|s/m N|s^2/m N|s^2/m^2 kg/s kg/m "
    "kg/m^2 kg/m^3 N|m/s Pa|s m^3/s^2 m^3/s m^2/s m^2/s^2 m^2/s^3 m/s^3 J/(kg|K) W/(m|K) W/m^2 "
    "W/(m^2|K) N/kg A|m^2 N/m^1.5 N/m^2 N|m/rad V/m A/m J/K"
)
#: Those with a scale of their own, to be looked for in others.
_SCALED = (
    *("deg", "ft", "lbf", "lbm", "slug", "in", "kn", "nmi", "h", "min", "km", "rev", "%"),
    *("g", "cm", "mm", "ms", "t", "psi", "kPa", "kN", "kW"),
)
#: Names of units that are not used for results, because another spelling is more usual.
_UNUSUAL = {"Hz", "Bq", "Gy", "J", "S", "lm", "lx", "l", "F", "H", "fps", "kph"}
_UNUSUAL |= {
    "delta_degC",
    "delta_degF",
    "count",
    "hr",
    "day",
    "NM",
    "rad",
    "sr",
    "Ω",
    "cc",
    "mmHg",
    "Sv",
}


@functools.cache
def _usual() -> dict[Unit, str]:
    names = [*_EXACT, *_WITH_PREFIX, *_WITH_OFFSET]
    named = {parse_unit(n): n for n in reversed(names) if n not in _UNUSUAL}
    texts = [text.replace("|", " ") for text in reversed(_USUAL.split())]
    base = {parse_unit(n): n for n in BASE[:-1]}
    return {**named, **{parse_unit(text): text for text in texts}, **base}


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
    if zero := unit.dims[-1]:
        rest = unit / parse_unit("degC") ** zero
        return _factors(rest.dims, [("degC", zero)])
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
            dims = (unit / parse_unit(name) ** power).dims
            if _cost(dims) + 3 < best:
                best, text = _cost(dims) + 3, _factors(dims, [(name, power)])
    return text
