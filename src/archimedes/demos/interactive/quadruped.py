"""Push the quadruped: drag its trunk or its legs; there is contact with friction at its feet."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos import quadruped as walker
from archimedes.typing import Scalar, Tree
from archimedes.viewer import Control, Pull, Simulator, View, view

DT = 2e-3
PARTS = ("trunk", "fl_thigh", "fr_thigh", "hl_thigh", "hr_thigh")


@arc.struct
class Hand:
    """Pushes against the trunk, in the axes of the world, and the spring at the cursor."""

    push: Any = arc.field(units="N", default_factory=lambda: np.zeros(2))
    pull: Any = arc.field(default_factory=lambda: Pull(PARTS, 400.0, 40.0, limit=120.0))


@arc.struct
class Shown:
    """What is drawn."""

    height: Any = arc.field(units="m")
    moved: Any = arc.field(units="m")
    tilt: Any = arc.field(units="rad")


def page() -> View:
    """Return the page."""
    stand, hold = walker.standing()
    robot = walker.robot
    # Feet, knees and hips: it can fall without falling through the ground.
    contacts = [mb.sphere(foot, 0.0) for foot in walker.FEET]
    for leg, _, _ in walker.LEGS:
        contacts += [mb.sphere(f"{leg}_shin", 0.03), mb.sphere(f"{leg}_hip", 0.05)]

    def step(t: Scalar, x: mb.State, u: Hand, p: Tree) -> Any:
        bend = np.arccos(np.clip(p["height"] / (walker.THIGH + walker.SHIN), 0.3, 0.99))
        one = np.stack([0.0 * bend, bend, -2.0 * bend])
        goal = np.concatenate([one, one, one, one])
        torque = hold + p["stiffness"] * (goal - x.q[7:]) - p["damping"] * x.v[6:]
        forces = u.pull.forces(robot, x.q, x.v)
        R = mb.frame_pose(robot, x.q, "trunk").r.as_matrix()
        push = np.concatenate([u.push, np.zeros(1)])
        forces["trunk"] = forces["trunk"] + np.concatenate([R.T @ push, np.zeros(3)])
        u_all = np.concatenate([np.zeros(6), torque])
        ground = mb.Ground(friction=p["friction"])
        return mb.contact_step(robot, x, DT, contacts, ground, u_all, forces)

    def outputs(t: Scalar, x: mb.State, u: Hand, p: Tree) -> Shown:
        up = mb.frame_pose(robot, x.q, "trunk").r.as_matrix()[2, 2]
        return Shown(x.q[2], np.sqrt(x.q[0] ** 2 + x.q[1] ** 2), np.arccos(np.clip(up, -1.0, 1.0)))

    push = [(0.12, 80.0)]
    controls = {
        "push[1]": Control(kind="pulse", label="push to the left", keys="ArrowLeft", pulse=push),
        "push[0]": Control(kind="pulse", label="push forward", keys="ArrowUp", pulse=push),
        "height": Control(0.25, 0.48),
        "stiffness": Control(10.0, 200.0, label="stiffness of the joints", units="N m"),
        "damping": Control(0.5, 8.0, label="damping of the joints", units="N m s"),
        "friction": Control(0.05, 1.2, label="friction of the ground"),
    }
    first = {"height": walker.HEIGHT, "stiffness": 80.0, "damping": 3.0, "friction": 0.7}
    simulator = Simulator(
        step, mb.rest_state(robot, stand), inputs=Hand(), parameters=first, controls=controls,
        discrete=True, dt=DT, t_end=20.0, actor=robot, outputs=outputs,
        charts=["height", "moved", "tilt", "joint angles (7 of 12)"],
    )  # fmt: skip
    note = "Drag the trunk or a leg with the mouse; the arrow keys push. Try ice: friction 0.1"
    return view({"robot": simulator}, title="Push the quadruped", note=note, interactive=True)
