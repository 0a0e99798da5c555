"""Drag the hand of a Panda arm: it holds its posture like a spring, or follows like a feather.

Geometry, limits: Franka Emika, robot and interface specifications (modified Denavit-Hartenberg
parameters). Masses, centres of mass and inertias: C. Gaz, M. Cognetti, A. Oliva, P. Robuffo
Giordano and A. De Luca, Dynamic identification of the Franka Emika Panda robot with retrieval of
feasible parameters using penalty-based optimization, IEEE RA-L 4(4), 2019. The shapes are simple
ones, to look at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.reporting import Report
from archimedes.typing import Scalar, Tree
from archimedes.viewer import Control, Pull, Simulator, View, view

DT, REACH = 2e-3, 60.0
TURN = 0.5 * np.pi
#: Of each link: rotation about x and position in the one before, mass, centre of mass, inertia
#: (xx, xy, xz, yy, yz, zz), range of the joint, largest torque.
LINKS = (
    (0.0, (0.0, 0.0, 0.333), 4.970684, (0.003875, 0.002081, -0.04762),
     (0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117), (-2.8973, 2.8973), 87.0),
    (-TURN, (0.0, 0.0, 0.0), 0.646926, (-0.003141, -0.02872, 0.003495),
     (0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995), (-1.7628, 1.7628), 87.0),
    (TURN, (0.0, -0.316, 0.0), 3.228604, (0.027518, 0.039252, -0.066502),
     (0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083), (-2.8973, 2.8973), 87.0),
    (TURN, (0.0825, 0.0, 0.0), 3.587895, (-0.05317, 0.104419, 0.027454),
     (0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323), (-3.0718, -0.0698), 87.0),
    (-TURN, (-0.0825, 0.384, 0.0), 1.225946, (-0.011953, 0.041065, -0.038437),
     (0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627), (-2.8973, 2.8973), 12.0),
    (TURN, (0.0, 0.0, 0.0), 1.666555, (0.060149, -0.014117, -0.010517),
     (0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433), (-0.0175, 3.7525), 12.0),
    (TURN, (0.088, 0.0, 0.0), 0.735522, (0.010517, -0.004252, 0.061597),
     (0.012516, -0.000428, -0.001196, 0.010027, -0.000741, 0.004815), (-2.8973, 2.8973), 12.0),
)  # fmt: skip
HAND_MASS, HAND_COM = 0.73, (0.0, 0.0, 0.03)
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
WHITE, DARK = (0.93, 0.94, 0.96), (0.2, 0.22, 0.26)


def rotation(angle: float) -> np.ndarray:
    """Return the rotation matrix about x."""
    c, s = np.round([np.cos(angle), np.sin(angle)], 12)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def make_panda() -> mb.Model:
    """Return the arm with its hand."""
    b = mb.Builder("panda")
    parent = "world"
    for k, (angle, position, mass, com, inertia, (lower, upper), effort) in enumerate(LINKS):
        xx, xy, xz, yy, yz, zz = inertia
        name = f"link{k + 1}"
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        b.add_body(name, mass=mass, com=com, inertia=matrix)
        b.attach(
            name, parent, joint=f"joint{k + 1}", rotation=rotation(angle), position=position,
            lower=lower, upper=upper, effort_limit=effort, damping=0.5, armature=0.1,
        )  # fmt: skip
        parent = name
    b.add_body("hand", mass=HAND_MASS, com=HAND_COM, inertia=[0.001, 0.0025, 0.0017])
    b.weld("hand", "link7", position=[0.0, 0.0, 0.107])
    add_shapes(b)
    return b.build()


def add_shapes(b: mb.Builder) -> None:
    """Add simple shapes to look at."""
    flat = rotation(TURN)
    b.add_shape("link1", "cylinder", (0.075, 0.30), position=[0, 0, -0.18], color=WHITE)
    b.add_shape("link1", "cylinder", (0.07, 0.16), rotation=flat, color=WHITE)
    b.add_shape(
        "link2", "capsule", (0.06, 0.24), rotation=flat, position=[0, -0.14, 0], color=WHITE
    )
    b.add_shape("link3", "cylinder", (0.065, 0.12), position=[0, 0, -0.06], color=WHITE)
    b.add_shape("link3", "sphere", (0.075,), position=[0.07, 0.0, 0.0], color=WHITE)
    b.add_shape("link4", "cylinder", (0.06, 0.15), color=DARK)
    b.add_shape(
        "link4", "capsule", (0.055, 0.10), rotation=flat, position=[-0.08, 0.08, 0], color=WHITE
    )
    b.add_shape("link5", "capsule", (0.055, 0.22), position=[0.0, 0.02, -0.19], color=WHITE)
    b.add_shape("link6", "cylinder", (0.055, 0.14), color=DARK)
    b.add_shape("link6", "sphere", (0.06,), position=[0.06, 0.0, 0.0], color=WHITE)
    b.add_shape("link7", "cylinder", (0.045, 0.12), position=[0, 0, 0.05], color=WHITE)
    b.add_shape("hand", "box", (0.06, 0.2, 0.06), position=[0, 0, 0.03], color=DARK)
    for side in (-0.04, 0.04):
        b.add_shape("hand", "box", (0.02, 0.02, 0.05), position=[0, side, 0.085], color=WHITE)


panda = make_panda()


@arc.struct
class Shown:
    """What is drawn."""

    hand: Any = arc.field(units="m")
    pull: Any = arc.field(units="N")
    torque: Any = arc.field(units="N m")


def torque_of(x: mb.State, p: Tree) -> Any:
    """Return the torques: gravity is carried; a spring holds the posture, if it is on."""
    spring = p["hold"] * p["stiffness"] * (HOME - x.q)
    limits = np.asarray(panda.effort_limits)
    wanted = mb.gravity_torque(panda, x.q) + spring - p["damping"] * x.v
    return np.clip(wanted, -limits, limits)


def page() -> View:
    """Return the page."""
    names = tuple(link.body for link in panda.links if link.body)

    def motion(t: Scalar, x: mb.State, u: Pull, p: Tree) -> Any:
        return mb.dynamics(panda, t, x, torque_of(x, p), u.forces(panda, x.q, x.v))

    def outputs(t: Scalar, x: mb.State, u: Pull, p: Tree) -> Shown:
        wrenches = u.forces(panda, x.q, x.v)
        force = sum(np.sqrt(np.sum(w[:3] ** 2) + 1e-12) for w in wrenches.values())
        return Shown(mb.frame_pose(panda, x.q, "hand").t, force, torque_of(x, p))

    controls = {
        "hold": Control(kind="switch", label="hold the posture", keys="h"),
        "stiffness": Control(0.0, 200.0, label="stiffness of the joints", units="N m"),
        "damping": Control(0.5, 30.0, label="damping of the joints", units="N m s"),
    }
    simulator = Simulator(
        motion, mb.rest_state(panda, HOME), inputs=Pull(names, 600.0, 40.0, limit=REACH),
        parameters={"hold": 1.0, "stiffness": 40.0, "damping": 8.0}, controls=controls, dt=DT,
        t_end=20.0, actor=panda, outputs=outputs,
        charts=["hand", "pull", "joint angles", "torque"],
    )  # fmt: skip
    note = (
        "Drag the hand, or any link, with the mouse; H lets go: it carries its weight and follows"
    )
    return view({"panda": simulator}, title="Drag the Panda's hand", note=note, interactive=True)


def run(report: Report) -> None:
    """Pull the hand with a constant force, let go, and check that it comes back."""
    p = {"hold": 1.0, "stiffness": 40.0, "damping": 8.0}
    start = mb.rest_state(panda, HOME)

    def motion(t: Scalar, x: mb.State) -> Any:
        R = mb.frame_pose(panda, x.q, "link7").r.as_matrix()
        push = np.where(t < 2.0, 30.0, 0.0) * np.array([0.0, 1.0, 0.0])
        wrench = np.concatenate([R.T @ push, np.zeros(3)])
        return mb.dynamics(panda, t, x, torque_of(x, p), {"link7": wrench})

    times = np.linspace(0.0, 6.0, 301)
    title = "A Panda arm, pulled aside with 30 N for 2 s"
    once = report.time_motion(title, 6.0, motion, start, t_eval=times, rtol=1e-6)
    hand = np.asarray(mb.frame_pose(panda, once.x.q, "hand").t)
    off = np.linalg.norm(hand - hand[0], axis=1)
    report.line("hand pulled aside by", 1e3 * off.max(), ".0f", "mm")
    report.line("off its place at the end", 1e3 * off[-1], ".2f", "mm")
    report.check("it gives way by more than 5 cm", off.max() > 0.05)
    report.check("it comes back within 5 mm", off[-1] < 5e-3)
    report.figure("joints", once, title="Joints of the arm")
    report.page(view({"panda": (panda, once)}, title="A Panda arm, pulled aside"), "panda")
