"""Units of measurement against astropy's, and the messages for texts that are none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import constants

from archimedes.errors import UnitsError
from archimedes.physical_units import PLAIN, from_si, parse_quantity, parse_unit, to_si

#: Ours and the same for astropy, which knows some only by another name.
ASTROPY = {
    "m/s^2": "m/s2",
    "kg m^2": "kg m2",
    "N s^2/m^2": "N s2/m2",
    "N/m^1.5": "N/m(3/2)",
    "kg*m**2/s": "kg m2/s",
    "km/h": "km/h",
    "rpm": "2 pi rad/min",
    "deg/s": "deg/s",
    "nT/yr": "nT/yr",
    "g cm^2": "g cm2",
    "J/(kg K)": "J/(kg K)",
    "J/kg/K": "J/(kg K)",
    "hPa": "hPa",
    "mbar": "mbar",
    "mas": "mas",
    "arcmin": "arcmin",
    "A m^2": "A m2",
    "Pa s": "Pa s",
    "µm": "um",
    "kWh": "kW h",
    "MeV": "MeV",
    "G": "G",
    "au": "AU",
    "pc": "pc",
    "ly": "lyr",
    "t": "t",
    "L/min": "L/min",
    "%": "%",
    "1/s": "1/s",
    "s^-1": "1/s",
    "m s⁻²": "m/s2",
    "kHz": "kHz",
    "mohm": "mohm",
    "dyn": "dyn",
    "erg": "erg",
    "rev/s": "2 pi rad/s",
}
#: Ours, and the value in SI by the tables of SciPy (CODATA, NIST).
SCIPY = {
    "ft": constants.foot,
    "in": constants.inch,
    "yd": constants.yard,
    "mi": constants.mile,
    "nmi": constants.nautical_mile,
    "knots": constants.knot,
    "mph": constants.mph,
    "kph": constants.kmh,
    "lbm": constants.pound,
    "lb": constants.pound,
    "oz": constants.ounce,
    "slug": constants.slug,
    "lbf": constants.pound_force,
    "lbf ft": constants.pound_force * constants.foot,
    "slug ft^2": constants.slug * constants.foot**2,
    "ozf": constants.pound_force / 16.0,
    "kgf": constants.kilogram_force,
    "psi": constants.psi,
    "psf": constants.psi / 144.0,
    "atm": constants.atm,
    "Torr": constants.torr,
    "hp": constants.hp,
    "BTU": constants.Btu,
    "gal": constants.gallon,
    "acre": constants.acre,
    "ha": constants.hectare,
    "fpm": constants.foot / 60.0,
    "g0": constants.g,
    "eV": constants.eV,
    "au": constants.au,
    "ly": constants.light_year,
    "pc": constants.parsec,
    "deg": constants.degree,
    "arcsec": constants.arcsec,
    "yr": constants.Julian_year,
}


@pytest.mark.parametrize(("ours", "value"), SCIPY.items())
def test_equals_scipy(ours, value):
    assert parse_unit(ours).scale == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), ASTROPY.items())
def test_equals_astropy(ours, theirs):
    """Factor and dimension agree with another library, which was written from the same tables."""
    units = pytest.importorskip("astropy.units")
    factor = 1.0
    if theirs.startswith("2 pi "):
        factor, theirs = 2.0 * np.pi, theirs[5:]
    bases = [units.m, units.kg, units.s, units.A, units.K, units.rad]
    expected = units.Unit(theirs).decompose(bases)
    unit = parse_unit(ours)
    assert unit.scale == pytest.approx(factor * expected.scale, rel=1e-13)
    powers = dict(zip((b.name for b in expected.bases), expected.powers))
    powers.pop("rad", None)
    dimension = dict(zip(("kg", "m", "s", "A", "K", "mol", "cd"), unit.dims))
    assert {name: p for name, p in dimension.items() if p} == {
        n: Fraction(p) for n, p in powers.items()
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kg m/s^2", "N"),
        ("N m", "N m"),
        ("N s/m", "N s/m"),
        ("kg m^2/s^3", "W"),
        ("m^-1 kg s^-2", "Pa"),
        ("N/m^1.5", "N/m^1.5"),
        ("m^2/s/K", "m^2/(s K)"),
        ("rad", "1"),
        ("", "1"),
        ("ft lbf", "1.35582 N m"),
        ("0.5 m", "0.5 m"),
        ("s^(1/3)", "s^(1/3)"),
    ],
)
def test_what_is_computed_is_shown_in_the_usual_words(text, shown):
    assert str(parse_unit(text) * PLAIN) == shown


def test_celsius_fits_no_product():
    """A temperature in degC is no multiple of kelvin; in a product it is a difference."""
    celsius, kelvin = parse_unit("degC"), parse_unit("K")
    assert celsius != kelvin and celsius.si == kelvin and celsius.same_dimension(kelvin)
    assert str(celsius * parse_unit("J/K")) != "J" and str(celsius) == "degC"
    assert (parse_unit("degF").offset, celsius.offset, kelvin.offset) == (
        pytest.approx(255.3722222222), 273.15, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("meterz", "'meterz': unknown unit; did you mean 'meter'?"),
        ("m/ss", "'m/ss': unknown unit 'ss'; "),
        ("J/kg K", "can be read in two ways: write parentheses"),
        ("m/", "expected a unit before 'the end'"),
        ("/s", "expected a unit before '/'"),
        ("(m", "the parenthesis is not closed"),
        ("m)", "')' is out of place"),
        ("m^", "expected a number as exponent"),
        ("m^x", "expected a number as exponent"),
        ("m^1000", "the exponent 1000 is too large"),
        ("m$", "'$' has no meaning in a unit"),
        ("0 m", "0 is not a factor of a unit"),
        ("W/degC", "cannot be part of a product; write K, or delta_degC for a difference"),
    ],
)
def test_a_text_that_is_no_unit_says_so(text, message):
    with pytest.raises(UnitsError) as error:
        parse_unit(text)
    assert message in str(error.value)


def test_a_unit_is_text():
    with pytest.raises(UnitsError, match="a unit is text such as 'm/s', got 5"):
        parse_unit(5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5 lbm", 2.26796185),
        ("-40 degF", 233.15),
        ("15 degC", 288.15),
        ("1e3 ft", 304.8),
        ("-.5 km", -500.0),
        ("10%", 0.1),
        ("90°", np.pi / 2.0),
        ("1_000 m", 1000.0),
        ("inf m", np.inf),
        ("7", 7.0),
        ("250kt", 250.0 * 1852.0 / 3600.0),
    ],
)
def test_quantities(text, value):
    number, unit = parse_quantity(text)
    assert to_si(number, parse_unit(unit)) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("text", ["", "kg", "five kg", "kg 5"])
def test_a_quantity_begins_with_a_number(text):
    with pytest.raises(UnitsError, match="does not begin with a number"):
        parse_quantity(text)


def test_there_and_back():
    for name in ("degC", "degF", "ft", "deg", "m"):
        unit = parse_unit(name)
        assert from_si(to_si(12.5, unit), unit) == pytest.approx(12.5, rel=1e-13)
