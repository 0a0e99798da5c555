"""An arm draws a circle with its hand: inverse kinematics, then computed torque against errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.reporting import Report, duration, time_call
from archimedes.typing import Array, Scalar
from archimedes.viewer import Path, view

PERIOD, RADIUS, CENTER = 2.0, 0.18, np.array([0.45, 0.0, 0.75])
ROUNDS = 3


def arm(heavier: float = 1.0, friction: float = 0.0) -> mb.Model:
    """Return an arm of three joints: it turns about z, its shoulder and elbow about y."""
    b = mb.Builder("arm")
    for name, parent, axis, height, mass in (
        ("column", "world", [0, 0, 1], 0.0, 4.0),
        ("upper", "column", [0, 1, 0], 0.5, 3.0),
        ("lower", "upper", [0, 1, 0], 0.5, 2.0),
    ):
        rod = mass * 0.5**2 / 12.0
        b.add_body(name, mass=heavier * mass, com=[0, 0, 0.25], inertia=[rod, rod, 0.1 * rod])
        b.attach(
            name, parent, joint=name, axis=axis, position=[0, 0, height], lower=-2.8, upper=2.8,
            friction=friction, damping=2.0 * friction, armature=0.05,
        )  # fmt: skip
    b.add_frame("hand", "lower", position=[0.0, 0.0, 0.5])
    return b.build()


known, real = arm(heavier=0.9), arm(friction=0.5)


def circle(t: Scalar) -> Any:
    """Return where the hand should be at a time."""
    angle = 2.0 * np.pi * t / PERIOD
    return CENTER + RADIUS * np.stack([0.0 * t, np.cos(angle), np.sin(angle)])


def reach(point: Array) -> Any:
    """Search the angles that put the hand at a point."""
    target = mb.pose(point, np.eye(3))
    only = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    return mb.inverse_kinematics(known, "hand", target, [0.0, 0.5, 1.2], weights=only)


def run(report: Report) -> None:
    """Search the angles of the whole circle at once, follow them, measure the error."""
    times = np.linspace(0.0, PERIOD, 65)
    points = np.stack([circle(t) for t in times])
    search, seconds = time_call(lambda: arc.vmap(reach)(points))
    report.section("The angles along the circle, found by one mapped search")
    report.line("points", len(times), "d", "", duration(seconds))
    report.check("the whole circle is within reach", np.all(search.success))
    path = [arc.interpolant([times], search.q[:, k], method="cubic") for k in range(3)]

    def angles(t: Scalar) -> Any:
        return np.stack([curve(np.mod(t, PERIOD)) for curve in path])

    speeds = arc.jac(angles)
    accelerations = arc.jac(speeds)

    def rates(t: Array, x: mb.State, gain: Scalar) -> Any:
        a = accelerations(t) + gain**2 * (angles(t) - x.q) + 2.0 * gain * (speeds(t) - x.v)
        return mb.dynamics(real, t, x, mb.rnea(known, x.q, x.v, a))

    start = mb.State(angles(0.0), speeds(0.0))
    span = (0.0, ROUNDS * PERIOD)
    outputs = np.linspace(*span, 361)
    report.section("Computed torque; the model it uses is 10 % too light and without friction")
    for gain in (10.0, 40.0):
        options: dict[str, Any] = {"args": (gain,), "t_eval": outputs, "rtol": 1e-6}
        once, seconds = time_call(partial(arc.solve_ode, rates, span, start, **options))
        hand = mb.frame_pose(real, once.x.q, "hand").t
        off = np.linalg.norm(hand - np.stack([circle(t) for t in outputs]), axis=1)[120:]
        report.line(f"gain of {gain:g} rad/s", 1e3 * off.max(), ".2f", "mm", duration(seconds))
    report.check("the hand stays within 5 mm", off.max() < 5e-3)
    write(report, once, hand)


def write(report: Report, once: arc.Trajectory, hand: Array) -> None:
    """Write plots and the page."""
    report.figure("joints", once, title="Joints of the arm")
    page = view({"arm": (real, once)}, title="An arm draws a circle")
    page.scene.note = "Inverse kinematics by one mapped search, computed torque against errors"
    points = np.stack([circle(t) for t in np.linspace(0.0, PERIOD, 120)])
    page.scene.paths.append(Path("wanted", points, "#19a979"))
    page.scene.paths.append(Path("hand", hand, "#f2662b"))
    report.page(page, "arm")
