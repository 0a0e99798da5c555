"""Land the rocket: by its guidance or by hand, in wind; a hundred others land beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.demos import rocket_landing as landing
from archimedes.environment import ConstantWind
from archimedes.typing import Scalar, Tree
from archimedes.vehicles import FlatEarth, Rocket
from archimedes.vehicles.rocket.rocket_scene import landing_legs
from archimedes.viewer import Control, Ground, Path, Simulator, View, view

DT, RATE, COPIES, SOFT = 0.01, 0.05, 100, 4.0
MAX_GIMBAL = 0.12


@arc.struct
class Pilot:
    """Guidance on or off; throttle and gimbal by hand."""

    guidance: Any = 1.0
    throttle: Any = 0.5
    gimbal: Any = arc.field(units="rad", default_factory=lambda: np.zeros(2))


@arc.struct
class Landing:
    """What a landing is watched by."""

    height: Any = arc.field(units="m")
    sink_rate: Any = arc.field(units="m/s")
    off_the_pad: Any = arc.field(units="m")
    throttle: Any = arc.field()


CONTROLS = {
    "guidance": Control(kind="switch", keys="g", button=0),
    "throttle": Control(0.0, 1.0, keys=("s", "w"), axis=~3, rate=1.0),
    "gimbal[0]": Control(-MAX_GIMBAL, MAX_GIMBAL, label="gimbal north", axis=1, units="rad",
                         keys=("ArrowDown", "ArrowUp"), returns=True, rate=0.6),
    "gimbal[1]": Control(-MAX_GIMBAL, MAX_GIMBAL, label="gimbal east", axis=0, units="rad",
                         keys=("ArrowLeft", "ArrowRight"), returns=True, rate=0.6),
    "wind[0]": Control(-20.0, 20.0, label="wind from the south", units="m/s"),
    "wind[1]": Control(-20.0, 20.0, label="wind from the west", units="m/s"),
}  # fmt: skip


def height(t: Scalar, x: Rocket.State, *args: Any) -> Any:
    """Return how far the legs are above the ground, in m."""
    return -x.motion.pos[2] - landing.STANDING


def velocity(x: Rocket.State) -> Any:
    """Return the velocity in m/s, in NED axes."""
    return x.motion.att.rotate(x.motion.v_B, inverse=True)


def time_to_go(t: Scalar, x: Rocket.State, left: Scalar, u: Pilot, p: Tree) -> Any:
    """Return the time in s until touchdown: it runs down, or is estimated while a person flies."""
    sinking = np.maximum(velocity(x)[2], 8.0)
    estimate = np.clip(1.76 * height(t, x) / sinking, 2.0, 60.0)
    return np.where(u.guidance > 0.5, left - RATE, estimate)


def applied(t: Scalar, x: Rocket.State, left: Scalar, u: Pilot, p: Tree) -> Rocket.Input:
    """Return throttle and gimbal: of the demonstration's guidance, or by hand."""
    own = landing.command(landing.SECONDS - left, x)
    hand = Rocket.Input(u.throttle, np.stack([-u.gimbal[0], -u.gimbal[1]]))
    return tree.map(lambda a, b: np.where(u.guidance > 0.5, a, b), own, hand)


def falling(t: Scalar, x: Rocket.State, left: Scalar, u: Pilot, p: Tree) -> Any:
    """Return the rates of the rocket."""
    world = FlatEarth(wind=ConstantWind(p["wind"]))
    return tree.replace(landing.rocket, world=world).dynamics(t, x, applied(t, x, left, u, p))


def outputs(t: Scalar, x: Rocket.State, left: Scalar, u: Pilot, p: Tree) -> Landing:
    """Return what is drawn."""
    pos = x.motion.pos
    off = np.sqrt(pos[0] ** 2 + pos[1] ** 2)
    return Landing(height(t, x), velocity(x)[2], off, applied(t, x, left, u, p).throttle)


def touchdown(soft: bool) -> arc.Event:
    """Return the event of a landing below or above the speed that the legs bear."""

    def fn(t: Scalar, x: Rocket.State, *args: Any) -> Any:
        speed = np.sqrt(np.sum(x.motion.v_B**2))
        return np.where((speed < SOFT) == soft, height(t, x), 1.0)

    return arc.Event(fn, direction=-1, terminal=True)


def page() -> View:
    """Return the page."""
    x, rng = landing.start(), np.random.default_rng(3)
    x0 = tree.map(lambda leaf: np.tile(leaf, (COPIES, *[1] * np.ndim(leaf))), x)
    motion = x0.motion.replace(
        pos=x0.motion.pos + rng.normal(size=(COPIES, 3)) * [60.0, 60.0, 30.0],
        v_B=x0.motion.v_B + rng.normal(size=(COPIES, 3)) * [5.0, 3.0, 3.0],
    )
    simulator = Simulator(
        falling, x, inputs=Pilot(), parameters={"wind": np.zeros(3)}, controls=CONTROLS, dt=DT,
        t_end=40.0, actor=landing.rocket, outputs=outputs,
        sampled=arc.Sampled(time_to_go, init=landing.SECONDS, dt=RATE),
        charts=["height", "sink_rate", "off_the_pad", "throttle", "pitch", "propellant"],
        events={"touchdown": touchdown(True), "crash: too fast": touchdown(False)},
        copies={"x0": x0.replace(motion=motion)},
    )  # fmt: skip
    note = f"G hands over: W and S throttle, arrows tilt the engine; below {SOFT:g} m/s it stands"
    shown = view({"rocket": simulator}, title="Land the rocket", note=note, interactive=True)
    scene = shown.scene
    stage = scene.body("rocket: stage 1")
    stage.meshes = [*stage.meshes, *landing_legs(landing.RADIUS, 3.6)]
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    for radius in (8.0, 20.0):
        ring = np.stack(
            [radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle + 0.05], axis=1
        )
        scene.paths.append(Path(f"pad {radius:g} m", ring, "#e8743b"))
    scene.ground = Ground(0.0, cell=20.0)
    scene.camera.distance, scene.camera.elevation = 60.0, 12.0
    return shown
