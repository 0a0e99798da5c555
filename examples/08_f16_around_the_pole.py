"""An autopilot flies the F-16 around the north pole: a place like any other."""

import numpy as np

import archimedes as arc
from archimedes.environment import geodetic_to_ecef
from archimedes.vehicles import (
    F16,
    CircleGuidance,
    F16Autopilot,
    FlightCase,
    FlightState,
    fly,
    linearize,
    load,
    trim,
)

SPEED, ALT, RADIUS, DT = 170.0, 3000.0, 5556.0, 0.05
plane = load("f16")


def flight(lat, course, bank):
    """Return a flight state at longitude zero."""
    v_NED = SPEED * np.array([np.cos(course), np.sin(course), 0.0])
    return FlightState(lat, 0.0, ALT, v_NED, np.array([bank, 0.05, course]), np.zeros(3))


# Gains: a linear-quadratic regulator about level flight to the north.
steady = trim(plane, flight(0.6, 0.0, 0.0), F16.Input(0.15, -0.03), {"power": 10.0})
inner = {"power": steady.state.power}
small = linearize(plane, steady.flight, steady.input, inner)
autopilot = F16Autopilot.design(plane, steady, small)
circle = CircleGuidance(geodetic_to_ecef(0.5 * np.pi, 0.0, 0.0), RADIUS)


def update(t, x, memory):
    """Twenty times a second: guidance, then autopilot."""
    target = circle.target(plane, t, x, ALT, SPEED)
    return autopilot.step(memory, plane, t, x, target, DT)


part = arc.Sampled(update, init=autopilot.initial(), dt=DT)
bank = np.arctan(SPEED**2 / (9.80665 * RADIUS))
start = flight(0.5 * np.pi - RADIUS / 6.4e6, -0.5 * np.pi, bank)  # to the west: pole on the right
seconds = 2.0 * np.pi * RADIUS / SPEED
case = FlightCase(plane, start, seconds, lambda t, memory: memory.input, inner)
record = fly(case, t_eval=np.linspace(0.0, seconds, 65), sampled=part)
radius = np.hypot(*record.trajectory.x.motion.pos[:, :2].T)
rows = zip(record.t, record.flight.lon, record.flight.alt, radius)
for t, lon, alt, r in list(rows)[::8]:
    print(f"{t:6.1f} s  {np.rad2deg(lon):7.1f} deg  {alt:7.1f} m up  {r:7.1f} m from the axis")
assert np.abs(record.flight.alt - ALT).max() < 5.0 and np.ptp(radius) < 20.0
