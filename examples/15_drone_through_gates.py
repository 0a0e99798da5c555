"""A drone flies through five gates in the shortest time, from standstill to standstill.

One phase leads to each gate. The moments at which the drone passes are unknown: they are found
together with the path, the attitude, the thrust and the turning rates.
"""

import numpy as np

import archimedes as arc
from archimedes.optimize import OptimalControl, Phases
from archimedes.spatial import Quaternion
from archimedes.vehicles import load
from archimedes.viewer import Body, Camera, revolve

# 1. Where the gates are, in m north, east and down; the drone starts and ends at rest.
START, END = np.array([0.0, 0.0, -2.0]), np.array([0.0, 12.0, -2.0])
GATES = np.array([[6, 0, -3], [12, 4, -5], [10, 10, -2], [4, 8, -4], [-2, 9, -3]], dtype=float)
LEVEL, REST = Quaternion([1.0, 0.0, 0.0, 0.0]), np.zeros(3)


# 2. The drone: thrust pushes up along its own axis, and it turns as fast as it is told to.
@arc.struct
class State:
    """Where the drone is, how it is turned, and how fast it moves."""

    pos: np.ndarray = arc.field(units="m")
    att: Quaternion = arc.field()
    vel: np.ndarray = arc.field(units="m/s")


@arc.struct
class Control:
    """Thrust per mass, and the turning rates about the body's axes."""

    thrust: float = arc.field(units="m/s^2")
    rates: np.ndarray = arc.field(units="rad/s")


def dynamics(t, x, u):
    """Rates of position, attitude and velocity."""
    push = x.att.rotate(-u.thrust * np.array([0.0, 0.0, 1.0]), inverse=True)
    gravity, drag = np.array([0.0, 0.0, 9.81]), 0.2 * x.vel
    return State(x.vel, x.att.kinematics(u.rates), push + gravity - drag)


# 3. A phase for each gate: least time, and a little that keeps the rates smooth.
problem = {
    "running_cost": lambda t, x, u: 1.0 + 1e-3 * np.sum(u.rates**2),
    "control_bounds": (Control(2.0, np.full(3, -6.0)), Control(25.0, np.full(3, 6.0))),
}
goals = [State(gate, None, None) for gate in GATES] + [State(END, LEVEL, REST)]
phases, guesses, last, t = [], [], START, 0.0
for k, goal in enumerate(goals):
    begin = {"initial": State(START, LEVEL, REST)} if k == 0 else {"t0": (0.1, 20.0)}
    phases.append(OptimalControl(dynamics, final=goal, tf=(0.1, 20.0), **begin, **problem))
    middle, seconds = 0.5 * (last + goal.pos), np.linalg.norm(goal.pos - last) / 5.0
    hover = State(middle, LEVEL, (goal.pos - last) / seconds)  # a rough guess will do
    guesses.append({"x": hover, "u": Control(9.81, REST), "t0": t, "tf": t + seconds})
    last, t = goal.pos, t + seconds
found = Phases(*phases).solve(guesses, intervals=6, mesh_tol=2e-3)
print(found)
print("gates at", ", ".join(f"{phase.tf:.2f} s" for phase in found.phases))
figure = arc.plot(found, title="Through five gates")

# 4. In 3-D: the shape of a quadrotor, and a ring for each gate. The viewer's axes: east, north, up.
view = arc.view(load("multirotor"), found, camera=Camera("overview", elevation=35.0))
turn = np.linspace(0.0, 2.0 * np.pi, 17)
ring = revolve(np.stack([0.06 * np.cos(turn), 0.8 + 0.06 * np.sin(turn)], 1), color="#e8743b")
for gate, phase in zip(GATES, found.phases):
    place, half = [gate[1], gate[0], -gate[2]], 0.5 * np.arctan2(*phase.x.vel[-1, :2])
    turned = [np.cos(half), 0.0, 0.0, np.sin(half)]  # the way the drone flies through
    view.scene.bodies.append(Body(f"gate at {phase.tf:.2f} s", [ring], 0.0, place, turned))
print(view)  # view.show() opens it in a browser, view.save("gates.html") keeps it
passed = np.stack([phase.x.pos[-1] for phase in found.phases[:-1]])
assert found.success and found.tf < 6.0 and np.abs(passed - GATES).max() < 1e-6
arc.show()
