"""An F-16 with a linear-quadratic regulator: trim, linearize, modes, LQR, flight in a gust."""

import numpy as np

import archimedes as arc
from archimedes.control import StateSpace, lqr, modes
from archimedes.environment import OneCosineGust
from archimedes.vehicles import F16, FlatEarth, FlightState, linearize, load, trim

# 1. The aircraft, and the flight to hold: level, to the north, 150 m/s at 1,000 m.
plane = load("f16", world=FlatEarth())
wanted = FlightState(
    lat=0.0,
    lon=0.0,
    alt=1000.0,
    v_NED=np.array([150.0, 0.0, 0.0]),
    rpy=np.array([0.0, 0.05, 0.0]),  # where the search for the attitude starts, in rad
    w_B=np.zeros(3),
)
steady = trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03))
print(f"{steady.message}: pitch {np.rad2deg(steady.flight.rpy[1]):.2f} deg, {steady.input}")

# 2. Small motions about it: dz/dt = A z + B u. The modes have the names that pilots know.
small = linearize(plane, steady)
print(modes(small))

# 3. The regulator. Weights by Bryson's rule: 1 / (largest deviation that is acceptable)^2.
#    z: altitude (m), velocity (m/s), attitude (rad), angular velocity (rad/s), power (%)
largest = np.array([5.0, *[2.0, 2.0, 2.0], *[0.1, 0.1, 0.1], *[0.5, 0.2, 0.2], 20.0])
effort = np.array([0.2, *np.deg2rad([5.0, 5.0, 5.0])])  # throttle, elevator, aileron, rudder
K = lqr(small.A, small.B, np.diag(largest**-2.0), np.diag(effort**-2.0))[0]
closed = StateSpace(small.A - small.B @ K, small.B, small.C, small.D, states=small.states)
assert np.all(np.real(closed.poles()) < 0.0), "the regulator must stabilize the aircraft"

# 4. The whole, nonlinear aircraft in a gust from the left and from below, told to climb by 20 m.
gust = OneCosineGust(np.array([0.0, 10.0, -6.0]), start=2.0, rise=1.0, hold=False)
stormy = plane.replace(world=FlatEarth(wind=gust))
low, high = (np.stack(arc.tree.leaves(stop)) for stop in plane.stops)


def deviation(t, x):
    """Return z: how far the flight is from the one that is wanted."""
    now, goal = stormy.world.flight(t, x.motion), steady.flight
    climb = np.where(t < 10.0, 0.0, 20.0)
    return np.concatenate(
        [
            np.reshape(now.alt - goal.alt - climb, (1,)),
            now.v_NED - goal.v_NED,
            now.rpy - goal.rpy,
            now.w_B - goal.w_B,
            np.reshape(x.power - steady.state.power, (1,)),
        ]
    )


def controls(t, x):
    """Return the controls: those of steady flight, less the gain times the deviation."""
    u = np.stack(arc.tree.leaves(steady.input)) - K @ deviation(t, x)
    return F16.Input(*np.clip(u, low, high))  # surfaces have stops


def flight(t, x):
    """Return the rates of the aircraft under its regulator."""
    return stormy.dynamics(t, x, controls(t, x))


times = np.linspace(0.0, 30.0, 601)
flown = arc.solve_ode(flight, (0.0, 30.0), steady.state, t_eval=times, rtol=1e-6)
state = stormy.world.flight(flown.t, flown.x.motion)
rolled, blown = np.rad2deg(np.abs(state.rpy[:, 0])).max(), np.abs(state.v_NED[:, 1]).max()
print(f"largest bank {rolled:.1f} deg, sideways {blown:.1f} m/s, at last {state.alt[-1]:.2f} m")
assert flown.success and abs(state.alt[-1] - 1020.0) < 0.5 and rolled < 30.0

# 5. Pictures: modes before and after, the flight, and the flight in three dimensions.
arc.plot(small, title="Modes of the F-16")
arc.plot(modes(closed), title="With the regulator")
arc.plot(arc.Trajectory(flown.t, state), title="A gust at 2 s, a climb at 10 s")
arc.view(stormy, flown, title="F-16 with LQR")  # .show() opens it in the browser
arc.show()
