"""What each part does beyond its range: carry on, hold or fail, as docs/vehicles.md says."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import StandardAtmosphere1976
from archimedes.errors import StructError
from archimedes.vehicles import (
    F16,
    Car,
    CircleGuidance,
    F16Engine,
    FlatEarth,
    FlightState,
    GeometricController,
    Multirotor,
    OrbitGuidance,
    Rocket,
    RotatingEarth,
    Satellite,
    load,
)
from archimedes.vehicles.parts import GroundContact


def flight(alt=0.0, speed=100.0, pitch=0.0):
    return FlightState(
        0.0, 0.0, alt, np.array([speed, 0.0, 0.0]), np.array([0.0, pitch, 0.0]), np.zeros(3)
    )


def test_f16_tables_are_carried_on():
    plane = F16(world=FlatEarth())

    def lift(pitch):
        around = plane.world.surroundings(0.0, plane.state(flight(pitch=pitch)).motion)
        return plane.aero.coefficients(around, 0.0, 0.0, 0.0, 0.35)[0][2]

    edge, near, far = (lift(np.deg2rad(a)) for a in (45.0, 50.0, 60.0))
    assert (far - edge) == pytest.approx(3.0 * (near - edge), rel=1e-9)


def test_f16_throttle_is_carried_on():
    engine = F16Engine()
    assert engine.commanded(1.1) == pytest.approx(217.38 * 1.1 - 117.38)
    assert engine.commanded(-0.1) == pytest.approx(-6.494)


def test_air_is_held_and_the_inside_of_the_earth_is_finite():
    air = StandardAtmosphere1976()
    assert air(-20e3).density == air(-5e3).density
    assert air(2e6).density == air(1e6).density
    for world in (FlatEarth(), RotatingEarth()):
        plane = F16(world=world)
        rates = plane.dynamics(0.0, plane.state(flight(alt=-4e6)), F16.Input(0.1))
        assert all(np.all(np.isfinite(leaf)) for leaf in arc.tree.leaves(rates))


def test_rocket_without_fuel_and_beyond_its_controls():
    rocket = load("rocket")
    x = rocket.state(flight(alt=80e3, speed=1000.0))
    empty, negative = (x.replace(propellant=np.array([m, 4600.0])) for m in (0.0, -50.0))
    u = Rocket.Input(1.0)
    for state in (empty, negative):
        assert rocket.firing(state, 1.0).tolist() == [0.0, 0.0]
        assert rocket.dynamics(0.0, state, u).propellant.tolist() == [0.0, 0.0]
    assert rocket.mass_properties(negative).mass == rocket.mass_properties(empty).mass
    for given, held in ((1.7, 1.0), (-1.0, 0.0)):
        a, b = (rocket.forces(0.0, x, Rocket.Input(v))[0] for v in (given, held))
        np.testing.assert_array_equal(a, b)


def test_multirotor_speeds_are_held():
    rotors = load("multirotor").rotors
    speeds = np.full(4, 500.0)
    np.testing.assert_array_equal(
        rotors.rates(speeds, np.array([1e6, -5.0, 1000.0, 0.0])),
        rotors.rates(speeds, np.array([1000.0, 0.0, 1000.0, 0.0])),
    )
    assert np.all(rotors.distribute(1e5, np.zeros(3)) <= rotors.max_speed)


def test_satellite_coils_and_wheels_are_held():
    satellite = load("satellite")
    B = np.array([0.0, 0.0, 3e-5])
    much = satellite.coils.moment(np.array([50.0, 0.0, 0.0]), B)
    np.testing.assert_array_equal(much, satellite.coils.moment(np.array([2.0, 0.0, 0.0]), B))
    assert satellite.wheels.torque(np.zeros(3), np.full(3, 9.0)).tolist() == [0.02] * 3


def test_car_in_the_air_only_falls():
    car = Car(drag=0.0)
    x = car.state(flight(alt=5.0, speed=0.0))
    assert car.outputs(0.0, x, Car.Input(0.1, 1e4)).loads.tolist() == [0.0] * 4
    F_B, M_B = car.forces(0.0, x, Car.Input(0.1, 1e4))
    np.testing.assert_allclose([F_B, M_B], 0.0, atol=1e-5)


def test_a_part_may_return_plain_numbers():
    @arc.struct
    class Constant:
        angular_momentum: float = 0.0
        lag: bool = arc.field(static=True, default=False)

        def commanded(self, throttle):
            return 100.0 * throttle

        def thrust(self, power, around):
            return 3e4

    plane, u = F16(engine=Constant(), world=FlatEarth()), F16.Input(0.0)
    x = plane.state(flight())
    rates = plane.dynamics(0.0, x, u)
    np.testing.assert_allclose(
        arc.compile(plane.dynamics, backend="llvm")(0.0, x, u).motion.v_B, rates.motion.v_B
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F16(engine="big"), r"F16\.engine must have commanded, thrust.*; str lacks"),
        (lambda: F16(aero=F16Engine()), r"F16\.aero must have wrench; F16Engine lacks wrench"),
        (lambda: F16(world=None), r"F16\.world must have state, flight.*; NoneType lacks"),
        (lambda: Multirotor(rotors=None), r"Multirotor\.rotors must have rates"),
        (lambda: Satellite(1.0, np.eye(3), wheels=0.0), r"Satellite\.wheels must have axes, rates"),
        (lambda: Car(tyre=1.0), r"Car\.tyre must have side_force, friction; float lacks"),
        (lambda: Car(world=RotatingEarth()), "Car needs level world=FlatEarth"),
        (
            lambda: Multirotor(ground=GroundContact(np.zeros((1, 3))), world=RotatingEarth()),
            r"Multirotor\.ground needs level world=FlatEarth",
        ),
        (
            lambda: OrbitGuidance().command(load("rocket", world=FlatEarth()), 0.0, None),
            r"OrbitGuidance\.command: rocket\.world must have ellipsoid; FlatEarth lacks",
        ),
        (
            lambda: CircleGuidance(np.zeros(3), 1.0).target(
                F16(world=FlatEarth()), 0.0, None, 0.0, 1.0
            ),
            r"CircleGuidance\.target: plane\.world must have ellipsoid; FlatEarth lacks",
        ),
        (
            lambda: GeometricController().command(
                Multirotor(world=RotatingEarth()),
                Multirotor(world=RotatingEarth()).state(flight()),
                *np.zeros((3, 3)),
                0.0,
            ),
            "GeometricController needs level world=FlatEarth",
        ),
        (lambda: load("rocket", stages=()), r"Rocket\.stages is empty"),
    ],
)
def test_unknown_parts_fail(make, message):
    with pytest.raises(ValueError, match=message):
        make()
    assert issubclass(StructError, ValueError)
