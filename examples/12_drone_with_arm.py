"""A drone flies two metres to the side with a load that swings below it on an arm.

Flight and multibody dynamics in one model: rotors and controller are those of `vehicles`, hull, arm
and load a tree of bodies. Axes as in flight: z points down, in the world and in the body.
"""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import Quaternion, RigidBody
from archimedes.vehicles import GeometricController, Multirotor, ring

DENSITY, HULL, LOAD, LENGTH = 1.225, 1.2, 0.25, 0.5
rotors = ring(4, 0.23, inertia=6e-5)


def drone():
    """Return a hull that floats, with an arm that swings both ways and a load at its end."""
    b = mb.Builder("drone")
    b.add_body("hull", mass=HULL, inertia=[0.012, 0.012, 0.022])
    b.add_body("arm", mass=0.05, com=[0, 0, LENGTH / 2], inertia=[1e-3, 1e-3, 1e-5])
    b.attach(
        "arm", "hull", joint="swing", kind="universal", axis=[1, 0, 0], second_axis=[0, 1, 0],
        damping=0.01,
    )  # fmt: skip
    b.add_body("load", mass=LOAD, inertia=[1e-4] * 3)
    b.weld("load", "arm", position=[0, 0, LENGTH])
    return b.build(base="floating", gravity=[0.0, 0.0, 9.80665])


model = drone()
# What the controller takes the whole for: one rigid body.
assumed = Multirotor(mass=float(np.sum(model.masses)), rotors=rotors)
controller = GeometricController(position=2.0, velocity=2.5)
GOAL = np.array([0.0, 2.0, -1.0])


@arc.struct
class State:
    """Where the bodies are and how they move, and the speeds of the rotors in rad/s."""

    robot: mb.State
    speeds: np.ndarray


def command(x):
    """Return the speeds of the rotors that lead to the goal."""
    q, v = x.robot.q, x.robot.v
    motion = RigidBody.State(pos=q[:3], att=Quaternion(q[3:7]), v_B=v[:3], w_B=v[3:6])
    thrust, moment = controller.wrench(assumed, motion, GOAL, np.zeros(3), np.zeros(3), 0.0)
    return rotors.distribute(thrust, moment)


def dynamics(t, x):
    """Return the rates of all."""
    v = x.robot.v
    rates = rotors.rates(x.speeds, command(x))
    force, moment = rotors.wrench(x.speeds, rates, v[:3], v[3:6], DENSITY)
    pushed = {"hull": np.concatenate([force, moment])}
    return State(mb.dynamics(model, t, x.robot, forces=pushed), rates)


start = mb.neutral(model)
start[2] = -1.0
hover = rotors.distribute(assumed.mass * 9.80665, np.zeros(3))
times = np.linspace(0.0, 10.0, 201)
first = State(mb.rest_state(model, start), hover)
run = arc.solve_ode(dynamics, (0.0, 10.0), first, t_eval=times, rtol=1e-7)

q = run.x.robot.q
load = mb.frame_pose(model, q, "load").t
angle = np.rad2deg(
    np.arctan2(np.hypot(load[:, 0] - q[:, 0], load[:, 1] - q[:, 1]), load[:, 2] - q[:, 2])
)
off = np.sqrt(((q[:, :3] - GOAL) ** 2).sum(axis=1))
print(model)
print(f"the load swings by up to {angle.max():.1f} deg")
print(
    f"after 10 s the hull is {1e3 * off[-1]:.0f} mm from its goal, the load at {angle[-1]:.2f} deg"
)
assert angle.max() > 5.0 and off[-1] < 0.05 and angle[-1] < 2.0
