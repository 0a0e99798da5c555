"""NASA's check cases with feedback (13 to 16) and on tables of the user's own (17), by `fly`."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.vehicles import Rocket, RocketAerodynamics, fly, load
from tests.vehicles.nasa_autopilot import FEEDBACK_CASES, trimmed_flight
from tests.vehicles.nasa_cases import FOOT
from tests.vehicles.nasa_checkpoints import FEEDBACK_CHECKPOINTS
from tests.vehicles.nasa_rocket import (
    TABLES,
    NasaRocketAerodynamics,
    Simulation06,
    case_17,
    nasa_rocket,
    staging,
)

#: Altitude in ft, angles in degrees, velocities in ft/s, and position in ft. NASA's simulations 04
#: and 05 end 2.5, 2.2, 5.4, 11.6, 21 and 16.8 ft apart; right after a step of the command they
#: differ by 1.5 deg/s in rates, since the laws saturate.
TOLERANCES = {
    "13.1": (0.1, 0.05, 0.1, 0.1),
    "13.2": (0.01, 1e-4, 0.01, 0.2),
    "13.3": (0.05, 0.5, 0.2, 1.0),
    "13.4": (0.05, 0.2, 0.1, 3.0),
    "15": (0.001, 0.002, 0.001, 0.2),
    "16": (0.001, 0.001, 0.005, 0.2),
}


def wrapped(degrees):
    return (degrees + 180.0) % 360.0 - 180.0


def away(flight, rows):
    """Horizontal distance in ft from the published positions."""
    degree = np.deg2rad(WGS84.a / FOOT)
    north = np.rad2deg(flight.lat) - rows[:, 8]
    east = wrapped(np.rad2deg(flight.lon) - rows[:, 9]) * np.cos(flight.lat)
    return degree * np.hypot(north, east)


@pytest.mark.long_cases("13.2", "13.3", "13.4", "15", "16")
@pytest.mark.parametrize("name", TOLERANCES)
def test_feedback_case_against_nasa(name):
    """Simulation 05; `controls` is a function of the time and of the state."""
    rows, tolerances = FEEDBACK_CHECKPOINTS[name], TOLERANCES[name]
    record = fly(FEEDBACK_CASES[name](), t_eval=rows[:, 0], rtol=1e-9, atol=1e-9)
    flight = record.flight
    assert record.trajectory.success
    assert np.abs(flight.alt / FOOT - rows[:, 1]).max() < tolerances[0]
    assert np.abs(wrapped(np.rad2deg(flight.rpy) - rows[:, 2:5])).max() < tolerances[1]
    assert np.abs(flight.v_NED / FOOT - rows[:, 5:8]).max() < tolerances[2]
    assert away(flight, rows).max() < tolerances[3]


def test_the_trim_of_the_cases():
    """Rates and pitch of simulation 05 at its start: NASA's trim holds the angles to the ground."""
    _, found, autopilot = trimmed_flight(36.01916667, -75.67444444, 10013.0, [400, 400, 0.0], 45.0)
    np.testing.assert_allclose(
        np.rad2deg(found.flight.w_B), [0.00253332038, -0.00393929166, -0.00313861707], atol=2e-9
    )
    assert np.rad2deg(found.flight.rpy[1]) == pytest.approx(2.63893, abs=1e-5)
    assert autopilot.speed == pytest.approx(287.98, abs=0.005)  # the memorandum's knots


def flown(rocket):
    rows = FEEDBACK_CHECKPOINTS["17"]
    record = fly(case_17(rocket), t_eval=rows[:, 0], events=[staging(rocket)], rtol=1e-9, atol=1e-7)
    return rows, record


def test_rocket_against_nasa():
    """Simulation 06 with its own moment: the swing at burnout, the coast, and the orbit.

    NASA's simulations end 17 km in altitude and 10 degrees in pitch apart.
    """
    rows, record = flown(nasa_rocket(aero=Simulation06()))
    flight, t = record.flight, rows[:, 0]
    alt, pitch = flight.alt / FOOT - rows[:, 1], np.rad2deg(flight.rpy[:, 1]) - rows[:, 3]
    speed = flight.v_NED / FOOT - rows[:, 5:8]
    burning = t < 40.0
    assert np.abs(alt[burning]).max() < 25.0 and np.abs(pitch[burning]).max() < 0.004
    assert np.abs(speed[burning]).max() < 0.6
    coasting = (t > 40.0) & (t < 134.0)
    assert np.abs(alt[coasting]).max() < 75.0 and np.abs(pitch[coasting]).max() < 0.11
    assert np.abs(alt / rows[:, 1]).max() < 0.0025 and np.abs(pitch).max() < 0.4
    assert record.trajectory.events["t"][0] == pytest.approx(134.172, abs=1e-3)


@pytest.mark.long
def test_rocket_between_nasas_simulations():
    """Without that moment it ends between simulation 06 and simulations 04 and 05."""
    rows, record = flown(nasa_rocket())
    alt = record.flight.alt
    assert np.abs(alt[:6] / FOOT / rows[:6, 1] - 1.0).max() < 0.003
    assert 234.48e3 < alt[-1] < 251.4e3


def test_mass_tables_of_the_rocket_come_from_its_parts():
    """NASA's tables are those of solid cylinders, full and empty; between, they are straight."""
    tabulated, parts = nasa_rocket(), nasa_rocket(tables=())
    x = tabulated.state(case_17(tabulated).start)
    last = x.replace(attached=np.array([0.0, 1.0]))
    for state in (
        x,
        x.replace(propellant=np.array([0.0, 80e3])),
        last,
        last.replace(propellant=np.array([0.0, 0.0])),
    ):
        one, other = (rocket.mass_properties(state) for rocket in (tabulated, parts))
        assert one.mass == other.mass
        np.testing.assert_allclose(one.com, other.com, atol=1e-6)
        np.testing.assert_allclose(one.inertia, other.inertia, rtol=1e-6, atol=1e-9)
    half = x.replace(propellant=np.array([90e3, 80e3]))
    one, other = (rocket.mass_properties(half) for rocket in (tabulated, parts))
    assert one.mass == other.mass == 224e3
    assert abs(one.com[0] - other.com[0]) > 0.5
    assert one.com[0] == pytest.approx(35.0 - 0.5 * (9.421642 + 16.91879))


def test_derivatives_and_bits_of_a_rocket_on_tables():
    rocket = nasa_rocket()
    x = rocket.state(case_17(rocket).start).replace(propellant=np.array([90e3, 80e3]))
    u = Rocket.Input(1.0)
    eager = arc.tree.ravel(rocket.dynamics(1.0, x, u))[0]
    slow, native = (
        arc.tree.ravel(arc.compile(rocket.dynamics, backend=b)(1.0, x, u))[0]
        for b in ("interpreter", "llvm")
    )
    np.testing.assert_array_equal(slow, native)
    np.testing.assert_allclose(slow, eager, rtol=1e-12, atol=1e-12)

    def com(load):
        state = x.replace(propellant=np.array([load, 80e3]))
        return rocket.mass_properties(state).com[0]

    slope = (16.91879 - 9.421642) / 180e3
    assert arc.grad(com)(90e3) == pytest.approx(-slope, rel=1e-12)
    assert np.isfinite(arc.grad(com)(0.0)) and np.isfinite(arc.grad(com)(180e3))


def test_refusals_of_rockets():
    rocket = nasa_rocket()
    with pytest.raises(ValueError, match=r"Rocket.aero must have wrench; str lacks wrench"):
        rocket.replace(aero="fins")
    with pytest.raises(ValueError, match=r"mass_tables has 1 tables for 2 stages: give one for ea"):
        rocket.replace(mass_tables=TABLES[:1])
    with pytest.raises(ValueError, match=r"mass_tables\[1\] must have contents; float lacks"):
        rocket.replace(mass_tables=(TABLES[0], 3.0))
    with pytest.raises(ValueError, match=r"Stage.tank must have capacity, contents"):
        rocket.stages[0].replace(tank=5.0)
    with pytest.raises(ValueError, match=r"MassTable.propellant must increase"):
        TABLES[0].replace(propellant=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"MassTable.com must have shape \(2, 3\), got \(3,\)"):
        TABLES[0].replace(com=np.zeros(3))
    with pytest.raises(ValueError, match=r"MassTable.mass must not be negative"):
        TABLES[0].replace(mass=np.array([-1.0, 2.0]))


def test_coefficients_over_the_mach_number():
    """A table of drag plugs into the standard aerodynamics."""
    drag = arc.interpolant([[0.0, 1.0, 2.0]], [0.2, 0.6, 0.4])
    rocket = load("rocket", aero=RocketAerodynamics(area=2.0, axial=drag, pressure_point=15.0))
    plain = load("rocket", aero=RocketAerodynamics(area=2.0, axial=0.4, pressure_point=15.0))
    start = case_17(rocket).start
    for mach, ratio in ((0.5, 1.0), (1.0, 1.5), (2.0, 1.0), (5.0, 1.0)):
        v = mach * 340.294 * np.array([0.0, np.cos(start.rpy[1]), -np.sin(start.rpy[1])])
        x = rocket.state(start.replace(v_NED=v))
        force, other = (r.forces(0.0, x, Rocket.Input(0.0))[0] for r in (rocket, plain))
        assert force[0] == pytest.approx(ratio * other[0], rel=1e-5)
    assert NasaRocketAerodynamics().area == pytest.approx(7.0686, abs=1e-4)


def test_a_rocket_on_tables_is_shown():
    """Its tanks have no length and its aerodynamics need no area: stages reach the next engine."""
    rocket = nasa_rocket()
    x = rocket.state(case_17(rocket).start)
    still = arc.Trajectory(np.arange(3.0), arc.tree.map(lambda a: np.stack([a] * 3), x))
    for shown in (rocket, rocket.replace(aero=Bare())):
        bodies = arc.view(shown, still).scene.bodies
        first = next(body for body in bodies if body.name.endswith("stage 1"))
        points = np.concatenate([mesh.vertices for mesh in first.meshes])
        assert points[:, 0].max() == pytest.approx(25.0)


class Bare:
    """Aerodynamics without an area."""

    def wrench(self, around, com, x):
        """No air at all."""
        return np.zeros(3), np.zeros(3)
