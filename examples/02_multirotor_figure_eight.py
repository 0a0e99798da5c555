"""A multirotor follows a figure-eight in a steady wind, all rotors and motors simulated."""

import numpy as np

import archimedes as arc
from archimedes.environment import ConstantWind
from archimedes.vehicles import FlatEarth, FlightState, GeometricController, load

drone = load("multirotor", world=FlatEarth(wind=ConstantWind(np.array([3.0, 2.0, 0.0]))))
controller = GeometricController()


def path(t, w=0.6):
    """Return place, velocity and acceleration in NED axes, 10 m up."""
    p = np.stack([8 * np.sin(w * t), 4 * np.sin(2 * w * t), -10.0 + 0.0 * t])
    v = np.stack([8 * w * np.cos(w * t), 8 * w * np.cos(2 * w * t), 0.0 * t])
    a = np.stack([-8 * w**2 * np.sin(w * t), -16 * w**2 * np.sin(2 * w * t), 0.0 * t])
    return p, v, a


def closed_loop(t, x):
    """Return the rates of drone and controller together."""
    return drone.dynamics(t, x, controller.command(drone, x, *path(t), 0.0 * t))


start = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
times = np.linspace(0.0, 25.0, 126)
run = arc.solve_ode(closed_loop, (0.0, 25.0), drone.state(start), t_eval=times, rtol=1e-7)
error = np.linalg.norm(run.x.motion.pos - path(times)[0].T, axis=1)
print(f"away from the path at the start: {error[:10].max():.2f} m")
print(
    f"once settled: {error[50:].max():.2f} m, rotors between "
    f"{run.x.speeds.min():.0f} and {run.x.speeds.max():.0f} rad/s"
)
assert error[50:].max() < 0.25
