"""A satellite turns to an attitude with its reaction wheels, in orbit around a turning Earth."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.demos.reporting import Report
from archimedes.environment import WGS84
from archimedes.spatial import Quaternion
from archimedes.typing import Scalar
from archimedes.vehicles import Satellite, load
from archimedes.viewer import view

SECONDS, COPIES = 300.0, 300
satellite = load("satellite")
GOAL = Quaternion.from_euler([0.3, -0.5, 2.0], "xyz")


def start() -> Satellite.State:
    """Return a state in a low orbit, turning slowly."""
    r, tilt = 6.9e6, 1.2
    speed = np.sqrt(WGS84.mu / r)
    return Satellite.State(
        pos=np.array([r, 0.0, 0.0]),
        vel=speed * np.array([0.0, np.cos(tilt), np.sin(tilt)]),
        att=Quaternion.identity(),
        w_B=np.array([0.004, -0.003, 0.005]),
        h=np.zeros(3),
    )


def slewing(t: Scalar, x: Satellite.State) -> Any:
    """Return the rates under wheels that turn the body towards the goal, the short way."""
    error = (GOAL.inv() * x.att).array
    moment = -0.02 * np.where(error[0] < 0.0, -1.0, 1.0) * error[1:] - 0.15 * x.w_B
    u = satellite.idle().replace(torque=satellite.wheels.distribute(moment))
    return satellite.dynamics(t, x, u)


def off_goal(att: Quaternion) -> np.ndarray:
    """Return the angle to the goal in deg."""
    q = np.asarray(att.array)
    along = np.abs(np.sum(q * np.asarray(GOAL.array), axis=-1)) / np.linalg.norm(q, axis=-1)
    return np.rad2deg(2.0 * np.arccos(np.minimum(along, 1.0)))


def run(report: Report) -> None:
    """Slew once, slew from many attitudes, check momentum and pointing."""
    times = np.linspace(0.0, SECONDS, 601)
    title = f"A slew of {SECONDS:g} s in orbit"
    once = report.time_motion(title, SECONDS, slewing, start(), t_eval=times)
    left = off_goal(once.x.att)
    report.line("off the goal", left[-1], ".3f", "deg", f"from {left[0]:.0f} deg")
    report.line("wheels at the end", np.abs(once.x.h[-1]).max(), ".3f", "N m s")
    report.check("the goal is reached within 0.1 deg", left[-1] < 0.1)
    many = disperse(report)
    write(report, once, many)


def disperse(report: Report) -> arc.Trajectory:
    """Slew from random attitudes as one batch."""
    count, rng, x = report.copies(COPIES), np.random.default_rng(2), start()
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    x0 = arc.tree.map(lambda leaf: np.tile(leaf, (count, 1)), x)
    x0 = x0.replace(att=Quaternion(q), w_B=x.w_B + 0.003 * rng.normal(size=(count, 3)))
    times = np.linspace(0.0, SECONDS, 76)
    title = f"{count:,} slews from random attitudes as one batch"
    many = report.time_batch(title, slewing, x0, t_eval=times, in_axes=0)
    worst = off_goal(many.x.att)[:, -1].max()
    report.line("farthest off the goal", worst, ".3f", "deg", f"after {SECONDS:g} s")
    report.check("all reach the goal within 1 deg", worst < 1.0)
    return many


def write(report: Report, once: arc.Trajectory, many: arc.Trajectory) -> None:
    """Write plots and the page."""
    report.figure("slew", once, ["att", "w_B", "h"], title="A satellite turns to its goal")
    angles = arc.Trajectory(many.t, {"angle": off_goal(many.x.att)})
    report.figure("dispersion", angles, labels={"angle": "off the goal (deg)"}, spread="fan")
    note = "Wheels take up the momentum; the Earth turns below"
    title = "A satellite turns with its wheels"
    report.page(view({"satellite": (satellite, once)}, title=title, note=note), "satellite")
