"""Vehicles from files: those that come with the package, changed copies, and mistakes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import StructError
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.vehicles import (
    F16,
    Car,
    FlatEarth,
    Multirotor,
    RotatingEarth,
    Satellite,
    load,
    parameter_file,
    two_stage_rocket,
)
from archimedes.vehicles.vehicle_folders import VehicleConfig
from archimedes.viewer import box, view

NAMES = ["car", "f16", "multirotor", "rocket", "satellite"]


@pytest.mark.parametrize(
    ("name", "default"),
    [("f16", F16), ("multirotor", Multirotor), ("car", Car), ("rocket", two_stage_rocket)],
)
def test_files_say_what_the_defaults_say(name, default):
    """To the last bit: neither can be changed alone."""
    assert load(name) == default()


def test_the_satellite_has_the_defaults_of_what_it_leaves_open():
    satellite = load("satellite")
    assert satellite == Satellite(
        satellite.mass, satellite.inertia, satellite.wheels, satellite.coils
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_file_reaches_the_vehicle(name, tmp_path):
    """Each number changed a little gives another vehicle."""
    data = arc.tree.config_files.read_data(parameter_file(name))
    before = load(name)
    changed = 0
    for place in numbers(data):
        old = get(data, place)
        if place[-1] == "count" or "axes" in place:
            continue
        put(data, place, (not old) if isinstance(old, bool) else old * 0.999 + 1e-9)
        path = tmp_path / "changed.json"
        arc.tree.config_files.write_data(data, path)
        assert load(path) != before, place
        changed += 1
        put(data, place, old)
    assert changed >= 8


def numbers(data, place=()):
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from numbers(value, (*place, key))
        elif isinstance(value, (bool, int, float)):
            here = (*place, key)
            # One element of a symmetric matrix cannot be changed alone.
            if not (len(here) > 2 and here[-3] == "inertia" and here[-1] != here[-2]):
                yield here


def get(data, place):
    for key in place:
        data = data[key]
    return data


def put(data, place, value):
    get(data, place[:-1])[place[-1]] = value


def copy(tmp_path, name, old, new):
    text = parameter_file(name).read_text("utf-8")
    assert text.count(old) >= 1, old
    path = tmp_path / f"my_{name}.yaml"
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


def test_a_copy_with_another_number(tmp_path):
    path = copy(tmp_path, "f16", "xcg: 0.25", "xcg: 0.38")
    assert load(path).xcg == 0.38
    assert load(str(path)) == F16(xcg=0.38)
    flat = load(copy(tmp_path, "f16", "world: rotating_earth", "world: flat_earth"))
    assert isinstance(flat.world, FlatEarth)


def test_parts_are_exchanged_by_keyword():
    plane = load("f16", world=FlatEarth(), xcg=0.3)
    assert isinstance(plane.world, FlatEarth) and plane.xcg == 0.3
    assert isinstance(load("f16").world, RotatingEarth)
    with pytest.raises(StructError, match=r"F16\.replace: no field 'engin'; did you mean 'engine'"):
        load("f16", engin=None)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("f16", "xcg:", "xgc:", r"xgc: unknown key of F16Config; did you mean 'xcg'\?"),
        ("f16", "xcg: 0.25", "", "xcg: missing; F16Config needs a number"),
        ("f16", "xcg: 0.25", "xcg: aft", "xcg: expected a number, got 'aft'"),
        ("f16", "lag: true", "lag: 1", "engine.lag: expected true or false, got 1"),
        ("f16", "span: 9.144", "span: -9.1", "aero: F16Aerodynamics.span must be positive"),
        ("f16", "mass: 92", "mass: -92", "F16.mass must be positive and finite, in kg"),
        ("f16", "[0.0, 756", "[5.0, 756", "F16.inertia must be symmetric"),
        ("f16", "[0.0, 756", "[756", "inertia: the rows of an array must have equal lengths"),
        ("f16", "rotating_earth", "mars", "world: expected one of 'flat_earth', 'rotating"),
        ("f16", "type: f16", "type: f15", "type: expected one of 'car', 'f16', 'multirotor'"),
        ("f16", "type: f16", "", r"type: expected a 'type' \(one of 'car', 'f16', "),
        ("multirotor", "count: 4", "count: 3", "rotors: ring: count=3 must be even"),
        ("multirotor", "count: 4", "count: 4.0", "rotors.count: expected an integer, got 4.0"),
        ("multirotor", "arm: 0.23", "arm: 0", "rotors: ring: arm must be positive"),
        ("multirotor", "max_speed: 1", "max_speed: -1", "rotors: Rotors.max_speed must be pos"),
        ("multirotor", "[0.02, 0.02, 0.04]", "[0.02, 0.02]", "drag: expected a list of 3"),
        ("satellite", "[1.0, 0.0, 0.0]", "[2.0, 0.0, 0.0]", "wheels: ReactionWheels.axes must be"),
        ("satellite", "max_dipole: 2.0", "max_dipole: -2", "coils: Magnetorquers.max_dipole must"),
        ("satellite", "mass: 20.0", "mass: .nan", "Satellite.mass must be positive"),
        ("rocket", "thrust: 4", "thrust: -4", r"stages\[0\]: Stage.thrust must be positive"),
        ("rocket", "propellant: 4600", "propellant: 0", r"stages\[1\]: Tank.capacity must be pos"),
        ("rocket", "mass: 500.0", "mass: -5.0", "payload: MassProperties.mass must not be neg"),
        ("car", "friction: 1.0", "friction: -1.0", "tyre: Tyre.friction must not be negative"),
        ("car", "front_drive: 0.0", "front_drive: 1.5", "1 - Car.front_drive must not be negative"),
        ("car", "mass: 1500.0", "mass: 1500.0\nmass: 2.0", "mass"),
    ],
)
def test_mistakes_name_file_and_key(tmp_path, name, old, new, message):
    path = copy(tmp_path, name, old, new)
    with pytest.raises(StructError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_unknown_names_and_files(tmp_path):
    with pytest.raises(StructError, match=r"no vehicle 'f-16' \(did you mean 'f16'\?\); the name"):
        load("f-16")
    with pytest.raises(StructError, match=r"gone\.yaml: cannot be read"):
        load(tmp_path / "gone.yaml")
    with pytest.raises(StructError, match=r"no vehicle '\.\./f16'"):
        load("../f16")
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    with pytest.raises(StructError, match=r"empty\.yaml"):
        load(empty)


def test_a_loaded_vehicle_is_recorded_like_any():
    plane = load("f16", world=FlatEarth())
    flight = arc.vehicles.FlightState(
        0.0, 0.0, 1000.0, np.array([150.0, 0, 0]), np.zeros(3), np.zeros(3)
    )
    x, u = plane.state(flight, 20.0), F16.Input(0.2)
    for backend in ("interpreter", "llvm"):
        rates = arc.compile(plane.dynamics, backend=backend)(0.0, x, u)
        np.testing.assert_allclose(rates.motion.v_B, plane.dynamics(0.0, x, u).motion.v_B)


def test_import_stays_cheap():
    """Neither vehicles nor a YAML parser are loaded by ``import archimedes``."""
    code = (
        "import sys, archimedes; assert 'archimedes.vehicles' not in sys.modules; "
        "import archimedes.vehicles; assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_vehicle_of_ones_own_loads_and_shows_itself(tmp_path):
    """A configuration with a type and a method `add_to_scene` are all it takes."""

    @arc.struct
    class Glider:
        mass: float

        def add_to_scene(self, scene, flight):
            flight.place(None, scene)
            scene.bodies.append(flight.body([box([1.0, 6.0, 0.2])]))

    class GliderConfig(VehicleConfig, type="glider"):
        makes = Glider
        mass: float

    path = tmp_path / "mine.yaml"
    path.write_text("type: glider\nmass: 300.0\n", "utf-8")
    glider = load(path)
    assert isinstance(glider, Glider) and glider.mass == 300.0
    zeros = np.zeros((2, 3))
    x = RigidBody.State(zeros, Quaternion(np.eye(4)[[0, 0]]), zeros, zeros)
    (body,) = view(glider, Trajectory(np.arange(2.0), x)).scene.bodies
    assert body.radius > 3.0
