"""A quadrotor holds its place in the wind: 200 random flights, and its controller as C code.

The controller runs 100 times a second on noisy measurements. Each flight has its own mass, wind and
noise. At the end the same Python function becomes C, which is compiled and compared bit by bit.
"""

import numpy as np

import archimedes as arc
from archimedes.environment import ConstantWind
from archimedes.simulate import Normal, RunKey
from archimedes.vehicles import FlatEarth, FlightState, GeometricController, load

# 1. The vehicle, and a controller that knows its nominal mass. Axes: north, east, down.
drone, law = load("multirotor"), GeometricController()
HOVER = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
GOAL = np.array([3.0, 2.0, -12.0])  # m: a little north-east of the start and 2 m higher


def controller(measured, goal):
    """From the measured state and the place to go: the speeds of the rotors, in rad/s."""
    return law.command(drone, measured, goal, np.zeros(3), np.zeros(3), 0.0)


# 2. What differs from flight to flight. A field with a key gives each flight its own noise.
@arc.struct
class Case:
    """One flight of the campaign."""

    mass: float = arc.field(default=1.2, units="kg")
    wind: np.ndarray = arc.field(default_factory=lambda: np.zeros(3), units="m/s")
    noise: float = arc.field(default=0.05, units="m")  # of the measured position
    key: np.ndarray = arc.field(default_factory=lambda: arc.random.key(0))


# 3. The physics runs continuously, the controller every 10 ms: its input is held in between.
def physics(t, x, u, case):
    """Rates of the drone with the mass and the wind of this flight."""
    world = FlatEarth(wind=ConstantWind(case.wind))
    return drone.replace(mass=case.mass, world=world).dynamics(t, x, u)


def measure_and_steer(t, x, u, case, key):
    """Measure the motion with noise and return the new input."""
    noise = case.noise * arc.random.normal(key, (3, 3))
    pos, v_B = x.motion.pos + noise[0], x.motion.v_B + noise[1]
    motion = x.motion.replace(pos=pos, v_B=v_B, w_B=x.motion.w_B + 0.2 * noise[2])
    return controller(x.replace(motion=motion), GOAL)


start = drone.state(HOVER)
part = arc.Sampled(measure_and_steer, init=controller(start, GOAL), dt=0.01, key=lambda c: c.key)
times = np.linspace(0.0, 10.0, 201)


def fly(case):
    """Fly for 10 s. Return the path, and how far off and how low it is in the last half."""
    options = {"args": (case,), "sampled": part, "t_eval": times, "rtol": 1e-5, "atol": 1e-7}
    path = arc.odeint(physics, (0.0, 10.0), start, **options).motion.pos
    off = path[100:] - GOAL
    away = np.sqrt(np.sum(off * off, axis=1))
    return {"distance (m)": np.mean(away), "sag (m)": np.mean(off[:, 2]), "path": path}


# 4. A campaign: flight 17 is the same however many flights there are, and can be flown again.
wind = Normal(np.array([2.0, 0.0, 0.0]), np.array([2.0, 2.0, 0.5]))
spread = Case(mass=Normal(1.2, 0.08), wind=wind, noise=Normal(0.05, 0.005), key=RunKey())
found = arc.monte_carlo(fly, spread, n=200, seed=1)
away = found.results["distance (m)"]
print(f"200 flights: {away.mean():.2f} m from the goal, 95 % below {np.quantile(away, 0.95):.2f} m")
figure = arc.plot(found, kind="scatter", title="200 flights: mass, wind and noise vary")
# The picture shows that the mass decides: the drone hangs where thrust and weight balance.
sag = 9.81 / law.position * (found.params.mass / drone.mass - 1.0)
assert found.success.all() and np.abs(found.results["sag (m)"] - sag).max() < 0.04

# 5. The same controller as C: a header, a source and an example, compared with Python bit by bit.
project = arc.codegen(controller, (start, GOAL), name="quadrotor", verify=True)
print(project)
arc.show()
