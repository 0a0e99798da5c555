"""Fly the F-16: stick and throttle, or the autopilot; keys excite its modes; copies fly along."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.demos import f16_flight as flight
from archimedes.environment import ConstantWind
from archimedes.typing import Scalar, Tree
from archimedes.vehicles import F16, F16Autopilot, FlatEarth, ground_event, linearize
from archimedes.viewer import Control, Ground, Simulator, View, view

DT, COPIES = 0.01, 100
DEGREE = float(np.deg2rad(1.0))


@arc.struct
class Pilot:
    """What the pilot does: stick about its trimmed position, throttle, autopilot and its target."""

    throttle: Any = arc.field()
    elevator: Any = arc.field(units="rad", default=0.0)
    aileron: Any = arc.field(units="rad", default=0.0)
    rudder: Any = arc.field(units="rad", default=0.0)
    autopilot: Any = 1.0
    altitude: Any = arc.field(units="m", default=flight.ALT)
    course: Any = arc.field(units="rad", default=0.0)
    airspeed: Any = arc.field(units="m/s", default=flight.SPEED)
    short_period: Any = arc.field(units="rad", default=0.0)
    dutch_roll: Any = arc.field(units="rad", default=0.0)
    phugoid: Any = arc.field(units="rad", default=0.0)


CONTROLS = {
    "autopilot": Control(kind="switch", keys="p", button=0),
    "throttle": Control(0.0, 1.0, keys=("z", "x"), axis=~3),
    "elevator": Control(-6 * DEGREE, 6 * DEGREE, label="stick: pitch (elevator)", axis=~1,
                        keys=("ArrowDown", "ArrowUp"), returns=True, rate=0.9),
    "aileron": Control(-8 * DEGREE, 8 * DEGREE, label="stick: roll (aileron)", axis=~0,
                       keys=("ArrowRight", "ArrowLeft"), returns=True, rate=0.9),
    "rudder": Control(-10 * DEGREE, 10 * DEGREE, label="pedals (rudder)", axis=~2,
                      keys=("e", "q"), returns=True, rate=0.9),
    "altitude": Control(500.0, 3000.0, label="autopilot: altitude"),
    "course": Control(-np.pi, np.pi, label="autopilot: course"),
    "airspeed": Control(140.0, 210.0, label="autopilot: airspeed"),
    "short_period": Control(kind="pulse", label="excite the short period", keys="1", button=2,
                            pulse=[(0.4, -2.5 * DEGREE), (0.4, 2.5 * DEGREE)]),
    "dutch_roll": Control(kind="pulse", label="excite the Dutch roll", keys="2", button=3,
                          pulse=[(0.8, 6.0 * DEGREE), (0.8, -6.0 * DEGREE)]),
    "phugoid": Control(kind="pulse", label="excite the phugoid", keys="3",
                       pulse=[(4.0, -0.7 * DEGREE)]),
    "wind[0]": Control(-25.0, 25.0, label="wind from the south", units="m/s"),
    "wind[1]": Control(-25.0, 25.0, label="wind from the west", units="m/s"),
    "mass": Control(7000.0, 13000.0, units="kg"),
    "xcg": Control(0.15, 0.40, label="centre of mass (chords)"),
}  # fmt: skip


def aircraft(p: Tree) -> F16:
    """Return the aircraft with its wind, mass and centre of mass."""
    world = FlatEarth(wind=ConstantWind(p["wind"]))
    return flight.plane.replace(mass=p["mass"], xcg=p["xcg"], world=world)


def page() -> View:
    """Return the page."""
    trimmed = flight.steady()
    pilot = F16Autopilot.design(flight.plane, trimmed, linearize(flight.plane, trimmed))
    plane, trim = flight.plane, trimmed.input

    def update(t: Scalar, x: F16.State, memory: Tree, u: Pilot, p: Tree) -> Any:
        target = F16Autopilot.Target(u.altitude, u.course, u.airspeed)
        new = pilot.step(memory, aircraft(p), t, x, target, flight.DT)
        # While the pilot flies, the autopilot waits without its integrals.
        return tree.map(lambda a, b: np.where(u.autopilot > 0.5, a, b), new, pilot.initial())

    def applied(t: Scalar, x: F16.State, memory: Tree, u: Pilot, p: Tree) -> F16.Input:
        kicks = u.elevator + u.short_period + u.phugoid
        own = F16.Input(u.throttle, trim.elevator, trim.aileron, trim.rudder)
        held = tree.map(lambda a, b: np.where(u.autopilot > 0.5, a, b), memory.input, own)
        moved = F16.Input(0.0, -kicks, u.aileron, u.rudder + u.dutch_roll)
        return tree.map(np.clip, tree.map(lambda a, b: a + b, held, moved), *plane.stops)

    def dynamics(t: Scalar, x: F16.State, memory: Tree, u: Pilot, p: Tree) -> Any:
        return aircraft(p).dynamics(t, x, applied(t, x, memory, u, p))

    some = flight.disperse(COPIES)
    dispersed = {"wind": some["wind"] - flight.nominal()["wind"]}
    dispersed |= {name: some[name] for name in ("mass", "xcg")}
    simulator = Simulator(
        dynamics, trimmed.state,
        inputs=Pilot(throttle=float(trim.throttle)),
        parameters={"wind": np.zeros(3), "mass": float(plane.mass), "xcg": float(plane.xcg)},
        controls=CONTROLS, dt=DT, t_end=120.0, actor=plane, applied=applied,
        sampled=arc.Sampled(update, init=pilot.initial(), dt=flight.DT),
        events={"the flight ended at the ground": ground_event(plane)},
        copies={"parameters": dispersed},
    )  # fmt: skip
    note = "P hands over to you: arrows move the stick, Z and X the throttle, 1 to 3 excite modes"
    shown = view({"F-16": simulator}, title="Fly the F-16", note=note, interactive=True)
    shown.scene.ground = Ground(0.0, cell=200.0)
    return shown
