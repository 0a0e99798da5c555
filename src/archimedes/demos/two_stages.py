"""A rocket of two stages flies to orbit in one solve: staging is an event that resets the state."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.demos.reporting import Report
from archimedes.environment import WGS84
from archimedes.typing import Array, Scalar
from archimedes.vehicles import FlightState, OrbitGuidance, Rocket, load
from archimedes.viewer import view

SECONDS = 700.0
rocket, guidance = load("rocket"), OrbitGuidance()


def ascent(t: Scalar, x: Rocket.State) -> Any:
    """Return the rates of rocket and guidance."""
    return rocket.dynamics(t, x, guidance.command(rocket, t, x))


def orbit(x: Rocket.State) -> tuple[float, float]:
    """Return the heights of perigee and apogee in km."""
    v = x.motion.v_E + np.cross([0.0, 0.0, WGS84.omega], x.motion.pos)
    energy = 0.5 * v @ v - WGS84.mu / np.linalg.norm(x.motion.pos)
    a = -0.5 * WGS84.mu / energy
    h = np.linalg.norm(np.cross(x.motion.pos, v))
    e = np.sqrt(max(1.0 - h**2 / (WGS84.mu * a), 0.0))
    return (a * (1 - e) - WGS84.a) / 1e3, (a * (1 + e) - WGS84.a) / 1e3


def run(report: Report) -> None:
    """Fly, and check the orbit."""
    pad = FlightState(
        np.deg2rad(28.5), np.deg2rad(-80.6), 10.0, np.zeros(3),
        np.array([0.0, 0.5 * np.pi - 1e-9, 0.5 * np.pi]), np.zeros(3),
    )  # fmt: skip
    times, title = np.linspace(0.0, SECONDS, 701), "From Cape Canaveral to orbit, the Earth turning"
    options = {"events": rocket.staging(), "rtol": 1e-7, "atol": 1e-6, "t_eval": times}
    once = report.time_motion(title, SECONDS, ascent, rocket.state(pad), repeats=2, **options)
    x = arc.tree.map(lambda leaf: leaf[-1], once.x)
    low, high = orbit(x)
    report.line("staging at", once.events["t"][0], ".1f", "s", "an event that resets the state")
    report.line("perigee", low, ".0f", "km")
    report.line("apogee", high, ".0f", "km")
    report.line("propellant left", float(x.propellant[1]), ".0f", "kg")
    report.check("the flight reaches its end", once.success)
    report.check("the perigee is above 150 km", low > 150.0)
    write(report, once)


def write(report: Report, once: arc.Trajectory) -> None:
    """Write plots and the page."""
    state = rocket.world.flight(once.t, once.x.motion)
    shown = Ascent(
        1e-3 * state.alt,
        1e-3 * np.linalg.norm(state.v_NED, axis=1),
        np.rad2deg(state.rpy[:, 1]),
        1e-3 * once.x.propellant,
    )
    traj = arc.Trajectory(once.t, shown, events=once.events)
    title = "Two stages to orbit"
    labels = {"propellant[0]": "stage 1", "propellant[1]": "stage 2"}
    report.figure("ascent", traj, labels=labels, title=title)
    note = "The rocket is drawn larger than it is; staging is marked on the slider"
    report.page(view({"rocket": (rocket, once)}, title=title, note=note), "orbit")


@arc.struct
class Ascent:
    """What a launch is watched by."""

    altitude: Array = arc.field(units="km")
    speed: Scalar = arc.field(units="km/s")
    pitch: Array = arc.field(units="deg")
    propellant: Array = arc.field(units="t")
