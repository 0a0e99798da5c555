"""A quadrotor that must land gently: a requirement, the worst gust and load, and the repair."""

import numpy as np

import archimedes as arc
from archimedes import requirements as req
from archimedes.simulate import Uniform

# 1. Vertical motion of a quadrotor with rotors that lag: altitude, climb rate, thrust, and what
#    the regulator remembers. The load on board is not known to it, nor are the gusts.
MASS, GRAVITY, LAG = 1.2, 9.81, 0.1  # kg, m/s^2, s


@arc.struct
class State:
    """What moves."""

    alt: float = arc.field(units="m")
    climb: float = arc.field(units="m/s")
    thrust: float = arc.field(units="N")
    memory: float = 0.0


def landing(t, x, gust, load, gains):
    """Return the rates of the quadrotor; `gust` is a vertical acceleration of the air in m/s^2."""
    wanted = -np.clip(0.3 + 0.6 * x.alt, 0.3, 2.5)  # descend slowly near the ground
    error = wanted - x.climb
    command = MASS * (GRAVITY + gains[0] * error + gains[1] * x.memory)
    command = np.clip(command, 0.2 * MASS * GRAVITY, 2.0 * MASS * GRAVITY)
    in_air = np.where(x.alt > 0.0, 1.0, 0.0)
    return State(
        alt=x.climb * in_air,
        climb=(x.thrust / (MASS + load) - GRAVITY + gust) * in_air,
        thrust=(command - x.thrust) / LAG,
        memory=np.clip(error, -1.0, 1.0),
    )


# 2. What is required: whenever it is close to the ground, it sinks slowly, and it lands in time.
alt, climb = req.signal("alt"), req.signal("climb")
gentle = req.always((alt < 0.3) >> (climb > -1.0), name="gentle")
landed = req.eventually(alt < 0.05, between=(0, 25), name="landed")

# 3. The nominal landing keeps both.
soft, firm = np.array([2.0, 0.0]), np.array([6.0, 3.0])
start = State(alt=12.0, climb=0.0, thrust=MASS * GRAVITY)
calm = arc.InputSeries([0.0, 1.0], [0.0, 0.0])
nominal = arc.solve_ode(landing, (0.0, 25.0), start, inputs=calm, args=(0.0, soft), max_step=0.1)
print(req.check([gentle, landed], nominal))
assert req.check([gentle, landed], nominal).ok

# 4. The worst case: gusts of up to 0.6 m/s^2 in ten pieces, and up to 0.4 kg on board.
ranges = {
    "x0": start,
    "inputs": req.PiecewiseInput(-0.6, 0.6, pieces=10),
    "args": (Uniform(0.0, 0.4), soft),
}
# Batches are quick here and find it without gradients, whose compilation takes longer.
options = {"t_span": (0.0, 25.0), "method": "rk4", "dt": 0.05, "seed": 1, "gradients": False}
found = arc.falsify(landing, gentle & landed, ranges, max_simulations=400, **options)
print(found)
assert found.status == "violated"
assert found.robustness < -0.2
# The run can be simulated again, with the same bits.
assert np.array_equal(found.simulate().x.alt, found.trajectory.x.alt)

# 5. The repair: a firmer regulator that also integrates its error, so that it carries the load.
ranges["args"] = (Uniform(0.0, 0.4), firm)
mended = arc.falsify(landing, gentle & landed, ranges, max_simulations=1000, **options)
print(mended)
assert mended.status == "not found"
print(f"margin after the repair: {mended.robustness:.2f} (it was {found.robustness:.2f})")

# 6. Pictures: the worst landing before and after.
arc.plot(found.trajectory, title="The worst landing")
arc.plot(mended.trajectory, title="The worst landing that was found after the repair")
arc.show()
