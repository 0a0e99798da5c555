"""Quantities with units in configuration files."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.errors import StructError
from archimedes.tree import StructConfig, field
from archimedes.vehicles import load, parameter_file


class Engine(StructConfig):
    thrust: float = field(units="N")
    nozzle: tuple[float, float, float] = field(units="m", default=(0.0, 0.0, 0.0))


class Probe(StructConfig):
    mass: float = field(units="kg")
    inertia: np.ndarray = field(units="kg m^2", default_factory=lambda: np.eye(3))
    engine: Engine | None = None
    heading: float = field(units="deg", default=0.0)
    temperature: float | None = field(units="K", default=None)
    margin: float = field(units="", default=0.0)
    count: int = 1
    gain: float = 1.0
    name: str = field(units="kg", default="")
    ratings: list[float] = field(units="W", default_factory=list)


@pytest.mark.parametrize(
    ("text", "field_name", "value"),
    [
        ("mass: 5 kg", "mass", 5.0),
        ("mass: 5 lbm", "mass", 2.26796185),
        ("mass: {value: 5, unit: lbm}", "mass", 2.26796185),
        ("mass: {value: 5, units: g}", "mass", 0.005),
        ("mass: 5", "mass", 5.0),
        ("mass: 5e3 g", "mass", 5.0),
        ("{mass: 1, heading: 30}", "heading", 30.0),
        ("{mass: 1, heading: 0.5 rad}", "heading", np.rad2deg(0.5)),
        ("{mass: 1, temperature: 15 degC}", "temperature", 288.15),
        ("{mass: 1, margin: 10 %}", "margin", 0.1),
        ("{mass: 1, margin: 2}", "margin", 2.0),
        ("{mass: 1, name: 5 lbm}", "name", "5 lbm"),
    ],
)
def test_values_are_converted_to_the_unit_of_their_field(tmp_path, text, field_name, value):
    path = tmp_path / "probe.yaml"
    path.write_text(text)
    read = getattr(Probe.load(path), field_name)
    assert read == (value if isinstance(value, str) else pytest.approx(value, rel=1e-15))


def test_arrays_lists_and_tuples():
    probe = Probe.from_dict(
        {
            "mass": 1.0,
            "inertia": {"value": [[2.0, 0, 0], [0, 3, 0], [0, 0, 4]], "unit": "g cm^2"},
            "engine": {"thrust": "2 lbf", "nozzle": ["10 mm", 0.5, "1 ft"]},
            "ratings": ["1 kW", 20],
        }
    )
    np.testing.assert_allclose(probe.inertia, np.diag([2e-7, 3e-7, 4e-7]), rtol=1e-15)
    assert probe.engine.thrust == pytest.approx(8.896443230521)
    assert probe.engine.nozzle == pytest.approx((0.01, 0.5, 0.3048))
    assert probe.ratings == [1000.0, 20.0]
    rows = Probe(mass=1.0, inertia=[["1 g m^2", 0, 0], [0, 1, 0], [0, 0, 1]]).inertia
    assert rows[0, 0] == 1e-3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"mass": "5 N"}, "mass: expected a quantity in kg, got 5 N"),
        ({"mass": "5 lbf"}, "mass: expected a quantity in kg, got 5 lbf (N in SI)"),
        ({"mass": {"value": 5, "unit": "ft"}}, "mass: expected a quantity in kg, got 5 ft"),
        ({"mass": "5 kgg"}, "mass: 'kgg': unknown unit; did you mean 'kg'?; expected kg"),
        ({"mass": "heavy"}, "mass: expected a number, got 'heavy'"),
        ({"mass": "5"}, "mass: expected a number, got '5'"),
        ({"mass": {"value": "x", "unit": "kg"}}, "mass: expected a number before the unit"),
        ({"mass": {"value": True, "unit": "kg"}}, "mass: expected a number before the unit"),
        ({"mass": {"value": 5}}, "mass: expected a number, got {'value': 5}"),
        ({"mass": {"value": 5, "unit": 3}}, "mass: a unit is text such as 'm/s', got 3"),
        ({"mass": 1, "gain": "5 kg"}, "gain: expected a number, got 5 kg: the field has no unit"),
        ({"mass": 1, "margin": "5 kg"}, "margin: expected a plain number, got 5 kg"),
        ({"mass": 1, "count": "5 kg"}, "count: expected an integer, got '5 kg'"),
        ({"mass": 1, "engine": {"thrust": "5 kg"}}, "engine.thrust: expected a quantity in N"),
        (
            {"mass": 1, "engine": {"thrust": 1, "nozzle": [0, 0, "1 s"]}},
            "engine.nozzle[2]: expected a quantity in m, got 1 s",
        ),
    ],
)
def test_a_wrong_unit_names_field_unit_and_what_is_expected(data, message):
    with pytest.raises(StructError) as error:
        Probe.from_dict(data)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_errors_of_a_file_name_the_line(tmp_path, suffix):
    path = tmp_path / f"probe{suffix}"
    yaml = "mass: 1\n# about\nengine:\n  nozzle:\n    - 0\n    - 1 kg\n    - 0\n  thrust: 1\n"
    json = '{"mass": 1,\n\n"engine":{\n"nozzle":[\n0,\n"1 kg",\n0],"thrust":1}}'
    path.write_text(yaml if suffix == ".yaml" else json)
    with pytest.raises(StructError, match=r"engine.nozzle\[1\]: .*got 1 kg \(line 6\)$") as error:
        Probe.load(path)
    assert error.value.line == 6


def test_a_missing_key_is_at_the_line_of_its_part(tmp_path):
    path = tmp_path / "probe.yaml"
    path.write_text("mass: 1\nengine: {}\n")
    with pytest.raises(StructError, match=r"engine.thrust: missing; .*\(line 2\)"):
        Probe.load(path)


def test_vehicles_take_units(tmp_path):
    """The parameter file of a vehicle with other units is the same vehicle."""
    text = parameter_file("multirotor").read_text()
    changed = text.replace("mass: 1.2", "mass: 1200 g").replace("arm: 0.23", "arm: 23 cm")
    changed = changed.replace(
        "max_speed: 1000.0", "max_speed: {value: 9549.296585513720, unit: rpm}"
    )
    path = tmp_path / "drone.yaml"
    path.write_text(changed)
    drone, same = load(path), load("multirotor")
    assert drone.mass == same.mass
    np.testing.assert_allclose(drone.rotors.positions, same.rotors.positions, rtol=1e-15)
    assert drone.rotors.max_speed == pytest.approx(1000.0, rel=1e-14)
    path.write_text(text.replace("mass: 1.2", "mass: 1.2 N"))
    with pytest.raises(StructError, match=r"mass: expected a quantity in kg, got 1.2 N \(line 3\)"):
        load(path)
