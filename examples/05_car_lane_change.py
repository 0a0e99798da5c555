"""A car changes lanes at 90 km/h: a driver looks ahead and steers towards the middle of a lane."""

import numpy as np

import archimedes as arc
from archimedes.vehicles import Car, FlightState, load

car = load("car")
LANE, LOOK = 3.5, 1.6  # m to the right, s


def driver(t, x):
    """Steer for where the car will be, and keep the speed."""
    yaw = x.att.array[2]
    speed = x.v_B[0]
    lane = np.where(t < 1.0, 0.0, LANE)
    off = lane - (x.pos[1] + LOOK * speed * np.sin(yaw))
    return Car.Input(steer=np.clip(0.006 * off - 0.02 * x.w_B[2], -0.08, 0.08), drive=250.0)


def closed_loop(t, x):
    """Return the rates of car and driver together."""
    return car.dynamics(t, x, driver(t, x))


start = FlightState(0.0, 0.0, car.height, np.array([25.0, 0.0, 0.0]), np.zeros(3), np.zeros(3))
times = np.linspace(0.0, 8.0, 81)
run = arc.solve_ode(closed_loop, (0.0, 8.0), car.state(start), t_eval=times)
side = run.x.pos[:, 1]
states = [arc.tree.map(lambda a, k=k: a[k], run.x) for k in range(len(times))]
sideways = [car.outputs(t, x, driver(t, x)).side_acceleration for t, x in zip(times, states)]
roll = np.rad2deg(run.x.att.array[:, 0])
felt = np.abs(sideways).max()
print(f"side acceleration up to {felt / 9.81:.2f} g, roll up to {np.abs(roll).max():.1f} deg")
print(f"in the other lane: {side[-1]:.2f} m to the right, overshoot {side.max() - LANE:.2f} m")
assert abs(side[-1] - LANE) < 0.1 and felt < 9.81
