"""A two-stage rocket to orbit in one solve: staging is an event that resets the state."""

import numpy as np

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.vehicles import FlightState, OrbitGuidance, load

rocket, guidance = load("rocket"), OrbitGuidance()
pad = FlightState(
    lat=np.deg2rad(28.5),
    lon=np.deg2rad(-80.6),
    alt=10.0,
    v_NED=np.zeros(3),
    rpy=np.array([0.0, 0.5 * np.pi - 1e-9, 0.5 * np.pi]),  # nose up, top to the east
    w_B=np.zeros(3),
)


def ascent(t, x):
    """Return the rates of rocket and guidance together."""
    return rocket.dynamics(t, x, guidance.command(rocket, t, x))


# The first stage falls away when it is empty: an event with a reset, `rocket.separate`.
run = arc.solve_ode(
    ascent, (0.0, 700.0), rocket.state(pad), events=rocket.staging(), rtol=1e-8, atol=1e-6
)
x = arc.tree.map(lambda a: a[-1], run.x)
v = x.motion.v_E + np.cross([0.0, 0.0, WGS84.omega], x.motion.pos)
energy = 0.5 * v @ v - WGS84.mu / np.linalg.norm(x.motion.pos)
a = -0.5 * WGS84.mu / energy
h = np.linalg.norm(np.cross(x.motion.pos, v))
e = np.sqrt(1.0 - h**2 / (WGS84.mu * a))
print(f"staging at {run.events['t'][0]:.1f} s")
print(
    f"orbit of {(a * (1 - e) - WGS84.a) / 1e3:.0f} by {(a * (1 + e) - WGS84.a) / 1e3:.0f} km, "
    f"{x.propellant[1]:.0f} kg of propellant left"
)
assert a * (1 - e) - WGS84.a > 150e3
