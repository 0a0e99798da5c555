"""NASA's check case 17: a rocket of two stages flies to orbit on tables of its own, unguided.

Data of ``twostage_aero.dml``, ``twostage_prop.dml`` and ``twostage_inertia.dml`` (E. M. Queen and
B. Jackson, NASA/TM-2015-218675). Its stations are measured from the nose, ours from the tail.
Simulation 06, whose rows are compared, starts upwards with 0.1 m/s. Its columns of forces and
moments show what else it has: a cross-section of 3 m diameter instead of the 7 m^2 of the file, the
first thrust 1.5 ms late, and half of the rate of the inertia times the angular velocity as a moment
while stages burn (and after the second one), which the others have not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.vehicles import FlightCase, FlightState, Rocket, Stage
from archimedes.vehicles.parts import MassProperties, MassTable

LENGTH = 35.0
ALPHA = np.arange(-10.0, 11.0, 2.0)
LIFT = arc.interpolant([ALPHA], [-1.6, -1, -0.73, -0.49, -0.24, 0, 0.24, 0.49, 0.73, 1, 1.6])
DRAG = arc.interpolant([ALPHA], [0.48, 0.38, 0.31, 0.25, 0.23, 0.21, 0.23, 0.25, 0.31, 0.38, 0.48])
PITCH = arc.interpolant([[-20.0, 0.0, 20.0]], [0.6, 0.0, -0.6])


@arc.struct
class NasaRocketAerodynamics:
    """Lift and drag of tables over angle of attack and sideslip, in degrees; moments likewise."""

    area: float = np.pi * 1.5**2
    length: float = 3.0

    def wrench(self, around: Any, com: Any, x: Any) -> tuple[Any, Any]:
        """Return force and moment; the reference point moves when the first stage falls away."""
        alpha, beta = around.angles
        a, b = np.rad2deg(alpha), np.rad2deg(beta)
        squares = a * a + b * b
        total = np.where(squares > 0.0, np.sqrt(np.where(squares > 0.0, squares, 1.0)), 0.0)
        # Wind axes to body axes: turned by the sideslip, then by the angle of attack.
        wind = np.stack([-DRAG(total), -LIFT(b), -LIFT(a)])
        x_B = wind[0] * np.cos(beta) - wind[1] * np.sin(beta)
        y_B = wind[0] * np.sin(beta) + wind[1] * np.cos(beta)
        force = np.stack(
            [
                x_B * np.cos(alpha) - wind[2] * np.sin(alpha),
                y_B,
                x_B * np.sin(alpha) + wind[2] * np.cos(alpha),
            ]
        )
        push = around.dynamic_pressure * self.area
        moment = self.length * push * np.stack([0.0 * a, PITCH(a), -PITCH(b)])
        reference = LENGTH - np.where(x.attached[0] > 0.0, 16.918790, 4.797980)
        arm = reference * np.array([1.0, 0.0, 0.0]) - com
        return push * force, moment + np.cross(arm, push * force)


@arc.struct
class Simulation06(NasaRocketAerodynamics):
    """The same with the moment that simulation 06 adds."""

    def wrench(self, around: Any, com: Any, x: Any) -> tuple[Any, Any]:
        """Return force and moment."""
        force, moment = super().wrench(around, com, x)
        burns = np.where(x.propellant[0] > 0.0, 1.0, 0.0)
        first, second = (
            float(t.inertia[1, 1, 1] - t.inertia[0, 1, 1]) / seconds
            for t, seconds in zip(TABLES, (BURN_1, BURN_2))
        )
        rate = np.where(x.attached[0] > 0.5, first * burns, second)
        return force, moment + 0.5 * rate * x.motion.w_B * np.array([0.0, 1.0, 1.0])


def table(propellant, mass, station, along, across):
    """Return a table of the whole rocket between its empty and its full stage."""
    com = np.stack([LENGTH - np.array(station), np.zeros(2), np.zeros(2)], axis=1)
    inertia = np.stack([np.diag([along[k], across[k], across[k]]) for k in range(2)])
    return MassTable(np.array([0.0, propellant]), np.array(mass), com, inertia)


TABLES = (
    table(
        180e3,
        [134e3, 314e3],
        [9.421642, 16.91879],
        [150750.0, 353250.0],
        [10886636.572139, 33501637.473461],
    ),
    table(
        80e3,
        [19e3, 99e3],
        [3.947368, 4.79798],
        [21375.0, 111375.0],
        [212384.868421, 941063.762626],
    ),
)


def grain(propellant, dry_mass, station, length):
    """Return structure and propellant of a stage: solid cylinders of 3 m diameter."""
    com = np.array([LENGTH - station, 0.0, 0.0])

    def inertia(mass):
        across = mass * (3 * 1.5**2 + length**2) / 12.0
        return np.diag([0.5 * mass * 1.5**2, across, across])

    shell = MassProperties(dry_mass, com, inertia(dry_mass))
    load = np.array([0.0, propellant])
    return shell, MassTable(
        load, load, np.stack([com, com]), np.stack([inertia(mass) for mass in load])
    )


#: The file's propellant flow has this acceleration for the specific impulse.
GRAVITY = 9.8066 / 9.80665


def nasa_rocket(tables=TABLES, aero=None):
    """Return the rocket; without tables its mass properties follow from solid cylinders."""
    first, second = grain(180e3, 35e3, 22.5, 25.0), grain(80e3, 15e3, 5.0, 10.0)
    payload = MassProperties(4e3, np.array([LENGTH, 0, 0]), np.diag([0.5 * 4e3 * 1.5**2, 0, 0]))
    stages = (
        Stage(*first, thrust=17e6, specific_impulse=360.0 * GRAVITY, engine=0.0),
        Stage(*second, thrust=5e6, specific_impulse=390.0 * GRAVITY, engine=25.0),
    )
    return Rocket(stages, payload, aero or NasaRocketAerodynamics(), tables)


#: How long the stages burn, in s. The first one falls away 96.79 s later, and the second is lit.
BURN_1, BURN_2 = 180e3 * 360.0 * 9.8066 / 17e6, 80e3 * 390.0 * 9.8066 / 5e6
IGNITION = 0.0015
STAGING = IGNITION + BURN_1 + 96.79


def staging(rocket):
    """Return the event at which the empty first stage falls away."""
    return arc.Event(
        lambda t, x: t - STAGING, direction=1, reset=lambda t, x: rocket.separate(x, 0)
    )


def case_17(rocket):
    """Return the flight: eastward from the equator, nose 55.22 degrees up, no guidance."""
    start = FlightState(
        lat=0.0,
        lon=0.0,
        alt=0.0,
        v_NED=np.array([0.0, 0.0, -0.1]),
        rpy=np.deg2rad([0.0, 55.22, 90.0]),
        w_B=np.array([0.0, -WGS84.omega, 0.0]),
    )

    def controls(t):
        return Rocket.Input(np.where(t >= IGNITION, 1.0, 0.0))

    return FlightCase(rocket, start, 200.0, controls)
