"""A satellite stops tumbling with its coils, then turns to an attitude with its wheels."""

import numpy as np

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.spatial import Quaternion
from archimedes.vehicles import Satellite, load

satellite = load("satellite")
r, tilt = 6.9e6, 1.2
speed = np.sqrt(WGS84.mu / r)
x0 = Satellite.State(
    pos=np.array([r, 0.0, 0.0]),
    vel=speed * np.array([0.0, np.cos(tilt), np.sin(tilt)]),
    att=Quaternion.identity(),
    w_B=np.array([0.1, -0.08, 0.12]),
    h=np.zeros(3),
)


def detumbling(t, x):
    """The B-dot law: dipoles against the change of the field that the turning makes."""
    change = -np.cross(x.w_B, satellite.outputs(t, x).B_B)
    return satellite.dynamics(t, x, satellite.idle().replace(dipole=-5e5 * change))


goal = Quaternion.from_euler([0.3, -0.5, 2.0], "xyz")


def slewing(t, x):
    """Wheels turn the body towards the goal, the short way around."""
    error = (goal.inv() * x.att).array
    moment = -0.02 * np.where(error[0] < 0.0, -1.0, 1.0) * error[1:] - 0.15 * x.w_B
    u = satellite.idle().replace(torque=satellite.wheels.distribute(moment))
    return satellite.dynamics(t, x, u)


first = arc.solve_ode(detumbling, (0.0, 6000.0), x0, t_eval=np.linspace(0.0, 6000.0, 61))
rates = np.rad2deg(np.linalg.norm(first.x.w_B, axis=1))
print(f"turning: {rates[0]:.2f} deg/s, after an orbit {rates[-1]:.3f} deg/s")
x = arc.tree.map(lambda a: a[-1], first.x)
second = arc.solve_ode(slewing, (6000.0, 6300.0), x, t_eval=np.linspace(6000.0, 6300.0, 31))
left = (goal.inv() * Quaternion(second.x.att.array[-1])).as_rotvec().array
print(
    f"after the slew: {np.rad2deg(np.linalg.norm(left)):.4f} deg from the goal, wheels at "
    f"{np.abs(second.x.h[-1]).max():.4f} N m s"
)
assert rates[-1] < 0.05 * rates[0] and np.linalg.norm(left) < 2e-3
