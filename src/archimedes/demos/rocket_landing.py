"""A rocket lands on its tail: guidance by the time to go, thrust and gimbal do the rest.

The wanted acceleration is the one of least square that ends at rest on the pad after the time to
go (the linear law of C. N. D'Souza, An Optimal Guidance Law for Planetary Landing, AIAA 97-3709).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.demos.reporting import Report
from archimedes.typing import Scalar
from archimedes.vehicles import FlatEarth, FlightState, Rocket, RocketAerodynamics
from archimedes.vehicles.parts import MassProperties
from archimedes.vehicles.rocket.rocket import cylindrical_stage
from archimedes.vehicles.rocket.rocket_scene import landing_legs
from archimedes.viewer import view

SECONDS, COPIES, GRAVITY = 24.0, 300, 9.80665
#: Height in m of the centre of mass when the legs touch, and the rocket's dimensions.
STANDING, LENGTH, RADIUS = 8.2, 14.0, 0.9
STIFFNESS, DAMPING = 4.0, 3.5
#: It aims at a place in m below the ground, to meet it sinking, in m/s.
AIM, SINK = 0.6, 1.0


def booster() -> Rocket:
    """Return a first stage coming home: 3.2 t dry, 1.8 t of propellant."""
    stage = cylindrical_stage(
        0.0, LENGTH, RADIUS, 2700.0, 1800.0, thrust=1.1e5, specific_impulse=305.0, max_gimbal=0.12
    )
    nose = MassProperties(500.0, np.array([LENGTH + 0.5, 0.0, 0.0]), 200.0 * np.eye(3))
    aero = RocketAerodynamics(np.pi * RADIUS**2, normal=1.5, pressure_point=8.0)
    return Rocket((stage,), nose, aero, world=FlatEarth())


rocket = booster()


def command(t: Scalar, x: Rocket.State) -> Any:
    """Return throttle and gimbal that lead to rest on the pad."""
    motion, whole = x.motion, rocket.mass_properties(x)
    left = np.maximum(SECONDS - t, 0.6)
    v = motion.att.rotate(motion.v_B, inverse=True)
    away = motion.pos - np.array([0.0, 0.0, AIM - STANDING])
    down = np.array([0.0, 0.0, 1.0])
    wanted = -6.0 * away / left**2 - 4.0 * v / left - (2.0 * SINK / left + GRAVITY) * down
    size = np.sqrt(np.sum(wanted * wanted))
    # Never lean more than about 25 deg.
    up = np.minimum(wanted[2], -2.0 * np.hypot(wanted[0], wanted[1]))
    ahead = motion.att.rotate(np.stack([wanted[0], wanted[1], up]))
    ahead = ahead / np.sqrt(np.sum(ahead * ahead))
    error = np.stack([0.0 * ahead[0], -ahead[2], ahead[1]])
    moment = whole.inertia @ (STIFFNESS * error - DAMPING * motion.w_B)
    throttle = np.clip(whole.mass * size / rocket.stages[0].thrust, 0.15, 1.0)
    lever = throttle * rocket.stages[0].thrust * whole.com[0]
    return Rocket.Input(throttle, moment[1:] / np.maximum(lever, 1.0))


def falling(t: Scalar, x: Rocket.State) -> Any:
    """Return the rates of rocket and guidance."""
    return rocket.dynamics(t, x, command(t, x))


TOUCHDOWN = arc.Event(lambda t, x: -x.motion.pos[2] - STANDING, direction=-1, terminal=True)


def start(north: float = 350.0, east: float = -200.0, alt: float = 1500.0) -> Rocket.State:
    """Return the state at which the engine starts: tail first, a little aside."""
    flight = FlightState(
        north / 6378137.0, east / 6378137.0, alt, np.array([-20.0, 12.0, 110.0]),
        np.array([0.0, 0.5 * np.pi - 0.08, 0.0]), np.zeros(3),
    )  # fmt: skip
    return rocket.state(flight)


def run(report: Report) -> None:
    """Land once, land from many places, check how softly."""
    times = np.linspace(0.0, SECONDS + 2.0, 521)
    title = "One landing, from 1,500 m and 110 m/s"
    options: dict[str, Any] = {"t_eval": times, "events": TOUCHDOWN, "rtol": 1e-7}
    once = report.time_motion(title, SECONDS, falling, start(), **options)
    speed, off = touchdown(once.final)
    burnt = float(once.x.propellant[0, 0] - once.final.propellant[0])
    report.line("touchdown at", once.events["t"][0], ".2f", "s")
    report.line("speed", speed, ".2f", "m/s")
    report.line("from the middle of the pad", off, ".2f", "m")
    report.line("propellant burnt", burnt, ".0f", "kg")
    report.check("softer than 3 m/s, within 3 m", speed < 3.0 and off < 3.0)
    many = disperse(report)
    write(report, once, many)


def touchdown(x: Rocket.State) -> tuple[Any, Any]:
    """Return speed in m/s and distance from the middle of the pad in m."""
    pos = np.asarray(x.motion.pos)
    return np.linalg.norm(x.motion.v_B, axis=-1), np.hypot(pos[..., 0], pos[..., 1])


def disperse(report: Report) -> arc.Trajectory:
    """Land from other places and velocities as one batch, each until it touches down."""
    count, rng, x = report.copies(COPIES), np.random.default_rng(3), start()
    x0 = arc.tree.map(lambda leaf: np.tile(leaf, (count, *[1] * np.ndim(leaf))), x)
    motion = x0.motion.replace(
        pos=x0.motion.pos + rng.normal(size=(count, 3)) * [60.0, 60.0, 30.0],
        v_B=x0.motion.v_B + rng.normal(size=(count, 3)) * [5.0, 3.0, 3.0],
    )
    times = np.linspace(0.0, SECONDS + 2.0, 80)
    options = {"t_eval": times, "events": TOUCHDOWN, "in_axes": 0, "rtol": 1e-7}
    title = f"{count:,} landings from other places as one batch"
    many = report.time_batch(title, falling, x0.replace(motion=motion), **options)
    speed, off = touchdown(many.final)
    report.line("speed, 95 % below", np.quantile(speed, 0.95), ".2f", "m/s")
    report.line("from the middle, 95 % below", np.quantile(off, 0.95), ".2f", "m")
    report.check("95 % land softer than 4 m/s", np.quantile(speed, 0.95) < 4.0)
    return many


def write(report: Report, once: arc.Trajectory, many: arc.Trajectory) -> None:
    """Write plots and the page."""
    names = ["motion.pos", "motion.v_B", "motion.att", "propellant"]
    report.figure("landing", once, names, title="A rocket lands")
    page = view({"rocket": (rocket, once)}, batch=many, title="A rocket lands on its tail")
    page.scene.note = f"Guidance by the time to go; {len(many.t):,} landings from other places"
    stage = page.scene.body("rocket: stage 1")
    stage.meshes = [*stage.meshes, *landing_legs(RADIUS, 3.6)]
    report.page(page, "landing")
