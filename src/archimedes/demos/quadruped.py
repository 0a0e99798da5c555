"""A quadruped stands on its feet, is pushed, and stands again: contact in steps with friction."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.reporting import Report, time_call
from archimedes.typing import Array, Scalar
from archimedes.viewer import Arrow, view

STEP, SECONDS = 2e-3, 2.5
THIGH, SHIN, HEIGHT = 0.25, 0.25, 0.42
LEGS = (("fl", 0.2, 0.15), ("fr", 0.2, -0.15), ("hl", -0.2, 0.15), ("hr", -0.2, -0.15))
FEET = [f"{leg}_foot" for leg, _, _ in LEGS]


def make_quadruped() -> mb.Model:
    """Return a trunk with four legs, each of a hip that rolls and pitches, and a knee."""
    b = mb.Builder("quadruped")
    b.add_body("trunk", mass=10.0, inertia=[0.08, 0.3, 0.35])
    for leg, x, y in LEGS:
        for part, parent, axis, position, length in (
            ("hip", "trunk", [1, 0, 0], [x, y, 0], 0.0),
            ("thigh", f"{leg}_hip", [0, 1, 0], [0, 0, 0], THIGH),
            ("shin", f"{leg}_thigh", [0, 1, 0], [0, 0, -THIGH], SHIN),
        ):
            name, mass = f"{leg}_{part}", 0.6 if length else 0.3
            rod = mass * (length**2 / 12.0 + 1e-3)
            b.add_body(name, mass=mass, com=[0, 0, -length / 2], inertia=[rod, rod, 0.3 * rod])
            joint: dict[str, Any] = {"axis": axis, "position": position, "armature": 0.01}
            b.attach(name, parent, joint=name, damping=0.1, **joint)
        b.add_frame(f"{leg}_foot", f"{leg}_shin", position=[0, 0, -SHIN])
    return b.build(base="floating")


robot, ground = make_quadruped(), mb.Ground(friction=0.7)


def standing() -> tuple[Any, Any]:
    """Return the configuration with the feet below the hips, and the torques that hold it."""
    bend = np.arccos(HEIGHT / (THIGH + SHIN))
    stand = mb.neutral(robot)
    stand[2] = HEIGHT
    stand[7:] = np.tile([0.0, bend, -2.0 * bend], 4)
    jacobian = sum(mb.frame_jacobian(robot, stand, foot, "aligned")[2] for foot in FEET)
    weight = float(np.sum(robot.masses)) * 9.81
    return stand, (mb.gravity_torque(robot, stand) - jacobian * weight / 4)[6:]


def run(report: Report) -> None:
    """Push it sideways twice, and see that it stands again."""
    stand, hold = standing()
    contacts = [mb.sphere(foot, 0.0) for foot in FEET]

    def one(x: mb.State, push: Scalar) -> Any:
        torque = hold + 80.0 * (stand[7:] - x.q[7:]) - 3.0 * x.v[6:]
        R = mb.frame_pose(robot, x.q, "trunk").r.as_matrix()
        force = np.concatenate([R.T @ np.stack([0.0 * push, push, 0.0 * push]), np.zeros(3)])
        u = np.concatenate([np.zeros(6), torque])
        x = mb.contact_step(robot, x, STEP, contacts, ground, u, {"trunk": force})
        return x, x

    times = STEP * np.arange(round(SECONDS / STEP))
    pushes = np.where((times > 0.3) & (times < 0.4), 60.0, 0.0)
    pushes = pushes - np.where((times > 1.3) & (times < 1.4), 80.0, 0.0)
    walk = arc.compile(lambda pushes: arc.scan(one, mb.rest_state(robot, stand), pushes)[1])
    states, first = time_call(lambda: walk(pushes))
    _, again = time_call(lambda: walk(pushes))
    report.section(f"{robot!r}, pushed by 60 N and 80 N")
    report.speed(first, again, SECONDS, "motion")
    aside = 1e3 * np.abs(states.q[:, 1]).max()
    each = f"{1e6 * again / len(times):.0f} us each"
    report.line("steps of 2 ms with contact", len(times), "d", "", each)
    report.line("pushed aside by up to", aside, ".0f", "mm")
    report.line("height at the end", states.q[-1, 2], ".3f", "m", f"standing is {HEIGHT:g} m")
    report.check("it stands at the end", abs(states.q[-1, 2] - HEIGHT) < 0.02)
    report.check("it rests at the end", np.abs(states.v[-1]).max() < 0.1)
    write(report, times, states, pushes)


def write(report: Report, times: Array, states: mb.State, pushes: Array) -> None:
    """Write plots and the page."""
    shown = arc.Trajectory(times, {"height": states.q[:, 2], "aside": states.q[:, 1]})
    labels = {"height": "height of the trunk (m)", "aside": "aside (m)"}
    report.figure("trunk", shown, labels=labels)
    note = "Contact with friction at four feet, in steps of 2 ms"
    pair = (robot, arc.Trajectory(times, states))
    page = view({"robot": pair}, title="A quadruped is pushed", note=note)
    push = np.stack([0.0 * pushes, pushes, 0.0 * pushes], axis=1)
    page.scene.arrows.append(Arrow("push", "robot: trunk", times, push, "N", 0.01))
    report.page(page, "quadruped")
